//! The waiting requests, and the choice of a class's next one.
//!
//! A class has one line, as in MSF, or a line for each of its users. In the
//! latter case the line of the user who has received the least is next, and
//! among equals the one whose first request came first: a small response does
//! not wait behind another user's backlog, and users of a class get equal
//! shares, as the policy of `MSF section 2.3` asks. Serving users in turn, one
//! request each, would not suffice: users who ask for larger responses would
//! get more.
//!
//! A line that was empty continues from the service of the line served last
//! (the rule of Golestani 1994): asking for nothing saves up no service. A user
//! without a request or response is forgotten.
//!
//! With 100 000 requests waiting, each takes 73 bytes, or 229 with a user of
//! its own; nothing else grows with the number of waiting requests, and the
//! limits bound it.

use std::collections::BTreeSet;
use std::hash::BuildHasher;

use hashbrown::HashMap;
use siphasher::sip::SipHasher13;
use slab::Slab;

use super::{ClassId, Refusal, Request, Ticket, UserId};
use crate::units::Bytes;

/// The requests of a class that wait in one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserOrder {
    /// All of them, in the order of their arrival.
    Arrival,
    /// The requests of each user; the user who has received the least is next.
    LeastService,
}

/// How many requests may wait; the next one is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingLimits {
    /// Of all users together.
    pub all: u32,
    /// Of one user, so that nobody alone fills the line for all.
    pub per_user: u32,
}

/// All waiting requests, and all users that are active.
#[derive(Debug)]
pub(super) struct Lines {
    order: UserOrder,
    limits: WaitingLimits,
    waiting: Slab<Waiting>,
    users: Slab<User>,
    user_by_name: HashMap<(u32, u64), u32, Seeded>,
    /// By class or by user's number, whichever has lines.
    lines: Vec<Line>,
    /// Of each class.
    orders: Vec<Order>,
    arrived: u64,
}

#[derive(Debug)]
struct Waiting {
    request: Request,
    user: u32,
    /// Numbers requests in the order of their arrival.
    arrived: u64,
    before: Option<u32>,
    behind: Option<u32>,
}

/// An active user of a class.
#[derive(Debug)]
struct User {
    name: (u32, u64),
    waiting: u32,
    outstanding: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Line {
    first: Option<u32>,
    last: Option<u32>,
    /// Bytes that the owner of the line has received.
    service: u64,
}

/// The lines of a class that are not empty.
#[derive(Clone, Debug, Default)]
struct Order {
    /// Service, arrival of the first request, line.
    lines: BTreeSet<(u64, u64, u32)>,
    /// Service of the line served last, when it was served.
    reached: u64,
}

/// A hash that strangers cannot aim at one of its buckets.
#[derive(Clone, Debug)]
struct Seeded(SipHasher13);

impl BuildHasher for Seeded {
    type Hasher = SipHasher13;
    fn build_hasher(&self) -> SipHasher13 {
        self.0
    }
}

impl Lines {
    pub(super) fn new(order: UserOrder, limits: WaitingLimits, classes: usize, seed: u64) -> Lines {
        let lines = match order {
            UserOrder::Arrival => vec![Line::default(); classes],
            UserOrder::LeastService => Vec::new(),
        };
        Lines {
            order,
            limits,
            waiting: Slab::new(),
            users: Slab::new(),
            user_by_name: HashMap::with_hasher(Seeded(SipHasher13::new_with_keys(seed, !seed))),
            lines,
            orders: vec![Order::default(); classes],
            arrived: 0,
        }
    }

    /// The number of waiting requests.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The arrival time of a class's next request.
    pub(super) fn first(&self, class: u32) -> Option<u64> {
        self.orders[class as usize].lines.first().map(|(_, arrived, _)| *arrived)
    }

    /// Lets a request wait. Returns whether its user was idle.
    pub(super) fn join(&mut self, request: Request) -> Result<(Ticket, bool), Refusal> {
        if self.waiting.len() >= self.limits.all as usize {
            return Err(Refusal::Full { limit: self.limits.all });
        }
        let ClassId(class) = request.class;
        let UserId(user) = request.user;
        let name = (class, user);
        let known = self.user_by_name.get(&name).copied();
        let limit = self.limits.per_user;
        if known.map_or(0, |user| self.users[user as usize].waiting) >= limit {
            return Err(Refusal::UserFull { limit });
        }
        let user = known.unwrap_or_else(|| self.add_user(name));
        self.users[user as usize].waiting += 1;
        let line = self.line_of(user);
        let arrived = self.arrived;
        self.arrived += 1;
        let before = self.lines[line as usize].last;
        let waiting = Waiting { request, user, arrived, before, behind: None };
        // Limits keep it under 2^32, as they do users.
        let waiting = self.waiting.insert(waiting) as u32;
        match before {
            Some(before) => self.waiting[before as usize].behind = Some(waiting),
            None => {
                let order = &mut self.orders[class as usize];
                let line_state = &mut self.lines[line as usize];
                line_state.service = line_state.service.max(order.reached);
                line_state.first = Some(waiting);
                order.lines.insert((line_state.service, arrived, line));
            }
        }
        self.lines[line as usize].last = Some(waiting);
        Ok((Ticket { waiting, arrived }, known.is_none()))
    }

