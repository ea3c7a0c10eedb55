//! Tide: fair queueing in which a flow that begins has a head start, of a bounded size.
//!
//! One parameter, the *credit* C, spans what lies between fair queueing (C = 0) and
//! least attained service (C without bound). What users wait for are short transfers
//! and calls; they are over, or have paused, before they have had C bytes, and so go
//! before all bulk. What is longer than that has the share that fair queueing gives.
//!
//! **Tags.** Every backlogged flow has a tag, in bytes of service; each packet moves its
//! flow's tag by its size. A flow that has reached *virtual time* v is a *payer*, and of
//! payers the one with the least tag is served; v is the greatest tag that has been
//! served in turn. That is start-time fair queueing (`Goyal 1997`), but for where a flow
//! begins: at v - C. A flow whose tag is before v is *in credit* and goes before all payers.
//!
//! **Order within the credit.** The flow goes first that has had least (`LAS section 7`)
//! together with what it has waiting, which it is going to have. So the end of a transfer,
//! and a packet of a call, pass a window that has just come, and do not share with it: by
//! the size that can be seen, as shortest remaining time would have it. What waits counts
//! up to a window of ten packets: a flow that is passed by others without end would not
//! see its turn otherwise.
//!
//! **Memory.** A flow that has nothing queued is remembered while its tag is after v - C,
//! for from then on it is as a new one. Hence no flow gains by being forgotten, and memory
//! lasts for as long as it takes the others to get C bytes each, be that a millisecond or
//! an hour. To forget a packet sooner would save entries, but a sender whose packets come
//! one at a time would be new with each; a discipline that forgets a flow with its last
//! packet, like EFD, collapses when many small bursts come. The tag of an idle flow is let
//! off 3.8 kB in a second, so that a flow that has paused, or that is slower than that, is
//! new again. When nothing is queued, everything is forgotten: an idle link owes nobody
//! anything.
//!
//! **Toll.** While payers wait, one byte in 9 goes to them: when flows in credit have had
//! 8 C more than they have paid for, the payer with the least tag is served. What it gets
//! so is a loan: its tag moves on, and virtual time does not. Who has been lent 8 C takes
//! virtual time along, which takes where flows begin no further than a packet beyond those
//! that wait: such a payer gets what new flows of a packet get each.
//!
//! Also, while n flows are backlogged, virtual time moves on by 1 / 8n of what flows in
//! credit get. Flows that use up their credit are faster than that. But where new ones come
//! so fast that those in credit that are not new would wait for ever, it takes the beginning
//! of new flows beyond them. So every flow has an eighth of an equal share in the long run,
//! and nobody is locked out, whoever comes.
//!
//! **Losses.** Payers go through CoDel (`RFC 8289`), with marks, but their queues are left
//! alone up to 10 packets. A full buffer takes the packet at the head of the queue whose
//! tail would be served last, from those that have two packets or more. If there is no
//! such queue, the arriving packet is refused: it is the newest of all.
//!
//! **Hosts.** Where `hosts` is on, shares are fair between hosts first (`tide/hosts.rs`).
//!
//! **Bounds.** With L the largest packet, s = 1 kiB the length of a slot, and R the rate:
//!
//! - Entries are never more than the packets that the buffer holds.
//! - Two payers that are backlogged get the same in every interval, but for L and s each
//!   (without s the bound of `Goyal 1997`), of the toll too.
//! - Payers that wait get at least (B - 8 C - L) / 9 of any B bytes sent, as long as none
//!   of them has been lent 8 C.
//! - While flows in credit wait and send B bytes, payers send at most B / 8 + C + 2 L,
//!   however many they are. Another flow in credit goes first only until it has had what
//!   the one that waits has had, and a window of ten packets.
//! - A packet costs O(1): two searches of a bitmap of two levels (`calendar.rs`), and one
//!   look at an idle flow. The exceptions are those of the environment: CoDel may drop many
//!   packets in a call, and a packet may need the room of many, each of which joined once.
//!
//! Sums of bytes neither end nor round: tags wrap around (`mark.rs`), and are kept within
//! four megabytes of each other, because a packet counts as one of 512 KiB at most.

