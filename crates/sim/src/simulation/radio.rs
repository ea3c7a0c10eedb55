//! Wireless links: the packets of all links that share a medium, from their queues to the far end.

use tidegate_core::{Packet, Time};

use super::world::{Event, Segment, World, record_losses, segment_of};
use crate::air::{Queues, Radio};
use crate::kernel::Kernel;
use crate::metrics::{PacketEvent, PacketRecord, Recorder};
use crate::network::{Link, Network, Queue, Scheduled, SegmentId};
use crate::scenario::NodeId;
use crate::slab::Slab;
use crate::wlan::Outcome;
use crate::wlan::aggregation::Fate;

impl World<'_> {
    /// A wireless link has something to send.
    pub(super) fn contend(&mut self, radio: Radio) {
        let air = &mut self.network.airs[radio.cell];
        air.feed.offered(radio);
        air.demand.begin(self.kernel.now());
        air.cell.offer(self.kernel.now(), radio.sender);
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

    /// Lets the senders of a cell whose turn it is send.
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
        let mut outcomes = std::mem::take(&mut air.outcomes);
        let mut queues = Wireless {
            now,
            links,
            segments: &mut self.segments,
            lost: &mut self.lost,
            recorder: self.takes_packets.then_some(&mut *self.recorder),
            kernel: &mut self.kernel,
        };
        let take = |sender| air.feed.next(sender, &mut queues);
        outcomes.extend_from_slice(air.cell.access(now, take));
        for transmission in air.cell.transmissions() {
            let link = air.feed.link(transmission.from, transmission.to);
            queues.scheduled(link).airtime += transmission.time;
            air.feed.charge(*transmission);
        }
        if air.cell.next_access() == Time::FAR_FUTURE {
            let times = air.cell.transmissions().iter().map(|it| it.time);
            air.demand.end(now + times.max().unwrap_or_default());
        }
        for outcome in outcomes.drain(..) {
            match outcome {
                Outcome::Delivered { from, to, handle, at } => {
                    let link = self.network.airs[index].feed.link(from, to);
                    self.travel(link, handle as SegmentId, at);
                }
                Outcome::GivenUp { handle, .. } => self.lost.push(handle as SegmentId),
                Outcome::Aggregate { from, to, received, at } => {
                    let feed = &mut self.network.airs[index].feed;
                    let link = feed.link(from, to);
                    let mut delivered = std::mem::take(&mut self.handed_on);
                    feed.settle(from, received, |handle, fate| match fate {
                        Fate::Delivered => delivered.push(handle as SegmentId),
                        Fate::GivenUp => self.lost.push(handle as SegmentId),
                    });
                    delivered.drain(..).for_each(|segment| self.travel(link, segment, at));
                    self.handed_on = delivered;
                }
            }
        }
        self.drop_lost();
        self.network.airs[index].outcomes = outcomes;
        self.await_access(index);
    }
}

/// The queues of all links, for a cell to take packets from.
struct Wireless<'a> {
    now: Time,
    links: &'a mut [Link],
    segments: &'a mut Slab<Segment>,
    lost: &'a mut Vec<SegmentId>,
    /// Present if it takes the rows of packets.
    recorder: Option<&'a mut dyn Recorder>,
    kernel: &'a mut Kernel<Event>,
}

impl Wireless<'_> {
    fn scheduled(&mut self, link: usize) -> &mut Scheduled {
        match &mut self.links[link].queue {
            Queue::Scheduled(queue) => queue,
            Queue::Unbounded { .. } => unreachable!("a wireless link has a queue"),
        }
    }
}

impl Queues for Wireless<'_> {
    fn waits(&self, link: usize) -> bool {
        match &self.links[link].queue {
            Queue::Scheduled(queue) => !queue.wakes && queue.port().backlog().packets > 0,
            Queue::Unbounded { .. } => false,
        }
    }

    fn take(&mut self, link: usize) -> Option<(Packet, NodeId)> {
        let now = self.now;
        let Queue::Scheduled(queue) = &mut self.links[link].queue else { return None };
        if queue.wakes {
            return None;
        }
        let taken = queue.send(now).map(|(packet, _)| packet);
        self.lost.extend(queue.port().losses().iter().map(segment_of));
        if let Some(recorder) = &mut self.recorder {
            record_losses(&mut **recorder, link, now, queue.port().losses());
            if let Some(packet) = taken {
                let event = PacketEvent::Sent;
                recorder.packet(&PacketRecord { link, at: now, packet, event });
            }
        }
        let Some(packet) = taken else {
            // The discipline holds its packets back.
            if let Some(next) = queue.next_ready(now) {
                queue.wakes = true;
                self.kernel.schedule(next, Event::Ready(link as u16));
            }
            return None;
        };
        queue.delay.record(now.since(packet.arrived));
        let segment = &mut self.segments[packet.handle as SegmentId];
        segment.ecn = packet.ecn;
        Some((packet, segment.destination))
    }
}
