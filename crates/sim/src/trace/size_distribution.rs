//! Distributions of sizes, as points of the cumulative distribution.
//!
//! Between two points the distribution is linear: sizes there are equally
//! likely. A jump (two points of one size) is a size that many have; the first
//! point's probability belongs to its size alone. Both [`quantile`] and
//! [`mean`] follow this one reading, so that samples have the stated mean.
//!
//! Three formats are read, told apart by their first line:
//!
//! - our own: CSV with the heading `size_bytes,cumulative_probability`, and
//!   comments that start with `#`;
//! - NetSys (`CDF_*.txt`): size in packets of 1 460 bytes, a column without
//!   use, cumulative probability, separated by spaces;
//! - Homa: the mean in bytes alone on the first line, then size in bytes and
//!   cumulative probability. The stated mean is not used: it was computed
//!   under another reading of the points.
//!
//! [`quantile`]: SizeDistribution::quantile
//! [`mean`]: SizeDistribution::mean

use std::io::{self, Write};
use std::path::Path;

use tidegate_core::Bytes;

use super::ReadError;

/// A distribution of sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeDistribution {
    points: Vec<Point>,
}

/// A point of the cumulative distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The size, in bytes.
    pub size: Bytes,
    /// How many of all sizes are not larger: 0 to 1.
    pub probability: f64,
}

impl SizeDistribution {
    /// Reads a file of any of the three formats.
    ///
    /// # Errors
    /// When a line is none, sizes or probabilities decrease, or the last
    /// probability is not 1.
    pub fn read(path: &Path) -> Result<SizeDistribution, ReadError> {
        let _ = path;
        unimplemented!("next commit")
    }

    /// Reads a distribution from memory; `name` is for error messages.
    ///
    /// # Errors
    /// As [`read`](SizeDistribution::read).
    pub fn parse(name: &str, contents: &[u8]) -> Result<SizeDistribution, ReadError> {
        let _ = (name, contents);
        unimplemented!("next commit")
    }

    /// The distribution of the given sizes, in at most `max_points` points
    /// (never fewer than 4); `None` when there are no sizes.
    #[must_use]
    pub fn from_sizes(sizes: &[Bytes], max_points: usize) -> Option<SizeDistribution> {
        let _ = (sizes, max_points);
        unimplemented!("next commit")
    }

    /// The points, by size and probability.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The smallest size that a share `u` of all sizes does not exceed, to the
    /// nearest byte and at least 1. `u` is taken into 0 to 1.
    #[must_use]
    pub fn quantile(&self, u: f64) -> Bytes {
        let _ = u;
        unimplemented!("next commit")
    }

    /// Mean size, in bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        unimplemented!("next commit")
    }

    /// Writes our own format, with `comments` (one a line) in front.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, mut out: impl Write, comments: &[&str]) -> io::Result<()> {
        let _ = (&mut out, comments);
        unimplemented!("next commit")
    }
}
