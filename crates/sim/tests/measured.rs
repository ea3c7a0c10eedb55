//! Real bottlenecks, rebuilt: idle delay, delay under load and throughput agree
//! with what Flent measured on a testbed, within bands. `docs/measured.md` has the
//! comparison and explains the width of the bands. Each is shown to have power:
//! under the wrong discipline, or on a link whose rate is 20% off, a figure that
//! should move leaves its band.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use tidegate_core::{Rate, Span};
use tidegate_sim::metrics::run_summary::{LinkSummary, Times, TrafficSummary};
use tidegate_sim::metrics::{Discard, RunSummary};
use tidegate_sim::scenario::{Capacity, QueueSpec, Scenario, file};
use tidegate_sim::simulation;

/// `docs/measured.md`, which is not part of the package.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/measured.md");

/// What `figures.csv` says of a run.
fn measured(run: &str, figure: &str) -> f64 {
    let prefix = format!("{run},{figure},");
    let figures = tidegate_scenarios::text("measured/figures.csv").expect("it is shipped");
    let value = figures.lines().find_map(|line| line.strip_prefix(prefix.as_str()));
    let value = value.unwrap_or_else(|| panic!("{prefix} is not in figures.csv"));
    value.parse().expect("figures are numbers")
}

/// A rebuilt testbed: as it was, or with something different.
#[derive(Clone, Copy)]
struct Testbed {
    file: &'static str,
    discipline: &'static str,
    /// Of the tested links, and 100 is the testbed's.
    rate_per_cent: u64,
    /// Sources whose names begin so are left out.
    without: Option<&'static str>,
}

impl Testbed {
    const fn new(file: &'static str, discipline: &'static str) -> Testbed {
        Testbed { file, discipline, rate_per_cent: 100, without: None }
    }

    fn with_rate(self, rate_per_cent: u64) -> Testbed {
        Testbed { rate_per_cent, ..self }
    }

    fn with_discipline(self, discipline: &'static str) -> Testbed {
        Testbed { discipline, ..self }
    }

    fn scenario(&self) -> Scenario {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/measured");
        let mut scenario = file::read(&Path::new(folder).join(self.file))
            .unwrap_or_else(|error| panic!("{error}"));
        for link in &mut scenario.links {
            if let (QueueSpec::Tested(_), Capacity::Fixed(rate)) = (&link.queue, &link.capacity) {
                link.capacity = Capacity::Fixed(Rate(rate.0 * self.rate_per_cent / 100));
            }
        }
        if let Some(prefix) = self.without {
            scenario.traffic.retain(|source| !source.name.starts_with(prefix));
        }
        scenario
    }

    fn run(&self, scenario: Scenario) -> Outcome {
        let stop = AtomicBool::new(false);
        let choice = scenario.disciplines.iter().find(|choice| choice.label == self.discipline);
        let choice = choice.expect("the scenario has this discipline");
        let summary = simulation::run(&scenario, choice, scenario.seeds[0], &mut Discard, &stop);
        Outcome { scenario, summary }
    }

    /// What there is before the load, which begins at 5 s.
    fn idle(&self) -> Outcome {
        let mut scenario = self.scenario();
        (scenario.warm_up, scenario.duration) = (Span::ZERO, Span::seconds(5));
        self.run(scenario)
    }

    /// The load without its first 20 s.
    fn settled(&self) -> Outcome {
        self.run(self.scenario())
    }
}

struct Outcome {
    scenario: Scenario,
    summary: RunSummary,
}

impl Outcome {
    fn sources<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a TrafficSummary> {
        let named = self.scenario.traffic.iter().zip(&self.summary.traffic);
        named.filter(move |(spec, _)| spec.name.starts_with(prefix)).map(|(_, source)| source)
    }

    fn delay<'a>(&'a self, name: &'a str) -> &'a Times {
        &self.sources(name).next().expect("the scenario has this source").delay
    }

    fn link(&self, name: &str) -> &LinkSummary {
        let mut named = self.scenario.links.iter().zip(&self.summary.links);
        let (_, link) = named.find(|(spec, _)| spec.name == name).expect("it is in the scenario");
        link.as_ref().expect("the link has a queue")
    }

    /// Payload of all sources whose name begins so.
    fn throughput_mbps(&self, prefix: &str) -> f64 {
        let span = self.scenario.duration - self.scenario.warm_up;
        let payload: u64 = self.sources(prefix).map(|source| source.delivered.0).sum();
        payload as f64 * 8.0 / span.as_seconds() / 1e6
    }

