//! Earliest deadline first, with best effort early among the promises.
//!
//! Real-time flows have contracts: each packet is on the wire within its flow's
//! deadline, as long as the flow keeps to its arrival curve. A policer at the
//! entrance ensures that, so a flow that sends too much harms no other. Excess
//! packets are dropped, or continue as best effort. A packet of their 5-tuple that
//! keeps to the curve does not wait for them: if its turn comes first, they are lost.
//! So excess takes nothing from what was promised, whatever was sent before: a packet
//! is real time if it keeps to the curve together with the real-time packets before it. A
//! flow that keeps to its curve by itself from some instant on loses less after that
//! than the largest burst of its curve and one packet. In symbols, let n be a packet
//! that comes at t, later than that instant T, and is excess because of the real-time
//! packets from a time s before T on. They are at most `A(T - s)` before T, and since
//! T at most `A(t - T)` less the excess x between T and n, so that `x < A(T - s) +
//! A(t - T) - A(t - s)`, which for a token bucket or a staircase is no more than its
//! burst or step, and for several of them no more than the largest. Most of the time, real-time
//! packets have finished long before their deadlines, and best effort need not wait
//! until they have gone: a best-effort packet has a deadline too, an early one with
//! which [`assignment`](crate::assignment) still keeps all promises, and the
//! earliest deadline of all goes first, without preemption (`BE section 3`).
//!
//! Best-effort packets first pass fair queueing by weight. Only its head stands
//! among the deadlines; it receives its own when it becomes the head (`BE appendix
//! A`). The fair queueing is self-clocked (Golestani 1994) where the paper says
//! WFQ: the shares are the same, without a simulated fluid system beside it. Tags
//! are bytes times 2^32 over weight; their 128 bits never overflow.
//!
//! A full buffer gives up best effort to make room for real time, the packet with
//! the last tag first, and refuses best effort. A contract therefore holds if the
//! buffer has room for the real-time packets alone.
//!
//! Packets of one 5-tuple leave in the order of their arrival, even when some of
//! them are real time and some are not: the deadline of a best-effort packet is no
//! earlier than those of the real-time packets before it, and a deadline that is
//! later than necessary breaks no promise. A contract may cover a 5-tuple in part;
//! while a packet of the other part waits, those behind it do too, without a
//! promise. A packet larger than the contracts say is in excess, whatever its flow:
//! while it is sent, nothing else can be. A packet smaller than [`SMALLEST_PACKET`]
//! counts as one of that size.
//!
//! The cost is O(log n) for n queued packets, and a look at every contract for each
//! arrival. A real-time packet that leaves before excess of its own 5-tuple which came
//! earlier costs a look at all best effort; such packets are no more than the curve
//! allows.

use std::sync::Arc;

use super::flow_state::Backlogged;
use super::ranked::{Ranked, RankedQueue};
use super::{Backlog, Discipline, Level, LossReason, Losses};
use crate::assignment::{Assignment, Blocking, Scheme, Typical};
use crate::buffer::Buffer;
use crate::contract::{Contracts, Policer, Service};
use crate::entry::{Drops, Entry, Place};
use crate::flow_table::FlowId;
use crate::packet::Packet;
use crate::residual::{Residual, SMALLEST_PACKET};
use crate::setting::{Kind, Parameter, Settings};
use crate::units::{Bytes, Span, Time};

