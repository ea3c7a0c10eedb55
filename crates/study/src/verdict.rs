//! The verdict of a comparison: what to run, what that gains, what it costs.
//!
//! Principles. A decision rests on differences seed by seed ([`ranking`](crate::ranking)), and only on
//! those that somebody would notice: noise wins nothing, and neither does a tenth of a
//! millisecond. What people do on the link are its *needs*, and they come in an order:
//! a word of a call that is late cannot be waited for, a page is waited for by somebody
//! who watches, a backup by nobody. So each need in turn leaves those disciplines that
//! no other one beats in it, and the next one decides among them. Those that remain are
//! equals. What Linux brings along is recommended before what takes Tidegate on the router,
//! and when the first discipline, which is what there is now, remains too, the verdict is to leave
//! everything as it is.
//!
//! `docs/verdict.md` states the scales and their sources for those who read verdicts.

mod grade;
mod need;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use tidegate_core::registry;

use crate::comparison::{Comparison, DisciplineResult, TrafficResult};
use crate::e_model;
use crate::measure::Better;

pub use grade::Grade;
pub use need::Need;

use need::Wanted;

/// What to run, and why.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use tidegate_core::Span;
/// use tidegate_study::comparison::Comparison;
/// use tidegate_study::verdict::{Answer, Verdict};
/// use tidegate_study::{experiment, shipped};
///
/// let mut scenario = shipped::scenario("links/cellular.toml");
/// (scenario.duration, scenario.seeds) = (Span::seconds(10), vec![1]);
/// scenario.disciplines.truncate(2);
/// let never = AtomicBool::new(false);
/// let Ok(runs) = experiment::run(&scenario, 2, &never, &experiment::Forget);
/// let verdict = Verdict::of(&Comparison::of(&scenario, &runs));
/// assert_eq!(verdict.answer, Answer::TooFewRuns, "one seed says nothing of differences");
/// assert_eq!(verdict.latency.len(), 2);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What it comes to.
    pub answer: Answer,
    /// The discipline that there is now: the first one of the comparison.
    pub baseline: Option<String>,
    /// What to run: equals, in the order of the comparison. If the answer is
    /// [`Answer::Unclear`], what may be better; empty with all other answers.
    pub run: Vec<String>,
    /// What it changes against the baseline.
    pub changes: Vec<Change>,
    /// What would be better still, and takes Tidegate's own live forms.
    pub with_tidegate: Vec<String>,
    /// What it changes against the first of `run`, or the baseline if there is none.
    pub with_tidegate_changes: Vec<Change>,
    /// What somebody would notice to be worse than the baseline.
    pub avoid: Vec<Avoid>,
    /// The part of the busiest link's rate, or of its medium's time, that is used with the
    /// baseline, of one.
    pub utilisation: Option<f64>,
    /// The latency under load of each discipline.
    pub latency: Vec<Latency>,
    /// Who wins what, most urgent need first.
    pub contests: Vec<Contest>,
    /// The parts of a recording that were compared in place of seeds; 0 for others.
    #[serde(default)]
    pub parts: usize,
}

/// What each discipline makes of a need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contest {
    /// Which need.
    pub need: Need,
    /// The source of the traffic; empty for all of them together.
    pub source: String,
    /// One for each discipline, in the order of the comparison.
    pub results: Vec<ContestResult>,
}

/// What a discipline makes of a need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContestResult {
    /// The discipline's label.
    pub label: String,
    /// The value, in the unit of [`Need::quantity`].
    pub value: Option<f64>,
    /// What it is against the baseline; `None` for the baseline itself.
    pub effect: Option<Effect>,
    /// Whether nobody is noticeably better, though somebody is worse.
    pub best: bool,
}

