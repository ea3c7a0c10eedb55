//! The link, the servers and the users of the [search](super).
//!
//! A queue without a limit at the provider's end, and servers that send a window in each round
//! trip, which begins at ten segments, doubles, and ends at what the receive buffer holds. A
//! step takes five milliseconds of the link and less than a microsecond for each response.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;

use tidegate_core::request::{
    ClassId, Decision, LinkReport, Opening, Permit, Reading, Request, Scheduler, Ticket, UserId,
    catalogue,
};
use tidegate_core::{Bytes, Rate, Span, Time};

use super::{Behaviour, Case, User, WARM_UP, window};

const STEP: Span = Span::millis(5);
/// Steps between two reports of the link's counters.
const REPORT_EVERY: u64 = 20;
/// The window that a server begins with, and the least receive buffer.
const INITIAL_WINDOW: u64 = 14_480;
const LEAST_BUFFER: u64 = 24_000;
/// The handle of bytes that nobody wants.
const NOBODY: u64 = u64::MAX;

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
pub(super) struct Sums {
    step: u64,
    received: Vec<u64>,
    carried: u64,
    missed: u64,
}

pub(crate) struct Model {
    users: Vec<User>,
    scheduler: Scheduler,
    pub(super) rate: u64,
    now: Time,
    pub(super) step: u64,
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
        Model::under("msf", case)
    }

    /// The same under another scheduler.
    pub(super) fn under(scheduler: &str, case: &Case) -> Model {
        let entry = catalogue::find(scheduler).expect("it is in the catalogue");
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
    pub(super) fn run_until(&mut self, time: Span) -> Sums {
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
    pub(super) fn since(&self, earlier: &Sums, rate: u64) -> Outcome {
        let could = ((self.step - earlier.step) * rate) as f64;
        let received = std::iter::zip(&self.received, &earlier.received);
        Outcome {
            received: received.map(|(after, before)| after - before).collect(),
            used: (self.carried - earlier.carried) as f64 / could,
            missed: (self.missed - earlier.missed) as f64 / could,
        }
    }
}
