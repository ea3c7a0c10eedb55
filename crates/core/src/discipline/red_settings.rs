//! What can be set on RED, and what follows from it: thresholds, weight, and how the
//! average falls while the queue is idle.
//!
//! Defaults are those of Linux 7.3 with what its `tc` computes for `sch_red`.

use super::form::Form;
use crate::buffer::Buffer;
use crate::setting::{Kind, Parameter, Settings};
use crate::units::{Amount, Span};

/// All parameters.
pub(super) const PARAMETERS: &[Parameter] =
    &[Form::OR_PAPER, MIN, MAX, PROBABILITY, WEIGHT, GENTLE, GUARD, WAIT, IDLE, PACKET_TIME, ECN];

/// `min_th`. A third of `max` is the rule of thumb of `Floyd 1997`.
const MIN: Parameter = Parameter {
    name: "min",
    help: "average queue from which packets are dropped; zero: a third of max",
    kind: Kind::Amount,
    default: "0 packets",
};

/// `max_th`. A fixed one would not suit a buffer that can be set; a quarter
/// of it leaves room for bursts, and is what Linux's `tc` takes.
const MAX: Parameter = Parameter {
    name: "max",
    help: "average queue at which the probability reaches its maximum; zero: a quarter of the \
           buffer",
    kind: Kind::Amount,
    default: "0 packets",
};

/// `max_p`: 1/50 in `Floyd 1993` and in `tc`; 1/10 in `Floyd 1997`, after more
/// experience.
const PROBABILITY: Parameter = Parameter {
    name: "probability",
    help: "share of the packets that are dropped when the average is at max",
    kind: Kind::Number { least: 0.0, most: 1.0 },
    default: "0.02",
};

/// `w_q`: 0.002 in `Floyd 1993 section 6`; `tc` derives it from the thresholds.
const WEIGHT: Parameter = Parameter {
    name: "weight",
    help: "weight of the present queue in the average; zero: as tc derives it from min and max",
    kind: Kind::Number { least: 0.0, most: 1.0 },
    default: "0",
};

/// `Floyd 2000`.
const GENTLE: Parameter = Parameter {
    name: "gentle",
    help: "on: between max and twice max the share rises to all; off: from max on all are dropped",
    kind: Kind::Switch,
    default: "off",
};

/// `nQueued > 1` and `m_old` in ns-3's `RedQueueDisc::DoEnqueue`. Without it, a queue that
/// is short and swings idles its link.
const GUARD: Parameter = Parameter {
    name: "guard",
    help: "on: a packet that finds fewer than two queued passes, as in ns-2 and ns-3; off: as in \
           Floyd 1993 and Linux",
    kind: Kind::Switch,
    default: "off",
};

/// `Wait` of ns-3, where it is on by default. It makes drops a third as frequent for
/// the same `probability`, so the paper's spread stays the default.
const WAIT: Parameter = Parameter {
    name: "wait",
    help: "in the paper's form, on: as many packets as one over the share pass between two drops, \
           and then up to as many more; off: up to that many",
    kind: Kind::Switch,
    default: "off",
};

/// `tbf` and others keep RED from noticing that it is idle.
const IDLE: Parameter = Parameter {
    name: "idle",
    help: "on: the average falls while the queue is empty; off: it does not, as under Linux's tbf",
    kind: Kind::Switch,
    default: "on",
};

/// `s` of `Floyd 1993 section 4`: at 10 Mbit/s a packet of 1 000 bytes takes it, which is
/// what `tc` assumes.
const PACKET_TIME: Parameter = Parameter {
    name: "packet_time",
    help: "sending time of a usual packet; it sets how fast the average falls while the queue is \
           idle",
    kind: Kind::Span { least: Span(1), most: Span::seconds(60) },
    default: "800 us",
};

/// In the form of the paper, marks only where chance decides: packets that are certain to
/// be picked are dropped, so that a sender that does not heed marks cannot fill the buffer
/// (`RFC 3168 section 7`). Linux marks them too, unless it is told `harddrop`.
const ECN: Parameter = Parameter {
    name: "ecn",
    help: "on: packets whose senders understand marks are marked instead of dropped",
    kind: Kind::Switch,
    default: "off",
};

