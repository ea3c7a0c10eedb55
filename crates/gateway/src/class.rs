//! Groups of users, and who asks for what in which of them.
//!
//! A class takes a request when all that it states holds: the client's address is in its
//! `sources`, and, if it states them, the client has logged in under one of its `names`,
//! the server's port is among its `ports`, and the server's name fits its `hosts`.
//! Classes that state more than sources are asked first, in the order of the file; among
//! the others the longest prefix of the address decides, whatever their order.
//!
//! Nobody is asked for a password before a class is reached that depends on it. A client
//! that knows of no gateway cannot log in: for it, classes with names do not exist.
//!
//! `sources` cannot be left out. A class of all clients who ask for one host would
//! otherwise open the gateway to everybody.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::num::NonZeroU32;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tidegate_core::request::ClassId;
use tidegate_wire::tls::host_name;

/// A group of users with a weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its name, in logs and figures.
    pub name: String,
    /// Its share of the link, or that of each of its users.
    pub weight: NonZeroU32,
    /// The addresses of its clients.
    pub sources: Vec<IpNet>,
    /// Who of them has to have logged in; `None` asks nobody.
    pub names: Option<Names>,
    /// The ports of the servers that it is about; none for all ports.
    pub ports: Vec<u16>,
    /// The names of the servers that it is about; none for all servers.
    pub hosts: Vec<Hosts>,
    /// Whom it takes for one user.
    pub users: Users,
}

impl Class {
    /// A class that states its sources and nothing else.
    #[must_use]
    pub fn of(name: impl Into<String>, weight: NonZeroU32, sources: Vec<IpNet>) -> Class {
        Class {
            name: name.into(),
            weight,
            sources,
            names: None,
            ports: Vec::new(),
            hosts: Vec::new(),
            users: Users::Address,
        }
    }

    /// Whether it states nothing but sources.
    pub(crate) fn is_plain(&self) -> bool {
        self.names.is_none() && self.ports.is_empty() && self.hosts.is_empty()
    }

    /// The longest prefix of an address among its sources.
    fn prefix(&self, client: IpAddr) -> Option<u8> {
        let fitting = self.sources.iter().filter(|source| source.contains(&client));
        fitting.map(IpNet::prefix_len).max()
    }

    /// Whether all that it states holds, but for names.
    fn is_about(&self, ask: &Ask<'_>) -> bool {
        (self.ports.is_empty() || self.ports.contains(&ask.port))
            && (self.hosts.is_empty() || self.hosts.iter().any(|hosts| hosts.fit(ask.host)))
            && self.prefix(ask.client).is_some()
    }
}

/// Those who have a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Names {
    /// Everybody.
    All,
    /// These.
    Only(BTreeSet<String>),
}

impl Names {
    fn have(&self, name: &str) -> bool {
        match self {
            Names::All => true,
            Names::Only(names) => names.contains(name),
        }
    }

    /// As in a file.
    #[must_use]
    pub fn list(&self) -> Vec<&str> {
        match self {
            Names::All => vec!["*"],
            Names::Only(names) => names.iter().map(String::as_str).collect(),
        }
    }
}

/// Names of servers.
///
/// ```
/// use tidegate_gateway::class::Hosts;
///
/// let below: Hosts = "*.example.com".parse()?;
/// assert!(below.fit("a.b.example.com") && !below.fit("example.com"));
/// let one: Hosts = "Example.com".parse()?;
/// assert!(one.fit("example.com") && !one.fit("a.example.com"));
/// assert!("*example.com".parse::<Hosts>().is_err());
/// # Ok::<(), tidegate_gateway::class::NoHost>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// One name.
    One(String),
    /// All names that end with a dot and this.
    Below(String),
}

/// A text names no hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("neither a host nor '*.' and a domain")]
pub struct NoHost;

impl std::str::FromStr for Hosts {
    type Err = NoHost;

