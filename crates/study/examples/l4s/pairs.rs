//! Two transfers side by side, over rates, round trips, queues and senders.

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tidegate_core::{Ecn, Time};
use tidegate_sim::metrics::{PacketEvent, PacketRecord, Recorder};
use tidegate_sim::scenario::{Scenario, file};
use tidegate_sim::simulation;
use tidegate_study::pool;

use super::{Table, digits, mean, table};

/// In Mbit/s, with the queue; in one, the step lets two packets wait.
const RATES: [(u32, &str); 6] = [
    (4, "\"dualpi2\""),
    (4, "{ name = \"dualpi2\", step = \"6 ms\" }"),
    (12, "\"dualpi2\""),
    (40, "\"dualpi2\""),
    (120, "\"dualpi2\""),
    (200, "\"dualpi2\""),
];
/// In milliseconds.
const TRIPS: [u32; 5] = [5, 10, 20, 50, 100];
const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];
/// In seconds: what comes before is left out.
const WARM_UP: u32 = 30;
const END: u32 = 90;

/// Queues beside each other, as in scenario files.
const QUEUES: [(&str, &str); 15] = [
    ("`dualpi2`", "\"dualpi2\""),
    ("`fifo`", "\"fifo\""),
    ("`pie` with `ecn`", "{ name = \"pie\", ecn = \"on\" }"),
    ("`codel` with `ecn`", "{ name = \"codel\", ecn = \"on\" }"),
    ("`fq-codel`", "\"fq-codel\""),
    (
        "`fq-codel`, a step for ECT(1)",
        "{ name = \"fq-codel\", ce_threshold = \"1 ms\", ce_threshold_selector = \"ect1\" }",
    ),
    ("`cake`", "\"cake\""),
    ("`cake`, a step for ECT(1)", "{ name = \"cake\", ce_threshold = \"1 ms\" }"),
    ("`fq-pie` with `ecn`", "{ name = \"fq-pie\", ecn = \"on\" }"),
    ("`drr`", "\"drr\""),
    ("`las`", "\"las\""),
    ("`lars`", "\"lars\""),
    ("`run2c`", "\"run2c\""),
    ("`efd`", "\"efd\""),
    ("`tide`", "\"tide\""),
];

/// What the queue did to the packets of a server.
#[derive(Clone, Debug, Default)]
struct Packets {
    bytes: u64,
    sent: u64,
    marked: u64,
    lost: u64,
    /// Time in the queue, in microseconds.
    waits: Vec<u32>,
}

impl Packets {
    fn mbits(&self) -> f64 {
        self.bytes as f64 * 8.0 / f64::from(END - WARM_UP) / 1e6
    }

    /// The share of marks among what was sent.
    fn marks(&self) -> f64 {
        self.marked as f64 / self.sent.max(1) as f64
    }

    /// In per cent of what came.
    fn loss(&self) -> f64 {
        self.lost as f64 / (self.sent + self.lost).max(1) as f64 * 100.0
    }

    /// In milliseconds.
    fn wait(&self, quantile: f64) -> f64 {
        let place = (self.waits.len() as f64 * quantile) as usize;
        self.waits.get(place).map_or(f64::NAN, |micros| f64::from(*micros) / 1e3)
    }
}

/// Watches the queue towards the home.
struct Watch {
    servers: [Ipv4Addr; 2],
    since: Time,
    packets: [Packets; 2],
}

impl Watch {
    fn new(scenario: &Scenario) -> Watch {
        let address = |name: &str| {
            let node = scenario.nodes.iter().position(|node| node == name);
            Ipv4Addr::new(10, 0, 0, node.expect("it has two servers") as u8)
        };
        Watch {
            servers: [address("server1"), address("server2")],
            since: Time::ZERO + scenario.warm_up,
            packets: Default::default(),
        }
    }
}

