//! How Linux's receive window grows, which its acknowledgements follow (Linux 7.3,
//! tcp_input: `tcp_grow_window`, `tcp_rcv_space_adjust` and `tcp_rcvbuf_grow`).
//!
//! A connection begins with a window of 64 kB less a segment. Once in a round trip the
//! receiver compares what the application has read with the round trip before. When that
//! is more, the window may become twice as much, and as much again as the increase
//! announces. It does so by two segments for each that comes in, and until it has done so
//! each of them is acknowledged at once.
//!
//! Acknowledgements follow it everywhere. What is advertised does so where it matters, which
//! is where an application reads less than comes: see `Endpoint::grow_buffer`. Elsewhere that
//! stays the whole receive window, for Linux's runs ahead of a slow start. Without timestamps
//! the receiver measures no round trip, and the window does not grow.

use tidegate_core::{Span, Time};

use crate::tcp::header::timestamp_age;

/// The receive buffer at first (`tcp_rmem`).
const BUFFER: u64 = 131_072;
/// What a packet takes of it besides its payload: descriptor and headers of one that was
/// cut from a larger one in software. Drivers of network cards differ.
const OVERHEAD: u64 = 960;
/// What of the buffer may be window, in 256ths, before a full segment has come in
/// (`TCP_DEFAULT_SCALING_RATIO`).
const FIRST_RATIO: u64 = 128;
/// Segments of a round trip that do not let it grow (`TCP_INIT_CWND`).
const FIRST_ROUND: u64 = 10;
/// A payload of less does not let the window grow.
const LEAST_PAYLOAD: u64 = 128;

#[derive(Clone, Debug)]
pub(super) struct Growth {
    /// `sk_rcvbuf`, and what is the most that it becomes as a window.
    buffer: u64,
    most: u64,
    /// `window_clamp` and `rcv_ssthresh`: what the window may become, and what it is.
    clamp: u64,
    window: u64,
    /// `scaling_ratio`, and the full segment that it was found with.
    ratio: u64,
    full: u64,
    /// `rcvq_space`: bytes read in a round trip before, and what had been read when the
    /// present one began.
    space: u64,
    read: u64,
    since: Option<Time>,
    /// `rcv_rtt_est`, zero before the first measurement, and the echo that made the last.
    round_trip: Span,
    echo: u32,
}

impl Growth {
    /// For full segments of `mss` bytes and at most a window of `most`. A smaller one than
    /// the first has been set by hand, and stays.
    pub(super) fn new(mss: u64, most: u64) -> Growth {
        let clamp = (BUFFER * FIRST_RATIO / 256).saturating_sub(mss).min(most);
        Growth {
            buffer: BUFFER,
            most,
            clamp,
            window: clamp,
            ratio: FIRST_RATIO,
            full: 0,
            space: FIRST_ROUND * mss,
            read: 0,
            since: None,
            round_trip: Span::ZERO,
            echo: 0,
        }
    }

    /// What may be advertised beyond what has been read.
    pub(super) fn window(&self) -> u64 {
        self.window
    }

    /// The connection has come up.
    pub(super) fn on_established(&mut self, now: Time) {
        self.since = Some(now);
    }

    /// A segment in order has come in; full ones have `full` bytes of payload. Whether the
    /// window grows by it.
    #[inline]
    pub(super) fn takes(&mut self, now: Time, payload: u64, full: u64, echo: u32) -> bool {
        if payload >= full {
            self.measure(now, echo);
            if full != self.full {
                self.full = full;
                self.ratio = (256 * full / (full + OVERHEAD)).max(1);
                self.clamp = (self.buffer * self.ratio / 256).min(self.most);
            }
        }
        if payload < LEAST_PAYLOAD || self.window >= self.clamp {
            return false;
        }
        self.window = self.clamp.min(self.window + 2 * full.max(payload));
        true
    }

