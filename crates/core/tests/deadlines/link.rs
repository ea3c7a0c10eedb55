//! An obvious link that sends the earliest deadline first, and the worst that
//! real-time flows can do to it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tidegate_core::assignment::Assignment;
use tidegate_core::contract::{Contracts, Policer};
use tidegate_core::curve::PER_BYTE;
use tidegate_core::{Bytes, Time};

/// A packet that comes with a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due {
    pub(crate) arrived: u64,
    pub(crate) size: u64,
    pub(crate) deadline: u64,
}

/// All real-time flows send as much as they may from `start` on up to `until`,
/// in packets of `packet` bytes, or less when a flow may not send as much at once.
pub(crate) fn greedy(contracts: &Contracts, start: u64, until: u64, packet: u64) -> Vec<Due> {
    let mut packets = Vec::new();
    for flow in contracts.real_time() {
        let size = packet.min(flow.envelope.largest_packet().0);
        let mut policer = Policer::new(flow.envelope);
        let mut now = Time(start);
        while let Some(at) = policer.conforms_at(now, Bytes(size)).filter(|at| at.0 < until) {
            assert!(policer.admit(at, Bytes(size)));
            packets.push(Due { arrived: at.0, size, deadline: at.0 + flow.deadline.0 });
            now = at;
        }
    }
    packets.sort_unstable();
    packets
}

/// The same byte by byte: every byte comes as soon as the arrival curve has room.
pub(crate) fn greedy_bytes(contracts: &Contracts, start: u64, until: u64) -> Vec<Due> {
    let mut packets = Vec::new();
    for flow in contracts.real_time() {
        let curve = flow.envelope.curve().expect("flows of the tests are simple");
        let arrival = |sent: i128| Some(start + curve.first_reaching(sent * PER_BYTE)?);
        let arrivals = (1..).map_while(arrival).take_while(|at| *at < until);
        packets.extend(arrivals.map(|arrived| Due {
            arrived,
            size: 1,
            deadline: arrived + flow.deadline.0,
        }));
    }
    packets.sort_unstable();
    packets
}

/// How packets that are due at the same time are ordered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ties {
    RealTimeFirst,
    BestEffortFirst,
}

/// Sends real-time packets and best-effort packets, which come as `(arrived,
/// size)` and get their deadlines from `assign`; both in order. Whenever the
/// link is idle and a packet comes, a largest packet has just got in its way.
/// Returns how many packets were late.
pub(crate) fn late(
    contracts: &Contracts,
    real_time: &[Due],
    best_effort: &[(u64, u64)],
    ties: Ties,
    mut assign: impl FnMut(u64, u64, bool) -> u64,
) -> usize {
    let link = contracts.link;
    let mut real_time = real_time.iter().peekable();
    let mut best_effort = best_effort.iter().peekable();
    let mut waiting = BinaryHeap::new();
    let (mut now, mut late) = (0, 0);
    loop {
        // What has come while the link was busy, in order of arrival.
        let idle = waiting.is_empty();
        let next = [real_time.peek().map(|due| due.arrived), best_effort.peek().map(|due| due.0)];
        let next = next.into_iter().flatten().min();
        if idle {
            let Some(next) = next else { return late };
            if next >= now {
                now = next + link.transmission(contracts.largest_packet).0;
                // Nothing that has a deadline is left.
                if let Some((arrived, size)) = best_effort.next_if(|due| due.0 == next) {
                    let deadline = assign(*arrived, *size, true);
                    waiting.push(Reverse((deadline, rank(ties, false), *size)));
                }
            }
        }
        while let Some(due) = real_time.next_if(|due| due.arrived <= now) {
            waiting.push(Reverse((due.deadline, rank(ties, true), due.size)));
        }
        while let Some((arrived, size)) = best_effort.next_if(|due| due.0 <= now) {
            let deadline = assign(*arrived, *size, false);
            waiting.push(Reverse((deadline, rank(ties, false), *size)));
        }
        let Some(Reverse((deadline, _, size))) = waiting.pop() else { continue };
        now += link.transmission(Bytes(size)).0;
        late += usize::from(now > deadline);
    }
}

fn rank(ties: Ties, real_time: bool) -> bool {
    match ties {
        Ties::RealTimeFirst => !real_time,
        Ties::BestEffortFirst => real_time,
    }
}

/// The deadlines of `assignment`, which is reset when the link was idle.
pub(crate) fn by(assignment: &mut dyn Assignment) -> impl FnMut(u64, u64, bool) -> u64 + '_ {
    |arrived, size, idle| {
        if idle {
            assignment.reset();
        }
        assignment.assign(Time(arrived), Bytes(size)).0
    }
}

/// Deadlines in the order of their packets, of which the last is so many nanoseconds
/// shorter.
pub(crate) fn cut(deadlines: &[u64], shorter: u64) -> impl FnMut(u64, u64, bool) -> u64 + '_ {
    let mut left = deadlines.iter();
    move |_, _, _| {
        let deadline = left.next().expect("there is a deadline for each packet");
        deadline - if left.len() == 0 { shorter } else { 0 }
    }
}
