//! Lookups of names, as written in the file.

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_core::{Bytes, Span};

use super::super::values::{At, CodePoint, Count, Names, Positive, Quantity};
use super::Sizes;

/// Lookups of names that begin at random, from hosts to recursive resolvers over UDP. Each has
/// a source port of its own.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario::file) struct DnsSource {
    /// Name in tables and files.
    pub(in crate::scenario::file) name: At<String>,
    /// Hosts that ask; each lookup has one of them at random.
    pub(in crate::scenario::file) from: At<Names>,
    /// Resolvers; each lookup asks one of them, taken at random.
    pub(in crate::scenario::file) to: At<Names>,
    /// When it begins. Default: 0 s.
    pub(in crate::scenario::file) start: Option<Quantity<Span>>,
    /// When it stops beginning lookups. Default: never.
    pub(in crate::scenario::file) stop: Option<Quantity<Span>>,
    /// Lookups begin at random, on average this many a second, all hosts together.
    pub(in crate::scenario::file) per_second: At<Positive>,
    /// Size of a query on the wire, including headers. Default: 67 B.
    pub(in crate::scenario::file) query: Option<Quantity<Bytes>>,
    /// Sizes of answers on the wire, including headers, up to 1260 B. Default: lognormal, 142 B
    /// on average.
    pub(in crate::scenario::file) answer: Option<At<Sizes>>,
    /// How long an attempt waits for an answer, up to 30 s. Default: 5 s.
    pub(in crate::scenario::file) timeout: Option<Quantity<Span>>,
    /// How often a host asks before it gives up. Default: 2.
    pub(in crate::scenario::file) attempts: Option<Count<1, 5>>,
    /// Class of its packets, for disciplines with classes; 0 is ordinary.
    #[serde(default)]
    pub(in crate::scenario::file) class: u16,
    /// Codepoint of queries: EF, CS1, AF41, LE and so on, or a number.
    #[serde(default)]
    pub(in crate::scenario::file) dscp: CodePoint,
    /// Codepoint of answers.
    #[serde(default)]
    pub(in crate::scenario::file) reply_dscp: CodePoint,
}
