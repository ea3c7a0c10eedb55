//! The waiting requests, and the choice of the next one.
//!
//! A class has one line, as in MSF, or each user has a line. In the latter case
//! the line of the user who has received the least is next, and among equals the
//! one whose first request came first: a small response does not wait behind
//! another user's backlog, and users of a class get equal shares, as the policy
//! of `MSF section 2.3` asks. Serving users in turn, one request each, would not
//! suffice: users who ask for larger responses would get more.
//!
//! Lines stand in *groups*, each with an order of its own. Where a weight is the
//! whole class's, a class is a group, and levels of users are bytes. Where a weight
//! is each user's, all users are one group, and the level of a user is what they
//! have received for the weight of their class. Nobody then has to be counted: a
//! user who is silent, or takes less than their share, leaves the rest to whoever
//! has the least, and gives no other user of their class any claim. A class's
//! counter divided by its active users, as in `MSF section 3.1`, gives all their
//! shares to the one who asks.
//!
//! Beside the level stands what a user's requests have brought, without what was read of
//! long responses: that orders lines.
//!
//! A user is *busy* who waits for something: for a request to be released, for a long
//! response to be read, or for what was promised to a response. Whoever asks for something or
//! wants to read on does so from the level that is *reached*, or their own if that is more:
//! asking for nothing saves up no service. Reached is the least level of those who were busy
//! when somebody was served last (the rule of Golestani 1994), so who has everything on its
//! way for a moment loses nothing to those who are ahead by less than a lead. But with slow servers somebody is
//! busy all the time and hardly served, and whoever came would have the link alone until they
//! had drawn level with those who took the rest. So reached is also, at least, where the user
//! stood whose turn it was last, but for a lead. A user without a request or response is
//! forgotten as soon as they are not ahead of what is reached.
//!
//! With 100 000 requests waiting, each takes 73 bytes, or 284 with a user of
//! its own; nothing else grows with the number of waiting requests, and the
//! limits bound it.

use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::num::NonZeroU32;

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

/// Units of a level in one byte for weight 1, which all weights up to 10 divide:
/// equal service for equal weights is then equal to the last bit. Rounding elsewhere
/// costs less than a unit per part. In 64 bits they hold 3.6 PB.
const LEVEL_SCALE: u64 = 5_040;

/// The part of the newest response in the moving mean of a user's.
const NEWEST: u64 = 8;

/// So many users of a group who are idle and ahead are remembered; those with the
/// smallest lead are forgotten first.
const MOST_RESTING: usize = 4_096;

/// All waiting requests, and all users that are active or ahead.
#[derive(Debug)]
pub(super) struct Lines {
    order: UserOrder,
    limits: WaitingLimits,
    classes: Vec<ClassLines>,
    /// Whether all classes are one group, and levels are for a weight.
    together: bool,
    waiting: Slab<Waiting>,
    users: Slab<User>,
    user_by_name: HashMap<Name, u32, Seeded>,
    /// By class or by user's number, whichever has lines.
    lines: Vec<Line>,
    /// Of each group.
    orders: Vec<Order>,
    arrived: u64,
}

/// What is known of a class.
#[derive(Clone, Debug)]
struct ClassLines {
    weight: NonZeroU32,
    users: u32,
    waiting: u32,
}

/// The class of a user, and what the caller calls the user.
pub(super) type Name = (u32, u64);

#[derive(Debug)]
struct Waiting {
    request: Request,
    user: u32,
    /// Numbers requests in the order of their arrival.
    arrived: u64,
    before: Option<u32>,
    behind: Option<u32>,
}

/// A user of a class, active or resting.
#[derive(Debug)]
struct User {
    name: Name,
    waiting: u32,
    outstanding: u32,
    /// Responses that want to be read or have a promise, and whatever else keeps the
    /// user from having nothing to do.
    expecting: u32,
    /// What a response of this user brings before it is long, in bytes: the moving mean of
    /// those that were seen, or 0 before the first.
    usual: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Line {
    first: Option<u32>,
    last: Option<u32>,
    /// What the owner of the line has received: bytes, or units of
    /// 1/[`LEVEL_SCALE`] byte for a weight of 1.
    level: u64,
    /// The same without what was read of long responses, as far as it was received since
    /// requests last waited.
    asked: u64,
}

/// The part of a response that a user receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What comes before it is long.
    Asked,
    /// What is read by grants.
    Long,
}

