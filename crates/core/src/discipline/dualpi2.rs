//! DualPI2: one queue for senders that heed marks at once, one for all others, and one
//! controller that gives both the same rate.
//!
//! A scalable sender lowers its rate a little for each mark and can live with a queue
//! of a millisecond; a classic one halves it for each loss and needs a queue to keep
//! the link busy meanwhile. So each kind has a queue of its own, told apart by the ECN
//! field: ECT(1) and CE go into the low-latency queue, all else into the classic one
//! (`RFC 9331 section 5.1`). What keeps them from starving each other is coupling
//! (`RFC 9332 section 2.1`):
//!
//! - A proportional integral controller sets a probability `p` every `update`, from the
//!   longer of the delays of the two heads.
//! - A classic packet is hit with `p` squared, by two draws: it is dropped, or marked if
//!   its sender understands that. A classic rate falls with the root of its losses.
//! - A low-latency packet is marked with `coupling` times `p`, for a scalable rate falls
//!   with its marks themselves. It is marked too when it has waited for more than `step`.
//!
//! The low-latency queue goes first, by weighted round robin: `classic_protection`
//! percent of the bytes remain for the classic queue while both have packets, so that
//! those who claim to be scalable and are not cannot starve it.
//!
//! When `coupling` times `p` passes one, marks have nothing left to say. With
//! `overload = drop` packets of both queues are then dropped with `p` squared, whatever
//! their ECN field says; with `overflow` `p` is held there, nothing is lost but by the
//! classic probability, and the buffer fills (`RFC 9332 section 4.1`).
//!
//! This is Linux's `sch_dualpi2` (6.17 and later) at its defaults. The pseudocode of `RFC 9332
//! Appendix A` differs in this: its step is a ramp from 0.8 to 1.2 ms, its controller
//! looks at the classic queue alone, it adds up probabilities instead of drawing
//! numbers, and leaves the scheduler open. Linux's options for drops at arrival, a step
//! in packets, a least length for the step and ECT(0) in the low-latency queue are left
//! out. Like there, nobody is hit while less than two of the largest packets stay behind.
//!
//! The controller has no timer: updates that were due are made up for at the next call,
//! each as of its time, as in `pie_law.rs`. The cost is O(1) per packet.

use std::collections::VecDeque;

use super::{Backlog, Discipline, Level, LossReason, Losses, pie_tuning};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::packet::{Ecn, Packet};
use crate::random::Stream;
use crate::setting::{Kind, Parameter, Settings};
use crate::units::{Span, Time};

/// The registry's entry for [`DualPi2`].
pub const ENTRY: Entry = Entry {
    name: "dualpi2",
    summary: "L4S: a queue of a millisecond for senders that heed marks, coupled to one for others",
    source: "RFC 9332, Linux",
    linux: Some("dualpi2"),
    drops: Drops::Early,
    parameters: &[
        pie_tuning::Tuning::TARGET,
        UPDATE,
        ALPHA,
        BETA,
        COUPLING,
        STEP,
        CLASSIC_PROTECTION,
        OVERLOAD,
    ],
    fixed: &[],
    build: |settings, Place { buffer, .. }, seed| {
        Box::new(DualPi2::new(Tuning::from_settings(settings), buffer, seed))
    },
};

const UPDATE: Parameter = Parameter { default: "16 ms", ..pie_tuning::Tuning::UPDATE };

/// `0.1 update / RTT_max^2` for round trips of up to 100 ms (`RFC 9332 Appendix A.1`).
const ALPHA: Parameter = Parameter { default: "0.16", ..pie_tuning::Tuning::ALPHA };

/// `0.3 / RTT_max`, rounded up as in Linux.
const BETA: Parameter = Parameter { default: "3.2", ..pie_tuning::Tuning::BETA };

const COUPLING: Parameter = Parameter {
    name: "coupling",
    help: "how many times the probability low-latency packets are marked with: two give both \
           kinds of senders the same rate",
    kind: Kind::Count { least: 1, most: 255 },
    default: "2",
};

const STEP: Parameter = Parameter {
    name: "step",
    help: "wait beyond which every low-latency packet is marked",
    kind: Kind::Span { least: Span::ZERO, most: Span::seconds(10) },
    default: "1 ms",
};

const CLASSIC_PROTECTION: Parameter = Parameter {
    name: "classic_protection",
    help: "the share of the bytes, in per cent, that the classic queue is sure of",
    kind: Kind::Count { least: 0, most: 100 },
    default: "10",
};

