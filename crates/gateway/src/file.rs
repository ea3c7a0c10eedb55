//! Files of live gateways: TOML in, a [`Config`] that cannot be wrong out.
//!
//! ```
//! use tidegate_gateway::file;
//!
//! let text = r#"
//!     listen = ["127.0.0.1:3128"]
//!     [link]
//!     rate = "20 Mbit/s"
//!     [[class]]
//!     name = "staff"
//!     weight = 4
//!     sources = ["192.168.1.0/24", "2001:db8:0:1::/64"]
//!     [[class]]
//!     name = "guests"
//!     sources = ["192.168.2.0/24"]
//! "#;
//! let config = file::parse("gateway.toml", text)?;
//! assert_eq!(config.classes.len(), 2);
//!
//! let error = file::parse("gateway.toml", &text.replace("20 Mbit/s", "20")).unwrap_err();
//! assert!(error.to_string().starts_with("gateway.toml:4:12: link.rate: found '20'"));
//! # Ok::<(), tidegate_files::FileError>(())
//! ```

mod class;
mod intercept;

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use ipnet::IpNet;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use tidegate_core::request::catalogue::{self, Entry};
use tidegate_core::request::{self, TunnelConfig};
use tidegate_core::setting::SettingError;
use tidegate_core::{Bytes, Rate, Span};
use tidegate_files::{
    At, Count, FileError, InText, Mistake, Quantity, Scalar, expectation, schema_of,
};

use crate::config::{Config, Limits, Timeouts};
use crate::passwords::Passwords;
use crate::token::{self, Token};
use class::{Group, classes};
use intercept::{InterceptTable, intercept};

/// Where clients find it when the file does not say: the port that Squid made usual, on
/// this machine only.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3128);
/// What schedules requests when the file does not say.
const SCHEDULER: &str = "msf";
/// With room for segments of any path, as in the simulator.
const RATES: (Rate, Rate) = (Rate(1_000), Rate(10_000_000_000));
const HEADS: (Bytes, Bytes) = (Bytes(1_024), Bytes(1_048_576));
const TIMES: (Span, Span) = (Span::millis(1), Span::seconds(86_400));

/// A live gateway.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Document {
    /// Addresses and ports at which clients find it; by default 127.0.0.1:3128.
    listen: Option<At<Vec<Quantity<SocketAddress>>>>,
    /// An address and port, such as 127.0.0.1:3129, for the live page, /status and
    /// /metrics; others than this machine's own need a token.
    admin: Option<Quantity<SocketAddress>>,
    /// A file with what whoever asks there has to know, relative to this file.
    admin_token_file: Option<At<String>>,
    /// Connections that are taken without their clients' knowledge.
    intercept: Option<At<InterceptTable>>,
    /// The access link.
    link: Link,
    /// The request scheduler: its name, or a table with its name and settings.
    scheduler: Option<At<Scheduler>>,
    /// The file that has names and hashes of passwords, a line each, as 'htpasswd -B' writes
    /// it; relative to the folder of this file.
    passwords: Option<At<String>>,
    /// Groups of users; who belongs to none is refused.
    class: At<Vec<At<Group>>>,
    /// Networks of this machine, or on its links, to which requests may go all the same.
    #[serde(default)]
    local_targets: Vec<Quantity<Network>>,
    /// Whether each request ends in a line of the log; by default it does.
    log_requests: Option<bool>,
    /// How much there may be of something.
    #[serde(default)]
    limits: LimitsTable,
    /// How long something may take.
    #[serde(default)]
    timeouts: TimeoutsTable,
    /// When a tunnel asks, and when it has its answer.
    #[serde(default)]
    tunnels: TunnelsTable,
}

/// The access link.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Link {
    /// Its rate towards the users.
    rate: Quantity<Rate>,
    /// The network interface that it ends at, whose counter shows what else it carries.
    interface: Option<At<String>>,
}

/// How much there may be of something.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct LimitsTable {
    /// The size of a head; by default 32 KiB.
    head: Option<Quantity<Bytes>>,
    /// Connections of clients; by default 10000.
    connections: Option<Count<1, 1_000_000>>,
    /// Connections of one user; by default 500.
    connections_per_user: Option<Count<1, 1_000_000>>,
    /// Connections to one server that are kept for later requests; by default 32.
    kept: Option<Count<0, 10_000>>,
}

