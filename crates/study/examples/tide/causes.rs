//! Why `tide` loses a comparison, as far as runs tell.
//!
//! Every case was also run with `tide` changed in one way: fair to hosts, without credit, with
//! the largest, with a CoDel that leaves one packet alone, without CoDel, without memory, with
//! FQ-CoDel's rule for a full buffer; in two ways at once; and in four, to be near to
//! FQ-CoDel. What takes away more than half of a loss is its cause, the first if there are
//! several. So is what a rival does, if more than half of the loss is not there beside that
//! rival without it: CAKE's hosts and signals, Linux's form of FQ-CoDel, and in FQ-CoDel that a
//! full buffer may take the last packet of a queue and that queues that were idle go first.
//! Else, where the rival does not divide the rate evenly, others may take more than a share
//! there; and where FQ-CoDel, which is fair queueing with CoDel too, has not half of CAKE's or
//! FQ-PIE's advantage, that lies in what those two do otherwise. Both are said so. The rest has
//! no cause that these runs tell.

use tidegate_study::measure::Better;
use tidegate_study::{Estimate, Sample};

use super::DISCIPLINES;
use super::cases::{ATTACKS, FAIR_TO_HOSTS, PROBES, RIVAL_PROBES};
use super::figures::FIGURES;
use super::page::STATE;
use super::result::CaseResult;
use super::verdicts::Comparison;

/// Those under which a flow may have more than an even share for as long as it lasts.
const UNEVEN: [&str; 5] = ["efd", "las", "lars", "scfq", "fifo"];

/// Those that share as FQ-CoDel does, and drop by another rule.
const EARLY: [(&str, &str); 2] = [("cake", "COBALT"), ("fq-pie", "PIE")];

/// The words of the column, and what each means.
pub(crate) const MEANINGS: [(&str, &str); 18] = [
    ("credit", "is gone without credit: what flows that begin are ahead, the others wait for"),
    (
        "end of the credit",
        "is gone with the largest credit, 300 kB: the rival lets flows pass for longer",
    ),
    ("floor", "is gone if CoDel leaves one packet alone instead of ten"),
    ("CoDel", "is gone without CoDel"),
    (
        "memory",
        "is gone if flows are forgotten with their last packet; of state: idle flows are \
         remembered until they have nothing to gain",
    ),
    (
        "credit and floor",
        "is gone without credit and with that CoDel, and with neither change alone",
    ),
    (
        "who gives way",
        "is gone if a full buffer takes from whoever has most bytes queued, be it one packet, \
         as under FQ-CoDel: small packets stay",
    ),
    (
        "several at once",
        "is gone only without credit and memory, with a CoDel that leaves one packet alone, and \
         with that rule for a full buffer",
    ),
    (
        "memory and who gives way",
        "is gone without memory and with that rule for a full buffer, and with neither change alone",
    ),
    (
        "toll and who gives way",
        "is gone with that rule, and if flows in credit leave payers nothing: flows that begin \
         while they have all begin together",
    ),
    ("hosts of CAKE", "is gone beside a CAKE that is fair between flows and not between hosts"),
    (
        "Linux's FQ-CoDel",
        "is gone beside an FQ-CoDel by RFC 8290, whose CoDel and full buffer have other rules than \
         Linux's",
    ),
    (
        "last packets",
        "is gone beside an FQ-CoDel whose full buffer leaves every queue its last packet, as \
         under `tide`, and refuses what arrives if all have one",
    ),
    (
        "idle first and last packets",
        "is gone beside such an FQ-CoDel in which queues that were idle wait for their turn: \
         what a sender sends again after a pause does not pass the others, and finds no room",
    ),
    (
        "COBALT",
        "is gone beside a CAKE that expects round trips of 10 s and so hardly signals; or is none \
         of these, and more than half of what CAKE is ahead of FQ-CoDel too",
    ),
    ("even shares", "is none of these, and the rival does not divide the rate evenly"),
    ("PIE", "is none of these, and more than half of what FQ-PIE is ahead of FQ-CoDel too"),
    ("hosts", "is gone with `hosts`: the attacker has many flows"),
];

/// The causes of comparisons of one case and figure, each once.
pub(crate) fn of(result: &CaseResult, comparisons: &[&Comparison]) -> String {
    let mut causes: Vec<&str> = Vec::new();
    for comparison in comparisons {
        let cause = of_one(result, comparison).unwrap_or("not known");
        if !causes.contains(&cause) {
            causes.push(cause);
        }
    }
    causes.join(", ")
}

fn of_one(result: &CaseResult, comparison: &Comparison) -> Option<&'static str> {
    if FIGURES[comparison.figure].column == STATE {
        return Some("memory");
    }
    let sample = |contender: usize| result.values.get(contender)?[comparison.figure].as_ref();
    let loss = |contender: usize| {
        mean_worse(comparison.figure, sample(contender)?, sample(comparison.rival)?)
    };
    let beside = |rival: usize| mean_worse(comparison.figure, sample(0)?, sample(rival)?);
    let ours = loss(0)?;
    let is_halved = |left: Option<f64>| left.is_some_and(|left| left < ours / 2.0);
    let rival = DISCIPLINES[comparison.rival];
    let of_tide = PROBES.iter().enumerate().find(|(place, (name, _))| {
        // Who counts as one is a question only where somebody makes himself many.
        let applies = *name != FAIR_TO_HOSTS || result.group == ATTACKS;
        applies && is_halved(loss(DISCIPLINES.len() + place))
    });
    let of_rival = RIVAL_PROBES.iter().enumerate().find(|(place, (probed, ..))| {
        let changed = DISCIPLINES.len() + PROBES.len() + place;
        *probed == rival && is_halved(beside(changed))
    });
    of_tide
        .map(|(_, (_, cause))| *cause)
        .or(of_rival.map(|(_, (.., cause))| *cause))
        .or(UNEVEN.contains(&rival).then_some("even shares"))
        .or_else(|| {
            let (_, cause) = EARLY.into_iter().find(|(name, _)| *name == rival)?;
            let fq_codel = DISCIPLINES.iter().position(|name| *name == "fq-codel")?;
            is_halved(beside(fq_codel)).then_some(cause)
        })
}

/// By how much the first is worse, in the mean over the seeds that both have.
fn mean_worse(figure: usize, ours: &Sample, theirs: &Sample) -> Option<f64> {
    let sign = if FIGURES[figure].better == Better::More { -1.0 } else { 1.0 };
    let difference = Estimate::mean(ours.differences(theirs).iter().copied())?;
    Some(sign * difference.value)
}
