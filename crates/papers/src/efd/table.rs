//! EFD section 3.1 and 5.1: the flow table.

use super::{DUMBBELL, LOADS, PAPER, dumbbell};
use crate::check::{Bound, Check, Written};
use crate::figure::{Figure, Line, Measure, Scale, distribution, thinned};
use crate::lab::{Lab, Passage, Run};
use crate::runs::{bottleneck, choices, mean, ratio};
use crate::{Claim, Finding, Stopped};
use tidegate_study::Centre;

pub(super) const FRAGMENTS: Claim = Claim {
    id: "EFD-1b",
    paper: &PAPER,
    source: "EFD section 3.1, figure 1(b)",
    text: "EFD cuts a connection into fragments, one for each entry in its flow table. Their \
           number saturates as connections grow: the longest have many packets in each fragment.",
    method: "The dumbbell in underload under EFD. A fragment begins with a packet that finds none \
             of its connection's packets in the queue. Handshakes and ACKs are packets too: those \
             in the direction of the data are counted. The bounds are ours: the paper gives no \
             numbers.",
    discussion: "",
    measure: fragments,
};

fn fragments(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let scenario = dumbbell(8);
    let efd = &choices(&["efd"])[0];
    let runs: Vec<Vec<Passage>> = lab
        .seeds()
        .into_iter()
        .map(|seed| lab.passages(&scenario, efd, seed))
        .collect::<Result<_, _>>()?;
    let of = |run: &[Passage], least: u32, most: u32| -> Vec<(f64, f64)> {
        let within = run.iter().filter(|one| (least..=most).contains(&one.packets));
        within.map(|one| (f64::from(one.packets), f64::from(one.fragments))).collect()
    };
    let growth = |run: &Vec<Passage>| {
        let fragments = |least, most| mean(of(run, least, most).into_iter().map(|one| one.1));
        Some(fragments(1_000, 10_000)? / fragments(100, 1_000)?)
    };
    let thickness = |run: &Vec<Passage>| {
        let thick = |least, most| mean(of(run, least, most).into_iter().map(|(p, f)| p / f));
        Some(thick(1_000, 10_000)? / thick(20, 50)?)
    };
    let checks = vec![
        Check::new(
            "transfers of 1 000 to 10 000 packets have at most twice the fragments of those of \
             100 to 1 000, a tenth of their size",
            "saturates",
            Written::Ratio,
            runs.iter().map(growth),
            Bound::AtMost(2.0),
        ),
        Check::new(
            "transfers of 1 000 packets and more have at least five times the packets in a \
             fragment of those of 20 to 50",
            "many packets in each",
            Written::Ratio,
            runs.iter().map(thickness),
            Bound::AtLeast(5.0),
        ),
    ];
    let all: Vec<Passage> = runs.into_iter().flatten().collect();
    let bounds: Vec<u32> = (0..=16).map(|step| bin(f64::from(step))).collect();
    let points = bounds.windows(2).filter_map(|pair| {
        let found = of(&all, pair[0], pair[1] - 1);
        let size = mean(found.iter().map(|one| one.0))?;
        Some((size, mean(found.iter().map(|one| one.1))?))
    });
    let figure = Figure {
        id: "EFD-1b".into(),
        title: "Fragments of a connection in EFD's table".into(),
        caption: "Mean number of table entries that a connection had in its life, by the number \
                  of its packets; underload, all seeds."
            .into(),
        x: Scale::log("Packets of the connection", Measure::Count),
        y: Scale::log("Fragments", Measure::Count),
        lines: vec![Line::plain("efd", points.collect())],
        stepped: false,
    };
    Ok(Finding::new("EFD-1b", lab, &[DUMBBELL], checks, vec![figure]))
}

/// Bounds of the bins of size: five to a factor of ten, from 5 packets.
fn bin(step: f64) -> u32 {
    (5.0 * libm::pow(10.0, step / 5.0)) as u32
}

pub(super) const OVER_TIME: Claim = Claim {
    id: "EFD-2",
    paper: &PAPER,
    source: "EFD section 5.1, figure 2",
    text: "X-Protect tracks about half the flows that LAS tracks; EFD fewer by an order of \
           magnitude. Both in underload and in overload.",
    method: "Mean number of flows in the table, sampled every second. LAS and X-Protect sweep \
             every 5 s and forget flows that were idle for 30 s, as in the paper. 'About half' is \
             taken as 35 to 65%.",
    discussion: "X-Protect's share follows from the sizes. A connection of n packets passes at \
                 least one test with probability 1 - 0.99^n: 20% on average for our sizes, and one \
                 half only for connections of 69 packets. The measured value is that 20% plus the \
                 longer stay of long connections; the paper's transfers must have been longer. \
                 EFD's share in overload depends on its own table, not on LAS: see EFD-3.",
    measure: over_time,
};

