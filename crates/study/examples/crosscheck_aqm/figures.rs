//! The figures by which the two simulators are compared, and how far apart they may
//! be.
//!
//! A tenth is the amount by which two implementations of one RFC, each under its
//! own TCP, may differ and still give the same advice; a target that is a fifth off
//! lies outside it.

use std::fmt;
use std::path::Path;

use serde_json::Value;
use tidegate_sim::metrics::RunSummary;
use tidegate_sim::metrics::run_summary::jain_index;
use tidegate_study::Estimate;

use super::workload::{WARM_UP, Workload};

/// Results of `benches/ns3/run-aqm.sh`.
const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/ns3/results");
const CLASSES: [&str; 7] = ["6", "7-10", "11-20", "21-50", "51-200", "201-1000", "1001+"];

/// How far our mean over seeds may be from that of ns-3.
#[derive(Clone, Copy, Debug)]
enum Tolerance {
    /// A share of ns-3's mean, or so much where that is more.
    Share(f64, f64),
    /// So much.
    Points(f64),
}

/// What one packet takes to send: waits come in steps of it.
const PACKET_MS: f64 = 1.2;
const WAIT: Tolerance = Tolerance::Share(0.10, PACKET_MS);
/// Below a loss in 5 000 packets a tenth of it is a single packet now and then.
const RATIO: Tolerance = Tolerance::Share(0.10, 0.02);
const UTILISATION: Tolerance = Tolerance::Points(1.0);
const FAIRNESS: Tolerance = Tolerance::Points(0.02);
const RESPONSE: Tolerance = Tolerance::Share(0.10, 0.001);

/// One figure of one run.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    name: String,
    tolerance: Tolerance,
    /// `None` where nothing was there to measure.
    value: Option<f64>,
}

fn figure(name: impl Into<String>, tolerance: Tolerance, value: Option<f64>) -> Figure {
    Figure { name: name.into(), tolerance, value }
}

/// The figures of one run of ours.
pub(crate) fn ours(workload: &Workload, run: &RunSummary) -> Vec<Figure> {
    let link = run.links.iter().flatten().next().expect("the bottleneck has a queue");
    let milliseconds = |seconds: Option<f64>| seconds.map(|seconds| seconds * 1e3);
    let offered = link.counters.offered as f64;
    let mut figures = vec![
        figure("wait, mean ms", WAIT, milliseconds(link.delay.mean())),
        figure("wait, median ms", WAIT, milliseconds(link.delay.quantile(0.5))),
        figure("wait, 95% ms", WAIT, milliseconds(link.delay.quantile(0.95))),
        figure("wait, 99% ms", WAIT, milliseconds(link.delay.quantile(0.99))),
        figure("lost %", RATIO, Some(100.0 * link.counters.lost() as f64 / offered)),
        figure("marked %", RATIO, Some(100.0 * link.counters.marked as f64 / offered)),
        figure("utilisation %", UTILISATION, Some(100.0 * link.utilisation)),
    ];
    if workload.ends() {
        for (class, name) in std::iter::zip(&run.classes, CLASSES) {
            let seconds = [
                ("mean", class.response.mean()),
                ("median", class.response.quantile(0.5)),
                ("95%", class.response.quantile(0.95)),
            ];
            let named = seconds
                .map(|(kind, value)| figure(format!("{name} segments, {kind} s"), RESPONSE, value));
            figures.extend(named);
        }
    } else {
        figures.push(figure("fairness", FAIRNESS, jain_index(goodputs(run))));
    }
    figures
}

/// What each transfer without end delivered after the warm-up.
fn goodputs(run: &RunSummary) -> Vec<f64> {
    let sources = 0..run.traffic.len();
    let delivered = |source| {
        let own = run.progress.iter().filter(move |row| row.traffic == source);
        let mut counted = own.filter(|row| row.at.0 >= WARM_UP.0).map(|row| row.delivered.0);
        let first = counted.next().expect("a followed transfer has progress");
        (counted.next_back().expect("there is time after the warm-up") - first) as f64
    };
    sources.map(delivered).collect()
}

/// A run of ns-3.
pub(crate) struct PeerRun {
    /// Its seed.
    pub(crate) seed: u64,
    /// Its figures, in the order of [`ours`].
    pub(crate) figures: Vec<Figure>,
}

/// What was measured of ns-3 with the discipline that it calls `queue`; nothing
/// when it has not been measured with this workload.
///
/// # Panics
/// When a file is there and does not hold what `dumbbell --json` prints, or when
/// it is of other transfers.
pub(crate) fn peer(workload: &Workload, queue: &str) -> Vec<PeerRun> {
    let file = Path::new(RESULTS).join(format!("{queue}-{}.jsonl", workload.name));
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let run = |line| {
        let kept: Value = serde_json::from_str(line).expect("a line of JSON");
        let result = &kept["result"];
        let seed = result["seed"].as_u64().expect("a run has a seed");
        let started = result["classes"].as_array().into_iter().flatten();
        let started: u64 = started.filter_map(|class| class["started"].as_u64()).sum();
        assert_eq!(started, workload.transfers(seed) as u64, "ns-3 drew other transfers");
        PeerRun { seed, figures: peer_figures(workload, result) }
    };
    text.lines().map(run).collect()
}

