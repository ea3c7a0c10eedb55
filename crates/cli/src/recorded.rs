//! The comparison of a scenario that sends the packets of a capture: like that of any
//! other, with a row for each recorded flow, and with a table of the parts of the capture.

mod parts;

use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use tidegate_core::Span;
use tidegate_sim::metrics::{Recorder, RunSummary};
use tidegate_sim::scenario::{Scenario, TrafficKind};
use tidegate_study::experiment::{About, Study};
use tidegate_study::manifest::{Contender, Manifest};

use crate::answered::Answered;
use crate::comparing::Compared;
use crate::inputs::Input;
use crate::rows::{Names, Table};

/// Whether a scenario sends the packets of a capture.
pub(crate) fn is_recorded(scenario: &Scenario) -> bool {
    scenario.traffic.iter().any(|source| matches!(source.kind, TrafficKind::Packets { .. }))
}

/// Such a scenario.
pub(crate) struct Packets(pub(crate) Scenario);

impl Study for Packets {
    type Run = RunSummary;

    fn labels(&self) -> Vec<&str> {
        self.0.labels()
    }

    fn contenders(&self) -> Vec<Contender> {
        self.0.contenders()
    }

    fn seeds(&self) -> &[u64] {
        self.0.seeds()
    }

    fn duration(&self) -> Span {
        self.0.duration()
    }

    fn run(
        &self,
        contender: usize,
        seed: u64,
        recorder: &mut dyn Recorder,
        stop: &AtomicBool,
    ) -> RunSummary {
        self.0.run(contender, seed, recorder, stop)
    }

    fn about<'a>(&'a self, run: &'a RunSummary) -> About<'a> {
        self.0.about(run)
    }
}

impl Compared for Packets {
    type Summary = Answered;

    const TABLES: &'static [Table] =
        &[Table::Flows, Table::Links, Table::Progress, Table::Recorded];

    fn names(&self) -> Names {
        Compared::names(&self.0)
    }

    fn sum_up(&self, input: &Input, runs: &[RunSummary]) -> Answered {
        self.0.sum_up(input, runs)
    }

    fn is_partial(summary: &Answered) -> bool {
        Scenario::is_partial(summary)
    }

    fn csv(summary: &Answered) -> Vec<u8> {
        Scenario::csv(summary)
    }

    fn text(summary: &Answered) -> String {
        format!("{}\n{}", Scenario::text(summary), parts::table(&summary.comparison))
    }

    fn report(&self, folder: &Path, summary: &Answered, manifest: &Manifest) -> io::Result<()> {
        self.0.report(folder, summary, manifest)
    }
}
