//! LAS section 6: one long transfer beside the Web sessions.

use std::sync::Arc;

use super::{FTP, LOAD, PACKET, PAPER, ftp, set_load};
use crate::check::{Bound, Check, Written};
use crate::figure::{Figure, Line, Measure, Scale};
use crate::lab::{Lab, Run};
use crate::runs::{mean, ratio};
use crate::{Claim, Finding, Stopped};
use tidegate_core::{Rate, Span};
use tidegate_sim::metrics::ProgressSample;
use tidegate_sim::scenario::{Capacity, Scenario};
use tidegate_study::Centre;

pub(super) const LONG_TRANSFER: Claim = Claim {
    id: "LAS-6",
    paper: &PAPER,
    source: "LAS section 6, figure 6",
    text: "Beside Web sessions with a load of 0.7 the throughput of a long transfer, at most 1 \
           Mbit/s, is highly variable under LAS and falls to zero after a long time. With LAS-log \
           it is almost constant, at about 90 packets/s for k = 0.5 and at about 120 packets/s for \
           k = 1, and does not deteriorate. Without the limit of 1 Mbit/s it would take the whole \
           link.",
    method: "An endless transfer for an hour after the warm-up, in LAS-log's priority class; \
             service is counted in packets. Its throughput is measured in steps of 50 s. 'Zero' is \
             taken as at most 12 packets/s in the last third of the time, a tenth of what its \
             access link carries; 'highly variable' as a coefficient of variation of twice that \
             with k = 0.5; 'about' as within 20% for 90 and 10% for 120; 'constant' as a last \
             third with at least 0.9 of the first third's. That it takes the link is taken as 0.9 \
             of what the link carries, in the last third of ten minutes with an access link of 10 \
             Mbit/s, as all others. FIFO, which figure 6 lacks, is for comparison.",
    discussion: "Under LAS the transfer stands still for up to three minutes at a time, but uses a \
                 third of the 120 packets/s that the Web sessions leave, and that does not fall \
                 with time, not even in four hours (42 ± 8 packets/s in the last third; this and \
                 all that follows with five seeds). It does fall to zero near overload, as the \
                 paper's text says elsewhere in section 6: 21 ± 21 packets/s in the last third at \
                 a load of 0.8, 0.4 ± 0.5 at 0.9. With k = 0.5 the transfer waits behind the first \
                 150 packets of every Web transfer after a minute and behind the first 320 after \
                 an hour, so that long transfers disturb it: 90 ± 7 packets/s at a load of 0.5, 70 \
                 at 0.7, 30 ± 5 at 0.9. A window of 20 packets, ns-2's default, or a buffer of 100 \
                 packets brings it to 84 ± 6 and 83 ± 5 at 0.7. If service is counted in bytes \
                 instead of packets, its logarithm is so small that k does not matter: 120.2 \
                 packets/s with both.\n\n\
                 With an access link of 10 Mbit/s it takes 55% of the link with k = 1 and 26% with \
                 k = 0.5 (six seeds), not all: the first 17 packets of every Web transfer go \
                 before it, or the first 250, and these are much of the load. The paper's words \
                 would fit service counted in bytes, whose logarithm is below any packet's size.",
    measure: long_transfer,
};

/// Steps of time in which throughput is measured, in seconds.
const STEP: f64 = 50.0;

/// Packets a second that the link carries: 3.36 Mbit/s of 1 040 bytes.
const LINK: f64 = 3_360_000.0 / 8_320.0;

/// The transfer under LAS-log with an access link as fast as the others, for ten
/// minutes: what Web transfers begin meanwhile hardly ends.
fn with_fast_access() -> Scenario {
    const SLOW: Rate = Rate(1_000_000);
    const FAST: Rate = Rate(10_000_000);
    let mut scenario = ftp();
    scenario.duration = scenario.warm_up + Span::seconds(600);
    scenario.disciplines.drain(..2);
    for link in &mut scenario.links {
        if let Capacity::Fixed(rate) = &mut link.capacity
            && *rate == SLOW
        {
            *rate = FAST;
        }
    }
    scenario
}