/// How long something may take.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct TimeoutsTable {
    /// The head of a request, from its first byte; by default 10 s.
    head: Option<Quantity<Span>>,
    /// Between two requests on a connection of a client; by default 75 s.
    idle: Option<Quantity<Span>>,
    /// A client that takes nothing of its response, or sends nothing of its request; by
    /// default 60 s.
    client: Option<Quantity<Span>>,
    /// A connection to a server; by default 10 s.
    connect: Option<Quantity<Span>>,
    /// A server of whose response nothing comes, though it may; by default 60 s.
    server: Option<Quantity<Span>>,
    /// A connection to a server without a response; by default 60 s.
    kept: Option<Quantity<Span>>,
}

/// When a tunnel asks, and when it has its answer.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct TunnelsTable {
    /// A response is over when nothing of it has arrived for this long and a round trip; by
    /// default 200 ms.
    quiet: Option<Quantity<Span>>,
    /// A request without an answer for this long gives its place back; by default 3 s.
    silence: Option<Quantity<Span>>,
    /// A request that was held for this long is released out of order; by default 8 s.
    max_hold: Option<Quantity<Span>>,
}

/// An address and a port.
#[derive(Clone, Copy, Debug)]
struct SocketAddress(SocketAddr);

impl InText for SocketAddress {
    const EXPECTED: &'static str =
        "an address and a port, such as '192.168.1.1:3128' or '[2001:db8::1]:3128'";
    const PATTERN: &'static str = r"^([0-9.]+|\[[0-9A-Fa-f:.]+\]):[0-9]+$";

    fn read(text: &str) -> Option<SocketAddress> {
        text.parse().ok().map(SocketAddress)
    }
}

/// An address, or all that begin alike.
#[derive(Clone, Copy, Debug)]
struct Network(IpNet);

impl InText for Network {
    const EXPECTED: &'static str =
        "a network, such as '192.168.1.0/24', or one address, and no bits behind the prefix";
    const PATTERN: &'static str = r"^[0-9A-Fa-f:.]+(/[0-9]+)?$";

    fn read(text: &str) -> Option<Network> {
        let network = match text.parse::<IpAddr>() {
            Ok(address) => IpNet::from(address.to_canonical()),
            Err(_) => text.parse().ok()?,
        };
        (network == network.trunc()).then_some(Network(network))
    }
}

/// A request scheduler, by name alone or with settings.
#[derive(Debug)]
struct Scheduler {
    /// `None` in a table that lacks it.
    name: Option<At<String>>,
    /// Parameter and value.
    settings: Vec<(At<String>, At<Scalar>)>,
}

impl<'de> Deserialize<'de> for Scheduler {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scheduler, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Scheduler;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a scheduler, or a table with its name and settings")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Scheduler, E> {
                // The place is that of the whole value, which the caller has.
                let name = At { value: name.into(), place: 0..0 };
                Ok(Scheduler { name: Some(name), settings: Vec::new() })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scheduler, A::Error> {
                let mut scheduler = Scheduler { name: None, settings: Vec::new() };
                while let Some(key) = map.next_key::<At<String>>()? {
                    match key.as_str() {
                        "name" => scheduler.name = Some(map.next_value()?),
                        _ => scheduler.settings.push((key, map.next_value()?)),
                    }
                }
                Ok(scheduler)
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Scheduler {
    fn schema_name() -> Cow<'static, str> {
        "Scheduler".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<_> = catalogue::SCHEDULERS.iter().map(|entry| entry.name).collect();
        json_schema!({
            "description": "A request scheduler, by name alone or with settings.",
            "anyOf": [
                { "enum": names },
                {
                    "type": "object",
                    "properties": { "name": { "enum": names } },
                    "required": ["name"],
                },
            ]
        })
    }
}

/// Reads the file at `path`.
///
/// # Errors
/// When it cannot be read or makes no sense.
pub fn read(path: &Path) -> Result<Config, FileError> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|reason| FileError::Unreadable { file: name.clone(), reason })?;
    parse(&name, &text)
}

