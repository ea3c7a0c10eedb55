//! The law of PIE: how often arriving packets have to go.
//!
//! A controller sets a probability every `update`, from how far the delay is from the
//! target and how fast it grows: [`Controller::advance`]. Arrivals are hit with that
//! probability: [`Controller::admit`]. One controller serves one queue.
//!
//! There is no timer. An update that is due is made up for at the next call, as of
//! the time at which it was due: between two calls only time changes, so the result
//! is that of a timer. Repeated under an unchanged delay, updates reach a point at
//! which they change nothing any more, and there the loop ends; it also ends after
//! 4 000 updates, so that no silence is expensive.
//!
//! The delay is that of the packet that left last (`RFC 8033 section 4.3`,
//! timestamps), in both forms; a queue that is left empty has none, as section 4.3's
//! other method would say. Otherwise the controller would work on a stale sample until
//! somebody sends again.
//!
//! The two forms (Linux 7.3: `sch_pie`, `include/net/pie.h`; `RFC 8033 Appendix A`)
//! differ in this:
//!
//! | | Linux | RFC 8033 |
//! | --- | --- | --- |
//! | who is hit | nobody before the probabilities since the last loss add up to 0.85, everybody from 8.5 on (the RFC's option, section 5.4) | each packet with the probability |
//! | what is spared | all while the delay is below half the target and the probability below 20 %; a queue of less than two packets of 1 500 bytes | the same by the delay at the last update; a queue of two of 1 024 bytes or less |
//! | the burst allowance | is renewed by an update that finds no probability and two short delays, and used up by the time between departures | is renewed by an arrival, and used up by updates |
//! | a delay above 250 ms | adds two percentage points to each update | adds nothing |
//! | without delay | the probability falls by 1/64, unless bytes are queued | by 2 % |
//! | the probability | may rise to 256, and has to come down again | ends at one |
//!
//! The last row is no oversight here: in Linux 2^56 stands for one in a number of 64
//! bits, and only that number's end is checked. Under a flood that no loss slows down
//! the sum goes on growing, and once the flood has ended it takes seconds to fall.
//!
//! Probabilities are 64-bit floats, on which only `+ - * /` are used: these give the
//! same bits on every machine. (Linux counts them in 2^-56, and time in 64 ns.)

use super::form::Form;
use super::pie_tuning::Tuning;
use super::{LossReason, Losses};
use crate::packet::Packet;
use crate::random::Stream;
use crate::units::{Span, Time};

/// `MEAN_PKTSIZE`, which RFC 8033 leaves open (`RFC 8034 Appendix A`).
const MEAN_PACKET_BYTES: u128 = 1_024;

/// `psched_mtu` of an Ethernet, whose header the sizes of packets do not have here.
const LARGEST_PACKET_BYTES: u128 = 1_500;

/// The most updates made up for, however long ago the last one was: a minute's
/// worth at the default, after which all but contrived states are at rest.
const MOST_UPDATES: u64 = 4_000;

/// What the probabilities have to add up to before a packet can be hit, and from
/// which sum on every packet is (`RFC 8033 section 5.4`).
const LEAST_SUM: f64 = 0.85;
const MOST_SUM: f64 = 8.5;

/// The end of Linux's probability, as a multiple of one; beyond it, it is one.
const CEILING: f64 = 256.0;

/// The controller of one queue: from delays to a drop probability. Its default is
/// that of a queue that was always empty. It is of the form of its first tuning.
#[derive(Clone, Debug, Default)]
pub(crate) struct Controller {
    /// `drop_prob_`
    probability: f64,
    /// What the probabilities add up to since a packet was last dropped: `accu_prob`.
    sum: f64,
    /// `current_qdelay`
    delay: Span,
    /// `qdelay_old_`: the delay at the last update.
    delay_before: Span,
    /// What is left of it; Linux begins with all of it.
    burst_allowance: Option<Span>,
    /// When the last update was due. All queues keep the same beat, from the
    /// start of time on.
    updated: Time,
    /// When a packet last left, if one has since the allowance was renewed.
    departed: Option<Time>,
}

