//! A search for users who take from others what is theirs, or stall the link.
//!
//! A few users who always have something to ask for share a link with others of random
//! behaviour: servers that fall silent or trickle, clients that abort, pause, open very many
//! connections, or ask for next to nothing before they ask for much. Nobody may push a user
//! who asks for large responses all the time below 0.8 of the share that their weight gives
//! them among all users, and no more than 10% of the link may be left idle while somebody is
//! kept waiting: a request, what has come of a response, or a server whose turn it is to send
//! and whose receive buffer at the gateway is full. Others may be ahead of a user by what the
//! link carries in a second, times the user's weight. So shares are measured over eight times
//! as many seconds as all weights together, in which that is an eighth of what is due, and
//! over at least a minute. Each such window counts, of five that begin half of one apart: who
//! gets nothing for a while is not made up for by what they had before.
//!
//! The link is a model: a queue without a limit at the provider's end, and servers that
//! send a window in each round trip, which begins at ten segments, doubles, and ends at
//! what the receive buffer holds. A step takes five milliseconds of the link and less
//! than a microsecond for each response.
//!
//! `TIDEGATE_HUNT="1 h" cargo test --release -p tidegate-core --test requests hunt` searches
//! for as long; without it the search is brief.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use tidegate_core::request::{
    ClassId, Decision, LinkReport, Opening, Permit, Reading, Request, Scheduler, Ticket, UserId,
    catalogue,
};
use tidegate_core::{Bytes, Rate, Span, Time};

const STEP: Span = Span::millis(5);
/// Steps between two reports of the link's counters.
const REPORT_EVERY: u64 = 20;
/// The window that a server begins with, and the least receive buffer.
const INITIAL_WINDOW: u64 = 14_480;
const LEAST_BUFFER: u64 = 24_000;
/// The time until shares are measured.
const WARM_UP: Span = Span::seconds(20);

/// The handle of bytes that nobody wants.
const NOBODY: u64 = u64::MAX;

/// What a user does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Behaviour {
    /// Always has so many requests for so much.
    Greedy { requests: usize, size: u64 },
    /// The same, and each server falls silent after so much.
    Silent { requests: usize, after: u64 },
    /// The same, and servers send so many bytes in a second.
    Trickling { requests: usize, rate: u64 },
    /// Greedy, and away for so many steps after as many.
    Pausing { requests: usize, size: u64, steps: u64 },
    /// The same, beside one response all the time of which so many bytes come in a second.
    Lingering { requests: usize, size: u64, steps: u64, rate: u64 },
    /// Each request is given up after so many steps.
    Aborting { requests: usize, size: u64, steps: u64 },
    /// The same as greedy, with requests for one byte in every other so many steps.
    Changing { requests: usize, size: u64, steps: u64 },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct User {
    pub(crate) class: u32,
    pub(crate) behaviour: Behaviour,
    /// Steps of a round trip to the user's servers.
    pub(crate) round_trip: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) weights: Vec<u32>,
    /// In kilobits a second.
    pub(crate) rate: u64,
    pub(crate) honest: Vec<User>,
    pub(crate) others: Vec<User>,
}

