//! The network and the demand.

use std::num::NonZeroU32;
use std::sync::Arc;

use tidegate_core::discipline::fifo;
use tidegate_core::request::catalogue::{self, Entry};
use tidegate_core::request::{ClassId, UserId};
use tidegate_core::setting::{SettingError, Settings};
use tidegate_core::{Buffer, Bytes, Rate, Span, Time};

use super::demand::RequestLog;
use super::failures::{Presence, ServerFailures};
use crate::carrier::Use;
use crate::pages::Pages;
use crate::scenario::{DisciplineChoice, FrameOrder, Protocol, SizeLaw, WirelessCell};
use crate::tcp::TcpConfig;

/// An access link with a gateway, its clients and its servers.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Rate of the access link, in either direction unless the uplink has its own.
    pub rate: Rate,
    /// One-way delay of the access link.
    pub delay: Span,
    /// The discipline of the queue at the provider's end.
    pub provider: DisciplineChoice,
    /// The buffer of that queue.
    pub buffer: Buffer,
    /// The uplink of the access link.
    pub uplink: Uplink,
    /// Rate of each client's link, in either direction, unless its class has its own.
    pub client_rate: Rate,
    /// One-way delay of a client's link.
    pub client_delay: Span,
    /// The wireless cell whose stations the clients are, instead of links of their own.
    pub wifi: Option<WirelessCell>,
    /// Classes of clients, the first with the number 0.
    pub classes: Vec<Class>,
    /// Servers; an object comes from any of them with equal probability.
    pub servers: Vec<ServerGroup>,
    /// Sizes of objects.
    pub sizes: SizeLaw,
    /// Mean number of objects on a page, fetched at once: exponential, rounded,
    /// at least one.
    pub objects: f64,
    /// The size of a request.
    pub request: Bytes,
    /// Traffic of the downlink that answers no request.
    pub passing: Vec<Cbr>,
    /// TCP of all hosts.
    pub tcp: Arc<TcpConfig>,
    /// How clients use connections, to the gateway or without one to servers.
    pub http: Http,
    /// The connections to servers that the gateway keeps.
    pub kept: Kept,
    /// Receive buffer of the gateway's connections to servers where it holds responses back:
    /// the most that an unread one can still bring at first. Other gateways leave it to TCP.
    pub server_window: Bytes,
    /// How servers fail those whose class does not say.
    pub failures: ServerFailures,
    /// The gateway, or without one the client, gives up a response after this
    /// time in which nothing has arrived and nothing was held back.
    pub patience: Option<Span>,
    /// Until when it runs.
    pub duration: Span,
    /// Requests that begin before this are not measured.
    pub warm_up: Span,
    /// Time between two samples.
    pub sample_every: Span,
}

/// How clients use connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http {
    /// How many responses a connection carries, and how many connections a user has to a
    /// server. With [`Protocol::Http10`], a gateway too has one to a server for each
    /// response. No connection is as it was recorded: [`Protocol::Recorded`] is HTTP/1.1.
    pub protocol: Protocol,
    /// The order of the frames of several responses.
    pub order: FrameOrder,
    /// Round trips of TLS before the first request of a connection.
    pub handshakes: usize,
    /// How long a connection without a request stays open.
    pub keep_alive: Span,
}

impl Http {
    /// A connection for each response (`MSF section 5.1`).
    pub const ONCE: Http = Http {
        protocol: Protocol::Http10,
        order: FrameOrder::RoundRobin,
        handshakes: 0,
        keep_alive: Span::ZERO,
    };

    /// What browsers do where a gateway sees their requests, which is without TLS: six
    /// connections to a server that stay open, each with one response at a time. The
    /// time is the `keepalive_timeout` of nginx.
    pub const TODAY: Http =
        Http { protocol: Protocol::Http11, keep_alive: Span::seconds(75), ..Http::ONCE };

    /// What a connection carries.
    pub(crate) fn usage(&self) -> Use {
        match self.protocol {
            Protocol::Http10 => Use::Once,
            Protocol::Http11 | Protocol::Recorded => Use::InTurn,
            Protocol::Http2 => Use::Multiplexed(self.order),
        }
    }
}

/// The connections to servers that a gateway keeps when they have no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// For how long.
    pub idle: Span,
    /// How many to each server.
    pub most: u32,
}

impl Kept {
    /// As the reverse proxy nginx does: `keepalive_timeout` and `keepalive` of an
    /// upstream.
    pub const TODAY: Kept = Kept { idle: Span::seconds(60), most: 32 };
}