/// The registry's entry for [`Deadlines`].
pub const ENTRY: Entry = Entry {
    name: "deadlines",
    summary: "earliest deadline first for flows with promises, low delay for best effort between \
              them",
    source: "BE",
    linux: None,
    drops: Drops::Early,
    parameters: &[FLOWS, ASSIGNMENT, BURST, EXCESS],
    // New promises would not know what is queued under the old ones.
    fixed: &[FLOWS, ASSIGNMENT, BURST],
    build: |settings, Place { buffer, .. }, seed| {
        let contracts = settings.contracts(FLOWS.name);
        let residual = Residual::new(&contracts).expect("settings were checked");
        let typical = Typical {
            packet: contracts.largest_packet,
            burst: contracts.largest_packet * settings.count(BURST.name).into(),
        };
        let assignment: Box<dyn Assignment> = match settings.choice(ASSIGNMENT.name) {
            IDLE => Box::new(WhenIdle),
            name => name.parse::<Scheme>().expect("a scheme's name").build(&residual, typical),
        };
        let excess = Excess::from_settings(settings);
        Box::new(Deadlines::new(contracts, assignment, excess, buffer, seed))
    },
};

const FLOWS: Parameter = Parameter {
    name: "flows",
    help: "what flows may send, what they were promised, and the link's rate",
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
    help: "number of largest best-effort packets that arrive at once: lines and segments are \
           fitted to it",
    kind: Kind::Count { least: 1, most: 100_000 },
    default: "10",
};

const EXCESS: Parameter = Parameter {
    name: "excess",
    help: "what happens to real-time packets beyond their flow's arrival curve; 'demote' makes \
           them best effort until a packet that came later has to leave before them",
    kind: Kind::Choice(&["demote", DROP]),
    default: "demote",
};

const DROP: &str = "drop";

/// No deadline at all: best effort waits until nothing else does.
#[derive(Clone, Copy, Debug)]
pub struct WhenIdle;

impl Assignment for WhenIdle {
    fn assign(&mut self, _arrived: Time, _size: Bytes) -> Time {
        Time::FAR_FUTURE
    }

    fn reset(&mut self) {}

    fn blocking(&self) -> Blocking {
        Blocking::Any
    }

    fn state(&self) -> usize {
        0
    }
}

/// What becomes of packets beyond their flow's arrival curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// They go on as best effort, and are lost when a packet of their 5-tuple that
    /// keeps to the curve leaves before them.
    Demote,
    /// They are lost.
    Drop,
}

impl Excess {
    fn from_settings(settings: &Settings) -> Excess {
        if settings.choice(EXCESS.name) == DROP { Excess::Drop } else { Excess::Demote }
    }
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
    real_time: RankedQueue<Time, Kept>,
    /// By finish tag, all but the head.
    best_effort: RankedQueue<Tag, Sender>,
    head: Option<Head>,
    assignment: Box<dyn Assignment>,
    blocking: Blocking,
    /// The 5-tuples that have packets queued.
    flows: Backlogged<Flow>,
    /// The last tag of each flow that has a contract.
    tags: Vec<Tag>,
    /// The tag of the head, or of the last one there was.
    virtual_time: Tag,
    /// When the last packet that was sent is on the wire.
    busy_until: Time,
    levels: [Level; 2],
}

/// The best-effort packet that stands among the deadlines.
#[derive(Debug)]
struct Head {
    deadline: Time,
    /// Whether that is later than the assignment asks for.
    is_put_off: bool,
    packet: Packet,
    sender: Sender,
}

/// Where a real-time packet belongs.
#[derive(Clone, Copy, Debug)]
struct Kept {
    flow: FlowId,
    /// Its number among the packets of its 5-tuple.
    number: u64,
}

/// Where a best-effort packet belongs.
#[derive(Clone, Copy, Debug)]
struct Sender {
    flow: FlowId,
    /// Its number among the packets of its 5-tuple.
    number: u64,
    /// Whether it is of a real-time flow.
    is_promised: bool,
    /// The latest deadline of the real-time packets of its 5-tuple that it found.
    after: Time,
}

/// What is known of a 5-tuple with packets in the queue.
#[derive(Debug, Default)]
struct Flow {
    /// Packets that have joined.
    joined: u64,
    real_time: u32,
    /// Best-effort packets of real-time flows.
    excess: u32,
    /// No packet of the excess has a lower number.
    oldest_excess: u64,
    /// Best-effort packets of others.
    unpromised: u32,
    /// The latest deadline of its real-time packets.
    latest: Time,
    /// The last tag of its best-effort packets.
    tag: Tag,
}

