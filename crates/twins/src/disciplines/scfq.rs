//! Finish tags over the whole history, never reset (Golestani 1994).
//!
//! The real one starts again from zero whenever the queue empties, which must make
//! no difference.

use tidegate_core::{FlowKey, Packet, Time};

use super::{History, Rule};

pub(super) struct Scfq;

impl Rule for Scfq {
    fn rank(&self, history: &History, _now: Time, packet: &Packet) -> u128 {
        let sent = history.0.iter().filter(|record| record.sent);
        let in_service = sent.max_by_key(|record| record.left).map_or(0, |record| record.rank);
        let before = history.of(packet.flow).last().map_or(0, |record| record.rank);
        in_service.max(before) + u128::from(packet.size.0)
    }

    fn tracks(&self, history: &History, _now: Time, flow: FlowKey) -> bool {
        history.is_backlogged(flow)
    }
}
