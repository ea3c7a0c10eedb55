//! The values of a scenario file: quantities with their unit, counts with their
//! range, and what is chosen by name (`chosen.rs`), each with its place in the file.
//!
//! What other files have too is [`tidegate_files`]'s. Reading a value checks it, so that
//! the error has its place and no later code has to check again. The forms that TOML alone cannot distinguish (a string
//! or a table) have visitors of their own: serde's untagged enums would lose
//! the place and report no more than 'did not match'.

mod chosen;

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Unexpected, Visitor};
use tidegate_core::Rate;

pub(super) use tidegate_files::{At, Count, InText, Quantity, Text};

pub(super) use self::chosen::{CodePoint, Congestion, Named, Names, Profile};

/// The rate of a wireless station, as written in the file.
#[derive(Clone, Copy, Debug)]
pub(super) enum WifiRate {
    Rate(Rate),
    /// The number of a modulation and coding scheme.
    Mcs(u8),
}

impl InText for WifiRate {
    const EXPECTED: &'static str =
        "a data rate of 802.11, as '54 Mbit/s', or with 802.11n and ac 'MCS 0' to 'MCS 9'";
    const PATTERN: &'static str = r"^\s*([0-9][0-9_.]*\s*(Mbit/s|Mb/s)|MCS [0-9])$";

    fn read(text: &str) -> Option<WifiRate> {
        match text.trim_start().strip_prefix("MCS ") {
            Some(index) => index.parse().ok().filter(|index| *index <= 9).map(WifiRate::Mcs),
            None => text.parse().ok().map(WifiRate::Rate),
        }
    }
}

impl fmt::Display for WifiRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WifiRate::Rate(rate) => rate.fmt(f),
            WifiRate::Mcs(index) => write!(f, "MCS {index}"),
        }
    }
}

/// The width of a radio channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Megahertz(pub(super) u8);

impl InText for Megahertz {
    const EXPECTED: &'static str = "the width of a channel: '20 MHz', 40, 80 or 160";
    const PATTERN: &'static str = r"^\s*(20|40|80|160)\s*MHz$";

    fn read(text: &str) -> Option<Megahertz> {
        let number = text.trim().strip_suffix("MHz")?.trim_end();
        number.parse().ok().filter(|width| [20, 40, 80, 160].contains(width)).map(Megahertz)
    }
}

impl fmt::Display for Megahertz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MHz", self.0)
    }
}

/// A finite number above zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Positive(pub(super) f64);

impl<'de> Deserialize<'de> for Positive {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Positive, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = Positive;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a number above 0 and up to {}", Positive::MOST)
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Positive, E> {
                if number > 0.0 && number <= Positive::MOST {
                    Ok(Positive(number))
                } else {
                    Err(E::invalid_value(Unexpected::Float(number), &self))
                }
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Positive, E> {
                self.visit_f64(number as f64)
            }
        }

        deserializer.deserialize_f64(Reader)
    }
}

impl Positive {
    /// Beyond what any count or rate of a scenario means.
    const MOST: f64 = 1e9;
}

impl JsonSchema for Positive {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Positive".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "exclusiveMinimum": 0, "maximum": Positive::MOST })
    }
}

/// The number of seeds, or a list of them.
#[derive(Clone, Debug)]
pub(super) enum Seeds {
    Count(u32),
    List(Vec<At<i64>>),
}

impl Seeds {
    /// More runs of one discipline than this are a mistake.
    pub(super) const MOST: u32 = 10_000;
}

impl<'de> Deserialize<'de> for Seeds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Seeds, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Seeds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let most = Seeds::MOST;
                write!(f, "how many seeds, from 1 to {most}, or a list of them, as [1, 2, 3]")
            }

            fn visit_i64<E: de::Error>(self, count: i64) -> Result<Seeds, E> {
                u32::try_from(count)
                    .ok()
                    .filter(|_| count >= 1 && count <= i64::from(Seeds::MOST))
                    .map(Seeds::Count)
                    .ok_or_else(|| E::invalid_value(Unexpected::Signed(count), &self))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Seeds, A::Error> {
                Deserialize::deserialize(de::value::SeqAccessDeserializer::new(list))
                    .map(Seeds::List)
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Seeds {
    fn schema_name() -> Cow<'static, str> {
        "Seeds".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "integer", "minimum": 1, "maximum": Seeds::MOST },
            { "type": "array", "items": { "type": "integer", "minimum": 0 }, "minItems": 1,
              "uniqueItems": true },
        ] })
    }
}
