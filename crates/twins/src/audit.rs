//! A discipline under audit: the operations on it, and the rules of
//! [`tidegate_core::discipline`] to which every call is held.
//!
//! A [shaper](tidegate_core::shaper) is a discipline too. When one holds packets
//! back, the audit lets time pass until the next may leave, tries a nanosecond too
//! early, and checks that no more leaves in any interval than its rate carries, and
//! what late calls are owed.

use std::collections::BTreeMap;

use tidegate_core::entry::Place;
use tidegate_core::setting::Settings;
use tidegate_core::shaper::CREDIT;
use tidegate_core::units::{Amount, NANOS_PER_SECOND};
use tidegate_core::{
    Backlog, Buffer, Bytes, Discipline, Dscp, Ecn, FlowKey, Loss, LossReason, Losses, Packet, Rate,
    Span, TcpFacts, Time,
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
    /// Time passes until a packet may leave, and the link asks for it.
    SendWhenReady,
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
    /// What may leave at once beyond what the rate and late calls allow.
    burst: Bytes,
    /// What has left and the rate has not carried yet, in bits times nanoseconds a
    /// second, as of the time of the last packet.
    ahead: (i128, Time),
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
            burst: Bytes::ZERO,
            ahead: (0, Time::ZERO),
        }
    }

    /// Allows a shaper to be this far ahead of its rate as a packet starts.
    #[must_use]
    pub fn with_burst(self, burst: Bytes) -> Audited {
        Audited { burst, ..self }
    }

    /// Performs one operation on the discipline and returns its results.
    pub fn apply(&mut self, operation: Operation) -> Vec<Event> {
        let before = (self.queued.len(), self.queued_bytes());
        let events = match operation {
            Operation::Arrive { flow, size } => self.arrive(flow, size),
            Operation::Send => self.send(),
            Operation::SendWhenReady => self.send_when_ready(),
            Operation::Wait(span) => {
                self.now += span;
                Vec::new()
            }
        };
        self.check_backlog(before);
        self.check_ready();
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
        let rate = self.discipline.rate();
        self.discipline.reconfigure(self.now, settings, place);
        assert_eq!(state(self), before, "what is queued, before and after other settings");
        self.rate_changed(rate);
        self.buffer = place.buffer;
    }

    /// Sends until nothing is left, as soon as each packet may leave.
    pub fn drain(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while !self.queued.is_empty() {
            events.append(&mut self.apply(Operation::SendWhenReady));
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
            // Dropped at the head, or overtaken by a packet of the same flow.
            let right = matches!(loss.reason, LossReason::Early | LossReason::Excess);
            assert!(right, "{:?} {} as another leaves", loss.packet, loss.reason);
        }
        if let Some(packet) = sent {
            let kind = |queued: &Packet| {
                let sorts = self.discipline.sorts_by_ecn();
                (queued.flow, sorts && queued.ecn.is_low_latency())
            };
            // What it came as: it may leave with a mark.
            let own = self.queued.get(&packet.handle).map(kind);
            let oldest = self.queued.values().find(|queued| Some(kind(queued)) == own);
            let oldest = oldest.map(|oldest| oldest.handle);
            assert_eq!(oldest, Some(packet.handle), "a packet overtook another of its flow");
            self.take(&packet);
            self.check_rate(packet.size);
        }
        losses.into_iter().map(Event::Lost).chain(sent.map(Event::Sent)).collect()
    }

    fn send_when_ready(&mut self) -> Vec<Event> {
        if let Some(at) = self.discipline.next_ready(self.now)
            && at > self.now
        {
            self.now = Time(at.0 - 1);
            assert_eq!(self.send(), [], "nothing leaves before {at}");
            self.now = at;
        }
        self.send()
    }

    /// No packet starts while more has left than the rate has carried, but for the
    /// burst and the credit of a late call. What was ahead at the start of a packet
    /// bounds what leaves in any time that ends there.
    fn check_rate(&mut self, size: Bytes) {
        let Some(rate) = self.discipline.rate() else { return };
        // At the end of time everything may leave.
        if self.now == Time::FAR_FUTURE {
            return;
        }
        let carried = |span: Span| i128::from(rate.0).saturating_mul(i128::from(span.0));
        let price = |size: Bytes| i128::from(size.0) * 8 * i128::from(NANOS_PER_SECOND);
        let (ahead, since) = self.ahead;
        let ahead = (ahead - carried(self.now.since(since))).max(0);
        let most = carried(CREDIT).saturating_add(price(self.burst));
        assert!(ahead <= most, "a packet leaves at {} while {ahead} > {most} ahead", self.now);
        self.ahead = (ahead.saturating_add(price(size)), self.now);
    }

    /// What has left at the rate of `before` takes as long as it would have taken: the
    /// new rate holds for what leaves from now on.
    fn rate_changed(&mut self, before: Option<Rate>) {
        let (ahead, since) = self.ahead;
        let left = before.map_or(0, |rate| {
            let carried = i128::from(rate.0).saturating_mul(i128::from(self.now.since(since).0));
            (ahead - carried).max(0) / i128::from(rate.0)
        });
        let rate = self.discipline.rate().map_or(0, |rate| i128::from(rate.0));
        self.ahead = (left * rate, self.now);
    }

    /// What is queued may leave at some time, which does not depend on when it is
    /// asked for.
    fn check_ready(&self) {
        let ready = self.discipline.next_ready(self.now);
        assert_eq!(ready.is_some(), !self.queued.is_empty(), "when the next may leave");
        let Some(ready) = ready else { return };
        assert!(ready >= self.now, "{ready} is before {}", self.now);
        let between = Time(self.now.0 + (ready.0 - self.now.0) / 2);
        for later in [between, ready, Time(ready.0.saturating_add(1)), Time::FAR_FUTURE] {
            let expected = Some(ready.max(later));
            assert_eq!(self.discipline.next_ready(later), expected, "asked at {later}");
        }
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
    /// 3 are TCP, flow 3 without payload. Flow 1 belongs to class 1, flow 4 changes
    /// between 0 and 1, and flows from 8 on have classes of their own. A flow keeps its
    /// codepoint, for packets with others may overtake it.
    fn packet(&self, flow: u8, size: Bytes) -> Packet {
        let ecn = match self.arrivals % 32 {
            30 => Ecn::Ce,
            number => [Ecn::Ect0, Ecn::NotEct, Ecn::Ect1, Ecn::NotEct][number as usize % 4],
        };
        let dscp = CODEPOINTS[usize::from(flow) % CODEPOINTS.len()];
        let payload = if flow == 3 { 0 } else { 1_000 };
        let tcp = [2, 3].contains(&flow).then(|| self.segment(payload, size));
        let class = match flow {
            4 => u16::from(self.arrivals % 16 < 8),
            1 => 1,
            0..8 => 0,
            8.. => u16::from(flow) - 6,
        };
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

/// The codepoints of flows: best effort, as most are, EF, LE, none, AF41, CS1, CS6, AF21.
const CODEPOINTS: [Dscp; 8] = [
    Dscp::DEFAULT,
    Dscp::EF,
    Dscp::LE,
    Dscp::DEFAULT,
    Dscp::of_octet(34 << 2),
    Dscp::of_octet(8 << 2),
    Dscp::of_octet(48 << 2),
    Dscp::of_octet(18 << 2),
];

/// Does the same to a discipline and its twin. `before` is called with the number of
/// each operation, and may do to `real` what is to change nothing.
///
/// # Panics
/// Where the two differ, or break a rule of the audit.
pub fn compare(
    name: &str,
    mut real: Audited,
    mut twin: Audited,
    operations: &[Operation],
    mut before: impl FnMut(usize, &mut Audited),
) {
    for (step, operation) in operations.iter().enumerate() {
        before(step, &mut real);
        let events = real.apply(*operation);
        assert_eq!(events, twin.apply(*operation), "{name}, step {step}: {operation:?}");
        let ready = [&real, &twin].map(|side| side.discipline.next_ready(side.now));
        assert_eq!(ready[0], ready[1], "{name}, when the next may leave after step {step}");
        // The real one sweeps its table when a packet comes or goes.
        if !events.is_empty() || matches!(operation, Operation::Arrive { .. }) {
            let flows = [&real, &twin].map(|side| side.discipline.flows_tracked());
            assert_eq!(flows[0], flows[1], "{name}, flows at step {step}");
        }
    }
    assert_eq!(real.drain(), twin.drain(), "{name}, what is left");
    let flows = [&real, &twin].map(|side| side.discipline.flows_tracked());
    assert_eq!(flows[0], flows[1], "{name}, flows of the empty queue");
}

/// The 5-tuple of a flow. Two have the same source, and every other one the same destination.
#[must_use]
pub fn key(flow: u8) -> FlowKey {
    let port = 50_000 + u16::from(flow);
    FlowKey::v4([192, 0, 2, flow / 2], 443, [198, 51, 100, flow % 2], port, FlowKey::TCP)
}