    fn from_str(text: &str) -> Result<Hosts, NoHost> {
        let (domain, is_below) = text.strip_prefix("*.").map_or((text, false), |it| (it, true));
        let name = host_name(domain.as_bytes()).ok_or(NoHost)?;
        Ok(if is_below { Hosts::Below(name) } else { Hosts::One(name) })
    }
}

impl std::fmt::Display for Hosts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Hosts::One(name) => f.write_str(name),
            Hosts::Below(domain) => write!(f, "*.{domain}"),
        }
    }
}

impl Hosts {
    /// Whether a host, in small letters, is one of these.
    #[must_use]
    pub fn fit(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        match self {
            Hosts::One(name) => host == name,
            Hosts::Below(domain) => {
                host.strip_suffix(domain.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
        }
    }
}

/// Whom a class takes for one user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Users {
    /// All that comes from one address.
    #[default]
    Address,
    /// All that comes under one name, from whatever devices.
    Name,
}

/// Who asks for what, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The client's address.
    pub client: IpAddr,
    /// The name that it goes by.
    pub login: Login<'a>,
    /// The server's name, in small letters, or its address.
    pub host: &'a str,
    /// The server's port.
    pub port: u16,
}

/// How far a client has said who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login<'a> {
    /// It cannot: it knows of no gateway.
    Impossible,
    /// It has not, or was not believed.
    Missing,
    /// It has proved to be this user.
    As(&'a str),
}

/// Where a request belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In this class.
    In(ClassId),
    /// That depends on who asks: the client has to log in.
    AfterLogin,
    /// Nowhere.
    Nowhere,
}

/// The classes of a gateway.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Classes<'a>(pub(crate) &'a [Class]);

impl<'a> Classes<'a> {
    fn numbered(self) -> impl Iterator<Item = (&'a Class, ClassId)> {
        self.0.iter().zip((0..).map(ClassId))
    }

    /// Where a request belongs.
    pub(crate) fn place(self, ask: &Ask<'_>) -> Place {
        let ask = &Ask { client: ask.client.to_canonical(), ..*ask };
        let special = self.numbered().filter(|(class, _)| !class.is_plain());
        for (class, id) in special.filter(|(class, _)| class.is_about(ask)) {
            match (&class.names, ask.login) {
                (None, _) => return Place::In(id),
                (Some(_), Login::Missing) => return Place::AfterLogin,
                (Some(names), Login::As(name)) if names.have(name) => return Place::In(id),
                (Some(_), Login::As(_) | Login::Impossible) => {}
            }
        }
        self.of_address(ask.client).map_or(Place::Nowhere, Place::In)
    }

    /// The class of an address that states nothing but sources.
    fn of_address(self, client: IpAddr) -> Option<ClassId> {
        let plain = self.numbered().filter(|(class, _)| class.is_plain());
        let fitting = plain.filter_map(|(class, id)| Some((class.prefix(client)?, id)));
        fitting.max_by_key(|(length, _)| *length).map(|(_, id)| id)
    }

    /// The class of a client of whom nothing but the address is known: if no class takes
    /// that alone, the first that might. `None` if the gateway does not serve it.
    pub(crate) fn of_client(self, client: IpAddr) -> Option<ClassId> {
        let client = client.to_canonical();
        let first = || self.numbered().find(|(class, _)| class.prefix(client).is_some());
        self.of_address(client).or_else(|| first().map(|(_, id)| id))
    }

