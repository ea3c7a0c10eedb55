//! A discipline under audit: the operations on it, and the rules of
//! [`tidegate_core::discipline`] to which every call is held.

use std::collections::BTreeMap;

use tidegate_core::entry::Place;
use tidegate_core::setting::Settings;
use tidegate_core::units::Amount;
use tidegate_core::{
    Backlog, Buffer, Bytes, Discipline, Dscp, Ecn, FlowKey, Loss, LossReason, Losses, Packet, Span,
    TcpFacts, Time,
};

/// An operation on a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
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
pub enum Event {
    /// It handed out a packet.
    Sent(Packet),
    /// It gave up a packet.
    Lost(Loss),
}

/// A discipline whose every answer is checked; breaking a rule panics.
pub struct Audited {
    discipline: Box<dyn Discipline>,
    buffer: Buffer,
    now: Time,
    arrivals: u64,
    losses: Losses,
    /// What should be queued, by handle and so in order of arrival.
    queued: BTreeMap<u64, Packet>,
    /// Whether the backlog in bytes can be exact: it saturates at 2^64, and
    /// recovers when the queue empties.
    exact: bool,
}

impl Audited {
    /// Audits a discipline that holds at most `buffer`, from the start of time.
    #[must_use]
    pub fn new(discipline: Box<dyn Discipline>, buffer: Buffer) -> Audited {
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

    /// Performs one operation on the discipline and returns its results.
    pub fn apply(&mut self, operation: Operation) -> Vec<Event> {
        let before = (self.queued.len(), self.queued_bytes());
        let events = match operation {
            Operation::Arrive { flow, size } => self.arrive(flow, size),
            Operation::Send => self.send(),
            Operation::Wait(span) => {
                self.now += span;
                Vec::new()
            }
        };
        self.check_backlog(before);
        events
    }

    /// Sets the discipline otherwise, which must leave all that is queued where it is.
    pub fn reconfigure(&mut self, settings: &Settings, place: Place) {
        let state = |audited: &Audited| {
            let discipline = audited.discipline();
            let ready = discipline.next_ready(audited.now);
            (discipline.backlog(), discipline.levels().to_vec(), ready)
        };
        let before = state(self);
        self.discipline.reconfigure(self.now, settings, place);
        assert_eq!(state(self), before, "what is queued, before and after other settings");
        self.buffer = place.buffer;
    }

    /// Sends until nothing is left.
    pub fn drain(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while !self.queued.is_empty() {
            events.append(&mut self.apply(Operation::Send));
        }
        events
    }

    /// The discipline itself.
    #[must_use]
    pub fn discipline(&self) -> &dyn Discipline {
        &*self.discipline
    }

    fn arrive(&mut self, flow: u8, size: Bytes) -> Vec<Event> {
        let packet = self.packet(flow, size);
        self.arrivals += 1;
        self.queued.insert(packet.handle, packet);
        self.exact &= self.queued_bytes() <= u128::from(u64::MAX);
        self.discipline.enqueue(self.now, packet, &mut self.losses);
        let losses: Vec<Loss> = self.losses.drain().collect();
        for loss in &losses {
            self.take(&loss.packet);
            let own = loss.packet.handle == packet.handle;
            let right = match loss.reason {
                LossReason::Refused => own,
                LossReason::PushedOut => !own,
                LossReason::Early | LossReason::Superseded | LossReason::Excess => true,
            };
            assert!(right, "{:?} {} as {packet:?} arrived", loss.packet, loss.reason);
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
            assert_eq!(loss.reason, LossReason::Early, "{:?} at the head", loss.packet);
        }
        if let Some(packet) = sent {
            let oldest = self.queued.values().find(|queued| queued.flow == packet.flow);
            let oldest = oldest.map(|oldest| oldest.handle);
            assert_eq!(oldest, Some(packet.handle), "a packet overtook another of its flow");
            self.take(&packet);
        }
        losses.into_iter().map(Event::Lost).chain(sent.map(Event::Sent)).collect()
    }

    /// A packet comes back exactly once, unchanged except for a mark.
    fn take(&mut self, packet: &Packet) {
        let queued = self.queued.remove(&packet.handle);
        let marked = queued.filter(|queued| queued.ecn.is_markable());
        let marked = marked.map(|queued| Packet { ecn: Ecn::Ce, ..queued });
        let as_it_was = [queued, marked].contains(&Some(*packet));
        assert!(as_it_was, "not queued, or changed in the queue: {packet:?}, was {queued:?}");
    }

    /// The senders of two packets in four understand marks, by ECT(0) or ECT(1),
    /// and a few packets arrive with a mark, so every codepoint occurs. Flows 2 and
    /// 3 are TCP, flow 3 without payload. Flow 1 belongs to another class than the
    /// rest, and flow 4 changes its class.
    fn packet(&self, flow: u8, size: Bytes) -> Packet {
        let ecn = match self.arrivals % 32 {
            30 => Ecn::Ce,
            number => [Ecn::Ect0, Ecn::NotEct, Ecn::Ect1, Ecn::NotEct][number as usize % 4],
        };
        let dscp = Dscp::of_octet((self.arrivals << 2) as u8);
        let payload = if flow == 3 { 0 } else { 1_000 };
        let tcp = [2, 3].contains(&flow).then(|| self.segment(payload, size));
        let class = u16::from(flow == 1 || flow == 4 && self.arrivals % 16 < 8);
        let plain = Packet::new(self.arrivals, key(flow), size);
        Packet { arrived: self.now, class, dscp, ecn, tcp, ..plain }
    }

    /// A TCP segment. Its number rises as packets arrive and soon wraps around, but
    /// some segments repeat the last number, and depending on their size some come
    /// late and some acknowledge nothing. Occasionally one is a SYN.
    fn segment(&self, payload: u32, size: Bytes) -> TcpFacts {
        const FIRST: u32 = u32::MAX - 10_000;
        let number = FIRST.wrapping_add((self.arrivals / 2) as u32 * 1_000);
        let acknowledgement = match size.0 % 7 {
            0 => None,
            1 => Some(number.wrapping_sub(5_000)),
            _ => Some(number),
        };
        let syn = self.arrivals % 32 == 31;
        let plain = !syn && acknowledgement.is_some();
        TcpFacts { sequence: 0, acknowledgement, payload, syn, fin: false, plain }
    }

    fn queued_bytes(&self) -> u128 {
        self.queued.values().map(|packet| u128::from(packet.size.0)).sum()
    }

    /// The backlog is what is queued and within the buffer, or no more than it was
    /// `before`, in packets and bytes, for a buffer that has become smaller.
    fn check_backlog(&mut self, before: (usize, u128)) {
        let Backlog { packets, bytes } = self.discipline.backlog();
        let queued = self.queued_bytes();
        self.exact |= self.queued.is_empty();
        assert_eq!(packets as usize, self.queued.len(), "packets of the backlog");
        if self.exact {
            assert_eq!(u128::from(bytes.0), queued, "bytes of the backlog");
        }
        match self.buffer.amount() {
            Amount::Packets(limit) => {
                let most = (limit as usize).max(before.0);
                assert!(packets as usize <= most, "{packets} packets queued");
            }
            Amount::Bytes(limit) => {
                assert!(queued <= u128::from(limit.0).max(before.1), "{queued} B queued");
            }
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
#[must_use]
pub fn key(flow: u8) -> FlowKey {
    FlowKey::v4([192, 0, 2, flow], 443, [198, 51, 100, 1], 50_000, FlowKey::TCP)
}