    /// Takes the next request of a class for release, with its user.
    pub(super) fn release(&mut self, class: u32) -> Option<(Request, u32)> {
        let order = &mut self.orders[class as usize];
        let &(service, _, line) = order.lines.first()?;
        order.reached = service;
        let first = self.lines[line as usize].first?;
        let (request, user) = self.leave(first);
        self.users[user as usize].outstanding += 1;
        Some((request, user))
    }

    /// A response that had seemed over continues. Returns its user, and whether the user was idle.
    pub(super) fn resume(&mut self, ClassId(class): ClassId, UserId(user): UserId) -> (u32, bool) {
        let name = (class, user);
        let known = self.user_by_name.get(&name).copied();
        let user = known.unwrap_or_else(|| self.add_user(name));
        self.users[user as usize].outstanding += 1;
        let line = self.line_of(user);
        let line = &mut self.lines[line as usize];
        if line.first.is_none() {
            line.service = line.service.max(self.orders[class as usize].reached);
        }
        (user, known.is_none())
    }

    /// Removes a request that no longer waits. Returns whether its user is idle now.
    pub(super) fn withdraw(&mut self, ticket: Ticket) -> Option<(Request, bool)> {
        self.waiting
            .get(ticket.waiting as usize)
            .filter(|waiting| waiting.arrived == ticket.arrived)?;
        let (request, user) = self.leave(ticket.waiting);
        Some((request, self.forget_if_idle(user)))
    }

    /// A response of this user is over. Returns whether the user is idle now.
    pub(super) fn finish(&mut self, user: u32) -> bool {
        self.users[user as usize].outstanding -= 1;
        self.forget_if_idle(user)
    }

    /// The service of a user's line.
    pub(super) fn service(&self, user: u32) -> u64 {
        self.lines[self.line_of(user) as usize].service
    }

    /// The active user of this name.
    pub(super) fn user(&self, class: ClassId, user: UserId) -> Option<u32> {
        self.user_by_name.get(&(class.0, user.0)).copied()
    }

    /// A user has received `size`.
    pub(super) fn charge(&mut self, user: u32, size: Bytes) {
        if self.order == UserOrder::Arrival {
            return;
        }
        let class = self.users[user as usize].name.0;
        let line = &mut self.lines[user as usize];
        let before = line.service;
        line.service = before.saturating_add(size.0);
        if let Some(first) = line.first {
            let (after, arrived) = (line.service, self.waiting[first as usize].arrived);
            let lines = &mut self.orders[class as usize].lines;
            lines.remove(&(before, arrived, user));
            lines.insert((after, arrived, user));
        }
    }

    /// Takes a request out of its line.
    fn leave(&mut self, number: u32) -> (Request, u32) {
        let Waiting { request, user, arrived, before, behind } =
            self.waiting.remove(number as usize);
        self.users[user as usize].waiting -= 1;
        let line = self.line_of(user);
        let service = self.lines[line as usize].service;
        match behind {
            Some(behind) => self.waiting[behind as usize].before = before,
            None => self.lines[line as usize].last = before,
        }
        match before {
            Some(before) => self.waiting[before as usize].behind = behind,
            None => {
                self.lines[line as usize].first = behind;
                let lines = &mut self.orders[request.class.0 as usize].lines;
                lines.remove(&(service, arrived, line));
                lines.extend(
                    behind.map(|next| (service, self.waiting[next as usize].arrived, line)),
                );
            }
        }
        (request, user)
    }

    fn add_user(&mut self, name: (u32, u64)) -> u32 {
        let user = self.users.insert(User { name, waiting: 0, outstanding: 0 }) as u32;
        self.user_by_name.insert(name, user);
        if self.order == UserOrder::LeastService {
            let fresh = Line::default();
            match self.lines.get_mut(user as usize) {
                Some(line) => *line = fresh,
                None => self.lines.push(fresh),
            }
        }
        user
    }

    fn forget_if_idle(&mut self, user: u32) -> bool {
        let state = &self.users[user as usize];
        let idle = state.waiting == 0 && state.outstanding == 0;
        if idle {
            let User { name, .. } = self.users.remove(user as usize);
            self.user_by_name.remove(&name);
        }
        idle
    }

    fn line_of(&self, user: u32) -> u32 {
        match self.order {
            UserOrder::Arrival => self.users[user as usize].name.0,
            UserOrder::LeastService => user,
        }
    }
}
