//! A program for the kernel decides as `core` does: the same frames at the same times give
//! the same departures and losses, to the nanosecond.
//!
//! The sources of the programs are compiled for this machine, with a plain stand-in for the
//! kernel (`bpf/host/`), under the sanitizers of addresses and of undefined behaviour. This
//! takes a C compiler, as linking Rust does. What the kernel makes of the same programs is
//! tested where there is such a kernel (`kernel.rs`).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod frames;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use proptest::prelude::*;
use tidegate_core::entry::Place;
use tidegate_core::framing::Framing;
use tidegate_core::{Buffer, Bytes, Ecn, Egress, LossReason, Poll, Rate, Span, Time, registry};
use tidegate_link::Queue;
use tidegate_qdisc::layout::{STATISTICS, STATISTICS_WORDS, Statistics, contracts, parameters};
use tidegate_qdisc::programs::{PROGRAMS, Program, unsupported};

use frames::{Arrival, arrivals, bulk, datagrams, packet};

/// What happens to a frame: when, to the how-manieth, and whether it was sent or lost.
type Event = (Time, u64, bool);

/// What is done to a queue.
#[derive(Clone, Debug)]
enum Step {
    Arrive(Arrival),
    /// Another queue of the same discipline, so long after the step before.
    Change(Span, Queue),
}

/// The discipline compiled for this machine.
fn program(discipline: &str) -> PathBuf {
    static FOLDER: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
        let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bpf-on-host");
        std::fs::create_dir_all(&target).unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf/host/replay.c");
        for program in PROGRAMS {
            let compiled = Command::new("cc")
                .args(["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"])
                .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-function"])
                .args(["-Wno-unused-parameter", "-Wno-sign-compare"])
                .arg(format!("-DDISCIPLINE=\"../{}.bpf.c\"", program.discipline))
                .args([source, "-o"])
                .arg(target.join(program.discipline))
                .output()
                .expect("linking Rust takes a C compiler");
            let messages = String::from_utf8_lossy(&compiled.stderr);
            if !compiled.status.success() {
                return Err(format!("{}: {messages}", program.discipline));
            }
        }
        Ok(target)
    });
    match &*FOLDER {
        Ok(folder) => folder.join(discipline),
        Err(messages) => panic!("{messages}"),
    }
}

/// The compiler that made the objects: another one makes other bytes.
const COMPILER: &str = "clang version 19.1.7";

#[test]
fn the_objects_are_made_of_the_sources() {
    let version = Command::new("clang-19").arg("--version").output();
    let version = version.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
    if !version.is_ok_and(|it| it.contains(COMPILER)) {
        // Past the harness, which hides what a test that passes prints.
        writeln!(io::stderr(), "SKIP objects of BPF: the compiler is not {COMPILER}").unwrap();
        return;
    }
    let built = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bpf-objects");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/build-bpf.sh");
    let output = Command::new("sh").arg(script).arg(&built).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for Program { discipline, object, .. } in PROGRAMS {
        let fresh = std::fs::read(built.join(format!("{discipline}.o"))).unwrap();
        assert!(fresh == *object, "{discipline}: 'make bpf' makes another object");
    }
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// What the program for the kernel makes of it, on this machine.
fn through_the_program(queue: &Queue, steps: &[Step]) -> (Vec<Event>, Statistics) {
    let mut input = words(&parameters(queue, true));
    input.extend(words(&contracts(queue)));
    let mut now = Time::ZERO;
    for step in steps {
        match step {
            Step::Arrive(arrival) => {
                now += arrival.gap;
                input.extend(words(&[0, now.0, arrival.frame.len() as u64]));
                input.extend(&arrival.frame);
            }
            Step::Change(gap, queue) => {
                now += *gap;
                input.extend(words(&[1, now.0]));
                input.extend(words(&parameters(queue, true)));
            }
        }
    }
    let mut child = Command::new(program(queue.entry.name))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&input).unwrap();
    let output = child.wait_with_output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {} {messages}", queue.entry.name, output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut events = Vec::new();
    let mut counted = Vec::new();
    for line in text.lines() {
        let mut parts = line.split(' ');
        let kind = parts.next().unwrap();
        let numbers: Vec<u64> = parts.map(|part| part.parse().unwrap()).collect();
        match kind {
            "counted" => counted = numbers,
            // The reset at the end comes after the counting.
            _ => events.push((Time(numbers[0]), numbers[1], kind == "sent")),
        }
    }
    assert_eq!(counted.len(), STATISTICS_WORDS, "{} once", STATISTICS.len());
    (in_order(events), Statistics::new(counted).unwrap())
}

