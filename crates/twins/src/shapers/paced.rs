//! A link's times out of all calls: what was queued after each, and what was sent.

use tidegate_core::entry::Place;
use tidegate_core::setting::Settings;
use tidegate_core::{Backlog, Bytes, Discipline, Losses, Packet, Rate, Time};

use super::start;

pub(crate) struct Paced {
    discipline: Box<dyn Discipline>,
    rate: Rate,
    calls: Vec<Call>,
}

struct Call {
    now: Time,
    /// What was sent, and the rate then.
    sent: Option<(Bytes, Rate)>,
    /// Whether something was queued afterwards.
    waits: bool,
}

impl Paced {
    pub(crate) fn new(discipline: Box<dyn Discipline>, rate: Rate) -> Paced {
        Paced { discipline, rate, calls: Vec::new() }
    }

    /// Changes the rate for what is sent from now on.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    fn call(&mut self, now: Time, sent: Option<Bytes>) {
        let sent = sent.map(|size| (size, self.rate));
        let waits = self.discipline.backlog().packets > 0;
        self.calls.push(Call { now, sent, waits });
    }

    /// When the last bit of all that was sent has left, and when the next packet
    /// could have left: something has been queued since, and the link is free.
    pub(crate) fn times(&self) -> (Time, Option<Time>) {
        let (mut free, mut waits_since) = (Time::ZERO, None);
        for call in &self.calls {
            if let Some((size, rate)) = call.sent {
                let due = free.max(waits_since.expect("what is sent has waited"));
                free = end(start(due, call.now), size, rate);
            }
            waits_since = call.waits.then_some(waits_since.unwrap_or(call.now));
        }
        (free, waits_since.map(|since| free.max(since)))
    }
}

/// When the last bit has left of a packet whose first leaves at `start`.
fn end(start: Time, size: Bytes, rate: Rate) -> Time {
    let bit_nanos = u128::from(size.0) * 8_000_000_000;
    let nanos = match u128::from(rate.0) {
        0 => u128::MAX,
        rate => bit_nanos.div_ceil(rate),
    };
    let end = u128::from(start.0).saturating_add(nanos);
    Time(u64::try_from(end).unwrap_or(u64::MAX))
}

impl Discipline for Paced {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        self.discipline.enqueue(now, packet, losses);
        self.call(now, None);
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        self.times().1.filter(|due| *due <= now)?;
        let packet = self.discipline.dequeue(now, losses)?;
        self.call(now, Some(packet.size));
        Some(packet)
    }

    fn reconfigure(&mut self, now: Time, settings: &Settings, place: Place) {
        let place = Place { rate: Some(self.rate), ..place };
        self.discipline.reconfigure(now, settings, place);
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        self.times().1.map(|due| due.max(now))
    }

    fn backlog(&self) -> Backlog {
        self.discipline.backlog()
    }

    fn flows_tracked(&self) -> usize {
        self.discipline.flows_tracked()
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.rate)
    }
}
