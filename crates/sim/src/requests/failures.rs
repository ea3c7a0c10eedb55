//! Servers that fail, and users who come and go.

use tidegate_core::{Bytes, Rate, Span, Stream};

/// The probabilities with which a response fails, and how. All other responses are complete.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerFailures {
    /// The server stops anywhere in the response, for ever, without a word.
    pub stall: f64,
    /// It breaks the connection off anywhere in the response.
    pub reset: f64,
    /// It sends the whole response at [`trickle_rate`](ServerFailures::trickle_rate).
    pub trickle: f64,
    /// The rate of such a response.
    pub trickle_rate: Rate,
}

impl ServerFailures {
    /// No response fails.
    pub const NONE: ServerFailures =
        ServerFailures { stall: 0.0, reset: 0.0, trickle: 0.0, trickle_rate: Rate(8_000) };

    /// The fate of a response of this size: two draws, whatever the result.
    pub(crate) fn draw(&self, size: Bytes, stream: &mut Stream) -> Fate {
        let (which, place) = (stream.uniform(), stream.uniform());
        // Below the size, so that part of it is missing.
        let after = ((size.0 as f64 * place) as u64).min(size.0.saturating_sub(1));
        if which < self.stall {
            Fate::Stalls { after }
        } else if which < self.stall + self.reset {
            Fate::Resets { after }
        } else if which < self.stall + self.reset + self.trickle {
            Fate::Trickles { rate: self.trickle_rate }
        } else {
            Fate::Answered
        }
    }
}

/// The fate of a response at its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Answered,
    /// This many bytes arrive, and then nothing.
    Stalls {
        after: u64,
    },
    /// This many bytes arrive, and then a reset.
    Resets {
        after: u64,
    },
    Trickles {
        rate: Rate,
    },
}

/// Users who are present and then absent for exponential times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presence {
    /// Mean time of a visit. Its end abandons everything that the user has asked for.
    pub present: Span,
    /// Mean time between two visits.
    pub absent: Span,
}

impl Presence {
    /// Whether a user is present at a random moment: at the start of a run.
    pub(crate) fn draw(&self, stream: &mut Stream) -> bool {
        let (present, absent) = (self.present.as_seconds(), self.absent.as_seconds());
        stream.uniform() * (present + absent) < present
    }

    /// The remaining time of that state; visits have no memory.
    pub(crate) fn last(&self, present: bool, stream: &mut Stream) -> Span {
        stream.exponential_span(if present { self.present } else { self.absent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fates_come_with_their_probabilities_and_leave_something_to_miss() {
        let failures =
            ServerFailures { stall: 0.1, reset: 0.2, trickle: 0.3, ..ServerFailures::NONE };
        let mut stream = Stream::new(1, "fates");
        let mut counts = [0_u32; 4];
        for _ in 0..10_000 {
            let kind = match failures.draw(Bytes(3), &mut stream) {
                Fate::Stalls { after } => (0, after),
                Fate::Resets { after } => (1, after),
                Fate::Trickles { .. } => (2, 0),
                Fate::Answered => (3, 0),
            };
            counts[kind.0] += 1;
            assert!(kind.1 < 3);
        }
        for (count, expected) in counts.iter().zip([1_000_u32, 2_000, 3_000, 4_000]) {
            assert!(count.abs_diff(expected) < 200, "{counts:?}");
        }
    }

    #[test]
    fn a_user_is_there_for_their_share_of_the_time() {
        let presence = Presence { present: Span::seconds(30), absent: Span::seconds(90) };
        let mut stream = Stream::new(1, "presence");
        let there = (0..10_000).filter(|_| presence.draw(&mut stream)).count();
        assert!(there.abs_diff(2_500) < 150, "{there}");
    }
}