fn peer_figures(workload: &Workload, result: &Value) -> Vec<Figure> {
    let queue = |key: &str| result["queue"][key].as_f64().expect("a figure of the queue");
    let share = |key| Some(100.0 * queue(key) / queue("arrived"));
    let mut figures = vec![
        figure("wait, mean ms", WAIT, Some(queue("mean_ms"))),
        figure("wait, median ms", WAIT, Some(queue("p50_ms"))),
        figure("wait, 95% ms", WAIT, Some(queue("p95_ms"))),
        figure("wait, 99% ms", WAIT, Some(queue("p99_ms"))),
        figure("lost %", RATIO, share("lost")),
        figure("marked %", RATIO, share("marked")),
        figure("utilisation %", UTILISATION, Some(100.0 * queue("utilisation"))),
    ];
    if workload.ends() {
        for (class, name) in CLASSES.iter().enumerate() {
            for (kind, key) in [("mean", "mean_s"), ("median", "median_s"), ("95%", "p95_s")] {
                let value = result["classes"][class][key].as_f64();
                figures.push(figure(format!("{name} segments, {kind} s"), RESPONSE, value));
            }
        }
    } else {
        figures.push(figure("fairness", FAIRNESS, result["jain"].as_f64()));
    }
    figures
}

/// One figure of both simulators, over the seeds.
pub(crate) struct Cell {
    /// What it is, with its unit.
    pub(crate) name: String,
    /// Mean over the seeds of ns-3, and over the same seeds of ours.
    means: [f64; 2],
    /// The mean of ours less ns-3's, seed by seed, with its interval.
    difference: Estimate,
    tolerance: Tolerance,
}

/// Whether a difference is within tolerance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Inside,
    /// It is not, but so few seeds may lie about that.
    Undecided,
    Outside,
}

impl Cell {
    /// Whether the two agree.
    pub(crate) fn verdict(&self) -> Verdict {
        let allowed = match self.tolerance {
            Tolerance::Share(share, least) => (share * self.means[0]).max(least),
            Tolerance::Points(points) => points,
        };
        let (low, high) = self.difference.interval.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        if self.difference.value.abs() <= allowed {
            Verdict::Inside
        } else if low <= allowed && high >= -allowed {
            Verdict::Undecided
        } else {
            Verdict::Outside
        }
    }
}

impl fmt::Display for Cell {
    /// ns-3's, ours, and the difference with its interval: in per cent of
    /// ns-3's where the tolerance is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [peer, ours] = self.means;
        let digits = if peer < 1.0 { 3 } else { usize::from(peer < 100.0) + 1 };
        let scale = match self.tolerance {
            Tolerance::Share(..) => 100.0 / peer,
            Tolerance::Points(_) => 1.0,
        };
        let difference = self.difference.value * scale;
        let half_width = self.difference.half_width().unwrap_or(f64::INFINITY) * scale;
        let mark = match self.verdict() {
            Verdict::Inside => "",
            Verdict::Undecided => " ?",
            Verdict::Outside => " **out**",
        };
        let places = if matches!(self.tolerance, Tolerance::Share(..)) { 1 } else { 2 };
        write!(f, "{peer:.digits$} {ours:.digits$} ")?;
        write!(f, "({difference:+.places$} ± {half_width:.places$}){mark}")
    }
}

/// Compares runs of both under the same seeds; what is zero in all has no cell.
pub(crate) fn compare(peer: &[PeerRun], ours: &[Vec<Figure>]) -> Vec<Cell> {
    let cell = |place: usize| {
        let pairs: Vec<(f64, f64)> = std::iter::zip(peer, ours)
            .filter_map(|(peer, ours)| Some((peer.figures[place].value?, ours[place].value?)))
            .collect();
        let count = pairs.len() as f64;
        let means = [
            pairs.iter().map(|pair| pair.0).sum::<f64>() / count,
            pairs.iter().map(|pair| pair.1).sum::<f64>() / count,
        ];
        let difference = Estimate::mean(pairs.iter().map(|(peer, ours)| ours - peer))?;
        let Figure { name, tolerance, .. } = ours.first()?[place].clone();
        (means != [0.0, 0.0]).then_some(Cell { name, means, difference, tolerance })
    };
    (0..ours.first().map_or(0, Vec::len)).filter_map(cell).collect()
}
