//! The gateway as a whole: its sockets, and what all connections share.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use tidegate_core::request::{ClassId, Proxy, UserId};
use tidegate_core::{Bytes, Span};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;
use tokio::time::{Instant, MissedTickBehavior};

use crate::admin;
use crate::books::{Books, Counts, Stage};
use crate::client::{self, Client};
use crate::config::{Change, Config, Current, Fixed};
use crate::connections::{Connection, Connections};
use crate::counter::Counter;
use crate::gate::Gate;
use crate::intercept::Intercept;
use crate::local::PAUSE;
use crate::log::{REQUESTS, Record};
use crate::logins::Logins;
use crate::message::Fault;
use crate::overview::{LOOK_EVERY, Recent};
use crate::paths::Paths;
use crate::pipe::Pipes;
use crate::quic::{self, Flows};
use crate::servers::Servers;
use crate::status::Status;

/// How often it is said that the machine refuses connections.
pub(crate) const SAY_EVERY: Duration = Duration::from_secs(60);

/// How many may wait for the settings to be read again.
const RELOADS: usize = 8;

/// A gateway that listens.
#[derive(Debug)]
pub struct Gateway {
    house: Rc<House>,
    listeners: Vec<TcpListener>,
    intercepted: Option<TcpListener>,
    quic: Option<UdpSocket>,
    admin: Option<TcpListener>,
    counter: Option<Counter>,
    reloads: Option<mpsc::Receiver<ReloadWanted>>,
}

/// Changes the settings of a gateway that serves.
#[derive(Clone, Debug)]
pub struct Control(Rc<House>);

impl Control {
    /// Whether these settings may hold without a start.
    ///
    /// # Errors
    /// They differ in something that cannot change.
    pub fn permits(&self, config: &Config) -> Result<(), Fixed> {
        self.0.config.permits(config)
    }

    /// All of `config` holds for what comes from now on; returns what differs. Requests in
    /// line, responses, tunnels and counts stay with their classes, which are known by their
    /// names. What belongs to a class that there is no more goes on in the one that takes its
    /// client's address, or else ends. With other classes or another scheduler, what users
    /// have received until then is forgotten: all begin equal.
    ///
    /// # Errors
    /// It differs in something that cannot change: then nothing of it holds.
    pub fn change(&self, config: Config) -> Result<Vec<Change>, Fixed> {
        let earlier = self.0.config.get();
        let mut changes = self.0.config.change(config)?;
        let config = self.0.config.get();
        if config.schedules_as(&earlier) {
            self.0.gate.change(config.rate, &config.weights());
        } else {
            changes.extend(self.0.rebuild(&earlier, &config));
        }
        // They may lead where nobody may go any more.
        self.0.servers.close_all();
        Ok(changes)
    }

    /// What the gateway has come to.
    #[must_use]
    pub fn status(&self) -> Status {
        self.0.status()
    }

    /// How often the scheduler was told what the link has carried: it grows for as long as
    /// the gateway works, ten times a second.
    #[must_use]
    pub fn reports(&self) -> u64 {
        self.0.gate.reports()
    }

    /// This address has received so much that the gateway had nothing to do with: it counts
    /// for its class and user.
    pub fn received_besides(&self, client: IpAddr, size: Bytes) {
        let house = &self.0;
        if let Some(class) = house.config.get().class_of(client) {
            house.gate.received_unasked(Some(class), crate::user_of(client), size);
            house.books.count(class, |counts| counts.besides += size);
        }
    }
}

/// What differs after the settings were read again, or why they stay.
pub type Reloaded = Result<Vec<Change>, String>;

/// Somebody at the admin port who wants the settings to be read again, and waits for the
/// outcome.
pub type ReloadWanted = oneshot::Sender<Reloaded>;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct House {
    pub(crate) config: Rc<Current>,
    pub(crate) gate: Rc<Gate>,
    pub(crate) servers: Servers,
    pub(crate) books: Books,
    pub(crate) paths: Paths,
    pub(crate) logins: Logins,
    pub(crate) flows: Flows,
    pub(crate) pipes: Pipes,
    pub(crate) since: Instant,
    pub(crate) recent: RefCell<Recent>,
    /// Requests whose bodies are being sent while they come.
    pub(crate) uploads: Cell<u32>,
    pub(crate) reloads: mpsc::Sender<ReloadWanted>,
    pub(crate) connections: Rc<Connections>,
    /// What the scheduler's tables are seeded with.
    seed: u64,
}