impl Recorder for Watch {
    fn takes_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, row: &PacketRecord) {
        let source = row.packet.flow.source().ip();
        let Some(own) = self.servers.iter().position(|server| source == *server) else { return };
        if row.at < self.since {
            return;
        }
        let packets = &mut self.packets[own];
        match row.event {
            PacketEvent::Arrived => {}
            PacketEvent::Lost(_) => packets.lost += 1,
            PacketEvent::Sent => {
                packets.sent += 1;
                packets.bytes += row.packet.size.0;
                packets.marked += u64::from(row.packet.ecn == Ecn::Ce);
                let wait = row.at.since(row.packet.arrived).0 / 1_000;
                packets.waits.push(u32::try_from(wait).unwrap_or(u32::MAX));
            }
        }
    }
}

/// A link, its queue, and two senders.
#[derive(Clone)]
struct Case {
    rate: u32,
    /// Of the path to each sender.
    trips: [u32; 2],
    buffer: &'static str,
    queue: &'static str,
    senders: [&'static str; 2],
}

impl Case {
    /// Which sender meets the other in which part of its cycle depends on the seed.
    fn scenario(&self, seed: u64) -> Result<Scenario, Box<dyn Error>> {
        let Case { rate, trips, buffer, queue, senders } = self;
        // Half of the round trip, less what links behind and before the server take.
        let [one, other] = trips.map(|trip| trip * 1_000 / 2 - 500);
        let source = |number: usize| {
            let sender = senders[number - 1];
            let start = if number == 1 { 0 } else { 370 * seed };
            format!(
                "[[traffic.transfers]]\nname = \"{number}\"\nfrom = \"server{number}\"\nto = \
                 \"host1\"\ncount = 1\nsizes = \"endless\"\nstart = \"{start} ms\"\ntcp = {{ \
                 profile = \"today\", congestion = \"{sender}\" }}\n"
            )
        };
        let text = format!(
            "title = \"two\"\nduration = \"{END} s\"\nwarm_up = \"{WARM_UP} s\"\nseeds = \
             1\ndisciplines = [{queue}]\n[access]\nhosts = 1\ndown = \"{rate} Mbit/s\"\nup = \
             \"1 Gbit/s\"\ndelay = \"400 us\"\nlan_delay = \"100 us\"\ndown_buffer = \
             \"{buffer}\"\nservers = [\"{one} us\", \"{other} us\"]\n{}{}",
            source(1),
            source(2)
        );
        Ok(file::parse("two", &text, &file::Folder(".".into()))?)
    }

