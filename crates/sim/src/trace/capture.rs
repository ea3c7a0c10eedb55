//! Packets recorded on the wire: pcap and pcapng.
//!
//! A capture is read as a stream, one record at a time, so that memory holds
//! the packets' facts (some 90 bytes each) and never the file. The format's
//! lengths are checked before anything is allocated for them.
//!
//! - **Times** count from the first record, as in other tools. A clock that was set back during
//!   the recording must not turn the order of the packets around: they stay in
//!   the file's order, a time that would decrease is held at the latest before,
//!   and each step back is counted.
//! - **Headers** are read by [`tidegate_wire`], which describes the known link
//!   layers, what counts as a packet's size, and how fragments are keyed.
//! - **A file that breaks off**, as that of an interrupted `tcpdump` does, gives the
//!   records before its end, and says where that is.
//! - Packets that are not IP or do not hold an IP header are left out and counted.

mod records;

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::Path;

use tidegate_core::{Bytes, Dscp, Ecn, FlowKey, Span, TcpFacts, Time};
use tidegate_wire::{Headers, Link};

use super::names::Listener;
use super::rtp::{RtpListener, RtpStream};
use super::{Names, ReadError, stream};

/// The most records of a capture: each packet takes some 90 bytes of memory.
pub const MOST_RECORDS: u64 = 50_000_000;

/// The packets of one capture file, in the file's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// The IP packets. Times never decrease.
    pub packets: Vec<CapturedPacket>,
    /// From the first to the last record, also of those that were left out.
    pub duration: Span,
    /// The names of hosts that it reveals.
    pub names: Names,
    /// The streams of each flow that is RTP, the largest first.
    pub rtp: BTreeMap<FlowKey, Vec<RtpStream>>,
    /// What was left out.
    pub skipped: Skipped,
    /// Where the file breaks off, if it ends within a record.
    pub cut: Option<Cut>,
    /// How often a record's time stamp was before that of the record before.
    pub clock_steps_back: u64,
    /// Records in pcapng "simple" blocks, which have no time: they take that of
    /// the record before.
    pub without_time: u64,
}

/// The end of a capture within a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The packet of the record, counted from 1; the next one if it is of none.
    pub packet: u64,
    /// Where the record starts, in bytes from the start of the file, unpacked.
    pub offset: u64,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cut { packet, offset } = self;
        write!(f, "the file breaks off within packet {packet}, which starts at byte {offset}")
    }
}

/// One IP packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedPacket {
    /// When it was captured, from the first record on.
    pub at: Time,
    /// Its flow.
    pub flow: FlowKey,
    /// Its IP length: header and payload, without the link layer.
    pub size: Bytes,
    /// The facts of the TCP header, when the packet is TCP, is no fragment, and
    /// enough of it was captured.
    pub tcp: Option<TcpFacts>,
    /// The codepoint of the IP header.
    pub dscp: Dscp,
    /// The congestion field of the IP header.
    pub ecn: Ecn,
}

/// Records of a capture that gave no packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Frames of other protocols than IP: ARP, spanning tree, and so on.
    pub non_ip: u64,
    /// Frames that should hold an IP header and do not: cut within it, or with
    /// lengths that contradict each other.
    pub malformed: u64,
    /// Packets of a pcapng interface whose link layer is not known here.
    pub other_link: u64,
}

impl Skipped {
    /// All of them together.
    #[must_use]
    pub fn total(self) -> u64 {
        self.non_ip + self.malformed + self.other_link
    }
}

impl Capture {
    /// Reads a pcap or pcapng file, or standard input if `path` is `-`; compressed ones
    /// too ([`stream`]).
    ///
    /// # Errors
    /// When the file is no capture, is of a link layer that is not known, is corrupt, or
    /// has more than [`MOST_RECORDS`] records: then with the number of the packet and the
    /// byte.
    pub fn read(path: &Path) -> Result<Capture, ReadError> {
        Capture::stream(&stream::name(path), stream::open(path)?)
    }

    /// Reads a capture from memory; `name` is for error messages.
    ///
    /// # Errors
    /// As [`read`](Capture::read).
    pub fn parse(name: &str, contents: &[u8]) -> Result<Capture, ReadError> {
        Capture::stream(name, contents)
    }

