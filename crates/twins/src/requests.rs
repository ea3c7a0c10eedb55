//! The twin of the request schedulers. It takes in everything that happens, with
//! fractions for the service and with lists that it searches from end to end for
//! every decision, and says what has to be decided now.

use std::cmp::Reverse;

use tidegate_core::request::{ClassOrder, Config, ReadGateConfig, UserOrder, WindowMode};
use tidegate_core::{Bytes, Rate, Span, Time};

mod books;
mod events;
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
    weights: Vec<u64>,
    waiting: Vec<Request>,
    responses: Vec<Response>,
    /// *SC* of each class; bytes where classes take turns.
    service: Vec<Fraction>,
    /// Where classes start that begin to wait: see [`World::reach`].
    class_reached: Fraction,
    /// What each user ever had, for their weight if weights are those of users.
    levels: Vec<((u32, u64), Fraction)>,
    /// What the requests of each had brought, and at least what was reached when they last
    /// began to wait.
    asked: Vec<((u32, u64), Fraction)>,
    /// What a response of each brings before it is long, until the user is forgotten.
    usual: Vec<((u32, u64), u64)>,
    /// Where users of a group do.
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
    /// Why what was decided last may go.
    ground: Ground,
    request_floor: i128,
    /// What was promised to responses that were broken off and may still come.
    lingering: i128,
    /// The queueing delay, and when it was reported.
    delay: (Span, Time),
    seen: u64,
    base: Option<u64>,
    unseen: u64,
    /// What was left idle, and the last report.
    idle: i128,
    reported: Option<(Time, u64)>,
}

/// Why something is released or read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ground {
    /// There is a place in the window.
    Window,
    /// A floor has been saved.
    Floor,
    /// It is next, and there is room for it.
    Turn,
    /// The link was idle.
    Idle,
}

#[derive(Clone, Copy)]
struct Request {
    handle: u64,
    class: u32,
    user: u64,
}

/// What somebody is served with.
#[derive(Clone, Copy)]
enum Part {
    /// A request is released.
    Asked,
    /// A long response is read.
    Long,
}

#[derive(Clone, Copy)]
struct Response {
    request: Request,
    received: u64,
    /// How much that was when something was asked for last.
    asked_at: u64,
    /// What has come, read or not, and whether that is all.
    arrived: u64,
    is_whole: bool,
    /// What may come beyond what was read, the most that may have come, and the most that
    /// may when all that was granted is read.
    ahead: u64,
    pace: u64,
    edge: u64,
    horizon: u64,
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
    /// The octave of what it had received then.
    octave: u32,
}

impl<'a> World<'a> {
    fn new(config: &'a Config, rate: Rate, weights: &'a [u64]) -> World<'a> {
        let classes = weights.len();
        World {
            config,
            rate,
            weights: weights.to_vec(),
            waiting: Vec::new(),
            responses: Vec::new(),
            service: vec![ZERO; classes],
            class_reached: ZERO,
            levels: Vec::new(),
            asked: Vec::new(),
            usual: Vec::new(),
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
            ground: Ground::Window,
            request_floor: 0,
            lingering: 0,
            delay: (Span::ZERO, Time::ZERO),
            seen: 0,
            base: None,
            unseen: 0,
            idle: 0,
            reported: None,
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
        known(&self.levels, (class, user))
    }

    fn set_level(&mut self, class: u32, user: u64, level: Fraction) {
        set(&mut self.levels, (class, user), level);
    }

    fn asked(&self, class: u32, user: u64) -> Fraction {
        known(&self.asked, (class, user))
    }

