//! What a gateway is set to.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;

use ipnet::IpNet;
use serde::Serialize;
use tidegate_core::request::catalogue::Entry;
use tidegate_core::request::{self, ClassId, ClassOrder, TunnelConfig, UserId};
use tidegate_core::{Bytes, Rate, Span};

use crate::class::{Ask, Class, Classes, Place, Users};
use crate::intercept::Intercept;
use crate::passwords::Passwords;
use crate::token::Token;

/// The settings of a gateway. [`file`](crate::file) reads them from a file.
#[derive(Clone, Debug)]
pub struct Config {
    /// The addresses at which clients find it.
    pub listen: Vec<SocketAddr>,
    /// The connections that it takes without their clients' knowledge.
    pub intercept: Option<Intercept>,
    /// The address at which it says what it does.
    pub admin: Option<SocketAddr>,
    /// What whoever asks there has to know; without it, only this machine may.
    pub admin_token: Option<Token>,
    /// The rate of the access link towards the users.
    pub rate: Rate,
    /// The network interface that the access link ends at. Its counter tells the
    /// scheduler what the link carries besides what passes the gateway.
    pub interface: Option<String>,
    /// The request scheduler.
    pub scheduler: &'static Entry,
    /// And what it is set to.
    pub settings: request::Config,
    /// The classes of clients, in the order of the scheduler's weights.
    pub classes: Vec<Class>,
    /// Who may log in.
    pub passwords: Arc<Passwords>,
    /// Targets that are permitted though they are on this machine or on a link of it.
    pub local_targets: Vec<IpNet>,
    /// How much there may be of something.
    pub limits: Limits,
    /// How long something may take.
    pub timeouts: Timeouts,
    /// When a tunnel asks, and when it has its answer.
    pub tunnels: TunnelConfig,
}

/// How much there may be of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The size of a head.
    pub head: Bytes,
    /// Connections of clients.
    pub connections: u32,
    /// Connections of one user.
    pub connections_per_user: u32,
    /// Connections to one server that are kept for later requests.
    pub kept: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head: Bytes(32_768),
            connections: 10_000,
            // Browsers open at most some 30 to a proxy; a household behind one address has
            // several.
            connections_per_user: 500,
            kept: 32,
        }
    }
}

/// How long something may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// The head of a request, from its first byte.
    pub head: Span,
    /// Between two requests on a connection of a client.
    pub idle: Span,
    /// A client that takes nothing of its response, or sends nothing of its request.
    pub client: Span,
    /// A connection to a server, from the question for its address.
    pub connect: Span,
    /// A server of whose response nothing comes, though it may.
    pub server: Span,
    /// A connection to a server without a response.
    pub kept: Span,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            head: Span::seconds(10),
            idle: Span::seconds(75),
            client: Span::seconds(60),
            connect: Span::seconds(10),
            server: Span::seconds(60),
            kept: Span::seconds(60),
        }
    }
}

/// A key that has another value from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Its name, with those of the tables around it.
    pub key: String,
    /// The value that it had.
    pub before: String,
    /// The value that it has.
    pub after: String,
}

