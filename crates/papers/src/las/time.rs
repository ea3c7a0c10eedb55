//! LAS section 5.1: how long transfers take.

use std::sync::Arc;

use super::{LOAD, PAPER, SHORT, WEB, packets, web};
use crate::check::{Bound, Check, Written};
use crate::figure::{Figure, Line, Measure, Scale};
use crate::lab::{Flow, Lab, Run};
use crate::runs::{mean, ratio};
use crate::{Claim, Finding, Stopped};
use tidegate_study::{Centre, Estimate};

pub(super) const TRANSMISSION: Claim = Claim {
    id: "LAS-4",
    paper: &PAPER,
    source: "LAS section 5.1, figure 4",
    text: "LAS considerably reduces the mean transmission time of short transfers and adds only \
           slightly to that of the largest; more than 99% of the transfers gain. Short ones gain \
           at a load of 0.5 too, and gain more as the load grows.",
    method: "Mean response of the same transfers under LAS over that under FIFO. 99% gain if \
             LAS's mean is the smaller one in every range of sizes below the 99th percentile, as \
             in figure 4(b). Short transfers have fewer than 40 packets; 'considerably' is taken \
             as at least a fifth, 'slightly' as at most a tenth, both for the largest hundredth \
             and the largest thousandth of the transfers. The loads are 0.5, 0.7 and, ours, 0.9.",
    discussion: "The largest thousandth of the transfers pay more than slightly, and how much \
                 depends on the buffer, which the paper does not give. They have 38% of LAS's \
                 losses but 9% of FIFO's; the largest hundredth have 89% and 33%. With a buffer of \
                 20 packets they take 1.87 ± 0.47 times as long as under FIFO, with 100 1.11 ± \
                 0.16, with 300 1.14 ± 0.21; with a window of 20 packets, ns-2's default, 1.14 ± \
                 0.13; with SACK 1.30 ± 0.20 (five seeds each, everything else as here, where \
                 these five give 1.41 ± 0.21). Of the single transfers, 10.4 ± 1.3% take longer \
                 under LAS than under FIFO, 0.7% by more than a tenth: that 99% gain is true of \
                 means over a range of sizes, not of every transfer. At a load of 0.9 one transfer \
                 of 60 000 does not finish under FIFO, and is left out.",
    measure: transmission,
};

/// The loads, from the least to the greatest; the middle one is that of Table 1.
const LOADS: [f64; 3] = [0.5, LOAD, 0.9];

/// Ranges of sizes by their share of the transfers, up to the 99th percentile.
const PERCENTILES: [f64; 10] = [0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99];

fn transmission(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let of_load = |load: &f64| {
        let scenario = web(*load);
        lab.all_runs(&scenario, &scenario.disciplines)
    };
    let all: Vec<Vec<Vec<Arc<Run>>>> = LOADS.iter().map(of_load).collect::<Result<_, _>>()?;
    let [low, nominal, high] = &all[..] else { unreachable!("there are three loads") };
    let gains = |runs: &[Vec<Arc<Run>>]| -> Vec<Option<f64>> {
        ratio(&runs[1], &runs[0], short_response).collect()
    };
    let growth = |less: &[Vec<Arc<Run>>], more: &[Vec<Arc<Run>>]| {
        let both = std::iter::zip(gains(less), gains(more));
        both.map(|(less, more)| Some(more? / less?)).collect::<Vec<_>>()
    };
    let [fifo, las] = &nominal[..] else { unreachable!("the scenario compares two") };
    let range = |from, to| ratio(las, fifo, move |run| mean(Ranks::of(run).responses(from, to)));
    let checks = vec![
        Check::of(
            Centre::Median,
            "up to the 99th percentile of sizes, the worst ratio of a range is at most 1",
            "more than 99% benefit",
            Written::Ratio,
            std::iter::zip(las, fifo).map(|(las, fifo)| worst(&Ranks::of(las), &Ranks::of(fifo))),
            Bound::AtMost(1.0),
        ),
        Check::new(
            "short transfers take at most 0.8 times as long under las",
            "significantly reduced",
            Written::Ratio,
            gains(nominal),
            Bound::AtMost(0.8),
        ),
        Check::new(
            "the largest hundredth take at most 1.1 times as long under las",
            "only slightly higher",
            Written::Ratio,
            range(0.99, 1.0),
            Bound::AtMost(1.1),
        ),
        Check::new(
            "the largest thousandth take at most 1.1 times as long under las",
            "only slightly higher",
            Written::Ratio,
            range(0.999, 1.0),
            Bound::AtMost(1.1),
        ),
        Check::new(
            "at a load of 0.5 short transfers take less time under las",
            "also benefit",
            Written::Ratio,
            gains(low),
            Bound::AtMost(1.0),
        ),
        Check::new(
            "the ratio for short transfers is lower at a load of 0.7 than at 0.5",
            "improves with the load",
            Written::Ratio,
            growth(low, nominal),
            Bound::AtMost(1.0),
        ),
        Check::new(
            "the ratio for short transfers is lower at a load of 0.9 than at 0.7",
            "improves with the load",
            Written::Ratio,
            growth(nominal, high),
            Bound::AtMost(1.0),
        ),
    ];
    let caption = "Mean over seeds with its 95% interval; load 0.7.";
    let figures = vec![
        Figure {
            id: "LAS-4-size".into(),
            title: "Mean response time by size".into(),
            caption: caption.into(),
            x: Scale::log("Size in packets", Measure::Count),
            y: Scale::log("Mean response time", Measure::Time),
            lines: lines(nominal, by_size),
            stepped: false,
        },
        Figure {
            id: "LAS-4-percentile".into(),
            title: "Mean response time by percentile of size".into(),
            caption: caption.into(),
            x: Scale::linear("Share of transfers that are not larger", Measure::Share),
            y: Scale::log("Mean response time", Measure::Time),
            lines: lines(nominal, by_percentile),
            stepped: false,
        },
    ];
    Ok(Finding::new("LAS-4", lab, &[WEB], checks, figures))
}