    /// Whether the class of a client's tunnel to this port depends on the server's name.
    pub(crate) fn depend_on_host(self, client: IpAddr, port: u16) -> bool {
        let client = client.to_canonical();
        self.0.iter().any(|class| {
            // Whoever cannot log in is in none of the others.
            class.names.is_none()
                && !class.hosts.is_empty()
                && (class.ports.is_empty() || class.ports.contains(&port))
                && class.prefix(client).is_some()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str, source: &str) -> Class {
        let sources = vec![source.parse().expect("it is a network")];
        Class::of(name, NonZeroU32::MIN, sources)
    }

    fn ask(client: &str) -> Ask<'_> {
        let client = client.parse().expect("it is an address");
        Ask { client, login: Login::Missing, host: "192.0.2.9", port: 443 }
    }

    /// `wide` and `narrow` by address, before them one by name, port and host each.
    fn all() -> Vec<Class> {
        let hosts = vec!["*.video.example".parse().expect("it is one")];
        let names = Names::Only(["anna".to_owned()].into());
        vec![
            class("wide", "10.0.0.0/8"),
            Class { ports: vec![22], ..class("shell", "10.0.0.0/8") },
            Class { hosts, ..class("video", "10.1.0.0/16") },
            Class { names: Some(names), ..class("staff", "10.1.0.0/16") },
            class("narrow", "10.1.1.0/24"),
        ]
    }

    #[test]
    fn the_first_class_that_states_more_goes_before_the_longest_prefix() {
        let classes = all();
        let place = |ask| Classes(&classes).place(&ask);
        let inside = |number| Place::In(ClassId(number));
        assert_eq!(place(ask("10.2.0.1")), inside(0));
        assert_eq!(place(ask("192.0.2.1")), Place::Nowhere);
        assert_eq!(place(Ask { port: 22, ..ask("10.1.1.1") }), inside(1));
        let video = Ask { host: "a.video.example", ..ask("10.1.1.1") };
        assert_eq!(place(video), inside(2));
        assert_eq!(place(Ask { port: 22, ..video }), inside(1), "the order of the file");
        assert_eq!(place(Ask { host: "video.example", ..video }), Place::AfterLogin);
        assert_eq!(place(Ask { login: Login::As("anna"), ..ask("10.1.1.1") }), inside(3));
        assert_eq!(place(Ask { login: Login::As("bert"), ..ask("10.1.1.1") }), inside(4));
        assert_eq!(place(Ask { login: Login::Impossible, ..ask("::ffff:10.1.1.1") }), inside(4));
    }

    #[test]
    fn of_classes_with_sources_alone_the_order_does_not_matter() {
        let mut classes = vec![class("wide", "10.0.0.0/8"), class("narrow", "10.1.0.0/16")];
        for expected in [1, 0] {
            assert_eq!(Classes(&classes).place(&ask("10.1.0.1")), Place::In(ClassId(expected)));
            classes.reverse();
        }
    }

    #[test]
    fn whoever_might_be_in_a_class_is_served() {
        let classes = all();
        let of = |client: &str| Classes(&classes[1..4]).of_client(client.parse().expect("one"));
        assert_eq!(of("10.2.0.1"), Some(ClassId(0)));
        assert_eq!(of("192.0.2.1"), None);
        assert_eq!(Classes(&classes).of_client(ask("10.1.0.1").client), Some(ClassId(0)));
        let depends = |client: &str| Classes(&classes).depend_on_host(ask(client).client, 443);
        assert!(depends("10.1.0.1") && !depends("10.2.0.1"));
    }

    #[test]
    fn a_host_is_a_name_and_not_part_of_another() {
        let fit = |hosts: &str, host: &str| hosts.parse::<Hosts>().map(|hosts| hosts.fit(host));
        assert_eq!(fit("*.a.example", "b.a.example."), Ok(true));
        assert_eq!(fit("*.a.example", "ba.example"), Ok(false));
        assert_eq!(fit("*.a.example", ".a.example"), Ok(true));
        assert_eq!(fit("A.example.", "a.example"), Ok(true));
        for wrong in ["", ".", "*", "*.", "a..b", "a.*", "http://a", "a:80", "ä.example", "a b"] {
            assert_eq!(wrong.parse::<Hosts>(), Err(NoHost), "{wrong}");
        }
        assert_eq!("x".repeat(254).parse::<Hosts>(), Err(NoHost));
    }
}
