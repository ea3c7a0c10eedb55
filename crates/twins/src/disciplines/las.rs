//! A packet ranks by the bytes of its flow before it (LAS section 7).

use tidegate_core::{FlowKey, Packet, Time};

use super::{History, Memory, Rule};

pub(super) struct Las {
    pub(super) memory: Memory,
}

impl Rule for Las {
    fn rank(&self, history: &History, now: Time, packet: &Packet) -> u128 {
        // The counter of the real one stays at 2^64 - 1 once it gets there.
        self.memory.attained(&history.of(packet.flow), now).min(u128::from(u64::MAX))
    }

    fn tracks(&self, history: &History, now: Time, flow: FlowKey) -> bool {
        !self.memory.forgot(&history.of(flow), now)
    }
}