fn long_transfer(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let scenario = ftp();
    let all = lab.all_runs(&scenario, &scenario.disciplines)?;
    let [_, las, half, one] = &all[..] else { unreachable!("the scenario compares four") };
    let falling = |run: &Run| thirds(&throughput(run)).map(|(first, last)| last / first);
    let unsteady = |run: &Run| variation(&throughput(run));
    let mut checks = vec![
        Check::new(
            "las: at most 12 packets/s in the last third",
            "decreases to zero",
            Written::Count,
            las.iter().map(|run| thirds(&throughput(run)).map(|(_, last)| last)),
            Bound::AtMost(12.0),
        ),
        Check::new(
            "las: at most half as much in the last third as in the first",
            "decreases",
            Written::Ratio,
            las.iter().map(|run| falling(run)),
            Bound::AtMost(0.5),
        ),
        Check::new(
            "las: the coefficient of variation is at least twice that of las-log, k = 0.5",
            "highly variable",
            Written::Ratio,
            ratio(las, half, unsteady),
            Bound::AtLeast(2.0),
        ),
    ];
    for (runs, k, paper, around) in [(half, "0.5", 90.0, 0.2), (one, "1", 120.0, 0.1)] {
        let (least, most) = (paper * (1.0 - around), paper * (1.0 + around));
        checks.push(Check::new(
            format!("las-log, k = {k}: {least:.0} to {most:.0} packets/s"),
            format!("about {paper:.0} packets/s"),
            Written::Count,
            runs.iter().map(|run| mean(rates(&throughput(run)))),
            Bound::Within(least, most),
        ));
        checks.push(Check::new(
            format!(
                "las-log, k = {k}: at least 0.9 times as much in the last third as in the first"
            ),
            "does not deteriorate",
            Written::Ratio,
            runs.iter().map(|run| falling(run)),
            Bound::AtLeast(0.9),
        ));
    }
    let fast = with_fast_access();
    for (runs, k) in std::iter::zip(lab.all_runs(&fast, &fast.disciplines)?, ["0.5", "1"]) {
        checks.push(Check::new(
            format!("las-log, k = {k}, access at 10 Mbit/s: at least 0.9 of the link"),
            "hogs all the bandwidth",
            Written::Share,
            runs.iter().map(|run| {
                let (_, last) = thirds(&throughput(run))?;
                Some(last / LINK)
            }),
            Bound::AtLeast(0.9),
        ));
    }
    let line =
        |runs: &Vec<Arc<Run>>| Line::plain(&runs[0].summary.discipline, throughput(&runs[0]));
    let figure = Figure {
        id: "LAS-6".into(),
        title: "Throughput of a long transfer beside Web sessions".into(),
        caption: "In steps of 50 s; its access link carries 120 packets/s. The first seed.".into(),
        x: Scale::linear("Time", Measure::Time),
        y: Scale::linear("Packets a second", Measure::Count),
        lines: all.iter().map(line).collect(),
        stepped: false,
    };
    Ok(Finding::new("LAS-6", lab, &[FTP], checks, vec![figure]))
}

pub(super) const LOADS_OF_WEB: Claim = Claim {
    id: "LAS-6v",
    paper: &PAPER,
    source: "LAS sections 2.2, 6 and 8",
    text: "At a moderate load a long transfer is not locked out under LAS: it starves only at a \
           high load, close to overload.",
    method: "The transfer and the Web sessions of LAS-6, with their load varied. 'Moderate' is \
             taken as 0.3 and 0.5, 'close to overload' as 0.9; the transfer itself may add 0.3. \
             'Not locked out' is taken as at least 12 packets/s in the last third of the time (a \
             tenth of what its access link carries), as at least half of what it receives under \
             FIFO, and as no standstill of more than 10 s; 'not starved' as at least half as much \
             in the last third as in the first; 'starved' as at most 12 packets/s in the last \
             third and at most a tenth of what it receives under FIFO. Standstills, which are \
             maxima, and ratios of thirds have heavy tails: their medians over seeds are \
             estimated.",
    discussion: "At moderate loads the transfer does not starve: in the last third of the hour it \
                 has 97 and 72 packets/s, and 110 and 95 under FIFO. But it stands still for tens \
                 of seconds when a large Web transfer comes, of up to 20 MB, which goes first \
                 until it has sent as much. Close to overload it has all but stopped in the last \
                 third, at 2.6 packets/s. It has less than a tenth of what FIFO gives it neither \
                 then, since FIFO leaves it only 14, nor over the hour, since at first it is young \
                 and goes first itself.",
    measure: loads_of_web,
};

