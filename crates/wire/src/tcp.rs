//! The facts of a TCP header that disciplines use.

use tidegate_core::TcpFacts;

use crate::{be16, be32};

/// Bytes of the fixed header.
const SHORTEST_HEADER: u64 = 20;
/// Where the flags are: after ports, numbers and the length of the header.
const FLAGS: usize = 13;
const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// Reads the start of a segment that is `length` bytes long, some of which may be
/// cut: `None` if the cut is before the end of the flags, or if the header does not
/// fit into the segment.
///
/// A parser for whole headers would lose captures that were cut to the usual 54 or
/// 64 bytes per frame.
pub(crate) fn facts(segment: &[u8], length: u64) -> Option<TcpFacts> {
    let flags = *segment.get(FLAGS)?;
    let header_length = header_length(segment);
    if header_length < SHORTEST_HEADER {
        return None;
    }
    Some(TcpFacts {
        sequence: be32(segment, 4),
        acknowledgement: (flags & ACK != 0).then(|| be32(segment, 8)),
        payload: u32::try_from(length.checked_sub(header_length)?).ok()?,
        syn: flags & SYN != 0,
        fin: flags & FIN != 0,
        // The low bits of the octet before the flags are flags too, or reserved.
        plain: be16(segment, 12) & 0x0fff == ACK.into() && has_no_options_but_timestamps(segment),
    })
}

/// What follows the header of a segment, as far as it is there.
pub(crate) fn payload(segment: &[u8]) -> Option<&[u8]> {
    segment.get(FLAGS)?;
    let length = header_length(segment);
    (length >= SHORTEST_HEADER).then(|| segment.get(usize::try_from(length).ok()?..)).flatten()
}

/// The length that the header states, in bytes: at most 60.
fn header_length(segment: &[u8]) -> u64 {
    u64::from(segment[12] >> 4) * 4
}

/// Also false if the options are cut off.
fn has_no_options_but_timestamps(segment: &[u8]) -> bool {
    const END: u8 = 0;
    const NOTHING: u8 = 1;
    // RFC 7323 section 3.
    const TIMESTAMPS: u8 = 8;
    const TIMESTAMPS_LENGTH: u8 = 10;
    let options = SHORTEST_HEADER as usize..header_length(segment) as usize;
    let Some(mut options) = segment.get(options) else {
        return false;
    };
    loop {
        options = match options {
            [] | [END, ..] => return true,
            [NOTHING, rest @ ..] => rest,
            [TIMESTAMPS, TIMESTAMPS_LENGTH, _, _, _, _, _, _, _, _, rest @ ..] => rest,
            _ => return false,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a header with these flags and options.
    fn is_plain(flags: u8, options: &[u8], cut: usize) -> bool {
        let length = 20 + options.len();
        let mut segment = vec![0; length];
        segment[12] = (length as u8 / 4) << 4;
        segment[13] = flags;
        segment[20..].copy_from_slice(options);
        let facts = facts(&segment[..length - cut], length as u64).unwrap();
        facts.plain
    }

    #[test]
    fn plain_acknowledgements_have_no_options_but_timestamps() {
        let timestamps = [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8];
        assert!(is_plain(0x10, &[], 0));
        assert!(is_plain(0x10, &timestamps, 0));
        assert!(is_plain(0x10, &[1, 1, 1, 0], 0));
        // Flags with PSH or ECE, a SACK block, options that are cut off.
        assert!(!is_plain(0x18, &[], 0));
        assert!(!is_plain(0x50, &[], 0));
        assert!(!is_plain(0x10, &[1, 1, 5, 10, 1, 2, 3, 4, 5, 6, 7, 8], 0));
        assert!(!is_plain(0x10, &timestamps, 1));
    }

    #[test]
    fn a_header_longer_than_its_segment_gives_no_facts() {
        let mut segment = [0; 60];
        segment[12] = 15 << 4;
        assert_eq!(facts(&segment, 60).map(|facts| facts.payload), Some(0));
        assert_eq!(facts(&segment, 59), None);
        segment[12] = 4 << 4;
        assert_eq!(facts(&segment, 60), None);
    }
}
