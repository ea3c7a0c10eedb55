//! What was measured on a link beside what its simulation gives.
//!
//! The first discipline is what there is now, and so what was measured. A simulated figure
//! is found in the same way as the measured one, as far as both sides allow: the delay of
//! a round trip is the sum of two one-way delays, taken as independent, because a ping's
//! way back begins when its way up ends; what load adds is the mean less what there is
//! without load, which in a simulation is the shortest delay under any discipline, as for
//! grades.

use serde::{Deserialize, Serialize};
use tidegate_core::{Rate, Span};
use tidegate_sim::scenario::{Observation, Observed, Scenario, Spread};

use super::{DisciplineResult, DistributionPoint, TrafficResult};
use crate::e_model;
use crate::measure::Quantity;

/// A figure that was measured, and the simulated one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// What was measured, as the scenario calls it.
    pub name: String,
    /// Which figure of it.
    pub figure: Figure,
    /// What was measured, in the unit of [`Figure::quantity`].
    pub measured: f64,
    /// What the first discipline gives; `None` if nothing in the scenario corresponds to it.
    pub simulated: Option<f64>,
}

/// A figure of something that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Median delay without load, in seconds.
    Idle,
    /// Mean delay under load, in seconds.
    Mean,
    /// 5th percentile of it.
    P5,
    /// Median of it.
    Median,
    /// 95th percentile of it.
    P95,
    /// What load adds: the mean less the delay without load, in seconds.
    Added,
    /// The same for each way: half of it of a round trip. Grades are of this.
    AddedEachWay,
    /// Packets lost divided by packets sent.
    Lost,
    /// What a call with this delay and loss is worth, R from 0 to 100.
    Rating,
    /// Mean throughput, in bit/s.
    Throughput,
    /// 5th percentile of its samples.
    ThroughputP5,
    /// Median of these.
    ThroughputMedian,
    /// 95th percentile of these.
    ThroughputP95,
    /// Packets dropped in a second.
    Dropped,
    /// Packets marked in a second.
    Marked,
    /// Bytes queued, on average.
    Backlog,
}

impl Figure {
    /// What its values are.
    #[must_use]
    pub fn quantity(self) -> Quantity {
        match self {
            Figure::Lost => Quantity::Share,
            Figure::Rating | Figure::Dropped | Figure::Marked => Quantity::Plain,
            Figure::Backlog => Quantity::Size,
            Figure::Throughput
            | Figure::ThroughputP5
            | Figure::ThroughputMedian
            | Figure::ThroughputP95 => Quantity::Rate,
            _ => Quantity::Time,
        }
    }

    /// What it is, for a row of a table.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Figure::Idle => "idle, median",
            Figure::Mean | Figure::Throughput => "mean",
            Figure::P5 | Figure::ThroughputP5 => "5%",
            Figure::Median | Figure::ThroughputMedian => "median",
            Figure::P95 | Figure::ThroughputP95 => "95%",
            Figure::Added => "added by load",
            Figure::AddedEachWay => "added, each way",
            Figure::Lost => "lost",
            Figure::Rating => "call, R of 100",
            Figure::Dropped => "dropped per second",
            Figure::Marked => "marked per second",
            Figure::Backlog => "backlog, mean",
        }
    }
}

impl Beside {
    /// How much the simulated figure is above the measured one, as a part of that; `None`
    /// without either, or beside zero.
    ///
    /// ```
    /// use tidegate_study::comparison::{Beside, Figure};
    /// let figure = Figure::Median;
    /// let row = Beside { name: "ping".into(), figure, measured: 0.04, simulated: Some(0.05) };
    /// assert_eq!(row.difference().map(|it| (100.0 * it).round()), Some(25.0));
    /// ```
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        let difference = self.simulated? - self.measured;
        if difference == 0.0 {
            return Some(0.0);
        }
        (self.measured > 0.0).then(|| difference / self.measured)
    }
}

