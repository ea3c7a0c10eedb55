//! The scheduler: arbiter, window and read gate in one state machine.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use slab::Slab;

use super::classes::{ClassOrder, Classes};
use super::lines::{Lines, UserOrder, WaitingLimits};
use super::permit::{Permit, Permits};
use super::room::{ReadGateConfig, Room};
use super::window::{LinkReport, Window, WindowConfig};
use super::{ClassId, ClassState, Decision, Reading, Refusal, Request, Ticket, UserId};
use crate::units::{Bytes, Rate, Time};

/// Settings of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which class is next.
    pub class_order: ClassOrder,
    /// Which request of a class is next.
    pub user_order: UserOrder,
    /// How many requests may wait.
    pub limits: WaitingLimits,
    /// How many responses may be outstanding.
    pub window: WindowConfig,
    /// How long responses are held back; `None` lets all be read as they arrive.
    pub read_gate: Option<ReadGateConfig>,
}

/// Decides which request is released and which long response is read.
///
/// *Cost.* O(log n) in the classes, and in the users of one class, for every
/// event and decision.
#[derive(Debug)]
pub struct Scheduler {
    classes: Classes,
    lines: Lines,
    window: Window,
    permits: Permits,
    responses: Slab<Response>,
    /// *W*: responses that hold a place.
    held: u32,
    /// Bytes known to the gateway since the first report.
    seen: u64,
    /// The link's counter at the first report, and the unseen bytes found since.
    unseen: Option<(Bytes, u64)>,
    gate: Option<ReadGate>,
}

/// An outstanding response.
#[derive(Debug)]
struct Response {
    handle: u64,
    class: u32,
    user: u32,
    received: u64,
    /// Whether it holds a place in the window: until it ends or becomes long.
    holds_place: bool,
    long: Option<Long>,
}

/// The additional state of a long response.
#[derive(Debug)]
struct Long {
    /// The remainder of its grants.
    granted: u64,
    /// Its place among the hungry responses: its user's service and its number there.
    hungry: Option<(u64, u64)>,
}

/// The read gate's side of long responses.
#[derive(Debug)]
struct ReadGate {
    config: ReadGateConfig,
    room: Room,
    /// The responses that want to be read: those of each class by their users'
    /// service, and all in the order in which they became hungry.
    by_class: Vec<BTreeSet<(u64, u64, u32)>>,
    by_age: BTreeMap<u64, u32>,
    hungered: u64,
}

impl Scheduler {
    /// A scheduler for a link of this `rate` and classes of these `weights`;
    /// the hash of its users depends on `seed`.
    #[must_use]
    pub fn new(config: Config, rate: Rate, weights: &[NonZeroU32], seed: u64) -> Scheduler {
        let gate = config.read_gate.map(|gate| ReadGate {
            config: gate,
            room: Room::new(rate, config.window.target_millionths, gate),
            by_class: vec![BTreeSet::new(); weights.len()],
            by_age: BTreeMap::new(),
            hungered: 0,
        });
        Scheduler {
            classes: Classes::new(config.class_order, weights, config.read_gate.is_some()),
            lines: Lines::new(config.user_order, config.limits, weights.len(), seed),
            window: Window::new(config.window, rate),
            permits: Permits::new(),
            responses: Slab::new(),
            held: 0,
            seen: 0,
            unseen: None,
            gate,
        }
    }

    /// A request has arrived. [`next`](Scheduler::next) decides about it, now or later.
    ///
    /// # Errors
    /// Too many requests are already waiting, or the class does not exist. Nothing
    /// of the request is kept.
    pub fn arrive(&mut self, request: Request) -> Result<Ticket, Refusal> {
        self.settle();
        let class = request.class;
        if self.classes.get(class.0).is_none() {
            return Err(Refusal::NoSuchClass { class });
        }
        let (ticket, new_user) = self.lines.join(request)?;
        if new_user {
            self.classes.add_user(class.0);
        }
        self.classes.set_first(class.0, self.lines.first(class.0));
        Ok(ticket)
    }

    /// Withdraws a request whose client is gone. `None` if it no longer waits:
    /// then the owner of its permit drops that.
    pub fn withdraw(&mut self, ticket: Ticket) -> Option<Request> {
        self.settle();
        let (request, user_left) = self.lines.withdraw(ticket)?;
        let ClassId(class) = request.class;
        self.classes.set_first(class, self.lines.first(class));
        if user_left {
            self.classes.remove_user(class);
        }
        Some(request)
    }

