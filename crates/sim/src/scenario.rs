//! What is to be simulated, as types that cannot be wrong.
//!
//! A [`Scenario`] is read from TOML by [`file`](mod@file) (which checks everything and
//! names file, line and expectation), or put together in code. Whoever holds
//! one can run it: names are resolved to indices, units to types, sizes and
//! traces are loaded.

mod choice;
mod dns;
pub mod file;
pub(crate) mod layout;
mod measured;
mod pages;
mod quic;
mod shaper;
pub(crate) mod sizes;
mod traffic;
mod video;

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_core::contract::Envelope;
use tidegate_core::discipline::Discipline;
use tidegate_core::entry::{Entry, Place};
use tidegate_core::setting::Settings;
use tidegate_core::{Buffer, Bytes, Dscp, Rate, Span, Time};

use crate::tcp::TcpConfig;
use crate::trace::delivery::DeliveryTrace;
use crate::wlan::Modulation;
use crate::wlan::aggregation::Aggregation;

pub use choice::{ChoiceError, FasterLink};
pub use dns::DnsProfile;
pub use layout::WirelessCell;
pub use measured::{Observation, Observed, Spread};
pub use pages::{FrameOrder, PageProfile, Protocol, Visits};
pub use quic::{QuicControl, QuicProfile};
pub use shaper::{Shaper, Sharing};
pub use sizes::SizeLaw;
pub use tidegate_files::nearest;
pub use traffic::{MOST_OPEN, MOST_OPEN_QUIC, TrafficKind, short};
pub use video::VideoProfile;

/// A link, its traffic, and the disciplines to be tried on it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// One line for the head of the report.
    pub title: String,
    /// A paragraph on what it shows; may be empty.
    pub description: String,
    /// How long to simulate.
    pub duration: Span,
    /// Flows that start before this are simulated but not reported.
    pub warm_up: Span,
    /// One run for each seed and discipline.
    pub seeds: Vec<u64>,
    /// Time between two samples of the links and of followed flows.
    pub sample_every: Span,
    /// Upper bounds of the size classes, ascending; one more class takes the rest.
    pub size_classes: Vec<Bytes>,
    /// Flows of at most this size are called short.
    pub short_flow: Bytes,
    /// Flows of at least this size are called long.
    pub long_flow: Bytes,
    /// What to try on the tested links.
    pub disciplines: Vec<DisciplineChoice>,
    /// Names of the nodes; a [`NodeId`] is a place in this list.
    pub nodes: Vec<String>,
    /// The links, each in one direction.
    pub links: Vec<LinkSpec>,
    /// The sources of traffic.
    pub traffic: Vec<TrafficSpec>,
    /// Pairs of nodes between which other programs talk, both ways.
    pub talks: Vec<(NodeId, NodeId)>,
    /// What was measured on this link, to be shown beside the results.
    pub measured: Vec<Observation>,
}

impl Scenario {
    /// Bounds of the size classes where nothing else is said.
    pub const SIZE_CLASSES: [Bytes; 3] = [Bytes(10_000), Bytes(100_000), Bytes(1_000_000)];
    /// The size of the largest short flows where nothing else is said.
    pub const SHORT_FLOW: Bytes = Bytes(30_000);
    /// The size of the smallest long flows where nothing else is said.
    pub const LONG_FLOW: Bytes = Bytes(1_000_000);

    /// Parts into which a recording is cut: enough for an interval of their mean.
    pub const PARTS: u64 = 10;
    /// The shortest of them. Queues are full and empty again within seconds, so that one part
    /// says little of the next.
    pub const LEAST_PART: Span = Span::seconds(2);

    /// The length of the parts of what is measured that stand for seeds; `None` where more
    /// seeds can be had, because not all traffic is recorded, and for short recordings.
    #[must_use]
    pub fn part(&self) -> Option<Span> {
        let part = Span(self.duration.0.saturating_sub(self.warm_up.0) / Self::PARTS);
        let is_cut = self.seeds.len() == 1
            && !self.traffic.is_empty()
            && self.traffic.iter().all(|source| source.kind.has_recorded_arrivals())
            && part >= Self::LEAST_PART;
        is_cut.then_some(part)
    }

    /// The pairs of nodes between which packets go, each pair in both directions.
    #[must_use]
    pub fn pairs(&self) -> BTreeSet<(NodeId, NodeId)> {
        let mut pairs = BTreeSet::new();
        let mut both_ways = |from: &[NodeId], to: &[NodeId]| {
            let forth = from.iter().flat_map(|from| to.iter().map(move |to| (*from, *to)));
            pairs.extend(forth.flat_map(|(from, to)| [(from, to), (to, from)]));
        };
        for source in &self.traffic {
            let (from, to) = source.kind.ends();
            both_ways(from, to);
        }
        self.talks.iter().for_each(|(from, to)| both_ways(&[*from], &[*to]));
        pairs
    }
}

