//! Units as types: integer time, sizes and rates.
//!
//! All arithmetic is on integers, so that a run gives the same bits on every
//! machine. In text (scenario files, command line, reports) a value carries its
//! unit, and the parsers here are the only place that reads them:
//!
//! ```
//! use tidegate_core::{Bytes, Rate, Span};
//!
//! assert_eq!("10 Mbit/s".parse(), Ok(Rate(10_000_000)));
//! assert_eq!("1.5 ms".parse(), Ok(Span(1_500_000)));
//! assert_eq!("30 kB".parse(), Ok(Bytes(30_000)));
//! assert_eq!(Rate(10_000_000).transmission(Bytes(1_500)), Span(1_200_000));
//! assert!("10".parse::<Rate>().unwrap_err().to_string().contains("bit/s"));
//! ```

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use std::str::FromStr;

/// Nanoseconds in one second.
pub const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A point in time: nanoseconds since the start of the run. Good for 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

/// A size in bytes. In text: `B`, `kB`, `MB`, `GB` (powers of 1 000) and `KiB`, `MiB`, `GiB`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A rate in bits per second. In text: `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s`, or as
/// others write them: `Mb/s`, `Mbps`, `Mbit`, `mbit`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than any event: 584 years.
    pub const FAR_FUTURE: Time = Time(u64::MAX);

    /// The span from `earlier` to `self`; zero if `earlier` is in fact later.
    #[must_use]
    pub fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Seconds since the start, for people and files.
    #[must_use]
    pub fn as_seconds(self) -> f64 {
        Span(self.0).as_seconds()
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// A whole number of seconds.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Span {
        Span(seconds.saturating_mul(NANOS_PER_SECOND))
    }

    /// A whole number of milliseconds.
    #[must_use]
    pub const fn millis(millis: u64) -> Span {
        Span(millis.saturating_mul(1_000_000))
    }

    /// A whole number of microseconds.
    #[must_use]
    pub const fn micros(micros: u64) -> Span {
        Span(micros.saturating_mul(1_000))
    }

    /// The nearest nanosecond to `seconds`; negative values and NaN give zero.
    #[must_use]
    pub fn from_seconds(seconds: f64) -> Span {
        // `as` saturates and maps NaN to zero.
        Span((seconds * NANOS_PER_SECOND as f64).round() as u64)
    }

    /// The length in seconds, for people and files.
    #[must_use]
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / NANOS_PER_SECOND as f64
    }
}

impl Bytes {
    /// Nothing.
    pub const ZERO: Bytes = Bytes(0);
}

impl Rate {
    /// The time that a link of this rate takes to put `size` on the wire, rounded
    /// up to a whole nanosecond. A rate of zero takes for ever.
    #[must_use]
    pub fn transmission(self, size: Bytes) -> Span {
        if self.0 == 0 {
            return Span(u64::MAX);
        }
        // 2^64 / (8 * 10^9) is 2.3 GB: every packet takes the 64-bit division,
        // which costs a third of the 128-bit one.
        match size.0.checked_mul(8 * NANOS_PER_SECOND) {
            Some(bit_nanos) => Span(bit_nanos.div_ceil(self.0)),
            None => {
                let wide = u128::from(size.0) * u128::from(8 * NANOS_PER_SECOND);
                Span(u64::try_from(wide.div_ceil(u128::from(self.0))).unwrap_or(u64::MAX))
            }
        }
    }

    /// What the link carries in `span`, rounded down.
    #[must_use]
    pub fn volume(self, span: Span) -> Bytes {
        let bits = u128::from(self.0) * u128::from(span.0) / u128::from(NANOS_PER_SECOND);
        Bytes(u64::try_from(bits / 8).unwrap_or(u64::MAX))
    }
}

// Sums saturate: at the end of time an event simply never happens, and a counter
// that stays at its limit is better than one that starts again.
impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

