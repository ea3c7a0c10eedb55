//! The rhythm of one flow of a capture: how far apart its packets are, and how
//! large. Replayed over and over, it is a voice or video call of any length.

use tidegate_core::{Bytes, FlowKey, Rate, Span};

use super::Capture;

/// The packets of one flow, each with the time until the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallProfile {
    /// The flow.
    pub flow: FlowKey,
    /// The time from each packet to the next, and the packet's IP length. The last
    /// packet has no next one: it takes the median.
    pub packets: Vec<(Span, Bytes)>,
}

impl CallProfile {
    /// How long one round of the profile takes.
    #[must_use]
    pub fn period(&self) -> Span {
        self.packets.iter().map(|(gap, _)| *gap).sum()
    }

    /// The mean rate of the profile, in bits of IP packets; zero if it takes no
    /// time.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        let size: Bytes = self.packets.iter().map(|(_, size)| *size).sum();
        super::mean_rate(size, self.period())
    }
}

impl Capture {
    /// The profile of `flow`, or `None` if it has fewer than two packets.
    #[must_use]
    pub fn call_profile(&self, flow: FlowKey) -> Option<CallProfile> {
        let of_flow: Vec<_> = self.packets.iter().filter(|packet| packet.flow == flow).collect();
        let mut gaps: Vec<Span> =
            of_flow.windows(2).map(|pair| pair[1].at.since(pair[0].at)).collect();
        let mut sorted = gaps.clone();
        sorted.sort_unstable();
        gaps.push(*sorted.get(sorted.len() / 2)?);
        let sizes = of_flow.iter().map(|packet| packet.size);
        Some(CallProfile { flow, packets: gaps.into_iter().zip(sizes).collect() })
    }
}