/// What a verdict comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Something is better than what there is.
    Run,
    /// Something may be better, but the runs do not say.
    Unclear,
    /// Nothing that can be run is.
    Alike,
    /// The same, and the link is not full: whatever is slow, the queue is not the cause.
    NotTheBottleneck,
    /// The runs are too few for an interval, so nothing is decided.
    TooFewRuns,
    /// There is one discipline, and nothing to compare it with.
    OneOnly,
    /// There are only recorded packets, which do not react to what becomes of them, and none
    /// of a call.
    DoesNotReact,
    /// Nothing was measured that anybody waits for.
    NothingMeasured,
}

/// What disciplines change in a need, against another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Which need.
    pub need: Need,
    /// The source of the traffic; empty for all of them together.
    pub source: String,
    /// Whether it is better.
    pub effect: Effect,
    /// The other's value, in the unit of [`Need::quantity`].
    pub was: f64,
    /// The least value of the disciplines.
    pub least: f64,
    /// The largest of these.
    pub most: f64,
}

/// What a change is to whoever has the need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// It is better, seed by seed.
    Gain,
    /// It is worse, seed by seed.
    Price,
    /// The difference is certainly too small to notice.
    Same,
    /// The runs do not say.
    Unclear,
}

/// A discipline that is worse than the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Avoid {
    /// Its label.
    pub label: String,
    /// In what, most urgent first.
    pub change: Change,
}

/// The latency under load of a discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Its label.
    pub label: String,
    /// What the load adds to the one-way delay, on average over the packets of each
    /// stream of datagrams and over these; without any, the mean wait in the queues.
    pub added_s: Option<f64>,
    /// The grade of that.
    pub grade: Option<Grade>,
    /// The worst stream of datagrams, as a call; `None` without one.
    pub call: Option<Call>,
}

/// What a stream of datagrams is worth as a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The source of its packets.
    pub source: String,
    /// 95 of 100 packets that arrive do so within this time.
    pub delay_p95_s: f64,
    /// Packets lost, divided by packets sent.
    pub loss_ratio: f64,
    /// R of the E-model, from 0 to 100.
    pub rating: f64,
    /// The mean opinion score of that, from 1 to 4.5.
    pub mos: f64,
}

/// A link that is used less than this has room for everybody most of the time.
const FULL: f64 = 0.8;

impl Verdict {
    /// The verdict of a comparison. The first discipline is what there is now.
    #[must_use]
    pub fn of(comparison: &Comparison) -> Verdict {
        Verdict::among(comparison, |discipline| {
            registry::find(&discipline.name).is_some_and(|it| it.linux.is_some())
        })
    }

    /// The verdict on queues that were measured ([`crate::rounds`]): all of them can be run,
    /// since all of them were.
    #[must_use]
    pub fn of_rounds(comparison: &Comparison) -> Verdict {
        Verdict::among(comparison, |_| true)
    }

    /// Whether more rounds would hardly change a verdict on rounds: nothing looks better than
    /// what there is, or what is to be run is better by certainly more than anybody notices.
    /// A difference that is only certainly there may be one of the few that chance makes.
    #[must_use]
    pub fn is_settled(&self, comparison: &Comparison) -> bool {
        let needs = need::all(comparison);
        let place =
            |label: &String| comparison.disciplines.iter().position(|it| it.label == *label);
        let is_sure = |place: usize| needs.iter().any(|need| need.surely_beats(place, 0));
        match self.answer {
            Answer::Unclear => false,
            Answer::Run => self.run.iter().all(|it| place(it).is_some_and(is_sure)),
            _ => true,
        }
    }