/// Loads of the Web sessions, from the least to the greatest.
const LOADS: [f64; 5] = [0.3, 0.5, LOAD, 0.8, 0.9];
/// Those that are moderate.
const MODERATE: [f64; 2] = [0.3, 0.5];
/// The one that is close to overload.
const HIGH: f64 = 0.9;

/// The place of the long transfer among the scenario's sources.
const LONG: u16 = 1;

fn loads_of_web(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let of_load = |load: &f64| {
        let mut scenario = ftp();
        set_load(&mut scenario, *load);
        scenario.disciplines.truncate(2);
        lab.all_runs(&scenario, &scenario.disciplines)
    };
    let all: Vec<Vec<Vec<Arc<Run>>>> = LOADS.iter().map(of_load).collect::<Result<_, _>>()?;
    let with = |load: f64| -> [&[Arc<Run>]; 2] {
        let place = LOADS.iter().position(|one| *one == load).expect("it is one of the loads");
        [&all[place][0], &all[place][1]]
    };
    let received = |run: &Run| mean(rates(&throughput(run)));
    let in_the_end = |run: &Run| thirds(&throughput(run)).map(|(_, last)| last);
    let mut checks = Vec::new();
    for load in MODERATE {
        let [fifo, las] = with(load);
        checks.extend([
            Check::new(
                format!("load {load}, las: at least 12 packets/s in the last third"),
                "not locked out",
                Written::Count,
                las.iter().map(|run| in_the_end(run)),
                Bound::AtLeast(12.0),
            ),
            Check::new(
                format!("load {load}: at least half as much under las as under fifo"),
                "not locked out",
                Written::Ratio,
                ratio(las, fifo, received),
                Bound::AtLeast(0.5),
            ),
            Check::of(
                Centre::Median,
                format!("load {load}, las: never still for more than 10 s"),
                "not locked out",
                Written::Seconds,
                las.iter().map(|run| standstill(run)),
                Bound::AtMost(10.0),
            ),
            Check::of(
                Centre::Median,
                format!(
                    "load {load}, las: at least half as much in the last third as in the first"
                ),
                "does not starve",
                Written::Ratio,
                las.iter().map(|run| thirds(&throughput(run)).map(|(first, last)| last / first)),
                Bound::AtLeast(0.5),
            ),
        ]);
    }
    let [fifo, las] = with(HIGH);
    checks.extend([
        Check::new(
            format!("load {HIGH}, las: at most 12 packets/s in the last third"),
            "starves",
            Written::Count,
            las.iter().map(|run| in_the_end(run)),
            Bound::AtMost(12.0),
        ),
        Check::new(
            format!("load {HIGH}: at most a tenth as much under las as under fifo"),
            "deteriorates severely",
            Written::Ratio,
            ratio(las, fifo, received),
            Bound::AtMost(0.1),
        ),
    ]);
    let over_loads = |place: usize| {
        let label = &all[0][place][0].summary.discipline;
        let at = |(load, runs): (f64, &Vec<Vec<Arc<Run>>>)| {
            (load, runs[place].iter().filter_map(|run| in_the_end(run)).collect())
        };
        Line::over_seeds(label, std::iter::zip(LOADS, &all).map(at))
    };
    let over_time = |(load, name): (f64, &str)| {
        Line::plain(format!("las, load {name}"), throughput(&with(load)[1][0]))
    };
    let figures = vec![
        Figure {
            id: "LAS-6v-load".into(),
            title: "Throughput of a long transfer by the load of the Web sessions".into(),
            caption: "In the last third of an hour; its access link carries 120 packets/s. Mean \
                      over seeds with its 95% interval."
                .into(),
            x: Scale::linear("Load of the Web sessions", Measure::Share),
            y: Scale::linear("Packets a second", Measure::Count),
            lines: [0, 1].map(over_loads).into(),
            stepped: false,
        },
        Figure {
            id: "LAS-6v-time".into(),
            title: "Throughput of a long transfer under LAS, by load".into(),
            caption: "In steps of 50 s; its access link carries 120 packets/s. The first seed."
                .into(),
            x: Scale::linear("Time", Measure::Time),
            y: Scale::linear("Packets a second", Measure::Count),
            lines: [(0.3, "0.3"), (0.5, "0.5"), (HIGH, "0.9")].map(over_time).into(),
            stepped: false,
        },
    ];
    Ok(Finding::new("LAS-6v", lab, &[FTP], checks, figures))
}

