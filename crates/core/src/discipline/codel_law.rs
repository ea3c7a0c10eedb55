//! The law of CoDel: when the packet at the head of a queue has to go.
//!
//! A standing queue is one whose packets have all waited for at least `target`
//! during a whole `interval`: bursts come and go within a round trip, a standing
//! queue does not. When there is one, the law drops or marks a packet at the head,
//! and then another after `interval / sqrt(n)`, where `n` is the number of times it
//! has done so: a TCP sender's rate falls with the square root of its loss ratio,
//! so the pressure on it grows linearly (`RFC 8289 section 3.3`). It ends with the
//! first packet that waited for less.
//!
//! It decides as a packet leaves and looks only at that packet's wait and at what
//! is left in the queue, so it costs nothing at the tail. A packet that is marked is
//! sent, as the one packet of this call, and counts as a drop, as in Linux and ns-3.
//!
//! It has one state for each queue, and two forms: the pseudo-code of `RFC 8289
//! section 5`, and Linux 7.3 (`include/net/codel_impl.h`), which differ in this:
//!
//! - The root. In the form of the RFC `interval / sqrt(n)` is rounded down to a
//!   nanosecond. Linux keeps `1 / sqrt(n)` in 16 bits and improves it by one step of
//!   Newton's iteration whenever `n` changes. Where `n` goes up by one, that is within
//!   a few per cent from the third drop on. Where it jumps, by what a full buffer of
//!   FQ-CoDel has lost, the step may end anywhere, for the iteration begins outside of
//!   where it converges and its products wrap around; they do so here too.
//! - A call that drops 256 packets ends there, with the next drop planned from now on.
//! - In Linux a wait is too long only after the interval, not at its very end.
//! - `RFC 8290 section 5.2.2` raises the target where a packet takes longer than that
//!   to send; Linux does not.
//! - Linux can mark all packets that waited for longer than a `ce_threshold`, in FQ-CoDel
//!   also those of low-latency traffic alone.
//!
//! Linux counts time in 1 024 ns, in 32 bits, which end after 73 minutes; here it is
//! in nanoseconds in both forms, and ends after centuries.

use super::form::Form;
use super::{LossReason, Losses};
use crate::entry::Place;
use crate::packet::{Ecn, Packet};
use crate::setting::{Kind, Parameter, Settings};
use crate::units::{Bytes, Rate, Span, Time};

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelParameters {
    /// Whose rules apply.
    pub form: Form,
    /// A wait that is acceptable for a standing queue.
    pub target: Span,
    /// How long all packets must have waited for more: about a round trip.
    pub interval: Span,
    /// A queue of no more than one such packet cannot be called too long.
    pub mtu: Bytes,
    /// Whether packets of senders that understand marks are marked.
    pub ecn: bool,
    /// A wait beyond which every packet is marked that can be; zero for none.
    pub ce_threshold: Span,
    /// Whether only ECT(1) is marked for that.
    pub ce_threshold_ect1: bool,
}

impl CodelParameters {
    /// Registers [`CodelParameters::target`] (`RFC 8289 section 4.4`).
    pub(crate) const TARGET: Parameter = Parameter {
        name: "target",
        help: "acceptable wait of the packets of a standing queue",
        kind: Kind::Span { least: Span(1), most: Span::seconds(60) },
        default: "5 ms",
    };

    /// Registers [`CodelParameters::interval`] (`RFC 8289 section 4.3`).
    pub(crate) const INTERVAL: Parameter = Parameter {
        name: "interval",
        help: "time for which every packet must have exceeded the target; about the longest usual \
               round trip",
        kind: Kind::Span { least: Span(1), most: Span::seconds(60) },
        default: "100 ms",
    };

    /// Registers [`CodelParameters::mtu`]. `RFC 8289 section 5.2` starts from 512
    /// bytes and asks for the interface's own: that of Ethernet, without the header,
    /// which sizes do not include here. (Linux's `psched_mtu` and sizes do.)
    pub(crate) const MTU: Parameter = Parameter {
        name: "mtu",
        help: "the largest packet: a queue of no more bytes than this is left alone",
        kind: Kind::Bytes { least: Bytes(0), most: Bytes(1_000_000) },
        default: "1500 B",
    };

    /// Registers [`CodelParameters::ecn`], which in Linux is off for CoDel and on for
    /// FQ-CoDel.
    pub(crate) const ECN: Parameter = Parameter {
        name: "ecn",
        help: "on: packets whose senders understand marks are marked instead of dropped",
        kind: Kind::Switch,
        default: "off",
    };