/// The lines of a group that are not empty.
#[derive(Clone, Debug, Default)]
struct Order {
    /// What requests have brought, arrival of the first request, line.
    lines: BTreeSet<(u64, u64, u32)>,
    /// Those who are busy, by level.
    busy: BTreeSet<(u64, u32)>,
    /// Where those start who come: see above.
    reached: u64,
    /// Users without a request or response who are ahead of that, by level.
    resting: BTreeSet<(u64, u32)>,
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
    /// The lines of classes of these weights; `together` if the weights are those of
    /// each user.
    pub(super) fn new(
        order: UserOrder,
        limits: WaitingLimits,
        weights: &[NonZeroU32],
        together: bool,
        seed: u64,
    ) -> Lines {
        let lines = match order {
            UserOrder::Arrival => vec![Line::default(); weights.len()],
            UserOrder::LeastService => Vec::new(),
        };
        let class = |weight: &NonZeroU32| ClassLines { weight: *weight, users: 0, waiting: 0 };
        Lines {
            order,
            limits,
            classes: weights.iter().map(class).collect(),
            together,
            waiting: Slab::new(),
            users: Slab::new(),
            user_by_name: HashMap::with_hasher(Seeded(SipHasher13::new_with_keys(seed, !seed))),
            lines,
            orders: vec![Order::default(); if together { 1 } else { weights.len() }],
            arrived: 0,
        }
    }

    /// A class has another weight for what its users receive from now on.
    pub(super) fn set_weight(&mut self, class: u32, weight: NonZeroU32) {
        self.classes[class as usize].weight = weight;
    }

    /// The number of waiting requests.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Active users of a class, and whether a request of it waits; `None` when there
    /// is no such class.
    pub(super) fn class(&self, class: u32) -> Option<(u32, bool)> {
        self.classes.get(class as usize).map(|class| (class.users, class.waiting > 0))
    }

    /// Whether all classes are one group.
    pub(super) fn are_together(&self) -> bool {
        self.together
    }

    /// The group of a class.
    pub(super) fn group(&self, class: u32) -> u32 {
        if self.together { 0 } else { class }
    }

    /// The arrival time of a group's next request.
    pub(super) fn first(&self, group: u32) -> Option<u64> {
        self.orders[group as usize].lines.first().map(|(_, arrived, _)| *arrived)
    }

    /// What the requests of the line that is the next of a group have brought.
    pub(super) fn first_asked(&self, group: u32) -> Option<u64> {
        self.orders[group as usize].lines.first().map(|(asked, ..)| *asked)
    }

    /// The user of the next request of a group.
    pub(super) fn first_user(&self, group: u32) -> Option<u32> {
        let &(.., line) = self.orders[group as usize].lines.first()?;
        let first = self.lines[line as usize].first?;
        Some(self.waiting[first as usize].user)
    }

    /// The name of a user.
    pub(super) fn name(&self, user: u32) -> Name {
        self.users[user as usize].name
    }

    /// The group of a user.
    pub(super) fn group_of(&self, user: u32) -> u32 {
        self.group(self.users[user as usize].name.0)
    }

    /// How far `size` takes a user ahead whose weight is 1.
    pub(super) fn lead(&self, size: Bytes) -> u64 {
        size.0.saturating_mul(if self.together { LEVEL_SCALE } else { 1 })
    }

    /// The weight of a user of this class among the users of their group.
    pub(super) fn weight_of_user(&self, class: u32) -> u32 {
        if self.together { self.classes[class as usize].weight.get() } else { 1 }
    }

    /// Those who come to a group from now on start no lower than the busy one who has the
    /// least.
    pub(super) fn reach(&mut self, group: u32) {
        let order = &mut self.orders[group as usize];
        let least = order.busy.first().map_or(0, |(level, _)| *level);
        order.reached = order.reached.max(least);
        // Who rests and is not ahead any more would start there, too.
        while let Some((level, user)) = order.resting.first().copied()
            && level <= order.reached
        {
            order.resting.pop_first();
            forget(&mut self.users, &mut self.user_by_name, user);
        }
    }

    /// Those who come to a group from now on start no lower than this.
    pub(super) fn reach_at_least(&mut self, group: u32, level: u64) {
        let reached = &mut self.orders[group as usize].reached;
        *reached = level.max(*reached);
    }

    /// A user begins to wait for something, and has saved nothing up.
    pub(super) fn catch_up(&mut self, user: u32) {
        self.set_level(user, Part::Long, u64::max);
    }

    /// What `size` adds to the level of a user of this class.
    fn level_of(&self, class: u32, size: Bytes) -> u64 {
        if !self.together {
            return size.0;
        }
        let weight = u128::from(self.classes[class as usize].weight.get());
        let level = u128::from(size.0) * u128::from(LEVEL_SCALE) / weight;
        u64::try_from(level).unwrap_or(u64::MAX)
    }

