//! The receive buffer that a response needs.
//!
//! What a gateway does not read keeps arriving until its receive buffer is full, so
//! the buffers of responses that are held back have to be small. But a buffer is
//! also the most that a server sends in a round trip, and caps what comes from far.
//! A buffer of twice what was read in the last round trip does neither: it lets a
//! response double its rate in each round trip for as long as it is read as fast as
//! it comes, as slow start does, and shrinks within a round trip when it is not.
//! (Dynamic right-sizing: Fisk 2001, and Linux 7.3, `tcp_rcv_space_adjust`, which
//! grows buffers in the same way and shrinks none.)

use crate::units::{Bytes, Span, Time};

/// What was read of a response, by round trips.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    round_trip: Option<Span>,
    /// The current round trip: its start, and what was read in it.
    since: Time,
    read: Bytes,
    size: Bytes,
}

impl Buffer {
    /// A round trip takes so long.
    pub(super) fn time(&mut self, now: Time, round_trip: Span) {
        if self.round_trip.is_none() {
            self.since = now;
        }
        self.round_trip = Some(round_trip);
    }

    /// So much was read.
    pub(super) fn read(&mut self, now: Time, size: Bytes) {
        let Some(round_trip) = self.round_trip else { return };
        if self.since + round_trip <= now {
            (self.size, self.read) = (self.read * 2, Bytes::ZERO);
            self.since = now;
        }
        self.read += size;
        // No need to wait for the end of a round trip that has brought more already.
        self.size = self.size.max(self.read * 2);
    }

    /// What it should hold; `None` while the round trip is unknown.
    pub(super) fn size(&self) -> Option<Bytes> {
        self.round_trip.map(|_| self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_while_all_is_read_and_shrinks_when_it_is_not() {
        let mut buffer = Buffer::default();
        buffer.read(Time::ZERO, Bytes(1_000));
        assert_eq!(buffer.size(), None);
        let round_trip = Span::millis(200);
        buffer.time(Time::ZERO, round_trip);
        let mut now = Time::ZERO;
        // All that it lets come is read in each round trip.
        let mut expected = 15_000;
        buffer.read(now, Bytes(expected));
        for _ in 0..6 {
            expected *= 2;
            assert_eq!(buffer.size(), Some(Bytes(expected)));
            now += round_trip;
            buffer.read(now, Bytes(expected));
        }
        // Then a tenth.
        for _ in 0..2 {
            now += round_trip;
            buffer.read(now, Bytes(10_000));
        }
        assert_eq!(buffer.size(), Some(Bytes(20_000)));
    }
}
