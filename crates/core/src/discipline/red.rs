//! RED, random early detection: drops at random as the average queue grows.
//!
//! Each arrival moves an average of the queue's length towards what the arriving
//! packet finds, by the share `weight`; a burst therefore passes where a standing
//! queue of the same length would not. Below `min` nothing happens. From there to
//! `max`, a packet is dropped or marked with a probability that rises from 0 to
//! `probability`; with `gentle` it rises further, to 1 at twice `max`. Beyond that,
//! all packets are dropped (`Floyd 1993`; gentle: `Floyd 2000`).
//!
//! The defaults are those of Linux 7.3 (`sch_red`, `include/net/red.h`) with what its
//! `tc` computes. Its form and that of the paper differ in this:
//!
//! - The spread, below. Linux draws one number for each gap and not one for each packet,
//!   and spares the first packet of a congestion. The gaps are the same but for one
//!   packet.
//! - Beyond the thresholds Linux marks what can be marked, with `ecn`; the form of the
//!   paper drops it (`RFC 3168 section 7`).
//! - A full buffer restarts the spread in the paper; in Linux, chance decides first.
//! - While the queue is idle, the average of Linux falls by a table of halvings in cells
//!   of a power of two of microseconds, from `tc` (`Damping`). `tc` makes it for a clock
//!   of 64 ns and the kernel reads it in microseconds, so the second halving comes after
//!   hundreds of milliseconds rather than after ten.
//!
//! The average outlives the queue: after a burst it stays above `min` while packets
//! find nothing queued, and to drop those would only idle the link. With `guard`,
//! a packet therefore passes unless at least two are queued, and so does the first one
//! after those that passed without a chance, as in ns-2 and ns-3
//! (`RedQueueDisc::DoEnqueue`); the text of `Floyd 1993` has no such rules.
//!
//! The probability is spread: with `p_b` from the average, and `count` packets
//! since the last one that was dropped or marked, it is `p_b / (1 - count p_b)`,
//! which makes the gaps uniform on 1 to `1 / p_b` instead of geometric, so drops
//! come neither in clusters nor far apart (`Floyd 1993 section 4`). With `wait`, the
//! first `1 / p_b` packets pass, which makes the gaps uniform on `1 / p_b` to
//! `2 / p_b` (ns-2 and ns-3, `RedQueueDisc::ModifyP`).
//!
//! While the queue is empty, no arrival finds it so. The first packet after that
//! counts the small packets that could have been sent meanwhile, one for each
//! `packet_time`, and shrinks the average as if they had all found an empty queue
//! (`Floyd 1993 section 4`). Idle time starts when the queue becomes empty, as the
//! last packet's transmission begins; in Linux, when RED is asked for a packet and has
//! none, which comes to the same. Under Linux's `tbf`, which looks before it asks, that
//! never happens: with `idle` off, a packet that finds an empty queue moves the average
//! as any other does.
//!
//! The cost is O(1) per packet. Averages and probabilities are 64-bit floats, on
//! which only `+ - * /` and `libm::pow` are used, for the same bits on every
//! machine.

use std::collections::VecDeque;

use super::form::Form;
use super::red_settings::{Damping, PARAMETERS, Thresholds};
use super::{Backlog, Discipline, LossReason, Losses};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::packet::Packet;
use crate::random::Stream;
use crate::setting::Settings;
use crate::units::Time;

pub use super::red_settings::Detection;

/// The registry's entry for [`Red`].
pub const ENTRY: Entry = Entry {
    name: "red",
    summary: "random early detection: random drops or marks as the average queue grows",
    source: "Linux 7.3, Floyd 1993",
    linux: Some("red"),
    drops: Drops::Early,
    parameters: PARAMETERS,
    fixed: &[Form::OR_PAPER],
    build: |settings, Place { buffer, .. }, seed| {
        Box::new(Red::new(Detection::from_settings(settings), buffer, seed))
    },
};

/// With the guard, packets are dropped early while so many are queued. It is packets
/// also where the queue is measured in bytes: ns-2 and ns-3 then ask for two bytes,
/// which any packet has.
const QUEUED_BEFORE_DROPS: u32 = 2;

/// What becomes of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Pass,
    /// Dropped or marked with this probability, before it is spread.
    Chance(f64),
    Drop,
}