/// All that a scenario says was measured, beside the first of `disciplines`.
pub(super) fn of(scenario: &Scenario, disciplines: &[DisciplineResult]) -> Vec<Beside> {
    let lasts = (scenario.duration - scenario.warm_up).as_seconds();
    let simulated = |what: &Observed| match (what, disciplines.first()) {
        (Observed::Delay { ways, of, .. }, Some(first)) if !of.is_empty() => {
            delays(*ways, of, first, disciplines)
        }
        (Observed::Throughput { of, .. }, Some(first)) if !of.is_empty() => {
            let of = of.iter().filter_map(|it| first.traffic.get(*it)?.throughput_bps.as_ref());
            let sum = of.map(|sample| sample.estimate().value).sum();
            vec![(Figure::Throughput, Some(sum))]
        }
        (Observed::Queue { of: Some(link), .. }, Some(first)) => {
            let name = &scenario.links[*link].name;
            let link = first.links.iter().find(|link| link.name == *name);
            let seconds = lasts * first.runs as f64;
            let rate = |count: u64| (seconds > 0.0).then(|| count as f64 / seconds);
            let link = link.map(|link| [link.lost(), link.marked].map(rate));
            let [dropped, marked] = link.unwrap_or_default();
            vec![(Figure::Dropped, dropped), (Figure::Marked, marked)]
        }
        _ => Vec::new(),
    };
    let rows = scenario.measured.iter().flat_map(|Observation { name, what }| {
        let simulated = simulated(what);
        measured(what).into_iter().filter_map(move |(figure, measured)| {
            let found = simulated.iter().find(|(it, _)| *it == figure);
            let simulated = found.and_then(|(_, value)| *value);
            Some(Beside { name: name.clone(), figure, measured: measured?, simulated })
        })
    });
    rows.collect()
}

/// The figures of an observation, in the order of tables.
#[must_use]
pub fn measured(what: &Observed) -> Vec<(Figure, Option<f64>)> {
    match what {
        Observed::Delay { ways, idle, spread, loss, rating, .. } => {
            let seconds = |span: Option<Span>| span.map(Span::as_seconds);
            let Spread { mean, p5, median, p95 } = *spread;
            let each_way = |added: f64| added.max(0.0) / f64::from(*ways);
            let added = mean.zip(*idle).map(|(mean, idle)| mean.as_seconds() - idle.as_seconds());
            vec![
                (Figure::Idle, seconds(*idle)),
                (Figure::Mean, seconds(mean)),
                (Figure::P5, seconds(p5)),
                (Figure::Median, seconds(median)),
                (Figure::P95, seconds(p95)),
                (Figure::Added, added.map(|it| it.max(0.0))),
                (Figure::AddedEachWay, added.filter(|_| *ways > 0).map(each_way)),
                (Figure::Lost, *loss),
                (Figure::Rating, *rating),
            ]
        }
        Observed::Throughput { spread, .. } => {
            let bits = |rate: Option<Rate>| rate.map(|it| it.0 as f64);
            let Spread { mean, p5, median, p95 } = *spread;
            vec![
                (Figure::Throughput, bits(mean)),
                (Figure::ThroughputP5, bits(p5)),
                (Figure::ThroughputMedian, bits(median)),
                (Figure::ThroughputP95, bits(p95)),
            ]
        }
        Observed::Queue { dropped_per_second, marked_per_second, backlog, .. } => vec![
            (Figure::Dropped, *dropped_per_second),
            (Figure::Marked, *marked_per_second),
            (Figure::Backlog, backlog.map(|size| size.0 as f64)),
        ],
    }
}

/// The delays of the sources `of` together, under the `first` of all `disciplines`.
fn delays(
    ways: u32,
    of: &[usize],
    first: &DisciplineResult,
    disciplines: &[DisciplineResult],
) -> Vec<(Figure, Option<f64>)> {
    let sources: Vec<&TrafficResult> = of.iter().filter_map(|it| first.traffic.get(*it)).collect();
    let least = |index: usize| {
        let points =
            disciplines.iter().filter_map(|it| it.traffic.get(index)?.delay_distribution.first());
        points.map(|point| point.at_s).min_by(f64::total_cmp)
    };
    let idle: Option<f64> = of.iter().map(|it| least(*it)).sum();
    let means = sources.iter().map(|it| Some(it.delay.mean_s.as_ref()?.estimate().value));
    let mean: Option<f64> = means.sum();
    let arrived = sources.iter().map(|it| Some(1.0 - it.loss_ratio.as_ref()?.estimate().value));
    let lost = arrived.product::<Option<f64>>().map(|arrived| 1.0 - arrived);
    let sums = sources.iter().fold(vec![(0.0, 1.0)], |sums, source| {
        let other = masses(&source.delay_distribution);
        sum_of(&sums, &other)
    });
    let quantile = |fraction| (!sums.is_empty()).then(|| quantile(&sums, fraction)).flatten();
    let added = mean.zip(idle).map(|(mean, idle)| (mean - idle).max(0.0));
    let rating = lost.and_then(|lost| rating(cumulated(&sums), lost, ways));
    vec![
        (Figure::Idle, idle),
        (Figure::Mean, mean),
        (Figure::P5, quantile(0.05)),
        (Figure::Median, quantile(0.5)),
        (Figure::P95, quantile(0.95)),
        (Figure::Added, added),
        (Figure::AddedEachWay, added.map(|it| it / f64::from(ways))),
        (Figure::Lost, lost),
        (Figure::Rating, rating),
    ]
}