impl Gateway {
    /// Opens the sockets of a gateway.
    ///
    /// # Errors
    /// An address cannot be listened at, or there is no such interface; the message names
    /// it.
    pub async fn bind(config: Config, seed: u64) -> io::Result<Gateway> {
        let mut listeners = Vec::new();
        for address in &config.listen {
            listeners.push(listen(*address).await?);
        }
        let intercepted = config.intercept.as_ref().map(Intercept::listen).transpose()?;
        let quic = config.intercept.as_ref().map(Intercept::listen_for_quic);
        let quic = quic.transpose()?.flatten();
        let admin = match config.admin {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        let counter = config.interface.as_deref().map(Counter::open).transpose()?;
        let (scheduler, settings) = (config.scheduler(seed), config.of_proxy());
        let ports = listeners
            .iter()
            .chain(&intercepted)
            .chain(&admin)
            .map(|listener| listener.local_addr().map(|it| it.port()));
        let own_ports = ports.collect::<Result<_, _>>()?;
        let classes = config.classes.len();
        let (ask_to_reload, reloads) = mpsc::channel(RELOADS);
        let config = Rc::new(Current::new(config));
        let house = House {
            gate: Gate::new(|now| Proxy::new(now, scheduler, settings)),
            servers: Servers::new(config.clone(), own_ports),
            books: Books::new(classes),
            paths: Paths::new(),
            logins: Logins::new(),
            flows: Flows::new(),
            pipes: Pipes::default(),
            config,
            since: Instant::now(),
            recent: RefCell::new(Recent::new()),
            uploads: Cell::new(0),
            reloads: ask_to_reload,
            connections: Rc::default(),
            seed,
        };
        let reloads = Some(reloads);
        let house = Rc::new(house);
        Ok(Gateway { house, listeners, intercepted, quic, admin, counter, reloads })
    }

    /// The addresses at which it listens, with the ports that the system chose.
    ///
    /// # Errors
    /// The system does not say.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(TcpListener::local_addr).collect()
    }

    /// Where the kernel hands intercepted connections over, if it does.
    #[must_use]
    pub fn intercept_address(&self) -> Option<SocketAddr> {
        self.intercepted.as_ref()?.local_addr().ok()
    }

    /// The address of its admin port, if it has one.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref()?.local_addr().ok()
    }

    /// A handle to change settings while the gateway serves.
    #[must_use]
    pub fn control(&self) -> Control {
        Control(self.house.clone())
    }

    /// Who wants the settings to be read again, the first time that this is asked for.
    /// Until then, and when nobody listens any more, the admin port refuses to.
    pub fn reloads(&mut self) -> Option<mpsc::Receiver<ReloadWanted>> {
        self.reloads.take()
    }

    /// Serves clients for ever. When the future is dropped, every connection ends.
    pub async fn serve(self) {
        let Gateway { house, listeners, intercepted, quic, admin, counter, reloads } = self;
        drop(reloads);
        let tasks = LocalSet::new();
        let gate = house.gate.clone();
        tasks.spawn_local(async move { gate.keep_time().await });
        let gate = house.gate.clone();
        tasks.spawn_local(async move { gate.keep_books(counter).await });
        for listener in listeners {
            tasks.spawn_local(accept(house.clone(), listener, None));
        }
        if let Some(listener) = intercepted {
            let intercept = house.config.get().intercept.clone();
            tasks.spawn_local(accept(house.clone(), listener, intercept));
        }
        if let Some(socket) = quic {
            tasks.spawn_local(quic::serve(house.clone(), socket));
        }
        if let Some(admin) = admin {
            tasks.spawn_local(admin::serve(house.clone(), admin));
        }
        let looking = house.clone();
        tasks.spawn_local(async move {
            let mut ticks = tokio::time::interval(LOOK_EVERY);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                looking.look();
            }
        });
        let idle = async {
            let mut ticks = tokio::time::interval(Duration::from_secs(1));
            loop {
                ticks.tick().await;
                house.servers.close_idle();
                house.pipes.close_spare();
            }
        };
        tasks.run_until(idle).await;
    }
}

async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|reason| {
        io::Error::new(reason.kind(), format!("cannot listen at {address}: {reason}"))
    })
}

