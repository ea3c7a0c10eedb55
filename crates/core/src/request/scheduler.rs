//! The scheduler: arbiter, window and read gate in one state machine.

mod promises;
mod readers;
mod response;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use slab::Slab;

use super::buffer::Opening;
use super::classes::{ClassOrder, Classes};
use super::lines::{Lines, Part, UserOrder, WaitingLimits};
use super::permit::{End, Permit, Permits, Returned};
use super::room::{ReadGateConfig, Room};
use super::sizes::Sizes;
use super::window::{LinkReport, Window, WindowConfig};
use super::{ClassId, ClassState, Decision, Reading, Refusal, Request, Ticket, UserId};
use crate::units::{Bytes, Rate, Span, Time};
use readers::{Candidate, ReadGate};
use response::Response;

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

/// A response that in this time brings less than a grant, though as much was promised,
/// is slow, or its server silent: what has not come is room again, and a place in the
/// window is free. Three round trips of the longest paths, with a loss, take less.
const PATIENCE: Span = Span::seconds(3);

/// While the path's queueing delay is below this, the queue is not why a response is silent for
/// [`PATIENCE`]: its handshake and its first bytes would lose an eighth of that time each.
const SHORT_QUEUE: Span = Span::millis(375);

/// How far a user may be ahead of one whose long response wants to be read, and still have
/// requests released first, or a response read that has received less: what the link carries
/// in this time, for a weight of 1. What users receive differs from their shares by no more
/// than that and what is on its way, and pages do not wait for others' files.
const LEAD: Span = Span::millis(500);
/// On a slow link it is so many responses of the least size that may be long.
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
    /// How many responses have begun.
    begun: u64,
    /// Bytes that have come to the gateway, as far as it knows.
    seen: u64,
    /// The link's counter at the first report, and what was not seen yet at the last.
    unseen: Option<(Bytes, u64)>,
    /// The last report: its time, and the link's counter.
    reported: Option<(Time, Bytes)>,
    gate: Option<ReadGate>,
    /// The latest time that is known.
    now: Time,
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
            sizes: Sizes::new(gate.long_from, rate),
            rate,
            room: Room::new(rate, window.target_millionths, gate),
            by_user: BTreeSet::new(),
            by_age: BTreeMap::new(),
            readers: vec![BTreeSet::new(); groups],
            by_octave: vec![BTreeSet::new(); groups],
            aside: BTreeMap::new(),
            behind: vec![BTreeSet::new(); groups],
            hungered: 0,
            watched: BTreeSet::new(),
        });
        Scheduler {
            classes,
            lines: Lines::new(user_order, limits, weights, together, seed),
            window: Window::new(window, rate),
            permits: Permits::new(),
            responses: Slab::new(),
            held: 0,
            begun: 0,
            seen: 0,
            unseen: None,
            reported: None,
            gate,
            now: Time::ZERO,
        }
    }

    /// Takes over what an earlier scheduler has found out about the link and the sizes of
    /// responses, as far as its settings were the same. What users have received is not
    /// among that, for their classes may be others.
    pub(super) fn follow(&mut self, earlier: Scheduler) {
        self.window.follow(&earlier.window);
        if let (Some(gate), Some(earlier)) = (&mut self.gate, earlier.gate) {
            gate.sizes.follow(earlier.sizes);
            gate.room.set_largest(gate.sizes.long_from());
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
        let (ticket, user, new_user) = self.lines.join(request)?;
        self.catch_up(user);
        let group = self.lines.group(class.0);
        if new_user {
            self.classes.add_user(group);
        }
        self.settle_busy(group);
        self.classes.set_first(group, self.lines.first(group));
        Ok(ticket)
    }

    /// Withdraws a request whose client is gone. `None` if it no longer waits:
    /// then the owner of its permit drops that.
    pub fn withdraw(&mut self, ticket: Ticket) -> Option<Request> {
        self.settle();
        let (request, user_left) = self.lines.withdraw(ticket)?;
        let group = self.lines.group(request.class.0);
        self.settle_busy(group);
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
        self.catch_up(user);
        if new_user {
            self.classes.add_user(self.lines.group(class.0));
        }
        let number = self.take_place(handle, class.0, user, received);
        if received == Bytes::ZERO {
            self.expect(number);
        }
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
        let waiting = self.classes.next_waiting().filter(|_| self.window.follows_room());
        let expected = waiting.map_or(Bytes::ZERO, |group| self.first_expected(group));
        let gate = self.gate.as_mut()?;
        if let Some(group) = waiting
            && gate.room.take_request_floor(expected)
        {
            return self.release(group);
        }
        if let Some(oldest) = gate.by_age.first_key_value().map(|(_, oldest)| *oldest)
            && let Some(piece) = gate.room.take_read_floor(gate.by_age.len())
        {
            return self.grant(oldest, piece, Part::Asked);
        }
        let candidate = candidate?;
        let grant = gate.room.grant();
        if !gate.room.has(candidate.needs()) {
            return self.read_idle();
        }
        self.reach_turn(candidate);
        match candidate {
            Candidate::Request { group, .. } => self.release(group),
            Candidate::Response { number, .. } => self.grant(number, grant, Part::Long),
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
        let hungry = gate.by_age.len();
        let reads = gate.room.next_read_floor(hungry).filter(|_| hungry > 0);
        let requests = waits && self.window.follows_room();
        let requests = gate.room.next_request_floor().filter(|_| requests);
        let room = candidate.and_then(|candidate| gate.room.next(candidate.needs()));
        let idle = gate.room.has_idle() && self.next_reader().is_some();
        let idle = idle.then_some(self.now);
        // What a slow response leaves is room.
        let watched = gate.watched.first().map(|(until, _)| *until);
        let watched = watched.filter(|_| candidate.is_some() || waits);
        [reads, requests, room, idle, watched].into_iter().flatten().min()
    }

    /// A part of `size` of a response has been read; returns how to read the rest.
    pub fn received(&mut self, now: Time, permit: &Permit, size: Bytes) -> Reading {
        self.advance(now);
        let number = permit.response();
        let Some(response) = self.responses.get_mut(number as usize) else {
            return Reading::Freely;
        };
        let user = response.user;
        response.received = response.received.saturating_add(size.0);
        response.may = response.may.saturating_sub(size.0);
        let uncharged = size.0.saturating_sub(response.charged);
        response.charged = response.charged.saturating_sub(size.0);
        let (class, received, of) = (response.class, response.received, response.part());
        self.charge(class, user, Bytes(uncharged), of);
        self.bring(number, received);
        let Some(gate) = &self.gate else { return Reading::Freely };
        let (long_from, grant) = (gate.sizes.long_from(), gate.room.grant());
        let response = &mut self.responses[number as usize];
        if !response.is_long {
            let in_time = response.has_place || response.is_whole;
            if in_time && response.received < long_from.0 {
                return Reading::Freely;
            }
            self.give_place_back(number);
            self.unwatch(number);
            self.refund(number);
            let response = &mut self.responses[number as usize];
            (response.is_long, response.may) = (true, 0);
            self.set_aside(number);
        }
        let response = &self.responses[number as usize];
        let may = Bytes(response.may);
        if response.hungry.is_none() && response.wants(grant) {
            self.hunger(number);
        }
        Reading::UpTo(may)
    }

    /// Of a response `unread` bytes have come that are not read yet. The link has carried
    /// them: report them when they come, for there is less room then.
    pub fn came(&mut self, now: Time, permit: &Permit, unread: Bytes) {
        self.advance(now);
        let number = permit.response();
        if let Some(response) = self.responses.get(number as usize) {
            self.bring(number, response.received.saturating_add(unread.0));
        }
    }

    /// So much that is not read has come before a response began, and was paid for: it belongs
    /// to this one from now on.
    pub(super) fn take_on(&mut self, permit: &Permit, unread: Bytes) {
        if let Some(response) = self.responses.get_mut(permit.response() as usize) {
            response.arrived = response.arrived.saturating_add(unread.0);
        }
    }

    /// The server of a response may send so much. Report it after every part that has been
    /// read.
    pub fn opened(&mut self, now: Time, permit: &Permit, opening: Opening) {
        self.advance(now);
        let number = permit.response();
        if let Some(response) = self.responses.get_mut(number as usize) {
            let Opening { ahead, pace } = opening;
            (response.ahead, response.pace) = (ahead.0, pace.0);
            response.edge = response.edge.max(response.received.saturating_add(ahead.0));
            self.extend(number);
            self.set_aside(number);
        }
    }

    /// All of a response has come, read or not, or seems to: the link has no more to do with
    /// it. What is left of a long one takes no room, but waits until its user is next. What
    /// comes after all is paid for as it comes.
    pub fn arrived(&mut self, now: Time, permit: &Permit) {
        self.advance(now);
        let number = permit.response();
        if let Some(response) = self.responses.get_mut(number as usize) {
            response.is_whole = true;
            self.give_place_back(number);
            self.unwatch(number);
            self.vacate(number);
            self.set_aside(number);
        }
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
                Some(user) => self.charge(class.0, user, size, Part::Asked),
                None => self.classes.charge(self.lines.group(class.0), size),
            }
        }
        self.spend(size);
    }

    /// The link's own counters at `now`: report them regularly, several times
    /// in an interval of the window if there is a read gate.
    pub fn report(&mut self, now: Time, report: LinkReport) {
        self.advance(now);
        let (base, before) = *self.unseen.get_or_insert((report.carried - Bytes(self.seen), 0));
        let unseen = (report.carried - base).0.saturating_sub(self.seen);
        self.unseen = Some((base, unseen));
        if let Some(gate) = &mut self.gate {
            gate.room.carry(Bytes(unseen.saturating_sub(before)));
            // What was inside the gateway has been seen since, and paid for.
            gate.room.reclaim(Bytes(before.saturating_sub(unseen)));
            gate.room.report_delay(report.queueing_delay);
            let last = self.reported.replace((now, report.carried));
            match last.filter(|_| !gate.by_age.is_empty()) {
                Some((at, before)) => gate.room.leave_idle(now.since(at), report.carried - before),
                None => gate.room.forget_idle(),
            }
        }
        self.window.report(now, report, self.held);
    }

    /// The link has another rate from now on.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.advance(now);
        self.window.set_rate(rate);
        if let Some(gate) = &mut self.gate {
            gate.rate = rate;
            gate.room.set_rate(rate);
            gate.sizes.set_rate(rate);
        }
    }

    /// A class has another weight: what it and its users receive from now on counts for that.
    /// A class that there is not has none.
    pub fn set_weight(&mut self, class: ClassId, weight: NonZeroU32) {
        self.settle();
        if self.lines.class(class.0).is_none() {
            return;
        }
        self.lines.set_weight(class.0, weight);
        if !self.lines.are_together() {
            self.classes.set_weight(class.0, weight);
        }
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
        self.now = self.now.max(now);
        if let Some(gate) = &mut self.gate {
            gate.room.advance(now);
        }
        self.settle();
        while let Some(gate) = &self.gate
            && let Some((until, number)) = gate.watched.first().copied()
            && until <= now
        {
            let Response { user, arrived, before, .. } = self.responses[number as usize];
            let is_slow = arrived - before < gate.config.grant.0;
            let is_silent = arrived == 0 && gate.room.delay() < SHORT_QUEUE;
            self.unwatch(number);
            if is_slow {
                self.give_place_back(number);
                self.reclaim(number);
                if is_silent {
                    self.expect_less(user);
                }
                // Nothing needs to be set aside for what does not come.
                self.responses[number as usize].pace = 0;
                self.set_aside(number);
            } else {
                self.watch(number, until);
            }
        }
    }

    /// Collects the dropped permits.
    fn settle(&mut self) {
        while let Some(Returned { response: number, end }) = self.permits.take_returned() {
            self.give_place_back(number);
            self.unwatch(number);
            self.sate(number);
            match end {
                End::Complete => self.refund(number),
                End::Unasked => self.vacate(number),
                End::Broken => self.forfeit(number),
            }
            self.responses[number as usize].is_whole = true;
            self.set_aside(number);
            let response = self.responses.remove(number as usize);
            if let Some(gate) = &mut self.gate {
                let long_from = gate.sizes.long_from();
                // Of what was broken off, no more is known than that it was long.
                if end == End::Complete || response.is_long {
                    let received = Bytes(response.received);
                    self.lines.see(response.user, received.min(long_from));
                    gate.sizes.see(received);
                    gate.room.set_largest(gate.sizes.long_from());
                } else if end == End::Broken {
                    // Of what its user asks for, no more comes than its server could send.
                    let sent = Bytes(response.edge.max(response.arrived));
                    let sent = sent.max(gate.config.long_from).min(long_from);
                    self.lines.see(response.user, sent);
                }
            }
            if self.lines.finish(response.user) {
                self.classes.remove_user(self.lines.group(response.class));
            }
        }
    }

    /// The one way out of the window.
    fn give_place_back(&mut self, number: u32) {
        self.held -= u32::from(std::mem::take(&mut self.responses[number as usize].has_place));
    }

    fn release(&mut self, group: u32) -> Option<Decision> {
        self.reach(group);
        let (request, user) = self.lines.release(group)?;
        self.classes.released(group);
        self.classes.set_first(group, self.lines.first(group));
        let number = self.take_place(request.handle, request.class.0, user, Bytes::ZERO);
        self.expect(number);
        self.lines.unwant(user);
        self.settle_busy(group);
        Some(Decision::Release { request, permit: self.permits.issue(number) })
    }

    /// The one way into the window.
    fn take_place(&mut self, handle: u64, class: u32, user: u32, received: Bytes) -> u32 {
        let number = self.responses.insert(Response {
            handle,
            class,
            user,
            age: self.begun,
            received: received.0,
            asked_at: 0,
            arrived: received.0,
            is_whole: false,
            ahead: 0,
            pace: 0,
            edge: received.0,
            horizon: received.0,
            paid: 0,
            charged: 0,
            may: 0,
            has_place: true,
            watched_until: None,
            before: 0,
            is_long: false,
            hungry: None,
            aside: (0, 0),
        });
        let number = u32::try_from(number).expect("under 2^32 responses at once");
        self.held += 1;
        self.begun += 1;
        self.watch(number, self.now);
        number
    }

    /// Those who become busy from now on start where the one with the least is who is.
    fn reach(&mut self, group: u32) {
        self.classes.reach();
        self.lines.reach(group);
    }

    /// Whether anybody of a group is busy may have changed.
    fn settle_busy(&mut self, group: u32) {
        self.classes.set_busy(group, self.lines.has_busy(group));
    }

    /// Lets a long response read what the link has left idle. It takes a whole grant of that
    /// even if so much has come already: for what is read, as much may come at once.
    fn read_idle(&mut self) -> Option<Decision> {
        let number = self.next_reader()?;
        let gate = self.gate.as_mut()?;
        let grant = gate.room.grant();
        if gate.room.take_idle() { self.grant(number, grant, Part::Long) } else { None }
    }

    /// Lets a long response read on by `size`. What it reads counts as this part: requests pay
    /// for what a floor gives, for where requests take all the room, nothing else makes up for
    /// it.
    fn grant(&mut self, number: u32, size: Bytes, of: Part) -> Option<Decision> {
        let grant = self.gate.as_ref()?.room.grant();
        let Response { handle, class, user, .. } = self.responses[number as usize];
        self.reach(self.lines.group(class));
        self.responses[number as usize].may += size.0;
        self.charge_ahead(number, size, of);
        self.extend(number);
        // To get in line again, at its end, leaves nobody without anything to do.
        self.lines.want(user);
        self.sate(number);
        if self.responses[number as usize].wants(grant) {
            self.hunger(number);
        }
        self.lines.unwant(user);
        self.settle_busy(self.lines.group(class));
        Some(Decision::Read { handle, size })
    }
}