const OVERLOAD: Parameter = Parameter {
    name: "overload",
    help: "what happens where marks have nothing left to say: drop keeps delays short, overflow \
           spares low-latency packets until the buffer is full",
    kind: Kind::Choice(&["drop", "overflow"]),
    default: "drop",
};

/// `psched_mtu` of an Ethernet, without the header of the link as sizes are here.
const LARGEST_PACKET_BYTES: u128 = 1_500;

/// The most updates made up for, however long ago the last one was: at the defaults
/// any probability has reached one of its ends by then.
const MOST_UPDATES: u64 = 4_000;

/// What can be set on DualPI2; the defaults are those of Linux.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tuning {
    target: Span,
    update: Span,
    alpha: f64,
    beta: f64,
    coupling: f64,
    step: Span,
    /// In per cent.
    classic_protection: i128,
    drops_on_overload: bool,
}

impl Tuning {
    fn from_settings(settings: &Settings) -> Tuning {
        Tuning {
            target: settings.span(pie_tuning::Tuning::TARGET.name),
            update: settings.span(UPDATE.name),
            alpha: settings.number(ALPHA.name),
            beta: settings.number(BETA.name),
            coupling: f64::from(settings.count(COUPLING.name)),
            step: settings.span(STEP.name),
            classic_protection: i128::from(settings.count(CLASSIC_PROTECTION.name)),
            drops_on_overload: settings.choice(OVERLOAD.name) == "drop",
        }
    }

    /// The credit of an empty queue: below zero while the low-latency queue has the
    /// larger weight, and so is first.
    fn initial_credit(&self) -> i128 {
        (2 * self.classic_protection - 100) * LARGEST_PACKET_BYTES.cast_signed()
    }
}

/// The low-latency queue, in all that is kept for each of the two.
const LOW_LATENCY: usize = 0;
/// The classic queue.
const CLASSIC: usize = 1;

/// Two queues under one controller.
#[derive(Debug)]
pub struct DualPi2 {
    tuning: Tuning,
    buffer: Buffer,
    random: Stream,
    queues: [VecDeque<Packet>; 2],
    levels: [Level; 2],
    backlog: Backlog,
    /// Bytes queued, exact where those of the backlog saturate.
    bytes: u128,
    /// Whose turn it is when both have packets: of the low-latency queue unless it is
    /// above zero.
    credit: i128,
    /// `p`
    probability: f64,
    /// The delay at the last update.
    delay_before: Span,
    /// When the last update was due, on a beat from the start of time on.
    updated: Time,
}

impl DualPi2 {
    fn new(tuning: Tuning, buffer: Buffer, seed: u64) -> DualPi2 {
        DualPi2 {
            tuning,
            buffer,
            random: Stream::new(seed, ENTRY.name),
            queues: [const { VecDeque::new() }; 2],
            levels: [Level::new("low latency"), Level::new("classic")],
            backlog: Backlog::default(),
            bytes: 0,
            credit: tuning.initial_credit(),
            probability: 0.0,
            delay_before: Span::ZERO,
            updated: Time::ZERO,
        }
    }

    /// Makes up for the updates that were due until `now`. Between two calls the heads
    /// stay, so each update sees them as old as they were then.
    fn advance(&mut self, now: Time) {
        let due = now.since(self.updated).0 / self.tuning.update.0;
        if due == 0 {
            return;
        }
        let skipped = due.saturating_sub(MOST_UPDATES);
        self.updated += self.tuning.update * skipped;
        let heads = [LOW_LATENCY, CLASSIC].map(|queue| Some(self.queues[queue].front()?.arrived));
        let oldest = heads.into_iter().flatten().min();
        for _ in skipped..due {
            self.updated += self.tuning.update;
            let before = (self.probability, self.delay_before);
            let delay = oldest.map_or(Span::ZERO, |arrived| self.updated.since(arrived));
            self.update(delay);
            if before == (self.probability, self.delay_before) {
                break;
            }
        }
        // Those that change nothing any more are over too.
        self.updated = Time(now.0 / self.tuning.update.0 * self.tuning.update.0);
    }

    /// One update of the probability (`dualpi2_update`, `RFC 9332 Appendix A.1`).
    fn update(&mut self, delay: Span) {
        let Tuning { alpha, beta, coupling, .. } = self.tuning;
        let [delay_now, before, target] =
            [delay, self.delay_before, self.tuning.target].map(Span::as_seconds);
        let change = alpha * (delay_now - target) + beta * (delay_now - before);
        let most = if self.tuning.drops_on_overload { 1.0 } else { 1.0 / coupling };
        self.probability = (self.probability + change).clamp(0.0, most);
        self.delay_before = delay;
    }

