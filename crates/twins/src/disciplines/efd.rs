//! High for the start of each stretch during which the flow always had a packet
//! queued, low for the rest of it (EFD section 3.1). Within a level of LAS, what
//! came in the stretch so far decides (WLAN section V-1).

use tidegate_core::units::Amount;
use tidegate_core::{FlowKey, Packet, Time};

use super::{History, Record, Rule, bytes};

pub(super) struct Efd {
    pub(super) threshold: Amount,
    /// High, then low.
    pub(super) levels_are_las: [bool; 2],
}

/// What came of the flow in the stretch that it is in.
pub(super) fn stretch(history: &History, flow: FlowKey) -> Vec<&Record> {
    if !history.is_backlogged(flow) {
        return Vec::new();
    }
    let records = history.of(flow);
    let is_first = |i: &usize| {
        let before = |record: &&Record| record.left.is_some_and(|left| left < records[*i].arrived);
        records[..*i].iter().all(before)
    };
    let first = (0..records.len()).rev().find(is_first).expect("the first of all is one");
    records[first..].to_vec()
}

/// The rank of a packet before which `arrived` came in the flow's stretch.
pub(super) fn rank(arrived: u128, threshold: u128, [high_is_las, low_is_las]: [bool; 2]) -> u128 {
    let is_low = arrived >= threshold;
    let is_las = if is_low { low_is_las } else { high_is_las };
    // The counter of the real one stays at 2^64 - 1 once it gets there.
    let volume = if is_las { arrived.min(u128::from(u64::MAX)) } else { 0 };
    u128::from(is_low) << 64 | volume
}

impl Rule for Efd {
    fn rank(&self, history: &History, _now: Time, packet: &Packet) -> u128 {
        let stretch = stretch(history, packet.flow);
        let (arrived, threshold) = match self.threshold {
            Amount::Packets(threshold) => (stretch.len() as u128, u128::from(threshold)),
            Amount::Bytes(threshold) => (bytes(&stretch), u128::from(threshold.0)),
        };
        rank(arrived, threshold, self.levels_are_las)
    }

    fn tracks(&self, history: &History, _now: Time, flow: FlowKey) -> bool {
        history.is_backlogged(flow)
    }
}
