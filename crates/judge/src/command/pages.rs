//! `tidegate-judge pages`: page loads in a browser on the live bed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use tidegate_judge::host::BedError;
use tidegate_judge::live;
use tidegate_judge::live::browser::{self, Loads, PAGE_WAYS, PageWay};
use tidegate_judge::native;
use tidegate_study::{Centre, Estimate};

use super::gateway::{BadInput, load};
use super::results::Results;

const EXAMPLES: &str = "\
Examples:
  tidegate-judge pages                              every way, three rounds of five loads
  tidegate-judge pages --ways none,msf --rounds 1
  tidegate-judge pages --json                       every load of every round";

fn help() -> String {
    let mut text = format!("{EXAMPLES}\n\nWays, beside other users if not idle:");
    for way in &PAGE_WAYS {
        let _ = write!(text, "\n  {:<14}{}", way.name, way.summary);
    }
    text
}

/// What is tried, and where the figures go.
#[derive(Args)]
#[command(after_help = help())]
pub(crate) struct Arguments {
    /// A case, or a file of a gateway as `tidegate requests compare` reads it. The browser
    /// takes the place of the client of its first class.
    #[arg(default_value = "pages-10")]
    case: String,
    /// Only these ways.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    ways: Vec<String>,
    /// How often each way is tried, with seeds from 1; ways take turns.
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// How many pages are loaded in each round of a way.
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    loads: u32,
    #[command(flatten)]
    results: Results,
}

#[derive(Serialize)]
struct Report {
    case: String,
    title: String,
    page: String,
    browser: String,
    kernel: String,
    /// As `/proc/loadavg` says it, before and after.
    load: [String; 2],
    /// The rounds of each way.
    ways: BTreeMap<&'static str, Vec<Round>>,
    /// Ways without a result, with the reason.
    skipped: BTreeMap<&'static str, String>,
}

/// What was found of a way in a round.
#[derive(Serialize)]
struct Round {
    seed: u64,
    /// From the start of a load to the start of the next; one that takes longer is given up.
    every_s: f64,
    /// The page-load times in seconds; null is a load that was given up or is not whole.
    loads_s: Vec<Option<f64>>,
    /// What all other classes received, from the first load to the end.
    others_kbps: f64,
    link_used_percent: f64,
    /// Of the packets that came to the provider.
    dropped_percent: f64,
}

impl Round {
    fn of(seed: u64, way: &PageWay, loads: &Loads) -> Round {
        let outcome = &loads.beside.outcome;
        let others: f64 =
            (0..outcome.classes.len()).map(|class| outcome.throughput_bps(class)).sum();
        Round {
            seed,
            every_s: way.every().as_seconds(),
            loads_s: loads.times.iter().map(|time| time.map(|it| it.as_secs_f64())).collect(),
            others_kbps: others / 1e3,
            link_used_percent: outcome.utilisation * 100.0,
            dropped_percent: loads.beside.lost * 100.0,
        }
    }
}

pub(crate) fn pages(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let ways = ways(&arguments.ways).map_err(BadInput)?;
    let case = live::case(&arguments.case).map_err(BadInput)?;
    if let Some(reason) = browser::objection(&case.setup) {
        return Err(BadInput(format!("{}: {reason}", arguments.case)).into());
    }
    let tidegate = arguments.results.tidegate()?;
    let browser = match browser::version() {
        Ok(version) => version,
        Err(reason) => {
            println!("SKIP pages in a browser: {reason}");
            return Ok(());
        }
    };
    let mut report = Report {
        case: arguments.case.clone(),
        title: case.title,
        page: browser::page_in_words(),
        browser,
        kernel: native::release()?,
        load: [load(), String::new()],
        ways: BTreeMap::new(),
        skipped: BTreeMap::new(),
    };
    // What was found before something failed is shown all the same.
    let mut failure = None;
    'rounds: for seed in 1..=arguments.rounds {
        for way in &ways {
            if report.skipped.contains_key(way.name) {
                continue;
            }
            eprintln!("round {seed}: {}", way.name);
            match browser::load_pages(&case.setup, way, seed, arguments.loads, &tidegate) {
                Ok(loads) => {
                    report.ways.entry(way.name).or_default().push(Round::of(seed, way, &loads));
                }
                Err(BedError::Missing(reason)) => {
                    eprintln!("SKIP {}: {reason}", way.name);
                    report.skipped.insert(way.name, reason.to_string());
                }
                Err(error) => {
                    failure = Some(format!("{}: {error}", way.name));
                    break 'rounds;
                }
            }
        }
    }
    report.load[1] = load();
    arguments.results.show("pages.json", &report, &table(&report))?;
    failure.map_or(Ok(()), |failure| Err(failure.into()))
}

