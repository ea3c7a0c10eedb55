//! How a file of gateways looks.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, IntoDeserializer, MapAccess, Unexpected, Visitor};
use tidegate_core::buffer::Limit;
use tidegate_core::{Bytes, Rate, Span};

use super::super::syntax::{Order, Protocol, Sizes, Tcp, Wifi};
use super::super::values::{At, Count, Named, Positive, Quantity, Seeds, Text};
use crate::requests;

/// A request gateway on the user's side of an access link, and ways of sharing the
/// link that are to be compared.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Tidegate gateway")]
pub(super) struct Document {
    /// One line for the head of results.
    pub(super) title: At<String>,
    /// A paragraph on what it shows.
    #[serde(default)]
    pub(super) description: String,
    /// How long to simulate. Default: 800 s.
    pub(super) duration: Option<Quantity<Span>>,
    /// Requests that begin before this are not measured. Default: an eighth of the duration.
    pub(super) warm_up: Option<Quantity<Span>>,
    /// How many seeds, or a list of them; each way runs once with each. Default: 5.
    pub(super) seeds: Option<At<Seeds>>,
    /// What to compare. Default: msf, paper, fifo, htb, direct.
    pub(super) ways: Option<At<Vec<At<WayText>>>>,
    /// The access link, and those of clients.
    #[serde(default)]
    pub(super) link: Link,
    /// A wireless cell, whose stations all clients are, in place of links of their own.
    pub(super) wifi: Option<At<Wifi>>,
    /// The gateway's limits.
    #[serde(default)]
    pub(super) gateway: Gateway,
    /// How clients use connections, to the gateway or without one to servers.
    #[serde(default)]
    pub(super) http: Http,
    /// What pages consist of, where a class does not say.
    #[serde(default)]
    pub(super) objects: Objects,
    /// How TCP behaves. Default: the profile 'today'.
    #[serde(default)]
    pub(super) tcp: Tcp,
    /// Classes of clients, the first with the number 0.
    #[serde(default)]
    pub(super) class: Vec<At<Class>>,
    /// Servers; an object comes from any of them with equal probability. Default:
    /// six at 5 ms to 30 ms and 2 Mbit/s to 10 Mbit/s, and six at 80 ms to 200 ms
    /// and 0.5 Mbit/s to 5 Mbit/s.
    #[serde(default)]
    pub(super) servers: Vec<At<Servers>>,
    /// Traffic of the downlink that belongs to no class.
    #[serde(default)]
    pub(super) cbr: Vec<At<Cbr>>,
    /// How servers fail. Default: never.
    pub(super) failures: Option<At<Failures>>,
}

/// The access link, and those of clients.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    /// Rate of the access link, either way unless `uplink_rate` is given. Default: 2
    /// Mbit/s.
    pub(super) rate: Option<Quantity<Rate>>,
    /// One-way delay of the access link. Default: 1 ms.
    pub(super) delay: Option<Quantity<Span>>,
    /// The discipline of the queue at the provider's end. Default: fifo.
    pub(super) queue: Option<At<Named>>,
    /// What that queue holds. Default: 61 kB.
    pub(super) buffer: Option<Text<Limit>>,
    /// Rate of the access link's uplink. Default: that of the link.
    pub(super) uplink_rate: Option<Quantity<Rate>>,
    /// The discipline of the uplink's queue, which is at the gateway. Default: fifo.
    pub(super) uplink_queue: Option<At<Named>>,
    /// What that queue holds. Default: everything.
    pub(super) uplink_buffer: Option<At<Text<Limit>>>,
    /// Rate of each client's link, either way. Default: 10 Mbit/s.
    pub(super) client_rate: Option<Quantity<Rate>>,
    /// One-way delay of a client's link. Default: 2 ms.
    pub(super) client_delay: Option<Quantity<Span>>,
}

/// The gateway's limits.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Gateway {
    /// Receive buffer of its connections to servers where it holds responses back: what
    /// one brings at most when it is not read, until more is read of it. Other gateways
    /// leave it to TCP. Default: 24 kB.
    pub(super) receive_buffer: Option<Quantity<Bytes>>,
    /// A response is given up when nothing has come of it for so long that was not
    /// held back; without a gateway by the client. Default: 60 s.
    pub(super) patience: Option<Quantity<Span>>,
    /// How long it keeps a connection to a server that has no response. Default: 60 s.
    pub(super) keep_alive: Option<Quantity<Span>>,
    /// How many of those it keeps to each server. Default: 32.
    pub(super) kept: Option<Count<0, 10_000>>,
}

/// How clients use connections, to the gateway or without one to servers.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Http {
    /// How many responses a connection carries, and how many connections a client has to
    /// a server. With http1.0 the gateway keeps none either. Default: http1.1.
    pub(super) protocol: Option<At<Protocol>>,
    /// The order of the frames of a connection with several responses. Default:
    /// round-robin.
    pub(super) order: Option<Order>,
    /// Round trips of TLS before the first request of a client's connection. Default: 0.
    pub(super) tls: Option<Count<0, 2>>,
    /// How long a client's connection without a request stays open. Default: 75 s.
    pub(super) keep_alive: Option<Quantity<Span>>,
}

/// What pages consist of.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Objects {
    /// Sizes of the objects. Default: lognormal with a mean of 27.7 kB.
    pub(super) sizes: Option<At<Sizes>>,
    /// Mean number of objects of a page, fetched at once. Default: 1.
    pub(super) per_page: Option<At<Positive>>,
    /// The size of a request. Default: 300 B.
    pub(super) request: Option<Quantity<Bytes>>,
}

