//! The kernel's figures as the repository keeps them, so that a page and a test need no
//! kernel: `benches/kernel/<bed>/`.
//!
//! `transfers.csv` has a row for each cell, log and size class; `flows.csv` what was
//! seen of one long flow for each controller, ten times a second, and `waits.csv` how
//! long its probes waited; `manifest.json` the kernel, the command and the day. Beds that
//! have no long flows have no files of them, nor of queues under several (`loaded.csv`);
//! `health.csv` says how well a bed worked that
//! knows it, and `promises.csv` what came of calls with a promise.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_link::{Failures, QueueStatus, Status};

use crate::figures::{self, Row};
use crate::flow::{Flow, Moment};
use crate::loaded;
use crate::promises::Outcome;

/// Where the kept figures are, from the root of the repository.
pub const FOLDER: &str = "benches/kernel";

/// How the figures came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The kernel's release.
    pub kernel: String,
    /// What measures them again.
    pub command: String,
    /// The day of the last measurement, as `date +%F` says it.
    pub date: String,
    /// The machine's processors, where its speed matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The commit of what was measured, where that is ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// How well a bed worked during a log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// The cell's name.
    pub cell: String,
    /// The log's number.
    pub log: u64,
    /// Packets on the path, both ways.
    pub packets: usize,
    /// How late half of them were at most.
    pub late_median_us: u32,
    /// How late 99 of 100 were at most.
    pub late_p99_us: u32,
    /// How late the worst of them was.
    pub late_max_us: u32,
    /// Packets that the live link sent to the client; none if there is no live link.
    pub sent_packets: u64,
    /// Packets that its discipline lost.
    pub lost_packets: u64,
    /// What went wrong with it that should not.
    pub failures: u64,
}

impl Health {
    /// The health of a bed with so late packets and this state of its link.
    #[must_use]
    pub fn of(cell: &str, log: u64, mut late_us: Vec<u32>, link: Option<&Status>) -> Health {
        late_us.sort_unstable();
        let at = |part: f64| {
            let rank = (part * late_us.len() as f64).ceil() as usize;
            late_us.get(rank.max(1) - 1).copied().unwrap_or_default()
        };
        let down = link.map(|status| status.queues[0].clone()).unwrap_or_default();
        Health {
            cell: cell.into(),
            log,
            packets: late_us.len(),
            late_median_us: at(0.5),
            late_p99_us: at(0.99),
            late_max_us: at(1.0),
            sent_packets: down.counts.sent_packets,
            lost_packets: down.counts.lost.all(),
            failures: link.map_or(0, |status| status.queues.iter().map(failures).sum()),
        }
    }
}

/// What went wrong in a direction.
fn failures(queue: &QueueStatus) -> u64 {
    let Failures {
        malformed_frames,
        unreadable_frames,
        missed_frames,
        no_memory_packets,
        unsent_packets,
    } = queue.failures;
    malformed_frames + unreadable_frames + missed_frames + no_memory_packets + unsent_packets
}

/// A moment of a long flow with this controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Step {
    controller: String,
    at_s: f64,
    window: f64,
    round_trip_ms: f64,
    pacing_mbps: Option<f64>,
    arrived_bytes: u64,
}

/// How long probes waited behind the long flow with this controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Wait {
    controller: String,
    mean_ms: f64,
    p5_ms: f64,
    median_ms: f64,
    p95_ms: f64,
}

/// What is kept of a bed.
#[derive(Clone, Debug)]
pub struct Kept {
    folder: PathBuf,
    /// Where they come from.
    pub manifest: Manifest,
    /// The figures of transfers.
    pub rows: Vec<Row>,
    /// The long flows, by the name of the controller.
    pub flows: Vec<(String, Flow)>,
    /// Queues under several long flows.
    pub loaded: Vec<loaded::Row>,
    /// How well the bed worked.
    pub health: Vec<Health>,
    /// What came of promises.
    pub promises: Vec<Outcome>,
}

