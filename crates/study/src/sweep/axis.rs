//! A key and its values: `rate=5 Mbit/s,20 Mbit/s` or `rtt=10 ms..300 ms:6`.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tidegate_core::{Bytes, Rate, Span};

use crate::measure::Quantity;

/// A key of a scenario with the values that it takes, one after the other.
///
/// ```
/// use tidegate_study::sweep::Axis;
///
/// let axis: Axis = "rate=1 Mbit/s..100 Mbit/s:3".parse()?;
/// assert_eq!(axis.values, ["1 Mbit/s", "10 Mbit/s", "100 Mbit/s"]);
/// let axis: Axis = "access.hosts=2..4:3".parse()?;
/// assert_eq!(axis.values, ["2", "3", "4"]);
/// # Ok::<(), tidegate_study::sweep::AxisError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// The key, as [`Setting`](tidegate_sim::scenario::file::vary::Setting) has it.
    pub key: String,
    /// The values, as they were written or in the same unit.
    pub values: Vec<String>,
}

/// A text that is no axis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found '{found}', expected {expected}")]
pub struct AxisError {
    found: String,
    expected: String,
}

/// Values as positions along an axis of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// What they are; [`Quantity::Plain`] for numbers and packets.
    pub quantity: Quantity,
    /// One for each value, in the first unit of the quantity.
    pub values: Vec<f64>,
}

/// The form of the text.
const FORM: &str = "KEY=VALUE,VALUE,... or KEY=FROM..TO:N, for example 'rate=5 Mbit/s,20 Mbit/s'";
/// More values than a map shows so that anybody can read it.
const MOST: usize = 50;
/// From this ratio of its ends on, a range is divided in equal ratios.
const RATIOS_FROM: f64 = 10.0;
/// Digits of a value between the ends.
const DIGITS: i32 = 3;

impl FromStr for Axis {
    type Err = AxisError;

    fn from_str(text: &str) -> Result<Axis, AxisError> {
        let error = |expected: &str| AxisError { found: text.into(), expected: expected.into() };
        let (key, values) = text.split_once('=').ok_or_else(|| error(FORM))?;
        let (key, values) = (key.trim(), values.trim());
        if values.is_empty() {
            return Err(error(FORM));
        }
        let values = match range(values) {
            Some(range) => range
                .map_err(|expected| AxisError { found: text.into(), expected: expected.into() })?,
            None => listed(values),
        };
        Axis::checked(key, values, text)
    }
}

impl Axis {
    /// A key with these values, as a list has them.
    ///
    /// # Errors
    /// Without values, with one twice, or with more than 50.
    pub fn new(key: &str, values: Vec<String>) -> Result<Axis, AxisError> {
        let text = format!("{key}={}", values.join(","));
        Axis::checked(key, values, &text)
    }

    fn checked(key: &str, values: Vec<String>, text: &str) -> Result<Axis, AxisError> {
        let error = |expected: &str| AxisError { found: text.into(), expected: expected.into() };
        if key.is_empty() || values.is_empty() {
            return Err(error(FORM));
        }
        if values.iter().any(String::is_empty) {
            return Err(error("a value on both sides of each comma"));
        }
        let twice = |(index, value): (usize, &String)| values[..index].contains(value);
        if values.iter().enumerate().any(twice) {
            return Err(error("each value once"));
        }
        if values.len() > MOST {
            return Err(error("at most 50 values"));
        }
        Ok(Axis { key: key.into(), values })
    }

    /// Its values as numbers of one quantity, ascending; `None` if they are not.
    #[must_use]
    pub fn scale(&self) -> Option<Scale> {
        let read: Option<Vec<_>> = self.values.iter().map(|text| Amount::read(text)).collect();
        let read = read?;
        let quantity = read.first()?.quantity();
        let values: Vec<f64> = read.iter().map(|it| it.number()).collect();
        let alike = read.iter().all(|it| it.quantity() == quantity);
        let ascending = values.windows(2).all(|pair| pair[0] < pair[1]);
        (alike && ascending).then_some(Scale { quantity, values })
    }
}

/// The values between commas, except those within quotation marks or brackets.
fn listed(text: &str) -> Vec<String> {
    let mut values = vec![String::new()];
    let (mut depth, mut quoted) = (0_u32, None);
    for character in text.chars() {
        match (quoted, character) {
            (None, '"' | '\'') => quoted = Some(character),
            (Some(mark), _) if mark == character => quoted = None,
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                values.push(String::new());
                continue;
            }
            _ => {}
        }
        values.last_mut().expect("there is one").push(character);
    }
    values.iter().map(|value| value.trim().to_string()).collect()
}

/// The values of `FROM..TO:N`; `None` if `text` has another form.
fn range(text: &str) -> Option<Result<Vec<String>, &'static str>> {
    let (from, rest) = text.split_once("..")?;
    let (to, count) = rest.rsplit_once(':').unwrap_or((rest, ""));
    let (from, to) = (from.trim(), to.trim());
    Some((|| {
        let count: usize = count
            .trim()
            .parse()
            .ok()
            .filter(|count| (2..=MOST).contains(count))
            .ok_or("FROM..TO:N with a number N of values from 2 to 50")?;
        let of_one_kind = "two rates, times, sizes or numbers around '..', the smaller one first";
        let (Some(first), Some(last)) = (Amount::read(from), Amount::read(to)) else {
            return Err(of_one_kind);
        };
        let (low, high) = (first.number(), last.number());
        if first.quantity() != last.quantity() || low >= high {
            return Err(of_one_kind);
        }
        // Whole numbers stay whole, unless one end is none.
        let kind = if matches!(last, Amount::Number(_)) { last } else { first };
        let by_ratio = low > 0.0 && high / low >= RATIOS_FROM;
        let between = |index: usize| {
            let part = index as f64 / (count - 1) as f64;
            let value = if by_ratio {
                libm::exp(libm::log(low) + part * (libm::log(high) - libm::log(low)))
            } else {
                low + part * (high - low)
            };
            kind.with(rounded(value))
        };
        let inner = (1..count - 1).map(between);
        let values: Vec<_> = [from.into()].into_iter().chain(inner).chain([to.into()]).collect();
        if values.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("a range with as many different values as N says");
        }
        Ok(values)
    })())
}