    fn among(comparison: &Comparison, runs: impl Fn(&DisciplineResult) -> bool) -> Verdict {
        let disciplines = &comparison.disciplines;
        let labels = |places: &[usize]| -> Vec<String> {
            places.iter().map(|place| disciplines[*place].label.clone()).collect()
        };
        let latency = latency(disciplines);
        let utilisation = disciplines.first().and_then(busiest);
        let mut verdict = Verdict {
            answer: Answer::NothingMeasured,
            baseline: disciplines.first().map(|it| it.label.clone()),
            run: Vec::new(),
            changes: Vec::new(),
            with_tidegate: Vec::new(),
            with_tidegate_changes: Vec::new(),
            avoid: Vec::new(),
            utilisation,
            latency,
            contests: Vec::new(),
            parts: comparison.parts.first().map_or(0, |it| it.runs),
        };
        let needs = need::all(comparison);
        verdict.contests = needs.iter().map(|it| contest(it, disciplines)).collect();
        if needs.is_empty() {
            let mut sources = disciplines.iter().flat_map(|it| &it.traffic);
            if sources.any(|it| it.replayed) {
                // Where hardly anything waits, there is nothing to react to.
                let waits = verdict.latency.first().and_then(|it| it.grade) > Some(Grade::APlus);
                verdict.answer = if verdict.has_room() && !waits {
                    Answer::NotTheBottleneck
                } else {
                    Answer::DoesNotReact
                };
            }
            return verdict;
        }
        if disciplines.len() < 2 {
            verdict.answer = Answer::OneOnly;
            return verdict;
        }
        if !needs.iter().any(Wanted::is_decided) {
            verdict.answer = Answer::TooFewRuns;
            return verdict;
        }
        let can_run = |place: &usize| runs(&disciplines[*place]);
        let everyone: Vec<usize> = (0..disciplines.len()).collect();
        let runnable = everyone.iter().copied().filter(|it| *it == 0 || can_run(it)).collect();
        let best = remaining(&needs, runnable);
        let best_of_all = remaining(&needs, everyone);

        let stays = best.contains(&0) || best.is_empty();
        let now = if stays { 0 } else { best[0] };
        if !stays {
            verdict.answer = Answer::Run;
            verdict.run = labels(&best);
            verdict.changes = changes(&needs, &best, 0);
        }
        if !best_of_all.contains(&now) {
            let only: Vec<_> = best_of_all.iter().copied().filter(|it| !can_run(it)).collect();
            verdict.with_tidegate = labels(&only);
            verdict.with_tidegate_changes = changes(&needs, &only, now);
        }
        verdict.avoid = (1..disciplines.len())
            .filter(|place| !best.contains(place))
            .filter_map(|place| {
                let worse = needs.iter().find(|need| need.is_urgent() && need.beats(0, place))?;
                Some(Avoid {
                    label: disciplines[place].label.clone(),
                    change: worse.change(&[place], 0)?,
                })
            })
            .collect();
        if stays {
            let has_room = verdict.has_room() && best_of_all.contains(&0);
            let promising: Vec<_> = (1..disciplines.len())
                .filter(|it| needs.iter().any(|need| need.may_beat(*it, 0)))
                .collect();
            // What can be run comes first here too.
            let (first, others): (Vec<_>, Vec<_>) = promising.into_iter().partition(can_run);
            let promising = if first.is_empty() { others } else { first };
            verdict.answer = match (has_room, promising.is_empty()) {
                (true, _) => Answer::NotTheBottleneck,
                (false, true) => Answer::Alike,
                (false, false) => Answer::Unclear,
            };
            if verdict.answer == Answer::Unclear {
                verdict.run = labels(&promising);
                verdict.changes = changes(&needs, &promising, 0);
            }
        }
        verdict
    }

    /// Whether nobody waits long for what there is now, and the links are not full.
    fn has_room(&self) -> bool {
        let grade = self.latency.first().and_then(|it| it.grade);
        grade.is_some_and(|it| it <= Grade::A) && self.utilisation.is_some_and(|used| used < FULL)
    }

    /// The latency of the discipline with this label.
    #[must_use]
    pub fn latency_of(&self, label: &str) -> Option<&Latency> {
        self.latency.iter().find(|it| it.label == label)
    }
}

