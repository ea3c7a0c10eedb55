//! Rank 0 until the flow has sent the threshold, rank 1 from then on (EFD section 2).

use tidegate_core::{Bytes, FlowKey, Packet, Time};

use super::{History, Memory, Rule};

pub(super) struct Run2c {
    pub(super) threshold: Bytes,
    pub(super) memory: Memory,
}

impl Rule for Run2c {
    fn rank(&self, history: &History, now: Time, packet: &Packet) -> u128 {
        let sent = self.memory.attained(&history.of(packet.flow), now);
        u128::from(sent >= u128::from(self.threshold.0))
    }

    fn tracks(&self, history: &History, now: Time, flow: FlowKey) -> bool {
        !self.memory.forgot(&history.of(flow), now)
    }
}
