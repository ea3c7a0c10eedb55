//! BE section 5: delays of six flows on an access link, over the whole time.

use std::sync::Arc;

use tidegate_study::Centre;

use super::{ACCESS, PAPER, access};
use crate::check::{Bound, Check, Written};
use crate::figure::{Figure, Line, Measure, Scale};
use crate::lab::{Lab, Run};
use crate::runs::{mean, paired, ratio};
use crate::{Claim, Finding, Stopped};

/// The sources that have no deadline, and where they stand in the scenario.
pub(super) const BEST_EFFORT: [(&str, usize); 3] = [("ftp", 3), ("http", 4), ("mail", 5)];
pub(super) const REAL_TIME: [(&str, usize); 3] = [("transactions", 0), ("video", 1), ("voice", 2)];
const VIDEO: usize = 1;

pub(super) const MAXIMUM: Claim = Claim {
    id: "BE-T1",
    paper: &PAPER,
    source: "BE section 5, table 1",
    text: "With deadlines from a shifted line, and more so from two segments, the longest delays \
           of best effort are shorter than when it is sent only while no real-time packet waits, \
           by almost 65% in one case. Real-time packets take longer, but none misses its deadline; \
           video, the flow with the loosest deadline, is slowed most.",
    method: "The longest delay of each flow in 360 s, under each scheme, relative to that of best \
             effort when idle. 'Almost 65%' is taken as at most 0.45 for the flow that gains \
             most, 'more so' as at least 1% less. How much real time is slowed is taken as right \
             within a factor of 1.5.",
    discussion: "With deadlines, best effort does better here than in the paper, where the longest \
                 delays with the shifted line are 14 to 23 ms. The paper never forgets its past; \
                 here it is forgotten whenever the queue becomes empty, as in the paper's exact \
                 algorithm. Without that, the longest delays are 12 to 29 ms in three runs. The \
                 two segments are no better than the shifted line: see BE-8.",
    measure: maximum,
};

fn maximum(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let runs = Schemes::of(lab)?;
    let longest = |source: usize| move |run: &Run| run.summary.traffic[source].delay.largest();
    let mut checks = Vec::new();
    let paper = [[0.65, 0.76, 0.79], [0.34, 0.52, 0.58]];
    for ((scheme, with), figures) in runs.approximations().into_iter().zip(paper) {
        for ((name, source), figure) in BEST_EFFORT.into_iter().zip(figures) {
            checks.push(Check::of(
                Centre::Median,
                format!("{scheme}: the longest delay of {name} is shorter than when idle"),
                format!("{figure} times"),
                Written::Ratio,
                ratio(with, &runs.idle, longest(source)),
                Bound::AtMost(1.0),
            ));
        }
    }
    for (name, source) in BEST_EFFORT {
        checks.push(Check::of(
            Centre::Median,
            format!("the longest delay of {name} is shorter with two segments than with a line"),
            "0.53 to 0.73 times",
            Written::Ratio,
            ratio(&runs.two_segments, &runs.shifted_line, longest(source)),
            Bound::AtMost(0.99),
        ));
    }
    checks.push(Check::of(
        Centre::Median,
        "two segments: the longest delay of the flow that gains most is at most 0.45 times",
        "0.34 times, improves by almost 65%",
        Written::Ratio,
        least_ratio(&runs.two_segments, &runs.idle, longest),
        Bound::AtMost(0.45),
    ));
    checks.push(Check::of(
        Centre::Median,
        "two segments: video is slowed at least as much as any other real-time flow",
        "4.01 times; 2.72 and 1.94 the others",
        Written::Ratio,
        std::iter::zip(&runs.two_segments, &runs.idle).map(|(with, idle)| {
            let slower = |source| Some(longest(source)(with)? / longest(source)(idle)?);
            Some(slower(VIDEO)? / slower(0)?.max(slower(2)?))
        }),
        Bound::AtLeast(1.0),
    ));
    let slower = [[1.59, 2.86, 1.00], [2.72, 4.01, 1.94]];
    for ((scheme, with), figures) in runs.approximations().into_iter().zip(slower) {
        for ((name, source), figure) in REAL_TIME.into_iter().zip(figures) {
            checks.push(Check::of(
                Centre::Median,
                format!(
                    "{scheme}: the longest delay of {name} is {:.2} to {:.2} times that when idle",
                    figure / 1.5,
                    figure * 1.5
                ),
                format!("{figure:.2} times"),
                Written::Ratio,
                ratio(with, &runs.idle, longest(source)),
                Bound::Within(figure / 1.5, figure * 1.5),
            ));
        }
    }
    for (scheme, with) in runs.all() {
        checks.push(Check::new(
            format!("{scheme}: no real-time packet misses its deadline"),
            "none",
            Written::Count,
            with.iter().map(|run| Some(late(run))),
            Bound::AtMost(0.0),
        ));
    }
    checks.push(Check::of(
        Centre::Median,
        "exact: the longest delay of best effort, all flows, is at most that of two segments",
        "not measured",
        Written::Ratio,
        ratio(&runs.exact, &runs.two_segments, |run| {
            BEST_EFFORT.into_iter().filter_map(|(_, source)| longest(source)(run)).reduce(f64::max)
        }),
        Bound::AtMost(1.0),
    ));
    let figures = vec![runs.table("BE-T1", "Longest delays", longest)];
    Ok(Finding::new("BE-T1", lab, &[ACCESS], checks, figures))
}

