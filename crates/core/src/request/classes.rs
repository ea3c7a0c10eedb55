//! The choice of the next class.
//!
//! Each class has a service counter *SC*, to which a received part of *L* bytes
//! adds *L* / (*w* x *UC*), with its weight *w* and *UC* active users
//! (`MSF section 3.1`). The class with the least *SC* among those with a
//! request waiting is next; among equals the one with the largest *w* x *UC*,
//! then the one listed first. A class that was idle starts at the least *SC* of
//! the active ones, and when all are idle every *SC* is 0.
//!
//! Where long responses are read by grants, requests and long responses compete for
//! the room on the link: the class with the least *SC* of all that want either is
//! next. A class is active as long as a response of its own lingers, though it has no
//! use for more than that brings; when it begins to want either, it goes on from the least
//! *SC* of those who were busy when one was served last, or from where the class stood whose
//! turn it was, but for a lead: it does not make up for minutes.
//!
//! Counters are integers in units of 1/[`SERVICE_SCALE`] byte, which products of
//! common weights and numbers of users divide: equal service is then equal to the
//! last bit. Rounding elsewhere costs less than a unit per part. In 128 bits they
//! hold 10^26 bytes.
//!
//! All orders are sorted sets of the classes concerned: O(log n) for every
//! change to a class.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use crate::units::Bytes;

/// Units of a service counter in one byte: 720 720 squared, which all products
/// of two numbers up to 16 divide.
pub const SERVICE_SCALE: u64 = 720_720 * 720_720;

/// The order in which classes are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassOrder {
    /// The class whose first waiting request has waited longest.
    Arrival,
    /// The class that has received the least for its weight.
    LeastService {
        /// Whether the weight is each user's, as in MSF, or the whole class's.
        per_user: bool,
    },
    /// In turn, each class until it has received the quantum times its weight.
    Turns {
        /// The amount that a turn gives a class of weight 1.
        quantum: Bytes,
    },
}

/// The place of a class in an order; the least is first.
type Rank = (u128, u64, u32);

/// All classes.
#[derive(Debug)]
pub(super) struct Classes {
    order: ClassOrder,
    /// Whether a class that had nothing to do has no savings.
    forgets: bool,
    classes: Vec<Class>,
    /// The classes with a request waiting.
    waiting: BTreeSet<Rank>,
    /// The classes with a long response that wants to be read.
    reading: BTreeSet<Rank>,
    /// The classes with a busy user, by service.
    busy: BTreeSet<(u128, u32)>,
    /// The classes with an active user, by service.
    active: BTreeSet<(u128, u32)>,
    /// Where a class starts that begins to wait for something.
    reached: u128,
    /// The round of [`ClassOrder::Turns`] in which the last request was released.
    round: u128,
    /// How often classes have joined the round.
    joined: u64,
}

/// One class.
#[derive(Clone, Debug)]
pub(super) struct Class {
    weight: u32,
    /// *UC*: users with a request waiting or a response outstanding.
    pub(super) users: u32,
    /// *SC* in units of 1/[`SERVICE_SCALE`] byte; under [`ClassOrder::Turns`]
    /// plain bytes. Of no meaning while the class is idle.
    service: u128,
    /// When its first waiting request came; `None` without one.
    pub(super) first: Option<u64>,
    /// Long responses that want to be read.
    pub(super) hungry: u32,
    /// Whether one of its users is busy.
    is_busy: bool,
    /// When it joined the round.
    joined: u64,
}

/// The places of a class in the four orders.
#[derive(Clone, Copy)]
struct Places {
    waiting: Option<Rank>,
    reading: Option<Rank>,
    busy: Option<(u128, u32)>,
    active: Option<(u128, u32)>,
}

impl Classes {
    pub(super) fn new(order: ClassOrder, weights: &[NonZeroU32], forgets: bool) -> Classes {
        let class = |weight: &NonZeroU32| Class {
            weight: weight.get(),
            users: 0,
            service: 0,
            first: None,
            hungry: 0,
            is_busy: false,
            joined: 0,
        };
        Classes {
            order,
            forgets,
            classes: weights.iter().map(class).collect(),
            waiting: BTreeSet::new(),
            reading: BTreeSet::new(),
            busy: BTreeSet::new(),
            active: BTreeSet::new(),
            reached: 0,
            round: 0,
            joined: 0,
        }
    }

    pub(super) fn get(&self, id: u32) -> Option<&Class> {
        self.classes.get(id as usize)
    }

    /// *SC* of a class: 0 while it is idle, when it has none.
    pub(super) fn service(&self, id: u32) -> u128 {
        self.get(id).filter(|class| class.users > 0).map_or(0, |class| class.service)
    }

    /// The class whose request is next.
    pub(super) fn next_waiting(&self) -> Option<u32> {
        self.waiting.first().map(|(.., id)| *id)
    }

    /// The class that is next when there is room: to read a long response, or if
    /// `with_requests` also to release a request.
    pub(super) fn next_busy(&self, with_requests: bool) -> Option<u32> {
        let waiting = self.waiting.first().filter(|_| with_requests);
        waiting.into_iter().chain(self.reading.first()).min().map(|(.., id)| *id)
    }

    /// A class is served: who becomes busy from now on starts no lower than the least of
    /// those who are.
    pub(super) fn reach(&mut self) {
        let least = self.busy.first().map_or(0, |(service, _)| *service);
        self.reached = self.reached.max(least);
    }

