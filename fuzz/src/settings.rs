//! Values of parameters, drawn by one byte.

use tidegate_core::Span;
use tidegate_core::setting::{Kind, Parameter};

/// How far apart two values near the least are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    /// Of times.
    pub(crate) span: Span,
    /// Of counts.
    pub(crate) count: u64,
}

/// A value within the parameter's range: the default at 0, the least at 1, the most
/// at 255, and something near the least in between.
pub(crate) fn setting(parameter: &Parameter, dial: u8, steps: Steps) -> String {
    if dial == 0 {
        return parameter.default.into();
    }
    let within = |least: u64, most: u64, step: u64| match dial {
        255 => most,
        _ => (least + u64::from(dial - 1) * step).min(most),
    };
    match &parameter.kind {
        Kind::Span { least, most } => format!("{} ns", within(least.0, most.0, steps.span.0)),
        Kind::Bytes { least, most } => format!("{} B", within(least.0, most.0, 70)),
        Kind::Amount if dial.is_multiple_of(2) => format!("{} packets", dial / 2),
        Kind::Amount => format!("{} B", within(0, u64::MAX, 70)),
        Kind::Bandwidth { least } => {
            format!("{} bit/s", within(least.0, 1 << 34, 200_000))
        }
        Kind::Count { least, most } => {
            within(u64::from(*least), u64::from(*most), steps.count).to_string()
        }
        Kind::Number { least, most } => {
            (least + (most - least) * f64::from(dial) / 255.0).to_string()
        }
        Kind::Switch => if dial.is_multiple_of(2) { "on" } else { "off" }.into(),
        Kind::Choice(words) => words[usize::from(dial) % words.len()].into(),
        Kind::Contracts => format!(
            "link 100 Mbit/s; one = class 1: {} B + {dial} kbit/s within {dial} ms; \
             two = tcp: weight {dial}",
            40 + u32::from(dial) * 20
        ),
    }
}
