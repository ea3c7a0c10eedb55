//! Earliest deadline first, with best effort early among the promises.
//!
//! Real-time flows have contracts: each packet is on the wire within its flow's
//! deadline, as long as the flow keeps to its arrival curve. A policer at the
//! entrance ensures that, so a flow that sends too much harms no other. Excess
//! packets are dropped, or continue as best effort until a packet comes behind them
//! that keeps to the curve: it cannot wait for them, and they are lost. So excess
//! takes nothing from what was promised, whatever was sent before: a packet is real
//! time if it keeps to the curve together with the real-time packets before it. A
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
//! arrival. A real-time packet that finds excess of its own 5-tuple costs a look at
//! all best effort; such packets are no more than the curve allows.

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
    help: "what happens to real-time packets beyond their flow's arrival curve: 'demote' makes \
           them best effort until a packet that keeps to the curve comes, 'drop' loses them at once",
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
    /// They go on as best effort until a packet of their 5-tuple comes that keeps
    /// to the curve, and are lost then.
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
    real_time: RankedQueue<Time>,
    /// By finish tag, all but the head.
    best_effort: RankedQueue<Tag, Sender>,
    head: Option<Head>,
    assignment: Box<dyn Assignment>,
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

/// Where a best-effort packet belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sender {
    flow: FlowId,
    /// Whether it is of a real-time flow.
    is_promised: bool,
}

/// What is known of a 5-tuple with packets in the queue.
#[derive(Debug, Default)]
struct Flow {
    real_time: u32,
    /// Best-effort packets of real-time flows.
    excess: u32,
    /// Best-effort packets of others.
    unpromised: u32,
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
        flow.real_time += 1;
        flow.latest = flow.latest.max(deadline);
        self.real_time.insert(deadline, packet, id);
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
        *(if is_promised { &mut flow.excess } else { &mut flow.unpromised }) += 1;
        let share = (Tag::from(packet.size.0) << 32) / Tag::from(weight);
        // Behind its 5-tuple's packets in any case, with whatever contract they came.
        let before = last.as_deref().copied().unwrap_or(0).max(flow.tag).max(self.virtual_time);
        flow.tag = before + share;
        if let Some(last) = last {
            *last = flow.tag;
        }
        self.best_effort.insert(flow.tag, packet, Sender { flow: id, is_promised });
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
        let before = if state.real_time > 0 { state.latest } else { Time::ZERO };
        let (deadline, is_put_off) = (earliest.max(before), before > earliest);
        self.head = Some(Head { deadline, is_put_off, packet, sender });
    }

    /// The best-effort packet that would be served last.
    fn give_up_best_effort(&mut self) -> Option<(Packet, Sender)> {
        let last = self.best_effort.pop_last().map(|last| (last.packet, last.flow));
        last.or_else(|| self.head.take().map(|head| (head.packet, head.sender)))
    }

    /// Loses the excess of the 5-tuple that is in the way of one of its real-time
    /// packets.
    fn give_up_excess(&mut self, now: Time, flow: FlowId, losses: &mut Losses) {
        let sender = Sender { flow, is_promised: true };
        let mut lose = |packet: Packet| {
            self.flows.state(flow).excess -= 1;
            self.flows.leave(flow);
            self.levels[Self::BEST_EFFORT].backlog.remove(packet.size);
            losses.push(packet, LossReason::Excess);
        };
        if let Some(head) = self.head.take_if(|head| head.sender == sender) {
            lose(head.packet);
        }
        self.best_effort.take_flow(sender, lose);
        self.choose_head(now);
    }

    fn leave_real_time(&mut self, id: FlowId, packet: &Packet) {
        self.flows.state(id).real_time -= 1;
        self.flows.leave(id);
        self.levels[Self::REAL_TIME].backlog.remove(packet.size);
    }

    fn leave_best_effort(&mut self, Sender { flow: id, is_promised }: Sender, packet: &Packet) {
        let flow = self.flows.state(id);
        *(if is_promised { &mut flow.excess } else { &mut flow.unpromised }) -= 1;
        self.flows.leave(id);
        self.levels[Self::BEST_EFFORT].backlog.remove(packet.size);
    }
}