async fn accept(house: Rc<House>, listener: TcpListener, intercept: Option<Intercept>) {
    let mut said: Option<Instant> = None;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let server = intercept.as_ref().map(|intercept| intercept.server(&stream));
                match server.transpose() {
                    Ok(server) => house.clone().take(stream, peer, server),
                    Err(error) => {
                        tracing::warn!(client = %peer.ip(), %error, "a connection is not taken");
                    }
                }
            }
            Err(error) => {
                if said.is_none_or(|said| said.elapsed() > SAY_EVERY) {
                    tracing::warn!(%error, "no connection can be accepted");
                    said = Some(Instant::now());
                }
                // What nobody needs now may be what is missing.
                house.servers.close_all();
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

impl House {
    /// Serves a new connection, unless there are too many.
    fn take(self: Rc<House>, stream: TcpStream, peer: SocketAddr, server: Option<SocketAddr>) {
        let limits = self.config.get().limits;
        let Some(connection) = self.connections.open(peer.ip(), &limits) else {
            tracing::warn!(client = %peer.ip(), "too many connections");
            return;
        };
        tokio::task::spawn_local(async move {
            client::serve(self, stream, peer, server, connection).await;
        });
    }

    /// Whether connections to this server are tunnels.
    pub(crate) fn tunnels_to(&self, server: SocketAddr) -> bool {
        self.config.get().intercept.as_ref().is_some_and(|it| it.is_tunnel(server))
    }

    /// A client belongs to no class.
    pub(crate) fn stranger(&self, peer: SocketAddr) {
        tracing::warn!(client = %peer.ip(), "the address is in no class");
    }

    /// A client is not served, or not before it has logged in.
    pub(crate) fn denied(&self, peer: SocketAddr, name: Option<&str>, status: u16, reason: &str) {
        if self.config.get().log_requests {
            tracing::info!(target: REQUESTS, client = %peer.ip(), user = name, status, reason,
                           "refused");
        }
    }

    /// A client's request cannot be understood without a doubt.
    pub(crate) fn refused(&self, client: &Client, peer: SocketAddr, fault: Fault) {
        self.count(&client.connection, |counts| counts.refused += 1);
        if self.config.get().log_requests {
            let class = self.class_of(&client.connection);
            tracing::info!(target: REQUESTS, client = %peer.ip(), class, status = fault.status(),
                           reason = %fault, "refused");
        }
    }

    /// A request is over.
    pub(crate) fn done(&self, record: &Record, reason: Option<&str>) {
        self.count(&record.connection, |counts| {
            match reason {
                None => counts.completed += 1,
                Some(_) => counts.failed += 1,
            }
            counts.waited += record.waited.unwrap_or_default();
        });
        for (stage, span) in [
            (Stage::Waited, record.waited),
            (Stage::FirstByte, record.first_byte),
            (Stage::Service, record.service),
        ] {
            if let Some(span) = span {
                self.took(&record.connection, stage, span);
            }
        }
        if !self.config.get().log_requests {
            return;
        }
        let milliseconds = |span: Span| span.0 / 1_000_000;
        tracing::info!(
            target: REQUESTS,
            client = %record.peer.ip(),
            class = self.class_of(&record.connection),
            user = record.name.as_deref(),
            method = &*record.method,
            server = %record.target,
            status = record.status,
            received_bytes = record.received.0,
            waited_ms = milliseconds(record.waited.unwrap_or_default()),
            first_byte_ms = record.first_byte.map(milliseconds),
            service_ms = record.service.map(milliseconds),
            reason,
            "request"
        );
    }

    pub(crate) fn class_name(&self, class: ClassId) -> String {
        let config = self.config.get();
        config.classes.get(class.0 as usize).map_or(String::new(), |class| class.name.clone())
    }

    fn class_of(&self, connection: &Connection) -> Option<String> {
        connection.class().map(|class| self.class_name(class))
    }

    /// Changes the counts of the class of a connection.
    pub(crate) fn count(&self, connection: &Connection, change: impl FnOnce(&mut Counts)) {
        if let Some(class) = connection.class() {
            self.books.count(class, change);
        }
    }

    /// A server has sent this much for a user.
    pub(crate) fn received(&self, connection: &Connection, user: UserId, size: Bytes) {
        if let Some(class) = connection.class() {
            self.books.received(class, user, size);
        }
    }

    /// This stage of a request took so long.
    pub(crate) fn took(&self, connection: &Connection, stage: Stage, span: Span) {
        if let Some(class) = connection.class() {
            self.books.took(class, stage, span);
        }
    }

    /// Has the scheduler that `config` asks for decide from now on. What belongs to a class
    /// that there is no more goes on in the one that takes its client's address, or else is
    /// over; returns how many connections that concerns.
    fn rebuild(&self, earlier: &Config, config: &Config) -> Vec<Change> {
        let positions = config.positions_in(earlier);
        let mut moved: BTreeMap<(usize, Option<ClassId>), u32> = BTreeMap::new();
        for connection in self.connections.each() {
            let Some(before) = connection.class() else { continue };
            let before = before.0 as usize;
            let kept = positions.iter().position(|position| *position == Some(before));
            let now = match kept {
                Some(now) => Some(ClassId(now as u32)),
                None => config.class_of(connection.client()),
            };
            connection.place(now);
            if kept.is_none() {
                *moved.entry((before, now)).or_default() += 1;
            }
        }
        self.books.rearrange(&positions);
        self.recent.borrow_mut().rearrange(&positions);
        self.gate.replace(config.scheduler(self.seed), config.of_proxy());
        let told = moved.into_iter().map(|((before, now), count)| {
            let name = now.map(|now| self.class_name(now));
            Change {
                key: format!("class.{}.connections", earlier.classes[before].name),
                before: count.to_string(),
                after: name.map_or("refused".into(), |name| format!("in class {name}")),
            }
        });
        told.collect()
    }
}
