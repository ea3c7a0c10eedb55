//! Senders who want more than their share, and who know how a discipline decides.
//!
//! Beside a sender of more than the link's rate, an honest flow sends 40% of it and a call 1%.
//! The sender plays one game after the other; what each flow gets is printed, and has to be
//! what `core` makes of the same frames at the times at which they came to the kernel. Some
//! games pay, as the disciplines say: what is asserted is what they promise.

use std::time::Duration;

use tidegate_core::framing::Framing;
use tidegate_core::{Buffer, Rate, registry};
use tidegate_link::Queue;

use crate::life::{MOST_FLOWS, Traces, assert_nothing_vanished, lost};
use crate::line::{Due, Line, Played, through_core};

/// At this rate a packet of [`FULL`] bytes takes a millisecond.
const RATE: Rate = Rate(8_000_000);
const FULL: usize = 1_000;
/// A tenth of a second.
const BUFFER: u32 = 100;
const LASTS: Duration = Duration::from_millis(1_200);
/// The hostile sender begins when the others are on their way.
const BEGINS: Duration = Duration::from_millis(200);
const HALF_LIFE: Duration = Duration::from_millis(500);
/// Packets of EFD's threshold.
const THRESHOLD: u64 = 20;
const CALL_PORT: u16 = 5_060;
const PROMISES: &str = "link 8 Mbit/s; packets to 1500 B; \
    calls = udp and port 5060: 400 B + 88 kbit/s within 20 ms";
const PROMISED_MS: f64 = 20.0;
/// What the kernel's timers and this program's threads may add to a delay.
const LATE_MS: f64 = 1.0;

/// By how much the share of a flow's packets that get through may differ from `core`'s. A full
/// buffer has room for whoever comes next, and the kernel's timer is some microseconds late: of
/// the few packets of a call, more meet another one there.
const TOLERANCE: f64 = 0.03;
const TOLERANCE_OF_CALL: f64 = 0.15;
/// The same of the median delay of the call, if it is not a twentieth.
const TOLERANCE_MS: f64 = 1.0;

#[derive(Clone, Copy, PartialEq)]
enum Who {
    Call,
    Honest,
    Hostile,
}

/// How to have more than one's share.
struct Game {
    name: &'static str,
    /// The sender's frames: after the one before, and without their numbers.
    frames: fn(u64) -> (Duration, Vec<u8>),
    /// Where it is the same as another one.
    only: Option<&'static str>,
}

/// More than the rate by a fifth.
const EXCESS: Duration = Duration::from_nanos(833_333);
/// The same of frames with 200 bytes behind the header of Ethernet.
const EXCESS_OF_SMALL: Duration = Duration::from_nanos(166_667);
const SMALL: usize = 200;

const GAMES: [Game; 7] = [
    Game { name: "one flow", frames: |_| (EXCESS, datagram(66, 6_000, FULL)), only: None },
    Game {
        name: "64 ports",
        frames: |number| (EXCESS, datagram(66, 6_000 + (number % 64) as u16, FULL)),
        only: None,
    },
    Game {
        // As much as stays high, again when all that has left: 90% of the rate.
        name: "bursts of the threshold",
        frames: |number| {
            let gap = if number % THRESHOLD == 0 { 22_222_222 } else { 0 };
            (Duration::from_nanos(gap), datagram(66, 6_000, FULL))
        },
        only: None,
    },
    Game {
        // The same from one port after the other, so that each has a pause: a fifth more than
        // the rate, none of which has attained more service than the threshold.
        name: "such bursts from 4 ports in turn",
        frames: |number| {
            let port = 6_000 + (number / THRESHOLD % 4) as u16;
            let gap = if number % THRESHOLD == 0 { 16_666_667 } else { 0 };
            (Duration::from_nanos(gap), datagram(66, port, FULL))
        },
        only: None,
    },
    Game {
        name: "a port for each packet",
        frames: |number| (EXCESS, datagram(66, 6_000 + number as u16, FULL)),
        only: None,
    },
    Game {
        name: "frames that are no IP",
        frames: |number| (EXCESS_OF_SMALL, odd(number)),
        only: None,
    },
    Game {
        // From another address, so as a flow of its own with the call's port.
        name: "the call's port",
        frames: |_| (EXCESS, datagram(66, CALL_PORT, FULL)),
        only: Some("deadlines"),
    },
];

fn ethernet(ether_type: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    frame.extend(ether_type.to_be_bytes());
    frame
}