/// A class of clients, each of them a user.
#[derive(Clone, Debug)]
pub struct Class {
    /// Its name in tables and files.
    pub name: String,
    /// Its weight.
    pub weight: NonZeroU32,
    /// The class to which its clients belong wherever classes count, one before all that are
    /// part of another and with the same weight: those here only behave in another way.
    pub part_of: Option<usize>,
    /// The number of its clients.
    pub clients: u32,
    /// The times at which each of them asks.
    pub demand: Demand,
    /// The pages that they ask for; the requests of a log are pages of one
    /// object, with the log's sizes.
    pub pages: Pages,
    /// Sizes of their objects, if not those of the setup.
    pub sizes: Option<SizeLaw>,
    /// Size of their requests where no recording has it, if not that of the setup: with
    /// large ones they upload.
    pub request: Option<Bytes>,
    /// What a gateway sees of them.
    pub through: Through,
    /// How servers fail them, if not as the setup says.
    pub failures: Option<ServerFailures>,
    /// Rate of each client's link, in either direction, if not that of the setup.
    pub client_rate: Option<Rate>,
    /// Whether they come and go; otherwise all are always present.
    pub presence: Option<Presence>,
    /// Times in which they begin no page.
    pub silent: Vec<(Time, Time)>,
}

/// What a gateway sees of what clients ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Through {
    /// Their requests.
    #[default]
    Requests,
    /// Tunnels with TLS from end to end, in which it sees bytes.
    Tunnels,
    /// That each has a WebSocket to a server (RFC 6455), over which requests and responses
    /// are messages.
    WebSocket,
}

impl Through {
    /// Whether a gateway does not see where a response begins and ends.
    pub(crate) fn is_hidden(self) -> bool {
        self != Through::Requests
    }
}

/// When a client begins a page.
#[derive(Clone, Debug)]
pub enum Demand {
    /// This many loops, each with one page at a time and a pause before the next.
    Closed {
        /// The number of loops of one client.
        loops: u32,
        /// Mean of the exponential pause after a page.
        pause: Span,
    },
    /// Pages at random times, whether or not earlier ones are complete.
    Open {
        /// Mean time between two pages of one client.
        every: Span,
    },
    /// The requests of a log at their times, whether or not earlier ones are
    /// complete; its hosts are distributed among the clients one by one.
    Log(Arc<RequestLog>),
}

/// Servers behind the provider.
#[derive(Clone, Debug)]
pub struct ServerGroup {
    /// How many.
    pub count: u32,
    /// One way from the provider, uniform between these.
    pub delay: (Span, Span),
    /// Rate of the link to it, uniform between these.
    pub rate: (Rate, Rate),
}

/// The uplink of an access link, whose queue is at the gateway.
#[derive(Clone, Debug, Default)]
pub struct Uplink {
    /// Its rate; `None` for that of the downlink.
    pub rate: Option<Rate>,
    /// The discipline of its queue, and the buffer; `None` for FIFO without a limit.
    pub queue: Option<(DisciplineChoice, Buffer)>,
    /// The number of TCP transfers without an end that the users' side sends
    /// (`MSF section 6`).
    pub uploads: u32,
}

/// Datagrams at a constant rate, on and off, that nobody behind the gateway
/// requested: they pass the provider's queue and the downlink, and end there
/// (`MSF section 6`).
#[derive(Clone, Copy, Debug)]
pub struct Cbr {
    /// Rate while it is on.
    pub rate: Rate,
    /// Size of a datagram on the wire.
    pub packet: Bytes,
    /// The duration of each pause; the first one is at the start.
    pub off: Span,
    /// The duration of each sending period.
    pub on: Span,
    /// The class whose user receives them, and the client's number in it: there they
    /// count as service. `None` for traffic of no class.
    pub whose: Option<(usize, u32)>,
}

/// A request scheduler with its settings.
#[derive(Clone, Debug)]
pub struct SchedulerChoice {
    /// Its name in results.
    pub label: String,
    /// The scheduler.
    pub entry: &'static Entry,
    /// Its settings.
    pub settings: Settings,
}

impl SchedulerChoice {
    /// The scheduler called `name` with these settings; others have their
    /// default. `None` if there is none of this name.
    ///
    /// # Errors
    /// A setting that it does not take.
    pub fn new(
        label: &str,
        name: &str,
        given: &[(&str, &str)],
    ) -> Result<Option<SchedulerChoice>, SettingError> {
        let Some(entry) = catalogue::find(name) else { return Ok(None) };
        let settings = entry.settings(given)?;
        Ok(Some(SchedulerChoice { label: label.into(), entry, settings }))
    }
}

impl Setup {
    /// How clients of a class use a connection.
    pub(crate) fn usage(&self, class: usize) -> Use {
        match self.classes[class].through {
            Through::WebSocket => Use::Multiplexed(FrameOrder::RoundRobin),
            Through::Requests | Through::Tunnels => self.http.usage(),
        }
    }

    /// The round trips of TLS before the first request of a class's connection.
    pub(crate) fn handshakes(&self, class: usize) -> usize {
        match self.classes[class].through {
            Through::Tunnels => self.http.handshakes.max(1),
            Through::Requests | Through::WebSocket => self.http.handshakes,
        }
    }

