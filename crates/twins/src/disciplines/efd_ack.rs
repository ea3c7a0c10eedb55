//! EFD whose stretches have the volume of both directions (WLAN section II-A).

use tidegate_core::{Bytes, FlowKey, Packet, Time};

use super::{History, Rule, bidirectional, efd};

pub(super) struct EfdAck {
    pub(super) threshold: Bytes,
    /// High, then low.
    pub(super) levels_are_las: [bool; 2],
}

impl Rule for EfdAck {
    fn rank(&self, history: &History, _now: Time, packet: &Packet) -> u128 {
        let volume = bidirectional::volume(&efd::stretch(history, packet.flow));
        efd::rank(volume, u128::from(self.threshold.0), self.levels_are_las)
    }

    fn tracks(&self, history: &History, _now: Time, flow: FlowKey) -> bool {
        history.is_backlogged(flow)
    }
}