use super::codel_law::{CodelLaw, CodelParameters};
use super::flow_queues::{FlowQueues, Rotation};
use super::form::Form;
use super::hosts::Sides;
use super::{Backlog, Discipline, LossReason, Losses};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::flow_table::{FlowId, FlowTable};
use crate::packet::Packet;
use crate::setting::{Kind, Parameter, Settings};
use crate::units::{Amount, Bytes, Span, Time};

mod calendar;
mod hosts;
mod mark;

use calendar::Calendar;
use hosts::Hosts;
use mark::{Mark, SLOT};

/// The registry's entry for [`Tide`].
pub const ENTRY: Entry = Entry {
    name: "tide",
    summary: "fair queueing in which a flow that begins has a head start of bounded size",
    source: "Tidegate; Goyal 1997, EFD, LAS, RFC 8289",
    linux: None,
    drops: Drops::Early,
    parameters: &[CREDIT, HOSTS],
    fixed: &[HOSTS],
    build: |settings, place, seed| {
        let tide = Tide::new(settings.bytes(CREDIT.name), place, seed);
        Box::new(if settings.switch(HOSTS.name) { tide.fair_to_hosts(seed) } else { tide })
    },
};

/// 20 full packets: the first two rounds of a sender that begins with 10
/// (`RFC 6928`), that is most pages' objects, and 24 ms at 10 Mbit/s, which is as long
/// as one new flow can hold up another.
const CREDIT: Parameter = Parameter {
    name: "credit",
    help: "what a flow that begins may send before it has to share",
    kind: Kind::Bytes { least: Bytes(0), most: MOST_CREDIT },
    default: "30280 B",
};

const HOSTS: Parameter = Parameter {
    name: "hosts",
    help: "whether shares are fair between hosts, and then between the flows of each",
    kind: Kind::Switch,
    default: "off",
};

/// So that all tags lie within one round of the calendars.
const MOST_CREDIT: Bytes = Bytes(300_000);

/// A full packet of Ethernet, with its header.
const PACKET: Bytes = Bytes(1_514);

/// A packet counts for no more than this in tags. No packet of a network is so large, and
/// what a super-segment of an offload counts is exact.
const MOST_COST: Bytes = Bytes(1 << 19);

/// Flows in credit pay one byte for so many to those that have used theirs up. The
/// rest of the rate is enough for the first C bytes of all transfers up to a load of
/// about 120 per cent; a smaller part for payers makes downloads stall without
/// making short transfers faster.
const TOLL: u64 = 8;

/// How many credits a payer may be lent. It waits for them to be paid back as soon as
/// others have become payers, so many make stalls, and few take the toll away early.
const LOAN: u64 = 8;

/// Tags are after virtual time by no more than loans and a packet; tails count up to one
/// such packet more.
const FARTHEST: Bytes = Bytes(LOAN * MOST_CREDIT.0 + 2 * MOST_COST.0);

/// Turns and tails are before virtual time by no more than this: a slot before the turn that
/// is next, or the window that counted until it was lost.
const BEHIND: Bytes = Bytes(MOST_CREDIT.0 + PACKET.0 + WINDOW.0 + 2 * SLOT.0);

/// An idle flow's tag is let off a byte in this time: 3.8 kB/s, less than any
/// transfer and about what a keep-alive or a game sends. Ten times as much would make a flow
/// new that sends a whole credit each second. A power of two, for a shift.
const RELIEF: Span = Span(1 << 18);

/// The initial window of most senders (`RFC 6928`). What waits counts up to it: more says
/// little about how much is to come, and nobody can be made to wait for longer by it. CoDel
/// leaves as much alone: the bulk flow that has less queued would lose rate and gain nobody
/// time, since others pass it anyway.
const WINDOW: Bytes = Bytes(10 * PACKET.0);

/// `RFC 8289 section 4.4` and `section 4.3`.
const TARGET: Span = Span::millis(5);
const INTERVAL: Span = Span::millis(100);

