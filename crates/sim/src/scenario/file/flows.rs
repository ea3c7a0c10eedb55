//! Files of flows: the promises to the flows of one direction of a link.
//!
//! Real-time flows have an arrival curve and a deadline, best-effort flows a
//! weight. Reading a file is as strict as reading a scenario, and gives
//! [`Contracts`] or one line with the error and its place. It does not check
//! whether the link can keep the promises: `tidegate curves` does, and
//! disciplines refuse promises that cannot be kept.
//!
//! ```
//! use tidegate_sim::scenario::file::flows;
//!
//! let text = r#"
//!     link = "10 Mbit/s"
//!     [[real_time]]
//!     name = "voice"
//!     protocol = "udp"
//!     port = 5004
//!     curve = "100 B + 2 Mbit/s, 300 B + 1.2 Mbit/s"
//!     deadline = "5 ms"
//!     [[best_effort]]
//!     name = "backup"
//!     from = "192.0.2.7"
//!     weight = 1
//! "#;
//! let contracts = flows::parse("calls.toml", text)?;
//! assert_eq!(contracts.flows[0].selector.to_string(), "udp and port 5004");
//!
//! let error = flows::parse("calls.toml", &text.replace("1.2 M", "1.2 m")).unwrap_err();
//! let found = "calls.toml:7:13: real_time.curve: found '300 B + 1.2 m";
//! assert!(error.to_string().starts_with(found));
//! # Ok::<(), tidegate_sim::scenario::file::ScenarioError>(())
//! ```

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::ops::Range;
use std::path::Path;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, Unexpected, Visitor};
use tidegate_core::contract::{
    Contract, ContractError, Contracts, Envelope, Selector, Service, Term,
};
use tidegate_core::{Bytes, FlowKey, Rate, Span};

use super::tcp::within;
use super::values::{At, Count, Quantity, Text};
use super::{ScenarioError, schema_of};
use tidegate_files::Mistake;

/// The size of an Ethernet frame's packet; nearly every access link has packets of this size.
const LARGEST_PACKET: Bytes = Bytes(1_500);
/// Traffic that waits longer is not in real time.
const LONGEST_DEADLINE: Span = Span::seconds(3_600);

/// Promises to the flows of one direction of a link.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Tidegate flows")]
struct Document {
    /// The rate of the link in this direction.
    link: Text<Rate>,
    /// The largest packet of any flow, including best effort. Default: 1500 B.
    largest_packet: Option<Quantity<Bytes>>,
    /// Flows whose packets have a deadline.
    #[serde(default)]
    real_time: Vec<At<RealTime>>,
    /// Flows that share what real-time flows leave. Each 5-tuple of packets
    /// that belong to no flow is a flow of weight 1.
    #[serde(default)]
    best_effort: Vec<At<BestEffort>>,
}

/// A flow whose packets are on the wire within a deadline, as long as it keeps
/// to its arrival curve. A packet belongs to the first flow whose given keys
/// among `class`, `protocol`, `port`, `from` and `to` it matches.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RealTime {
    /// Name in tables and messages.
    name: At<String>,
    /// Class of its packets.
    class: Option<Class>,
    /// 'udp', 'tcp' or an IANA protocol number.
    protocol: Option<Protocol>,
    /// UDP or TCP port at either end.
    port: Option<Port>,
    /// Source address of its packets.
    from: Option<Text<IpAddr>>,
    /// Destination address of its packets.
    to: Option<Text<IpAddr>>,
    /// What it may send: the minimum of token buckets ('300 B + 1.2 Mbit/s')
    /// and staircases ('30 kB every 33 ms'), separated by commas.
    curve: Option<At<String>>,
    /// The parameters of a TSpec (RFC 2215), instead of `curve`.
    tspec: Option<At<TSpec>>,
    /// Longest time from a packet's arrival until it is on the wire.
    deadline: Quantity<Span>,
}

/// At most `packet + peak t` and at most `burst + rate t` in any time t.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TSpec {
    /// The largest packet: M.
    packet: Text<Bytes>,
    /// The peak rate: p.
    peak: Text<Rate>,
    /// The depth of the token bucket: b.
    burst: Text<Bytes>,
    /// The rate of the token bucket: r.
    rate: Text<Rate>,
}

/// Flows without a deadline that share by weight what real-time flows leave.
/// The same keys as in `real_time` select their packets.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BestEffort {
    /// Name in tables and messages.
    name: At<String>,
    /// Class of its packets.
    class: Option<Class>,
    /// 'udp', 'tcp' or an IANA protocol number.
    protocol: Option<Protocol>,
    /// UDP or TCP port at either end.
    port: Option<Port>,
    /// Source address of its packets.
    from: Option<Text<IpAddr>>,
    /// Destination address of its packets.
    to: Option<Text<IpAddr>>,
    /// Its share, relative to those of other best-effort flows.
    weight: Weight,
}

type Class = Count<0, 65_535>;
type Port = Count<1, 65_535>;
type Weight = Count<1, 1_000_000>;

/// Reads the file of flows at `path`.
///
/// # Errors
/// When it cannot be read or makes no sense.
pub fn read(path: &Path) -> Result<Contracts, ScenarioError> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|reason| ScenarioError::Unreadable { file: name.clone(), reason })?;
    parse(&name, &text)
}

