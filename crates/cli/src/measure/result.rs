//! What a measurement comes to: the verdict in the words of a comparison, a table, and the
//! same as JSON.

use std::fmt::Write as _;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;

use serde::Serialize;
use tidegate_study::comparison::{Comparison, DisciplineResult};
use tidegate_study::rounds::{Facts, Reading, comparison};
use tidegate_study::verdict::{Answer, Latency as Graded, Verdict};
use tidegate_study::{Centre, Estimate, Sample, e_model};

use super::client::SHORT_BYTES;
use super::queue::Choice;
use super::record::{Latency, Record, Times};
use super::target::Target;
use crate::arguments::MeasureRunArguments;
use crate::failure::Failure;
use crate::output::filled;
use crate::report::answer::{self, Words};
use crate::report::rounds::{self, Rounds, Trace};

/// Between two columns of the table.
const GAP: usize = 2;
/// Its columns, with their units.
const COLUMNS: [(&str, &str); 12] = [
    ("queue", ""),
    ("idle", "ms"),
    ("median", "ms"),
    ("p95", "ms"),
    ("p99", "ms"),
    ("by load", "ms"),
    ("R", "of 100"),
    ("MOS", ""),
    ("mean", "ms"),
    ("p95", "ms"),
    ("down", "Mbit/s"),
    ("up", "Mbit/s"),
];
/// What stands where nothing was measured.
const NOTHING: &str = "-";
/// The round that the report draws over time: the first, which every result has.
const DRAWN: u64 = 1;
/// The headings over its columns.
const GROUPS: [(&str, RangeInclusive<usize>); 5] = [
    ("round trips", 1..=4),
    ("added", 5..=5),
    ("call", 6..=7),
    ("short transfers", 8..=9),
    ("long transfers", 10..=11),
];

/// A queue that this machine lacks, and why.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LeftOut {
    pub(super) label: String,
    pub(super) reason: String,
}

/// One queue in one round.
pub(super) struct Run {
    /// Its place in the list of queues.
    pub(super) place: usize,
    pub(super) round: u64,
    /// How it ran.
    pub(super) form: String,
    pub(super) record: Record,
}

/// What was measured so far.
pub(super) struct Measured {
    server: String,
    interface: String,
    times: Times,
    facts: Facts,
    queues: Vec<MeasuredQueue>,
    left_out: Vec<LeftOut>,
    notes: Vec<String>,
}

/// A queue with what was measured of it.
#[derive(Clone, Debug, Serialize)]
struct MeasuredQueue {
    label: String,
    /// What it is, in the words of the command line.
    queue: String,
    /// How it ran; empty before the first run.
    form: String,
    runs: Vec<MeasuredRun>,
    /// The run of the round that is drawn.
    #[serde(skip)]
    trace: Trace,
}

/// A run as programs see it: the figures, without the series.
#[derive(Clone, Debug, Serialize)]
struct MeasuredRun {
    round: u64,
    round_trip: Latency,
    download_bps: Option<f64>,
    upload_bps: Option<f64>,
    #[serde(skip)]
    reading: Reading,
}

/// What is printed.
#[derive(Debug, Serialize)]
pub(super) struct Answered {
    server: String,
    interface: String,
    rounds: u64,
    load_s: f64,
    counted_s: f64,
    #[serde(skip)]
    times: Times,
    left_out: Vec<LeftOut>,
    notes: Vec<String>,
    queues: Vec<MeasuredQueue>,
    said: Words,
    verdict: Verdict,
    #[serde(flatten)]
    comparison: Comparison,
}