/// A datagram from this host and port, with so many bytes of IP.
fn datagram(host: u8, port: u16, size: usize) -> Vec<u8> {
    let mut frame = ethernet(0x0800);
    frame.extend([0x45, 0]);
    frame.extend((size as u16).to_be_bytes());
    frame.extend([0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, host, 198, 51, 100, 1]);
    frame.extend(port.to_be_bytes());
    frame.extend([0, 80]);
    frame.extend((size as u16 - 20).to_be_bytes());
    frame.resize(14 + size, 0);
    frame
}

/// What says that it is IP and contradicts itself, and what does not say so.
fn odd(number: u64) -> Vec<u8> {
    let (ether_type, first): (u16, &[u8]) = match number % 6 {
        // A header of twelve bytes.
        0 => (0x0800, &[0x43, 0, 0, 200]),
        // Longer than it is.
        1 => (0x0800, &[0x45, 0, 0xff, 0xff]),
        // Neither 4 nor 6.
        2 => (0x0800, &[0xf5, 0, 0, 200]),
        // Longer than it is.
        3 => (0x86dd, &[0x60, 0, 0, 0, 0xff, 0xff, 17, 64]),
        // ARP, and an EtherType for experiments.
        4 => (0x0806, &[]),
        _ => (0x88b5, &[]),
    };
    let mut frame = ethernet(ether_type);
    frame.extend(first);
    frame.resize(14 + SMALL, 0);
    frame
}

/// All frames of a game in their order, and whose they are.
fn schedule(game: &Game) -> Vec<(Who, Due)> {
    let every = |gap: Duration, who: Who, frame: Vec<u8>| {
        let count = (LASTS.as_nanos() / gap.as_nanos()) as u32;
        (0..count).map(move |number| (who, Due { at: gap * number, frame: frame.clone() }))
    };
    let call = every(Duration::from_millis(20), Who::Call, datagram(1, CALL_PORT, 200));
    let honest = every(Duration::from_micros(2_500), Who::Honest, datagram(2, 2_000, FULL));
    let mut all: Vec<_> = call.chain(honest).collect();
    let mut at = BEGINS;
    for number in 0.. {
        let (gap, frame) = (game.frames)(number);
        at += gap;
        if at > LASTS {
            break;
        }
        all.push((Who::Hostile, Due { at, frame }));
    }
    all.sort_by_key(|(_, due)| due.at);
    for (number, (_, Due { frame, .. })) in all.iter_mut().enumerate() {
        *frame.last_chunk_mut().unwrap() = (number as u64).to_be_bytes();
    }
    all
}

/// What a flow got.
struct Got {
    offered: usize,
    through: usize,
    /// Delays, in order.
    ms: Vec<f64>,
    /// The longest time without a packet, from its first to its last.
    silence_ms: f64,
}

impl Got {
    fn of(who: Who, owners: &[Who], came: &[Duration], left: &[Option<Duration>]) -> Got {
        let own: Vec<usize> = (0..owners.len()).filter(|at| owners[*at] == who).collect();
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let mut times: Vec<Duration> = own.iter().filter_map(|at| left[*at]).collect();
        times.sort_unstable();
        let mut delays: Vec<f64> =
            own.iter().filter_map(|at| Some(ms(left[*at]? - came[*at]))).collect();
        delays.sort_by(f64::total_cmp);
        let pauses = times.windows(2).map(|pair| ms(pair[1] - pair[0]));
        Got {
            offered: own.len(),
            through: times.len(),
            ms: delays,
            silence_ms: pauses.fold(0.0, f64::max),
        }
    }

    fn share(&self) -> f64 {
        self.through as f64 / self.offered as f64
    }

    fn median_ms(&self) -> f64 {
        self.ms.get(self.ms.len() / 2).copied().unwrap_or(0.0)
    }

    fn worst_ms(&self) -> f64 {
        self.ms.last().copied().unwrap_or(0.0)
    }
}

fn queue(discipline: &str) -> Queue {
    let entry = registry::find(discipline).unwrap();
    let half_life = format!("{} ms", HALF_LIFE.as_millis());
    let given: &[(&str, &str)] = match discipline {
        "lars" => &[("half_life", &half_life)],
        "deadlines" => &[("flows", PROMISES)],
        _ => &[],
    };
    Queue {
        entry,
        settings: entry.settings(given).unwrap(),
        limit: Buffer::packets(BUFFER).into(),
        rate: RATE,
        framing: Framing::RAW,
    }
}