pub(super) const MEAN: Claim = Claim {
    id: "BE-T2",
    paper: &PAPER,
    source: "BE section 5, table 2",
    text: "Mean delays of best effort fall by 25 to 45% against best effort when idle: by 25% to \
           37% with a shifted line, by 31% to 45% with two segments. The delays of real-time flows \
           grow by a few tenths of a millisecond, up to 20% with a shifted line and 30% with two \
           segments.",
    method: "The method of BE-T1, with mean delays. A flow's ratio has to be within 0.1 of the \
             paper's.",
    discussion: "The shifted line does as well as the paper's two segments: here its past is \
                 forgotten whenever the queue becomes empty. Without that it gives 1.81, 1.82 and \
                 2.00 ms (three runs), where the paper has 1.87, 1.93 and 2.28. The two segments \
                 are no better than the shifted line: see BE-8. Exact deadlines are better by 3%.",
    measure: mean_delays,
};

fn mean_delays(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let runs = Schemes::of(lab)?;
    let average = |source: usize| move |run: &Run| run.summary.traffic[source].delay.mean();
    let mut checks = Vec::new();
    let paper = [[0.75, 0.74, 0.63], [0.69, 0.68, 0.55]];
    for ((scheme, with), figures) in runs.approximations().into_iter().zip(paper) {
        for ((name, source), figure) in BEST_EFFORT.into_iter().zip(figures) {
            checks.push(Check::new(
                format!(
                    "{scheme}: the mean delay of {name} is {:.2} to {:.2} times that when idle",
                    figure - 0.1,
                    figure + 0.1
                ),
                format!("{figure} times"),
                Written::Ratio,
                ratio(with, &runs.idle, average(source)),
                Bound::Within(figure - 0.1, figure + 0.1),
            ));
        }
    }
    let slower = [[1.17, 1.20, 1.00], [1.30, 1.24, 1.17]];
    for ((scheme, with), figures) in runs.approximations().into_iter().zip(slower) {
        for ((name, source), figure) in REAL_TIME.into_iter().zip(figures) {
            checks.push(Check::new(
                format!(
                    "{scheme}: the mean delay of {name} is {:.2} to {:.2} times that when idle",
                    figure - 0.1,
                    figure + 0.1
                ),
                format!("{figure:.2} times"),
                Written::Ratio,
                ratio(with, &runs.idle, average(source)),
                Bound::Within(figure - 0.1, figure + 0.1),
            ));
        }
    }
    for (name, source) in REAL_TIME {
        checks.push(Check::new(
            format!("two segments: the mean delay of {name} grows by at most 0.5 ms"),
            "0.09 to 0.36 ms",
            Written::Seconds,
            paired(&runs.two_segments, &runs.idle, move |with, idle| {
                Some(average(source)(with)? - average(source)(idle)?)
            }),
            Bound::AtMost(0.000_5),
        ));
    }
    checks.push(Check::new(
        "exact: the mean delay of best effort, mean of the flows, is at most that of two segments",
        "not measured",
        Written::Ratio,
        ratio(&runs.exact, &runs.two_segments, |run| {
            mean(BEST_EFFORT.into_iter().filter_map(|(_, source)| average(source)(run)))
        }),
        Bound::AtMost(1.0),
    ));
    let figures = vec![runs.table("BE-T2", "Mean delays", average)];
    Ok(Finding::new("BE-T2", lab, &[ACCESS], checks, figures))
}

