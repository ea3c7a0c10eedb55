//! Axes: from values to positions, and the ticks between.

use crate::report::number::{Quantity, Unit, Units, brief, grouped, trimmed};

/// An axis with its title and unit.
#[derive(Clone, Debug)]
pub(in crate::report) struct Axis {
    name: String,
    unit: Unit,
    kind: Kind,
    low: f64,
    high: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Linear,
    Log,
    /// The logarithm of a small value more than the value: like `Log`, but with a
    /// position for zero.
    LogFromZero {
        small: f64,
    },
}

/// The positions of the lines and numbers of an axis, in the quantity's first unit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ticks {
    pub(super) major: Vec<(f64, String)>,
    pub(super) minor: Vec<f64>,
}

impl Axis {
    /// From zero to `most`, with equal spacing.
    pub(in crate::report) fn linear(name: &str, quantity: Quantity, most: f64) -> Axis {
        let most = if most > 0.0 && most.is_finite() { most } else { 1.0 };
        Axis::new(name, quantity.unit(most), Kind::Linear, 0.0, most)
    }

    /// Logarithmic over the positive ones of `values`, up to the next round number
    /// in either direction.
    pub(in crate::report) fn log(
        name: &str,
        quantity: Quantity,
        values: impl IntoIterator<Item = f64>,
    ) -> Axis {
        let values = values.into_iter().filter(|value| *value > 0.0 && value.is_finite());
        let (least, most) = values.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        let (least, most) = if most > 0.0 { (least, most) } else { (0.1, 1.0) };
        // The unit of the middle of the axis: its numbers are then short at both ends.
        let unit = quantity.unit((least * most).sqrt());
        let (low, high) = (round_down(least), round_up(most));
        let (low, high) = if low < high { (low, high) } else { (low, low * 10.0) };
        Axis::new(name, unit, Kind::Log, low, high)
    }

    /// Logarithmic from `small`, a power of ten, to `most`, with a position for zero
    /// below.
    pub(in crate::report) fn log_from_zero(
        name: &str,
        quantity: Quantity,
        small: f64,
        most: f64,
    ) -> Axis {
        let high = round_up(most.max(small));
        Axis::new(name, quantity.unit(most), Kind::LogFromZero { small }, 0.0, high)
    }

    fn new(name: &str, unit: Unit, kind: Kind, low: f64, high: f64) -> Axis {
        Axis { name: name.into(), unit, kind, low, high }
    }

    /// A linear axis that ends at the next tick beyond its largest value.
    pub(in crate::report) fn rounded(mut self) -> Axis {
        if self.kind == Kind::Linear {
            let step = self.step(4.0);
            self.high = (self.high / step - 1e-9).ceil() * step;
        }
        self
    }

    /// Name and unit.
    pub(super) fn title(&self) -> String {
        match self.unit.name {
            "" => self.name.clone(),
            unit => format!("{} ({unit})", self.name),
        }
    }

    /// The text of `value` with the unit of the axis.
    pub(super) fn in_words(&self, value: f64) -> String {
        self.unit.behind(&brief(value / self.unit.factor))
    }

    /// The position of `value`, from 0 to 1; values beyond the ends are at the
    /// ends.
    pub(super) fn place(&self, value: f64) -> f64 {
        let along = |value: f64| match self.kind {
            Kind::Linear => value,
            Kind::Log => value.max(f64::MIN_POSITIVE).log10(),
            Kind::LogFromZero { small } => (1.0 + value.max(0.0) / small).log10(),
        };
        let (low, high) = (along(self.low), along(self.high));
        let place = (along(value) - low) / (high - low);
        if place.is_nan() { 0.0 } else { place.clamp(0.0, 1.0) }
    }

    /// About `wanted` numbers and the lines between.
    pub(super) fn ticks(&self, wanted: f64) -> Ticks {
        match self.kind {
            Kind::Linear => self.linear_ticks(wanted),
            Kind::Log => self.log_ticks(self.low, wanted),
            Kind::LogFromZero { small } => self.log_ticks(small, wanted),
        }
    }

    /// A step of 1, 2 or 5 times a power of ten (in the axis's unit) that
    /// gives at most `wanted` ticks.
    fn step(&self, wanted: f64) -> f64 {
        let unit = self.unit.factor;
        let least = (self.high - self.low) / wanted.max(2.0) / unit;
        round_up(least * (1.0 - 1e-9)) * unit
    }

    fn linear_ticks(&self, wanted: f64) -> Ticks {
        let step = self.step(wanted);
        let in_unit = step / self.unit.factor;
        let decimals = (0..9).find(|places| {
            let scaled = in_unit * 10_f64.powi(*places);
            (scaled - scaled.round()).abs() < 1e-6
        });
        let decimals = decimals.unwrap_or(9).unsigned_abs() as usize;
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        let major = (first..=last).map(|index| {
            let value = index as f64 * step;
            (value, grouped(&format!("{:.decimals$}", value / self.unit.factor)))
        });
        // Fifths of a step of 1 or 5, quarters of a step of 2: round numbers again.
        let leading = in_unit / round_down_to_power(in_unit);
        let parts = if (1.5..3.0).contains(&leading) { 4 } else { 5 };
        let small = step / f64::from(parts);
        let first = (self.low / small - 1e-9).ceil() as i64;
        let last = (self.high / small + 1e-9).floor() as i64;
        let minor = (first..=last)
            .filter(|index| index % i64::from(parts) != 0)
            .map(|index| index as f64 * small);
        Ticks { major: major.collect(), minor: minor.collect() }
    }