impl Flow {
    /// The number of a packet that joins.
    fn number(&mut self) -> u64 {
        self.joined += 1;
        self.joined
    }
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
            blocking: assignment.blocking(),
            assignment,
            flows: Backlogged::new(seed),
            virtual_time: 0,
            busy_until: Time::ZERO,
            levels: [Level::new("real time"), Level::new("best effort")],
        }
    }

    /// Takes in a packet that keeps to its contract.
    fn enqueue_real_time(&mut self, now: Time, packet: Packet, promise: Span, losses: &mut Losses) {
        let room = self.buffer.stretched_to(self.backlog());
        while !room.has_room(self.backlog(), packet.size) {
            let Some((victim, sender)) = self.give_up_best_effort() else { break };
            self.leave_best_effort(sender, &victim);
            losses.push_out(victim, &packet);
        }
        let deadline = now + promise;
        let (id, flow) = self.flows.join(&packet.flow);
        let kept = Kept { flow: id, number: flow.number() };
        flow.real_time += 1;
        flow.latest = flow.latest.max(deadline);
        self.real_time.insert(deadline, packet, kept);
        self.levels[Self::REAL_TIME].backlog.add(packet.size);
        self.levels[Self::REAL_TIME].enqueued += 1;
    }

    /// Takes in any other packet.
    fn enqueue_best_effort(&mut self, now: Time, packet: Packet, contract: Option<usize>) {
        let (id, flow) = self.flows.join(&packet.flow);
        let mut is_promised = false;
        let (weight, last) = match contract.map(|contract| (contract, &self.contracts.flows)) {
            Some((contract, flows)) => match flows[contract].service {
                Service::BestEffort { weight } => (weight, Some(&mut self.tags[contract])),
                Service::RealTime { .. } => {
                    is_promised = true;
                    (1, None)
                }
            },
            None => (1, None),
        };
        let number = flow.number();
        if is_promised && flow.excess == 0 {
            flow.oldest_excess = number;
        }
        *(if is_promised { &mut flow.excess } else { &mut flow.unpromised }) += 1;
        let after = if flow.real_time > 0 { flow.latest } else { Time::ZERO };
        let share = (Tag::from(packet.size.0) << 32) / Tag::from(weight);
        // Behind its 5-tuple's packets in any case, with whatever contract they came.
        let before = last.as_deref().copied().unwrap_or(0).max(flow.tag).max(self.virtual_time);
        flow.tag = before + share;
        if let Some(last) = last {
            *last = flow.tag;
        }
        self.best_effort.insert(flow.tag, packet, Sender { flow: id, number, is_promised, after });
        self.levels[Self::BEST_EFFORT].backlog.add(packet.size);
        self.levels[Self::BEST_EFFORT].enqueued += 1;
        self.choose_head(now);
    }

    /// Puts the next best-effort packet among the deadlines, if none is there.
    fn choose_head(&mut self, now: Time) {
        if self.head.is_some() {
            return;
        }
        let Some(Ranked { rank, packet, flow: sender }) = self.best_effort.pop_first() else {
            return;
        };
        self.virtual_time = rank;
        let earliest = self.assignment.assign(now, packet.size.max(SMALLEST_PACKET));
        let state = self.flows.state(sender.flow);
        let before = if state.real_time > 0 { sender.after } else { Time::ZERO };
        let (deadline, is_put_off) = (earliest.max(before), before > earliest);
        self.head = Some(Head { deadline, is_put_off, packet, sender });
    }

    /// The best-effort packet that would be served last.
    fn give_up_best_effort(&mut self) -> Option<(Packet, Sender)> {
        let last = self.best_effort.pop_last().map(|last| (last.packet, last.flow));
        last.or_else(|| self.head.take().map(|head| (head.packet, head.sender)))
    }

    /// Loses the excess that `sent`, a real-time packet of its 5-tuple, has overtaken.
    fn lose_overtaken(&mut self, sent: Kept, losses: &mut Losses) {
        let flow = self.flows.state(sent.flow);
        if flow.excess == 0 || flow.oldest_excess > sent.number {
            return;
        }
        flow.oldest_excess = sent.number;
        let overtaken = |sender: Sender| {
            sender.flow == sent.flow && sender.is_promised && sender.number < sent.number
        };
        let mut lose = |packet: Packet| {
            self.flows.state(sent.flow).excess -= 1;
            self.flows.leave(sent.flow);
            self.levels[Self::BEST_EFFORT].backlog.remove(packet.size);
            losses.push(packet, LossReason::Excess);
        };
        if let Some(head) = self.head.take_if(|head| overtaken(head.sender)) {
            lose(head.packet);
        }
        self.best_effort.take_out(overtaken, lose);
    }

    fn leave_real_time(&mut self, flow: FlowId, packet: &Packet) {
        self.flows.state(flow).real_time -= 1;
        self.flows.leave(flow);
        self.levels[Self::REAL_TIME].backlog.remove(packet.size);
    }

    fn leave_best_effort(&mut self, sender: Sender, packet: &Packet) {
        let flow = self.flows.state(sender.flow);
        *(if sender.is_promised { &mut flow.excess } else { &mut flow.unpromised }) -= 1;
        self.flows.leave(sender.flow);
        self.levels[Self::BEST_EFFORT].backlog.remove(packet.size);
    }
}