    /// Registers [`CodelParameters::ce_threshold`], an option of Linux that is off.
    pub(crate) const CE_THRESHOLD: Parameter = Parameter {
        name: "ce_threshold",
        help: "wait beyond which all packets are marked whose senders understand that; zero: none",
        kind: Kind::Span { least: Span::ZERO, most: Span::seconds(60) },
        default: "0 s",
    };

    /// The values of the parameters.
    pub(crate) fn from_settings(settings: &Settings) -> CodelParameters {
        CodelParameters {
            form: Form::from_settings(settings),
            target: settings.span(Self::TARGET.name),
            interval: settings.span(Self::INTERVAL.name),
            mtu: settings.bytes(Self::MTU.name),
            ecn: settings.switch(Self::ECN.name),
            ce_threshold: settings.span(Self::CE_THRESHOLD.name),
            ce_threshold_ect1: false,
        }
    }

    /// The same in front of a link of this `rate`. Where a packet takes longer
    /// than the target, the law would never leave off (`RFC 8290 section 5.2.2`):
    /// there the target is the time of one and a half of the largest packets, as in
    /// CAKE's shaper.
    #[must_use]
    pub fn at_rate(self, rate: Rate) -> CodelParameters {
        let packets = Span(rate.transmission(self.mtu).0.saturating_mul(3) / 2);
        CodelParameters { target: self.target.max(packets), ..self }
    }

    /// What `settings` mean for a queue in this place.
    pub(crate) fn in_place(settings: &Settings, place: Place) -> CodelParameters {
        let parameters = CodelParameters::from_settings(settings);
        match (parameters.form, place.rate) {
            (Form::Published, Some(rate)) => parameters.at_rate(rate),
            _ => parameters,
        }
    }

    /// Tells the sender of `packet` of congestion; the packet when it still goes.
    fn signal(&self, packet: Packet, losses: &mut Losses) -> Option<Packet> {
        if self.ecn {
            return losses.signal(packet);
        }
        losses.push(packet, LossReason::Early);
        None
    }
}

impl CodelParameters {
    /// Marks a packet that waited for too long for senders that want to hear of it at
    /// once.
    fn mark_late(&self, now: Time, packet: Packet, losses: &mut Losses) -> Option<Packet> {
        let is_late =
            self.ce_threshold > Span::ZERO && now.since(packet.arrived) > self.ce_threshold;
        let is_meant = match packet.ecn {
            Ecn::Ect1 => true,
            Ecn::Ect0 => !self.ce_threshold_ect1,
            Ecn::NotEct | Ecn::Ce => false,
        };
        if is_late && is_meant { losses.signal(packet) } else { Some(packet) }
    }
}

/// `interval / sqrt(count)` rounded down: the time from one drop to the next
/// (`RFC 8289 section 5.6`). Exact, for the integer part of a root is the root
/// of the integer part.
pub(crate) fn drop_spacing(interval: Span, count: u32) -> Span {
    let square = u128::from(interval.0) * u128::from(interval.0);
    // The root of the square of 64 bits has 64 bits.
    Span((square / u128::from(count.max(1))).isqrt() as u64)
}

/// A queue's state (`RFC 8289 section 5.2`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CodelLaw {
    /// When the wait will have been at least `target` for a whole interval;
    /// nothing while it is below.
    first_above: Option<Time>,
    /// Whether the queue is being dropped from.
    dropping: bool,
    /// When to drop next.
    drop_next: Time,
    /// Drops since dropping began, or as many as the rate stands for.
    count: u32,
    /// What `count` was as dropping began.
    last_count: u32,
    /// Linux's `1 / sqrt(count)` in 2^-16.
    inverse_root: u16,
}

/// A packet that has just been taken out.
struct Taken {
    packet: Packet,
    /// Whether the wait has been too long for an interval.
    is_late: bool,
}

/// The most packets that a call drops in Linux.
const MOST_DROPS: u32 = 256;

impl CodelLaw {
    /// The packet to send at `now`, after dropping as many as the law demands.
    /// `pop` takes out the head and says how many bytes are left behind it; a head
    /// that leaves no more than the MTU is never dropped.
    pub(crate) fn dequeue(
        &mut self,
        parameters: &CodelParameters,
        now: Time,
        losses: &mut Losses,
        pop: impl FnMut() -> Option<(Packet, u128)>,
    ) -> Option<Packet> {
        let packet = self.decide(parameters, now, losses, pop)?;
        parameters.mark_late(now, packet, losses)
    }