/// Flow queues in the order of their tags.
#[derive(Debug)]
pub struct Tide {
    credit: Bytes,
    /// CoDel leaves queues of up to this alone.
    floor: Bytes,
    codel: CodelParameters,
    buffer: Buffer,
    flows: FlowTable<Flow>,
    /// By the slot of the flow's entry, as all that follow.
    queues: FlowQueues<()>,
    /// Backlogged flows in the order in which they have their turns.
    turns: Calendar,
    /// Flows with two packets or more, by the tag that they will have sent all with. Where
    /// shares are fair between hosts, all that are backlogged.
    tails: Calendar,
    /// Flows that are remembered, in the order in which they are looked at.
    idle: Rotation,
    virtual_time: Mark,
    /// What flows in credit have had and not paid for, while payers wait.
    owed: Bytes,
    /// What flows in credit have had by which virtual time has not moved on yet.
    passed: Bytes,
    /// Where shares are fair between hosts.
    hosts: Option<Hosts>,
}

#[derive(Debug)]
struct Flow {
    tag: Mark,
    /// Where its turn is, while it is backlogged.
    rank: Mark,
    law: CodelLaw,
    /// Since when nothing has been queued.
    idle_since: Option<Time>,
    /// Its hosts, and whether it counts as one of their payers, where these are counted.
    sides: Sides,
    pays: bool,
}

impl Flow {
    fn new(tag: Mark) -> Flow {
        let law = CodelLaw::default();
        Flow { tag, rank: tag, law, idle_since: None, sides: [None; 2], pays: false }
    }
}

impl Tide {
    /// Empty queues, with what a flow that begins may send before it has to share: at
    /// most 300 kB. The hash of flows depends on `seed`.
    #[must_use]
    pub fn new(credit: Bytes, place: Place, seed: u64) -> Tide {
        Tide {
            credit: credit.min(MOST_CREDIT),
            floor: WINDOW,
            codel: codel(place),
            buffer: place.buffer,
            flows: FlowTable::new(seed),
            queues: FlowQueues::new(),
            turns: Calendar::new(),
            tails: Calendar::new(),
            idle: Rotation::default(),
            virtual_time: Mark::START,
            owed: Bytes::ZERO,
            passed: Bytes::ZERO,
            hosts: None,
        }
    }

    /// The same with shares that are fair between hosts first.
    #[must_use]
    pub fn fair_to_hosts(self, seed: u64) -> Tide {
        Tide { hosts: Some(Hosts::new(seed)), ..self }
    }

    /// The same with a CoDel that leaves longer or shorter queues alone, to find out what
    /// that does.
    #[must_use]
    pub fn with_floor(self, floor: Bytes) -> Tide {
        let codel = CodelParameters { mtu: floor, ..self.codel };
        Tide { floor, codel, ..self }
    }

    /// The number of entries from which on idle flows have to go.
    fn capacity(&self) -> usize {
        match self.buffer.amount() {
            Amount::Packets(count) => count as usize,
            Amount::Bytes(size) => usize::try_from(size.0 / PACKET.0).unwrap_or(usize::MAX).max(1),
        }
    }

    fn flow(&mut self, queue: u32) -> &mut Flow {
        self.flows.state(FlowId::at_slot(queue))
    }

    fn is_in_credit(&self, tag: Mark) -> bool {
        tag.is_slots_before(self.virtual_time)
    }

    /// The queue of a packet's flow, which is idle no longer.
    fn admit(&mut self, now: Time, packet: &Packet) -> u32 {
        let begins = self.virtual_time.before(self.credit);
        let (id, flow) = self.flows.entry(&packet.flow, || Flow::new(begins));
        let queue = id.slot();
        if flow.idle_since.is_some() {
            self.idle.remove(queue);
            let standing = self.standing(queue, now);
            let flow = self.flow(queue);
            match standing {
                Some(tag) => (flow.tag, flow.idle_since) = (tag, None),
                None => *flow = Flow { sides: flow.sides, ..Flow::new(begins) },
            }
        } else if self.flows.len() > self.capacity()
            && let Some(longest) = self.idle.first()
        {
            self.forget(longest);
        }
        if self.hosts.is_some() {
            self.charge_hosts(queue, packet, begins);
        }
        queue
    }