/// The runs of all schemes, by seed.
struct Schemes {
    idle: Vec<Arc<Run>>,
    shifted_line: Vec<Arc<Run>>,
    two_segments: Vec<Arc<Run>>,
    exact: Vec<Arc<Run>>,
}

impl Schemes {
    fn of(lab: &Lab<'_>) -> Result<Schemes, Stopped> {
        let scenario = access();
        let runs = lab.all_runs(&scenario, &scenario.disciplines)?;
        let [idle, shifted_line, two_segments, exact] =
            <[_; 4]>::try_from(runs).expect("the scenario compares four schemes");
        Ok(Schemes { idle, shifted_line, two_segments, exact })
    }

    /// Those that the paper compares with best effort when idle.
    fn approximations(&self) -> [(&'static str, &Vec<Arc<Run>>); 2] {
        [("shifted line", &self.shifted_line), ("two segments", &self.two_segments)]
    }

    fn all(&self) -> [(&'static str, &Vec<Arc<Run>>); 4] {
        let [shifted_line, two_segments] = self.approximations();
        [("idle", &self.idle), shifted_line, two_segments, ("exact", &self.exact)]
    }

    /// A value of every flow under every scheme, the mean over seeds.
    fn table<V: Fn(&Run) -> Option<f64>>(
        &self,
        id: &str,
        title: &str,
        value: impl Fn(usize) -> V,
    ) -> Figure {
        let flows = REAL_TIME.into_iter().chain(BEST_EFFORT);
        let names: Vec<&str> = flows.clone().map(|(name, _)| name).collect();
        let line = |(scheme, runs): (&str, &Vec<Arc<Run>>)| {
            let point = |(place, (_, source)): (usize, (&str, usize))| {
                let value = value(source);
                Some(((place + 1) as f64, mean(runs.iter().filter_map(|run| value(run)))?))
            };
            Line::plain(scheme, flows.clone().enumerate().filter_map(point).collect())
        };
        Figure {
            id: id.into(),
            title: format!("{title} of six flows"),
            caption: format!("Means over seeds. Flows 1 to 6: {}.", names.join(", ")),
            x: Scale::linear("Flow", Measure::Count),
            y: Scale::log("Delay", Measure::Time),
            lines: self.all().into_iter().map(line).collect(),
            stepped: false,
        }
    }
}

/// Real-time packets that missed their deadlines.
pub(super) fn late(run: &Run) -> f64 {
    REAL_TIME.into_iter().map(|(_, source)| run.summary.traffic[source].late as f64).sum()
}

/// The least ratio, of the best-effort flows, of a value under one scheme to
/// that under another; one for each seed.
fn least_ratio<'a, V: Fn(&Run) -> Option<f64>>(
    one: &'a [Arc<Run>],
    other: &'a [Arc<Run>],
    value: impl Fn(usize) -> V + 'a,
) -> impl Iterator<Item = Option<f64>> + 'a {
    std::iter::zip(one, other).map(move |(one, other)| {
        let ratio = |(_, source)| {
            let value = value(source);
            Some(value(one)? / value(other)?)
        };
        BEST_EFFORT.into_iter().filter_map(ratio).reduce(f64::min)
    })
}