impl Controller {
    /// Makes up for the updates that were due until `now`, while `queued` bytes were
    /// in the queue.
    pub(crate) fn advance(&mut self, tuning: &Tuning, now: Time, queued: u128) {
        let since = now.since(self.updated);
        if since < tuning.update {
            return;
        }
        let due = since.0 / tuning.update.0;
        self.updated += tuning.update * due;
        if tuning.form == Form::Published {
            self.use_up_allowance(tuning, tuning.update * due);
        }
        for _ in 0..due.min(MOST_UPDATES) {
            let before = (self.probability, self.delay_before);
            self.update(tuning, queued);
            if (self.probability, self.delay_before) == before {
                return;
            }
        }
    }

    /// One update of the probability (`RFC 8033 section 4.2`).
    fn update(&mut self, tuning: &Tuning, queued: u128) {
        let [delay, before, target] =
            [self.delay, self.delay_before, tuning.target].map(Span::as_seconds);
        let change = tuning.alpha * (delay - target) + tuning.beta * (delay - before);
        let mut change = change / auto_tuning(self.probability);
        // Slow start of a single flow must not run the probability up (section 5.5).
        if self.probability >= 0.1 && change > 0.02 {
            change = 0.02;
        }
        let is_idle = self.delay == Span::ZERO && self.delay_before == Span::ZERO;
        match tuning.form {
            Form::Published => {
                self.probability += change;
                if is_idle {
                    self.probability *= 0.98;
                }
                self.probability = self.probability.clamp(0.0, 1.0);
            }
            Form::Linux => {
                if self.delay > Span::millis(250) {
                    change += 0.02;
                }
                self.probability = (self.probability + change).max(0.0);
                if self.probability >= CEILING {
                    self.probability = 1.0;
                } else if is_idle && queued == 0 {
                    self.probability -= self.probability / 64.0;
                }
                if self.is_quiet(tuning) {
                    self.burst_allowance = Some(tuning.burst);
                    self.sum = 0.0;
                    self.departed = None;
                }
            }
        }
        self.delay_before = self.delay;
    }

    /// Whether nothing is wrong and nothing was at the last update.
    fn is_quiet(&self, tuning: &Tuning) -> bool {
        self.probability == 0.0 && tuning.is_short(self.delay) && tuning.is_short(self.delay_before)
    }

    fn use_up_allowance(&mut self, tuning: &Tuning, time: Span) {
        let allowance = self.burst_allowance.unwrap_or(tuning.burst);
        self.burst_allowance = Some(allowance - time);
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
        if tuning.form == Form::Published && self.is_quiet(tuning) {
            self.burst_allowance = Some(tuning.burst);
        }
        if self.burst_allowance.unwrap_or(tuning.burst) > Span::ZERO
            || self.is_safeguarded(tuning, queued)
            || !self.is_hit(tuning, random)
        {
            return Some(packet);
        }
        let marks = match tuning.form {
            Form::Linux => self.probability <= tuning.ecn_threshold,
            Form::Published => self.probability < tuning.ecn_threshold,
        };
        if tuning.ecn && marks && packet.ecn.is_markable() {
            return losses.signal(packet);
        }
        self.lost();
        losses.push(packet, LossReason::Early);
        None
    }

    /// Keeps the link busy: no drops while the delay is short and the
    /// probability moderate, or while little is queued (`RFC 8033 section 4.1`).
    fn is_safeguarded(&self, tuning: &Tuning, queued: u128) -> bool {
        match tuning.form {
            Form::Linux => {
                (tuning.is_short(self.delay) && self.probability < 0.2)
                    || queued < 2 * LARGEST_PACKET_BYTES
            }
            Form::Published => {
                (tuning.is_short(self.delay_before) && self.probability < 0.2)
                    || queued <= 2 * MEAN_PACKET_BYTES
            }
        }
    }