    /// Takes out the head whose turn it is, with the credit that it costs or earns if it
    /// is sent: only turns between two packets count.
    fn take(&mut self) -> Option<(usize, Packet, i128)> {
        let [low_latency, classic] = [0, 1].map(|queue: usize| !self.queues[queue].is_empty());
        let queue = match (low_latency, classic) {
            (true, false) => LOW_LATENCY,
            (true, true) if self.credit <= 0 => LOW_LATENCY,
            _ => CLASSIC,
        };
        let packet = self.queues[queue].pop_front()?;
        self.levels[queue].backlog.remove(packet.size);
        self.backlog.remove(packet.size);
        self.bytes -= u128::from(packet.size.0);
        let protection = self.tuning.classic_protection;
        let weight = match (low_latency && classic, queue) {
            (false, _) => 0,
            (true, LOW_LATENCY) => protection,
            (true, _) => protection - 100,
        };
        Some((queue, packet, weight * i128::from(packet.size.0)))
    }

    /// What the probability makes of a packet that leaves: nothing while little is left.
    fn judge(&mut self, queue: usize, packet: Packet, losses: &mut Losses) -> Option<Packet> {
        if self.bytes < 2 * LARGEST_PACKET_BYTES {
            return Some(packet);
        }
        let scaled = self.tuning.coupling * self.probability;
        let is_overload = scaled > 1.0;
        if queue == CLASSIC {
            return match self.is_hit_twice() {
                false => Some(packet),
                true if is_overload => drop_early(packet, losses),
                true => losses.signal(packet),
            };
        }
        if !is_overload {
            let is_hit = self.random.uniform() < scaled;
            return Some(if is_hit { mark(packet, losses) } else { packet });
        }
        if self.tuning.drops_on_overload && self.is_hit_twice() {
            return drop_early(packet, losses);
        }
        Some(mark(packet, losses))
    }

    /// Whether two draws in a row hit: with the square of the probability.
    fn is_hit_twice(&mut self) -> bool {
        self.random.uniform() < self.probability && self.random.uniform() < self.probability
    }
}

/// Drops a packet, whatever its sender understands.
fn drop_early(packet: Packet, losses: &mut Losses) -> Option<Packet> {
    losses.push(packet, LossReason::Early);
    None
}

/// Marks a packet of the low-latency queue. One that has a mark keeps it and does not
/// count again.
fn mark(packet: Packet, losses: &mut Losses) -> Packet {
    match packet.ecn {
        Ecn::Ect1 => losses.signal(packet).unwrap_or(packet),
        _ => packet,
    }
}

