//! What is kept of a measurement: a few figures for each size class and log.
//!
//! Transfers themselves are not kept: a log of them is a megabyte, and a seed makes it
//! again.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};

use crate::workload::Transfer;

/// The upper ends of the size classes, and what pages call them.
pub const CLASSES: [(u64, &str); 5] = [
    (3_000, "≤ 3 kB"),
    (10_000, "3-10 kB"),
    (30_000, "10-30 kB"),
    (100_000, "30-100 kB"),
    (u64::MAX, "> 100 kB"),
];

/// The class that a size falls into.
#[must_use]
pub fn class(size_bytes: u64) -> usize {
    CLASSES.iter().position(|(most, _)| size_bytes <= *most).expect("the last has no end")
}

/// The response times of a class in one log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The cell's name.
    pub cell: String,
    /// The log's number.
    pub log: u64,
    /// The class's place in [`CLASSES`].
    pub class: usize,
    /// Transfers that were begun.
    pub begun: usize,
    /// Those of them that were done.
    pub done: usize,
    /// The mean of their response times.
    pub mean_ms: f64,
    /// The median.
    pub median_ms: f64,
    /// The 95th percentile.
    pub p95_ms: f64,
}

/// The order statistic at `part` of sorted values: the smallest that no more than
/// `1 - part` of them exceed.
#[must_use]
pub fn quantile(sorted: &[f64], part: f64) -> f64 {
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// Condenses a log: response times in seconds, `None` for a transfer that was not done.
/// A class without a finished transfer has no row.
#[must_use]
pub fn condense(
    cell: &str,
    log: u64,
    transfers: &[Transfer],
    responses: &[Option<f64>],
) -> Vec<Row> {
    let mut classes: BTreeMap<usize, (usize, Vec<f64>)> = BTreeMap::new();
    for (transfer, response) in transfers.iter().zip(responses) {
        let (begun, times) = classes.entry(class(transfer.size_bytes)).or_default();
        *begun += 1;
        times.extend(response.map(|seconds| seconds * 1e3));
    }
    let row = |(class, (begun, mut times)): (usize, (usize, Vec<f64>))| {
        times.sort_by(f64::total_cmp);
        let done = times.len();
        (done > 0).then(|| Row {
            cell: cell.into(),
            log,
            class,
            begun,
            done,
            mean_ms: micros(times.iter().sum::<f64>() / done as f64),
            median_ms: micros(quantile(&times, 0.5)),
            p95_ms: micros(quantile(&times, 0.95)),
        })
    };
    classes.into_iter().filter_map(row).collect()
}

/// Milliseconds with three decimals: stamps have no more.
fn micros(milliseconds: f64) -> f64 {
    (milliseconds * 1e3).round() / 1e3
}

/// Reads rows from a file of them.
///
/// # Errors
/// Those of the reader, and of lines that are no rows.
pub fn read<T: for<'a> Deserialize<'a>>(from: impl io::Read) -> io::Result<Vec<T>> {
    csv::Reader::from_reader(from).deserialize().map(|row| row.map_err(io::Error::from)).collect()
}

/// Writes rows as a file of them.
///
/// # Errors
/// Those of the writer.
pub fn write<T: Serialize>(rows: &[T], to: impl io::Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(to);
    for row in rows {
        writer.serialize(row)?;
    }
    writer.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_condensed_by_class() {
        let sizes = [100, 3_000, 3_001, 5_000_000, 2_000];
        let transfers = sizes.map(|size_bytes| Transfer { start_s: 0.0, size_bytes });
        let responses = [Some(0.05), Some(0.07), Some(0.1), None, Some(0.03)];
        let rows = condense("a", 7, &transfers, &responses);
        let small = &rows[0];
        assert_eq!((small.class, small.begun, small.done), (0, 3, 3));
        assert_eq!((small.mean_ms, small.median_ms, small.p95_ms), (50.0, 50.0, 70.0));
        // The long transfer was not done: its class has no figures.
        assert_eq!(rows.iter().map(|row| row.class).collect::<Vec<_>>(), [0, 1]);
        let mut file = Vec::new();
        write(&rows, &mut file).expect("memory does not fail");
        assert_eq!(read::<Row>(file.as_slice()).expect("it was just written"), rows);
    }

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!([0.5, 0.95, 1.0].map(|part| quantile(&values, part)), [10.0, 19.0, 20.0]);
        assert_eq!(quantile(&[4.0], 0.05), 4.0);
    }
}