/// Losses of the same instant have no order.
fn in_order(mut events: Vec<Event>) -> Vec<Event> {
    for losses in
        events.chunk_by_mut(|(one, _, sent), (next, _, other)| one == next && !sent && !other)
    {
        losses.sort_unstable();
    }
    events
}

/// Why packets are lost, and where a program counts that.
const REASONS: [(LossReason, &str); 4] = [
    (LossReason::Refused, "refused_packets"),
    (LossReason::PushedOut, "pushed_out_packets"),
    (LossReason::Early, "early_packets"),
    (LossReason::Excess, "excess_packets"),
];

/// What `core` makes of it: also the packets that it lost, by [`REASONS`].
fn through_core(queue: &Queue, steps: &[Step]) -> (Vec<Event>, [u64; 4], usize) {
    let place = Place::from(queue.buffer()).at_rate(queue.rate);
    let mut egress = Egress::new((queue.entry.build)(&queue.settings, place, 7), queue.rate);
    let mut framing = queue.framing;
    let mut events = Vec::new();
    let until = |egress: &mut Egress, events: &mut Vec<Event>, from: Time, end: Time| {
        let mut now = from;
        loop {
            let poll = egress.poll(now);
            events.extend(egress.losses().iter().map(|it| (now, it.packet.handle, false)));
            match poll {
                Poll::Packet { packet, .. } => events.push((now, packet.handle, true)),
                Poll::ReadyAt(time) if time <= end => now = time,
                Poll::ReadyAt(_) | Poll::Idle => return,
            }
        }
    };
    let mut now = Time::ZERO;
    let mut number = 0;
    for step in steps {
        let next = match step {
            Step::Arrive(arrival) => now + arrival.gap,
            Step::Change(gap, _) => now + *gap,
        };
        until(&mut egress, &mut events, now, next);
        now = next;
        match step {
            Step::Arrive(arrival) => {
                let mut packet = packet(number, &arrival.frame);
                packet.size = framing.charge(packet.size);
                // A program cannot mark a packet, and drops it.
                packet.ecn = Ecn::NotEct;
                number += 1;
                egress.offer(now, packet);
                events.extend(egress.losses().iter().map(|it| (now, it.packet.handle, false)));
            }
            Step::Change(_, queue) => {
                egress.set_rate(queue.rate);
                egress.reconfigure(now, &queue.settings, queue.buffer());
                framing = queue.framing;
            }
        }
    }
    until(&mut egress, &mut events, now, Time::FAR_FUTURE);
    let counters = egress.port().counters();
    let lost = REASONS.map(|(reason, _)| counters.lost_as(reason));
    (in_order(events), lost, counters.flows_peak)
}

