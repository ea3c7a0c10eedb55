//! What `deadlines` is told before it is loaded: words of 64 bits, in the order of
//! `bpf/promises.h`.
//!
//! The kernel has room for so many promises, terms and pieces, and no more; what has no room
//! is refused here, with what there is room for. What a promise is about is turned into
//! what a program can compare, and what the promises leave of the link into straight pieces,
//! so that the program finds the same deadlines as the library does.

use std::net::IpAddr;

use tidegate_core::assignment::{Bounded, StraightPiece};
use tidegate_core::contract::{Contracts, Selector, Service, Term};
use tidegate_core::curve::PER_BYTE;
use tidegate_core::residual::{Residual, SMALLEST_PACKET};
use tidegate_core::setting::Settings;

/// What the program has room for: the numbers of `bpf/promises.h` and `bpf/assignment.h`.
const MOST_PROMISES: usize = 32;
const MOST_TERMS: usize = 4;
const MOST_STAIRCASES: usize = 8;
const MOST_PIECES: usize = 128;
const MOST_MARKS: u64 = 2_048;
const MOST_POINTS: u64 = 65_536;

/// The least that is known of packets which the kernel's program can tell apart.
const PROMISE_WORDS: usize = 10 + 3 * MOST_TERMS;

/// The words of all promises; else the parameter that has no room, and what has.
pub(crate) fn words(settings: &Settings) -> Result<Vec<u64>, (&'static str, String)> {
    let refused = |expected: String| ("flows", expected);
    let contracts = settings.contracts("flows");
    let only_when_idle = match settings.choice("assignment") {
        "idle" => true,
        "bounded" => false,
        _ => return Err(("assignment", "'bounded' or 'idle'".into())),
    };
    let residual = Residual::new(&contracts).expect("settings were checked");
    let bounded = Bounded::new(residual.effective());
    let pieces: Vec<StraightPiece> = bounded.pieces().collect();
    let tail = bounded.last_piece();
    if pieces.len() > MOST_PIECES {
        let expected = format!("promises that leave at most {MOST_PIECES} straight pieces");
        return Err(refused(expected));
    }
    let most_points = pieces.last().map_or(0, |piece| piece.most) / SMALLEST_PACKET.0;
    if most_points > MOST_POINTS {
        let expected = "deadlines within which the link sends at most 2.6 MB";
        return Err(refused(expected.into()));
    }
    let word = |value: i128| {
        let expected = || refused("promises that leave at most 2 GB at once".into());
        u64::try_from(value).map_err(|_| expected())
    };
    let piece = |piece: &StraightPiece| -> Result<[u64; 4], _> {
        Ok([piece.start, word(piece.value)?, word(piece.slope)?, piece.most])
    };
    let promises = promises(&contracts).map_err(refused)?;
    let mut words =
        vec![contracts.largest_packet.0, only_when_idle.into(), word(bounded.steepest())?];
    words.extend(piece(&tail)?);
    words.extend([promises.len() as u64, pieces.len() as u64]);
    let of_promises = words.len();
    words.extend(promises.concat());
    words.resize(of_promises + MOST_PROMISES * PROMISE_WORDS, 0);
    for one in &pieces {
        words.extend(piece(one)?);
    }
    words.resize(of_promises + MOST_PROMISES * PROMISE_WORDS + MOST_PIECES * 4, 0);
    Ok(words)
}

/// The words of each promise that a packet can be about; else what there is room for.
fn promises(contracts: &Contracts) -> Result<Vec<[u64; PROMISE_WORDS]>, String> {
    let mut staircases = 0;
    let mut promises = Vec::new();
    for flow in &contracts.flows {
        // Packets off the wire are of class 0.
        if flow.selector.class.is_some_and(|class| class != 0) {
            continue;
        }
        let mut words = [0; PROMISE_WORDS];
        words[..7].copy_from_slice(&selector(&flow.selector));
        match &flow.service {
            Service::BestEffort { weight } => words[8] = u64::from(*weight),
            Service::RealTime { envelope, deadline } => {
                words[7] = deadline.0;
                let terms = envelope.terms();
                if terms.len() > MOST_TERMS {
                    return Err(format!("at most {MOST_TERMS} terms for a flow"));
                }
                words[9] = terms.len() as u64;
                for (term, words) in terms.iter().zip(words[10..].chunks_exact_mut(3)) {
                    words.copy_from_slice(&self::term(term, &mut staircases)?);
                }
            }
        }
        promises.push(words);
    }
    if promises.len() > MOST_PROMISES {
        return Err(format!("at most {MOST_PROMISES} flows"));
    }
    Ok(promises)
}

