//! What sources of traffic do. All that is known of a kind ahead of a run stands
//! here: its parameters, its ends, and what reports call it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::{fmt, slice};

use tidegate_core::{Bytes, FlowKey, Rate};

use super::{
    Arrivals, CallRates, DnsProfile, FrameSending, GreedyProfile, NodeId, PageProfile, Pauses,
    QuicProfile, SizeLaw, Transfer, VideoProfile, WebProfile,
};
use crate::trace::applications::RecordedCall;
use crate::trace::capture::Capture;
use crate::trace::frames::FrameTrace;
use crate::trace::hosts::Hosts;

/// The most transfers of a run that are open at the same time; others wait, first come
/// first served, until one has ended.
///
/// It is the number of ports that Linux gives to outgoing connections, 32 768 to
/// 60 999: an address has no more of them open to one server. An open transfer takes
/// up to 4 kB of memory, one that waits 40 B, and one that has ended none; so those that
/// are open take 113 MB at most, however many there are.
pub const MOST_OPEN: u32 = 28_232;

/// The same for transfers over QUIC, of which an open one takes some 65 kB of memory: 270
/// MB for so many.
pub const MOST_OPEN_QUIC: u32 = 4_096;

/// What a source of traffic does.
#[derive(Clone, Debug)]
pub enum TrafficKind {
    /// TCP transfers that begin independently of each other.
    Transfers {
        /// How each transfer is made.
        transfer: Transfer,
        /// When transfers begin.
        arrivals: Arrivals,
        /// How large they are.
        sizes: SizeLaw,
    },
    /// The same over QUIC.
    Quic {
        /// Who sends to whom, and which end opens the connection. Its TCP is not used.
        transfer: Transfer,
        /// How QUIC carries each of them.
        profile: QuicProfile,
        /// When transfers begin.
        arrivals: Arrivals,
        /// How large they are.
        sizes: SizeLaw,
    },
    /// Web sessions (`LAS section 5`, Table 1): sessions of pages of objects,
    /// each object a transfer of its own.
    Web {
        /// How each object is fetched.
        transfer: Transfer,
        /// The session's structure.
        profile: WebProfile,
    },
    /// Pages of objects, as browsers load them over connections that carry many
    /// responses. Each receiver is a user.
    Pages {
        /// How connections are made.
        transfer: Transfer,
        /// What is loaded, when and how.
        profile: PageProfile,
    },
    /// Video in segments, whose quality the players choose. Each receiver is a viewer.
    Video {
        /// How connections are made.
        transfer: Transfer,
        /// What is watched, and how players choose.
        profile: VideoProfile,
    },
    /// UDP datagrams of one size at a constant rate, for the whole time.
    Cbr {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// Rate on the wire, headers included.
        rate: Rate,
        /// IP size of each datagram.
        packet: Bytes,
        /// How long it is off, at the start and each time, and how long it is on each
        /// time; `None` is on all the time.
        pauses: Option<Pauses>,
    },
    /// One direction of a video call that adapts to what the path carries.
    Call {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// Between which rates it adapts.
        rates: CallRates,
    },
    /// Lookups of names that begin at random: a query and an answer over UDP, each lookup
    /// from a port of its own.
    Dns {
        /// The hosts that ask.
        from: Vec<NodeId>,
        /// The resolvers that they ask.
        to: Vec<NodeId>,
        /// What they ask, and how long they wait.
        profile: DnsProfile,
    },
    /// The frames of a recorded stream: a video, or a call.
    Frames {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// The frames.
        trace: Arc<FrameTrace>,
        /// How they are sent.
        sending: FrameSending,
    },
    /// As much as an arrival curve allows, as early as it allows it, in bursts
    /// (`BE appendix B`).
    Greedy {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// What is sent, and when.
        profile: GreedyProfile,
    },
    /// The packets of a capture, at the times at which they were captured:
    /// those sent by the user's side one way, the others the other way.
    Packets {
        /// The user's side.
        inside: NodeId,
        /// The network's side.
        outside: NodeId,
        /// What was captured.
        capture: Arc<Capture>,
        /// Which addresses are on the user's side.
        hosts: Hosts,
        /// The flows that it sends, if not all that cross the link.
        only: Option<BTreeSet<FlowKey>>,
        /// What they show of a call, if they are one direction of one.
        call: Option<RecordedCall>,
    },
    /// The requests of a class of a gateway's clients, made by programs of their own.
    Requests,
}

impl TrafficKind {
    /// Whether what begins, and when, comes from a recording: it is the same under every seed.
    #[must_use]
    pub fn has_recorded_arrivals(&self) -> bool {
        match self {
            TrafficKind::Packets { .. } => true,
            TrafficKind::Transfers { arrivals, .. } | TrafficKind::Quic { arrivals, .. } => {
                matches!(arrivals, Arrivals::Log(_))
            }
            _ => false,
        }
    }

