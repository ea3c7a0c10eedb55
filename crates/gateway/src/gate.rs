//! The one owner of the state machine.
//!
//! [`Proxy`](tidegate_core::request::Proxy) decides, and the tasks of requests and
//! tunnels move bytes. A task holds an [`Exchange`] or a [`Tunnel`]: it reports through
//! it what happens at its sockets, and finds there what it may do. After each report all
//! actions of the state machine are carried out at once, so no task ever acts on an old
//! one. A handle that is dropped, for whatever reason, tells the state machine that
//! nobody is interested any more: there is no other way out of a task, so no place is
//! lost.
//!
//! All tasks run on one thread. The state machine is borrowed for the length of a call
//! and never across a wait.

mod handles;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use tidegate_core::request::{
    Action, ClassId, ClassState, Ending, ExchangeId, Member, OriginId, Phase, Proxy, ProxyConfig,
    REPORT_EVERY, Reading, Refusal, Scheduler, TunnelId, UserId,
};
use tidegate_core::{Bytes, Rate, Span, Time};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, sleep_until};

use crate::connections::Connection;
use crate::counter::Counter;
pub(crate) use handles::{Exchange, Tunnel};

/// As a length of time of the standard library.
pub(crate) fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.0)
}

/// The state machine, its clock, and the handles to tell about its actions.
#[derive(Debug)]
pub(crate) struct Gate {
    origin: Instant,
    core: RefCell<Core>,
    /// When the state machine wants to be asked again.
    due: Cell<Option<Instant>>,
    due_changed: Notify,
    reports: Cell<u64>,
}

#[derive(Debug)]
struct Core {
    proxy: Proxy,
    exchanges: BTreeMap<ExchangeId, Open<Permission>>,
    tunnels: BTreeMap<TunnelId, Open<Lane>>,
    /// All bytes that have come from servers, read or not, where no interface counts them.
    /// With what is read alone, the scheduler would take what it knows to have come for
    /// more than the link has carried, and the difference for room.
    received: Bytes,
    /// What the link had carried at the first report, and at the last.
    carried: Option<(Bytes, Bytes)>,
}

/// What is open, and whose.
#[derive(Debug)]
struct Open<T: Copy> {
    signal: Rc<Signal<T>>,
    connection: Rc<Connection>,
}

/// A state that tasks wait for.
#[derive(Debug)]
struct Signal<T: Copy> {
    state: Cell<T>,
    changed: Notify,
}

/// What the task of a request may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Permission {
    Wait,
    Read(Reading),
    Over(Ending),
}

/// What the task of a tunnel may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lane {
    reading: Reading,
    /// Whether what is held of the uplink may go on.
    passes: bool,
    /// Whether its class is gone, and it with that.
    is_over: bool,
}

impl<T: Copy> Signal<T> {
    fn new(state: T) -> Rc<Signal<T>> {
        Rc::new(Signal { state: Cell::new(state), changed: Notify::new() })
    }

    fn set(&self, state: T) {
        self.state.set(state);
        self.changed.notify_waiters();
    }

    /// Waits until `find` finds something in the state.
    async fn until<R>(&self, find: impl Fn(T) -> Option<R>) -> R {
        loop {
            // It hears of changes from here on, before it is polled.
            let changed = self.changed.notified();
            if let Some(found) = find(self.state.get()) {
                return found;
            }
            changed.await;
        }
    }
}

/// What a link carries for this much payload in full segments: of 1 500 bytes in IPv4, 52
/// are headers, and Ethernet has 14 more. A scheduler that does not know of them believes
/// that a full link has room, and releases more and more.
fn with_headers(payload: Bytes) -> Bytes {
    const PAYLOAD: u64 = 1_448;
    const FRAME: u64 = 1_514;
    let whole = payload.0 / PAYLOAD * FRAME;
    Bytes(whole + payload.0 % PAYLOAD * FRAME / PAYLOAD)
}

/// This much more.
fn more(reading: Reading, size: Bytes) -> Reading {
    match reading {
        Reading::Freely => Reading::Freely,
        Reading::UpTo(left) => Reading::UpTo(left + size),
    }
}

