//! The twin of the way out to a link: all calls, and a link's times out of those.

use tidegate_core::egress::{Egress, Poll};
use tidegate_core::{Bytes, Discipline, Losses, Packet, Rate, Span, Time};

use crate::audit::key;
use crate::shapers::paced::Paced;

/// What can be done to an egress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A packet of one of 256 flows arrives.
    Offer {
        /// The flow.
        flow: u8,
        /// Its size.
        size: Bytes,
    },
    /// The link asks what to send.
    Poll,
    /// Time passes until a packet may leave, and so much longer; the link asks.
    PollWhenReady {
        /// By how much the link is late.
        late: Span,
    },
    /// Time passes.
    Wait(Span),
    /// The link's rate changes.
    SetRate(Rate),
}

/// Does the same to an egress and its twin, which serve by the same discipline. It
/// must not hold packets back itself.
///
/// # Panics
/// Where the two differ, or a call too early changes anything.
pub fn compare(disciplines: [Box<dyn Discipline>; 2], rate: Rate, operations: &[Operation]) {
    let [real, twin] = disciplines;
    let mut pair = Pair {
        real: Egress::new(real, rate),
        twin: Paced::new(twin, rate),
        now: Time::ZERO,
        arrivals: 0,
    };
    for operation in operations {
        pair.apply(*operation);
    }
    while pair.real.port().backlog().packets > 0 {
        pair.apply(Operation::PollWhenReady { late: Span::ZERO });
    }
}

struct Pair {
    real: Egress,
    twin: Paced,
    now: Time,
    arrivals: u64,
}

impl Pair {
    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Offer { flow, size } => {
                self.offer(Packet::new(self.arrivals, key(flow), size));
            }
            Operation::Poll => drop(self.poll()),
            Operation::PollWhenReady { late } => {
                let ready = self.twin.next_ready(self.now);
                self.now = ready.unwrap_or(self.now) + late;
                let polled = self.poll();
                assert_eq!(matches!(polled, Poll::Packet { .. }), ready.is_some(), "{polled:?}");
            }
            Operation::Wait(span) => self.now += span,
            Operation::SetRate(rate) => {
                self.real.set_rate(rate);
                self.twin.set_rate(rate);
            }
        }
        self.poll_in_vain();
        assert!(self.real.port().is_conserved());
        assert_eq!(self.real.port().backlog(), self.twin.backlog());
    }

    fn offer(&mut self, packet: Packet) {
        self.arrivals += 1;
        let mut losses = Losses::new();
        self.twin.enqueue(self.now, Packet { arrived: self.now, ..packet }, &mut losses);
        assert_eq!(self.real.offer(self.now, packet), losses.as_slice());
    }

    fn poll(&mut self) -> Poll {
        let mut losses = Losses::new();
        let expected = match self.twin.dequeue(self.now, &mut losses) {
            Some(packet) => Poll::Packet { packet, sent: self.twin.times().0 },
            None => self.twin.next_ready(self.now).map_or(Poll::Idle, Poll::ReadyAt),
        };
        assert_eq!(self.real.poll(self.now), expected, "at {}", self.now);
        assert_eq!(self.real.losses(), losses.as_slice());
        expected
    }

    /// Asks once more, and a nanosecond too early, while nothing may leave.
    fn poll_in_vain(&mut self) {
        let ready = self.twin.next_ready(self.now);
        let expected = ready.map_or(Poll::Idle, Poll::ReadyAt);
        let early = match ready {
            Some(at) if at == self.now => return,
            Some(at) => Time(at.0 - 1),
            None => self.now,
        };
        for at in [self.now, early, early] {
            assert_eq!(self.real.poll(at), expected, "in vain at {at}");
            assert_eq!(self.real.losses(), []);
        }
        self.now = early;
    }
}
