//! Theorem 3 of BE: how a smaller deadline is missed.
//!
//! A link is drawn at random, and best-effort packets that come in bursts. Of their
//! deadlines the last is cut by a nanosecond. Of the packets before it those count that
//! make it as late as it is. When the first of those comes, something has just got in
//! the way, and the real-time flows send all that their curves allow from then on. The
//! flows are staircases, which packets can follow to the byte, and the link takes a
//! whole number of nanoseconds for a byte, so that nothing is lost by rounding.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tidegate_core::assignment::{Assignment, Exact};
use tidegate_core::contract::{Contracts, Term};
use tidegate_core::curve::Curve;
use tidegate_core::residual::Residual;
use tidegate_core::{Bytes, Stream, Time};

use super::worst_case::below;

/// Links on which something was asked, and on how many of them a packet was late.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cut {
    pub(crate) links: u64,
    /// With the deadlines as assigned.
    pub(crate) late_before: u64,
    /// With one of them a nanosecond shorter.
    pub(crate) late_after: u64,
}

impl Cut {
    fn count(&mut self, before: bool, after: bool) {
        self.links += 1;
        self.late_before += u64::from(before);
        self.late_after += u64::from(after);
    }
}

/// What may have just begun when the first packet comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InTheWay {
    Nothing,
    /// A largest packet that is due later than all else.
    Largest,
    /// The largest packet of the real-time flow with this index.
    Flow(usize),
}

/// The deadlines of the paper when a largest packet of any flow may be in the way, and
/// when only a real-time packet may be; the tight deadlines in the latter case.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cuts {
    pub(crate) exact: Cut,
    pub(crate) exact_in_order: Cut,
    pub(crate) tight: Cut,
    /// The sums of the relative deadlines, tight and of the paper, in nanoseconds.
    pub(crate) lengths: [u64; 2],
}

/// Draws so many links and cuts a deadline on each.
pub(crate) fn cuts(links: u64, stream: &mut Stream) -> Cuts {
    let mut cuts = Cuts::default();
    for _ in 0..links {
        let (contracts, residual) = drawn(stream);
        let packets = packets(&contracts, stream);
        let behind_flows: Vec<InTheWay> = std::iter::once(InTheWay::Nothing)
            .chain((0..contracts.real_time().count()).map(InTheWay::Flow))
            .collect();
        let on = |capacity: &Curve, ways: &[InTheWay], cut: &mut Cut| {
            let (packets, deadlines) = binding(capacity, &packets);
            let late = |shorter| {
                ways.iter().any(|way| is_late(&contracts, *way, &packets, &deadlines, shorter))
            };
            cut.count(late(0), late(1));
        };
        on(residual.effective(), &[InTheWay::Largest], &mut cuts.exact);
        on(residual.effective(), &behind_flows, &mut cuts.exact_in_order);
        on(residual.in_order(), &behind_flows, &mut cuts.tight);
        for (sum, capacity) in
            cuts.lengths.iter_mut().zip([residual.in_order(), residual.effective()])
        {
            let due = deadlines(capacity, &packets);
            *sum += due.iter().zip(&packets).map(|(due, (at, _))| due - at).sum::<u64>();
        }
    }
    cuts
}

/// A link of 10 Mbit/s with one to four flows, whose promises can be kept.
fn drawn(stream: &mut Stream) -> (Contracts, Residual) {
    loop {
        let mut text = format!("link 10 Mbit/s; packets to {} B", 40 + below(stream, 1_560));
        for class in 1..=1 + below(stream, 4) {
            let (size, period) = (40 + below(stream, 2_960), 4 + below(stream, 36));
            let deadline = 2 + below(stream, 58);
            text += &format!("; f{class} = class {class}: {size} B every {period} ms");
            text += &format!(" within {deadline} ms");
        }
        let contracts: Contracts = text.parse().expect("a drawn text is well-formed");
        if let Ok(residual) = Residual::new(&contracts) {
            return (contracts, residual);
        }
    }
}

