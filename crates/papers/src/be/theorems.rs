//! BE section 3: order, guarantee and optimality.

use std::sync::Arc;

use tidegate_core::assignment::{Assignment, Blocking, Scheme, Typical};
use tidegate_core::discipline::deadlines::Excess;
use tidegate_core::residual::Residual;
use tidegate_core::{Bytes, Stream, Time};

use super::PAPER;
use super::optimality::{self, Cut, Cuts};
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
             from the same instant on, repeatedly, just after a packet of best effort or the \
             largest of a flow has begun; best effort sends bursts of all sizes, or without end. A \
             flow that lies sends three times what its curve allows; its own packets are left \
             out. For the third theorem, one deadline of a sequence of best-effort packets is \
             made a nanosecond shorter, on links of their own with flows that are staircases, and \
             the miss is constructed: something has just got in the way of the first packet that \
             matters, and all flows send what they may from then on. The paper sets a largest \
             packet of any flow aside for what is in the way. Best effort is sent in order, \
             however, so only a real-time packet that is due later can be in its way; 'tight' \
             sets aside the largest of those. Without constructing anything, deadlines are \
             shortened by a tenth of what remains of them.",
    discussion: "Theorem 3 holds if a largest packet that is due later can be in the way of best \
                 effort. If only the packets of these flows are sent, as in the paper's system, \
                 it does not hold: some deadlines are longer than they have to be, and 'tight' \
                 gives the least ones. Deadlines shortened by a tenth rarely do harm, even in \
                 the worst case: a miss needs best effort at the very moment at which the curves \
                 bind.",
    measure: theorems,
};

/// Packets in each drive, and drives for each seed and scheme: with ten seeds
/// and six schemes 18 million packets.
const PACKETS: u64 = 15_000;
const DRIVES: u64 = 20;

/// Links on which a deadline is cut, for each seed.
const CUTS: u64 = 100;

/// What approximations are fitted to.
pub(super) const TYPICAL: Typical = Typical { packet: Bytes(1_500), burst: Bytes(15_000) };

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
    let cuts = lab.each_seed(|seed| optimality::cuts(CUTS, &mut Stream::new(seed, "cuts")))?;
    for (what, cut) in [
        ("exact, a largest packet in the way", |cuts: &Cuts| cuts.exact),
        ("exact, a real-time packet in the way", |cuts: &Cuts| cuts.exact_in_order),
        ("tight, a real-time packet in the way", |cuts: &Cuts| cuts.tight),
    ] as [(&str, fn(&Cuts) -> Cut); 3]
    {
        let links: u64 = cuts.iter().map(|cuts| cut(cuts).links).sum();
        checks.push(Check::exact(
            format!("{what}: links with a late packet, of {links}"),
            "none",
            Written::Count,
            cuts.iter().map(|cuts| cut(cuts).late_before).sum::<u64>() as f64,
            Bound::AtMost(0.0),
        ));
        let after: u64 = cuts.iter().map(|cuts| cut(cuts).late_after).sum();
        checks.push(Check::exact(
            format!("{what}: a deadline a nanosecond shorter makes a packet late, of these links"),
            "some packet might miss",
            Written::Share,
            after as f64 / links as f64,
            Bound::AtLeast(1.0),
        ));
    }
    let [tight, exact] =
        [0, 1].map(|which| cuts.iter().map(|cuts| cuts.lengths[which]).sum::<u64>());
    checks.push(Check::exact(
        "tight: mean relative deadline, as a share of the exact one",
        "not in the paper",
        Written::Share,
        tight as f64 / exact as f64,
        Bound::AtMost(1.0),
    ));
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

    fn blocking(&self) -> Blocking {
        self.exact.blocking()
    }

    fn state(&self) -> usize {
        self.exact.state()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::Effort;
    use crate::check::Outcome;
    use crate::lab::Nobody;
    use tidegate_core::assignment::Bounded;
    use tidegate_core::curve::{Curve, PER_BYTE};

    /// More than a million packets; `tidegate reproduce BE-Th` takes ten times as many.
    #[test]
    fn no_real_time_packet_is_late_whatever_the_scheme() {
        let stop = AtomicBool::new(false);
        let lab = Lab::new(Effort::Quick, 2, &stop, &Nobody);
        let finding = theorems(&lab).unwrap();
        let failing = finding.checks.iter().filter(|check| check.outcome != Outcome::Holds);
        let failing: Vec<&str> = failing.map(|check| &*check.statement).collect();
        // The paper's deadlines are not the least ones when best effort is sent in order.
        assert!(failing.len() == 1 && failing[0].starts_with("exact, a real-time"), "{failing:?}");
    }

    /// So many drives with `assignment`, and their sum.
    fn driven(drives: u64, assignment: impl Fn(&Residual) -> Box<dyn Assignment>) -> Drive {
        let mut sum = Drive::default();
        for number in 0..drives {
            let mut stream = Stream::new(number, "tight");
            let contracts = Arc::new(worst_case::contracts(&mut stream));
            let residual = Residual::new(&contracts).unwrap();
            sum.add(&worst_case::drive(
                &contracts,
                assignment(&residual),
                None,
                PACKETS,
                &mut stream,
            ));
        }
        sum
    }

    fn is_clean(drive: &Drive) -> bool {
        drive.late + drive.best_effort_late + drive.overtaken == 0
    }

    /// `cargo test -p tidegate-papers --lib tight_deadlines -- --ignored --nocapture`
    #[test]
    #[ignore = "twenty million packets take minutes"]
    fn tight_deadlines_are_kept_by_twenty_million_packets() {
        let drive = driven(1_400, |residual| Scheme::Tight.build(residual, TYPICAL));
        println!("{drive:#?}");
        assert!(drive.real_time + drive.best_effort > 20_000_000);
        assert!(is_clean(&drive), "{drive:?}");
    }

    /// What the tight deadlines rely on.
    #[derive(Debug)]
    struct Faulty {
        deadlines: Box<dyn Assignment>,
        blocking: Blocking,
    }

    impl Assignment for Faulty {
        fn assign(&mut self, arrived: Time, size: Bytes) -> Time {
            self.deadlines.assign(arrived, size)
        }
        fn reset(&mut self) {
            self.deadlines.reset();
        }
        fn blocking(&self) -> Blocking {
            self.blocking
        }
        fn state(&self) -> usize {
            self.deadlines.state()
        }
    }

    #[test]
    fn the_worst_case_finds_tight_deadlines_that_allow_for_too_little() {
        let tight = |residual: &Residual| Scheme::Tight.build(residual, TYPICAL);
        assert!(is_clean(&driven(20, tight)));
        // The past is forgotten while a packet of best effort may be in the way.
        let forgetful = |residual: &Residual| -> Box<dyn Assignment> {
            Box::new(Faulty { deadlines: tight(residual), blocking: Blocking::Any })
        };
        assert!(!is_clean(&driven(20, forgetful)));
        // Nothing is ever in the way.
        let unblocked = |residual: &Residual| -> Box<dyn Assignment> {
            let largest = i128::from(residual.largest_packet().0) * PER_BYTE;
            let capacity = residual.capacity().plus(&Curve::line(largest, 0)).unwrap();
            let least = capacity.least_from_here_on().unwrap().positive_part().unwrap();
            let deadlines = Box::new(Bounded::new(&least));
            Box::new(Faulty { deadlines, blocking: Blocking::RealTime })
        };
        assert!(!is_clean(&driven(20, unblocked)));
    }
}
