//! The results of a comparison with the answer first: what `--json` prints, and what the
//! table and the report are made of.

use serde::Serialize;
use tidegate_sim::scenario::Scenario;
use tidegate_study::comparison::Comparison;
use tidegate_study::verdict::{Answer, Effect, Verdict};

use crate::live_form::{self, LiveForm};
use crate::report::answer::{self, Words};

/// A comparison and what it comes to.
#[derive(Debug, Serialize)]
pub(crate) struct Answered {
    /// What to run, and why, in words.
    pub(crate) said: Words,
    /// The same as figures.
    pub(crate) verdict: Verdict,
    /// How to run it: one for each discipline that the verdict names.
    pub(crate) live_forms: Vec<LiveForm>,
    /// What it was decided on.
    #[serde(flatten)]
    pub(crate) comparison: Comparison,
}

impl Answered {
    /// The verdict on `comparison`, with the lines for the links of its `scenario`.
    pub(crate) fn of(scenario: &Scenario, comparison: Comparison) -> Answered {
        let verdict = Verdict::of(&comparison);
        let named = |label: &String| scenario.disciplines.iter().find(|it| it.label == *label);
        // What may be better is nothing to type yet.
        let run = verdict.run.iter().filter(|_| verdict.answer == Answer::Run);
        let gains = verdict.with_tidegate_changes.iter().any(|it| it.effect == Effect::Gain);
        let ours = verdict.with_tidegate.iter().filter(|_| gains);
        let all = run.chain(ours).filter_map(named);
        let live_forms = all.filter_map(|choice| live_form::of(choice, scenario)).collect();
        Answered { said: answer::words(&verdict), verdict, live_forms, comparison }
    }
}
