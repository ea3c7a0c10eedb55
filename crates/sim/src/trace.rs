//! Readers for recorded traffic: captures, logs, page loads, link capacity over
//! time, and distributions of sizes.
//!
//! A file from outside is untrusted. Every reader checks it once, here, and returns
//! values of the simulator's own types: times are in nanoseconds and never
//! decrease, sizes are bytes, flows are [`FlowKey`](tidegate_core::FlowKey)s.
//! Whatever the bytes are, a reader ends with a value or with a [`ReadError`] that
//! says where it stopped, what it found and what it expected; it never panics and
//! never allocates more than a small multiple of the file. What comes out of a pipe or
//! of a compressed file has bounds of its own ([`stream`]). A reader counts what it
//! leaves out on purpose, so that nothing is lost without a trace.
//!
//! | module | reads |
//! | --- | --- |
//! | [`capture`] | packets: pcap and pcapng |
//! | [`hosts`] | which side of a capture is the user's |
//! | [`names`] | the names of hosts that a capture reveals |
//! | [`applications`] | the applications, calls and hosts of a capture |
//! | [`rtp`] | the streams of RTP in a capture |
//! | [`call`] | the spacing and size of the packets of one flow of a capture |
//! | [`flent`] | measurements of a link under load: results of Flent |
//! | [`flow_log`] | flows: CSV or TSV of start and size |
//! | [`frames`] | frames of a stream, or packets of a call: the same columns |
//! | [`http_log`] | replies of a Web server or proxy: Common and Combined Log Format, Squid's own, NASA TSV |
//! | [`movie`] | the segments of a video in several qualities: JSON of Sabre |
//! | [`page_load`] | page loads of a browser: HAR |
//! | [`page_table`] | page loads in short: CSV of objects, bytes and hosts |
//! | [`delivery`] | capacity of a link over time: Mahimahi traces |
//! | [`size_distribution`] | distributions of sizes: our CSV, NetSys and Homa files |
//! | [`connection_log`] | connections: Zeek's conn.log, tcptrace |
//! | [`recording`] | any of the files of traffic above, told apart by their content |
//! | [`transfers`] | what such a file says was downloaded and uploaded |
//! | [`stream`] | where bytes come from: files, pipes, gzip, zstd |
//! | [`sizes`] | measures a distribution of sizes in any of the traffic files above |
//!
//! Each reader has `read(path)` for a file, which may be compressed, and
//! `parse(name, contents)` for bytes in memory that are not; the name is used only in
//! error messages.

use tidegate_core::units::NANOS_PER_SECOND;
use tidegate_core::{Bytes, Rate, Span};

pub mod applications;
pub mod call;
pub mod capture;
pub mod connection_log;
pub mod delivery;
pub mod error;
pub mod flent;
pub mod flow_log;
pub mod frames;
pub mod hosts;
pub mod http_log;
pub mod movie;
pub mod names;
pub mod page_load;
pub mod page_table;
pub mod recording;
pub mod rtp;
pub mod size_distribution;
pub mod sizes;
pub mod stream;
mod text;
pub mod transfers;

pub use applications::{Division, Part, RecordedCall};
pub use call::CallProfile;
pub use capture::{Capture, CapturedPacket, Cut, Skipped};
pub use connection_log::{ConnectionLog, LoggedConnection};
pub use delivery::DeliveryTrace;
pub use error::ReadError;
pub use flent::{Flent, FlentKind, FlentQueue, FlentSample, FlentSeries};
pub use flow_log::{FlowLog, LoggedFlow};
pub use frames::{Frame, FrameTrace};
pub use hosts::{Direction, Hosts};
pub use http_log::{HttpLog, LoggedReply};
pub use movie::Movie;
pub use names::Names;
pub use page_load::{HttpVersion, PageLoad, PageLoads, PageRequest, Urgency};
pub use page_table::{PageOutline, PageTable};
pub use recording::{Format, Recording};
pub use rtp::RtpStream;
pub use size_distribution::SizeDistribution;
pub use sizes::{Measured, measure};
pub use transfers::Transfers;

/// The largest size that a record may state, 1 TB. Nothing that is recorded is larger,
/// and whatever says it is holds no sizes.
pub const MOST_SIZE: Bytes = Bytes(1_000_000_000_000);

/// A size within [`MOST_SIZE`].
fn within_most(size: Bytes) -> Option<Bytes> {
    (size <= MOST_SIZE).then_some(size)
}

/// The rate at which `size` takes `span`, rounded down; zero for no time.
fn mean_rate(size: Bytes, span: Span) -> Rate {
    let bit_nanos = u128::from(size.0) * 8 * u128::from(NANOS_PER_SECOND);
    let rate = bit_nanos.checked_div(span.0.into()).unwrap_or(0);
    Rate(u64::try_from(rate).unwrap_or(u64::MAX))
}
