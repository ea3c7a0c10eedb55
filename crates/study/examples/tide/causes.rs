//! Why `tide` loses a comparison, as far as runs tell.
//!
//! Every case was also run with `tide` changed in one way: fair to hosts, without credit, with
//! the largest, with a CoDel that leaves one packet alone, without CoDel, without memory; and
//! without credit and with that CoDel. What takes away more than half of a loss is its cause,
//! the first if there are several. Else, where the rival does not divide the rate evenly,
//! others may take more than a share there, and that is said. The rest has no cause that these
//! runs tell.

use tidegate_study::measure::Better;
use tidegate_study::{Estimate, Sample};

use super::DISCIPLINES;
use super::cases::{ATTACKS, FAIR_TO_HOSTS, PROBES};
use super::figures::FIGURES;
use super::page::STATE;
use super::result::CaseResult;
use super::verdicts::Comparison;

/// Those under which a flow may have more than an even share for as long as it lasts.
const UNEVEN: [&str; 5] = ["efd", "las", "lars", "scfq", "fifo"];

/// The words of the column, and what each means.
pub(crate) const MEANINGS: [(&str, &str); 8] = [
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
    ("even shares", "is none of these, and the rival does not divide the rate evenly"),
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
    let loss = |contender: usize| {
        let sample = |contender: usize| result.values[contender][comparison.figure].as_ref();
        mean_worse(comparison.figure, sample(contender)?, sample(comparison.rival)?)
    };
    let ours = loss(0)?;
    let takes_away = |(place, (contender, _)): &(usize, (&str, &str))| {
        // Who counts as one is a question only where somebody makes himself many.
        let applies = *contender != FAIR_TO_HOSTS || result.group == ATTACKS;
        applies && loss(DISCIPLINES.len() + *place).is_some_and(|left| left < ours / 2.0)
    };
    let probe = PROBES.into_iter().enumerate().find(takes_away);
    probe
        .map(|(_, (_, cause))| cause)
        .or(UNEVEN.contains(&DISCIPLINES[comparison.rival]).then_some("even shares"))
}

/// By how much the first is worse, in the mean over the seeds that both have.
fn mean_worse(figure: usize, ours: &Sample, theirs: &Sample) -> Option<f64> {
    let sign = if FIGURES[figure].better == Better::More { -1.0 } else { 1.0 };
    let difference = Estimate::mean(ours.differences(theirs).iter().copied())?;
    Some(sign * difference.value)
}
