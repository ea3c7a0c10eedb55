//! A direction of a router whose packets the kernel holds.
//!
//! The kernel keeps the packets and hands over their headers; a verdict lets one go or drops
//! it. A packet that may have to be marked is copied whole, because a verdict with a mark
//! brings the whole packet back; where there is no memory for the copy, the discipline is
//! told that the packet's sender does not understand marks. So a signal of congestion is
//! a mark or a loss, and never nothing.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use tidegate_core::entry::Drops;
use tidegate_core::{Bytes, Ecn, Packet, Time};
use tidegate_wire::{Headers, Link, mark_congested};

use crate::bridge::{other_flow, packet};
use crate::frames::Frames;
use crate::lane::{Lane, Step};
use crate::nfqueue::{self, HEADERS, Held, Verdict, WHOLE};
use crate::settings::Queue;
use crate::status::{Failures, QueueStatus};
use crate::worker::{Carrier, Clock, Failure};

/// What decides about the packets of a direction.
pub(crate) struct Router {
    queue: nfqueue::Queue,
    interface: String,
    books: Books,
    lost: Vec<u64>,
}

/// The lane, and what is remembered of the packets in it.
struct Books {
    lane: Lane,
    waiting: Vec<Waiting>,
    free: Vec<u32>,
    copies: Frames,
    failures: Failures,
}

/// A packet that the kernel holds.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// The kernel's name for it.
    id: u32,
    /// The copy, if it may be marked.
    copy: Option<u32>,
}

/// How much of packets a discipline needs.
pub(crate) fn copied(queue: &Queue) -> u32 {
    match queue.entry.drops {
        Drops::WhenFull => HEADERS,
        Drops::Early => WHOLE,
    }
}

impl Router {
    /// A direction with an empty queue; `interface` is named where something is wrong.
    pub(crate) fn new(
        held: nfqueue::Queue,
        interface: String,
        queue: Queue,
        memory: Bytes,
        seed: u64,
    ) -> Router {
        let books = Books {
            lane: Lane::new(queue, seed),
            waiting: Vec::new(),
            free: Vec::new(),
            copies: Frames::new(memory),
            failures: Failures::default(),
        };
        Router { queue: held, interface, books, lost: Vec::new() }
    }

    fn failed(&self, reason: &io::Error) -> Failure {
        Failure::Io { interface: self.interface.clone(), reason: reason.to_string() }
    }

    fn drop_lost(&mut self) -> Result<(), Failure> {
        let Router { queue, books, lost, .. } = self;
        let result = lost.drain(..).try_for_each(|handle| {
            let waiting = books.forget(handle);
            queue.verdict(waiting.id, Verdict::Drop)
        });
        result.map_err(|reason| self.failed(&reason))
    }
}

impl Books {
    fn arrive(&mut self, now: Time, held: &Held<'_>, lost: &mut Vec<u64>) {
        let headers = Headers::read_captured(Link::RawIp, held.payload, held.length.into());
        let mut packet = headers.map_or_else(
            |_| {
                self.failures.malformed_frames += 1;
                Packet::new(0, other_flow(held.protocol), Bytes(held.length.into()))
            },
            |headers| packet(&headers),
        );
        let copy = if packet.ecn.is_markable() { self.copy(held) } else { None };
        if copy.is_none() && packet.ecn != Ecn::Ce {
            packet.ecn = Ecn::NotEct;
        }
        let waiting = Waiting { id: held.id, copy };
        let place = match self.free.pop() {
            Some(place) => {
                self.waiting[place as usize] = waiting;
                place
            }
            None => {
                self.waiting.push(waiting);
                u32::try_from(self.waiting.len() - 1).expect("the kernel holds fewer")
            }
        };
        self.lane.offer(now, Packet { handle: place.into(), ..packet }, lost);
    }

    /// The whole packet, if it is there and there is memory for it.
    fn copy(&mut self, held: &Held<'_>) -> Option<u32> {
        if !held.is_whole() {
            return None;
        }
        let slot = self.copies.take(held.payload.len())?;
        self.copies.frame_mut(slot).copy_from_slice(held.payload);
        Some(slot)
    }

    /// Forgets a packet; its copy can be read until the next arrival.
    fn forget(&mut self, handle: u64) -> Waiting {
        let place = handle as u32;
        self.free.push(place);
        let waiting = self.waiting[place as usize];
        if let Some(copy) = waiting.copy {
            self.copies.release(copy);
        }
        waiting
    }
}

impl Carrier for Router {
    fn take(&mut self, clock: Clock) -> Result<bool, Failure> {
        let now = clock.now();
        let Router { queue, books, lost, .. } = self;
        let received = queue.receive(|held| books.arrive(now, &held, lost));
        let more = match received {
            Ok(count) => count > 0,
            // A message that contradicts itself is one message.
            Err(reason) if reason.kind() == io::ErrorKind::InvalidData => {
                self.books.failures.unreadable_frames += 1;
                true
            }
            Err(reason) => return Err(self.failed(&reason)),
        };
        self.drop_lost()?;
        Ok(more)
    }

    fn give(&mut self, clock: Clock) -> Result<Option<Time>, Failure> {
        let due = loop {
            let step = self.books.lane.poll(clock.now(), &mut self.lost);
            self.drop_lost()?;
            let (handle, mark) = match step {
                Step::Wait(time) => break time,
                Step::Send { handle, mark } => (handle, mark),
            };
            let Router { queue, books, .. } = self;
            let waiting = books.forget(handle);
            let given = match waiting.copy.filter(|_| mark) {
                None => queue.verdict(waiting.id, Verdict::Accept),
                Some(copy) => {
                    let bytes = books.copies.frame_mut(copy);
                    let marked = mark_congested(Link::RawIp, bytes);
                    debug_assert!(marked.is_ok(), "the headers were read when it came");
                    queue.verdict(waiting.id, Verdict::Replace(bytes))
                }
            };
            given.map_err(|reason| self.failed(&reason))?;
        };
        self.queue.flush().map_err(|reason| self.failed(&reason))?;
        Ok(due)
    }

    fn look(&mut self) -> Result<(), Failure> {
        if let Ok(drops) = self.queue.drops() {
            self.books.failures.missed_frames = u64::from(drops.full) + u64::from(drops.unread);
        }
        self.books.failures.unsent_packets = self.queue.refused();
        Ok(())
    }

    fn source(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }

    /// The kernel takes every verdict.
    fn full(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn change(&mut self, now: Time, queue: Queue) {
        self.books.lane.change(now, queue);
    }

    fn lane(&self) -> &Lane {
        &self.books.lane
    }

    fn status(&self, now: Time) -> QueueStatus {
        let mut status = self.books.lane.status(now);
        status.failures = self.books.failures;
        status.memory_bytes = self.books.copies.memory().0;
        status
    }
}

impl Drop for Router {
    /// Lets go what waits: a link that ends holds nobody up.
    fn drop(&mut self) {
        let Router { queue, books, .. } = self;
        let free: std::collections::HashSet<u32> = books.free.iter().copied().collect();
        for (place, waiting) in books.waiting.iter().enumerate() {
            if u32::try_from(place).is_ok_and(|place| !free.contains(&place)) {
                let _ = queue.verdict(waiting.id, Verdict::Accept);
            }
        }
        let _ = queue.flush();
    }
}