    /// Lets a request wait. Returns its user, and whether the user was idle.
    pub(super) fn join(&mut self, request: Request) -> Result<(Ticket, u32, bool), Refusal> {
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
        let (user, was_idle) = self.activate(name);
        self.users[user as usize].waiting += 1;
        self.place_busy(user);
        self.classes[class as usize].waiting += 1;
        let (line, group) = (self.line_of(user), self.group(class));
        let arrived = self.arrived;
        self.arrived += 1;
        let before = self.lines[line as usize].last;
        let waiting = Waiting { request, user, arrived, before, behind: None };
        // Limits keep it under 2^32, as they do users.
        let waiting = self.waiting.insert(waiting) as u32;
        match before {
            Some(before) => self.waiting[before as usize].behind = Some(waiting),
            None => {
                let order = &mut self.orders[group as usize];
                let reached = order.reached;
                let line_state = &mut self.lines[line as usize];
                line_state.first = Some(waiting);
                line_state.asked = line_state.asked.max(reached);
                order.lines.insert((line_state.asked, arrived, line));
            }
        }
        self.lines[line as usize].last = Some(waiting);
        Ok((Ticket { waiting, arrived }, user, was_idle))
    }

    /// Takes the next request of a group for release, with its user, who [wants](Lines::want)
    /// one thing more from then on.
    pub(super) fn release(&mut self, group: u32) -> Option<(Request, u32)> {
        let order = &mut self.orders[group as usize];
        let &(_, _, line) = order.lines.first()?;
        let first = self.lines[line as usize].first?;
        // Until the response is paid for, the user is busy without it.
        self.want(self.waiting[first as usize].user);
        let (request, user) = self.leave(first);
        self.users[user as usize].outstanding += 1;
        Some((request, user))
    }

