//! A discipline and the counters around it.
//!
//! This is the one place where packets are counted, so that `offered =
//! delivered + lost + queued` can be checked anywhere and always.

use crate::discipline::{Backlog, Discipline, Level, Loss, LossReason, Losses};
use crate::entry::Place;
use crate::packet::Packet;
use crate::setting::Settings;
use crate::units::{Bytes, Time};

/// What has gone through a [`Port`] since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that arrived.
    pub offered: u64,
    /// Packets handed out for sending.
    pub delivered: u64,
    /// Bytes handed out for sending.
    pub delivered_bytes: Bytes,
    /// Packets lost, in the order of [`LossReason::ALL`].
    lost: [u64; LossReason::ALL.len()],
    /// Packets marked, to tell their senders of congestion.
    pub marked: u64,
    /// The most flows tracked at once.
    pub flows_peak: usize,
}

impl Counters {
    /// Packets lost for any reason.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.iter().sum()
    }

    /// Packets lost for one reason.
    #[must_use]
    pub fn lost_as(&self, reason: LossReason) -> u64 {
        self.lost[reason as usize]
    }

    /// What has gone through since the counters stood at `base`; the peak is
    /// that of the whole time.
    #[must_use]
    pub fn since(&self, base: &Counters) -> Counters {
        Counters {
            offered: self.offered - base.offered,
            delivered: self.delivered - base.delivered,
            delivered_bytes: self.delivered_bytes - base.delivered_bytes,
            lost: std::array::from_fn(|reason| self.lost[reason] - base.lost[reason]),
            marked: self.marked - base.marked,
            flows_peak: self.flows_peak,
        }
    }
}

/// A discipline under observation.
pub struct Port {
    discipline: Box<dyn Discipline>,
    losses: Losses,
    counters: Counters,
}

impl Port {
    /// A port that serves packets by `discipline`.
    #[must_use]
    pub fn new(discipline: Box<dyn Discipline>) -> Port {
        Port { discipline, losses: Losses::new(), counters: Counters::default() }
    }

    /// Hands in a packet that has arrived at `now`; returns the packets lost over it.
    pub fn offer(&mut self, now: Time, mut packet: Packet) -> &[Loss] {
        packet.arrived = now;
        self.counters.offered += 1;
        self.losses.clear();
        self.discipline.enqueue(now, packet, &mut self.losses);
        self.count_losses();
        self.counters.flows_peak = self.counters.flows_peak.max(self.discipline.flows_tracked());
        self.losses.as_slice()
    }

    /// Takes the packet to send at `now`. Packets lost on the way are in [`Port::losses`].
    pub fn take(&mut self, now: Time) -> Option<Packet> {
        self.losses.clear();
        let packet = self.discipline.dequeue(now, &mut self.losses);
        self.count_losses();
        if let Some(packet) = &packet {
            self.counters.delivered += 1;
            self.counters.delivered_bytes += packet.size;
        }
        packet
    }

    /// Sets the running discipline otherwise: see [`Discipline::reconfigure`].
    pub fn reconfigure(&mut self, now: Time, settings: &Settings, place: impl Into<Place>) {
        self.discipline.reconfigure(now, settings, place.into());
    }

    fn count_losses(&mut self) {
        for loss in self.losses.as_slice() {
            self.counters.lost[loss.reason as usize] += 1;
        }
        self.counters.marked += u64::from(self.losses.marked());
    }

    /// The packets lost in the last call.
    #[must_use]
    pub fn losses(&self) -> &[Loss] {
        self.losses.as_slice()
    }

    /// Leaves nothing in [`Port::losses`], for a call that loses nothing.
    pub(crate) fn forget_losses(&mut self) {
        self.losses.clear();
    }

    /// When the next packet may leave: see [`Discipline::next_ready`].
    #[must_use]
    pub fn next_ready(&self, now: Time) -> Option<Time> {
        self.discipline.next_ready(now)
    }

    /// What is queued.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        self.discipline.backlog()
    }

    /// Flows tracked now.
    #[must_use]
    pub fn flows_tracked(&self) -> usize {
        self.discipline.flows_tracked()
    }

    /// Backlog by level: see [`Discipline::levels`].
    #[must_use]
    pub fn levels(&self) -> &[Level] {
        self.discipline.levels()
    }

    /// What has gone through.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether every packet offered is delivered, lost or still queued.
    #[must_use]
    pub fn is_conserved(&self) -> bool {
        let queued = u64::from(self.backlog().packets);
        self.counters.offered == self.counters.delivered + self.counters.lost() + queued
    }
}
