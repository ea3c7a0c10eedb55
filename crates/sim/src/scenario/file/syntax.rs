//! The language of scenario files: its keys and the values that they take.
//!
//! These types describe only the content of a file; the JSON Schema for editors
//! is made from them. Each key is documented here once: editors show the text,
//! and it is the reference for `docs/scenarios.md`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor, value::MapAccessDeserializer};
use tidegate_core::buffer::Limit;
use tidegate_core::{Bytes, Rate, Span};

mod call;
mod dns;
mod greedy;
mod measured;
mod pages;
mod quic;
mod traffic;
mod video;

use super::values::{
    At, Congestion, Count, InText, Megahertz, Named, Names, Positive, Profile, Quantity, Seeds,
    Text, WifiRate,
};
pub(super) use call::CallSource;
pub(super) use dns::DnsSource;
pub(super) use greedy::{GreedySource, Lasting, PacketLength};
pub(super) use measured::{Delays, MeasuredTable};
pub(super) use pages::{Order, PageSource, Protocol};
pub(super) use quic::{Control, QuicSource};
pub(super) use traffic::{
    CbrSource, Divide, FrameSource, PacketSource, Traffic, TransferSource, WebSource,
};
pub(super) use video::{VideoChoice, VideoSource};

/// The most hosts, servers or pairs that a builder makes.
type Hosts = Count<1, 1_000>;
/// More transfers at once than any access link has seen.
pub(super) type Transfers = Count<1, 1_000_000>;
/// Segments of a transfer: up to 1.5 GB.
type Segments = Count<1, 1_000_000>;

/// A link, its traffic, and the disciplines to try on it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Tidegate scenario")]
pub(super) struct Document {
    /// One line for the head of the report.
    pub(super) title: At<String>,
    /// A paragraph on what the scenario shows.
    #[serde(default)]
    pub(super) description: String,
    /// How long to simulate.
    pub(super) duration: Quantity<Span>,
    /// Flows that start before this are simulated but not reported. Default: 0 s.
    pub(super) warm_up: Option<Quantity<Span>>,
    /// Number of seeds, or a list of them; each discipline runs once with each. Default: 5.
    pub(super) seeds: Option<At<Seeds>>,
    /// Time between two samples of the links and of followed flows. Default: 100 ms.
    pub(super) sample_every: Option<Quantity<Span>>,
    /// Upper bounds of the size classes, ascending; one more class takes the
    /// rest. Default: 10 kB, 100 kB, 1 MB.
    pub(super) size_classes: Option<Vec<Quantity<Bytes>>>,
    /// Flows of at most this size are called short. Default: 30 kB.
    pub(super) short_flow: Option<Quantity<Bytes>>,
    /// Flows of at least this size are called long. Default: 1 MB.
    pub(super) long_flow: Option<Quantity<Bytes>>,
    /// Disciplines to try on the tested links.
    pub(super) disciplines: At<Vec<At<Named>>>,
    /// How TCP behaves, unless a source of traffic says otherwise. Default:
    /// the profile 'today'.
    #[serde(default)]
    pub(super) tcp: Tcp,
    /// Names for lists of nodes, for use wherever a node can be named.
    #[serde(default)]
    pub(super) groups: BTreeMap<String, At<Names>>,
    /// Pairs of senders and receivers around one bottleneck.
    pub(super) dumbbell: Option<Dumbbell>,
    /// Hosts behind a router on an access link, and servers beyond it.
    pub(super) access: Option<Access>,
    /// Stations around an access point, and hosts beyond it.
    pub(super) wifi: Option<At<Wifi>>,
    /// Links, besides those of a builder.
    #[serde(default)]
    pub(super) link: Vec<At<Link>>,
    /// The sources of traffic, by kind.
    pub(super) traffic: At<Traffic>,
    /// What was measured on this link, to be shown beside the results.
    #[serde(default)]
    pub(super) measured: Vec<At<MeasuredTable>>,
}

/// Nodes `sender1`.. in the group `senders`, all linked to `left`;
/// `receiver1`.. in `receivers`, linked to `right`; the link `bottleneck` from
/// left to right has the discipline under test, and all others queue without a
/// limit. The defaults are those of `EFD section 4.1`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Dumbbell {
    /// Number of senders, and of receivers. Default: 5.
    pub(super) pairs: Option<Hosts>,
    /// Capacity of the bottleneck, both ways. Default: 10 Mbit/s.
    pub(super) rate: Option<Capacity>,
    /// Rate of all other links. Default: 100 Mbit/s.
    pub(super) edge_rate: Option<Text<Rate>>,
    /// Propagation delay of each link. Default: 1 ms.
    pub(super) delay: Option<Text<Span>>,
    /// Buffer of the bottleneck. Default: 300 packets.
    pub(super) buffer: Option<Text<Limit>>,
}

