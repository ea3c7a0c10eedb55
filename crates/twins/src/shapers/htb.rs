//! HTB with buckets filled anew from the first packet on, and turns taken again.
//!
//! When a bucket has filled is found by trying times, of which half are left at
//! each step.

use tidegate_core::entry::Place;
use tidegate_core::setting::Settings;
use tidegate_core::{Backlog, Bytes, Discipline, Losses, Packet, Rate, Time};

use super::start;

pub(super) struct Htb {
    rate: Rate,
    leaves: Vec<(Rate, Box<dyn Discipline>)>,
    payments: Vec<Payment>,
    due: Option<Time>,
}

/// A packet that left as of a time.
struct Payment {
    start: Time,
    leaf: usize,
    borrowed: bool,
    size: Bytes,
}

/// In bits times nanoseconds a second.
fn tokens(size: Bytes) -> i128 {
    i128::from(size.0) * 8_000_000_000
}

impl Htb {
    pub(super) fn new(rate: Rate, leaves: Vec<(Rate, Box<dyn Discipline>)>) -> Htb {
        Htb { rate, leaves, payments: Vec::new(), due: None }
    }

    /// When a bucket of this rate that pays for these packets is not below zero, not
    /// before `from`.
    fn filled(&self, rate: Rate, from: Time, pays: impl Fn(&Payment) -> bool) -> Time {
        let full = tokens(Bytes(1_600));
        let later = |level: i128, from: Time, to: Time| {
            let nanos = i128::from(to.since(from).0);
            full.min(level + i128::from(rate.0.max(1)) * nanos)
        };
        let (level, last) = self.payments.iter().filter(|payment| pays(payment)).fold(
            (full, Time::ZERO),
            |(level, last), payment| {
                (later(level, last, payment.start) - tokens(payment.size), payment.start)
            },
        );
        let is_filled = |at: u64| later(level, last, Time(at)) >= 0;
        let (mut low, mut high) = (last.0, u64::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_filled(middle) { high = middle } else { low = middle + 1 }
        }
        from.max(Time(low))
    }

    /// When a leaf may send by this right, not before `from`.
    fn ready(&self, leaf: usize, borrowed: bool, from: Time) -> Option<Time> {
        let (own, queue) = &self.leaves[leaf];
        let tokens = if borrowed {
            self.filled(self.rate, from, |_| true)
        } else {
            self.filled(*own, from, |paid| paid.leaf == leaf && !paid.borrowed)
        };
        let ceiling = self.filled(self.rate, from, |paid| paid.leaf == leaf);
        (queue.backlog().packets > 0).then_some(tokens.max(ceiling))
    }

    fn next(&self, from: Time) -> Option<Time> {
        let rights = [false, true];
        let leaves = 0..self.leaves.len();
        leaves.flat_map(|leaf| rights.map(|right| self.ready(leaf, right, from))).flatten().min()
    }

    /// The leaf whose turn it is by this right.
    fn turn(&self, borrowed: bool) -> usize {
        let mut deficits = vec![0; self.leaves.len()];
        let mut turn = 0;
        for paid in self.payments.iter().filter(|paid| paid.borrowed == borrowed) {
            let deficit = &mut deficits[paid.leaf];
            *deficit -= i128::from(paid.size.0);
            turn = paid.leaf;
            if *deficit < 0 {
                let own = self.leaves[paid.leaf].0;
                *deficit += i128::from((own.0 / 80).clamp(1_000, 200_000));
                turn = (turn + 1) % self.leaves.len();
            }
        }
        turn
    }
}

impl Discipline for Htb {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        let leaf = usize::from(packet.class).min(self.leaves.len() - 1);
        self.leaves[leaf].1.enqueue(now, packet, losses);
        if self.due.is_none_or(|due| due > now) {
            self.due = self.next(now);
        }
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        let start = start(self.due.filter(|due| *due <= now)?, now);
        let count = self.leaves.len();
        for borrowed in [false, true] {
            let first = self.turn(borrowed);
            let mut leaves = (first..first + count).map(|leaf| leaf % count);
            let chosen = leaves.find(|leaf| self.ready(*leaf, borrowed, start) == Some(start));
            if let Some(leaf) = chosen {
                let packet = self.leaves[leaf].1.dequeue(now, losses).expect("one is queued");
                self.payments.push(Payment { start, leaf, borrowed, size: packet.size });
                self.due = self.next(start);
                return Some(packet);
            }
        }
        unreachable!("at {start} a packet may leave")
    }

    fn reconfigure(&mut self, now: Time, settings: &Settings, place: Place) {
        for (own, queue) in &mut self.leaves {
            queue.reconfigure(now, settings, place.at_rate(*own));
        }
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        self.due.map(|due| due.max(now))
    }

    fn backlog(&self) -> Backlog {
        let backlogs = self.leaves.iter().map(|(_, queue)| queue.backlog());
        backlogs.fold(Backlog::default(), |sum, one| Backlog {
            packets: sum.packets + one.packets,
            bytes: sum.bytes + one.bytes,
        })
    }

    fn sorts_by_ecn(&self) -> bool {
        self.leaves.iter().any(|(_, queue)| queue.sorts_by_ecn())
    }

    fn flows_tracked(&self) -> usize {
        self.leaves.iter().map(|(_, queue)| queue.flows_tracked()).sum()
    }

    fn rate(&self) -> Option<Rate> {
        Some(Rate(self.rate.0.max(1)))
    }
}
