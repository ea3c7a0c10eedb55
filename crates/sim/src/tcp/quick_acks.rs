//! When Linux acknowledges (Linux 7.3, tcp_input, tcp_output and tcp).
//!
//! The first acknowledgements of a connection go out at once, so that a slow start is
//! not held back, and so do those after a duplicate or after a silence. From then on
//! every other full segment is acknowledged, and what ends a write is when the
//! application has read it, which here is at once. What is left waits for as long as
//! segments have been apart lately, from the least delay to 200 ms. While the receiver's
//! window [grows](growth), each segment is acknowledged: in a slow start that is most of
//! them, and HyStart sees a train.
//!
//! An endpoint that answers soon after data has come in is interactive: the answer carries the
//! acknowledgement, so it is worth waiting for. One that then waits in vain is no longer.

mod growth;

use tidegate_core::{Span, Time};

use super::config::TcpConfig;
use growth::Growth;

/// Acknowledgements at the start that go out at once (`TCP_MAX_QUICKACKS`).
const QUICK: u64 = 16;
/// The longest delay (`TCP_DELACK_MAX`).
const LONGEST: Span = Span::millis(200);
/// What a full segment holds until one has come in (`TCP_MSS_DEFAULT`).
const FIRST_GUESS: u64 = 536;

/// What the peer may expect the answer to within; a sender's half of the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// The retransmission timeout.
    pub(super) timeout: Span,
    /// `SRTT`.
    pub(super) round_trip: Option<Span>,
    /// The timestamp of ours that the segment echoes, zero for none.
    pub(super) echo: u32,
}

/// Data in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) now: Time,
    pub(super) payload: u64,
    /// It ends what the peer's application has written.
    pub(super) pushed: bool,
    /// Bytes that have come in since the last acknowledgement, these included.
    pub(super) unacknowledged: u64,
    /// The window that the peer knows.
    pub(super) window: u64,
    /// Bytes that the application has read, of all.
    pub(super) read: u64,
}

#[derive(Clone, Debug)]
pub(super) struct QuickAcks {
    /// `quick`: acknowledgements that still go out at once.
    quick: u64,
    /// `pingpong`.
    interactive: bool,
    /// `TCP_ATO_MIN`.
    least: Span,
    /// `ato`: how long an acknowledgement is delayed, zero before the first data.
    delay: Span,
    /// When an acknowledgement that is delayed is due; its timer may be late.
    deadline: Time,
    /// `lrcvtime`: when data has last come in.
    last: Time,
    /// `rcv_mss`: payload of a full segment.
    full: u64,
    /// Ends of writes since the last acknowledgement; a second one matters.
    pushes: u8,
    growth: Growth,
}

impl QuickAcks {
    pub(super) fn new(least: Span, config: &TcpConfig) -> QuickAcks {
        QuickAcks {
            quick: 0,
            interactive: false,
            least,
            delay: Span::ZERO,
            deadline: Time::FAR_FUTURE,
            last: Time::ZERO,
            full: FIRST_GUESS,
            pushes: 0,
            growth: Growth::new(u64::from(config.segment_size()), config.receive_window.0),
        }
    }

    /// The window that Linux would advertise if all of it were free.
    pub(super) fn window(&self) -> u64 {
        self.growth.window()
    }

    /// The connection has come up.
    pub(super) fn on_established(&mut self, now: Time) {
        self.growth.on_established(now);
    }

    /// When the acknowledgement of an arrival is due: now, or later.
    #[inline(never)]
    pub(super) fn due(&mut self, arrival: &Arrival, pace: Pace) -> Time {
        let Arrival { now, payload, .. } = *arrival;
        if payload >= self.full {
            self.full = payload;
            self.pushes = self.pushes.max(u8::from(arrival.pushed));
        } else {
            self.pushes += 1;
        }
        let gap = now.since(self.last);
        if self.delay == Span::ZERO {
            self.be_quick(arrival.window);
            self.delay = self.least;
        } else if gap <= self.least / 2 {
            self.delay = self.delay / 2 + self.least / 2;
        } else if gap < self.delay {
            self.delay = (self.delay / 2 + gap).min(pace.timeout).min(LONGEST);
        } else if gap > pace.timeout {
            self.be_quick(arrival.window);
        }
        self.last = now;
        if self.growth.takes(now, payload, self.full, pace.echo) {
            self.quick = self.quick.max(1);
        }
        self.growth.on_read(now, arrival.read);
        let read = self.pushes > 1 || self.pushes == 1 && !self.interactive;
        let quick = self.quick > 0 && !self.interactive;
        if arrival.unacknowledged > self.full || quick || read {
            return now;
        }
        let mut delay = self.delay;
        if delay > self.least {
            let round_trip = pace.round_trip.unwrap_or(LONGEST).max(self.least);
            delay = delay.min(round_trip);
        }
        let delay = delay.min(LONGEST);
        if self.deadline <= now + delay / 4 {
            return now;
        }
        self.deadline = self.deadline.min(now + delay);
        self.deadline
    }