/// Nodes `host1`.. in the group `hosts` - `router` - `isp` - `server1`.. in
/// `servers`. The links `down` (isp to router) and `up` (router to isp) have the
/// discipline under test, all others queue without a limit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Access {
    /// Hosts on the user's side.
    pub(super) hosts: Hosts,
    /// Capacity towards the user.
    pub(super) down: Capacity,
    /// Capacity from the user.
    pub(super) up: Capacity,
    /// Propagation delay of the access link, each way. Default: 5 ms.
    pub(super) delay: Option<Text<Span>>,
    /// Buffer of both directions, unless one has its own. Default: 300 packets.
    pub(super) buffer: Option<Text<Limit>>,
    /// Buffer towards the user.
    pub(super) down_buffer: Option<Text<Limit>>,
    /// Buffer from the user.
    pub(super) up_buffer: Option<Text<Limit>>,
    /// Rate between hosts and router. Default: 1 Gbit/s.
    pub(super) lan_rate: Option<Text<Rate>>,
    /// Propagation delay between hosts and router. Default: 1 ms.
    pub(super) lan_delay: Option<Text<Span>>,
    /// Propagation delay from the provider to each server; there are as many
    /// servers as delays. Default: one server, 10 ms.
    pub(super) servers: Option<At<Vec<Text<Span>>>>,
}

/// Nodes `station1`.. in the group `stations` share the medium of an 802.11 cell
/// with the `accesspoint`; behind it `router` and `host1`.. in the group `hosts`.
/// The link `downlink` (accesspoint to all stations) has the discipline under
/// test; the links `uplink1`.. have FIFO, and all others queue without a limit.
/// With `airtime_fairness`, the links `downlink1`.. (accesspoint to one station)
/// have the discipline under test. The defaults are those of `WLAN section III`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wifi {
    /// Number of stations; around a gateway every client is one.
    pub(super) stations: Option<At<Count<1, 200>>>,
    /// The standard of the cell. Default: 802.11a.
    pub(super) standard: Option<Standard>,
    /// Width of the channel, with 802.11n or ac: 20, 40, 80 or 160 MHz. Default: 20
    /// MHz with 802.11n, 80 MHz with 802.11ac.
    pub(super) width: Option<Quantity<Megahertz>>,
    /// Spatial streams, with 802.11n or ac. Default: 1.
    pub(super) streams: Option<At<Count<1, 4>>>,
    /// Gap between symbols, with 802.11n or ac: 800 or 400 ns. Default: 800 ns.
    pub(super) guard_interval: Option<Quantity<Span>>,
    /// Data rates: with 802.11a one of 6, 9, 12, 18, 24, 36, 48 and 54 Mbit/s,
    /// otherwise one of the channel's rates, such as 'MCS 7' or '65 Mbit/s'.
    /// Stations take them in turn. Default: the highest.
    pub(super) rates: Option<At<Vec<Quantity<WifiRate>>>>,
    /// Largest number of frames in one aggregate, with 802.11n or ac. Default: 64.
    pub(super) aggregate: Option<At<Count<1, 64>>>,
    /// Number of packets that the access point takes out of its queue in
    /// advance, for all stations together, to form aggregates; with 802.11n or
    /// ac. Default: 64.
    pub(super) staging: Option<At<Count<1, 10_000>>>,
    /// Each station has its own queue at the access point, with the discipline
    /// under test, and the queues take turns by airtime. Default: false.
    pub(super) airtime_fairness: Option<bool>,
    /// Share of the frames that noise corrupts at random; they are sent again. Default: 0.
    pub(super) frame_error: Option<At<f64>>,
    /// The discipline of the downlink's queue, or of each of its queues: only
    /// around a gateway, where it is not under test. Default: fifo.
    pub(super) queue: Option<At<Named>>,
    /// Buffer of the downlink, or of each of its queues. Default: 300 packets.
    pub(super) buffer: Option<Text<Limit>>,
    /// Buffer of each station. Default: 300 packets.
    pub(super) station_buffer: Option<Text<Limit>>,
    /// Number of hosts. Default: as many as stations.
    pub(super) hosts: Option<Hosts>,
    /// Rate between hosts and router. Default: 100 Mbit/s.
    pub(super) wired_rate: Option<Text<Rate>>,
    /// Propagation delay between hosts and router. Default: 2 ms.
    pub(super) wired_delay: Option<Text<Span>>,
    /// Rate between router and access point. Default: 1 Gbit/s.
    pub(super) router_rate: Option<Text<Rate>>,
    /// A reply that is ready when a packet arrives is sent without back-off, as
    /// in ns-3. Default: false.
    pub(super) immediate_replies: Option<bool>,
}

