//! What a gateway is set to.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use ipnet::IpNet;
use serde::Serialize;
use tidegate_core::request::catalogue::Entry;
use tidegate_core::request::{
    self, ClassId, ClassOrder, ProxyConfig, Scheduler, TunnelConfig, UserId,
};
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
    /// Whether each request ends in a line of the log. Without it, nothing is kept of who has
    /// asked for what.
    pub log_requests: bool,
    /// How much there may be of something.
    pub limits: Limits,
    /// How long something may take.
    pub timeouts: Timeouts,
    /// When a tunnel asks, and when it has its answer.
    pub tunnels: TunnelConfig,
    /// The other files that were read for it: those of the token and of passwords.
    pub files: Vec<PathBuf>,
}

/// What the receive buffer of a connection holds at least when responses are held back: a
/// few segments in one round trip, as in the simulations of the scheduler.
pub(crate) const LEAST_BUFFER: Bytes = Bytes(24_000);

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
        self.permits(&config)?;
        let changes = self.get().changes(&config);
        self.0.replace(Rc::new(config));
        Ok(changes)
    }

    /// Whether it may.
    pub(crate) fn permits(&self, config: &Config) -> Result<(), Fixed> {
        self.get().fixed_difference(config).map_or(Ok(()), |key| Err(Fixed(key)))
    }
}

impl Config {
    /// The first key that differs in `other` and that sockets have been opened with.
    fn fixed_difference(&self, other: &Config) -> Option<&'static str> {
        [
            ("listen", self.listen != other.listen),
            ("intercept", self.intercept != other.intercept),
            ("admin", self.admin != other.admin),
            ("link.interface", self.interface != other.interface),
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
        let mut all = differences(self.link(), other.link());
        let is_other = self.scheduler.name == other.scheduler.name;
        if is_other && self.settings != other.settings {
            let name = self.scheduler.name;
            let (key, after) = ("scheduler".into(), format!("{name} with other settings"));
            all.push(Change { key, before: name.into(), after });
        }
        for class in &self.classes {
            match other.classes.iter().find(|it| it.name == class.name) {
                Some(after) => all.extend(differences(of_class(class), of_class(after))),
                None => all.push(Change {
                    key: format!("class.{}", class.name),
                    before: in_words(class),
                    after: "none".into(),
                }),
            }
        }
        let is_new = |class: &&Class| self.classes.iter().all(|it| it.name != class.name);
        all.extend(other.classes.iter().filter(is_new).map(|class| Change {
            key: format!("class.{}", class.name),
            before: "none".into(),
            after: in_words(class),
        }));
        all.extend(self.other_order(other));
        all.extend(
            differences(self.rest(), other.rest()).into_iter().chain(passwords).chain(token),
        );
        all
    }

    /// Whether the classes of both stand in another order, which may decide on a request.
    fn other_order(&self, other: &Config) -> Option<Change> {
        fn order(of: &Config, both: &Config) -> String {
            let is_in_both = |name: &&str| both.classes.iter().any(|class| class.name == *name);
            let names = of.classes.iter().map(|class| class.name.as_str()).filter(is_in_both);
            names.collect::<Vec<_>>().join(", ")
        }

        let (before, after) = (order(self, other), order(other, self));
        (before != after).then(|| Change { key: "class".into(), before, after })
    }

    fn link(&self) -> Vec<(String, String)> {
        vec![
            ("link.rate".into(), self.rate.to_string()),
            ("scheduler".into(), self.scheduler.name.into()),
        ]
    }

    /// What is neither of the link nor of a class.
    fn rest(&self) -> Vec<(String, String)> {
        let mut all = vec![
            ("local_targets".into(), list(&self.local_targets)),
            ("log_requests".into(), self.log_requests.to_string()),
        ];
        let Limits { head, connections, connections_per_user, kept } = self.limits;
        let Timeouts { head: patience, idle, client, connect, server, kept: keep } = self.timeouts;
        for (key, value) in [
            ("limits.head", head.to_string()),
            ("limits.connections", connections.to_string()),
            ("limits.connections_per_user", connections_per_user.to_string()),
            ("limits.kept", kept.to_string()),
            ("timeouts.head", patience.to_string()),
            ("timeouts.idle", idle.to_string()),
            ("timeouts.client", client.to_string()),
            ("timeouts.connect", connect.to_string()),
            ("timeouts.server", server.to_string()),
            ("timeouts.kept", keep.to_string()),
            ("tunnels.quiet", self.tunnels.quiet.to_string()),
            ("tunnels.silence", self.tunnels.silence.to_string()),
            ("tunnels.max_hold", self.tunnels.max_hold.to_string()),
        ] {
            all.push((key.into(), value));
        }
        all
    }

    /// Whether a scheduler that was built for `other` can go on with other rates and weights.
    pub(crate) fn schedules_as(&self, other: &Config) -> bool {
        let names = |config: &Config| -> Vec<_> {
            config.classes.iter().map(|class| class.name.clone()).collect()
        };
        self.settings == other.settings
            && self.of_proxy() == other.of_proxy()
            && names(self) == names(other)
    }

    /// The position that each class has in `earlier`, where it has one.
    pub(crate) fn positions_in(&self, earlier: &Config) -> Vec<Option<usize>> {
        let position = |class: &Class| earlier.classes.iter().position(|it| it.name == class.name);
        self.classes.iter().map(position).collect()
    }

    /// The scheduler that it asks for; the hash of its users depends on `seed`.
    pub(crate) fn scheduler(&self, seed: u64) -> Scheduler {
        Scheduler::new(self.settings, self.rate, &self.weights(), seed)
    }

    /// What else the lives of requests and tunnels depend on.
    pub(crate) fn of_proxy(&self) -> ProxyConfig {
        ProxyConfig {
            patience: Some(self.timeouts.server),
            pools: Vec::new(),
            receive_buffer: LEAST_BUFFER,
            tunnels: self.tunnels,
        }
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

/// What differs between two lists of the same keys.
fn differences(before: Vec<(String, String)>, after: Vec<(String, String)>) -> Vec<Change> {
    let both = before.into_iter().zip(after);
    both.filter(|((_, before), (_, after))| before != after)
        .map(|((key, before), (_, after))| Change { key, before, after })
        .collect()
}

fn list<T: ToString>(items: &[T]) -> String {
    let items: Vec<_> = items.iter().map(ToString::to_string).collect();
    if items.is_empty() { "none".into() } else { items.join(", ") }
}

fn of_class(class: &Class) -> Vec<(String, String)> {
    let names = class.names.as_ref().map_or_else(Vec::new, |names| names.list());
    let users = if class.users == Users::Name { "name" } else { "address" };
    let all = [
        ("weight", class.weight.to_string()),
        ("sources", list(&class.sources)),
        ("names", list(&names)),
        ("ports", list(&class.ports)),
        ("hosts", list(&class.hosts)),
        ("users", users.into()),
    ];
    all.map(|(key, value)| (format!("class.{}.{key}", class.name), value)).into()
}

fn in_words(class: &Class) -> String {
    format!("weight {}, sources {}", class.weight, list(&class.sources))
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