impl Measured {
    pub(super) fn new(
        arguments: &MeasureRunArguments,
        target: &Target,
        interface: &str,
        times: Times,
        choices: &[Choice],
        left_out: Vec<LeftOut>,
    ) -> Measured {
        let rate = |rate: Option<tidegate_core::Rate>| rate.map(|it| it.0 as f64);
        let server = &arguments.server;
        let facts = Facts {
            title: format!("The link at {interface}, measured towards {server}"),
            seconds: times.counted_s(),
            rates_bps: [rate(arguments.down), rate(arguments.up)],
            short_bytes: SHORT_BYTES,
            rounds: arguments.rounds,
        };
        let queue = |it: &Choice| MeasuredQueue {
            label: it.label.clone(),
            queue: it.queue.to_string(),
            form: String::new(),
            runs: Vec::new(),
            trace: Trace::default(),
        };
        Measured {
            server: server.clone(),
            interface: interface.into(),
            times,
            facts,
            queues: choices.iter().map(queue).collect(),
            left_out,
            notes: target.lacks().into_iter().map(str::to_owned).collect(),
        }
    }

    pub(super) fn add(&mut self, run: Run) {
        for note in &run.record.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
        let reading = run.record.reading(run.round);
        let queue = &mut self.queues[run.place];
        queue.form = run.form;
        if run.round == DRAWN {
            queue.trace = run.record.trace();
        }
        queue.runs.push(MeasuredRun {
            round: run.round,
            round_trip: run.record.latency(),
            download_bps: reading.long_bps[0],
            upload_bps: reading.long_bps[1],
            reading,
        });
    }

    /// Whether each queue was measured at least once.
    pub(super) fn has_results(&self) -> bool {
        self.queues.iter().all(|it| !it.runs.is_empty())
    }

    /// Whether more rounds would hardly change the verdict.
    pub(super) fn is_settled(&self) -> bool {
        let comparison = self.comparison();
        Verdict::of_rounds(&comparison).is_settled(&comparison)
    }

    fn comparison(&self) -> Comparison {
        let readings = |it: &MeasuredQueue| it.runs.iter().map(|run| run.reading.clone()).collect();
        let queues: Vec<_> =
            self.queues.iter().map(|it| (it.label.clone(), readings(it))).collect();
        comparison(&self.facts, &queues)
    }

    /// A failure with what there is in spite of it.
    pub(super) fn partial(&self, failure: Failure) -> Failure {
        let done: usize = self.queues.iter().map(|it| it.runs.len()).sum();
        let all = self.facts.rounds as usize * self.queues.len();
        let there = if self.has_results() {
            format!("the results cover {done} of {all} runs, and are marked as partial")
        } else {
            format!("{done} of {all} runs were measured, which is no result")
        };
        match failure {
            Failure::Interrupted(text) => Failure::Interrupted(format!("{text}: {there}")),
            Failure::Other(text) if done > 0 => Failure::Other(format!("{text}; {there}")),
            other => other,
        }
    }

    /// The verdict on what was measured.
    pub(super) fn answered(&self) -> Answered {
        let comparison = self.comparison();
        let verdict = Verdict::of_rounds(&comparison);
        let mut said = answer::words(&verdict);
        if let Some(headline) = headline(&verdict) {
            said.headline = headline;
        }
        Answered {
            server: self.server.clone(),
            interface: self.interface.clone(),
            rounds: self.facts.rounds,
            load_s: self.times.load_s,
            counted_s: self.times.counted_s(),
            times: self.times,
            left_out: self.left_out.clone(),
            notes: self.notes.clone(),
            queues: self.queues.clone(),
            said,
            verdict,
            comparison,
        }
    }
}

/// What a verdict on rounds says otherwise than one on seeds; `None` where it is the same.
fn headline(verdict: &Verdict) -> Option<String> {
    let baseline = verdict.baseline.as_deref().unwrap_or("nothing");
    Some(match verdict.answer {
        Answer::Alike => {
            format!("Keep {baseline}: no difference that anybody would notice.")
        }
        Answer::Unclear => format!(
            "The rounds do not say: {} may be better than {baseline}, but what differs is within \
             the noise. Measure more --rounds.",
            verdict.run.join(" or ")
        ),
        Answer::TooFewRuns => "One round does not say what is better: in the next minute it may \
                               be the other way round. Measure more, for example --rounds 6."
            .into(),
        Answer::OneOnly => format!(
            "Only {baseline} was measured, so there is nothing to choose. With --up and --down, \
             others can be measured beside it."
        ),
        _ => return None,
    })
}

