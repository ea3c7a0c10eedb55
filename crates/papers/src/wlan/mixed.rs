//! WLAN section V: short and long transfers, and how long they take.

use super::{Cell, DOWNLOADS, SEGMENT, Stopped, UPLOADS, with_buffer};
use crate::figure::{Figure, Line, Measure, Scale};
use crate::lab::{Flow, Lab, Run};
use crate::runs::mean;
use tidegate_sim::scenario::{Arrivals, DisciplineChoice, Scenario, TrafficKind};
use tidegate_study::Estimate;

pub(super) const MIXED: &str = "papers/WLAN/mixed.toml";

/// Medium and high load, in Mbit/s (`WLAN section III-B`).
pub(super) const LOADS: [u32; 2] = [10, 20];
/// Downloads for each upload.
pub(super) const SYMMETRIC: u32 = 1;
/// The same in a residential network (`WLAN section III-B`).
pub(super) const ASYMMETRIC: u32 = 10;
/// The same where users watch video (`WLAN section III-B`).
pub(super) const STREAMING: u32 = 100;

/// What each direction of the scenario's file offers, in Mbit/s.
const WRITTEN: f64 = 5.0;

/// Both directions, with their names.
pub(super) const DIRECTIONS: [(usize, &str); 2] = [(UPLOADS, "uploads"), (DOWNLOADS, "downloads")];

/// Sizes in segments.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) name: &'static str,
    pub(super) least: u32,
    pub(super) most: u32,
}

/// Up to the threshold of 20 packets.
pub(super) const SHORT: Sizes = Sizes { name: "short", least: 1, most: 20 };
pub(super) const MEDIUM: Sizes = Sizes { name: "medium", least: 21, most: 200 };
pub(super) const LONG: Sizes = Sizes { name: "long", least: 1_001, most: 10_000 };
pub(super) const ALL: Sizes = Sizes { name: "all", least: 1, most: 10_000 };
/// Around the threshold: where a step is looked for.
pub(super) const BELOW_STEP: Sizes = Sizes { name: "10 to 20", least: 10, most: 20 };
pub(super) const ABOVE_STEP: Sizes = Sizes { name: "21 to 40", least: 21, most: 40 };

/// Transfers of `load` Mbit/s in all, with so many downloads for each upload.
fn scenario(lab: &Lab<'_>, load: u32, downloads: u32, buffer: u32) -> Scenario {
    let upload = f64::from(load) / f64::from(1 + downloads);
    offering(lab, [upload, upload * f64::from(downloads)], buffer)
}

/// Transfers of so many Mbit/s up and down.
fn offering(lab: &Lab<'_>, [up, down]: [f64; 2], buffer: u32) -> Scenario {
    let mut scenario = with_buffer(MIXED, buffer);
    scenario.duration = lab.length(scenario.duration);
    for (source, part) in [(UPLOADS, up), (DOWNLOADS, down)] {
        if let TrafficKind::Transfers { arrivals: Arrivals::Poisson { per_second }, .. } =
            &mut scenario.traffic[source].kind
        {
            *per_second *= part / WRITTEN;
        }
    }
    scenario
}

/// The runs of the scenario's disciplines.
pub(super) fn all(lab: &Lab<'_>, load: u32, downloads: u32, buffer: u32) -> Result<Cell, Stopped> {
    Cell::of_scenario(lab, &lab.seeds(), buffer, scenario(lab, load, downloads, buffer))
}

/// The runs of others: those of the scenario called `names`, and `more`.
pub(super) fn some(
    lab: &Lab<'_>,
    load: u32,
    downloads: u32,
    buffer: u32,
    (names, more): (&[&str], &[DisciplineChoice]),
) -> Result<Cell, Stopped> {
    let mut scenario = scenario(lab, load, downloads, buffer);
    scenario.disciplines.retain(|choice| names.contains(&choice.label.as_str()));
    scenario.disciplines.extend(more.iter().cloned());
    Cell::of_scenario(lab, &lab.seeds(), buffer, scenario)
}

/// The runs of those called `names` with no uploads at all.
pub(super) fn downloads_only(
    lab: &Lab<'_>,
    load: u32,
    buffer: u32,
    names: &[&str],
) -> Result<Cell, Stopped> {
    let mut scenario = without_uploads(lab, load, buffer);
    scenario.disciplines.retain(|choice| names.contains(&choice.label.as_str()));
    Cell::of_scenario(lab, &lab.seeds(), buffer, scenario)
}

/// Downloads of `load` Mbit/s; the uploads keep their place, but there are none.
fn without_uploads(lab: &Lab<'_>, load: u32, buffer: u32) -> Scenario {
    let mut scenario = offering(lab, [0.0, f64::from(load)], buffer);
    if let TrafficKind::Transfers { arrivals, .. } = &mut scenario.traffic[UPLOADS].kind {
        *arrivals = Arrivals::AtStart { count: 0 };
    }
    scenario
}