/// A node: its place in [`Scenario::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u16);

impl NodeId {
    /// Its IPv4 address: 10.0.0.0 and its number.
    pub(crate) fn address(self) -> [u8; 4] {
        let [high, low] = self.0.to_be_bytes();
        [10, 0, high, low]
    }
}

/// A discipline with its settings, as one of the candidates of a comparison.
#[derive(Clone, Debug)]
pub struct DisciplineChoice {
    /// What it is called in tables and files: the name, or what the user chose
    /// to tell two settings of one discipline apart.
    pub label: String,
    /// The discipline.
    pub entry: &'static Entry,
    /// Its parameters.
    pub settings: Settings,
}

impl DisciplineChoice {
    /// A discipline under its own name, with all parameters at their defaults.
    ///
    /// # Panics
    /// When a default is not valid, which a test of the registry excludes.
    #[must_use]
    pub fn with_defaults(entry: &'static Entry) -> DisciplineChoice {
        let settings = entry.settings(&[]).expect("defaults are valid");
        DisciplineChoice { label: entry.name.into(), entry, settings }
    }

    /// The discipline, made for a place.
    pub(crate) fn build(&self, place: Place, seed: u64) -> Box<dyn Discipline> {
        (self.entry.build)(&self.settings, place, seed)
    }
}

/// A link from one node to another.
#[derive(Clone, Debug)]
pub struct LinkSpec {
    /// Name in tables and files.
    pub name: String,
    /// Where it starts; its queue stands here.
    pub from: NodeId,
    /// Where it leads.
    pub to: NodeId,
    /// How fast it sends.
    pub capacity: Capacity,
    /// Propagation delay.
    pub delay: Span,
    /// The share of packets that are lost on the way, at random.
    pub loss: f64,
    /// What stands in front of it.
    pub queue: QueueSpec,
}

/// How fast a link sends.
#[derive(Clone, Debug)]
pub enum Capacity {
    /// Without any limit: the link only delays.
    Unlimited,
    /// At a constant rate.
    Fixed(Rate),
    /// At the opportunities of a recorded trace.
    Trace(Arc<DeliveryTrace>),
    /// As a station of an 802.11 cell; the link leads to the access point.
    Uplink(Station),
    /// As the access point of an 802.11 cell. The link leads to a node that stands
    /// for the medium, from which a link without limits leads on to each station; or,
    /// with airtime fairness, to one station, in the order of their own links.
    Downlink(AccessPoint),
}

impl Capacity {
    /// The rate in bits per second, on average if it varies; `None` without any
    /// limit. On a wireless link it is the data rate, a good part of which goes
    /// into headers, gaps and other senders.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        match self {
            Capacity::Unlimited => None,
            Capacity::Fixed(rate) => Some(*rate),
            Capacity::Trace(trace) => Some(trace.mean_rate()),
            Capacity::Uplink(station) => Some(station.modulation.rate()),
            Capacity::Downlink(access_point) => Some(access_point.fastest.rate()),
        }
    }
}

/// The access point of an 802.11 cell. It sends to each station at that one's rate.
#[derive(Clone, Copy, Debug)]
pub struct AccessPoint {
    /// How data are sent to the fastest station that the link leads to.
    pub fastest: Modulation,
    /// Who replies at once need not back off:
    /// [`Timing::immediate_replies`](crate::wlan::Timing::immediate_replies).
    pub immediate_replies: bool,
    /// What goes into aggregates, both ways; `None` in a cell of 802.11a.
    pub aggregation: Option<Aggregation>,
    /// Each station has its own link from the access point, and these take turns by
    /// airtime.
    pub airtime_fairness: bool,
}

/// A station of an 802.11 cell. What is said of it is true in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Station {
    /// How its data are sent.
    pub modulation: Modulation,
    /// The share of transmissions that noise spoils; of frames in aggregates.
    pub frame_error: f64,
}

/// The queue in front of a link.
#[derive(Clone, Debug)]
pub enum QueueSpec {
    /// The discipline under test, with this buffer: each run puts another one here.
    Tested(Buffer),
    /// The same discipline in every run.
    Fixed(DisciplineChoice, Buffer),
    /// One that holds packets back to a rate of its own.
    Shaped(Shaper),
    /// FIFO without a limit.
    Unbounded,
}

/// A source of traffic.
#[derive(Clone, Debug)]
pub struct TrafficSpec {
    /// Name in tables and files.
    pub name: String,
    /// When it begins.
    pub start: Time,
    /// When it opens nothing new any more.
    pub stop: Time,
    /// The class of its packets: 0 is ordinary, others have priority under
    /// disciplines that know classes.
    pub class: u16,
    /// The codepoints of its packets.
    pub marking: Marking,
    /// Datagrams that take longer from end to end than this are late, and so are
    /// lost ones; `None` when nobody waits for them. Not used by transfers.
    pub deadline: Option<Span>,
    /// What it does.
    pub kind: TrafficKind,
}