/// Best-effort packets, as `(arrived, size)`.
fn packets(contracts: &Contracts, stream: &mut Stream) -> Vec<(u64, u64)> {
    let largest = contracts.largest_packet.0;
    let mut now = 0;
    let mut packet = |_| {
        now += match below(stream, 8) {
            0..4 => 0,
            4..7 => below(stream, 2_000_000),
            _ => below(stream, 60_000_000),
        };
        let size = if below(stream, 2) == 0 { largest } else { 40 + below(stream, largest - 39) };
        (now, size)
    };
    let mut packets = vec![packet(0)];
    packets.extend((0..19).map(packet));
    let count = 1 + below(stream, 20) as usize;
    packets.truncate(count);
    packets
}

/// The last of the packets, from the one on that makes the last deadline as late as it
/// is, and their deadlines if nothing came before.
fn binding(capacity: &Curve, packets: &[(u64, u64)]) -> (Vec<(u64, u64)>, Vec<u64>) {
    let all = deadlines(capacity, packets);
    let same = |first: &usize| deadlines(capacity, &packets[*first..]).last() == all.last();
    let first = (0..packets.len()).rev().find(same).expect("all of them do");
    (packets[first..].to_vec(), deadlines(capacity, &packets[first..]))
}

/// The earliest deadlines within `capacity`.
fn deadlines(capacity: &Curve, packets: &[(u64, u64)]) -> Vec<u64> {
    let mut exact = Exact::new(capacity.clone());
    packets.iter().map(|(at, size)| exact.assign(Time(*at), Bytes(*size)).0).collect()
}

/// Whether a packet is late when the last deadline is `shorter` by so many nanoseconds.
fn is_late(
    contracts: &Contracts,
    way: InTheWay,
    packets: &[(u64, u64)],
    deadlines: &[u64],
    shorter: u64,
) -> bool {
    const NEVER: u64 = u64::MAX;
    let (start, last) = (packets[0].0, deadlines[deadlines.len() - 1] - shorter);
    let largest = contracts.largest_packet.0;
    // When, in which order at the same time, how large, and due when.
    let mut arrivals: Vec<(u64, u8, u64, u64)> = Vec::new();
    if way == InTheWay::Largest {
        arrivals.push((start, 0, largest, NEVER));
    }
    let due = deadlines[..deadlines.len() - 1].iter().chain([&last]);
    arrivals.extend(packets.iter().zip(due).map(|((at, size), due)| (*at, 1, *size, *due)));
    for (index, flow) in contracts.real_time().enumerate() {
        for term in flow.envelope.terms() {
            let Term::Staircase { size, period } = *term else { continue };
            // Nothing that is due after all else has to be sent.
            for at in (start..last + 200_000_000).step_by(period.0 as usize) {
                let mut left = size.0;
                let mut first = at == start && way == InTheWay::Flow(index);
                while left > 0 {
                    let size = left.min(largest);
                    arrivals.push((at, if first { 0 } else { 2 }, size, at + flow.deadline.0));
                    left -= size;
                    first = false;
                }
            }
        }
    }
    // Stable: best effort keeps its order.
    arrivals.sort_by_key(|arrival| (arrival.0, arrival.1));
    let mut waiting: BinaryHeap<Reverse<(u64, u8, u64)>> = BinaryHeap::new();
    let mut free_at = 0;
    let mut arrivals = arrivals.into_iter().peekable();
    while let Some((at, order, size, due)) = arrivals.next() {
        waiting.push(Reverse((due, order, size)));
        let until = arrivals.peek().map_or(NEVER, |next| next.0);
        free_at = free_at.max(at);
        while free_at <= until
            && let Some(Reverse((due, _, size))) = waiting.pop()
        {
            free_at += contracts.link.transmission(Bytes(size)).0;
            if free_at > due {
                return true;
            }
        }
    }
    false
}
