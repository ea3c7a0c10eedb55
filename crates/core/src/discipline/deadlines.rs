//! Earliest deadline first, with best effort as early as the promises allow.
//!
//! Real-time flows have contracts: each packet is on the wire within its flow's
//! deadline, as long as the flow keeps within its arrival curve. A policer at
//! the door sees to that; what is in excess is dropped, or goes on as best
//! effort, so that a flow that sends too much harms no other. Real-time packets
//! have finished long before their deadlines most of the time, and best effort
//! need not wait until they have gone: a best-effort packet gets a deadline too,
//! the earliest one with which all promises are still kept
//! ([`assignment`](crate::assignment)), and the earliest deadline of all goes
//! first, without preemption (`BE section 3`).
//!
//! Best-effort packets pass fair queueing by weight first. Only its head stands
//! among the deadlines; it gets its own when it becomes the head (`BE appendix
//! A`). The fair queueing is self-clocked (Golestani 1994) where the paper says
//! WFQ: the shares are the same, without a simulated fluid system beside it. Tags
//! are bytes times 2^32 over weight; 128 bits of them never overflow.
//!
//! A full buffer gives up best effort to make room for real time, the packet
//! with the last tag first, and refuses best effort. So a contract holds if the
//! buffer has room for the real-time packets alone.
//!
//! Packets of one 5-tuple leave in the order of their arrival, also when some of
//! them are real time and some are not: once one of them waits as best effort,
//! those behind it do too, and its deadline is no earlier than those of the
//! real-time packets before it. A deadline that is later than need be breaks no
//! promise. A packet larger than the contracts say is in excess, whatever its
//! flow: while it is sent nothing else can be. One smaller than [`SMALLEST_PACKET`]
//! counts as one of that size.
//!
//! O(log n) for n queued packets, and a look at every contract for each arrival.

use std::sync::Arc;

use super::flow_state::Backlogged;
use super::ranked::{Ranked, RankedQueue};
use super::{Backlog, Discipline, Level, LossReason, Losses};
use crate::assignment::{Assignment, Scheme, Typical};
use crate::buffer::Buffer;
use crate::contract::{Contracts, Policer, Service};
use crate::flow_table::FlowId;
use crate::packet::Packet;
use crate::registry::{Drops, Entry, Kind, Parameter};
use crate::residual::{Residual, SMALLEST_PACKET};
use crate::units::{Bytes, Span, Time};

/// The registry's entry for [`Deadlines`].
pub const ENTRY: Entry = Entry {
    name: "deadlines",
    summary: "earliest deadline first for promised flows, low delay for best effort among them",
    source: "BE",
    drops: Drops::Early,
    parameters: &[FLOWS, ASSIGNMENT, BURST, EXCESS],
    build: |settings, buffer, seed| {
        let contracts = settings.contracts(FLOWS.name);
        let residual = Residual::new(&contracts).expect("settings were checked");
        let typical = Typical {
            packet: contracts.largest_packet,
            burst: settings.bytes(BURST.name).max(contracts.largest_packet),
        };
        let assignment: Box<dyn Assignment> = match settings.choice(ASSIGNMENT.name) {
            IDLE => Box::new(WhenIdle),
            name => name.parse::<Scheme>().expect("a scheme's name").build(&residual, typical),
        };
        let excess =
            if settings.choice(EXCESS.name) == DROP { Excess::Drop } else { Excess::Demote };
        Box::new(Deadlines::new(contracts, assignment, excess, buffer, seed))
    },
};

const FLOWS: Parameter = Parameter {
    name: "flows",
    help: "what flows may send and were promised, and the link's rate",
    kind: Kind::Contracts,
    default: "link 1 Mbit/s; packets to 1536 B; \
              calls = class 1: 1500 B + 200 kbit/s within 30 ms",
};

const ASSIGNMENT: Parameter = Parameter {
    name: "assignment",
    help: "how best-effort packets get their deadlines; 'idle' sends them only when nothing \
           else waits",
    kind: Kind::Choice(&ASSIGNMENTS),
    default: "bounded",
};

/// The schemes, and none.
const ASSIGNMENTS: [&str; Scheme::NAMES.len() + 1] = {
    let mut names = [IDLE; Scheme::NAMES.len() + 1];
    let mut place = 0;
    while place < Scheme::NAMES.len() {
        names[place] = Scheme::NAMES[place];
        place += 1;
    }
    names
};

const IDLE: &str = "idle";

