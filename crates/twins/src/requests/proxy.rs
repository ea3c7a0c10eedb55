//! A driver of the request proxy without a network: it tells the proxy what chance
//! says, at the wrong time too, does what it is told, and keeps the books that no
//! order of events may spoil. The life of exchanges is held to a slow and obvious
//! twin: a gateway as one would write it down, with lists that it searches.

mod twin;

use std::num::NonZeroU32;

use tidegate_core::request::{
    Action, ClassId, Config, Ending, ExchangeId, Member, OriginId, Phase, Piece, Proxy,
    ProxyConfig, Reading, Scheduler, TunnelId, TunnelPhase, UserId, Verdict,
};
use tidegate_core::{Bytes, Rate, Span, Time};

use self::twin::Twin;

/// Something that happens. Numbers choose among all that there ever was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A request is heard; of a class that does not exist, too.
    Hear {
        /// Its class.
        class: u32,
        /// Its user.
        user: u64,
    },
    /// A server is connected.
    Connected(usize),
    /// So much of a response is there that has not been read, and may be its rest.
    Came(usize, Bytes, bool),
    /// A part of a response is read, permitted or not, and it may be the last.
    Read(usize, Bytes, bool),
    /// A server breaks off.
    Reset(usize),
    /// A connection is lost.
    Broken(usize),
    /// A client leaves.
    Left(usize),
    /// A handshake took so long.
    Timed(u64, Span),
    /// The link's counter is read, which others have moved by so much.
    Report(Bytes),
    /// Time passes, with all that is due in it.
    Wait(Span),
    /// A tunnel opens.
    Open {
        /// Its class.
        class: u32,
        /// Its user.
        user: u64,
    },
    /// A client sends into a tunnel.
    Send(usize, Piece),
    /// So much is there of a tunnel's downlink that has not been read.
    TunnelCame(usize, Bytes),
    /// A part of a tunnel's downlink is read.
    TunnelRead(usize, Bytes),
    /// A tunnel must never be held.
    Exempt(usize),
    /// A tunnel is closed.
    Close(usize),
    /// Another scheduler decides, for so many classes among which all is divided anew.
    Replace(Config, u32),
}

/// Of so many exchanges and tunnels that are over the driver still talks.
const MOST_NAMES: usize = 100;

/// The driver.
#[derive(Debug)]
pub struct Driver {
    proxy: Proxy,
    /// Held to as long as there is no tunnel.
    twin: Option<Twin>,
    settings: ProxyConfig,
    rate: Rate,
    now: Time,
    carried: Bytes,
    exchanges: Vec<ExchangeId>,
    tunnels: Vec<Carried>,
}

/// A tunnel as its driver knows it.
#[derive(Debug)]
struct Carried {
    name: TunnelId,
    /// Since when something is held.
    held: Option<Time>,
    closed: bool,
}

impl Driver {
    /// A driver of a proxy with these settings for a link of this `rate` and classes of
    /// these `weights`.
    #[must_use]
    pub fn new(config: Config, rate: Rate, weights: &[NonZeroU32], proxy: ProxyConfig) -> Driver {
        let scheduler = || Scheduler::new(config, rate, weights, 1);
        Driver {
            settings: proxy.clone(),
            rate,
            twin: Some(Twin::new(scheduler(), &proxy)),
            proxy: Proxy::new(Time::ZERO, scheduler(), proxy),
            now: Time::ZERO,
            carried: Bytes::ZERO,
            exchanges: Vec::new(),
            tunnels: Vec::new(),
        }
    }

