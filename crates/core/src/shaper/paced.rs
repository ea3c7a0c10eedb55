//! Any discipline in front of a rate.
//!
//! A packet may leave when the previous one would have been sent. Where packets
//! have already passed a provider's queue, a rate just below the link's makes
//! the queue build up here and not there, as far as senders slow down in time.
//! The shaper cannot help packets that the provider has lost or delayed.

use crate::discipline::{Backlog, Discipline, Level, Losses};
use crate::entry::Place;
use crate::pace::Pace;
use crate::packet::Packet;
use crate::setting::Settings;
use crate::units::{Rate, Time};

/// A discipline that is held back to a rate.
///
/// ```
/// use tidegate_core::shaper::Paced;
/// use tidegate_core::discipline::fifo::Fifo;
/// use tidegate_core::{Buffer, Bytes, Discipline, FlowKey, Packet, Port, Rate, Time};
///
/// let fifo = Box::new(Fifo::new(Buffer::packets(100)));
/// let mut port = Port::new(Box::new(Paced::new(fifo, Rate(12_000_000))));
/// let flow = FlowKey::v4([10, 0, 0, 1], 443, [10, 0, 0, 2], 50_000, FlowKey::TCP);
/// for handle in 0..2 {
///     port.offer(Time::ZERO, Packet::new(handle, flow, Bytes(1_500)));
/// }
/// assert!(port.take(Time::ZERO).is_some());
/// // 1 500 bytes take a millisecond.
/// assert_eq!(port.next_ready(Time::ZERO), Some(Time(1_000_000)));
/// assert!(port.take(Time(999_999)).is_none());
/// assert!(port.take(Time(1_000_000)).is_some());
/// ```
pub struct Paced {
    discipline: Box<dyn Discipline>,
    rate: Rate,
    pace: Pace,
}

impl Paced {
    /// Holds `discipline` back to `rate`. A rate of zero sends one packet and then
    /// none before the end of time.
    #[must_use]
    pub fn new(discipline: Box<dyn Discipline>, rate: Rate) -> Paced {
        Paced { discipline, rate, pace: Pace::default() }
    }

    /// Changes the rate from the next packet on; the packet that is being sent takes as
    /// long as before. The discipline learns about it when it is reconfigured.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }
}

impl Discipline for Paced {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        self.discipline.enqueue(now, packet, losses);
        self.pace.queue_changed(now, |at| self.discipline.next_ready(at));
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        let start = self.pace.start(now)?;
        let packet = self.discipline.dequeue(now, losses);
        let ready = |at| self.discipline.next_ready(at);
        match &packet {
            Some(packet) => drop(self.pace.send(start, self.rate.transmission(packet.size), ready)),
            None => self.pace.queue_changed(now, ready),
        }
        packet
    }

    /// The settings are those of the discipline that is held back.
    fn reconfigure(&mut self, now: Time, settings: &Settings, place: Place) {
        let place = place.at_rate(self.rate);
        self.discipline.reconfigure(now, settings, place);
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        self.pace.next_ready(now)
    }

    fn backlog(&self) -> Backlog {
        self.discipline.backlog()
    }

    fn flows_tracked(&self) -> usize {
        self.discipline.flows_tracked()
    }

    fn levels(&self) -> &[Level] {
        self.discipline.levels()
    }

    fn sorts_by_ecn(&self) -> bool {
        self.discipline.sorts_by_ecn()
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.discipline.rate().map_or(self.rate, |inner| inner.min(self.rate)))
    }
}