const BURST: Parameter = Parameter {
    name: "burst",
    help: "best effort that comes at once, to which lines and segments are fitted",
    kind: Kind::Bytes { least: Bytes(1), most: Bytes(1_000_000_000) },
    default: "15 kB",
};

const EXCESS: Parameter = Parameter {
    name: "excess",
    help: "what becomes of real-time packets beyond their flow's arrival curve",
    kind: Kind::Choice(&["demote", DROP]),
    default: "demote",
};

const DROP: &str = "drop";

/// No deadline at all: best effort waits until nothing else does.
#[derive(Debug)]
struct WhenIdle;

impl Assignment for WhenIdle {
    fn assign(&mut self, _arrived: Time, _size: Bytes) -> Time {
        Time::FAR_FUTURE
    }

    fn reset(&mut self) {}

    fn state(&self) -> usize {
        0
    }
}

/// What becomes of packets beyond their flow's arrival curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// They go on as best effort.
    Demote,
    /// They are lost.
    Drop,
}

/// A finish tag of fair queueing: bytes over weight, in units of 2^-32.
type Tag = u128;

/// Promised flows by deadline, and best effort among them.
pub struct Deadlines {
    contracts: Arc<Contracts>,
    policers: Vec<Option<Policer>>,
    excess: Excess,
    buffer: Buffer,
    /// By deadline.
    real_time: RankedQueue<Time>,
    /// By finish tag, all but the head.
    best_effort: RankedQueue<Tag>,
    head: Option<Head>,
    assignment: Box<dyn Assignment>,
    /// The 5-tuples that have packets queued.
    flows: Backlogged<Flow>,
    /// The last tag of each flow that has a contract.
    tags: Vec<Tag>,
    /// The tag of the head, or of the last one there was.
    virtual_time: Tag,
    levels: [Level; 2],
}

/// The best-effort packet that stands among the deadlines.
#[derive(Debug)]
struct Head {
    deadline: Time,
    packet: Packet,
    flow: FlowId,
}

/// What is known of a 5-tuple with packets in the queue.
#[derive(Debug, Default)]
struct Flow {
    real_time: u32,
    best_effort: u32,
    /// The latest deadline of its real-time packets.
    latest: Time,
    /// The last tag of its best-effort packets.
    tag: Tag,
}

impl Deadlines {
    const REAL_TIME: usize = 0;
    const BEST_EFFORT: usize = 1;

    /// An empty queue that keeps these promises if they can be kept, which a
    /// [`Residual`] tells, and if `assignment` is one for what they leave; the
    /// hash of its flow table depends on `seed`.
    #[must_use]
    pub fn new(
        contracts: Arc<Contracts>,
        assignment: Box<dyn Assignment>,
        excess: Excess,
        buffer: Buffer,
        seed: u64,
    ) -> Deadlines {
        let policer = |service: &Service| match service {
            Service::RealTime { envelope, .. } => Some(Policer::new(envelope)),
            Service::BestEffort { .. } => None,
        };
        Deadlines {
            policers: contracts.flows.iter().map(|flow| policer(&flow.service)).collect(),
            tags: vec![0; contracts.flows.len()],
            contracts,
            excess,
            buffer,
            real_time: RankedQueue::new(),
            best_effort: RankedQueue::new(),
            head: None,
            assignment,
            flows: Backlogged::new(seed),
            virtual_time: 0,
            levels: [Level::new("real time"), Level::new("best effort")],
        }
    }

    /// Takes in a packet that keeps to its contract.
    fn enqueue_real_time(&mut self, now: Time, packet: Packet, promise: Span, losses: &mut Losses) {
        while !self.buffer.has_room(self.backlog(), packet.size) {
            let Some((victim, flow)) = self.give_up_best_effort() else { break };
            self.leave(flow, Self::BEST_EFFORT, &victim);
            losses.push_out(victim, &packet);
        }
        let deadline = now + promise;
        let (id, flow) = self.flows.join(&packet.flow);
        flow.real_time += 1;
        flow.latest = flow.latest.max(deadline);
        self.real_time.insert(deadline, packet, id);
        self.levels[Self::REAL_TIME].backlog.add(packet.size);
        self.levels[Self::REAL_TIME].enqueued += 1;
    }