    /// The first segment that echoes a timestamp measures the time since. A shorter round
    /// trip counts at once, a longer one for an eighth.
    fn measure(&mut self, now: Time, echo: u32) {
        if echo == self.echo {
            return;
        }
        self.echo = echo;
        let Some(sample) = timestamp_age(now, echo).filter(|age| *age > Span::ZERO) else { return };
        let known = self.round_trip;
        let first = known == Span::ZERO || sample < known;
        self.round_trip = if first { sample } else { known - known / 8 + sample / 8 };
    }

    /// The application has read `read` bytes in all.
    #[inline]
    pub(super) fn on_read(&mut self, now: Time, read: u64) {
        let Some(since) = self.since else { return };
        if self.round_trip == Span::ZERO || now.since(since) < self.round_trip {
            return;
        }
        let copied = read - self.read;
        if copied > self.space {
            let twice = 2 * copied;
            let announced = (2 * twice).saturating_mul(copied - self.space) / self.space.max(1);
            self.space = copied;
            let buffer = twice.saturating_add(announced).saturating_mul(256) / self.ratio;
            if buffer > self.buffer {
                self.buffer = buffer;
                self.clamp = (buffer / 256).saturating_mul(self.ratio).min(self.most);
            }
        }
        self.read = read;
        self.since = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::header::timestamp;

    /// A slow start at a round trip of 40 ms, a segment a millisecond. The first one shows
    /// that 153/256 of the buffer may be window: 78 336 - 64 088 bytes are five times two
    /// segments. The second round's first makes 11 segments read, 15 928 bytes, which more
    /// than ten announces 38 227, less than the buffer has. The third round's makes 20,
    /// 28 960: twice that, and 2 * 57 920 * 13 032 / 15 928 more, are 152 698; in steps of
    /// 2 896 bytes the 26 segments from the next on take it there.
    #[test]
    fn the_window_grows_from_the_third_round_on() {
        const MSS: u64 = 1_448;
        let at = |ms| Time::ZERO + Span::millis(ms);
        let mut growth = Growth::new(MSS, 4 << 20);
        growth.on_established(at(100));
        let rounds = [(101, 10, 60), (141, 20, 101), (181, 40, 141)];
        let mut read = 0;
        let mut growing = Vec::new();
        for (start, segments, echoed) in rounds {
            for segment in 0..segments {
                let now = at(start + segment);
                read += MSS;
                // Each answers an acknowledgement 40 ms ago, and those of the first
                // round the answer to the SYN.
                let answered = if start == 101 { echoed } else { echoed + segment / 2 };
                if growth.takes(now, MSS, MSS, timestamp(at(answered))) {
                    growing.push(read / MSS);
                }
                growth.on_read(now, read);
            }
        }
        let expected: Vec<u64> = (1..=5).chain(32..=57).collect();
        assert_eq!(growing, expected);
    }

    /// Ever more is read in each round trip of 40 ms. The window stays, but for what the
    /// first full segment shows, if it is small by hand or no timestamp tells of the round
    /// trip; and segments of less than 128 bytes have no part in it.
    #[test]
    fn a_small_window_or_one_without_timestamps_or_for_small_segments_stays() {
        let at = |ms| Time::ZERO + Span::millis(ms);
        let cases = [(4 << 20, 1_448, true), (4 << 20, 1_448, false), (20_000, 1_448, true)];
        let small = (4 << 20, 100, true);
        let counts = cases.into_iter().chain([small]).map(|(most, payload, timed)| {
            let mut growth = Growth::new(1_448, most);
            growth.on_established(at(100));
            let grows = |number: &u64| {
                let now = at(141 + number);
                let echo = if timed { timestamp(at(101 + number)) } else { 0 };
                let grows = growth.takes(now, payload, 1_448, echo);
                growth.on_read(now, number * number * payload);
                grows
            };
            (0..200).filter(grows).count()
        });
        let counts: Vec<usize> = counts.collect();
        assert!(counts[0] > 100, "{counts:?}");
        assert_eq!(counts[1..], [5, 0, 0]);
    }
}