/// A class of clients, each of them a user. When they ask: `loops` and `pause`,
/// `every`, or `log`. What for: `page_table`, `recorded`, or objects of the file's
/// sizes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Class {
    /// Name in tables and files.
    pub(super) name: At<String>,
    /// Its share, relative to those of other classes. Default: 1.
    pub(super) weight: Option<At<Count<1, 1_000_000>>>,
    /// The name of the class to which its clients belong, with whose others they only do not
    /// behave alike. It stands before all that are part of another. Default: its own.
    pub(super) part_of: Option<At<String>>,
    /// The number of its clients. Default with a log: as many as hosts.
    pub(super) clients: Option<Count<1, 100_000>>,
    /// Loops of each client, one page at a time in each. Default: 10.
    pub(super) loops: Option<At<Count<1, 10_000>>>,
    /// Mean of the exponential pause after a page. Default: 5 s.
    pub(super) pause: Option<Quantity<Span>>,
    /// Mean time between two pages of one client, whether or not those before are
    /// complete.
    pub(super) every: Option<Quantity<Span>>,
    /// Log of a Web server: its requests at their times, of its hosts.
    pub(super) log: Option<At<String>>,
    /// How many times as fast as it was the log is. Default: 1.
    pub(super) speed: Option<At<Count<1, 1_000_000>>>,
    /// Pages in short: a CSV file with objects, body_bytes and hosts. Sizes are
    /// drawn from the file's, and scaled to the page's bytes.
    pub(super) page_table: Option<At<String>>,
    /// Pages as a browser recorded them: HTTP Archives.
    pub(super) recorded: Option<At<Vec<At<String>>>>,
    /// Sizes of its objects, without pages. Default: those of the file.
    pub(super) sizes: Option<At<Sizes>>,
    /// The size of its requests where no recording has it: a large one is an upload.
    /// Default: that of the file.
    pub(super) request: Option<Quantity<Bytes>>,
    /// What a gateway sees of it. Default: requests.
    pub(super) through: Option<Through>,
    /// How servers fail it. Default: like the file's.
    pub(super) failures: Option<At<Failures>>,
    /// Rate of each of its clients' links, either way: slow ones read slowly. Default: that
    /// of the file.
    pub(super) client_rate: Option<Quantity<Rate>>,
    /// Mean time of a user's visit, exponential. Default: all are there always.
    pub(super) present: Option<Quantity<Span>>,
    /// Mean time between two visits.
    pub(super) absent: Option<Quantity<Span>>,
    /// Times in which they begin no page, as [["100 s", "200 s"]].
    #[serde(default)]
    pub(super) silent: Vec<Interval<Span>>,
}

/// What a gateway sees of what clients ask.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Through {
    /// Their requests.
    Requests,
    /// Tunnels with TLS from end to end, in which it sees bytes.
    Tunnels,
    /// That each has a WebSocket to a server, over which requests and responses are
    /// messages.
    WebSocket,
}

/// Two quantities, the first not the larger.
pub(super) type Interval<T> = [Quantity<T>; 2];

/// Servers behind the provider.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Servers {
    /// How many.
    pub(super) count: Count<1, 10_000>,
    /// One way from the provider, uniform between the two.
    pub(super) delay: Interval<Span>,
    /// Rate of the link to each, uniform between the two.
    pub(super) rate: Interval<Rate>,
}

/// Datagrams at a constant rate that pass the downlink and belong to nobody.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Cbr {
    /// Rate while it is on.
    pub(super) rate: Quantity<Rate>,
    /// Size of a datagram on the wire. Default: 1000 B.
    pub(super) packet: Option<Quantity<Bytes>>,
    /// The duration of each pause; the first one is at the start. Default: 0 s.
    pub(super) off: Option<Quantity<Span>>,
    /// The duration of each sending period. Default: to the end.
    pub(super) on: Option<Quantity<Span>>,
}

/// With which probability a response goes wrong, and how.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Failures {
    /// The server stops anywhere in the response, for ever.
    pub(super) stall: Option<Share>,
    /// It breaks the connection off anywhere in the response.
    pub(super) reset: Option<Share>,
    /// It sends the response at a slow, constant rate.
    pub(super) trickle: Option<Share>,
    /// That rate. Default: 8 kbit/s.
    pub(super) trickle_rate: Option<Quantity<Rate>>,
}

/// A number from 0 to 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share(pub(super) f64);

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Share, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = Share;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number from 0 to 1")
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Share, E> {
                if (0.0..=1.0).contains(&number) {
                    Ok(Share(number))
                } else {
                    Err(E::invalid_value(Unexpected::Float(number), &self))
                }
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Share, E> {
                self.visit_f64(number as f64)
            }
        }

        deserializer.deserialize_f64(Reader)
    }
}

impl JsonSchema for Share {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": 1 })
    }
}

/// A way of sharing the link, by name alone or with settings.
#[derive(Clone, Debug)]
pub(super) struct WayText(pub(super) Named);

impl<'de> Deserialize<'de> for WayText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WayText, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = WayText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a way, or a table with its name and parameters")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<WayText, E> {
                Named::deserialize(name.into_deserializer()).map(WayText)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WayText, A::Error> {
                Named::deserialize(de::value::MapAccessDeserializer::new(map)).map(WayText)
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for WayText {
    fn schema_name() -> Cow<'static, str> {
        "Way".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<String> = requests::names().map(|(name, _)| name).collect();
        let settings = serde_json::json!({ "type": ["string", "number", "boolean"] });
        json_schema!({
            "description": "A way of sharing the link, by name alone or with settings.",
            "anyOf": [
                { "enum": names },
                {
                    "type": "object",
                    "properties": {
                        "name": { "enum": names },
                        "label": { "type": "string" },
                    },
                    "required": ["name"],
                    "additionalProperties": settings,
                },
            ]
        })
    }
}
