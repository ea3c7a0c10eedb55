//! The scheduler: arbiter, window and read gate in one state machine.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use slab::Slab;

use super::classes::{ClassOrder, Classes};
use super::lines::{Lines, UserOrder, WaitingLimits};
use super::permit::{Permit, Permits};
use super::room::{ReadGateConfig, Room};
use super::sizes::Sizes;
use super::window::{LinkReport, Window, WindowConfig};
use super::{ClassId, ClassState, Decision, Reading, Refusal, Request, Ticket, UserId};
use crate::units::{Bytes, Rate, Span, Time};

/// Settings of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which class is next.
    pub class_order: ClassOrder,
    /// Which request of a class is next.
    pub user_order: UserOrder,
    /// How many requests may wait.
    pub limits: WaitingLimits,
    /// How many responses may be outstanding.
    pub window: WindowConfig,
    /// How long responses are held back; `None` lets all be read as they arrive.
    pub read_gate: Option<ReadGateConfig>,
}

/// A response that in this time brings less than a grant is slow, or its server
/// silent: it leaves the window, and what was paid for and has not come is room again.
/// Three round trips of the longest paths, with a loss, take less.
const PLACE_FOR: Span = Span::seconds(3);

/// How far a user may be ahead of one whose long response wants to be read, and
/// still have requests released first: what the link carries in this time, for a
/// weight of 1. What users receive differs from their shares by no more than that and
/// what is on its way, and the first bytes of a page do not wait for others' files.
const LEAD: Span = Span::seconds(1);
/// On a slow link it is so many responses that are not long.
const LEAST_LEAD: u64 = 4;

/// Decides which request is released and which long response is read.
///
/// *Cost.* O(log n) in the classes, users and outstanding responses, for every
/// event and decision.
#[derive(Debug)]
pub struct Scheduler {
    classes: Classes,
    lines: Lines,
    window: Window,
    permits: Permits,
    responses: Slab<Response>,
    /// *W*: responses that hold a place.
    held: u32,
    /// Bytes known to the gateway since the first report.
    seen: u64,
    /// The link's counter at the first report, and the unseen bytes found since.
    unseen: Option<(Bytes, u64)>,
    gate: Option<ReadGate>,
    /// The latest time that is known.
    now: Time,
}

/// An outstanding response.
#[derive(Debug)]
struct Response {
    handle: u64,
    class: u32,
    user: u32,
    received: u64,
    /// What room, class and user have paid for and has not come.
    paid: u64,
    /// Until when it holds a place in the window, unless it ends or becomes long
    /// before, or then has received a grant more than this; `None` when it holds none.
    place_until: Option<Time>,
    before: u64,
    is_long: bool,
    /// Its number among the hungry responses, if it is one.
    hungry: Option<u64>,
}

/// The read gate: long responses, and the room that they and requests compete for.
#[derive(Debug)]
struct ReadGate {
    config: ReadGateConfig,
    room: Room,
    sizes: Sizes,
    rate: Rate,
    /// The responses that want to be read: those of each user, and all, in the order
    /// in which they became hungry.
    by_user: BTreeSet<(u32, u64, u32)>,
    by_age: BTreeMap<u64, u32>,
    /// The users of each group who have one, by level.
    readers: Vec<BTreeSet<(u64, u64, u32)>>,
    hungered: u64,
    /// The responses that hold a place, by the time until which they may.
    places: BTreeSet<(Time, u32)>,
    /// Whether a request has the next turn on the floor.
    request_is_due: bool,
}

/// What is next when there is room for it.
#[derive(Clone, Copy, Debug)]
enum Candidate {
    /// A request of this group.
    Request(u32),
    /// This long response.
    Response(u32),
}

