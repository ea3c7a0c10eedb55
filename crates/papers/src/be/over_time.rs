//! BE section 5: the delays of two flows, as they go up and down.

use tidegate_core::Time;

use super::{ACCESS, PAPER, access};
use crate::check::{Bound, Check, Written};
use crate::figure::{Figure, Line, Measure, Scale};
use crate::lab::{Lab, Served};
use crate::runs::mean;
use crate::{Claim, Finding, Stopped};

pub(super) const OVER_TIME: Claim = Claim {
    id: "BE-4",
    paper: &PAPER,
    source: "BE section 5, figure 4",
    text: "Over time, the delay of a best-effort flow falls from scheme to scheme, while the \
           delay of the real-time flow with a deadline of 30 ms stays below that deadline.",
    method: "Video and http in the first 20 s of each run; the figure shows the largest delay in \
             each tenth of a second of the first one. The paper does not say which best-effort \
             flow it draws. 'Falls' is taken as a mean that is at least 1% less.",
    discussion: NOTHING_GAINED,
    measure: |lab| over_time(lab, &LONG),
};

pub(super) const EXCERPT: Claim = Claim {
    id: "BE-5",
    paper: &PAPER,
    source: "BE section 5, figure 5",
    text: "A small excerpt of figure 4 shows the same, packet by packet.",
    method: "The method of BE-4, in the second after 10 s; the figure shows each packet of the \
             first run.",
    discussion: NOTHING_GAINED,
    measure: |lab| over_time(lab, &SHORT),
};

const NOTHING_GAINED: &str = "Two segments gain nothing over the shifted line here: see BE-8.";

/// A stretch of the run, and how it is drawn.
struct Stretch {
    id: &'static str,
    from: Time,
    until: Time,
    /// Of so many nanoseconds only the largest delay is drawn.
    step: u64,
    axis: &'static str,
    caption: &'static str,
}

const LONG: Stretch = Stretch {
    id: "BE-4",
    from: Time::ZERO,
    until: Time(20_000_000_000),
    step: 100_000_000,
    axis: "Time",
    caption: "The largest in each tenth of a second; the first seed.",
};

const SHORT: Stretch = Stretch {
    id: "BE-5",
    from: Time(10_000_000_000),
    until: Time(11_000_000_000),
    step: 1,
    axis: "Time after 10 s",
    caption: "Of each packet, by its arrival; the first seed.",
};

/// Classes of the two flows in the scenario.
const VIDEO: u16 = 2;
const HTTP: u16 = 5;

fn over_time(lab: &Lab<'_>, stretch: &Stretch) -> Result<Finding, Stopped> {
    let scenario = access();
    // By scheme, then by seed.
    let mut served: Vec<(&str, Vec<Vec<Served>>)> = Vec::new();
    for discipline in &scenario.disciplines {
        let run = |seed| lab.served(&scenario, discipline, seed, stretch.from, stretch.until);
        let runs = lab.seeds().into_iter().map(run).collect::<Result<_, _>>()?;
        served.push((&discipline.label, runs));
    }
    let mut checks = Vec::new();
    let average = |run: &[Served]| mean(delays(run, HTTP));
    // The paper compares the first three.
    for pair in served[..3].windows(2) {
        let [(one, before), (next, after)] = pair else { unreachable!("windows of two") };
        let ratios = std::iter::zip(before, after)
            .map(|(before, after)| Some(average(after)? / average(before)?));
        checks.push(Check::new(
            format!("http is faster under {next} than under {one}, on average"),
            "gradual improvement",
            Written::Ratio,
            ratios,
            Bound::AtMost(0.99),
        ));
    }
    for (scheme, runs) in &served {
        checks.push(Check::new(
            format!("{scheme}: no packet of video takes more than 30 ms"),
            "always met",
            Written::Seconds,
            runs.iter().map(|run| delays(run, VIDEO).reduce(f64::max)),
            Bound::AtMost(0.030),
        ));
    }
    let figure = |(name, class): (&str, u16)| Figure {
        id: format!("{}-{name}", stretch.id),
        title: format!("Delay of {name}"),
        caption: stretch.caption.into(),
        x: Scale::linear(stretch.axis, Measure::Time),
        y: Scale::linear("Delay", Measure::Time),
        lines: served
            .iter()
            .map(|(scheme, runs)| Line::plain(*scheme, drawn(&runs[0], class, stretch)))
            .collect(),
        stepped: false,
    };
    let figures = [("video", VIDEO), ("http", HTTP)].map(figure).to_vec();
    Ok(Finding::new(stretch.id, lab, &[ACCESS], checks, figures))
}

/// The delays of a class, in seconds.
fn delays(run: &[Served], class: u16) -> impl Iterator<Item = f64> + '_ {
    let of_class = run.iter().filter(move |packet| packet.class == class);
    of_class.map(|packet| packet.ended.since(packet.arrived).as_seconds())
}

/// The largest delay of each step, at the step's start since that of the stretch.
fn drawn(run: &[Served], class: u16, stretch: &Stretch) -> Vec<(f64, f64)> {
    let mut points: Vec<(u64, u64)> = Vec::new();
    for packet in run.iter().filter(|packet| packet.class == class) {
        let at = packet.arrived.since(stretch.from).0 / stretch.step * stretch.step;
        let delay = packet.ended.since(packet.arrived).0;
        match points.last_mut() {
            Some((last, largest)) if *last == at => *largest = delay.max(*largest),
            _ => points.push((at, delay)),
        }
    }
    let seconds = |nanos| Time(nanos).as_seconds();
    points.into_iter().map(|(at, delay)| (seconds(at), seconds(delay))).collect()
}