/// What can be set on RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Detection {
    /// Whose rules apply.
    pub form: Form,
    /// `min_th`; zero stands for a third of `max`.
    pub min: Amount,
    /// `max_th`; zero stands for a quarter of the buffer. Its unit is the one in
    /// which the queue is measured.
    pub max: Amount,
    /// `max_p`.
    pub probability: f64,
    /// `w_q`; zero stands for what `tc` derives from the thresholds.
    pub weight: f64,
    /// Whether the probability rises further up to twice `max`.
    pub gentle: bool,
    /// Whether a packet that finds fewer than two queued passes.
    pub guard: bool,
    /// Whether as many packets as one over the probability pass before the next drop.
    pub wait: bool,
    /// Whether the average falls while the queue is empty.
    pub idle: bool,
    /// How long a usual packet takes to send.
    pub packet_time: Span,
    /// Whether packets of senders that understand marks are marked.
    pub ecn: bool,
}

impl Detection {
    pub(super) fn from_settings(settings: &Settings) -> Detection {
        Detection {
            form: Form::from_settings(settings),
            min: settings.amount(MIN.name),
            max: settings.amount(MAX.name),
            probability: settings.number(PROBABILITY.name),
            weight: settings.number(WEIGHT.name),
            gentle: settings.switch(GENTLE.name),
            guard: settings.switch(GUARD.name),
            wait: settings.switch(WAIT.name),
            idle: settings.switch(IDLE.name),
            packet_time: settings.span(PACKET_TIME.name),
            ecn: settings.switch(ECN.name),
        }
    }
}

impl Default for Detection {
    /// The defaults of the registered parameters: thresholds and weight by the buffer, and
    /// a fiftieth at `max`.
    fn default() -> Detection {
        Detection::from_settings(&Settings::defaults(PARAMETERS))
    }
}

/// The thresholds, in packets or in bytes, and the weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thresholds {
    pub(super) in_bytes: bool,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) weight: f64,
}

impl Thresholds {
    /// Bytes of a packet where `min` is not given in the unit of `max`, and where
    /// that unit changes.
    pub(super) const PACKET_BYTES: f64 = 1_500.0;

    pub(super) fn new(detection: &Detection, buffer: Buffer) -> Thresholds {
        let number = |amount| match amount {
            Amount::Packets(count) => (f64::from(count), false),
            Amount::Bytes(size) => (size.0 as f64, true),
        };
        let (mut max, mut in_bytes) = number(detection.max);
        if max == 0.0 {
            let (limit, limit_in_bytes) = number(buffer.amount());
            (max, in_bytes) = (limit / 4.0, limit_in_bytes);
        }
        let min = match number(detection.min) {
            (0.0, _) => max / 3.0,
            (min, min_in_bytes) if min_in_bytes == in_bytes => min,
            (min, true) => min / Self::PACKET_BYTES,
            (min, false) => min * Self::PACKET_BYTES,
        };
        let weight = if detection.weight > 0.0 {
            detection.weight
        } else {
            let packet = if in_bytes { AVERAGE_PACKET_BYTES } else { 1.0 };
            weight_for(min / packet, max / packet)
        };
        Thresholds { in_bytes, min, max, weight }
    }
}

/// `avpkt`, which `tc` asks for; 1 000 bytes is what its manual takes.
const AVERAGE_PACKET_BYTES: f64 = 1_000.0;

/// The weight with which a burst of (2 `min` + `max`) / 3 packets into an empty queue
/// brings the average just to `min`: the largest power of 1/2 (`tc_red_eval_ewma`, after
/// `Floyd 1993 section 6.1`). Thresholds are in packets.
fn weight_for(min: f64, max: f64) -> f64 {
    const SMALLEST: i32 = 31;
    let burst = libm::floor((2.0 * min + max) / 3.0).max(1.0);
    let needed = burst + 1.0 - min;
    let weights = (1..=SMALLEST).map(|log| libm::ldexp(1.0, -log));
    let passes = |weight: &f64| needed <= (1.0 - libm::pow(1.0 - weight, burst)) / weight;
    weights.clone().find(passes).unwrap_or(libm::ldexp(1.0, -SMALLEST))
}

/// How the average falls in Linux while the queue is idle: it is halved in steps, of which
/// `tc` makes a table over 256 cells of time (`tc_red_eval_idle_damping`), and within the
/// cells before the first step it falls by its own size in a cell, but not below a half
/// (`red_calc_qavg_from_idle_time`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Damping {
    /// Halvings per microsecond.
    rate: f64,
    /// Microseconds of a cell, as a power of two.
    cell: u32,
}

