//! The packets of a capture, at the times at which they were captured.
//!
//! Packets from the user's hosts go one way, those to them the other way; packets
//! that do not cross the link are left out. Nothing reacts to what the queue does:
//! a capture shows what a discipline does to delay and loss, not what TCP would
//! then have done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tidegate_core::{Bytes, FlowKey, Span, Time};

use super::{Action, Datagram, DatagramFlow, Source};
use crate::scenario::{NodeId, TrafficSpec};
use crate::trace::capture::Capture;
use crate::trace::hosts::{Direction, Hosts};

pub(super) struct Packets {
    capture: Arc<Capture>,
    /// For each packet that crosses the link: its index in the capture, its
    /// direction, and the number of its flow.
    crossing: Vec<(u32, Direction, u32)>,
    flows: Vec<DatagramFlow>,
    inside: NodeId,
    outside: NodeId,
    start: Time,
    stop: Time,
    next: usize,
}

/// The packets of a capture that are sent.
pub(super) struct Sent<'a> {
    pub(super) capture: Arc<Capture>,
    /// Who is on the user's side.
    pub(super) hosts: &'a Hosts,
    /// The flows, if not all that cross the link.
    pub(super) only: Option<&'a BTreeSet<FlowKey>>,
}

impl Packets {
    pub(super) fn new(
        spec: &TrafficSpec,
        inside: NodeId,
        outside: NodeId,
        Sent { capture, hosts, only }: &Sent<'_>,
    ) -> Packets {
        let mut numbers: BTreeMap<FlowKey, u32> = BTreeMap::new();
        let mut flows: Vec<DatagramFlow> = Vec::new();
        let mut crossing = Vec::new();
        for (place, packet) in (0..).zip(&capture.packets) {
            if spec.start + Span(packet.at.0) >= spec.stop {
                break;
            }
            if only.is_some_and(|only| !only.contains(&packet.flow)) {
                continue;
            }
            let Some(direction) = hosts.direction(packet.flow) else { continue };
            let number = *numbers.entry(packet.flow).or_insert_with(|| {
                flows.push(DatagramFlow {
                    datagrams: Some(0),
                    size: Some(Bytes::ZERO),
                    recorded: Some((packet.flow, capture.names.of(packet.flow).map(Arc::from))),
                });
                (flows.len() - 1) as u32
            });
            let flow = &mut flows[number as usize];
            flow.datagrams = flow.datagrams.map(|count| count + 1);
            flow.size = flow.size.map(|size| size + packet.size);
            crossing.push((place, direction, number));
        }
        let (start, stop) = (spec.start, spec.stop);
        let capture = capture.clone();
        Packets { capture, crossing, flows, inside, outside, start, stop, next: 0 }
    }

    fn due(&self) -> Option<Time> {
        let (place, ..) = self.crossing.get(self.next)?;
        let at = self.start + Span(self.capture.packets[*place as usize].at.0);
        (at < self.stop).then_some(at)
    }
}

impl Source for Packets {
    fn first(&mut self) -> Option<Time> {
        self.due()
    }

    fn wake(&mut self, now: Time, actions: &mut Vec<Action>) -> Option<Time> {
        while self.due().is_some_and(|at| at <= now) {
            let (place, direction, flow) = self.crossing[self.next];
            self.next += 1;
            let packet = &self.capture.packets[place as usize];
            let (from, to) = match direction {
                Direction::Up => (self.inside, self.outside),
                Direction::Down => (self.outside, self.inside),
            };
            actions.push(Action::Send(Datagram {
                from,
                to,
                size: packet.size,
                key: packet.flow,
                flow,
                tcp: packet.tcp,
                dscp: packet.dscp,
                ecn: packet.ecn,
            }));
        }
        self.due()
    }

    fn datagram_flows(&self) -> Vec<DatagramFlow> {
        self.flows.clone()
    }
}
