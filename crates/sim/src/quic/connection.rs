//! One QUIC connection: an endpoint of quinn's on each of two hosts.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::BytesMut;
use quinn_proto::{Connection, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint};
use tidegate_core::{Dscp, Ecn, FlowKey, Time};

use super::{Settings, instant, time};
use crate::connections::{AppId, Side};
use crate::lot::{Lot, mix};
use crate::scenario::NodeId;

/// Names a connection, even after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QuicId {
    slot: u32,
    /// How many were opened before it; enough of it to tell those of a slot apart.
    serial: u32,
}

/// A connection to open; in pairs, the opener comes first.
pub(crate) struct QuicOpening {
    /// The hosts.
    pub(crate) nodes: [NodeId; 2],
    /// The program that uses it, at both ends.
    pub(crate) app: AppId,
    /// The class of its packets.
    pub(crate) class: u16,
    /// The codepoints of what they send.
    pub(crate) dscp: [Dscp; 2],
    /// Its source, and its number there: they and the seed settle all that it draws.
    pub(crate) traffic: u32,
    pub(crate) number: u64,
    /// The name that its program uses.
    pub(crate) tag: usize,
}

/// A datagram that one side sends.
pub(crate) struct Datagram {
    /// The payload of UDP.
    pub(crate) payload: BytesMut,
    pub(crate) ecn: Ecn,
}

/// A connection between two hosts.
pub(crate) struct QuicConnection {
    ends: [End; 2],
    /// From the opener to the acceptor.
    key: FlowKey,
    pub(crate) app: AppId,
    pub(crate) class: u16,
    /// Identifies the connection wherever chance affects one of its packets.
    identity: u64,
    /// The name that its program uses.
    pub(crate) tag: usize,
    /// Packets lost on the way, in both directions.
    pub(crate) lost: u32,
}

struct End {
    endpoint: Endpoint,
    /// `None` at the acceptor until the first packet has come.
    connection: Option<(ConnectionHandle, Connection)>,
    node: NodeId,
    address: SocketAddr,
    dscp: Dscp,
    /// The time of the event that will check the timers; the far future if there is none,
    /// as for TCP.
    alarm: Time,
    /// Packets sent.
    sent: u64,
}

impl QuicConnection {
    /// A new connection, whose opener has its first packet to send.
    fn new(
        opening: &QuicOpening,
        settings: &Settings,
        serial: u64,
        seed: u64,
        now: Time,
    ) -> QuicConnection {
        // Ports as those of TCP connections: another pair for each.
        const PORTS: u64 = 64_512;
        let port = |n: u64| 1_024 + (n % PORTS) as u16;
        let ports = [port(serial), port(serial / PORTS)];
        let [from, to] = opening.nodes.map(NodeId::address);
        let key = FlowKey::v4(from, ports[0], to, ports[1], FlowKey::UDP);
        let source = mix(u64::from(opening.traffic) ^ mix(seed));
        let identity = mix(source ^ mix(opening.number));
        let end = |side: Side| {
            let node = opening.nodes[side as usize];
            End {
                endpoint: settings.endpoint(identity, side),
                connection: None,
                node,
                address: (Ipv4Addr::from(node.address()), ports[side as usize]).into(),
                dscp: opening.dscp[side as usize],
                alarm: Time::FAR_FUTURE,
                sent: 0,
            }
        };
        let mut ends = [end(Side::Opener), end(Side::Acceptor)];
        let remote = ends[Side::Acceptor as usize].address;
        let opener = &mut ends[Side::Opener as usize];
        // It is refused for an address, a version or an exhausted set of IDs; none is here.
        opener.connection =
            opener.endpoint.connect(instant(now), settings.client(identity), remote, "server").ok();
        let QuicOpening { app, class, tag, .. } = *opening;
        QuicConnection { ends, key, app, class, identity, tag, lost: 0 }
    }

    /// quinn's connection at a side, once there is one.
    pub(crate) fn quinn(&mut self, side: Side) -> Option<&mut Connection> {
        self.ends[side as usize].connection.as_mut().map(|(_, connection)| connection)
    }

