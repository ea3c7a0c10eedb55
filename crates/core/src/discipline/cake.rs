//! CAKE: a shaper, tins by codepoint, fair to hosts and then to their flows, each queue
//! under COBALT.
//!
//! Linux's home gateway (`CAKE`, `tc-cake(8)`; where the two leave something open, Linux
//! 7.3, `sch_cake.c`). It consists of
//! - a shaper without a burst: with a `bandwidth`, a packet leaves when the one before
//!   has been sent at that rate, counted as the link behind counts it ([`framing`](crate::framing));
//! - tins, each of which goes first up to a share of the rate (`tins.rs`);
//! - in each tin, 1 024 queues in sets of eight: a flow may take any free queue of the
//!   set that it hashes to, so that two flows share one only when all eight are taken;
//! - turns by deficit round robin, idle queues first (`flows.rs`). A queue's quantum is
//!   divided by the number of busy queues of its source or of its destination,
//!   whichever has more, so no host gains by opening more connections (`hosts.rs`);
//! - COBALT in each queue, at departures (`cobalt.rs`);
//! - a filter of acknowledgements, if asked for (`ack_filter.rs`);
//! - losses at the head of the queue with the most bytes when the buffer is full.
//!
//! A flow is one of a tin: packets of one five-tuple with codepoints of two tins are two
//! flows, and may overtake each other.
//!
//! Two things differ from Linux in what a packet sees. A flow that finds all eight queues
//! taken shares the first that it hashes to, for as long as that has packets; in Linux it
//! becomes the queue's owner, and the next packets of the old owner may overtake those
//! that the old owner has queued. And parts of a quantum are exact to 2^-16 of a byte,
//! where Linux rounds at random.
//!
//! The cost is O(1) per packet where a host has few busy queues, and otherwise up to O(n)
//! in busy queues for some packets, as turns get smaller than packets; it is O(log n)
//! once a full buffer has caused losses. Tins add O(1).

use std::mem;

use super::flow_queues::FlowQueues;
use super::{Backlog, Discipline, LossReason, Losses};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::flow_table::FlowHash;
use crate::framing::{Carrier, Framing};
use crate::pace::Pace;
use crate::packet::{Ecn, FlowKey, Packet};
use crate::random::Stream;
use crate::setting::{Kind, Parameter, Settings};
use crate::units::{Bytes, Rate, Span, Time};

mod ack_filter;
mod cobalt;
mod flows;
mod hosts;
#[cfg(test)]
mod tests;
mod tins;

use ack_filter::AckFilter;
use cobalt::Cobalt;
use flows::Standing;
use hosts::{ISOLATIONS, Isolation, Sides};
use tins::{SCHEMES, Tins};

/// The registry's entry for [`Cake`].
pub const ENTRY: Entry = Entry {
    name: "cake",
    summary: "a shaper and tins; fair between hosts, then their flows, each under CoDel and BLUE",
    source: "CAKE",
    linux: Some("cake"),
    drops: Drops::Early,
    parameters: &[
        BANDWIDTH,
        TINS,
        ISOLATION,
        RTT,
        CE_THRESHOLD,
        OVERHEAD,
        MPU,
        FRAMING,
        ACK_FILTER,
    ],
    fixed: &[TINS, ISOLATION],
    build: |settings, Place { buffer, .. }, seed| Box::new(Cake::new(settings, buffer, seed)),
};

/// The rate of its own shaper.
pub const BANDWIDTH: Parameter = Parameter {
    name: "bandwidth",
    help: "the rate to which it holds packets back, which should be a little less than the \
           link's",
    kind: Kind::Bandwidth { least: Rate(1_000) },
    default: "unlimited",
};

const TINS: Parameter = Parameter {
    name: "tins",
    help: "the classes into which it sorts packets by their codepoint",
    kind: Kind::Choice(SCHEMES),
    default: "diffserv3",
};

const ISOLATION: Parameter = Parameter {
    name: "isolation",
    help: "between whom shares are fair",
    kind: Kind::Choice(ISOLATIONS),
    default: "triple-isolate",
};

const RTT: Parameter = Parameter {
    name: "rtt",
    help: "a long but usual round trip: the interval of COBALT, whose target is a twentieth of it",
    kind: Kind::Span { least: Span::micros(1), most: Span::seconds(3_600) },
    default: "100 ms",
};

/// What FQ-CoDel has as `ce_threshold` with a selector. Linux's CAKE has none.
const CE_THRESHOLD: Parameter = Parameter {
    name: "ce_threshold",
    help: "wait beyond which packets with ECT(1), low-latency traffic, are marked; zero: none",
    kind: Kind::Span { least: Span::ZERO, most: Span::seconds(60) },
    default: "0 s",
};