impl Discipline for Deadlines {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        if packet.size > self.contracts.largest_packet {
            return losses.push(packet, LossReason::Excess);
        }
        let is_empty = self.backlog().packets == 0;
        if is_empty && self.blocking == Blocking::RealTime && now >= self.busy_until {
            // The link is idle: the past binds nothing.
            self.assignment.reset();
        }
        let contract = self.contracts.flow_of(&packet);
        let promise = contract.and_then(|contract| match self.contracts.flows[contract].service {
            Service::RealTime { deadline, .. } => Some((contract, deadline)),
            Service::BestEffort { .. } => None,
        });
        let known = self.flows.find(&packet.flow);
        if let Some((contract, deadline)) = promise
            && known.is_none_or(|(_, flow)| flow.unpromised == 0)
        {
            // A packet that finds no room was never there, for its policer either.
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

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        let best_effort = self.head.as_ref().map(|head| head.deadline);
        let real_time = self.real_time.first_rank();
        let best_effort_first = match (best_effort, real_time) {
            (Some(best_effort), Some(real_time)) => best_effort < real_time,
            (best_effort, _) => best_effort.is_some(),
        };
        let packet = if best_effort_first {
            let head = self.head.take()?;
            self.leave_best_effort(head.sender, &head.packet);
            if head.is_put_off && self.blocking == Blocking::RealTime {
                self.assignment.assign(now, head.packet.size);
            }
            self.choose_head(now);
            head.packet
        } else {
            let next = self.real_time.pop_first()?;
            self.lose_overtaken(next.flow, losses);
            self.leave_real_time(next.flow.flow, &next.packet);
            // If the head was overtaken, another takes its place.
            self.choose_head(now);
            next.packet
        };
        self.busy_until = now.max(self.busy_until) + self.contracts.link.transmission(packet.size);
        if self.backlog().packets == 0 && self.blocking == Blocking::Any {
            // Nothing that has a deadline waits, and whatever is being sent is allowed
            // for: the past binds nothing (`BE section 3.1`).
            self.assignment.reset();
        }
        Some(packet)
    }

    fn reconfigure(&mut self, _now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        self.excess = Excess::from_settings(settings);
        self.buffer = buffer;
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

#[cfg(test)]
mod tests;
