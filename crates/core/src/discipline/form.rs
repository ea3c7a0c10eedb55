//! Which form of itself a discipline follows: that of Linux, or that which was
//! published.
//!
//! A discipline that Linux has behaves as Linux 7.3 does unless it is told otherwise,
//! for that is what people run. Where the RFC or the paper says something else, the
//! parameter `form` asks for that. A discipline's own file says in what the two
//! differ, and why.

use crate::setting::{Kind, Parameter, Settings};

/// Whose rules a discipline follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Those of Linux 7.3.
    Linux,
    /// Those of the RFC or of the paper.
    Published,
}

const NAME: &str = "form";
const LINUX: &str = "linux";

impl Form {
    /// Registers the choice for a discipline that an RFC describes.
    pub(crate) const OR_RFC: Parameter = Parameter {
        name: NAME,
        help: "whose rules apply where the two differ",
        kind: Kind::Choice(&[LINUX, "rfc"]),
        default: LINUX,
    };

    /// Registers the choice for a discipline that a paper describes.
    pub(crate) const OR_PAPER: Parameter =
        Parameter { kind: Kind::Choice(&[LINUX, "paper"]), ..Self::OR_RFC };

    /// The value of either.
    pub(crate) fn from_settings(settings: &Settings) -> Form {
        if settings.choice(NAME) == LINUX { Form::Linux } else { Form::Published }
    }
}
