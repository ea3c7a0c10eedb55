//! Packets recorded on the wire: pcap and pcapng.
//!
//! A capture is read as a stream, one record at a time, so that memory holds
//! the packets' facts (some 90 bytes each) and never the file. The format's
//! lengths are checked before anything is allocated for them.
//!
//! - **Times** count from the first packet. A clock that was set back during
//!   the recording must not turn the order of the packets around: they stay in
//!   the file's order, a time that would decrease is held at the one before,
//!   and each such step is counted.
//! - **Sizes** are the length that the IP header states, whatever part of the
//!   packet was captured. Where the header states none (IPv4 total length 0,
//!   IPv6 jumbograms; network cards that segment for the host leave it so) the
//!   length on the wire is taken.
//! - **Fragments** have ports only in the first of them. All are keyed without
//!   ports, so that the pieces of a datagram stay together, and carry no TCP
//!   facts.
//! - Packets that are not IP or do not hold an IP header are left out and counted.

use std::io::Read;
use std::path::Path;

use tidegate_core::{Bytes, Ecn, FlowKey, TcpFacts, Time};

use super::ReadError;

/// The packets of one capture file, in the file's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// The IP packets. Times never decrease, and the first is at zero.
    pub packets: Vec<CapturedPacket>,
    /// What was left out.
    pub skipped: Skipped,
    /// How often the recording clock stepped back.
    pub clock_steps_back: u64,
    /// Packets in pcapng "simple" blocks, which have no time: they take that
    /// of the packet before.
    pub without_time: u64,
}

/// One IP packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedPacket {
    /// When it was captured, from the first packet on.
    pub at: Time,
    /// Its flow.
    pub flow: FlowKey,
    /// Its IP length: header and payload, without the link layer.
    pub size: Bytes,
    /// The facts of the TCP header, when the packet is TCP, is no fragment, and
    /// enough of it was captured.
    pub tcp: Option<TcpFacts>,
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
    /// Packets of a pcapng interface whose link type is not known here.
    pub other_link: u64,
}

impl Capture {
    /// Reads a pcap or pcapng file.
    ///
    /// # Errors
    /// When the file is no capture, is of a link type that is not known, or is
    /// truncated or corrupt: then with the number of the packet and the byte.
    pub fn read(path: &Path) -> Result<Capture, ReadError> {
        let _ = path;
        unimplemented!("next commit")
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
        let _ = (name, reader);
        unimplemented!("next commit")
    }
}