impl Scheduler {
    /// A scheduler for a link of this `rate` and classes of these `weights`;
    /// the hash of its users depends on `seed`.
    #[must_use]
    pub fn new(config: Config, rate: Rate, weights: &[NonZeroU32], seed: u64) -> Scheduler {
        let Config { class_order, user_order, limits, window, read_gate } = config;
        let per_user = ClassOrder::LeastService { per_user: true };
        let together = user_order == UserOrder::LeastService && class_order == per_user;
        let forgets = read_gate.is_some();
        let classes = if together {
            Classes::new(ClassOrder::Arrival, &[NonZeroU32::MIN], forgets)
        } else {
            Classes::new(class_order, weights, forgets)
        };
        let groups = if together { 1 } else { weights.len() };
        let gate = read_gate.map(|gate| ReadGate {
            config: gate,
            sizes: Sizes::new(gate.long_from),
            rate,
            room: Room::new(rate, window.target_millionths, gate),
            by_user: BTreeSet::new(),
            by_age: BTreeMap::new(),
            readers: vec![BTreeSet::new(); groups],
            hungered: 0,
            places: BTreeSet::new(),
            request_is_due: false,
        });
        Scheduler {
            classes,
            lines: Lines::new(user_order, limits, weights, together, seed),
            window: Window::new(window, rate),
            permits: Permits::new(),
            responses: Slab::new(),
            held: 0,
            seen: 0,
            unseen: None,
            gate,
            now: Time::ZERO,
        }
    }

    /// A request has arrived. [`next`](Scheduler::next) decides about it, now or later.
    ///
    /// # Errors
    /// Too many requests are already waiting, or the class does not exist. Nothing
    /// of the request is kept.
    pub fn arrive(&mut self, request: Request) -> Result<Ticket, Refusal> {
        self.settle();
        let class = request.class;
        if self.lines.class(class.0).is_none() {
            return Err(Refusal::NoSuchClass { class });
        }
        let (ticket, new_user) = self.lines.join(request)?;
        let group = self.lines.group(class.0);
        if new_user {
            self.classes.add_user(group);
        }
        self.classes.set_first(group, self.lines.first(group));
        Ok(ticket)
    }

    /// Withdraws a request whose client is gone. `None` if it no longer waits:
    /// then the owner of its permit drops that.
    pub fn withdraw(&mut self, ticket: Ticket) -> Option<Request> {
        self.settle();
        let (request, user_left) = self.lines.withdraw(ticket)?;
        let group = self.lines.group(request.class.0);
        self.classes.set_first(group, self.lines.first(group));
        if user_left {
            self.classes.remove_user(group);
        }
        Some(request)
    }

    /// A response that had seemed over continues after `received` of it: it
    /// takes a place at once, even beyond *W+*. What it receives from here on
    /// counts as if it had never ended. No decision releases it; keep and drop
    /// the permit like that of a release.
    ///
    /// # Errors
    /// The class does not exist.
    pub fn resume(&mut self, request: Request, received: Bytes) -> Result<Permit, Refusal> {
        self.settle();
        let Request { handle, class, user } = request;
        if self.lines.class(class.0).is_none() {
            return Err(Refusal::NoSuchClass { class });
        }
        let (user, new_user) = self.lines.resume(class, user);
        if new_user {
            self.classes.add_user(self.lines.group(class.0));
        }
        let number = self.take_place(handle, class.0, user, received);
        Ok(self.permits.issue(number))
    }

    /// The next decision at `now`: call it repeatedly after every event, until
    /// it returns `None`. Time never goes back from one call to the next.
    pub fn next(&mut self, now: Time) -> Option<Decision> {
        self.advance(now);
        if self.window.admits(self.held)
            && let Some(group) = self.classes.next_waiting()
        {
            return self.release(group);
        }
        let candidate = self.candidate();
        let gate = self.gate.as_mut()?;
        let request = self.classes.next_waiting().filter(|_| self.window.follows_room());
        let oldest = gate.by_age.first_key_value().map(|(_, oldest)| *oldest);
        if (request.is_some() || oldest.is_some()) && gate.room.take_floor() {
            let request = request.filter(|_| gate.request_is_due || oldest.is_none());
            gate.request_is_due = request.is_none();
            return match request {
                Some(group) => self.release(group),
                None => self.grant(oldest?),
            };
        }
        let candidate = candidate.filter(|candidate| gate.room.has(gate.needs(*candidate)))?;
        match candidate {
            Candidate::Request(group) => self.release(group),
            Candidate::Response(number) => self.grant(number),
        }
    }

