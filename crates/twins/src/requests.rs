//! The twin of the request schedulers. Before every decision, it goes through
//! everything that ever happened, with fractions for the service and with lists
//! that it searches from end to end, and says what has to be decided now.

use std::cmp::Reverse;

use tidegate_core::request::{
    ClassOrder, Config, LinkReport, Reading, Refusal, UserOrder, WindowMode,
};
use tidegate_core::{Bytes, Rate, Span, Time};

pub mod gateway;
pub mod proxy;

use gateway::{Event, Log};

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
    /// Bytes of each active user of a class.
    user_service: Vec<((u32, u64), u64)>,
    /// Service of the user served last, by class.
    reached: Vec<u64>,
    /// When classes last got a request while they had none waiting.
    joined: Vec<usize>,
    round: i128,
    steps: usize,
    /// *W+* in units of 2^-32.
    window: u64,
    updated: Option<(Time, Bytes)>,
    delays: Vec<Span>,
    delayed_intervals: u32,
    // The read gate.
    at: Time,
    room: i128,
    floor: i128,
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

struct Response {
    request: Request,
    received: u64,
    /// For a long response: what it may still read, and when it became hungry, with
    /// its user's service at that time.
    long: Option<(u64, Option<(u64, usize)>)>,
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
            user_service: Vec::new(),
            reached: vec![0; classes],
            joined: vec![0; classes],
            round: 0,
            steps: 0,
            window: u64::from(config.window.start) << 32,
            updated: None,
            delays: Vec::new(),
            delayed_intervals: 0,
            at: Time::ZERO,
            room: 0,
            floor: 0,
            seen: 0,
            base: None,
            unseen: 0,
        }
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
        self.responses.iter().filter(|response| response.long.is_none()).count() as u64
    }

    fn is_open(&self) -> bool {
        self.config.window.mode == WindowMode::Unlimited || self.held() << 32 < self.window
    }

    /// Bytes received by this user of a class; 0 if nothing is known.
    fn user_service(&self, class: u32, user: u64) -> u64 {
        let known = self.user_service.iter().find(|(name, _)| *name == (class, user));
        known.map_or(0, |(_, service)| *service)
    }

    /// Which turn of its class the next request of a class belongs to.
    fn turn(&self, class: u32) -> i128 {
        let ClassOrder::Turns { quantum } = self.config.class_order else { return 0 };
        let turn = i128::from(quantum.0) * i128::from(self.weights[class as usize]);
        self.service[class as usize].over / turn
    }

    /// The request to release when the window is open.
    fn next_request(&self) -> Option<Request> {
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
        let mut of_class: Vec<_> =
            self.waiting.iter().filter(|request| request.class == class).collect();
        if self.config.user_order == UserOrder::LeastService {
            // The sort is stable: requests stay in the order in which they came.
            of_class.sort_by_key(|request| self.user_service(class, request.user));
            let first_of_user = |request: &&Request| {
                self.waiting.iter().find(|r| (r.class, r.user) == (class, request.user))
            };
            return of_class.first().and_then(first_of_user).copied();
        }
        of_class.first().copied().copied()
    }

    /// The long response to read when there is room.
    fn next_reader(&mut self) -> Option<u64> {
        let gate = self.config.read_gate?;
        let grant = i128::from(gate.grant.0) * BYTE;
        let hungry: Vec<_> = self
            .responses
            .iter()
            .filter_map(|response| Some((response.request, response.long?.1?)))
            .collect();
        let oldest = hungry.iter().min_by_key(|(_, (_, since))| *since)?;
        if self.floor >= grant {
            self.floor -= grant;
            return Some(oldest.0.handle);
        }
        if self.room < grant {
            return None;
        }
        let none_waits = |class: u32| self.waiting.iter().all(|request| request.class != class);
        let behind = self.waiting.iter().map(|request| self.service[request.class as usize]).min();
        let next = hungry.iter().filter(|(request, _)| none_waits(request.class)).min_by_key(
            |(request, since)| {
                let service = self.service[request.class as usize];
                (service, Reverse(self.share(request.class)), request.class, *since)
            },
        )?;
        if behind.is_some_and(|behind| behind < self.service[next.0.class as usize]) {
            return None;
        }
        Some(next.0.handle)
    }

    /// Whether a class has a request waiting or a long response that wants to be read.
    fn is_busy(&self, class: u32) -> bool {
        let hungry = |response: &Response| response.long.is_some_and(|(_, since)| since.is_some());
        self.waiting.iter().any(|request| request.class == class)
            || self.responses.iter().any(|r| r.request.class == class && hungry(r))
    }

    /// Classes or users that had nothing to do before have saved nothing up.
    fn catch_up(&mut self, were_busy: &[bool]) {
        if self.config.read_gate.is_none() {
            return;
        }
        let classes = 0..self.weights.len() as u32;
        let before = classes.clone().filter(|class| were_busy[*class as usize]);
        let still = before.filter(|class| self.is_busy(*class));
        let Some(least) = still.map(|class| self.service[class as usize]).min() else { return };
        for class in classes.filter(|class| !were_busy[*class as usize]) {
            if self.is_busy(class) {
                let service = &mut self.service[class as usize];
                *service = (*service).max(least);
            }
        }
    }

    fn pay(&mut self, now: Time) {
        let Some(gate) = self.config.read_gate else { return };
        let memory = i128::from(self.rate.0) * 200_000_000 * 1_000_000;
        let grant = i128::from(gate.grant.0) * BYTE;
        let span = i128::from(now.since(self.at).0) * i128::from(self.rate.0);
        self.at = now;
        let room = span * i128::from(self.config.window.target_millionths);
        let floor = span * i128::from(gate.floor_millionths);
        self.room = (self.room + room).min(memory.max(grant));
        self.floor = (self.floor + floor).min(grant);
    }

    fn spend(&mut self, bytes: u64) {
        let memory = i128::from(self.rate.0) * 200_000_000 * 1_000_000;
        self.room = (self.room - i128::from(bytes) * BYTE).max(-memory);
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
        let known = self.user_service.iter_mut().find(|(name, _)| *name == (class, user));
        known.into_iter().for_each(|(_, service)| *service += bytes);
    }

    /// One thing more has happened.
    fn take_in(&mut self, now: Time, event: Event) {
        self.steps += 1;
        self.pay(now);
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
                self.forget_idle_users();
            }
            Event::Released { handle } => {
                let at = self.waiting.iter().position(|request| request.handle == handle);
                let request = self.waiting.remove(at.expect("it waits"));
                self.round = self.turn(request.class);
                self.reached[request.class as usize] =
                    self.user_service(request.class, request.user);
                self.responses.push(Response { request, received: 0, long: None });
            }
            Event::Resumed { request, received } => {
                let request = Request {
                    handle: request.handle,
                    class: request.class.0,
                    user: request.user.0,
                };
                self.activate(request);
                self.responses.push(Response { request, received: received.0, long: None });
            }
            Event::Received { handle, size, reading } => self.receive(handle, size.0, reading),
            Event::Ended { handle } => {
                let at = self.responses.iter().position(|r| r.request.handle == handle);
                let response = self.responses.remove(at.expect("it is outstanding"));
                let unused = response.long.map_or(0, |(granted, _)| granted);
                self.spend_back(unused);
                self.forget_idle_users();
            }
            Event::Unasked { whose, size } => {
                self.seen += size.0;
                whose.into_iter().for_each(|(class, user)| self.charge(class, user, size.0));
                self.spend(size.0);
            }
            Event::Reported { report, window } => self.report(now, report, window),
            Event::Read { handle, size } => {
                let response = self.responses.iter_mut().find(|r| r.request.handle == handle);
                let (granted, hungry) =
                    response.and_then(|response| response.long.as_mut()).expect("it is long");
                (*granted, *hungry) = (*granted + size.0, None);
                self.spend(size.0);
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

    /// A class that was idle, and a user who has nothing waiting, go on from where the
    /// others are.
    fn activate(&mut self, request: Request) {
        let class = request.class as usize;
        let active = |world: &World, class: u32| !world.users(class).is_empty();
        let others = (0..self.weights.len() as u32).filter(|other| active(self, *other));
        let least = others.map(|other| self.service[other as usize]).min();
        if least.is_none() {
            self.round = 0;
        }
        let takes_turns = matches!(self.config.class_order, ClassOrder::Turns { .. });
        if !active(self, request.class) {
            self.service[class] = if takes_turns { ZERO } else { least.unwrap_or(ZERO) };
        }
        let name = (request.class, request.user);
        if !self.user_service.iter().any(|(known, _)| *known == name) {
            self.user_service.push((name, 0));
        }
        if !self.waiting.iter().any(|r| (r.class, r.user) == name) {
            let reached = self.reached[class];
            let known = self.user_service.iter_mut().find(|(known, _)| *known == name);
            known.into_iter().for_each(|(_, service)| *service = reached.max(*service));
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
        self.seen += bytes;
        let at = self.responses.iter().position(|r| r.request.handle == handle);
        let at = at.expect("it is outstanding");
        let request = self.responses[at].request;
        self.charge(request.class, request.user, bytes);
        let hungry = Some((self.user_service(request.class, request.user), self.steps));
        let response = &mut self.responses[at];
        response.received += bytes;
        let Some(gate) = self.config.read_gate else {
            return assert_eq!(reading, Reading::Freely);
        };
        let unpaid = match &mut response.long {
            None => {
                if response.received >= gate.long_from.0 {
                    response.long = Some((0, hungry));
                }
                bytes
            }
            Some((granted, since)) => {
                let unpaid = bytes.saturating_sub(*granted);
                *granted = granted.saturating_sub(bytes);
                if since.is_none() && *granted <= gate.grant.0 / 2 {
                    *since = hungry;
                }
                unpaid
            }
        };
        let expected =
            response.long.map_or(Reading::Freely, |(granted, _)| Reading::UpTo(Bytes(granted)));
        assert_eq!(reading, expected, "how response {handle} may be read");
        self.spend(unpaid);
    }

    fn report(&mut self, now: Time, report: LinkReport, window: u64) {
        let base = *self.base.get_or_insert(report.carried.0.saturating_sub(self.seen));
        let unseen = (report.carried.0 - base).saturating_sub(self.seen).max(self.unseen);
        self.spend(unseen - self.unseen);
        self.unseen = unseen;
        self.control(now, report);
        if self.config.window.mode != WindowMode::Unlimited {
            assert_eq!(window, self.window, "W+ in units of 2^-32 at {now}");
        }
    }

    fn control(&mut self, now: Time, report: LinkReport) {
        let config = self.config.window;
        let (since, before) = *self.updated.get_or_insert((now, report.carried));
        self.delays.extend(report.queueing_delay);
        let span = now.since(since);
        if span < config.interval {
            return;
        }
        self.updated = Some((now, report.carried));
        let least = self.delays.drain(..).min();
        let above =
            matches!((least, config.delay_limit), (Some(least), Some(most)) if least > most);
        self.delayed_intervals = if above { self.delayed_intervals + 1 } else { 0 };
        if self.is_open() || config.mode != WindowMode::Controlled {
            return;
        }
        let window = u128::from(self.window);
        let next = if self.delayed_intervals >= 2 {
            window / 100 * 85
        } else {
            let most = window * u128::from(config.growth_millionths) / 1_000_000;
            let link = u128::from(self.rate.0) * u128::from(span.0) / 8_000_000_000;
            match u128::from((report.carried - before).0) {
                0 => most,
                carried => {
                    let aimed = window * (link * u128::from(config.target_millionths));
                    most.min(aimed / (carried * 1_000_000))
                }
            }
        };
        self.window = next.clamp(1 << 32, 1 << 52) as u64;
    }

    fn spend_back(&mut self, bytes: u64) {
        let Some(gate) = self.config.read_gate else { return };
        let memory = i128::from(self.rate.0) * 200_000_000 * 1_000_000;
        let most = memory.max(i128::from(gate.grant.0) * BYTE);
        self.room = (self.room + i128::from(bytes) * BYTE).min(most);
    }

    fn forget_idle_users(&mut self) {
        let mut users = std::mem::take(&mut self.user_service);
        users.retain(|((class, user), _)| self.users(*class).contains(user));
        self.user_service = users;
    }
}

/// A byte, in bits times nanoseconds times millionths.
const BYTE: i128 = 8 * 1_000_000_000 * 1_000_000;

/// What the rules decide after all of `log`.
fn decide(config: &Config, rate: Rate, weights: &[u64], log: &[(Time, Event)], now: Time) -> Event {
    let mut world = World::new(config, rate, weights);
    for (at, event) in log {
        // What the floor gave is known only by asking again.
        if let Event::Read { .. } = event {
            world.pay(*at);
            world.next_reader();
        }
        world.take_in(*at, *event);
    }
    world.pay(now);
    if world.is_open()
        && let Some(request) = world.next_request()
    {
        return Event::Released { handle: request.handle };
    }
    let size = config.read_gate.map_or(Bytes::ZERO, |gate| gate.grant);
    world.next_reader().map_or(Event::Rested, |handle| Event::Read { handle, size })
}

/// Compares every decision in a log with what the rules decide.
///
/// # Panics
/// When one differs.
pub fn compare(config: &Config, rate: Rate, weights: &[u64], log: &Log) {
    for (position, (now, event)) in log.iter().enumerate() {
        if matches!(event, Event::Released { .. } | Event::Read { .. } | Event::Rested) {
            let expected = decide(config, rate, weights, &log[..position], *now);
            assert_eq!(*event, expected, "decision {position} at {now}, after {log:#?}");
        }
    }
}