impl Kept {
    /// Opens what `root` keeps of a bed; `None` if nothing was ever measured.
    ///
    /// # Errors
    /// When a file cannot be read, or is not what it should be.
    pub fn open(root: &Path, bed: &str) -> io::Result<Option<Kept>> {
        let folder = root.join(bed);
        if !folder.exists() {
            return Ok(None);
        }
        let manifest = serde_json::from_reader(File::open(folder.join("manifest.json"))?)?;
        let rows = figures::read(File::open(folder.join("transfers.csv"))?)?;
        let steps: Vec<Step> = read_if_there(&folder.join("flows.csv"))?;
        let waits: Vec<Wait> = read_if_there(&folder.join("waits.csv"))?;
        let loaded = read_if_there(&folder.join("loaded.csv"))?;
        let health = read_if_there(&folder.join("health.csv"))?;
        let promises = read_if_there(&folder.join("promises.csv"))?;
        let flow = |wait: Wait| {
            let of_it = steps.iter().filter(|step| step.controller == wait.controller);
            let path = of_it.map(|step| Moment {
                at_s: step.at_s,
                window: step.window,
                round_trip_ms: step.round_trip_ms,
                pacing_mbps: step.pacing_mbps,
                arrived_bytes: step.arrived_bytes,
            });
            let delays = [wait.p5_ms, wait.median_ms, wait.p95_ms];
            let flow = Flow::new(path.collect(), wait.mean_ms, delays);
            (wait.controller, flow)
        };
        let flows = waits.into_iter().map(flow).collect();
        Ok(Some(Kept { folder, manifest, rows, flows, loaded, health, promises }))
    }

    /// The same, or nothing yet if there is none; from now on it says that its figures
    /// come from `manifest`.
    ///
    /// # Errors
    /// As [`Kept::open`].
    pub fn renew(root: &Path, bed: &str, manifest: Manifest) -> io::Result<Kept> {
        let kept = Kept::open(root, bed)?;
        Ok(match kept {
            Some(kept) if kept.manifest.kernel == manifest.kernel => Kept { manifest, ..kept },
            // Figures of another kernel do not mix with these.
            _ => Kept {
                folder: root.join(bed),
                manifest,
                rows: Vec::new(),
                flows: Vec::new(),
                loaded: Vec::new(),
                health: Vec::new(),
                promises: Vec::new(),
            },
        })
    }

    /// Replaces the rows of a cell.
    pub fn put_rows(&mut self, cell: &str, rows: Vec<Row>) {
        self.rows.retain(|row| row.cell != cell);
        self.rows.extend(rows);
    }

    /// Replaces the rows of one log of a cell, and how well the bed worked in it.
    pub fn put_log(&mut self, rows: Vec<Row>, health: Health) {
        let Health { cell, log, .. } = &health;
        self.rows.retain(|row| (&row.cell, row.log) != (cell, *log));
        self.rows.extend(rows);
        self.health.retain(|row| (&row.cell, row.log) != (cell, *log));
        self.health.push(health);
    }

    /// Replaces what came of promises in one run of a discipline.
    pub fn put_promises(&mut self, outcomes: Vec<Outcome>) {
        let key = |outcome: &Outcome| (outcome.discipline.clone(), outcome.run);
        let new: Vec<_> = outcomes.iter().map(key).collect();
        self.promises.retain(|outcome| !new.contains(&key(outcome)));
        self.promises.extend(outcomes);
    }

    /// Replaces what a loaded queue did.
    pub fn put_loaded(&mut self, cell: &str, rows: Vec<loaded::Row>) {
        self.loaded.retain(|row| row.cell != cell);
        self.loaded.extend(rows);
    }

    /// Replaces the long flow of a controller.
    pub fn put_flow(&mut self, controller: &str, flow: Flow) {
        self.flows.retain(|(name, _)| name != controller);
        self.flows.push((controller.into(), flow));
    }

