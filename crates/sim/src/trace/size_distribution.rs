//! Distributions of sizes, as points of the cumulative distribution.
//!
//! Between two points, the distribution is linear: sizes there are equally likely.
//! A jump (two points of one size) is a size that many have; the first point's
//! probability belongs to its size alone. Both [`quantile`] and [`mean`] follow
//! this one reading, so samples have the stated mean.
//!
//! Three formats are read, told apart by their first line:
//!
//! - our own: CSV with the heading `size_bytes,cumulative_probability`, and
//!   comments that start with `#`;
//! - NetSys (`CDF_*.txt`): size in packets of 1 460 bytes, an unused column, and
//!   cumulative probability, separated by spaces;
//! - Homa: the mean in bytes alone on the first line, then size in bytes and
//!   cumulative probability. The stated mean is not used, because it was computed
//!   under another reading of the points.
//!
//! [`quantile`]: SizeDistribution::quantile
//! [`mean`]: SizeDistribution::mean

mod reduce;

use std::io::{self, Write};
use std::path::Path;

use tidegate_core::Bytes;

use super::error::{Mismatch, contents, quote};
use super::text::{lines, trimmed};
use super::{ReadError, within_most};

/// A distribution of sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeDistribution {
    /// At least one point; neither size nor probability decreases, and the last
    /// probability is 1.
    points: Vec<Point>,
}

/// A point of the cumulative distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The size, in bytes.
    pub size: Bytes,
    /// The share of all sizes that are not larger: 0 to 1.
    pub probability: f64,
}

const HEADING: &str = "size_bytes,cumulative_probability";

/// The three formats.
#[derive(Clone, Copy)]
enum Format {
    Own,
    NetSys,
    Homa,
}

impl SizeDistribution {
    /// Reads a file of any of the three formats.
    ///
    /// # Errors
    /// When a line is in none of the formats, sizes or probabilities decrease, or
    /// the last probability is not 1.
    pub fn read(path: &Path) -> Result<SizeDistribution, ReadError> {
        let (file, contents) = contents(path)?;
        SizeDistribution::parse(&file, &contents)
    }

    /// Reads a distribution from memory; `name` is for error messages.
    ///
    /// # Errors
    /// As [`read`](SizeDistribution::read).
    pub fn parse(name: &str, contents: &[u8]) -> Result<SizeDistribution, ReadError> {
        let mut format = None;
        let mut points: Vec<Point> = Vec::new();
        let mut last_line = 1;
        for (number, line) in lines(contents) {
            last_line = number;
            let text = trimmed(line).unwrap_or("\u{fffd}");
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let at_line = |wrong: Mismatch| wrong.at_line(name, number);
            let Some(format) = format else {
                let (found, is_point) = Format::of_first_line(text).map_err(at_line)?;
                format = Some(found);
                if is_point {
                    points.push(found.point(text).map_err(at_line)?);
                }
                continue;
            };
            let point = format.point(text).map_err(at_line)?;
            if let Some(before) = points.last().filter(|before| !point.follows(before)) {
                let found = format!("{} after {}", point.text(), before.text());
                let expected = "size and probability not below those before";
                return Err(Mismatch::new(found, expected).at_line(name, number));
            }
            points.push(point);
        }
        /// Files with few digits may miss 1 by this much.
        const ROUNDING: f64 = 1e-6;
        match points.last_mut() {
            Some(last) if last.probability >= 1.0 - ROUNDING => {
                last.probability = 1.0;
                Ok(SizeDistribution { points })
            }
            Some(last) => {
                Err(Mismatch::new(last.text(), "a last probability of 1").at_line(name, last_line))
            }
            None => Err(Mismatch::new("no points", format!("sizes under '{HEADING}'"))
                .at_line(name, last_line)),
        }
    }

    /// The distribution of the given sizes, in at most `max_points` points (at
    /// least 8); `None` when there are no sizes.
    ///
    /// With enough points for all sizes, the mean is exact. With fewer, half of
    /// them are spread evenly over the probabilities, and the others go where the
    /// mean would otherwise be most wrong, which is in the tail: 100 points keep
    /// the mean of sizes with a heavy tail within 1%, and the largest size is
    /// always exact.
    #[must_use]
    pub fn from_sizes(sizes: &[Bytes], max_points: usize) -> Option<SizeDistribution> {
        let points = reduce::points(sizes, max_points.max(8));
        (!points.is_empty()).then_some(SizeDistribution { points })
    }

