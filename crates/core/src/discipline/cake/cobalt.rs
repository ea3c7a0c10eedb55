//! COBALT: CoDel and BLUE side by side, one of each for a queue.
//!
//! CoDel is for senders that heed it, and BLUE is for those that do not: while
//! CoDel continues to drop one packet at a time, BLUE raises the share of all
//! packets that it drops whenever the buffer is full, and lowers it when the queue
//! is found empty (`tc-cake(8)`).
//!
//! This CoDel is simpler than that of `RFC 8289`. One time, `drop_next`, says both
//! when the delay has been above target for an interval and when to drop next, an
//! interval over the root of `count` later. When the delay falls below the target,
//! `count` counts back down at the pace at which it grew, instead of being kept for
//! a while and then forgotten: dropping therefore resumes where the queue's history
//! says. The last packet of a queue is marked if it can be, but never dropped.
//!
//! One time for both has two consequences, and Linux 7.3 has them too
//! (`cobalt_should_drop`):
//! - A queue that has sent nothing for an interval has its `drop_next` in the past. If
//!   the first packet then waits too long, the next that does is a signal at once.
//! - A queue that has never signalled has no gap between signals yet, so its first
//!   comes with the second packet that waits too long and not an interval later.
//!
//! So a transfer that starts on a busy link loses a packet of its first window where
//! that of `RFC 8289` would wait for 100 ms. State stays with the queue, whichever flow
//! takes it next.

use crate::discipline::codel_law::drop_spacing;
use crate::discipline::{LossReason, Losses};
use crate::packet::Packet;
use crate::random::Stream;
use crate::units::{Bytes, Rate, Span, Time};

/// One in 2^32: the unit of BLUE's drop probability.
const CERTAIN: u64 = 1 << 32;
/// What a full buffer adds to the probability: 1/256.
const INCREMENT: u64 = CERTAIN / 256;
/// What an empty queue takes off: 1/4096.
const DECREMENT: u64 = CERTAIN / 4_096;

/// The largest packet of an Ethernet.
const LARGEST: Bytes = Bytes(1_514);

/// What COBALT is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CobaltParameters {
    /// BLUE's time between two steps, and the least delay that is a sign of congestion.
    target: Span,
    /// Delay that is no sign of congestion.
    tolerated: Span,
    /// CoDel's interval: about the longest usual round trip.
    interval: Span,
}

impl CobaltParameters {
    /// For round trips of up to about `rtt`, on a link of this rate if it is known.
    ///
    /// Where packets take long, the target is at least the time of one and a half of
    /// the largest, and less than the time of four is no sign of congestion.
    pub(super) fn new(rtt: Span, rate: Option<Rate>) -> CobaltParameters {
        let packet = rate.map_or(Span::ZERO, |rate| rate.transmission(LARGEST));
        let usual = rtt / 20;
        let target = usual.max(packet * 3 / 2);
        let interval = (rtt + (target - usual)).max(target * 2);
        CobaltParameters { target, tolerated: target.max(packet * 4), interval }
    }
}

/// The state of one queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Cobalt {
    /// CoDel's drops less what has decayed; 0 is at rest.
    count: u32,
    /// Whether the count has ever changed by a signal, without which there is no gap
    /// between signals.
    has_signalled: bool,
    /// Whether the delay was above target when the last packet left.
    is_dropping: bool,
    drop_next: Time,
    /// BLUE's drop probability, in units of 2^-32.
    probability: u64,
    /// When BLUE last took a step.
    stepped: Time,
}

impl Cobalt {
    /// The packet to send at `now`, after dropping as many as have to go. `pop`
    /// takes out the head and says whether it was the last.
    pub(super) fn dequeue(
        &mut self,
        parameters: &CobaltParameters,
        now: Time,
        random: &mut Stream,
        losses: &mut Losses,
        mut pop: impl FnMut() -> Option<(Packet, bool)>,
    ) -> Option<Packet> {
        loop {
            let (packet, is_last) = pop()?;
            let is_late = self.drop_next < now;
            let is_due = self.is_due(now);
            let is_signal = self.judges(parameters, now, now.since(packet.arrived), is_due);
            let is_markable = packet.ecn.is_markable();
            // BLUE ignores marks: whom it acts on has not heeded them.
            let is_struck = self.probability > 0 && random.bits() >> 32 < self.probability;
            let is_hit = is_struck || is_signal && !is_markable;
            // What was late when the packet came counts, unless the time has moved on.
            let is_late = if is_due { self.drop_next < now } else { is_late };
            if self.count == 0 {
                self.drop_next = now + parameters.interval;
            } else if is_late && !is_hit {
                self.drop_next = now;
            }
            if is_hit && !is_last {
                losses.push(packet, LossReason::Early);
                continue;
            }
            return if is_signal && is_markable { losses.signal(packet) } else { Some(packet) };
        }
    }

    fn is_due(&self, now: Time) -> bool {
        self.count > 0 && now >= self.drop_next
    }

