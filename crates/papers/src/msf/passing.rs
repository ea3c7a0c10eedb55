//! MSF section 6: traffic of no class, on and off.

use tidegate_core::{Bytes, Rate, Span};

use super::{PAPER, VARIANTS, Variant, at, near, used};
use crate::check::{Bound, Check, Written};
use crate::figure::{Figure, Line, Measure, Scale, thinned};
use crate::lab::Lab;
use crate::runs::mean as mean_of;
use crate::{Claim, Finding, Stopped};
use tidegate_sim::requests::{Cbr, Outcome, Setup};

pub(super) const PASSING: Claim = Claim {
    id: "MSF-14",
    paper: &PAPER,
    source: "MSF section 6, figure 14 and table 1",
    text: "With CBR traffic of 20, 40 or 60% of the link that belongs to no class and is on and \
           off for 40 to 640 s each, the use of the link stays at its target: 97.84% on average of \
           all tests. The classes' shares are not affected. When the CBR traffic stops, W+ goes \
           from 7 to 13 at once.",
    method: "Ten loops for each client, 3 000 s (1 500 s for periods up to 320 s), datagrams of 1 \
             000 bytes, off for a period and then on for as long: in the paper's figure traffic \
             with a period of 640 s stops at 1 280 and at 2 560 s. The use of the link counts all \
             bytes, including CBR, from 100 s on. With today's TCP, both schedulers run beside CBR \
             traffic of 40% of the link, with the shortest and the longest period.",
    discussion: "While the traffic is on, too many responses are outstanding at first: the link \
                 is full, and W+ falls by 2% in each interval of 5 s. When the traffic stops, W+ \
                 needs several intervals to become as large as before, growing by up to U+/U in \
                 each. On average the two reach the target, even with a period of only eight \
                 intervals. `msf` aims at 99%, and falls short by the capacity that long \
                 responses do not use while requests wait.",
    measure: passing,
};

/// Seconds of a test with this period: the paper's, or half of them where they
/// hold enough periods.
fn lasts(period: u64) -> u64 {
    if period > 320 { 3_000 } else { 1_500 }
}

/// Seconds on, and seconds off.
const PERIODS: [u64; 5] = [40, 80, 160, 320, 640];
/// In percent of the link, and what the paper's table 1 has for them, by period.
const LOADS: [(u64, [&str; 5]); 3] = [
    (20, ["97.94%", "97.90%", "97.94%", "97.83%", "97.93%"]),
    (40, ["97.91%", "97.95%", "97.92%", "97.80%", "97.83%"]),
    (60, ["97.62%", "97.77%", "97.68%", "97.76%", "97.85%"]),
];

/// The set-up with this traffic.
fn disturbed(variant: Variant, percent: u64, period: u64) -> Setup {
    let mut setup = variant.looping(10);
    setup.duration = Span::seconds(lasts(period) + 1);
    let half = Span::seconds(period);
    let rate = Rate(setup.rate.0 * percent / 100);
    setup.passing.push(Cbr { rate, packet: Bytes(1_000), off: half, on: half, whose: None });
    setup
}

