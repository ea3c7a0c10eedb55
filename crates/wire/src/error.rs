//! The one error of reading and rewriting a frame: what was found and what was
//! expected, as numbers, so that an error allocates nothing.

/// Why a frame gives no packet, or why its packet was not rewritten.
///
/// Printed, it is a single line:
///
/// ```
/// use tidegate_wire::{Headers, Link};
///
/// let error = Headers::read(Link::Ethernet, &[0; 10]).unwrap_err();
/// assert_eq!(error.to_string(), "found 10 bytes of Ethernet header, expected 14");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The frame ends within a header, or before the IP packet does.
    #[error("found {found} bytes of {part}, expected {expected}")]
    Short {
        /// The part of the frame that is cut.
        part: &'static str,
        /// Bytes of it that are there.
        found: u64,
        /// Bytes that it has, or has at least.
        expected: u64,
    },
    /// The frame is of another network protocol: ARP, spanning tree, MPLS, and
    /// so on. Values below 1536 are lengths of IEEE 802.3 frames.
    #[error(
        "found EtherType {0:#06x}, expected IPv4 (0x0800), IPv6 (0x86dd), a VLAN tag (0x8100, \
         0x88a8, 0x9100) or a PPPoE session (0x8864)"
    )]
    EtherType(u16),
    /// The PPPoE session carries another protocol, for example its own control.
    #[error("found PPP protocol {0:#06x}, expected IPv4 (0x0021) or IPv6 (0x0057)")]
    PppProtocol(u16),
    /// The loopback frame is of another address family.
    #[error("found address family {0}, expected IPv4 (2) or IPv6 (10, 24, 28 or 30)")]
    AddressFamily(u32),
    /// What should be an IP header is none.
    #[error("found IP version {0}, expected 4 or 6")]
    Version(u8),
    /// The IPv4 header says that it is shorter than its fixed part.
    #[error("found an IPv4 header of {0} bytes, expected at least 20")]
    HeaderLength(u8),
    /// The IP header says that the packet is shorter than its headers are.
    #[error("found an IP packet of {stated} bytes, expected at least the {headers} of its headers")]
    PacketLength {
        /// The length that the header states; without one, the length on the wire.
        stated: u64,
        /// The length of the IP header with its extension headers.
        headers: u64,
    },
    /// A packet was to be marked whose sender does not understand marks.
    #[error("found a packet that is not ECN-capable, expected ECT(0), ECT(1) or CE")]
    NotEcnCapable,
}

impl FrameError {
    /// Whether the frame is well formed as far as it was read and holds
    /// something other than IP.
    #[must_use]
    pub fn is_other_protocol(self) -> bool {
        matches!(
            self,
            FrameError::EtherType(_) | FrameError::PppProtocol(_) | FrameError::AddressFamily(_)
        )
    }
}