/// A queue in order of arrival that drops at its tail by chance.
#[derive(Debug)]
pub struct Red {
    detection: Detection,
    thresholds: Thresholds,
    buffer: Buffer,
    stream: Stream,
    queue: VecDeque<Packet>,
    backlog: Backlog,
    average: f64,
    /// When the queue became empty.
    empty_since: Time,
    /// Packets since the last one dropped or marked, if chance decided about all of
    /// them; `None` while the average is below `min` or the guard lets packets pass.
    since_signal: Option<u32>,
    /// In Linux, what the count times the probability has to reach: drawn for each gap.
    drawn: f64,
}

impl Red {
    /// An empty queue that holds at most `buffer`; chance depends on `seed`.
    #[must_use]
    pub fn new(detection: Detection, buffer: Buffer, seed: u64) -> Red {
        Red {
            detection,
            thresholds: Thresholds::new(&detection, buffer),
            buffer,
            stream: Stream::new(seed, ENTRY.name),
            queue: VecDeque::new(),
            backlog: Backlog::default(),
            average: 0.0,
            empty_since: Time::ZERO,
            since_signal: None,
            drawn: 0.0,
        }
    }

    fn update_average(&mut self, now: Time) {
        let Detection { form, idle, packet_time, .. } = self.detection;
        let weight = self.thresholds.weight;
        if self.backlog.packets == 0 && idle {
            let empty = now.since(self.empty_since);
            self.average = match form {
                Form::Linux => Damping::new(weight, packet_time).apply(self.average, empty),
                Form::Published => {
                    let packets = empty.0 as f64 / packet_time.0 as f64;
                    self.average * libm::pow(1.0 - weight, packets)
                }
            };
            return;
        }
        let Backlog { packets, bytes } = self.backlog;
        let length = if self.thresholds.in_bytes { bytes.0 as f64 } else { f64::from(packets) };
        self.average += weight * (length - self.average);
    }

    fn verdict(&self) -> Verdict {
        let Thresholds { min, max, .. } = self.thresholds;
        let Detection { probability, gentle, guard, .. } = self.detection;
        let average = self.average;
        if average < min || guard && self.backlog.packets < QUEUED_BEFORE_DROPS {
            Verdict::Pass
        } else if average < max {
            Verdict::Chance(probability * (average - min) / (max - min))
        } else if gentle && average < 2.0 * max {
            Verdict::Chance(probability + (1.0 - probability) * (average - max) / max)
        } else {
            Verdict::Drop
        }
    }

    /// Whether the gap that was drawn ends with this packet (`red_action`): the first one
    /// after packets without a chance passes.
    fn ends_gap(&mut self, p_b: f64) -> bool {
        let count = self.since_signal.map_or(0, |count| count.saturating_add(1));
        let ends = count > 0 && f64::from(count) * p_b >= self.drawn;
        if ends || count == 0 {
            self.drawn = self.stream.uniform();
        }
        self.since_signal = Some(if ends { 0 } else { count });
        ends
    }

    /// Whether chance, with the spread of `p_b`, picks this packet. One number is
    /// drawn, whatever the probability; none for the first packet under the guard, which
    /// passes and counts, as in ns-2 and ns-3.
    fn is_picked(&mut self, p_b: f64) -> bool {
        if self.detection.form == Form::Linux {
            return self.ends_gap(p_b);
        }
        let count = match self.since_signal {
            Some(count) => count.saturating_add(1),
            None if self.detection.guard => {
                self.since_signal = Some(1);
                return false;
            }
            None => 0,
        };
        let passed = f64::from(count) * p_b;
        let p_a = if self.detection.wait && passed < 1.0 {
            0.0
        } else {
            let rest = if self.detection.wait { 2.0 } else { 1.0 } - passed;
            if rest > 0.0 { p_b / rest } else { 1.0 }
        };
        let picked = self.stream.uniform() < p_a;
        self.since_signal = Some(if picked { 0 } else { count });
        picked
    }
}

