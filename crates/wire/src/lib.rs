//! Between the bytes of a frame and the packet that a discipline sees.
//!
//! [`Headers::read`] reads the facts of the packet in a frame: its flow, length,
//! DSCP and congestion field, and what its TCP header says.
//! [`mark_congested`] and [`set_ecn`] rewrite the congestion field in place.
//! [`payload`] finds what TCP or UDP carries, and [`tls`] the name of a server in it.
//! Nothing is remembered between frames, nothing but such a name allocated, and no input
//! makes anything here panic: a frame that cannot be read gives a
//! [`FrameError`] that says what was found and what was expected.
//!
//! # What is understood
//!
//! - **Link layers** ([`Link`]): Ethernet II with any number of VLAN tags (IEEE
//!   802.1Q, 802.1ad and the older 0x9100) and PPPoE sessions (RFC 2516); raw IP;
//!   the two Linux "cooked" headers; the loopback of BSD and macOS.
//! - **IPv4** with options and the authentication header; **IPv6** with
//!   hop-by-hop options, destination options, routing, fragment and
//!   authentication headers. The first four bits of the packet decide between
//!   the two. In a tunnel only the outer header is read, and the packet inside
//!   counts as a protocol without ports.
//! - **Ports** of TCP, UDP, UDP-Lite, SCTP and DCCP.
//! - **TCP facts**, even of a header that is cut after its flags.
//!
//! # Choices
//!
//! - **The length** is the one that the IP header states, whatever padding the
//!   frame has. Some headers state none (IPv4 total length 0, IPv6 payload
//!   length 0): those of jumbograms, and those of packets that the network card
//!   segments for the host. For these the length on the wire counts.
//! - **Fragments**: only the first fragment of a datagram has ports. All
//!   fragments are keyed without ports and carry no TCP facts, so that the
//!   pieces of a datagram stay together and in order. Their protocol is that of
//!   the IPv4 header or of the IPv6 fragment header, which all pieces share. A
//!   whole datagram that has a fragment header (RFC 6946) keeps its ports.
//! - **Checksums** are not verified, because a packet with a wrong one takes its
//!   time on the link as well. [`mark_congested`] keeps a right checksum right
//!   and a wrong one wrong.

mod ecn;
mod error;
mod headers;
mod link;
mod tcp;
pub mod tls;

pub use ecn::{mark_congested, set_ecn};
pub use error::FrameError;
pub use headers::{Headers, payload};
pub use link::Link;

/// Two bytes of a header that is known to be long enough.
fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Four bytes of a header that is known to be long enough.
fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