    /// Does one thing, and then all that the proxy wants.
    ///
    /// # Panics
    /// When the proxy breaks a rule or does something else than its twin.
    pub fn apply(&mut self, operation: Operation) {
        let now = self.now;
        match operation {
            Operation::Hear { class, user } => self.hear(class, user),
            Operation::Connected(which) => self.tell(which, |proxy, twin, exchange| {
                proxy.connected(now, exchange);
                twin.iter_mut().for_each(|twin| twin.connected(exchange));
            }),
            Operation::Came(which, unread, all) => self.tell(which, |proxy, twin, exchange| {
                proxy.came(now, exchange, unread, all);
                twin.iter_mut().for_each(|twin| twin.came(now, exchange, unread, all));
            }),
            Operation::Read(which, size, complete) => self.tell(which, |proxy, twin, exchange| {
                let reading = proxy.read(now, exchange, size, complete);
                if let Some(twin) = twin {
                    assert_eq!(reading, twin.read(now, exchange, size, complete));
                }
            }),
            Operation::Reset(which) => self.tell(which, |proxy, twin, exchange| {
                proxy.reset(now, exchange);
                twin.iter_mut().for_each(|twin| twin.end(exchange, Ending::Reset));
            }),
            Operation::Broken(which) => self.tell(which, |proxy, twin, exchange| {
                proxy.broken(now, exchange);
                twin.iter_mut().for_each(|twin| twin.end(exchange, Ending::Broken));
            }),
            Operation::Left(which) => self.tell(which, |proxy, twin, exchange| {
                proxy.left(now, exchange);
                twin.iter_mut().for_each(|twin| twin.end(exchange, Ending::Abandoned));
            }),
            Operation::Timed(origin, round_trip) => {
                self.proxy.timed(OriginId(origin), round_trip);
                self.twin.iter_mut().for_each(|twin| twin.round_trips.push((origin, round_trip)));
            }
            Operation::Report(others) => {
                self.carried += others;
                self.proxy.report(now, self.carried);
                self.twin.iter_mut().for_each(|twin| twin.report(now, self.carried));
            }
            Operation::Wait(span) => self.wait(now + span),
            Operation::Replace(config, classes) => {
                self.twin = None;
                let weights = vec![NonZeroU32::MIN; classes as usize];
                let scheduler = Scheduler::new(config, self.rate, &weights, 2);
                let settings = self.settings.clone();
                self.proxy.replace(now, scheduler, settings, |member| {
                    let at = match member {
                        Member::Exchange(id) => self.exchanges.iter().position(|it| *it == id),
                        Member::Tunnel(id) => self.tunnels.iter().position(|it| it.name == id),
                    };
                    ClassId(at.expect("it was named") as u32 % classes)
                });
            }
            _ => self.apply_to_tunnel(operation),
        }
        self.obey();
    }

    fn apply_to_tunnel(&mut self, operation: Operation) {
        let now = self.now;
        match operation {
            Operation::Open { class, user } => {
                self.twin = None;
                let Ok(name) = self.proxy.open(now, ClassId(class), UserId(user)) else { return };
                if self.tunnels.len() >= MOST_NAMES {
                    self.tunnels.retain(|tunnel| !tunnel.closed);
                }
                self.tunnels.push(Carried { name, held: None, closed: false });
            }
            Operation::Send(which, piece) => self.tell_tunnel(which, |proxy, tunnel| {
                let Ok(verdict) = proxy.send(now, tunnel.name, piece) else { return };
                let is_held = verdict == Verdict::Hold && !tunnel.closed;
                assert!(
                    is_held || tunnel.closed || tunnel.held.is_none(),
                    "it overtakes what is held"
                );
                if is_held {
                    tunnel.held.get_or_insert(now);
                }
            }),
            Operation::TunnelCame(which, unread) => {
                self.tell_tunnel(which, |proxy, tunnel| {
                    proxy.tunnel_came(now, tunnel.name, unread);
                });
            }
            Operation::TunnelRead(which, size) => self.tell_tunnel(which, |proxy, tunnel| {
                let reading = proxy.tunnel_read(now, tunnel.name, size);
                assert!(!tunnel.closed || reading == Reading::UpTo(Bytes::ZERO));
            }),
            Operation::Exempt(which) => {
                self.tell_tunnel(which, |proxy, tunnel| proxy.exempt(tunnel.name));
            }
            Operation::Close(which) => self.tell_tunnel(which, |proxy, tunnel| {
                proxy.close(tunnel.name);
                (tunnel.held, tunnel.closed) = (None, true);
            }),
            _ => unreachable!("the others are of exchanges"),
        }
    }

    fn hear(&mut self, class: u32, user: u64) {
        let heard = self.proxy.hear(ClassId(class), UserId(user)).ok();
        self.twin.iter_mut().for_each(|twin| twin.hear(heard, class, user));
        let Some(exchange) = heard else { return };
        assert!(!self.exchanges.contains(&exchange), "{exchange:?} twice");
        if self.exchanges.len() >= MOST_NAMES {
            self.exchanges.retain(|exchange| self.proxy.phase(*exchange).is_some());
        }
        self.exchanges.push(exchange);
    }

    fn tell(&mut self, which: usize, what: impl FnOnce(&mut Proxy, &mut Option<Twin>, ExchangeId)) {
        if let Some(which) = which.checked_rem(self.exchanges.len()) {
            what(&mut self.proxy, &mut self.twin, self.exchanges[which]);
        }
    }

