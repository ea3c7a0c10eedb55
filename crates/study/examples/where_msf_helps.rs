//! Where `msf` helps and where it costs, on every gateway that Tidegate ships.
//!
//! ```sh
//! cargo run --release -p tidegate-study --example where_msf_helps -- \
//!     docs/requests/where.md 10
//! ```
//!
//! writes the tables of the page. Each file of `scenarios/gateways/` runs under the same
//! ways, rivals at their best setting, with as many seeds as the number says. All ways
//! meet the same demand, so `msf` is compared with each of them seed by seed: a cell is
//! its figure as a part of the other's, the mean over seeds with its 95% interval.
//!
//! Where servers fail a class in a way of its own, or its clients read slowly, the others
//! of the same file run without such classes too, with each of them, and with all.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use tidegate_sim::requests::{Class, Outcome, Way};
use tidegate_sim::scenario::file::gateway::{self, Comparison};
use tidegate_study::experiment::{self, Forget};
use tidegate_study::requests::Run;
use tidegate_study::shipped::Beside;
use tidegate_study::{Centre, Estimate};
use tidegate_twins::pages;

/// Where the files lie.
const FOLDER: &str = "gateways/";

/// Label, name and settings.
type Setting = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// The first is compared with the others.
const WAYS: [Setting; 7] = [
    ("msf", "msf", &[]),
    ("direct", "direct", &[]),
    ("fifo", "fifo", &[]),
    ("paper", "paper", &[]),
    ("htb", "htb", &[("queue", "25")]),
    ("pools", "pools", &[]),
    ("shaped-cake", "shaped-cake", &[]),
];

/// Those under which users are compared with themselves without others in the way.
const BESIDE_OTHERS: usize = 4;

/// An interval that lies wholly beyond this is a gain or a price worth a mark.
const WORTH_A_MARK: f64 = 0.05;

/// What is compared of a run; smaller is better.
type Measure = fn(&Outcome) -> Option<f64>;

const MEASURES: [(&str, Measure); 3] = [
    ("Mean response", |run| run.all(|class| &class.response).mean()),
    ("Median of small responses", |run| run.all(|class| &class.small).quantile(0.5)),
    ("95th percentile of all responses", |run| run.all(|class| &class.response).quantile(0.95)),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = PathBuf::from(arguments.next().ok_or("usage: where_msf_helps PAGE [SEEDS]")?);
    let seeds: u64 = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let mut page = fs::read_to_string(&path)?;
    let mut results = Vec::new();
    let mut hindered = Vec::new();
    for (file, _) in tidegate_scenarios::FILES {
        let Some(name) = file.strip_prefix(FOLDER).and_then(|name| name.strip_suffix(".toml"))
        else {
            continue;
        };
        eprintln!("{name}");
        let comparison = read(file, seeds)?;
        results.push((name, runs(&comparison)?));
        hindered.extend(with_and_without(name, comparison)?);
    }
    for (heading, measure) in MEASURES {
        page = pages::with_table(&page, heading, &beside_others(&results, measure));
    }
    page = pages::with_table(&page, "Use of the link", &uses(&results));
    page = pages::with_table(&page, "Rates of the classes", &rates(&results));
    page = pages::with_table(&page, "Users in the way", &in_the_way(&hindered));
    fs::write(path, page)?;
    Ok(())
}

/// A file, with the ways and seeds of the page.
fn read(file: &'static str, seeds: u64) -> Result<Comparison, Box<dyn Error>> {
    let text = tidegate_scenarios::text(file).ok_or("a scenario is text")?;
    let mut comparison: Comparison = gateway::parse(file, text, &Beside(file))?;
    let ways = WAYS.iter().map(|(label, name, given)| Way::new(label, name, given));
    comparison.ways =
        ways.map(|way| way.map(|way| way.expect("it is listed"))).collect::<Result<_, _>>()?;
    comparison.seeds = (1..=seeds).collect();
    Ok(comparison)
}

/// The outcomes of a comparison: by way, and for each by seed.
fn runs(comparison: &Comparison) -> Result<Vec<Vec<Outcome>>, Box<dyn Error>> {
    let threads = std::thread::available_parallelism()?.get();
    let Ok(runs) = experiment::run(comparison, threads, &AtomicBool::new(false), &Forget);
    let mut ways = vec![Vec::new(); comparison.ways.len()];
    for Run { way, outcome, .. } in runs {
        ways[way].push(outcome);
    }
    Ok(ways)
}

/// The users of a file beside some who are in the way.
struct Hindered {
    /// The name of the file.
    file: &'static str,
    /// Who is in the way, by the name of their class.
    by: String,
    /// How many classes are not in the way: the first ones.
    others: usize,
    /// By way, and for each by seed.
    with: Vec<Vec<Outcome>>,
}

/// Whether servers fail a class in a way of its own, or its clients read slowly.
fn is_in_the_way(class: &Class) -> bool {
    class.failures.is_some() || class.client_rate.is_some()
}

/// The users of a file without those in the way, with each class of these, and with all;
/// nothing where nobody is.
fn with_and_without(
    file: &'static str,
    mut comparison: Comparison,
) -> Result<Vec<Hindered>, Box<dyn Error>> {
    let classes = std::mem::take(&mut comparison.setup.classes);
    let others = classes.iter().take_while(|class| !is_in_the_way(class)).count();
    let hindering = &classes[others..];
    comparison.ways.truncate(BESIDE_OTHERS);
    let alone = hindering.chunks(1).map(|class| (class[0].name.clone(), class));
    let all = (hindering.len() > 1).then(|| ("all of them".to_string(), hindering));
    let nobody = (!hindering.is_empty()).then(|| ("nobody".to_string(), &hindering[..0]));
    let mut found = Vec::new();
    for (by, hindering) in nobody.into_iter().chain(alone).chain(all) {
        comparison.setup.classes = [&classes[..others], hindering].concat();
        found.push(Hindered { file, by, others, with: runs(&comparison)? });
    }
    Ok(found)
}

