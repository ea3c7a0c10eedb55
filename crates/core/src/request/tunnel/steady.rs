//! How steadily a tunnel carries little.
//!
//! Bytes of both directions count by whole seconds. Calls, games and terminals carry
//! something in every second, and never much; a page or a download has seconds of more, or
//! of nothing.

use crate::units::{Bytes, NANOS_PER_SECOND, Time};

/// The time for which a low rate has to be steady: longer than a page takes to load.
pub const STEADY_SECONDS: u32 = 10;

/// What a tunnel has carried lately.
#[derive(Debug)]
pub(super) struct Steady {
    second: u64,
    carried: Bytes,
    /// Seconds in a row, before this one, that carried something, but no more than
    /// a low rate.
    seconds: u32,
}

impl Steady {
    pub(super) fn new(now: Time) -> Steady {
        Steady { second: now.0 / NANOS_PER_SECOND, carried: Bytes::ZERO, seconds: 0 }
    }

    /// So much is carried; `most` in a second is a low rate.
    pub(super) fn carry(&mut self, size: Bytes, now: Time, most: Bytes) {
        let second = now.0 / NANOS_PER_SECOND;
        if second != self.second {
            let is_next = second == self.second + 1;
            let was_low = self.carried > Bytes::ZERO && self.carried <= most;
            self.seconds = if is_next && was_low { self.seconds.saturating_add(1) } else { 0 };
            (self.second, self.carried) = (second, Bytes::ZERO);
        }
        self.carried += size;
        if self.carried > most {
            self.seconds = 0;
        }
    }

    /// It would carry more if it could.
    pub(super) fn interrupt(&mut self) {
        self.seconds = 0;
    }

    /// What it has carried in this second.
    pub(super) fn carried(&self) -> Bytes {
        self.carried
    }

    /// Whether it has carried little for long enough.
    pub(super) fn is_steady(&self) -> bool {
        self.seconds >= STEADY_SECONDS
    }
}