    /// Whether a packet is to be dropped or marked. Linux draws no number where the sum
    /// decides; a packet that is hit because the sum is too large and then marked leaves
    /// the sum as it is, so that the next one is hit too.
    fn is_hit(&mut self, tuning: &Tuning, random: &mut Stream) -> bool {
        if tuning.form == Form::Published {
            return random.uniform() < self.probability;
        }
        self.sum = if self.probability == 0.0 { 0.0 } else { self.sum + self.probability };
        if self.sum < LEAST_SUM || self.sum >= MOST_SUM {
            return self.sum >= MOST_SUM;
        }
        let is_hit = random.uniform() < self.probability;
        if is_hit {
            self.sum = 0.0;
        }
        is_hit
    }

    /// An arriving packet was lost, be it that the buffer was full.
    pub(crate) fn lost(&mut self) {
        self.sum = 0.0;
    }

    /// A packet has been sent at `now`, and left this many bytes behind. Call it after
    /// [`Controller::advance`].
    pub(crate) fn sent(&mut self, tuning: &Tuning, now: Time, packet: &Packet, left: u128) {
        self.delay = if left > 0 { now.since(packet.arrived) } else { Span::ZERO };
        if tuning.form == Form::Linux {
            let before = self.departed.replace(now);
            self.use_up_allowance(tuning, before.map_or(Span::ZERO, |before| now.since(before)));
        }
    }

    /// The queue has lost all that it had. Call it after [`Controller::advance`].
    pub(crate) fn emptied(&mut self) {
        self.delay = Span::ZERO;
    }
}

