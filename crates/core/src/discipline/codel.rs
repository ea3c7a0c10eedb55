//! CoDel, controlled delay: drops at the head once packets wait for too long.
//!
//! There is one queue in order of arrival, with the law of `codel_law.rs` at its
//! head. What counts is not how long the queue is but how long its packets wait, so
//! one setting serves every rate (`RFC 8289 section 3`). A packet that finds the
//! buffer full is refused; CoDel itself needs no limit, but memory does.
//!
//! The cost is O(1) per packet on average: a call may drop many packets, but each
//! only once.

use std::collections::VecDeque;

use super::codel_law::{CodelLaw, CodelParameters};
use super::{Backlog, Discipline, LossReason, Losses};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::packet::Packet;
use crate::setting::Settings;
use crate::units::Time;

/// The registry's entry for [`Codel`].
pub const ENTRY: Entry = Entry {
    name: "codel",
    summary: "controlled delay: drops or marks at the head while packets wait too long",
    source: "RFC 8289",
    drops: Drops::Early,
    parameters: CodelParameters::ALL,
    fixed: &[],
    build: |settings, place, _| {
        Box::new(Codel::new(CodelParameters::in_place(settings, place), place.buffer))
    },
};

/// A queue in order of arrival with CoDel at its head.
#[derive(Debug)]
pub struct Codel {
    parameters: CodelParameters,
    buffer: Buffer,
    law: CodelLaw,
    queue: VecDeque<Packet>,
    backlog: Backlog,
    /// The bytes of the backlog, exact also beyond 64 bits.
    bytes: u128,
}

impl Codel {
    /// An empty queue that holds at most `buffer`.
    #[must_use]
    pub fn new(parameters: CodelParameters, buffer: Buffer) -> Codel {
        Codel {
            parameters,
            buffer,
            law: CodelLaw::default(),
            queue: VecDeque::new(),
            backlog: Backlog::default(),
            bytes: 0,
        }
    }
}

impl Discipline for Codel {
    fn enqueue(&mut self, _now: Time, packet: Packet, losses: &mut Losses) {
        if !self.buffer.has_room(self.backlog, packet.size) {
            return losses.push(packet, LossReason::Refused);
        }
        self.backlog.add(packet.size);
        self.bytes += u128::from(packet.size.0);
        self.queue.push_back(packet);
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        let Codel { parameters, law, queue, backlog, bytes, .. } = self;
        law.dequeue(parameters, now, losses, || {
            let packet = queue.pop_front()?;
            backlog.remove(packet.size);
            *bytes -= u128::from(packet.size.0);
            Some((packet, *bytes))
        })
    }

    fn reconfigure(&mut self, _now: Time, settings: &Settings, place: Place) {
        self.parameters = CodelParameters::in_place(settings, place);
        self.buffer = place.buffer;
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::trial::Trial;
    use crate::packet::Ecn;
    use crate::units::Span;

    fn codel(ecn: bool) -> Trial<Codel> {
        let parameters = CodelParameters { ecn, ..CodelParameters::default() };
        Trial::new(Codel::new(parameters, Buffer::packets(20)))
    }

    #[test]
    fn drops_at_the_head_once_packets_have_waited_for_too_long_for_an_interval() {
        let mut trial = codel(true);
        trial.arrive_all([('a', 1_500); 20]);
        trial.now += Span::millis(5);
        // The first packet that waited for `target` starts the clock.
        assert_eq!(trial.send(), Some(0));
        trial.now += Span(99_999_999);
        assert_eq!(trial.send(), Some(1));
        trial.now += Span(1);
        assert_eq!(trial.send(), Some(3));
        assert_eq!(trial.lost(), [(2, LossReason::Early)]);
    }

    #[test]
    fn a_capable_packet_is_marked_and_sent_instead_and_the_next_is_due_as_late() {
        for (ecn, marked, lost) in [(true, 3, 0), (false, 0, 3)] {
            let mut trial = codel(ecn);
            for _ in 0..20 {
                trial.arrive_as('a', 1_500, Ecn::Ect0);
            }
            // Late from 105 on; then 100 ms, then 70.7 ms.
            for (sent, ms) in (0..).zip([5, 105, 204, 205, 275, 276]) {
                trial.now = Time::ZERO + Span::millis(ms);
                assert_eq!(trial.send(), Some(sent + trial.losses().len() as u64));
            }
            assert_eq!((trial.marked(), trial.losses().len()), (marked, lost), "ecn {ecn}");
        }
    }

    #[test]
    fn a_packet_that_leaves_no_more_than_the_mtu_is_not_late_however_long_it_waited() {
        for (last, expected) in [(1_514, vec![1, 2, 3]), (1_515, vec![2, 3])] {
            let mut trial = codel(true);
            trial.arrive_all([('a', 1_500), ('a', last)]);
            trial.now += Span::seconds(1);
            // Leaves `last` bytes: the clock starts with one byte more than the mtu.
            assert_eq!(trial.send(), Some(0));
            trial.arrive_all([('a', 1_500), ('a', 1_500)]);
            trial.now += Span::seconds(1);
            // Packet 1 leaves 3000 and goes if it is late; 2 leaves 1500, 3 none.
            assert_eq!(trial.drain(), expected, "{last}");
        }
    }

    #[test]
    fn a_full_buffer_refuses_the_arriving_packet() {
        let mut trial = codel(true);
        trial.arrive_all([('a', 1_500); 21]);
        assert_eq!(trial.lost(), [(20, LossReason::Refused)]);
    }
}
