//! What each way of sharing an access link does to classes and to small responses.
//!
//! ```sh
//! cargo run --release -p tidegate-study --example gateway_comparison -- \
//!     docs/requests/comparison.md 10 > ways.md
//! ```
//!
//! prints every figure with its interval and writes the tables of the page. The number
//! is that of the seeds. Every way runs under the same demand: open, at loads of 50 to
//! 95% of the link, and closed loops that saturate it. Cells are means over the seeds,
//! and of quantiles medians, with 95% intervals; small responses are those below 10 kB.
//! Rivals run with several settings each, and the page's tables show the best of them: on
//! each link the one with the smallest median of small responses at saturation.
//! The load counts headers, and each class asks for a third of it. Runs measure what
//! begins after the windows of `paper` and `msf` have grown from one and what waited for
//! that has passed.

mod page;

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use tidegate_core::{Buffer, Bytes, Rate, Span};
use tidegate_sim::metrics::Discard;
use tidegate_sim::requests::{Demand, Outcome, Setup, Way, run_way};
use tidegate_study::Centre;
use tidegate_study::pool;

/// Parameters and their values.
type Given = &'static [(&'static str, &'static str)];

/// A way of sharing the link.
struct Contender {
    label: &'static str,
    name: &'static str,
    /// What all of its settings share.
    fixed: Given,
    /// The settings among which the best is looked for, the default first.
    settings: &'static [Given],
}

/// The ways. What a rival keeps and loses depends on its settings: short leaves of HTB
/// drop early and long ones keep control, FQ-CoDel in the leaves keeps small responses
/// out of the queue and loses the shares, more often the closer the shaper is to the
/// link's rate; CAKE is fair to pairs of hosts, or to users.
const WAYS: [Contender; 9] = [
    only("`msf`", "msf"),
    only("`paper`", "paper"),
    only("`direct`: no gateway", "direct"),
    only("`fifo`: an ordinary gateway", "fifo"),
    Contender {
        label: "`htb`",
        name: "htb",
        fixed: &[],
        settings: &[&[], &[("queue", "61")], &[("queue", "25")]],
    },
    Contender {
        label: "`htb`, leaves `fq-codel`",
        name: "htb",
        fixed: &[("leaf", "fq-codel")],
        settings: &[&[], &[("share", "0.8")]],
    },
    only("`shaped-drr`", "shaped-drr"),
    Contender {
        label: "`shaped-cake`",
        name: "shaped-cake",
        fixed: &[],
        settings: &[&[], &[("isolation", "dual-dsthost")]],
    },
    Contender { label: "`pools`", name: "pools", fixed: &[], settings: &[&[], &[("share", "1")]] },
];

/// A way with nothing to choose.
const fn only(label: &'static str, name: &'static str) -> Contender {
    Contender { label, name, fixed: &[], settings: &[&[]] }
}

/// Below 4 Mbit/s CAKE's own shaper raises its target to one and a half packets: at
/// 1.9 Mbit/s, to a twentieth of this.
const SLOW_CAKE: Given = &[("rtt", "192 ms")];

impl Contender {
    /// Its label with the settings of this number, those that are not the default.
    fn label(&self, number: usize) -> String {
        let given = self.settings[number].iter();
        let given: String = given.map(|(key, value)| format!(", {key} {value}")).collect();
        format!("{}{given}", self.label)
    }

    fn way(&self, number: usize, setup: &Setup) -> Way {
        let slow = self.name == "shaped-cake" && setup.rate < Rate(4_000_000);
        let slow = if slow { SLOW_CAKE } else { &[] };
        let given = [self.fixed, self.settings[number], slow].concat();
        let way = Way::new(self.label, self.name, &given).expect("settings within range");
        way.expect("it is listed")
    }
}

/// Every way with each of its settings, by their numbers.
fn variants() -> impl Iterator<Item = (usize, usize)> {
    let ways = WAYS.iter().enumerate();
    ways.flat_map(|(way, contender)| (0..contender.settings.len()).map(move |it| (way, it)))
}

/// The runs of a setting of the link: by way, settings of the way, and seed.
type Runs = Vec<Vec<Vec<Outcome>>>;

/// Mean of the responses' lognormal law, and what a segment of 1 448 bytes and a
/// connection's first and last packets add to it.
const MEAN_ON_THE_WIRE: f64 = 27_656.0 * 1_500.0 / 1_448.0 + 3.0 * 52.0;

/// A link with its demand.
struct Setting {
    name: String,
    setup: Setup,
    seeds: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: gateway_comparison PAGE [SEEDS]")?;
    let path = PathBuf::from(path);
    let seeds: u64 = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let page = fs::read_to_string(&path)?;
    let settings = settings(seeds);
    let outcomes = run_all(&settings);
    for (setting, ways) in settings.iter().zip(&outcomes) {
        println!("\n## {}\n", setting.name);
        print_link(ways);
        print_times(ways, setting.setup.classes.len());
    }
    fs::write(path, page::with_tables(&page, &outcomes))?;
    Ok(())
}

fn settings(seeds: u64) -> Vec<Setting> {
    let mut settings = Vec::new();
    for load in [50, 70, 80, 90, 95] {
        let name = format!("2 Mbit/s, load {load}%");
        settings.push(Setting { name, setup: loaded(Setup::today(), load), seeds });
    }
    let name = "2 Mbit/s, saturated".into();
    settings.push(Setting { name, setup: Setup::today(), seeds });
    let name = "2 Mbit/s, saturated, the paper's TCP".into();
    settings.push(Setting { name, setup: Setup::paper(), seeds });
    for load in [80, 90] {
        let name = format!("10 Mbit/s, load {load}%");
        settings.push(Setting { name, setup: loaded(fast(), load), seeds });
    }
    let name = "10 Mbit/s, saturated".into();
    settings.push(Setting { name, setup: fast(), seeds });
    settings
}