    /// A response that had seemed over continues after `received` of it: it
    /// takes a place at once, even beyond *W+*. What it receives from here on
    /// counts as if it had never ended. No decision releases it; keep and drop
    /// the permit like that of a release.
    ///
    /// # Errors
    /// The class does not exist.
    pub fn resume(&mut self, request: Request, received: Bytes) -> Result<Permit, Refusal> {
        self.settle();
        let Request { handle, class, user } = request;
        if self.classes.get(class.0).is_none() {
            return Err(Refusal::NoSuchClass { class });
        }
        let (user, new_user) = self.lines.resume(class, user);
        if new_user {
            self.classes.add_user(class.0);
        }
        Ok(self.take_place(handle, class.0, user, received))
    }

    /// The next decision at `now`: call it repeatedly after every event, until
    /// it returns `None`. Time never goes back from one call to the next.
    pub fn next(&mut self, now: Time) -> Option<Decision> {
        self.settle();
        if self.window.admits(self.held)
            && let Some(class) = self.classes.next_waiting()
        {
            return self.release(class);
        }
        self.grant(now)
    }

    /// The time at which [`next`](Scheduler::next) may have a decision without
    /// another event; `None` if never.
    #[must_use]
    pub fn next_ready(&mut self, now: Time) -> Option<Time> {
        self.settle();
        if self.window.admits(self.held) && self.classes.next_waiting().is_some() {
            return Some(now);
        }
        let gate = self.gate.as_mut().filter(|gate| !gate.by_age.is_empty())?;
        gate.room.advance(now);
        gate.room.next(self.classes.next_reading().is_some())
    }

    /// A part of `size` of a response has been read; returns how to read the rest.
    pub fn received(&mut self, now: Time, permit: &Permit, size: Bytes) -> Reading {
        self.settle();
        self.seen = self.seen.saturating_add(size.0);
        let number = permit.response();
        let Some(response) = self.responses.get(number as usize) else { return Reading::Freely };
        self.classes.charge(response.class, size);
        self.lines.charge(response.user, size);
        let Some(gate) = &mut self.gate else { return Reading::Freely };
        gate.room.advance(now);
        let response = &mut self.responses[number as usize];
        response.received = response.received.saturating_add(size.0);
        let Some(long) = &mut response.long else {
            gate.room.spend(size);
            if response.received < gate.config.long_from.0 {
                return Reading::Freely;
            }
            response.long = Some(Long { granted: 0, hungry: None });
            self.give_place_back(number);
            self.hunger(number);
            return Reading::UpTo(Bytes::ZERO);
        };
        // Grants were paid for when they were made.
        gate.room.spend(Bytes(size.0.saturating_sub(long.granted)));
        long.granted = long.granted.saturating_sub(size.0);
        let granted = Bytes(long.granted);
        // Half a grant ahead, so that reading does not stop at the end of each.
        if long.hungry.is_none() && granted <= gate.config.grant / 2 {
            self.hunger(number);
        }
        Reading::UpTo(granted)
    }

    /// Bytes have come that answer no request: of a user of a class, or of
    /// nobody that is known (`MSF section 6`). The former count as that class's
    /// and user's service.
    pub fn received_unasked(&mut self, now: Time, whose: Option<(ClassId, UserId)>, size: Bytes) {
        self.settle();
        self.seen = self.seen.saturating_add(size.0);
        if let Some((class, user)) = whose
            && self.classes.get(class.0).is_some()
        {
            self.classes.charge(class.0, size);
            if let Some(user) = self.lines.user(class, user) {
                self.lines.charge(user, size);
            }
        }
        self.spend(now, size);
    }

    /// The link's own counters at `now`: report them regularly, several times
    /// in an interval of the window if there is a read gate.
    pub fn report(&mut self, now: Time, report: LinkReport) {
        self.settle();
        let (base, known) = *self.unseen.get_or_insert((report.carried - Bytes(self.seen), 0));
        // Bytes in flight inside the gateway are seen later, and are then not new.
        let unseen = (report.carried - base).0.saturating_sub(self.seen).max(known);
        self.unseen = Some((base, unseen));
        self.spend(now, Bytes(unseen - known));
        self.window.report(now, report, self.held);
    }

