//! Run2C over the packets for which a flow is tracked (EFD section 5.1). These are
//! found anew each time, with all random tests repeated from the first.

use tidegate_core::{Bytes, FlowKey, Packet, Stream, Time};

use super::{History, Memory, Record, Rule};

pub(super) struct XProtect {
    pub(super) threshold: Bytes,
    pub(super) probability: f64,
    pub(super) memory: Memory,
    pub(super) seed: u64,
}

impl XProtect {
    /// The records of `flow` for which it was tracked, and the tests not drawn yet.
    fn tracked<'a>(&self, history: &'a History, flow: FlowKey) -> (Vec<&'a Record>, Stream) {
        let mut tests = Stream::new(self.seed, "x-protect");
        let mut tracked: Vec<&Record> = Vec::new();
        for record in &history.0 {
            let own: Vec<&Record> = tracked
                .iter()
                .copied()
                .filter(|other| other.packet.flow == record.packet.flow)
                .collect();
            let is_known = !own.is_empty() && !self.memory.forgot(&own, record.arrived.time);
            if is_known || tests.uniform() < self.probability {
                tracked.push(record);
            }
        }
        tracked.retain(|record| record.packet.flow == flow);
        (tracked, tests)
    }
}

impl Rule for XProtect {
    fn rank(&self, history: &History, now: Time, packet: &Packet) -> u128 {
        let (tracked, mut tests) = self.tracked(history, packet.flow);
        let is_known = !tracked.is_empty() && !self.memory.forgot(&tracked, now);
        if !is_known && tests.uniform() >= self.probability {
            return 0;
        }
        u128::from(self.memory.attained(&tracked, now) >= u128::from(self.threshold.0))
    }

    fn tracks(&self, history: &History, now: Time, flow: FlowKey) -> bool {
        let (tracked, _) = self.tracked(history, flow);
        !tracked.is_empty() && !self.memory.forgot(&tracked, now)
    }
}