    /// A quantile of the sum of the delays up and down, as if they were
    /// independent: a ping's way back begins when the way up ends.
    fn round_trip_ms(&self, fraction: f64) -> f64 {
        let [up, down] = ["ping, up", "ping, down"].map(|name| masses(self.delay(name)));
        let mut sums: Vec<_> =
            up.iter().flat_map(|a| down.iter().map(move |b| (a.0 + b.0, a.1 * b.1))).collect();
        sums.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut below = 0.0;
        let reached = sums.iter().find(|(_, mass)| {
            below += mass;
            below >= fraction
        });
        reached.expect("the masses add up to one").0 * 1e3
    }
}

/// The values of a distribution, each with its probability.
fn masses(times: &Times) -> Vec<(f64, f64)> {
    let mut before = 0.0;
    let mass = |(value, below): (f64, f64)| (value, below - std::mem::replace(&mut before, below));
    times.distribution().map(mass).collect()
}

fn quantile_ms(times: &Times, fraction: f64) -> f64 {
    times.quantile(fraction).expect("packets arrived") * 1e3
}

/// A figure that was measured, the band around it, and what the simulator has.
struct Check {
    figure: &'static str,
    measured: f64,
    band: RangeInclusive<f64>,
    simulated: f64,
}

/// A comparison: its table, and the figures outside of their bands.
struct Verdict {
    table: String,
    outside: Vec<&'static str>,
}

impl Verdict {
    fn of(checks: &[Check]) -> Verdict {
        let mut table = String::from(
            "| figure | measured | band | simulated |\n| --- | ---: | ---: | ---: |\n",
        );
        let mut outside = Vec::new();
        for Check { figure, measured, band, simulated } in checks {
            let (least, most) = (band.start(), band.end());
            table += &format!(
                "| {figure} | {measured:.2} | {least:.2} to {most:.2} | {simulated:.2} |\n"
            );
            if !band.contains(simulated) {
                outside.push(*figure);
            }
        }
        Verdict { table, outside }
    }

    /// Everything is inside, and the page says so.
    fn holds(&self) {
        assert!(
            self.outside.is_empty(),
            "{:?} outside of their bands:\n{}",
            self.outside,
            self.table
        );
        let page = std::fs::read_to_string(PAGE).expect("the page is in the repository");
        assert!(page.contains(&self.table), "docs/measured.md has to say:\n{}", self.table);
    }

    /// These figures are outside, and perhaps others.
    fn misses(&self, figures: &[&str]) {
        let missed = figures.iter().all(|figure| self.outside.contains(figure));
        assert!(missed, "only {:?} outside, not all of {figures:?}:\n{}", self.outside, self.table);
    }
}

/// A band of this many per cent around a measured figure.
fn around(measured: f64, per_cent: f64) -> RangeInclusive<f64> {
    measured * (1.0 - per_cent / 100.0)..=measured * (1.0 + per_cent / 100.0)
}

/// The band of a delay that comes from an idle testbed: a tick of its timers.
fn within_a_tick(measured: f64) -> RangeInclusive<f64> {
    measured - 1.0..=measured + 1.0
}

const UPLOAD: &str = "upload, Mbit/s";
const DROPS: &str = "packets dropped in 120 s";

/// What a single CUBIC upload gets of 100 Mbit/s under FQ-CoDel.
fn upload(run: &str, settled: &Outcome) -> [Check; 2] {
    let throughput = measured(run, "up_throughput_mbps");
    // Counted over the whole load of 140 s, of which the first 20 s are left out.
    let drops = measured(run, "up_queue_dropped") * 120.0 / 140.0;
    [
        Check {
            figure: UPLOAD,
            measured: throughput,
            band: around(throughput, 5.0),
            simulated: settled.throughput_mbps("upload"),
        },
        Check {
            figure: DROPS,
            measured: drops,
            band: drops / 2.0..=drops * 2.0,
            simulated: settled.link("up").counters.lost() as f64,
        },
    ]
}

const HTTP: Testbed = Testbed::new("flent-http-fq-codel-100mbit.toml", "fq-codel");

fn http(testbed: Testbed) -> Verdict {
    Verdict::of(&upload("test-http-1up", &testbed.settled()))
}

#[test]
fn an_upload_under_fq_codel_gets_what_was_measured() {
    http(HTTP).holds();
    http(HTTP.with_rate(80)).misses(&[UPLOAD]);
    http(HTTP.with_rate(120)).misses(&[UPLOAD]);
    http(HTTP.with_discipline("fifo")).misses(&[UPLOAD, DROPS]);
}

const VOIP: Testbed = Testbed::new("flent-voip-fq-codel-100mbit.toml", "fq-codel");
const CALL_MEDIAN: &str = "call, median delay more than idle, ms";
const CALL_P95: &str = "call, 95% delay more than idle, ms";