impl Answered {
    /// For a terminal, in lines of at most `width` columns where there is room.
    pub(super) fn text(&self, width: usize) -> String {
        let partial = if self.comparison.partial { " (PARTIAL: runs are missing)" } else { "" };
        let mut text = format!("{}{partial}\n\n", self.comparison.title);
        text += &self.said.text(width.min(crate::table::WIDTH));
        text.push('\n');
        text += &self.table();
        text.push('\n');
        let width = width.min(crate::table::WIDTH);
        text += &filled("", &self.about(), width);
        self.all_notes().for_each(|it| text += &filled("", &it, width));
        text
    }

    /// How to read the figures.
    fn about(&self) -> String {
        let rounds = self.comparison.seeds.len();
        let mut about = format!(
            "{} with {:.0} s of load for each queue, of which the last {:.0} s count.",
            if rounds == 1 { "One round".into() } else { format!("{rounds} rounds") },
            self.load_s,
            self.counted_s
        );
        if rounds > 1 {
            let _ = write!(about, " ± is the 95% interval of a mean over rounds.");
        }
        about += " Round trips: the mean over rounds of what each says. Added: to the delay of \
                  one way, with its grade. Call: the worse direction.";
        about
    }

    /// What to know of the server, and of what was left out.
    fn all_notes(&self) -> impl Iterator<Item = String> {
        let left_out = |LeftOut { label, reason }: &LeftOut| format!("Left out {label}: {reason}.");
        self.notes.iter().cloned().chain(self.left_out.iter().map(left_out))
    }

    /// Writes the report into a folder.
    pub(super) fn write(&self, folder: &Path, command: &str) -> io::Result<()> {
        let (shown, rows) = self.figures();
        let heading = |column: &usize| {
            let group = GROUPS.iter().find(|(_, columns)| columns.contains(column));
            let (name, unit) = COLUMNS[*column];
            let unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
            group.map_or_else(String::new, |(group, _)| format!("{group}: {name}{unit}"))
        };
        let pick =
            |row: &[String; COLUMNS.len()]| shown.iter().map(|it| row[*it].clone()).collect();
        let queues = self.queues.iter().map(|it| {
            let form = if it.form.is_empty() { &it.queue } else { &it.form };
            (format!("Queue {}", it.label), form.clone())
        });
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let facts = [
            ("Program".into(), concat!("tidegate ", env!("CARGO_PKG_VERSION")).into()),
            ("Kernel".into(), format!("Linux {}", kernel.trim())),
            ("Interface".into(), self.interface.clone()),
            ("Server".into(), self.server.clone()),
        ];
        let rounds = Rounds {
            comparison: &self.comparison,
            verdict: &self.verdict,
            said: &self.said,
            headings: shown[1..].iter().map(heading).collect(),
            rows: rows.iter().map(pick).collect(),
            about: self.about(),
            notes: self.all_notes().collect(),
            round: DRAWN,
            traces: self.queues.iter().map(|it| it.trace.clone()).collect(),
            loaded_s: self.times.idle_s,
            counted_s: self.times.window(),
            facts: facts.into_iter().chain(queues).collect(),
            command: command.into(),
        };
        rounds::write(folder, &rounds)
    }

