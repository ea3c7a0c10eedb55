//! Any frames on a live link, and any messages of the kernel about packets that it holds.
//!
//! | bytes | meaning |
//! | --- | --- |
//! | 0 | the discipline, modulo their number |
//! | 1 | the buffer, in packets |
//! | 2 | the rate, in powers of two from 8 kbit/s |
//! | then | operations, by the first byte's lowest two bits |
//! | `......0.`, span | time passes, in steps of 50 us |
//! | `......10`, length, frame | a frame arrives as it is |
//! | `......11`, header, length, frame | a frame with what the kernel left to be done |
//!
//! Bytes that are cut off end the input. Time runs as the link asks for it.

use tidegate_core::framing::Framing;
use tidegate_core::registry::DISCIPLINES;
use tidegate_core::{Buffer, Bytes, Rate, Span, Time};
use tidegate_link::Queue;
use tidegate_link::bridge::{Bridge, Turn};
use tidegate_link::nfqueue;
use tidegate_link::offload::{HEADER_LENGTH, Offload};

/// Enough for some frames, so that memory is missing at times.
const MEMORY: Bytes = Bytes(300_000);

/// Does what `input` says to a bridge.
///
/// # Panics
/// When a packet is unaccounted for, memory exceeds its bound, or anything panics.
pub fn fuzz_one(input: &[u8]) {
    let [discipline, buffer, rate, rest @ ..] = input else { return };
    let entry = &DISCIPLINES[usize::from(*discipline) % DISCIPLINES.len()];
    let queue = Queue {
        entry,
        settings: entry.settings(&[]).expect("defaults are right"),
        limit: Buffer::packets((*buffer).into()).into(),
        rate: Rate(8_000 << (rate % 32)),
        framing: Framing::RAW,
    };
    let mut bridge = Bridge::new(queue, MEMORY, 1);
    let (mut now, mut sent) = (Time::ZERO, 0);
    let mut rest = rest;
    while let Some(operation) = operation(&mut rest) {
        match operation {
            Operation::Wait(span) => now = run(&mut bridge, now, now + span, &mut sent),
            Operation::Frame(offload, frame) => bridge.receive(now, offload, frame),
        }
        assert!(bridge.status(now).memory_bytes <= MEMORY.0);
    }
    run(&mut bridge, now, Time::FAR_FUTURE, &mut sent);
    let status = bridge.status(now);
    assert_eq!(status.queued_packets, 0);
    assert_eq!(status.counts.arrived_packets, sent + status.counts.lost.all());
}

enum Operation<'a> {
    Wait(Span),
    Frame(Offload, &'a [u8]),
}

fn operation<'a>(input: &mut &'a [u8]) -> Option<Operation<'a>> {
    let mut take = |count: usize| {
        let (taken, rest) = input.split_at_checked(count)?;
        *input = rest;
        Some(taken)
    };
    let code = take(1)?[0];
    if code & 2 == 0 {
        return Some(Operation::Wait(Span::micros(50 * u64::from(take(1)?[0]))));
    }
    let header = if code & 1 == 0 { None } else { take(HEADER_LENGTH) };
    let header = header.and_then(|header| <[u8; HEADER_LENGTH]>::try_from(header).ok());
    let offload = header.and_then(Offload::read).unwrap_or_default();
    let length = usize::from(u16::from_be_bytes(take(2)?.try_into().ok()?));
    let length = length.min(input.len());
    let (frame, rest) = input.split_at(length);
    *input = rest;
    Some(Operation::Frame(offload, frame))
}

/// The input of [`fuzz_one`] by which these frames arrive as they are, 5 ms apart.
///
/// # Panics
/// When a frame is longer than 65 535 bytes.
#[must_use]
pub fn arrivals(discipline: u8, frames: &[&[u8]]) -> Vec<u8> {
    // A buffer of 8 packets, and 1 Mbit/s.
    let mut input = vec![discipline, 8, 7];
    for frame in frames {
        let length = u16::try_from(frame.len()).expect("frames are shorter");
        input.push(2);
        input.extend(length.to_be_bytes());
        input.extend(*frame);
        input.extend([0, 100]);
    }
    input
}

/// Sends what may leave until `end`; returns the time.
fn run(bridge: &mut Bridge, mut now: Time, end: Time, sent: &mut u64) -> Time {
    loop {
        match bridge.poll(now) {
            Turn::Send(number) => {
                assert!(bridge.whole(number).len() >= HEADER_LENGTH);
                bridge.release(number);
                *sent += 1;
            }
            Turn::Wait(Some(time)) if time <= end => now = time,
            Turn::Wait(Some(_)) => return end,
            Turn::Wait(None) => return if end == Time::FAR_FUTURE { now } else { end },
        }
    }
}

/// Reads `input` as what the kernel sends of a queue.
///
/// # Panics
/// When a packet is longer than what was read.
pub fn nfqueue(input: &[u8]) {
    let _ = nfqueue::parse(input, |message| {
        if let nfqueue::Message::Held(held) = message {
            assert!(held.payload.len() <= input.len());
            assert_eq!(held.is_whole(), held.payload.len() as u64 >= u64::from(held.length));
        }
    });
}
