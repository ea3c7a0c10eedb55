//! Wires, and the access link's downlink with its queue.

use tidegate_core::discipline::fifo::Fifo;
use tidegate_core::{Buffer, Bytes, FlowKey, Packet, Port, Rate, Span, Time};

use crate::metrics::run_summary::Times;

/// A link whose queue has no limit: it knows at once when a packet will arrive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wire {
    rate: Rate,
    delay: Span,
    busy_until: Time,
}

impl Wire {
    pub(super) fn new(rate: Rate, delay: Span) -> Wire {
        Wire { rate, delay, busy_until: Time::ZERO }
    }

    /// When a packet that enters at `at` has come to the far end. Packets have
    /// to enter in order.
    pub(super) fn carry(&mut self, at: Time, size: Bytes) -> Time {
        self.busy_until = self.busy_until.max(at) + self.rate.transmission(size);
        self.busy_until + self.delay
    }
}

/// In place of a handle: those of segments have 32 bits.
const PASSING: u64 = u64::MAX;

fn handle_of(packet: &Packet) -> Option<u32> {
    u32::try_from(packet.handle).ok()
}

/// The downlink: the provider's queue, its sender and the wire behind.
pub(super) struct Downlink {
    pub(super) port: Port,
    rate: Rate,
    delay: Span,
    busy_until: Time,
    /// Time in the queue of every packet sent.
    pub(super) queueing: Times,
}

impl Downlink {
    pub(super) fn new(rate: Rate, delay: Span, buffer: Buffer) -> Downlink {
        let port = Port::new(Box::new(Fifo::new(buffer)));
        Downlink { port, rate, delay, busy_until: Time::ZERO, queueing: Times::default() }
    }

    /// A packet comes to the queue; a datagram that only passes has no handle.
    /// Returns the handles of those lost.
    pub(super) fn offer(&mut self, now: Time, handle: Option<u32>, size: Bytes) -> Vec<u32> {
        // FIFO looks at no flow.
        let key = FlowKey::v4([0; 4], 0, [0; 4], 0, FlowKey::TCP);
        let packet = Packet::new(handle.map_or(PASSING, u64::from), key, size);
        let losses = self.port.offer(now, packet);
        losses.iter().filter_map(|loss| handle_of(&loss.packet)).collect()
    }

    /// When the sender may take a packet; `None` when none waits.
    pub(super) fn ready_at(&self) -> Option<Time> {
        (self.port.backlog().packets > 0).then_some(self.busy_until)
    }

    /// Sends the next packet: its handle, and when it has come to the far end.
    pub(super) fn send(&mut self, now: Time) -> Option<(Option<u32>, Time)> {
        let packet = self.port.take(now)?;
        self.queueing.record(now.since(packet.arrived));
        self.busy_until = now + self.rate.transmission(packet.size);
        Some((handle_of(&packet), self.busy_until + self.delay))
    }
}