impl Damping {
    const CELLS: u64 = 256;
    const MOST_HALVINGS: f64 = 31.0;

    /// `tc` counts a packet's time in units of 64 ns, and the kernel takes what comes out
    /// for microseconds. Its natural logarithm counts as one of base two.
    pub(super) fn new(weight: f64, packet_time: Span) -> Damping {
        const UNIT_NANOS: f64 = 64.0;
        let rate = -libm::log(1.0 - weight) / (packet_time.0 as f64 / UNIT_NANOS);
        let span = Self::MOST_HALVINGS / rate;
        let fits = |cell: &u32| span / libm::ldexp(1.0, cell.cast_signed()) < 512.0;
        Damping { rate, cell: (0..32).find(fits).unwrap_or(32) }
    }

    pub(super) fn apply(self, average: f64, idle: Span) -> f64 {
        let most = (Self::CELLS - 1) << self.cell;
        let micros = (idle.0 / 1_000).min(most);
        let cell = micros >> self.cell;
        let halvings = match cell {
            0 => 0.0,
            cell if cell < Self::CELLS - 1 => {
                libm::floor((cell << self.cell) as f64 * self.rate).min(Self::MOST_HALVINGS)
            }
            _ => Self::MOST_HALVINGS,
        };
        if halvings > 0.0 {
            return libm::ldexp(average, -(halvings as i32));
        }
        let share = micros as f64 / libm::ldexp(1.0, self.cell.cast_signed());
        average - average * share.min(0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    fn thresholds(min: u32, max: u32) -> Detection {
        let (min, max) = (Amount::Packets(min), Amount::Packets(max));
        Detection { min, max, ..Detection::default() }
    }

    #[test]
    fn thresholds_that_are_not_set_follow_the_buffer() {
        let of = |detection, buffer| {
            let Thresholds { in_bytes, min, max, .. } = Thresholds::new(&detection, buffer);
            (in_bytes, min, max)
        };
        let (packets, bytes) = (Buffer::packets(300), Buffer::bytes(Bytes(120_000)));
        assert_eq!(of(Detection::default(), packets), (false, 25.0, 75.0));
        assert_eq!(of(Detection::default(), bytes), (true, 10_000.0, 30_000.0));
        assert_eq!(of(thresholds(5, 15), bytes), (false, 5.0, 15.0));
        assert_eq!(of(thresholds(5, 0), bytes), (true, 7_500.0, 30_000.0));
        let min = Amount::Bytes(Bytes(3_000));
        assert_eq!(of(Detection { min, ..thresholds(5, 15) }, packets), (false, 2.0, 15.0));
    }

    /// What `tc qdisc add dev lo root red limit 150000 avpkt 1000 bandwidth 10mbit` of
    /// iproute2 6.1 asks the kernel for: min 12 500, max 37 500, Wlog 4, Scell_log 14, and
    /// a table that has 1 from cell 12 on, 2 from 24, 3 from 36, 4 from 48 and 5 from 60.
    #[test]
    fn weight_and_damping_are_those_that_tc_computes() {
        let buffer = Buffer::bytes(Bytes(150_000));
        let Thresholds { min, max, weight, .. } = Thresholds::new(&Detection::default(), buffer);
        assert_eq!((min, max, weight), (12_500.0, 37_500.0, 1.0 / 16.0));
        let damping = Damping::new(weight, Detection::default().packet_time);
        assert_eq!(damping.cell, 14);
        let after = |cells: u64| damping.apply(1_024.0, Span::micros(cells << 14));
        assert_eq!([11, 12, 23, 24, 35, 36].map(after), [512.0, 512.0, 512.0, 256.0, 256.0, 128.0]);
        assert_eq!([47, 48, 59, 60].map(after), [128.0, 64.0, 64.0, 32.0]);
        // Cell 254 has 21, and the last one and all beyond have 31.
        let halved = |times: i32| libm::ldexp(1_024.0, -times);
        assert_eq!([254, 255, 1 << 30].map(after), [halved(21), halved(31), halved(31)]);
        // Before the first step: by its own size in a cell of 16.384 ms, down to a half.
        let micros = |micros| damping.apply(1_024.0, Span::micros(micros));
        assert_eq!(
            [0, 1_024, 4_096, 8_192, 16_000].map(micros),
            [1_024.0, 960.0, 768.0, 512.0, 512.0]
        );
    }
}