/// Reads a file from `text`; `name` is for messages, and what the text names is relative
/// to its folder.
///
/// # Errors
/// When it makes no sense.
pub fn parse(name: &str, text: &str) -> Result<Config, FileError> {
    let wrong = |mistake: Mistake| mistake.in_file(name, text);
    let document = toml::from_str(text).map_err(|error| wrong(Mistake::from_toml(&error)))?;
    let Document { passwords, .. } = &document;
    let passwords =
        passwords.as_ref().map(|file| class::passwords(name, text, file)).transpose()?;
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    config(&document, passwords, folder).map_err(wrong)
}

/// The JSON Schema of files of live gateways, for editors.
#[must_use]
pub fn json_schema() -> String {
    schema_of::<Document>()
}

fn config(
    document: &Document,
    passwords: Option<Passwords>,
    folder: &Path,
) -> Result<Config, Mistake> {
    let Link { rate, interface } = &document.link;
    if let Some(interface) = interface
        && (interface.is_empty() || interface.contains(['/', '.']) || interface.len() > 15)
    {
        let expected = "the name of a network interface, such as 'eth0'";
        return Err(Mistake::at(&interface.place, format!("'{}'", interface.value), expected));
    }
    let listen = match &document.listen {
        None => vec![LISTEN],
        Some(list) if list.is_empty() => {
            return Err(Mistake::at(&list.place, "an empty list", "at least one address"));
        }
        Some(list) => list.iter().map(|address| address.value.0.0).collect(),
    };
    let files = [&document.admin_token_file, &document.passwords];
    let admin = document.admin.as_ref();
    let admin_token = document.admin_token_file.as_ref().map(|written| {
        let found = Token::read(&folder.join(&written.value));
        found.map_err(|found| Mistake::at(&written.place, found, token::EXPECTED))
    });
    let admin_token = admin_token.transpose()?;
    let is_open = |address: SocketAddr| !address.ip().is_loopback() && admin_token.is_none();
    if let Some(admin) = admin.filter(|admin| is_open(admin.value.0.0)) {
        let expected = "an address of this machine only, such as '127.0.0.1:3129', or beside it \
            admin_token_file";
        return Err(Mistake::at(&admin.place, format!("'{}'", admin.value.0.0), expected));
    }
    let intercepted = document.intercept.as_ref();
    let intercepted = intercepted.map(|table| intercept(table, interface.as_ref())).transpose()?;
    let (scheduler, settings) = scheduler(document.scheduler.as_ref())?;
    Ok(Config {
        intercept: intercepted,
        listen,
        admin: admin.map(|admin| admin.value.0.0),
        admin_token,
        rate: within(rate, RATES)?,
        interface: interface.as_ref().map(|interface| interface.value.clone()),
        scheduler,
        settings,
        classes: classes(&document.class, passwords.as_ref())?,
        passwords: Arc::new(passwords.unwrap_or_default()),
        local_targets: document.local_targets.iter().map(|network| network.value.0.0).collect(),
        log_requests: document.log_requests.unwrap_or(true),
        limits: limits(&document.limits)?,
        timeouts: timeouts(&document.timeouts)?,
        tunnels: tunnels(&document.tunnels)?,
        files: files.into_iter().flatten().map(|file| folder.join(&file.value)).collect(),
    })
}