    fn table(&self) -> String {
        let (shown, figures) = self.figures();
        // The name of the first column stands directly above the queues.
        let mut rows = vec![COLUMNS.map(|it| it.0.to_owned()), COLUMNS.map(|it| it.1.to_owned())];
        rows[1][0] = std::mem::take(&mut rows[0][0]);
        rows.extend(figures);
        let width_of = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let mut widths: Vec<usize> =
            (0..rows[0].len()).map(|column| width_of(column).unwrap_or(0)).collect();
        let mut head = " ".repeat(widths[0]);
        for (heading, columns) in GROUPS {
            let columns: Vec<usize> = columns.filter(|it| shown.contains(it)).collect();
            let Some(first) = columns.first() else { continue };
            let width =
                |widths: &[usize]| columns.iter().map(|it| widths[*it] + GAP).sum::<usize>() - GAP;
            widths[*first] += heading.len().saturating_sub(width(&widths));
            let _ = write!(head, "{:GAP$}{heading:>width$}", "", width = width(&widths));
        }
        let mut text = format!("{head}\n");
        for row in &rows {
            let mut line = format!("{:width$}", row[0], width = widths[0]);
            for column in &shown[1..] {
                let _ =
                    write!(line, "{:GAP$}{:>width$}", "", row[*column], width = widths[*column]);
            }
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }

    /// The columns in which anything was measured, and a row for each queue.
    fn figures(&self) -> (Vec<usize>, Vec<[String; COLUMNS.len()]>) {
        let queues = self.queues.iter().zip(&self.comparison.disciplines);
        let rows: Vec<_> = queues.map(|(queue, result)| self.row(queue, result)).collect();
        let is_empty = |column: usize| rows.iter().all(|row| row[column] == NOTHING);
        let shown = (0..COLUMNS.len()).filter(|it| *it == 0 || !is_empty(*it)).collect();
        (shown, rows)
    }

    fn row(&self, queue: &MeasuredQueue, result: &DisciplineResult) -> [String; COLUMNS.len()] {
        let trip = |of: fn(&Latency) -> Option<f64>| {
            let values = queue.runs.iter().filter_map(|it| of(&it.round_trip));
            Estimate::mean(values).map_or(NOTHING.into(), |it| decimals(it.value * 1e3))
        };
        let graded = self.verdict.latency_of(&result.label);
        let call = graded.and_then(|it| it.call.as_ref());
        let source = |name: &str| result.traffic.iter().find(|it| it.name == name);
        let rate = |name| source(name).and_then(|it| it.long_goodput_bps.as_ref());
        let cell = |sample: Option<&Sample>, factor: f64, interval: bool| {
            sample.map_or(NOTHING.into(), |it| with_interval(it.estimate(), factor, interval))
        };
        let rating = call.and_then(|it| source(&it.source)?.call_rating.as_ref());
        [
            result.label.clone(),
            trip(|it| it.idle_s),
            trip(|it| it.median_s),
            trip(|it| it.p95_s),
            trip(|it| it.p99_s),
            graded.map_or(NOTHING.into(), grade),
            cell(rating, 1.0, true),
            call.map_or(NOTHING.into(), |it| format!("{:.1}", e_model::mos(it.rating))),
            cell(result.short.mean_s.as_ref(), 1e3, true),
            cell(result.short.p95_s.as_ref(), 1e3, false),
            cell(rate("download"), 1e-6, true),
            cell(rate("upload"), 1e-6, true),
        ]
    }
}

/// What load adds to the one-way delay, with its grade.
fn grade(latency: &Graded) -> String {
    match (latency.grade, latency.added_s) {
        (Some(grade), Some(added)) => format!("{} {grade}", decimals(added * 1e3)),
        _ => NOTHING.into(),
    }
}

fn with_interval(estimate: Estimate, factor: f64, interval: bool) -> String {
    let places = places(estimate.value * factor);
    if interval && estimate.centre == Centre::Mean {
        estimate.text(factor, places)
    } else {
        format!("{:.places$}", estimate.value * factor)
    }
}

fn decimals(value: f64) -> String {
    format!("{value:.places$}", places = places(value))
}

/// Three digits.
fn places(value: f64) -> usize {
    match value {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    }
}