    /// CoDel: whether to signal congestion with a packet that waited for `delay`.
    fn judges(&mut self, parameters: &CobaltParameters, now: Time, delay: Span, due: bool) -> bool {
        let was_dropping = self.is_dropping;
        self.is_dropping = delay > parameters.tolerated;
        if self.is_dropping {
            if !was_dropping {
                self.drop_next = now + self.gap(parameters);
            }
            self.count = self.count.max(1);
        }
        if due && self.is_dropping {
            self.step(parameters, self.count.saturating_add(1));
            return true;
        }
        while due && self.is_due(now) {
            self.step(parameters, self.count - 1);
        }
        false
    }

    /// Goes to another count, and to the time that follows with it.
    fn step(&mut self, parameters: &CobaltParameters, count: u32) {
        self.count = count;
        self.has_signalled = true;
        self.drop_next += self.gap(parameters);
    }

    fn gap(&self, parameters: &CobaltParameters) -> Span {
        if self.has_signalled { drop_spacing(parameters.interval, self.count) } else { Span::ZERO }
    }

    /// The buffer is full and one of the queue's packets lost.
    pub(super) fn overflowed(&mut self, parameters: &CobaltParameters, now: Time) {
        if now.since(self.stepped) > parameters.target {
            self.probability = (self.probability + INCREMENT).min(CERTAIN);
            self.stepped = now;
        }
        self.is_dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// The queue's turn came and it had no packet: takes back a drop that is as old as
    /// the gap between them, and a step of BLUE.
    pub(super) fn found_empty(&mut self, parameters: &CobaltParameters, now: Time) {
        if self.probability > 0 && now.since(self.stepped) > parameters.target {
            self.probability = self.probability.saturating_sub(DECREMENT);
            self.stepped = now;
        }
        self.is_dropping = false;
        if self.is_due(now) {
            self.step(parameters, self.count - 1);
        }
    }

    /// Whether nothing is left that time would change.
    pub(super) fn is_at_rest(&self, now: Time) -> bool {
        self.count == 0 && self.probability == 0 && now >= self.drop_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, FlowKey};
    use crate::units::Bytes;

    /// 5 ms in 100 ms.
    fn parameters() -> CobaltParameters {
        CobaltParameters::new(Span::millis(100), None)
    }

    /// A queue that does not end, of packets that all waited for as long.
    struct Standing {
        cobalt: Cobalt,
        random: Stream,
        losses: Losses,
        wait: Span,
    }

    impl Standing {
        /// It has signalled some time ago, is at rest, and sent a packet at 950 ms.
        fn new(wait: Span) -> Standing {
            let drop_next = Time(1_050_000_000);
            let cobalt = Cobalt { has_signalled: true, drop_next, ..Cobalt::default() };
            Standing::of(cobalt, wait)
        }

        fn of(cobalt: Cobalt, wait: Span) -> Standing {
            let random = Stream::new(1, "cobalt");
            Standing { cobalt, random, losses: Losses::new(), wait }
        }

        fn packet(&self, millis: u64, ecn: Ecn) -> Packet {
            let flow = FlowKey::v4([192, 0, 2, 1], 443, [198, 51, 100, 1], 443, FlowKey::TCP);
            let arrived = Time(millis * 1_000_000 - self.wait.0);
            Packet { arrived, ecn, ..Packet::new(0, flow, Bytes(1_500)) }
        }

        /// Sends a packet, the last of the queue or not; says how many were
        /// dropped for it and whether it is marked.
        fn send(&mut self, millis: u64, ecn: Ecn, is_last: bool) -> (usize, bool) {
            let packet = self.packet(millis, ecn);
            let now = Time(millis * 1_000_000);
            let Standing { cobalt, random, losses, .. } = self;
            let pop = || Some((packet, is_last));
            let sent = cobalt.dequeue(&parameters(), now, random, losses, pop).unwrap();
            (losses.drain().count(), sent.ecn == Ecn::Ce)
        }

        /// Milliseconds from `from` to `to` at which packets were dropped, when
        /// one is sent each millisecond.
        fn drops(&mut self, from: u64, to: u64) -> Vec<u64> {
            (from..to).filter(|ms| self.send(*ms, Ecn::NotEct, false).0 > 0).collect()
        }
    }

    #[test]
    fn a_standing_queue_is_dropped_from_after_an_interval_and_ever_faster() {
        let mut queue = Standing::new(Span::millis(20));
        // Above since 1000: due at 1100, then 100 / sqrt(2) = 70.7, 57.7, 50 and
        // 44.7 ms later each: 1170.7, 1228.4, 1278.4, 1323.2.
        assert_eq!(queue.drops(1_000, 1_330), [1_100, 1_171, 1_229, 1_279, 1_324]);
    }

    #[test]
    fn a_wait_of_the_target_is_no_sign_of_congestion() {
        assert_eq!(Standing::new(Span::millis(5)).drops(1_000, 3_000), []);
    }

    #[test]
    fn the_count_goes_back_as_it_came_and_dropping_resumes_from_there() {
        let mut queue = Standing::new(Span::millis(20));
        assert_eq!(queue.drops(1_000, 1_330).len(), 5);
        assert_eq!(queue.cobalt.count, 6);
        // The next one was due 100 / sqrt(6) = 40.8 ms after 1323.2, at 1364.0;
        // instead one is taken back then, and another 44.7 ms later, at 1408.7.
        queue.wait = Span::ZERO;
        assert_eq!(queue.drops(1_330, 1_365), []);
        assert_eq!(queue.cobalt.count, 5);
        assert_eq!(queue.drops(1_365, 1_410), []);
        assert_eq!(queue.cobalt.count, 4);
        // The delay is above target again: 100 / sqrt(4) ms from then on.
        queue.wait = Span::millis(20);
        assert_eq!(queue.drops(1_410, 1_462), [1_460]);
    }

    #[test]
    fn a_capable_packet_is_marked_and_the_last_one_is_not_dropped() {
        for (ecn, is_last, fate) in [
            (Ecn::Ect0, false, (0, true)),
            (Ecn::Ect0, true, (0, true)),
            (Ecn::NotEct, true, (0, false)),
        ] {
            let mut queue = Standing::new(Span::millis(20));
            assert_eq!(queue.drops(1_000, 1_100), []);
            assert_eq!(queue.send(1_100, ecn, is_last), fate, "{ecn:?}, last: {is_last}");
            assert_eq!(queue.send(1_101, ecn, is_last), (0, false));
        }
    }

    #[test]
    fn a_queue_that_never_signalled_does_so_with_the_second_packet_that_is_late() {
        let mut queue = Standing::of(Cobalt::default(), Span::millis(20));
        // The time was 0 when it was made, and goes to 1000; no gap before 1001, when
        // the count is 2: 70.7 ms after 1000, and 57.7 ms after that.
        assert_eq!(queue.drops(1_000, 1_130), [1_001, 1_071, 1_129]);
        // Also when packets came in time before.
        let mut queue = Standing::of(Cobalt::default(), Span::ZERO);
        assert_eq!(queue.drops(950, 1_000), []);
        queue.wait = Span::millis(20);
        assert_eq!(queue.drops(1_000, 1_130), [1_001, 1_071, 1_129]);
    }

    #[test]
    fn a_queue_that_sent_nothing_for_an_interval_signals_with_the_second_late_packet() {
        let mut queue = Standing::new(Span::millis(20));
        queue.cobalt.drop_next = Time(999_999_999);
        assert_eq!(queue.drops(1_000, 1_130), [1_001, 1_071, 1_129]);
        // A nanosecond later it would have had an interval.
        let mut queue = Standing::new(Span::millis(20));
        queue.cobalt.drop_next = Time(1_000_000_000);
        assert_eq!(queue.drops(1_000, 1_130), [1_100]);
    }

    #[test]
    fn where_packets_take_long_more_delay_is_no_sign_of_congestion() {
        let at = |rate| {
            let set = CobaltParameters::new(Span::millis(100), Some(Rate(rate)));
            [set.target, set.tolerated, set.interval].map(|span| span.0 / 1_000)
        };
        // 1 514 bytes take 1.2112 ms, 12.112 ms and 121.12 ms.
        assert_eq!(at(10_000_000), [5_000, 5_000, 100_000]);
        assert_eq!(at(1_000_000), [18_168, 48_448, 113_168]);
        assert_eq!(at(100_000), [181_680, 484_480, 363_360]);
        assert_eq!(at(1_000_000_000), [5_000, 5_000, 100_000]);
    }

    #[test]
    fn blue_rises_with_a_full_buffer_and_falls_when_the_queue_is_found_empty() {
        let mut cobalt = Cobalt::default();
        let at = |millis: u64| Time(millis * 1_000_000);
        // No more than once in 5 ms.
        for millis in [10, 12, 15, 16, 30] {
            cobalt.overflowed(&parameters(), at(millis));
        }
        assert_eq!((cobalt.probability, cobalt.count), (3 * INCREMENT, 1));
        for millis in [32, 36, 38, 42, 47] {
            cobalt.found_empty(&parameters(), at(millis));
        }
        assert_eq!((cobalt.probability, cobalt.count), (3 * INCREMENT - 2 * DECREMENT, 0));
        assert!(!cobalt.is_at_rest(Time::FAR_FUTURE));
        cobalt.probability = 1;
        cobalt.found_empty(&parameters(), at(60));
        // The drop was taken back at 32 ms, for 30 ms, and an interval follows.
        assert!(!cobalt.is_at_rest(at(129)) && cobalt.is_at_rest(at(130)));
    }

    #[test]
    fn blue_drops_as_often_as_it_says_and_marks_do_not_help() {
        let mut queue = Standing::new(Span::ZERO);
        queue.cobalt.probability = CERTAIN / 4;
        let dropped: usize = (1..=9_000).map(|ms| queue.send(ms, Ecn::Ect0, false).0).sum();
        // One in four of all, so one for every three sent; five standard
        // deviations of a sum of 9 000 geometric numbers: 5 * sqrt(9 000 * 4 / 9).
        assert!(dropped.abs_diff(3_000) < 316, "{dropped}");
    }
}