    fn decide(
        &mut self,
        parameters: &CodelParameters,
        now: Time,
        losses: &mut Losses,
        mut pop: impl FnMut() -> Option<(Packet, u128)>,
    ) -> Option<Packet> {
        let mut head = self.take(parameters, now, &mut pop)?;
        if !self.dropping {
            if !head.is_late {
                return Some(head.packet);
            }
            let sent = match parameters.signal(head.packet, losses) {
                Some(marked) => Some(marked),
                None => self.take(parameters, now, &mut pop).map(|next| next.packet),
            };
            self.start_dropping(parameters, now);
            return sent;
        }
        self.dropping = head.is_late;
        let mut drops = 0;
        while self.dropping && now >= self.drop_next {
            drops += 1;
            if drops > MOST_DROPS && parameters.form == Form::Linux {
                self.drop_next = now + self.spacing(parameters);
                break;
            }
            self.set_count(self.count.saturating_add(1));
            let spacing = self.spacing(parameters);
            if let Some(marked) = parameters.signal(head.packet, losses) {
                self.drop_next += spacing;
                return Some(marked);
            }
            head = self.take(parameters, now, &mut pop)?;
            self.dropping = head.is_late;
            if self.dropping {
                // From the time at which that was due, not from now: the rate is
                // kept even where packets are further apart than drops.
                self.drop_next += spacing;
            }
        }
        Some(head.packet)
    }

    /// Takes out the head and looks at its wait (`dodequeue`, `RFC 8289 section 5.6`).
    fn take(
        &mut self,
        parameters: &CodelParameters,
        now: Time,
        pop: &mut impl FnMut() -> Option<(Packet, u128)>,
    ) -> Option<Taken> {
        let Some((packet, left)) = pop() else {
            self.first_above = None;
            self.dropping = false;
            return None;
        };
        let is_late = self.is_late(parameters, now, packet.arrived, left);
        Some(Taken { packet, is_late })
    }

    /// Looks at a head that `arrived` then and leaves so many bytes behind it: whether waits
    /// have now been too long for an interval. If they have not, [`CodelLaw::dequeue`] would
    /// send this head; who asks first saves its copies of the packet.
    pub(crate) fn is_late(
        &mut self,
        parameters: &CodelParameters,
        now: Time,
        arrived: Time,
        left: u128,
    ) -> bool {
        if now.since(arrived) < parameters.target || left <= u128::from(parameters.mtu.0) {
            self.first_above = None;
            self.dropping = false;
            return false;
        }
        let Some(since) = self.first_above else {
            self.first_above = Some(now + parameters.interval);
            self.dropping = false;
            return false;
        };
        let is_late = match parameters.form {
            Form::Linux => now > since,
            Form::Published => now >= since,
        };
        self.dropping &= is_late;
        is_late
    }

    /// Begins to drop. If it had stopped for less than 16 intervals, it resumes at
    /// the rate that was needed then (`RFC 8289 section 5.5`).
    fn start_dropping(&mut self, parameters: &CodelParameters, now: Time) {
        const RECENT_INTERVALS: u64 = 16;
        self.dropping = true;
        let gained = self.count - self.last_count;
        // What a full buffer has lost before may have counted, but is no rate. (Linux's
        // `drop_next` is then zero on a clock that has run for long.)
        let has_dropped = self.last_count > 0;
        let since = now.since(self.drop_next);
        let recent = has_dropped && since < parameters.interval * RECENT_INTERVALS;
        if gained > 1 && recent {
            self.set_count(gained);
        } else {
            (self.count, self.inverse_root) = (1, u16::MAX);
        }
        self.last_count = self.count;
        self.drop_next = now + self.spacing(parameters);
    }