macro_rules! quantity {
    ($($unit:ident),*) => {$(
        impl Add for $unit {
            type Output = $unit;
            fn add(self, other: $unit) -> $unit {
                $unit(self.0.saturating_add(other.0))
            }
        }
        impl AddAssign for $unit {
            fn add_assign(&mut self, other: $unit) {
                *self = *self + other;
            }
        }
        impl Sub for $unit {
            type Output = $unit;
            fn sub(self, other: $unit) -> $unit {
                $unit(self.0.saturating_sub(other.0))
            }
        }
        impl SubAssign for $unit {
            fn sub_assign(&mut self, other: $unit) {
                *self = *self - other;
            }
        }
        impl Mul<u64> for $unit {
            type Output = $unit;
            fn mul(self, factor: u64) -> $unit {
                $unit(self.0.saturating_mul(factor))
            }
        }
        impl Div<u64> for $unit {
            type Output = $unit;
            fn div(self, divisor: u64) -> $unit {
                $unit(self.0 / divisor)
            }
        }
        impl Sum for $unit {
            fn sum<I: Iterator<Item = $unit>>(iter: I) -> $unit {
                iter.fold($unit(0), Add::add)
            }
        }
    )*};
}
quantity!(Span, Bytes, Rate);

/// An amount of traffic, counted in packets or in bytes. In text: `20 packets`, `30 kB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// This many packets.
    Packets(u32),
    /// This many bytes.
    Bytes(Bytes),
}

/// A text that is not a quantity of the expected unit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{found}' is not {expected}")]
pub struct UnitError {
    /// The text as it was found.
    pub found: String,
    /// What would have been right, with an example.
    pub expected: &'static str,
}

/// The factor of each unit's name. Names are compared without regard to case only
/// where that is unambiguous, so they are simply listed.
type Names = &'static [(&'static str, u64)];

const SPAN_NAMES: Names = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", NANOS_PER_SECOND),
    ("min", 60 * NANOS_PER_SECOND),
    ("h", 3_600 * NANOS_PER_SECOND),
];
const BYTES_NAMES: Names = &[
    ("B", 1),
    ("bytes", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];
const RATE_NAMES: Names = &[
    ("bit/s", 1),
    ("kbit/s", 1_000),
    ("Mbit/s", 1_000_000),
    ("Gbit/s", 1_000_000_000),
    ("bps", 1),
    ("kb/s", 1_000),
    ("Mb/s", 1_000_000),
    ("Gb/s", 1_000_000_000),
    // What providers and speed tests write.
    ("kbps", 1_000),
    ("Mbps", 1_000_000),
    ("Gbps", 1_000_000_000),
    // What `tc` and SQM write. Their `mbps` is of bytes, and is not read.
    ("kbit", 1_000),
    ("mbit", 1_000_000),
    ("gbit", 1_000_000_000),
    ("Mbit", 1_000_000),
    ("Gbit", 1_000_000_000),
];

/// Reads `<decimal number> <unit>`; the number may have a fraction and digit groups
/// (`6_849`), but never a sign or an exponent. The result is exact: there is no
/// floating point.
fn parse_quantity(text: &str, names: Names) -> Option<u64> {
    let text = text.trim();
    let unit_at = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))?;
    let (number, unit) = text.split_at(unit_at);
    let unit = unit.trim_start();
    let factor = names.iter().find(|(name, _)| *name == unit)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.chars().filter(|c| *c != '_').collect::<String>();
    let (whole, fraction) = (digits(whole), digits(fraction));
    if whole.is_empty() || fraction.len() > 18 {
        return None;
    }
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let mantissa: u128 = format!("{whole}{fraction}").parse().ok()?;
    let scaled = mantissa.checked_mul(u128::from(factor))?;
    // A fraction finer than the base unit rounds to the nearest one.
    u64::try_from((scaled + scale / 2) / scale).ok()
}