    /// Writes everything, in an order that does not depend on what came first.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn save(&mut self) -> io::Result<()> {
        self.rows.sort_by(|a, b| (&a.cell, a.log, a.class).cmp(&(&b.cell, b.log, b.class)));
        self.flows.sort_by(|a, b| a.0.cmp(&b.0));
        fs::create_dir_all(&self.folder)?;
        let create =
            |name: &str| io::Result::Ok(BufWriter::new(File::create(self.folder.join(name))?));
        let mut steps = Vec::new();
        let mut waits = Vec::new();
        for (controller, flow) in &self.flows {
            steps.extend(flow.path.iter().map(|moment| Step {
                controller: controller.clone(),
                at_s: rounded(moment.at_s),
                window: moment.window,
                round_trip_ms: moment.round_trip_ms,
                pacing_mbps: moment.pacing_mbps.map(rounded),
                arrived_bytes: moment.arrived_bytes,
            }));
            let [p5_ms, median_ms, p95_ms] = flow.delay_ms.map(rounded);
            let mean_ms = rounded(flow.delay_mean_ms);
            waits.push(Wait { controller: controller.clone(), mean_ms, p5_ms, median_ms, p95_ms });
        }
        figures::write(&self.rows, create("transfers.csv")?)?;
        if !waits.is_empty() {
            figures::write(&steps, create("flows.csv")?)?;
            figures::write(&waits, create("waits.csv")?)?;
        }
        if !self.loaded.is_empty() {
            self.loaded.sort_by(|a, b| (&a.cell, a.log).cmp(&(&b.cell, b.log)));
            figures::write(&self.loaded, create("loaded.csv")?)?;
        }
        if !self.health.is_empty() {
            self.health.sort_by(|a, b| (&a.cell, a.log).cmp(&(&b.cell, b.log)));
            figures::write(&self.health, create("health.csv")?)?;
        }
        if !self.promises.is_empty() {
            let key = |outcome: &Outcome| {
                (outcome.discipline.clone(), outcome.run, outcome.stream.clone())
            };
            self.promises.sort_by_key(key);
            figures::write(&self.promises, create("promises.csv")?)?;
        }
        let manifest = serde_json::to_string_pretty(&self.manifest)?;
        fs::write(self.folder.join("manifest.json"), manifest + "\n")
    }
}

/// The rows of a file; none if it does not exist.
fn read_if_there<T: for<'a> Deserialize<'a>>(path: &Path) -> io::Result<Vec<T>> {
    match File::open(path) {
        Ok(file) => figures::read(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// With three decimals.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_read_again_and_another_kernel_starts_anew() {
        let root = std::env::temp_dir().join(format!("tidegate-kept-{}", std::process::id()));
        let manifest = |kernel: &str| Manifest {
            kernel: kernel.into(),
            command: "make kernel-guest".into(),
            date: "2026-11-22".into(),
            machine: None,
            commit: None,
        };
        let row = |cell: &str, log| Row {
            cell: cell.into(),
            log,
            class: 0,
            begun: 9,
            done: 8,
            mean_ms: 77.25,
            median_ms: 70.0,
            p95_ms: 140.5,
        };
        let moment = |at_s| Moment {
            at_s,
            window: 20.0,
            round_trip_ms: 44.1,
            pacing_mbps: None,
            arrived_bytes: (at_s * 1e6) as u64,
        };
        let flow = Flow::new(vec![moment(5.0), moment(6.0)], 70.5, [40.0, 71.0, 99.0]);
        let mut kept = Kept::renew(&root, "guest", manifest("7.3.4")).expect("nothing is there");
        kept.put_rows("b", vec![row("b", 1)]);
        kept.put_rows("a", vec![row("a", 2), row("a", 1)]);
        kept.put_rows("a", vec![row("a", 1)]);
        kept.put_flow("cubic", flow.clone());
        kept.save().expect("there is room");
        let again = Kept::open(&root, "guest").expect("it is readable").expect("it is there");
        assert_eq!(again.rows, [row("a", 1), row("b", 1)]);
        assert_eq!(again.flows, [("cubic".to_owned(), flow)]);
        let newer = Kept::renew(&root, "guest", manifest("7.4.1")).expect("it is readable");
        assert!(newer.rows.is_empty() && newer.flows.is_empty());
        fs::remove_dir_all(&root).expect("it is ours");
    }
}
