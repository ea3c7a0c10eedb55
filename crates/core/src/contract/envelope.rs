//! What a flow may send, as its operator writes it: the minimum of some simple
//! curves.
//!
//! `100 B + 2 Mbit/s, 300 B + 1.2 Mbit/s` is a TSpec: packets of 100 B at a peak of
//! 2 Mbit/s, and over longer times a token bucket of 300 B and 1.2 Mbit/s (RFC 2215
//! section 3.6 calls them M, p, b and r). `30 kB every 33 ms` is a staircase, such
//! as a video frame. An [`Envelope`] is both an arrival curve, for analysis, and
//! what a [`Policer`](super::Policer) enforces, with bounded state.

mod fit;

use std::fmt;
use std::str::FromStr;

use super::ContractError;
use crate::curve::{Curve, TooManyPieces};
use crate::units::{Bytes, Rate, Span};

/// Bytes that a term may let through at once.
const SIZES: std::ops::RangeInclusive<u64> = 1..=1_000_000_000_000;

/// One of the curves to which a flow keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// `burst + rate t`.
    TokenBucket {
        /// What may come at once.
        burst: Bytes,
        /// What may come in the long run.
        rate: Rate,
    },
    /// `size` at once and again after every `period`.
    Staircase {
        /// What may come in every period.
        size: Bytes,
        /// Length of the period.
        period: Span,
    },
}

/// What a flow may send: it keeps to all of these terms at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope(Vec<Term>);

impl Envelope {
    /// The largest number of terms of one envelope: its policer looks at each of
    /// them for each packet.
    pub const MOST_TERMS: usize = 16;

    /// The fastest rate of a term, so that no count of tokens ever overflows.
    pub const FASTEST: Rate = Rate(1_000_000_000_000);

    /// The envelope of these terms.
    ///
    /// # Errors
    /// When there are none, or too many, or one lets nothing through or is faster
    /// than [`Envelope::FASTEST`].
    pub fn new(terms: Vec<Term>) -> Result<Envelope, ContractError> {
        if terms.is_empty() || terms.len() > Envelope::MOST_TERMS {
            let found = format!("{} terms", terms.len());
            let expected = format!("an arrival curve of 1 to {} terms", Envelope::MOST_TERMS);
            return Err(ContractError { found, expected });
        }
        let outside = terms.iter().find(|term| match term {
            Term::TokenBucket { burst, rate } => {
                !SIZES.contains(&burst.0) || !(1..=Envelope::FASTEST.0).contains(&rate.0)
            }
            Term::Staircase { size, period } => !SIZES.contains(&size.0) || period.0 == 0,
        });
        match outside {
            Some(term) => Err(ContractError {
                found: term.to_string(),
                expected: "sizes to 1 TB, rates to 1 Tbit/s and periods, all above zero".into(),
            }),
            None => Ok(Envelope(terms)),
        }
    }

    /// The terms, in the order given.
    #[must_use]
    pub fn terms(&self) -> &[Term] {
        &self.0
    }

    /// The arrival curve: in any interval of length t, no more than its value at t.
    ///
    /// # Errors
    /// When staircases of one rate have periods without a common measure.
    pub fn curve(&self) -> Result<Curve, TooManyPieces> {
        let mut curves = self.0.iter().map(|term| match *term {
            Term::TokenBucket { burst, rate } => Curve::token_bucket(burst, rate),
            Term::Staircase { size, period } => Curve::staircase(size, period),
        });
        let first = curves.next().expect("an envelope has a term");
        curves.try_fold(first, |least, next| least.minimum(&next))
    }

    /// The largest packet that may ever pass.
    #[must_use]
    pub fn largest_packet(&self) -> Bytes {
        let at_once = |term: &Term| match *term {
            Term::TokenBucket { burst, .. } => burst,
            Term::Staircase { size, .. } => size,
        };
        self.0.iter().map(at_once).min().expect("an envelope has a term")
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Term::TokenBucket { burst, rate } => write!(f, "{burst:#} + {rate:#}"),
            Term::Staircase { size, period } => write!(f, "{size:#} every {period:#}"),
        }
    }
}

impl fmt::Display for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{term}")?;
        }
        Ok(())
    }
}

impl FromStr for Envelope {
    type Err = ContractError;

    fn from_str(text: &str) -> Result<Envelope, ContractError> {
        Envelope::new(text.split(',').map(str::parse).collect::<Result<_, _>>()?)
    }
}

impl FromStr for Term {
    type Err = ContractError;

    fn from_str(text: &str) -> Result<Term, ContractError> {
        let read = || {
            if let Some((burst, rate)) = text.split_once('+') {
                return Some(Term::TokenBucket {
                    burst: burst.parse().ok()?,
                    rate: rate.parse().ok()?,
                });
            }
            let (size, period) = text.split_once(" every ")?;
            Some(Term::Staircase { size: size.parse().ok()?, period: period.parse().ok()? })
        };
        read().ok_or_else(|| ContractError {
            found: text.trim().into(),
            expected: "SIZE + RATE or SIZE every TIME, as '300 B + 1.2 Mbit/s' or \
                       '30 kB every 33 ms'"
                .into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_and_written_back_exactly() {
        let text = "100 B + 2 Mbit/s, 300 B + 1.2 Mbit/s, 30001 B every 33333333 ns";
        let envelope: Envelope = text.parse().unwrap();
        assert_eq!(envelope.terms().len(), 3);
        assert_eq!(envelope.to_string().parse(), Ok(envelope.clone()));
        assert_eq!(envelope.largest_packet(), Bytes(100));
        assert_eq!(envelope.curve().unwrap().bytes(Span::millis(1)), Bytes(350));
    }

    #[test]
    fn mistakes_say_what_was_expected() {
        for text in ["", "100 B", "100 B + 2", "100 B every", "0 B + 1 Mbit/s", "1 B every 0 s"] {
            let error = text.parse::<Envelope>().unwrap_err();
            assert!(!error.expected.is_empty(), "{text}");
        }
    }
}
