//! PIE: drops arriving packets at random, just often enough that packets wait for a
//! target time.
//!
//! Arrivals are dropped, or marked, with a probability that a controller sets every
//! `update`: the further the last packet's time in the queue is from the target,
//! and the faster that time grows, the higher it becomes (`RFC 8033 section 4`).
//! There is one FIFO queue, a few numbers of state, and a cost of O(1) per packet.
//!
//! - Basic scheme: all of `RFC 8033 section 4`, as in its Appendix A. The delay is
//!   that of the packet that left last (section 4.3, timestamps). A queue that is
//!   left empty has no delay, as section 4.3's other method would say; otherwise
//!   the controller would work on a stale sample until somebody sends again, and
//!   the decay of section 4.2 would never begin.
//! - Options of `RFC 8033 section 5`: marks (5.1) and the capped increase (5.5).
//!   The rate estimator (5.2) is left out because the timestamps replace it; it
//!   would follow a change of the link's rate a little sooner. The switch by queue
//!   length (5.3) and derandomization (5.4) are left out too.
//!
//! There is no timer. An update that is due is made up for at the next call, as of
//! the time at which it was due: between two calls only time changes, so the result
//! is that of a timer. Repeated under an unchanged delay, updates reach a point at
//! which they change nothing any more, and there the loop ends; it also ends after
//! 4 000 updates, so that no silence is expensive.
//!
//! The probability is a 64-bit float, on which only `+ - * /` are used: these
//! give the same bits on every machine.

use std::collections::VecDeque;

use super::{Backlog, Discipline, LossReason, Losses};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::packet::Packet;
use crate::random::Stream;
use crate::setting::{Kind, Parameter, Settings};
use crate::units::{Span, Time};

/// The registry's entry for [`Pie`].
pub const ENTRY: Entry = Entry {
    name: "pie",
    summary: "proportional integral controller: random early drops that hold the delay at a target",
    source: "RFC 8033",
    drops: Drops::Early,
    parameters: &[
        Tuning::TARGET,
        Tuning::UPDATE,
        Tuning::BURST,
        Tuning::ALPHA,
        Tuning::BETA,
        Tuning::ECN_THRESHOLD,
    ],
    fixed: &[],
    build: |settings, Place { buffer, .. }, seed| {
        Box::new(Pie::new(Tuning::from_settings(settings), buffer, seed))
    },
};

/// `MEAN_PKTSIZE`, which RFC 8033 leaves open (`RFC 8034 Appendix A`).
const MEAN_PACKET_BYTES: u128 = 1_024;

/// The most updates made up for, however long ago the last one was: a minute's
/// worth at the default, after which all but contrived states are at rest.
const MOST_UPDATES: u64 = 4_000;

/// What can be set on PIE; the defaults are those of `RFC 8033 Appendices A and B`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// `QDELAY_REF`: the delay that packets should have.
    pub target: Span,
    /// `T_UPDATE`: time from one update of the probability to the next; not zero.
    pub update: Span,
    /// `MAX_BURST`: how long a burst after a quiet time passes without drops.
    pub burst: Span,
    /// Probability per second that each second of delay above target adds.
    pub alpha: f64,
    /// Probability that each second adds by which the delay grew.
    pub beta: f64,
    /// `mark_ecnth`: from this probability on, packets are dropped that could be marked.
    pub ecn_threshold: f64,
}