/// A generation of 802.11.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(super) enum Standard {
    /// Also 802.11g without old stations.
    #[serde(rename = "802.11a")]
    A,
    #[serde(rename = "802.11n")]
    N,
    #[serde(rename = "802.11ac")]
    Ac,
}

/// A link between two nodes, which need no other declaration; it goes both ways
/// unless `one_way` is set. Several nodes at an end give one link for each
/// pair.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    /// Where it starts.
    pub(super) from: At<Names>,
    /// Where it leads.
    pub(super) to: At<Names>,
    /// Name in tables and files. Default: 'FROM > TO'.
    pub(super) name: Option<At<String>>,
    /// Capacity. Default: unlimited.
    pub(super) rate: Option<Capacity>,
    /// Propagation delay. Default: none.
    pub(super) delay: Option<Text<Span>>,
    /// Share of the packets that are lost at random on the way. Default: 0.
    pub(super) loss: Option<At<f64>>,
    /// The queue in front of it. Default: 'unbounded'.
    pub(super) queue: Option<At<Queue>>,
    /// Limit of the queue. Default unless the queue is unbounded: 300 packets.
    pub(super) buffer: Option<Quantity<Limit>>,
    /// There is no way back. Default: false.
    pub(super) one_way: Option<bool>,
    /// What differs on the way back. Capacity, delay and loss are otherwise the
    /// same; the queue is unbounded.
    pub(super) back: Option<At<Back>>,
}

/// The way back of a link.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Back {
    /// Name in tables and files. Default: 'TO > FROM'.
    pub(super) name: Option<At<String>>,
    /// Capacity. Default: the same as on the way out.
    pub(super) rate: Option<Capacity>,
    /// Propagation delay. Default: the same as on the way out.
    pub(super) delay: Option<Text<Span>>,
    /// Share of the packets that are lost on the way. Default: the same as on the way out.
    pub(super) loss: Option<At<f64>>,
    /// The queue in front of it. Default: 'unbounded'.
    pub(super) queue: Option<At<Queue>>,
    /// Limit of the queue. Default unless the queue is unbounded: 300 packets.
    pub(super) buffer: Option<Quantity<Limit>>,
}

