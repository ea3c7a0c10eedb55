//! HTB: shares with borrowing, by token buckets (`HTB`, `tc-htb(8)`).
//!
//! A root with one leaf for each class. A leaf has two buckets, one that fills
//! with the class's own rate and one with the ceiling, here the root's rate; the
//! root has one. A bucket holds at most its burst, is paid a packet's size when
//! the packet leaves, and may go below zero by that packet: what counts is that it
//! was not below before. So a leaf
//! - within its own rate and the ceiling sends, whatever the others do;
//! - beyond its own rate, within the ceiling, sends when the root is not below
//!   zero and no leaf can send by its own rate: it borrows, and its own bucket
//!   goes on filling;
//! - beyond the ceiling waits.
//!
//! Leaves that may send by the same right take turns by deficit round robin, with
//! a quantum of a tenth of a second of their rate. So what is lent goes to the
//! borrowers in proportion to their rates.
//!
//! Tokens are counted in bits times nanoseconds, so that filling is exact. O(n) in
//! the classes per packet.

use tidegate_core::discipline::{Backlog, Discipline, Losses};
use tidegate_core::entry::Place;
use tidegate_core::setting::Settings;
use tidegate_core::units::NANOS_PER_SECOND;
use tidegate_core::{Bytes, Packet, Rate, Span, Time};

/// What a bucket holds: the packet size that tc reckons with. To that it adds
/// what the rate brings in a tick of the clock, nothing where ticks are nanoseconds.
const BURST: Bytes = Bytes(1_600);

/// A quantum is the rate in bytes a second by so much (r2q), and within limits.
const RATE_TO_QUANTUM: u64 = 10;
const QUANTUM: (u64, u64) = (1_000, 200_000);

/// By what right a leaf sends: with tokens of its own, or with the root's.
const OWN: usize = 0;
const BORROWED: usize = 1;

/// A queue for each class, shaped.
pub(crate) struct Htb {
    root: Bucket,
    leaves: Vec<Leaf>,
    /// The leaf whose turn it is, for either right.
    turns: [usize; 2],
}

struct Leaf {
    queue: Box<dyn Discipline>,
    own: Bucket,
    ceiling: Bucket,
    quantum: i128,
    /// What it may send in its turn, for either right.
    deficits: [i128; 2],
}

impl Htb {
    /// A shaper to `rate` with leaves of these rates, the first for class 0; classes
    /// beyond the last share that leaf.
    pub(crate) fn new(rate: Rate, leaves: Vec<(Rate, Box<dyn Discipline>)>) -> Htb {
        let leaf = |(own, queue): (Rate, Box<dyn Discipline>)| {
            let (least, most) = QUANTUM;
            let quantum = (own.0 / 8 / RATE_TO_QUANTUM).clamp(least, most);
            let deficits = [0; 2];
            let (own, ceiling) = (Bucket::new(own), Bucket::new(rate));
            Leaf { queue, own, ceiling, quantum: i128::from(quantum), deficits }
        };
        Htb {
            root: Bucket::new(rate),
            leaves: leaves.into_iter().map(leaf).collect(),
            turns: [0; 2],
        }
    }

    /// Whether a leaf may send at `now` by this right.
    fn may_send(&self, leaf: usize, right: usize, now: Time) -> bool {
        let leaf = &self.leaves[leaf];
        let paid = if right == OWN { &leaf.own } else { &self.root };
        let ready = leaf.ceiling.ready_at(now).max(paid.ready_at(now));
        leaf.queue.backlog().packets > 0 && ready <= now
    }

    /// Takes a packet of the next leaf in turn that may send by this right.
    fn take(&mut self, right: usize, now: Time, losses: &mut Losses) -> Option<Packet> {
        let count = self.leaves.len();
        for leaf in (0..count).map(|step| (self.turns[right] + step) % count) {
            if !self.may_send(leaf, right, now) {
                continue;
            }
            let Some(packet) = self.leaves[leaf].queue.dequeue(now, losses) else { continue };
            self.pay(leaf, right, now, packet.size);
            return Some(packet);
        }
        None
    }

