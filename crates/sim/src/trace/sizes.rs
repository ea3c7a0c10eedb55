//! Measures the distribution of transfer sizes in recorded traffic.
//!
//! The content of each file tells its format, not its name. The sizes of all files
//! are pooled, each with the same weight:
//!
//! - captures: for each flow and direction, the bytes that it carried above TCP or
//!   UDP; directions that only acknowledge are left out;
//! - connection logs: for each connection and direction, the bytes that it carried;
//! - page loads and HTTP logs: the size of each reply that is not empty;
//! - flow logs: the size of each flow.
//!
//! Requests and replies are nothing alike, and a law of sizes that mixes them is of
//! neither. So captures and connection logs are asked for one [`Direction`], or on
//! purpose for both. The other formats have one: down, to the user.

use std::path::{Path, PathBuf};

use tidegate_core::Bytes;

use super::{Direction, Format, ReadError, Recording, SizeDistribution};

/// What [`measure`] found.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The distribution of all sizes.
    pub distribution: SizeDistribution,
    /// The mean of all sizes in bytes; that of the distribution, which may have fewer
    /// points than there are sizes, differs a little.
    pub mean: f64,
    /// Each file's share in it.
    pub files: Vec<MeasuredFile>,
}

/// What one file gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredFile {
    /// The file.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// The number of sizes it gave.
    pub sizes: u64,
    /// How many records gave none: unknown, empty or unreadable.
    pub left_out: u64,
}

/// Measures the sizes in `files`, of one direction or of both, in a distribution of at
/// most `max_points` points (at least 8). The file `-` is standard input.
///
/// # Errors
/// That of the first file that cannot be read; also when no file contains a size.
pub fn measure(
    files: &[impl AsRef<Path>],
    direction: Option<Direction>,
    max_points: usize,
) -> Result<Measured, ReadError> {
    let mut sizes = Vec::new();
    let mut measured = Vec::new();
    for path in files.iter().map(AsRef::as_ref) {
        let found = Sizes::of(&Recording::read(path)?, direction);
        measured.push(MeasuredFile {
            path: path.into(),
            format: found.format,
            sizes: found.sizes.len() as u64,
            left_out: found.left_out,
        });
        sizes.extend(found.sizes);
    }
    let Some(distribution) = SizeDistribution::from_sizes(&sizes, max_points) else {
        let names: Vec<_> = measured.iter().map(|file| file.path.display().to_string()).collect();
        let expected = "a flow or reply that is not empty".into();
        return Err(ReadError::Nothing { file: names.join(", "), expected });
    };
    let sum: u128 = sizes.iter().map(|size| u128::from(size.0)).sum();
    let mean = sum as f64 / sizes.len() as f64;
    Ok(Measured { distribution, mean, files: measured })
}

/// The sizes in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The file's format.
    pub format: Format,
    /// The sizes, none of them zero, in an order that depends only on the file.
    pub sizes: Vec<Bytes>,
    /// How many records gave none: unknown, empty or unreadable.
    pub left_out: u64,
}

impl Sizes {
    /// The sizes of a recording, in one direction or in both.
    #[must_use]
    pub fn of(recording: &Recording, direction: Option<Direction>) -> Sizes {
        let wanted = |found| direction.is_none_or(|direction| found == direction);
        let (sizes, unknown): (Vec<Bytes>, u64) = match recording {
            Recording::Capture(capture) => {
                let hosts = capture.local_hosts();
                let totals = capture.flow_totals();
                let totals = totals.iter().filter(|(flow, _)| {
                    direction.is_none() || hosts.direction(**flow).is_some_and(wanted)
                });
                (totals.map(|(_, total)| total.payload).collect(), capture.skipped.total())
            }
            Recording::ConnectionLog(log) => {
                let sizes = log.connections.iter().flat_map(|connection| {
                    [(Direction::Up, connection.up), (Direction::Down, connection.down)]
                });
                let sizes = sizes.filter(|(found, _)| wanted(*found));
                (sizes.map(|(_, size)| size).collect(), log.without_size)
            }
            _ if direction == Some(Direction::Up) => (Vec::new(), 0),
            Recording::PageLoads(loads) => {
                (loads.requests().map(|request| request.size).collect(), loads.unknown_sizes)
            }
            Recording::HttpLog(log) => {
                (log.replies.iter().map(|reply| reply.size).collect(), log.without_size)
            }
            Recording::FlowLog(log) => (log.flows.iter().map(|flow| flow.size).collect(), 0),
        };
        let all = sizes.len();
        let sizes: Vec<Bytes> = sizes.into_iter().filter(|size| *size > Bytes::ZERO).collect();
        let left_out = unknown + (all - sizes.len()) as u64;
        Sizes { format: recording.format(), sizes, left_out }
    }
}