    fn set_asked(&mut self, class: u32, user: u64, asked: Fraction) {
        set(&mut self.asked, (class, user), asked);
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
            meant.sort_by_key(|request| self.asked(request.class, request.user));
        }
        meant.first().copied().copied()
    }

    /// The long response to read next of these classes: of the users who are ahead by no more
    /// than a lead, the one whose first is in the lowest octave.
    fn first_reader(&self, is_meant: &dyn Fn(u32) -> bool) -> Option<Request> {
        let place = |request: Request| {
            let at = self.position(request.handle);
            (self.responses[at].octave, at)
        };
        let first = |user: (u32, u64)| {
            let of_user = self.hungry().filter(|(r, _)| (r.class, r.user) == user);
            of_user.map(|(request, _)| place(request)).min()
        };
        let level = |request: &Request| self.level(request.class, request.user);
        let meant: Vec<_> = self.hungry().map(|(request, _)| request).collect();
        let meant = meant.into_iter().filter(|request| is_meant(request.class));
        let lead = self.config.read_gate.map_or(0, |gate| self.lead(gate));
        let most = meant.clone().map(|request| level(&request)).min()?;
        let most = most.plus(Fraction::new(i128::from(lead), 1));
        let meant = meant.filter(|request| level(request) <= most);
        meant.min_by_key(|request| {
            let first = first((request.class, request.user));
            (first.map(|(octave, _)| octave), level(request), first, place(*request))
        })
    }

    fn hungry(&self) -> impl Iterator<Item = (Request, usize)> {
        self.responses.iter().filter_map(|response| Some((response.request, response.hungry?)))
    }

    /// Of those who have a long response that goes on, the one with the least, and the
    /// level of that user.
    fn last(&self, is_meant: &dyn Fn(u32) -> bool) -> Option<(Fraction, (u32, u64))> {
        let going_on = self.responses.iter().filter(|r| r.goes_on());
        let users = going_on.map(|response| (response.request.class, response.request.user));
        let meant = users.filter(|(class, _)| is_meant(*class));
        meant.map(|(class, user)| (self.level(class, user), (class, user))).min()
    }

    /// What these responses of a user may bring in a round trip, and what their servers may
    /// send.
    fn aside(&self, user: (u32, u64)) -> (u64, u64) {
        let going_on = self.responses.iter().filter(|response| response.goes_on());
        let of_user = going_on.filter(|r| (r.request.class, r.request.user) == user);
        of_user.fold((0, 0), |(pace, ahead), r| (pace + r.pace, ahead + r.ahead))
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
        let lead = Fraction::new(i128::from(self.lead(gate)), 1);
        let release = |request: Request| {
            let asked = self.asked(request.class, request.user);
            let behind = self.last(&is_meant).filter(|(level, _)| level.plus(lead) < asked);
            let brings = self.brings(request);
            let least = brings.min(self.grant());
            let needs = behind.map_or(least, |(_, user)| {
                let (pace, ahead) = self.aside(user);
                pace + brings.saturating_sub(ahead).max(least)
            });
            (Event::Released { handle: request.handle }, needs)
        };
        let read = |request: Request| {
            (
                Event::Read { handle: request.handle, size: Bytes(self.grant()) },
                self.advance(request),
            )
        };
        match (request, reader) {
            (Some(request), Some(reader)) => {
                let readers = self.hungry().filter(|(request, _)| is_meant(request.class));
                let levels = readers.map(|(reader, _)| self.level(reader.class, reader.user));
                let read_to = levels.min().unwrap_or(ZERO);
                let is_first = self.asked(request.class, request.user) <= read_to.plus(lead);
                Some(if is_first { release(request) } else { read(reader) })
            }
            (Some(request), None) => Some(release(request)),
            (None, Some(reader)) => Some(read(reader)),
            (None, None) => None,
        }
    }

    /// How far a user of weight 1 may be ahead.
    fn lead(&self, gate: ReadGateConfig) -> u64 {
        (self.rate.0 / 16).max(4 * gate.long_from.0)
    }

    /// The size of a grant: at least what the link carries in 50 us.
    fn grant(&self) -> u64 {
        self.config.read_gate.map_or(0, |gate| gate.grant.0.max(self.rate.0 / 160_000))
    }

    /// The room that a grant to a long response takes.
    fn advance(&self, request: Request) -> u64 {
        let response = &self.responses[self.position(request.handle)];
        let far = response.received + response.may + self.grant() + response.ahead;
        if response.is_whole {
            0
        } else {
            far.saturating_sub(response.horizon.max(response.arrived)).min(self.grant())
        }
    }

    /// The long response that may read what the link has left idle.
    fn idle_reader(&self) -> Option<Request> {
        let classes = (0..self.weights.len() as u32)
            .filter(|class| self.hungry().any(|(request, _)| request.class == *class));
        let next = classes.min_by_key(|class| {
            (self.service[*class as usize], Reverse(self.share(*class)), *class)
        })?;
        let reader = self.first_reader(&|class| self.is_together() || class == next)?;
        (self.idle >= i128::from(self.grant()) * BYTE).then_some(reader)
    }

    /// What is decided now. Only what a floor or the idle link gives is taken at once.
    fn decide(&mut self) -> Event {
        self.ground = Ground::Window;
        if self.is_open()
            && let Some(request) = self.next_request()
        {
            return Event::Released { handle: request.handle };
        }
        let Some(gate) = self.config.read_gate else { return Event::Rested };
        self.ground = Ground::Floor;
        let grant = i128::from(self.grant()) * BYTE;
        let is_room = self.config.window.mode == WindowMode::Room;
        if self.request_floor >= grant
            && is_room
            && let Some(request) = self.next_request()
        {
            self.request_floor -= i128::from(self.brings(request)) * BYTE;
            return Event::Released { handle: request.handle };
        }
        let oldest = self.hungry().min_by_key(|(_, since)| *since);
        let floor = u128::from(gate.floor_millionths) * u128::from(self.rate.0) * 20 / 8;
        let each = floor / 1_000_000 / (self.hungry().count().max(1) as u128);
        let piece = Bytes(each as u64).max(Bytes(500)).min(Bytes(self.grant()));
        if self.read_floor >= i128::from(piece.0) * BYTE
            && let Some((oldest, _)) = oldest
        {
            self.read_floor -= i128::from(piece.0) * BYTE;
            return Event::Read { handle: oldest.handle, size: piece };
        }
        let Some((event, needs)) = self.candidate() else { return Event::Rested };
        self.ground = Ground::Turn;
        if self.room >= (i128::from(needs) * BYTE).min(self.most_room()) {
            return event;
        }
        let Some(reader) = self.idle_reader() else { return Event::Rested };
        self.ground = Ground::Idle;
        self.idle -= grant;
        Event::Read { handle: reader.handle, size: Bytes(self.grant()) }
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

    /// Whether a class has requests that wait, and long responses that want to be read.
    fn wanting(&self) -> Vec<[bool; 2]> {
        let of_class = |class: u32| {
            let waits = self.waiting.iter().any(|request| request.class == class);
            [waits, self.hungry().any(|(request, _)| request.class == class)]
        };
        (0..self.weights.len() as u32).map(of_class).collect()
    }

    /// Classes that wanted no such thing before have saved nothing up.
    fn catch_up(&mut self, before: &[[bool; 2]]) {
        if self.config.read_gate.is_none() {
            return;
        }
        for (class, wants) in self.wanting().into_iter().enumerate() {
            let begins = |what: usize| wants[what] && !before[class][what];
            if begins(0) || begins(1) {
                let service = &mut self.service[class];
                *service = (*service).max(self.class_reached);
            }
        }
    }

    fn catch_up_user(&mut self, class: u32, user: u64) {
        let level = self.level(class, user).max(self.reached[self.group(class)]);
        self.set_level(class, user, level);
    }

    /// Somebody is served: who comes starts no lower than the least of those who are busy,
    /// and no further than a lead behind the one whose turn it is.
    fn reach(&mut self, Request { class, user, .. }: Request, part: Part) {
        let group = self.group(class);
        if let Some(gate) = self.config.read_gate
            && self.ground == Ground::Turn
        {
            let lead = i128::from(self.lead(gate));
            let behind = |level: Fraction| level.plus(Fraction::new(-lead, 1));
            let level = match part {
                Part::Asked => self.asked(class, user),
                Part::Long => self.level(class, user),
            };
            self.reached[group] = self.reached[group].max(behind(level));
            let service = behind(self.service[class as usize]);
            self.class_reached = self.class_reached.max(service);
        }
        let wanting = self.waiting.iter().copied().chain(self.hungry().map(|(request, _)| request));
        let wanting = wanting.chain(self.promised());
        let of_group = wanting.filter(|request| self.group(request.class) == group);
        let least = of_group.map(|request| self.level(request.class, request.user)).min();
        self.reached[group] = self.reached[group].max(least.unwrap_or(ZERO));
        let busy = (0..self.weights.len() as u32).filter(|class| self.is_busy(*class));
        let least = busy.map(|class| self.service[class as usize]).min();
        self.class_reached = self.class_reached.max(least.unwrap_or(ZERO));
    }

    fn position(&self, handle: u64) -> usize {
        let found = self.responses.iter().position(|r| r.request.handle == handle);
        found.expect("it is outstanding")
    }
}

fn known(of: &[((u32, u64), Fraction)], name: (u32, u64)) -> Fraction {
    of.iter().find(|(known, _)| *known == name).map_or(ZERO, |(_, level)| *level)
}

fn set(of: &mut Vec<((u32, u64), Fraction)>, name: (u32, u64), level: Fraction) {
    of.retain(|(known, _)| *known != name);
    of.push((name, level));
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