/// How TCP behaves. Without a profile, the settings change the surrounding one.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Tcp {
    /// 'papers': NewReno as in the simulations of the papers. 'today': what a current
    /// Linux does by default. 'today-bbr': the same with BBR. 'l4s': the same with Prague.
    /// 'mix': CUBIC and BBR, as a census of servers has found them.
    pub(super) profile: Option<Profile>,
    /// Largest payload of a segment.
    pub(super) mss: Option<Quantity<Bytes>>,
    /// The SYN carries the maximum segment size option.
    pub(super) mss_option: Option<bool>,
    /// Initial congestion window, in segments.
    pub(super) initial_window: Option<Count<1, 1_000>>,
    /// So many lost SYNs leave the initial window as it is.
    pub(super) lost_syns: Option<Count<0, 100>>,
    /// Slow start threshold of a new connection. Default: unlimited.
    pub(super) initial_ssthresh: Option<Text<Bytes>>,
    /// Largest number of segments that one acknowledgement adds to the window in slow start.
    pub(super) slow_start_limit: Option<Count<1, 100>>,
    /// How slow start ends. Default: by HyStart for CUBIC, with a loss for the others.
    pub(super) slow_start: Option<Ending>,
    /// Largest window that a receiver advertises.
    pub(super) receive_window: Option<Quantity<Bytes>>,
    /// Retransmission timeout before the first round trip has been measured.
    pub(super) initial_rto: Option<Quantity<Span>>,
    /// Smallest retransmission timeout.
    pub(super) min_rto: Option<Quantity<Span>>,
    /// Largest retransmission timeout.
    pub(super) max_rto: Option<Quantity<Span>>,
    /// Smallest difference of round trips that the clock can measure.
    pub(super) clock_granularity: Option<Text<Span>>,
    /// RTTVAR is the largest deviation within a round trip and falls once per round trip,
    /// like in Linux.
    pub(super) rttvar_per_round: Option<bool>,
    /// The tick of the host, by which its timers fire like in Linux: those of
    /// retransmissions, tail loss probes, the reordering window and delayed acknowledgements;
    /// zero for exact ones.
    pub(super) timer_tick: Option<Text<Span>>,
    /// Acknowledge at once when this many segments have arrived; 1 acknowledges each.
    pub(super) delayed_ack_segments: Option<Count<1, 1_000>>,
    /// Acknowledge at the latest this long after the first of them.
    pub(super) delayed_ack_timeout: Option<Quantity<Span>>,
    /// Acknowledge the first data segment of a connection at once, like ns-3.
    pub(super) ack_first_segment: Option<bool>,
    /// Delay acknowledgements like Linux: not the first ones of a connection, nor that of
    /// the end of a write, and others for as long as segments have been apart.
    pub(super) quick_acks: Option<bool>,
    /// Send new data on the first two duplicate acknowledgements.
    pub(super) limited_transmit: Option<bool>,
    /// Time the handshake from the first SYN even if that was lost, like ns-3.
    pub(super) time_resent_syn: Option<bool>,
    /// Every acknowledgement of new data ends the back-off of the timeout, as
    /// in ns-3 and with timestamps.
    pub(super) any_ack_ends_backoff: Option<bool>,
    /// In what the recovery without SACK departs from the RFCs as in ns-3.37, for
    /// comparisons with it.
    pub(super) ns3: Option<Vec<Departure>>,
    /// Selective acknowledgements.
    pub(super) sack: Option<bool>,
    /// Loss detection by time, and tail loss probes; needs `sack`.
    pub(super) rack_tlp: Option<At<bool>>,
    /// Undo what a loss has cost when it proves to be none, like Linux: by timestamps, by
    /// D-SACK and by F-RTO; needs `sack`.
    pub(super) undo: Option<bool>,
    /// The algorithm that sets the congestion window.
    pub(super) congestion: Option<Congestion>,
    /// Pace algorithms that have no rate of their own, as Linux does on hosts with `fq`.
    pub(super) pacing: Option<bool>,
    /// Which share of the transfers has which algorithm, instead of `congestion`: weights,
    /// for example { cubic = 3, reno = 1 }.
    pub(super) mix: Option<At<BTreeMap<Congestion, Count<1, 1_000_000>>>>,
    /// Explicit congestion notification. Prague and DCTCP have it in any case.
    pub(super) ecn: Option<bool>,
    /// The FIN leaves in a segment of its own when all that was written could be sent at
    /// once, like where writing and closing are two calls.
    pub(super) separate_fin: Option<bool>,
    /// Segments carry the timestamps option: 12 bytes in each, which time what was sent
    /// again.
    pub(super) timestamps_option: Option<bool>,
    /// So many retransmissions of a SYN before giving up, besides the linear ones.
    pub(super) syn_retries: Option<Count<0, 100>>,
    /// How many timeouts of a SYN leave the timeout as it is before it doubles.
    pub(super) linear_syn_timeouts: Option<Count<0, 100>>,
    /// So many timeouts in a row without progress before giving up.
    pub(super) data_retries: Option<Count<0, 1_000>>,
}

/// A point in which ns-3.37's recovery departs from the RFCs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Departure {
    /// A smaller window in fast recovery.
    RecoveryWindow,
    /// Duplicates right at the recovery point start another recovery.
    RecoveryPoint,
    /// No growth by the acknowledgement that ends the repair after a timeout.
    RepairEnd,
}

/// How slow start ends.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(super) enum Ending {
    /// With a loss, or at the threshold.
    #[serde(rename = "classic")]
    Classic,
    /// When a round's acknowledgements take half a round trip, or round trips grow
    /// (Linux, CUBIC).
    #[serde(rename = "hystart")]
    HyStart,
    /// When round trips grow, after five slower rounds (RFC 9406).
    #[serde(rename = "hystart++")]
    HyStartPlusPlus,
}

/// A size law: exactly one of these.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
struct SizeTable {
    /// Whole segments, the probability of n is proportional to n^-exponent.
    zipf: Option<Zipf>,
    /// Bounded Pareto.
    pareto: Option<Pareto>,
    /// The natural logarithm of the size in bytes is normal.
    lognormal: Option<Lognormal>,
    /// Exponential with this mean.
    exponential: Option<Quantity<Bytes>>,
    /// As measured: a CSV file with the columns size_bytes and cumulative_probability.
    file: Option<At<String>>,
}