fn voip(testbed: Testbed) -> Verdict {
    let run = "test-voip-1up";
    let (idle, settled) = (testbed.idle(), testbed.settled());
    let mut checks = Vec::from(upload(run, &settled));
    let idle_delay = measured(run, "voip_delay_idle_median_ms");
    checks.push(Check {
        figure: "call, median delay idle, ms",
        measured: idle_delay,
        band: within_a_tick(idle_delay),
        simulated: quantile_ms(idle.delay("call"), 0.5),
    });
    for (figure, name, fraction) in [(CALL_MEDIAN, "median", 0.5), (CALL_P95, "p95", 0.95)] {
        let measured = |when| measured(run, &format!("voip_delay_{when}_{name}_ms"));
        let simulated = |outcome: &Outcome| quantile_ms(outcome.delay("call"), fraction);
        checks.push(Check {
            figure,
            measured: measured("settled") - measured("idle"),
            // Three packets of full size: one that is being sent, and two more
            // for what else a real router does.
            band: 0.0..=3.0 * 0.121,
            simulated: simulated(&settled) - simulated(&idle),
        });
    }
    let lost = settled.sources("call").map(|call| call.datagrams_lost as f64).sum();
    checks.push(Check {
        figure: "call, packets lost",
        measured: measured(run, "voip_delay_settled_lost"),
        band: 0.0..=0.0,
        simulated: lost,
    });
    Verdict::of(&checks)
}

#[test]
fn a_call_beside_an_upload_under_fq_codel_is_as_late_as_was_measured() {
    voip(VOIP).holds();
    voip(VOIP.with_discipline("fifo")).misses(&[UPLOAD, DROPS, CALL_MEDIAN, CALL_P95]);
}

const RRUL: Testbed = Testbed::new("flent-rrul-codel-10mbit.toml", "codel");
const RRUL_RUN: &str = "test-rrul";
const UPLOADS: &str = "uploads, Mbit/s";
const DOWNLOADS: &str = "downloads, Mbit/s";
const ROUND_TRIP: &str = "ping, median, ms";

/// The idle ping, and CoDel's target once: what senders that always have a queue
/// cannot well be below.
fn least_ping() -> f64 {
    measured(RRUL_RUN, "ping_idle_median_ms") + 5.0
}

fn rrul(testbed: Testbed) -> Verdict {
    let (idle, settled) = (testbed.idle(), testbed.settled());
    let idle_ping = measured(RRUL_RUN, "ping_idle_median_ms");
    let ping = measured(RRUL_RUN, "ping_settled_median_ms");
    let mut checks = vec![
        Check {
            figure: "ping, median idle, ms",
            measured: idle_ping,
            band: within_a_tick(idle_ping),
            simulated: idle.round_trip_ms(0.5),
        },
        Check {
            figure: ROUND_TRIP,
            measured: ping,
            // Other senders, and theirs are paced: no more than the order of size.
            band: least_ping()..=ping * 2.0,
            simulated: settled.round_trip_ms(0.5),
        },
    ];
    for (figure, direction, sources) in [(UPLOADS, "up", "upload"), (DOWNLOADS, "down", "download")]
    {
        let throughput = measured(RRUL_RUN, &format!("{direction}_throughput_mbps"));
        checks.push(Check {
            figure,
            measured: throughput,
            band: around(throughput, 10.0),
            simulated: settled.throughput_mbps(sources),
        });
    }
    Verdict::of(&checks)
}

#[test]
fn eight_flows_under_codel_get_what_was_measured() {
    rrul(RRUL).holds();
    rrul(RRUL.with_rate(80)).misses(&[UPLOADS, DOWNLOADS]);
    rrul(RRUL.with_rate(120)).misses(&[UPLOADS, DOWNLOADS]);
    rrul(RRUL.with_discipline("fifo")).misses(&[ROUND_TRIP]);
}

/// That the simulated ping is later than the measured one is not CoDel's doing:
/// data and acknowledgements of the two directions share the queues, in bursts.
/// Uploads alone keep the ping below what was measured.
#[test]
fn uploads_alone_under_codel_wait_less_than_with_downloads() {
    let alone = |testbed: Testbed| {
        let settled = Testbed { without: Some("download"), ..testbed }.settled();
        let measured = measured(RRUL_RUN, "ping_settled_median_ms");
        let band = least_ping()..=measured;
        let simulated = settled.round_trip_ms(0.5);
        Verdict::of(&[Check { figure: ROUND_TRIP, measured, band, simulated }])
    };
    alone(RRUL).holds();
    alone(RRUL.with_discipline("fifo")).misses(&[ROUND_TRIP]);
}
