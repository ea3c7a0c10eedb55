//! What a flow sends in both directions, derived from the packets of one.
//!
//! Where both directions share a medium, an upload uses it too, but the downlink
//! queues only its acknowledgements of 40 bytes. Their numbers tell how much was
//! sent. So instead of its own size an acknowledgement has the virtual size of what
//! it newly acknowledges (`WLAN section II-A`). A segment with payload counts its
//! own size and what it newly acknowledges, because a flow is counted in both
//! directions (`WLAN section I`); everything else counts its own size.
//!
//! New means ahead of everything that the flow's entry has seen. The first number
//! is the base and counts nothing: what was acknowledged before it belongs to the
//! time before the entry. Duplicates, including selective acknowledgements, and
//! numbers that come late count nothing either. A SYN sets a new base: a connection
//! that reuses the ports of an earlier one has other numbers, half of which would
//! look like up to 2 GiB of new data. The number that a FIN takes counts as a byte.
//!
//! A volume never falls, so whatever relies on that holds here too. The state is
//! twice that of a plain counter, and takes a handful more instructions.

use crate::packet::{Packet, TcpFacts, sequence_advance};
use crate::units::Bytes;

/// The bytes that a flow has sent, in both directions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BidirectionalVolume {
    bytes: Bytes,
    /// The highest number acknowledged.
    acknowledged: Option<u32>,
}

impl BidirectionalVolume {
    /// Counts the flow's next packet; returns the volume before it.
    pub(crate) fn count(&mut self, packet: &Packet) -> Bytes {
        let before = self.bytes;
        let acknowledges = packet.tcp.filter(|facts| facts.acknowledgement.is_some());
        if acknowledges.is_none_or(|facts| facts.payload > 0) {
            self.bytes += packet.size;
        }
        if let Some(facts) = packet.tcp {
            let acknowledged = self.newly_acknowledged(&facts);
            self.bytes += Bytes(acknowledged.into());
        }
        before
    }

    fn newly_acknowledged(&mut self, facts: &TcpFacts) -> u32 {
        if facts.syn {
            self.acknowledged = facts.acknowledgement;
            return 0;
        }
        let Some(number) = facts.acknowledgement else { return 0 };
        let advance = sequence_advance(*self.acknowledged.get_or_insert(number), number);
        if advance > 0 {
            self.acknowledged = Some(number);
        }
        advance
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::FlowKey;

    fn segment(size: u64, payload: u32, acknowledgement: Option<u32>) -> Packet {
        let flow = FlowKey::v4([192, 0, 2, 1], 443, [198, 51, 100, 1], 443, FlowKey::TCP);
        let tcp = TcpFacts {
            sequence: 1,
            acknowledgement,
            payload,
            syn: false,
            fin: false,
            plain: acknowledgement.is_some(),
        };
        Packet { tcp: Some(tcp), ..Packet::new(0, flow, Bytes(size)) }
    }

    fn ack(number: u32) -> Packet {
        segment(40, 0, Some(number))
    }

    fn syn(acknowledgement: Option<u32>) -> Packet {
        let packet = segment(40, 0, acknowledgement);
        let tcp = packet.tcp.map(|facts| TcpFacts { syn: true, plain: false, ..facts });
        Packet { tcp, ..packet }
    }

    /// What each of `packets` of a flow counts.
    fn counts<const N: usize>(packets: [Packet; N]) -> [u64; N] {
        let mut volume = BidirectionalVolume::default();
        packets.map(|packet| {
            let before = volume.count(&packet);
            (volume.bytes - before).0
        })
    }

    #[test]
    fn an_acknowledgement_counts_what_it_newly_acknowledges_and_the_first_is_the_base() {
        assert_eq!(counts([ack(5_000), ack(6_460), ack(9_380)]), [0, 1_460, 2_920]);
    }

    #[test]
    fn duplicates_and_late_ones_count_nothing_and_do_not_move_the_base() {
        let numbers = [1_000, 1_000, 3_000, 2_000, 3_000, 3_500];
        assert_eq!(counts(numbers.map(ack)), [0, 0, 2_000, 0, 0, 500]);
    }

    #[test]
    fn numbers_wrap_around() {
        let numbers = [u32::MAX - 999, 460, u32::MAX, 0, 1_460];
        assert_eq!(counts(numbers.map(ack)), [0, 1_460, 0, 0, 1_000]);
    }

    #[test]
    fn half_the_numbers_are_ahead_and_the_middle_is_not() {
        assert_eq!(counts([ack(7), ack(7 + (1 << 31) - 1)]), [0, (1 << 31) - 1]);
        assert_eq!(counts([ack(7), ack(7 + (1 << 31)), ack(8)]), [0, 0, 1]);
    }

    #[test]
    fn a_segment_with_payload_counts_both_directions() {
        let data = |acknowledgement| segment(1_500, 1_460, acknowledgement);
        let packets = [data(Some(100)), data(Some(300)), ack(450), data(Some(450)), data(None)];
        assert_eq!(counts(packets), [1_500, 1_700, 150, 1_500, 1_500]);
    }

    #[test]
    fn what_acknowledges_nothing_counts_its_own_size() {
        let datagram = Packet { tcp: None, ..ack(1) };
        assert_eq!(counts([datagram, segment(40, 0, None), datagram]), [40, 40, 40]);
    }

    #[test]
    fn a_syn_makes_a_new_base() {
        // The SYN of a client that opens from here, then that of a server.
        let reused = [ack(1_000), syn(None), ack(900_000), ack(900_010)];
        assert_eq!(counts(reused), [0, 40, 0, 10]);
        let reused = [ack(1_000), ack(1_100), syn(Some(70)), ack(80)];
        assert_eq!(counts(reused), [0, 100, 0, 10]);
    }

    #[test]
    fn the_volume_stays_at_its_limit() {
        let mut volume = BidirectionalVolume { bytes: Bytes(u64::MAX - 1), acknowledged: Some(0) };
        volume.count(&ack(5));
        assert_eq!(volume.count(&segment(u64::MAX, 1, Some(9))), Bytes(u64::MAX));
        assert_eq!(volume.bytes, Bytes(u64::MAX));
    }
}
