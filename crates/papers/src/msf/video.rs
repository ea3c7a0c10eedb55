//! MSF section 8: video.

use std::sync::Arc;

use tidegate_core::{Bytes, Rate, Span};

use super::latency::ratios;
use super::{PAPER, VARIANTS, Variant, measured, ordinary};
use crate::check::{Bound, Check, Written};
use crate::lab::Lab;
use crate::table::{Row, Table};
use crate::{Claim, Finding, Stopped};
use tidegate_sim::metrics::run_summary::Times;
use tidegate_sim::pages::Pages;
use tidegate_sim::requests::{Demand, Outcome, ServerFailures, Setup};
use tidegate_sim::scenario::SizeLaw;
use tidegate_sim::trace::{PageOutline, PageTable};
use tidegate_study::{Centre, Estimate};

pub(super) const VIDEO: Claim = Claim {
    id: "MSF-V",
    paper: &PAPER,
    source: "MSF section 8",
    text: "MSF-RS is better for video than an ordinary gateway. It does not make one download of \
           a high class faster than one of a low class, but releases the high class's more often. \
           If servers send at the video's rate, the link is not overloaded; if they send as fast \
           as they can, only a few of the high class's are released, so that the classes' shares \
           keep the low class from starving. Through an ordinary \
           gateway all users receive too little, and videos stop to wait for data.",
    method: "Videos of 60 s with 300 kbit/s, 2.25 MB each, as one response. Either all twelve \
             clients watch, one video at a time with pauses of 5 s, which is 1.8 times what the \
             link carries; servers send at 300 kbit/s, in pieces of a second, or as fast as they \
             can. Or class 1 watches, two videos at a time for each client, and the others fetch \
             Web objects in ten loops. 1 500 s. A video counts as smooth if its last byte is at \
             the gateway 66 s after its release at the latest: a player with a buffer of 6 s does \
             not have to stop then if the data come evenly. 'Better' is 10 percentage points more \
             of such videos. The number outstanding is by Little's law, the rate of answers times \
             the mean service time. Videos in segments, whose rate the \
             player chooses, are not in the paper and not tested.",
    discussion: "Better than through an ordinary gateway, and not without stops. The cost is \
                 the time before a video begins: `paper` makes a viewer of class 3 wait for \
                 minutes, and one of class 1 for 10 to 30 s, where an ordinary gateway begins \
                 at once, as the paper grants. Where servers keep to the video's rate, six \
                 videos use 94% of the link; that is less than the target, so the window grows \
                 until it admits a seventh. With seven each lacks 9% of its rate on average, \
                 and some lack more. Where servers are greedy, few places fill the link, and \
                 with today's TCP almost every video is smooth. Beside the Web, class 1's \
                 videos hold all places at times, and class 3 keeps its share but once waits \
                 for about a minute with today's TCP. `msf` does the opposite: it reads long \
                 responses by grants, to each class by its weight, so a video of class 1 is \
                 three times as fast as one of class 3. All videos run at once, and those of \
                 class 3 are never smooth; but nobody waits.",
    measure: video,
};

const VIDEO_RATE: Rate = Rate(300_000);
const VIDEO_SIZE: Bytes = Bytes(2_250_000);
/// How long a video may take: its 60 s and the player's buffer.
const SMOOTH: f64 = 66.0;

/// All clients watch.
fn watching(setup: Setup, paced: bool) -> Setup {
    let mut setup = Setup { duration: Span::seconds(1_500), ..setup };
    setup.sizes = SizeLaw::Constant(VIDEO_SIZE);
    if paced {
        setup.failures =
            ServerFailures { trickle: 1.0, trickle_rate: VIDEO_RATE, ..ServerFailures::NONE };
    }
    for class in &mut setup.classes {
        class.demand = Demand::Closed { loops: 1, pause: Span::seconds(5) };
    }
    setup
}

/// Class 1 watches, and the others browse.
fn beside_the_web(setup: Setup) -> Setup {
    let mut setup = Setup { duration: Span::seconds(1_500), ..setup };
    let video = PageOutline { objects: 1, size: VIDEO_SIZE, hosts: 1 };
    setup.classes[0].pages = Pages::Outlined(Arc::new(PageTable { pages: vec![video] }));
    setup.classes[0].demand = Demand::Closed { loops: 2, pause: Span::seconds(5) };
    setup
}

