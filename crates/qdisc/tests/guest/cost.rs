//! What a packet costs in each qdisc, in instructions of the processor: ours beside the
//! kernel's own.
//!
//! The guest's clock counts instructions, one to a nanosecond, so that a time here is a
//! number of instructions, which does not depend on what else the machine does. It says
//! nothing of caches and of branches that are guessed wrong.
//!
//! Each qdisc sends frames of 64 bytes into a device where they vanish, in two ways. *Open*:
//! every packet leaves at once. *Backlog*: two large packets, of which the second has to wait
//! for the first, close the shaper; small ones come in behind them; then the rate is opened,
//! and all leave together. What sending takes then is the cost of coming in, with an attempt
//! to send that fails; what a program that only looks at the clock misses is the cost of
//! leaving. A qdisc of the kernel that cannot shape stands behind `tbf` there. From *open* and
//! from the sum of both, the cost of the same device without a queue is taken away.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use tidegate_core::Rate;
use tidegate_qdisc::Qdisc;
use tidegate_qdisc::programs::{PROGRAMS, Program};

use crate::device::{Device, Sender, queue};

/// Payload of a frame of 64 bytes, and of one of 1514.
const SMALL: usize = 22;
const LARGE: usize = 1_472;
/// Packets that are sent through an open queue, for each round.
const OPEN_PACKETS: u64 = 2_000;
/// Packets that are queued, for each round.
const BACKLOG: u64 = 300;
/// Rounds; the median counts.
const ROUNDS: usize = 7;
/// At this rate a large packet keeps the next one waiting for 8 ms.
const HELD: Rate = Rate(1_500_000);
const OPEN: Rate = Rate(100_000_000_000);
/// Longer than that wait, with what leaves after it.
const WATCHED: Duration = Duration::from_millis(14);
/// A look at the clock takes less.
const INTERRUPTED: Duration = Duration::from_micros(2);
const FLOWS: [u16; 3] = [1, 16, 256];

enum Kind {
    Ours(&'static Program),
    /// How `tc` adds it, closed, and opens it; without the latter it cannot hold packets back.
    Kernels {
        open: &'static str,
        closed: &'static str,
        opened: &'static str,
    },
}

/// A qdisc by what `tc` calls it behind `root`.
fn kinds() -> Vec<(String, Kind)> {
    const TBF: &str = "handle 1: tbf rate 1500kbit burst 1540 limit 10mb";
    const OPENED: &str = "root handle 1: tbf rate 100gbit burst 10mb limit 10mb";
    let kernels = [
        ("no queue", "", "", ""),
        ("pfifo", "pfifo limit 1000", "", ""),
        ("fq_codel", "fq_codel", "", ""),
        ("sfq", "sfq limit 1000", "", ""),
        ("cake", "cake unlimited", "cake bandwidth 1500kbit", "root cake unlimited"),
        ("tbf, pfifo", "handle 1: tbf rate 100gbit burst 10mb limit 10mb", TBF, OPENED),
        ("tbf, fq_codel", "", TBF, OPENED),
        ("tbf, sfq", "", TBF, OPENED),
    ];
    let kernels = kernels
        .map(|(name, open, closed, opened)| (name.into(), Kind::Kernels { open, closed, opened }));
    let ours = PROGRAMS.iter().map(|program| (program.discipline.into(), Kind::Ours(program)));
    kernels.into_iter().chain(ours).collect()
}

/// Of coming in and of leaving, and packets that were lost in the worst round.
type Costs = (f64, f64, u64);

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What a packet takes that leaves at once.
fn through_open(device: &Device, sender: &Sender, flows: u16) -> f64 {
    let mut costs = Vec::new();
    for _ in 0..ROUNDS {
        let before = device.sent();
        let start = Instant::now();
        for number in 0..OPEN_PACKETS {
            sender.send((number % u64::from(flows)) as u16, SMALL);
        }
        let taken = start.elapsed();
        assert_eq!(device.sent() - before, OPEN_PACKETS);
        costs.push(taken.as_nanos() as f64 / OPEN_PACKETS as f64);
    }
    median(costs)
}

/// What others take of the processor while this thread looks at the clock.
fn interruptions() -> Duration {
    let start = Instant::now();
    let (mut last, mut missed) = (start, Duration::ZERO);
    while last - start < WATCHED {
        let now = black_box(Instant::now());
        if now - last > INTERRUPTED {
            missed += now - last;
        }
        last = now;
    }
    missed
}

/// What a packet takes that comes in, and that leaves, of a queue that is closed before it
/// comes and opened then; or why not.
fn through_backlog(
    device: &Device,
    sender: &Sender,
    flows: u16,
    idle: Duration,
    mut close: impl FnMut(),
    mut open: impl FnMut(),
) -> Result<Costs, String> {
    let (mut entering, mut leaving, mut lost) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        close();
        let before = device.sent();
        sender.send(u16::MAX - 5_000, LARGE);
        sender.send(u16::MAX - 5_000, LARGE);
        let start = Instant::now();
        for number in 0..BACKLOG {
            sender.send((number % u64::from(flows)) as u16, SMALL);
        }
        let taken = start.elapsed();
        let sent = device.sent() - before;
        if sent != 1 {
            return Err(format!("{sent} packets left a closed queue"));
        }
        open();
        let missed = interruptions();
        let sent = device.sent() - before;
        // CAKE may lose some of what has waited for longer than it wants.
        lost = lost.max(BACKLOG + 2 - sent);
        entering.push(taken.as_nanos() as f64 / BACKLOG as f64);
        leaving.push(missed.saturating_sub(idle).as_nanos() as f64 / BACKLOG as f64);
    }
    if lost * 10 > BACKLOG {
        return Err(format!("{lost} of {BACKLOG} packets lost"));
    }
    Ok((median(entering), median(leaving), lost))
}

