//! MSF section 6: latency beside traffic of no class.

use tidegate_core::{Bytes, Rate, Span};

use super::batch::{at_once, mean_of_all};
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
             client, 800 s. With today's TCP, none and 40%. An ordinary gateway has the same TCP. \
             The paper's reason is its analysis of a batch (MSF-5) with a smaller window. So that \
             is measured too: 24 equal requests at once through a window of 13 places, and of 7 \
             beside 40%, which are the paper's windows (figure 14); by equations (4) to (6) the \
             ratios are 0.75 and 0.64.",
    discussion: "An ordinary gateway lets the other traffic pay. Its responses keep the provider's \
                 queue full, and CBR traffic does not slow down: beside 60% of the link and with \
                 today's TCP, 24% of its datagrams are lost, and 0.3% with `paper` (300 s, two \
                 seeds). What they leave, an ordinary gateway's responses receive, so that `paper` \
                 answers 18% fewer requests beside 60%, with the paper's TCP. The rest of the \
                 difference is what an ordinary gateway leaves unanswered at the end (see MSF-9). \
                 W+ does become smaller, from 16 to 5, and in the analysis of equal requests that \
                 shortens latencies (MSF-5); with these sizes the mean was not shorter to begin \
                 with.",
    measure: beside,
};

/// In percent of the link, with the paper's TCP and with today's.
const LOADS: [u64; 4] = [0, 20, 40, 60];
const LOADS_TODAY: [u64; 2] = [0, 40];

/// The places of a window without traffic of no class and beside `BESIDE_BATCH`.
const PLACES: (u32, u32) = (13, 7);
/// In percent of the link.
const BESIDE_BATCH: u64 = 40;

/// The set-up beside so much traffic.
fn beside_cbr(mut setup: Setup, percent: u64) -> Setup {
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

/// The set-up with backlogged clients beside so much traffic.
fn disturbed(variant: Variant, percent: u64) -> Setup {
    beside_cbr(variant.looping(10), percent)
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
            checks.push(shrinks(variant.label, &runs));
            checks.extend(advantage(variant.label, loads, &runs, &of_ordinary));
            checks.extend(batches(lab, variant)?);
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

/// What the most traffic does to the window.
fn shrinks(label: &str, runs: &[Vec<Outcome>]) -> Check {
    Check::new(
        format!("{label}: W+ beside the most traffic is below that without any"),
        "smaller",
        Written::Ratio,
        ratios(&runs[runs.len() - 1], &runs[0], mean_window),
        Bound::AtMost(1.0),
    )
}

/// The paper's reason: a batch with the windows that it has found.
fn batches(lab: &Lab<'_>, variant: Variant) -> Result<Vec<Check>, Stopped> {
    let ratio = |percent, places: u32| {
        let setup = beside_cbr(at_once((variant.setup)()), percent);
        let fixed = [("window", "fixed"), ("start", &*places.to_string())];
        let runs = lab.gateway_runs(&setup, variant.with(&fixed))?;
        let of_ordinary = lab.gateway_runs(&setup, ordinary())?;
        Ok(ratios(&runs, &of_ordinary, mean_of_all))
    };
    let (alone, beside) = (ratio(0, PLACES.0)?, ratio(BESIDE_BATCH, PLACES.1)?);
    let change =
        std::iter::zip(&beside, &alone).map(|(beside, alone)| Some((*beside)? / (*alone)?));
    let label = format!("{}, a batch of 24", variant.label);
    Ok(vec![
        Check::new(
            format!(
                "{label} beside {BESIDE_BATCH}%: the mean response is at most 0.85 of an ordinary \
                 gateway's"
            ),
            "0.64",
            Written::Ratio,
            beside.clone(),
            Bound::AtMost(0.85),
        ),
        Check::new(
            format!("{label}: that ratio beside {BESIDE_BATCH}% is below that without any"),
            "much shorter",
            Written::Ratio,
            change.collect::<Vec<_>>(),
            Bound::AtMost(1.0),
        ),
    ])
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