pub(super) fn short_response(run: &Run) -> Option<f64> {
    let short = run.flows.iter().filter(|flow| packets(flow) < SHORT);
    mean(short.filter_map(|flow| flow.response.map(f64::from)))
}

/// The transfers of a run by size: the same order under every discipline.
struct Ranks(Vec<Flow>);

impl Ranks {
    fn of(run: &Run) -> Ranks {
        let mut flows = run.flows.clone();
        flows.sort_unstable_by_key(|flow| (flow.size, flow.traffic, flow.number));
        Ranks(flows)
    }

    /// Responses of those that are larger than the share `from` of all, up to
    /// the share `to`.
    fn responses(&self, from: f64, to: f64) -> impl Iterator<Item = f64> + '_ {
        let place = |share: f64| (share * self.0.len() as f64).round() as usize;
        let flows = &self.0[place(from)..place(to)];
        flows.iter().filter_map(|flow| flow.response.map(f64::from))
    }
}

/// The largest ratio of the means of a range.
fn worst(las: &Ranks, fifo: &Ranks) -> Option<f64> {
    let ratios = PERCENTILES.windows(2).map(|pair| {
        Some(mean(las.responses(pair[0], pair[1]))? / mean(fifo.responses(pair[0], pair[1]))?)
    });
    ratios.reduce(|one, other| Some(one?.max(other?))).flatten()
}

/// Points (x, mean response) of one run.
pub(super) type Curve = Vec<(f64, Option<f64>)>;

pub(super) fn by_size(run: &Run) -> Curve {
    // Four to a factor of ten, and whole packets where there are fewer.
    const BOUNDS: [f64; 20] = [
        3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 14.0, 18.0, 25.0, 32.0, 40.0, 56.0, 100.0, 178.0, 316.0,
        562.0, 1_000.0, 1_780.0, 5_620.0, 20_001.0,
    ];
    let ranks = Ranks::of(run);
    let within = |pair: &[f64]| {
        let from = ranks.0.partition_point(|flow| packets(flow) < pair[0]);
        let to = ranks.0.partition_point(|flow| packets(flow) < pair[1]);
        let responses = ranks.0[from..to].iter().filter_map(|flow| flow.response.map(f64::from));
        ((pair[0] * (pair[1] - 1.0)).sqrt(), mean(responses))
    };
    BOUNDS.windows(2).map(within).collect()
}

fn by_percentile(run: &Run) -> Curve {
    const BOUNDS: [f64; 16] =
        [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 1.0];
    let ranks = Ranks::of(run);
    let within =
        |pair: &[f64]| ((pair[0] + pair[1]) / 2.0, mean(ranks.responses(pair[0], pair[1])));
    BOUNDS.windows(2).map(within).collect()
}

/// A line for each discipline, with intervals over seeds.
pub(super) fn lines(all: &[Vec<Arc<Run>>], curve: fn(&Run) -> Curve) -> Vec<Line> {
    let line = |runs: &Vec<Arc<Run>>| {
        let curves: Vec<Curve> = runs.iter().map(|run| curve(run)).collect();
        let (mut points, mut band) = (Vec::new(), Vec::new());
        for place in 0..curves[0].len() {
            let values = curves.iter().filter_map(|curve| curve[place].1);
            let Some(estimate) = Estimate::mean(values) else { continue };
            let (at, (low, high)) = (curves[0][place].0, estimate.ends());
            points.push((at, estimate.value));
            // A lower end at or below zero has no place on a logarithmic axis.
            band.push((at, low.max(estimate.value / 10.0), high));
        }
        Line { label: runs[0].summary.discipline.clone(), points, band }
    };
    all.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(size: u32, response: f32) -> Flow {
        let (number, delivered, stall) = (size, size, 0.0);
        let (response, unloaded) = (Some(response), None);
        Flow {
            number,
            size,
            delivered,
            response,
            unloaded,
            lasted: None,
            stall,
            lost: 0,
            timeouts: 0,
            traffic: 0,
        }
    }

    #[test]
    fn ranges_are_shares_of_the_transfers() {
        let ranks = Ranks((1..=1_000).map(|size| flow(size, size as f32)).collect());
        let between = |from, to| ranks.responses(from, to).collect::<Vec<_>>();
        assert_eq!(between(0.998, 1.0), [999.0, 1_000.0]);
        assert_eq!(between(0.0, 0.001), [1.0]);
        assert_eq!(between(0.0, 1.0).len(), 1_000);
    }

    #[test]
    fn the_worst_range_is_the_one_with_the_largest_ratio() {
        let fifo = Ranks((0..1_000).map(|size| flow(size, 2.0)).collect());
        // The last hundredth is in no range below the 99th percentile.
        let response = |size| match size {
            970..980 => 1.5,
            990.. => 100.0,
            _ => 1.0,
        };
        let las = Ranks((0..1_000).map(|size| flow(size, response(size))).collect());
        assert_eq!(worst(&las, &fifo), Some(0.75));
    }
}