    /// What has come of a flow moves the tags of its hosts; it begins no earlier than they
    /// stand.
    fn charge_hosts(&mut self, queue: u32, packet: &Packet, begins: Mark) {
        let farthest = self.virtual_time.after(self.credit * LOAN);
        let Tide { hosts: Some(hosts), flows, queues, .. } = self else { return };
        let flow = flows.state(FlowId::at_slot(queue));
        if flow.sides == [None; 2] {
            flow.sides = hosts.join(packet.flow, begins);
        }
        if queues.is_empty(queue) {
            hosts.begin(flow.sides);
            flow.tag = hosts.floor(flow.sides, flow.tag);
        }
        hosts.charge(flow.sides, packet.size.min(MOST_COST), begins, farthest);
    }

    /// The tag of an idle flow, less what it has been let off; nothing if it could be
    /// forgotten.
    fn standing(&mut self, queue: u32, now: Time) -> Option<Mark> {
        let start = self.virtual_time.before(self.credit);
        let flow = self.flow(queue);
        let idle = flow.idle_since.map_or(Span::ZERO, |since| now.since(since));
        let had = flow.tag.ahead_of(start) - Bytes(idle.0 / RELIEF.0);
        (had > Bytes::ZERO).then(|| start.after(had))
    }

    /// Looks at one idle flow, for each packet that has made an entry.
    fn look_at_idle(&mut self, now: Time) {
        let Some(queue) = self.idle.first() else { return };
        if self.flows.len() > self.capacity() || self.standing(queue, now).is_none() {
            self.forget(queue);
        } else {
            self.idle.rotate();
        }
    }

    fn forget(&mut self, queue: u32) {
        self.idle.remove(queue);
        self.remove(queue);
    }

    fn remove(&mut self, queue: u32) {
        let flow = self.flows.remove(FlowId::at_slot(queue));
        if let Some(hosts) = &mut self.hosts {
            hosts.leave(flow.sides);
        }
    }

    /// The last packet of a flow has left.
    fn emptied(&mut self, queue: u32, now: Time) {
        self.turns.remove(queue);
        self.tails.remove(queue);
        let flow = self.flows.state(FlowId::at_slot(queue));
        flow.idle_since = Some(now);
        if let Some(hosts) = &mut self.hosts {
            hosts.end(flow.sides);
            if std::mem::take(&mut flow.pays) {
                hosts.pays(flow.sides, false);
            }
        }
        if flow.tag.ahead_of(self.virtual_time.before(self.credit)) > Bytes::ZERO {
            self.idle.push_back(queue);
        } else {
            self.remove(queue);
        }
    }

    /// Puts a backlogged flow where its turn and its tail belong; it keeps its places if it
    /// is there already.
    fn place(&mut self, queue: u32) {
        let (packets, bytes) = self.queues.length_of(queue);
        // More than any tag is ahead of another, if that is what it is.
        let waiting = Bytes(u64::try_from(bytes).unwrap_or(u64::MAX)).min(BEHIND + FARTHEST);
        let flow = self.flows.state(FlowId::at_slot(queue));
        let is_in_credit = flow.tag.is_slots_before(self.virtual_time);
        flow.rank = flow.tag;
        if is_in_credit {
            let last = self.virtual_time.start_of_slot().before(Bytes(1));
            flow.rank = flow.tag.after(waiting.min(WINDOW)).earliest(last);
        }
        self.turns.keep_in(queue, flow.rank.slot());
        let mut share = 1;
        if let Some(hosts) = &mut self.hosts {
            if flow.pays == is_in_credit {
                flow.pays = !is_in_credit;
                hosts.pays(flow.sides, flow.pays);
            }
            share = hosts.payers(flow.sides);
        } else if packets < 2 {
            return self.tails.remove(queue);
        }
        let tail = flow.tag.after(waiting * share).earliest(self.virtual_time.after(FARTHEST));
        self.tails.keep_in(queue, tail.slot());
    }