    /// The time at which [`next`](Scheduler::next) may have a decision without
    /// another event; `None` if never.
    #[must_use]
    pub fn next_ready(&mut self, now: Time) -> Option<Time> {
        self.advance(now);
        let waits = self.classes.next_waiting().is_some();
        if self.window.admits(self.held) && waits {
            return Some(now);
        }
        let candidate = self.candidate();
        let gate = self.gate.as_ref()?;
        let for_floor = !gate.by_age.is_empty() || waits && self.window.follows_room();
        let floor = gate.room.next_floor().filter(|_| for_floor);
        let room = candidate.and_then(|candidate| gate.room.next(gate.needs(candidate)));
        // What a slow response leaves is room.
        let place = gate.places.first().map(|(until, _)| *until);
        let place = place.filter(|_| candidate.is_some() || waits);
        [floor, room, place].into_iter().flatten().min()
    }

    /// A part of `size` of a response has been read; returns how to read the rest.
    pub fn received(&mut self, now: Time, permit: &Permit, size: Bytes) -> Reading {
        self.advance(now);
        self.seen = self.seen.saturating_add(size.0);
        let number = permit.response();
        let Some(response) = self.responses.get_mut(number as usize) else {
            return Reading::Freely;
        };
        let unpaid = size.0.saturating_sub(response.paid);
        response.paid = response.paid.saturating_sub(size.0);
        response.received = response.received.saturating_add(size.0);
        let (class, user) = (response.class, response.user);
        self.charge(class, user, Bytes(unpaid));
        self.spend(Bytes(unpaid));
        let Some(gate) = &self.gate else { return Reading::Freely };
        let (long_from, grant) = (gate.sizes.long_from(), gate.config.grant);
        let response = &mut self.responses[number as usize];
        if !response.is_long {
            if response.place_until.is_some() && response.received < long_from.0 {
                return Reading::Freely;
            }
            response.is_long = true;
            self.give_place_back(number);
            self.refund(number);
        }
        let Response { hungry, paid, .. } = self.responses[number as usize];
        // Half a grant ahead, so that reading does not stop at the end of each.
        if hungry.is_none() && Bytes(paid) <= grant / 2 {
            self.hunger(number);
        }
        Reading::UpTo(Bytes(paid))
    }

    /// Bytes have come that answer no request: of a user of a class, or of
    /// nobody that is known (`MSF section 6`). The former count as that class's
    /// and user's service.
    pub fn received_unasked(&mut self, now: Time, whose: Option<(ClassId, UserId)>, size: Bytes) {
        self.advance(now);
        self.seen = self.seen.saturating_add(size.0);
        if let Some((class, user)) = whose
            && self.lines.class(class.0).is_some()
        {
            match self.lines.user(class, user) {
                Some(user) => self.charge(class.0, user, size),
                None => self.classes.charge(self.lines.group(class.0), size),
            }
        }
        self.spend(size);
    }

    /// The link's own counters at `now`: report them regularly, several times
    /// in an interval of the window if there is a read gate.
    pub fn report(&mut self, now: Time, report: LinkReport) {
        self.advance(now);
        let (base, known) = *self.unseen.get_or_insert((report.carried - Bytes(self.seen), 0));
        // Bytes in flight inside the gateway are seen later, and are then not new.
        let unseen = (report.carried - base).0.saturating_sub(self.seen).max(known);
        self.unseen = Some((base, unseen));
        self.spend(Bytes(unseen - known));
        if let Some(gate) = &mut self.gate {
            gate.room.report_delay(report.queueing_delay);
        }
        self.window.report(now, report, self.held);
    }

    /// *W+*: how many responses may be outstanding; infinity without a limit.
    #[must_use]
    pub fn window(&self) -> f64 {
        self.window.places()
    }

    /// *W*: responses that hold a place.
    #[must_use]
    pub fn held(&mut self) -> u32 {
        self.settle();
        self.held
    }

    /// Whether long responses are read by grants.
    #[must_use]
    pub fn holds_back(&self) -> bool {
        self.gate.is_some()
    }