impl Tuning {
    /// Registers [`Tuning::target`].
    pub(crate) const TARGET: Parameter = Parameter {
        name: "target",
        help: "delay that packets should have in the queue",
        kind: Kind::Span { least: Span::micros(1), most: Span::seconds(10) },
        default: "15 ms",
    };
    /// Registers [`Tuning::update`].
    pub(crate) const UPDATE: Parameter = Parameter {
        name: "update",
        help: "time between two updates of the drop probability",
        kind: Kind::Span { least: Span::micros(10), most: Span::seconds(10) },
        default: "15 ms",
    };
    /// Registers [`Tuning::burst`].
    pub(crate) const BURST: Parameter = Parameter {
        name: "burst",
        help: "how long a burst after a quiet time passes without drops",
        kind: Kind::Span { least: Span::ZERO, most: Span::seconds(10) },
        default: "150 ms",
    };
    /// Registers [`Tuning::alpha`], to be raised along with `beta` as the target
    /// is lowered (`RFC 8033 section 4.2`).
    pub(crate) const ALPHA: Parameter = Parameter {
        name: "alpha",
        help: "what an update adds to the probability for each second of delay above the target",
        kind: Kind::Number { least: 0.0, most: 1_000.0 },
        default: "0.125",
    };
    /// Registers [`Tuning::beta`].
    pub(crate) const BETA: Parameter = Parameter {
        name: "beta",
        help: "what an update adds to the probability for each second by which the delay grew",
        kind: Kind::Number { least: 0.0, most: 10_000.0 },
        default: "1.25",
    };
    /// Registers [`Tuning::ecn_threshold`].
    pub(crate) const ECN_THRESHOLD: Parameter = Parameter {
        name: "ecn_threshold",
        help: "below this probability, packets that can be marked are marked; 0 turns marks off",
        kind: Kind::Number { least: 0.0, most: 1.0 },
        default: "0.1",
    };

    /// The values of the six parameters.
    pub(crate) fn from_settings(settings: &Settings) -> Tuning {
        Tuning {
            target: settings.span(Self::TARGET.name),
            update: settings.span(Self::UPDATE.name),
            burst: settings.span(Self::BURST.name),
            alpha: settings.number(Self::ALPHA.name),
            beta: settings.number(Self::BETA.name),
            ecn_threshold: settings.number(Self::ECN_THRESHOLD.name),
        }
    }

    /// Whether the delay is less than half of the target.
    fn is_short(&self, delay: Span) -> bool {
        delay * 2 < self.target
    }
}

/// The controller of one queue: from delays to a drop probability. Its default is
/// that of a queue that was always empty, whose first packet brings the burst
/// allowance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Controller {
    /// `drop_prob_`
    probability: f64,
    /// `current_qdelay`
    delay: Span,
    /// `qdelay_old_`: the delay at the last update.
    delay_before: Span,
    burst_allowance: Span,
    /// When the last update was due. All queues keep the same beat, from the
    /// start of time on.
    updated: Time,
}

impl Controller {
    /// Makes up for the updates that were due until `now`.
    pub(crate) fn advance(&mut self, tuning: &Tuning, now: Time) {
        let since = now.since(self.updated);
        if since < tuning.update {
            return;
        }
        let due = since.0 / tuning.update.0;
        self.updated += tuning.update * due;
        self.burst_allowance -= tuning.update * due;
        for _ in 0..due.min(MOST_UPDATES) {
            let before = (self.probability, self.delay_before);
            self.update(tuning);
            if (self.probability, self.delay_before) == before {
                return;
            }
        }
    }