/// The share of the videos of a class that are smooth.
fn smooth(run: &Outcome, class: usize) -> Option<f64> {
    within(&run.classes[class].service, SMOOTH)
}

/// The share of times that are no longer than this.
fn within(times: &Times, seconds: f64) -> Option<f64> {
    let points = times.distribution().take_while(|(value, _)| *value <= seconds);
    (times.count() > 0).then(|| points.last().map_or(0.0, |(_, share)| share))
}

/// The longest time in which a class receives nothing, in seconds.
fn starved(run: &Outcome, class: usize) -> Option<f64> {
    let mut samples = measured(run);
    let mut last = samples.next()?;
    let mut longest = Span::ZERO;
    for sample in samples {
        if sample.received[class] > last.received[class] {
            last = sample;
        }
        longest = longest.max(sample.at.since(last.at));
    }
    Some(longest.as_seconds())
}

fn video(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let [paper, paper_today, _, msf_today] = VARIANTS;
    let (mut checks, mut rows) = (Vec::new(), Vec::new());
    for variants in [&[paper][..], &[paper_today, msf_today]] {
        let base = variants[0].setup;
        let today = if variants.len() > 1 { ", today's TCP" } else { "" };
        for (paced, servers) in [(true, "servers at the video's rate"), (false, "greedy servers")] {
            let of_ordinary = lab.gateway_runs(&watching(base(), paced), ordinary())?;
            let label = format!("an ordinary gateway{today}, {servers}");
            checks.extend(suffers(&label, &of_ordinary));
            rows.push(row(label, &of_ordinary));
            for variant in variants {
                let setup = watching((variant.setup)(), paced);
                let runs = lab.gateway_runs(&setup, variant.with(&[]))?;
                let label = format!("{}, {servers}", variant.label);
                checks.extend(plays(&label, &runs, &of_ordinary));
                checks.push(if paced {
                    Check::new(
                        format!(
                            "{label}: the time in the provider's queue is at most half of an \
                             ordinary gateway's"
                        ),
                        "not overloaded",
                        Written::Ratio,
                        ratios(&runs, &of_ordinary, |run| run.queueing.mean()),
                        Bound::AtMost(0.5),
                    )
                } else {
                    Check::new(
                        format!(
                            "{label}: at most half as many of class 1's are outstanding as \
                             through an ordinary gateway"
                        ),
                        "only a few",
                        Written::Ratio,
                        ratios(&runs, &of_ordinary, |run| outstanding(run, 0)),
                        Bound::AtMost(0.5),
                    )
                });
                rows.push(row(label, &runs));
            }
        }
        let of_ordinary = lab.gateway_runs(&beside_the_web(base()), ordinary())?;
        for variant in variants {
            checks.extend(shares_with_the_web(lab, *variant, &of_ordinary)?);
        }
    }
    Ok(Finding::new("MSF-V", lab, &[], checks, Vec::new()).with_tables(vec![table(rows)]))
}

/// What the paper says of videos through an ordinary gateway.
fn suffers(label: &str, runs: &[Outcome]) -> [Check; 2] {
    [0, 2].map(|class| {
        Check::new(
            format!("{label}: at most half of class {}'s videos are smooth", class + 1),
            "suspended to wait",
            Written::Share,
            runs.iter().map(|run| smooth(run, class)),
            Bound::AtMost(0.5),
        )
    })
}

