//! Rank 0 for the start of each stretch during which the flow always had a
//! packet queued, rank 1 for the rest of it (EFD section 3.1).

use tidegate_core::units::Amount;
use tidegate_core::{Bytes, FlowKey, Time};

use super::{History, Rule};

pub(super) struct Efd {
    pub(super) threshold: Amount,
}

impl Rule for Efd {
    fn rank(&self, history: &History, _now: Time, flow: FlowKey, _size: Bytes) -> u128 {
        let records = history.of(flow);
        if !history.is_backlogged(flow) {
            return u128::from(matches!(
                self.threshold,
                Amount::Packets(0) | Amount::Bytes(Bytes(0))
            ));
        }
        let is_first = |i: &usize| {
            let before = |record: &&super::Record| {
                record.left.is_some_and(|left| left < records[*i].arrived)
            };
            records[..*i].iter().all(before)
        };
        let first = (0..records.len()).rev().find(is_first).expect("the first of all is one");
        let stretch = &records[first..];
        let (arrived, threshold) = match self.threshold {
            Amount::Packets(threshold) => (stretch.len() as u128, u128::from(threshold)),
            Amount::Bytes(threshold) => {
                let bytes = stretch.iter().map(|record| u128::from(record.packet.size.0)).sum();
                (bytes, u128::from(threshold.0))
            }
        };
        u128::from(arrived >= threshold)
    }

    fn tracks(&self, history: &History, _now: Time, flow: FlowKey) -> bool {
        history.is_backlogged(flow)
    }
}
