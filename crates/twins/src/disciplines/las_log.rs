//! The greatest of the ranks that the flow's remembered packets and the present one
//! have by themselves: `x`, or `(log2 x)^(1/k)` in the priority class (LAS section
//! 6). Both are in steps of 2^-64, rounded down.

use tidegate_core::{FlowKey, Packet, Time};

use super::{History, Memory, Rule};

pub(super) struct LasLog {
    pub(super) k: f64,
    pub(super) in_packets: bool,
    pub(super) memory: Memory,
}

impl LasLog {
    fn priority(&self, before: u128, class: u16) -> u128 {
        // The counter of the real one stays at 2^64 - 1 once it gets there.
        let x = before.min(u128::from(u64::MAX));
        match (class, x) {
            (0, _) => x * (1 << 64),
            (_, 0 | 1) => 0,
            _ => {
                (libm::pow(libm::log2(x as f64), 1.0 / self.k) * 18_446_744_073_709_551_616.0)
                    as u128
            }
        }
    }
}

impl Rule for LasLog {
    fn rank(&self, history: &History, now: Time, packet: &Packet) -> u128 {
        let records = history.of(packet.flow);
        let records = self.memory.remembered(&records, now);
        let volume = |i: usize| {
            let size = |record: &&super::Record| u128::from(record.packet.size.0);
            if self.in_packets { i as u128 } else { records[..i].iter().map(size).sum() }
        };
        let classes = records.iter().map(|record| record.packet.class).chain([packet.class]);
        let priorities = classes.enumerate().map(|(i, class)| self.priority(volume(i), class));
        priorities.max().expect("the packet itself")
    }

    fn tracks(&self, history: &History, now: Time, flow: FlowKey) -> bool {
        !self.memory.forgot(&history.of(flow), now)
    }
}