    fn tell_tunnel(&mut self, which: usize, what: impl FnOnce(&mut Proxy, &mut Carried)) {
        if let Some(which) = which.checked_rem(self.tunnels.len()) {
            what(&mut self.proxy, &mut self.tunnels[which]);
        }
    }

    /// Does all that is due until then.
    fn wait(&mut self, until: Time) {
        while let Some(at) = self.proxy.next_timeout(self.now).filter(|at| *at <= until) {
            assert!(at > self.now, "what is due is done");
            self.now = at;
            self.obey();
        }
        self.now = until;
    }

    /// Carries out actions until there are none, and looks at the books.
    fn obey(&mut self) {
        let mut count = 0;
        while let Some(action) = self.proxy.next_action(self.now) {
            if let Some(twin) = &mut self.twin {
                assert_eq!(Some(action), twin.next_action(self.now), "at {}", self.now);
            }
            self.check_action(action);
            count += 1;
            assert!(count < 10_000, "there is no end to {action:?}");
        }
        if let Some(twin) = &mut self.twin {
            assert_eq!(twin.next_action(self.now), None, "at {}", self.now);
        }
        self.check();
    }

    fn check_action(&mut self, action: Action) {
        match action {
            Action::Dial { exchange, .. } => {
                assert_eq!(self.proxy.phase(exchange), Some(Phase::Dialling));
            }
            Action::Read { exchange, .. } => {
                assert!(self.proxy.phase(exchange).is_some_and(|phase| phase != Phase::Waiting));
            }
            Action::End { exchange, .. } => assert_eq!(self.proxy.phase(exchange), None),
            Action::Pass { tunnel } => {
                let known = self.tunnels.iter_mut().find(|known| known.name == tunnel);
                let held = known.and_then(|known| known.held.take());
                assert!(held.is_some(), "nothing is held of {tunnel:?}");
            }
            Action::ReadTunnel { tunnel, .. } => assert!(self.proxy.tunnel(tunnel).is_some()),
        }
    }

    /// The books.
    fn check(&mut self) {
        let proxy = &mut self.proxy;
        let (mut waiting, mut outstanding) = (0, 0);
        for exchange in &self.exchanges {
            if let Some(twin) = &self.twin {
                let known = twin.at(*exchange).map(|at| twin.records[at].phase());
                assert_eq!(proxy.phase(*exchange), known, "at {}", self.now);
            }
            match proxy.phase(*exchange) {
                Some(Phase::Waiting) => waiting += 1,
                Some(_) => outstanding += 1,
                None => {}
            }
        }
        let mut perhaps = 0;
        for tunnel in &self.tunnels {
            let phase = proxy.tunnel(tunnel.name);
            assert_eq!(phase.is_none(), tunnel.closed);
            assert_eq!(phase == Some(TunnelPhase::Pending), tunnel.held.is_some());
            match phase {
                // Its last response may go on.
                Some(TunnelPhase::Pending) => (waiting, perhaps) = (waiting + 1, perhaps + 1),
                Some(TunnelPhase::Active | TunnelPhase::Long) => outstanding += 1,
                _ => {}
            }
            let held = tunnel.held.map(|since| self.now.since(since));
            assert!(
                held.is_none_or(|held| held < self.settings.tunnels.max_hold),
                "held for {held:?}"
            );
        }
        assert_eq!(proxy.waiting(), waiting);
        let known = outstanding..=outstanding + perhaps;
        assert!(known.contains(&proxy.outstanding()), "{known:?}, not {}", proxy.outstanding());
        assert!(proxy.held() as usize <= proxy.outstanding());
        if waiting > 0 && proxy.window().is_finite() {
            assert!(f64::from(proxy.held()) >= proxy.window(), "one waits, and a place is free");
        }
        let next = proxy.next_timeout(self.now);
        assert!(next.is_none_or(|at| at > self.now), "what is due at {next:?} is done");
    }

    /// All clients leave.
    ///
    /// # Panics
    /// When anything is left then.
    pub fn close(&mut self) {
        for which in 0..self.exchanges.len() {
            self.apply(Operation::Left(which));
        }
        for which in 0..self.tunnels.len() {
            self.apply(Operation::Close(which));
        }
        let proxy = &mut self.proxy;
        assert_eq!((proxy.held(), proxy.outstanding(), proxy.waiting()), (0, 0, 0));
        assert!(self.exchanges.iter().all(|exchange| proxy.phase(*exchange).is_none()));
    }
}
