//! EFD section 5.2: what is carried, what is left, and how long it takes.

use std::sync::Arc;

use super::{DUMBBELL, LOADS, LONG_TRANSFERS, PAPER, dumbbell, mean_response, segments};
use crate::check::{Bound, Check, Written};
use crate::figure::{Figure, Line, Measure, Scale, distribution};
use crate::lab::{Lab, Run};
use crate::runs::{bottleneck, choices, mean, ratio};
use crate::{Claim, Finding, Stopped};
use tidegate_study::{Centre, Estimate, shipped};

/// In figures 4 and 5.
const FOUR: [&str; 4] = ["fifo", "las", "run2c", "efd"];
/// LARS is in the text of section 5.2.
const WITH_LARS: [&str; 5] = ["fifo", "las", "run2c", "efd", "lars"];
/// Sizes in segments between which the step is looked for.
const STEP: [u32; 9] = [10, 14, 20, 28, 40, 56, 80, 113, 160];

pub(super) const VOLUMES: Claim = Claim {
    id: "EFD-4v",
    paper: &PAPER,
    source: "EFD section 5.2",
    text: "The numbers of completed and incomplete transfers, and the part of the link's capacity \
           that is used, do not differ much between the disciplines.",
    method: "Each discipline against FIFO with the same arrivals: utilisation within 2%, number \
             of completed transfers within 5%, number of incomplete ones and payload of completed \
             ones within 10% of FIFO's. The bounds are ours.",
    discussion: "All hold but the number of incomplete transfers. Most of FIFO's are small ones \
                 that wait, and LAS and Run2C finish those: they leave half and 62% as many in \
                 overload, and a quarter and a third of the few in underload, which were under \
                 way when the run ended.",
    measure: volumes,
};

fn volumes(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let mut checks = Vec::new();
    for (load, regime) in LOADS {
        let all = lab.all_runs(&dumbbell(load), &choices(&FOUR))?;
        let fifo = &all[0];
        for (name, runs) in std::iter::zip(FOUR, &all).skip(1) {
            let mut check = |what: &str, around: f64, value: fn(&Run) -> f64| {
                checks.push(Check::new(
                    format!("{regime}: {name} against fifo, {what} within {}%", 100.0 * around),
                    "no significant difference",
                    Written::Share,
                    ratio(runs, fifo, move |run| Some(value(run))),
                    Bound::Within(1.0 - around, 1.0 + around),
                ));
            };
            check("utilisation", 0.02, |run| bottleneck(run).utilisation);
            check("completed transfers", 0.05, |run| {
                run.flows.iter().filter(|flow| flow.response.is_some()).count() as f64
            });
            check("incomplete transfers", 0.10, |run| {
                run.flows.iter().filter(|flow| flow.response.is_none()).count() as f64
            });
            check("payload of completed transfers", 0.10, |run| {
                let completed = run.flows.iter().filter(|flow| flow.response.is_some());
                completed.map(|flow| f64::from(flow.size)).sum()
            });
        }
    }
    Ok(Finding::new("EFD-4v", lab, &[DUMBBELL], checks, Vec::new()))
}

pub(super) const INCOMPLETE: Claim = Claim {
    id: "EFD-4",
    paper: &PAPER,
    source: "EFD section 5.2, figure 4",
    text: "In overload FIFO leaves many small transfers incomplete; the other disciplines leave \
           long ones instead.",
    method: "Transfers that had not finished when the run ended. As in the paper, the size of \
             such a transfer is the part that had been carried by then. Small transfers have up \
             to 20 segments, the threshold of EFD and Run2C.",
    discussion: "EFD knows a flow only while one of its packets is queued. With our sizes, about \
                 a thousand transfers compete in overload for 300 places, nearly every packet \
                 finds no other packet of its flow queued, and all packets take the high level: \
                 EFD then equals FIFO, and LARS, whose short memory makes all transfers look \
                 alike, is close to fair queueing. LAS and Run2C remember flows for 30 s and do \
                 what the paper says of all disciplines. Run2C's incomplete transfers have 1.7 \
                 times the size of FIFO's, where we asked for twice.",
    measure: incomplete,
};

