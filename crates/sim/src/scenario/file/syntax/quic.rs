//! Sources of transfers over QUIC, as written in the file.

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_core::{Bytes, Rate, Span};

use super::super::values::{At, CodePoint, Count, Names, Positive, Quantity, Text};
use super::{Sizes, Transfers};

/// Transfers over QUIC, each over a connection of its own. Exactly one of `load`,
/// `per_second`, `count` and `log` sets their number.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario::file) struct QuicSource {
    /// Name in tables and files.
    pub(in crate::scenario::file) name: At<String>,
    /// Senders of the data; each transfer has one of them at random.
    pub(in crate::scenario::file) from: At<Names>,
    /// Receivers of the data; each transfer has one of them at random.
    pub(in crate::scenario::file) to: At<Names>,
    /// When it begins. Default: 0 s.
    pub(in crate::scenario::file) start: Option<Quantity<Span>>,
    /// When it stops opening transfers. Default: never.
    pub(in crate::scenario::file) stop: Option<Quantity<Span>>,
    /// Transfers begin at random; together they amount to this rate on the
    /// wire, counted in full packets, without retransmissions.
    pub(in crate::scenario::file) load: Option<Quantity<Rate>>,
    /// Transfers begin at random, on average this many a second.
    pub(in crate::scenario::file) per_second: Option<At<Positive>>,
    /// This many transfers, all when the source starts.
    pub(in crate::scenario::file) count: Option<At<Transfers>>,
    /// With `count`: each begins at a random moment of this time after the source
    /// starts. Default: 0 s.
    pub(in crate::scenario::file) spread: Option<Quantity<Span>>,
    /// A CSV file with the columns start_s and size_bytes, or another recording:
    /// an HTTP log, page loads (HAR), a log of connections (Zeek, tcptrace) or a
    /// capture. Of the last two, a source with `request` takes the downloads,
    /// and one without it the uploads. The first transfer of the recording
    /// begins when the source starts.
    pub(in crate::scenario::file) log: Option<At<String>>,
    /// IP addresses and prefixes of the user's side of a capture in `log`.
    /// Default: found from the capture.
    #[serde(default)]
    pub(in crate::scenario::file) local: Vec<At<String>>,
    /// Sizes of the transfers; not with `log`.
    pub(in crate::scenario::file) sizes: Option<At<Sizes>>,
    /// The receiver opens the connection and sends a request of this size, as
    /// for a download. Default: the sender opens the connection, as for an
    /// upload.
    pub(in crate::scenario::file) request: Option<Text<Bytes>>,
    /// quinn's congestion controller. Default: cubic.
    pub(in crate::scenario::file) congestion: Option<Control>,
    /// Streams of a transfer, which share its size; with `request`, each has a request of
    /// that size. Default: 1.
    pub(in crate::scenario::file) streams: Option<Count<1, 100>>,
    /// Record the progress of each of its flows.
    #[serde(default)]
    pub(in crate::scenario::file) follow: bool,
    /// Class of its packets, for disciplines with classes; 0 is ordinary.
    #[serde(default)]
    pub(in crate::scenario::file) class: u16,
    /// Codepoint of what `from` sends: EF, CS1, AF41, LE and so on, or a number.
    #[serde(default)]
    pub(in crate::scenario::file) dscp: CodePoint,
    /// Codepoint of what `to` sends, requests and acknowledgements.
    #[serde(default)]
    pub(in crate::scenario::file) reply_dscp: CodePoint,
}

/// A congestion controller of quinn's.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::scenario::file) enum Control {
    /// NewReno, as in RFC 9002.
    Reno,
    /// CUBIC, without HyStart.
    Cubic,
    /// BBR, the first version, by its window alone.
    Bbr,
}