    fn be_quick(&mut self, window: u64) {
        let segments = (window / (2 * self.full)).max(2);
        self.quick = self.quick.max(segments.min(QUICK));
    }

    /// Something has come in twice: the peer may be in need of acknowledgements.
    pub(super) fn on_duplicate(&mut self, window: u64) {
        self.be_quick(window);
        self.interactive = false;
        self.delay = self.least;
    }

    /// A segment of ours with data leaves.
    pub(super) fn on_answer(&mut self, now: Time) {
        self.interactive |= now.since(self.last) < self.delay;
    }

    /// An acknowledgement leaves, one that was owed or not.
    pub(super) fn on_acknowledged(&mut self, owed: bool) {
        if owed && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.delay = self.least;
            }
        }
        self.pushes = 0;
        self.deadline = Time::FAR_FUTURE;
    }

    /// The delay is over, and nothing has carried the acknowledgement.
    pub(super) fn on_delayed(&mut self, timeout: Span) {
        self.delay =
            if self.interactive { self.least } else { (self.delay * 2).min(timeout).min(LONGEST) };
        self.interactive = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace =
        Pace { timeout: Span::millis(300), round_trip: Some(Span::millis(100)), echo: 0 };

    fn acks() -> QuickAcks {
        QuickAcks::new(Span::millis(40), &TcpConfig { mss: 1_000, ..TcpConfig::today() })
    }

    /// One end that gets whole segments of 1 000 bytes at these milliseconds, and sends
    /// its acknowledgements when they are due. Returns when each segment is acknowledged.
    fn delays(acks: &mut QuickAcks, times: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut unacknowledged = 0;
        let mut delays = Vec::new();
        for at in times {
            let now = Time::ZERO + Span::millis(at);
            if acks.deadline <= now {
                acks.on_delayed(PACE.timeout);
                acks.on_acknowledged(true);
                unacknowledged = 0;
            }
            unacknowledged += 1_000;
            let arrival = Arrival {
                now,
                payload: 1_000,
                pushed: false,
                unacknowledged,
                window: 65_535,
                read: 0,
            };
            let due = acks.due(&arrival, PACE);
            delays.push(due.since(now).0 / 1_000_000);
            if due == now {
                acks.on_acknowledged(true);
                unacknowledged = 0;
            }
        }
        delays
    }

    #[test]
    fn sixteen_segments_are_acknowledged_at_once_and_then_every_other() {
        let mut acks = acks();
        let delays = delays(&mut acks, 1..=20);
        assert_eq!(delays[..16], [0; 16]);
        assert_eq!(delays[16..], [40, 0, 40, 0]);
    }

    /// After the quick ones a segment each 70 ms finds its acknowledgement delayed by
    /// 40 ms, missed, by 80 ms, which 70 ms are within: 80 / 2 + 70 = 110, no more than
    /// the round trip, 100 ms. Its successor comes while it waits.
    #[test]
    fn the_delay_follows_the_gaps() {
        let mut acks = acks();
        delays(&mut acks, 1..=16);
        assert_eq!(delays(&mut acks, (1..=4).map(|at| at * 70)), [40, 100, 0, 100]);
    }

    #[test]
    fn an_end_of_a_write_is_acknowledged_at_once_unless_the_end_is_interactive() {
        let mut acks = acks();
        delays(&mut acks, 1..=16);
        let mut arrival = Arrival {
            now: Time::ZERO + Span::millis(20),
            payload: 300,
            pushed: true,
            unacknowledged: 300,
            window: 65_535,
            read: 0,
        };
        assert_eq!(acks.due(&arrival, PACE), arrival.now);
        acks.on_acknowledged(true);
        acks.on_answer(arrival.now + Span::millis(10));
        arrival.now += Span::millis(20);
        assert_eq!(acks.due(&arrival, PACE), arrival.now + Span::millis(40));
        // In vain: it is no longer interactive.
        acks.on_delayed(PACE.timeout);
        acks.on_acknowledged(true);
        arrival.now += Span::millis(60);
        assert_eq!(acks.due(&arrival, PACE), arrival.now);
    }

    #[test]
    fn a_silence_longer_than_the_timeout_and_a_duplicate_make_it_quick_again() {
        for duplicate in [false, true] {
            let mut acks = acks();
            delays(&mut acks, 1..=16);
            assert_eq!(delays(&mut acks, [20, 21, 22]), [40, 0, 40]);
            acks.on_acknowledged(true);
            let next = if duplicate { 30 } else { 400 };
            if duplicate {
                acks.on_duplicate(65_535);
            }
            assert_eq!(delays(&mut acks, [next, next + 1, next + 2]), [0, 0, 0]);
        }
    }
}
