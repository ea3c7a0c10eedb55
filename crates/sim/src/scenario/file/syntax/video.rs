//! Sources of video, as written in the file.

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_core::{Bytes, Rate, Span};

use super::super::values::{At, CodePoint, Count, Names, Quantity, Text};
use super::Tcp;

/// Video in segments (DASH, HLS): each viewer's player chooses a quality for each segment.
/// Exactly one of `movie` and `qualities` says what there is to watch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario::file) struct VideoSource {
    /// Name in tables and files.
    pub(in crate::scenario::file) name: At<String>,
    /// Servers; each viewer has one of them, taken at random.
    pub(in crate::scenario::file) from: At<Names>,
    /// Viewers, each with a player.
    pub(in crate::scenario::file) to: At<Names>,
    /// When it begins; each viewer begins within a segment's length after it. Default: 0 s.
    pub(in crate::scenario::file) start: Option<Quantity<Span>>,
    /// When viewers stop. Default: never.
    pub(in crate::scenario::file) stop: Option<Quantity<Span>>,
    /// The sizes of the segments in each quality: a JSON file with segment_duration_ms,
    /// bitrates_kbps and segment_sizes_bits.
    pub(in crate::scenario::file) movie: Option<At<String>>,
    /// Alternatively, the rates of the qualities; all segments of a quality have one size.
    pub(in crate::scenario::file) qualities: Option<At<Vec<Text<Rate>>>>,
    /// With `qualities`: how long a segment plays. Default: 4 s.
    pub(in crate::scenario::file) segment: Option<Quantity<Span>>,
    /// How much a player holds in advance. Default: 25 s.
    pub(in crate::scenario::file) buffer: Option<Quantity<Span>>,
    /// How a player chooses: by its buffer or by the rate of late. Default: bola.
    pub(in crate::scenario::file) choice: Option<VideoChoice>,
    /// Round trips of TLS before the first request of a connection: 1 with TLS 1.3, 2
    /// with TLS 1.2, 0 without TLS. Default: 1.
    pub(in crate::scenario::file) tls: Option<Count<0, 2>>,
    /// Size of a request. Default: 400 B.
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

/// How a player chooses the quality of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::scenario::file) enum VideoChoice {
    /// By its buffer.
    Bola,
    /// By the rate at which segments came lately.
    Rate,
}