/// Reads a file of flows from `text`; `name` is for messages.
///
/// # Errors
/// When it makes no sense.
pub fn parse(name: &str, text: &str) -> Result<Contracts, ScenarioError> {
    toml::from_str(text)
        .map_err(|error| Mistake::from_toml(&error))
        .and_then(|document: Document| contracts(&document))
        .map_err(|mistake| mistake.in_file(name, text))
}

/// The JSON Schema of files of flows, for editors.
#[must_use]
pub fn json_schema() -> String {
    schema_of::<Document>()
}

fn contracts(document: &Document) -> Result<Contracts, Mistake> {
    let largest_packet = match &document.largest_packet {
        Some(size) => within(size, Bytes(1), Bytes(1 << 20))?,
        None => LARGEST_PACKET,
    };
    let mut written = Vec::new();
    for flow in &document.real_time {
        written.push((flow.place.start, &flow.name, real_time(flow)?));
    }
    for flow in &document.best_effort {
        written.push((flow.place.start, &flow.name, best_effort(flow)?));
    }
    // Packets are compared with flows in the order of the file.
    written.sort_by_key(|(start, ..)| *start);
    let mut contracts = Contracts::new(document.link.0, largest_packet, Vec::new())
        .expect("rate and size are within the limits of contracts");
    for (_, name, flow) in written {
        if contracts.flows.iter().any(|other| other.name == flow.name) {
            let found = format!("a second flow '{}'", one_line(&flow.name));
            return Err(Mistake::at(&name.place, found, "another name"));
        }
        contracts.flows.push(flow);
        // One after the other, so that what is wrong has a place.
        contracts = Contracts::new(contracts.link, contracts.largest_packet, contracts.flows)
            .map_err(|error| refused(&name.place, &error))?;
    }
    Ok(contracts)
}

fn refused(place: &Range<usize>, error: &ContractError) -> Mistake {
    Mistake::at(place, format!("'{}'", one_line(&error.found)), error.expected.clone())
}

/// Texts from the file may contain line breaks, messages may not.
fn one_line(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// The core's selector for the keys that both kinds of flows have.
macro_rules! selector {
    ($flow:expr) => {
        Selector {
            class: $flow.class.map(|class| class.0 as u16),
            protocol: $flow.protocol.map(|protocol| protocol.0),
            port: $flow.port.map(|port| port.0 as u16),
            source: $flow.from.map(|address| address.0),
            destination: $flow.to.map(|address| address.0),
        }
    };
}

fn real_time(flow: &At<RealTime>) -> Result<Contract, Mistake> {
    let envelope = match (&flow.curve, &flow.tspec) {
        (Some(curve), None) => curve.parse().map_err(|error| refused(&curve.place, &error))?,
        (None, Some(tspec)) => {
            let bucket = |burst: Text<Bytes>, rate: Text<Rate>| Term::TokenBucket {
                burst: burst.0,
                rate: rate.0,
            };
            let terms = vec![bucket(tspec.packet, tspec.peak), bucket(tspec.burst, tspec.rate)];
            Envelope::new(terms).map_err(|error| refused(&tspec.place, &error))?
        }
        (Some(_), Some(tspec)) => {
            return Err(Mistake::at(&tspec.place, "a curve and a tspec", "one of them"));
        }
        (None, None) => {
            let expected = "what the flow may send, as '300 B + 1.2 Mbit/s'";
            return Err(Mistake::missing(&flow.place, "curve", expected));
        }
    };
    let deadline = within(&flow.deadline, Span(1), LONGEST_DEADLINE)?;
    contract(&flow.place, &flow.name, selector!(flow), Service::RealTime { envelope, deadline })
}

fn best_effort(flow: &At<BestEffort>) -> Result<Contract, Mistake> {
    let service = Service::BestEffort { weight: flow.weight.0 };
    contract(&flow.place, &flow.name, selector!(flow), service)
}

fn contract(
    place: &Range<usize>,
    name: &str,
    selector: Selector,
    service: Service,
) -> Result<Contract, Mistake> {
    if selector == Selector::default() {
        let expected = "one or more of class, protocol, port, from, to";
        return Err(Mistake::at(place, "nothing that tells its packets", expected));
    }
    Ok(Contract { name: name.into(), selector, service })
}

/// An IANA protocol number.
#[derive(Clone, Copy, Debug)]
struct Protocol(u8);

impl<'de> Deserialize<'de> for Protocol {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Protocol, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = Protocol;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("'udp', 'tcp' or a protocol number from 0 to 255")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Protocol, E> {
                match text {
                    "udp" => Ok(Protocol(FlowKey::UDP)),
                    "tcp" => Ok(Protocol(FlowKey::TCP)),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Protocol, E> {
                u8::try_from(number)
                    .map(Protocol)
                    .map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Protocol {
    fn schema_name() -> Cow<'static, str> {
        "Protocol".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "'udp', 'tcp' or an IANA protocol number.",
            "anyOf": [
                { "enum": ["udp", "tcp"] },
                { "type": "integer", "minimum": 0, "maximum": 255 },
            ]
        })
    }
}

#[cfg(test)]
mod tests;
