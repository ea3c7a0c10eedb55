//! The values of a scenario file: quantities with their unit, counts with their
//! range, and what is chosen by name (`chosen.rs`), each with its place in the file.
//!
//! Reading a value checks it, so that the error has its place and no later code
//! has to check again. The forms that TOML alone cannot distinguish (a string
//! or a table) have visitors of their own: serde's untagged enums would lose
//! the place and report no more than 'did not match'.

mod chosen;

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, Range};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Unexpected, Visitor};
use tidegate_core::{Buffer, Bytes, Rate, Span};

pub(super) use self::chosen::{CodePoint, Congestion, Named, Names, Profile};

/// A value and its place, in bytes from the start of the file.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) place: Range<usize>,
}

impl<T> Deref for At<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<At<T>, D::Error> {
        let spanned = toml::Spanned::<T>::deserialize(deserializer)?;
        Ok(At { place: spanned.span(), value: spanned.into_inner() })
    }
}

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }
}

/// A quantity that is written as a string with its unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<T>(pub(super) T);

/// A [`Text`] and its place.
pub(super) type Quantity<T> = At<Text<T>>;

/// Quantities that can be written as [`Text`], and their ranges.
pub(super) trait InText: Sized {
    /// The correct values, in words.
    const EXPECTED: &'static str;
    /// The form of the text, as a regular expression for editors.
    const PATTERN: &'static str;
    fn read(text: &str) -> Option<Self>;
}

const MOST_RATE: Rate = Rate(1_000_000_000_000);
const MOST_SPAN: Span = Span::seconds(10_000_000);
const MOST_BYTES: Bytes = Bytes(1_000_000_000_000_000);

impl InText for Rate {
    const EXPECTED: &'static str = "a rate from 1 bit/s to 1 Tbit/s with its unit (bit/s, kbit/s, Mbit/s, Gbit/s), as '10 Mbit/s'";
    const PATTERN: &'static str = r"^\s*[0-9][0-9_.]*\s*([kMG]?bit/s|bps|[kMG]b/s)$";

    fn read(text: &str) -> Option<Rate> {
        text.parse().ok().filter(|rate| (Rate(1)..=MOST_RATE).contains(rate))
    }
}

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

impl InText for Span {
    const EXPECTED: &'static str =
        "a time of at most 10 000 000 s with its unit (ns, us, ms, s, min, h), as '20 ms'";
    const PATTERN: &'static str = r"^\s*[0-9][0-9_.]*\s*(ns|us|µs|ms|s|min|h)$";

    fn read(text: &str) -> Option<Span> {
        text.parse().ok().filter(|span| *span <= MOST_SPAN)
    }
}

impl InText for Bytes {
    const EXPECTED: &'static str =
        "a size of at most 1 PB with its unit (B, kB, MB, GB, KiB, MiB, GiB), as '30 kB'";
    const PATTERN: &'static str = r"^\s*[0-9][0-9_.]*\s*(B|bytes|[kMG]B|[KMG]iB)$";

    fn read(text: &str) -> Option<Bytes> {
        text.parse().ok().filter(|size| *size <= MOST_BYTES)
    }
}

impl InText for Buffer {
    const EXPECTED: &'static str =
        "a buffer from 1 to 4 294 967 295 packets or a size, as '300 packets' or '64 kB'";
    const PATTERN: &'static str = r"^\s*[0-9][0-9_.]*\s*(packets?|B|bytes|[kMG]B|[KMG]iB)$";

    fn read(text: &str) -> Option<Buffer> {
        text.parse().ok()
    }
}

impl<'de, T: InText> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<T>, D::Error> {
        struct Reader<T>(PhantomData<T>);

        impl<T: InText> Visitor<'_> for Reader<T> {
            type Value = Text<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::EXPECTED)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<T>, E> {
                T::read(text)
                    .map(Text)
                    .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_str(Reader(PhantomData))
    }
}

impl<T: InText> JsonSchema for Text<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": T::PATTERN })
    }
}

/// A whole number from `LEAST` to `MOST`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count<const LEAST: u32, const MOST: u32>(pub(super) u32);

impl<'de, const LEAST: u32, const MOST: u32> Deserialize<'de> for Count<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<const LEAST: u32, const MOST: u32>;

        impl<const LEAST: u32, const MOST: u32> Visitor<'_> for Reader<LEAST, MOST> {
            type Value = Count<LEAST, MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from {LEAST} to {MOST}")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
                u32::try_from(number)
                    .ok()
                    .filter(|number| (LEAST..=MOST).contains(number))
                    .map(Count)
                    .ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
            }
        }

        deserializer.deserialize_i64(Reader)
    }
}

impl<const LEAST: u32, const MOST: u32> JsonSchema for Count<LEAST, MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Count".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": LEAST, "maximum": MOST })
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
