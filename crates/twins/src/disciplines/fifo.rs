//! All packets rank the same, so they leave as they came.

use tidegate_core::{FlowKey, Packet, Time};

use super::{History, Rule};

pub(super) struct Fifo;

impl Rule for Fifo {
    fn rank(&self, _history: &History, _now: Time, _packet: &Packet) -> u128 {
        0
    }

    fn tracks(&self, _history: &History, _now: Time, _flow: FlowKey) -> bool {
        false
    }
}
