//! One direction of a link between two interfaces: frames in, frames out.
//!
//! A frame that arrives is read by `wire`, cut where it is a super-packet, stored, and
//! offered to the lane; what the lane sends gets its mark and is handed out. There is
//! neither clock nor socket here: the same bytes at the same times give the same frames.
//!
//! What is not IP (ARP, spanning tree, PPPoE control) has to pass too, and uses the link:
//! all frames of one EtherType are a flow. So are frames whose headers contradict
//! themselves: a link is no firewall, and the host that they are for has to judge them.
//!
//! From a rate of [`WHOLE_FROM`] on super-packets pass as they are, as CAKE has it: each is
//! short there, and to cut them would cost more than it helps. Each then takes of the link
//! what its packets would.

use std::net::{Ipv4Addr, SocketAddr};

use tidegate_core::{Bytes, FlowKey, Packet, Rate, Time};
use tidegate_wire::{Headers, Link, mark_congested};

use crate::frames::Frames;
use crate::lane::{Lane, Step};
use crate::offload::{HEADER_LENGTH, Offload};
use crate::segment::Segments;
use crate::settings::Queue;
use crate::status::{Failures, QueueStatus};

/// The rate from which on super-packets are not cut: 64 kB take half a millisecond.
pub const WHOLE_FROM: Rate = Rate(1_000_000_000);

/// Ethernet without a tag.
const ETHERNET_HEADER: usize = 14;
/// IANA's number for what is reserved: no packet of IP has it.
const NO_PROTOCOL: u8 = 255;

/// A direction.
pub struct Bridge {
    lane: Lane,
    frames: Frames,
    failures: Failures,
    split_frames: u64,
    other_frames: u64,
    lost: Vec<u64>,
}

/// What a bridge has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Send the frame with this number, and then [release](Bridge::release) it.
    Send(u32),
    /// Poll again at this time, if there is one, and when a frame arrives.
    Wait(Option<Time>),
}

impl Bridge {
    /// A direction with an empty queue and at most so much `memory` for frames.
    #[must_use]
    pub fn new(queue: Queue, memory: Bytes, seed: u64) -> Bridge {
        Bridge {
            lane: Lane::new(queue, seed),
            frames: Frames::new(memory),
            failures: Failures::default(),
            split_frames: 0,
            other_frames: 0,
            lost: Vec::new(),
        }
    }

    /// Takes in an Ethernet frame that arrives at `now`, with what the kernel left to be
    /// done on it.
    pub fn receive(&mut self, now: Time, offload: Offload, frame: &[u8]) {
        let headers = match Headers::read(Link::Ethernet, frame) {
            Ok(headers) => headers,
            Err(error) => {
                let counter = match error.is_other_protocol() {
                    true => &mut self.other_frames,
                    false => &mut self.failures.malformed_frames,
                };
                *counter += 1;
                let size = Bytes(frame.len().saturating_sub(ETHERNET_HEADER) as u64);
                return self.store(
                    now,
                    offload,
                    frame,
                    Packet::new(0, other_flow(ether_type(frame)), size),
                );
            }
        };
        if offload.cut.is_none() {
            return self.store(now, offload, frame, packet(&headers));
        }
        match Segments::of(frame, &headers, &offload) {
            None => self.failures.unreadable_frames += 1,
            Some(segments) if self.lane.queue().rate >= WHOLE_FROM => {
                let count = segments.count();
                let size = (0..count).map(|index| segments.ip_length(index)).sum();
                let packet = Packet { size, ..packet(&headers) };
                self.store(now, offload, frame, packet);
            }
            Some(segments) => {
                self.split_frames += 1;
                (0..segments.count()).for_each(|index| self.cut(now, frame, &segments, index));
            }
        }
    }

