//! Movies that adapt: the sizes of their segments in each quality.
//!
//! JSON as Sabre has it, the simulator of BOLA's authors: the length of a segment, the
//! nominal rates of the qualities in ascending order, and for each segment its size in each
//! quality. Other members are ignored.
//!
//! ```text
//! {"segment_duration_ms": 3000, "bitrates_kbps": [230, 6000],
//!  "segment_sizes_bits": [[886360, 20657480], [382840, 16600640]]}
//! ```

use std::path::Path;

use serde::Deserialize;
use tidegate_core::{Bytes, Rate, Span};

use super::error::{Mismatch, contents, quote};
use super::text::without_mark;
use super::{ReadError, within_most};

/// A movie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Movie {
    /// How long a segment plays.
    segment: Span,
    /// The nominal rate of each quality, ascending.
    rates: Vec<Rate>,
    /// For each segment its size in each quality; at least one.
    sizes: Vec<Vec<Bytes>>,
}

/// A movie with more qualities than this is a mistake in the file.
pub const MOST_QUALITIES: usize = 100;
/// Nothing plays longer: a day.
pub const LONGEST_SEGMENT: Span = Span::seconds(86_400);

#[derive(Deserialize)]
struct Manifest {
    segment_duration_ms: f64,
    bitrates_kbps: Vec<f64>,
    segment_sizes_bits: Vec<Vec<f64>>,
}

impl Movie {
    /// A movie of segments that all have the nominal rate of their quality; `None` unless
    /// there is a quality, rates ascend, and segments have a length and a byte.
    #[must_use]
    pub fn constant(segment: Span, rates: &[Rate]) -> Option<Movie> {
        let sizes: Vec<Bytes> = rates.iter().map(|rate| rate.volume(segment)).collect();
        Movie::checked(segment, rates.to_vec(), vec![sizes])
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it is not such a file, or what it says cannot be.
    pub fn read(path: &Path) -> Result<Movie, ReadError> {
        let (file, contents) = contents(path)?;
        Movie::parse(&file, &contents)
    }

    /// Reads a movie from memory; `name` is for error messages.
    ///
    /// # Errors
    /// As [`read`](Movie::read).
    pub fn parse(name: &str, contents: &[u8]) -> Result<Movie, ReadError> {
        let expected = "a movie: segment_duration_ms, bitrates_kbps and segment_sizes_bits";
        let manifest: Manifest =
            serde_json::from_slice(without_mark(contents)).map_err(|error| {
                let message = error.to_string();
                // The place already stands in front of the message.
                let message = message.split(" at line ").next().unwrap_or_default();
                let line = u64::try_from(error.line()).unwrap_or(u64::MAX).max(1);
                Mismatch::new(quote(message), expected).at_line(name, line)
            })?;
        // `as` saturates, and what is too large is refused below.
        let segment = Span::from_seconds(manifest.segment_duration_ms / 1e3);
        let rates = manifest.bitrates_kbps.iter().map(|rate| Rate((rate * 1e3).round() as u64));
        let whole = |bits: &f64| Bytes((bits / 8.0).ceil() as u64);
        let sizes = manifest.segment_sizes_bits.iter().map(|row| row.iter().map(whole).collect());
        Movie::checked(segment, rates.collect(), sizes.collect()).ok_or_else(|| {
            let expected = format!(
                "1 to {MOST_QUALITIES} ascending rates, and segments of up to a day with a size \
                 for each of them"
            );
            ReadError::Nothing { file: name.into(), expected }
        })
    }

    fn checked(segment: Span, rates: Vec<Rate>, sizes: Vec<Vec<Bytes>>) -> Option<Movie> {
        let is_size = |size: &Bytes| *size > Bytes::ZERO && within_most(*size).is_some();
        let is_whole = |row: &Vec<Bytes>| row.len() == rates.len() && row.iter().all(is_size);
        let ascend = rates.first().is_some_and(|rate| *rate > Rate(0))
            && rates.is_sorted_by(|one, next| one < next);
        let fits = segment > Span::ZERO
            && segment <= LONGEST_SEGMENT
            && rates.len() <= MOST_QUALITIES
            && ascend
            && !sizes.is_empty()
            && sizes.iter().all(is_whole);
        fits.then_some(Movie { segment, rates, sizes })
    }

    /// How long a segment plays.
    #[must_use]
    pub fn segment(&self) -> Span {
        self.segment
    }

    /// The nominal rate of each quality, ascending.
    #[must_use]
    pub fn rates(&self) -> &[Rate] {
        &self.rates
    }

    /// The number of segments, after which it begins again.
    #[must_use]
    pub fn segments(&self) -> u64 {
        self.sizes.len() as u64
    }

    /// The size of a segment in a quality.
    ///
    /// # Panics
    /// When there is no such quality.
    #[must_use]
    pub fn size(&self, segment: u64, quality: usize) -> Bytes {
        self.sizes[(segment % self.segments()) as usize][quality]
    }
}
