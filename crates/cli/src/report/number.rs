//! Numbers as people read them: two or three significant digits and a unit
//! that fits.

pub(super) use tidegate_study::measure::Quantity;
use tidegate_study::{Centre, Estimate};

/// Keeps a number and its unit on one line.
const NO_BREAK: char = '\u{a0}';
/// Between groups of three digits.
const GROUP: char = '\u{202f}';

/// A unit and how many of the quantity's first unit it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit {
    pub(super) name: &'static str,
    pub(super) factor: f64,
}

/// The units of a quantity; values are always in the first one.
pub(super) trait Units: Sized {
    /// All of them, ascending.
    fn units(self) -> &'static [Unit];

    /// One unit for several values: that of the largest, unless the smallest
    /// would be less than a half in it.
    fn unit_for(self, values: impl IntoIterator<Item = f64>) -> Unit;

    /// The unit for one value.
    fn unit(self, value: f64) -> Unit {
        self.unit_for([value])
    }
}

impl Units for Quantity {
    fn units(self) -> &'static [Unit] {
        const fn unit(name: &'static str, factor: f64) -> Unit {
            Unit { name, factor }
        }
        match self {
            Quantity::Time => const { &[unit("µs", 1e-6), unit("ms", 1e-3), unit("s", 1.0)] },
            Quantity::Rate => {
                const {
                    &[
                        unit("bit/s", 1.0),
                        unit("kbit/s", 1e3),
                        unit("Mbit/s", 1e6),
                        unit("Gbit/s", 1e9),
                    ]
                }
            }
            Quantity::Size => {
                const { &[unit("B", 1.0), unit("kB", 1e3), unit("MB", 1e6), unit("GB", 1e9)] }
            }
            Quantity::Share => const { &[unit("%", 0.01)] },
            Quantity::Plain => const { &[unit("", 1.0)] },
        }
    }

    fn unit_for(self, values: impl IntoIterator<Item = f64>) -> Unit {
        let sizes = values.into_iter().map(f64::abs).filter(|size| *size > 0.0);
        let (least, most) = sizes.fold((f64::INFINITY, 0.0_f64), |(least, most), size| {
            (least.min(size), most.max(size))
        });
        let units = self.units();
        let fits = |unit: &&Unit| most >= unit.factor && least >= unit.factor * 0.5;
        // Nothing but zeros: milliseconds, kbit/s, kB, but one step up only where there is one.
        let usual = if most == 0.0 { units.get(1) } else { None };
        // A value below the first unit still has that.
        *usual.or_else(|| units.iter().rev().find(fits)).unwrap_or(&units[0])
    }
}

impl Unit {
    /// The value in this unit, as text without the unit.
    pub(super) fn number(self, value: f64, digits: usize) -> String {
        significant(value / self.factor, digits)
    }

    /// Writes the unit behind `number`.
    pub(super) fn behind(self, number: &str) -> String {
        match self.name {
            "" => number.into(),
            "%" => format!("{number}%"),
            name => format!("{number}{NO_BREAK}{name}"),
        }
    }
}

/// A value in running text: `38 ms`, `6.2`, `0.4%`; two digits, three from 100 on.
pub(super) fn short(quantity: Quantity, value: f64) -> String {
    let unit = quantity.unit(value);
    unit.behind(&brief(value / unit.factor))
}

/// Two significant digits, three from 100 on, no trailing zeros.
pub(super) fn brief(value: f64) -> String {
    let text = significant(value, if value.abs() < 100.0 { 2 } else { 3 });
    trimmed(&text)
}

/// Two values in running text joined by `word`, sharing the unit where they
/// can: `180 to 3 ms`, `1.2 s to 38 ms`.
pub(super) fn pair(quantity: Quantity, first: f64, word: &str, second: f64) -> String {
    let (one, other) = (quantity.unit(first), quantity.unit(second));
    let shared = one == other || first == 0.0 || second == 0.0;
    let unit = if first == 0.0 { other } else { one };
    let second_text =
        if shared { unit.behind(&brief(second / unit.factor)) } else { short(quantity, second) };
    if shared && unit.name != "%" {
        format!("{} {word} {second_text}", brief(first / unit.factor))
    } else {
        format!("{} {word} {second_text}", unit.behind(&brief(first / unit.factor)))
    }
}