/// What the design states, whatever the sender does.
fn assert_bounds(of: &str, queue: &Queue, game: &Game, owners: &[Who], played: &Played) {
    let statistics = &played.statistics;
    let word = |name| statistics.word(name);
    let count = |who| owners.iter().filter(|owner| **owner == who).count() as u64;
    assert_nothing_vanished(statistics, of);
    assert_eq!(word("arrived_packets"), owners.len() as u64, "{of}");
    let left = played.left.iter().flatten().count() as u64;
    assert_eq!(
        [word("sent_packets"), lost(statistics)],
        [left, owners.len() as u64 - left],
        "{of}"
    );
    let odd = if game.name == "frames that are no IP" { count(Who::Hostile) } else { 0 };
    assert_eq!(word("malformed_frames") + word("other_frames"), odd, "{of}");
    assert_eq!(word("no_memory_packets"), 0, "{of}");
    // A real-time packet may be one more.
    let most = u64::from(BUFFER) + 1;
    assert!(played.most_queued <= most, "{of}: {} packets queued", played.most_queued);
    // Flows that are known while they have packets queued, or no more than the buffer has room
    // for, and those of a flood.
    let is_short = ["efd", "scfq", "deadlines", "tide"].contains(&queue.entry.name);
    let most_flows = if is_short { most } else { MOST_FLOWS };
    assert!(word("flows_peak") <= most_flows, "{of}: {statistics:?}");

    let got = |who| Got::of(who, owners, &played.came, &played.left);
    match queue.entry.name {
        "lars" if game.name == "one flow" => {
            let most = HALF_LIFE.as_secs_f64() * 1e3 + 4.0 + LATE_MS;
            let silence = got(Who::Honest).silence_ms;
            assert!(silence < most, "{of}: {silence} ms");
        }
        "deadlines" if game.name != "the call's port" => {
            let call = got(Who::Call);
            assert_eq!(call.through, call.offered, "{of}");
            assert!(call.worst_ms() < PROMISED_MS + LATE_MS, "{of}: {} ms", call.worst_ms());
        }
        _ => {}
    }
}

/// A flow gets in the kernel what it gets by `core`.
fn assert_close(of: &str, [found, expected]: &[Got; 2], tolerance: f64) {
    let [live, core] = [found, expected].map(Got::share);
    assert!((live - core).abs() <= tolerance, "{of}: {live} got through, {core} by core");
}

#[test]
fn hostile_senders_gain_what_core_says_and_break_no_bound() {
    let Some(line) = Line::new("hostile_senders_gain_what_core_says_and_break_no_bound") else {
        return;
    };
    println!("in parentheses, what core makes of the same frames");
    println!(
        "| discipline | game | hostile % | honest % | honest, longest silence ms | call % | \
         call, median ms | call, worst ms | flows |"
    );
    println!("| --- | --- {}|", "| ---: ".repeat(7));
    let mut traces = None;
    for discipline in ["efd", "lars", "las", "deadlines", "scfq", "run2c", "tide"] {
        // The first one loads what the kernel keeps.
        if discipline == "lars" {
            traces = Some(Traces::begin());
        }
        let queue = queue(discipline);
        let games = GAMES.iter().filter(|game| game.only.is_none_or(|only| only == discipline));
        for game in games {
            let (owners, due): (Vec<Who>, Vec<Due>) = schedule(game).into_iter().unzip();
            let played = line.play(&queue, &due);
            let expected = through_core(&queue, &due, &played.came);
            let both = |who| {
                [&played.left, &expected].map(|left| Got::of(who, &owners, &played.came, left))
            };
            let [call, honest, hostile] = [Who::Call, Who::Honest, Who::Hostile].map(both);
            let cell = |[live, core]: &[Got; 2], of: fn(&Got) -> f64| {
                format!("{:.1} ({:.1})", of(live), of(core))
            };
            let percent = |got: &Got| 100.0 * got.share();
            println!(
                "| {discipline} | {} | {} | {} | {} | {} | {} | {} | {} |",
                game.name,
                cell(&hostile, percent),
                cell(&honest, percent),
                cell(&honest, |got| got.silence_ms),
                cell(&call, percent),
                cell(&call, Got::median_ms),
                cell(&call, Got::worst_ms),
                played.statistics.word("flows_peak"),
            );
            let of = format!("{discipline}, {}", game.name);
            assert_bounds(&of, &queue, game, &owners, &played);
            assert_close(&of, &call, TOLERANCE_OF_CALL);
            for got in [&honest, &hostile] {
                assert_close(&of, got, TOLERANCE);
            }
            let [live, core] = call.each_ref().map(Got::median_ms);
            let most = TOLERANCE_MS.max(core / 20.0);
            assert!((live - core).abs() <= most, "{of}: {live} ms, {core} ms by core");
        }
    }
    traces.unwrap().are_gone("hostile senders");
}
