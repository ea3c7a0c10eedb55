//! Which queued acknowledgement an arriving one makes superfluous.
//!
//! Acknowledgements are cumulative: a later one says everything that an earlier one
//! said, unless the earlier one had more to say. Only acknowledgements go that
//! carry no data, no flag but ACK and no option but timestamps, and whose number is
//! below that of the new one. Duplicates, by which TCP notices losses, and window
//! updates stay, and so do SACK blocks and echoes of congestion marks
//! (`tc-cake(8)`, `CAKE`).
//!
//! Of those that could go, the one nearest to the head goes, because the new number
//! then arrives soonest.

use crate::packet::{Packet, TcpFacts, sequence_advance};

/// How far from the head a queue is searched, so that a packet costs O(1).
const REACH: usize = 64;

/// What may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckFilter {
    /// One of two that could go: an older one always stays beside the new one.
    Conservative,
    /// Also the only one that could go.
    Aggressive,
}

impl AckFilter {
    /// The slot of the packet among those `queued` that `new` supersedes.
    pub(super) fn superseded<'a>(
        self,
        new: &Packet,
        queued: impl Iterator<Item = (u32, &'a Packet)>,
    ) -> Option<u32> {
        let number = acknowledgement(&new.tcp?)?;
        let mut could_go = queued.take(REACH).filter(|(_, packet)| {
            packet.flow == new.flow && packet.tcp.is_some_and(|facts| says_less(&facts, number))
        });
        let (slot, _) = could_go.next()?;
        match self {
            AckFilter::Conservative => could_go.next().map(|_| slot),
            AckFilter::Aggressive => Some(slot),
        }
    }
}

/// The number up to which a segment acknowledges, when it belongs to an open connection.
fn acknowledgement(facts: &TcpFacts) -> Option<u32> {
    facts.acknowledgement.filter(|_| !facts.syn)
}

/// Whether the segment says only that an earlier number than `number` was reached.
fn says_less(facts: &TcpFacts, number: u32) -> bool {
    let is_before = |earlier| sequence_advance(earlier, number) > 0;
    facts.plain && facts.payload == 0 && !facts.fin && acknowledgement(facts).is_some_and(is_before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::FlowKey;
    use crate::units::Bytes;

    fn packet(tcp: TcpFacts) -> Packet {
        let flow = FlowKey::v4([192, 0, 2, 1], 443, [198, 51, 100, 1], 443, FlowKey::TCP);
        Packet { tcp: Some(tcp), ..Packet::new(0, flow, Bytes(40)) }
    }

    fn ack(number: u32) -> TcpFacts {
        TcpFacts {
            sequence: 1,
            acknowledgement: Some(number),
            payload: 0,
            syn: false,
            fin: false,
            plain: true,
        }
    }

    /// The position in the queue of the one that goes, in both modes.
    fn places(queued: &[TcpFacts], new: TcpFacts) -> [Option<u32>; 2] {
        let queued: Vec<_> = queued.iter().map(|facts| packet(*facts)).collect();
        [AckFilter::Conservative, AckFilter::Aggressive]
            .map(|filter| filter.superseded(&packet(new), (0..).zip(&queued)))
    }

    #[test]
    fn the_oldest_goes_and_one_stays_unless_aggressive() {
        assert_eq!(places(&[], ack(100)), [None, None]);
        assert_eq!(places(&[ack(100)], ack(200)), [None, Some(0)]);
        assert_eq!(places(&[ack(100), ack(150)], ack(200)), [Some(0), Some(0)]);
    }

    #[test]
    fn duplicates_and_later_ones_stay() {
        assert_eq!(places(&[ack(200); 3], ack(200)), [None, None]);
        assert_eq!(places(&[ack(300); 3], ack(200)), [None, None]);
        let wrapped = u32::MAX - 50;
        assert_eq!(places(&[ack(wrapped); 2], ack(49)), [Some(0), Some(0)]);
    }

    #[test]
    fn what_says_more_than_a_number_stays() {
        for more in [
            TcpFacts { plain: false, ..ack(100) },
            TcpFacts { payload: 1, ..ack(100) },
            TcpFacts { syn: true, ..ack(100) },
            TcpFacts { fin: true, ..ack(100) },
            TcpFacts { acknowledgement: None, ..ack(100) },
        ] {
            assert_eq!(places(&[more, more], ack(200)), [None, None], "{more:?}");
            assert_eq!(places(&[more, ack(100)], ack(200)), [None, Some(1)]);
        }
    }

    #[test]
    fn data_supersedes_too_but_not_what_opens_a_connection_or_is_of_another_flow() {
        let queued = [ack(100), ack(100)];
        assert_eq!(places(&queued, TcpFacts { payload: 1_000, ..ack(200) }), [Some(0); 2]);
        assert_eq!(places(&queued, TcpFacts { syn: true, ..ack(200) }), [None; 2]);
        let other = Packet { flow: packet(ack(1)).flow.reversed(), ..packet(ack(200)) };
        let queued = queued.map(packet);
        let queued = (0..).zip(&queued);
        assert_eq!(AckFilter::Aggressive.superseded(&other, queued), None);
    }
}
