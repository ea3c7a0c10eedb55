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
use crate::entry::{Drops, Entry, Medium, Place};
use crate::flow_table::FlowTable;
use crate::packet::Packet;
use crate::setting::{Kind, Parameter, Settings};
use crate::units::{Bytes, Span, Time};

mod calendar;
mod hosts;
mod mark;
mod memory;

use calendar::Calendar;
use hosts::Hosts;
use mark::{Mark, SLOT, Slot};

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

/// The initial window of most senders (`RFC 6928`). What waits counts up to it: more says
/// little about how much is to come, and nobody can be made to wait for longer by it. CoDel
/// leaves as much alone: the bulk flow that has less queued would lose rate and gain nobody
/// time, since others pass it anyway.
const WINDOW: Bytes = Bytes(10 * PACKET.0);

/// `RFC 8289 section 4.4` and `section 4.3`.
const TARGET: Span = Span::millis(5);

/// In front of a radio, as in Linux's mac80211. A station gets its packets many at a time,
/// when it is its turn; who has no more queued than a turn takes leaves the air to others.
const RADIO_TARGET: Span = Span::millis(20);
const INTERVAL: Span = Span::millis(100);

/// Flow queues in the order of their tags.
#[derive(Debug)]
pub struct Tide {
    credit: Bytes,
    /// CoDel leaves queues of up to this alone.
    floor: Bytes,
    /// Who has had no more than this is forgotten once nothing of it is queued.
    negligible: Bytes,
    /// Whether a full buffer takes from whoever has most queued.
    fattest_loses: bool,
    /// Flows in credit pay one byte for so many.
    toll: u64,
    codel: CodelParameters,
    buffer: Buffer,
    /// Which slots flows have.
    flows: FlowTable<()>,
    /// By the slot of the flow's entry, as all that follow. What is known of a flow lies
    /// beside the ends of its queue: a packet needs both.
    queues: FlowQueues<Flow>,
    /// Backlogged flows in the order in which they have their turns.
    turns: Calendar,
    /// Flows with two packets or more, by the tag that they will have sent all with. Where
    /// shares are fair between hosts, all that are backlogged.
    tails: Calendar,
    /// How many of the backlogged flows are payers.
    payers: u32,
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
    /// Since when nothing has been queued, while that is so.
    idle_since: Time,
    /// Whether it counts as a payer.
    pays: bool,
    /// Its hosts, where these count.
    sides: Sides,
}

impl Default for Flow {
    /// Of a slot that has had no flow yet.
    fn default() -> Flow {
        Flow::new(Mark::START)
    }
}

