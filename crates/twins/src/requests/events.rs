//! What each event changes.

use tidegate_core::request::{ClassOrder, LinkReport, Reading, Refusal, WindowMode};
use tidegate_core::{Bytes, Span, Time};

use super::gateway::{Ended, Event};
use super::{BYTE, Fraction, Ground, Part, Request, Response, World, ZERO};

impl World<'_> {
    /// One thing more has happened.
    pub(super) fn take_in(&mut self, now: Time, event: Event) {
        self.steps += 1;
        self.pay_in(now);
        let wanting = self.wanting();
        match event {
            Event::Arrived { request, .. } => self.arrive(Request {
                handle: request.handle,
                class: request.class.0,
                user: request.user.0,
            }),
            Event::Withdrawn { ticket, found } => {
                let waits = self.waiting.iter().any(|request| request.handle == ticket);
                assert_eq!(waits, found);
                self.waiting.retain(|request| request.handle != ticket);
            }
            Event::Released { handle } => {
                let at = self.waiting.iter().position(|request| request.handle == handle);
                let at = at.expect("it waits");
                self.reach(self.waiting[at], Part::Asked);
                let request = self.waiting.remove(at);
                self.round = self.turn(request.class);
                self.outstanding(now, request, 0);
                if self.config.read_gate.is_some() {
                    self.pay(handle);
                }
            }
            Event::Resumed { request, received } => {
                let request = Request {
                    handle: request.handle,
                    class: request.class.0,
                    user: request.user.0,
                };
                self.activate(request);
                self.outstanding(now, request, received.0);
                if received == Bytes::ZERO && self.config.read_gate.is_some() {
                    self.pay(request.handle);
                }
            }
            Event::Received { handle, size, reading } => self.receive(handle, size.0, reading),
            Event::Came { handle, unread } => {
                let at = self.position(handle);
                self.bring(at, self.responses[at].received + unread.0);
            }
            Event::Opened { handle, opening } => {
                let at = self.position(handle);
                let response = &mut self.responses[at];
                (response.ahead, response.pace) = (opening.ahead.0, opening.pace.0);
                response.edge = response.edge.max(response.received + opening.ahead.0);
                self.extend(now, at);
            }
            Event::Asked { handle } => {
                let at = self.position(handle);
                self.responses[at].asked_at = self.responses[at].received;
                self.responses[at].octave = self.octave(self.responses[at].request.class, at);
            }
            Event::Whole { handle } => {
                let at = self.position(handle);
                let response = &mut self.responses[at];
                (response.is_whole, response.has_place) = (true, false);
                response.watched_until = None;
                self.vacate(at);
            }
            Event::Ended { handle, end: Ended::Complete } => {
                let at = self.position(handle);
                self.refund(at);
                let Response { request, received, .. } = self.responses.remove(at);
                self.see(request, received);
            }
            Event::Ended { handle, end: Ended::Broken } => self.break_off(handle),
            Event::Ended { handle, end: Ended::Unasked } => {
                let at = self.position(handle);
                let Response { request, paid, is_long, received, .. } = self.responses.remove(at);
                self.room += i128::from(paid) * BYTE;
                if is_long {
                    self.see(request, received);
                }
            }
            Event::Unasked { whose, size } => {
                self.seen += size.0;
                whose.into_iter().for_each(|(class, user)| self.charge(class, user, size.0, false));
                self.spend(size.0);
            }
            Event::Reported { report, window } => self.report(now, report, window),
            Event::Rated { rate } => self.rate = rate,
            Event::Weighed { class, weight } => {
                if let Some(old) = self.weights.get_mut(class as usize) {
                    *old = weight.get().into();
                }
            }
            Event::Read { handle, size } => {
                let at = self.position(handle);
                self.reach(self.responses[at].request, Part::Long);
                assert!(self.responses[at].is_long);
                self.responses[at].hungry = None;
                self.responses[at].may += size.0;
                let Request { class, user, .. } = self.responses[at].request;
                self.charge(class, user, size.0, self.ground != Ground::Floor);
                self.responses[at].charged += size.0;
                self.extend(now, at);
                let octave = self.octave(class, at);
                let steps = self.steps;
                let grant = self.grant();
                let response = &mut self.responses[at];
                response.hungry = response.wants(grant).then_some(steps);
                response.octave = octave;
            }
            Event::Refused { refusal, request } => match refusal {
                Refusal::Full { limit } => assert_eq!(self.waiting.len(), limit as usize),
                Refusal::UserFull { limit } => {
                    let same =
                        |r: &&Request| (r.class, r.user) == (request.class.0, request.user.0);
                    assert_eq!(self.waiting.iter().filter(same).count(), limit as usize);
                }
                Refusal::NoSuchClass { class } => assert!(class.0 as usize >= self.weights.len()),
            },
            Event::Rested => {}
        }
        self.catch_up(&wanting);
        self.forget();
    }

    pub(super) fn outstanding(&mut self, now: Time, request: Request, received: u64) {
        self.responses.push(Response {
            request,
            received,
            asked_at: 0,
            arrived: received,
            is_whole: false,
            ahead: 0,
            pace: 0,
            edge: received,
            horizon: received,
            paid: 0,
            charged: 0,
            may: 0,
            has_place: true,
            watched_until: Some(now + Span::seconds(3)),
            before: received,
            is_long: false,
            hungry: None,
            octave: 0,
        });
    }

    /// A class that was idle, and a user who wants nothing, go on from where the others
    /// are.
    pub(super) fn activate(&mut self, request: Request) {
        let class = request.class as usize;
        let active = |world: &World, class: u32| !world.users(class).is_empty();
        let others = (0..self.weights.len() as u32).filter(|other| active(self, *other));
        let least = others.map(|other| self.service[other as usize]).min();
        if least.is_none() {
            (self.round, self.class_reached) = (0, ZERO);
        }
        let takes_turns = matches!(self.config.class_order, ClassOrder::Turns { .. });
        if !active(self, request.class) {
            self.service[class] = if takes_turns { ZERO } else { least.unwrap_or(ZERO) };
        }
        self.catch_up_user(request.class, request.user);
        if !self.waits(request.class, request.user) {
            let reached = self.reached[self.group(request.class)];
            let asked = self.asked(request.class, request.user).max(reached);
            self.set_asked(request.class, request.user, asked);
        }
    }

    pub(super) fn arrive(&mut self, request: Request) {
        self.activate(request);
        let class = request.class as usize;
        if self.waiting.iter().all(|waiting| waiting.class != request.class) {
            self.joined[class] = self.steps;
            if let ClassOrder::Turns { quantum } = self.config.class_order {
                let turn = i128::from(quantum.0) * i128::from(self.weights[class]);
                let start = Fraction::new(self.round * turn, 1);
                self.service[class] = self.service[class].max(start);
            }
        }
        self.waiting.push(request);
    }

    pub(super) fn receive(&mut self, handle: u64, bytes: u64, reading: Reading) {
        let at = self.position(handle);
        let Request { class, user, .. } = self.responses[at].request;
        let response = &mut self.responses[at];
        response.received += bytes;
        response.may = response.may.saturating_sub(bytes);
        let uncharged = bytes.saturating_sub(response.charged);
        response.charged = response.charged.saturating_sub(bytes);
        let received = response.received;
        let is_long = response.is_long;
        self.charge(class, user, uncharged, is_long);
        self.bring(at, received);
        if self.config.read_gate.is_none() {
            return assert_eq!(reading, Reading::Freely);
        }
        let response = &mut self.responses[at];
        if !response.is_long {
            let in_time = response.has_place || response.is_whole;
            if in_time && response.received < self.long_from {
                return assert_eq!(reading, Reading::Freely, "response {handle}");
            }
            (response.has_place, response.watched_until) = (false, None);
            self.refund(at);
            (self.responses[at].is_long, self.responses[at].may) = (true, 0);
        }
        let Response { may, hungry, .. } = self.responses[at];
        if hungry.is_none() && self.responses[at].wants(self.grant()) {
            self.catch_up_user(class, user);
            self.responses[at].hungry = Some(self.steps);
            self.responses[at].octave = self.octave(class, at);
        }
        assert_eq!(reading, Reading::UpTo(Bytes(may)), "how response {handle} may be read");
    }

    /// So much of a response has come.
    pub(super) fn bring(&mut self, at: usize, arrived: u64) {
        let response = &mut self.responses[at];
        let fresh = arrived.saturating_sub(response.arrived);
        let unpaid = fresh.saturating_sub(response.paid);
        response.arrived += fresh;
        if fresh > 0 && response.is_whole {
            (response.is_whole, response.has_place) = (false, !response.is_long);
        }
        response.paid = response.paid.saturating_sub(fresh);
        self.seen += fresh;
        self.spend(unpaid);
    }

    pub(super) fn report(&mut self, now: Time, report: LinkReport, window: u64) {
        let base = *self.base.get_or_insert(report.carried.0.saturating_sub(self.seen));
        let before = self.unseen;
        self.unseen = (report.carried.0 - base).saturating_sub(self.seen);
        let carried = i128::from(self.unseen.saturating_sub(before)) * BYTE;
        let lingering = carried.min(self.lingering);
        self.lingering -= lingering;
        self.take(carried - lingering);
        let less = i128::from(before.saturating_sub(self.unseen)) * BYTE;
        self.room = (self.room + less).min(self.most_room().max(self.room));
        let last = self.reported.replace((now, report.carried.0));
        self.idle = match (last, self.config.read_gate) {
            (Some((at, carried)), Some(_)) if self.hungry().next().is_some() => {
                let target = i128::from(self.config.window.target_millionths);
                let could = i128::from(now.since(at).0) * i128::from(self.rate.0) * target;
                let did = i128::from(report.carried.0 - carried) * BYTE;
                let most = self.memory().max(i128::from(2 * self.grant()) * BYTE);
                (self.idle + could - did).clamp(0, most)
            }
            _ => 0,
        };
        let (delay, reported) = self.delay;
        self.delay = (report.queueing_delay.unwrap_or(delay - now.since(reported)), now);
        self.control(now, report);
        if !matches!(self.config.window.mode, WindowMode::Unlimited | WindowMode::Room) {
            assert_eq!(window, self.window, "W+ in units of 2^-32 at {now}");
        }
    }

    pub(super) fn control(&mut self, now: Time, report: LinkReport) {
        let config = self.config.window;
        let (since, before) = *self.updated.get_or_insert((now, report.carried));
        let span = now.since(since);
        if span < config.interval {
            return;
        }
        self.updated = Some((now, report.carried));
        if self.is_open() || config.mode != WindowMode::Controlled {
            return;
        }
        let window = u128::from(self.window);
        let most = window * u128::from(config.growth_millionths) / 1_000_000;
        let link = u128::from(self.rate.0) * u128::from(span.0) / 8_000_000_000;
        let next = match u128::from((report.carried - before).0) {
            0 => most,
            carried => {
                let aimed = window * (link * u128::from(config.target_millionths));
                most.min(aimed / (carried * 1_000_000))
            }
        };
        self.window = next.clamp(1 << 32, 1 << 52) as u64;
    }
}