impl Discipline for DualPi2 {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        self.advance(now);
        if !self.buffer.has_room(self.backlog, packet.size) {
            return losses.push(packet, LossReason::Refused);
        }
        let queue = if packet.ecn.is_low_latency() { LOW_LATENCY } else { CLASSIC };
        self.levels[queue].backlog.add(packet.size);
        self.levels[queue].enqueued += 1;
        self.backlog.add(packet.size);
        self.bytes += u128::from(packet.size.0);
        self.queues[queue].push_back(packet);
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        self.advance(now);
        loop {
            let (queue, packet, credit) = self.take()?;
            let Some(packet) = self.judge(queue, packet, losses) else { continue };
            let waited = now.since(packet.arrived);
            let is_late = queue == LOW_LATENCY && waited > self.tuning.step;
            self.credit += credit;
            if self.backlog.packets == 0 {
                // Linux does so as it finds nothing to send.
                self.credit = self.tuning.initial_credit();
            }
            return Some(if is_late { mark(packet, losses) } else { packet });
        }
    }

    fn reconfigure(&mut self, now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        self.advance(now);
        let initial = self.tuning.initial_credit();
        self.tuning = Tuning::from_settings(settings);
        if self.tuning.initial_credit() != initial {
            self.credit = self.tuning.initial_credit();
        }
        // The beat of the new updates begins before now.
        self.updated = Time(now.0 / self.tuning.update.0 * self.tuning.update.0);
        self.buffer = buffer;
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn levels(&self) -> &[Level] {
        &self.levels
    }

    fn sorts_by_ecn(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::trial::Trial;

    fn dualpi2(given: &[(&str, &str)], packets: u32) -> Trial<DualPi2> {
        let tuning = Tuning::from_settings(&ENTRY.settings(given).unwrap());
        Trial::new(DualPi2::new(tuning, Buffer::packets(packets), 1))
    }

    /// A queue whose probability is this, and does not change.
    fn held_at(probability: f64, given: &[(&str, &str)]) -> Trial<DualPi2> {
        let still: &[(&str, &str)] = &[("alpha", "0"), ("beta", "0"), ("step", "10 s")];
        let mut trial = dualpi2(&[still, given].concat(), 1_000_000);
        trial.discipline.probability = probability;
        trial
    }

    #[track_caller]
    fn assert_near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
    }

    #[test]
    fn defaults_are_those_of_linux() {
        let linux = Tuning {
            target: Span::millis(15),
            update: Span::millis(16),
            alpha: 0.16,
            beta: 3.2,
            coupling: 2.0,
            step: Span::millis(1),
            classic_protection: 10,
            drops_on_overload: true,
        };
        assert_eq!(Tuning::from_settings(&ENTRY.settings(&[]).unwrap()), linux);
        // 41 and 819 in units of 1/256; 1 500 bytes times 10 - 90.
        assert!((41.0_f64 / 256.0 - linux.alpha).abs() < 0.001);
        assert!((819.0_f64 / 256.0 - linux.beta).abs() < 0.001);
        assert_eq!(linux.initial_credit(), -120_000);
    }

    #[test]
    fn an_update_weighs_the_distance_from_the_target_and_the_trend() {
        let updated = |probability, before, delay| {
            let mut queue = dualpi2(&[], 10).discipline;
            (queue.probability, queue.delay_before) = (probability, Span::millis(before));
            queue.update(Span::millis(delay));
            queue.probability
        };
        // 0.16 (25 ms - 15 ms) + 3.2 (25 ms - 20 ms) = 0.0016 + 0.016
        assert_near(updated(0.5, 20, 25), 0.517_6);
        // 0.16 (10 ms - 15 ms) + 3.2 (10 ms - 20 ms) = -0.0008 - 0.032
        assert_near(updated(0.5, 20, 10), 0.467_2);
        assert_near(updated(0.01, 40, 10), 0.0);
        assert_near(updated(0.99, 0, 100), 1.0);
    }

    /// Heads that came at 0 and 10 ms are 16 and 6 ms old at the first update, and 32 and
    /// 22 ms old at the second: the older one counts. 0.16 (16 - 15) + 3.2 (16 - 0) ms,
    /// and then 0.16 (32 - 15) + 3.2 (32 - 16) ms.
    #[test]
    fn the_older_head_counts_as_old_as_it_was_at_each_update() {
        for [first, second] in [[Ecn::Ect1, Ecn::NotEct], [Ecn::NotEct, Ecn::Ect1]] {
            let mut trial = dualpi2(&[], 10);
            trial.arrive_as('a', 1_500, first);
            trial.now = Time::ZERO + Span::millis(10);
            trial.arrive_as('b', 1_500, second);
            trial.discipline.advance(Time::ZERO + Span::millis(33));
            assert_near(trial.discipline.probability, 0.051_36 + 0.053_92);
        }
    }

    #[test]
    fn a_silence_takes_the_probability_back_and_costs_little() {
        let mut trial = dualpi2(&[], 10);
        trial.discipline.probability = 0.5;
        trial.discipline.advance(Time::ZERO + Span::millis(160));
        // Ten times 0.16 * 15 ms.
        assert_near(trial.discipline.probability, 0.5 - 10.0 * 0.002_4);
        trial.discipline.advance(Time::FAR_FUTURE);
        assert_near(trial.discipline.probability, 0.0);
        assert!(Time::FAR_FUTURE.since(trial.discipline.updated) < Span::millis(16));
    }

    /// ECT(1) and CE are of the low-latency queue, Not-ECT and ECT(0) of the classic one.
    #[test]
    fn the_ecn_field_chooses_the_queue() {
        let mut trial = dualpi2(&[], 10);
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            trial.arrive_as('a', 1_000, ecn);
        }
        assert_eq!(trial.discipline.levels().iter().map(|level| level.enqueued).sum::<u64>(), 4);
        assert_eq!(trial.drain(), [2, 3, 0, 1]);
        assert_eq!(trial.discipline.levels()[LOW_LATENCY].enqueued, 2);
    }

    /// Packets of 1 500 bytes: the credit begins at -120 000, and each low-latency packet
    /// adds 10 * 1 500. After the ninth it is above zero; a classic one takes 90 * 1 500.
    #[test]
    fn the_classic_queue_has_a_tenth_of_the_bytes() {
        let mut trial = dualpi2(&[("step", "10 s")], 100);
        for _ in 0..30 {
            trial.arrive_as('a', 1_500, Ecn::Ect1);
            trial.arrive_as('b', 1_500, Ecn::NotEct);
        }
        let sent = trial.drain();
        let classic: Vec<_> = (0..32).filter(|place| sent[*place] % 2 == 1).collect();
        assert_eq!(classic, [9, 19, 29]);
        // Empty again, the queue begins anew.
        assert_eq!(trial.discipline.credit, -120_000);
    }

    /// 10 000 packets of each kind at `p` = 0.2: 0.04 of the classic ones are hit and 0.4
    /// of the others. Four standard deviations are 78 and 196.
    #[test]
    fn classic_packets_are_hit_with_the_square_and_others_with_twice_the_probability() {
        for (ecn, expected, margin) in
            [(Ecn::NotEct, 400, 78), (Ecn::Ect0, 400, 78), (Ecn::Ect1, 4_000, 196)]
        {
            let mut trial = held_at(0.2, &[]);
            for _ in 0..10_002 {
                trial.arrive_as('a', 1_500, ecn);
            }
            trial.drain();
            let (lost, marked) = (trial.losses().len(), trial.marked() as usize);
            assert!((lost + marked).abs_diff(expected) < margin, "{ecn:?}: {lost} and {marked}");
            assert_eq!((lost == 0, marked == 0), (ecn != Ecn::NotEct, ecn == Ecn::NotEct));
        }
    }

    /// Two packets are never hit: nothing, and then too little, is left behind them.
    #[test]
    fn a_short_queue_is_left_alone() {
        for ecn in [Ecn::NotEct, Ecn::Ect1] {
            let mut trial = held_at(1.0, &[]);
            trial.arrive_as('a', 1_500, ecn);
            trial.arrive_as('a', 1_500, ecn);
            assert_eq!(trial.drain(), [0, 1]);
            assert_eq!((trial.lost(), trial.marked()), (vec![], 0));
        }
    }

    /// At `p` = 0.8 twice the probability is above one: 0.64 of all are dropped, and
    /// every low-latency packet that is not is marked.
    #[test]
    fn an_overload_drops_packets_of_both_queues_whatever_their_senders_understand() {
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1] {
            let mut trial = held_at(0.8, &[]);
            for _ in 0..10_002 {
                trial.arrive_as('a', 1_500, ecn);
            }
            let sent = trial.drain().len() as u32;
            let marked = if ecn == Ecn::Ect1 { sent - 2 } else { 0 };
            assert!(sent.abs_diff(3_600) < 192, "{ecn:?}: {sent}");
            assert_eq!(trial.marked(), marked, "{ecn:?}");
        }
    }

    #[test]
    fn overflow_holds_the_probability_and_loses_no_low_latency_packet() {
        let mut trial = dualpi2(&[("overload", "overflow")], 1_000_000);
        for _ in 0..10_002 {
            trial.arrive_as('a', 1_500, Ecn::Ect1);
        }
        trial.now = Time::ZERO + Span::seconds(60);
        let sent = trial.drain().len();
        assert_near(trial.discipline.probability, 0.5);
        assert_eq!((sent, trial.losses().len()), (10_002, 0));
    }

    #[test]
    fn low_latency_packets_that_waited_for_more_than_the_step_are_marked() {
        let mut trial = dualpi2(&[], 10);
        for ecn in [Ecn::Ect1, Ecn::Ce, Ecn::Ect0] {
            trial.arrive_as('a', 1_000, ecn);
        }
        trial.now = Time::ZERO + Span::millis(1);
        trial.arrive_as('a', 1_000, Ecn::Ect1);
        assert_eq!(trial.send(), Some(0));
        assert_eq!(trial.marked(), 0);
        trial.now = Time::ZERO + Span::millis(1) + Span(1);
        trial.arrive_as('a', 1_000, Ecn::Ect1);
        // One came with a mark, and one did not wait.
        assert_eq!(trial.drain(), [1, 3, 4, 2]);
        assert_eq!(trial.marked(), 0);
        trial.arrive_as('a', 1_000, Ecn::Ect1);
        trial.now += Span::millis(2);
        trial.drain();
        assert_eq!((trial.marked(), trial.losses().len()), (1, 0));
    }

    #[test]
    fn a_full_buffer_refuses_in_both_queues() {
        let mut trial = dualpi2(&[], 1);
        for ecn in [Ecn::Ect1, Ecn::Ect1, Ecn::NotEct] {
            trial.arrive_as('a', 1_000, ecn);
        }
        assert_eq!(trial.lost(), [(1, LossReason::Refused), (2, LossReason::Refused)]);
    }
}
