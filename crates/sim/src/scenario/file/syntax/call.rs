//! Calls that adapt, as written in the file.

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_core::{Rate, Span};

use super::super::values::{At, CodePoint, Names, Quantity};

/// One direction of a video call that adapts to what the path carries, as browsers' do.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario::file) struct CallSource {
    /// Name in tables and files.
    pub(in crate::scenario::file) name: At<String>,
    /// The sender: one node.
    pub(in crate::scenario::file) from: At<Names>,
    /// The receiver: one node.
    pub(in crate::scenario::file) to: At<Names>,
    /// When it begins. Default: 0 s.
    pub(in crate::scenario::file) start: Option<Quantity<Span>>,
    /// When it ends. Default: never.
    pub(in crate::scenario::file) stop: Option<Quantity<Span>>,
    /// Its rate at first, without headers. Default: 300 kbit/s.
    pub(in crate::scenario::file) first: Option<Quantity<Rate>>,
    /// Its least rate, without headers. Default: 50 kbit/s.
    pub(in crate::scenario::file) least: Option<Quantity<Rate>>,
    /// Its most, without headers. Default: 2.5 Mbit/s.
    pub(in crate::scenario::file) most: Option<Quantity<Rate>>,
    /// A packet that takes longer is late. Default: none.
    pub(in crate::scenario::file) deadline: Option<Quantity<Span>>,
    /// Class of its packets, for disciplines with classes; 0 is ordinary.
    #[serde(default)]
    pub(in crate::scenario::file) class: u16,
    /// Codepoint of what `from` sends: EF, CS1, AF41, LE and so on, or a number.
    #[serde(default)]
    pub(in crate::scenario::file) dscp: CodePoint,
    /// Codepoint of the reports of `to`.
    #[serde(default)]
    pub(in crate::scenario::file) reply_dscp: CodePoint,
}