    fn pay(&mut self, number: usize, right: usize, now: Time, size: Bytes) {
        self.root.pay(now, size);
        let leaf = &mut self.leaves[number];
        leaf.ceiling.pay(now, size);
        if right == OWN {
            leaf.own.pay(now, size);
        }
        self.turns[right] = number;
        leaf.deficits[right] -= i128::from(size.0);
        if leaf.deficits[right] < 0 {
            leaf.deficits[right] += leaf.quantum;
            self.turns[right] = (number + 1) % self.leaves.len();
        }
    }
}

impl Discipline for Htb {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        let last = self.leaves.len() - 1;
        self.leaves[usize::from(packet.class).min(last)].queue.enqueue(now, packet, losses);
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        self.take(OWN, now, losses).or_else(|| self.take(BORROWED, now, losses))
    }

    /// Each leaf's queue has these settings and such a buffer from `now` on.
    fn reconfigure(&mut self, now: Time, settings: &Settings, place: Place) {
        for leaf in &mut self.leaves {
            let place = Place { rate: Some(leaf.own.rate), ..place };
            leaf.queue.reconfigure(now, settings, place);
        }
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        let waiting = self.leaves.iter().filter(|leaf| leaf.queue.backlog().packets > 0);
        let ready = |leaf: &Leaf| {
            let paid = leaf.own.ready_at(now).min(self.root.ready_at(now));
            paid.max(leaf.ceiling.ready_at(now))
        };
        waiting.map(ready).min()
    }

    fn backlog(&self) -> Backlog {
        let mut sum = Backlog::default();
        for leaf in &self.leaves {
            let Backlog { packets, bytes } = leaf.queue.backlog();
            sum.packets += packets;
            sum.bytes += bytes;
        }
        sum
    }
}

/// Tokens that fill with a rate.
struct Bucket {
    rate: Rate,
    /// In bits times nanoseconds a second.
    level: i128,
    /// When the level was that.
    at: Time,
}

impl Bucket {
    const MOST: i128 = Bucket::price(BURST);

    fn new(rate: Rate) -> Bucket {
        // Shares of a link are rounded down: the least is a bit a second.
        Bucket { rate: Rate(rate.0.max(1)), level: Bucket::MOST, at: Time::ZERO }
    }

    const fn price(size: Bytes) -> i128 {
        size.0 as i128 * 8 * NANOS_PER_SECOND as i128
    }

    fn pay(&mut self, now: Time, size: Bytes) {
        let filled = self.level + i128::from(self.rate.0) * i128::from(now.since(self.at).0);
        self.level = filled.min(Bucket::MOST) - Bucket::price(size);
        self.at = now;
    }