    /// Reads a capture from a stream, as standard input; `name` is for error messages.
    ///
    /// # Errors
    /// As [`read`](Capture::read).
    pub fn stream(name: &str, reader: impl Read) -> Result<Capture, ReadError> {
        let mut collector = Collector::default();
        records::read(name, reader, &mut collector)?;
        let (names, rtp) = (collector.listener.names, collector.rtp.streams());
        Ok(Capture { names, rtp, ..collector.capture })
    }
}

/// What one direction of a flow carried in a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowTotal {
    /// Packets.
    pub packets: u64,
    /// IP lengths of all packets.
    pub size: Bytes,
    /// What the packets carried above TCP or UDP; repeated segments count again.
    pub payload: Bytes,
}

impl Capture {
    /// What each direction of each flow carried.
    #[must_use]
    pub fn flow_totals(&self) -> BTreeMap<FlowKey, FlowTotal> {
        let mut totals: BTreeMap<FlowKey, FlowTotal> = BTreeMap::new();
        for packet in &self.packets {
            let total = totals.entry(packet.flow).or_default();
            total.packets += 1;
            total.size += packet.size;
            total.payload += packet.payload();
        }
        totals
    }
}

impl CapturedPacket {
    /// Bytes above TCP or UDP; zero for other protocols, and for TCP whose
    /// header was not captured. UDP over IPv6 with extension headers counts
    /// these as payload.
    #[must_use]
    pub fn payload(&self) -> Bytes {
        const UDP_HEADER: u64 = 8;
        let ip_header = if self.flow.source().is_ipv4() { 20 } else { 40 };
        match (self.tcp, self.flow.protocol()) {
            (Some(tcp), _) => Bytes(tcp.payload.into()),
            (None, FlowKey::UDP) => self.size - Bytes(ip_header + UDP_HEADER),
            _ => Bytes::ZERO,
        }
    }
}

/// Nanoseconds since the epoch of the recording clock, which pcapng may set
/// before 1970 and count in fractions or multiples of any size.
type Stamp = i128;

/// One record of a file, still in the file's terms.
struct Record<'a> {
    /// `None` for records that have no time.
    stamp: Option<Stamp>,
    /// `None` for link layers that are not known.
    link: Option<Link>,
    /// What was captured of the frame.
    frame: &'a [u8],
    /// How long the frame was on the wire.
    wire_length: u64,
}

/// Turns records into the packets of a capture.
#[derive(Default)]
struct Collector {
    capture: Capture,
    listener: Listener,
    rtp: RtpListener,
    /// Stamps of the first record and of the record before.
    clock: Option<(Stamp, Stamp)>,
}

impl Collector {
    fn take(&mut self, record: &Record) {
        self.advance(record.stamp);
        let at = Time::ZERO + self.capture.duration;
        let skipped = &mut self.capture.skipped;
        let Some(link) = record.link else {
            skipped.other_link += 1;
            return;
        };
        match Headers::read_captured(link, record.frame, record.wire_length) {
            Ok(Headers { flow, ip_length: size, tcp, dscp, ecn, .. }) => {
                self.capture.packets.push(CapturedPacket { at, flow, size, tcp, dscp, ecn });
                let listens = self.listener.listens(flow);
                let is_datagram = flow.protocol() == FlowKey::UDP;
                if (listens || is_datagram)
                    && let Some(payload) = tidegate_wire::payload(link, record.frame)
                {
                    if listens {
                        self.listener.hear(flow, payload);
                    }
                    if is_datagram {
                        self.rtp.hear(flow, payload);
                    }
                }
            }
            Err(error) if error.is_other_protocol() => skipped.non_ip += 1,
            Err(_) => skipped.malformed += 1,
        }
    }

    fn advance(&mut self, stamp: Option<Stamp>) {
        let capture = &mut self.capture;
        let Some(stamp) = stamp else {
            capture.without_time += 1;
            return;
        };
        let (first, before) = self.clock.unwrap_or((stamp, stamp));
        self.clock = Some((first, stamp));
        if stamp < before {
            capture.clock_steps_back += 1;
        }
        let since_first = stamp.saturating_sub(first).clamp(0, i128::from(u64::MAX));
        let elapsed = Span(u64::try_from(since_first).expect("clamped to 64 bits"));
        capture.duration = capture.duration.max(elapsed);
    }
}