#[test]
#[ignore = "tools/qdisc-cost.sh"]
fn instructions_of_a_packet() {
    let Some(device) = Device::new("instructions_of_a_packet") else { return };
    let sender = device.sender();
    // Whatever happens once.
    (0..1_000).for_each(|packet| sender.send(packet % 256, SMALL));
    let bare = FLOWS.map(|flows| through_open(&device, &sender, flows));
    let idle = Duration::from_nanos(median(
        (0..ROUNDS).map(|_| interruptions().as_nanos() as f64).collect(),
    ) as u64);
    println!("without a queue: {bare:.0?} instructions for each packet");
    println!("what interrupts {WATCHED:?} without packets: {} instructions", idle.as_nanos());
    println!("| qdisc | flows | open | coming in | leaving | backlog, both | lost |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (name, kind) in kinds() {
        for (flows, bare) in FLOWS.into_iter().zip(bare) {
            let row = |open: Option<f64>, backlog: Option<Result<Costs, String>>| {
                let open = open.map_or("".into(), |cost| format!("{:.0}", cost - bare));
                let backlog = match backlog {
                    None => "| | | ".into(),
                    Some(Err(reason)) => format!("{reason} | | | "),
                    Some(Ok((entering, leaving, lost))) => {
                        let both = entering + leaving - bare;
                        format!("{entering:.0} | {leaving:.0} | {both:.0} | {lost}")
                    }
                };
                println!("| {name} | {flows} | {open} | {backlog} |");
            };
            match &kind {
                Kind::Ours(program) => {
                    let words = |rate| queue(program, 1_000, rate);
                    let qdisc = Qdisc::load(program, &words(OPEN), true, "").unwrap();
                    device.tc(&format!("qdisc add dev out root {}", qdisc.name())).unwrap();
                    let open = through_open(&device, &sender, flows);
                    let backlog = through_backlog(
                        &device,
                        &sender,
                        flows,
                        idle,
                        || qdisc.change(&words(HELD), true).unwrap(),
                        || qdisc.change(&words(OPEN), true).unwrap(),
                    );
                    device.tc("qdisc del dev out root").unwrap();
                    qdisc.remove().unwrap();
                    row(Some(open), Some(backlog));
                }
                Kind::Kernels { open, closed, opened } => {
                    let open = (!open.is_empty() || name == "no queue").then(|| {
                        if !open.is_empty() {
                            device.tc(&format!("qdisc replace dev out root {open}")).unwrap();
                        }
                        let cost = through_open(&device, &sender, flows);
                        if !open.is_empty() {
                            device.tc("qdisc del dev out root").unwrap();
                        }
                        cost
                    });
                    let backlog = (!closed.is_empty()).then(|| {
                        let mut tc = device.waiting_tc();
                        let is_there = std::cell::Cell::new(false);
                        let cost = through_backlog(
                            &device,
                            &sender,
                            flows,
                            idle,
                            || {
                                if is_there.replace(true) {
                                    device.tc("qdisc del dev out root").unwrap();
                                }
                                device.tc(&format!("qdisc add dev out root {closed}")).unwrap();
                                if let Some((_, child)) = name.split_once(", ") {
                                    let limit =
                                        if child == "fq_codel" { "" } else { " limit 1000" };
                                    let line =
                                        format!("qdisc add dev out parent 1: {child}{limit}");
                                    device.tc(&line).unwrap();
                                }
                            },
                            || {
                                tc.tell(&format!("qdisc change dev out {opened}"));
                                thread::sleep(Duration::from_millis(1));
                            },
                        );
                        device.tc("qdisc del dev out root").unwrap();
                        cost
                    });
                    row(open, backlog);
                }
            }
        }
    }
}