/// A bounded Zipf law.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Zipf {
    /// The exponent.
    pub(super) exponent: Positive,
    /// Fewest segments.
    pub(super) least: Segments,
    /// Most segments.
    pub(super) most: At<Segments>,
    /// Size of a segment.
    pub(super) segment: Quantity<Bytes>,
}

/// A bounded Pareto law.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Pareto {
    /// Tail exponent.
    pub(super) shape: Positive,
    /// Smallest size.
    pub(super) least: Quantity<Bytes>,
    /// Largest size.
    pub(super) most: Quantity<Bytes>,
}

/// A lognormal law.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Lognormal {
    /// Mean of the natural logarithm of the size in bytes.
    pub(super) log_mean: At<Positive>,
    /// Standard deviation of that logarithm.
    pub(super) log_deviation: At<Positive>,
}

/// How fast a link sends.
#[derive(Clone, Debug)]
pub(super) enum Capacity {
    /// At a constant rate.
    Rate(Rate),
    /// At the opportunities of a recorded trace.
    Trace(At<String>),
}

/// How large transfers are.
#[derive(Debug)]
pub(super) enum Sizes {
    /// All have this size.
    Constant(Bytes),
    /// Never at an end.
    Endless,
    /// By a law.
    Zipf(Zipf),
    /// By a law.
    Pareto(Pareto),
    /// By a law.
    Lognormal(Lognormal),
    /// By a law.
    Exponential(Quantity<Bytes>),
    /// As measured.
    File(At<String>),
}

/// What stands in front of a link.
#[derive(Debug)]
pub(super) enum Queue {
    /// The discipline under test.
    Tested,
    /// FIFO without a limit.
    Unbounded,
    /// Always this one.
    Fixed(Named),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TraceFile {
    /// A trace of delivery opportunities in the format of Mahimahi.
    trace: At<String>,
}

impl<'de> Deserialize<'de> for Capacity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Capacity, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Capacity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}, or {{ trace = \"FILE\" }}", Rate::EXPECTED)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Capacity, E> {
                Rate::read(text)
                    .map(Capacity::Rate)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Capacity, A::Error> {
                let table = TraceFile::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Capacity::Trace(table.trace))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Capacity {
    fn schema_name() -> Cow<'static, str> {
        "Capacity".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let rate = generator.subschema_for::<Text<Rate>>();
        let trace = generator.subschema_for::<TraceFile>();
        json_schema!({ "description": "A rate, or a recorded trace.", "anyOf": [rate, trace] })
    }
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Sizes, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Sizes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a size as '30 kB', 'endless', or a table with one of zipf, pareto, \
                     lognormal, exponential, file",
                )
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Sizes, E> {
                if text == "endless" {
                    return Ok(Sizes::Endless);
                }
                Bytes::read(text)
                    .filter(|size| size.0 > 0)
                    .map(Sizes::Constant)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Sizes, A::Error> {
                let table = SizeTable::deserialize(MapAccessDeserializer::new(map))?;
                let laws = [
                    table.zipf.map(Sizes::Zipf),
                    table.pareto.map(Sizes::Pareto),
                    table.lognormal.map(Sizes::Lognormal),
                    table.exponential.map(Sizes::Exponential),
                    table.file.map(Sizes::File),
                ];
                let mut laws = laws.into_iter().flatten();
                match (laws.next(), laws.next()) {
                    (Some(law), None) => Ok(law),
                    (None, _) => Err(de::Error::invalid_length(0, &self)),
                    (_, Some(_)) => Err(de::Error::invalid_length(2, &self)),
                }
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Sizes {
    fn schema_name() -> Cow<'static, str> {
        "Sizes".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let constant = generator.subschema_for::<Text<Bytes>>();
        let law = generator.subschema_for::<SizeTable>();
        json_schema!({
            "description": "One size, 'endless', or a law.",
            "anyOf": [constant, { "const": "endless" }, law],
        })
    }
}

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Queue, D::Error> {
        let named = Named::deserialize(deserializer)?;
        let word = named.name.as_ref().map_or("", |name| name.as_str());
        Ok(match word {
            "tested" => Queue::Tested,
            "unbounded" => Queue::Unbounded,
            _ => Queue::Fixed(named),
        })
    }
}

impl JsonSchema for Queue {
    fn schema_name() -> Cow<'static, str> {
        "Queue".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let discipline = generator.subschema_for::<Named>();
        json_schema!({
            "description": "'tested', 'unbounded', or a discipline that stays the same.",
            "anyOf": [{ "enum": ["tested", "unbounded"] }, discipline],
        })
    }
}