fn passing(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let [paper, paper_today, _, msf_today] = VARIANTS;
    let mut checks = Vec::new();
    // Of each seed, over all tests.
    let mut sums = vec![0.0; lab.seeds().len()];
    let mut received = vec![[0.0; 3]; lab.seeds().len()];
    let mut longest = Vec::new();
    for (percent, published) in LOADS {
        for (period, published) in PERIODS.into_iter().zip(published) {
            let setup = disturbed(paper, percent, period);
            let runs = lab.gateway_runs(&setup, paper.with(&[]))?;
            let values: Vec<_> =
                runs.iter().map(|run| used(run, &setup, 100, lasts(period))).collect();
            for (sum, value) in sums.iter_mut().zip(&values) {
                *sum += value.unwrap_or(f64::NAN);
            }
            for (sum, run) in received.iter_mut().zip(&runs) {
                sum.iter_mut().enumerate().for_each(|(n, sum)| *sum += run.throughput_bps(n));
            }
            checks.push(stays(paper.label, percent, period, published, values));
            if (percent, period) == (40, 640) {
                longest.push((paper, setup, runs));
            }
        }
    }
    let tests = (LOADS.len() * PERIODS.len()) as f64;
    checks.push(Check::new(
        "`paper`: 97 to 99% of the link are used in the mean of all tests",
        "97.84%",
        Written::Share,
        sums.into_iter().map(|sum| Some(sum / tests)),
        Bound::Within(0.97, 0.99),
    ));
    for (class, exact) in [(0, 4.0), (1, 2.0)] {
        checks.push(Check::new(
            format!("`paper`, all tests: class {} receives {exact} times class 3", class + 1),
            "not affected",
            Written::Ratio,
            received.iter().map(|received| Some(received[class] / received[2])),
            near(exact),
        ));
    }
    for variant in [paper_today, msf_today] {
        for period in [40, 640] {
            let setup = disturbed(variant, 40, period);
            let runs = lab.gateway_runs(&setup, variant.with(&[]))?;
            let values = runs.iter().map(|run| used(run, &setup, 100, lasts(period))).collect();
            checks.push(stays(variant.label, 40, period, "not said", values));
            if period == 640 {
                longest.push((variant, setup, runs));
            }
        }
    }
    for (variant, setup, runs) in &longest {
        checks.extend(returns(variant.label, setup, runs));
    }
    let drawn = [("paper", "MSF-RS"), ("msf-today", "msf, today's TCP")];
    let figures = longest.iter().step_by(2).zip(drawn);
    let figures = figures.map(|((_, _, runs), (name, label))| window(name, label, runs));
    Ok(Finding::new("MSF-14", lab, &[], checks, figures.collect()))
}

fn stays(
    label: &str,
    percent: u64,
    period: u64,
    published: &str,
    values: Vec<Option<f64>>,
) -> Check {
    Check::new(
        format!("{label}, {percent}% of the link for {period} s: 97 to 99% are used"),
        published,
        Written::Share,
        values,
        Bound::Within(0.97, 0.99),
    )
}

/// The mean window between two seconds.
fn mean_window(run: &Outcome, from: u64, to: u64) -> Option<f64> {
    let samples = run.samples.iter().filter(|sample| (at(from)..at(to)).contains(&sample.at));
    mean_of(samples.map(|sample| sample.window))
}

/// What happens where traffic of 640 s stops.
fn returns(label: &str, setup: &Setup, runs: &[Outcome]) -> [Check; 3] {
    // On until 1 280 s, off until 1 920 s.
    let grown = |run: &Outcome, from, to| {
        Some(mean_window(run, from, to)? / mean_window(run, 1_180, 1_280)?)
    };
    [
        Check::new(
            format!("{label}, 640 s: W+ is at least 1.5 times as large 10 s after its stop"),
            "immediately",
            Written::Ratio,
            runs.iter().map(|run| grown(run, 1_290, 1_295)),
            Bound::AtLeast(1.5),
        ),
        Check::new(
            format!("{label}, 640 s: W+ is at least 1.5 times as large from 20 s after its stop"),
            "13 for 7",
            Written::Ratio,
            runs.iter().map(|run| grown(run, 1_300, 1_400)),
            Bound::AtLeast(1.5),
        ),
        Check::new(
            format!("{label}, 640 s: at least 95% are used from 5 to 25 s after its stop"),
            "immediately",
            Written::Share,
            runs.iter().map(|run| used(run, setup, 1_285, 1_305)),
            Bound::AtLeast(0.95),
        ),
    ]
}

fn window(name: &str, label: &str, runs: &[Outcome]) -> Figure {
    let line = |index: usize, run: &Outcome| {
        let points = run.samples.iter().map(|sample| (sample.at.as_seconds(), sample.window));
        Line::plain(format!("seed {}", index + 1), thinned(points.collect()))
    };
    Figure {
        id: format!("MSF-14-{name}"),
        title: format!("The window beside traffic that comes and goes: {label}"),
        caption:
            "W+ of three seeds. Traffic of 40% of the link is on from 640 to 1 280 s and from \
                  1 920 to 2 560 s."
                .into(),
        x: Scale::linear("Time", Measure::Time),
        y: Scale::linear("Responses", Measure::Count),
        lines: runs.iter().take(3).enumerate().map(|(index, run)| line(index, run)).collect(),
        stepped: false,
    }
}
