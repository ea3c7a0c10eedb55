//! The twin of the request schedulers. It takes in everything that happens, with
//! fractions for the service and with lists that it searches from end to end for
//! every decision, and says what has to be decided now.

use std::cmp::Reverse;

use tidegate_core::request::{
    ClassOrder, Config, LinkReport, ReadGateConfig, Reading, Refusal, UserOrder, WindowMode,
};
use tidegate_core::{Bytes, Rate, Span, Time};

pub mod gateway;
pub mod proxy;

use gateway::{Ended, Event, Log};

/// An exact fraction, in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fraction {
    over: i128,
    under: i128,
}

impl Fraction {
    fn new(over: i128, under: i128) -> Fraction {
        let (mut a, mut b) = (over.abs().max(1), under);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let common = if over == 0 { under } else { a };
        Fraction { over: over / common, under: under / common }
    }

    fn plus(self, other: Fraction) -> Fraction {
        let over = self.over * other.under + other.over * self.under;
        Fraction::new(over, self.under * other.under)
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Fraction) -> std::cmp::Ordering {
        (self.over * other.under).cmp(&(other.over * self.under))
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Fraction) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

const ZERO: Fraction = Fraction { over: 0, under: 1 };

/// The rules, with everything that they need in plain lists.
struct World<'a> {
    config: &'a Config,
    rate: Rate,
    weights: &'a [u64],
    waiting: Vec<Request>,
    responses: Vec<Response>,
    /// *SC* of each class; bytes where classes take turns.
    service: Vec<Fraction>,
    /// The least *SC* of those who wanted something when one was served last.
    class_reached: Fraction,
    /// What each user ever had, for their weight if weights are those of users.
    levels: Vec<((u32, u64), Fraction)>,
    /// The least level of those of a group who wanted something when one of them was
    /// served last.
    reached: Vec<Fraction>,
    /// When classes last got a request while they had none waiting.
    joined: Vec<usize>,
    round: i128,
    steps: usize,
    /// *W+* in units of 2^-32.
    window: u64,
    updated: Option<(Time, Bytes)>,
    // The read gate.
    /// The sizes of responses that are over, and what follows from them.
    sizes: Vec<u64>,
    long_from: u64,
    expected: u64,
    at: Time,
    room: i128,
    read_floor: i128,
    request_floor: i128,
    /// What was promised to responses that were broken off and may still come.
    lingering: i128,
    /// The queueing delay, and when it was reported.
    delay: (Span, Time),
    seen: u64,
    base: Option<u64>,
    unseen: u64,
}

#[derive(Clone, Copy)]
struct Request {
    handle: u64,
    class: u32,
    user: u64,
}

#[derive(Clone, Copy)]
struct Response {
    request: Request,
    received: u64,
    /// What has come, read or not, and whether that is all.
    arrived: u64,
    is_whole: bool,
    /// What was promised and has not come.
    paid: u64,
    /// What the user was charged for and has not read.
    charged: u64,
    /// What it may read when it is long.
    may: u64,
    has_place: bool,
    /// Until when it has to bring something, and what had come three seconds before.
    watched_until: Option<Time>,
    before: u64,
    is_long: bool,
    /// When it became hungry.
    hungry: Option<usize>,
}