    /// Puts a payer behind those that are where it is now. Being served moves the head of a
    /// queue and not its tail; but one packet is no queue, drops make it shorter, and what is
    /// very large does not count in full.
    fn place_payer(&mut self, queue: u32, sent: &Packet, lost: bool) {
        let flow = self.flows.state(FlowId::at_slot(queue));
        flow.rank = flow.tag;
        self.turns.insert(queue, flow.rank.slot());
        let (packets, bytes) = self.queues.length_of(queue);
        let is_large = sent.size > MOST_COST || bytes > MOST_COST.0.into();
        if packets < 2 || lost || is_large || self.hosts.is_some() {
            self.place(queue);
        }
    }

    /// Makes room for what has just come, into `queue`.
    fn push_out(
        &mut self,
        now: Time,
        room: Buffer,
        (queue, arriving): (u32, &Packet),
        losses: &mut Losses,
    ) {
        while !room.holds(self.queues.backlog()) {
            if let Some(last) = self.tails.last_from(self.virtual_time.before(BEHIND).slot()) {
                let victim = self.queues.pop_first(last).expect("what has a tail is backlogged");
                losses.push_out(victim, arriving);
                if self.queues.is_empty(last) {
                    self.emptied(last, now);
                } else {
                    self.place(last);
                }
            } else {
                let newest = self.queues.pop_last(queue).expect("it has just come");
                losses.push_out(newest, arriving);
                self.emptied(queue, now);
            }
        }
    }

    /// The payer with the least tag.
    fn first_payer(&mut self) -> Option<u32> {
        let found = self.turns.first_from(self.virtual_time.slot())?;
        let tag = self.flow(found).tag;
        (!self.is_in_credit(tag)).then_some(found)
    }

    /// Whether the toll goes to this payer now, while a flow in credit has its turn at `rank`.
    /// Who has been lent much has to take virtual time along.
    fn is_due(&mut self, payer: u32, rank: Mark) -> bool {
        if self.owed < self.credit * TOLL {
            return false;
        }
        let loan = self.credit * LOAN;
        let Flow { tag, sides, .. } = *self.flow(payer);
        if tag.ahead_of(self.virtual_time) > loan {
            let share = self.hosts.as_mut().map_or(1, |hosts| hosts.payers(sides));
            self.move_on(tag.before(loan), rank.after(PACKET * (share - 1)));
        }
        tag.ahead_of(self.virtual_time) <= loan
    }

    /// Moves virtual time on without a payer in turn, but with it the beginning of new
    /// flows no further than a packet beyond `rank`, where the turn is.
    fn move_on(&mut self, to: Mark, rank: Mark) {
        let reach = rank.after(self.credit + PACKET);
        self.virtual_time = self.virtual_time.latest(to.earliest(reach));
    }

    /// Takes a packet from a flow in credit, which has its turn.
    fn send_on_credit(&mut self, now: Time, queue: u32, payer: Option<u32>) -> Packet {
        let backlogged = (self.flows.len() - self.idle.len()) as u64;
        let packet = self.queues.pop_first(queue).expect("flows in the calendar are backlogged");
        let cost = packet.size.min(MOST_COST);
        self.owed = if payer.is_some() { self.owed + cost } else { Bytes::ZERO };
        // What is left of the division counts next time.
        let part = TOLL * backlogged;
        self.passed += cost;
        let share = self.passed / part;
        self.passed -= share * part;
        let mut to = self.virtual_time.after(share);
        if let Some(payer) = payer {
            to = to.earliest(self.flow(payer).tag);
        }
        let rank = self.flow(queue).rank;
        self.move_on(to, rank);
        self.count(now, queue, &packet, false);
        packet
    }