fn behaviour() -> impl Strategy<Value = Behaviour> {
    let requests = || prop_oneof![1 => Just(1), 3 => 2..20_usize, 1 => 20..100_usize];
    let size =
        || prop_oneof![1 => 1..3_000_u64, 2 => 3_000..60_000_u64, 1 => 60_000..5_000_000_u64];
    let steps = || prop_oneof![1..40_u64, 40..4_000_u64];
    let pause = || prop_oneof![1 => steps(), 1 => 4_000..16_000_u64];
    prop_oneof![
        2 => (requests(), size()).prop_map(|(requests, size)| Behaviour::Greedy { requests, size }),
        2 => (requests(), 0..60_000_u64)
            .prop_map(|(requests, after)| Behaviour::Silent { requests, after }),
        2 => (requests(), 1..20_000_u64)
            .prop_map(|(requests, rate)| Behaviour::Trickling { requests, rate }),
        2 => (requests(), size(), pause())
            .prop_map(|(requests, size, steps)| Behaviour::Pausing { requests, size, steps }),
        2 => (requests(), size(), pause(), 1..20_000_u64).prop_map(
            |(requests, size, steps, rate)| Behaviour::Lingering { requests, size, steps, rate }
        ),
        2 => (requests(), size(), steps())
            .prop_map(|(requests, size, steps)| Behaviour::Aborting { requests, size, steps }),
        2 => (requests(), size(), steps())
            .prop_map(|(requests, size, steps)| Behaviour::Changing { requests, size, steps }),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    // Sizes in milliseconds of the link: their requests fill it at any rate.
    let honest = (0..3_u32, 8..16_usize, 200..2_000_u64, 2..40_u64);
    let honest = honest.prop_map(|(class, requests, size, round_trip)| User {
        class,
        behaviour: Behaviour::Greedy { requests, size },
        round_trip,
    });
    let other = (0..3_u32, behaviour(), 2..80_u64)
        .prop_map(|(class, behaviour, round_trip)| User { class, behaviour, round_trip })
        .boxed();
    // Steps of a slow link cost less.
    let rate = prop_oneof![3 => 1_000..5_000_u64, 1 => 5_000..100_000_u64];
    let weights = prop_oneof![2 => Just(vec![1; 3]), 1 => prop::collection::vec(1..9_u32, 3)];
    // Among few users, what one takes is most of what another has.
    let few =
        (prop::collection::vec(honest.clone(), 1..3), prop::collection::vec(other.clone(), 1..4));
    let many = (prop::collection::vec(honest, 1..4), prop::collection::vec(other, 0..8));
    let users = prop_oneof![3 => few, 1 => many];
    (weights, rate, users).prop_map(|(weights, rate, (mut honest, others))| {
        for user in &mut honest {
            if let Behaviour::Greedy { size, .. } = &mut user.behaviour {
                *size *= rate / 8;
            }
        }
        Case { weights, rate, honest, others }
    })
}

struct Response {
    user: usize,
    permit: Permit,
    /// What the server sends before it is silent or done, and whether it then ends.
    size: u64,
    ends: bool,
    trickles: Option<u64>,
    sent: u64,
    /// What the gateway has taken in and read.
    came: u64,
    read: u64,
    may: Option<u64>,
    /// The server's window, and what the gateway's buffer holds: twice what came and was
    /// read in a round trip, of which the last one began at a step and such totals.
    window: u64,
    buffer: u64,
    pace: u64,
    turn: (u64, u64, u64),
    begins: u64,
    dies: Option<u64>,
}

/// What a server goes on to send that has not heard yet that nobody wants it.
struct Remainder {
    /// In each step, and in all.
    pace: u64,
    left: u64,
    /// The first step, and the one in which the server hears.
    begins: u64,
    ends: u64,
}

impl Response {
    /// What its server sends in a step.
    fn pace(&self, round_trip: u64) -> u64 {
        match self.trickles {
            Some(rate) => rate * STEP.0 / 1_000_000_000,
            None => self.window.div_ceil(round_trip),
        }
    }
}

/// What each user has received in some time, the use of the link, and the part of it that was
/// left idle while somebody was kept waiting.
pub(crate) struct Outcome {
    pub(crate) received: Vec<u64>,
    pub(crate) used: f64,
    pub(crate) missed: f64,
}

/// The same in bytes, from the beginning on.
struct Sums {
    step: u64,
    received: Vec<u64>,
    carried: u64,
    missed: u64,
}

pub(crate) struct Model {
    users: Vec<User>,
    scheduler: Scheduler,
    rate: u64,
    now: Time,
    step: u64,
    waiting: Vec<Vec<(Ticket, u64)>>,
    outstanding: Vec<usize>,
    /// By handle.
    responses: BTreeMap<u64, Response>,
    remainders: Vec<Remainder>,
    handles: u64,
    /// The provider's queue: handles and bytes.
    queue: VecDeque<(u64, u64)>,
    queued: u64,
    credit: u64,
    received: Vec<u64>,
    carried: u64,
    /// What the link could have carried while somebody was kept waiting, and did not.
    missed: u64,
}

impl Model {
    pub(crate) fn new(case: &Case) -> Model {
        let entry = catalogue::find("msf").expect("it is in the catalogue");
        let weights: Vec<_> =
            case.weights.iter().map(|w| NonZeroU32::new(*w).expect("from 1 on")).collect();
        let rate = Rate(case.rate * 1_000);
        let scheduler = entry.build(&[], rate, &weights, 1);
        let users: Vec<_> = case.honest.iter().chain(&case.others).copied().collect();
        Model {
            scheduler: scheduler.expect("within range"),
            rate: rate.volume(STEP).0,
            now: Time::ZERO,
            step: 0,
            waiting: users.iter().map(|_| Vec::new()).collect(),
            outstanding: vec![0; users.len()],
            responses: BTreeMap::new(),
            remainders: Vec::new(),
            handles: 0,
            queue: VecDeque::new(),
            queued: 0,
            credit: 0,
            received: vec![0; users.len()],
            carried: 0,
            missed: 0,
            users,
        }
    }

    /// Users ask for what they want, and give up.
    fn ask(&mut self) {
        for user in 0..self.users.len() {
            let User { class, behaviour, .. } = self.users[user];
            let wants = match behaviour {
                Behaviour::Pausing { steps, .. } if self.step / steps % 2 == 1 => 0,
                Behaviour::Lingering { steps, .. } if self.step / steps % 2 == 1 => 1,
                Behaviour::Lingering { requests, .. } => requests + 1,
                Behaviour::Greedy { requests, .. }
                | Behaviour::Silent { requests, .. }
                | Behaviour::Trickling { requests, .. }
                | Behaviour::Pausing { requests, .. }
                | Behaviour::Aborting { requests, .. }
                | Behaviour::Changing { requests, .. } => requests,
            };
            if let Behaviour::Aborting { steps, .. } = behaviour {
                let given_up = self.step.saturating_sub(steps);
                while let Some((ticket, asked)) = self.waiting[user].first().copied()
                    && asked < given_up
                {
                    self.scheduler.withdraw(ticket);
                    self.waiting[user].remove(0);
                }
            }
            while self.waiting[user].len() + self.outstanding[user] < wants {
                let request = Request {
                    handle: self.handles,
                    class: ClassId(class),
                    user: UserId(user as u64),
                };
                self.handles += 1;
                let ticket = self.scheduler.arrive(request).expect("so many may wait");
                self.waiting[user].push((ticket, self.step));
            }
        }
    }

    fn obey(&mut self) {
        while let Some(decision) = self.scheduler.next(self.now) {
            match decision {
                Decision::Release { request, permit } => self.release(request, permit),
                Decision::Read { handle, size } => {
                    let response = self.responses.get_mut(&handle);
                    let may = &mut response.expect("only what lives is read").may;
                    *may = Some(may.unwrap_or(0) + size.0);
                    self.read(handle);
                }
            }
        }
    }

    fn release(&mut self, request: Request, permit: Permit) {
        let user = request.user.0 as usize;
        // A user's requests are released in the order in which they came.
        let (_, asked) = self.waiting[user].remove(0);
        self.outstanding[user] += 1;
        let User { behaviour, round_trip, .. } = self.users[user];
        let (size, ends, trickles) = match behaviour {
            Behaviour::Silent { after, .. } => (after, false, None),
            Behaviour::Trickling { rate, .. } => (u64::MAX, true, Some(rate)),
            Behaviour::Lingering { rate, .. } if !self.lingers(user) => {
                (u64::MAX, true, Some(rate))
            }
            Behaviour::Changing { steps, .. } if self.step / steps % 2 == 1 => (1, true, None),
            Behaviour::Greedy { size, .. }
            | Behaviour::Pausing { size, .. }
            | Behaviour::Lingering { size, .. }
            | Behaviour::Aborting { size, .. }
            | Behaviour::Changing { size, .. } => (size, true, None),
        };
        let dies = match behaviour {
            Behaviour::Aborting { steps, .. } => Some((asked + steps).max(self.step + 1)),
            // The gateway's patience.
            Behaviour::Silent { .. } => Some(self.step + 12_000),
            _ => None,
        };
        let response = Response {
            user,
            permit,
            size,
            ends,
            trickles,
            sent: 0,
            came: 0,
            read: 0,
            may: None,
            window: INITIAL_WINDOW,
            buffer: LEAST_BUFFER,
            pace: 0,
            turn: (self.step, 0, 0),
            // A handshake, and the request.
            begins: self.step + 2 * round_trip,
            dies,
        };
        self.responses.insert(request.handle, response);
    }

    /// Whether something trickles to this user.
    fn lingers(&self, user: usize) -> bool {
        let mut of_user = self.responses.values().filter(|response| response.user == user);
        of_user.any(|response| response.trickles.is_some())
    }

    /// Servers send, in shares of a round trip.
    fn send(&mut self) {
        let mut is_full = false;
        for (handle, response) in &mut self.responses {
            if self.step < response.begins {
                continue;
            }
            let round_trip = self.users[response.user].round_trip;
            // At least a byte in a second.
            let pace = response.pace(round_trip).max(u64::from(self.step.is_multiple_of(200)));
            let open = (response.read + response.buffer).saturating_sub(response.sent);
            let wanted = pace.min(response.size - response.sent);
            let size = wanted.min(open);
            is_full |= size < wanted;
            if (self.step - response.begins) % round_trip == round_trip - 1 {
                response.window = (response.window * 2).min(10_000_000);
            }
            if size > 0 {
                response.sent += size;
                self.queue.push_back((*handle, size));
                self.queued += size;
            }
        }
        for remainder in &mut self.remainders {
            let size = remainder.pace.min(remainder.left);
            if self.step >= remainder.begins && size > 0 {
                remainder.left -= size;
                self.queue.push_back((NOBODY, size));
                self.queued += size;
            }
        }
        let is_held = || self.responses.values().any(|response| response.came > response.read);
        if is_full || self.waiting.iter().any(|line| !line.is_empty()) || is_held() {
            self.missed += self.rate.saturating_sub(self.queued);
        }
    }

    /// The link carries what it can.
    fn carry(&mut self) {
        self.credit += self.rate;
        while self.credit > 0
            && let Some((handle, left)) = self.queue.front_mut()
        {
            let size = self.credit.min(*left);
            *left -= size;
            let (handle, is_over) = (*handle, *left == 0);
            self.credit -= size;
            self.queued -= size;
            self.carried += size;
            if is_over {
                self.queue.pop_front();
            }
            if let Some(response) = self.responses.get_mut(&handle) {
                response.came += size;
                self.read(handle);
            }
        }
        if self.queue.is_empty() {
            self.credit = 0;
        }
    }

    fn read(&mut self, handle: u64) {
        let Some(response) = self.responses.get_mut(&handle) else { return };
        let there = response.came - response.read;
        if response.ends && response.came == response.size {
            self.scheduler.came(self.now, &response.permit, Bytes(there));
            self.scheduler.arrived(self.now, &response.permit);
        }
        let size = response.may.map_or(there, |may| may.min(there));
        if size == 0 {
            return self.scheduler.came(self.now, &response.permit, Bytes(there));
        }
        self.received[response.user] += size;
        let round_trip = self.users[response.user].round_trip + self.queued / self.rate;
        let (since, read, came) = response.turn;
        if self.step >= since + round_trip {
            let both = (response.read - read).min(response.came - came);
            response.pace = 2 * both * round_trip / (self.step - since);
            response.turn = (self.step, response.read, response.came);
        }
        response.read += size;
        let (_, read, came) = response.turn;
        let both = (response.read - read).min(response.came - came);
        response.pace = response.pace.max(2 * both);
        response.buffer = LEAST_BUFFER.max(response.pace);
        response.may = match self.scheduler.received(self.now, &response.permit, Bytes(size)) {
            Reading::Freely => None,
            Reading::UpTo(Bytes(may)) => Some(may),
        };
        let opening = Opening { ahead: Bytes(response.buffer), pace: Bytes(response.pace) };
        self.scheduler.opened(self.now, &response.permit, opening);
        self.scheduler.came(self.now, &response.permit, Bytes(there - size));
    }

    fn bury(&mut self) {
        let (step, outstanding) = (self.step, &mut self.outstanding);
        self.remainders.retain(|remainder| step < remainder.ends);
        self.responses.retain(|_, response| {
            let complete = response.ends && response.read == response.size;
            let lives = !complete && response.dies.is_none_or(|dies| step < dies);
            outstanding[response.user] -= usize::from(!lives);
            let round_trip = self.users[response.user].round_trip;
            if complete {
                response.permit.complete();
            } else if !lives && step + round_trip < response.begins {
                response.permit.unasked();
            } else if !lives {
                let open = (response.read + response.buffer).saturating_sub(response.sent);
                self.remainders.push(Remainder {
                    pace: response.pace(round_trip),
                    left: open.min(response.size - response.sent),
                    begins: response.begins,
                    ends: step + round_trip,
                });
            }
            lives
        });
    }

    /// What comes of the first window after the warm-up.
    pub(crate) fn run(mut self, case: &Case) -> Outcome {
        let (rate, window) = (self.rate, window(case));
        let before = self.run_until(WARM_UP);
        self.run_until(WARM_UP + window).since(&before, rate)
    }

    /// The sums after so much time in all.
    fn run_until(&mut self, time: Span) -> Sums {
        let end = time.0 / STEP.0;
        while self.step < end {
            self.ask();
            self.obey();
            self.send();
            self.carry();
            self.bury();
            if self.step.is_multiple_of(REPORT_EVERY) {
                let delay = Span(self.queued * STEP.0 / self.rate);
                let carried = Bytes(self.carried);
                let report = LinkReport { carried, queueing_delay: Some(delay) };
                self.scheduler.report(self.now, report);
            }
            self.now += STEP;
            self.step += 1;
        }
        let Model { step, ref received, carried, missed, .. } = *self;
        Sums { step, received: received.clone(), carried, missed }
    }
}

impl Sums {
    /// What has come since earlier sums, of a link that carries so much in a step.
    fn since(&self, earlier: &Sums, rate: u64) -> Outcome {
        let could = ((self.step - earlier.step) * rate) as f64;
        let received = std::iter::zip(&self.received, &earlier.received);
        Outcome {
            received: received.map(|(after, before)| after - before).collect(),
            used: (self.carried - earlier.carried) as f64 / could,
            missed: (self.missed - earlier.missed) as f64 / could,
        }
    }
}

/// The time over which shares are measured.
fn window(case: &Case) -> Span {
    let users = case.honest.iter().chain(&case.others);
    let weight: u64 = users.map(|user| u64::from(case.weights[user.class as usize])).sum();
    Span::seconds((8 * weight).max(60))
}

/// What is wrong, if anything; or else the steps that it took.
pub(crate) fn judge(case: &Case) -> Result<u64, String> {
    let mut model = Model::new(case);
    let half = Span(window(case).0 / 2);
    let sums: Vec<_> = (0..=6).map(|halves| model.run_until(WARM_UP + half * halves)).collect();
    for (halves, of) in sums.windows(3).enumerate() {
        let outcome = of[2].since(&of[0], model.rate);
        judge_window(case, &outcome).map_err(|fault| format!("from half {halves} on, {fault}"))?;
    }
    Ok(model.step)
}

/// What is wrong in a window, if anything.
fn judge_window(case: &Case, Outcome { received, missed, .. }: &Outcome) -> Result<(), String> {
    let weight = |user: &User| f64::from(case.weights[user.class as usize]);
    let all: f64 = case.honest.iter().chain(&case.others).map(weight).sum();
    let carried: u64 = received.iter().sum();
    for (number, user) in case.honest.iter().enumerate() {
        let share = received[number] as f64 / carried as f64;
        let due = weight(user) / all;
        if share < 0.8 * due {
            return Err(format!("user {number} has {share:.4} instead of {due:.4}: {received:?}"));
        }
    }
    if *missed > 0.1 {
        return Err(format!("{missed:.3} of the link is idle while somebody waits"));
    }
    Ok(())
}

/// What a search has seen.
#[derive(Debug, Default)]
struct Hunt {
    cases: u64,
    steps: u64,
    /// Seeds, what is wrong, and the cases that those shrank to.
    found: Vec<String>,
}

impl Hunt {
    /// Runs so many cases with each of these seeds in turn, until the time is over.
    fn run(seeds: impl Iterator<Item = u64>, cases: u32, time: Duration) -> Hunt {
        let begin = Instant::now();
        let hunt = RefCell::new(Hunt::default());
        for seed in seeds {
            let config = Config {
                cases,
                failure_persistence: None,
                max_shrink_iters: 200,
                rng_seed: RngSeed::Fixed(seed),
                ..Config::default()
            };
            let run = TestRunner::new(config).run(&case(), |case| {
                let steps = judge(&case).map_err(TestCaseError::fail)?;
                let Hunt { cases, steps: all, .. } = &mut *hunt.borrow_mut();
                (*cases, *all) = (*cases + 1, *all + steps);
                Ok(())
            });
            match run {
                Ok(()) => {}
                Err(TestError::Fail(reason, case)) => {
                    let found = format!("seed {seed}: {reason}: {case:?}");
                    eprintln!("{found}");
                    hunt.borrow_mut().found.push(found);
                }
                Err(error) => panic!("{error}"),
            }
            if begin.elapsed() >= time {
                break;
            }
        }
        hunt.into_inner()
    }
}

#[test]
fn a_hunt_finds_nobody_who_takes_from_others_or_stalls_the_link() {
    let time = std::env::var("TIDEGATE_HUNT").ok();
    let workers =
        time.as_ref().map_or(1, |_| std::thread::available_parallelism().map_or(1, usize::from));
    let time = time.map_or(Duration::ZERO, |time| {
        let span: Span = time.parse().expect("a time such as '1 h'");
        Duration::from_nanos(span.0)
    });
    let hunts: Vec<_> = std::thread::scope(|scope| {
        let hunt = |worker| Hunt::run((worker..).step_by(workers), 12, time);
        let running: Vec<_> =
            (0..workers as u64).map(|worker| scope.spawn(move || hunt(worker))).collect();
        running.into_iter().map(|hunt| hunt.join().expect("no case panics")).collect()
    });
    let sum = |of: fn(&Hunt) -> u64| hunts.iter().map(of).sum::<u64>();
    println!("{} cases, {} steps", sum(|hunt| hunt.cases), sum(|hunt| hunt.steps));
    let found: Vec<_> = hunts.iter().flat_map(|hunt| &hunt.found).collect();
    assert!(found.is_empty(), "{found:#?}");
}
