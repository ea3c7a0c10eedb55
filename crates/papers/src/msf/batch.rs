//! MSF section 4.1: a batch of equal requests.

use std::num::NonZeroU32;

use tidegate_core::request::{ClassId, Decision, Permit, Request, UserId};
use tidegate_core::{Bytes, Rate, Span, Time};

use super::latency::ratios;
use super::{PAPER, VARIANTS, at, looping, scheduler};
use crate::check::{Bound, Check, Written};
use crate::figure::{Figure, Line, Measure, Scale};
use crate::lab::Lab;
use crate::{Claim, Finding, Stopped};
use tidegate_sim::requests::{Demand, Outcome, Setup};
use tidegate_sim::scenario::SizeLaw;

pub(super) const BATCH: Claim = Claim {
    id: "MSF-5",
    paper: &PAPER,
    source: "MSF section 4.1, equations (4) to (6), figure 5",
    text: "When m equal requests arrive at once, a window of W+ makes them wait no longer on \
           average than an ordinary gateway does, and 25% less for m = 2 W+. The smaller the \
           window, the smaller the ratio (section 6).",
    method: "Two measurements. Under the paper's assumptions: the scheduler itself with a fixed \
             window and a link that all outstanding responses share evenly, for m up to 60 and W+ \
             up to 20, compared with equations (4) to (6). With TCP: 24 requests of 12 clients \
             for 27 656 bytes each within a few milliseconds, a window of 12 places, and the mean \
             of all responses divided by that of an ordinary gateway with the same TCP.",
    discussion: "`msf` gains nothing here: every response is longer than 16 kB, so each leaves \
                 the window once it has received that much, all of them are soon outstanding, and \
                 they end together.",
    measure: batch,
};

/// Mean active time of `requests` that come at once under a window of `places`,
/// in units of what the link takes for one response.
fn fluid(requests: u32, places: u32) -> f64 {
    let paper = scheduler("paper", &[("window", "fixed"), ("start", &places.to_string())]);
    let built = (paper.entry.config)(&paper.settings);
    let weights = [NonZeroU32::MIN];
    let mut gate = tidegate_core::request::Scheduler::new(built, Rate(1_000_000), &weights, 1);
    for handle in 0..u64::from(requests) {
        let request = Request { handle, class: ClassId(0), user: UserId(0) };
        gate.arrive(request).expect("so few may wait");
    }
    let (mut now, mut sum) = (0.0, 0.0);
    loop {
        let mut outstanding: Vec<Permit> = Vec::new();
        while let Some(Decision::Release { permit, .. }) = gate.next(Time::ZERO) {
            outstanding.push(permit);
        }
        if outstanding.is_empty() {
            return sum / f64::from(requests);
        }
        // They share the link evenly and so end together.
        now += outstanding.len() as f64;
        sum += now * outstanding.len() as f64;
    }
}

/// Equations (5) and (6), in the same units.
fn formula(requests: u32, places: u32) -> f64 {
    let (m, w) = (f64::from(requests), f64::from(places));
    let (rounds, rest) = (f64::from(requests / places), f64::from(requests % places));
    let queueing = (w * rounds * (rounds - 1.0).max(0.0) / 2.0 + rest * rounds) * w / m;
    let service = ((m - rest) * w + rest * rest) / m;
    queueing + service
}

fn batch(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let pairs: Vec<(u32, u32)> = (1..=60).flat_map(|m| (1..=20).map(move |w| (m, w))).collect();
    let of_ordinary = |(m, w): (u32, u32)| fluid(m, w) / f64::from(m);
    let off = pairs.iter().map(|(m, w)| (fluid(*m, *w) / formula(*m, *w) - 1.0).abs());
    let worst = pairs.iter().map(|pair| of_ordinary(*pair));
    let twice = (1..=20).map(|w| of_ordinary((2 * w, w)));
    let mut checks = vec![
        Check::exact(
            "evenly shared link: the mean is that of equations (5) and (6) to a millionth, the \
             largest deviation of all m and W+",
            "equal",
            Written::Ratio,
            off.fold(0.0, f64::max),
            Bound::AtMost(1e-6),
        ),
        Check::exact(
            "evenly shared link: no more than with an ordinary gateway, the largest ratio of all",
            "at most 1",
            Written::Ratio,
            worst.fold(0.0, f64::max),
            Bound::AtMost(1.0),
        ),
        Check::new(
            "evenly shared link: 0.75 of an ordinary gateway for m = 2 W+, W+ from 1 to 20",
            "0.75",
            Written::Ratio,
            twice.map(Some),
            Bound::Within(0.749_999, 0.750_001),
        ),
    ];
    let smaller = pairs.iter().filter(|(_, w)| *w < 20);
    let steps = smaller.map(|(m, w)| of_ordinary((*m, *w)) / of_ordinary((*m, w + 1)));
    checks.push(Check::exact(
        "evenly shared link: no more with a smaller W+ than with the next larger, the largest \
         ratio of all m and W+",
        "smaller",
        Written::Ratio,
        steps.fold(0.0, f64::max),
        Bound::AtMost(1.0),
    ));
    let fixed = [("window", "fixed"), ("start", "12")];
    for variant in VARIANTS {
        let setup = at_once((variant.setup)());
        let ordinary = lab.gateway_runs(&setup, scheduler("fifo", &[]))?;
        let runs = lab.gateway_runs(&setup, variant.with(&fixed))?;
        checks.push(Check::new(
            format!(
                "{}, TCP, m = 2 W+ = 24: the mean response is at most 0.85 of an ordinary \
                 gateway's",
                variant.label
            ),
            "0.75",
            Written::Ratio,
            ratios(&runs, &ordinary, mean_of_all),
            Bound::AtMost(0.85),
        ));
    }
    let line = |w: u32| {
        let points = (1..=60).map(|m| (f64::from(m), of_ordinary((m, w)))).collect();
        Line::plain(format!("W+ = {w}"), points)
    };
    let figure = Figure {
        id: "MSF-5".into(),
        title: "Mean active time of a batch under a window, of that without one".into(),
        caption: "The scheduler with a fixed window on a link that is shared evenly.".into(),
        x: Scale::linear("Requests in the batch (m)", Measure::Count),
        y: Scale::linear("Ratio to an ordinary gateway", Measure::Share),
        lines: [2, 5, 10, 20].map(line).to_vec(),
        stepped: false,
    };
    Ok(Finding::new("MSF-5", lab, &[], checks, vec![figure]))
}

/// 24 requests for equal responses within a few milliseconds, and no more.
pub(super) fn at_once(setup: Setup) -> Setup {
    let mut setup = looping(setup, 2);
    setup.sizes = SizeLaw::Constant(Bytes(27_656));
    (setup.duration, setup.warm_up) = (Span::seconds(120), Span::ZERO);
    for class in &mut setup.classes {
        class.demand = Demand::Closed { loops: 2, pause: Span::millis(1) };
        // One page each, all in the first second.
        class.silent.push((Time(100_000_000), at(1_000_000)));
    }
    setup
}

/// The mean response, when all 24 have come.
pub(super) fn mean_of_all(outcome: &Outcome) -> Option<f64> {
    let done: u64 = outcome.classes.iter().map(|class| class.completed).sum();
    outcome.all(|class| &class.response).mean().filter(|_| done == 24)
}
