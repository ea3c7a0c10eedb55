//! Operations on every registered discipline, under audit and compared with its
//! twin.
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
//! Bytes that are cut off read as zero. There are as many operations as the slow
//! twins can afford in one run.

use tidegate_core::registry::DISCIPLINES;
use tidegate_core::{Buffer, Bytes, Span};
use tidegate_twins::audit::Operation;
use tidegate_twins::disciplines;

use crate::settings::{Steps, setting};

const MOST_OPERATIONS: usize = 100;

const STEPS: Steps = Steps { span: Span::millis(250), count: 3 };

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
        let values: Vec<_> = entry.parameters.iter().map(|p| setting(p, dial, STEPS)).collect();
        let names = entry.parameters.iter().map(|parameter| parameter.name);
        let given: Vec<_> = names.zip(values.iter().map(String::as_str)).collect();
        disciplines::compare(entry, &given, buffer, u64::from(dial), &operations);
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
