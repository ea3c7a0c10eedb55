//! Sources of pages, as written in the file.

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_core::{Bytes, Rate, Span};

use super::super::values::{At, CodePoint, Count, Names, Quantity, Text};
use super::{Sizes, Tcp};

/// Pages, as browsers load them. Exactly one of `load`, `every` and `pause` says how
/// often each user asks for one; exactly one of `recorded` and `page_table` says what
/// there is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario::file) struct PageSource {
    /// Name in tables and files.
    pub(in crate::scenario::file) name: At<String>,
    /// Servers; each host of a page is one of them, taken at random.
    pub(in crate::scenario::file) from: At<Names>,
    /// Users, each with a browser.
    pub(in crate::scenario::file) to: At<Names>,
    /// When it begins. Default: 0 s.
    pub(in crate::scenario::file) start: Option<Quantity<Span>>,
    /// When users stop asking for pages. Default: never.
    pub(in crate::scenario::file) stop: Option<Quantity<Span>>,
    /// Pages begin at random, whether or not earlier ones are complete; those of all
    /// users together amount to this rate on the wire, counted in full packets, without
    /// retransmissions and handshakes.
    pub(in crate::scenario::file) load: Option<Quantity<Rate>>,
    /// Mean time between the starts of two pages of a user, whether or not the first is
    /// complete.
    pub(in crate::scenario::file) every: Option<Quantity<Span>>,
    /// Mean time from the end of a page to the user's next one.
    pub(in crate::scenario::file) pause: Option<Quantity<Span>>,
    /// Pages as a browser recorded them: HTTP Archives.
    pub(in crate::scenario::file) recorded: Option<At<Vec<At<String>>>>,
    /// Pages in short: a CSV file with objects, body_bytes and hosts.
    pub(in crate::scenario::file) page_table: Option<At<String>>,
    /// Sizes of the objects of a `page_table`, which are scaled to each page's bytes.
    pub(in crate::scenario::file) sizes: Option<At<Sizes>>,
    /// Over which connections objects come. Default: http2.
    pub(in crate::scenario::file) protocol: Option<At<Protocol>>,
    /// The order of the frames of a connection with several responses. Default:
    /// round-robin.
    pub(in crate::scenario::file) order: Option<Order>,
    /// Round trips of TLS before the first request of a connection: 1 with TLS 1.3, 2
    /// with TLS 1.2, 0 without TLS. Default: 1.
    pub(in crate::scenario::file) tls: Option<Count<0, 2>>,
    /// How long a connection without a request stays open. Default: 75 s.
    pub(in crate::scenario::file) keep_alive: Option<Text<Span>>,
    /// Size of a request where no recording says it. Default: 400 B.
    pub(in crate::scenario::file) request: Option<Text<Bytes>>,
    /// Differences from the scenario's TCP.
    #[serde(default)]
    pub(in crate::scenario::file) tcp: Tcp,
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

/// Over which connections objects come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub(in crate::scenario::file) enum Protocol {
    /// A connection for each response, six to a host at once.
    #[serde(rename = "http1.0")]
    Http10,
    /// Connections that stay open, six to a host, with one response at a time each.
    #[serde(rename = "http1.1")]
    Http11,
    /// One connection to a host, with all responses.
    #[serde(rename = "http2")]
    Http2,
    /// One connection of QUIC to a host, with a stream for each response.
    #[serde(rename = "http3")]
    Http3,
    /// For each object what carried it in the recording.
    #[serde(rename = "recorded")]
    Recorded,
}

/// In which order a server sends the frames of several responses.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::scenario::file) enum Order {
    /// A frame of each response in turn.
    RoundRobin,
    /// The most urgent response first, and of equally urgent ones the oldest (RFC 9218).
    Priority,
}
