//! What a gateway does with requests, without its sockets.
//!
//! A [`Proxy`] owns the [`Scheduler`] and the lives of all requests. Events come in
//! as calls, each with the time; what is to be done comes out as [`Action`]s. The
//! driver moves the bytes; after every event it asks for actions until there are
//! none, and asks again at [`Proxy::next_timeout`].
//!
//! - A request that was heard either becomes an exchange or is refused at once.
//! - Every exchange ends with exactly one [`Action::End`], whoever ended it, and no
//!   later action names it. Later reports of the driver about it change nothing.
//! - The driver holds no place in the window: places belong to the exchanges.
//!
//! Tunnels, through which a gateway sees bytes and no requests, are at the end of
//! this type's methods.
//!
//! *Memory* is proportional to the exchanges and tunnels that live and the actions
//! not asked for yet, plus a bounded number of origins.

mod replacement;
mod tunnels;

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;

use super::alarms::Alarms;
use super::exchange::{Ending, Event, Exchange, Phase};
use super::pools::Pools;
use super::round_trips::RoundTrips;
use super::tunnel::{Tunnel, TunnelConfig};
use super::{
    ClassId, ClassState, Decision, LinkReport, Reading, Refusal, Request, Scheduler, UserId,
};
use crate::units::{Bytes, Rate, Span, Time};

/// How often [`Proxy::report`] expects the counters of the access link: many times
/// per interval of the window, and within the read gate's memory.
pub const REPORT_EVERY: Span = Span::millis(100);

/// Identifies an exchange, even after it is over. No two exchanges of a proxy ever
/// have the same identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId(u64);

/// Identifies a tunnel, even after it is closed. No tunnel or exchange of a proxy
/// ever has the identifier of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TunnelId(u64);

/// A server, or anything else with a path of its own: any number that is the same
/// for the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OriginId(pub u64);

/// The settings of a proxy, besides those of its scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyConfig {
    /// A response of which nothing has come for this long is given up, unless
    /// something was held back; `None` waits for ever.
    pub patience: Option<Span>,
    /// The rate at which the responses of each class may be read, in the order of
    /// classes, by buckets that are refilled every second. They decide what is
    /// read, and the scheduler's read gate does not. Classes without a rate, which
    /// are all of them if this is empty, are read as the scheduler says.
    ///
    /// They do not limit tunnels.
    pub pools: Vec<Rate>,
    /// What the receive buffer of a connection to a server holds at least. Zero takes it that
    /// nothing comes of a long response before it may be read.
    pub receive_buffer: Bytes,
    /// When a tunnel asks, and when it has its answer.
    pub tunnels: TunnelConfig,
}

/// Something that has a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Member {
    /// A request or response.
    Exchange(ExchangeId),
    /// A tunnel.
    Tunnel(TunnelId),
}

/// Something for a gateway to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Connect to the server of this exchange, send the request, and read the
    /// response as stated.
    Dial {
        /// Whose.
        exchange: ExchangeId,
        /// How the response may be read until further notice.
        reading: Reading,
    },
    /// This much more of the response may be read than before.
    Read {
        /// Of which exchange.
        exchange: ExchangeId,
        /// How much more.
        size: Bytes,
    },
    /// An exchange is over. Unless it is completed, nothing more of it is wanted:
    /// close what is open for it on either side.
    End {
        /// Which.
        exchange: ExchangeId,
        /// Why.
        ending: Ending,
    },
    /// Send on what is held of this tunnel's uplink, and hold nothing more of it
    /// until [`Proxy::send`] says so.
    Pass {
        /// Of which tunnel.
        tunnel: TunnelId,
    },
    /// Read the downlink of this tunnel as stated, counted from what has been read
    /// so far, whatever was said before.
    ReadTunnel {
        /// Of which.
        tunnel: TunnelId,
        /// How.
        reading: Reading,
    },
}

