//! The kernel's figures as the repository keeps them, so that a page and a test need no
//! kernel: `benches/kernel/<bed>/`.
//!
//! `transfers.csv` has a row for each cell, log and size class; `flows.csv` what was
//! seen of one long flow for each controller, ten times a second, and `waits.csv` how
//! long its probes waited; `manifest.json` the kernel, the command and the day.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::figures::{self, Row};
use crate::flow::{Flow, Moment};

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
        let steps: Vec<Step> = figures::read(File::open(folder.join("flows.csv"))?)?;
        let waits: Vec<Wait> = figures::read(File::open(folder.join("waits.csv"))?)?;
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
        Ok(Some(Kept { folder, manifest, rows, flows }))
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
            _ => Kept { folder: root.join(bed), manifest, rows: Vec::new(), flows: Vec::new() },
        })
    }

    /// Replaces the rows of a cell.
    pub fn put_rows(&mut self, cell: &str, rows: Vec<Row>) {
        self.rows.retain(|row| row.cell != cell);
        self.rows.extend(rows);
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
        figures::write(&steps, create("flows.csv")?)?;
        figures::write(&waits, create("waits.csv")?)?;
        let manifest = serde_json::to_string_pretty(&self.manifest)?;
        fs::write(self.folder.join("manifest.json"), manifest + "\n")
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