    /// Whether it opens connections; the others send datagrams, or look names up.
    #[must_use]
    pub fn is_transfers(&self) -> bool {
        matches!(
            self,
            TrafficKind::Transfers { .. }
                | TrafficKind::Quic { .. }
                | TrafficKind::Web { .. }
                | TrafficKind::Pages { .. }
                | TrafficKind::Video { .. }
                | TrafficKind::Requests
        )
    }

    /// Whether it sends datagrams one way, of which delay and loss are measured.
    #[must_use]
    pub fn is_datagrams(&self) -> bool {
        !self.is_transfers() && !matches!(self, TrafficKind::Dns { .. })
    }

    /// The transfer that a source makes which has a TCP connection for each.
    pub(crate) fn transfer(&self) -> Option<&Transfer> {
        match self {
            TrafficKind::Transfers { transfer, .. } | TrafficKind::Web { transfer, .. } => {
                Some(transfer)
            }
            _ => None,
        }
    }

    /// Between whom packets go.
    pub(crate) fn ends(&self) -> (&[NodeId], &[NodeId]) {
        match self {
            TrafficKind::Transfers { transfer, .. }
            | TrafficKind::Quic { transfer, .. }
            | TrafficKind::Web { transfer, .. }
            | TrafficKind::Pages { transfer, .. }
            | TrafficKind::Video { transfer, .. } => (&transfer.from, &transfer.to),
            TrafficKind::Dns { from, to, .. } => (from, to),
            TrafficKind::Cbr { from, to, .. }
            | TrafficKind::Call { from, to, .. }
            | TrafficKind::Frames { from, to, .. }
            | TrafficKind::Greedy { from, to, .. } => (slice::from_ref(from), slice::from_ref(to)),
            TrafficKind::Packets { inside, outside, .. } => {
                (slice::from_ref(inside), slice::from_ref(outside))
            }
            TrafficKind::Requests => (&[], &[]),
        }
    }
}

impl fmt::Display for TrafficKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrafficKind::Transfers { arrivals, sizes, .. } => transfers(f, arrivals, sizes),
            TrafficKind::Quic { profile, arrivals, sizes, .. } => {
                transfers(f, arrivals, sizes)?;
                write!(f, ", {profile}")
            }
            TrafficKind::Web { profile, .. } => write!(
                f,
                "Web sessions of about {} pages of {} objects every {}, {}",
                short(profile.pages),
                short(profile.objects),
                profile.between_sessions,
                profile.sizes
            ),
            TrafficKind::Pages { profile, .. } => profile.fmt(f),
            TrafficKind::Video { profile, .. } => profile.fmt(f),
            TrafficKind::Cbr { rate, packet, .. } => write!(f, "{rate} in datagrams of {packet}"),
            TrafficKind::Call { rates, .. } => {
                write!(f, "a call that adapts, {} to {}", rates.least, rates.most)
            }
            TrafficKind::Dns { profile, .. } => profile.fmt(f),
            TrafficKind::Frames { trace, sending, .. } => {
                let packets = sending.packet.map_or("each a packet".into(), |packet| {
                    format!("in packets of up to {packet}")
                });
                let again = if sending.repeat { ", again and again" } else { "" };
                write!(f, "{} frames from a file, {packets}{again}", trace.frames().len())
            }
            TrafficKind::Greedy { profile, .. } => {
                let bursts = if profile.bursts.is_some() { ", in bursts" } else { "" };
                write!(f, "as much as {} allows{bursts}", profile.envelope)
            }
            TrafficKind::Packets { capture, only, .. } => {
                let is_sent = |flow| only.as_ref().is_none_or(|only| only.contains(flow));
                let packets = capture.packets.iter().filter(|packet| is_sent(&packet.flow));
                write!(f, "{} packets from a capture", packets.count())
            }
            TrafficKind::Requests => f.write_str("requests of clients"),
        }
    }
}

fn transfers(f: &mut fmt::Formatter<'_>, arrivals: &Arrivals, sizes: &SizeLaw) -> fmt::Result {
    match arrivals {
        Arrivals::Poisson { per_second } => {
            write!(f, "{} transfers a second, {sizes}", short(*per_second))
        }
        Arrivals::AtStart { count: 1 } => write!(f, "one transfer, {sizes}"),
        Arrivals::AtStart { count } => write!(f, "{count} transfers, {sizes}"),
        Arrivals::Within { count, within } => {
            write!(f, "{count} transfers within {within}, {sizes}")
        }
        Arrivals::Log(flows) => write!(f, "{} transfers from a log", flows.len()),
    }
}

/// Three significant digits, no trailing zeros.
#[must_use]
pub fn short(value: f64) -> String {
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}
