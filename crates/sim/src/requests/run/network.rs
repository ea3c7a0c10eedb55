//! TCP of all hosts, and where their packets go.

use std::sync::Arc;

use tidegate_core::{Bytes, Time};

use super::super::connection::{Connection, Leg, Segment, Side};
use super::super::outcome::Ending;
use super::{Event, Run};
use crate::tcp::{Endpoint, Header, TcpConfig};

impl Run<'_> {
    pub(super) fn open(&mut self, leg: Leg, exchange: u64, configs: [Arc<TcpConfig>; 2]) -> u64 {
        let number = self.opened;
        self.opened += 1;
        let name = (self.seed, number);
        let connection = Connection::new(leg, exchange, self.setup.request, configs, name);
        self.connections.insert(number, connection);
        number
    }

    pub(super) fn deliver(&mut self, segment: u32) {
        let Segment { connection, to, header, .. } = self.segments.remove(segment);
        let now = self.kernel.now();
        let Some(state) = self.connections.get_mut(&connection) else { return };
        state.ends[to as usize].on_segment(now, &header, false, &mut self.headers);
        self.send(connection, to);
        self.serve(connection, to);
    }

    pub(super) fn on_timer(&mut self, connection: u64, side: Side) {
        let now = self.kernel.now();
        let Some(state) = self.connections.get_mut(&connection) else { return };
        if state.alarms[side as usize] != now {
            return;
        }
        state.alarms[side as usize] = Time::FAR_FUTURE;
        let end = &mut state.ends[side as usize];
        if end.next_timer().is_some_and(|at| at <= now) {
            end.on_timer(now, &mut self.headers);
        }
        self.send(connection, side);
    }

    /// What the program at this end does after something has come in.
    fn serve(&mut self, connection: u64, side: Side) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        let (number, end) = (state.exchange, &mut state.ends[side as usize]);
        let exchange = self.exchanges.get(&number);
        match (&mut state.leg, side) {
            (Leg::Client(_), Side::Acceptor) => {
                let request = self.setup.request.0;
                let asks = exchange.is_some_and(|exchange| exchange.asked.is_none());
                if asks && end.is_established() && end.delivered() >= request {
                    self.arrive(number);
                }
            }
            (Leg::Client(_) | Leg::Direct { .. }, Side::Opener) => {
                if end.peer_finished() {
                    end.close();
                }
                let size = exchange.map_or(u64::MAX, |exchange| exchange.object.size.0);
                let delivered = end.delivered();
                if !self.has_gateway {
                    self.take_in(number, delivered);
                }
                if delivered >= size {
                    self.end_exchange(number, Ending::Completed);
                }
            }
            (Leg::Server { server, timed, .. }, Side::Opener) => {
                if let (false, Some(round_trip)) = (*timed, end.smoothed_rtt()) {
                    *timed = true;
                    let least = &mut self.least_round_trip[*server];
                    let least = *least.insert(least.map_or(round_trip, |l| l.min(round_trip)));
                    self.delays.0 += round_trip - least;
                    self.delays.1 += 1;
                }
                self.relay(number);
            }
            (Leg::Server { answered, .. } | Leg::Direct { answered, .. }, Side::Acceptor) => {
                let ready = end.is_established() && end.delivered() >= self.setup.request.0;
                if let (false, true, Some(exchange)) = (*answered, ready, exchange) {
                    *answered = true;
                    let trickles = exchange.object.fate.answer(exchange.object.size, end);
                    if trickles {
                        self.trickle(number);
                    }
                }
            }
        }
        self.act(connection, side);
    }

    /// Lets an end send what it may after its program did something.
    pub(super) fn act(&mut self, connection: u64, side: Side) {
        let now = self.kernel.now();
        let Some(state) = self.connections.get_mut(&connection) else { return };
        state.ends[side as usize].poll(now, &mut self.headers);
        self.send(connection, side);
    }

    /// Sends what an end has to say, sets its timer, and forgets the connection
    /// when it is over.
    fn send(&mut self, connection: u64, side: Side) {
        let now = self.kernel.now();
        let headers = std::mem::take(&mut self.headers);
        for header in &headers {
            self.route(connection, side, *header);
        }
        self.headers = headers;
        self.headers.clear();
        let Some(state) = self.connections.get_mut(&connection) else { return };
        let alarm = &mut state.alarms[side as usize];
        if let Some(at) = state.ends[side as usize].next_timer().filter(|at| *at < *alarm) {
            *alarm = at;
            self.kernel.schedule(at.max(now), Event::Timer(connection, side));
        }
        if state.ends.iter().any(Endpoint::has_failed) {
            let number = state.exchange;
            self.connections.remove(&connection);
            self.end_exchange(number, Ending::Broken);
        } else if state.ends.iter().all(Endpoint::is_closed) {
            self.connections.remove(&connection);
        }
    }

    /// Puts a packet on its way.
    fn route(&mut self, connection: u64, from: Side, header: Header) {
        let now = self.kernel.now();
        let Some(state) = self.connections.get(&connection) else { return };
        let size = header.wire_size();
        let (leg, to) = (state.leg, from.other());
        let segment = self.segments.insert(Segment { connection, leg, to, header });
        let event = match (leg, from) {
            (Leg::Client(client), Side::Opener) => {
                (self.to_gateway[client].carry(now, size), Event::Deliver(segment))
            }
            (Leg::Client(client), Side::Acceptor) => {
                (self.to_client[client].carry(now, size), Event::Deliver(segment))
            }
            (Leg::Server { server, .. }, Side::Opener) => {
                let at = self.uplink.carry(now, size);
                (self.to_server[server].carry(at, size), Event::Deliver(segment))
            }
            (Leg::Direct { client, .. }, Side::Opener) => {
                (self.to_gateway[client].carry(now, size), Event::AtUplink(segment))
            }
            (Leg::Server { server, .. } | Leg::Direct { server, .. }, Side::Acceptor) => {
                (self.to_provider[server].carry(now, size), Event::AtProvider(segment))
            }
        };
        self.kernel.schedule(event.0, event.1);
    }

    /// A packet of a client's to a server comes to the access link.
    pub(super) fn enter_uplink(&mut self, segment: u32) {
        let Segment { leg, header, .. } = self.segments[segment];
        let Leg::Direct { server, .. } = leg else { return };
        let at = self.uplink.carry(self.kernel.now(), header.wire_size());
        let at = self.to_server[server].carry(at, header.wire_size());
        self.kernel.schedule(at, Event::Deliver(segment));
    }

    /// A segment, or a datagram that only passes, comes to the provider's queue.
    pub(super) fn queue_at_provider(&mut self, segment: Option<u32>, size: Bytes) {
        for lost in self.downlink.offer(self.kernel.now(), segment, size) {
            self.segments.remove(lost);
        }
        self.wake_downlink();
    }

    pub(super) fn wake_downlink(&mut self) {
        if !self.downlink_wakes
            && let Some(at) = self.downlink.ready_at()
        {
            self.downlink_wakes = true;
            self.kernel.schedule(at, Event::DownlinkReady);
        }
    }
}