    /// Takes in a segment of a super-packet.
    fn cut(&mut self, now: Time, frame: &[u8], segments: &Segments, index: usize) {
        let Some(slot) = self.frames.take(segments.length(index)) else {
            self.failures.no_memory_packets += 1;
            return;
        };
        let segment = self.frames.frame_mut(slot);
        let left = segments.write(frame, index, segment);
        let headers = Headers::read(Link::Ethernet, segment);
        self.frames.set_header(slot, left.write());
        match headers {
            Ok(headers) => self.offer(now, slot, packet(&headers)),
            // The whole could be read, and so can its parts; if not, nothing is to be sent.
            Err(_) => {
                self.failures.unreadable_frames += 1;
                self.frames.release(slot);
            }
        }
    }

    fn store(&mut self, now: Time, offload: Offload, frame: &[u8], packet: Packet) {
        let Some(slot) = self.frames.take(frame.len()) else {
            self.failures.no_memory_packets += 1;
            return;
        };
        self.frames.frame_mut(slot).copy_from_slice(frame);
        self.frames.set_header(slot, offload.write());
        self.offer(now, slot, packet);
    }

    fn offer(&mut self, now: Time, slot: u32, packet: Packet) {
        self.lane.offer(now, Packet { handle: slot.into(), ..packet }, &mut self.lost);
        self.forget_lost();
    }

    /// What is to be done at `now`.
    pub fn poll(&mut self, now: Time) -> Turn {
        let step = self.lane.poll(now, &mut self.lost);
        self.forget_lost();
        match step {
            Step::Wait(time) => Turn::Wait(time),
            Step::Send { handle, mark } => {
                let slot = handle as u32;
                if mark {
                    let marked = mark_congested(Link::Ethernet, self.frames.frame_mut(slot));
                    debug_assert!(marked.is_ok(), "the headers were read when the frame came");
                }
                Turn::Send(slot)
            }
        }
    }

    fn forget_lost(&mut self) {
        for handle in self.lost.drain(..) {
            self.frames.release(handle as u32);
        }
    }

    /// The frame with this number, behind the header that the kernel wants.
    #[must_use]
    pub fn whole(&self, number: u32) -> &[u8] {
        self.frames.whole(number)
    }

    /// The frame with this number, without that header.
    #[must_use]
    pub fn frame(&self, number: u32) -> &[u8] {
        &self.whole(number)[HEADER_LENGTH..]
    }

    /// Forgets a frame that was to be sent.
    pub fn release(&mut self, number: u32) {
        self.frames.release(number);
    }

    /// What the sockets count.
    pub fn failures_mut(&mut self) -> &mut Failures {
        &mut self.failures
    }

    /// The queue and its books.
    #[must_use]
    pub fn lane(&self) -> &Lane {
        &self.lane
    }

    /// Adopts another queue: see [`Lane::change`].
    pub fn change(&mut self, now: Time, queue: Queue) {
        self.lane.change(now, queue);
    }

    /// The state at `now`.
    #[must_use]
    pub fn status(&self, now: Time) -> QueueStatus {
        let mut status = self.lane.status(now);
        status.counts.split_frames = self.split_frames;
        status.counts.other_frames = self.other_frames;
        status.failures = self.failures;
        status.memory_bytes = self.frames.memory().0;
        status
    }
}

/// What a discipline sees of a packet; its size is that of the IP packet.
pub(crate) fn packet(headers: &Headers) -> Packet {
    let Headers { flow, ip_length, dscp, ecn, tcp, .. } = *headers;
    Packet { dscp, ecn, tcp, ..Packet::new(0, flow, ip_length) }
}

/// The flow of what cannot be read, by its EtherType.
pub(crate) fn other_flow(ether_type: u16) -> FlowKey {
    let nobody = SocketAddr::from((Ipv4Addr::UNSPECIFIED, ether_type));
    FlowKey::new(nobody, nobody, NO_PROTOCOL)
}

/// Zero for a frame that ends before it.
fn ether_type(frame: &[u8]) -> u16 {
    match frame.get(ETHERNET_HEADER - 2..ETHERNET_HEADER) {
        Some(bytes) => u16::from_be_bytes([bytes[0], bytes[1]]),
        None => 0,
    }
}
