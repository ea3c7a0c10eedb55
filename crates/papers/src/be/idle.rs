//! BE section 3: never worse than best effort that is sent only while nothing else waits.

use std::sync::Arc;

use tidegate_core::assignment::{Assignment, Scheme};
use tidegate_core::contract::Contracts;
use tidegate_core::discipline::deadlines::{Deadlines, Excess, WhenIdle};
use tidegate_core::residual::Residual;
use tidegate_core::{Buffer, Discipline, Losses, Packet, Stream, Time};

use super::theorems::TYPICAL;
use super::worst_case;
use super::{ACCESS, PAPER, access};
use crate::check::{Bound, Check, Written};
use crate::lab::{Lab, Served};
use crate::{Claim, Finding, Stopped};

pub(super) const NEVER_WORSE: Claim = Claim {
    id: "BE-Idle",
    paper: &PAPER,
    source: "BE section 3 and 3.1",
    text: "For best effort, deadlines are never worse than being sent only while no real-time \
           packet waits; and the queue is empty often enough for the past to be short.",
    method: "The links and real-time flows of BE-Th, at their worst, with one flow of best effort, \
             as in the paper. Each packet of best effort is compared with itself: when it is on \
             the wire under a scheme, and when under best effort when idle, with the same \
             arrivals. The second half is taken as ten times a second in the first 20 s of the \
             traffic of tables 3 and 4, under exact deadlines.",
    discussion: "It holds packet by packet, and has to: whenever best effort when idle begins a \
                 packet, all real time that has come is sent. Any other order has sent no more of \
                 it, so as much of best effort or more. With several flows of best effort it holds \
                 for their sum; for each flow, see BE-T1 and BE-T2.",
    measure: never_worse,
};

const PACKETS: u64 = 10_000;
const DRIVES: u64 = 10;

fn never_worse(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let mut checks = Vec::new();
    // By seed: packets, those later than when idle, and the sum of delays of each scheme
    // over that when idle.
    let seeds = lab.each_seed(|seed| {
        let mut sums = [(0_u64, 0_u64, 0.0, 0.0); Scheme::ALL.len()];
        for number in (0..DRIVES).take_while(|_| !lab.is_stopped()) {
            let mut stream = Stream::new(seed, &format!("never worse {number}"));
            let contracts = Arc::new(worst_case::contracts(&mut stream));
            let residual = Residual::new(&contracts).expect("drawn contracts can be kept");
            let arrivals = one_flow(worst_case::arrivals(&contracts, PACKETS, &mut stream));
            let idle = ends(&contracts, Box::new(WhenIdle), &arrivals);
            for (scheme, sum) in Scheme::ALL.into_iter().zip(&mut sums) {
                let with = ends(&contracts, scheme.build(&residual, TYPICAL), &arrivals);
                for ((arrived, end), (_, when_idle)) in with.iter().zip(&idle) {
                    sum.0 += 1;
                    sum.1 += u64::from(end > when_idle);
                    sum.2 += end.since(*arrived).as_seconds();
                    sum.3 += when_idle.since(*arrived).as_seconds();
                }
            }
        }
        sums
    })?;
    for (place, scheme) in Scheme::ALL.into_iter().enumerate() {
        let packets: u64 = seeds.iter().map(|sums| sums[place].0).sum();
        checks.push(Check::exact(
            format!("{scheme}: best-effort packets later than when idle, of {packets}"),
            "never worse",
            Written::Count,
            seeds.iter().map(|sums| sums[place].1).sum::<u64>() as f64,
            Bound::AtMost(0.0),
        ));
        let [with, when_idle] = [
            seeds.iter().map(|sums| sums[place].2).sum::<f64>(),
            seeds.iter().map(|sums| sums[place].3).sum(),
        ];
        checks.push(Check::exact(
            format!("{scheme}: the mean delay of best effort is at most that when idle"),
            "never worse",
            Written::Ratio,
            with / when_idle,
            Bound::AtMost(1.0),
        ));
    }
    let scenario = access();
    let exact = scenario.disciplines.last().expect("it compares schemes");
    let span = Time(20_000_000_000);
    let run = |seed| lab.served(&scenario, exact, seed, Time::ZERO, span);
    let runs = lab.seeds().into_iter().map(run).collect::<Result<Vec<_>, _>>()?;
    checks.push(Check::new(
        "exact: the queue is empty at least ten times a second",
        "fairly common",
        Written::Count,
        runs.iter().map(|served| Some(idle_times(served) as f64 / span.as_seconds())),
        Bound::AtLeast(10.0),
    ));
    Ok(Finding::new("BE-Idle", lab, &[ACCESS], checks, Vec::new()))
}

/// All best effort as one flow.
fn one_flow(mut arrivals: Vec<Packet>) -> Vec<Packet> {
    let is_best_effort = |packet: &&mut Packet| packet.class == 0;
    let mut best_effort = arrivals.iter_mut().filter(is_best_effort);
    if let Some(first) = best_effort.next() {
        let flow = first.flow;
        best_effort.for_each(|packet| packet.flow = flow);
    }
    arrivals
}

/// When each packet of best effort came and when it was on the wire, in their order.
fn ends(
    contracts: &Arc<Contracts>,
    assignment: Box<dyn Assignment>,
    arrivals: &[Packet],
) -> Vec<(Time, Time)> {
    let buffer = Buffer::packets(1 << 20);
    let mut queue = Deadlines::new(contracts.clone(), assignment, Excess::Drop, buffer, 1);
    let (mut losses, mut free_at, mut ends) = (Losses::new(), Time::ZERO, Vec::new());
    let mut send_until = |queue: &mut Deadlines, until: Time| {
        // What comes at the same time comes first.
        while queue.backlog().packets > 0 && free_at < until {
            let packet = queue.dequeue(free_at, &mut Losses::new()).expect("one waits");
            free_at += contracts.link.transmission(packet.size);
            if packet.class == 0 {
                ends.push((packet.arrived, free_at));
            }
        }
        free_at = free_at.max(until);
    };
    for packet in arrivals {
        send_until(&mut queue, packet.arrived);
        queue.enqueue(packet.arrived, *packet, &mut losses);
    }
    assert_eq!(losses.drain().count(), 0, "the flows keep to their curves");
    send_until(&mut queue, Time::FAR_FUTURE);
    ends
}

/// How often a packet came when all before it were sent.
fn idle_times(served: &[Served]) -> usize {
    let mut all_sent = Time::ZERO;
    let found_none = |packet: &&Served| {
        let none = packet.arrived >= all_sent;
        all_sent = all_sent.max(packet.ended);
        none
    };
    served.iter().filter(found_none).count()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::Effort;
    use crate::check::Outcome;
    use crate::lab::Nobody;

    #[test]
    fn no_packet_of_best_effort_is_later_than_when_idle_whatever_the_scheme() {
        let stop = AtomicBool::new(false);
        let lab = Lab::new(Effort::Quick, 2, &stop, &Nobody);
        let finding = never_worse(&lab).unwrap();
        let failing = finding.checks.iter().filter(|check| check.outcome != Outcome::Holds);
        let failing: Vec<_> = failing.collect();
        assert!(failing.is_empty(), "{failing:#?}");
    }
}