/// Five times the rate, with as much more of queue, other links and demand.
fn fast() -> Setup {
    let mut setup = Setup::today();
    setup.rate = Rate(10_000_000);
    setup.buffer = Buffer::bytes(Bytes(305_000));
    setup.client_rate = Rate(50_000_000);
    for group in &mut setup.servers {
        let (least, most) = group.rate;
        group.rate = (Rate(5 * least.0), Rate(5 * most.0));
    }
    setup.duration = Span::seconds(500);
    for class in &mut setup.classes {
        class.demand = Demand::Closed { loops: 50, pause: Span::seconds(5) };
    }
    setup
}

/// Open demand for so many percent of the link.
fn loaded(mut setup: Setup, percent: u32) -> Setup {
    let clients: u32 = setup.classes.iter().map(|class| class.clients).sum();
    let rate = setup.rate.0 as f64 * f64::from(percent) / 100.0 / f64::from(clients);
    let every = Span::from_seconds(MEAN_ON_THE_WIRE * 8.0 / rate);
    for class in &mut setup.classes {
        class.demand = Demand::Open { every };
    }
    setup.warm_up = Span::seconds(250);
    setup
}

/// Runs everything on all cores; by setting of the link.
fn run_all(settings: &[Setting]) -> Vec<Runs> {
    let all = settings.iter().enumerate().flat_map(|(number, setting)| {
        let seeds = 1..=setting.seeds;
        variants().flat_map(move |variant| seeds.clone().map(move |seed| (number, variant, seed)))
    });
    let jobs: Vec<_> = all.collect();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let done = AtomicUsize::new(0);
    let never = AtomicBool::new(false);
    let results = pool::map(&jobs, threads, &never, |(number, (way, variant), seed)| {
        let setup = &settings[*number].setup;
        let way = WAYS[*way].way(*variant, setup);
        let outcome = run_way(setup, &way, *seed, &mut Discard, &never);
        eprint!("\r{} of {} runs", done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
        outcome
    });
    eprintln!();
    let empty = || WAYS.iter().map(|way| vec![Vec::new(); way.settings.len()]).collect();
    let mut outcomes: Vec<Runs> = settings.iter().map(|_| empty()).collect();
    for ((setting, (way, variant), _), outcome) in jobs.into_iter().zip(results) {
        outcomes[setting][way][variant].push(outcome);
    }
    outcomes
}

fn print_link(ways: &Runs) {
    println!(
        "| way | class 1 | class 2 | class 3 kbit/s | used % | lost at the provider % | lost in \
         the shaper % | queue ms | unanswered % |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (way, variant) in variants() {
        let (label, runs) = (WAYS[way].label(variant), &ways[way][variant][..]);
        let rate =
            |class| estimate(Centre::Mean, runs, 0, |run| Some(run.throughput_bps(class) / 1e3));
        let percent = |lost: u64, of: u64| lost as f64 * 100.0 / of.max(1) as f64;
        let shaper =
            |run: &Outcome| run.shaper.map(|shaper| percent(shaper.lost(), shaper.offered));
        let unanswered = |run: &Outcome| {
            let asked: u64 = run.classes.iter().map(|class| class.asked).sum();
            let completed: u64 = run.classes.iter().map(|class| class.completed).sum();
            Some(percent(asked - completed, asked))
        };
        let cells = [
            rate(0),
            rate(1),
            rate(2),
            estimate(Centre::Mean, runs, 1, |run| Some(run.utilisation * 100.0)),
            estimate(Centre::Mean, runs, 1, |run| {
                Some(percent(run.downlink.lost(), run.downlink.offered))
            }),
            estimate(Centre::Mean, runs, 1, shaper),
            estimate(Centre::Mean, runs, 0, |run| Some(run.queueing.mean()? * 1e3)),
            estimate(Centre::Mean, runs, 1, unanswered),
        ];
        println!("| {label} | {} |", cells.join(" | "));
    }
}

/// All classes, then each.
fn print_times(ways: &Runs, classes: usize) {
    println!("\n| way | class | mean s | p50 | p95 | p99 | small median | small p95 |");
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (way, variant) in variants() {
        let (label, runs) = (WAYS[way].label(variant), &ways[way][variant][..]);
        for class in std::iter::once(None).chain((0..classes).map(Some)) {
            let of = |run: &Outcome, small: bool| match class {
                Some(class) if small => run.classes[class].small.clone(),
                Some(class) => run.classes[class].response.clone(),
                None if small => run.all(|class| &class.small),
                None => run.all(|class| &class.response),
            };
            let quantile = |small, fraction| {
                estimate(Centre::Median, runs, 2, |run| of(run, small).quantile(fraction))
            };
            let cells = [
                estimate(Centre::Mean, runs, 2, |run| of(run, false).mean()),
                quantile(false, 0.5),
                quantile(false, 0.95),
                quantile(false, 0.99),
                quantile(true, 0.5),
                quantile(true, 0.95),
            ];
            let class = class.map_or("all".into(), |class| (class + 1).to_string());
            println!("| {label} | {class} | {} |", cells.join(" | "));
        }
    }
}

/// A value with its interval.
fn estimate(
    centre: Centre,
    runs: &[Outcome],
    digits: usize,
    value: impl Fn(&Outcome) -> Option<f64>,
) -> String {
    let known = runs.iter().filter_map(value).filter(|value| value.is_finite());
    centre.of(known).map_or("-".into(), |estimate| estimate.text(1.0, digits))
}
