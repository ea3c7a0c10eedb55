//! HTB: shares with borrowing, by token buckets (`HTB`, `tc-htb(8)`).
//!
//! A root with one leaf for each class. A leaf has two buckets, one that fills
//! with the class's own rate and one with the ceiling, here the root's rate; the
//! root has one. A bucket holds at most its burst, pays a packet's size when the
//! packet leaves, and may fall below zero by that packet: it only must not have
//! been below zero before. So a leaf
//! - within its own rate and the ceiling sends, whatever the others do;
//! - beyond its own rate, within the ceiling, sends when the root is not below
//!   zero and no leaf can send by its own rate: it borrows, and its own bucket
//!   goes on filling;
//! - beyond the ceiling waits.
//!
//! Leaves that may send by the same right take turns by deficit round robin, with a
//! quantum of a tenth of a second of their rate. So borrowed capacity goes to the
//! borrowers in proportion to their rates.
//!
//! Tokens are counted in bits times nanoseconds, so that filling is exact. O(n) in
//! the classes per packet.

use crate::discipline::{Backlog, Discipline, Losses};
use crate::entry::Place;
use crate::pace::Credit;
use crate::packet::Packet;
use crate::setting::Settings;
use crate::units::{Bytes, NANOS_PER_SECOND, Rate, Span, Time};

/// The size of a bucket: the packet size that tc assumes. To that tc adds what
/// the rate brings in a tick of the clock, which is nothing where ticks are
/// nanoseconds.
const BURST: Bytes = Bytes(1_600);

/// A quantum is the rate in bytes a second divided by this (r2q), within limits.
const RATE_TO_QUANTUM: u64 = 10;
const QUANTUM: (u64, u64) = (1_000, 200_000);

/// The right by which a leaf sends: with tokens of its own, or with the root's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Right {
    Own,
    Borrowed,
}

/// A queue for each class, shaped to shares of a rate.
pub struct Htb {
    root: Bucket,
    leaves: Vec<Leaf>,
    /// The leaf whose turn it is, for either right.
    turns: [usize; 2],
    credit: Credit,
}

struct Leaf {
    queue: Box<dyn Discipline>,
    own: Bucket,
    ceiling: Bucket,
    quantum: i128,
    /// The amount that it may send in its turn, for either right.
    deficits: [i128; 2],
}

impl Htb {
    /// A shaper to `rate` with leaves of these rates, which should add up to no more
    /// than `rate`. A packet goes to the leaf with the number of its class, from 0
    /// on; classes beyond the last leaf share that leaf.
    ///
    /// # Panics
    /// If there is no leaf, and so no place for a packet.
    #[must_use]
    pub fn new(rate: Rate, leaves: Vec<(Rate, Box<dyn Discipline>)>) -> Htb {
        assert!(!leaves.is_empty(), "HTB needs a leaf");
        let leaf = |(own, queue): (Rate, Box<dyn Discipline>)| Leaf {
            queue,
            quantum: quantum(own),
            deficits: [0; 2],
            own: Bucket::new(own),
            ceiling: Bucket::new(rate),
        };
        Htb {
            root: Bucket::new(rate),
            leaves: leaves.into_iter().map(leaf).collect(),
            turns: [0; 2],
            credit: Credit::default(),
        }
    }

    /// Changes the rate and those of the leaves from `now` on. Packets, turns
    /// and tokens remain; a late poll has no credit from before.
    ///
    /// # Panics
    /// Unless there is a rate for each leaf.
    pub fn set_rates(&mut self, now: Time, rate: Rate, leaves: &[Rate]) {
        assert_eq!(leaves.len(), self.leaves.len(), "a rate for each leaf");
        self.root.set_rate(now, rate);
        for (leaf, own) in self.leaves.iter_mut().zip(leaves) {
            leaf.own.set_rate(now, *own);
            leaf.ceiling.set_rate(now, rate);
            leaf.quantum = quantum(*own);
        }
        self.credit.left(ready(&self.root, &self.leaves, now));
    }

    /// Takes a packet of the next leaf in turn that may send by this right at `start`.
    fn take(
        &mut self,
        right: Right,
        start: Time,
        now: Time,
        losses: &mut Losses,
    ) -> Option<Packet> {
        let count = self.leaves.len();
        for number in (0..count).map(|step| (self.turns[right as usize] + step) % count) {
            let leaf = &mut self.leaves[number];
            let tokens = match right {
                Right::Own => leaf.own.ready_at(start),
                Right::Borrowed => self.root.ready_at(start),
            };
            let ready = leaf.queue.next_ready(start).map(|at| at.max(tokens));
            if ready.is_none_or(|at| at.max(leaf.ceiling.ready_at(start)) > start) {
                continue;
            }
            let Some(packet) = leaf.queue.dequeue(now, losses) else { continue };
            self.pay(number, right, start, packet.size);
            return Some(packet);
        }
        None
    }

    fn pay(&mut self, number: usize, right: Right, start: Time, size: Bytes) {
        self.root.pay(start, size);
        let leaf = &mut self.leaves[number];
        leaf.ceiling.pay(start, size);
        if right == Right::Own {
            leaf.own.pay(start, size);
        }
        let right = right as usize;
        self.turns[right] = number;
        leaf.deficits[right] -= i128::from(size.0);
        if leaf.deficits[right] < 0 {
            leaf.deficits[right] += leaf.quantum;
            self.turns[right] = (number + 1) % self.leaves.len();
        }
    }
}