/// The longest time in which nothing of the long transfer arrived, in seconds.
fn standstill(run: &Run) -> Option<f64> {
    let long = run.flows.iter().find(|flow| flow.traffic == LONG);
    long.map(|flow| f64::from(flow.stall))
}

/// Packets a second of the one followed transfer, at the middle of each step.
fn throughput(run: &Run) -> Vec<(f64, f64)> {
    steps(&run.summary.progress)
}

fn steps(samples: &[ProgressSample]) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut samples = samples.iter();
    let Some(mut from) = samples.next() else { return points };
    for sample in samples {
        let seconds = sample.at.since(from.at).as_seconds();
        if seconds >= STEP {
            let packets = (sample.arrived.0 - from.arrived.0) as f64 / PACKET;
            points.push((from.at.as_seconds() + seconds / 2.0, packets / seconds));
            from = sample;
        }
    }
    points
}

fn rates(points: &[(f64, f64)]) -> impl Iterator<Item = f64> + '_ {
    points.iter().map(|point| point.1)
}

/// The mean throughput of the first third of the time and of the last.
fn thirds(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let third = points.len() / 3;
    Some((mean(rates(&points[..third]))?, mean(rates(&points[points.len() - third..]))?))
}

/// The standard deviation over the mean.
fn variation(points: &[(f64, f64)]) -> Option<f64> {
    let centre = mean(rates(points))?;
    let variance = mean(rates(points).map(|rate| (rate - centre) * (rate - centre)))?;
    Some(variance.sqrt() / centre)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::{Bytes, Time};
    use tidegate_sim::scenario::LinkSpec;

    #[test]
    fn throughput_is_of_whole_steps() {
        let sample = |(seconds, packets): &(u64, u64)| ProgressSample {
            traffic: 1,
            number: 0,
            at: Time(seconds * 1_000_000_000),
            delivered: Bytes(0),
            arrived: Bytes(packets * 1_000),
            congestion_window: Bytes(1_000),
            smoothed_rtt: None,
            pacing_rate: None,
        };
        let seen = [(610, 100), (640, 400), (660, 600), (680, 600), (710, 600), (720, 5_000)];
        let samples: Vec<_> = seen.iter().map(sample).collect();
        assert_eq!(steps(&samples), [(635.0, 10.0), (685.0, 0.0)]);
        assert_eq!(steps(&[]), []);
    }

    #[test]
    fn only_the_long_transfers_link_is_made_faster() {
        let rates = |scenario: &Scenario| -> Vec<Rate> {
            let fixed = |link: &LinkSpec| match link.capacity {
                Capacity::Fixed(rate) => Some(rate),
                _ => None,
            };
            scenario.links.iter().filter_map(fixed).collect()
        };
        let (slow, fast) = (rates(&ftp()), rates(&with_fast_access()));
        let changed: Vec<_> =
            std::iter::zip(slow, fast).filter(|(slow, fast)| slow != fast).collect();
        // There and back.
        assert_eq!(changed, [(Rate(1_000_000), Rate(10_000_000)); 2]);
        assert!(with_fast_access().disciplines.iter().all(|it| it.label.starts_with("las-log")));
    }

    #[test]
    fn thirds_and_variation_are_of_all_steps() {
        let points: Vec<_> = [4.0, 2.0, 9.0, 9.0, 9.0, 1.0, 1.0].map(|rate| (0.0, rate)).into();
        assert_eq!(thirds(&points), Some((3.0, 1.0)));
        assert_eq!(thirds(&points[..2]), None);
        // Mean 3, deviations 1 and 1.
        assert_eq!(variation(&points[..2]), Some(1.0 / 3.0));
    }
}