fn incomplete(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let (load, _) = LOADS[1];
    let all = lab.all_runs(&dumbbell(load), &choices(&FOUR))?;
    let sizes = |run: &Run| -> Vec<f64> {
        let left = run.flows.iter().filter(|flow| flow.response.is_none());
        left.map(|flow| segments(flow.delivered)).collect()
    };
    let small = move |run: &Run| sizes(run).iter().filter(|size| **size <= 20.0).count() as f64;
    let mut checks = vec![Check::new(
        "fifo: at least a third of the incomplete transfers are small",
        "many small ones",
        Written::Share,
        all[0].iter().map(|run| Some(small(run) / sizes(run).len() as f64)),
        Bound::AtLeast(1.0 / 3.0),
    )];
    for (name, runs) in std::iter::zip(FOUR, &all).skip(1) {
        checks.push(Check::new(
            format!("{name}: at most a fifth as many small ones incomplete as under fifo"),
            "long ones instead",
            Written::Share,
            ratio(runs, &all[0], move |run| Some(small(run))),
            Bound::AtMost(0.2),
        ));
        checks.push(Check::new(
            format!("{name}: the mean size of the incomplete ones is at least twice fifo's"),
            "long ones instead",
            Written::Ratio,
            ratio(runs, &all[0], move |run| mean(sizes(run))),
            Bound::AtLeast(2.0),
        ));
    }
    let line = |(name, runs): (&str, &Vec<Arc<Run>>)| {
        let sizes = runs.iter().flat_map(|run| sizes(run)).map(|size| size.max(1.0));
        Line::plain(name, distribution(sizes.collect()))
    };
    let figure = Figure {
        id: "EFD-4".into(),
        title: format!("Sizes of incomplete transfers, overload ({load} Mbit/s)"),
        caption: "Share of the incomplete transfers of which no more than so much had been \
                  carried; nothing counts as one segment. All seeds."
            .into(),
        x: Scale::log("Segments carried", Measure::Count),
        y: Scale::linear("Share of incomplete transfers", Measure::Share),
        lines: std::iter::zip(FOUR, &all).map(line).collect(),
        stepped: true,
    };
    Ok(Finding::new("EFD-4", lab, &[DUMBBELL], checks, vec![figure]))
}

pub(super) const RESPONSE: Claim = Claim {
    id: "EFD-5",
    paper: &PAPER,
    source: "EFD section 5.2, figure 5",
    text: "LAS, EFD and Run2C are far below FIFO for short transfers at both loads. EFD equals \
           Run2C or is slightly better, with a smoother step at the threshold. LAS is best for \
           small and medium sizes; long transfers take similar times in underload, and shorter \
           ones under LAS in overload (where it gives up most long ones). LARS behaves like LAS \
           in underload and comes close to FIFO in overload.",
    method: "Mean response of completed transfers, discipline against discipline with the same \
             arrivals. Short transfers have up to 20 segments, medium ones 21 to 200, long ones \
             more than 1 000. 'Far below' is taken as at most half; 'similar or slightly better' \
             as at most 1.05 times. The step at the threshold is the steepest rise of the mean \
             response between neighbours among sizes of 10 to 160 segments, each 1.4 times the \
             one before, so that a step that comes later counts as well. A step can be smooth \
             only where short transfers gain something: in overload with our sizes they gain \
             nothing under EFD, and the step is looked for with few long transfers instead. LARS \
             is 'close to FIFO' when the ratio of the two is nearer to 1 than that of LARS to \
             LAS, size by size. Ratios of long transfers, of steps and of distances may have \
             heavy tails, and their medians are estimated.",
    discussion: "Underload agrees with the paper except in two points. EFD's short transfers take \
                 6% longer than Run2C's: EFD's high level also carries the start of every later \
                 fragment of the long ones. And LAS makes long transfers take a third longer than \
                 FIFO does. The step comes later under EFD, at about 35 segments, since the first \
                 bursts of slow start are fragments of their own; its steepest rise is two thirds \
                 of Run2C's. LARS makes medium transfers take 9% longer than LAS does. In \
                 overload everything depends on the number of competing transfers, which the paper \
                 does not state. With our sizes there are a thousand, more than EFD can \
                 distinguish in 300 places (see EFD-3), so that it equals FIFO. With few long \
                 transfers (`tidegate compare dumbbell-long-transfers`, ten seeds) short ones take \
                 41.5 ± 0.4 ms under EFD, 41.1 under LAS, LARS and Run2C and 1 490 ± 170 under \
                 FIFO: there the paper's claim holds. Too few long transfers complete under LAS in \
                 overload for a comparison: 7 of 1 493 in ten seeds.",
    measure: response,
};

