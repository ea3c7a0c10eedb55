//! A link's times out of all calls: what was queued after each, and what was sent.

use tidegate_core::entry::Place;
use tidegate_core::setting::Settings;
use tidegate_core::{Backlog, Bytes, Discipline, Losses, Packet, Rate, Time};

use super::start;

pub(crate) struct Paced {
    discipline: Box<dyn Discipline>,
    rate: Rate,
    line: Line,
}

/// What is known of a link: everything that was done to it.
#[derive(Default)]
pub(crate) struct Line(Vec<Call>);

struct Call {
    now: Time,
    /// For how many nanoseconds the link sends what was taken then.
    sent: Option<u128>,
    /// Whether something was queued afterwards.
    waits: bool,
}

impl Line {
    pub(crate) fn call(&mut self, now: Time, sent: Option<u128>, waits: bool) {
        self.0.push(Call { now, sent, waits });
    }

    /// When the last bit of all that was sent has left, and when the next packet
    /// could have left: something has been queued since, and the link is free.
    pub(crate) fn times(&self) -> (Time, Option<Time>) {
        let (mut free, mut waits_since) = (Time::ZERO, None);
        for call in &self.0 {
            if let Some(nanos) = call.sent {
                let due = free.max(waits_since.expect("what is sent has waited"));
                let end = u128::from(start(due, call.now).0).saturating_add(nanos);
                free = Time(u64::try_from(end).unwrap_or(u64::MAX));
            }
            waits_since = call.waits.then_some(waits_since.unwrap_or(call.now));
        }
        (free, waits_since.map(|since| free.max(since)))
    }
}

/// For how many nanoseconds a link of this rate sends a packet.
pub(crate) fn nanos(size: Bytes, rate: Rate) -> u128 {
    match u128::from(rate.0) {
        0 => u128::MAX,
        rate => (u128::from(size.0) * 8_000_000_000).div_ceil(rate),
    }
}

impl Paced {
    pub(crate) fn new(discipline: Box<dyn Discipline>, rate: Rate) -> Paced {
        Paced { discipline, rate, line: Line::default() }
    }

    /// Changes the rate for what is sent from now on.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    fn call(&mut self, now: Time, sent: Option<Bytes>) {
        let waits = self.discipline.backlog().packets > 0;
        self.line.call(now, sent.map(|size| nanos(size, self.rate)), waits);
    }

    /// The times of its [`Line`].
    pub(crate) fn times(&self) -> (Time, Option<Time>) {
        self.line.times()
    }
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
        let place = place.at_rate(self.rate);
        self.discipline.reconfigure(now, settings, place);
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        self.times().1.map(|due| due.max(now))
    }

    fn backlog(&self) -> Backlog {
        self.discipline.backlog()
    }

    fn sorts_by_ecn(&self) -> bool {
        self.discipline.sorts_by_ecn()
    }

    fn flows_tracked(&self) -> usize {
        self.discipline.flows_tracked()
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.rate)
    }
}
