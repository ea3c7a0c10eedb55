//! When a slow start ends before anything is lost.
//!
//! Slow start doubles the window in each round trip, so it overshoots by as much as
//! a queue holds, and loses it. A search looks at round trips meanwhile, and says when
//! the queue begins to grow. [`HyStart`] is what Linux does in CUBIC,
//! [`HyStartPlusPlus`] is RFC 9406, and a classic slow start ends with a loss.

use super::hystart::HyStart;
use super::hystart_plus_plus::HyStartPlusPlus;
use super::{Ack, Start};

/// How a slow start ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStart {
    /// With a loss, or at the threshold (RFC 5681).
    Classic,
    /// When a round's acknowledgements last for half the least round trip, or its
    /// round trips grow, as in Linux.
    HyStart,
    /// When round trips grow, after five more rounds of slower growth (RFC 9406).
    HyStartPlusPlus,
}

/// The search of one connection.
#[derive(Clone, Debug)]
pub(super) enum Search {
    Classic,
    HyStart(HyStart),
    HyStartPlusPlus(HyStartPlusPlus),
}

impl Search {
    /// The controller's `own` choice holds if the configuration leaves it.
    pub(super) fn new(start: &Start, own: SlowStart) -> Search {
        match start.slow_start.unwrap_or(own) {
            SlowStart::Classic => Search::Classic,
            SlowStart::HyStart => Search::HyStart(HyStart::new(start.mss, start.paced)),
            SlowStart::HyStartPlusPlus => {
                Search::HyStartPlusPlus(HyStartPlusPlus::new(start.paced))
            }
        }
    }

    /// Takes in an acknowledgement, whether it comes in a `slow_start` or not. Returns
    /// whether that has to end, with a threshold of the present `window`.
    #[inline]
    pub(super) fn ends(&mut self, ack: &Ack, window: u64, slow_start: bool) -> bool {
        match self {
            Search::Classic => false,
            Search::HyStart(search) => search.ends(ack, window, slow_start),
            Search::HyStartPlusPlus(search) => slow_start && search.ends(ack),
        }
    }

    /// By how much an acknowledgement of `acked` bytes may enlarge the window in slow
    /// start, where `limit` is the most that one may add otherwise.
    #[inline]
    pub(super) fn growth(&self, acked: u64, limit: u64, mss: u64) -> u64 {
        match self {
            Search::HyStartPlusPlus(search) => search.growth(acked, mss),
            _ => acked.min(limit),
        }
    }

    /// A loss or a mark has reduced the window.
    pub(super) fn on_reduction(&mut self) {
        if let Search::HyStartPlusPlus(search) = self {
            search.stop();
        }
    }

    /// The retransmission timer has run out.
    pub(super) fn on_timeout(&mut self) {
        if let Search::HyStart(search) = self {
            search.reset();
        }
    }
}
