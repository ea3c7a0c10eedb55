//! What a packet costs on the link behind: its size with what the link adds.
//!
//! A shaper is of use only while it is slower than the link, and so it has to count
//! as the link does: with the headers that the link adds to each packet, with the
//! padding of small ones, and in cells where it sends cells (`tc-cake(8)`).

use crate::units::Bytes;

/// The size of packets on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Framing {
    /// What is added to each packet.
    pub(super) overhead: Bytes,
    /// The least that a packet takes, with that.
    pub(super) least: Bytes,
    /// What then carries the bytes.
    pub(super) carrier: Carrier,
}

/// How a link carries the bytes of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    /// As they are.
    Bytes,
    /// In cells of 53 bytes for 48 of a packet, the last one padded: ADSL.
    Atm,
    /// With a byte for every 64 or part of them: VDSL, to be on the safe side of its
    /// 65 for 64.
    Ptm,
}

impl Framing {
    /// What a packet of `size` takes of the link.
    pub(super) fn charge(&self, size: Bytes) -> Bytes {
        let framed = (size + self.overhead).max(self.least);
        match self.carrier {
            Carrier::Bytes => framed,
            Carrier::Atm => Bytes(framed.0.div_ceil(48).saturating_mul(53)),
            Carrier::Ptm => framed + Bytes(framed.0.div_ceil(64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_its_headers_its_padding_and_its_cells() {
        let charges = |overhead, least, carrier| {
            let framing = Framing { overhead: Bytes(overhead), least: Bytes(least), carrier };
            [0, 40, 1_500, u64::MAX].map(|size| framing.charge(Bytes(size)).0)
        };
        assert_eq!(charges(0, 0, Carrier::Bytes), [0, 40, 1_500, u64::MAX]);
        // Of DOCSIS: 18 bytes, and 64 at least.
        assert_eq!(charges(18, 64, Carrier::Bytes), [64, 64, 1_518, u64::MAX]);
        // Of PPPoE over ATM: 40 bytes, and 1, 2 and 33 cells.
        assert_eq!(charges(40, 0, Carrier::Atm), [53, 106, 33 * 53, u64::MAX]);
        // Of PPPoE over PTM: 30 bytes, and 1, 2 and 24 more.
        assert_eq!(charges(30, 0, Carrier::Ptm), [31, 72, 1_554, u64::MAX]);
    }
}
