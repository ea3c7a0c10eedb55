//! Rank 0 until the flow has sent the threshold in both directions, rank 1 from
//! then on (WLAN section IV).

use tidegate_core::{Bytes, FlowKey, Packet, Time};

use super::{History, Memory, Rule, bidirectional};

pub(super) struct Run2cAck {
    pub(super) threshold: Bytes,
    pub(super) memory: Memory,
}

impl Rule for Run2cAck {
    fn rank(&self, history: &History, now: Time, packet: &Packet) -> u128 {
        let records = history.of(packet.flow);
        let sent = bidirectional::volume(self.memory.remembered(&records, now));
        u128::from(sent >= u128::from(self.threshold.0))
    }

    fn tracks(&self, history: &History, now: Time, flow: FlowKey) -> bool {
        !self.memory.forgot(&history.of(flow), now)
    }
}
