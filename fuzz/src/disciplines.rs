//! Operations on every registered discipline, under audit and beside its twin.
//!
//! | bytes | meaning |
//! | --- | --- |
//! | 0 | the buffer: `n` < 128 is `n` packets, else `(n - 128) * 100` bytes |
//! | 1 | a dial for all parameters: 0 leaves the defaults, see `setting` |
//! | then | operations of one byte or two, by the first one's lowest two bits |
//! | `..ffff00`, `..ffff01`, size | a packet of flow `ffff` arrives |
//! | `......10` | send |
//! | `......11`, span | time passes |
//!
//! What is cut off reads as zero. There are as many operations as one run of the
//! slow twins can afford.

use tidegate_core::registry::{DISCIPLINES, Kind, Parameter};
use tidegate_core::{Buffer, Bytes, Span};

// The audit and the twins are those of the conformance tests.
#[path = "../../crates/core/tests/disciplines/model.rs"]
mod model;
#[path = "../../crates/core/tests/disciplines/twins/mod.rs"]
mod twins;

use model::Operation;

const MOST_OPERATIONS: usize = 100;

/// Does what `input` says to every discipline.
///
/// # Panics
/// When a discipline breaks a rule or differs from its twin.
pub fn fuzz_one(input: &[u8]) {
    let mut input = input.iter().copied();
    let buffer = match input.next().unwrap_or(0) {
        count @ 0..128 => Buffer::packets(count.into()),
        size => Buffer::bytes(Bytes(u64::from(size - 128) * 100)),
    };
    let dial = input.next().unwrap_or(0);
    let operations: Vec<_> =
        std::iter::from_fn(|| operation(&mut input)).take(MOST_OPERATIONS).collect();
    for entry in DISCIPLINES {
        let values: Vec<_> = entry.parameters.iter().map(|p| setting(p, dial)).collect();
        let names = entry.parameters.iter().map(|parameter| parameter.name);
        let given: Vec<_> = names.zip(values.iter().map(String::as_str)).collect();
        twins::compare(entry, &given, buffer, u64::from(dial), &operations);
    }
}

fn operation(input: &mut impl Iterator<Item = u8>) -> Option<Operation> {
    let code = input.next()?;
    Some(match code % 4 {
        0 | 1 => Operation::Arrive { flow: code >> 2 & 15, size: size(input.next().unwrap_or(0)) },
        2 => Operation::Send,
        _ => Operation::Wait(span(input.next().unwrap_or(0))),
    })
}

/// Up to 1 500 bytes in steps of 10, and the ends of the range.
fn size(code: u8) -> Bytes {
    Bytes(match code {
        0..=150 => u64::from(code) * 10,
        151..=200 => u64::from(code),
        201..=253 => u64::from(u32::MAX) * u64::from(code - 200),
        254 => u64::MAX - 1,
        255 => u64::MAX,
    })
}

/// Three bits times a power of four nanoseconds, and the end of time.
fn span(code: u8) -> Span {
    Span(match code {
        255 => u64::MAX,
        _ => u64::from(code & 7) << (2 * (code >> 3)),
    })
}

/// A value within the parameter's range: at 0 the default, at 1 the least, at
/// 255 the most, and in between something near the least.
fn setting(parameter: &Parameter, dial: u8) -> String {
    if dial == 0 {
        return parameter.default.into();
    }
    let within = |least: u64, most: u64, step: u64| match dial {
        255 => most,
        _ => (least + u64::from(dial - 1) * step).min(most),
    };
    match &parameter.kind {
        Kind::Span { least, most } => format!("{} ns", within(least.0, most.0, 250_000_000)),
        Kind::Bytes { least, most } => format!("{} B", within(least.0, most.0, 70)),
        Kind::Amount if dial.is_multiple_of(2) => format!("{} packets", dial / 2),
        Kind::Amount => format!("{} B", within(0, u64::MAX, 70)),
        Kind::Count { least, most } => within(u64::from(*least), u64::from(*most), 3).to_string(),
        Kind::Number { least, most } => {
            (least + (most - least) * f64::from(dial) / 255.0).to_string()
        }
        Kind::Choice(words) => words[usize::from(dial) % words.len()].into(),
        Kind::Contracts => format!(
            "link 100 Mbit/s; one = class 1: {} B + {dial} kbit/s within {dial} ms; \
             two = tcp: weight {dial}",
            40 + u32::from(dial) * 20
        ),
    }
}
