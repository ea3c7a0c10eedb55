//! Operations on every shaper and on an egress, under audit and beside their twins.
//!
//! | bytes | meaning |
//! | --- | --- |
//! | 0 | the rate: 0 to 255, see `rate` |
//! | 1 | HTB's leaves, from its lowest two bits; the buffer of each queue, from the rest |
//! | then | operations of one byte or two, by the first one's lowest three bits |
//! | `.....000` to `.....010`, size | a packet of one of six flows arrives |
//! | `.....011` | send |
//! | `.....100`, late | time passes until a packet may leave, and then a little; send |
//! | `.....101` to `.....110`, span | time passes |
//! | `.....111`, rate | the rate of the egress changes |
//!
//! What is cut off reads as zero. There are as many operations as one run of the
//! slow twins can afford.

use tidegate_core::discipline::fifo::Fifo;
use tidegate_core::registry;
use tidegate_core::shaper::{Htb, Paced};
use tidegate_core::{Buffer, Bytes, Discipline, Rate, Span};
use tidegate_twins::audit::{self, Audited};
use tidegate_twins::{egress, shapers};

const MOST_OPERATIONS: usize = 100;

/// Flows that stay in their classes: 0, 0, 1, 2, 3 and 4.
const FLOWS: [u8; 6] = [0, 2, 1, 8, 9, 10];

/// What shapers are held back in front of, besides FIFO: an order of its own, and
/// drops at the head.
const DISCIPLINES: [&str; 3] = ["fifo", "las", "fq-codel"];

/// Does what `input` says to every shaper, and to an egress.
///
/// # Panics
/// When one breaks a rule or differs from its twin.
pub fn fuzz_one(input: &[u8]) {
    let mut input = input.iter().copied();
    let first = rate(input.next().unwrap_or(0));
    let shape = input.next().unwrap_or(0);
    let buffer = Buffer::packets(u32::from(shape >> 2));
    let operations: Vec<_> =
        std::iter::from_fn(|| operation(&mut input)).take(MOST_OPERATIONS).collect();
    for name in DISCIPLINES {
        let entry = registry::find(name).expect("it is registered");
        let built = || entry.build(&[], buffer, 1).expect("defaults are valid");
        egress::compare([built(), built()], first, &operations);
        let paced: Box<dyn Discipline> = Box::new(Paced::new(built(), first));
        let pair = [paced, shapers::paced(built(), first)];
        compare(name, pair, buffer, Bytes::ZERO, &operations);
    }
    htb(first, usize::from(shape & 3) + 1, buffer, &operations);
}

/// HTB with leaves that share the rate by their numbers.
fn htb(rate: Rate, count: usize, buffer: Buffer, operations: &[egress::Operation]) {
    // Less than a bit a second is not a share.
    let rate = Rate(rate.0.max(10));
    let leaves = || {
        let sum = (1..=count as u64).sum::<u64>();
        let fifo = || -> Box<dyn Discipline> { Box::new(Fifo::new(buffer)) };
        (1..=count as u64).map(|part| (Rate(rate.0 / sum * part), fifo())).collect()
    };
    let limit = |limit| match limit {
        tidegate_core::units::Amount::Packets(limit) => Buffer::packets(limit * count as u32),
        tidegate_core::units::Amount::Bytes(limit) => Buffer::bytes(limit * count as u64),
    };
    // Every leaf may be ahead by its burst and a packet, and so may the root.
    let burst = (MOST_SIZE + Bytes(1_600)) * (count as u64 + 1);
    let pair = [Box::new(Htb::new(rate, leaves())) as _, shapers::htb(rate, leaves())];
    compare("htb", pair, limit(buffer.amount()), burst, operations);
}

fn compare(
    name: &str,
    pair: [Box<dyn Discipline>; 2],
    buffer: Buffer,
    burst: Bytes,
    operations: &[egress::Operation],
) {
    let operations: Vec<_> = operations.iter().flat_map(audited).collect();
    let [real, twin] = pair.map(|shaper| Audited::new(shaper, buffer).with_burst(burst));
    audit::compare(name, real, twin, &operations, |_, _| {});
}

/// The same for a discipline, which is not told of rates.
fn audited(operation: &egress::Operation) -> Vec<audit::Operation> {
    use audit::Operation;
    match *operation {
        egress::Operation::Offer { flow, size } => vec![Operation::Arrive { flow, size }],
        egress::Operation::Poll => vec![Operation::Send],
        egress::Operation::PollWhenReady { late: Span::ZERO } => vec![Operation::SendWhenReady],
        egress::Operation::PollWhenReady { late } => {
            vec![Operation::SendWhenReady, Operation::Wait(late), Operation::Send]
        }
        egress::Operation::Wait(span) => vec![Operation::Wait(span)],
        egress::Operation::SetRate(_) => Vec::new(),
    }
}

fn operation(input: &mut impl Iterator<Item = u8>) -> Option<egress::Operation> {
    use egress::Operation;
    let code = input.next()?;
    let mut next = || input.next().unwrap_or(0);
    Some(match code % 8 {
        0..=2 => Operation::Offer { flow: FLOWS[usize::from(code >> 3) % 6], size: size(next()) },
        3 => Operation::Poll,
        4 => Operation::PollWhenReady { late: span(next()) },
        5 | 6 => Operation::Wait(span(next())),
        _ => Operation::SetRate(rate(next())),
    })
}

const MOST_SIZE: Bytes = Bytes(1 << 50);

/// Up to 1 500 bytes in steps of 10, then a few of any size.
fn size(code: u8) -> Bytes {
    match code {
        0..=150 => Bytes(u64::from(code) * 10),
        151..=254 => Bytes(1 << ((code - 151) / 3)),
        255 => MOST_SIZE,
    }
}

/// Four bits times a power of two bit/s, and the ends of the range.
fn rate(code: u8) -> Rate {
    Rate(match code {
        255 => u64::MAX,
        _ => u64::from(code & 15) << (2 * (code >> 4) + 6),
    })
}

/// Three bits times a power of four nanoseconds, and the end of time.
fn span(code: u8) -> Span {
    Span(match code {
        255 => u64::MAX,
        _ => u64::from(code & 7) << (2 * (code >> 3)),
    })
}
