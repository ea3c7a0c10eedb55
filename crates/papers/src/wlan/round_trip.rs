//! WLAN section IV: round trips and windows, by which a queue steers TCP.

use super::{
    BUFFERS, Cell, DOWNLOADS, LONG_LIVED, PAPER, PAPERS_RUNS, RECEIVE_WINDOW, SEGMENT, UPLOADS,
    cells, over_buffers, table,
};
use crate::check::{Bound, Check, Written};
use crate::figure::{Figure, Measure, Scale};
use crate::lab::{Lab, Run};
use crate::runs::{mean, paired, ratio};
use crate::{Claim, Finding, Stopped};
use tidegate_sim::metrics::ProgressSample;

pub(super) const ROUND_TRIPS: Claim = Claim {
    id: "WLAN-3",
    paper: &PAPER,
    source: "WLAN section IV, figure 3",
    text: "Under FIFO and BEFD round trips are similar in both directions and grow with the \
           buffer. FIFO's downloads have small windows, BEFD's smaller ones. EFDACK separates the \
           two directions: it makes the round trip of uploads longer, which offsets their larger \
           windows. LARS does so as well, and PEFD to a lesser extent.",
    method: "The runs of WLAN-2. Sampled every second are the smoothed round trip of each sender \
             (RFC 6298), once it has one, and its congestion window up to the receive window; \
             means are over time and flows, where the paper has means over samples. 'Similar' is \
             taken as a ratio of 0.8 to 1.25, 'longer' as at least 1.25, 'small windows' as at \
             most half the uploads' with 30 packets, 'grow' and 'smaller' as by a tenth.",
    discussion: "EFDACK and PEFD do what the paper says. Under FIFO and BEFD downloads nearly \
                 stand still with small buffers and measure few round trips, so that the samples \
                 repeat their last smoothed value; their ratio varies from seed to seed. As in \
                 WLAN-2, LARS does not hold acknowledgements back. BEFD's downloads have windows \
                 as small as FIFO's, not smaller.",
    measure: round_trips,
};