/// What a call is worth of whose delay and loss each way nothing is known but what `ways`
/// of them are together: `points` of the distribution of delays in seconds, and the part
/// `loss` that is lost.
#[must_use]
pub fn rating(points: Vec<(f64, f64)>, loss: f64, ways: u32) -> Option<f64> {
    let each = |whole: f64| whole / f64::from(ways);
    let arrived = libm::pow(1.0 - loss.clamp(0.0, 1.0), each(1.0));
    let points = points.into_iter().map(|(delay, part)| (each(delay), part));
    e_model::rating_of(points, 1.0 - arrived)
}

/// The values of a distribution, each with its probability.
fn masses(points: &[DistributionPoint]) -> Vec<(f64, f64)> {
    let mut before = 0.0;
    let mass = |point: &DistributionPoint| {
        (point.at_s, point.fraction - std::mem::replace(&mut before, point.fraction))
    };
    points.iter().map(mass).collect()
}

/// The distribution of the sum of two independent values.
fn sum_of(one: &[(f64, f64)], other: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let pairs = one.iter().flat_map(|a| other.iter().map(move |b| (a.0 + b.0, a.1 * b.1)));
    let mut sums: Vec<_> = pairs.collect();
    sums.sort_by(|a, b| a.0.total_cmp(&b.0));
    sums
}

/// Each value with the probability that none is above it.
fn cumulated(masses: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut below = 0.0;
    let point = |(value, mass): &(f64, f64)| {
        below += mass;
        (*value, f64::min(below, 1.0))
    };
    masses.iter().map(point).collect()
}

fn quantile(masses: &[(f64, f64)], fraction: f64) -> Option<f64> {
    // Less than rounding leaves of the sum of all masses.
    const ROUNDING: f64 = 1e-9;
    let points = cumulated(masses);
    let reached = points.iter().find(|(_, below)| *below >= fraction - ROUNDING);
    reached.or(points.last()).map(|(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_is_the_sum_of_two_delays() {
        let coin = [(1.0, 0.5), (2.0, 0.5)];
        let sums = sum_of(&coin, &coin);
        assert_eq!(sums, [(2.0, 0.25), (3.0, 0.25), (3.0, 0.25), (4.0, 0.25)]);
        assert_eq!([0.1, 0.5, 0.8].map(|it| quantile(&sums, it)), [2.0, 3.0, 4.0].map(Some));
    }

    #[test]
    fn a_call_takes_half_of_a_round_trip_and_of_its_losses() {
        let one_way = e_model::rating_of([(0.05, 1.0)], 0.1);
        let found = rating(vec![(0.1, 1.0)], 1.0 - 0.9 * 0.9, 2);
        assert!((found.unwrap() - one_way.unwrap()).abs() < 1e-9, "{found:?} {one_way:?}");
    }

    #[test]
    fn beside_zero_there_is_no_difference_in_per_cent() {
        let row = |measured, simulated| {
            Beside { name: String::new(), figure: Figure::Lost, measured, simulated }.difference()
        };
        assert_eq!(row(0.0, Some(0.0)), Some(0.0));
        assert_eq!(row(0.0, Some(0.1)), None);
        assert_eq!(row(0.2, None), None);
        assert_eq!(row(0.2, Some(0.1)), Some(-0.5));
    }
}