/// With three digits.
fn rounded(value: f64) -> f64 {
    let text = format!("{value:.*e}", (DIGITS - 1).unsigned_abs() as usize);
    text.parse().unwrap_or(value)
}

/// A value with a number.
#[derive(Clone, Copy, Debug)]
enum Amount {
    Rate(Rate),
    Span(Span),
    Size(Bytes),
    Packets(f64),
    Whole(f64),
    Number(f64),
}

impl Amount {
    fn read(text: &str) -> Option<Amount> {
        let packets = || text.strip_suffix("packets").or(text.strip_suffix("packet"));
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|it| it.is_finite());
        let whole = || text.parse::<i64>().ok().map(|it| Amount::Whole(it as f64));
        let rate = text.parse().map(Amount::Rate).ok();
        rate.or_else(|| text.parse().map(Amount::Span).ok())
            .or_else(|| text.parse().map(Amount::Size).ok())
            .or_else(|| packets().and_then(number).map(Amount::Packets))
            .or_else(whole)
            .or_else(|| number(text).map(Amount::Number))
    }

    fn quantity(self) -> Quantity {
        match self {
            Amount::Rate(_) => Quantity::Rate,
            Amount::Span(_) => Quantity::Time,
            Amount::Size(_) => Quantity::Size,
            Amount::Packets(_) | Amount::Whole(_) | Amount::Number(_) => Quantity::Plain,
        }
    }

    /// In the first unit of its quantity.
    fn number(self) -> f64 {
        match self {
            Amount::Rate(rate) => rate.0 as f64,
            Amount::Span(span) => span.as_seconds(),
            Amount::Size(size) => size.0 as f64,
            Amount::Packets(number) | Amount::Whole(number) | Amount::Number(number) => number,
        }
    }

    /// Another number of the same kind, as text.
    fn with(self, number: f64) -> String {
        let whole = |number: f64| number.round() as u64;
        match self {
            Amount::Rate(_) => format!("{:#}", Rate(whole(number))),
            Amount::Span(_) => format!("{:#}", Span(whole(number * 1e9))),
            Amount::Size(_) => format!("{:#}", Bytes(whole(number))),
            Amount::Packets(_) => format!("{} packets", whole(number)),
            Amount::Whole(_) => format!("{}", number.round()),
            Amount::Number(_) => number.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        text.parse::<Axis>().unwrap().values
    }

    #[test]
    fn values_are_listed_or_a_range() {
        assert_eq!(values("rate=5 Mbit/s, 20 Mbit/s"), ["5 Mbit/s", "20 Mbit/s"]);
        assert_eq!(values("wifi.rates=['MCS 7', 'MCS 0'],[\"MCS 1\"]").len(), 2);
        // Ends as they are written, and in between equal ratios from a factor of ten on.
        assert_eq!(values("r=2 Mbit/s..200Mbps:3"), ["2 Mbit/s", "20 Mbit/s", "200Mbps"]);
        assert_eq!(values("b=20 ms..80 ms:3"), ["20 ms", "50 ms", "80 ms"]);
        assert_eq!(values("b=10 packets..1000 packets:3")[1], "100 packets");
        assert_eq!(values("load=0.5..1.5:3"), ["0.5", "1", "1.5"]);
        assert_eq!(values("load=1..1.5:3"), ["1", "1.25", "1.5"]);
        assert_eq!(values("size=1 kB..3 kB:2"), ["1 kB", "3 kB"]);
    }

    #[test]
    fn what_is_no_axis_is_refused_with_what_was_expected() {
        for (text, expected) in [
            ("rate", "KEY=VALUE"),
            ("=1", "KEY=VALUE"),
            ("rate=1 Mbit/s,,2 Mbit/s", "a value on both sides"),
            ("rate=1,1", "each value once"),
            ("rate=1 Mbit/s..9 Mbit/s", "a number N"),
            ("rate=1 Mbit/s..9 Mbit/s:99", "a number N"),
            ("rate=9 Mbit/s..1 Mbit/s:3", "the smaller one first"),
            ("rate=9 Mbit/s..1 s:3", "two rates"),
            ("hosts=1..2:9", "as many different values"),
        ] {
            let message = text.parse::<Axis>().unwrap_err().to_string();
            assert!(message.contains(&format!("found '{text}'")), "{message}");
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn only_ascending_numbers_of_one_quantity_have_a_scale() {
        let scale = |text: &str| text.parse::<Axis>().unwrap().scale();
        let rates = scale("rate=5 Mbit/s,20 Mbit/s").unwrap();
        assert_eq!((rates.quantity, rates.values), (Quantity::Rate, vec![5e6, 2e7]));
        assert_eq!(scale("buffer=10 packets,20 packets").unwrap().values, [10.0, 20.0]);
        for text in ["rate=20 Mbit/s,5 Mbit/s", "tcp.profile=today,papers", "buffer=1 ms,9 kB"] {
            assert_eq!(scale(text), None, "{text}");
        }
    }
}