/// What programs write into the IP header of all that they send, as Linux has it with
/// `IP_TOS`: each end for its own socket. An end does not take over what it receives,
/// which is Linux's default too (`tcp_reflect_tos`). Packets of a capture keep their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marking {
    /// In packets of the senders of the traffic, whichever end opens the connection.
    pub sender: Dscp,
    /// In what the receivers send: acknowledgements and requests.
    pub receiver: Dscp,
}

/// When a source at a constant rate is off, and when on.
#[derive(Clone, Copy, Debug)]
pub struct Pauses {
    /// The duration of each pause; the first one is at the start.
    pub off: Span,
    /// The duration of each sending period.
    pub on: Span,
}

/// How a TCP transfer is made.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Senders of the data; each transfer takes one, at random unless its
    /// arrivals say otherwise.
    pub from: Vec<NodeId>,
    /// Receivers of the data; each transfer takes one likewise.
    pub to: Vec<NodeId>,
    /// Which end opens the connection.
    pub opened_by: Opener,
    /// The behaviour of both ends.
    pub tcp: Arc<TcpConfig>,
    /// Record the progress of its flows over time.
    pub follow: bool,
}

/// Which end opens the connection of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opener {
    /// The sender of the data, as an upload does.
    Sender,
    /// The receiver, which first sends a request of this size, as a download does.
    Receiver {
        /// Size of the request.
        request: Bytes,
    },
}

/// When transfers begin.
#[derive(Clone, Debug)]
pub enum Arrivals {
    /// At random, so many a second on average.
    Poisson {
        /// Mean number a second.
        per_second: f64,
    },
    /// So many at once, when the source starts; ends take turns.
    AtStart {
        /// How many.
        count: u32,
    },
    /// So many, each at a random moment of a time that begins when the source starts; ends
    /// take turns.
    Within {
        /// How many.
        count: u32,
        /// The time.
        within: Span,
    },
    /// At the times of a log, each with its own size; the size law is not used.
    Log(Arc<Vec<(Time, Bytes)>>),
}

/// Structure of Web sessions; all counts and times are exponential with these means.
#[derive(Clone, Debug)]
pub struct WebProfile {
    /// Between the starts of two sessions.
    pub between_sessions: Span,
    /// Pages in a session.
    pub pages: f64,
    /// Between the starts of two pages of a session.
    pub between_pages: Span,
    /// Objects on a page.
    pub objects: f64,
    /// Between the starts of two objects of a page.
    pub between_objects: Span,
    /// Size of an object.
    pub sizes: SizeLaw,
}

/// The rates of a call that adapts, without headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallRates {
    /// At first.
    pub first: Rate,
    /// At least.
    pub least: Rate,
    /// At most.
    pub most: Rate,
}

/// How the frames of a recorded stream are sent.
#[derive(Clone, Copy, Debug)]
pub struct FrameSending {
    /// Frames are cut into packets of at most this size on the wire; `None` when
    /// each frame is a packet, with its headers.
    pub packet: Option<Bytes>,
    /// The packets of a frame follow each other at this rate; `None` at once.
    pub rate: Option<Rate>,
    /// Whether it begins again at the end.
    pub repeat: bool,
}

/// What a greedy source sends, and when (`BE appendix B`).
#[derive(Clone, Debug)]
pub struct GreedyProfile {
    /// What it may send: the arrival curve that it keeps to.
    pub envelope: Envelope,
    /// Sizes of its packets on the wire.
    pub packet: PacketLaw,
    /// When it sends; `None` always.
    pub bursts: Option<Bursts>,
}

/// How large the packets of a greedy source are.
#[derive(Clone, Copy, Debug)]
pub enum PacketLaw {
    /// All alike.
    Constant(Bytes),
    /// Normal, rounded to whole bytes; what is below `least` or above `most`
    /// becomes `least` or `most`.
    Normal {
        /// Mean before that.
        mean: Bytes,
        /// Standard deviation before that.
        deviation: Bytes,
        /// Smallest packet.
        least: Bytes,
        /// Largest packet.
        most: Bytes,
    },
}

/// Times in which a source sends, with pauses between them.
#[derive(Clone, Copy, Debug)]
pub struct Bursts {
    /// How long a burst lasts.
    pub length: TimeLaw,
    /// From the end of a burst to the start of the next.
    pub spacing: TimeLaw,
}

/// How long something lasts.
#[derive(Clone, Copy, Debug)]
pub enum TimeLaw {
    /// Always as long.
    Constant(Span),
    /// Anything from `least` to just under `most`.
    Uniform {
        /// Shortest.
        least: Span,
        /// Just more than the longest.
        most: Span,
    },
    /// Normal; what is negative becomes zero.
    Normal {
        /// Mean before that.
        mean: Span,
        /// Standard deviation before that.
        deviation: Span,
    },
}