impl Gate {
    /// A gate whose time begins now; `build` makes the state machine for that time.
    pub(crate) fn new(build: impl FnOnce(Time) -> Proxy) -> Rc<Gate> {
        Rc::new(Gate {
            origin: Instant::now(),
            core: RefCell::new(Core {
                proxy: build(Time::ZERO),
                exchanges: BTreeMap::new(),
                tunnels: BTreeMap::new(),
                received: Bytes::ZERO,
                carried: None,
            }),
            due: Cell::new(None),
            due_changed: Notify::new(),
            reports: Cell::new(0),
        })
    }

    /// The time since the gate was made.
    pub(crate) fn now(&self) -> Time {
        Time(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Reports an event, and carries out what follows from it.
    fn tell<R>(&self, report: impl FnOnce(&mut Core, Time) -> R) -> R {
        let now = self.now();
        let core = &mut *self.core.borrow_mut();
        let result = report(core, now);
        while let Some(action) = core.proxy.next_action(now) {
            core.obey(action);
        }
        let next = core.proxy.next_timeout(now);
        let next = next.map(|at| self.origin + Duration::from_nanos(at.0));
        if next.is_some_and(|next| self.due.get().is_none_or(|due| next < due)) {
            self.due_changed.notify_one();
            self.due.set(next);
        }
        result
    }

    /// Calls the state machine whenever it wants to be called.
    pub(crate) async fn keep_time(&self) {
        loop {
            match self.due.get() {
                Some(due) => tokio::select! {
                    () = sleep_until(due) => {}
                    () = self.due_changed.notified() => continue,
                },
                None => {
                    self.due_changed.notified().await;
                    continue;
                }
            }
            self.due.set(None);
            self.tell(|_, _| {});
        }
    }

    /// Tells the state machine every [`REPORT_EVERY`] what the access link has carried:
    /// what `counter` says, or else all that servers sent to the gateway, with headers.
    pub(crate) async fn keep_books(&self, mut counter: Option<Counter>) {
        // The first report comes at once: what the link carries from now on counts.
        let every = duration(REPORT_EVERY);
        let mut ticks = tokio::time::interval_at(Instant::now() + every, every);
        // After a stop of the process there is one time to report about, and not many.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.reports.set(self.reports.get() + 1);
            let counted = counter.as_mut().map(Counter::carried);
            self.tell(|core, now| {
                let carried = counted.unwrap_or(with_headers(core.received));
                core.carried = Some((core.carried.map_or(carried, |(first, _)| first), carried));
                core.proxy.report(now, carried);
            });
            ticks.tick().await;
        }
    }

    /// How often that was.
    pub(crate) fn reports(&self) -> u64 {
        self.reports.get()
    }

    /// A request of this user was heard.
    ///
    /// # Errors
    /// Too many wait, or the client belongs to no class any more.
    pub(crate) fn hear(
        self: &Rc<Gate>,
        connection: &Rc<Connection>,
        user: UserId,
    ) -> Result<Exchange, Refused> {
        let class = connection.class().ok_or(Refused::NoClass)?;
        let signal = Signal::new(Permission::Wait);
        let open = Open { signal: signal.clone(), connection: connection.clone() };
        let id = self.tell(|core, _| -> Result<ExchangeId, Refusal> {
            let id = core.proxy.hear(class, user)?;
            core.exchanges.insert(id, open);
            Ok(id)
        })?;
        Ok(Exchange::new(self.clone(), id, signal))
    }

    /// A tunnel of this user opens.
    ///
    /// # Errors
    /// The client belongs to no class any more.
    pub(crate) fn open(
        self: &Rc<Gate>,
        connection: &Rc<Connection>,
        user: UserId,
    ) -> Result<Tunnel, Refused> {
        let class = connection.class().ok_or(Refused::NoClass)?;
        let reading = Reading::Freely;
        let signal = Signal::new(Lane { reading, passes: true, is_over: false });
        let open = Open { signal: signal.clone(), connection: connection.clone() };
        let id = self.tell(|core, now| -> Result<TunnelId, Refusal> {
            let id = core.proxy.open(now, class, user)?;
            core.tunnels.insert(id, open);
            Ok(id)
        })?;
        Ok(Tunnel::new(self.clone(), id, signal))
    }

    /// Bytes have come from a server that are not part of a response that was released.
    pub(crate) fn received_unasked(&self, class: Option<ClassId>, user: UserId, size: Bytes) {
        self.tell(|core, now| {
            core.received += size;
            core.proxy.received_unasked(now, class.map(|class| (class, user)), size);
        });
    }

    /// The time that a connection to this origin took to come up.
    pub(crate) fn timed(&self, origin: OriginId, round_trip: Span) {
        self.tell(|core, _| core.proxy.timed(origin, round_trip));
    }

    /// The link has this rate from now on, and the classes have these weights.
    pub(crate) fn change(&self, rate: Rate, weights: &[NonZeroU32]) {
        self.tell(|core, now| {
            core.proxy.set_rate(now, rate);
            for (class, weight) in (0..).map(ClassId).zip(weights) {
                core.proxy.set_weight(class, *weight);
            }
        });
    }

    /// Another scheduler decides from now on, and everything counts for the class that its
    /// connection belongs to. What belongs to none is over.
    pub(crate) fn replace(&self, scheduler: Scheduler, config: ProxyConfig) {
        self.tell(|core, now| {
            let Core { proxy, exchanges, tunnels, .. } = core;
            for (id, _) in exchanges.iter().filter(|(_, open)| open.connection.class().is_none()) {
                proxy.left(now, *id);
            }
            for (id, open) in &*tunnels {
                if open.connection.class().is_none() {
                    proxy.close(*id);
                    open.signal.set(Lane { is_over: true, ..open.signal.state.get() });
                }
            }
            proxy.replace(now, scheduler, config, |member| {
                let connection = match member {
                    Member::Exchange(id) => exchanges.get(&id).map(|open| &open.connection),
                    Member::Tunnel(id) => tunnels.get(&id).map(|open| &open.connection),
                };
                let class = connection.and_then(|connection| connection.class());
                class.expect("what has no class is over")
            });
            for (id, open) in &*exchanges {
                if let Some(Phase::Reading(reading)) = proxy.phase(*id) {
                    open.signal.set(Permission::Read(reading));
                }
            }
        });
    }

    /// What the scheduler has come to.
    pub(crate) fn standing(&self) -> Standing {
        let core = &mut *self.core.borrow_mut();
        Standing {
            window: core.proxy.window(),
            held: core.proxy.held(),
            outstanding: core.proxy.outstanding(),
            waiting: core.proxy.waiting(),
            tunnels: core.tunnels.len(),
            overdue: core.proxy.overdue(),
            carried: core.carried.map_or(Bytes::ZERO, |(first, last)| last - first),
        }
    }

    /// What a class has come to.
    pub(crate) fn class(&self, class: ClassId) -> Option<ClassState> {
        self.core.borrow_mut().proxy.class(class)
    }
}

/// Why nothing begins.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// The client belongs to no class any more.
    #[error("this gateway does not serve this to you any more")]
    NoClass,
    /// The scheduler's reason.
    #[error(transparent)]
    Scheduler(#[from] Refusal),
}

impl Refused {
    /// The status code that tells a client so.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Refused::NoClass => 403,
            Refused::Scheduler(_) => 503,
        }
    }
}