    /// When the level is no longer below zero, not before `now`.
    fn ready_at(&self, now: Time) -> Time {
        let missing = (-self.level).max(0).unsigned_abs();
        let wait = missing.div_ceil(u128::from(self.rate.0));
        (self.at + Span(u64::try_from(wait).unwrap_or(u64::MAX))).max(now)
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::discipline::fifo::Fifo;
    use tidegate_core::{Buffer, FlowKey, Port, Stream};

    use super::*;

    const RATE: Rate = Rate(7_000_000);

    /// Leaves of 4, 2 and 1 Mbit/s.
    fn shaper() -> Port {
        let leaf = |megabits: u64| -> (Rate, Box<dyn Discipline>) {
            (Rate(megabits * 1_000_000), Box::new(Fifo::new(Buffer::packets(50))))
        };
        Port::new(Box::new(Htb::new(RATE, [4, 2, 1].map(leaf).into_iter().collect())))
    }

    fn packet(number: u64, class: u16, size: u64) -> Packet {
        let key = FlowKey::v4([192, 0, 2, 1], 80, [10, 0, class as u8, 1], 50_000, FlowKey::TCP);
        Packet { class, ..Packet::new(number, key, Bytes(size)) }
    }

    /// Sends for ten seconds with the queues of these classes never empty; the
    /// bytes that each of three received.
    fn served(backlogged: &[u16]) -> [u64; 3] {
        let mut port = shaper();
        let mut bytes = [0; 3];
        let (mut now, mut number) = (Time::ZERO, 0);
        for class in backlogged {
            let lost: usize =
                (0..20).map(|_| port.offer(now, packet(0, *class, 1_000)).len()).sum();
            assert_eq!(lost, 0);
        }
        while now < Time(10 * NANOS_PER_SECOND) {
            now = port.next_ready(now).expect("a queue is never empty");
            let sent = port.take(now).expect("it said that a packet may leave");
            bytes[usize::from(sent.class)] += sent.size.0;
            number += 1;
            assert!(port.offer(now, packet(number, sent.class, 1_000)).is_empty());
        }
        bytes
    }

    /// Of ten seconds at this rate, within two bursts.
    fn is_about(bytes: u64, rate: u64) -> bool {
        bytes.abs_diff(rate / 8 * 10) <= 2 * BURST.0 + 1_000
    }

    #[test]
    fn backlogged_classes_have_their_rates_and_no_more() {
        let bytes = served(&[0, 1, 2]);
        for (bytes, rate) in bytes.iter().zip([4_000_000, 2_000_000, 1_000_000]) {
            assert!(is_about(*bytes, rate), "{bytes} bytes at {rate} bit/s");
        }
    }

    #[test]
    fn what_a_silent_class_leaves_is_lent_in_proportion() {
        let [none, second, third] = served(&[1, 2]);
        assert_eq!(none, 0);
        assert!(is_about(second + third, 7_000_000), "{second} and {third}");
        let ratio = second as f64 / third as f64;
        assert!((1.96..2.04).contains(&ratio), "{ratio}");
        assert!(is_about(served(&[2])[2], 7_000_000));
    }

    #[test]
    fn an_idle_class_saves_up_a_burst_and_no_more() {
        let mut port = shaper();
        let now = Time(100 * NANOS_PER_SECOND);
        let lost: usize = (0..10).map(|n| port.offer(now, packet(n, 2, 1_000)).len()).sum();
        assert_eq!(lost, 0);
        // 1 600 bytes: the second packet is the one that takes it below zero.
        assert!(port.take(now).is_some() && port.take(now).is_some());
        assert!(port.take(now).is_none());
        // The root fills again 400 bytes at 7 Mbit/s later.
        assert_eq!(port.next_ready(now), Some(now + RATE.transmission(Bytes(400))));
    }

    #[test]
    fn packets_are_conserved_and_stay_in_order_and_none_leaves_early() {
        for seed in 1..=20 {
            let mut stream = Stream::new(seed, "packets");
            let mut port = shaper();
            let mut last = [0; 3];
            let (mut now, mut lost, mut sent) = (Time::ZERO, 0, 0);
            for number in 1..=5_000 {
                now += stream.exponential_span(Span::micros(900));
                let class = stream.index(3) as u16;
                let size = 40 + stream.index(1_461) as u64;
                lost += port.offer(now, packet(number, class, size)).len();
                while port.next_ready(now) == Some(now) {
                    let packet = port.take(now).expect("it said that a packet may leave");
                    let last = &mut last[usize::from(packet.class)];
                    assert!(*last < packet.handle, "{} after {last}", packet.handle);
                    *last = packet.handle;
                    sent += packet.size.0;
                }
                assert!(port.take(now).is_none());
                // Every leaf has a burst and a packet besides what the root fills with.
                let could = RATE.volume(now.since(Time::ZERO)) + BURST * 4 + Bytes(4 * 1_500);
                assert!(sent <= could.0, "{sent} bytes of {could:?}");
            }
            assert!(port.is_conserved() && lost > 0 && sent > 0);
        }
    }
}
