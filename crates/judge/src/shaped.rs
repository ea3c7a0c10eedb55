//! What shapes the simulator's link as the kernel's is shaped.
//!
//! The kernel has no slow wire here: `tbf` or CAKE hold packets back, and a packet that
//! they let go has arrived. After a pause `tbf` lets two packets go at once, a wire of
//! the same rate none: a transfer that finds the link idle is 2.3 ms earlier at 10
//! Mbit/s, a twentieth of a small one's response time, and more on slower links. So the
//! simulator's queue stands behind the same rule, in front of a link without a limit.
//!
//! The live link hands a packet over at the start of the time that it takes, and the next
//! one when that has passed: so does CAKE, so do our queues of the kernel, and so does [`Paced`]. Neither keeps anything
//! for a burst after a pause. A wire would deliver the packet at the end of its time, 1.2 ms
//! later at 10 Mbit/s.

use std::cell::Cell as Slot;

use tidegate_core::discipline::{Backlog, Discipline, Level, Losses};
use tidegate_core::entry::{Drops, Entry, Place};
use tidegate_core::setting::Settings;
use tidegate_core::shaper::Paced;
use tidegate_core::{Bytes, Packet, Rate, Span, Time};
use tidegate_sim::scenario::DisciplineChoice;

use crate::cell::Shaper;

/// What `tbf` may send at once, as IP packets: two full ones.
const BURST: Bytes = Bytes(3000);

/// What stands behind the shaper of the run that this thread is about to begin.
#[derive(Clone, Copy)]
struct Behind {
    entry: &'static Entry,
    rate: Rate,
    shaper: Shaper,
}

thread_local! {
    /// An entry is built by a plain function, which has no other way to know.
    static BEHIND: Slot<Option<Behind>> = const { Slot::new(None) };
}

/// Builds the queue of this thread's run, and the shaper in front of it.
static ENTRY: Entry = Entry {
    name: "tbf",
    summary: "Any queue, held back as Linux's token bucket holds it",
    source: "Linux 7.3, sch_tbf",
    linux: None,
    drops: Drops::Early,
    parameters: &[],
    fixed: &[],
    build: |settings, place, seed| {
        let behind = BEHIND.get().expect("`choice` was called on this thread");
        let queue = (behind.entry.build)(settings, place, seed);
        match behind.shaper {
            Shaper::Bucket => Box::new(TokenBucket::new(queue, behind.rate, BURST)),
            Shaper::Itself => queue,
            Shaper::Program | Shaper::Link => Box::new(Paced::new(queue, behind.rate)),
        }
    },
};

/// The `queue` behind a shaper of this rate, for the next run on this thread.
pub(crate) fn choice(queue: DisciplineChoice, rate: Rate, shaper: Shaper) -> DisciplineChoice {
    BEHIND.set(Some(Behind { entry: queue.entry, rate, shaper }));
    DisciplineChoice { entry: &ENTRY, ..queue }
}

/// A queue held back by a bucket of tokens, counted in time at the rate.
struct TokenBucket {
    queue: Box<dyn Discipline>,
    rate: Rate,
    /// What a full bucket is worth.
    most: Span,
    /// What the bucket was worth at `counted`.
    credit: Span,
    counted: Time,
    /// `tbf` takes a packet out of its queue to see how long it is.
    head: Option<Packet>,
}

impl TokenBucket {
    fn new(queue: Box<dyn Discipline>, rate: Rate, burst: Bytes) -> TokenBucket {
        let most = rate.transmission(burst);
        TokenBucket { queue, rate, most, credit: most, counted: Time::ZERO, head: None }
    }

    fn credit(&self, now: Time) -> Span {
        (self.credit + now.since(self.counted)).min(self.most)
    }
}

impl Discipline for TokenBucket {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        self.queue.enqueue(now, packet, losses);
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        if self.head.is_none() {
            self.head = self.queue.dequeue(now, losses);
        }
        let cost = self.rate.transmission(self.head.as_ref()?.size);
        let credit = self.credit(now);
        if credit < cost {
            return None;
        }
        self.credit = Span(credit.0 - cost.0);
        self.counted = now;
        self.head.take()
    }

    fn reconfigure(&mut self, now: Time, settings: &Settings, place: Place) {
        self.queue.reconfigure(now, settings, place);
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        let Some(head) = &self.head else { return self.queue.next_ready(now) };
        let cost = self.rate.transmission(head.size);
        let missing = cost.0.saturating_sub(self.credit(now).0);
        Some(now + Span(missing))
    }

    fn backlog(&self) -> Backlog {
        let mut backlog = self.queue.backlog();
        if let Some(head) = &self.head {
            backlog.packets += 1;
            backlog.bytes += head.size;
        }
        backlog
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.rate)
    }

    fn sorts_by_ecn(&self) -> bool {
        self.queue.sorts_by_ecn()
    }

    fn flows_tracked(&self) -> usize {
        self.queue.flows_tracked()
    }

    fn levels(&self) -> &[Level] {
        self.queue.levels()
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::discipline::fifo::Fifo;
    use tidegate_core::{Buffer, FlowKey, Port};

    use super::*;

    #[test]
    fn two_packets_leave_at_once_after_a_pause_and_then_one_per_packet_time() {
        let fifo = Box::new(Fifo::new(Buffer::packets(100)));
        // A packet takes a millisecond.
        let shaper = TokenBucket::new(fifo, Rate(12_000_000), BURST);
        let mut port = Port::new(Box::new(shaper));
        let flow = FlowKey::v4([10, 0, 0, 1], 443, [10, 0, 0, 2], 50_000, FlowKey::TCP);
        let start = Time(5_000_000_000);
        for handle in 0..5 {
            port.offer(start, Packet::new(handle, flow, Bytes(1_500)));
        }
        let mut left = Vec::new();
        let mut now = start;
        while let Some(at) = port.next_ready(now) {
            now = at;
            if port.take(now).is_some() {
                left.push(now.since(start).0 / 1000);
            }
        }
        // By hand: two tokens' worth at once, then each waits for its own.
        assert_eq!(left, [0, 0, 1000, 2000, 3000]);
    }
}