impl Action {
    /// The tunnel that it is about.
    fn tunnel(&self) -> Option<TunnelId> {
        match *self {
            Action::Pass { tunnel } | Action::ReadTunnel { tunnel, .. } => Some(tunnel),
            Action::Dial { .. } | Action::Read { .. } | Action::End { .. } => None,
        }
    }

    /// The exchange that it is about.
    fn exchange(&self) -> Option<ExchangeId> {
        match *self {
            Action::Dial { exchange, .. }
            | Action::Read { exchange, .. }
            | Action::End { exchange, .. } => Some(exchange),
            Action::Pass { .. } | Action::ReadTunnel { .. } => None,
        }
    }
}

/// How long responses got nothing, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// The longest time for which a response had read all that it was granted.
    pub ungranted: Span,
    /// The largest number of long responses, which are those outside the window, at
    /// any time.
    pub long: usize,
}

/// The lives of all requests at a gateway, and the scheduler that they wait for.
///
/// *Cost.* O(log n) in the exchanges that live, and that of the scheduler, for each
/// event and action.
///
/// ```
/// use std::num::NonZeroU32;
/// use tidegate_core::request::{
///     Action, ClassId, Ending, Proxy, ProxyConfig, Reading, UserId, catalogue,
/// };
/// use tidegate_core::{Bytes, Rate, Span, Time};
///
/// let paper = catalogue::find("paper").expect("it is in the catalogue");
/// let scheduler = paper.build(&[], Rate(2_000_000), &[NonZeroU32::MIN], 1)?;
/// let config = ProxyConfig { patience: Some(Span::seconds(60)), ..ProxyConfig::default() };
/// let mut proxy = Proxy::new(Time::ZERO, scheduler, config);
///
/// let mut now = Time::ZERO;
/// let first = proxy.hear(ClassId(0), UserId(7))?;
/// let second = proxy.hear(ClassId(0), UserId(7))?;
/// let reading = Reading::Freely;
/// assert_eq!(proxy.next_action(now), Some(Action::Dial { exchange: first, reading }));
/// // The window has one place.
/// assert_eq!(proxy.next_action(now), None);
///
/// now += Span::millis(80);
/// proxy.connected(now, first);
/// proxy.read(now, first, Bytes(1_000), false);
/// proxy.read(now, first, Bytes(500), true);
/// let ending = Ending::Completed;
/// assert_eq!(proxy.next_action(now), Some(Action::End { exchange: first, ending }));
/// assert_eq!(proxy.next_action(now), Some(Action::Dial { exchange: second, reading }));
/// assert_eq!(proxy.next_action(now), None);
///
/// // The second server says nothing.
/// let at = proxy.next_timeout(now).expect("somebody watches");
/// assert_eq!(at, now + Span::seconds(60));
/// let ending = Ending::Stalled;
/// assert_eq!(proxy.next_action(at), Some(Action::End { exchange: second, ending }));
/// assert_eq!(proxy.held(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Proxy {
    scheduler: Scheduler,
    patience: Option<Span>,
    receive_buffer: Bytes,
    pools: Pools,
    exchanges: BTreeMap<u64, Exchange>,
    tunnels: BTreeMap<u64, Tunnel>,
    of_tunnels: TunnelConfig,
    /// Requests of tunnels that were released out of order.
    overdue: u64,
    /// The number of identifiers given out.
    named: u64,
    /// Actions that are known but not asked for yet.
    actions: VecDeque<Action>,
    alarms: Alarms,
    round_trips: RoundTrips,
    pauses: Pauses,
    /// Whether the scheduler has not been asked to the end since a timer was due.
    is_woken: bool,
}

