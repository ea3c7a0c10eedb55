//! MSF section 6: latency beside traffic of no class.

use tidegate_core::{Bytes, Rate, Span};

use super::latency::{answered, by_littles_law, ratios, response};
use super::timing::dropped;
use super::{PAPER, VARIANTS, Variant, latencies, mean_window, ordinary};
use crate::check::{Bound, Check, Written};
use crate::figure::{Figure, Measure, Scale};
use crate::lab::Lab;
use crate::table::{Row, Table};
use crate::{Claim, Finding, Stopped};
use tidegate_sim::requests::{Cbr, Outcome, SchedulerChoice, Setup};
use tidegate_study::Estimate;

pub(super) const BESIDE: Claim = Claim {
    id: "MSF-14L",
    paper: &PAPER,
    source: "MSF section 6 (3)",
    text: "Traffic of no class makes responses take longer with either gateway, and the advantage \
           of MSF-RS remains. It even grows, because W+ becomes smaller.",
    method: "CBR traffic of 20, 40 and 60% of the link, all the time, and none; ten loops for each \
             client, 800 s. With today's TCP, none and 40%. An ordinary gateway has the same TCP.",
    discussion: "",
    measure: beside,
};

/// In percent of the link, with the paper's TCP and with today's.
const LOADS: [u64; 4] = [0, 20, 40, 60];
const LOADS_TODAY: [u64; 2] = [0, 40];

/// The set-up beside so much traffic.
fn disturbed(variant: Variant, percent: u64) -> Setup {
    let mut setup = variant.looping(10);
    if percent > 0 {
        setup.passing.push(Cbr {
            rate: Rate(setup.rate.0 * percent / 100),
            packet: Bytes(1_000),
            off: Span::ZERO,
            on: setup.duration,
            whose: None,
        });
    }
    setup
}

fn by_load(
    lab: &Lab<'_>,
    loads: &[u64],
    variant: Variant,
    scheduler: &SchedulerChoice,
) -> Result<Vec<Vec<Outcome>>, Stopped> {
    loads.iter().map(|load| lab.gateway_runs(&disturbed(variant, *load), scheduler)).collect()
}

fn beside(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let [paper, paper_today, _, msf_today] = VARIANTS;
    let (mut checks, mut lines, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    for (loads, name, variants) in [
        (LOADS.as_slice(), "an ordinary gateway", vec![paper]),
        (&LOADS_TODAY, "an ordinary gateway, today's TCP", vec![paper_today, msf_today]),
    ] {
        let share = |load: &u64| *load as f64 / 100.0;
        let line = |label: &str, runs: &[Vec<Outcome>]| {
            latencies(label, loads.iter().map(share).zip(runs))
        };
        let of_ordinary = by_load(lab, loads, variants[0], &ordinary())?;
        checks.push(grows(name, &of_ordinary));
        lines.push(line(&name.replace("an ordinary gateway", "ordinary"), &of_ordinary));
        for variant in variants {
            let runs = by_load(lab, loads, variant, &variant.with(&[]))?;
            checks.push(grows(variant.label, &runs));
            checks.extend(advantage(variant.label, loads, &runs, &of_ordinary));
            for (position, load) in loads.iter().enumerate() {
                let setup = disturbed(variant, *load);
                let name = format!("{}, {load}%", variant.label);
                rows.push(row(&name, &setup, &runs[position], &of_ordinary[position]));
            }
            lines.push(line(variant.label, &runs));
        }
    }
    let figure = Figure {
        id: "MSF-14L".into(),
        title: "Mean latency beside traffic of no class".into(),
        caption: "With 95% intervals over seeds.".into(),
        x: Scale::linear("CBR traffic, of the link", Measure::Share),
        y: Scale::linear("Mean latency", Measure::Time),
        lines,
        stepped: false,
    };
    let columns = [
        "scheduler, CBR traffic",
        "ordinary, s",
        "ratio of latencies",
        "ratio of N/X - Z",
        "answered",
        "W+",
        "dropped, ordinary",
        "dropped",
    ];
    let table = Table {
        title: "Latency beside traffic of no class".into(),
        caption: "The mean latency of an ordinary gateway; relative to it that of the scheduler, \
                  N/X - Z (see MSF-9) and the number of answered requests; the mean window; and \
                  the shares of packets that the provider's queue drops."
            .into(),
        columns: columns.map(String::from).to_vec(),
        rows,
    };
    Ok(Finding::new("MSF-14L", lab, &[], checks, vec![figure]).with_tables(vec![table]))
}

fn row(name: &str, setup: &Setup, runs: &[Outcome], ordinary: &[Outcome]) -> Row {
    let relative = |value: &dyn Fn(&Outcome) -> Option<f64>| {
        Estimate::mean(ratios(runs, ordinary, value).into_iter().flatten())
    };
    let values = [
        Estimate::mean(ordinary.iter().filter_map(response)),
        relative(&response),
        relative(&|run| by_littles_law(setup, run)),
        relative(&|run| Some(answered(run))),
        Estimate::mean(runs.iter().filter_map(mean_window)),
        Estimate::mean(ordinary.iter().filter_map(dropped)),
        Estimate::mean(runs.iter().filter_map(dropped)),
    ];
    Row::new(name, Written::Ratio, values)
}

/// What the most traffic does to the latency of runs by load, the first without any.
fn grows(label: &str, runs: &[Vec<Outcome>]) -> Check {
    Check::new(
        format!("{label}: the mean latency beside the most traffic is above that without any"),
        "increased",
        Written::Ratio,
        ratios(&runs[runs.len() - 1], &runs[0], response),
        Bound::AtLeast(1.0),
    )
}

/// What the paper says of its gateway beside an ordinary one, by load.
fn advantage(
    label: &str,
    loads: &[u64],
    runs: &[Vec<Outcome>],
    ordinary: &[Vec<Outcome>],
) -> Vec<Check> {
    let by_load: Vec<_> =
        std::iter::zip(runs, ordinary).map(|(runs, by)| ratios(runs, by, response)).collect();
    let beside = |(load, ratios): (&u64, &Vec<Option<f64>>)| {
        Check::new(
            format!(
                "{label}, beside {load}%: the mean latency is at most 0.85 of an ordinary gateway's"
            ),
            if *load == 0 { "0.77" } else { "less than without" },
            Written::Ratio,
            ratios.clone(),
            Bound::AtMost(0.85),
        )
    };
    let mut checks: Vec<_> = loads.iter().zip(&by_load).map(beside).collect();
    let (none, most) = (&by_load[0], &by_load[by_load.len() - 1]);
    let change = std::iter::zip(most, none).map(|(most, none)| Some((*most)? / (*none)?));
    checks.push(Check::new(
        format!("{label}: that ratio beside the most traffic is below that without any"),
        "much shorter",
        Written::Ratio,
        change,
        Bound::AtMost(1.0),
    ));
    checks
}
