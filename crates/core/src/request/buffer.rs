//! The receive buffer that a response needs.
//!
//! What a gateway does not read keeps arriving until its receive buffer is full, so
//! the buffers of responses that are held back have to be small. But a buffer is
//! also the most that a server sends in a round trip, and caps what comes from far.
//! A buffer of twice what came and was read in the last round trip does neither: it lets a
//! response double its rate in each round trip for as long as it is read as fast as
//! it comes, as slow start does, and shrinks within a round trip when it is not.
//! (Dynamic right-sizing: Fisk 2001, and Linux 7.3, `tcp_rcv_space_adjust`, which
//! grows buffers in the same way and shrinks none.) What had come before and is read at
//! once says nothing of the path, and counts no more than what comes meanwhile. Where
//! nothing was read for several round trips, each had a part.

use crate::units::{Bytes, Span, Time};

/// What a server may send, and what it is likely to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// What it may send beyond what has been read: the receive buffer holds that.
    pub ahead: Bytes,
    /// Twice what came and was read in the last round trip; nothing if the path is unknown.
    pub pace: Bytes,
}

/// What came of a response and was read, by round trips.
#[derive(Debug)]
pub(super) struct Buffer {
    /// What it holds in any case.
    least: Bytes,
    round_trip: Option<Span>,
    /// The current round trip: its start, what came in it, and what was read.
    since: Time,
    came: Bytes,
    read: Bytes,
    /// What has come and is not read.
    unread: Bytes,
    size: Bytes,
}

impl Buffer {
    pub(super) fn new(least: Bytes) -> Buffer {
        Buffer {
            least,
            round_trip: None,
            since: Time::ZERO,
            came: Bytes::ZERO,
            read: Bytes::ZERO,
            unread: Bytes::ZERO,
            size: Bytes::ZERO,
        }
    }

    /// A round trip takes so long.
    pub(super) fn time(&mut self, now: Time, round_trip: Span) {
        if self.round_trip.is_none() {
            (self.since, self.came) = (now, Bytes::ZERO);
        }
        self.round_trip = Some(round_trip);
    }

    /// So much is there and not read.
    pub(super) fn come(&mut self, unread: Bytes) {
        self.came += unread - self.unread;
        self.unread = unread;
    }

    /// So much was read.
    pub(super) fn read(&mut self, now: Time, size: Bytes) {
        let took = now.since(self.since);
        if let Some(round_trip) = self.round_trip
            && took >= round_trip
        {
            let both = u128::from(self.came.min(self.read).0) * 2;
            let each = both * u128::from(round_trip.0) / u128::from(took.0.max(1));
            self.size = Bytes(u64::try_from(each).unwrap_or(u64::MAX));
            (self.came, self.read, self.since) = (Bytes::ZERO, Bytes::ZERO, now);
        }
        self.come(self.unread.max(size));
        self.unread -= size;
        if self.is_timed() {
            self.read += size;
            // No need to wait for the end of a round trip that has brought more already.
            self.size = self.size.max(self.came.min(self.read) * 2);
        }
    }

    /// What it should hold.
    pub(super) fn size(&self) -> Bytes {
        self.size.max(self.least)
    }

    /// What it lets come.
    pub(super) fn opening(&self) -> Opening {
        Opening { ahead: self.size(), pace: self.size }
    }

    /// A round trip, as far as it is known.
    pub(super) fn round_trip(&self) -> Span {
        self.round_trip.unwrap_or(Span::ZERO)
    }

    /// Whether that follows from the path.
    pub(super) fn is_timed(&self) -> bool {
        self.round_trip.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Span = Span::millis(200);

    #[test]
    fn it_doubles_while_all_is_read_and_shrinks_when_it_is_not() {
        let mut buffer = Buffer::new(Bytes(10_000));
        buffer.read(Time::ZERO, Bytes(1_000));
        assert!(!buffer.is_timed());
        assert_eq!(buffer.size(), Bytes(10_000));
        buffer.time(Time::ZERO, ROUND_TRIP);
        let mut now = Time::ZERO;
        // All that it lets come is read in each round trip.
        let mut expected = 15_000;
        buffer.read(now, Bytes(expected));
        for _ in 0..6 {
            expected *= 2;
            assert_eq!(buffer.size(), Bytes(expected));
            now += ROUND_TRIP;
            buffer.read(now, Bytes(expected));
        }
        // Then a tenth.
        for _ in 0..2 {
            now += ROUND_TRIP;
            buffer.read(now, Bytes(10_000));
        }
        assert_eq!(buffer.size(), Bytes(20_000));
    }

    /// Of 800 kB that have come, all but 40 kB is read in one round trip in which 20 kB
    /// come.
    #[test]
    fn what_came_before_does_not_count() {
        let mut buffer = Buffer::new(Bytes::ZERO);
        buffer.time(Time::ZERO, ROUND_TRIP);
        buffer.come(Bytes(800_000));
        let now = Time::ZERO + ROUND_TRIP;
        buffer.read(now, Bytes(20_000));
        assert_eq!(buffer.size(), Bytes::ZERO);
        buffer.come(Bytes(800_000));
        buffer.read(now, Bytes(740_000));
        assert_eq!(buffer.size(), Bytes(40_000));
    }

    #[test]
    fn a_pause_is_as_many_round_trips() {
        let mut buffer = Buffer::new(Bytes::ZERO);
        buffer.time(Time::ZERO, ROUND_TRIP);
        buffer.read(Time::ZERO, Bytes(60_000));
        buffer.read(Time::ZERO + ROUND_TRIP * 4, Bytes(1_000));
        assert_eq!(buffer.size(), Bytes(30_000));
    }
}