/// A line for those of a file alone, and for each who is in their way: what is used of the
/// link, and what is left to the others.
fn in_the_way(hindered: &[Hindered]) -> String {
    let ways = &WAYS[..BESIDE_OTHERS];
    let head = |what: &str| -> Vec<String> {
        ways.iter().map(|(label, ..)| format!("{what}, `{label}`")).collect()
    };
    let heads = [head("use"), head("small"), head("rates")].concat();
    let columns = " ---: |".repeat(heads.len());
    let mut table =
        format!("| gateway | in the way | {} |\n| --- | --- |{columns}\n", heads.join(" | "));
    for group in hindered.chunk_by(|one, next| one.file == next.file) {
        let alone = &group[0];
        for it in group {
            let pairs = |way: usize| it.with[way].iter().zip(&alone.with[way]);
            let is_alone = std::ptr::eq(it, alone);
            let used = |way: usize| {
                let before = |alone: &Outcome| if is_alone { 0.0 } else { alone.utilisation };
                let points =
                    pairs(way).map(|(with, alone)| (with.utilisation - before(alone)) * 100.0);
                Centre::Mean.of(points).map_or("-".into(), |points| points.text(1.0, 1))
            };
            let small = |way: usize| {
                let median = |run: &Outcome| {
                    let of_others = Outcome {
                        classes: run.classes[..it.others].to_vec(),
                        ..Outcome::default()
                    };
                    of_others.all(|class| &class.small).quantile(0.5)
                };
                let parts = pairs(way).filter_map(|(with, alone)| {
                    Some(median(with)? / if is_alone { 1.0 } else { median(alone)? })
                });
                Centre::Mean.of(parts).map_or("-".into(), |part| part.text(1.0, 2))
            };
            let rates = |way: usize| classes_rates(&it.with[way], it.others);
            let cells =
                |of: &dyn Fn(usize) -> String| -> Vec<String> { (0..ways.len()).map(of).collect() };
            let cells = [cells(&used), cells(&small), cells(&rates)].concat();
            table += &format!("| `{}` | {} | {} |\n", it.file, it.by, cells.join(" | "));
        }
    }
    table
}

/// A line for each file: what `msf` has of a measure, and as a part of what others have.
fn beside_others(results: &[(&str, Vec<Vec<Outcome>>)], measure: Measure) -> String {
    let others: Vec<String> =
        WAYS.iter().skip(1).map(|(label, ..)| format!("beside `{label}`")).collect();
    let mut table = format!(
        "| gateway | `msf`, s | {} |\n| --- | ---: |{}\n",
        others.join(" | "),
        " ---: |".repeat(others.len())
    );
    for (name, ways) in results {
        let own: Vec<Option<f64>> = ways[0].iter().map(measure).collect();
        let value = Centre::Mean.of(own.iter().copied().flatten());
        let mut cells = vec![value.map_or("-".into(), |value| value.text(1.0, 2))];
        for other in &ways[1..] {
            let pairs = own.iter().zip(other.iter().map(measure));
            let ratios = pairs.filter_map(|(own, other)| Some((*own)? / other?));
            cells.push(Centre::Mean.of(ratios).as_ref().map_or("-".into(), marked));
        }
        table += &format!("| `{name}` | {} |\n", cells.join(" | "));
    }
    table
}

/// A ratio with a mark where its whole interval says that `msf` helps or costs.
fn marked(ratio: &Estimate) -> String {
    let text = ratio.text(1.0, 2);
    match ratio.interval {
        Some((low, _)) if low > 1.0 + WORTH_A_MARK => format!("**costs** {text}"),
        Some((_, high)) if high < 1.0 - WORTH_A_MARK => format!("helps {text}"),
        _ => text,
    }
}

/// A line for each file: the percentage of the link that each way uses.
fn uses(results: &[(&str, Vec<Vec<Outcome>>)]) -> String {
    by_way(results, |runs| {
        let used = Centre::Mean.of(runs.iter().map(|run| run.utilisation * 100.0));
        used.map_or("-".into(), |used| used.text(1.0, 1))
    })
}

/// A line for each file: what its classes receive, in the order of the file.
fn rates(results: &[(&str, Vec<Vec<Outcome>>)]) -> String {
    by_way(results, |runs| classes_rates(runs, runs.first().map_or(0, |run| run.classes.len())))
}

/// What each of the first classes receives, in Mbit/s.
fn classes_rates(runs: &[Outcome], classes: usize) -> String {
    let rate = |class| Centre::Mean.of(runs.iter().map(|run| run.throughput_bps(class) / 1e6));
    let rates = (0..classes).filter_map(rate).map(|rate| format!("{:.2}", rate.value));
    rates.collect::<Vec<_>>().join(" : ")
}

/// A line for each file with a cell for each way.
fn by_way(results: &[(&str, Vec<Vec<Outcome>>)], cell: impl Fn(&[Outcome]) -> String) -> String {
    let labels: Vec<String> = WAYS.iter().map(|(label, ..)| format!("`{label}`")).collect();
    let mut table = format!(
        "| gateway | {} |\n| --- |{}\n",
        labels.join(" | "),
        " ---: |".repeat(labels.len())
    );
    for (name, ways) in results {
        let cells: Vec<String> = ways.iter().map(|runs| cell(runs)).collect();
        table += &format!("| `{name}` | {} |\n", cells.join(" | "));
    }
    table
}