impl Proxy {
    /// A gateway that begins at `now`, without any request.
    #[must_use]
    pub fn new(now: Time, scheduler: Scheduler, config: ProxyConfig) -> Proxy {
        let ProxyConfig { patience, pools, receive_buffer, tunnels } = config;
        Proxy {
            scheduler,
            patience,
            receive_buffer,
            pools: Pools::new(now, &pools),
            exchanges: BTreeMap::new(),
            tunnels: BTreeMap::new(),
            of_tunnels: tunnels,
            overdue: 0,
            named: 0,
            actions: VecDeque::new(),
            alarms: Alarms::default(),
            round_trips: RoundTrips::default(),
            pauses: Pauses::default(),
            is_woken: false,
        }
    }

    /// A request was heard completely, as far as it is needed to send it on.
    ///
    /// # Errors
    /// Too many requests already wait, or the class does not exist. Refuse the
    /// request; nothing is kept of it.
    pub fn hear(&mut self, class: ClassId, user: UserId) -> Result<ExchangeId, Refusal> {
        let number = self.named;
        let ticket = self.scheduler.arrive(Request { handle: number, class, user })?;
        self.named += 1;
        self.exchanges.insert(number, Exchange::new(class, user, ticket, self.receive_buffer));
        Ok(ExchangeId(number))
    }

    /// The connection to the server of an exchange is up.
    pub fn connected(&mut self, now: Time, exchange: ExchangeId) {
        self.happen(now, exchange, Event::Connected);
    }

    /// The time that a connection to this origin took to come up, which is one
    /// round trip, or that a request on an open one took to be acknowledged. Report one
    /// of them for each exchange, unless something was sent more than once
    /// ([`latest_round_trip`](super::latest_round_trip)); the scheduler's delay signal is
    /// derived from it.
    pub fn timed(&mut self, origin: OriginId, round_trip: Span) {
        self.round_trips.add(origin, round_trip);
    }