/// The time at which the first packet of the leaves may leave, not before `at`.
fn ready(root: &Bucket, leaves: &[Leaf], at: Time) -> Option<Time> {
    let ready = |leaf: &Leaf| {
        let waits = leaf.queue.next_ready(at)?;
        let tokens = leaf.own.ready_at(at).min(root.ready_at(at));
        Some(waits.max(tokens).max(leaf.ceiling.ready_at(at)))
    };
    leaves.iter().filter_map(ready).min()
}

fn quantum(rate: Rate) -> i128 {
    let (least, most) = QUANTUM;
    i128::from((rate.0 / 8 / RATE_TO_QUANTUM).clamp(least, most))
}

impl Discipline for Htb {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        let last = self.leaves.len() - 1;
        self.leaves[usize::from(packet.class).min(last)].queue.enqueue(now, packet, losses);
        self.credit.queue_changed(now, |at| ready(&self.root, &self.leaves, at));
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        let start = self.credit.start(now)?;
        let packet = self.take(Right::Own, start, now, losses);
        let packet = packet.or_else(|| self.take(Right::Borrowed, start, now, losses));
        self.credit.left(ready(&self.root, &self.leaves, start));
        packet
    }

    /// The settings are those of every leaf's queue, and so is the buffer.
    fn reconfigure(&mut self, now: Time, settings: &Settings, place: Place) {
        for leaf in &mut self.leaves {
            let place = place.at_rate(leaf.own.rate);
            leaf.queue.reconfigure(now, settings, place);
        }
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        self.credit.next_ready(now)
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

    fn sorts_by_ecn(&self) -> bool {
        self.leaves.iter().any(|leaf| leaf.queue.sorts_by_ecn())
    }

    fn flows_tracked(&self) -> usize {
        self.leaves.iter().map(|leaf| leaf.queue.flows_tracked()).sum()
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.root.rate)
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
        // Shares of a link are rounded down: the smallest is one bit a second.
        Bucket { rate: Rate(rate.0.max(1)), level: Bucket::MOST, at: Time::ZERO }
    }

    const fn price(size: Bytes) -> i128 {
        size.0 as i128 * 8 * NANOS_PER_SECOND as i128
    }

    fn pay(&mut self, now: Time, size: Bytes) {
        self.fill(now);
        self.level = self.level.saturating_sub(Bucket::price(size));
    }

    fn set_rate(&mut self, now: Time, rate: Rate) {
        self.fill(now);
        self.rate = Rate(rate.0.max(1));
    }

    fn fill(&mut self, now: Time) {
        // Sums stay below 2^127 for any size, rate and time of use; what is
        // beyond is a full bucket, or one that is empty until the end of time.
        let filled = i128::from(self.rate.0).saturating_mul(i128::from(now.since(self.at).0));
        self.level = self.level.saturating_add(filled).min(Bucket::MOST);
        self.at = now;
    }

    /// The time at which the level is no longer below zero, not before `now`.
    fn ready_at(&self, now: Time) -> Time {
        let missing = self.level.min(0).unsigned_abs();
        let wait = missing.div_ceil(u128::from(self.rate.0));
        (self.at + Span(u64::try_from(wait).unwrap_or(u64::MAX))).max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::fifo::Fifo;
    use crate::shaper::CREDIT;
    use crate::{Buffer, FlowKey, Port, Stream};

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
    fn new_rates_count_from_now_on_and_packets_stay_where_they_are() {
        let leaf = |megabits: u64| -> (Rate, Box<dyn Discipline>) {
            (Rate(megabits * 1_000_000), Box::new(Fifo::new(Buffer::packets(30_000))))
        };
        let mut shaper = Htb::new(RATE, [4, 2, 1].map(leaf).into_iter().collect());
        let (mut losses, mut last) = (Losses::new(), [None; 3]);
        for number in 0..60_000 {
            shaper.enqueue(Time::ZERO, packet(number, (number % 3) as u16, 1_000), &mut losses);
        }
        let mut until = |shaper: &mut Htb, end: Time| {
            let mut bytes = [0; 3];
            while let Some(at) = shaper.next_ready(Time::ZERO).filter(|at| *at < end) {
                let sent =
                    shaper.dequeue(at, &mut losses).expect("it said that a packet may leave");
                let class = usize::from(sent.class);
                assert!(last[class] < Some(sent.handle));
                last[class] = Some(sent.handle);
                bytes[class] += sent.size.0;
            }
            bytes
        };
        let (change, end) = (Time(10 * NANOS_PER_SECOND), Time(20 * NANOS_PER_SECOND));
        let megabits = |count: u64| Rate(count * 1_000_000);
        let before = until(&mut shaper, change);
        let queued = shaper.backlog();
        shaper.set_rates(change, megabits(14), &[2, 4, 8].map(megabits));
        assert_eq!((shaper.backlog(), shaper.rate()), (queued, Some(megabits(14))));
        let after = until(&mut shaper, end);
        for (bytes, rate) in
            before.into_iter().zip([4, 2, 1]).chain(after.into_iter().zip([2, 4, 8]))
        {
            assert!(is_about(bytes, rate * 1_000_000), "{bytes} bytes at {rate} Mbit/s");
        }
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
                now += stream.exponential_span(Span::micros(700));
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
                // Polls are late, and every leaf has a burst and a packet besides what
                // the root fills with.
                let could = RATE.volume(now.since(Time::ZERO) + CREDIT);
                let could = could + BURST * 4 + Bytes(4 * 1_500);
                assert!(sent <= could.0, "{sent} bytes of {could:?}");
            }
            assert!(port.is_conserved() && lost > 0 && sent > 0);
        }
    }
}
