//! What can be set on PIE, alone or in each of many queues.

use super::form::Form;
use crate::setting::{Kind, Parameter, Settings};
use crate::units::Span;

/// What can be set on PIE; the defaults are those of `RFC 8033 Appendices A and B`,
/// but for marks, which Linux turns off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// Whose rules apply.
    pub form: Form,
    /// `QDELAY_REF`: the delay that packets should have.
    pub target: Span,
    /// `T_UPDATE`: time from one update of the probability to the next; not zero.
    pub update: Span,
    /// `MAX_BURST`: how long a burst after a quiet time passes without drops.
    pub burst: Span,
    /// Probability per second that each second of delay above target adds.
    pub alpha: f64,
    /// Probability that each second adds by which the delay grew.
    pub beta: f64,
    /// Whether packets of senders that understand marks are marked.
    pub ecn: bool,
    /// `mark_ecnth`: beyond this probability, packets are dropped that could be marked.
    pub ecn_threshold: f64,
}

impl Tuning {
    /// Registers [`Tuning::target`].
    pub(crate) const TARGET: Parameter = Parameter {
        name: "target",
        help: "delay that packets should have in the queue",
        kind: Kind::Span { least: Span::micros(1), most: Span::seconds(10) },
        default: "15 ms",
    };
    /// Registers [`Tuning::update`].
    pub(crate) const UPDATE: Parameter = Parameter {
        name: "update",
        help: "time between two updates of the drop probability",
        kind: Kind::Span { least: Span::micros(10), most: Span::seconds(10) },
        default: "15 ms",
    };
    /// Registers [`Tuning::burst`].
    pub(crate) const BURST: Parameter = Parameter {
        name: "burst",
        help: "how long a burst after a quiet time passes without drops",
        kind: Kind::Span { least: Span::ZERO, most: Span::seconds(10) },
        default: "150 ms",
    };
    /// Registers [`Tuning::alpha`], to be raised along with `beta` as the target
    /// is lowered (`RFC 8033 section 4.2`).
    pub(crate) const ALPHA: Parameter = Parameter {
        name: "alpha",
        help: "what an update adds to the probability for each second of delay above the target",
        kind: Kind::Number { least: 0.0, most: 1_000.0 },
        default: "0.125",
    };
    /// Registers [`Tuning::beta`].
    pub(crate) const BETA: Parameter = Parameter {
        name: "beta",
        help: "what an update adds to the probability for each second by which the delay grew",
        kind: Kind::Number { least: 0.0, most: 10_000.0 },
        default: "1.25",
    };
    /// Registers [`Tuning::ecn`].
    pub(crate) const ECN: Parameter = Parameter {
        name: "ecn",
        help: "on: packets whose senders understand marks are marked while the probability is low",
        kind: Kind::Switch,
        default: "off",
    };
    /// Registers [`Tuning::ecn_threshold`].
    pub(crate) const ECN_THRESHOLD: Parameter = Parameter {
        name: "ecn_threshold",
        help: "the probability up to which marks take the place of drops",
        kind: Kind::Number { least: 0.0, most: 1.0 },
        default: "0.1",
    };

    /// The values of the parameters.
    pub(crate) fn from_settings(settings: &Settings) -> Tuning {
        Tuning {
            form: Form::from_settings(settings),
            target: settings.span(Self::TARGET.name),
            update: settings.span(Self::UPDATE.name),
            burst: settings.span(Self::BURST.name),
            alpha: settings.number(Self::ALPHA.name),
            beta: settings.number(Self::BETA.name),
            ecn: settings.switch(Self::ECN.name),
            ecn_threshold: settings.number(Self::ECN_THRESHOLD.name),
        }
    }

    /// Whether the delay is less than half of the target.
    pub(super) fn is_short(&self, delay: Span) -> bool {
        delay * 2 < self.target
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::pie;

    #[test]
    fn defaults_are_those_of_linux_and_but_for_form_and_marks_of_the_rfc() {
        let linux = Tuning {
            form: Form::Linux,
            target: Span::millis(15),
            update: Span::millis(15),
            burst: Span::millis(150),
            // 2 and 20 in units of 1/16.
            alpha: 2.0 / 16.0,
            beta: 20.0 / 16.0,
            ecn: false,
            ecn_threshold: 0.1,
        };
        assert_eq!(Tuning::from_settings(&pie::ENTRY.settings(&[]).unwrap()), linux);
    }
}
