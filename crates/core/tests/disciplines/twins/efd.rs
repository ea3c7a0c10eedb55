//! High for the start of each stretch during which the flow always had a packet
//! queued, low for the rest of it (EFD section 3.1). Within a level of LAS, what
//! came in the stretch so far decides (WLAN section V-1).

use tidegate_core::units::Amount;
use tidegate_core::{FlowKey, Packet, Time};

use super::{History, Rule};

pub(super) struct Efd {
    pub(super) threshold: Amount,
    pub(super) high_is_las: bool,
    pub(super) low_is_las: bool,
}

impl Efd {
    /// What came of the flow in the stretch that it is in, in the threshold's unit.
    fn arrived(&self, history: &History, flow: FlowKey) -> u128 {
        if !history.is_backlogged(flow) {
            return 0;
        }
        let records = history.of(flow);
        let is_first = |i: &usize| {
            let before = |record: &&super::Record| {
                record.left.is_some_and(|left| left < records[*i].arrived)
            };
            records[..*i].iter().all(before)
        };
        let first = (0..records.len()).rev().find(is_first).expect("the first of all is one");
        let stretch = &records[first..];
        match self.threshold {
            Amount::Packets(_) => stretch.len() as u128,
            Amount::Bytes(_) => stretch.iter().map(|record| u128::from(record.packet.size.0)).sum(),
        }
    }
}

impl Rule for Efd {
    fn rank(&self, history: &History, _now: Time, packet: &Packet) -> u128 {
        let arrived = self.arrived(history, packet.flow);
        let threshold = match self.threshold {
            Amount::Packets(threshold) => u128::from(threshold),
            Amount::Bytes(threshold) => u128::from(threshold.0),
        };
        let is_low = arrived >= threshold;
        let is_las = if is_low { self.low_is_las } else { self.high_is_las };
        // The counter of the real one stays at 2^64 - 1 once it gets there.
        let volume = if is_las { arrived.min(u128::from(u64::MAX)) } else { 0 };
        u128::from(is_low) << 64 | volume
    }

    fn tracks(&self, history: &History, _now: Time, flow: FlowKey) -> bool {
        history.is_backlogged(flow)
    }
}
