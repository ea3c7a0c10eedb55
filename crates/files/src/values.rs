//! The values of files: quantities with their unit, counts with their range, each with
//! its place in the file.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::ops::{Deref, Range};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Unexpected, Visitor};
use tidegate_core::buffer::Limit;
use tidegate_core::contract::Envelope;
use tidegate_core::{Bytes, Rate, Span};

/// A value and its place, in bytes from the start of the file.
#[derive(Clone, Debug)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Where it is.
    pub place: Range<usize>,
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
pub struct Text<T>(pub T);

/// A [`Text`] and its place.
pub type Quantity<T> = At<Text<T>>;

/// Quantities that can be written as [`Text`], and their ranges.
pub trait InText: Sized {
    /// The correct values, in words.
    const EXPECTED: &'static str;
    /// The form of the text, as a regular expression for editors.
    const PATTERN: &'static str;
    /// The value of a text; `None` if it is not correct.
    fn read(text: &str) -> Option<Self>;
}

const MOST_RATE: Rate = Rate(1_000_000_000_000);
const MOST_SPAN: Span = Span::seconds(10_000_000);
const MOST_BYTES: Bytes = Bytes(1_000_000_000_000_000);

impl InText for Rate {
    const EXPECTED: &'static str = "a rate from 1 bit/s to 1 Tbit/s with its unit (bit/s, kbit/s, Mbit/s, Gbit/s), as '10 Mbit/s'";
    const PATTERN: &'static str =
        r"^\s*[0-9][0-9_.]*\s*([kMG]?bit/s|[kMG]?bps|[kMG]b/s|[kmgMG]bit)$";

    fn read(text: &str) -> Option<Rate> {
        text.parse().ok().filter(|rate| (Rate(1)..=MOST_RATE).contains(rate))
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

impl InText for Limit {
    const EXPECTED: &'static str = "a buffer from 1 to 4 294 967 295 packets, a size, or the \
        time in which the link sends it, at most 1 h: '300 packets', '64 kB', '100 ms'";
    const PATTERN: &'static str =
        r"^\s*[0-9][0-9_.]*\s*(packets?|B|bytes|[kMG]B|[KMG]iB|us|ms|s|min)$";

    fn read(text: &str) -> Option<Limit> {
        const MOST: Span = Span::seconds(3_600);
        text.parse().ok().filter(|limit| !matches!(limit, Limit::Time(time) if *time > MOST))
    }
}

impl InText for IpAddr {
    const EXPECTED: &'static str = "an IP address, as '192.0.2.7' or '2001:db8::7'";
    const PATTERN: &'static str = r"^[0-9A-Fa-f:.]+$";

    fn read(text: &str) -> Option<IpAddr> {
        // The form in which flows have their addresses.
        text.parse().ok().map(|address: IpAddr| address.to_canonical())
    }
}

impl InText for Envelope {
    const EXPECTED: &'static str = "an arrival curve of token buckets and staircases, as \
        '700 B + 1.2 Mbit/s, 45 kB + 400 kbit/s' or '30 kB every 33 ms'";
    const PATTERN: &'static str = r"^[^,]*[0-9][^,]*(\+| every )[^,]*[0-9][^,]*(,[^,]*[0-9][^,]*(\+| every )[^,]*[0-9][^,]*)*$";

    fn read(text: &str) -> Option<Envelope> {
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
pub struct Count<const LEAST: u32, const MOST: u32>(pub u32);

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

/// The value of a parameter, as text: the owner of the parameter reads it.
#[derive(Clone, Debug)]
pub struct Scalar(pub String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalar, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a number or a boolean")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar(text.into()))
            }

            fn visit_bool<E: de::Error>(self, is_on: bool) -> Result<Scalar, E> {
                Ok(Scalar(is_on.to_string()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}