const OVERHEAD: Parameter = Parameter {
    name: "overhead",
    help: "what the link behind adds to each packet",
    kind: Kind::Bytes { least: Bytes::ZERO, most: Bytes(256) },
    default: "0 B",
};

const MPU: Parameter = Parameter {
    name: "mpu",
    help: "the least that a packet takes of the link behind, with the overhead",
    kind: Kind::Bytes { least: Bytes::ZERO, most: Bytes(256) },
    default: "0 B",
};

const FRAMING: Parameter = Parameter {
    name: "framing",
    help: "how the link behind carries bytes: in cells of ATM, with the code of PTM, or as they are",
    kind: Kind::Choice(&["noatm", "atm", "ptm"]),
    default: "noatm",
};

const ACK_FILTER: Parameter = Parameter {
    name: "ack_filter",
    help: "an arriving TCP acknowledgement removes one that it supersedes",
    kind: Kind::Choice(&["off", "on", "aggressive"]),
    default: "off",
};

/// Queues of a tin, and ways of a set (`tc-cake(8)`).
const QUEUES: u32 = 1_024;
const WAYS: u32 = 8;

/// Credits per byte.
const BYTE: u64 = 1 << 16;

/// Queues that are fair to hosts, in tins, held back to a rate.
#[derive(Debug)]
pub struct Cake {
    bandwidth: Option<Rate>,
    pace: Pace,
    framing: Framing,
    isolation: Isolation,
    filter: Option<AckFilter>,
    ce_threshold: Span,
    buffer: Buffer,
    hash: FlowHash,
    random: Stream,
    /// Those of the first tin first.
    queues: FlowQueues<Lane>,
    tins: Tins,
}

/// What is kept for a queue.
#[derive(Debug, Default)]
struct Lane {
    /// Hash of the flow that it belongs to, or last did.
    tag: Option<u64>,
    /// Whether it has packets of flows that found no queue of their own.
    is_shared: bool,
    /// Its source and its destination, while it has turns and they matter.
    hosts: Sides,
    standing: Standing,
    /// What is left of its quantum, so wide that packets of any size fit.
    credits: i128,
    cobalt: Cobalt,
}

impl Cake {
    /// An empty queue that holds at most `buffer`. Hash and draws depend on `seed`.
    fn new(settings: &Settings, buffer: Buffer, seed: u64) -> Cake {
        let bandwidth = settings.bandwidth(BANDWIDTH.name);
        let (scheme, rtt) = (settings.choice(TINS.name), settings.span(RTT.name));
        Cake {
            bandwidth,
            pace: Pace::default(),
            framing: framing(settings),
            isolation: Isolation::named(settings.choice(ISOLATION.name)),
            filter: filter(settings),
            ce_threshold: settings.span(CE_THRESHOLD.name),
            buffer,
            hash: FlowHash::new(seed),
            random: Stream::new(seed, ENTRY.name),
            queues: FlowQueues::new(),
            tins: Tins::new(scheme, rtt, bandwidth, seed),
        }
    }

    /// The queue of a tin for packets of a flow: its own; or else one that has been
    /// shared since all were taken, or a free one, or one to share.
    fn lane(&mut self, tin: usize, flow: FlowKey) -> u32 {
        let hash = self.hash.of(&self.isolation.flow(flow));
        let first = (hash >> (u64::BITS - QUEUES.ilog2())) as u32;
        let base = tin as u32 * QUEUES + first / WAYS * WAYS;
        let mut ways = (0..WAYS).map(|way| base + (first + way) % WAYS);
        let first = base + first % WAYS;
        if let Some(own) = ways.clone().find(|way| self.queues.state(*way).tag == Some(hash)) {
            let lane = self.queues.state(own);
            if lane.standing == Standing::Idle {
                self.tins.tin(tin).flows.claim(lane, hash, self.isolation, flow);
            }
            return own;
        }
        let has_packets = !self.queues.is_empty(first);
        if has_packets && self.queues.state(first).is_shared {
            return first;
        }
        let free = ways.find(|way| self.queues.state(*way).standing == Standing::Idle);
        let lane = self.queues.state(free.unwrap_or(first));
        if free.is_none() && has_packets {
            lane.is_shared = true;
        } else {
            self.tins.tin(tin).flows.claim(lane, hash, self.isolation, flow);
        }
        free.unwrap_or(first)
    }

    fn drop_superseded(&mut self, queue: u32, packet: &Packet, losses: &mut Losses) {
        let Some(filter) = self.filter else { return };
        let Some(slot) = filter.superseded(packet, self.queues.packets(queue)) else { return };
        let superseded = self.queues.remove(queue, slot);
        losses.push(superseded.expect("it has just been found"), LossReason::Superseded);
        self.tins.tin(tin_of(queue)).packets -= 1;
    }