impl Flow {
    fn new(tag: Mark) -> Flow {
        let law = CodelLaw::default();
        Flow { tag, rank: tag, law, idle_since: Time::ZERO, sides: [None; 2], pays: false }
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
            negligible: Bytes::ZERO,
            fattest_loses: false,
            toll: TOLL,
            codel: codel(place),
            buffer: place.buffer,
            flows: FlowTable::new(seed),
            queues: FlowQueues::new(),
            turns: Calendar::new(),
            tails: Calendar::new(),
            payers: 0,
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

    /// The same, but flows are forgotten with their last packet, to find out what that does.
    #[must_use]
    pub fn without_memory(self) -> Tide {
        Tide { negligible: Bytes(u64::MAX), ..self }
    }

    /// The same, but a full buffer takes the head of whoever has the most bytes queued, as
    /// under FQ-CoDel, to find out what that does.
    #[must_use]
    pub fn with_losses_of_the_fattest(self) -> Tide {
        Tide { fattest_loses: true, ..self }
    }

    /// The same, but flows in credit leave payers nothing, and virtual time stands while they
    /// have all, to find out what that does.
    #[must_use]
    pub fn without_toll(self) -> Tide {
        // Of the default credit that is 30 GB before the first byte is due.
        Tide { toll: 1_000_000, ..self }
    }

    /// What is known of a flow that is remembered.
    fn flow(&mut self, queue: u32) -> &mut Flow {
        self.queues.state_and_length(queue).0
    }

    fn is_in_credit(&self, tag: Mark) -> bool {
        tag.is_slots_before(self.virtual_time)
    }

    /// What has come of a flow moves the tags of its hosts; it begins no earlier than they
    /// stand.
    fn charge_hosts(&mut self, queue: u32, packet: &Packet) {
        let begins = self.virtual_time.before(self.credit);
        let farthest = self.virtual_time.after(self.credit * LOAN);
        let Tide { hosts: Some(hosts), queues, .. } = self else { return };
        let (flow, packets, _) = queues.state_and_length(queue);
        if flow.sides == [None; 2] {
            flow.sides = hosts.join(packet.flow, begins);
        }
        if packets == 0 {
            hosts.begin(flow.sides);
            flow.tag = hosts.floor(flow.sides, flow.tag);
        }
        hosts.charge(flow.sides, packet.size.min(MOST_COST), begins, farthest);
    }

    /// Puts a backlogged flow where its turn and its tail belong; it keeps its places if it
    /// is there already.
    fn place(&mut self, queue: u32) {
        let (flow, packets, bytes) = self.queues.state_and_length(queue);
        flow.rank = flow.tag;
        let mut begins_to_pay = false;
        if flow.tag.is_slots_before(self.virtual_time) {
            let last = self.virtual_time.start_of_slot().before(Bytes(1));
            flow.rank = flow.tag.after(at_most(WINDOW, bytes)).earliest(last);
        } else {
            begins_to_pay = !std::mem::replace(&mut flow.pays, true);
            self.payers += u32::from(begins_to_pay);
        }
        self.turns.keep_in(queue, flow.rank.slot());
        let mut share = 1;
        if let Some(hosts) = &mut self.hosts {
            if begins_to_pay {
                hosts.pays(flow.sides, true);
            }
            share = hosts.payers(flow.sides);
        } else if packets < 2 {
            return self.tails.remove(queue);
        }
        self.tails.keep_in(queue, tail(flow.tag, bytes, share, self.virtual_time));
    }

    /// The same for a payer that has its turn already, where hosts do not count.
    fn place_tail(&mut self, queue: u32) {
        let (flow, packets, bytes) = self.queues.state_and_length(queue);
        if packets < 2 {
            return self.tails.remove(queue);
        }
        self.tails.keep_in(queue, tail(flow.tag, bytes, 1, self.virtual_time));
    }

    /// Puts a payer behind those that are where it is now. Being served moves the head of a
    /// queue and not its tail; but one packet is no queue, drops make it shorter, and what is
    /// very large does not count in full.
    fn place_payer(&mut self, queue: u32, cost: Bytes, is_late: bool) {
        let (flow, packets, bytes) = self.queues.state_and_length(queue);
        flow.rank = flow.tag;
        self.turns.insert(queue, flow.rank.slot());
        let is_large = cost == MOST_COST || bytes > MOST_COST.0.into();
        if self.hosts.is_some() {
            self.place(queue);
        } else if packets < 2 || is_late || is_large {
            self.place_tail(queue);
        }
    }

    /// Makes room for what has just come, into `queue`.
    #[cold]
    fn push_out(
        &mut self,
        now: Time,
        room: Buffer,
        (queue, arriving): (u32, &Packet),
        losses: &mut Losses,
    ) {
        while !room.holds(self.queues.backlog()) {
            let last = if self.fattest_loses {
                self.queues.fattest()
            } else {
                self.tails.last_from(self.virtual_time.before(BEHIND).slot())
            };
            if let Some(last) = last {
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
    fn first_payer(&self) -> Option<u32> {
        if self.payers == 0 { None } else { self.turns.first_from(self.virtual_time.slot()) }
    }

    /// Whether the toll goes to this payer now, while a flow in credit has its turn at `rank`.
    /// Who has been lent much has to take virtual time along.
    fn is_due(&mut self, payer: u32, rank: Mark) -> bool {
        if self.owed < self.credit * self.toll {
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

    /// A flow in credit, which has its turn at `rank`, sends what it has not paid for.
    fn lend(&mut self, rank: Mark, cost: Bytes, payer: Option<u32>) {
        self.owed = if payer.is_some() { self.owed + cost } else { Bytes::ZERO };
        let backlogged = (self.flows.len() - self.idle.len()) as u64;
        let (passed, part) = ((self.passed + cost).0, self.toll * backlogged);
        let mut to = self.virtual_time.after(Bytes(passed / part));
        // Which counts next time.
        self.passed = Bytes(passed % part);
        if let Some(payer) = payer {
            to = to.earliest(self.flow(payer).tag);
        }
        self.move_on(to, rank);
    }

    /// Whether CoDel may want to drop the head of a payer.
    fn is_late(&mut self, now: Time, queue: u32) -> bool {
        let Tide { queues, codel, .. } = self;
        let Some(head) = queues.first(queue) else { return false };
        let (arrived, size) = (head.arrived, head.size);
        let (flow, _, bytes) = queues.state_and_length(queue);
        flow.law.is_late(codel, now, arrived, bytes - u128::from(size.0))
    }

    /// Takes a packet from a payer whose head has waited for too long.
    #[cold]
    fn drop_late(&mut self, now: Time, queue: u32, losses: &mut Losses) -> Option<Packet> {
        let Tide { queues, codel, .. } = self;
        let mut law = queues.state_and_length(queue).0.law;
        let packet = law.dequeue(codel, now, losses, || {
            let packet = queues.pop_first(queue)?;
            Some((packet, queues.bytes_of(queue)))
        });
        queues.state_and_length(queue).0.law = law;
        packet
    }

    /// Moves the tag of a flow by a packet. A payer shares with those of its host.
    fn move_by(&mut self, queue: u32, cost: Bytes) {
        let (flow, ..) = self.queues.state_and_length(queue);
        if let Some(hosts) = &mut self.hosts {
            flow.tag = if flow.pays {
                flow.tag.after((cost * hosts.payers(flow.sides)).min(MOST_COST))
            } else {
                hosts.floor(flow.sides, flow.tag.after(cost))
            };
        } else {
            flow.tag = flow.tag.after(cost);
        }
    }

    /// Sends a packet, of the flow that has its turn or of a payer if the toll is due.
    fn send(&mut self, now: Time, first: u32, losses: &mut Losses) -> Option<Packet> {
        let Flow { tag, rank, .. } = *self.flow(first);
        let is_in_turn = !self.is_in_credit(tag);
        let payer = if is_in_turn { Some(first) } else { self.first_payer() };
        if is_in_turn {
            self.virtual_time = self.virtual_time.latest(tag);
        }
        let paid = payer.filter(|payer| is_in_turn || self.is_due(*payer, rank));
        let queue = paid.unwrap_or(first);
        let is_late = paid.is_some() && self.is_late(now, queue);
        let packet =
            if is_late { self.drop_late(now, queue, losses) } else { self.queues.pop_first(queue) };
        if let Some(Packet { size, .. }) = packet {
            let cost = size.min(MOST_COST);
            match paid {
                Some(_) => self.owed -= cost * self.toll,
                None => self.lend(rank, cost, payer),
            }
            self.count(now, queue, cost, is_late);
        }
        packet
    }

    /// Counts a packet, and puts its flow where it belongs; `is_late` says whether others may
    /// have been dropped from the same queue.
    fn count(&mut self, now: Time, queue: u32, cost: Bytes, is_late: bool) {
        self.move_by(queue, cost);
        if self.queues.is_empty(queue) {
            if self.queues.backlog().packets == 0 {
                // Every tag is now before where flows begin.
                self.virtual_time = self.virtual_time.after(FARTHEST + MOST_CREDIT).start_of_slot();
                (self.owed, self.passed) = (Bytes::ZERO, Bytes::ZERO);
            }
            self.emptied(queue, now);
        } else if self.flow(queue).pays {
            self.place_payer(queue, cost, is_late);
        } else {
            self.place(queue);
        }
    }
}

/// Where the tail of a flow with so much queued is, if each byte of it counts `share` times.
fn tail(tag: Mark, bytes: u128, share: u64, virtual_time: Mark) -> Slot {
    let tail = tag.after(at_most(BEHIND + FARTHEST, bytes) * share);
    tail.earliest(virtual_time.after(FARTHEST)).slot()
}

/// What is queued, or `most` if it is more.
fn at_most(most: Bytes, bytes: u128) -> Bytes {
    u64::try_from(bytes).map_or(most, |bytes| most.min(Bytes(bytes)))
}

/// CoDel for a queue in this place.
fn codel(place: Place) -> CodelParameters {
    let parameters = CodelParameters {
        form: Form::Published,
        target: if place.medium == Medium::Radio { RADIO_TARGET } else { TARGET },
        interval: INTERVAL,
        mtu: PACKET,
        ecn: true,
        ce_threshold: Span::ZERO,
        ce_threshold_ect1: false,
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
        if self.hosts.is_some() {
            self.charge_hosts(queue, &packet);
        }
        self.queues.push(queue, packet);
        let (flow, packets, _) = self.queues.state_and_length(queue);
        let is_in_credit = flow.tag.is_slots_before(self.virtual_time);
        if packets > 1 && !is_in_credit && self.hosts.is_none() {
            self.place_tail(queue);
        } else {
            self.place(queue);
        }
        if !has_room {
            self.push_out(now, self.buffer.stretched_to(before), (queue, &packet), losses);
        }
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        self.look_at_idle(now);
        let first = self.turns.first_from(self.virtual_time.before(BEHIND).slot())?;
        self.send(now, first, losses)
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