    /// One update of the probability (`RFC 8033 section 4.2`).
    fn update(&mut self, tuning: &Tuning) {
        let [delay, before, target] =
            [self.delay, self.delay_before, tuning.target].map(Span::as_seconds);
        let change = tuning.alpha * (delay - target) + tuning.beta * (delay - before);
        let mut change = change / auto_tuning(self.probability);
        // Slow start of a single flow must not run the probability up (section 5.5).
        if self.probability >= 0.1 && change > 0.02 {
            change = 0.02;
        }
        self.probability += change;
        if self.delay == Span::ZERO && self.delay_before == Span::ZERO {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.delay_before = self.delay;
    }

    /// Lets an arriving packet pass, marks it, or loses it; `queued` is the number
    /// of bytes that it finds in its queue. Call it after [`Controller::advance`].
    pub(crate) fn admit(
        &mut self,
        tuning: &Tuning,
        packet: Packet,
        queued: u128,
        random: &mut Stream,
        losses: &mut Losses,
    ) -> Option<Packet> {
        let is_quiet = tuning.is_short(self.delay) && tuning.is_short(self.delay_before);
        if self.probability == 0.0 && is_quiet {
            self.burst_allowance = tuning.burst;
        }
        if self.burst_allowance > Span::ZERO
            || self.is_safeguarded(tuning, queued)
            || random.uniform() >= self.probability
        {
            return Some(packet);
        }
        if self.probability < tuning.ecn_threshold {
            return losses.signal(packet);
        }
        losses.push(packet, LossReason::Early);
        None
    }

    /// Keeps the link busy: no drops while the delay is short and the
    /// probability moderate, or while little is queued (`RFC 8033 section 4.1`).
    fn is_safeguarded(&self, tuning: &Tuning, queued: u128) -> bool {
        (tuning.is_short(self.delay_before) && self.probability < 0.2)
            || queued <= 2 * MEAN_PACKET_BYTES
    }

    /// A packet has been sent at `now`, and others are left behind it. Call it
    /// after [`Controller::advance`].
    pub(crate) fn sent(&mut self, now: Time, packet: &Packet) {
        self.delay = now.since(packet.arrived);
    }

    /// The queue has been emptied. Call it after [`Controller::advance`].
    pub(crate) fn emptied(&mut self) {
        self.delay = Span::ZERO;
    }
}

/// The divisor of a change of the probability: small probabilities take small steps
/// (`RFC 8033 section 4.2`).
fn auto_tuning(probability: f64) -> f64 {
    match probability {
        p if p < 0.000_001 => 2_048.0,
        p if p < 0.000_01 => 512.0,
        p if p < 0.000_1 => 128.0,
        p if p < 0.001 => 32.0,
        p if p < 0.01 => 8.0,
        p if p < 0.1 => 2.0,
        _ => 1.0,
    }
}

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
    /// A full buffer comes first, as in `RFC 8033 Appendix B`: what it refuses,
    /// the controller does not see.
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        self.controller.advance(&self.tuning, now);
        if !self.buffer.has_room(self.backlog, packet.size) {
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
        self.controller.advance(&self.tuning, now);
        let packet = self.queue.pop_front()?;
        self.backlog.remove(packet.size);
        self.bytes -= u128::from(packet.size.0);
        if self.queue.is_empty() {
            self.controller.emptied();
        } else {
            self.controller.sent(now, &packet);
        }
        Some(packet)
    }

