//! QUIC in a run: its packets on the links, its timers among the events.

use tidegate_core::{Bytes, Ecn};

use super::Programs;
use super::world::{Content, Ended, Event, Segment, World};
use crate::connections::Side;
use crate::quic::{QuicId, QuicOpening, Settings};

/// Headers of IPv4 and UDP.
const HEADERS: u64 = 28;

impl World<'_> {
    /// Opens a QUIC connection, whose opener sends its first packet now.
    pub(crate) fn open_quic(&mut self, opening: &QuicOpening, settings: &Settings) -> QuicId {
        let now = self.kernel.now();
        let connection = self.quic.open(opening, settings, self.seed, now);
        self.act_quic(connection, Side::Opener);
        connection
    }

    /// A packet has arrived at one side.
    pub(super) fn deliver_quic(
        &mut self,
        id: QuicId,
        to: Side,
        ecn: Ecn,
        payload: u32,
        programs: &mut Programs<'_>,
    ) {
        let (now, payload) = (self.kernel.now(), self.payloads.remove(payload));
        let Some(connection) = self.quic.live(id) else { return };
        connection.on_datagram(now, to, ecn, payload);
        let app = connection.app;
        programs.on_quic(app, self, id, to);
        self.act_quic(id, to);
    }

    /// A timer of one side may be due.
    pub(super) fn on_quic_timer(&mut self, id: QuicId, side: Side, programs: &mut Programs<'_>) {
        let now = self.kernel.now();
        let Some(connection) = self.quic.live(id) else { return };
        if connection.timer_came(now, side) {
            let app = connection.app;
            programs.on_quic(app, self, id, side);
            self.act_quic(id, side);
        }
    }

    /// A packet is lost, and its bytes with it.
    pub(super) fn lose_quic(&mut self, id: QuicId, payload: u32) {
        self.payloads.remove(payload);
        if let Some(connection) = self.quic.live(id) {
            connection.lost += 1;
        }
    }

    /// Sends what one side of a connection has to say, sets its timer, and removes the
    /// connection when it is over.
    pub(crate) fn act_quic(&mut self, id: QuicId, side: Side) {
        let now = self.kernel.now();
        let Some(connection) = self.quic.live(id) else { return };
        let mut packets = std::mem::take(&mut self.quic_packets);
        connection.transmit(now, side, &mut packets);
        if let Some(at) = connection.timer_to_set(now, side) {
            self.kernel.schedule(at, Event::QuicTimer(id, side));
        }
        let over = connection.is_over();
        let (class, dscp) = (connection.class, connection.dscp(side));
        let (from, destination, key) = connection.route(side);
        for packet in packets.drain(..) {
            let Some(connection) = self.quic.live(id) else { break };
            let (lot, ecn) = (connection.next_lot(side), packet.ecn);
            let size = Bytes(HEADERS + packet.payload.len() as u64);
            let payload = self.payloads.insert(packet.payload);
            let content = Content::Quic { connection: id, to: side.other(), payload };
            self.send(from, Segment { key, destination, size, class, dscp, ecn, lot, content });
        }
        self.quic_packets = packets;
        if over {
            let connection = self.quic.remove(id);
            self.over.push_back(Ended::Quic(connection));
        }
    }

    /// Every packet of QUIC's on the way has its bytes, and no other bytes are kept.
    pub(super) fn check_payloads(&self) {
        let is_quic = |content| matches!(content, Content::Quic { .. });
        let on_the_way = self.segments.values().filter(|segment| is_quic(segment.content)).count();
        assert_eq!(self.payloads.len(), on_the_way, "bytes of a packet were kept or lost unseen");
    }
}