    /// The class of a client, by its number among those of all classes.
    pub(crate) fn class_of(&self, client: usize) -> usize {
        let mut before = 0;
        let ends = self.classes.iter().map(|class| {
            before += class.clients as usize;
            before
        });
        ends.take_while(|end| *end <= client).count()
    }

    /// The class that a class counts as: its own, or the one that it is part of.
    pub(crate) fn whole(&self, class: usize) -> usize {
        self.classes[class].part_of.unwrap_or(class)
    }

    /// Whom those who share by class and user take a client of a class for.
    pub(crate) fn user(&self, class: usize, client: u32) -> (ClassId, UserId) {
        let whole = self.whole(class);
        let before = (0..class).filter(|before| self.whole(*before) == whole);
        let before: u32 = before.map(|before| self.classes[before].clients).sum();
        (ClassId(whole as u32), UserId(u64::from(before + client)))
    }

    /// The weights of all classes that are not part of another.
    pub(crate) fn weights(&self) -> impl Iterator<Item = NonZeroU32> + Clone {
        let wholes = self.classes.iter().filter(|class| class.part_of.is_none());
        wholes.map(|class| class.weight)
    }

    /// The share of a rate that the weights give each class that is not part of another, if
    /// all are backlogged.
    #[must_use]
    pub fn shares_of(&self, rate: Rate) -> Vec<Rate> {
        let weights = self.weights().map(|weight| u64::from(weight.get()));
        let sum: u64 = weights.clone().sum();
        weights.map(|weight| Rate(rate.0 * weight / sum)).collect()
    }

    /// The simulations of `MSF section 5.1`: a link of 2 Mbit/s, of which 40%
    /// are the 0.8 Mbit/s of section 6; classes 4:2:1 of four clients with
    /// pauses of 5 s; SACK without delayed acknowledgements, windows of 200
    /// packets of 1 000 bytes; 1.5 bandwidth-delay products of queue.
    ///
    /// Ours are: ranges of the servers' links (figure 7 names none), the access
    /// link's own delay, and ten loops of each client with one object to a page. The
    /// latter makes all classes backlogged and agrees with the paper's latencies by
    /// Little's law: at 9 responses a second, 8.83 s are 80 outstanding requests, 6
    /// to 7 of each client.
    #[must_use]
    pub fn paper() -> Setup {
        let class = |weight: u32| Class {
            name: format!("weight {weight}"),
            weight: NonZeroU32::new(weight).expect("no weight is zero"),
            part_of: None,
            clients: 4,
            demand: Demand::Closed { loops: 10, pause: Span::seconds(5) },
            pages: Pages::Drawn,
            sizes: None,
            request: None,
            through: Through::Requests,
            failures: None,
            client_rate: None,
            presence: None,
            silent: Vec::new(),
        };
        let megabits = |tenths: u64| Rate(tenths * 100_000);
        Setup {
            rate: megabits(20),
            delay: Span::millis(1),
            // Of a mean round trip of 164 ms: 41 kB, times 1.5.
            provider: DisciplineChoice::with_defaults(&fifo::ENTRY),
            buffer: Buffer::packets(61),
            uplink: Uplink::default(),
            client_rate: megabits(100),
            client_delay: Span::millis(2),
            wifi: None,
            classes: [4, 2, 1].map(class).to_vec(),
            servers: vec![
                ServerGroup {
                    count: 6,
                    delay: (Span::millis(5), Span::millis(30)),
                    rate: (megabits(20), megabits(100)),
                },
                ServerGroup {
                    count: 6,
                    delay: (Span::millis(80), Span::millis(200)),
                    rate: (megabits(5), megabits(50)),
                },
            ],
            sizes: SizeLaw::Lognormal { log_mean: 9.357, log_deviation: 1.318 },
            objects: 1.0,
            request: Bytes(300),
            passing: Vec::new(),
            tcp: Arc::new(TcpConfig {
                mss: 960,
                sack: true,
                limited_transmit: true,
                delayed_ack: None,
                receive_window: Bytes(200 * 960),
                ..TcpConfig::papers()
            }),
            http: Http::ONCE,
            kept: Kept::TODAY,
            server_window: Bytes(200 * 960),
            failures: ServerFailures::NONE,
            patience: None,
            duration: Span::seconds(800),
            warm_up: Span::seconds(100),
            sample_every: Span::seconds(1),
        }
    }

    /// The setup with today's TCP: CUBIC, SACK, RACK-TLP, an initial window of
    /// ten segments of 1 448 bytes; the same queue in bytes, connections that stay open,
    /// and a gateway that lets responses that it holds back bring 24 kB at most.
    #[must_use]
    pub fn today() -> Setup {
        Setup {
            buffer: Buffer::bytes(Bytes(61_000)),
            tcp: Arc::new(TcpConfig::today()),
            http: Http::TODAY,
            server_window: Bytes(24_000),
            ..Setup::paper()
        }
    }
}