/// What it says of videos through its gateway.
fn plays(label: &str, runs: &[Outcome], of_ordinary: &[Outcome]) -> Vec<Check> {
    let smooth = [0, 2].map(|class| {
        Check::new(
            format!("{label}: at least 90% of class {}'s videos are smooth", class + 1),
            "not suspended",
            Written::Share,
            runs.iter().map(move |run| smooth(run, class)),
            Bound::AtLeast(0.9),
        )
    });
    let mut checks = smooth.to_vec();
    checks.extend([0, 2].map(|class| is_better(label, class, runs, of_ordinary)));
    let service = |run: &Outcome, class: usize| run.classes[class].service.mean();
    let watched = |run: &Outcome, class: usize| run.classes[class].completed as f64;
    checks.extend([
        Check::new(
            format!(
                "{label}: one of class 1's takes from 0.9 to 1.1 of the time of one of class 3's"
            ),
            "no faster",
            Written::Ratio,
            runs.iter().map(|run| Some(service(run, 0)? / service(run, 2)?)),
            Bound::Within(0.9, 1.1),
        ),
        Check::new(
            format!("{label}: more of class 1's are watched than of class 3's"),
            "more frequently",
            Written::Ratio,
            runs.iter()
                .map(|run| Some(watched(run, 0) / watched(run, 2)).filter(|r| r.is_finite())),
            Bound::AtLeast(1.0),
        ),
        starves_nobody(label, runs),
    ]);
    checks
}

/// Whether more of a class's videos are smooth than without the scheduler.
fn is_better(label: &str, class: usize, runs: &[Outcome], of_ordinary: &[Outcome]) -> Check {
    let more = |(run, ordinary): (&Outcome, &Outcome)| {
        Some(smooth(run, class)? - smooth(ordinary, class)?)
    };
    Check::new(
        format!(
            "{label}: 10 percentage points more of class {}'s videos are smooth than through an \
             ordinary gateway",
            class + 1
        ),
        "better",
        Written::Share,
        std::iter::zip(runs, of_ordinary).map(more),
        Bound::AtLeast(0.1),
    )
}

/// A class's responses outstanding, on average: Little's law.
fn outstanding(run: &Outcome, class: usize) -> Option<f64> {
    let class = &run.classes[class];
    Some(class.completed as f64 / run.measured.as_seconds() * class.service.mean()?)
}

fn starves_nobody(label: &str, runs: &[Outcome]) -> Check {
    Check::new(
        format!("{label}: class 1 receives at most 4.2 times class 3"),
        "does not starve",
        Written::Ratio,
        runs.iter().map(|run| Some(run.throughput_bps(0) / run.throughput_bps(2))),
        Bound::AtMost(4.2),
    )
}

/// Videos of class 1 beside the Web of the others.
fn shares_with_the_web(
    lab: &Lab<'_>,
    variant: Variant,
    of_ordinary: &[Outcome],
) -> Result<Vec<Check>, Stopped> {
    let runs = lab.gateway_runs(&beside_the_web((variant.setup)()), variant.with(&[]))?;
    let label = format!("{}, class 1 watches beside the Web", variant.label);
    Ok(vec![
        starves_nobody(&label, &runs),
        Check::of(
            Centre::Median,
            format!("{label}: class 3 receives something every 30 s, the longest pause"),
            "does not starve",
            Written::Seconds,
            runs.iter().map(|run| starved(run, 2)),
            Bound::AtMost(30.0),
        ),
        is_better(&label, 0, &runs, of_ordinary),
    ])
}

/// Of classes 1 and 3, when all watch.
fn row(name: String, runs: &[Outcome]) -> Row {
    let mean =
        |value: &dyn Fn(&Outcome) -> Option<f64>| Estimate::mean(runs.iter().filter_map(value));
    let of = |class: usize| {
        [
            mean(&|run| smooth(run, class)),
            mean(&|run| run.classes[class].waiting.mean()),
            mean(&|run| run.classes[class].service.mean()),
            mean(&|run| outstanding(run, class)),
        ]
    };
    Row::new(name, Written::Ratio, [of(0), of(2)].into_iter().flatten())
}

fn table(rows: Vec<Row>) -> Table {
    let of = |class: u32| {
        ["smooth", "wait, s", "transfer, s", "outstanding"]
            .map(|column| format!("class {class}: {column}"))
    };
    let first = "gateway, servers".to_owned();
    Table {
        title: "Videos of classes 1 and 3 when all watch".into(),
        caption: "The share of smooth videos, the mean time of a request at the gateway before \
                  its release, the mean time from there to the last byte, and the mean number \
                  outstanding."
            .into(),
        columns: std::iter::once(first).chain(of(1)).chain(of(3)).collect(),
        rows,
    }
}
