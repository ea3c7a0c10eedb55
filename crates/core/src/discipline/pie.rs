//! PIE: drops arriving packets at random, just often enough that packets wait for a
//! target time.
//!
//! There is one FIFO queue, whose arrivals are under the law of `pie_law.rs`: dropped,
//! or marked, with a probability that rises while packets wait for longer than the
//! target (`RFC 8033`; Linux 7.3, `sch_pie`). A packet that finds the buffer full is
//! refused before the controller sees it; in Linux's form that counts as a loss, after
//! which others are safe for a while. The cost is O(1) per packet.
//!
//! Both forms leave out the estimate of the link's rate (`RFC 8033 section 5.2`; off by
//! default in Linux), for which the timestamps of packets stand, the switch by queue
//! length (5.3), which Linux does not have, and Linux's `bytemode`, off by default.

use std::collections::VecDeque;

use super::form::Form;
use super::pie_law::Controller;
use super::pie_tuning::Tuning;
use super::{Backlog, Discipline, LossReason, Losses};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::packet::Packet;
use crate::random::Stream;
use crate::setting::Settings;
use crate::units::Time;

/// The registry's entry for [`Pie`].
pub const ENTRY: Entry = Entry {
    name: "pie",
    summary: "proportional integral controller: random early drops that hold the delay at a target",
    source: "Linux 7.3, RFC 8033",
    linux: Some("pie"),
    drops: Drops::Early,
    parameters: &[
        Form::OR_RFC,
        Tuning::TARGET,
        Tuning::UPDATE,
        Tuning::BURST,
        Tuning::ALPHA,
        Tuning::BETA,
        Tuning::ECN,
        Tuning::ECN_THRESHOLD,
    ],
    fixed: &[Form::OR_RFC],
    build: |settings, Place { buffer, .. }, seed| {
        Box::new(Pie::new(Tuning::from_settings(settings), buffer, seed))
    },
};

/// A FIFO queue under a [`Tuning`].
#[derive(Debug)]
pub struct Pie {
    tuning: Tuning,
    buffer: Buffer,
    random: Stream,
    controller: Controller,
    queue: VecDeque<Packet>,
    backlog: Backlog,
    /// Bytes queued, exact where those of the backlog saturate.
    bytes: u128,
}

impl Pie {
    /// An empty queue that holds at most `buffer` and draws from `seed`.
    #[must_use]
    pub fn new(tuning: Tuning, buffer: Buffer, seed: u64) -> Pie {
        Pie {
            tuning,
            buffer,
            random: Stream::new(seed, ENTRY.name),
            controller: Controller::default(),
            queue: VecDeque::new(),
            backlog: Backlog::default(),
            bytes: 0,
        }
    }
}

impl Discipline for Pie {
    /// A full buffer comes first, as in `RFC 8033 Appendix B` and in Linux.
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        self.controller.advance(&self.tuning, now, self.bytes);
        if !self.buffer.has_room(self.backlog, packet.size) {
            self.controller.lost();
            return losses.push(packet, LossReason::Refused);
        }
        let random = &mut self.random;
        let admitted = self.controller.admit(&self.tuning, packet, self.bytes, random, losses);
        let Some(packet) = admitted else { return };
        self.backlog.add(packet.size);
        self.bytes += u128::from(packet.size.0);
        self.queue.push_back(packet);
    }

    fn dequeue(&mut self, now: Time, _losses: &mut Losses) -> Option<Packet> {
        self.controller.advance(&self.tuning, now, self.bytes);
        let packet = self.queue.pop_front()?;
        self.backlog.remove(packet.size);
        self.bytes -= u128::from(packet.size.0);
        self.controller.sent(&self.tuning, now, &packet, self.bytes);
        Some(packet)
    }

    fn reconfigure(&mut self, now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        self.controller.advance(&self.tuning, now, self.bytes);
        self.tuning = Tuning::from_settings(settings);
        self.buffer = buffer;
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::LossReason;
    use crate::discipline::trial::Trial;
    use crate::units::Span;

    fn pie(given: &[(&str, &str)], packets: u32) -> Trial<Pie> {
        let tuning = Tuning::from_settings(&ENTRY.settings(given).unwrap());
        Trial::new(Pie::new(tuning, Buffer::packets(packets), 1))
    }

    /// Two packets come each millisecond and one leaves, so that they wait for longer
    /// and longer.
    fn lost_of_a_flood(given: &[(&str, &str)], millis: u32) -> Vec<u64> {
        let mut trial = pie(given, 10_000);
        for _ in 0..millis {
            trial.arrive_all([('a', 1_000); 2]);
            trial.send();
            trial.now += Span::millis(1);
        }
        let lost = trial.lost();
        assert!(lost.iter().all(|(_, reason)| *reason == LossReason::Early));
        lost.into_iter().map(|(handle, _)| handle).collect()
    }

    #[test]
    fn a_burst_of_150_ms_passes_and_then_as_many_are_lost_as_come_too_many() {
        for form in ["linux", "rfc"] {
            let lost = lost_of_a_flood(&[("form", form)], 20_000);
            // Two come each millisecond, so packet 300 comes after 150 of them.
            assert!(lost[0] >= 300, "{form}: {lost:?}");
            let late = lost.iter().filter(|handle| **handle >= 30_000).count();
            // Half of the 10 000 that come in the last five seconds, within a tenth.
            assert!(late.abs_diff(5_000) < 500, "{form}: {late}");
        }
    }

    #[test]
    fn a_full_buffer_refuses() {
        let mut trial = pie(&[], 1);
        trial.arrive_all([('a', 1_000); 2]);
        assert_eq!(trial.lost(), [(1, LossReason::Refused)]);
        assert_eq!(trial.drain(), [0]);
    }
}