/// What a scheduler has come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Standing {
    pub(crate) window: f64,
    pub(crate) held: u32,
    pub(crate) outstanding: usize,
    pub(crate) waiting: usize,
    pub(crate) tunnels: usize,
    /// Requests of tunnels that were released out of order.
    pub(crate) overdue: u64,
    /// What the link has carried since the start.
    pub(crate) carried: Bytes,
}

impl Core {
    fn obey(&mut self, action: Action) {
        match action {
            Action::Dial { exchange, reading } => {
                self.permit(exchange, |_| Permission::Read(reading));
            }
            Action::Read { exchange, size } => self.permit(exchange, |now| match now {
                Permission::Read(reading) => Permission::Read(more(reading, size)),
                other => other,
            }),
            Action::End { exchange, ending } => {
                self.permit(exchange, |_| Permission::Over(ending));
                self.exchanges.remove(&exchange);
            }
            Action::Pass { tunnel } => self.direct(tunnel, |lane| Lane { passes: true, ..lane }),
            Action::ReadTunnel { tunnel, reading } => {
                self.direct(tunnel, |lane| Lane { reading, ..lane });
            }
        }
    }

    fn permit(&self, exchange: ExchangeId, change: impl FnOnce(Permission) -> Permission) {
        if let Some(Open { signal, .. }) = self.exchanges.get(&exchange) {
            signal.set(change(signal.state.get()));
        }
    }

    fn direct(&self, tunnel: TunnelId, change: impl FnOnce(Lane) -> Lane) {
        if let Some(Open { signal, .. }) = self.tunnels.get(&tunnel) {
            signal.set(change(signal.state.get()));
        }
    }
}