    /// What each of the two got under each seed.
    fn run(&self, seed: u64) -> Result<[Packets; 2], Box<dyn Error>> {
        let scenario = self.scenario(seed)?;
        let mut watch = Watch::new(&scenario);
        let never = AtomicBool::new(false);
        simulation::run(&scenario, &scenario.disciplines[0], seed, &mut watch, &never);
        watch.packets.iter_mut().for_each(|packets| packets.waits.sort_unstable());
        Ok(watch.packets)
    }
}

/// All cases under all seeds, on all cores.
fn run(cases: &[Case]) -> Vec<Vec<[Packets; 2]>> {
    let jobs: Vec<(&Case, u64)> =
        cases.iter().flat_map(|case| SEEDS.map(|seed| (case, seed))).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let done = AtomicUsize::new(0);
    let results = pool::map(&jobs, threads, &AtomicBool::new(false), |(case, seed)| {
        let packets = case.run(*seed).unwrap_or_else(|error| panic!("{error}"));
        eprint!("\r{} of {}", done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
        packets
    });
    eprintln!();
    let mut results = results.into_iter();
    cases.iter().map(|_| results.by_ref().take(SEEDS.len()).collect()).collect()
}

/// The rate of the first over that of the second: the mean, and between what it was.
fn ratio(runs: &[[Packets; 2]]) -> String {
    let each: Vec<f64> = runs.iter().map(|[one, other]| one.mbits() / other.mbits()).collect();
    let least = each.iter().copied().fold(f64::INFINITY, f64::min);
    let most = each.iter().copied().fold(0.0, f64::max);
    // The geometric mean: twice and half as much are as far from as much.
    let centre = mean(each.iter().map(|ratio| ratio.ln())).exp();
    format!("{} ({} to {})", digits(centre), digits(least), digits(most))
}

fn over_seeds(runs: &[[Packets; 2]], which: usize, of: impl Fn(&Packets) -> f64) -> f64 {
    mean(runs.iter().map(|packets| of(&packets[which])))
}

pub(super) fn tables() -> Vec<Table> {
    let mut tables = grid();
    tables.push(("Paths of different lengths", lengths()));
    tables.push(("One who measured it", measured()));
    tables.push(("One queue of each kind", kinds()));
    tables
}

/// Prague beside CUBIC and beside Reno under DualPI2, at each rate and round trip.
fn grid() -> Vec<Table> {
    let cells =
        || RATES.into_iter().flat_map(|rate| TRIPS.into_iter().map(move |trip| (rate, trip)));
    let case = |((rate, queue), trip), senders| Case {
        rate,
        trips: [trip; 2],
        buffer: "10000 packets",
        queue,
        senders,
    };
    let beside = |senders: [&'static str; 2]| -> Vec<Vec<[Packets; 2]>> {
        run(&cells().map(|cell| case(cell, senders)).collect::<Vec<_>>())
    };
    let (cubic, reno) = (beside(["prague", "cubic"]), beside(["prague", "reno"]));
    let lines = |of: &dyn Fn(usize) -> String| -> Vec<Vec<String>> {
        let line = |row: usize| {
            let cells = (0..TRIPS.len()).map(|column| of(row * TRIPS.len() + column));
            let (rate, queue) = RATES[row];
            let step = if queue.contains("step") { ", step 6 ms" } else { "" };
            std::iter::once(format!("{rate} Mbit/s{step}")).chain(cells).collect()
        };
        (0..RATES.len()).map(line).collect()
    };
    let heads = ["", "5 ms", "10 ms", "20 ms", "50 ms", "100 ms"];
    let waits = |runs: &[[Packets; 2]]| {
        let [median, late] =
            [0.5, 0.99].map(|quantile| over_seeds(runs, 0, |it| it.wait(quantile)));
        format!("{}, {}", digits(median), digits(late))
    };
    let equation = |cell: usize| {
        let trip = cells().nth(cell).map_or(0.0, |(_, trip)| f64::from(trip));
        let expected = |it: &Packets| (1.0 / it.marks() - 1.0) * 25.0 / trip.max(25.0);
        digits(over_seeds(&cubic[cell], 0, |it| it.mbits() / expected(it)))
    };
    vec![
        ("Prague beside CUBIC", table(&heads, &lines(&|cell| ratio(&cubic[cell])))),
        ("Prague beside Reno", table(&heads, &lines(&|cell| ratio(&reno[cell])))),
        ("How long Prague waits", table(&heads, &lines(&|cell| waits(&cubic[cell])))),
        (
            "How long CUBIC waits",
            table(&heads, &lines(&|cell| digits(over_seeds(&cubic[cell], 1, |it| it.wait(0.5))))),
        ),
        (
            "How much is carried",
            table(
                &heads,
                &lines(&|cell| {
                    let rate = cells().nth(cell).map_or(1.0, |((rate, _), _)| f64::from(rate));
                    let carried =
                        [0, 1].map(|which| over_seeds(&cubic[cell], which, Packets::mbits));
                    let lost = over_seeds(&cubic[cell], 0, Packets::loss);
                    format!("{:.1}%, {lost:.2}%", (carried[0] + carried[1]) / rate * 100.0)
                }),
            ),
        ),
        ("The rate that marks allow", table(&heads, &lines(&equation))),
    ]
}

/// Two senders of a kind, the first on the shorter path, at 40 Mbit/s.
fn lengths() -> String {
    const PATHS: [[u32; 2]; 5] = [[5, 10], [5, 25], [10, 50], [25, 50], [25, 100]];
    const SENDERS: [(&str, [&str; 2]); 3] = [
        ("two of Prague", ["prague", "prague"]),
        ("two of DCTCP", ["dctcp", "dctcp"]),
        ("two of CUBIC", ["cubic", "cubic"]),
    ];
    let cases: Vec<Case> = SENDERS
        .iter()
        .flat_map(|(_, senders)| {
            PATHS.map(|trips| Case {
                rate: 40,
                trips,
                buffer: "10000 packets",
                queue: "\"dualpi2\"",
                senders: *senders,
            })
        })
        .collect();
    let runs = run(&cases);
    let mut rows: Vec<Vec<String>> = SENDERS
        .iter()
        .zip(runs.chunks(PATHS.len()))
        .map(|((name, _), cells)| {
            std::iter::once((*name).to_owned()).chain(cells.iter().map(|it| ratio(it))).collect()
        })
        .collect();
    let rule = PATHS.map(|[one, other]| digits(f64::from(other.max(25)) / f64::from(one.max(25))));
    rows.push(std::iter::once("Prague's rule".to_owned()).chain(rule).collect());
    let heads = PATHS.map(|[one, other]| format!("{one} and {other} ms"));
    let heads: Vec<&str> = std::iter::once("").chain(heads.iter().map(String::as_str)).collect();
    table(&heads, &rows)
}

/// The link on which somebody measured Linux's Prague beside its CUBIC (Guarna 2023), and what
/// it would be if the delay were of the round trip.
fn measured() -> String {
    let case = |trip| Case {
        rate: 100,
        trips: [trip; 2],
        buffer: "10000 packets",
        queue: "\"dualpi2\"",
        senders: ["prague", "cubic"],
    };
    let trips = [60, 30];
    let runs = run(&trips.map(case));
    let measured = ["measured, 30 ms one way", "63.4", "28.6", "2.22", "0.7", "3 to 5"];
    let mut rows = vec![measured.map(str::to_owned).to_vec()];
    for (trip, runs) in trips.iter().zip(&runs) {
        let mbits = [0, 1].map(|which| digits(over_seeds(runs, which, Packets::mbits)));
        let waits = [0, 1].map(|which| digits(over_seeds(runs, which, |it| it.wait(0.5))));
        let name = format!("simulated, {} ms one way", trip / 2);
        rows.push([[name].as_slice(), &mbits, &[ratio(runs)], &waits].concat());
    }
    let heads =
        ["", "Prague, Mbit/s", "CUBIC, Mbit/s", "ratio", "Prague waits, ms", "CUBIC waits, ms"];
    table(&heads, &rows)
}

/// Pairs of senders in front of each queue, at 40 Mbit/s and 20 ms.
fn kinds() -> String {
    const PAIRS: [[&str; 2]; 4] =
        [["prague", "cubic"], ["prague", "bbr"], ["dctcp", "cubic"], ["prague", "prague"]];
    let cases: Vec<Case> = QUEUES
        .iter()
        .flat_map(|(_, queue)| {
            PAIRS.map(|senders| Case { rate: 40, trips: [20; 2], buffer: "100 ms", queue, senders })
        })
        .collect();
    let runs = run(&cases);
    let rows: Vec<Vec<String>> = QUEUES
        .iter()
        .zip(runs.chunks(PAIRS.len()))
        .map(|((name, _), pairs)| {
            let waits =
                |pair: usize, which| digits(over_seeds(&pairs[pair], which, |it| it.wait(0.5)));
            vec![
                (*name).to_owned(),
                ratio(&pairs[0]),
                waits(0, 0),
                waits(0, 1),
                ratio(&pairs[1]),
                ratio(&pairs[2]),
                ratio(&pairs[3]),
                waits(3, 0),
            ]
        })
        .collect();
    let heads = [
        "",
        "Prague over CUBIC",
        "Prague waits, ms",
        "CUBIC waits, ms",
        "Prague over BBR",
        "DCTCP over CUBIC",
        "Prague over Prague",
        "both wait, ms",
    ];
    table(&heads, &rows)
}