    /// A datagram has arrived at a side.
    pub(crate) fn on_datagram(&mut self, now: Time, side: Side, ecn: Ecn, payload: BytesMut) {
        let remote = self.ends[side.other() as usize].address;
        let end = &mut self.ends[side as usize];
        let (now, ecn) = (instant(now), EcnCodepoint::from_bits(ecn as u8));
        // What an endpoint answers by itself, to packets of versions and connections unknown
        // to it, has no use here and is not sent.
        let mut answer = Vec::new();
        match end.endpoint.handle(now, remote, None, ecn, payload, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut end.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if end.connection.is_none() => {
                answer.clear();
                end.connection = end.endpoint.accept(incoming, now, &mut answer, None).ok();
            }
            // A first packet that was sent twice, and comes after the end.
            Some(DatagramEvent::NewConnection(incoming)) => end.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }

    /// The event that checks a side's timers has come; false if it is an old one that an
    /// earlier one has replaced.
    pub(crate) fn timer_came(&mut self, now: Time, side: Side) -> bool {
        let end = &mut self.ends[side as usize];
        if end.alarm != now {
            return false;
        }
        end.alarm = Time::FAR_FUTURE;
        if let Some((_, connection)) = &mut end.connection
            && connection.poll_timeout().is_some_and(|at| time(at) <= now)
        {
            connection.handle_timeout(instant(now));
        }
        true
    }

    /// Takes what a side has to send.
    pub(crate) fn transmit(&mut self, now: Time, side: Side, out: &mut Vec<Datagram>) {
        let End { endpoint, connection, .. } = &mut self.ends[side as usize];
        let Some((handle, connection)) = connection else { return };
        settle(endpoint, *handle, connection);
        let mut payload = Vec::new();
        while let Some(transmit) = connection.poll_transmit(instant(now), 1, &mut payload) {
            let ecn = match transmit.ecn {
                None => Ecn::NotEct,
                Some(EcnCodepoint::Ect0) => Ecn::Ect0,
                Some(EcnCodepoint::Ect1) => Ecn::Ect1,
                Some(EcnCodepoint::Ce) => Ecn::Ce,
            };
            out.push(Datagram { payload: payload[..transmit.size].into(), ecn });
            payload.clear();
        }
        settle(endpoint, *handle, connection);
    }

    /// The time at which a new event has to check a side's timers; `None` if the scheduled
    /// one comes early enough.
    pub(crate) fn timer_to_set(&mut self, now: Time, side: Side) -> Option<Time> {
        let end = &mut self.ends[side as usize];
        let (_, connection) = end.connection.as_mut()?;
        let at = time(connection.poll_timeout()?).max(now);
        if at >= end.alarm {
            return None;
        }
        end.alarm = at;
        Some(at)
    }

    /// Whether the opener is done with it, and the acceptor either knows or cannot be told
    /// any more.
    pub(crate) fn is_over(&mut self) -> bool {
        let Some(opener) = self.quinn(Side::Opener) else { return true };
        let (closed, drained) = (opener.is_closed(), opener.is_drained());
        closed
            && (drained || self.quinn(Side::Acceptor).is_none_or(|acceptor| acceptor.is_closed()))
    }

    /// The codepoint of what a side sends.
    pub(crate) fn dscp(&self, side: Side) -> Dscp {
        self.ends[side as usize].dscp
    }

    /// The hosts between which a side sends, and its 5-tuple.
    pub(crate) fn route(&self, side: Side) -> (NodeId, NodeId, FlowKey) {
        let key = match side {
            Side::Opener => self.key,
            Side::Acceptor => self.key.reversed(),
        };
        (self.ends[side as usize].node, self.ends[side.other() as usize].node, key)
    }

    /// The lot of the next packet of a side.
    pub(crate) fn next_lot(&mut self, side: Side) -> Lot {
        let end = &mut self.ends[side as usize];
        end.sent += 1;
        Lot::new(self.identity ^ side as u64, end.sent)
    }
}

/// Passes on what a connection and its endpoint have to tell each other.
fn settle(endpoint: &mut Endpoint, handle: ConnectionHandle, connection: &mut Connection) {
    while let Some(event) = connection.poll_endpoint_events() {
        if let Some(answer) = endpoint.handle_event(handle, event) {
            connection.handle_event(answer);
        }
    }
}

/// The connections of a run.
#[derive(Default)]
pub(crate) struct QuicConnections {
    slots: slab::Slab<(u32, Box<QuicConnection>)>,
    opened: u64,
}

impl QuicConnections {
    /// Adds a connection that opens at `now`.
    pub(crate) fn open(
        &mut self,
        opening: &QuicOpening,
        settings: &Settings,
        seed: u64,
        now: Time,
    ) -> QuicId {
        let connection = QuicConnection::new(opening, settings, self.opened, seed, now);
        let serial = self.opened as u32;
        self.opened += 1;
        let slot = self.slots.insert((serial, Box::new(connection)));
        QuicId { slot: u32::try_from(slot).expect("under 2^32 connections at once"), serial }
    }

    /// The connection, unless it is over.
    pub(crate) fn live(&mut self, id: QuicId) -> Option<&mut QuicConnection> {
        let (serial, connection) = self.slots.get_mut(id.slot as usize)?;
        (*serial == id.serial).then_some(connection)
    }

    /// Takes a live connection out.
    pub(crate) fn remove(&mut self, id: QuicId) -> Box<QuicConnection> {
        self.slots.remove(id.slot as usize).1
    }
}
