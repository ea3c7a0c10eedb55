//! Events on the request proxy around every request scheduler: exchanges beside their
//! twin, and tunnels under audit.
//!
//! | bytes | meaning |
//! | --- | --- |
//! | 0 | a dial for all parameters of the scheduler: 0 leaves the defaults |
//! | 1 | the link's rate: `n` times `n` kbit/s |
//! | 2 | `pppppp` times 50 ms of patience, if any; the lowest two bits: pools of up to three classes, of 10 kbit/s |
//! | then | events of three bytes, by the first one's lowest four bits; the class is bit 4 and the user bits 5 to 7, or `a` says which exchange or tunnel |
//! | 0, -, - | a request is heard |
//! | 1, a, - | a server is connected |
//! | 2, a, size | bytes are there |
//! | 3 or 4, a, size | bytes are read; with 4 they are the last |
//! | 5, a, how | a server breaks off, a connection is lost, or a client leaves |
//! | 6, origin, time | a handshake took so long |
//! | 7, other, - | the link's counter is read |
//! | 8 or 9, span, - | time passes |
//! | 10, -, - | a tunnel opens |
//! | 11, a, size | a client sends data, or with bit 4 a handshake |
//! | 12, a, size | bytes of a tunnel are there |
//! | 13, a, size | bytes of a tunnel are read |
//! | 14, a, - | a tunnel is never to be held |
//! | 15, a, - | a tunnel is closed |
//!
//! What is cut off reads as zero.

use std::num::NonZeroU32;

use tidegate_core::request::catalogue::SCHEDULERS;
use tidegate_core::request::{Piece, ProxyConfig};
use tidegate_core::{Bytes, Rate, Span};
use tidegate_twins::requests::proxy::{Driver, Operation};

use crate::requests::span;
use crate::settings::{Steps, setting};

const STEPS: Steps = Steps { span: Span::millis(50), count: 1 };
const MOST_OPERATIONS: usize = 300;
const WEIGHTS: [u32; 2] = [3, 2];

/// Does what `input` says to the proxy with every request scheduler.
///
/// # Panics
/// When it breaks a rule or differs from its twin.
pub fn fuzz_one(input: &[u8]) {
    let [dial, rate, extras] = [0, 1, 2].map(|at| input.get(at).copied().unwrap_or(0));
    let rate = Rate(u64::from(rate).pow(2) * 1_000);
    let config = ProxyConfig {
        patience: (extras >= 4).then(|| Span::millis(u64::from(extras >> 2) * 50)),
        pools: vec![Rate(10_000); usize::from(extras & 3)],
        receive_buffer: Bytes(u64::from(extras) * 100),
        ..ProxyConfig::default()
    };
    let operations: Vec<_> = input.get(3..).unwrap_or(&[]).chunks(3).map(operation).collect();
    let weights = WEIGHTS.map(|weight| NonZeroU32::new(weight).expect("neither is zero"));
    for entry in SCHEDULERS {
        let values: Vec<_> = entry.parameters.iter().map(|p| setting(p, dial, STEPS)).collect();
        let names = entry.parameters.iter().map(|parameter| parameter.name);
        let given: Vec<_> = names.zip(values.iter().map(String::as_str)).collect();
        let settings = entry.settings(&given).unwrap_or_else(|error| panic!("{error}"));
        let scheduler = (entry.config)(&settings);
        let mut driver = Driver::new(scheduler, rate, &weights, config.clone());
        operations.iter().take(MOST_OPERATIONS).for_each(|operation| driver.apply(*operation));
        driver.close();
    }
}

fn operation(bytes: &[u8]) -> Operation {
    let [code, a, b] = [0, 1, 2].map(|at| bytes.get(at).copied().unwrap_or(0));
    let (class, user) = (u32::from(code >> 4 & 1), u64::from(code >> 5));
    let (which, size) = (usize::from(a), size(b));
    match code % 16 {
        0 => Operation::Hear { class, user },
        1 => Operation::Connected(which),
        2 => Operation::Came(which, size, code >> 7 == 1),
        3 => Operation::Read(which, size, false),
        4 => Operation::Read(which, size, true),
        5 => [Operation::Reset, Operation::Broken, Operation::Left][usize::from(b % 3)](which),
        6 => Operation::Timed(u64::from(a), Span::millis(u64::from(b))),
        7 => Operation::Report(self::size(a)),
        8 | 9 => Operation::Wait(span(a)),
        10 => Operation::Open { class, user },
        11 if class == 0 => Operation::Send(which, Piece::Data(size)),
        11 => Operation::Send(which, Piece::Handshake(size)),
        12 => Operation::TunnelCame(which, size),
        13 => Operation::TunnelRead(which, size),
        14 => Operation::Exempt(which),
        _ => Operation::Close(which),
    }
}

/// Up to 6 000 bytes in steps of 40, then up to 60 MB.
fn size(code: u8) -> Bytes {
    Bytes(match code {
        0..=150 => u64::from(code) * 40,
        _ => u64::from(code - 150) << ((code - 150) / 5).min(20),
    })
}