fn over_time(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let names = ["las", "x-protect", "efd"];
    let (mut checks, mut figures) = (Vec::new(), Vec::new());
    for (load, regime) in LOADS {
        let all = lab.all_runs(&dumbbell(load), &choices(&names))?;
        let [las, x_protect, efd] = &all[..] else { unreachable!("three were asked for") };
        let tracked = |run: &Run| Some(bottleneck(run).mean_flows());
        checks.push(Check::new(
            format!("{regime}: X-Protect tracks 35 to 65% of the flows that LAS tracks"),
            "about half",
            Written::Share,
            ratio(x_protect, las, tracked),
            Bound::Within(0.35, 0.65),
        ));
        checks.push(Check::new(
            format!("{regime}: EFD tracks at most a tenth of the flows that LAS tracks"),
            "a tenth or less",
            Written::Share,
            ratio(efd, las, tracked),
            Bound::AtMost(0.1),
        ));
        let line = |(name, runs): (&str, &Vec<std::sync::Arc<Run>>)| {
            let samples = &bottleneck(&runs[0]).samples;
            let points =
                samples.iter().map(|sample| (sample.at.as_seconds(), sample.flows_tracked as f64));
            Line::plain(name, thinned(points.collect()))
        };
        figures.push(Figure {
            id: format!("EFD-2-{regime}"),
            title: format!("Flows tracked over time, {regime} ({load} Mbit/s)"),
            caption: "The first seed.".into(),
            x: Scale::linear("Time", Measure::Time),
            y: Scale::log("Flows tracked", Measure::Count),
            lines: std::iter::zip(names, &all).map(line).collect(),
            stepped: false,
        });
    }
    Ok(Finding::new("EFD-2", lab, &[DUMBBELL], checks, figures))
}

pub(super) const SIZE: Claim = Claim {
    id: "EFD-3",
    paper: &PAPER,
    source: "EFD section 5.1, figure 3",
    text: "EFD's table has a few tens of entries at most, far fewer than the 300 packets of the \
           buffer that bound it; in underload and in overload.",
    method: "The largest number of entries at any instant of a run, and the distribution over one \
             sample a second. 'A few tens at most' is taken as fewer than 100.",
    discussion: "In overload the buffer bounds the table, not EFD. With our sizes about a thousand \
                 transfers compete, each with a packet or two in a queue of 300, so that there are \
                 nearly as many entries as packets. With few long transfers instead of many short \
                 ones (`tidegate compare dumbbell-long-transfers`: a mean of 4 091 segments \
                 instead of 40, at the same load) there were 9.7 ± 2.2 entries on average and 28 \
                 at most in ten seeds, as in the paper, which does not say how long its transfers \
                 were.",
    measure: size,
};

fn size(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let (mut checks, mut figures) = (Vec::new(), Vec::new());
    for (load, regime) in LOADS {
        let runs = lab.runs(&dumbbell(load), &choices(&["efd"])[0])?;
        checks.push(Check::of(
            Centre::Median,
            format!("{regime}: never as many as 100 entries"),
            "a few tens at most",
            Written::Count,
            runs.iter().map(|run| Some(bottleneck(run).counters.flows_peak as f64)),
            Bound::AtMost(99.0),
        ));
        checks.push(Check::of(
            Centre::Median,
            format!("{regime}: fewer than 50 entries in 99% of all looks"),
            "a few tens at most",
            Written::Count,
            runs.iter().map(|run| quantile(entries(run), 0.99)),
            Bound::AtMost(49.0),
        ));
        let peaks = runs.iter().map(|run| bottleneck(run).counters.flows_peak as f64);
        checks.push(Check::exact(
            format!(
                "{regime}: never more entries than the buffer has places, the most of all seeds"
            ),
            "at most 300",
            Written::Count,
            peaks.fold(0.0, f64::max),
            Bound::AtMost(300.0),
        ));
        figures.push(Figure {
            id: format!("EFD-3-{regime}"),
            title: format!("Entries in EFD's table, {regime} ({load} Mbit/s)"),
            caption: "Share of looks, one every second, with no more than so many entries; all \
                      seeds."
                .into(),
            x: Scale::linear("Entries", Measure::Count),
            y: Scale::linear("Share of looks", Measure::Share),
            lines: vec![Line::plain(
                "efd",
                distribution(runs.iter().flat_map(|run| entries(run)).collect()),
            )],
            stepped: true,
        });
    }
    Ok(Finding::new("EFD-3", lab, &[DUMBBELL], checks, figures))
}

fn entries(run: &Run) -> Vec<f64> {
    bottleneck(run).samples.iter().map(|sample| sample.flows_tracked as f64).collect()
}

fn quantile(mut values: Vec<f64>, fraction: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * fraction).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied()
}