    fn reconfigure(&mut self, now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        self.controller.advance(&self.tuning, now);
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
    use crate::discipline::trial::Trial;
    use crate::packet::{Ecn, FlowKey};
    use crate::units::Bytes;

    fn tuning() -> Tuning {
        Tuning::from_settings(&ENTRY.settings(&[]).unwrap())
    }

    /// The probability after one update.
    fn updated(probability: f64, delay_millis: u64, before_millis: u64) -> f64 {
        let (delay, delay_before) = (Span::millis(delay_millis), Span::millis(before_millis));
        let mut controller =
            Controller { probability, delay, delay_before, ..Controller::default() };
        controller.advance(&tuning(), Time(15_000_000));
        controller.probability
    }

    #[track_caller]
    fn assert_near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-15, "{found}, not {expected}");
    }

    #[test]
    fn defaults_are_those_of_the_rfc() {
        let rfc = Tuning {
            target: Span::millis(15),
            update: Span::millis(15),
            burst: Span::millis(150),
            alpha: 1.0 / 8.0,
            beta: 1.0 + 1.0 / 4.0,
            ecn_threshold: 0.1,
        };
        assert_eq!(tuning(), rfc);
    }

    #[test]
    fn an_update_weighs_the_distance_from_the_target_and_the_trend() {
        // 0.125 * (25 ms - 15 ms) + 1.25 * (25 ms - 20 ms) = 0.00125 + 0.00625
        assert_near(updated(0.5, 25, 20), 0.5075);
        // 0.125 * (10 ms - 15 ms) + 1.25 * (10 ms - 20 ms) = -0.000625 - 0.0125
        assert_near(updated(0.5, 10, 20), 0.486_875);
        assert_near(updated(0.01, 10, 40), 0.0);
        assert_near(updated(1.0, 30, 15), 1.0);
    }

    #[test]
    fn steps_are_scaled_by_the_table_of_section_4_2() {
        // 0.125 * (25 ms - 15 ms) = 0.00125, divided as the table says.
        for (probability, divisor) in [
            (0.0, 2_048.0),
            (0.000_000_9, 2_048.0),
            (0.000_001, 512.0),
            (0.000_009, 512.0),
            (0.000_01, 128.0),
            (0.000_09, 128.0),
            (0.000_1, 32.0),
            (0.000_9, 32.0),
            (0.001, 8.0),
            (0.009, 8.0),
            (0.01, 2.0),
            (0.09, 2.0),
            (0.1, 1.0),
            (0.9, 1.0),
        ] {
            assert_near(updated(probability, 25, 25), probability + 0.001_25 / divisor);
        }
    }

    #[test]
    fn from_ten_per_cent_on_a_step_up_is_at_most_two_per_cent() {
        // 0.125 * (100 ms - 15 ms) + 1.25 * 100 ms = 0.010625 + 0.125
        assert_near(updated(0.1, 100, 0), 0.12);
        assert_near(updated(0.09, 100, 0), 0.09 + 0.135_625 / 2.0);
        assert_near(updated(0.5, 0, 100), 0.5 - 0.126_875);
    }

    #[test]
    fn without_delay_the_probability_decays_by_two_per_cent_as_well() {
        // 0.125 * (0 - 15 ms) = -0.001875
        assert_near(updated(0.5, 0, 0), (0.5 - 0.001_875) * 0.98);
    }

    #[test]
    fn missed_updates_are_made_up_for_one_by_one_and_no_silence_is_costly() {
        let start = Controller {
            probability: 0.5,
            delay_before: Span::millis(40),
            ..Controller::default()
        };
        let (mut at_once, mut stepwise) = (start.clone(), start.clone());
        for update in 1..=100 {
            stepwise.advance(&tuning(), Time::ZERO + Span::millis(15) * update);
        }
        at_once.advance(&tuning(), Time(1_514_999_999));
        assert_eq!(at_once.probability.to_bits(), stepwise.probability.to_bits());
        assert!(at_once.probability > 0.0 && at_once.probability < 0.5);
        let mut ages_later = start;
        ages_later.advance(&tuning(), Time::FAR_FUTURE);
        assert_near(ages_later.probability, 0.0);
        assert!(ages_later.updated > Time(u64::MAX - 15_000_000));
    }

    /// A queue with 10 packets of 1 000 bytes in it and this probability, at
    /// the end of its burst allowance.
    fn congested(probability: f64) -> Trial<Pie> {
        let mut trial = Trial::new(Pie::new(tuning(), Buffer::packets(100), 1));
        trial.arrive_all([('a', 1_000); 10]);
        let controller = &mut trial.discipline.controller;
        controller.probability = probability;
        controller.delay = Span::millis(20);
        controller.delay_before = Span::millis(20);
        controller.burst_allowance = Span::ZERO;
        trial
    }

    #[test]
    fn a_burst_of_150_ms_passes_and_no_more() {
        let mut trial = congested(1.0);
        trial.discipline.controller.burst_allowance = Span::millis(150);
        for update in 1..=10 {
            trial.arrive('a', 1_000);
            assert_eq!(trial.lost(), [], "before update {update}");
            trial.now += Span::millis(15);
        }
        trial.arrive('a', 1_000);
        assert_eq!(trial.lost(), [(20, LossReason::Early)]);
    }

    #[test]
    fn the_burst_allowance_returns_once_the_queue_was_quiet() {
        let mut trial = congested(0.0);
        let allowance = |trial: &mut Trial<Pie>, delay, before| {
            let controller = &mut trial.discipline.controller;
            (controller.delay, controller.delay_before) = (delay, before);
            controller.burst_allowance = Span::ZERO;
            trial.arrive('a', 1_000);
            trial.discipline.controller.burst_allowance
        };
        let (short, half) = (Span(7_499_999), Span(7_500_000));
        assert_eq!(allowance(&mut trial, half, short), Span::ZERO);
        assert_eq!(allowance(&mut trial, short, half), Span::ZERO);
        assert_eq!(allowance(&mut trial, short, short), Span::millis(150));
        trial.discipline.controller.probability = 1e-9;
        assert_eq!(allowance(&mut trial, short, short), Span::ZERO);
    }

    #[test]
    fn short_delays_and_short_queues_are_safe_from_drops() {
        let safe = |probability, before, queued| {
            let delay_before = Span(before);
            let controller = Controller { probability, delay_before, ..Controller::default() };
            controller.is_safeguarded(&tuning(), queued)
        };
        assert!(safe(0.199, 7_499_999, 3_000));
        assert!(!safe(0.2, 7_499_999, 3_000));
        assert!(!safe(0.199, 7_500_000, 3_000));
        assert!(safe(1.0, 20_000_000, 2_048));
        assert!(!safe(1.0, 20_000_000, 2_049));
    }

    #[test]
    fn drops_as_often_as_the_probability_says() {
        let mut trial = congested(0.25);
        trial.discipline.buffer = Buffer::packets(100_000);
        trial.arrive_all([('a', 1_000); 10_000]);
        let lost = trial.lost();
        // Four standard deviations of a binomial: 4 * sqrt(10 000 / 4 * 3 / 4).
        assert!(lost.len().abs_diff(2_500) < 173, "{}", lost.len());
        assert!(lost.iter().all(|(_, reason)| *reason == LossReason::Early));
    }

    #[test]
    fn marks_below_the_threshold_and_drops_from_there_on() {
        let key = FlowKey::v4([192, 0, 2, 1], 1, [198, 51, 100, 1], 443, FlowKey::TCP);
        let fates = |probability: f64| {
            let mut discipline = congested(probability).discipline;
            discipline.buffer = Buffer::packets(1_000);
            let mut losses = Losses::new();
            for handle in 100..1_000 {
                let plain = Packet::new(handle, key, Bytes(1_000));
                let packet = Packet { ecn: Ecn::Ect0, ..plain };
                discipline.enqueue(Time::ZERO, packet, &mut losses);
            }
            (losses.marked(), losses.as_slice().len())
        };
        let (marked, lost) = fates(0.099);
        assert!(marked > 50 && lost == 0, "{marked} marked, {lost} lost");
        let (marked, lost) = fates(0.1);
        assert!(marked == 0 && lost > 50, "{marked} marked, {lost} lost");
    }

    #[test]
    fn the_delay_is_that_of_the_last_packet_and_none_when_the_queue_is_empty() {
        let mut trial = Trial::new(Pie::new(tuning(), Buffer::packets(100), 1));
        trial.arrive_all([('a', 1_000); 2]);
        trial.now += Span::millis(12);
        trial.send();
        assert_eq!(trial.discipline.controller.delay, Span::millis(12));
        trial.now += Span::millis(12);
        trial.send();
        assert_eq!(trial.discipline.controller.delay, Span::ZERO);
    }

    #[test]
    fn a_full_buffer_refuses() {
        let mut trial = Trial::new(Pie::new(tuning(), Buffer::packets(1), 1));
        trial.arrive_all([('a', 1_000); 2]);
        assert_eq!(trial.lost(), [(1, LossReason::Refused)]);
        assert_eq!(trial.drain(), [0]);
    }
}
