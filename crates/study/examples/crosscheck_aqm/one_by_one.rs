//! The transfers of one run of ns-3 compared with ours one by one: the same size at the
//! same time between the same hosts, so that nothing differs but what the two
//! simulators do with them.

use std::error::Error;
use std::sync::atomic::AtomicBool;

use serde::Deserialize;
use tidegate_core::Span;
use tidegate_sim::metrics::{FlowRecord, Recorder};
use tidegate_sim::scenario::DisciplineChoice;
use tidegate_sim::simulation;

use super::transfers::{self, PAIRS};
use super::workload;

/// Response times that differ by no more than this are alike: less than one packet
/// takes at the bottleneck.
pub(crate) const ALIKE: Span = Span::millis(1);

/// A transfer as `dumbbell --flows` writes it.
#[derive(Deserialize)]
struct Row {
    start_s: f64,
    size_segments: u32,
    response_s: Option<f64>,
}

/// One transfer in both simulators.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    /// Segments.
    pub(crate) size: u32,
    /// Response times of ns-3 and of ours in seconds, if it was completed.
    pub(crate) seconds: [Option<f64>; 2],
}

impl Pair {
    /// Whether both took as long, or neither completed it.
    pub(crate) fn is_alike(&self) -> bool {
        match self.seconds {
            [Some(peer), Some(ours)] => (peer - ours).abs() <= ALIKE.as_seconds(),
            [peer, ours] => peer == ours,
        }
    }
}

/// The response times of a run, by source and by number.
struct Responses(Vec<Vec<Option<f64>>>);

impl Recorder for Responses {
    fn flow(&mut self, row: &FlowRecord) {
        let own = &mut self.0[row.traffic];
        let place = row.number as usize;
        own.resize(own.len().max(place + 1), None);
        own[place] = row.response.map(Span::as_seconds);
    }
}

/// The transfers that ns-3 has drawn with this load in Mbit/s and this seed, in both
/// simulators, through this discipline. ns-3's response times are those of `file`; `departures` as in
/// [`workload::dumbbell`].
///
/// # Errors
/// When the file cannot be read, or is of other transfers.
pub(crate) fn pairs(
    discipline: &DisciplineChoice,
    load: f64,
    seed: u64,
    file: &str,
    departures: Option<&str>,
) -> Result<Vec<Pair>, Box<dyn Error>> {
    let rows: Vec<Row> = csv::Reader::from_path(file)?.deserialize().collect::<Result<_, _>>()?;
    // ns-3 ran for whole minutes.
    let last = rows.last().ok_or("there are no transfers")?.start_s;
    let duration = Span::seconds(10 * (last as u64 / 10 + 1));
    let drawn = transfers::poisson(seed, load, duration);
    let is_same = |(row, one): (&Row, &transfers::Transfer)| {
        row.size_segments == one.size && (row.start_s - one.start.as_seconds()).abs() < 1e-6
    };
    if rows.len() != drawn.len() || !std::iter::zip(&rows, &drawn).all(is_same) {
        return Err(format!("{file} is of another load or seed").into());
    }
    let mut scenario = workload::dumbbell(departures);
    scenario.duration = duration;
    workload::replay(&mut scenario, &drawn);
    let mut ours = Responses(vec![Vec::new(); PAIRS * PAIRS]);
    simulation::run(&scenario, discipline, seed, &mut ours, &AtomicBool::new(false));
    let mut next = [0; PAIRS * PAIRS];
    let pair = |(row, one): (Row, &transfers::Transfer)| {
        let source = workload::source(one);
        let response = ours.0[source].get(next[source]).copied().flatten();
        next[source] += 1;
        Pair { size: one.size, seconds: [row.response_s, response] }
    };
    Ok(std::iter::zip(rows, &drawn).map(pair).collect())
}

/// Segments of the largest transfer of each class but the last.
const CLASSES: [u32; 6] = [6, 10, 20, 50, 200, 1_000];

/// Prints how many transfers are alike, by size.
///
/// # Errors
/// As [`pairs`].
pub(crate) fn compare(
    discipline: &DisciplineChoice,
    load: f64,
    seed: u64,
    file: &str,
    departures: Option<&str>,
) -> Result<(), Box<dyn Error>> {
    let pairs = pairs(discipline, load, seed, file, departures)?;
    println!("| segments | transfers | alike | ns-3, mean s | ours | difference % |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for class in 0..=CLASSES.len() {
        let of = |pair: &&Pair| CLASSES.partition_point(|most| *most < pair.size) == class;
        print(&class_name(class), pairs.iter().filter(of));
    }
    print("all", pairs.iter());
    Ok(())
}

fn class_name(class: usize) -> String {
    let least = class.checked_sub(1).map_or(6, |before| CLASSES[before] + 1);
    match CLASSES.get(class) {
        Some(most) if least == *most => least.to_string(),
        Some(most) => format!("{least}..{most}"),
        None => format!("{least}+"),
    }
}

fn print<'a>(name: &str, pairs: impl Iterator<Item = &'a Pair>) {
    let pairs: Vec<&Pair> = pairs.collect();
    let alike = pairs.iter().filter(|pair| pair.is_alike()).count();
    let done: Vec<[f64; 2]> =
        pairs.iter().filter_map(|pair| Some([pair.seconds[0]?, pair.seconds[1]?])).collect();
    let mean = |which: usize| done.iter().map(|both| both[which]).sum::<f64>() / done.len() as f64;
    let [peer, ours] = [mean(0), mean(1)];
    println!(
        "| {name} | {} | {alike} | {peer:.4} | {ours:.4} | {:+.1} |",
        pairs.len(),
        100.0 * (ours - peer) / peer
    );
}