/// A key that a running gateway cannot give another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} cannot change while the gateway runs")]
pub struct Fixed(pub &'static str);

/// The settings that hold now.
#[derive(Debug)]
pub(crate) struct Current(RefCell<Rc<Config>>);

impl Current {
    pub(crate) fn new(config: Config) -> Current {
        Current(RefCell::new(Rc::new(config)))
    }

    pub(crate) fn get(&self) -> Rc<Config> {
        self.0.borrow().clone()
    }

    /// All of `config` holds from here on, or, if it differs where it may not, nothing.
    pub(crate) fn change(&self, config: Config) -> Result<Vec<Change>, Fixed> {
        let before = self.get();
        match before.fixed_difference(&config) {
            Some(key) => Err(Fixed(key)),
            None => {
                let changes = before.changes(&config);
                self.0.replace(Rc::new(config));
                Ok(changes)
            }
        }
    }
}

impl Config {
    /// The first key that differs in `other` and that sockets or the scheduler have been
    /// built with.
    fn fixed_difference(&self, other: &Config) -> Option<&'static str> {
        let classes = |config: &Config| -> Vec<_> {
            config.classes.iter().map(|class| class.name.clone()).collect()
        };
        let scheduler = |config: &Config| (config.scheduler.name, config.settings);
        [
            ("listen", self.listen != other.listen),
            ("intercept", self.intercept != other.intercept),
            ("admin", self.admin != other.admin),
            ("link.interface", self.interface != other.interface),
            ("scheduler", scheduler(self) != scheduler(other)),
            ("the name of a class", classes(self) != classes(other)),
            ("timeouts.server", self.timeouts.server != other.timeouts.server),
            ("tunnels", self.tunnels != other.tunnels),
        ]
        .into_iter()
        .find_map(|(key, differs)| differs.then_some(key))
    }

    /// What differs in `other` of all that may.
    fn changes(&self, other: &Config) -> Vec<Change> {
        // Which they are is nobody's business.
        let passwords = (self.passwords != other.passwords).then(|| Change {
            key: "passwords".into(),
            before: "others".into(),
            after: "those of the file".into(),
        });
        let (before, after) = match (&self.admin_token, &other.admin_token) {
            (None, _) => ("none", "a token"),
            (Some(_), None) => ("a token", "none"),
            (Some(_), Some(_)) => ("a token", "another token"),
        };
        let token = (self.admin_token != other.admin_token).then(|| Change {
            key: "admin_token_file".into(),
            before: before.into(),
            after: after.into(),
        });
        self.variable()
            .into_iter()
            .zip(other.variable())
            .filter(|((_, before), (_, after))| before != after)
            .map(|((key, before), (_, after))| Change { key, before, after })
            .chain(passwords)
            .chain(token)
            .collect()
    }

    /// All that may change while the gateway runs, in words. The names of classes may not.
    fn variable(&self) -> Vec<(String, String)> {
        fn list<T: ToString>(items: &[T]) -> String {
            let items: Vec<_> = items.iter().map(ToString::to_string).collect();
            if items.is_empty() { "none".into() } else { items.join(", ") }
        }

        let mut all = vec![("link.rate".to_owned(), self.rate.to_string())];
        for class in &self.classes {
            let key = |key| format!("class.{}.{key}", class.name);
            all.push((key("weight"), class.weight.to_string()));
            all.push((key("sources"), list(&class.sources)));
            let names = class.names.as_ref().map_or_else(Vec::new, |names| names.list());
            all.push((key("names"), list(&names)));
            all.push((key("ports"), list(&class.ports)));
            all.push((key("hosts"), list(&class.hosts)));
            let users = if class.users == Users::Name { "name" } else { "address" };
            all.push((key("users"), users.into()));
        }
        all.push(("local_targets".into(), list(&self.local_targets)));
        let Limits { head, connections, connections_per_user, kept } = self.limits;
        let Timeouts { head: patience, idle, client, connect, server: _, kept: keep } =
            self.timeouts;
        for (key, value) in [
            ("limits.head", head.to_string()),
            ("limits.connections", connections.to_string()),
            ("limits.connections_per_user", connections_per_user.to_string()),
            ("limits.kept", kept.to_string()),
            ("timeouts.head", patience.to_string()),
            ("timeouts.idle", idle.to_string()),
            ("timeouts.client", client.to_string()),
            ("timeouts.connect", connect.to_string()),
            ("timeouts.kept", keep.to_string()),
        ] {
            all.push((key.into(), value));
        }
        all
    }

    /// The weights of the classes, in their order.
    pub(crate) fn weights(&self) -> Vec<NonZeroU32> {
        self.classes.iter().map(|class| class.weight).collect()
    }

    /// What each class gets of the link, in bits per second, while so many users of each
    /// want as much as they can get; `None` if the scheduler knows no shares.
    #[must_use]
    pub fn shares(&self, users: &[u32]) -> Option<Vec<f64>> {
        let per_user = match self.settings.class_order {
            ClassOrder::LeastService { per_user } => per_user,
            ClassOrder::Turns { .. } => false,
            ClassOrder::Arrival => return None,
        };
        let parts = self.classes.iter().zip(users).map(|(class, users)| {
            let times = if per_user { *users } else { (*users).min(1) };
            f64::from(class.weight.get()) * f64::from(times)
        });
        let parts: Vec<_> = parts.collect();
        let all = parts.iter().sum::<f64>().max(1.0);
        Some(parts.into_iter().map(|part| self.rate.0 as f64 * part / all).collect())
    }

    /// The class of a client: the one with the longest prefix of its address.
    /// Where a request belongs, as [`class`](crate::class) says.
    #[must_use]
    pub fn place(&self, ask: &Ask<'_>) -> Place {
        Classes(&self.classes).place(ask)
    }

    /// The class of a client of whom nothing but the address is known; `None` if the
    /// gateway does not serve it.
    #[must_use]
    pub fn class_of(&self, client: IpAddr) -> Option<ClassId> {
        Classes(&self.classes).of_client(client)
    }

    /// Whether the class of a tunnel from this address to this port depends on the name of
    /// the server.
    pub(crate) fn depends_on_host(&self, client: IpAddr, port: u16) -> bool {
        Classes(&self.classes).depend_on_host(client, port)
    }
}

/// The user at an address: the address itself, or of IPv6 its first 64 bits, since a
/// device has several addresses behind them, and new ones every day (RFC 8981).
///
/// ```
/// use tidegate_gateway::user_of;
///
/// let user = |address: &str| user_of(address.parse().expect("it is an address"));
/// assert_ne!(user("192.0.2.1"), user("192.0.2.2"));
/// assert_eq!(user("::ffff:192.0.2.1"), user("192.0.2.1"));
/// assert_eq!(user("2001:db8::1"), user("2001:db8::2"));
/// assert_ne!(user("2001:db8::1"), user("2001:db8:0:1::1"));
/// ```
#[must_use]
pub fn user_of(client: IpAddr) -> UserId {
    match client.to_canonical() {
        IpAddr::V4(address) => UserId(address.to_bits().into()),
        // No network has a prefix that begins with 32 zeros (RFC 4291 section 2.5).
        IpAddr::V6(address) => UserId((address.to_bits() >> 64) as u64),
    }
}