macro_rules! text_form {
    ($($unit:ident, $names:expr, $expected:literal;)*) => {$(
        impl FromStr for $unit {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<$unit, UnitError> {
                parse_quantity(text, $names)
                    .map($unit)
                    .ok_or_else(|| UnitError { found: text.into(), expected: $expected })
            }
        }
    )*};
}
text_form! {
    Span, SPAN_NAMES, "a time with its unit (ns, us, ms, s, min, h), as '20 ms'";
    Bytes, BYTES_NAMES, "a size with its unit (B, kB, MB, GB, KiB, MiB, GiB), as '30 kB'";
    Rate, RATE_NAMES, "a rate with its unit (bit/s, kbit/s, Mbit/s, Gbit/s), as '10 Mbit/s'";
}

impl FromStr for Amount {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Amount, UnitError> {
        const EXPECTED: &str = "a number of packets or a size, for example '20 packets' or '30 kB'";
        const NAMES: Names = &[("packets", 1), ("packet", 1)];
        let refused = || UnitError { found: text.into(), expected: EXPECTED };
        match parse_quantity(text, NAMES) {
            Some(count) if !text.contains('.') => {
                u32::try_from(count).map(Amount::Packets).map_err(|_| refused())
            }
            Some(_) => Err(refused()),
            None => text.parse().map(Amount::Bytes).map_err(|_| refused()),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Packets(1) => write!(f, "1 packet"),
            Amount::Packets(count) => write!(f, "{count} packets"),
            Amount::Bytes(size) => fmt::Display::fmt(size, f),
        }
    }
}

/// Writes `value` in the largest of `steps` that it reaches, with at most three
/// decimals and no trailing zeros. The alternate form (`{:#}`) is exact: where
/// three decimals are not enough, it takes the base unit.
fn write_scaled(f: &mut fmt::Formatter<'_>, value: u64, steps: Names) -> fmt::Result {
    let (name, factor) =
        steps.iter().rev().find(|(_, factor)| value >= *factor).unwrap_or(&steps[0]);
    if f.alternate() && u128::from(value) * 1_000 % u128::from(*factor) != 0 {
        return write!(f, "{value} {}", steps[0].0);
    }
    let text = format!("{:.3}", value as f64 / *factor as f64);
    write!(f, "{} {name}", text.trim_end_matches('0').trim_end_matches('.'))
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const STEPS: Names =
            &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", NANOS_PER_SECOND)];
        write_scaled(f, self.0, STEPS)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(
            f,
            self.0,
            &[("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000)],
        )
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, &RATE_NAMES[..4])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transmission_is_exact_and_rounds_up() {
        assert_eq!(Rate(100_000_000).transmission(Bytes(1_500)), Span(120_000));
        assert_eq!(Rate(3).transmission(Bytes(1)), Span(2_666_666_667));
        assert_eq!(Rate(0).transmission(Bytes(1)), Span(u64::MAX));
        assert_eq!(Rate(1).transmission(Bytes(u64::MAX)), Span(u64::MAX));
        assert_eq!(Rate(8_000_000_000).transmission(Bytes(u64::MAX)), Span(u64::MAX));
    }

    #[test]
    fn text_is_read_exactly_and_printed_back() {
        for (text, nanos) in
            [("0.1 ms", 100_000), ("1.000000001 s", 1_000_000_001), ("2min", 120_000_000_000)]
        {
            assert_eq!(text.parse(), Ok(Span(nanos)), "{text}");
        }
        assert_eq!(Span(1_500_000).to_string(), "1.5 ms");
        assert_eq!(Rate(384_000).to_string(), "384 kbit/s");
        assert_eq!(Bytes(0).to_string(), "0 B");
    }

    #[test]
    fn text_without_sense_is_refused() {
        for text in [
            "",
            "10",
            "-1 s",
            "ms",
            "1e3 s",
            "1 S",
            "1 s s",
            "1..2 s",
            ". s",
            "99999999999999999999 s",
        ] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }
}
