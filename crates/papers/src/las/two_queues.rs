//! LAS sections 4 and 8: against two queues with a threshold.

use super::time::{by_size, lines, short_response};
use super::{LOAD, PAPER, WEB, web};
use crate::check::{Bound, Check, Written};
use crate::figure::{Figure, Measure, Scale};
use crate::lab::{Lab, Run};
use crate::runs::ratio;
use crate::{Claim, Finding, Stopped};
use tidegate_sim::scenario::DisciplineChoice;
use tidegate_study::Centre;

pub(super) const TWO_QUEUES: Claim = Claim {
    id: "LAS-2Q",
    paper: &PAPER,
    source: "LAS sections 4 and 8",
    text: "Two FIFO queues, one for the first packets of each transfer and one for the rest, \
           reduce the mean time of short transfers too, but LAS reduces it much more.",
    method: "The Web sessions of LAS-4 under Run2C, the two queues that the paper names, with \
             thresholds of 10, 40 and 160 packets: the paper gives none, and says that one is \
             hard to choose. Short transfers have fewer than 40 packets. 'Much more' is taken as \
             1.25 times as much of FIFO's time saved.",
    discussion: "LAS is better with every threshold, but much better only with 160 packets, far \
                 above the sizes of short transfers. With 40 it saves 1.06 times as much of FIFO's \
                 time as Run2C does, with 10 1.10 times: almost all that short transfers gain \
                 comes from passing the long ones, which either discipline lets them do. The paper \
                 simulates no two queues.",
    measure: two_queues,
};

/// Thresholds in packets, each of 1 040 bytes with its headers.
const THRESHOLDS: [u32; 3] = [10, 40, 160];

fn two_queues(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let scenario = web(LOAD);
    let run2c = |packets: u32| -> DisciplineChoice {
        let text = format!(
            "run2c:threshold={} B:idle=1 h:label=run2c, {packets} packets",
            packets * 1_040
        );
        text.parse().expect("Run2C has a threshold")
    };
    let mut disciplines = scenario.disciplines.clone();
    disciplines.extend(THRESHOLDS.map(run2c));
    let all = lab.all_runs(&scenario, &disciplines)?;
    let [fifo, las, two_queues @ ..] = &all[..] else { unreachable!("the scenario compares two") };
    let mut checks = Vec::new();
    for (packets, run2c) in std::iter::zip(THRESHOLDS, two_queues) {
        checks.push(Check::new(
            format!(
                "{packets} packets: short transfers take less time under run2c than under fifo"
            ),
            "reduce the mean transfer times of short flows",
            Written::Ratio,
            ratio(run2c, fifo, short_response),
            Bound::AtMost(1.0),
        ));
        checks.push(Check::new(
            format!("{packets} packets: short transfers take less time under las than under run2c"),
            "lower transfer times",
            Written::Ratio,
            ratio(las, run2c, short_response),
            Bound::AtMost(1.0),
        ));
        let saved =
            |run: &Run, fifo: &Run| Some(1.0 - short_response(run)? / short_response(fifo)?);
        let more = (0..fifo.len()).map(|seed| {
            let gain = saved(&las[seed], &fifo[seed])? / saved(&run2c[seed], &fifo[seed])?;
            Some(gain)
        });
        checks.push(Check::of(
            Centre::Median,
            format!("{packets} packets: las saves at least 1.25 times as much of fifo's time"),
            "much more",
            Written::Ratio,
            more,
            Bound::AtLeast(1.25),
        ));
    }
    let figure = Figure {
        id: "LAS-2Q".into(),
        title: "Mean response time by size, with two queues".into(),
        caption: "Mean over seeds with its 95% interval; load 0.7. The thresholds of Run2C are \
                  10, 40 and 160 packets."
            .into(),
        x: Scale::log("Size in packets", Measure::Count),
        y: Scale::log("Mean response time", Measure::Time),
        lines: lines(&all, by_size),
        stepped: false,
    };
    Ok(Finding::new("LAS-2Q", lab, &[WEB], checks, vec![figure]))
}
