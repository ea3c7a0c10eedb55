//! The twins of the shapers, in front of the same disciplines as the real ones.
//!
//! They keep every call and work the times out of those from the first one on. What
//! is due when a call comes late is part of the rule, as `tidegate_core::shaper`
//! states it: a packet leaves as of the time at which it was due, or 10 ms ago.

mod htb;
pub(crate) mod paced;

use tidegate_core::{Discipline, Rate, Time};

const CREDIT: u64 = 10_000_000;

/// The twin of [`Paced`](tidegate_core::shaper::Paced). The discipline must not hold
/// packets back itself.
#[must_use]
pub fn paced(discipline: Box<dyn Discipline>, rate: Rate) -> Box<dyn Discipline> {
    Box::new(paced::Paced::new(discipline, rate))
}

/// The twin of [`Htb`](tidegate_core::shaper::Htb), with leaves that do not hold
/// packets back themselves.
#[must_use]
pub fn htb(rate: Rate, leaves: Vec<(Rate, Box<dyn Discipline>)>) -> Box<dyn Discipline> {
    Box::new(htb::Htb::new(rate, leaves))
}

/// As of when a packet leaves that was due at `due` and is taken at `now`.
fn start(due: Time, now: Time) -> Time {
    due.max(Time(now.0.saturating_sub(CREDIT)))
}
