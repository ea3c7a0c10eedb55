//! Whether the packets of a flow keep to its envelope.
//!
//! A packet conforms if no stretch of time that ends with it has seen more than the
//! envelope allows for its length, leaving out packets that were refused (`BE
//! section 2`: they never came). For a token bucket, that is the classic count of
//! tokens, exact because tokens are counted in billionths of a bit. For a staircase
//! of `size` every `period`, the stretch that binds may begin with any packet:
//! packet i lets `size (floor((t - t_i) / period) + 1)` bytes pass from itself on.
//! Over all later times, packet i demands no more than a later packet j if j,
//! counted in whole periods, came no later than its bytes were due. Only packets
//! that are not covered in this way are remembered. Any two of those differ in
//! their position within a step by at least a packet, so there are at most `size`
//! divided by the smallest packet of them.

use super::{Envelope, Term};
use crate::curve::{PER_BYTE, ceiling};
use crate::units::{Bytes, Time};

/// Decides whether packets conform to an envelope, and counts those that pass.
#[derive(Clone, Debug)]
pub struct Policer {
    meters: Vec<Meter>,
}

#[derive(Clone, Debug)]
enum Meter {
    TokenBucket { burst: i128, rate: i128, tokens: i128, counted: Time },
    Staircase { size: u64, period: u64, passed: u64, marks: Vec<Mark> },
}

/// A packet from which a staircase counts.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Time,
    /// Bytes that had passed before it.
    before: u64,
}

impl Policer {
    /// A policer that has seen nothing yet.
    #[must_use]
    pub fn new(envelope: &Envelope) -> Policer {
        let meter = |term: &Term| match *term {
            Term::TokenBucket { burst, rate } => {
                let burst = i128::from(burst.0) * PER_BYTE;
                let rate = i128::from(rate.0);
                Meter::TokenBucket { burst, rate, tokens: burst, counted: Time::ZERO }
            }
            Term::Staircase { size, period } => {
                Meter::Staircase { size: size.0, period: period.0, passed: 0, marks: Vec::new() }
            }
        };
        Policer { meters: envelope.terms().iter().map(meter).collect() }
    }

    /// The time at which a packet of `size` will conform if nothing passes before:
    /// `now` if it already does, `None` if it never will.
    #[must_use]
    pub fn conforms_at(&self, now: Time, size: Bytes) -> Option<Time> {
        self.meters
            .iter()
            .try_fold(now, |latest, meter| meter.conforms_at(now, size).map(|at| latest.max(at)))
    }

    /// Lets a packet of `size` pass at `now` if it conforms; one that does not
    /// leaves no trace.
    pub fn admit(&mut self, now: Time, size: Bytes) -> bool {
        if self.conforms_at(now, size) != Some(now) {
            return false;
        }
        self.meters.iter_mut().for_each(|meter| meter.count(now, size));
        true
    }

    /// The number of values that it keeps.
    #[must_use]
    pub fn state(&self) -> usize {
        let numbers = |meter: &Meter| match meter {
            Meter::TokenBucket { .. } => 1,
            Meter::Staircase { marks, .. } => 1 + marks.len(),
        };
        self.meters.iter().map(numbers).sum()
    }
}

impl Meter {
    fn conforms_at(&self, now: Time, packet: Bytes) -> Option<Time> {
        match self {
            Meter::TokenBucket { burst, rate, tokens, counted } => {
                let needed = i128::from(packet.0) * PER_BYTE;
                if needed > *burst {
                    return None;
                }
                let wait = ceiling((needed - tokens).max(0), *rate);
                Some(now.max(later(*counted, u64::try_from(wait).ok()?)?))
            }
            Meter::Staircase { size, period, passed, marks } => {
                if packet.0 > *size {
                    return None;
                }
                marks.iter().try_fold(now, |latest, mark| {
                    let steps = (passed - mark.before + packet.0).div_ceil(*size);
                    let wait = period.checked_mul(steps - 1)?;
                    Some(latest.max(later(mark.at, wait)?))
                })
            }
        }
    }

