//! BE section 3: order, guarantee and optimality.

use std::sync::Arc;

use tidegate_core::assignment::{Assignment, Scheme, Typical};
use tidegate_core::discipline::deadlines::Excess;
use tidegate_core::residual::Residual;
use tidegate_core::{Bytes, Stream, Time};

use super::PAPER;
use super::worst_case::{self, Drive, Liar};
use crate::check::{Bound, Check, Written};
use crate::lab::Lab;
use crate::{Claim, Finding, Stopped};

pub(super) const THEOREMS: Claim = Claim {
    id: "BE-Th",
    paper: &PAPER,
    source: "BE section 3, theorems 1 to 3",
    text: "Best-effort packets keep their order; no real-time packet and no best-effort packet \
           misses its deadline; and with a smaller deadline some packet might.",
    method: "Links with up to five real-time flows are drawn at random, with deadlines that \
             cannot all be shortened by 64 µs. The flows send as early as their curves allow, all \
             from the same instant on, repeatedly; best effort sends bursts of all sizes, or \
             without end. For the third theorem, every best-effort deadline is shortened by a \
             tenth of what remains of it. A flow that lies sends three times what its curve \
             allows; its own packets are left out. Tests of the library show that no single \
             deadline could be smaller, by constructing the miss; here it is enough that misses \
             happen.",
    discussion: "Deadlines shortened by a tenth rarely do harm, even in the worst case: a miss \
                 needs best effort at the very moment at which the curves bind.",
    measure: theorems,
};

/// Packets in each drive, and drives for each seed and scheme: with ten seeds
/// and six schemes 18 million packets.
const PACKETS: u64 = 15_000;
const DRIVES: u64 = 20;

/// What approximations are fitted to.
const TYPICAL: Typical = Typical { packet: Bytes(1_500), burst: Bytes(15_000) };

fn theorems(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let mut checks = Vec::new();
    for scheme in Scheme::ALL {
        let drives = drives(lab, None, |residual| scheme.build(residual, TYPICAL))?;
        let packets: u64 = drives.iter().map(|drive| drive.real_time).sum();
        checks.push(Check::new(
            format!("{scheme}: real-time packets late, of {packets}"),
            "none",
            Written::Count,
            drives.iter().map(|drive| Some(drive.late as f64)),
            Bound::AtMost(0.0),
        ));
        for (what, count) in [
            ("best-effort packets late", |drive: &Drive| drive.best_effort_late),
            ("packets that overtake one of their flow", |drive: &Drive| drive.overtaken),
        ] as [(&str, fn(&Drive) -> u64); 2]
        {
            checks.push(Check::new(
                format!("{scheme}: {what}"),
                "none",
                Written::Count,
                drives.iter().map(|drive| Some(count(drive) as f64)),
                Bound::AtMost(0.0),
            ));
        }
    }
    for (excess, what) in [(Excess::Demote, "demoted"), (Excess::Drop, "dropped")] {
        let drives =
            drives(lab, Some(Liar { times: 3, excess }), |r| Scheme::Bounded.build(r, TYPICAL))?;
        checks.push(Check::new(
            format!("a flow sends three times too much, {what}: packets of others late"),
            "policed",
            Written::Count,
            drives.iter().map(|drive| Some(drive.late as f64)),
            Bound::AtMost(0.0),
        ));
    }
    let hasty = drives(lab, None, |residual| {
        Box::new(Hasty { exact: Scheme::Bounded.build(residual, TYPICAL) })
    })?;
    checks.push(Check::new(
        "exact deadlines cut by a tenth: real-time packets late for each seed",
        "some packet might miss",
        Written::Count,
        hasty.iter().map(|drive| Some(drive.late as f64)),
        Bound::AtLeast(1.0),
    ));
    Ok(Finding::new("BE-Th", lab, &[], checks, Vec::new()))
}

/// Drives random links with the assignment that `assignment` makes for each;
/// the sum for each seed.
fn drives(
    lab: &Lab<'_>,
    liar: Option<Liar>,
    assignment: impl Fn(&Residual) -> Box<dyn Assignment> + Sync,
) -> Result<Vec<Drive>, Stopped> {
    lab.each_seed(|seed| {
        let mut sum = Drive::default();
        for number in (0..DRIVES).take_while(|_| !lab.is_stopped()) {
            let mut stream = Stream::new(seed, &format!("worst case {number}"));
            let contracts = Arc::new(worst_case::contracts(&mut stream));
            let residual = Residual::new(&contracts).expect("drawn contracts can be kept");
            let made = assignment(&residual);
            sum.add(&worst_case::drive(&contracts, made, liar, PACKETS, &mut stream));
        }
        sum
    })
}

/// Takes back a tenth of every deadline.
#[derive(Debug)]
struct Hasty {
    exact: Box<dyn Assignment>,
}

impl Assignment for Hasty {
    fn assign(&mut self, arrived: Time, size: Bytes) -> Time {
        let deadline = self.exact.assign(arrived, size);
        Time(deadline.0 - deadline.since(arrived).0 / 10)
    }

    fn reset(&mut self) {
        self.exact.reset();
    }

    fn state(&self) -> usize {
        self.exact.state()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::{Effort, Observer, Verdict};
    use tidegate_core::Span;

    struct Nobody;
    impl Observer for Nobody {
        fn planned(&self, _span: Span) {}
        fn advanced(&self, _span: Span) {}
    }

    /// More than a million packets; `tidegate reproduce BE-Th` takes ten times as many.
    #[test]
    fn no_real_time_packet_is_late_whatever_the_scheme() {
        let stop = AtomicBool::new(false);
        let lab = Lab::new(Effort::Quick, 2, &stop, &Nobody);
        let finding = theorems(&lab).unwrap();
        let failing = finding.checks.iter().filter(|check| check.outcome.words() != "yes");
        assert_eq!(finding.verdict, Verdict::Holds, "{:#?}", failing.collect::<Vec<_>>());
    }
}
