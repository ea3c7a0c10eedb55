//! What a segment says: the TCP header without ports and payload. Also the
//! mapping between the 32-bit sequence numbers on the wire and the 64-bit
//! stream offsets that all other code uses.
//!
//! A header is copied from endpoint to link to endpoint, so it is small and
//! flat: 68 bytes, SACK blocks included.

use std::fmt;
use std::ops::BitOr;

use tidegate_core::{Bytes, Ecn, Span, Time};

/// IPv4 header without options.
const IP_HEADER: u64 = 20;
/// TCP header without options.
const TCP_HEADER: u64 = 20;
/// Timestamps option with the two no-operations that align it (RFC 7323 appendix A).
const TIMESTAMPS: u64 = 12;
/// Kind, length and alignment of a SACK option (RFC 2018 section 3).
const SACK_PREFIX: u64 = 4;
/// Two sequence numbers.
const SACK_BLOCK: u64 = 8;

/// Most SACK blocks that fit into a header without other options.
pub const MAX_SACK_BLOCKS: usize = 4;

/// The flags of the TCP header that the model knows.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(u8);

impl Flags {
    /// Last segment of its direction.
    pub const FIN: Flags = Flags(0x01);
    /// First segment of its direction.
    pub const SYN: Flags = Flags(0x02);
    /// The connection is gone.
    pub const RST: Flags = Flags(0x04);
    /// Ends what the application has written.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Flags = Flags(0x10);
    /// Echo of a congestion mark (RFC 3168).
    pub const ECE: Flags = Flags(0x40);
    /// The congestion window has been reduced (RFC 3168).
    pub const CWR: Flags = Flags(0x80);
    /// Accurate ECN (RFC 9768). On the wire it stands in the octet before the others; here it
    /// has the bit of URG, which the model does not know.
    pub const AE: Flags = Flags(0x20);
    /// The three flags of accurate ECN.
    pub const ACE: Flags = Flags(0xe0);

    /// No flag at all.
    #[must_use]
    pub const fn empty() -> Flags {
        Flags(0)
    }

    /// Whether all of `flags` are set.
    #[must_use]
    pub const fn contains(self, flags: Flags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Whether any of `flags` is set.
    #[must_use]
    pub const fn intersects(self, flags: Flags) -> bool {
        self.0 & flags.0 != 0
    }

    /// These flags if `condition` holds, otherwise none.
    pub(super) const fn when(self, condition: bool) -> Flags {
        if condition { self } else { Flags(0) }
    }

    /// The flags as they stand in the two octets of the header; other bits are dropped.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Flags {
        Flags((bits & 0xdf) as u8).or(Flags::AE.when(bits & 0x100 != 0))
    }

    const fn or(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// The number that AE, CWR and ECE are together.
    pub(super) const fn ace(self) -> u8 {
        (self.0 & Flags::AE.0) >> 3 | self.0 >> 6
    }

    /// AE, CWR and ECE that are this number, of which three bits count.
    pub(super) const fn of_ace(number: u8) -> Flags {
        Flags((number & 0b100) << 3 | number << 6)
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        self.or(other)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Flags, &str); 8] = [
            (Flags::SYN, "S"),
            (Flags::FIN, "F"),
            (Flags::RST, "R"),
            (Flags::PSH, "P"),
            (Flags::ACK, "."),
            (Flags::ECE, "E"),
            (Flags::CWR, "W"),
            (Flags::AE, "A"),
        ];
        NAMES.iter().filter(|(flag, _)| self.contains(*flag)).try_for_each(|(_, n)| f.write_str(n))
    }
}

/// Options that a segment carries, besides SACK blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    /// Maximum segment size, on a SYN; zero for none.
    pub mss: u16,
    /// SACK permitted, on a SYN.
    pub sack_permitted: bool,
    /// Window scale, on a SYN.
    pub window_scale: bool,
    /// Timestamps.
    pub timestamps: bool,
}

/// The timestamps option (RFC 7323 section 3), in milliseconds as in Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timestamps {
    /// TSval: the sender's clock. It starts at 1, so that zero is none.
    pub value: u32,
    /// TSecr: the latest value of the peer's that counts; zero before the first.
    pub echo: u32,
}

/// The clock of timestamps.
pub(super) fn timestamp(now: Time) -> u32 {
    (now.0 / Span::millis(1).0 + 1) as u32
}

/// Whether the peer echoes a timestamp from before `sent_at`.
pub(super) fn echoes_before(echo: u32, sent_at: u32) -> bool {
    echo != 0 && echo.wrapping_sub(sent_at).cast_signed() < 0
}

/// How long ago the clock of timestamps showed a value, if it is one.
pub(super) fn timestamp_age(now: Time, value: u32) -> Option<Span> {
    let age = timestamp(now).wrapping_sub(value);
    (value != 0 && age.cast_signed() >= 0).then(|| Span::millis(u64::from(age)))
}

/// A run of received sequence numbers: from the first to one past the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SackBlock {
    /// First sequence number.
    pub start: u32,
    /// One past the last sequence number.
    pub end: u32,
}

/// The blocks of a SACK option, the most recent news first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SackBlocks {
    blocks: [SackBlock; MAX_SACK_BLOCKS],
    count: u8,
}

