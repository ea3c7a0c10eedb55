//! A discipline under audit: what can be done to it, and the rules of
//! `tidegate_core::discipline` that every call is held to.

use std::collections::BTreeMap;

use tidegate_core::units::Amount;
use tidegate_core::{
    Backlog, Buffer, Bytes, Discipline, FlowKey, Loss, LossReason, Losses, Packet, Span, Time,
};

/// What can be done to a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A packet of one of 256 flows arrives.
    Arrive {
        /// The flow.
        flow: u8,
        /// Its size.
        size: Bytes,
    },
    /// The link asks for a packet.
    Send,
    /// Time passes.
    Wait(Span),
}

/// What a discipline did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It handed out a packet.
    Sent(Packet),
    /// It gave up a packet.
    Lost(Loss),
}

/// A discipline whose every answer is checked; a broken rule panics.
pub(crate) struct Audited {
    discipline: Box<dyn Discipline>,
    buffer: Buffer,
    now: Time,
    arrivals: u64,
    losses: Losses,
    /// What should be queued, by handle and therefore in order of arrival.
    queued: BTreeMap<u64, Packet>,
    /// Whether the backlog in bytes can be exact: it saturates at 2^64, and
    /// recovers when the queue empties.
    exact: bool,
}

impl Audited {
    /// Audits a discipline that holds at most `buffer`, from the start of time.
    pub(crate) fn new(discipline: Box<dyn Discipline>, buffer: Buffer) -> Audited {
        Audited {
            discipline,
            buffer,
            now: Time::ZERO,
            arrivals: 0,
            losses: Losses::new(),
            queued: BTreeMap::new(),
            exact: true,
        }
    }

    /// Does one thing to the discipline and says what came of it.
    pub(crate) fn apply(&mut self, operation: Operation) -> Vec<Event> {
        let events = match operation {
            Operation::Arrive { flow, size } => self.arrive(flow, size),
            Operation::Send => self.send(),
            Operation::Wait(span) => {
                self.now += span;
                Vec::new()
            }
        };
        self.check_backlog();
        events
    }

    /// Sends until nothing is left.
    pub(crate) fn drain(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while !self.queued.is_empty() {
            events.append(&mut self.apply(Operation::Send));
        }
        events
    }

    /// The discipline itself.
    pub(crate) fn discipline(&self) -> &dyn Discipline {
        &*self.discipline
    }

    fn arrive(&mut self, flow: u8, size: Bytes) -> Vec<Event> {
        let packet = Packet { arrived: self.now, ..Packet::new(self.arrivals, key(flow), size) };
        self.arrivals += 1;
        self.queued.insert(packet.handle, packet);
        self.exact &= self.queued_bytes() <= u128::from(u64::MAX);
        self.discipline.enqueue(self.now, packet, &mut self.losses);
        let losses: Vec<Loss> = self.losses.drain().collect();
        for loss in &losses {
            self.take(&loss.packet);
            let own = loss.packet.handle == packet.handle;
            let reason = if own { LossReason::Refused } else { LossReason::PushedOut };
            assert_eq!(loss.reason, reason, "{:?} as {packet:?} arrived", loss.packet);
        }
        losses.into_iter().map(Event::Lost).collect()
    }

    fn send(&mut self) -> Vec<Event> {
        let ready = self.discipline.next_ready(self.now).is_some_and(|at| at <= self.now);
        let sent = self.discipline.dequeue(self.now, &mut self.losses);
        assert_eq!(sent.is_some(), ready, "next_ready and dequeue disagree at {}", self.now);
        let losses: Vec<Loss> = self.losses.drain().collect();
        for loss in &losses {
            self.take(&loss.packet);
        }
        if let Some(packet) = sent {
            let oldest = self.queued.values().find(|queued| queued.flow == packet.flow);
            assert_eq!(oldest, Some(&packet), "a packet overtook another of its flow");
            self.take(&packet);
        }
        losses.into_iter().map(Event::Lost).chain(sent.map(Event::Sent)).collect()
    }

    /// A packet comes back: once, and as it was.
    fn take(&mut self, packet: &Packet) {
        let queued = self.queued.remove(&packet.handle);
        assert_eq!(queued.as_ref(), Some(packet), "not queued, or changed in the queue");
    }

    fn queued_bytes(&self) -> u128 {
        self.queued.values().map(|packet| u128::from(packet.size.0)).sum()
    }

    fn check_backlog(&mut self) {
        let Backlog { packets, bytes } = self.discipline.backlog();
        let queued = self.queued_bytes();
        self.exact |= self.queued.is_empty();
        assert_eq!(packets as usize, self.queued.len(), "packets of the backlog");
        if self.exact {
            assert_eq!(u128::from(bytes.0), queued, "bytes of the backlog");
        }
        match self.buffer.amount() {
            Amount::Packets(limit) => assert!(packets <= limit, "{packets} packets queued"),
            Amount::Bytes(limit) => assert!(queued <= u128::from(limit.0), "{queued} B queued"),
        }
        let levels = self.discipline.levels();
        if !levels.is_empty() {
            let sum: u32 = levels.iter().map(|level| level.backlog.packets).sum();
            assert_eq!(sum, packets, "packets of all levels");
            if self.exact {
                let sum: Bytes = levels.iter().map(|level| level.backlog.bytes).sum();
                assert_eq!(sum, bytes, "bytes of all levels");
            }
        }
    }
}

/// The 5-tuple of a flow.
pub(crate) fn key(flow: u8) -> FlowKey {
    FlowKey::v4([192, 0, 2, flow], 443, [198, 51, 100, 1], 50_000, FlowKey::TCP)
}