impl Discipline for Red {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        self.update_average(now);
        let has_room = self.buffer.has_room(self.backlog, packet.size);
        // In the form of the paper there is no draw for a packet that has no room: it is
        // lost anyway, and tells its sender as much as a mark.
        if !has_room && self.detection.form == Form::Published {
            self.since_signal = Some(0);
            return losses.push(packet, LossReason::Refused);
        }
        let Detection { form, ecn, .. } = self.detection;
        let (is_hit, marks) = match self.verdict() {
            Verdict::Pass => {
                self.since_signal = None;
                (false, false)
            }
            Verdict::Chance(p_b) => (self.is_picked(p_b), ecn),
            Verdict::Drop => {
                self.since_signal = if form == Form::Linux { None } else { Some(0) };
                (true, ecn && form == Form::Linux)
            }
        };
        if is_hit && !(marks && packet.ecn.is_markable()) {
            return losses.push(packet, LossReason::Early);
        }
        if !has_room {
            return losses.push(packet, LossReason::Refused);
        }
        let marked = if is_hit { losses.signal(packet) } else { Some(packet) };
        let Some(packet) = marked else { return };
        self.backlog.add(packet.size);
        self.queue.push_back(packet);
    }

    fn dequeue(&mut self, now: Time, _losses: &mut Losses) -> Option<Packet> {
        let packet = self.queue.pop_front()?;
        self.backlog.remove(packet.size);
        if self.queue.is_empty() {
            self.empty_since = now;
        }
        Some(packet)
    }

    fn reconfigure(&mut self, _now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        self.detection = Detection::from_settings(settings);
        let before =
            std::mem::replace(&mut self.thresholds, Thresholds::new(&self.detection, buffer));
        match (before.in_bytes, self.thresholds.in_bytes) {
            (false, true) => self.average *= Thresholds::PACKET_BYTES,
            (true, false) => self.average /= Thresholds::PACKET_BYTES,
            _ => {}
        }
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
    use crate::packet::Ecn;
    use crate::units::{Amount, Bytes, Span};

    fn red(detection: Detection, packets: u32) -> Trial<Red> {
        Trial::new(Red::new(detection, Buffer::packets(packets), 1))
    }

    /// That of the paper as it came to be used: gentle, with the guard of ns-2.
    fn thresholds(min: u32, max: u32) -> Detection {
        Detection {
            form: Form::Published,
            min: Amount::Packets(min),
            max: Amount::Packets(max),
            probability: 0.1,
            weight: 0.002,
            gentle: true,
            guard: true,
            ecn: true,
            packet_time: Span::millis(1),
            ..Detection::default()
        }
    }

    fn linux(min: u32, max: u32) -> Detection {
        let (min, max) = (Amount::Packets(min), Amount::Packets(max));
        Detection { min, max, ..Detection::default() }
    }

    /// A weight that leaves the average where it is.
    const STILL: f64 = 1e-300;

    #[test]
    fn each_arrival_moves_the_average_towards_what_it_finds() {
        let mut trial = red(Detection { weight: 0.5, ..thresholds(50, 60) }, 100);
        let mut averages = Vec::new();
        for _ in 0..5 {
            trial.arrive('a', 1_500);
            averages.push(trial.discipline.average);
        }
        // Lengths 0, 1, 2, 3, 4.
        assert_eq!(averages, [0.0, 0.5, 1.25, 2.125, 3.0625]);
    }

    /// `Floyd 1993 section 6.1`: with `min` 5, a burst of 50 packets into an empty
    /// queue passes for a weight of up to 0.0042. The paper counts the arriving
    /// packet in, so it takes one more here.
    #[test]
    fn a_weight_of_42_in_10000_lets_a_burst_of_50_pass() {
        for (weight, passes) in [(0.0041, true), (0.0043, false)] {
            let mut trial = red(Detection { weight, ..thresholds(50, 60) }, 100);
            trial.arrive_all([('a', 1_500); 51]);
            assert_eq!(trial.discipline.average < 5.0, passes, "weight {weight}");
        }
    }

    #[test]
    fn the_probability_rises_from_min_to_max_and_gently_on_to_twice_max() {
        let verdict = |gentle, average| {
            let mut trial = red(Detection { gentle, ..thresholds(5, 15) }, 100);
            trial.arrive_all([('a', 1_500); 2]);
            trial.discipline.average = average;
            trial.discipline.verdict()
        };
        // Two packets are queued: the guard is another test's.
        for gentle in [true, false] {
            assert_eq!(verdict(gentle, 4.9), Verdict::Pass);
            assert_eq!(verdict(gentle, 5.0), Verdict::Chance(0.0));
            assert_eq!(verdict(gentle, 10.0), Verdict::Chance(0.05));
            assert_eq!(verdict(gentle, 30.0), Verdict::Drop);
        }
        assert_eq!(verdict(true, 15.0), Verdict::Chance(0.1));
        // 0.1 and half of the other 0.9.
        assert_eq!(verdict(true, 22.5), Verdict::Chance(0.55));
        assert_eq!(verdict(false, 15.0), Verdict::Drop);
    }

    /// Section 4 of the paper: with `count`, the gap is uniform, not geometric.
    /// As `count` is one at the first packet after a signal (figure 2), the longest
    /// gap is the one at which `1 - count p_b` is `p_b`: 9 for a tenth.
    #[test]
    fn gaps_between_signals_are_uniform() {
        const GAPS: u32 = 90_000;
        let mut red = red(thresholds(5, 15), 100).discipline;
        let mut times = [0_u32; 10];
        while !red.is_picked(0.1) {}
        for _ in 0..GAPS {
            let gap = (1..).find(|_| red.is_picked(0.1)).unwrap();
            times[gap] += 1;
        }
        assert_eq!(times[0], 0);
        for (gap, times) in times.iter().enumerate().skip(1) {
            // Five standard deviations of a count with probability 1/9.
            let off = times.abs_diff(GAPS / 9);
            assert!(off < 472, "{times} gaps of {gap}");
        }
    }

    /// With `wait` the gap is uniform on what follows the first `1 / p_b` packets: for
    /// a tenth, 9 packets pass, the 10th is picked with 0.1 / (2 - 1), and the 19th
    /// with 0.1 / (2 - 1.9), certainly.
    #[test]
    fn gaps_between_signals_wait_for_as_many_packets_again() {
        const GAPS: u32 = 90_000;
        let mut red = red(Detection { wait: true, ..thresholds(5, 15) }, 100).discipline;
        let mut times = [0_u32; 20];
        while !red.is_picked(0.1) {}
        for _ in 0..GAPS {
            let gap = (1..).find(|_| red.is_picked(0.1)).unwrap();
            times[gap] += 1;
        }
        assert_eq!(times[..10], [0; 10]);
        for (gap, times) in times.iter().enumerate().skip(10) {
            // Five standard deviations of a count with probability 1/10.
            let off = times.abs_diff(GAPS / 10);
            assert!(off < 450, "{times} gaps of {gap}");
        }
    }

    /// The average is far above twice `max`, where everything that is not spared goes.
    /// The first two packets find none and one queued; the third finds two. When the
    /// queue has been sent but for one packet, the next one is spared again.
    #[test]
    fn with_the_guard_nothing_is_dropped_that_finds_fewer_than_two_queued() {
        for (guard, lost) in [(true, vec![2, 3]), (false, vec![0, 1, 2, 3, 4])] {
            let mut trial = red(Detection { guard, weight: STILL, ..thresholds(5, 15) }, 100);
            trial.discipline.average = 40.0;
            trial.arrive_all([('a', 1_500); 4]);
            trial.send();
            trial.arrive('a', 1_500);
            let lost: Vec<_> = lost.into_iter().map(|n| (n, LossReason::Early)).collect();
            assert_eq!(trial.lost(), lost, "guard {guard}");
        }
    }

    /// The count begins anew after packets that passed without a chance, as below
    /// `min`: in figure 2 of the paper the first packet after them has a count of zero.
    /// With the guard it passes with a count of one, although chance is certain to pick.
    #[test]
    fn what_the_guard_spares_restarts_the_count() {
        let detection = Detection { probability: 1.0, weight: STILL, ..thresholds(5, 15) };
        for (guard, counts) in
            [(true, [None, None, Some(1), Some(0)]), (false, [Some(0), Some(0), Some(0), Some(0)])]
        {
            let mut trial = red(Detection { guard, gentle: false, ..detection }, 100);
            trial.discipline.average = 14.9;
            trial.discipline.since_signal = Some(7);
            let found = counts.map(|_| {
                trial.arrive('a', 1_500);
                trial.discipline.since_signal
            });
            assert_eq!(found, counts, "guard {guard}");
        }
    }

    /// Queued packets count, not bytes: two small ones are enough.
    #[test]
    fn the_guard_counts_packets_where_thresholds_are_in_bytes() {
        let size = |bytes| Amount::Bytes(Bytes(bytes));
        let detection = Detection { min: size(100), max: size(200), ..thresholds(0, 0) };
        let mut trial = red(Detection { weight: STILL, ..detection }, 100);
        trial.discipline.average = 500.0;
        trial.arrive_all([('a', 1_500), ('a', 40), ('a', 40)]);
        assert_eq!(trial.lost(), [(2, LossReason::Early)]);
    }

    #[test]
    fn an_idle_queue_lowers_the_average_by_the_packets_that_it_could_have_sent() {
        let mut trial = red(thresholds(50, 60), 100);
        trial.arrive('a', 1_500);
        trial.discipline.average = 10.0;
        trial.now += Span::seconds(1);
        assert_eq!(trial.send(), Some(0));
        trial.now += Span::millis(346);
        trial.arrive('a', 1_500);
        let expected = (0..346).fold(10.0, |average, _| average * (1.0 - 0.002));
        assert!((trial.discipline.average - expected).abs() < 1e-9, "half of it: {expected}");
    }

    #[test]
    fn what_chance_picks_is_marked_and_what_is_certain_to_go_is_dropped() {
        let sharp = Detection { weight: 1.0, probability: 1.0, guard: false, ..thresholds(1, 2) };
        for (ecn, marked, lost) in [(true, 2, vec![4]), (false, 0, vec![2, 3, 4])] {
            let mut trial = red(Detection { ecn, ..sharp }, 100);
            // The average is what a packet finds: 0 and 1 pass; while it finds 2 or
            // 3 chance has a probability of one; 4 is twice `max`.
            for _ in 0..5 {
                trial.arrive_as('a', 1_500, Ecn::Ect0);
            }
            assert_eq!(trial.marked(), marked);
            let lost: Vec<_> = lost.into_iter().map(|n| (n, LossReason::Early)).collect();
            assert_eq!(trial.lost(), lost);
        }
    }

    /// Uniform on 1 to 10 for a tenth, after one that is spared.
    #[test]
    fn gaps_of_linux_are_uniform_and_its_first_packet_passes() {
        const GAPS: u32 = 90_000;
        let mut red = red(linux(5, 15), 100).discipline;
        assert!(!red.is_picked(1.0) && red.is_picked(1.0));
        let mut times = [0_u32; 11];
        for _ in 0..GAPS {
            let gap = (1..).find(|_| red.is_picked(0.1)).unwrap();
            times[gap] += 1;
        }
        assert_eq!(times[0], 0);
        for (gap, times) in times.iter().enumerate().skip(1) {
            // Five standard deviations of a count with probability 1/10.
            let off = times.abs_diff(GAPS / 10);
            assert!(off < 450, "{times} gaps of {gap}");
        }
    }

    #[test]
    fn from_max_on_linux_drops_all_or_marks_what_can_be_marked() {
        for (ecn, lost) in [(false, vec![0, 1, 2]), (true, vec![2])] {
            let mut trial = red(Detection { ecn, weight: STILL, ..linux(5, 15) }, 100);
            trial.discipline.average = 15.0;
            trial.discipline.detection.idle = false;
            trial.arrive_as('a', 1_500, Ecn::Ect0);
            trial.arrive_as('a', 1_500, Ecn::Ect1);
            trial.arrive('a', 1_500);
            let lost: Vec<_> = lost.into_iter().map(|n| (n, LossReason::Early)).collect();
            assert_eq!(trial.lost(), lost);
            assert_eq!(trial.discipline.since_signal, None);
        }
    }

    #[test]
    fn without_idle_an_empty_queue_moves_the_average_as_any_length_does() {
        for (idle, expected) in [(true, 512.0), (false, 960.0)] {
            let mut trial = red(Detection { idle, weight: 1.0 / 16.0, ..linux(5, 15) }, 100);
            trial.discipline.average = 1_024.0;
            trial.now += Span::millis(100);
            trial.arrive('a', 1_500);
            assert_eq!(trial.discipline.average.to_bits(), f64::to_bits(expected));
        }
    }

    #[test]
    fn in_linux_chance_decides_before_the_full_buffer_refuses() {
        let mut trial = red(Detection { weight: STILL, ..linux(1, 60) }, 2);
        trial.discipline.average = 30.0;
        trial.discipline.detection.idle = false;
        trial.arrive_all([('a', 100); 3]);
        // The first is spared; the number drawn is above 3 * 0.02 * 29/59.
        assert_eq!(trial.lost(), [(2, LossReason::Refused)]);
        assert_eq!(trial.discipline.since_signal, Some(2));
    }

    #[test]
    fn a_full_buffer_refuses_and_that_counts_as_a_signal() {
        let mut trial = red(thresholds(1, 60), 2);
        trial.discipline.average = 30.0;
        trial.discipline.since_signal = Some(3);
        trial.discipline.detection.probability = 0.0;
        trial.arrive_all([('a', 100); 3]);
        assert_eq!(trial.lost(), [(2, LossReason::Refused)]);
        assert_eq!(trial.discipline.since_signal, Some(0));
    }
}