impl<'a> World<'a> {
    fn new(config: &'a Config, rate: Rate, weights: &'a [u64]) -> World<'a> {
        let classes = weights.len();
        World {
            config,
            rate,
            weights,
            waiting: Vec::new(),
            responses: Vec::new(),
            service: vec![ZERO; classes],
            class_reached: ZERO,
            levels: Vec::new(),
            reached: vec![ZERO; classes],
            joined: vec![0; classes],
            round: 0,
            steps: 0,
            window: u64::from(config.window.start) << 32,
            updated: None,
            sizes: Vec::new(),
            long_from: config.read_gate.map_or(0, |gate| gate.long_from.0),
            expected: config.read_gate.map_or(0, |gate| gate.long_from.0),
            at: Time::ZERO,
            room: 0,
            read_floor: 0,
            request_floor: 0,
            lingering: 0,
            delay: (Span::ZERO, Time::ZERO),
            seen: 0,
            base: None,
            unseen: 0,
        }
    }

    /// Whether weights are those of users, each of whom has a line.
    fn is_together(&self) -> bool {
        self.config.user_order == UserOrder::LeastService
            && self.config.class_order == ClassOrder::LeastService { per_user: true }
    }

    /// The group of a class, whose users stand in one order.
    fn group(&self, class: u32) -> usize {
        if self.is_together() { 0 } else { class as usize }
    }

    /// The users of a class that have a request waiting or a response outstanding.
    fn users(&self, class: u32) -> Vec<u64> {
        let waiting = self.waiting.iter().copied();
        let all = waiting.chain(self.responses.iter().map(|response| response.request));
        let mut users: Vec<_> =
            all.filter(|request| request.class == class).map(|request| request.user).collect();
        users.sort_unstable();
        users.dedup();
        users
    }

    fn share(&self, class: u32) -> u64 {
        let users = match self.config.class_order {
            ClassOrder::LeastService { per_user: true } => self.users(class).len().max(1) as u64,
            _ => 1,
        };
        self.weights[class as usize] * users
    }

    fn held(&self) -> u64 {
        self.responses.iter().filter(|response| response.has_place).count() as u64
    }

    fn is_open(&self) -> bool {
        match self.config.window.mode {
            WindowMode::Unlimited => true,
            WindowMode::Room => false,
            _ => self.held() << 32 < self.window,
        }
    }

    /// The level of a user of a class; 0 if nothing is known.
    fn level(&self, class: u32, user: u64) -> Fraction {
        let known = self.levels.iter().find(|(name, _)| *name == (class, user));
        known.map_or(ZERO, |(_, level)| *level)
    }

    fn set_level(&mut self, class: u32, user: u64, level: Fraction) {
        match self.levels.iter_mut().find(|(name, _)| *name == (class, user)) {
            Some((_, known)) => *known = level,
            None => self.levels.push(((class, user), level)),
        }
    }

    /// Whether this user wants something.
    fn wants(&self, class: u32, user: u64) -> bool {
        self.waits(class, user)
            || self.responses.iter().any(|response| {
                (response.hungry.is_some() || response.paid > 0)
                    && (response.request.class, response.request.user) == (class, user)
            })
    }

    fn waits(&self, class: u32, user: u64) -> bool {
        self.waiting.iter().any(|request| (request.class, request.user) == (class, user))
    }

    /// Which turn of its class the next request of a class belongs to.
    fn turn(&self, class: u32) -> i128 {
        let ClassOrder::Turns { quantum } = self.config.class_order else { return 0 };
        let turn = i128::from(quantum.0) * i128::from(self.weights[class as usize]);
        self.service[class as usize].over / turn
    }

    /// The request to release when the window is open.
    fn next_request(&self) -> Option<Request> {
        if self.is_together() {
            return self.first_request(&|_| true);
        }
        let classes = 0..self.weights.len() as u32;
        let waits = |class: &u32| self.waiting.iter().any(|request| request.class == *class);
        let class = classes.filter(waits).min_by_key(|class| {
            let index = *class as usize;
            match self.config.class_order {
                ClassOrder::Arrival => {
                    let first = self.waiting.iter().position(|request| request.class == *class);
                    (ZERO, 0, first.unwrap_or(usize::MAX), Reverse(0))
                }
                ClassOrder::LeastService { .. } => {
                    (self.service[index], 0, 0, Reverse(self.share(*class)))
                }
                ClassOrder::Turns { .. } => {
                    (ZERO, self.turn(*class), self.joined[index], Reverse(0))
                }
            }
        })?;
        self.first_request(&|of| of == class)
    }

    /// The next request of these classes: that of the user with the least level, if
    /// users have lines.
    fn first_request(&self, is_meant: &dyn Fn(u32) -> bool) -> Option<Request> {
        let mut meant: Vec<_> =
            self.waiting.iter().filter(|request| is_meant(request.class)).collect();
        if self.config.user_order == UserOrder::LeastService {
            // The sort is stable: requests stay in the order in which they came.
            meant.sort_by_key(|request| self.level(request.class, request.user));
        }
        meant.first().copied().copied()
    }

    /// The long response to read next of these classes.
    fn first_reader(&self, is_meant: &dyn Fn(u32) -> bool) -> Option<Request> {
        let first = |user: (u32, u64)| {
            let of_user = self.hungry().filter(|(r, _)| (r.class, r.user) == user);
            of_user.map(|(_, since)| since).min()
        };
        let meant = self.hungry().filter(|(request, _)| is_meant(request.class));
        let next = meant.min_by_key(|(request, since)| {
            let user = (request.class, request.user);
            (self.level(request.class, request.user), first(user), *since)
        });
        next.map(|(request, _)| request)
    }

    fn hungry(&self) -> impl Iterator<Item = (Request, usize)> {
        self.responses.iter().filter_map(|response| Some((response.request, response.hungry?)))
    }

    /// What is next when there is room: a request or a long response, and the room.
    fn candidate(&self) -> Option<(Event, u64)> {
        let gate = self.config.read_gate?;
        let with_requests = self.config.window.mode == WindowMode::Room;
        let classes = (0..self.weights.len() as u32).filter(|class| {
            let waits = self.waiting.iter().any(|request| request.class == *class);
            let reads = self.hungry().any(|(request, _)| request.class == *class);
            with_requests && waits || reads
        });
        let group = match self.is_together() {
            true => None,
            false => Some(classes.min_by_key(|class| {
                (self.service[*class as usize], Reverse(self.share(*class)), *class)
            })?),
        };
        let is_meant = |class: u32| group.is_none_or(|group| group == class);
        let request = self.first_request(&is_meant).filter(|_| with_requests);
        let reader = self.first_reader(&is_meant);
        let level = |request: &Request| self.level(request.class, request.user);
        let release = |request: Request| {
            (Event::Released { handle: request.handle }, self.expected.min(gate.grant.0))
        };
        let read = |request: Request| {
            let is_whole = self.responses[self.position(request.handle)].is_whole;
            let needs = if is_whole { 0 } else { gate.grant.0 };
            (Event::Read { handle: request.handle, size: gate.grant }, needs)
        };
        match (request, reader) {
            (Some(request), Some(reader)) => {
                let lead = (self.rate.0 / 32).max(4 * gate.long_from.0);
                let lead = Fraction::new(i128::from(lead), 1);
                let is_first = level(&request) <= level(&reader).plus(lead);
                Some(if is_first { release(request) } else { read(reader) })
            }
            (Some(request), None) => Some(release(request)),
            (None, Some(reader)) => Some(read(reader)),
            (None, None) => None,
        }
    }

    /// What is decided now. Only what the floor gives is taken from it at once.
    fn decide(&mut self) -> Event {
        if self.is_open()
            && let Some(request) = self.next_request()
        {
            return Event::Released { handle: request.handle };
        }
        let Some(gate) = self.config.read_gate else { return Event::Rested };
        let grant = i128::from(gate.grant.0) * BYTE;
        let is_room = self.config.window.mode == WindowMode::Room;
        if self.request_floor >= grant
            && is_room
            && let Some(request) = self.next_request()
        {
            self.request_floor -= i128::from(self.expected) * BYTE;
            return Event::Released { handle: request.handle };
        }
        let oldest = self.hungry().min_by_key(|(_, since)| *since);
        if self.read_floor >= grant
            && let Some((oldest, _)) = oldest
        {
            self.read_floor -= grant;
            return Event::Read { handle: oldest.handle, size: gate.grant };
        }
        match self.candidate() {
            Some((event, needs))
                if self.room >= (i128::from(needs) * BYTE).min(self.most_room()) =>
            {
                event
            }
            _ => Event::Rested,
        }
    }

    /// Whether a class has a request waiting or a long response that wants to be read.
    fn is_busy(&self, class: u32) -> bool {
        self.waiting.iter().any(|request| request.class == class)
            || self.hungry().any(|(request, _)| request.class == class)
            || self.promised().any(|request| request.class == class)
    }

    fn promised(&self) -> impl Iterator<Item = Request> {
        self.responses.iter().filter(|response| response.paid > 0).map(|response| response.request)
    }

    /// Classes that had nothing to do before have saved nothing up.
    fn catch_up(&mut self, were_busy: &[bool]) {
        if self.config.read_gate.is_none() {
            return;
        }
        for class in (0..self.weights.len() as u32).filter(|class| !were_busy[*class as usize]) {
            if self.is_busy(class) {
                let service = &mut self.service[class as usize];
                *service = (*service).max(self.class_reached);
            }
        }
    }

    fn catch_up_user(&mut self, class: u32, user: u64) {
        let level = self.level(class, user).max(self.reached[self.group(class)]);
        self.set_level(class, user, level);
    }

    /// Somebody of this class is served: who comes starts no lower than the least of
    /// those who want something.
    fn reach(&mut self, class: u32) {
        let group = self.group(class);
        let wanting = self.waiting.iter().copied().chain(self.hungry().map(|(request, _)| request));
        let wanting = wanting.chain(self.promised());
        let of_group = wanting.filter(|request| self.group(request.class) == group);
        let least = of_group.map(|request| self.level(request.class, request.user)).min();
        self.reached[group] = self.reached[group].max(least.unwrap_or(ZERO));
        let busy = (0..self.weights.len() as u32).filter(|class| self.is_busy(*class));
        let least = busy.map(|class| self.service[class as usize]).min();
        self.class_reached = self.class_reached.max(least.unwrap_or(ZERO));
    }

    /// Time has come to `now`.
    fn pay_in(&mut self, now: Time) {
        let Some(gate) = self.config.read_gate else { return };
        let grant = i128::from(gate.grant.0) * BYTE;
        let span = i128::from(now.since(self.at).0) * i128::from(self.rate.0);
        self.at = now;
        let target = self.config.window.target_millionths;
        let limit = self.rate.transmission(Bytes(self.long_from) * 2).max(gate.delay_limit);
        let excess = (self.delay.0 - limit).0 / 4_000;
        let room = span * i128::from(target.saturating_sub(excess));
        let floor = span * i128::from(gate.floor_millionths);
        let most = self.most_room();
        let back = self.lingering.min(span * 1_000_000);
        self.lingering -= back;
        self.room = (self.room + room + back).min(self.most_room());
        self.read_floor = (self.read_floor + floor).min(grant);
        self.request_floor = (self.request_floor + floor).min(grant);
        for response in &mut self.responses {
            while let Some(until) = response.watched_until.take_if(|until| *until <= now) {
                if response.arrived - response.before >= gate.grant.0 {
                    response.watched_until = Some(until + Span::seconds(3));
                    response.before = response.arrived;
                    continue;
                }
                response.has_place = false;
                let paid = std::mem::take(&mut response.paid);
                self.room = (self.room + i128::from(paid) * BYTE).min(most);
            }
        }
    }

    /// Room for one grant must fit, and for two responses that are not long.
    fn most_room(&self) -> i128 {
        let of_gate = |gate: ReadGateConfig| gate.grant.0.max(2 * self.long_from);
        let least = self.config.read_gate.map_or(0, of_gate);
        self.memory().max(i128::from(least) * BYTE)
    }

    fn memory(&self) -> i128 {
        i128::from(self.rate.0) * 200_000_000 * 1_000_000
    }

    fn spend(&mut self, bytes: u64) {
        self.take(i128::from(bytes) * BYTE);
    }

    fn take(&mut self, amount: i128) {
        let least = self.room.min(-self.memory());
        self.room = (self.room - amount).max(least);
    }

    fn charge(&mut self, class: u32, user: u64, bytes: u64) {
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
        }
    }

    /// What bytes are in the level of a user.
    fn of_level(&self, class: u32, bytes: u64) -> Fraction {
        let weight = if self.is_together() { self.weights[class as usize] } else { 1 };
        Fraction::new(i128::from(bytes), i128::from(weight))
    }

    /// Class and user pay for what is to be read, and the room for what is to come.
    fn pay(&mut self, handle: u64, bytes: u64) {
        let at = self.position(handle);
        let Request { class, user, .. } = self.responses[at].request;
        self.charge(class, user, bytes);
        let response = &mut self.responses[at];
        response.charged += bytes;
        if !response.is_whole {
            response.paid += bytes;
            self.room -= i128::from(bytes) * BYTE;
        }
    }

    /// What has not come of that is room again.
    fn vacate(&mut self, at: usize) {
        let paid = std::mem::take(&mut self.responses[at].paid);
        self.room = (self.room + i128::from(paid) * BYTE).min(self.most_room());
    }

    /// And the user gets back what it was charged for.
    fn refund(&mut self, at: usize) {
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
        let by = Fraction::new(i128::from(charged), i128::from(self.share(class)));
        let service = &mut self.service[class as usize];
        *service = less(*service, by, self.class_reached);
    }

    /// A response is over before its end: what was paid may come, and so may the rest of
    /// what is out before it could be long.
    fn break_off(&mut self, handle: u64) {
        let at = self.position(handle);
        if let Some(gate) = self.config.read_gate {
            let Response { request, received, arrived, paid, charged, .. } = self.responses[at];
            self.lingering += i128::from(paid) * BYTE;
            let rest = (arrived + paid).max(gate.long_from.0).saturating_sub(received + charged);
            self.charge(request.class, request.user, rest);
        }
        let Response { received, is_long, .. } = self.responses.remove(at);
        if is_long {
            self.see(received);
        }
    }

    /// A response is over: every 16th of those that brought something says anew what is
    /// long.
    fn see(&mut self, size: u64) {
        let Some(gate) = self.config.read_gate else { return };
        if size == 0 {
            return;
        }
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

    fn position(&self, handle: u64) -> usize {
        let found = self.responses.iter().position(|r| r.request.handle == handle);
        found.expect("it is outstanding")
    }

    /// One thing more has happened.
    fn take_in(&mut self, now: Time, event: Event) {
        self.steps += 1;
        self.pay_in(now);
        let were_busy: Vec<_> =
            (0..self.weights.len() as u32).map(|class| self.is_busy(class)).collect();
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
                let class = self.waiting[at.expect("it waits")].class;
                self.reach(class);
                let request = self.waiting.remove(at.expect("it waits"));
                self.round = self.turn(request.class);
                self.outstanding(now, request, 0);
                if self.config.read_gate.is_some() {
                    self.pay(handle, self.expected);
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
                    self.pay(request.handle, self.expected);
                }
            }
            Event::Received { handle, size, reading } => self.receive(handle, size.0, reading),
            Event::Came { handle, unread } => {
                let at = self.position(handle);
                self.bring(at, self.responses[at].received + unread.0);
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
                let received = self.responses.remove(at).received;
                self.see(received);
            }
            Event::Ended { handle, end: Ended::Broken } => self.break_off(handle),
            Event::Ended { handle, end: Ended::Unasked } => {
                let at = self.position(handle);
                let Response { paid, is_long, received, .. } = self.responses.remove(at);
                self.room = (self.room + i128::from(paid) * BYTE).min(self.most_room());
                if is_long {
                    self.see(received);
                }
            }
            Event::Unasked { whose, size } => {
                self.seen += size.0;
                whose.into_iter().for_each(|(class, user)| self.charge(class, user, size.0));
                self.spend(size.0);
            }
            Event::Reported { report, window } => self.report(now, report, window),
            Event::Read { handle, size } => {
                let at = self.position(handle);
                self.reach(self.responses[at].request.class);
                assert!(self.responses[at].is_long);
                self.responses[at].hungry = None;
                let response = &mut self.responses[at];
                response.may += size.0;
                if response.watched_until.is_none() && !response.is_whole {
                    response.watched_until = Some(now + Span::seconds(3));
                    response.before = response.arrived;
                }
                self.pay(handle, size.0);
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
        self.catch_up(&were_busy);
    }

    fn outstanding(&mut self, now: Time, request: Request, received: u64) {
        self.responses.push(Response {
            request,
            received,
            arrived: received,
            is_whole: false,
            paid: 0,
            charged: 0,
            may: 0,
            has_place: true,
            watched_until: Some(now + Span::seconds(3)),
            before: received,
            is_long: false,
            hungry: None,
        });
    }

    /// A class that was idle, and a user who wants nothing, go on from where the others
    /// are.
    fn activate(&mut self, request: Request) {
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
        if !self.wants(request.class, request.user) {
            self.catch_up_user(request.class, request.user);
        }
    }

    fn arrive(&mut self, request: Request) {
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

    fn receive(&mut self, handle: u64, bytes: u64, reading: Reading) {
        let at = self.position(handle);
        let Request { class, user, .. } = self.responses[at].request;
        let wanted = self.wants(class, user);
        let response = &mut self.responses[at];
        response.received += bytes;
        response.may = response.may.saturating_sub(bytes);
        let uncharged = bytes.saturating_sub(response.charged);
        response.charged = response.charged.saturating_sub(bytes);
        let received = response.received;
        self.charge(class, user, uncharged);
        self.bring(at, received);
        let Some(gate) = self.config.read_gate else {
            return assert_eq!(reading, Reading::Freely);
        };
        let response = &mut self.responses[at];
        if !response.is_long {
            let in_time = response.has_place || response.is_whole;
            if in_time && response.received < self.long_from {
                return assert_eq!(reading, Reading::Freely, "response {handle}");
            }
            response.is_long = true;
            response.may = 0;
            (response.has_place, response.watched_until) = (false, None);
            self.refund(at);
        }
        let Response { may, hungry, .. } = self.responses[at];
        if hungry.is_none() && may <= gate.grant.0 / 2 {
            if !wanted {
                self.catch_up_user(class, user);
            }
            self.responses[at].hungry = Some(self.steps);
        }
        assert_eq!(reading, Reading::UpTo(Bytes(may)), "how response {handle} may be read");
    }

    /// So much of a response has come.
    fn bring(&mut self, at: usize, arrived: u64) {
        let response = &mut self.responses[at];
        let fresh = arrived.saturating_sub(response.arrived);
        let unpaid = fresh.saturating_sub(response.paid);
        response.arrived += fresh;
        response.paid = response.paid.saturating_sub(fresh);
        self.seen += fresh;
        self.spend(unpaid);
    }

    fn report(&mut self, now: Time, report: LinkReport, window: u64) {
        let base = *self.base.get_or_insert(report.carried.0.saturating_sub(self.seen));
        let before = self.unseen;
        self.unseen = (report.carried.0 - base).saturating_sub(self.seen);
        let carried = i128::from(self.unseen.saturating_sub(before)) * BYTE;
        let lingering = carried.min(self.lingering);
        self.lingering -= lingering;
        self.take(carried - lingering);
        let less = i128::from(before.saturating_sub(self.unseen)) * BYTE;
        self.room = (self.room + less).min(self.most_room());
        let (delay, reported) = self.delay;
        self.delay = (report.queueing_delay.unwrap_or(delay - now.since(reported)), now);
        self.control(now, report);
        if !matches!(self.config.window.mode, WindowMode::Unlimited | WindowMode::Room) {
            assert_eq!(window, self.window, "W+ in units of 2^-32 at {now}");
        }
    }

    fn control(&mut self, now: Time, report: LinkReport) {
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

/// A byte, in bits times nanoseconds times millionths.
const BYTE: i128 = 8 * 1_000_000_000 * 1_000_000;

/// Compares every decision in a log with what the rules decide after all that happened
/// before.
///
/// # Panics
/// When one differs.
pub fn compare(config: &Config, rate: Rate, weights: &[u64], log: &Log) {
    let mut world = World::new(config, rate, weights);
    for (position, (now, event)) in log.iter().enumerate() {
        if matches!(event, Event::Released { .. } | Event::Read { .. } | Event::Rested) {
            world.pay_in(*now);
            let expected = world.decide();
            assert_eq!(*event, expected, "decision {position} at {now}, after {log:#?}");
        }
        world.take_in(*now, *event);
    }
}
