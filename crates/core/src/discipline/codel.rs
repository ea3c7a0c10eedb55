//! CoDel, controlled delay: drops at the head once packets wait for too long.
//!
//! There is one queue in order of arrival, with the law of `codel_law.rs` at its
//! head. What counts is not how long the queue is but how long its packets wait, so
//! one setting serves every rate (`RFC 8289 section 3`). A packet that finds the
//! buffer full is refused; CoDel itself needs no limit, but memory does. Linux 7.3
//! (`sch_codel`) and the RFC differ in the law only.
//!
//! The cost is O(1) per packet on average: a call may drop many packets, but each
//! only once.

use std::collections::VecDeque;

use super::codel_law::{CodelLaw, CodelParameters};
use super::form::Form;
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
    source: "Linux 7.3, RFC 8289",
    linux: Some("codel"),
    drops: Drops::Early,
    parameters: &[
        Form::OR_RFC,
        CodelParameters::TARGET,
        CodelParameters::INTERVAL,
        CodelParameters::MTU,
        CodelParameters::ECN,
        CodelParameters::CE_THRESHOLD,
    ],
    fixed: &[Form::OR_RFC],
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
    use crate::units::{Rate, Span};

    fn codel(form: &str, ecn: &str) -> Trial<Codel> {
        let settings = ENTRY.settings(&[("form", form), ("ecn", ecn), ("mtu", "1514 B")]).unwrap();
        let parameters = CodelParameters::from_settings(&settings);
        Trial::new(Codel::new(parameters, Buffer::packets(20)))
    }

    #[test]
    fn drops_at_the_head_once_packets_have_waited_for_too_long_for_an_interval() {
        // In Linux the interval must have passed.
        for (form, last) in [("rfc", 0), ("linux", 1)] {
            let mut trial = codel(form, "on");
            trial.arrive_all([('a', 1_500); 20]);
            trial.now += Span::millis(5);
            // The first packet that waited for `target` starts the clock.
            assert_eq!(trial.send(), Some(0));
            trial.now += Span(99_999_999 + last);
            assert_eq!(trial.send(), Some(1));
            trial.now += Span(1);
            assert_eq!(trial.send(), Some(3));
            assert_eq!(trial.lost(), [(2, LossReason::Early)]);
        }
    }

    #[test]
    fn a_capable_packet_is_marked_and_sent_instead_and_the_next_is_due_as_late() {
        for (ecn, marked, lost) in [("on", 3, 0), ("off", 0, 3)] {
            let mut trial = codel("rfc", ecn);
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
            for form in ["linux", "rfc"] {
                let mut trial = codel(form, "on");
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
    }

    #[test]
    fn beyond_the_threshold_every_packet_is_marked_whose_sender_understands_that() {
        let settings = ENTRY.settings(&[("ce_threshold", "1 ms")]).unwrap();
        let parameters = CodelParameters::from_settings(&settings);
        let mut trial = Trial::new(Codel::new(parameters, Buffer::packets(20)));
        for ecn in [Ecn::Ect1, Ecn::Ect1, Ecn::NotEct, Ecn::Ce] {
            trial.arrive_as('a', 1_500, ecn);
        }
        trial.now += Span::millis(1);
        assert_eq!((trial.send(), trial.marked()), (Some(0), 0));
        trial.now += Span(1);
        assert_eq!(trial.drain(), [1, 2, 3]);
        assert_eq!((trial.marked(), trial.lost().len()), (1, 0));
    }

    #[test]
    fn a_slow_link_raises_the_target_in_the_rfc_but_not_in_linux() {
        let place = Place::from(Buffer::packets(20)).at_rate(Rate(1_000_000));
        for (form, millis) in [("rfc", 18), ("linux", 5)] {
            let settings = ENTRY.settings(&[("form", form)]).unwrap();
            let target = CodelParameters::in_place(&settings, place).target;
            // One and a half packets of 1 500 bytes take 18 ms at 1 Mbit/s.
            assert_eq!(target, Span::millis(millis));
        }
    }

    #[test]
    fn a_full_buffer_refuses_the_arriving_packet() {
        let mut trial = codel("linux", "on");
        trial.arrive_all([('a', 1_500); 21]);
        assert_eq!(trial.lost(), [(20, LossReason::Refused)]);
    }
}