    fn log_ticks(&self, low: f64, wanted: f64) -> Ticks {
        let from_zero = self.kind != Kind::Log;
        let decades = (self.high / low).log10();
        // Numbers within the decade if there is room, or only at every other power.
        let labelled: &[u32] = match decades {
            _ if decades * 3.0 <= wanted * 0.9 => &[1, 2, 5],
            _ if decades * 2.0 <= wanted => &[1, 3],
            _ => &[1],
        };
        let every = if decades > wanted.max(2.0) { 2 } else { 1 };
        let mut ticks = Ticks { major: Vec::new(), minor: Vec::new() };
        if from_zero {
            ticks.major.push((0.0, "0".into()));
        }
        let mut power = round_down_to_power(low);
        let mut index = 0;
        while power <= self.high * (1.0 + 1e-9) {
            for digit in 1..=9_u32 {
                let value = power * f64::from(digit);
                if value < low * (1.0 - 1e-9) || value > self.high * (1.0 + 1e-9) {
                    continue;
                }
                // Zero and the smallest are neighbours here: one number is enough.
                let beside_zero = from_zero && value < low * 9.9 && self.high >= low * 9.9;
                if labelled.contains(&digit) && index % every == 0 && !beside_zero {
                    ticks.major.push((value, self.number(value)));
                } else {
                    ticks.minor.push(value);
                }
            }
            power *= 10.0;
            index += 1;
        }
        ticks
    }

    /// A round value in the axis's unit.
    fn number(&self, value: f64) -> String {
        grouped(&trimmed(&format!("{:.6}", value / self.unit.factor)))
    }
}

/// The largest power of ten that is not above `value`.
fn round_down_to_power(value: f64) -> f64 {
    let mut power: f64 = 1.0;
    while power > value && power > 1e-12 {
        power /= 10.0;
    }
    while power * 10.0 <= value * (1.0 + 1e-12) && power < 1e18 {
        power *= 10.0;
    }
    power
}

/// The largest of 1, 2 and 5 times a power of ten that is not above `value`.
fn round_down(value: f64) -> f64 {
    let power = round_down_to_power(value);
    [5.0, 2.0]
        .map(|digit| digit * power)
        .into_iter()
        .find(|at| *at <= value * (1.0 + 1e-12))
        .unwrap_or(power)
}

/// The smallest of 1, 2 and 5 times a power of ten that is not below `value`.
fn round_up(value: f64) -> f64 {
    let power = round_down_to_power(value);
    [1.0, 2.0, 5.0]
        .map(|digit| digit * power)
        .into_iter()
        .find(|at| *at >= value * (1.0 - 1e-12))
        .unwrap_or(power * 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ticks: &Ticks) -> Vec<&str> {
        ticks.major.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn linear_ticks_are_round_in_the_unit_of_the_axis() {
        let axis = Axis::linear("Delay", Quantity::Time, 0.237);
        let ticks = axis.ticks(6.0);
        assert_eq!(axis.title(), "Delay (ms)");
        assert_eq!(texts(&ticks), ["0", "50", "100", "150", "200"]);
        assert_eq!(ticks.minor.len(), 19);
        assert_eq!(
            texts(&Axis::linear("", Quantity::Share, 0.004).ticks(5.0)).last(),
            Some(&"0.4")
        );
    }

    #[test]
    fn log_ticks_are_powers_of_ten_with_eight_lines_between() {
        let axis = Axis::log("Size", Quantity::Size, [1e3, 1e7]);
        let ticks = axis.ticks(6.0);
        assert_eq!(axis.title(), "Size (kB)");
        assert_eq!(texts(&ticks), ["1", "10", "100", "1000", "10\u{202f}000"]);
        assert_eq!(ticks.minor.len(), 32);
    }

    #[test]
    fn a_short_log_axis_has_numbers_within_the_decade() {
        let axis = Axis::log("Delay", Quantity::Time, [0.03, 0.3]);
        assert_eq!(texts(&axis.ticks(6.0)), ["20", "50", "100", "200", "500"]);
    }

    #[test]
    fn a_log_axis_from_zero_has_a_place_for_zero() {
        let axis = Axis::log_from_zero("Packets", Quantity::Plain, 1.0, 280.0);
        assert_eq!(texts(&axis.ticks(4.0)), ["0", "10", "100"]);
        assert_eq!(axis.place(0.0), 0.0);
        assert_eq!(axis.place(500.0), 1.0);
        let axis = Axis::log_from_zero("Queue", Quantity::Time, 1e-3, 0.28);
        assert_eq!(texts(&axis.ticks(4.0)), ["0", "10", "100"]);
    }

    #[test]
    fn axes_of_nothing_and_of_nonsense_are_still_axes() {
        for axis in [
            Axis::log("x", Quantity::Time, []),
            Axis::log("x", Quantity::Time, [f64::NAN, 0.0, -1.0]),
            Axis::log("x", Quantity::Time, [1.0]),
            Axis::linear("x", Quantity::Time, f64::NAN),
            Axis::linear("x", Quantity::Time, 0.0).rounded(),
            Axis::log_from_zero("x", Quantity::Plain, 1.0, 0.0),
        ] {
            assert!(axis.ticks(5.0).major.len() >= 2, "{axis:?}");
            for value in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1.0, 1e300] {
                assert!((0.0..=1.0).contains(&axis.place(value)), "{axis:?} {value}");
            }
        }
    }
}
