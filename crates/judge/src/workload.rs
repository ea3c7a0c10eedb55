//! What both worlds send: transfers that start when their time has come, whether the
//! earlier ones are done or not.
//!
//! Starts are Poisson, sizes lognormal with the mean of a web response. A log holds
//! the same number of bytes on the wire on every link, so that every log costs about
//! the same to measure, and short transfers are as many on a slow link as on a fast one.

use std::io;

use serde::{Deserialize, Serialize};
use tidegate_core::{Rate, Span, Stream};

/// Mean of the natural logarithm of a size in bytes.
const LOG_MEAN: f64 = 9.357;
/// Standard deviation of that logarithm: with the mean above, a size is 27.7 kB on
/// average and 11.6 kB in the median.
const LOG_DEVIATION: f64 = 1.318;
/// No size is smaller: the agents' header takes 12 bytes.
const LEAST_BYTES: u64 = 100;
/// No size is larger, so that no one transfer decides a log.
const MOST_BYTES: u64 = 5_000_000;
/// Payload and size of a full packet: the load counts headers.
pub(crate) const SEGMENT_BYTES: f64 = 1448.0;
const PACKET_BYTES: f64 = 1500.0;
/// Bits on the wire of one log, on average.
const LOG_BITS: f64 = 300e6;

/// One transfer: a connection that carries these bytes, and is closed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// When the sender opens the connection, from the start of the log.
    pub start_s: f64,
    /// Bytes of payload.
    pub size_bytes: u64,
}

/// How long the log of a link at `load` (a part of `rate`) lasts.
#[must_use]
pub fn duration(rate: Rate, load: f64) -> Span {
    Span::from_seconds(LOG_BITS / (rate.0 as f64 * load))
}

/// The log number `seed` for a link of `rate` at `load`. Starts are whole microseconds,
/// as the file says them.
#[must_use]
pub fn transfers(rate: Rate, load: f64, seed: u64) -> Vec<Transfer> {
    let mut stream = Stream::new(seed, "transfers");
    let mean_bytes = libm::exp(LOG_MEAN + LOG_DEVIATION * LOG_DEVIATION / 2.0);
    let mean_bits = mean_bytes * 8.0 * PACKET_BYTES / SEGMENT_BYTES;
    let mean_gap_s = mean_bits / (rate.0 as f64 * load);
    let end_s = duration(rate, load).as_seconds();
    let mut now_s = 0.0;
    let mut transfers = Vec::new();
    loop {
        now_s += stream.exponential() * mean_gap_s;
        if now_s >= end_s {
            return transfers;
        }
        let size = libm::exp(LOG_MEAN + LOG_DEVIATION * stream.normal()) as u64;
        transfers.push(Transfer {
            start_s: (now_s * 1e6).round() / 1e6,
            size_bytes: size.clamp(LEAST_BYTES, MOST_BYTES),
        });
    }
}

/// Writes transfers as the simulator and the agents read them.
///
/// # Errors
/// Those of the writer.
pub fn write(transfers: &[Transfer], to: impl io::Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(to);
    for transfer in transfers {
        writer.serialize(transfer)?;
    }
    writer.flush()
}

/// Reads what [`write()`] wrote.
///
/// # Errors
/// Those of the reader, and of lines that are no transfers.
pub fn read(from: impl io::Read) -> io::Result<Vec<Transfer>> {
    csv::Reader::from_reader(from).deserialize().map(|row| row.map_err(io::Error::from)).collect()
}