    /// Takes a packet from a payer, after what CoDel drops.
    fn send_paid(&mut self, now: Time, queue: u32, losses: &mut Losses) -> Packet {
        let before = losses.as_slice().len();
        let Tide { flows, queues, codel, .. } = self;
        let law = &mut flows.state(FlowId::at_slot(queue)).law;
        let packet = law.dequeue(codel, now, losses, || {
            let packet = queues.pop_first(queue)?;
            Some((packet, queues.bytes_of(queue)))
        });
        let packet = packet.expect("CoDel drops no packet behind which there is none");
        self.owed -= packet.size.min(MOST_COST) * TOLL;
        self.count(now, queue, &packet, losses.as_slice().len() > before);
        packet
    }

    /// Moves the tag of a flow by a packet. A payer shares with those of its host.
    fn moved_by(&mut self, queue: u32, packet: &Packet) -> Mark {
        let cost = packet.size.min(MOST_COST);
        let flow = self.flows.state(FlowId::at_slot(queue));
        if let Some(hosts) = &mut self.hosts {
            flow.tag = if flow.pays {
                flow.tag.after((cost * hosts.payers(flow.sides)).min(MOST_COST))
            } else {
                hosts.floor(flow.sides, flow.tag.after(cost))
            };
        } else {
            flow.tag = flow.tag.after(cost);
        }
        flow.tag
    }

    /// Counts a packet, and puts its flow where it belongs; `lost` says whether others were
    /// dropped from the same queue.
    fn count(&mut self, now: Time, queue: u32, packet: &Packet, lost: bool) {
        let tag = self.moved_by(queue, packet);
        if !self.queues.is_empty(queue) {
            if self.is_in_credit(tag) {
                return self.place(queue);
            }
            return self.place_payer(queue, packet, lost);
        }
        if self.queues.backlog().packets == 0 {
            // Every tag is now before where flows begin.
            self.virtual_time = self.virtual_time.after(FARTHEST + MOST_CREDIT).start_of_slot();
            (self.owed, self.passed) = (Bytes::ZERO, Bytes::ZERO);
        }
        self.emptied(queue, now);
    }
}

/// CoDel for a queue in this place.
fn codel(place: Place) -> CodelParameters {
    let parameters = CodelParameters {
        form: Form::Published,
        target: TARGET,
        interval: INTERVAL,
        mtu: PACKET,
        ecn: true,
        ce_threshold: Span::ZERO,
    };
    let parameters = place.rate.map_or(parameters, |rate| parameters.at_rate(rate));
    CodelParameters { mtu: WINDOW, ..parameters }
}

impl Discipline for Tide {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        let before = self.queues.backlog();
        let has_room = self.buffer.has_room(before, packet.size);
        if !has_room && !self.buffer.has_room(Backlog::default(), packet.size) {
            return losses.push(packet, LossReason::Refused);
        }
        let queue = self.admit(now, &packet);
        self.queues.push(queue, packet);
        self.place(queue);
        if !has_room {
            self.push_out(now, self.buffer.stretched_to(before), (queue, &packet), losses);
        }
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        self.look_at_idle(now);
        let first = self.turns.first_from(self.virtual_time.before(BEHIND).slot())?;
        let Flow { tag, rank, .. } = *self.flow(first);
        let is_in_turn = !self.is_in_credit(tag);
        let payer = if is_in_turn { Some(first) } else { self.first_payer() };
        if is_in_turn {
            self.virtual_time = self.virtual_time.latest(tag);
        }
        match payer {
            Some(payer) if is_in_turn || self.is_due(payer, rank) => {
                Some(self.send_paid(now, payer, losses))
            }
            _ => Some(self.send_on_credit(now, first, payer)),
        }
    }

    fn reconfigure(&mut self, _now: Time, settings: &Settings, place: Place) {
        self.credit = settings.bytes(CREDIT.name);
        self.codel = CodelParameters { mtu: self.floor, ..codel(place) };
        self.buffer = place.buffer;
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn flows_tracked(&self) -> usize {
        self.flows.len()
    }
}

#[cfg(test)]
mod tests;