    /// A full buffer gives up the head of the queue with the most bytes.
    fn push_out(&mut self, now: Time, room: Buffer, arriving: &Packet, losses: &mut Losses) {
        while !room.holds(self.queues.backlog()) {
            let Some(queue) = self.queues.fattest() else { return };
            let Some(victim) = self.queues.pop_first(queue) else { return };
            losses.push_out(victim, arriving);
            let tin = self.tins.tin(tin_of(queue));
            tin.packets -= 1;
            self.queues.state(queue).cobalt.overflowed(&tin.cobalt, now);
        }
    }

    /// Takes out the packet to send at `now`; some packet is queued.
    fn take(&mut self, now: Time, losses: &mut Losses) -> (Packet, Bytes) {
        let Cake { queues, tins, random, framing, ce_threshold, .. } = self;
        let mut looks = true;
        loop {
            let number = tins.next(now);
            let tin = tins.tin(number);
            let queue = tin.flows.next(queues, mem::take(&mut looks));
            let mut cobalt = mem::take(&mut queues.state(queue).cobalt);
            let sent = cobalt.dequeue(&tin.cobalt, now, random, losses, || {
                let packet = queues.pop_first(queue)?;
                tin.packets -= 1;
                Some((packet, queues.is_empty(queue)))
            });
            let lane = queues.state(queue);
            lane.cobalt = cobalt;
            let Some(mut packet) = sent else {
                tin.flows.found_empty(lane, queue, &tin.cobalt, now);
                continue;
            };
            let is_late = *ce_threshold > Span::ZERO && now.since(packet.arrived) > *ce_threshold;
            if is_late && packet.ecn == Ecn::Ect1 {
                packet = losses.signal(packet).unwrap_or(packet);
            }
            let size = framing.charge(packet.size);
            lane.credits -= i128::from(size.0) * i128::from(BYTE);
            tin.sent(now, size);
            return (packet, size);
        }
    }
}

/// The number of the tin that a queue is of.
fn tin_of(queue: u32) -> usize {
    (queue / QUEUES) as usize
}

/// The value of [`ACK_FILTER`].
fn filter(settings: &Settings) -> Option<AckFilter> {
    match settings.choice(ACK_FILTER.name) {
        "on" => Some(AckFilter::Conservative),
        "aggressive" => Some(AckFilter::Aggressive),
        _ => None,
    }
}

/// The values of [`OVERHEAD`], [`MPU`] and [`FRAMING`].
fn framing(settings: &Settings) -> Framing {
    let carrier = match settings.choice(FRAMING.name) {
        "atm" => Carrier::Atm,
        "ptm" => Carrier::Ptm,
        _ => Carrier::Bytes,
    };
    let (overhead, least) = (settings.bytes(OVERHEAD.name), settings.bytes(MPU.name));
    Framing { overhead, least, carrier }
}

/// When a queue with this backlog has a packet to send, from a time on.
fn ready(backlog: Backlog) -> impl FnOnce(Time) -> Option<Time> {
    move |at| (backlog.packets > 0).then_some(at)
}

impl Discipline for Cake {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        // A packet larger than the whole buffer would push out everything else and
        // still not fit.
        if !self.buffer.has_room(Backlog::default(), packet.size) {
            return losses.push(packet, LossReason::Refused);
        }
        let room = self.buffer.stretched_to(self.queues.backlog());
        let number = self.tins.of(packet.dscp);
        let queue = self.lane(number, packet.flow);
        let tin = self.tins.tin(number);
        tin.arrived(now);
        let is_empty = self.queues.is_empty(queue);
        let lane = self.queues.state(queue);
        lane.is_shared &= !is_empty;
        tin.flows.arrived(lane, queue);
        self.queues.push(queue, packet);
        self.drop_superseded(queue, &packet, losses);
        self.push_out(now, room, &packet, losses);
        self.pace.queue_changed(now, ready(self.queues.backlog()));
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        let start = self.pace.start(now)?;
        let (packet, size) = self.take(now, losses);
        let span = self.bandwidth.map_or(Span::ZERO, |rate| rate.transmission(size));
        self.pace.send(start, span, ready(self.queues.backlog()));
        Some(packet)
    }

    fn reconfigure(&mut self, _now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        self.bandwidth = settings.bandwidth(BANDWIDTH.name);
        self.tins.set(settings.span(RTT.name), self.bandwidth);
        self.framing = framing(settings);
        self.filter = filter(settings);
        self.ce_threshold = settings.span(CE_THRESHOLD.name);
        self.buffer = buffer;
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        self.pace.next_ready(now)
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn rate(&self) -> Option<Rate> {
        self.bandwidth
    }

    /// Queues with packets, and those that were emptied a short time ago.
    fn flows_tracked(&self) -> usize {
        self.tins.active()
    }
}