/// A value and its interval with the unit: `236 ± 12 ms`, or `236 (201–310) ms`.
pub(super) fn estimate(quantity: Quantity, value: &Estimate) -> String {
    let unit = quantity.unit(value.value);
    let (value, interval) = value_and_interval(unit, value);
    unit.behind(&interval.map_or(value.clone(), |interval| format!("{value}{NO_BREAK}{interval}")))
}

/// A value and its interval in `unit`, with the decimals of the value: of a mean
/// `± 12`, where what is less than they can show is `<0.01`; of a median the ends,
/// `(201–310)`.
pub(super) fn value_and_interval(unit: Unit, estimate: &Estimate) -> (String, Option<String>) {
    let value = significant(estimate.value / unit.factor, 3);
    let decimals = value.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let interval = estimate.interval.map(|(low, high)| {
        let (low, high) = (low / unit.factor, high / unit.factor);
        match estimate.centre {
            Centre::Mean => {
                let half = (high - low) / 2.0;
                let rounded = fixed(half, decimals);
                let digit = |digit| ('1'..='9').contains(&digit);
                let says_nothing = half > 0.0 && !rounded.contains(digit);
                let half = if says_nothing { format!("<{}", smallest(decimals)) } else { rounded };
                format!("±{NO_BREAK}{half}")
            }
            Centre::Median => format!("({}–{})", fixed(low, decimals), fixed(high, decimals)),
        }
    });
    (value, interval)
}

/// One in the last of so many decimals.
fn smallest(decimals: usize) -> String {
    match decimals {
        0 => "1".into(),
        more => format!("0.{:0>more$}", 1),
    }
}

/// A whole number with its digits grouped.
pub(super) fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// `count` of something, with the noun in its right form.
pub(super) fn counted(value: u64, singular: &str, plural: &str) -> String {
    format!("{}{NO_BREAK}{}", count(value), if value == 1 { singular } else { plural })
}

/// `value` with so many significant digits, but whole numbers in full.
pub(super) fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let places = decimals(value.abs(), digits);
    let rounded: f64 = format!("{value:.places$}").parse().unwrap_or(value);
    // 9.96 with two digits is 10, not 10.0.
    fixed(value, places.min(decimals(rounded.abs(), digits)))
}

/// How many decimals show so many significant digits of `size`. Found by
/// comparing, not by a logarithm: exact on every machine.
fn decimals(size: f64, digits: usize) -> usize {
    const MOST: usize = 12;
    if size == 0.0 {
        return 0;
    }
    let mut least = 10_f64.powi(i32::try_from(digits).unwrap_or(i32::MAX) - 1);
    let mut places = 0;
    while size < least && places < MOST {
        least /= 10.0;
        places += 1;
    }
    places
}

/// `value` with so many decimals; never `-0`.
fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let is_zero = !text.contains(|digit| ('1'..='9').contains(&digit));
    grouped(if is_zero { text.trim_start_matches('-') } else { &text })
}

/// Without trailing zeros behind the point.
pub(super) fn trimmed(text: &str) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').into()
    } else {
        text.into()
    }
}