/// The ways with these names, or all.
fn ways(names: &[String]) -> Result<Vec<&'static PageWay>, String> {
    let known = || PAGE_WAYS.iter().map(|way| way.name);
    if let Some(name) = names.iter().find(|name| !known().any(|it| it == *name)) {
        let known: Vec<_> = known().collect();
        return Err(format!("--ways: found '{name}', expected some of {}", known.join(", ")));
    }
    let is_asked = |way: &&PageWay| names.is_empty() || names.iter().any(|name| name == way.name);
    Ok(PAGE_WAYS.iter().filter(is_asked).collect())
}

fn table(report: &Report) -> String {
    let mut text = format!(
        "{}: {}\n{}; {}; Linux {}, load of the machine {} before and {} after\n\n\
         {:<14}{:>6}{:>9}{:>15}{:>8}{:>10}{:>9}{:>9}{:>9}\n\
         {:<14}{:>6}{:>9}{:>15}{:>8}{:>10}{:>9}{:>9}{:>9}\n",
        report.case,
        report.title,
        report.page,
        report.browser,
        report.kernel,
        report.load[0],
        report.load[1],
        "",
        "loads",
        "median",
        "95% interval",
        "worst",
        "not whole",
        "others",
        "link",
        "dropped",
        "way",
        "",
        "s",
        "s",
        "s",
        "",
        "kbit/s",
        "used %",
        "%",
    );
    for way in &PAGE_WAYS {
        let Some(rounds) = report.ways.get(way.name) else { continue };
        let loads = rounds.iter().flat_map(|round| &round.loads_s);
        // Whatever was given up took longer than all that was not.
        let times: Vec<f64> = loads.map(|time| time.unwrap_or(f64::INFINITY)).collect();
        let lost = times.iter().filter(|time| time.is_infinite()).count();
        let worst = times.iter().copied().fold(0.0, f64::max);
        let Some(median) = Centre::Median.of(times.iter().copied()) else { continue };
        let interval = median
            .interval
            .map_or(String::new(), |(low, high)| format!("{} to {}", seconds(low), seconds(high)));
        let mean = |of: fn(&Round) -> f64| {
            Estimate::mean(rounds.iter().map(of)).map_or(f64::NAN, |it| it.value)
        };
        let _ = writeln!(
            text,
            "{:<14}{:>6}{:>9}{:>15}{:>8}{:>10}{:>9.0}{:>9.1}{:>9.1}",
            way.name,
            times.len(),
            seconds(median.value),
            interval,
            seconds(worst),
            lost,
            mean(|it| it.others_kbps),
            mean(|it| it.link_used_percent),
            mean(|it| it.dropped_percent),
        );
    }
    let _ = writeln!(
        text,
        "\nPage-load times by the browser's clock, over all rounds; - is longer than a load may \
         take: {} s with the\nbrowser's start. Not whole: not loaded in that time, or with a broken \
         picture. Others and link: mean of the rounds.",
        PAGE_WAYS.iter().map(|way| way.every().as_seconds()).fold(0.0, f64::max)
    );
    for (way, reason) in &report.skipped {
        let _ = writeln!(text, "SKIP {way}: {reason}");
    }
    text
}

fn seconds(time: f64) -> String {
    if time.is_finite() { format!("{time:.2}") } else { "-".into() }
}