/// Sizes of transfers as the paper speaks of them.
type Sizes = (&'static str, u32, u32);
const SHORT: Sizes = ("short", 1, 20);
const MEDIUM: Sizes = ("medium", 21, 200);
const LONG: Sizes = ("long", 1_001, 10_000);

/// The steepest rise of the mean response from one bin of [`STEP`] to the next.
fn step(run: &Run) -> Option<f64> {
    let means = STEP.windows(2).map(|pair| mean_response(run, pair[0], pair[1] - 1));
    let means: Vec<f64> = means.collect::<Option<_>>()?;
    means.windows(2).map(|pair| pair[1] / pair[0]).reduce(f64::max)
}

fn response(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let (mut checks, mut figures) = (Vec::new(), Vec::new());
    for (load, regime) in LOADS {
        let all = lab.all_runs(&dumbbell(load), &choices(&WITH_LARS))?;
        let [fifo, las, run2c, efd, lars] = &all[..] else { unreachable!("five were asked for") };
        let mut check = |centre, statement: String, paper: &str, values: Vec<_>, bound| {
            let statement = format!("{regime}: {statement}");
            checks.push(Check::of(centre, statement, paper, Written::Ratio, values, bound));
        };
        let of = |(_, least, most): Sizes| move |run: &Run| mean_response(run, least, most);
        // Of the largest transfers there are few in a run.
        let centre = |sizes: Sizes| if sizes == LONG { Centre::Median } else { Centre::Mean };
        for (name, runs) in [("las", las), ("run2c", run2c), ("efd", efd)] {
            check(
                Centre::Mean,
                format!("short transfers take at most half as long under {name} as under fifo"),
                "far below",
                ratio(runs, fifo, of(SHORT)).collect(),
                Bound::AtMost(0.5),
            );
        }
        check(
            Centre::Mean,
            "short transfers take at most 1.05 times as long under efd as under run2c".into(),
            "similar or slightly better",
            ratio(efd, run2c, of(SHORT)).collect(),
            Bound::AtMost(1.05),
        );
        for sizes in [SHORT, MEDIUM] {
            for (name, runs) in [("run2c", run2c), ("efd", efd)] {
                check(
                    Centre::Mean,
                    format!("{} transfers take no longer under las than under {name}", sizes.0),
                    "las is best",
                    ratio(las, runs, of(sizes)).collect(),
                    Bound::AtMost(1.0),
                );
            }
        }
        if regime == "underload" {
            check(
                Centre::Median,
                "the step at the threshold is smaller under efd than under run2c".into(),
                "smoother",
                ratio(efd, run2c, step).collect(),
                Bound::AtMost(1.0),
            );
            for (name, runs) in [("las", las), ("run2c", run2c), ("efd", efd)] {
                check(
                    Centre::Median,
                    format!(
                        "long transfers take 0.8 to 1.25 times as long under {name} as under fifo"
                    ),
                    "alike",
                    ratio(runs, fifo, of(LONG)).collect(),
                    Bound::Within(0.8, 1.25),
                );
            }
            for sizes in [SHORT, MEDIUM, LONG] {
                check(
                    centre(sizes),
                    format!(
                        "{} transfers take 0.9 to 1.1 times as long under lars as under las",
                        sizes.0
                    ),
                    "alike",
                    ratio(lars, las, of(sizes)).collect(),
                    Bound::Within(0.9, 1.1),
                );
            }
        } else {
            for (name, runs) in [("run2c", run2c), ("efd", efd)] {
                check(
                    Centre::Median,
                    format!("completed long transfers take less under las than under {name}"),
                    "significantly better",
                    ratio(las, runs, of(LONG)).collect(),
                    Bound::AtMost(1.0),
                );
            }
            for sizes in [SHORT, MEDIUM, LONG] {
                let value = of(sizes);
                let distance = |one: &Run, other: &Run| {
                    Some(libm::fabs(libm::log(value(one)? / value(other)?)))
                };
                let nearer = |seed: usize| {
                    let lars = &lars[seed];
                    Some(distance(lars, &fifo[seed])? / distance(lars, &las[seed])?)
                };
                check(
                    Centre::Median,
                    format!("for {} transfers lars is nearer to fifo than to las", sizes.0),
                    "close to fifo",
                    (0..lars.len()).map(nearer).collect(),
                    Bound::AtMost(1.0),
                );
            }
        }
        figures.push(Figure {
            id: format!("EFD-5-{regime}"),
            title: format!("Mean response time by size, {regime} ({load} Mbit/s)"),
            caption: "Completed transfers; mean over seeds with its 95% interval.".into(),
            x: Scale::log("Size in segments", Measure::Count),
            y: Scale::log("Mean response time", Measure::Time),
            lines: std::iter::zip(WITH_LARS, &all)
                .map(|(name, runs)| by_size(name, runs))
                .collect(),
            stepped: false,
        });
    }
    checks.extend(overload_of_long_transfers(lab)?);
    Ok(Finding::new("EFD-5", lab, &[DUMBBELL, LONG_TRANSFERS], checks, figures))
}

/// What is asked of EFD where it can tell flows apart in overload.
fn overload_of_long_transfers(lab: &Lab<'_>) -> Result<Vec<Check>, Stopped> {
    let all =
        lab.all_runs(&shipped::scenario(LONG_TRANSFERS), &choices(&["fifo", "run2c", "efd"]))?;
    let [fifo, run2c, efd] = &all[..] else { unreachable!("three were asked for") };
    let short = |run: &Run| mean_response(run, SHORT.1, SHORT.2);
    let check = |statement: &str, paper: &str, values: Vec<_>, most| {
        let statement = format!("overload of few long transfers: {statement}");
        Check::of(Centre::Median, statement, paper, Written::Ratio, values, Bound::AtMost(most))
    };
    Ok(vec![
        check(
            "short transfers take at most half as long under efd as under fifo",
            "far below",
            ratio(efd, fifo, short).collect(),
            0.5,
        ),
        check(
            "short transfers take at most 1.05 times as long under efd as under run2c",
            "similar or slightly better",
            ratio(efd, run2c, short).collect(),
            1.05,
        ),
        check(
            "the step at the threshold is smaller under efd than under run2c",
            "smoother",
            ratio(efd, run2c, step).collect(),
            1.0,
        ),
    ])
}

/// Mean response by size, with its interval over seeds.
fn by_size(name: &str, runs: &[Arc<Run>]) -> Line {
    // Whole segments up to 20, where the step is looked for; then wider bins.
    const BOUNDS: [u32; 27] = [
        6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 21, 23, 26, 30, 35, 41, 50, 65, 90, 130, 200, 320, 500,
        900, 1_600, 3_000, 7_000,
    ];
    let (mut points, mut band) = (Vec::new(), Vec::new());
    for pair in BOUNDS.windows(2) {
        let most = (pair[1] - 1).max(pair[0]);
        let means = runs.iter().filter_map(|run| mean_response(run, pair[0], most));
        let Some(estimate) = Estimate::mean(means) else { continue };
        let at = (f64::from(pair[0]) * f64::from(most)).sqrt();
        let (low, high) = estimate.ends();
        points.push((at, estimate.value));
        // A lower end at or below zero has no place on a logarithmic axis.
        band.push((at, low.max(estimate.value / 10.0), high));
    }
    Line { label: name.into(), points, band }
}
