//! A packet ranks by the volume of its flow before it, in both directions (WLAN
//! section II).

use tidegate_core::{FlowKey, Packet, Time};

use super::{History, Memory, Rule, bidirectional};

pub(super) struct LasAck {
    pub(super) memory: Memory,
}

impl Rule for LasAck {
    fn rank(&self, history: &History, now: Time, packet: &Packet) -> u128 {
        let records = history.of(packet.flow);
        // The counter of the real one stays at 2^64 - 1 once it gets there.
        bidirectional::volume(self.memory.remembered(&records, now)).min(u128::from(u64::MAX))
    }

    fn tracks(&self, history: &History, now: Time, flow: FlowKey) -> bool {
        !self.memory.forgot(&history.of(flow), now)
    }
}