fn scheduler(
    written: Option<&At<Scheduler>>,
) -> Result<(&'static Entry, request::Config), Mistake> {
    let find = |name: &str| catalogue::find(name);
    let Some(written) = written else {
        let entry = find(SCHEDULER).expect("the default is in the catalogue");
        let defaults = entry.settings(&[]).expect("defaults are within range");
        return Ok((entry, (entry.config)(&defaults)));
    };
    let Some(name) = &written.name else {
        return Err(Mistake::missing(&written.place, "name", "the name of a request scheduler"));
    };
    let place = if name.place.is_empty() { &written.place } else { &name.place };
    let Some(entry) = find(name) else {
        let known = catalogue::SCHEDULERS.iter().map(|entry| entry.name);
        let found = format!("unknown request scheduler '{}'", name.value);
        return Err(Mistake::at(place, found, expectation(name, known)));
    };
    let given = |key: &str| written.settings.iter().find(|(name, _)| name.as_str() == key);
    let pairs: Vec<_> =
        written.settings.iter().map(|(key, value)| (key.as_str(), value.0.as_str())).collect();
    let settings = entry.settings(&pairs).map_err(|error| match error {
        SettingError::UnknownParameter { found, .. } => {
            let known = entry.parameters.iter().map(|parameter| parameter.name);
            let place = given(&found).map_or(place, |(key, _)| &key.place);
            Mistake::at(place, format!("unknown '{found}'"), expectation(&found, known))
        }
        SettingError::WrongValue { parameter, found, expected, .. } => {
            let place = given(parameter).map_or(place, |(_, value)| &value.place);
            Mistake::at(place, format!("'{found}'"), expected)
        }
        SettingError::Fixed { .. } => unreachable!("nothing runs while a file is read"),
    })?;
    Ok((entry, (entry.config)(&settings)))
}

fn limits(written: &LimitsTable) -> Result<Limits, Mistake> {
    let usual = Limits::default();
    Ok(Limits {
        head: chosen(written.head.as_ref(), HEADS, usual.head)?,
        connections: written.connections.map_or(usual.connections, |count| count.0),
        connections_per_user: written
            .connections_per_user
            .map_or(usual.connections_per_user, |count| count.0),
        kept: written.kept.map_or(usual.kept, |count| count.0),
    })
}

fn timeouts(written: &TimeoutsTable) -> Result<Timeouts, Mistake> {
    let usual = Timeouts::default();
    Ok(Timeouts {
        head: chosen(written.head.as_ref(), TIMES, usual.head)?,
        idle: chosen(written.idle.as_ref(), TIMES, usual.idle)?,
        client: chosen(written.client.as_ref(), TIMES, usual.client)?,
        connect: chosen(written.connect.as_ref(), TIMES, usual.connect)?,
        server: chosen(written.server.as_ref(), TIMES, usual.server)?,
        kept: chosen(written.kept.as_ref(), TIMES, usual.kept)?,
    })
}

fn tunnels(written: &TunnelsTable) -> Result<TunnelConfig, Mistake> {
    let usual = TunnelConfig::default();
    Ok(TunnelConfig {
        quiet: chosen(written.quiet.as_ref(), TIMES, usual.quiet)?,
        silence: chosen(written.silence.as_ref(), TIMES, usual.silence)?,
        max_hold: chosen(written.max_hold.as_ref(), TIMES, usual.max_hold)?,
        ..usual
    })
}

/// What the file says, or else what is usual.
fn chosen<T: PartialOrd + Copy + Display>(
    written: Option<&Quantity<T>>,
    range: (T, T),
    usual: T,
) -> Result<T, Mistake> {
    written.map_or(Ok(usual), |written| within(written, range))
}

