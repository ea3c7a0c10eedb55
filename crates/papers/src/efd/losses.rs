//! EFD section 3.2: who loses packets when the buffer is full.

use std::sync::Arc;

use super::{DUMBBELL, LOADS, PAPER, dumbbell, segments};
use crate::check::{Bound, Check, Written};
use crate::lab::{Flow, Lab, Run};
use crate::runs::{choices, ratio};
use crate::{Claim, Finding, Stopped};
use tidegate_study::Centre;

/// Up to EFD's threshold, in segments.
const SHORT: f64 = 20.0;
/// Long transfers have more segments.
const LONG: f64 = 1_000.0;

pub(super) const SPACE: Claim = Claim {
    id: "EFD-B",
    paper: &PAPER,
    source: "EFD section 3.2",
    text: "A full buffer drops the packet at the end of the low level instead of the one that \
           arrives, which gives space to short flows. The large ones that lose instead recover \
           with a fast retransmit, where short ones might time out.",
    method: "Transfers of up to 20 segments, the threshold, and of more than 1 000, in underload \
             and overload. 'Gives space' is taken as: under EFD at most a fifth as many short \
             transfers lose a packet as under FIFO. For the recovery, timeouts for each lost \
             packet under EFD, of long transfers against short ones under FIFO. The bounds are \
             ours: the paper states the mechanism and measures neither. Counts of rare losses \
             may have heavy tails, so medians over seeds are estimated.",
    discussion: "In underload no short transfer loses a packet under EFD in most seeds. In \
                 overload nearly every packet is the only one of its flow in the queue, all take \
                 the high level, and EFD drops what FIFO drops (see EFD-3).",
    measure: space,
};

fn space(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let mut checks = Vec::new();
    for (load, regime) in LOADS {
        let all = lab.all_runs(&dumbbell(load), &choices(&["fifo", "efd"]))?;
        let [fifo, efd] = &all[..] else { unreachable!("two were asked for") };
        let mut check = |statement: &str, paper: &str, values: Vec<_>, most| {
            checks.push(Check::of(
                Centre::Median,
                format!("{regime}: {statement}"),
                paper,
                Written::Share,
                values,
                Bound::AtMost(most),
            ));
        };
        let losers = |run: &Run| {
            let short = run.flows.iter().filter(|flow| is_short(flow));
            Some(short.filter(|flow| flow.lost > 0).count() as f64)
        };
        check(
            "under efd at most a fifth as many short transfers lose a packet as under fifo",
            "space priority to short flows",
            ratio(efd, fifo, losers).collect(),
            0.2,
        );
        let recovery = |(efd, fifo): (&Arc<Run>, &Arc<Run>)| {
            Some(timeouts_by_loss(efd, is_long)? / timeouts_by_loss(fifo, is_short)?)
        };
        check(
            "long transfers under efd have at most as many timeouts for a lost packet as short \
             ones under fifo",
            "fast retransmit, where short flows might time out",
            std::iter::zip(efd, fifo).map(recovery).collect(),
            1.0,
        );
    }
    Ok(Finding::new("EFD-B", lab, &[DUMBBELL], checks, Vec::new()))
}

fn is_short(flow: &Flow) -> bool {
    segments(flow.size) <= SHORT
}

fn is_long(flow: &Flow) -> bool {
    segments(flow.size) > LONG
}

/// Timeouts over lost packets of the transfers that `belong`.
fn timeouts_by_loss(run: &Run, belong: impl Fn(&Flow) -> bool) -> Option<f64> {
    let (mut timeouts, mut lost) = (0_u32, 0_u32);
    for flow in run.flows.iter().filter(|flow| belong(flow)) {
        timeouts += u32::from(flow.timeouts);
        lost += u32::from(flow.lost);
    }
    (lost > 0).then(|| f64::from(timeouts) / f64::from(lost))
}
