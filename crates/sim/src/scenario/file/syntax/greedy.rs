//! A source that keeps to an arrival curve and uses all of it, as written in the file.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor, value::MapAccessDeserializer};
use tidegate_core::contract::Envelope;
use tidegate_core::{Bytes, Span};

use super::super::values::{At, CodePoint, InText, Names, Quantity, Text};

/// UDP datagrams, as many and as early as an arrival curve allows, in bursts (`BE appendix B`).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario::file) struct GreedySource {
    /// Name in tables and files.
    pub(in crate::scenario::file) name: At<String>,
    /// The sender.
    pub(in crate::scenario::file) from: At<Names>,
    /// The receiver.
    pub(in crate::scenario::file) to: At<Names>,
    /// When its first burst begins. Default: 0 s.
    pub(in crate::scenario::file) start: Option<Quantity<Span>>,
    /// When it ends. Default: never.
    pub(in crate::scenario::file) stop: Option<Quantity<Span>>,
    /// What it may send in any time: the minimum of token buckets,
    /// `SIZE + RATE`, and staircases, `SIZE every TIME`, separated by commas.
    pub(in crate::scenario::file) curve: Quantity<Envelope>,
    /// Size of each datagram on the wire, including headers.
    pub(in crate::scenario::file) packet: At<PacketLength>,
    /// Duration of a burst; together with `spacing`. Default: it always sends.
    pub(in crate::scenario::file) burst: Option<At<Lasting>>,
    /// Time from the end of a burst to the start of the next, in which the
    /// curve's allowance recovers.
    pub(in crate::scenario::file) spacing: Option<At<Lasting>>,
    /// Datagrams that take longer than this from end to end are late, and so
    /// are lost ones. Default: no deadline.
    pub(in crate::scenario::file) deadline: Option<Quantity<Span>>,
    /// Class of its packets, for disciplines with classes; 0 is ordinary.
    #[serde(default)]
    pub(in crate::scenario::file) class: u16,
    /// Codepoint of its packets: EF, CS1, AF41, LE and so on, or a number.
    #[serde(default)]
    pub(in crate::scenario::file) dscp: CodePoint,
}

/// Sizes of datagrams.
#[derive(Debug)]
pub(in crate::scenario::file) enum PacketLength {
    /// All have this size.
    Constant(Bytes),
    /// By a law.
    Normal(NormalLength),
}

/// A normal law of sizes, rounded to whole bytes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario::file) struct NormalLength {
    /// Mean, before sizes are limited to `least` and `most`.
    pub(in crate::scenario::file) mean: Quantity<Bytes>,
    /// Standard deviation, before that limitation.
    pub(in crate::scenario::file) deviation: Quantity<Bytes>,
    /// Smallest size. Default: 40 B.
    pub(in crate::scenario::file) least: Option<Quantity<Bytes>>,
    /// Largest size. Default: 1536 B, or the size that the curve allows at once if that is less.
    pub(in crate::scenario::file) most: Option<Quantity<Bytes>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LengthTable {
    /// Normal, rounded to whole bytes.
    normal: NormalLength,
}

/// How long something lasts.
#[derive(Debug)]
pub(in crate::scenario::file) enum Lasting {
    /// Always the same.
    Constant(Span),
    /// By a law.
    Uniform(UniformTime),
    /// By a law.
    Normal(NormalTime),
}

/// A uniform law of times.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario::file) struct UniformTime {
    /// Shortest time.
    pub(in crate::scenario::file) least: Text<Span>,
    /// Upper limit; all times are shorter than this.
    pub(in crate::scenario::file) most: Quantity<Span>,
}

/// A normal law of times; negative values become zero.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario::file) struct NormalTime {
    /// Mean, before that limitation.
    pub(in crate::scenario::file) mean: Quantity<Span>,
    /// Standard deviation, before that limitation.
    pub(in crate::scenario::file) deviation: Text<Span>,
}

/// A law of times: exactly one of these.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
struct LastingTable {
    /// All times of a range are equally likely.
    uniform: Option<UniformTime>,
    /// Normal; negative values become zero.
    normal: Option<NormalTime>,
}

impl<'de> Deserialize<'de> for PacketLength {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PacketLength, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = PacketLength;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size as '200 B', or a table with normal")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<PacketLength, E> {
                Bytes::read(text)
                    .map(PacketLength::Constant)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PacketLength, A::Error> {
                let table = LengthTable::deserialize(MapAccessDeserializer::new(map))?;
                Ok(PacketLength::Normal(table.normal))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for PacketLength {
    fn schema_name() -> Cow<'static, str> {
        "PacketLength".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let constant = generator.subschema_for::<Text<Bytes>>();
        let law = generator.subschema_for::<LengthTable>();
        json_schema!({ "description": "One size, or a law.", "anyOf": [constant, law] })
    }
}

impl<'de> Deserialize<'de> for Lasting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Lasting, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Lasting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time as '20 ms', or a table with one of uniform, normal")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Lasting, E> {
                Span::read(text)
                    .map(Lasting::Constant)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Lasting, A::Error> {
                let table = LastingTable::deserialize(MapAccessDeserializer::new(map))?;
                match (table.uniform, table.normal) {
                    (Some(law), None) => Ok(Lasting::Uniform(law)),
                    (None, Some(law)) => Ok(Lasting::Normal(law)),
                    (None, None) => Err(de::Error::invalid_length(0, &self)),
                    (Some(_), Some(_)) => Err(de::Error::invalid_length(2, &self)),
                }
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Lasting {
    fn schema_name() -> Cow<'static, str> {
        "Lasting".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let constant = generator.subschema_for::<Text<Span>>();
        let law = generator.subschema_for::<LastingTable>();
        json_schema!({ "description": "One time, or a law.", "anyOf": [constant, law] })
    }
}
