//! LAS section 6: one long transfer beside the Web sessions.

use std::sync::Arc;

use super::{FTP, PACKET, PAPER, ftp};
use crate::check::{Bound, Check, Written};
use crate::figure::{Figure, Line, Measure, Scale};
use crate::lab::{Lab, Run};
use crate::runs::{mean, ratio};
use crate::{Claim, Finding, Stopped};
use tidegate_sim::metrics::ProgressSample;

pub(super) const LONG_TRANSFER: Claim = Claim {
    id: "LAS-6",
    paper: &PAPER,
    source: "LAS section 6, figure 6",
    text: "Beside Web sessions with a load of 0.7 the throughput of a long transfer, at most 1 \
           Mbit/s, is highly variable under LAS and falls to zero after a long time. With LAS-log \
           it is almost constant, at about 90 packets/s for k = 0.5 and at about 120 packets/s for \
           k = 1, and does not deteriorate.",
    method: "An endless transfer for an hour after the warm-up, in LAS-log's priority class; \
             service is counted in packets. Its throughput is measured in steps of 50 s. 'Zero' is \
             taken as at most 12 packets/s in the last third of the time, a tenth of what its \
             access link carries; 'highly variable' as a coefficient of variation of twice that \
             with k = 0.5; 'about' as within 20% for 90 and 10% for 120; 'constant' as a last \
             third with at least 0.9 of the first third's. FIFO, which figure 6 lacks, is for \
             comparison.",
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
                 packets/s with both.",
    measure: long_transfer,
};

/// Steps of time in which throughput is measured, in seconds.
const STEP: f64 = 50.0;

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
        };
        let seen = [(610, 100), (640, 400), (660, 600), (680, 600), (710, 600), (720, 5_000)];
        let samples: Vec<_> = seen.iter().map(sample).collect();
        assert_eq!(steps(&samples), [(635.0, 10.0), (685.0, 0.0)]);
        assert_eq!(steps(&[]), []);
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
