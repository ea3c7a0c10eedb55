//! Rewriting the congestion field of a frame's IP header.
//!
//! Nothing else changes but the checksum of the IPv4 header, which is updated
//! from the difference alone (RFC 1624 section 3): a wrong checksum stays wrong
//! by the same amount, so that an error on the way is still found at the end.
//! No other checksum covers the field: those of TCP and UDP leave it out, and
//! the authentication header takes it as zero (RFC 4302 section 3.3.3.1). In a
//! tunnel only the outer header is rewritten, the one that a queue can see.

use tidegate_core::Ecn;

use crate::error::FrameError;
use crate::link::Link;
use crate::{Headers, be16};

/// Marks the packet in `frame` with CE, congestion experienced (RFC 3168
/// section 5). A packet that is marked already stays as it is.
///
/// ```
/// use tidegate_core::Ecn;
/// use tidegate_wire::{FrameError, Headers, Link, mark_congested};
///
/// let mut packet = [0; 20];
/// packet[..4].copy_from_slice(&[0x45, 0, 0, 20]);
/// assert_eq!(mark_congested(Link::RawIp, &mut packet), Err(FrameError::NotEcnCapable));
/// packet[1] = 2;
/// mark_congested(Link::RawIp, &mut packet)?;
/// assert_eq!(Headers::read(Link::RawIp, &packet)?.ecn, Ecn::Ce);
/// # Ok::<(), FrameError>(())
/// ```
///
/// # Errors
/// When the sender does not understand marks, and as [`Headers::read`]. The
/// frame is then as it was.
pub fn mark_congested(link: Link, frame: &mut [u8]) -> Result<(), FrameError> {
    let headers = Headers::read(link, frame)?;
    if !headers.ecn.is_markable() {
        return Err(FrameError::NotEcnCapable);
    }
    rewrite(&mut frame[headers.link_header..], Ecn::Ce);
    Ok(())
}

/// Sets the congestion field of the packet in `frame` to any value. A sender or
/// the end of a tunnel may do so; a queue may only [mark](mark_congested).
///
/// # Errors
/// As [`Headers::read`]. The frame is then as it was.
pub fn set_ecn(link: Link, frame: &mut [u8], ecn: Ecn) -> Result<(), FrameError> {
    let headers = Headers::read(link, frame)?;
    rewrite(&mut frame[headers.link_header..], ecn);
    Ok(())
}

/// Rewrites a packet whose IP header is known to be whole.
fn rewrite(packet: &mut [u8], ecn: Ecn) {
    const IPV4_CHECKSUM: usize = 10;
    let before = be16(packet, 0);
    let is_v4 = before >> 12 == 4;
    // The octet with the field is the second in IPv4; in IPv6 it begins in the
    // middle of the first.
    let shift = if is_v4 { 0 } else { 4 };
    let octet = ecn.on((before >> shift) as u8);
    let after = before & !(0xff << shift) | u16::from(octet) << shift;
    if after == before {
        return;
    }
    packet[..2].copy_from_slice(&after.to_be_bytes());
    if is_v4 {
        let checksum = updated(be16(packet, IPV4_CHECKSUM), before, after);
        packet[IPV4_CHECKSUM..IPV4_CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// The checksum after one of its words has changed (RFC 1624 section 3,
/// equation 3).
fn updated(checksum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    // The carry out of 16 bits is at most 2; adding it once may carry again.
    let once = (sum & 0xffff) + (sum >> 16);
    !((once & 0xffff) + (once >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1624_is_worked_as_there() {
        // Section 4: the word 0x5555 becomes 0x3285, and the checksum 0xDD2F
        // becomes 0x0000, where the older equation gives 0xFFFF.
        assert_eq!(updated(0xdd2f, 0x5555, 0x3285), 0x0000);
    }
}