/// Parameters of any discipline: those that it has are taken.
#[derive(Clone, Debug)]
struct Knobs {
    limit: Buffer,
    rate: Rate,
    framing: &'static str,
    parameters: [(&'static str, String); 8],
}

/// Promises to the flows of [`arrivals`], of all kinds.
fn flows() -> impl Strategy<Value = String> {
    let selector = prop_oneof![
        Just("udp"),
        Just("tcp and port 1"),
        Just("port 2"),
        Just("port 3 and to 198.51.100.1"),
        Just("from 2001:db8::1"),
        Just("class 0 and protocol 132"),
        Just("class 1"),
    ];
    let term = || {
        prop_oneof![
            (1_500..9_000_u32, 10_000..150_000_u32)
                .prop_map(|(burst, rate)| format!("{burst} B + {rate} bit/s")),
            (1_500..6_000_u32, 100_000..400_000_u32)
                .prop_map(|(size, period)| format!("{size} B every {period} us")),
        ]
    };
    let service = prop_oneof![
        2 => (prop::collection::vec(term(), 1..3), 20..400_u32)
            .prop_map(|(terms, deadline)| format!("{} within {deadline} ms", terms.join(", "))),
        1 => (1..9_u32).prop_map(|weight| format!("weight {weight}")),
    ];
    let link = prop_oneof![Just("1 Mbit/s"), Just("17000001 bit/s"), Just("1 Gbit/s")];
    let all = (link, prop::collection::vec((selector, service), 1..5)).prop_map(|(link, flows)| {
        let named = flows.iter().enumerate();
        let flows =
            named.map(|(number, (which, service))| format!("; f{number} = {which}: {service}"));
        format!("link {link}; packets to 1500 B{}", flows.collect::<String>())
    });
    // Promises that cannot be kept have no queue.
    all.prop_filter("a promise that can be kept", |flows| can_be_kept(flows))
}

/// Whether these promises have a queue.
fn can_be_kept(flows: &str) -> bool {
    let entry = registry::find("deadlines").unwrap();
    entry
        .settings(&[("flows", flows)])
        .is_ok_and(|settings| unsupported("deadlines", &settings).is_none())
}

/// Promises to the ports of [`frames::datagrams`] on a link of this rate.
fn promises(megabits: u64) -> impl Strategy<Value = String> {
    let term = move || {
        prop_oneof![
            (1_500..20_000_u32, 20..300_u64)
                .prop_map(move |(burst, rate)| format!("{burst} B + {} kbit/s", rate * megabits)),
            (1_500..20_000_u32, 10..60_u64).prop_map(move |(size, part)| {
                // Each of them takes part of 256 of the link.
                let period = u64::from(size) * 8 * 256 * 1_000 / (megabits * part);
                format!("{size} B every {period} ns")
            }),
        ]
    };
    let service = prop_oneof![
        3 => (prop::collection::vec(term(), 1..4), 1..100_u32).prop_map(move |(terms, part)| {
            let within = 20_000_u64 / megabits * u64::from(part) + 100_000 / megabits;
            format!("{} within {within} us", terms.join(", "))
        }),
        1 => (1..9_u32).prop_map(|weight| format!("weight {weight}")),
    ];
    let flows = prop::collection::vec((0..4_u8, service), 1..4).prop_map(move |flows| {
        let named = flows.iter().enumerate();
        let flows =
            named.map(|(number, (port, service))| format!("; f{number} = port {port}: {service}"));
        format!("link {megabits} Mbit/s; packets to 1500 B{}", flows.collect::<String>())
    });
    flows.prop_filter("a promise that can be kept", |flows| can_be_kept(flows))
}

fn knobs() -> impl Strategy<Value = Knobs> {
    let limit = prop_oneof![
        2 => (1..40_u32).prop_map(Buffer::packets),
        1 => (100..30_000_u64).prop_map(|bytes| Buffer::bytes(Bytes(bytes))),
    ];
    let rate =
        prop_oneof![Just(64_000_u64), Just(1_000_000), Just(17_000_001), Just(1_000_000_000)];
    let framing =
        prop_oneof![Just("raw"), Just("ethernet"), Just("pppoe-ptm"), Just("bridged-llcsnap")];
    let threshold = prop_oneof![
        (0..8_u32).prop_map(|packets| format!("{packets} packets")),
        (0..9_000_u32).prop_map(|bytes| format!("{bytes} B")),
    ];
    let span = || prop_oneof![Just("1 ms"), Just("70 ms"), Just("1 s"), Just("1 h")];
    let excess = prop_oneof![Just("demote"), Just("drop")];
    let assignment = prop_oneof![4 => Just("bounded"), 1 => Just("idle")];
    let credit = prop_oneof![Just(0), 0..9_000_u64, Just(30_280), Just(300_000)];
    let spans = [span(), span(), span()];
    (limit, rate, framing, threshold, spans, flows(), (excess, assignment), credit).prop_map(
        |(
            limit,
            rate,
            framing,
            threshold,
            [sweep, idle, half_life],
            flows,
            (excess, assignment),
            credit,
        )| Knobs {
            limit,
            rate: Rate(rate),
            framing,
            parameters: [
                ("threshold", threshold),
                ("sweep", sweep.into()),
                ("idle", idle.into()),
                ("half_life", half_life.into()),
                ("flows", flows),
                ("excess", excess.into()),
                ("assignment", assignment.into()),
                ("credit", format!("{credit} B")),
            ],
        },
    )
}

impl Knobs {
    fn queue(&self, discipline: &str) -> Queue {
        let entry = registry::find(discipline).unwrap();
        let has = |name: &str| entry.parameters.iter().any(|parameter| parameter.name == name);
        let mut given: Vec<(&str, &str)> = Vec::new();
        for (name, value) in &self.parameters {
            // Run2C counts bytes only.
            let is_one = *name != "threshold" || discipline == "efd" || value.ends_with('B');
            if has(name) && is_one {
                given.push((name, value));
            }
        }
        Queue {
            entry,
            settings: entry.settings(&given).unwrap(),
            limit: self.limit.into(),
            rate: self.rate,
            framing: self.framing.parse::<Framing>().unwrap(),
        }
    }
}

fn compare(queue: &Queue, steps: &[Step]) -> Result<(), TestCaseError> {
    let name = queue.entry.name;
    let (found, counted) = through_the_program(queue, steps);
    let (expected, lost, flows_peak) = through_core(queue, steps);
    let first = found.iter().zip(&expected).position(|(found, expected)| found != expected);
    let from = first.unwrap_or(found.len().min(expected.len()));
    prop_assert_eq!(found.get(from..), expected.get(from..), "{}: from event {} on", name, from);
    let of_program = REASONS.map(|(_, word)| counted.word(word));
    prop_assert_eq!(of_program, lost, "{}", name);
    let arrived = steps.iter().filter(|step| matches!(step, Step::Arrive(_))).count() as u64;
    prop_assert_eq!(counted.word("arrived_packets"), arrived);
    prop_assert_eq!(counted.word("sent_packets"), arrived - lost.iter().sum::<u64>());
    prop_assert_eq!(counted.word("queued_packets"), 0);
    prop_assert_eq!(counted.word("no_memory_packets"), 0);
    // What is remembered past its last packet is forgotten when it comes again.
    if !queue.entry.parameters.iter().any(|parameter| parameter.name == "idle") {
        prop_assert_eq!(counted.word("flows_peak"), flows_peak as u64, "{}", name);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_program_decides_as_core_does(arrivals in arrivals(), knobs in knobs()) {
        let steps: Vec<_> = arrivals.into_iter().map(Step::Arrive).collect();
        for program in PROGRAMS {
            compare(&knobs.queue(program.discipline), &steps)?;
        }
    }

    /// Close to the capacity, with several promises that are kept, and some that are not.
    #[test]
    fn promises_are_kept_as_core_keeps_them(
        (megabits, arrivals, flows) in (1..60_u64, 60..140_u64).prop_flat_map(|(megabits, load)| {
            let rate = megabits * 1_000_000;
            (Just(megabits), datagrams(rate, load), promises(megabits))
        }),
        limit in prop_oneof![1 => 2..60_u32, 1 => 100..400_u32],
        excess in prop_oneof![Just("demote"), Just("drop")],
    ) {
        let entry = registry::find("deadlines").unwrap();
        let queue = Queue {
            entry,
            settings: entry.settings(&[("flows", &flows), ("excess", excess)]).unwrap(),
            limit: Buffer::packets(limit).into(),
            rate: Rate(megabits * 1_000_000),
            framing: Framing::RAW,
        };
        let steps: Vec<_> = arrivals.into_iter().map(Step::Arrive).collect();
        compare(&queue, &steps)?;
    }

    /// Queues that stand for seconds, so that CoDel acts; flows that come and go beside them;
    /// credits and buffers that change.
    #[test]
    fn tide_shares_as_core_shares(
        (megabits, arrivals) in (1..20_u64, 60..160_u64).prop_flat_map(|(megabits, load)| {
            (Just(megabits), bulk(megabits * 1_000_000, load))
        }),
        queues in prop::collection::vec((
            prop_oneof![1 => Just(0), 2 => 1..400_u64, 3 => 400..9_000_u64, 1 => Just(30_280)],
            prop_oneof![1 => 2..20_u32, 2 => 60..400_u32],
            0..30_000_000_u64,
            any::<prop::sample::Index>(),
        ), 1..4),
    ) {
        let entry = registry::find("tide").unwrap();
        let queue = |credit: u64, packets: u32| Queue {
            entry,
            settings: entry.settings(&[("credit", &format!("{credit} B"))]).unwrap(),
            limit: Buffer::packets(packets).into(),
            rate: Rate(megabits * 1_000_000),
            framing: Framing::RAW,
        };
        let mut steps: Vec<_> = arrivals.into_iter().map(Step::Arrive).collect();
        for (credit, packets, gap, place) in &queues[1..] {
            let step = Step::Change(Span(*gap), queue(*credit, *packets));
            steps.insert(place.index(steps.len()), step);
        }
        compare(&queue(queues[0].0, queues[0].1), &steps)?;
    }

    #[test]
    fn every_program_takes_another_buffer_rate_and_framing_as_core_does(
        arrivals in arrivals(),
        knobs in prop::collection::vec((knobs(), 0..30_000_000_u64, any::<prop::sample::Index>()), 2..5),
    ) {
        for program in PROGRAMS {
            let same = &knobs[0].0.parameters;
            let steps = changing(&arrivals, &knobs[1..], |other| {
                Knobs { parameters: same.clone(), ..other }.queue(program.discipline)
            });
            compare(&knobs[0].0.queue(program.discipline), &steps)?;
        }
    }

    /// What `core` knows at the time of a change, a program learns with its next packet: they
    /// may differ in what they remember of flows, and in nothing that matters.
    #[test]
    fn other_parameters_lose_nothing_and_keep_the_order_of_each_flow(
        arrivals in arrivals(),
        knobs in prop::collection::vec((knobs(), 0..30_000_000_u64, any::<prop::sample::Index>()), 2..5),
    ) {
        for program in PROGRAMS {
            let steps =
                changing(&arrivals, &knobs[1..], |other| other.queue(program.discipline));
            let (events, _) =
                through_the_program(&knobs[0].0.queue(program.discipline), &steps);
            let mut seen: Vec<u64> = events.iter().map(|(_, number, _)| *number).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..arrivals.len() as u64).collect::<Vec<_>>());
            let mut last = BTreeMap::new();
            for (_, number, _) in events.iter().filter(|(.., is_sent)| *is_sent) {
                let flow = packet(*number, &arrivals[*number as usize].frame).flow;
                let before = last.insert(flow, *number);
                prop_assert!(before < Some(*number), "{}: {flow}", program.discipline);
            }
        }
    }
}

/// Arrivals, with changes somewhere between them.
fn changing(
    arrivals: &[Arrival],
    changes: &[(Knobs, u64, prop::sample::Index)],
    queue: impl Fn(Knobs) -> Queue,
) -> Vec<Step> {
    let mut steps: Vec<_> = arrivals.iter().cloned().map(Step::Arrive).collect();
    for (knobs, gap, place) in changes {
        let step = Step::Change(Span(*gap), queue(knobs.clone()));
        steps.insert(place.index(steps.len()), step);
    }
    steps
}