    /// A class is served whose turn it is: who comes starts no further behind it than `lead`
    /// takes a class ahead whose weight is 1.
    pub(super) fn reach_turn(&mut self, id: u32, Bytes(lead): Bytes) {
        let lead = u128::from(lead) * u128::from(SERVICE_SCALE);
        self.reached = self.reached.max(self.service(id).saturating_sub(lead));
    }

    /// Whether one of a class's users is busy.
    pub(super) fn set_busy(&mut self, id: u32, is_busy: bool) {
        self.change(id, |class| class.is_busy = is_busy);
    }

    /// A class has another weight for what it receives from now on.
    pub(super) fn set_weight(&mut self, id: u32, weight: NonZeroU32) {
        self.change(id, |class| class.weight = weight.get());
    }

    /// One more active user.
    pub(super) fn add_user(&mut self, id: u32) {
        let least_active = self.active.first().map_or(0, |(service, _)| *service);
        if self.active.is_empty() {
            (self.round, self.reached) = (0, 0);
        }
        let start = match self.order {
            // Its turn begins when it joins the round.
            ClassOrder::Turns { .. } => 0,
            _ => least_active,
        };
        self.change(id, |class| {
            if class.users == 0 {
                class.service = start;
            }
            class.users += 1;
        });
    }

    /// One active user less.
    pub(super) fn remove_user(&mut self, id: u32) {
        self.change(id, |class| class.users -= 1);
    }

    /// The first waiting request of a class has changed.
    pub(super) fn set_first(&mut self, id: u32, first: Option<u64>) {
        let class = &self.classes[id as usize];
        if class.first.is_none()
            && first.is_some()
            && let ClassOrder::Turns { quantum } = self.order
        {
            // It comes last in the round, and has no savings.
            self.joined += 1;
            let joined = self.joined;
            let start = self.round.saturating_mul(turn(class, quantum));
            self.change(id, |class| {
                class.service = class.service.max(start);
                class.joined = joined;
            });
        }
        let least = self.start();
        self.change(id, |class| {
            if class.first.is_none() && first.is_some() {
                class.service = class.service.max(least);
            }
            class.first = first;
        });
    }

    /// This many long responses of a class want to be read.
    pub(super) fn set_hungry(&mut self, id: u32, hungry: u32) {
        let least = self.start();
        self.change(id, |class| {
            if class.hungry == 0 && hungry > 0 {
                class.service = class.service.max(least);
            }
            class.hungry = hungry;
        });
    }

    /// What a class has at least that begins to wait for something: it has no savings.
    fn start(&self) -> u128 {
        if self.forgets { self.reached } else { 0 }
    }

    /// A request of this class is released.
    pub(super) fn released(&mut self, id: u32) {
        if let ClassOrder::Turns { quantum } = self.order {
            let class = &self.classes[id as usize];
            self.round = class.service / turn(class, quantum);
        }
    }

    /// A class has received `size`. An idle class starts anew when it returns,
    /// so what it receives until then does not count.
    pub(super) fn charge(&mut self, id: u32, size: Bytes) {
        let size = u128::from(size.0);
        let order = self.order;
        self.change(id, |class| {
            if class.users == 0 {
                return;
            }
            let service = match order {
                ClassOrder::Turns { .. } => size,
                _ => size * u128::from(SERVICE_SCALE) / u128::from(share(class, order)),
            };
            class.service = class.service.saturating_add(service);
        });
    }

    /// `size` that a class was charged for will not come. It takes no class below
    /// what one that comes has.
    pub(super) fn refund(&mut self, id: u32, size: Bytes) {
        let (order, reached) = (self.order, self.reached);
        self.change(id, |class| {
            let service =
                u128::from(size.0) * u128::from(SERVICE_SCALE) / u128::from(share(class, order));
            let less = class.service.saturating_sub(service).max(reached);
            class.service = class.service.min(less);
        });
    }

    /// Changes a class and moves it to where it then belongs.
    fn change(&mut self, id: u32, edit: impl FnOnce(&mut Class)) {
        let before = self.places(id);
        edit(&mut self.classes[id as usize]);
        let after = self.places(id);
        relocate(&mut self.waiting, before.waiting, after.waiting);
        relocate(&mut self.reading, before.reading, after.reading);
        relocate(&mut self.busy, before.busy, after.busy);
        relocate(&mut self.active, before.active, after.active);
    }

    fn places(&self, id: u32) -> Places {
        let class = &self.classes[id as usize];
        let rank = match self.order {
            ClassOrder::Arrival => (class.first.map_or(0, u128::from), 0, id),
            ClassOrder::LeastService { .. } => {
                (class.service, u64::MAX - share(class, self.order), id)
            }
            ClassOrder::Turns { quantum } => {
                (class.service / turn(class, quantum), class.joined, id)
            }
        };
        Places {
            waiting: class.first.is_some().then_some(rank),
            reading: (class.hungry > 0).then_some(rank),
            busy: class.is_busy.then_some((class.service, id)),
            active: (class.users > 0).then_some((class.service, id)),
        }
    }
}

/// *w* x *UC*, or *w* alone where the number of users should not matter.
fn share(class: &Class, order: ClassOrder) -> u64 {
    let users = match order {
        ClassOrder::LeastService { per_user: true } => class.users.max(1),
        _ => 1,
    };
    u64::from(class.weight) * u64::from(users)
}

/// What a class may receive in one turn.
fn turn(class: &Class, quantum: Bytes) -> u128 {
    u128::from(quantum.0.max(1)) * u128::from(class.weight)
}

fn relocate<T: Ord>(set: &mut BTreeSet<T>, before: Option<T>, after: Option<T>) {
    if before == after {
        return;
    }
    if let Some(before) = before {
        set.remove(&before);
    }
    set.extend(after);
}