    /// *W+*: how many responses may be outstanding; infinity without a limit.
    #[must_use]
    pub fn window(&self) -> f64 {
        self.window.places()
    }

    /// *W*: responses that hold a place.
    #[must_use]
    pub fn held(&mut self) -> u32 {
        self.settle();
        self.held
    }

    /// The number of waiting requests.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lines.len()
    }

    /// How many responses are outstanding, long ones among them.
    #[must_use]
    pub fn outstanding(&mut self) -> usize {
        self.settle();
        self.responses.len()
    }

    /// What a class has come to; `None` when there is no such class.
    #[must_use]
    pub fn class(&mut self, class: ClassId) -> Option<ClassState> {
        self.settle();
        let state = self.classes.get(class.0)?;
        let (users, is_waiting) = (state.users, state.first.is_some());
        Some(ClassState { service: self.classes.service(class.0), users, is_waiting })
    }

    /// Collects the dropped permits.
    fn settle(&mut self) {
        while let Some(number) = self.permits.take_returned() {
            self.give_place_back(number);
            self.sate(number);
            let response = self.responses.remove(number as usize);
            if let (Some(gate), Some(long)) = (&mut self.gate, &response.long) {
                gate.room.refund(Bytes(long.granted));
            }
            if self.lines.finish(response.user) {
                self.classes.remove_user(response.class);
            }
        }
    }

    /// The one way out of the window.
    fn give_place_back(&mut self, number: u32) {
        if std::mem::take(&mut self.responses[number as usize].holds_place) {
            self.held -= 1;
        }
    }

    fn release(&mut self, class: u32) -> Option<Decision> {
        let (request, user) = self.lines.release(class)?;
        self.classes.released(class);
        self.classes.set_first(class, self.lines.first(class));
        let permit = self.take_place(request.handle, class, user, Bytes::ZERO);
        Some(Decision::Release { request, permit })
    }

    /// The one way into the window.
    fn take_place(&mut self, handle: u64, class: u32, user: u32, received: Bytes) -> Permit {
        let number = self.responses.insert(Response {
            handle,
            class,
            user,
            received: received.0,
            holds_place: true,
            long: None,
        });
        let number = u32::try_from(number).expect("under 2^32 responses at once");
        self.held += 1;
        self.permits.issue(number)
    }

    /// Lets a long response read on, if one may.
    fn grant(&mut self, now: Time) -> Option<Decision> {
        let gate = self.gate.as_mut()?;
        gate.room.advance(now);
        let (_, &oldest) = gate.by_age.first_key_value()?;
        let number = if gate.room.take_floor() {
            oldest
        } else {
            let class = self.classes.next_reading().filter(|_| gate.room.has_room())?;
            gate.by_class[class as usize].first()?.2
        };
        let size = gate.config.grant;
        gate.room.spend(size);
        self.sate(number);
        let response = &mut self.responses[number as usize];
        if let Some(long) = &mut response.long {
            long.granted += size.0;
        }
        Some(Decision::Read { handle: response.handle, size })
    }

    /// A long response wants to be read.
    fn hunger(&mut self, number: u32) {
        let Some(gate) = &mut self.gate else { return };
        let response = &mut self.responses[number as usize];
        let place = (self.lines.service(response.user), gate.hungered);
        gate.hungered += 1;
        if let Some(long) = &mut response.long {
            long.hungry = Some(place);
        }
        let of_class = &mut gate.by_class[response.class as usize];
        of_class.insert((place.0, place.1, number));
        gate.by_age.insert(place.1, number);
        self.classes.set_hungry(response.class, of_class.len() as u32);
    }

    /// A long response no longer wants to be read.
    fn sate(&mut self, number: u32) {
        let response = &mut self.responses[number as usize];
        let Some(place) = response.long.as_mut().and_then(|long| long.hungry.take()) else {
            return;
        };
        let Some(gate) = &mut self.gate else { return };
        let of_class = &mut gate.by_class[response.class as usize];
        of_class.remove(&(place.0, place.1, number));
        gate.by_age.remove(&place.1);
        self.classes.set_hungry(response.class, of_class.len() as u32);
    }

    /// Bytes on the link that no grant has paid for.
    fn spend(&mut self, now: Time, size: Bytes) {
        if let Some(gate) = &mut self.gate {
            gate.room.advance(now);
            gate.room.spend(size);
        }
    }
}