/// The value, if it is within its range.
fn within<T: PartialOrd + Copy + Display>(
    written: &Quantity<T>,
    (least, most): (T, T),
) -> Result<T, Mistake> {
    let value = written.value.0;
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    let expected = format!("from '{least}' to '{most}'");
    Err(Mistake::at(&written.place, format!("'{value}'"), expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
listen = ["127.0.0.1:3128", "[::1]:3128"]
admin = "127.0.0.1:3129"
local_targets = ["10.0.0.0/8"]
[link]
rate = "20 Mbit/s"
interface = "eth0"
[scheduler]
name = "msf"
long_from = "64 kB"
[limits]
head = "8 KiB"
[timeouts]
server = "2 min"
[tunnels]
max_hold = "5 s"
[[class]]
name = "staff"
weight = 4
sources = ["192.168.1.0/24", "192.168.2.7"]
[[class]]
name = "guests"
sources = ["192.168.0.0/16", "2001:db8::/48"]
"#;

    fn error(change: (&str, &str)) -> String {
        assert!(GOOD.contains(change.0), "{}", change.0);
        parse("g.toml", &GOOD.replace(change.0, change.1)).unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_is_what_holds() {
        let config = parse("g.toml", GOOD).unwrap();
        assert_eq!(config.listen.len(), 2);
        assert_eq!(config.settings.read_gate.map(|gate| gate.long_from), Some(Bytes(64_000)));
        assert_eq!(config.limits, Limits { head: Bytes(8_192), ..Limits::default() });
        assert_eq!(config.timeouts.server, Span::seconds(120));
        assert_eq!(config.tunnels.max_hold, Span::seconds(5));
        let class = |address: &str| config.class_of(address.parse().unwrap()).map(|it| it.0);
        // The longest prefix decides, whatever the order.
        assert_eq!(class("192.168.1.7"), Some(0));
        assert_eq!(class("192.168.2.7"), Some(0));
        assert_eq!(class("192.168.2.8"), Some(1));
        assert_eq!(class("::ffff:192.168.2.8"), Some(1));
        assert_eq!(class("2001:db8:0:1::1"), Some(1));
        assert_eq!(class("192.0.2.1"), None);
    }

    #[test]
    fn a_short_file_gets_what_is_usual_and_this_machine_only() {
        let text = "link.rate = '1 Mbit/s'\n[[class]]\nname = 'all'\nsources = ['127.0.0.1']";
        let config = parse("g.toml", text).unwrap();
        assert_eq!(config.listen, [LISTEN]);
        assert_eq!(config.timeouts, Timeouts::default());
        assert!(config.local_targets.is_empty() && config.settings.read_gate.is_some());
        assert!(config.log_requests);
        let quiet = parse("g.toml", &format!("log_requests = false\n{text}")).unwrap();
        assert!(!quiet.log_requests);
        let wrong = parse("g.toml", &format!("log_requests = 'no'\n{text}")).unwrap_err();
        assert!(wrong.to_string().starts_with("g.toml:1:16: log_requests: found"), "{wrong}");
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (change, expected) in [
            (
                ("rate = \"20", "rat = \"20"),
                "g.toml:6:1: link.rat: found unknown 'rat', expected 'rate'",
            ),
            (
                ("20 Mbit/s", "20 bit/s"),
                "g.toml:6:8: link.rate: found '20 bit/s', expected from '1 kbit/s' to '10 Gbit/s'",
            ),
            (
                ("\"msf\"", "\"mfs\""),
                "g.toml:9:8: scheduler.name: found unknown request scheduler 'mfs', expected 'msf'",
            ),
            (
                ("long_from", "longfrom"),
                "g.toml:10:1: scheduler.longfrom: found unknown 'longfrom', expected 'long_from'",
            ),
            (("64 kB", "0 B"), "g.toml:10:13: scheduler.long_from: found '0 B', expected"),
            (
                ("name = \"msf\"", ""),
                "g.toml:8:1: scheduler.name: found nothing, expected the name",
            ),
            (
                ("192.168.1.0/24", "192.168.1.1/24"),
                "g.toml:20:12: class.sources: found '192.168.1.1/24', expected a network",
            ),
            (
                ("192.168.0.0/16", "192.168.1.0/24"),
                "g.toml:23:12: class.sources: found '192.168.1.0/24' again, which is in class 'staff'",
            ),
            (
                ("\"guests\"", "\"staff\""),
                "g.toml:22:8: class.name: found 'staff', expected a name of its own",
            ),
            (
                ("[\"127.0.0.1:3128\", \"[::1]:3128\"]", "[]"),
                "g.toml:2:10: listen: found an empty list",
            ),
            (
                ("\"127.0.0.1:3128\"", "\"localhost:3128\""),
                "g.toml:2:11: listen: found 'localhost:3128', expected an address",
            ),
            (("eth0", "../eth0"), "g.toml:7:13: link.interface: found '../eth0'"),
            (
                ("weight = 4", "weight = 0"),
                "g.toml:19:10: class.weight: found 0, expected a whole number",
            ),
        ] {
            let found = error(change);
            assert!(found.starts_with(expected), "{found}\n{expected}");
        }
        let none = parse("g.toml", "class = []\nlink.rate = '1 Mbit/s'").unwrap_err();
        assert!(none.to_string().starts_with("g.toml:1:9: class: found no class"), "{none}");
    }
}