    fn count(&mut self, now: Time, packet: Bytes) {
        match self {
            Meter::TokenBucket { burst, rate, tokens, counted } => {
                let gained = *rate * i128::from(now.since(*counted).0);
                *tokens = (*tokens + gained).min(*burst) - i128::from(packet.0) * PER_BYTE;
                *counted = now;
            }
            Meter::Staircase { size, period, passed, marks } => {
                let mark = Mark { at: now, before: *passed };
                // In whole periods since an older mark, at least that much was due.
                marks.retain(|older| {
                    let periods = now.since(older.at).0 / *period;
                    u128::from(mark.before - older.before) > u128::from(*size) * u128::from(periods)
                });
                marks.push(mark);
                *passed += packet.0;
            }
        }
    }
}

/// The time `wait` nanoseconds after `at`; `None` after the end of time, where sums
/// of times saturate and a wait would seem to be over.
fn later(at: Time, wait: u64) -> Option<Time> {
    at.0.checked_add(wait).map(Time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn policer(text: &str) -> Policer {
        Policer::new(&text.parse().expect("the envelope is right"))
    }

    #[test]
    fn a_bucket_fills_to_the_nanosecond() {
        let mut policer = policer("1000 B + 8 Mbit/s");
        assert!(policer.admit(Time::ZERO, Bytes(1_000)));
        assert_eq!(policer.conforms_at(Time(5), Bytes(1)), Some(Time(1_000)));
        assert!(!policer.admit(Time(999), Bytes(1)));
        assert!(policer.admit(Time(1_000), Bytes(1)));
        assert_eq!(policer.conforms_at(Time(5), Bytes(1_001)), None);
    }

    #[test]
    fn a_periodic_flow_passes_its_staircase_for_ever() {
        let mut policer = policer("100 B every 20 ms");
        for count in 0..10_000 {
            let due = Time(count * 20_000_000);
            assert!(count == 0 || !policer.admit(Time(due.0 - 1), Bytes(1)));
            assert!(policer.admit(due, Bytes(100)));
            assert_eq!(policer.state(), 2);
        }
    }

    proptest! {
        /// Checks against the definition: every stretch of time that ends with the
        /// packet.
        #[test]
        fn admits_what_the_envelope_allows_and_nothing_else(
            terms in prop::collection::vec(
                prop_oneof![
                    (1_u64..3_000, 1_000_u64..10_000_000)
                        .prop_map(|(burst, rate)| format!("{burst} B + {rate} bit/s")),
                    (1_u64..3_000, 1_000_u64..3_000_000)
                        .prop_map(|(size, period)| format!("{size} B every {period} ns")),
                ],
                1..4,
            ),
            packets in prop::collection::vec((0_u64..1_500_000, 1_u64..1_500), 1..60),
        ) {
            let envelope: Envelope = terms.join(", ").parse().unwrap();
            let curve = envelope.curve().unwrap();
            let mut policer = Policer::new(&envelope);
            let mut passed: Vec<(u64, u64)> = Vec::new();
            let mut now = 0;
            let allowed = |passed: &[(u64, u64)], now: u64, size: u64| {
                let mut bytes = size;
                let own = curve.value(0) >= i128::from(size) * PER_BYTE;
                own && passed.iter().rev().all(|(at, size)| {
                    bytes += size;
                    curve.value(now - at) >= i128::from(bytes) * PER_BYTE
                })
            };
            for (gap, size) in packets {
                now += gap;
                let first = policer.conforms_at(Time(now), Bytes(size));
                if let Some(Time(first)) = first {
                    prop_assert!(allowed(&passed, first, size));
                    prop_assert!(first == now || !allowed(&passed, first - 1, size));
                } else {
                    prop_assert!(!allowed(&passed, now + 1_000_000_000_000, size));
                }
                let admitted = policer.admit(Time(now), Bytes(size));
                prop_assert_eq!(admitted, allowed(&passed, now, size));
                if admitted {
                    passed.push((now, size));
                }
                prop_assert!(policer.state() <= 3 * 3_001);
            }
        }
    }
}