    /// The points, by size and probability.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The smallest size that a share `u` of all sizes does not exceed, to the
    /// nearest byte and at least 1. `u` is clamped to 0 to 1.
    #[must_use]
    pub fn quantile(&self, u: f64) -> Bytes {
        let u = u.clamp(0.0, 1.0);
        // The first point that reaches `u`: the last point does, and the first one
        // reaches not-a-number.
        let index = self.points.partition_point(|point| point.probability < u);
        let upper = self.points[index];
        let Some(lower) = index.checked_sub(1).map(|index| self.points[index]) else {
            return upper.size.max(Bytes(1));
        };
        let share = (u - lower.probability) / (upper.probability - lower.probability);
        let span = (upper.size - lower.size).0 as f64;
        // The share is at most 1, and `as` saturates.
        (lower.size + Bytes((share * span).round() as u64)).max(Bytes(1))
    }

    /// Mean size, in bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let first = self.points[0];
        let segments = self.points.windows(2).map(|pair| {
            let probability = pair[1].probability - pair[0].probability;
            probability * (pair[0].size.0 as f64 + pair[1].size.0 as f64) / 2.0
        });
        first.probability * first.size.0 as f64 + segments.sum::<f64>()
    }

    /// Writes our own format, with `comments` (one per line) in front.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, mut out: impl Write, comments: &[&str]) -> io::Result<()> {
        for comment in comments.iter().flat_map(|comment| comment.lines()) {
            writeln!(out, "# {comment}")?;
        }
        writeln!(out, "{HEADING}")?;
        for point in &self.points {
            writeln!(out, "{},{}", point.size.0, point.probability)?;
        }
        Ok(())
    }

    /// Whether `contents` begin as our own format does.
    pub(super) fn recognises(contents: &[u8]) -> bool {
        let mut texts = lines(contents).filter_map(|(_, line)| trimmed(line));
        texts.find(|text| !text.is_empty() && !text.starts_with('#')) == Some(HEADING)
    }
}

impl Format {
    /// The format whose first line is `text`, and whether that is a point already.
    fn of_first_line(text: &str) -> Result<(Format, bool), Mismatch> {
        match text.split_whitespace().count() {
            _ if text == HEADING => Ok((Format::Own, false)),
            1 if text.parse::<f64>().is_ok() => Ok((Format::Homa, false)),
            3 => Ok((Format::NetSys, true)),
            _ => {
                let expected = format!("the heading '{HEADING}', three columns, or a mean alone");
                Err(Mismatch::new(quote(text), expected))
            }
        }
    }

    fn point(self, text: &str) -> Result<Point, Mismatch> {
        /// What NetSys counts as the payload of a packet.
        const PACKET: Bytes = Bytes(1_460);
        let (fields, unit, expected): (Vec<&str>, Bytes, _) = match self {
            Format::Own => {
                (text.split(',').map(str::trim).collect(), Bytes(1), "bytes,probability")
            }
            Format::Homa => (text.split_whitespace().collect(), Bytes(1), "bytes and probability"),
            Format::NetSys => {
                let fields: Vec<_> = text.split_whitespace().collect();
                let used = match fields[..] {
                    [size, _, probability] => vec![size, probability],
                    _ => vec![],
                };
                (used, PACKET, "packets, a number without use, and probability")
            }
        };
        let point = match fields[..] {
            [size, probability] => size.parse().ok().zip(probability.parse().ok()),
            _ => None,
        };
        match point {
            Some((size, probability))
                if (0.0..=1.0).contains(&probability) && within_most(unit * size).is_some() =>
            {
                Ok(Point { size: unit * size, probability })
            }
            _ => Err(Mismatch::new(
                quote(text),
                format!("{expected} from 0 to 1, and sizes up to 1 TB"),
            )),
        }
    }
}

impl Point {
    fn follows(&self, before: &Point) -> bool {
        self.size >= before.size && self.probability >= before.probability
    }

    fn text(self) -> String {
        format!("{},{}", self.size.0, self.probability)
    }
}
