//! WLAN's abstract and section II: what size-based disciplines are charged with.

use super::mixed::{LOADS, LONG, MIXED, SYMMETRIC, of_sizes, some};
use super::{Cell, PAPER, SMALL};
use crate::check::{Bound, Check, Written};
use crate::figure::{Figure, Line, Measure, Scale, distribution};
use crate::lab::{Lab, Run};
use crate::runs::{mean, paired, ratio};
use crate::{Claim, Finding, Row, Stopped, Table};
use tidegate_study::{Centre, Estimate};

pub(super) const DRAWBACKS: Claim = Claim {
    id: "WLAN-D",
    paper: &PAPER,
    source: "WLAN abstract and sections II and VII",
    text: "PEFD and EFDACK have none of the drawbacks of size-based disciplines. They track a \
           number of flows that is smaller by orders of magnitude, and often much smaller than \
           the queue; and long transfers neither lock each other out nor starve, as under Run2C \
           and LARS.",
    method: "The runs of WLAN-6. Flows in the table are means of samples every 10 s; the others \
             forget a flow that was idle for 30 s, as in EFD's paper (this one says nothing). \
             'Orders of magnitude' is taken as at most a tenth of the fewest that LASACK, LARS or \
             Run2CACK tracks, 'much smaller than the queue' as at most half of its 30 packets. \
             Long transfers have more than 1 000 segments; that they are not locked out is taken \
             as a mean longest time without a new byte of at most a third of LASACK's, 'as under' \
             as 0.5 to 2 times (ratios with heavy tails: their medians over seeds); that they do \
             not starve as at least 0.9 of the bytes that FIFO brings them. That a long flow of a \
             limited rate does not starve is not tested in this cell; EFD-7 tests it on a wire.",
    discussion: "The table has fewer than three flows on average where those of the others have \
                 700 and 1 400, nearly all of them transfers that have ended. At 20 Mbit/s (six \
                 seeds) long transfers stand still for 11 s on average under LASACK, 2.5 under \
                 LARS, 1.4 under Run2CACK, 1.0 under FIFO and 0.9 under PEFD and EFDACK: mostly \
                 the wait for one timeout, of at least 1 s. So the latter are not similar to LARS \
                 but better.",
    measure: drawbacks,
};

/// Those that remember flows while these are idle.
const REMEMBERING: [&str; 3] = ["las-ack", "lars", "run2c-ack"];
const DRAWN: [&str; 6] = ["fifo", "lars", "las-ack", "run2c-ack", "pefd", "efd-ack"];
const OURS: [&str; 2] = ["pefd", "efd-ack"];

fn drawbacks(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let (mut checks, mut figures, mut cells) = (Vec::new(), Vec::new(), Vec::new());
    for load in LOADS {
        let cell = some(lab, load, SYMMETRIC, SMALL, (&DRAWN, &[]))?;
        for label in OURS {
            checks.extend(flow_table(load, label, &cell));
            checks.extend(long_transfers(load, label, &cell));
        }
        figures.extend([tracked(load, &cell), standstills(load, &cell)]);
        cells.push(cell);
    }
    let finding = Finding::new("WLAN-D", lab, &[MIXED], checks, figures);
    Ok(finding.with_tables(vec![numbers(&cells)]))
}

fn flow_table(load: u32, label: &str, cell: &Cell) -> [Check; 2] {
    let flows = |run: &Run| cell.downlink(run).mean_flows();
    let share = (0..cell.of(label).len()).map(|seed| {
        let fewest = REMEMBERING.iter().map(|other| flows(&cell.of(other)[seed])).reduce(f64::min);
        fewest.map(|fewest| flows(&cell.of(label)[seed]) / fewest)
    });
    [
        Check::new(
            format!(
                "{load} Mbit/s: {label} tracks at most a tenth of the flows that the other \
                 size-based ones track"
            ),
            "orders of magnitude smaller",
            Written::Share,
            share,
            Bound::AtMost(0.1),
        ),
        Check::new(
            format!("{load} Mbit/s: {label} tracks at most 15 flows, half of the queue's packets"),
            "much smaller than the physical queue",
            Written::Count,
            cell.of(label).iter().map(|run| Some(flows(run))),
            Bound::AtMost(f64::from(SMALL) / 2.0),
        ),
    ]
}