    /// The number of waiting requests.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lines.len()
    }

    /// How many responses are outstanding, long ones among them.
    #[must_use]
    pub fn outstanding(&mut self) -> usize {
        self.settle();
        self.responses.len()
    }

    /// What a class has come to; `None` when there is no such class.
    #[must_use]
    pub fn class(&mut self, class: ClassId) -> Option<ClassState> {
        self.settle();
        let (users, is_waiting) = self.lines.class(class.0)?;
        let service = if self.lines.are_together() { 0 } else { self.classes.service(class.0) };
        Some(ClassState { service, users, is_waiting })
    }

    /// Collects the dropped permits, and looks at the clock.
    fn advance(&mut self, now: Time) {
        self.settle();
        self.now = self.now.max(now);
        while let Some(gate) = &mut self.gate {
            gate.room.advance(now);
            let Some((until, number)) = gate.places.first().copied() else { return };
            if until > now {
                return;
            }
            let response = &mut self.responses[number as usize];
            if response.received - response.before >= gate.config.grant.0 {
                response.before = response.received;
                response.place_until = Some(until + PLACE_FOR);
                gate.places.remove(&(until, number));
                gate.places.insert((until + PLACE_FOR, number));
                continue;
            }
            self.give_place_back(number);
            // The user has paid for a place that brought nothing; others may have the
            // room.
            let paid = std::mem::take(&mut self.responses[number as usize].paid);
            if let Some(gate) = &mut self.gate {
                gate.room.refund(Bytes(paid));
            }
        }
    }

    /// Collects the dropped permits.
    fn settle(&mut self) {
        while let Some(number) = self.permits.take_returned() {
            self.give_place_back(number);
            self.sate(number);
            self.refund(number);
            let response = self.responses.remove(number as usize);
            if let Some(gate) = &mut self.gate {
                gate.sizes.see(Bytes(response.received));
            }
            if self.lines.finish(response.user) {
                self.classes.remove_user(self.lines.group(response.class));
            }
        }
    }

    /// The one way out of the window.
    fn give_place_back(&mut self, number: u32) {
        if let Some(until) = self.responses[number as usize].place_until.take() {
            self.held -= 1;
            if let Some(gate) = &mut self.gate {
                gate.places.remove(&(until, number));
            }
        }
    }

    fn release(&mut self, group: u32) -> Option<Decision> {
        self.reach(group);
        let (request, user) = self.lines.release(group)?;
        self.classes.released(group);
        self.classes.set_first(group, self.lines.first(group));
        let number = self.take_place(request.handle, request.class.0, user, Bytes::ZERO);
        if let Some(gate) = &self.gate {
            self.pay(number, gate.sizes.expected());
        }
        Some(Decision::Release { request, permit: self.permits.issue(number) })
    }

    /// The one way into the window.
    fn take_place(&mut self, handle: u64, class: u32, user: u32, received: Bytes) -> u32 {
        let until = self.now + PLACE_FOR;
        let number = self.responses.insert(Response {
            handle,
            class,
            user,
            received: received.0,
            paid: 0,
            place_until: Some(until),
            before: received.0,
            is_long: false,
            hungry: None,
        });
        let number = u32::try_from(number).expect("under 2^32 responses at once");
        self.held += 1;
        if let Some(gate) = &mut self.gate {
            gate.places.insert((until, number));
        }
        number
    }

    /// What is next when there is room for it: of the group that has received the
    /// least, a request, unless its user is ahead of one whose long response wants to be
    /// read by more than a [`LEAD`].
    fn candidate(&self) -> Option<Candidate> {
        let gate = self.gate.as_ref()?;
        let with_requests = self.window.follows_room();
        let group = self.classes.next_busy(with_requests)?;
        let request = self.lines.first_level(group).filter(|_| with_requests);
        let Some(&(level, _, user)) = gate.readers[group as usize].first() else {
            return request.map(|_| Candidate::Request(group));
        };
        let lead = self.lines.lead(gate.lead());
        if request.is_some_and(|request| request <= level.saturating_add(lead)) {
            return Some(Candidate::Request(group));
        }
        let (.., number) = gate.by_user.range((user, 0, 0)..).next()?;
        Some(Candidate::Response(*number))
    }

    /// Those who come from now on start where the one with the least is who wants
    /// something.
    fn reach(&mut self, group: u32) {
        self.classes.reach();
        let reader = self.gate.as_ref().and_then(|gate| gate.readers[group as usize].first());
        self.lines.reach(group, reader.map(|(level, ..)| *level));
    }

    /// Lets a long response read on.
    fn grant(&mut self, number: u32) -> Option<Decision> {
        let size = self.gate.as_ref()?.config.grant;
        let Response { handle, class, .. } = self.responses[number as usize];
        self.reach(self.lines.group(class));
        self.sate(number);
        self.pay(number, size);
        Some(Decision::Read { handle, size })
    }

    /// A long response wants to be read.
    fn hunger(&mut self, number: u32) {
        let Some(gate) = &mut self.gate else { return };
        let response = &mut self.responses[number as usize];
        let place = gate.hungered;
        gate.hungered += 1;
        response.hungry = Some(place);
        let user = response.user;
        let before = gate.reader(user);
        if before.is_none() && !self.lines.waits(user) {
            self.lines.catch_up(user);
        }
        gate.by_user.insert((user, place, number));
        gate.by_age.insert(place, number);
        self.place_reader(user, self.lines.level(user), before);
    }

    /// A long response no longer wants to be read.
    fn sate(&mut self, number: u32) {
        let response = &mut self.responses[number as usize];
        let Some(gate) = &mut self.gate else { return };
        let Some(place) = response.hungry.take() else { return };
        let user = response.user;
        let before = gate.reader(user);
        gate.by_user.remove(&(user, place, number));
        gate.by_age.remove(&place);
        self.place_reader(user, self.lines.level(user), before);
    }

    /// Moves a user among the readers, who stood there at this `level` with this first
    /// response.
    fn place_reader(&mut self, user: u32, level: u64, before: Option<u64>) {
        let Some(gate) = &mut self.gate else { return };
        let group = self.lines.group_of(user);
        let readers = &mut gate.readers[group as usize];
        if let Some(before) = before {
            readers.remove(&(level, before, user));
        }
        let first = gate.by_user.range((user, 0, 0)..).next().filter(|(of, ..)| *of == user);
        readers.extend(first.map(|(_, first, _)| (self.lines.level(user), *first, user)));
        self.classes.set_hungry(group, readers.len() as u32);
    }

    /// Class and user have received `size`, or will.
    fn charge(&mut self, class: u32, user: u32, size: Bytes) {
        self.classes.charge(self.lines.group(class), size);
        let before = self.lines.level(user);
        self.lines.charge(user, size);
        self.rank_reader(user, before);
    }

    /// The level of a user has changed.
    fn rank_reader(&mut self, user: u32, before: u64) {
        if let Some(first) = self.gate.as_ref().and_then(|gate| gate.reader(user)) {
            self.place_reader(user, before, Some(first));
        }
    }

    /// Class, user and room pay for what a response is to bring.
    fn pay(&mut self, number: u32, size: Bytes) {
        let Response { class, user, .. } = self.responses[number as usize];
        self.charge(class, user, size);
        if let Some(gate) = &mut self.gate {
            gate.room.promise(size);
        }
        self.responses[number as usize].paid += size.0;
    }

    /// What was paid and has not come is given back.
    fn refund(&mut self, number: u32) {
        let response = &mut self.responses[number as usize];
        let size = Bytes(std::mem::take(&mut response.paid));
        let (class, user) = (response.class, response.user);
        if size == Bytes::ZERO {
            return;
        }
        self.classes.refund(self.lines.group(class), size);
        let before = self.lines.level(user);
        self.lines.refund(user, size);
        self.rank_reader(user, before);
        if let Some(gate) = &mut self.gate {
            gate.room.refund(size);
        }
    }

    /// Bytes on the link that nobody has paid for.
    fn spend(&mut self, size: Bytes) {
        if let Some(gate) = &mut self.gate {
            gate.room.spend(size);
        }
    }
}

impl ReadGate {
    /// The number of the first hungry response of a user.
    fn reader(&self, user: u32) -> Option<u64> {
        let first = self.by_user.range((user, 0, 0)..).next();
        first.filter(|(of, ..)| *of == user).map(|(_, first, _)| *first)
    }

    /// How far ahead a user of weight 1 may be.
    fn lead(&self) -> Bytes {
        self.rate.volume(LEAD).max(self.sizes.long_from() * LEAST_LEAD)
    }

    /// The room that a candidate needs.
    fn needs(&self, candidate: Candidate) -> Bytes {
        match candidate {
            Candidate::Request(_) => self.sizes.expected(),
            Candidate::Response(_) => self.config.grant,
        }
    }
}
