//! The way from the downlink to the clients where no gateway stands between.

use tidegate_core::{Counters, FlowKey, Packet, Port, Time};

use super::super::connection::{Leg, Segment};
use super::super::setup::Setup;
use super::{Event, Run};

/// A queue on the users' side of the downlink.
pub(super) struct Shaper {
    pub(super) port: Port,
    /// When it is looked at next.
    wakes_at: Time,
    base: Counters,
}

impl Shaper {
    pub(super) fn new(port: Port) -> Shaper {
        Shaper { port, wakes_at: Time::FAR_FUTURE, base: Counters::default() }
    }

    pub(super) fn start_books(&mut self) {
        self.base = *self.port.counters();
    }

    /// What has gone through since the books were started.
    pub(super) fn counted(&self) -> Counters {
        self.port.counters().since(&self.base)
    }
}

impl Run<'_> {
    /// A packet for a client has come over the downlink.
    pub(super) fn arrive_at_users(&mut self, segment: u32) {
        let Some(shaper) = &mut self.shaper else { return self.carry_to_client(segment) };
        let state = &self.segments[segment];
        let Leg::Direct { client, server, .. } = state.leg else { return };
        let packet = as_packet(self.setup, segment, state, (server, client));
        for loss in shaper.port.offer(self.kernel.now(), packet) {
            self.segments.remove(loss.packet.handle as u32);
        }
        self.wake_shaper();
    }

    /// Sends what the shaper lets go.
    pub(super) fn shape(&mut self) {
        let now = self.kernel.now();
        let mut sent = Vec::new();
        let Some(shaper) = &mut self.shaper else { return };
        if shaper.wakes_at != now {
            // An earlier one has taken its place.
            return;
        }
        shaper.wakes_at = Time::FAR_FUTURE;
        while shaper.port.next_ready(now).is_some_and(|at| at <= now) {
            let packet = shaper.port.take(now);
            for loss in shaper.port.losses() {
                self.segments.remove(loss.packet.handle as u32);
            }
            sent.extend(packet.map(|packet| packet.handle as u32));
        }
        for segment in sent {
            self.carry_to_client(segment);
        }
        self.wake_shaper();
    }

    fn wake_shaper(&mut self) {
        let now = self.kernel.now();
        if let Some(shaper) = &mut self.shaper
            && let Some(at) = shaper.port.next_ready(now)
            && at < shaper.wakes_at
        {
            shaper.wakes_at = at;
            self.kernel.schedule(at, Event::ShaperReady);
        }
    }

    fn carry_to_client(&mut self, segment: u32) {
        let Segment { leg, header, .. } = self.segments[segment];
        if let Leg::Direct { client, .. } = leg {
            let at = self.to_client[client].carry(self.kernel.now(), header.wire_size());
            self.kernel.schedule(at, Event::Deliver(segment));
        }
    }
}

/// What a discipline sees of a packet from a server to a client, these two by their
/// numbers.
fn as_packet(
    setup: &Setup,
    handle: u32,
    segment: &Segment,
    (server, client): (usize, usize),
) -> Packet {
    let address = |net: u8, number: usize| {
        let [.., high, middle, low] = number.to_be_bytes();
        [net, high, middle, low]
    };
    let (from, to) = (address(198, server), address(10, client));
    let port = segment.connection as u16;
    let key = FlowKey::v4(from, 443, to, port, FlowKey::TCP);
    let class = u16::try_from(setup.class_of(client)).unwrap_or(u16::MAX);
    Packet { class, ..Packet::new(u64::from(handle), key, segment.header.wire_size()) }
}