    /// Takes in any other packet.
    fn enqueue_best_effort(&mut self, now: Time, packet: Packet, contract: Option<usize>) {
        let (id, flow) = self.flows.join(&packet.flow);
        flow.best_effort += 1;
        let promised = contract.and_then(|contract| match self.contracts.flows[contract].service {
            Service::BestEffort { weight } => Some((weight, &mut self.tags[contract])),
            Service::RealTime { .. } => None,
        });
        let (weight, last) = promised.map_or((1, None), |(weight, last)| (weight, Some(last)));
        let share = (Tag::from(packet.size.0) << 32) / Tag::from(weight);
        // Behind its 5-tuple's packets in any case, with whatever contract they came.
        let before = last.as_deref().copied().unwrap_or(0).max(flow.tag).max(self.virtual_time);
        flow.tag = before + share;
        if let Some(last) = last {
            *last = flow.tag;
        }
        self.best_effort.insert(flow.tag, packet, id);
        self.levels[Self::BEST_EFFORT].backlog.add(packet.size);
        self.levels[Self::BEST_EFFORT].enqueued += 1;
        self.choose_head(now);
    }

    /// Puts the next best-effort packet among the deadlines, if none is there.
    fn choose_head(&mut self, now: Time) {
        if self.head.is_some() {
            return;
        }
        let Some(Ranked { rank, packet, flow }) = self.best_effort.pop_first() else { return };
        self.virtual_time = rank;
        let earliest = self.assignment.assign(now, packet.size.max(SMALLEST_PACKET));
        let state = self.flows.state(flow);
        let before = if state.real_time > 0 { state.latest } else { Time::ZERO };
        self.head = Some(Head { deadline: earliest.max(before), packet, flow });
    }

    /// The best-effort packet that would be served last.
    fn give_up_best_effort(&mut self) -> Option<(Packet, FlowId)> {
        let last = self.best_effort.pop_last().map(|last| (last.packet, last.flow));
        last.or_else(|| self.head.take().map(|head| (head.packet, head.flow)))
    }

    fn leave(&mut self, id: FlowId, level: usize, packet: &Packet) {
        let flow = self.flows.state(id);
        let queued =
            if level == Self::REAL_TIME { &mut flow.real_time } else { &mut flow.best_effort };
        *queued -= 1;
        self.flows.leave(id);
        self.levels[level].backlog.remove(packet.size);
    }
}

impl Discipline for Deadlines {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        if packet.size > self.contracts.largest_packet {
            return losses.push(packet, LossReason::Excess);
        }
        let contract = self.contracts.flow_of(&packet);
        let promise = contract.and_then(|contract| match self.contracts.flows[contract].service {
            Service::RealTime { deadline, .. } => Some((contract, deadline)),
            Service::BestEffort { .. } => None,
        });
        let follows_best_effort =
            self.flows.find(&packet.flow).is_some_and(|flow| flow.best_effort > 0);
        if let Some((contract, deadline)) = promise
            && !follows_best_effort
        {
            // What finds no room was never there, for its policer either.
            if !self.buffer.has_room(self.real_time.backlog(), packet.size) {
                return losses.push(packet, LossReason::Refused);
            }
            let policer = self.policers[contract].as_mut().expect("a promise has a policer");
            if policer.admit(now, packet.size.max(SMALLEST_PACKET)) {
                return self.enqueue_real_time(now, packet, deadline, losses);
            }
            if self.excess == Excess::Drop {
                return losses.push(packet, LossReason::Excess);
            }
        }
        if !self.buffer.has_room(self.backlog(), packet.size) {
            return losses.push(packet, LossReason::Refused);
        }
        self.enqueue_best_effort(now, packet, contract);
    }

    fn dequeue(&mut self, now: Time, _losses: &mut Losses) -> Option<Packet> {
        let best_effort = self.head.as_ref().map(|head| head.deadline);
        let real_time = self.real_time.first_rank();
        let best_effort_first = match (best_effort, real_time) {
            (Some(best_effort), Some(real_time)) => best_effort < real_time,
            (best_effort, _) => best_effort.is_some(),
        };
        let packet = if best_effort_first {
            let head = self.head.take()?;
            self.leave(head.flow, Self::BEST_EFFORT, &head.packet);
            self.choose_head(now);
            head.packet
        } else {
            let next = self.real_time.pop_first()?;
            self.leave(next.flow, Self::REAL_TIME, &next.packet);
            next.packet
        };
        if self.backlog().packets == 0 {
            // What has a deadline has gone: the past binds nothing (`BE section 3.1`).
            self.assignment.reset();
        }
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        let [real_time, best_effort] = self.levels.map(|level| level.backlog);
        let mut backlog = real_time;
        backlog.packets += best_effort.packets;
        backlog.bytes += best_effort.bytes;
        backlog
    }

    fn flows_tracked(&self) -> usize {
        self.flows.len()
    }

    fn levels(&self) -> &[Level] {
        &self.levels
    }
}