/// Those of `candidates` that each need in turn leaves.
fn remaining(needs: &[Wanted], mut candidates: Vec<usize>) -> Vec<usize> {
    for need in needs {
        let best = need.best_among(&candidates);
        // Where no value has an interval, the need does not decide.
        if best.contains(&true) {
            let mut best = best.into_iter();
            candidates.retain(|_| best.next().unwrap_or(false));
        }
    }
    candidates
}

/// What those at `places` change against the one at `baseline`, need by need.
fn changes(needs: &[Wanted], places: &[usize], baseline: usize) -> Vec<Change> {
    needs.iter().filter_map(|need| need.change(places, baseline)).collect()
}

fn contest(need: &Wanted, disciplines: &[DisciplineResult]) -> Contest {
    let best = need.best_among(&(0..disciplines.len()).collect::<Vec<_>>());
    let all = best.iter().all(|it| *it);
    let result = |(place, discipline): (usize, &DisciplineResult)| ContestResult {
        label: discipline.label.clone(),
        value: need.value(place),
        effect: (place > 0).then(|| need.effect(place, 0)),
        best: best[place] && !all,
    };
    Contest {
        need: need.need,
        source: need.source.clone(),
        results: disciplines.iter().enumerate().map(result).collect(),
    }
}

/// How much of the busiest tested link is used; of a wireless one, how much of its medium,
/// which it shares.
fn busiest(discipline: &DisciplineResult) -> Option<f64> {
    let tested = discipline.links.iter().filter(|link| link.tested);
    let used = tested.filter_map(|link| {
        let used = link.medium_use.as_ref().or(link.utilisation.as_ref())?;
        Some(used.estimate().value)
    });
    used.max_by(f64::total_cmp)
}

/// The latency under load of each discipline.
fn latency(disciplines: &[DisciplineResult]) -> Vec<Latency> {
    let least = |index: usize| {
        let points =
            disciplines.iter().filter_map(|it| it.traffic.get(index)?.delay_distribution.first());
        points.map(|point| point.at_s).min_by(f64::total_cmp)
    };
    let of = |discipline: &DisciplineResult| {
        let added_to = |(index, source): (usize, &TrafficResult)| {
            let mean = source.delay.mean_s.as_ref().filter(|_| source.datagrams)?.estimate().value;
            Some((mean - least(index)?).max(0.0))
        };
        let streams: Vec<f64> =
            discipline.traffic.iter().enumerate().filter_map(added_to).collect();
        let tested = discipline.links.iter().filter(|link| link.tested);
        let waits =
            || tested.filter_map(|it| Some(it.delay.mean_s.as_ref()?.estimate().value)).collect();
        let values: Vec<f64> = if streams.is_empty() { waits() } else { streams };
        let added_s = mean(&values);
        Latency {
            label: discipline.label.clone(),
            added_s,
            grade: added_s.map(Grade::of),
            call: worst_call(discipline),
        }
    };
    disciplines.iter().map(of).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The stream with the lowest rating.
fn worst_call(discipline: &DisciplineResult) -> Option<Call> {
    let calls = discipline.traffic.iter().filter_map(|source| {
        let rating = source.call_rating.as_ref()?.estimate().value;
        Some(Call {
            source: source.name.clone(),
            delay_p95_s: source.delay.p95_s.as_ref()?.estimate().value,
            loss_ratio: source.loss_ratio.as_ref()?.estimate().value,
            rating,
            mos: e_model::mos(rating),
        })
    });
    calls.min_by(|one, other| one.rating.total_cmp(&other.rating))
}

impl Need {
    /// Which of its values are better.
    #[must_use]
    pub fn better(self) -> Better {
        match self {
            Need::Call
            | Need::PagesLoaded
            | Need::CallRate
            | Need::VideoQuality
            | Need::LongTransfers => Better::More,
            Need::Reaction
            | Need::Delay
            | Need::VideoStalls
            | Need::VideoSwitches
            | Need::Lookups
            | Need::Pages
            | Need::ShortTransfers => Better::Less,
        }
    }
}