/// With digits before the point in groups of three, from five digits on.
pub(super) fn grouped(text: &str) -> String {
    let whole = text.find('.').unwrap_or(text.len());
    let first = text.find(|digit: char| digit.is_ascii_digit()).unwrap_or(0);
    if whole - first < 5 {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 4);
    for (place, character) in text.char_indices() {
        if place > first && place < whole && (whole - place).is_multiple_of(3) {
            out.push(GROUP);
        }
        out.push(character);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_two_or_three_digits_and_a_unit_that_fits() {
        for (quantity, value, expected) in [
            (Quantity::Time, 0.2361, "236\u{a0}ms"),
            (Quantity::Time, 0.0384, "38\u{a0}ms"),
            (Quantity::Time, 0.003, "3\u{a0}ms"),
            (Quantity::Time, 0.000_25, "250\u{a0}µs"),
            (Quantity::Time, 1.249, "1.2\u{a0}s"),
            (Quantity::Time, 0.0, "0\u{a0}ms"),
            (Quantity::Rate, 3_449_000.0, "3.4\u{a0}Mbit/s"),
            (Quantity::Rate, 64_000.0, "64\u{a0}kbit/s"),
            (Quantity::Share, 0.031, "3.1%"),
            (Quantity::Share, 0.000_04, "0.004%"),
            (Quantity::Share, 1.0, "100%"),
            (Quantity::Size, 15_000.0, "15\u{a0}kB"),
            (Quantity::Plain, 6.24, "6.2"),
            (Quantity::Plain, 99.7, "100"),
            (Quantity::Plain, 9.96, "10"),
        ] {
            assert_eq!(short(quantity, value), expected, "{value}");
        }
    }

    #[test]
    fn pairs_share_their_unit_where_they_can() {
        assert_eq!(pair(Quantity::Time, 0.18, "to", 0.003), "180 to 3\u{a0}ms");
        assert_eq!(pair(Quantity::Time, 1.2, "to", 0.038), "1.2\u{a0}s to 38\u{a0}ms");
        assert_eq!(pair(Quantity::Share, 0.031, "to", 0.0), "3.1% to 0%");
        assert_eq!(pair(Quantity::Rate, 0.0, "instead of", 3e6), "0 instead of 3\u{a0}Mbit/s");
    }

    #[test]
    fn the_interval_has_the_decimals_of_the_mean() {
        let of = |value: f64, half: f64| {
            let interval = Some((value - half, value + half));
            estimate(Quantity::Time, &Estimate { centre: Centre::Mean, value, interval, runs: 5 })
        };
        assert_eq!(of(0.2364, 0.0124), "236\u{a0}±\u{a0}12\u{a0}ms");
        assert_eq!(of(0.003_04, 0.000_05), "3.04\u{a0}±\u{a0}0.05\u{a0}ms");
        assert_eq!(of(0.236_4, 0.000_04), "236\u{a0}±\u{a0}<1\u{a0}ms");
        assert_eq!(of(0.003_04, 0.000_001), "3.04\u{a0}±\u{a0}<0.01\u{a0}ms");
        assert_eq!(of(0.5, 0.0), "500\u{a0}±\u{a0}0\u{a0}ms");
        let stalls = [2.2, 2.4, 2.9, 3.0, 3.1, 41.0];
        let median = Estimate::median(stalls).unwrap();
        assert_eq!(estimate(Quantity::Time, &median), "2.95\u{a0}(2.20–41.00)\u{a0}s");
        let few = Estimate::median(stalls[..5].to_vec()).unwrap();
        assert_eq!(estimate(Quantity::Time, &few), "2.90\u{a0}s");
    }

    #[test]
    fn long_numbers_are_grouped() {
        assert_eq!(count(1_234), "1234");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(significant(-12_345.6, 3), "-12\u{202f}346");
        assert_eq!(significant(f64::NAN, 3), "–");
        assert_eq!(counted(1, "seed", "seeds"), "1\u{a0}seed");
    }

    #[test]
    fn one_unit_for_several_values_keeps_the_smallest_readable() {
        assert_eq!(Quantity::Time.unit_for([0.77, 9.1]).name, "s");
        assert_eq!(Quantity::Time.unit_for([0.107, 2.05]).name, "ms");
        assert_eq!(Quantity::Time.unit_for([0.0, 1.2]).name, "s");
        assert_eq!(Quantity::Time.unit_for([]).name, "ms");
        assert_eq!(Quantity::Share.unit_for([]).name, "%");
    }
}
