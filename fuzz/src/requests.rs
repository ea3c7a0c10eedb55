//! Operations on every request scheduler, under audit and compared with its twin.
//!
//! | bytes | meaning |
//! | --- | --- |
//! | 0 | a dial for all parameters: 0 leaves the defaults, see `setting` |
//! | 1 | the link's rate: `n` times `n` kbit/s |
//! | then | operations of three bytes, by the first one's lowest three bits |
//! | `..uuc000`, `..uuc001`, -, - | a request of user `uu` of class `c`, or of a missing class |
//! | 2, which, 0 | a client gives up |
//! | `..uuc010`, -, size | a response of user `uu` of class `c` goes on after so much |
//! | 3 or 4, which, size | a part of a response is read |
//! | 5, which, - | a response ends |
//! | 6, other, delay | the link's counter is read |
//! | 7, span, size | time passes, and bytes come that nobody asked for |
//!
//! Bytes that are cut off read as zero. There are as many operations as the slow
//! twin can afford in one run.

use std::num::NonZeroU32;

use tidegate_core::request::Opening;
use tidegate_core::request::catalogue::SCHEDULERS;
use tidegate_core::{Bytes, Rate, Span};
use tidegate_twins::requests;
use tidegate_twins::requests::gateway::{Gateway, Operation};

use crate::settings::{Steps, setting};

const STEPS: Steps = Steps { span: Span::millis(50), count: 1 };

const MOST_OPERATIONS: usize = 100;
const WEIGHTS: [u32; 2] = [3, 2];

/// Does what `input` says to every request scheduler.
///
/// # Panics
/// When one breaks a rule or differs from its twin.
pub fn fuzz_one(input: &[u8]) {
    let [dial, rate] = [0, 1].map(|at| input.get(at).copied().unwrap_or(0));
    let rate = Rate(u64::from(rate).pow(2) * 1_000);
    let operations: Vec<_> = input.get(2..).unwrap_or(&[]).chunks(3).flat_map(operation).collect();
    let weights = WEIGHTS.map(|weight| NonZeroU32::new(weight).expect("neither is zero"));
    for entry in SCHEDULERS {
        let values: Vec<_> = entry.parameters.iter().map(|p| setting(p, dial, STEPS)).collect();
        let names = entry.parameters.iter().map(|parameter| parameter.name);
        let given: Vec<_> = names.zip(values.iter().map(String::as_str)).collect();
        let settings = entry.settings(&given).unwrap_or_else(|error| panic!("{error}"));
        let config = (entry.config)(&settings);
        let mut gateway = Gateway::new(config, rate, &weights);
        operations.iter().take(MOST_OPERATIONS).for_each(|operation| gateway.apply(*operation));
        gateway.close();
        requests::compare(&config, rate, &WEIGHTS.map(u64::from), &gateway.log);
    }
}

fn operation(bytes: &[u8]) -> Vec<Operation> {
    let [code, a, b] = [0, 1, 2].map(|at| bytes.get(at).copied().unwrap_or(0));
    let (class, user) = (u32::from(code >> 3 & 1), u64::from(code >> 4 & 3));
    match code % 8 {
        0 => vec![Operation::Arrive { class, user }],
        1 => vec![Operation::Arrive { class: class + u32::from(code >> 6), user }],
        2 if b == 0 => vec![Operation::Withdraw(a.into())],
        2 => vec![Operation::Resume { class, user, received: size(b) }],
        3 | 4 => vec![Operation::Receive { response: a.into(), size: size(b) }],
        5 => vec![match b % 8 {
            0 => Operation::Break(a.into()),
            1 => Operation::Cancel(a.into()),
            2 if b < 128 => Operation::Complete(a.into()),
            2 => Operation::Ask(a.into()),
            3 => Operation::Come { response: a.into(), unread: size(b) },
            4 => {
                let opening = Opening { ahead: size(b), pace: size(b) };
                Operation::Open { response: a.into(), opening }
            }
            5 => Operation::Rate(Rate((u64::from(a) + 1).pow(2) * 1_000)),
            6 => {
                let weight = NonZeroU32::MIN.saturating_add(a.into());
                Operation::Weigh { class, weight }
            }
            _ => Operation::End(a.into()),
        }],
        6 => {
            let delay = (b > 0).then(|| Span::millis(u64::from(b)));
            vec![Operation::Report { other: size(a), delay }]
        }
        _ => {
            let whose = (code >= 64).then_some((class, user));
            vec![Operation::Wait(span(a)), Operation::Unasked { whose, size: size(b) }]
        }
    }
}

/// Up to 4 500 bytes in steps of 30, then up to 60 MB.
fn size(code: u8) -> Bytes {
    Bytes(match code {
        0..=150 => u64::from(code) * 30,
        _ => u64::from(code - 150) << ((code - 150) / 5).min(20),
    })
}

/// Three bits times a power of two nanoseconds, up to 15 s.
pub(crate) fn span(code: u8) -> Span {
    Span(u64::from(code & 7) << (code >> 3))
}
