//! A receiver beside that of aiortc 1.16.0, another program with the receiver that browsers
//! had (BSD 3-Clause).
//!
//! Both get the same packets of calls through six paths: a path with room, one that is too
//! slow, noise of up to 9 ms, steps, losses, and a call by fits and starts. `reference.py` computes
//! them and keeps what aiortc asks for, of all at most every one, of many some.
//!
//! The tolerance: each is asked at the same packet, and differs by no more than 1 bit/s, what the
//! rounding of floating-point numbers can be.

use serde_json::Value;
use tidegate_core::{Bytes, Time};
use tidegate_sim::gcc::Receiver;

/// The rate of a part, or `None` after the last.
fn part(parts: &Value, at_us: u64) -> Option<u64> {
    let mut left_us = at_us;
    for part in parts.as_array().expect("parts") {
        let length_us = part[0].as_u64().expect("seconds") * 1_000_000;
        if left_us < length_us {
            return part[1].as_u64();
        }
        left_us -= length_us;
    }
    None
}

/// What a receiver asks for on a path, with the times in microseconds.
fn asked(path: &Value) -> Vec<(u64, u64)> {
    let number_of = |name: &str| path[name].as_u64().expect("a number");
    let (noise_us, lost) = (number_of("noise_us"), number_of("lost"));
    let (mut receiver, mut asked) = (Receiver::default(), Vec::new());
    let (mut number, mut free_us, mut last_us) = (1_u32, 0, 0);
    for frame in 0.. {
        let mut at_us = frame * 1_000_000 / 30;
        let Some(kbits) = part(&path["sends"], at_us) else { break };
        let mut left = kbits * 1_000 / 8 / 30;
        while left > 0 {
            let size = left.min(1_200);
            left -= size;
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let rate = part(&path["rates"], at_us).expect("it lasts as long");
            free_us = at_us.max(free_us) + size * 8 * 1_000 / rate;
            let noise = if noise_us > 0 { u64::from(number >> 8) % noise_us } else { 0 };
            last_us = last_us.max(free_us + 20_000 + noise);
            if u64::from(number >> 4) % 1_000 >= lost {
                let [now, sent] = [last_us, at_us].map(|micros| Time(micros * 1_000));
                if let Some(rate) = receiver.arrived(now, sent, Bytes(size)) {
                    asked.push((last_us, rate.0));
                }
            }
            at_us += size * 8 * 1_000 / (kbits * 5 / 2);
        }
    }
    asked
}

#[test]
fn it_asks_for_what_another_receiver_asks_for() {
    let paths: Value = serde_json::from_str(include_str!("aiortc.json")).expect("it is JSON");
    for path in paths.as_array().expect("paths") {
        let asked = asked(path);
        let name = &path["path"];
        assert_eq!(Some(asked.len() as u64), path["count"].as_u64(), "{name}");
        let step = path["step"].as_u64().expect("a number") as usize;
        let expected = path["asked"].as_array().expect("pairs");
        for (own, other) in asked.iter().step_by(step).zip(expected) {
            let other = (other[0].as_u64().expect("a time"), other[1].as_u64().expect("a rate"));
            assert_eq!(own.0, other.0, "{name}");
            assert!(own.1.abs_diff(other.1) <= 1, "{name} at {} us: {own:?} {other:?}", own.0);
        }
    }
}
