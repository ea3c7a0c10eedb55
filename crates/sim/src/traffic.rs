//! Sources of traffic: what they open and send, and when.
//!
//! A source is woken at the time that it asked for, says what it does now, and when
//! it wants to be woken next. It never sees the network: what it does must not
//! depend on the discipline, so that all disciplines get the same arrivals.

mod cbr;
pub(crate) mod frames;
mod greedy;
mod packets;
mod transfers;
mod web;

use std::sync::Arc;

use tidegate_core::{Bytes, Dscp, Ecn, FlowKey, Stream, TcpFacts, Time};

use crate::scenario::{NodeId, TrafficKind, TrafficSpec};

/// Something a source does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// Opens a transfer.
    Open {
        /// Sender of the data.
        from: NodeId,
        /// Receiver of the data.
        to: NodeId,
        /// What to carry; `None` for a transfer without end.
        size: Option<Bytes>,
    },
    /// Sends a datagram, or a packet of a capture.
    Send(Datagram),
}

/// A packet without a connection behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    /// Where it starts.
    pub(crate) from: NodeId,
    /// Where it goes.
    pub(crate) to: NodeId,
    /// Size on the wire.
    pub(crate) size: Bytes,
    /// The 5-tuple.
    pub(crate) key: FlowKey,
    /// Its flow's number within the source.
    pub(crate) flow: u32,
    /// Facts of its TCP header, when it comes from a capture.
    pub(crate) tcp: Option<TcpFacts>,
    /// Codepoint.
    pub(crate) dscp: Dscp,
    /// Congestion field.
    pub(crate) ecn: Ecn,
}

/// What is known about a source's datagram flow before it starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct DatagramFlow {
    /// The number of datagrams that it will send; `None` if it sends until the end.
    pub(crate) datagrams: Option<u64>,
    /// Their bytes together.
    pub(crate) size: Option<Bytes>,
    /// Between whom it was recorded, if it was, and the name of the host at one end.
    pub(crate) recorded: Option<(FlowKey, Option<Arc<str>>)>,
}

/// A source of traffic.
pub(crate) trait Source {
    /// When the source wants to be woken first.
    fn first(&mut self) -> Option<Time>;

    /// Does what is due at `now`; returns when it wants to be woken next.
    fn wake(&mut self, now: Time, actions: &mut Vec<Action>) -> Option<Time>;

    /// The source's datagram flows, in the order of their numbers.
    fn datagram_flows(&self) -> Vec<DatagramFlow> {
        Vec::new()
    }
}

/// A source that does nothing: programs of their own do what it stands for, in so many flows of
/// datagrams.
struct Silent {
    flows: usize,
}

impl Source for Silent {
    fn first(&mut self) -> Option<Time> {
        None
    }

    fn wake(&mut self, _now: Time, _actions: &mut Vec<Action>) -> Option<Time> {
        None
    }

    fn datagram_flows(&self) -> Vec<DatagramFlow> {
        vec![DatagramFlow::default(); self.flows]
    }
}

/// The source that `spec` describes, with its own random stream.
pub(crate) fn source(spec: &TrafficSpec, seed: u64, index: usize) -> Box<dyn Source> {
    let stream = Stream::new(seed, &spec.name);
    match &spec.kind {
        TrafficKind::Transfers { transfer, arrivals, sizes }
        | TrafficKind::Quic { transfer, arrivals, sizes, .. } => {
            Box::new(transfers::Transfers::new(spec, transfer, arrivals, sizes, stream))
        }
        TrafficKind::Web { transfer, profile } => {
            Box::new(web::Web::new(spec, transfer, profile, stream))
        }
        TrafficKind::Cbr { from, to, rate, packet, pauses } => {
            let template = stream_of_datagrams(spec, *from, *to, *packet, index);
            Box::new(cbr::Cbr::new(spec, template, *rate, *pauses))
        }
        TrafficKind::Frames { from, to, trace, sending } => {
            let template = stream_of_datagrams(spec, *from, *to, Bytes::ZERO, index);
            Box::new(frames::Frames::new(spec, template, trace.clone(), *sending))
        }
        TrafficKind::Greedy { from, to, profile } => {
            let template = stream_of_datagrams(spec, *from, *to, Bytes::ZERO, index);
            Box::new(greedy::Greedy::new(spec, template, profile, stream))
        }
        TrafficKind::Packets { inside, outside, capture, hosts, only, .. } => {
            let sent = packets::Sent { capture: capture.clone(), hosts, only: only.as_ref() };
            Box::new(packets::Packets::new(spec, *inside, *outside, &sent))
        }
        TrafficKind::Call { .. } => Box::new(Silent { flows: 1 }),
        TrafficKind::Pages { .. }
        | TrafficKind::Video { .. }
        | TrafficKind::Dns { .. }
        | TrafficKind::Requests => Box::new(Silent { flows: 0 }),
    }
}

/// The datagrams of the source at `index`, which has one flow.
pub(crate) fn stream_of_datagrams(
    spec: &TrafficSpec,
    from: NodeId,
    to: NodeId,
    size: Bytes,
    index: usize,
) -> Datagram {
    // One port pair for each source keeps the flows of several calls apart.
    let port = 16_384 + index as u16;
    let key = FlowKey::v4(from.address(), port, to.address(), port, FlowKey::UDP);
    let dscp = spec.marking.sender;
    Datagram { from, to, size, key, flow: 0, tcp: None, dscp, ecn: Ecn::NotEct }
}