    /// The link has another rate from now on.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.scheduler.set_rate(now, rate);
    }

    /// A class has another weight for what it receives from now on.
    pub fn set_weight(&mut self, class: ClassId, weight: NonZeroU32) {
        self.scheduler.set_weight(class, weight);
    }

    /// A round trip to the server of this exchange takes so long: as its connection
    /// says, at the handshake and whenever it knows better.
    pub fn path(&mut self, now: Time, exchange: ExchangeId, round_trip: Span) {
        if let Some(state) = self.exchanges.get_mut(&exchange.0) {
            state.time(now, round_trip);
        }
    }

    /// How much the receive buffer of the connection to the server of this exchange
    /// should hold. Ask after every [`read`](Proxy::read). `None` leaves it as it is: the
    /// round trip is unknown, or nothing is held back under this scheduler.
    #[must_use]
    pub fn buffer(&self, exchange: ExchangeId) -> Option<Bytes> {
        let state = self.exchanges.get(&exchange.0)?;
        state.buffer().filter(|_| self.scheduler.holds_back())
    }

    /// The number of bytes of a response, possibly none, that have come and have
    /// not been read, and whether the response is `complete` with them. Report it
    /// whenever bytes come that may not be read, as their total at that time: the link
    /// has carried them, the server is not silent, and a pool gives what it has.
    pub fn came(&mut self, now: Time, exchange: ExchangeId, unread: Bytes, complete: bool) {
        self.happen(now, exchange, Event::Came { unread, complete });
        self.draw(now, exchange);
    }

    /// A part of a response was read, which is `complete` with it; returns how the
    /// response may be read next. A response of which nothing is known any more may
    /// not be read.
    pub fn read(
        &mut self,
        now: Time,
        exchange: ExchangeId,
        size: Bytes,
        complete: bool,
    ) -> Reading {
        self.happen(now, exchange, Event::Read { size, complete });
        match self.phase(exchange) {
            Some(Phase::Reading(reading)) => reading,
            _ => Reading::UpTo(Bytes::ZERO),
        }
    }

    /// The server broke a response off: it reset the connection, or closed it before
    /// the response was complete.
    pub fn reset(&mut self, now: Time, exchange: ExchangeId) {
        self.happen(now, exchange, Event::Reset);
    }

    /// A connection of an exchange is lost, to the client or the server, or none can
    /// be made.
    pub fn broken(&mut self, now: Time, exchange: ExchangeId) {
        self.happen(now, exchange, Event::Broken);
    }

    /// The client of an exchange is gone.
    pub fn left(&mut self, now: Time, exchange: ExchangeId) {
        self.happen(now, exchange, Event::Left);
    }

    /// Bytes have come that answer no request: of a user of a class, or of nobody
    /// that is known (`MSF section 6`).
    pub fn received_unasked(&mut self, now: Time, whose: Option<(ClassId, UserId)>, size: Bytes) {
        self.scheduler.received_unasked(now, whose, size);
    }

    /// All bytes that the access link has ever carried towards the gateway, by its
    /// own counter. Report them every [`REPORT_EVERY`].
    pub fn report(&mut self, now: Time, carried: Bytes) {
        let queueing_delay = self.round_trips.take_delay();
        self.scheduler.report(now, LinkReport { carried, queueing_delay });
    }

    /// What is to be done at `now`. Call this repeatedly, after every event and at
    /// [`next_timeout`](Proxy::next_timeout), until it returns `None`. Superfluous
    /// calls change nothing.
    pub fn next_action(&mut self, now: Time) -> Option<Action> {
        loop {
            if let Some(action) = self.actions.pop_front() {
                return Some(action);
            }
            // The consequences of one timer are dealt with before the next is
            // looked at.
            if !self.is_woken && self.wake(now) {
                self.is_woken = true;
            } else if let Some(decision) = self.scheduler.next(now) {
                self.obey(now, decision);
            } else {
                let long = self.scheduler.outstanding() - self.scheduler.held() as usize;
                self.pauses.long = self.pauses.long.max(long);
                if !std::mem::take(&mut self.is_woken) {
                    return None;
                }
            }
        }
    }

    /// When [`next_action`](Proxy::next_action) may return something without
    /// another event; `None` if never.
    #[must_use]
    pub fn next_timeout(&mut self, now: Time) -> Option<Time> {
        if !self.actions.is_empty() || self.is_woken || self.pools.is_serving() {
            return Some(now);
        }
        let times = [self.scheduler.next_ready(now), self.alarms.next(), self.pools.next_refill()];
        times.into_iter().flatten().min()
    }

    /// The phase of an exchange; `None` when it is over.
    #[must_use]
    pub fn phase(&self, exchange: ExchangeId) -> Option<Phase> {
        self.exchanges.get(&exchange.0).map(Exchange::phase)
    }

    /// How long nothing has been read of a response, or been held back from it,
    /// since its release; `None` while it is not outstanding.
    #[must_use]
    pub fn silence(&self, now: Time, exchange: ExchangeId) -> Option<Span> {
        Some(now.since(self.exchanges.get(&exchange.0)?.moved()?))
    }

    /// How long responses of exchanges got nothing, including those that get
    /// nothing at `now`.
    #[must_use]
    pub fn pauses(&self, now: Time) -> Pauses {
        let lasting = self.exchanges.values().filter_map(Exchange::ungranted);
        let longest = lasting.map(|since| now.since(since)).max().unwrap_or_default();
        Pauses { ungranted: self.pauses.ungranted.max(longest), ..self.pauses }
    }

    /// *W+*: how many responses may be outstanding; infinity without a limit.
    #[must_use]
    pub fn window(&self) -> f64 {
        self.scheduler.window()
    }

    /// *W*: responses that hold a place.
    #[must_use]
    pub fn held(&mut self) -> u32 {
        self.scheduler.held()
    }

    /// How many responses are outstanding, long ones among them.
    #[must_use]
    pub fn outstanding(&mut self) -> usize {
        self.scheduler.outstanding()
    }

    /// The number of waiting requests.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.scheduler.waiting()
    }

    /// What a class has come to; `None` when there is no such class.
    #[must_use]
    pub fn class(&mut self, class: ClassId) -> Option<ClassState> {
        self.scheduler.class(class)
    }

    /// Takes the step of one exchange, if it lives, and takes it out when that was
    /// the last.
    fn happen(&mut self, now: Time, exchange: ExchangeId, event: Event) {
        let number = exchange.0;
        let Some(state) = self.exchanges.get_mut(&number) else { return };
        let pause = state.ungranted();
        let ending = state.step(now, event, &mut self.scheduler);
        if let Some(since) = pause.filter(|_| ending.is_some() || state.ungranted().is_none()) {
            self.pauses.ungranted = self.pauses.ungranted.max(now.since(since));
        }
        if let Some(ending) = ending {
            self.pools.leave(state.class(), number);
            self.end(exchange, ending);
        }
    }

    /// The one way out for an exchange.
    fn end(&mut self, exchange: ExchangeId, ending: Ending) {
        self.exchanges.remove(&exchange.0);
        self.alarms.clear(exchange.0);
        self.actions.retain(|action| action.exchange() != Some(exchange));
        self.actions.push_back(Action::End { exchange, ending });
    }

    /// Carries out what the scheduler decided.
    fn obey(&mut self, now: Time, decision: Decision) {
        match decision {
            Decision::Release { request, permit } if self.tunnels.contains_key(&request.handle) => {
                self.release_tunnel(now, TunnelId(request.handle), permit);
            }
            Decision::Release { request, permit } => {
                let exchange = ExchangeId(request.handle);
                let pooled = self.pools.limits(request.class);
                self.happen(now, exchange, Event::Released { permit, pooled });
                let reading = if pooled { Reading::UpTo(Bytes::ZERO) } else { Reading::Freely };
                self.actions.push_back(Action::Dial { exchange, reading });
                if let Some(patience) = self.patience {
                    self.alarms.set(request.handle, now + patience);
                }
            }
            Decision::Read { handle, size } if self.tunnels.contains_key(&handle) => {
                self.grant_tunnel(TunnelId(handle), size);
            }
            Decision::Read { handle, size } => {
                let class = self.exchanges.get(&handle).map(Exchange::class);
                if class.is_some_and(|class| !self.pools.limits(class)) {
                    self.grant(now, ExchangeId(handle), size);
                }
            }
        }
    }

    /// Lets a response read on.
    fn grant(&mut self, now: Time, exchange: ExchangeId, size: Bytes) {
        self.happen(now, exchange, Event::Granted(size));
        self.actions.push_back(Action::Read { exchange, size });
    }

    /// Lets a response read what has come of it, as far as its class's bucket goes.
    fn draw(&mut self, now: Time, exchange: ExchangeId) {
        let Some(state) = self.exchanges.get(&exchange.0) else { return };
        if !self.pools.limits(state.class()) || state.phase() == Phase::Waiting {
            return;
        }
        let size = self.pools.draw(state.class(), exchange.0, state.held_back());
        if size > Bytes::ZERO {
            self.grant(now, exchange, size);
        }
    }

    /// Does one thing that is due, if any is.
    fn wake(&mut self, now: Time) -> bool {
        if let Some(number) = self.alarms.take_due(now) {
            if self.tunnels.contains_key(&number) {
                self.look_at_tunnel(now, TunnelId(number));
            } else {
                self.watch(now, ExchangeId(number));
            }
        } else if let Some(number) = self.pools.next_in_line() {
            self.draw(now, ExchangeId(number));
        } else if self.pools.next_refill().is_some_and(|at| at <= now) {
            self.pools.refill(now);
        } else {
            return false;
        }
        true
    }

    /// Gives a response up that has been silent for too long.
    fn watch(&mut self, now: Time, exchange: ExchangeId) {
        let Some(patience) = self.patience else { return };
        self.happen(now, exchange, Event::Watched(patience));
        if let Some(moved) = self.exchanges.get(&exchange.0).and_then(Exchange::moved) {
            self.alarms.set(exchange.0, moved + patience);
        }
    }
}