/// The divisor of a change of the probability: small probabilities take small steps
/// (`RFC 8033 section 4.2`; Linux has the same table).
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::pie;
    use crate::packet::{Ecn, FlowKey};
    use crate::units::Bytes;

    const FORMS: [&str; 2] = ["linux", "rfc"];

    fn tuning(form: &str) -> Tuning {
        let settings = pie::ENTRY.settings(&[("form", form), ("ecn", "on")]).unwrap();
        Tuning::from_settings(&settings)
    }

    /// The probability after one update of a queue that holds this many bytes.
    fn updated_with(form: &str, probability: f64, delays: [u64; 2], queued: u128) -> f64 {
        let [delay, delay_before] = delays.map(Span::millis);
        let mut controller =
            Controller { probability, delay, delay_before, ..Controller::default() };
        controller.advance(&tuning(form), Time(15_000_000), queued);
        controller.probability
    }

    fn updated(form: &str, probability: f64, delay: u64, before: u64) -> f64 {
        updated_with(form, probability, [delay, before], 10_000)
    }

    #[track_caller]
    fn assert_near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-14 * expected.max(1.0), "{found}, not {expected}");
    }

    #[test]
    fn an_update_weighs_the_distance_from_the_target_and_the_trend() {
        for form in FORMS {
            // 0.125 * (25 ms - 15 ms) + 1.25 * (25 ms - 20 ms) = 0.00125 + 0.00625
            assert_near(updated(form, 0.5, 25, 20), 0.5075);
            // 0.125 * (10 ms - 15 ms) + 1.25 * (10 ms - 20 ms) = -0.000625 - 0.0125
            assert_near(updated(form, 0.5, 10, 20), 0.486_875);
            assert_near(updated(form, 0.01, 10, 40), 0.0);
        }
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
            for form in FORMS {
                assert_near(updated(form, probability, 25, 25), probability + 0.001_25 / divisor);
            }
        }
    }

    #[test]
    fn from_ten_per_cent_on_a_step_up_is_at_most_two_per_cent() {
        for form in FORMS {
            // 0.125 * (100 ms - 15 ms) + 1.25 * 100 ms = 0.010625 + 0.125
            assert_near(updated(form, 0.1, 100, 0), 0.12);
            assert_near(updated(form, 0.09, 100, 0), 0.09 + 0.135_625 / 2.0);
            assert_near(updated(form, 0.5, 0, 100), 0.5 - 0.126_875);
        }
    }

    #[test]
    fn in_linux_more_than_250_ms_add_two_per_cent_to_each_step() {
        // 0.125 * (250 ms - 15 ms) = 0.029375, capped from a tenth on.
        for (form, at_250, at_251) in [("linux", 0.22, 0.24), ("rfc", 0.22, 0.22)] {
            assert_near(updated(form, 0.2, 250, 250), at_250);
            assert_near(updated(form, 0.2, 251, 251), at_251);
        }
        // 0.125 * (251 ms - 15 ms) = 0.0295, divided by 2 048.
        assert_near(updated("linux", 0.0, 251, 251), 0.02 + 0.029_5 / 2_048.0);
    }

    #[test]
    fn in_linux_the_probability_passes_one_and_falls_back_to_it_at_256() {
        assert_near(updated("rfc", 0.999, 100, 100), 1.0);
        assert_near(updated("linux", 0.999, 100, 100), 0.999 + 0.010_625);
        assert_near(updated("linux", 255.9, 100, 100), 255.910_625);
        assert_near(updated("linux", 255.99, 100, 100), 1.0);
    }

    #[test]
    fn without_delay_the_probability_decays_but_in_linux_not_while_bytes_are_queued() {
        // 0.125 * (0 - 15 ms) = -0.001875
        for (form, queued, share) in
            [("rfc", 0, 0.98), ("rfc", 1, 0.98), ("linux", 0, 63.0 / 64.0), ("linux", 1, 1.0)]
        {
            assert_near(updated_with(form, 0.5, [0, 0], queued), (0.5 - 0.001_875) * share);
        }
    }

    #[test]
    fn missed_updates_are_made_up_for_one_by_one_and_no_silence_is_costly() {
        for form in FORMS {
            let start = Controller {
                probability: 0.5,
                delay_before: Span::millis(40),
                ..Controller::default()
            };
            let (mut at_once, mut stepwise) = (start.clone(), start.clone());
            for update in 1..=100 {
                stepwise.advance(&tuning(form), Time::ZERO + Span::millis(15) * update, 0);
            }
            at_once.advance(&tuning(form), Time(1_514_999_999), 0);
            assert_eq!(at_once.probability.to_bits(), stepwise.probability.to_bits());
            assert!(at_once.probability > 0.0 && at_once.probability < 0.5);
            let mut ages_later = start;
            ages_later.advance(&tuning(form), Time::FAR_FUTURE, 0);
            assert_near(ages_later.probability, 0.0);
            assert!(ages_later.updated > Time(u64::MAX - 15_000_000));
        }
    }

    /// A controller with this probability and a long delay, at the end of its burst
    /// allowance, and the packets that it is asked about.
    struct Congested {
        tuning: Tuning,
        controller: Controller,
        random: Stream,
        losses: Losses,
    }

    fn congested(form: &str, probability: f64) -> Congested {
        let [delay, delay_before] = [Span::millis(20); 2];
        let burst_allowance = Some(Span::ZERO);
        let controller = Controller {
            probability,
            delay,
            delay_before,
            burst_allowance,
            ..Controller::default()
        };
        let (random, losses) = (Stream::new(1, "pie"), Losses::new());
        Congested { tuning: tuning(form), controller, random, losses }
    }

    impl Congested {
        /// Whether a packet passes that finds 10 000 bytes queued.
        fn passes(&mut self, ecn: Ecn) -> bool {
            self.passes_behind(ecn, 10_000)
        }

        fn passes_behind(&mut self, ecn: Ecn, queued: u128) -> bool {
            let flow = FlowKey::v4([192, 0, 2, 1], 1, [198, 51, 100, 1], 443, FlowKey::TCP);
            let packet = Packet { ecn, ..Packet::new(0, flow, Bytes(1_000)) };
            let Congested { tuning, controller, random, losses } = self;
            controller.admit(tuning, packet, queued, random, losses).is_some()
        }

        fn drops(&mut self, packets: u32) -> Vec<u32> {
            (1..=packets).filter(|_| !self.passes(Ecn::NotEct)).collect()
        }
    }

    /// With 1/16, sums are exact: 13/16 is below 0.85 and 14/16 is not, 135/16 is below
    /// 8.5 and 136/16 is 8.5.
    #[test]
    fn in_linux_no_packet_is_hit_before_the_probabilities_add_up_to_85_per_cent() {
        let mut queue = congested("linux", 1.0 / 16.0);
        let mut gaps = Vec::new();
        let mut passed = 0;
        for _ in 0..100_000 {
            passed += 1;
            if !queue.passes(Ecn::NotEct) {
                gaps.push(std::mem::take(&mut passed));
            }
        }
        assert_eq!(gaps.iter().min(), Some(&14));
        assert!(*gaps.iter().max().unwrap() <= 136);
        // 13 packets pass; then the mean of a geometric gap of 1/16 is 16: 29 in all.
        // Its deviation is 15.5, and five deviations of the mean of 3 400 gaps are 1.3.
        let mean = f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
        assert!((mean - 29.0).abs() < 1.3, "{mean}");
        // The RFC's gaps are geometric: 16 in the mean, often one.
        let mut queue = congested("rfc", 1.0 / 16.0);
        let drops = queue.drops(100_000);
        assert!(drops.windows(2).any(|pair| pair[1] == pair[0] + 1));
        assert!(drops.len().abs_diff(6_250) < 400, "{}", drops.len());
    }

    #[test]
    fn in_linux_every_packet_is_hit_once_they_add_up_to_eight_and_a_half() {
        let mut queue = congested("linux", 1.0 / 16.0);
        queue.controller.sum = 134.0 / 16.0;
        // The draw of the stream's first number, 135/16, does not hit.
        assert!(Stream::new(1, "pie").uniform() >= 1.0 / 16.0);
        assert!(queue.passes(Ecn::NotEct));
        assert!(!queue.passes(Ecn::NotEct));
        assert_near(queue.controller.sum, 0.0);
        // A mark leaves the sum, so the next packet is hit too.
        queue.controller.sum = 136.0 / 16.0;
        assert!(queue.passes(Ecn::Ect0) && queue.passes(Ecn::Ect0));
        assert_eq!(queue.losses.marked(), 2);
        assert!(!queue.passes(Ecn::NotEct));
        assert_near(queue.controller.sum, 0.0);
    }

    #[test]
    fn in_linux_a_refused_packet_and_a_probability_of_zero_restart_the_sum() {
        let mut queue = congested("linux", 0.25);
        queue.controller.sum = 0.5;
        queue.controller.lost();
        // 0.25, 0.5, 0.75: no draw.
        assert_eq!(queue.drops(3), []);
        assert_near(queue.controller.sum, 0.75);
        queue.controller.probability = 0.0;
        assert_eq!(queue.drops(1), []);
        assert_near(queue.controller.sum, 0.0);
    }

    #[test]
    fn the_burst_allowance_returns_once_the_queue_was_quiet() {
        let (short, half) = (Span(7_499_999), Span(7_500_000));
        let cases = [(0.0, half, short), (0.0, short, half), (1e-9, short, short)];
        for (form, quiet) in [("linux", false), ("rfc", true)] {
            let allowance = |probability, delay, before| {
                let mut queue = congested(form, probability);
                (queue.controller.delay, queue.controller.delay_before) = (delay, before);
                assert!(queue.passes(Ecn::NotEct));
                queue.controller.burst_allowance.unwrap()
            };
            for (probability, delay, before) in cases {
                assert_eq!(allowance(probability, delay, before), Span::ZERO);
            }
            // In Linux it is the update that renews it, and not the packet.
            assert_eq!(allowance(0.0, short, short) == Span::millis(150), quiet, "{form}");
        }
        let mut queue = congested("linux", 0.0);
        queue.controller.sum = 0.5;
        queue.controller.departed = Some(Time::ZERO);
        (queue.controller.delay, queue.controller.delay_before) = (short, short);
        queue.controller.advance(&queue.tuning, Time(15_000_000), 0);
        let Controller { burst_allowance, sum, departed, .. } = queue.controller;
        assert_eq!((burst_allowance, sum, departed), (Some(Span::millis(150)), 0.0, None));
    }

    #[test]
    fn in_linux_the_time_between_departures_uses_up_the_allowance() {
        let flow = FlowKey::v4([192, 0, 2, 1], 1, [198, 51, 100, 1], 443, FlowKey::TCP);
        let packet = Packet::new(0, flow, Bytes(1_000));
        let mut queue = congested("linux", 0.5);
        queue.controller.burst_allowance = None;
        // The first departure only starts the clock; then 100 ms, then 50.
        for (millis, passes) in [(1_000, true), (1_100, true), (1_149, true), (1_150, false)] {
            let now = Time::ZERO + Span::millis(millis);
            queue.controller.sent(&queue.tuning, now, &packet, 1);
            queue.controller.sum = MOST_SUM;
            assert_eq!(queue.passes(Ecn::NotEct), passes, "at {millis} ms");
        }
    }

    #[test]
    fn in_the_rfc_ten_updates_use_up_the_allowance() {
        let mut queue = congested("rfc", 1.0);
        queue.controller.burst_allowance = Some(Span::millis(150));
        for update in 1..=10 {
            assert!(queue.passes(Ecn::NotEct), "before update {update}");
            queue.controller.delay = Span::seconds(1);
            queue.controller.advance(&queue.tuning, Time::ZERO + Span::millis(15) * update, 1);
        }
        assert!(!queue.passes(Ecn::NotEct));
    }

    #[test]
    fn short_delays_and_short_queues_are_safe_from_drops() {
        let safe = |form, probability, [delay, before]: [u64; 2], queued| {
            let (delay, delay_before) = (Span(delay), Span(before));
            let controller =
                Controller { probability, delay, delay_before, ..Controller::default() };
            controller.is_safeguarded(&tuning(form), queued)
        };
        let (short, half) = (7_499_999, 7_500_000);
        // Linux looks at the delay now, the RFC at that of the last update.
        for (form, good, bad) in
            [("linux", [short, half], [half, short]), ("rfc", [half, short], [short, half])]
        {
            assert!(safe(form, 0.199, good, 4_000));
            assert!(!safe(form, 0.2, good, 4_000));
            assert!(!safe(form, 0.199, bad, 4_000));
        }
        let long = [20_000_000; 2];
        assert!(safe("linux", 1.0, long, 2_999) && !safe("linux", 1.0, long, 3_000));
        assert!(safe("rfc", 1.0, long, 2_048) && !safe("rfc", 1.0, long, 2_049));
    }

    #[test]
    fn marks_up_to_the_threshold_and_drops_beyond() {
        // At a tenth itself, Linux marks and the RFC drops.
        for (form, probability, marks) in [
            ("linux", 0.1, true),
            ("linux", 0.101, false),
            ("rfc", 0.099, true),
            ("rfc", 0.1, false),
        ] {
            let mut queue = congested(form, probability);
            let passed = (0..1_000).filter(|_| queue.passes(Ecn::Ect0)).count();
            let (marked, lost) = (queue.losses.marked(), queue.losses.as_slice().len());
            assert_eq!(passed + lost, 1_000);
            assert!(if marks { marked > 40 && lost == 0 } else { marked == 0 && lost > 40 });
        }
        let mut queue = congested("linux", 0.1);
        queue.tuning.ecn = false;
        assert!((0..1_000).any(|_| !queue.passes(Ecn::Ect0)) && queue.losses.marked() == 0);
    }

    #[test]
    fn the_delay_is_that_of_the_last_packet_and_none_when_the_queue_is_empty() {
        let flow = FlowKey::v4([192, 0, 2, 1], 1, [198, 51, 100, 1], 443, FlowKey::TCP);
        let packet = Packet { arrived: Time(5), ..Packet::new(0, flow, Bytes(1_000)) };
        for form in FORMS {
            let mut controller = Controller::default();
            controller.sent(&tuning(form), Time(12), &packet, 1_000);
            assert_eq!(controller.delay, Span(7));
            controller.sent(&tuning(form), Time(24), &packet, 0);
            assert_eq!(controller.delay, Span::ZERO);
        }
    }
}
