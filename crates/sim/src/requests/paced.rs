//! A packet discipline on the users' side, just below the link's rate.
//!
//! What has passed the provider's queue queues here again, for a link that is a
//! little slower. So the queue builds up here and not there, as far as senders
//! slow down in time, and a discipline decides after all. Packets that the
//! provider has lost or kept waiting are beyond its reach.

use tidegate_core::discipline::{Backlog, Discipline, Losses};
use tidegate_core::entry::Place;
use tidegate_core::setting::Settings;
use tidegate_core::{Packet, Rate, Time};

/// Any discipline in front of a link of a rate: the next packet leaves when the
/// last one would have been sent.
pub(crate) struct Paced {
    discipline: Box<dyn Discipline>,
    rate: Rate,
    free_at: Time,
}

impl Paced {
    pub(crate) fn new(discipline: Box<dyn Discipline>, rate: Rate) -> Paced {
        Paced { discipline, rate, free_at: Time::ZERO }
    }
}

impl Discipline for Paced {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        self.discipline.enqueue(now, packet, losses);
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        if now < self.free_at {
            return None;
        }
        let packet = self.discipline.dequeue(now, losses)?;
        self.free_at = now + self.rate.transmission(packet.size);
        Some(packet)
    }

    fn reconfigure(&mut self, now: Time, settings: &Settings, place: Place) {
        self.discipline.reconfigure(now, settings, Place { rate: Some(self.rate), ..place });
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        self.discipline.next_ready(now).map(|at| at.max(self.free_at))
    }

    fn backlog(&self) -> Backlog {
        self.discipline.backlog()
    }
}
