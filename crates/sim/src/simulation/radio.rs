//! Wireless links: the packets of all that share a medium, from their queues
//! to the far end.

use tidegate_core::Time;

use super::{Event, Simulation, record_losses, segment_of};
use crate::air::Radio;
use crate::metrics::{PacketEvent, PacketRecord};
use crate::network::{Network, Queue, SegmentId};
use crate::wlan::Outcome;

impl Simulation<'_> {
    /// A wireless link has something to send.
    pub(super) fn contend(&mut self, radio: Radio) {
        self.network.airs[radio.cell].cell.offer(self.kernel.now(), radio.sender);
        self.await_access(radio.cell);
    }

    /// Schedules the next access to a cell, unless that has been done. An event
    /// that turns out to be too early finds nothing to do.
    fn await_access(&mut self, cell: usize) {
        let air = &mut self.network.airs[cell];
        let at = air.cell.next_access();
        if at < air.scheduled {
            air.scheduled = at;
            self.kernel.schedule(at, Event::Access(cell as u16));
        }
    }

    /// Lets those send in a cell whose turn it is.
    pub(super) fn access(&mut self, index: usize) {
        let now = self.kernel.now();
        let Network { links, airs, .. } = &mut self.network;
        let air = &mut airs[index];
        if air.scheduled <= now {
            air.scheduled = Time::FAR_FUTURE;
        }
        if air.cell.next_access() > now {
            return self.await_access(index);
        }
        let mut taken = std::mem::take(&mut air.taken);
        let mut outcomes = std::mem::take(&mut air.outcomes);
        let take = |sender: usize| {
            let link = air.links[sender];
            let Queue::Scheduled(queue) = &mut links[link].queue else {
                unreachable!("a wireless link has a queue")
            };
            let packet = queue.port.take(now);
            taken.push((link, packet));
            let packet = packet?;
            queue.delay.record(now.since(packet.arrived));
            let segment = &mut self.segments[packet.handle as SegmentId];
            segment.ecn = packet.ecn;
            let frame = air.frames.frame(sender, &packet, segment.destination);
            Some((frame, queue.port.backlog().packets > 0))
        };
        outcomes.extend_from_slice(air.cell.access(now, take));
        for (link, packet) in taken.drain(..) {
            let Queue::Scheduled(queue) = &mut self.network.links[link].queue else { continue };
            self.lost.extend(queue.port.losses().iter().map(segment_of));
            if self.takes_packets {
                record_losses(self.recorder, link, now, queue.port.losses());
                if let Some(packet) = packet {
                    let event = PacketEvent::Sent;
                    self.recorder.packet(&PacketRecord { link, at: now, packet, event });
                }
            }
            if packet.is_none() && queue.port.backlog().packets > 0 {
                // The discipline holds its packets back.
                queue.wakes = true;
                let next = queue.port.next_ready(now).unwrap_or(Time::FAR_FUTURE);
                self.kernel.schedule(next, Event::Ready(link as u16));
            }
        }
        for outcome in outcomes.drain(..) {
            match outcome {
                Outcome::Delivered { from, handle, at } => {
                    let link = self.network.airs[index].links[from];
                    self.travel(link, handle as SegmentId, at);
                }
                Outcome::GivenUp { handle, .. } => self.lost.push(handle as SegmentId),
            }
        }
        self.drop_lost();
        let air = &mut self.network.airs[index];
        (air.taken, air.outcomes) = (taken, outcomes);
        self.await_access(index);
    }
}