fn round_trips(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let cells = cells(lab)?;
    let with = |buffer: u32| -> &Cell {
        let place = BUFFERS.iter().position(|one| *one == buffer);
        &cells[place.expect("only buffers of the figure are asked for")]
    };
    let longer = |run: &Run| Some(round_trip(run, UPLOADS)? / round_trip(run, DOWNLOADS)?);
    let wider = |run: &Run| Some(window(run, UPLOADS)? / window(run, DOWNLOADS)?);
    let mut checks = Vec::new();
    for label in ["fifo", "befd"] {
        for buffer in [10, 30, 70] {
            checks.push(Check::new(
                format!("{buffer} packets: round trip up over down is 0.8 to 1.25 under {label}"),
                "similar",
                Written::Ratio,
                with(buffer).of(label).iter().map(|run| longer(run)),
                Bound::Within(0.8, 1.25),
            ));
        }
        for (source, name) in [(UPLOADS, "uploads"), (DOWNLOADS, "downloads")] {
            checks.push(Check::new(
                format!("{label}: {name}' round trip with 70 packets over 10 is at least 1.1"),
                "grows with the buffer",
                Written::Ratio,
                ratio(with(70).of(label), with(10).of(label), move |run| round_trip(run, source)),
                Bound::AtLeast(1.1),
            ));
        }
    }
    checks.push(Check::new(
        "30 packets: windows up over down are at least 2 under fifo",
        "downloads' windows do not significantly grow",
        Written::Ratio,
        with(30).of("fifo").iter().map(|run| wider(run)),
        Bound::AtLeast(2.0),
    ));
    checks.push(Check::new(
        "30 packets: downloads' windows under befd over fifo's are at most 0.9",
        "worse",
        Written::Ratio,
        ratio(with(30).of("befd"), with(30).of("fifo"), |run| window(run, DOWNLOADS)),
        Bound::AtMost(0.9),
    ));
    for label in ["efd-ack", "lars"] {
        for buffer in [30, 70] {
            checks.push(Check::new(
                format!("{buffer} packets: round trip up over down is at least 1.25 under {label}"),
                "the scheduler inflates it",
                Written::Ratio,
                with(buffer).of(label).iter().map(|run| longer(run)),
                Bound::AtLeast(1.25),
            ));
        }
    }
    checks.push(Check::new(
        "30 packets: windows up over down are at least 1 under efd-ack",
        "to compensate for the window",
        Written::Ratio,
        with(30).of("efd-ack").iter().map(|run| wider(run)),
        Bound::AtLeast(1.0),
    ));
    checks.push(Check::new(
        "30 packets: round trip up over down is at least 1 under pefd",
        "to a lesser extent",
        Written::Ratio,
        with(30).of("pefd").iter().map(|run| longer(run)),
        Bound::AtLeast(1.0),
    ));
    checks.push(Check::new(
        "30 packets: the same under pefd over that under efd-ack is at most 1",
        "to a lesser extent",
        Written::Ratio,
        paired(with(30).of("pefd"), with(30).of("efd-ack"), |one, other| {
            Some(longer(one)? / longer(other)?)
        }),
        Bound::AtMost(1.0),
    ));
    let figure = |what: &str, title: &str, y: Scale, value: fn(&Run, usize) -> Option<f64>| {
        let directions = [(UPLOADS, "up"), (DOWNLOADS, "down")];
        let of = |label: &'static str| {
            let cells = &cells;
            directions.map(|(source, name)| {
                over_buffers(format!("{label}, {name}"), cells, label, |_, run| {
                    value(run, source).unwrap_or(f64::NAN)
                })
            })
        };
        Figure {
            id: format!("WLAN-3-{what}"),
            title: title.into(),
            caption: "Packets of buffer. Mean over seeds with its 95% interval.".into(),
            x: Scale::linear("Buffer of the access point (packets)", Measure::Count),
            y,
            lines: ["fifo", "befd", "efd-ack"].into_iter().flat_map(of).collect(),
            stepped: false,
        }
    };
    let figures = vec![
        figure(
            "round-trip",
            "Round trips of 5 uploads and 5 downloads",
            Scale::linear("Smoothed round trip", Measure::Time),
            round_trip,
        ),
        figure(
            "window",
            "Windows of 5 uploads and 5 downloads",
            Scale::linear("Segments", Measure::Count),
            window,
        ),
    ];
    let directions = [(UPLOADS, ", up"), (DOWNLOADS, ", down")];
    let tables = vec![
        table(
            "Round trips in milliseconds",
            "Smoothed round trips, mean over seeds with its 95% interval.",
            &cells,
            &directions,
            |run, source| Some(round_trip(run, source)? * 1e3),
        ),
        table(
            "Windows in segments",
            "Congestion windows as far as the receive window lets them be used, mean over seeds \
             with its 95% interval.",
            &cells,
            &directions,
            window,
        ),
    ];
    let finding = Finding::new("WLAN-3", lab, &[LONG_LIVED], checks, figures);
    Ok(finding.with_tables(tables).over(lab.seeds_as(PAPERS_RUNS)))
}

/// The mean smoothed round trip of one source's flows, in seconds.
fn round_trip(run: &Run, source: usize) -> Option<f64> {
    mean(samples(run, source).filter_map(|sample| Some(sample.smoothed_rtt?.as_seconds())))
}

/// The mean window of one source's flows, in segments.
fn window(run: &Run, source: usize) -> Option<f64> {
    let usable = |sample: &ProgressSample| (sample.congestion_window.0 as f64).min(RECEIVE_WINDOW);
    mean(samples(run, source).map(|sample| usable(sample) / SEGMENT))
}

fn samples(run: &Run, source: usize) -> impl Iterator<Item = &ProgressSample> {
    run.summary.progress.iter().filter(move |sample| sample.traffic == source)
}