/// What a packet has to have: a set of bits, and the values, as frames have them.
fn selector(selector: &Selector) -> [u64; 7] {
    let Selector { class: _, protocol, port, source, destination } = selector;
    let bit = |number: u32, is_set: bool| u64::from(is_set) << number;
    let has = bit(0, protocol.is_some())
        | bit(1, port.is_some())
        | bit(2, source.is_some())
        | bit(3, destination.is_some());
    let [s0, s1] = source.map_or([0; 2], address);
    let [d0, d1] = destination.map_or([0; 2], address);
    let number = |value: Option<u64>| value.unwrap_or(0);
    [has, number(protocol.map(Into::into)), number(port.map(Into::into)), s0, s1, d0, d1]
}

/// An address as a flow's key has it: its bytes in the order of the wire.
fn address(address: IpAddr) -> [u64; 2] {
    let bytes = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    };
    let (words, _) = bytes.as_chunks::<8>();
    [u64::from_ne_bytes(words[0]), u64::from_ne_bytes(words[1])]
}

fn term(term: &Term, staircases: &mut u64) -> Result<[u64; 3], String> {
    match *term {
        Term::TokenBucket { burst, rate } => {
            let size = i128::from(burst.0) * PER_BYTE;
            let size = u64::try_from(size).map_err(|_| "bursts of at most 2 GB".to_string())?;
            Ok([0, size, rate.0])
        }
        Term::Staircase { size, period } => {
            let most = MOST_MARKS * SMALLEST_PACKET.0;
            if size.0 > most {
                return Err(format!("steps of at most {most} B"));
            }
            *staircases += 1;
            if *staircases > MOST_STAIRCASES as u64 {
                return Err(format!("at most {MOST_STAIRCASES} terms with steps"));
            }
            Ok([*staircases, size.0, period.0])
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::registry;

    use super::*;

    fn words_of(given: &[(&str, &str)]) -> Result<Vec<u64>, (&'static str, String)> {
        let entry = registry::find("deadlines").expect("it is registered");
        words(&entry.settings(given).expect("the settings are right"))
    }

    #[test]
    fn promises_become_words_of_a_fixed_number() {
        let flows = "link 10 Mbit/s; packets to 1500 B; \
            voice = udp and port 5004: 400 B + 88 kbit/s, 300 B every 20 ms within 10 ms; \
            nobody = class 3: 1500 B + 1 Mbit/s within 30 ms; \
            web = tcp and from 192.0.2.1: weight 4";
        let given = [("flows", flows)];
        let words = words_of(&given).expect("there is room");
        assert_eq!(words.len(), 9 + MOST_PROMISES * PROMISE_WORDS + MOST_PIECES * 4);
        assert_eq!(words[..2], [1_500, 0]);
        // The class is of no packet, so two are left.
        assert_eq!(words[7], 2);
        let voice = &words[9..9 + PROMISE_WORDS];
        assert_eq!(voice[..3], [3, 17, 5_004]);
        assert_eq!(voice[7..10], [10_000_000, 0, 2]);
        assert_eq!(voice[10..16], [0, 400 * 8_000_000_000, 88_000, 1, 300, 20_000_000]);
        let web = &words[9 + PROMISE_WORDS..9 + 2 * PROMISE_WORDS];
        assert_eq!(web[..2], [5, 6]);
        assert_eq!(web[4].to_ne_bytes(), [0, 0, 0xff, 0xff, 192, 0, 2, 1]);
        assert_eq!(web[7..9], [0, 4]);
    }

    #[test]
    fn what_has_no_room_is_refused_with_what_has() {
        let refused = |given: &[(&str, &str)]| words_of(given).expect_err("there is no room").1;
        assert_eq!(refused(&[("assignment", "tight")]), "'bounded' or 'idle'");
        let many = |flow: &dyn Fn(usize) -> String, count: usize| {
            let flows: Vec<String> = (0..count).map(flow).collect();
            format!("link 10 Mbit/s; packets to 1500 B; {}", flows.join("; "))
        };
        let weights = many(&|number| format!("f{number} = port {number}: weight 1"), 33);
        assert_eq!(refused(&[("flows", &weights)]), "at most 32 flows");
        let steps =
            many(&|number| format!("f{number} = port {number}: 300 B every 20 ms within 30 ms"), 9);
        assert_eq!(refused(&[("flows", &steps)]), "at most 8 terms with steps");
        let far = "link 1 Gbit/s; packets to 1500 B; f = port 1: 1500 B + 1 Mbit/s within 30 ms";
        let expected = "deadlines within which the link sends at most 2.6 MB";
        assert_eq!(refused(&[("flows", far)]), expected);
        let large = "link 10 Mbit/s; packets to 1500 B; f = port 1: 90 kB every 1 s within 90 ms";
        assert_eq!(refused(&[("flows", large)]), "steps of at most 81920 B");
    }
}