impl SackBlocks {
    /// The blocks, in the order in which they stand.
    #[must_use]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Appends a block; a fifth is dropped.
    pub fn push(&mut self, block: SackBlock) {
        if let Some(free) = self.blocks.get_mut(usize::from(self.count)) {
            *free = block;
            self.count += 1;
        }
    }
}

/// The header of one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Header {
    /// Sequence number of the first byte, or of the SYN or FIN.
    pub sequence: u32,
    /// Next sequence number expected, when [`Flags::ACK`] is set.
    pub acknowledgement: u32,
    /// Receive window in bytes, already scaled.
    pub window: u32,
    /// Payload bytes.
    pub payload: u32,
    /// SACK blocks.
    pub sack: SackBlocks,
    /// Options other than SACK.
    pub options: Options,
    /// What the timestamps option says, if the segment carries it.
    pub timestamps: Timestamps,
    /// Flags.
    pub flags: Flags,
    /// What the IP header says of congestion marks as the segment leaves: ECT(0) for new
    /// data of a connection that has negotiated ECN, and for nothing else (RFC 3168
    /// sections 6.1.4 and 6.1.5); ECT(1) for all that a scalable sender sends.
    pub ecn: Ecn,
}

impl Header {
    /// Size on the wire: IPv4 and TCP headers, options, payload.
    #[must_use]
    pub fn wire_size(&self) -> Bytes {
        Bytes(IP_HEADER + TCP_HEADER + self.options_size() + u64::from(self.payload))
    }

    fn options_size(&self) -> u64 {
        if self.flags.contains(Flags::SYN) {
            let sizes = [
                (self.options.mss != 0, 4),
                (self.options.sack_permitted, 2),
                (self.options.window_scale, 3),
                (self.options.timestamps, 10),
            ];
            let sum: u64 = sizes.iter().filter(|(on, _)| *on).map(|(_, size)| size).sum();
            return sum.next_multiple_of(4);
        }
        let timestamps = if self.options.timestamps { TIMESTAMPS } else { 0 };
        let sack = match self.sack.as_slice().len() {
            0 => 0,
            count => SACK_PREFIX + SACK_BLOCK * count as u64,
        };
        timestamps + sack
    }

    /// SACK blocks that fit beside the other options.
    pub(super) fn sack_room(&self) -> usize {
        if self.options.timestamps { MAX_SACK_BLOCKS - 1 } else { MAX_SACK_BLOCKS }
    }
}

/// One direction's sequence numbers: offset 0 is the SYN, the first payload
/// byte is 1. Offsets never wrap (2^64 bytes take five years at 1 Tbit/s).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SequenceSpace {
    initial: u32,
}

impl SequenceSpace {
    pub(super) fn new(initial: u32) -> SequenceSpace {
        SequenceSpace { initial }
    }

    pub(super) fn wire(self, offset: u64) -> u32 {
        self.initial.wrapping_add(offset as u32)
    }

    /// The offset nearest to `near` that has this number on the wire, or `None`
    /// when that would lie before the SYN.
    pub(super) fn offset_near(self, wire: u32, near: u64) -> Option<u64> {
        let distance = wire.wrapping_sub(self.wire(near)).cast_signed();
        near.checked_add_signed(i64::from(distance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_real_segments() {
        let data = Header { payload: 1_460, flags: Flags::ACK, ..Header::default() };
        assert_eq!(data.wire_size(), Bytes(1_500));
        let mut ack = Header { flags: Flags::ACK, ..Header::default() };
        assert_eq!(ack.wire_size(), Bytes(40));
        ack.options.timestamps = true;
        assert_eq!(ack.wire_size(), Bytes(52));
        for _ in 0..ack.sack_room() {
            ack.sack.push(SackBlock { start: 1, end: 2 });
        }
        // Three blocks beside timestamps: the 40 bytes of options are full.
        assert_eq!((ack.sack.as_slice().len(), ack.wire_size()), (3, Bytes(80)));
        let options =
            Options { mss: 1_460, sack_permitted: true, window_scale: true, timestamps: true };
        let syn = Header { flags: Flags::SYN, options, ..Header::default() };
        // The 60 bytes of every Linux SYN.
        assert_eq!(syn.wire_size(), Bytes(60));
        assert_eq!(size_of::<Header>(), 68);
    }

    #[test]
    fn the_three_flags_are_a_number() {
        for number in 0..8 {
            let flags = Flags::of_ace(number);
            assert_eq!((flags.ace(), Flags::ACE.contains(flags)), (number, true));
            assert_eq!(Flags::from_bits(u16::from(number) << 6), flags);
        }
        assert_eq!((Flags::AE.ace(), Flags::CWR.ace(), Flags::ECE.ace()), (4, 2, 1));
    }

    #[test]
    fn numbers_wrap_and_come_back() {
        let space = SequenceSpace::new(u32::MAX - 2);
        assert_eq!(space.wire(3), 0);
        for near in [0_u64, 3, 1_000, (1 << 31) - 1, (1 << 32) + 5, 1 << 40] {
            for offset in [near, near + 1, near + 70_000, near.saturating_sub(70_000)] {
                assert_eq!(space.offset_near(space.wire(offset), near), Some(offset));
            }
        }
        assert_eq!(space.offset_near(space.wire(0).wrapping_sub(1), 0), None);
    }
}