/// The mean time from SYN to the last FIN of the completed transfers of some
/// `directions`, in seconds (`WLAN section V-2`).
pub(super) fn response(run: &Run, directions: &[usize], sizes: Sizes) -> Option<f64> {
    let those = |flow: &&Flow| directions.contains(&usize::from(flow.traffic));
    mean(of_sizes(run, sizes).filter(those).filter_map(|flow| flow.lasted.map(f64::from)))
}

/// The transfers of some sizes, completed or not.
pub(super) fn of_sizes(run: &Run, sizes: Sizes) -> impl Iterator<Item = &Flow> {
    let segments = f64::from(sizes.least)..=f64::from(sizes.most);
    run.flows.iter().filter(move |flow| segments.contains(&(f64::from(flow.size) / SEGMENT).ceil()))
}

/// What downloads take over what uploads of the same sizes take.
pub(super) fn unfairness(run: &Run, sizes: Sizes) -> Option<f64> {
    Some(response(run, &[DOWNLOADS], sizes)? / response(run, &[UPLOADS], sizes)?)
}

/// Mean response by size under some disciplines of a cell.
pub(super) fn by_size(
    id: String,
    title: String,
    cell: &Cell,
    labels: &[&str],
    directions: &[usize],
) -> Figure {
    // The threshold is one of the bounds; uploads of a tenth of the load are few.
    const BOUNDS: [u32; 16] =
        [6, 8, 10, 13, 16, 21, 26, 33, 50, 80, 130, 201, 400, 1_001, 2_500, 7_000];
    let line = |label: &&str| {
        let (mut points, mut band) = (Vec::new(), Vec::new());
        for pair in BOUNDS.windows(2) {
            let sizes = Sizes { name: "", least: pair[0], most: pair[1] - 1 };
            let means = cell.of(label).iter().filter_map(|run| response(run, directions, sizes));
            let Some(estimate) = Estimate::mean(means) else { continue };
            let at = (f64::from(sizes.least) * f64::from(sizes.most)).sqrt();
            let (low, high) = estimate.ends();
            points.push((at, estimate.value));
            // A lower end at or below zero has no place on a logarithmic axis.
            band.push((at, low.max(estimate.value / 10.0), high));
        }
        Line { label: (*label).into(), points, band }
    };
    Figure {
        id,
        title,
        caption: "From SYN to the last FIN, of completed transfers; mean over seeds with its 95% \
                  interval."
            .into(),
        x: Scale::log("Size in segments", Measure::Count),
        y: Scale::log("Mean response time", Measure::Time),
        lines: labels.iter().map(line).collect(),
        stepped: false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::super::SMALL;
    use super::*;
    use crate::lab::{Effort, Nobody};

    /// Transfers a second of each direction.
    fn rates(scenario: impl Fn(&Lab<'_>) -> Scenario) -> [f64; 2] {
        let stop = AtomicBool::new(false);
        let scenario = scenario(&Lab::new(Effort::Usual, 1, &stop, &Nobody));
        assert_eq!(scenario.traffic[UPLOADS].name, "uploads");
        assert_eq!(scenario.traffic[DOWNLOADS].name, "downloads");
        [UPLOADS, DOWNLOADS].map(|source| match scenario.traffic[source].kind {
            TrafficKind::Transfers { arrivals: Arrivals::Poisson { per_second }, .. } => per_second,
            TrafficKind::Transfers { arrivals: Arrivals::AtStart { count: 0 }, .. } => 0.0,
            _ => f64::NAN,
        })
    }

    #[test]
    fn loads_are_those_of_the_paper() {
        // 40 packets of 1 500 bytes a transfer: 20.8 a second are 10 Mbit/s.
        let close = |rate: f64, megabits: f64| (rate * 480e3 / (megabits * 1e6) - 1.0).abs() < 1e-4;
        let [up, down] = rates(|lab| scenario(lab, 20, SYMMETRIC, SMALL));
        assert!(close(up, 10.0) && close(down, 10.0), "{up} {down}");
        let [up, down] = rates(|lab| scenario(lab, 10, ASYMMETRIC, SMALL));
        assert!(close(up, 10.0 / 11.0) && close(down, 100.0 / 11.0), "{up} {down}");
        let [up, down] = rates(|lab| scenario(lab, 20, STREAMING, SMALL));
        assert!(close(up, 20.0 / 101.0) && close(down, 2_000.0 / 101.0), "{up} {down}");
        let [up, down] = rates(|lab| without_uploads(lab, 20, SMALL));
        assert!(up == 0.0 && close(down, 20.0), "{up} {down}");
    }
}