impl Discipline for Deadlines {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        if packet.size > self.contracts.largest_packet {
            return losses.push(packet, LossReason::Excess);
        }
        if self.backlog().packets == 0 && now >= self.busy_until {
            // The link is idle: the past binds nothing.
            self.assignment.reset();
        }
        let contract = self.contracts.flow_of(&packet);
        let promise = contract.and_then(|contract| match self.contracts.flows[contract].service {
            Service::RealTime { deadline, .. } => Some((contract, deadline)),
            Service::BestEffort { .. } => None,
        });
        let known = self.flows.find(&packet.flow);
        let excess = known.as_ref().and_then(|(id, flow)| (flow.excess > 0).then_some(*id));
        if let Some((contract, deadline)) = promise
            && known.is_none_or(|(_, flow)| flow.unpromised == 0)
        {
            // A packet that finds no room was never there, for its policer either.
            if !self.buffer.has_room(self.real_time.backlog(), packet.size) {
                return losses.push(packet, LossReason::Refused);
            }
            let policer = self.policers[contract].as_mut().expect("a promise has a policer");
            if policer.admit(now, packet.size.max(SMALLEST_PACKET)) {
                if let Some(flow) = excess {
                    self.give_up_excess(now, flow, losses);
                }
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
            self.leave_best_effort(head.sender, &head.packet);
            if head.is_put_off && self.assignment.blocking() == Blocking::RealTime {
                self.assignment.assign(now, head.packet.size);
            }
            self.choose_head(now);
            head.packet
        } else {
            let next = self.real_time.pop_first()?;
            self.leave_real_time(next.flow, &next.packet);
            next.packet
        };
        self.busy_until = now.max(self.busy_until) + self.contracts.link.transmission(packet.size);
        if self.backlog().packets == 0 && self.assignment.blocking() == Blocking::Any {
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
mod tests {
    use super::*;
    use crate::assignment::Bounded;
    use crate::discipline::trial::Trial;

    /// A byte takes a microsecond. Beside a largest packet that is in the way
    /// and what calls may send there is room for 18 kB of best effort in 20 ms:
    /// the deadline of w bytes is 1 ms + w us after they came.
    const FLOWS: &str = "link 8 Mbit/s; packets to 1000 B; \
        calls = class 1: 1000 B + 2 Mbit/s within 20 ms; \
        web = class 2: weight 2; mail = class 3: weight 1";

    const CALLS: u16 = 1;
    const WEB: u16 = 2;
    const MAIL: u16 = 3;
    const OTHER: u16 = 0;

    fn trial(excess: Excess, packets: u32) -> Trial<Deadlines> {
        let contracts: Contracts = FLOWS.parse().unwrap();
        let bounded = Bounded::new(Residual::new(&contracts).unwrap().effective());
        let buffer = Buffer::packets(packets);
        Trial::new(Deadlines::new(Arc::new(contracts), Box::new(bounded), excess, buffer, 1))
    }

    fn arrive(trial: &mut Trial<Deadlines>, class: u16, flow: char, sizes: &[u64]) {
        trial.class = class;
        trial.arrive_all(sizes.iter().map(|size| (flow, *size)));
    }

    /// Packets of real time and of best effort.
    fn queued(trial: &Trial<Deadlines>) -> [u32; 2] {
        [0, 1].map(|level| trial.discipline.levels()[level].backlog.packets)
    }

    #[test]
    fn the_earlier_deadline_goes_first_and_real_time_when_they_are_equal() {
        for (later, order) in [(17_999_999, [1, 0]), (18_000_000, [0, 1]), (18_000_001, [0, 1])] {
            let mut trial = trial(Excess::Demote, 10);
            arrive(&mut trial, CALLS, 'a', &[1_000]);
            trial.now += Span(later);
            arrive(&mut trial, OTHER, 'b', &[1_000]);
            assert_eq!(trial.drain(), order, "{later} ns later");
        }
    }

    #[test]
    fn best_effort_takes_what_the_promise_leaves_and_no_more() {
        let mut trial = trial(Excess::Demote, 30);
        arrive(&mut trial, CALLS, 'a', &[1_000]);
        arrive(&mut trial, OTHER, 'b', &[1_000; 20]);
        // With a largest packet before them, 18 packets and the call take 20 ms.
        assert_eq!(trial.drain(), (1..=18).chain([0, 19, 20]).collect::<Vec<_>>());
    }

    #[test]
    fn the_past_binds_until_the_queue_is_empty_and_no_longer() {
        let mut trial = trial(Excess::Demote, 30);
        arrive(&mut trial, OTHER, 'b', &[1_000; 19]);
        assert!((0..18).all(|number| trial.send() == Some(number)));
        // With the 18 before it the last one is due at 21.3 ms, the call at 20 ms.
        arrive(&mut trial, CALLS, 'a', &[500]);
        assert_eq!(trial.drain(), [19, 18]);
        // Now one is due 2 ms after it came.
        arrive(&mut trial, CALLS, 'a', &[500]);
        arrive(&mut trial, OTHER, 'b', &[1_000]);
        assert_eq!(trial.drain(), [21, 20]);
    }

    #[test]
    fn best_effort_is_shared_by_weight() {
        let mut trial = trial(Excess::Demote, 20);
        // Tags 500, which is the time from then on, 1000, 1500, 2000, 2500.
        arrive(&mut trial, WEB, 'a', &[1_000; 5]);
        // Tags 1500, 2500: behind those with the same.
        arrive(&mut trial, MAIL, 'b', &[1_000; 2]);
        assert_eq!(trial.drain(), [0, 1, 2, 5, 3, 4, 6]);
    }

    #[test]
    fn a_contract_has_one_share_and_without_one_every_5_tuple_has() {
        // Tags 1000, 2000, 3000, or 2000 again; and 2000.
        for (class, order) in [(MAIL, [0, 1, 3, 2]), (OTHER, [0, 1, 2, 3])] {
            let mut trial = trial(Excess::Demote, 10);
            trial.class = class;
            trial.arrive_all(['a', 'b', 'c'].map(|flow| (flow, 1_000)));
            arrive(&mut trial, OTHER, 'd', &[1_000]);
            assert_eq!(trial.drain(), order);
        }
    }

    #[test]
    fn excess_goes_on_as_best_effort_behind_its_5_tuple() {
        let mut trial = trial(Excess::Demote, 20);
        arrive(&mut trial, CALLS, 'a', &[600, 600, 500]);
        assert_eq!(queued(&trial), [1, 2]);
        // Another call may use the 400 B that are left, and the excess of the first
        // is nothing to it.
        arrive(&mut trial, CALLS, 'b', &[400]);
        assert_eq!(queued(&trial), [2, 2]);
        // The second could go at once, but for the first, which is due at 20 ms.
        assert_eq!(trial.drain(), [0, 3, 1, 2]);
        assert_eq!(trial.lost(), []);
    }

    #[test]
    fn a_packet_that_keeps_to_its_curve_is_real_time_whatever_came_before() {
        let mut trial = trial(Excess::Demote, 50);
        // The excess is the head, and two packets behind it with the other flow's.
        arrive(&mut trial, CALLS, 'a', &[1_000; 4]);
        arrive(&mut trial, OTHER, 'b', &[900; 2]);
        assert_eq!(queued(&trial), [1, 5]);
        // 250 B are left 1 ms later.
        trial.now += Span::millis(1);
        arrive(&mut trial, CALLS, 'a', &[251, 250]);
        assert_eq!(queued(&trial), [2, 2]);
        let lost = [1, 2, 3, 6].map(|number| (number, LossReason::Excess));
        assert_eq!(trial.lost(), lost);
        assert_eq!(trial.discipline.flows_tracked(), 2);
        assert_eq!(trial.drain(), [4, 5, 0, 7]);
    }

    #[test]
    fn behind_a_packet_of_its_5_tuple_without_a_promise_none_is_kept() {
        let mut trial = trial(Excess::Demote, 20);
        arrive(&mut trial, OTHER, 'a', &[1_000]);
        arrive(&mut trial, CALLS, 'a', &[1_000; 2]);
        assert_eq!(queued(&trial), [0, 3]);
        assert_eq!(trial.send(), Some(0));
        // It is now, and was not used up.
        arrive(&mut trial, CALLS, 'a', &[1_000]);
        assert_eq!(queued(&trial), [1, 0]);
        assert_eq!(trial.lost(), [1, 2].map(|number| (number, LossReason::Excess)));
    }

    #[test]
    fn excess_is_lost_where_it_is_to_be_and_uses_up_nothing() {
        let mut trial = trial(Excess::Drop, 20);
        arrive(&mut trial, CALLS, 'a', &[600, 401, 400, 1]);
        assert_eq!(trial.lost(), [(1, LossReason::Excess), (3, LossReason::Excess)]);
        assert_eq!(queued(&trial), [2, 0]);
        assert_eq!(trial.drain(), [0, 2]);
        // Behind best effort of its 5-tuple it is not held to the promise.
        arrive(&mut trial, OTHER, 'b', &[1_000]);
        arrive(&mut trial, CALLS, 'b', &[1_000]);
        assert_eq!(queued(&trial), [0, 2]);
        assert_eq!(trial.lost(), []);
    }

    #[test]
    fn a_full_buffer_gives_up_best_effort_for_real_time_and_refuses_it() {
        let mut trial = trial(Excess::Demote, 3);
        // The head, tags 1400 and 1300.
        arrive(&mut trial, OTHER, 'a', &[900]);
        arrive(&mut trial, OTHER, 'b', &[500]);
        arrive(&mut trial, OTHER, 'c', &[400]);
        arrive(&mut trial, OTHER, 'd', &[100]);
        assert_eq!(trial.lost(), [(3, LossReason::Refused)]);
        arrive(&mut trial, CALLS, 'e', &[100]);
        assert_eq!(trial.lost(), [(1, LossReason::PushedOut)]);
        // The head is the last to go.
        arrive(&mut trial, CALLS, 'e', &[100; 2]);
        assert_eq!(trial.lost(), [(2, LossReason::PushedOut), (0, LossReason::PushedOut)]);
        assert_eq!(trial.discipline.flows_tracked(), 1);
        assert_eq!(trial.drain(), [4, 5, 6]);
    }

    #[test]
    fn a_full_buffer_of_real_time_refuses_more_and_does_not_count_it() {
        let mut trial = trial(Excess::Drop, 2);
        arrive(&mut trial, CALLS, 'a', &[100, 100, 800]);
        assert_eq!(trial.lost(), [(2, LossReason::Refused)]);
        assert_eq!(trial.send(), Some(0));
        arrive(&mut trial, CALLS, 'a', &[800]);
        assert_eq!(queued(&trial), [2, 0]);
    }

    #[test]
    fn a_packet_larger_than_any_promised_is_lost_whatever_its_flow() {
        let mut trial = trial(Excess::Demote, 10);
        arrive(&mut trial, OTHER, 'a', &[1_001]);
        arrive(&mut trial, CALLS, 'b', &[1_001, 1_000]);
        assert_eq!(trial.lost(), [(0, LossReason::Excess), (1, LossReason::Excess)]);
        assert_eq!(queued(&trial), [1, 0]);
    }

    #[test]
    fn without_deadlines_best_effort_waits_until_nothing_else_does() {
        let mut trial = trial(Excess::Demote, 10);
        trial.discipline.assignment = Box::new(WhenIdle);
        arrive(&mut trial, OTHER, 'a', &[1_000; 2]);
        arrive(&mut trial, CALLS, 'b', &[500; 2]);
        assert_eq!(trial.drain(), [2, 3, 0, 1]);
    }
}