    /// A full buffer has lost this many packets of the queue, which Linux counts as if
    /// the law had dropped them (`fq_codel_drop`).
    pub(crate) fn pushed_out(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// How many drops the rate stands for.
    #[cfg(test)]
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    fn set_count(&mut self, count: u32) {
        self.count = count;
        self.inverse_root = newton_step(self.inverse_root, count);
    }

    /// The time from one drop to the next.
    fn spacing(&self, parameters: &CodelParameters) -> Span {
        match parameters.form {
            Form::Published => drop_spacing(parameters.interval, self.count),
            Form::Linux => {
                // A unit of Linux's clock at least.
                let spacing = u128::from(parameters.interval.0) * u128::from(self.inverse_root);
                Span((spacing >> 16) as u64).max(Span(1_024))
            }
        }
    }
}

/// One step of Newton's iteration from `root` towards `1 / sqrt(count)`, both in 2^-16:
/// `root (3 - count root^2) / 2`. What is beyond 64 bits is lost, as in Linux.
fn newton_step(root: u16, count: u32) -> u16 {
    let root = u64::from(root) << 16;
    let square = (root * root) >> 32;
    let rest = (3_u64 << 32).wrapping_sub(u64::from(count) * square);
    ((rest >> 2).wrapping_mul(root) >> 47) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::codel;
    use crate::packet::FlowKey;

    fn published() -> CodelParameters {
        let settings = codel::ENTRY.settings(&[("form", "rfc"), ("ecn", "on")]);
        CodelParameters::from_settings(&settings.expect("they are valid"))
    }

    /// A queue that never ends, of packets of 1 500 bytes that all waited for as long.
    struct Standing {
        law: CodelLaw,
        parameters: CodelParameters,
        losses: Losses,
        wait: Span,
    }

    impl Standing {
        fn new(wait: Span) -> Standing {
            let (law, parameters) = (CodelLaw::default(), published());
            Standing { law, parameters, losses: Losses::new(), wait }
        }

        /// Sends a packet at `now` and says how many were dropped for it.
        fn send(&mut self, now: Time) -> usize {
            let flow = FlowKey::v4([192, 0, 2, 1], 443, [198, 51, 100, 1], 443, FlowKey::TCP);
            let arrived = Time(now.0 - self.wait.0);
            let packet = Packet { arrived, ..Packet::new(0, flow, Bytes(1_500)) };
            let pop = || Some((packet, 150_000));
            self.law.dequeue(&self.parameters, now, &mut self.losses, pop).expect("it never ends");
            self.losses.drain().count()
        }

        /// Milliseconds from `from` to `to` at which packets were dropped, when
        /// one is sent each millisecond.
        fn drops(&mut self, from: u64, to: u64) -> Vec<u64> {
            (from..to).filter(|ms| self.send(Time::ZERO + Span::millis(*ms)) > 0).collect()
        }
    }

    #[test]
    fn drops_are_spaced_by_the_interval_over_the_root_of_their_number() {
        // 100 / sqrt(n) ms for n = 1, 2, ...; the digits are those of the roots.
        let expected = [
            100_000_000,
            70_710_678,
            57_735_026,
            50_000_000,
            44_721_359,
            40_824_829,
            37_796_447,
            35_355_339,
            33_333_333,
            31_622_776,
        ];
        let spacing = |count| drop_spacing(Span::millis(100), count).0;
        assert_eq!((1..=10).map(spacing).collect::<Vec<_>>(), expected);
        assert_eq!(drop_spacing(Span(u64::MAX), 1), Span(u64::MAX));
        assert_eq!(drop_spacing(Span(1), u32::MAX), Span(0));
    }

    #[test]
    fn a_standing_queue_is_dropped_from_after_an_interval_and_ever_faster() {
        let mut queue = Standing::new(Span::millis(20));
        // Above since 1000. Due at 1100, then 100, 70.7, 57.7, 50, 44.7 and
        // 40.8 ms later each: 1200, 1270.7, 1328.4, 1378.4, 1423.2, 1464.0.
        assert_eq!(queue.drops(1_000, 1_470), [1_100, 1_200, 1_271, 1_329, 1_379, 1_424, 1_464]);
    }

    #[test]
    fn a_wait_below_target_ends_it_and_one_of_target_does_not() {
        let mut queue = Standing::new(Span::millis(5));
        assert_eq!(queue.drops(1_000, 1_150), [1_100]);
        queue.wait = Span(4_999_999);
        assert_eq!(queue.drops(1_150, 1_151), []);
        queue.wait = Span::millis(5);
        // Above again since 1151: a whole interval must pass once more.
        assert_eq!(queue.drops(1_151, 1_260), [1_251]);
    }

    #[test]
    fn dropping_resumes_at_the_rate_it_had_reached() {
        let mut queue = Standing::new(Span::millis(20));
        assert_eq!(queue.drops(1_000, 1_380).len(), 5);
        queue.wait = Span::ZERO;
        assert_eq!(queue.drops(1_380, 1_400), []);
        queue.wait = Span::millis(20);
        // Five drops, four of them since the first: it goes on with 100 / sqrt(4),
        // 100 / sqrt(5) and 100 / sqrt(6): 1500, 1550, 1594.7, 1635.5.
        assert_eq!(queue.drops(1_400, 1_640), [1_500, 1_550, 1_595, 1_636]);
    }

    #[test]
    fn after_sixteen_intervals_it_starts_afresh() {
        // The fifth drop is at 1379, the next one due 44.7 ms after 1378.4.
        let due = 1_378_445_704 + 44_721_359;
        for (gap, second) in [(Span(0), 100), (Span(1), 50)] {
            let mut queue = Standing::new(Span::millis(20));
            assert_eq!(queue.drops(1_000, 1_380).len(), 5);
            queue.wait = Span::ZERO;
            queue.drops(1_380, 1_400);
            queue.wait = Span::millis(20);
            // Dropping starts 16 intervals after that time, or a nanosecond before.
            let start = Time(due + 1_600_000_000 - gap.0);
            assert_eq!(queue.send(Time(start.0 - 100_000_000)), 0);
            assert_eq!(queue.send(start), 1);
            assert_eq!(queue.send(Time(start.0 + second * 1_000_000 - 1)), 0);
            assert_eq!(queue.send(Time(start.0 + second * 1_000_000)), 1);
        }
    }

    /// By hand, with 16 bits: the iteration starts with 65 535/65 536 for one drop, and
    /// `x (3 - n x^2) / 2` gives 0.5 for two (the root is 0.7071), 0.5625 for three
    /// (0.5774), 0.4878 for four (0.5) and 0.4415 for five (0.4472).
    #[test]
    fn in_linux_the_root_is_improved_by_one_step_per_drop() {
        let mut root = u16::MAX;
        let mut found = Vec::new();
        for count in 2..=5 {
            root = newton_step(root, count);
            found.push(f64::from(root) / 65_536.0);
        }
        for (found, expected) in found.iter().zip([0.5, 0.5625, 0.4878, 0.4415]) {
            assert!((found - expected).abs() < 1e-4, "{found}, not {expected}");
        }
        // From then on the root is right within a part in 50.
        for count in 6..10_000 {
            root = newton_step(root, count);
            let exact = 1.0 / libm::sqrt(f64::from(count));
            assert!((f64::from(root) / 65_536.0 / exact - 1.0).abs() < 0.02, "{count}: {root}");
        }
        // Out of reach: from a half, 65 drops make 3 - 65/4 = -53/4, of which a quarter is
        // 2^62 - 53/16 2^32. Times a half of 2^32 that is 2^93, of which 64 bits keep
        // nothing, less 53/32 2^64, of which they keep 11/32 2^64: 11/16 after the point.
        assert_eq!(newton_step(1 << 15, 65), 45_056);
        assert_eq!(45_056, 11 * 65_536 / 16);
    }

    #[test]
    fn in_linux_drops_are_spaced_by_the_approximate_root_and_resume_with_it() {
        let settings = codel::ENTRY.settings(&[]).unwrap();
        let parameters = CodelParameters::from_settings(&settings);
        let mut queue = Standing { parameters, ..Standing::new(Span::millis(20)) };
        // Above since 1000, and late after 1100. Then 100, 50, 56.25 and 48.78 ms later each:
        // 1201, 1251, 1307.25, 1356.03.
        assert_eq!(queue.drops(1_000, 1_360), [1_101, 1_201, 1_251, 1_308, 1_357]);
    }

    #[test]
    fn in_linux_a_call_drops_256_packets_at_most_and_begins_anew() {
        let settings = codel::ENTRY.settings(&[]).unwrap();
        let parameters = CodelParameters::from_settings(&settings);
        let mut queue = Standing { parameters, ..Standing::new(Span::millis(20)) };
        assert_eq!(queue.drops(1_000, 1_102), [1_101]);
        let later = Time::ZERO + Span::seconds(60);
        assert_eq!(queue.send(later), 256);
        // 257 drops in all: the next is due after 100 / sqrt(257) = 6.24 ms.
        assert_eq!(queue.drops(60_001, 60_010), [60_007]);
    }

    #[test]
    fn one_call_makes_up_for_all_drops_that_were_due() {
        let mut queue = Standing::new(Span::millis(20));
        assert_eq!(queue.drops(1_000, 1_101), [1_100]);
        // 1200, 1270.7 and 1328.4 are past, 1378.4 is not.
        assert_eq!(queue.send(Time::ZERO + Span::millis(1_350)), 3);
        assert_eq!(queue.drops(1_351, 1_380), [1_379]);
    }
}
