//! The books: the room on the link, and what users are charged for.

use tidegate_core::request::{ClassOrder, UserOrder};
use tidegate_core::{Bytes, Span, Time};

use super::{BYTE, Fraction, Request, Response, World};

impl Response {
    /// Whether it is long, and more comes, as far as can be told.
    pub(super) fn goes_on(&self) -> bool {
        self.is_long && !self.is_whole && self.pace > 0
    }

    /// Whether a long response wants to be read on.
    pub(super) fn wants(&self, grant: u64) -> bool {
        self.may <= grant.max(self.ahead) / 2
    }
}

impl World<'_> {
    /// Time has come to `now`.
    pub(super) fn pay_in(&mut self, now: Time) {
        let Some(gate) = self.config.read_gate else { return };
        let grant = i128::from(self.grant()) * BYTE;
        let span = i128::from(now.since(self.at).0) * i128::from(self.rate.0);
        self.at = now;
        let target = self.config.window.target_millionths;
        let limit = self.rate.transmission(Bytes(self.long_from) * 2).max(gate.delay_limit);
        let drain = Span::seconds(2).max(limit * 64);
        let excess = (self.delay.0 - limit).0 / (drain.0 / 1_000_000);
        let room = span * i128::from(target.saturating_sub(excess));
        let floor = span * i128::from(gate.floor_millionths);
        let most = self.most_room();
        let back = self.lingering.min(span * 1_000_000);
        self.lingering -= back;
        self.room = if self.room > most {
            most.max(self.room - span * 1_000_000)
        } else {
            (self.room + room + back).min(most)
        };
        self.read_floor = (self.read_floor + floor).min(grant);
        self.request_floor = (self.request_floor + floor).min(grant);
        let mut silent = Vec::new();
        for response in &mut self.responses {
            while let Some(until) = response.watched_until.take_if(|until| *until <= now) {
                if response.arrived - response.before >= gate.grant.0 {
                    response.watched_until = Some(until + Span::seconds(3));
                    response.before = response.arrived;
                    continue;
                }
                response.has_place = false;
                response.pace = 0;
                let paid = std::mem::take(&mut response.paid);
                self.room = (self.room + i128::from(paid) * BYTE).min(most.max(self.room));
                let is_silent = response.arrived == 0 && self.delay.0 < Span::millis(375);
                silent.extend(is_silent.then_some(response.request));
            }
        }
        for request in silent {
            if self.usual.iter().all(|(of, _)| *of != (request.class, request.user)) {
                self.see_of(request, self.brings(request));
            }
            self.see_of(request, 1);
        }
    }

    /// Room for one grant must fit, and for two responses that are not long.
    pub(super) fn most_room(&self) -> i128 {
        let least = self.config.read_gate.map_or(0, |_| self.grant().max(2 * self.long_from));
        self.memory().max(i128::from(least) * BYTE)
    }

    pub(super) fn memory(&self) -> i128 {
        i128::from(self.rate.0) * 200_000_000 * 1_000_000
    }

    pub(super) fn spend(&mut self, bytes: u64) {
        self.take(i128::from(bytes) * BYTE);
    }

    pub(super) fn take(&mut self, amount: i128) {
        let least = self.room.min(-self.memory());
        self.room = (self.room - amount).max(least);
    }

    pub(super) fn charge(&mut self, class: u32, user: u64, bytes: u64, is_long: bool) {
        if class as usize >= self.weights.len() || self.users(class).is_empty() {
            return;
        }
        let service = match self.config.class_order {
            ClassOrder::Turns { .. } => Fraction::new(i128::from(bytes), 1),
            _ => Fraction::new(i128::from(bytes), i128::from(self.share(class))),
        };
        self.service[class as usize] = self.service[class as usize].plus(service);
        if self.users(class).contains(&user) {
            let level = self.level(class, user).plus(self.of_level(class, bytes));
            self.set_level(class, user, level);
            if !is_long {
                let asked = self.asked(class, user).plus(self.of_level(class, bytes));
                self.set_asked(class, user, asked);
            }
        }
    }

    /// What bytes are in the level of a user.
    pub(super) fn of_level(&self, class: u32, bytes: u64) -> Fraction {
        Fraction::new(i128::from(bytes), i128::from(self.weight_of_user(class)))
    }

    /// The powers of two in what a response of a class has received since something was asked
    /// for last, over the root of its user's weight.
    pub(super) fn octave(&self, class: u32, at: usize) -> u32 {
        let weight = u128::from(self.weight_of_user(class));
        let received = self.responses[at].received - self.responses[at].asked_at;
        let square = u128::from(received) * u128::from(received);
        (1..64).filter(|power| weight <= square >> (2 * power)).count() as u32
    }

    fn weight_of_user(&self, class: u32) -> u64 {
        if self.is_together() { self.weights[class as usize] } else { 1 }
    }

    /// What may come of a long response has changed: more is promised, or less.
    pub(super) fn extend(&mut self, now: Time, at: usize) {
        if self.config.read_gate.is_none() {
            return;
        }
        let grant = self.grant();
        let response = &mut self.responses[at];
        let before = response.horizon.max(response.arrived);
        let may = if response.is_long { response.may } else { 0 };
        response.horizon = response.edge.max(response.received + may + response.ahead);
        if !response.is_long || response.is_whole {
            return;
        }
        if response.horizon > before {
            let more = (response.horizon - before).min(grant);
            response.paid += more;
            self.room -= i128::from(more) * BYTE;
            if response.watched_until.is_none() {
                response.watched_until = Some(now + Span::seconds(3));
                response.before = response.arrived;
            }
        }
        let open = response.horizon.saturating_sub(response.arrived);
        if response.paid > open {
            let back = i128::from(response.paid - open) * BYTE;
            response.paid = open;
            self.room += back;
        }
    }

    /// The room pays for what is to come of a response, and class and user for what is to be
    /// read of it.
    pub(super) fn pay(&mut self, handle: u64) {
        let at = self.position(handle);
        let request = self.responses[at].request;
        let bytes = self.brings(request);
        self.charge(request.class, request.user, bytes, false);
        let response = &mut self.responses[at];
        response.charged += bytes;
        response.paid += bytes;
        self.room -= i128::from(bytes) * BYTE;
    }

    /// What a response of this user is expected to bring before it is long.
    pub(super) fn brings(&self, Request { class, user, .. }: Request) -> u64 {
        let least = self.config.read_gate.map_or(0, |gate| gate.long_from.0 / 8);
        let usual = self.usual.iter().find(|(of, _)| *of == (class, user));
        usual.map_or(self.expected, |(_, usual)| (*usual).max(least).min(self.long_from))
    }

    /// What has not come of that is room again.
    pub(super) fn vacate(&mut self, at: usize) {
        let paid = std::mem::take(&mut self.responses[at].paid);
        self.room += i128::from(paid) * BYTE;
    }

    /// And the user gets back what it was charged for.
    pub(super) fn refund(&mut self, at: usize) {
        self.vacate(at);
        let charged = std::mem::take(&mut self.responses[at].charged);
        let Request { class, user, .. } = self.responses[at].request;
        let less = |of: Fraction, by: Fraction, least: Fraction| {
            let minus = Fraction::new(-by.over, by.under);
            of.plus(minus).max(least).min(of)
        };
        let by = self.of_level(class, charged);
        let level = less(self.level(class, user), by, self.reached[self.group(class)]);
        self.set_level(class, user, level);
        if !self.responses[at].is_long {
            let by = self.of_level(class, charged);
            let asked = less(self.asked(class, user), by, self.reached[self.group(class)]);
            self.set_asked(class, user, asked);
        }
        let asked = self.asked(class, user).min(self.level(class, user));
        self.set_asked(class, user, asked);
        let by = Fraction::new(i128::from(charged), i128::from(self.share(class)));
        let service = &mut self.service[class as usize];
        *service = less(*service, by, self.class_reached);
    }

    /// A response is over before its end: what was paid may come, and so may the rest of
    /// what is out before it could be long.
    pub(super) fn break_off(&mut self, handle: u64) {
        let at = self.position(handle);
        if let Some(gate) = self.config.read_gate {
            let Response { request, received, arrived, paid, charged, is_long, .. } =
                self.responses[at];
            self.lingering += i128::from(paid) * BYTE;
            let rest = (arrived + paid).max(gate.long_from.0).saturating_sub(received + charged);
            self.charge(request.class, request.user, rest, is_long);
        }
        let Response { request, received, arrived, edge, is_long, .. } = self.responses.remove(at);
        if is_long {
            self.see(request, received);
        } else if let Some(gate) = self.config.read_gate {
            self.see_of(request, edge.max(arrived).max(gate.long_from.0));
        }
    }

    /// Nothing is remembered of who has nothing and is not ahead of those who come.
    pub(super) fn forget(&mut self) {
        let mut usual = std::mem::take(&mut self.usual);
        usual.retain(|((class, user), _)| {
            let has_lines = self.config.user_order == UserOrder::LeastService;
            let is_ahead = self.level(*class, *user) > self.reached[self.group(*class)];
            self.users(*class).contains(user) || has_lines && is_ahead
        });
        self.usual = usual;
    }

    /// What a user's responses usually bring before they are long follows this size.
    fn see_of(&mut self, Request { class, user, .. }: Request, size: u64) {
        let short = size.min(self.long_from);
        match self.usual.iter_mut().find(|(of, _)| *of == (class, user)) {
            Some((_, usual)) => *usual = (*usual * 7 + short) / 8,
            None => self.usual.push(((class, user), short)),
        }
    }

    /// A response is over: every 16th of those that brought something says anew what is
    /// long.
    pub(super) fn see(&mut self, of: Request, size: u64) {
        let Some(gate) = self.config.read_gate else { return };
        if size == 0 {
            return;
        }
        self.see_of(of, size);
        self.sizes.push(size);
        if !self.sizes.len().is_multiple_of(16) {
            return;
        }
        // The quarters of octaves, by their ends.
        let ends: Vec<u64> = (0..40).flat_map(|o| [5, 6, 7, 8].map(|q| q << o)).collect();
        let end = |size: u64| ends.iter().copied().find(|end| size < *end).expect("no exabytes");
        let last = &self.sizes[self.sizes.len().saturating_sub(512)..];
        let sizes: Vec<u64> = last.iter().map(|size| end(*size)).collect();
        let done = |limit: u64| sizes.iter().filter(|size| **size <= limit).count() as u64;
        let sent = |limit: u64| sizes.iter().map(|size| limit.min(*size)).sum::<u64>();
        let per_byte = |limit: &u64| Fraction::new(done(*limit).into(), sent(*limit).into());
        let least = end(gate.long_from.0);
        let mut limits = vec![least];
        let most = (self.rate.0 / 16).max(gate.long_from.0);
        limits.extend(sizes.iter().copied().filter(|size| *size > least && *size <= most));
        limits.sort_unstable();
        // The first of the best.
        let best = limits.into_iter().rev().max_by_key(per_byte).expect("there is the least");
        self.long_from = best.max(gate.long_from.0);
        let expected = sent(best) / sizes.len() as u64;
        self.expected = expected.max(gate.long_from.0 / 8).min(self.long_from);
    }
}