fn long_transfers(load: u32, label: &str, cell: &Cell) -> Vec<Check> {
    let still = |run: &Run| mean(stalls(run));
    let mut checks = vec![Check::of(
        Centre::Median,
        format!(
            "{load} Mbit/s: long transfers stand still at most a third as long under {label} as \
             under las-ack"
        ),
        "avoids lock-outs",
        Written::Ratio,
        ratio(cell.of(label), cell.of("las-ack"), still),
        Bound::AtMost(1.0 / 3.0),
    )];
    for other in ["run2c-ack", "lars"] {
        checks.push(Check::of(
            Centre::Median,
            format!(
                "{load} Mbit/s: long transfers stand still 0.5 to 2 times as long under {label} as \
                 under {other}"
            ),
            "similarly to Run2C or LARS",
            Written::Ratio,
            ratio(cell.of(label), cell.of(other), still),
            Bound::Within(0.5, 2.0),
        ));
    }
    checks.push(Check::new(
        format!(
            "{load} Mbit/s: long transfers receive at least 0.9 times as much under {label} as \
             under fifo"
        ),
        "avoids starvation of long flows",
        Written::Ratio,
        paired(cell.of(label), cell.of("fifo"), |run, fifo| {
            let bytes = |run: &Run| -> f64 {
                of_sizes(run, LONG).map(|flow| f64::from(flow.delivered)).sum()
            };
            (bytes(fifo) > 0.0).then(|| bytes(run) / bytes(fifo))
        }),
        Bound::AtLeast(0.9),
    ));
    checks
}

/// The longest time without a new byte of each long transfer, in seconds.
fn stalls(run: &Run) -> impl Iterator<Item = f64> + '_ {
    of_sizes(run, LONG).map(|flow| f64::from(flow.stall))
}

fn tracked(load: u32, cell: &Cell) -> Figure {
    let line = |label: &&str| {
        let samples = cell.downlink(&cell.of(label)[0]).samples.iter();
        let points = samples.map(|at| (at.at.as_seconds(), at.flows_tracked as f64));
        // No flow has no place on a logarithmic axis.
        Line::plain(*label, points.filter(|point| point.1 > 0.0).collect())
    };
    Figure {
        id: format!("WLAN-D-{load}-flows"),
        title: format!("Flows tracked at the access point, {load} Mbit/s"),
        caption: "Every 10 s, where there was any; the first seed.".into(),
        x: Scale::linear("Time", Measure::Time),
        y: Scale::log("Flows", Measure::Count),
        lines: DRAWN[1..].iter().map(line).collect(),
        stepped: false,
    }
}

/// The mean number of flows tracked and the mean standstill, over seeds.
fn numbers(cells: &[Cell]) -> Table {
    let columns = std::iter::once("discipline".to_string());
    let of_loads = LOADS.iter().flat_map(|load| {
        [format!("flows, {load} Mbit/s"), format!("still for (s), {load} Mbit/s")]
    });
    let row = |label: &&str| {
        let of_cell = |cell: &Cell| {
            let runs = cell.of(label);
            let tracked = runs.iter().map(|run| cell.downlink(run).mean_flows());
            let still = runs.iter().filter_map(|run| mean(stalls(run)));
            [Estimate::mean(tracked), Estimate::mean(still)]
        };
        Row::new(*label, Written::Ratio, cells.iter().flat_map(of_cell))
    };
    Table {
        title: "Flows tracked, and how long long transfers stand still".into(),
        caption: "Means of samples every 10 s, and of the longest time without a new byte of each \
                  transfer of more than 1 000 segments; mean over seeds with its 95% interval. \
                  FIFO tracks no flows."
            .into(),
        columns: columns.chain(of_loads).collect(),
        rows: DRAWN.iter().map(row).collect(),
    }
}

fn standstills(load: u32, cell: &Cell) -> Figure {
    let line = |label: &&str| {
        let all = cell.of(label).iter().flat_map(|run| stalls(run));
        // What is shorter cannot be told apart.
        Line::plain(*label, distribution(all.map(|stall| stall.max(1e-3)).collect()))
    };
    Figure {
        id: format!("WLAN-D-{load}-still"),
        title: format!("How long long transfers stand still, {load} Mbit/s"),
        caption: "The longest time without a new byte of each transfer of more than 1 000 \
                  segments. Share of them that stood still no longer; all seeds."
            .into(),
        x: Scale::log("Longest time without a new byte", Measure::Time),
        y: Scale::linear("Long transfers", Measure::Share),
        lines: DRAWN.iter().map(line).collect(),
        stepped: true,
    }
}