    /// A response that had seemed over continues. Returns its user, and whether the user was idle.
    pub(super) fn resume(&mut self, ClassId(class): ClassId, UserId(user): UserId) -> (u32, bool) {
        let (user, was_idle) = self.activate((class, user));
        self.users[user as usize].outstanding += 1;
        let reached = self.orders[self.group(class) as usize].reached;
        let line = self.line_of(user);
        let line = &mut self.lines[line as usize];
        if line.first.is_none() {
            line.asked = line.asked.max(reached);
        }
        (user, was_idle)
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

    /// Whether a user waits for something: a request to be released, a long response to
    /// be read, or what was promised to a response.
    pub(super) fn is_busy(&self, user: u32) -> bool {
        let user = &self.users[user as usize];
        user.waiting > 0 || user.expecting > 0
    }

    /// Whether somebody of a group does.
    pub(super) fn has_busy(&self, group: u32) -> bool {
        !self.orders[group as usize].busy.is_empty()
    }

    /// A response of this user wants to be read, or has a promise.
    pub(super) fn want(&mut self, user: u32) {
        self.users[user as usize].expecting += 1;
        self.place_busy(user);
    }

    /// One of these does so no more.
    pub(super) fn unwant(&mut self, user: u32) {
        self.users[user as usize].expecting -= 1;
        self.place_busy(user);
    }

    fn place_busy(&mut self, user: u32) {
        let place = (self.level(user), user);
        let (is_busy, group) = (self.is_busy(user), self.group_of(user));
        let busy = &mut self.orders[group as usize].busy;
        if is_busy {
            busy.insert(place);
        } else {
            busy.remove(&place);
        }
    }

    /// The level of a user's line.
    pub(super) fn level(&self, user: u32) -> u64 {
        self.lines[self.line_of(user) as usize].level
    }

    /// The active user of this name.
    pub(super) fn user(&self, class: ClassId, user: UserId) -> Option<u32> {
        let user = self.user_by_name.get(&(class.0, user.0)).copied()?;
        (!self.users[user as usize].is_idle()).then_some(user)
    }

    /// What a response of this user brings before it is long, if one has been seen.
    pub(super) fn usual(&self, user: u32) -> Option<Bytes> {
        let usual = self.users[user as usize].usual;
        (usual > 0).then(|| Bytes(usual.into()))
    }

    /// A response of this user has brought so much before it was long; nothing is no size.
    pub(super) fn see(&mut self, user: u32, Bytes(size): Bytes) {
        let usual = &mut self.users[user as usize].usual;
        let mean = match u64::from(*usual) {
            _ if size == 0 => return,
            0 => size,
            before => (before * (NEWEST - 1) + size) / NEWEST,
        };
        *usual = u32::try_from(mean).unwrap_or(u32::MAX);
    }

    /// A user has received `size`, or will, of a long response or else of a request.
    pub(super) fn charge(&mut self, user: u32, size: Bytes, of: Part) {
        let more = self.level_of(self.users[user as usize].name.0, size);
        self.set_level(user, of, |level, _| level.saturating_add(more));
    }

    /// `size` that a user was charged for will not come. It takes nobody below the
    /// level that a newcomer has, so nobody saves up by asking for what never comes.
    pub(super) fn refund(&mut self, user: u32, size: Bytes, of: Part) {
        let less = self.level_of(self.users[user as usize].name.0, size);
        self.set_level(user, of, |level, reached| {
            level.saturating_sub(less).max(reached).min(level)
        });
    }

    /// Moves a user to the levels that `change` makes of their own and the one reached.
    fn set_level(&mut self, user: u32, of: Part, change: impl Fn(u64, u64) -> u64) {
        if self.order == UserOrder::Arrival {
            return;
        }
        let group = self.group_of(user);
        let line = &mut self.lines[user as usize];
        let order = &mut self.orders[group as usize];
        let Line { level: before, asked, .. } = *line;
        line.level = change(before, order.reached);
        if order.busy.remove(&(before, user)) {
            order.busy.insert((line.level, user));
        }
        // Requests have brought no more than all did, whatever is given back.
        line.asked = match of {
            Part::Asked => change(asked, order.reached),
            Part::Long => asked,
        };
        line.asked = line.asked.min(line.level);
        if line.asked == asked {
            return;
        }
        if let Some(first) = line.first {
            let arrived = self.waiting[first as usize].arrived;
            order.lines.remove(&(asked, arrived, user));
            order.lines.insert((line.asked, arrived, user));
        }
    }

    /// Takes a request out of its line.
    fn leave(&mut self, number: u32) -> (Request, u32) {
        let Waiting { request, user, arrived, before, behind } =
            self.waiting.remove(number as usize);
        self.users[user as usize].waiting -= 1;
        self.place_busy(user);
        self.classes[request.class.0 as usize].waiting -= 1;
        let (line, group) = (self.line_of(user), self.group(request.class.0));
        let asked = self.lines[line as usize].asked;
        match behind {
            Some(behind) => self.waiting[behind as usize].before = before,
            None => self.lines[line as usize].last = before,
        }
        match before {
            Some(before) => self.waiting[before as usize].behind = behind,
            None => {
                self.lines[line as usize].first = behind;
                let lines = &mut self.orders[group as usize].lines;
                lines.remove(&(asked, arrived, line));
                lines.extend(behind.map(|next| (asked, self.waiting[next as usize].arrived, line)));
            }
        }
        (request, user)
    }

    /// The user of this name, and whether they were idle.
    fn activate(&mut self, name: Name) -> (u32, bool) {
        let known = self.user_by_name.get(&name).copied();
        let user = known.unwrap_or_else(|| self.add_user(name));
        let was_idle = self.users[user as usize].is_idle();
        if was_idle {
            self.classes[name.0 as usize].users += 1;
            let (level, group) = (self.level(user), self.group(name.0));
            self.orders[group as usize].resting.remove(&(level, user));
        }
        (user, was_idle)
    }

    fn add_user(&mut self, name: Name) -> u32 {
        let user =
            self.users.insert(User { name, waiting: 0, outstanding: 0, expecting: 0, usual: 0 })
                as u32;
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

    /// A user who is idle and not ahead of those who come is forgotten: nobody sheds
    /// a lead by being idle for a moment.
    fn forget_if_idle(&mut self, user: u32) -> bool {
        if !self.users[user as usize].is_idle() {
            return false;
        }
        let class = self.users[user as usize].name.0;
        self.classes[class as usize].users -= 1;
        let (level, group) = (self.level(user), self.group(class));
        let order = &mut self.orders[group as usize];
        if self.order == UserOrder::Arrival || level <= order.reached {
            forget(&mut self.users, &mut self.user_by_name, user);
        } else {
            order.resting.insert((level, user));
            if order.resting.len() > MOST_RESTING
                && let Some((_, least)) = order.resting.pop_first()
            {
                forget(&mut self.users, &mut self.user_by_name, least);
            }
        }
        true
    }

    fn line_of(&self, user: u32) -> u32 {
        match self.order {
            UserOrder::Arrival => self.users[user as usize].name.0,
            UserOrder::LeastService => user,
        }
    }
}

impl User {
    fn is_idle(&self) -> bool {
        self.waiting == 0 && self.outstanding == 0
    }
}

fn forget(users: &mut Slab<User>, by_name: &mut HashMap<Name, u32, Seeded>, user: u32) {
    let User { name, .. } = users.remove(user as usize);
    by_name.remove(&name);
}
