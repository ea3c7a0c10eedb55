//! The rhythm of one flow of a capture: how far apart its packets are, and how
//! large. Replayed round and round it is a voice or video call of any length.

use tidegate_core::{Bytes, FlowKey, Rate, Span};

use super::Capture;

/// The packets of one flow, each with the time until the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallProfile {
    /// The flow.
    pub flow: FlowKey,
    /// The time from each packet to the next, and the packet's IP length. The
    /// last packet has no next: it takes the median.
    pub packets: Vec<(Span, Bytes)>,
}

impl CallProfile {
    /// Mean rate of the profile, in bits of IP packets.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        unimplemented!("next commit")
    }
}

impl Capture {
    /// The profile of `flow`, or `None` when it has fewer than two packets.
    #[must_use]
    pub fn call_profile(&self, flow: FlowKey) -> Option<CallProfile> {
        let _ = flow;
        unimplemented!("next commit")
    }
}
