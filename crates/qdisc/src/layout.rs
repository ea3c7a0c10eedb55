//! What the programs are told and what they tell: words of 64 bits, in the order of
//! `bpf/parameters.h`.

use tidegate_core::framing::Carrier;
use tidegate_core::setting::{Settings, Value};
use tidegate_core::shaper::CREDIT;
use tidegate_core::units::Amount;
use tidegate_link::{
    Counts, Delay, DelayBucket, DelayHistogram, Failures, LevelStatus, Lost, Queue, QueueStatus,
};

use crate::contracts;
use crate::programs::Program;

/// The words of `struct parameters`, by name.
pub const PARAMETERS: [&str; 15] = [
    "rate",
    "credit_ns",
    "limit_packets",
    "limit_bytes",
    "overhead",
    "least",
    "carrier",
    "has_ethernet",
    "threshold",
    "threshold_in_bytes",
    "sweep_ns",
    "idle_ns",
    "half_life_ns",
    "drops_excess",
    "credit_bytes",
];

/// The words of `struct statistics` that come once, by name. Those of [`LEVEL_WORDS`] follow,
/// and then the counted delays.
pub const STATISTICS: [&str; 21] = [
    "in_use",
    "arrived_packets",
    "arrived_bytes",
    "sent_packets",
    "sent_bytes",
    "refused_packets",
    "pushed_out_packets",
    "early_packets",
    "excess_packets",
    "no_memory_packets",
    "cleared_packets",
    "queued_packets",
    "queued_bytes",
    "flows",
    "flows_peak",
    "crowded",
    "super_packets",
    "other_frames",
    "malformed_frames",
    "held_back",
    "delay_sum_ns",
];

/// The words that each level has: all levels' first, then all levels' second.
pub const LEVEL_WORDS: [&str; 3] = ["level_enqueued", "level_packets", "level_bytes"];

/// Levels that are counted, whether the discipline has them or not.
pub const LEVELS: usize = 2;
/// Steps in which a delay is counted.
pub const DELAY_STEPS: usize = 216;
/// All words of `struct statistics`.
pub const STATISTICS_WORDS: usize =
    STATISTICS.len() + LEVELS * LEVEL_WORDS.len() + LEVELS * DELAY_STEPS;

/// The words of a queue in front of frames that begin with an Ethernet header, or with that
/// of IP.
///
/// ```
/// use tidegate_core::framing::Framing;
/// use tidegate_core::{Buffer, Rate, registry};
/// use tidegate_link::Queue;
/// use tidegate_qdisc::layout::{PARAMETERS, parameters};
///
/// let entry = registry::find("efd").expect("EFD is registered");
/// let queue = Queue {
///     entry,
///     settings: entry.settings(&[("threshold", "30 kB")])?,
///     limit: Buffer::packets(300).into(),
///     rate: Rate(20_000_000),
///     framing: Framing::RAW,
/// };
/// let words = parameters(&queue, true);
/// let word = |name| words[PARAMETERS.iter().position(|it| *it == name).expect("there is one")];
/// assert_eq!([word("rate"), word("limit_packets"), word("threshold")], [20_000_000, 300, 30_000]);
/// # Ok::<(), tidegate_core::setting::SettingError>(())
/// ```
#[must_use]
pub fn parameters(queue: &Queue, has_ethernet: bool) -> [u64; PARAMETERS.len()] {
    let (packets, bytes) = match queue.buffer().amount() {
        Amount::Packets(packets) => (packets.into(), u64::MAX),
        Amount::Bytes(bytes) => (u64::MAX, bytes.0),
    };
    let carrier = match queue.framing.carrier {
        Carrier::Bytes => 0,
        Carrier::Atm => 1,
        Carrier::Ptm => 2,
    };
    let (threshold, in_bytes) = match value(&queue.settings, queue.entry, "threshold") {
        Some(Value::Amount(Amount::Packets(packets))) => (u64::from(*packets), 0),
        Some(Value::Amount(Amount::Bytes(bytes)) | Value::Bytes(bytes)) => (bytes.0, 1),
        _ => (0, 0),
    };
    let span = |name| match value(&queue.settings, queue.entry, name) {
        Some(Value::Span(span)) => span.0,
        _ => 0,
    };
    let credit = match value(&queue.settings, queue.entry, "credit") {
        Some(Value::Bytes(bytes)) => bytes.0,
        _ => 0,
    };
    let drops_excess =
        matches!(value(&queue.settings, queue.entry, "excess"), Some(Value::Choice("drop")));
    let word = |name: &str| match name {
        "rate" => queue.rate.0,
        "credit_ns" => CREDIT.0,
        "limit_packets" => packets,
        "limit_bytes" => bytes,
        "overhead" => queue.framing.overhead.0,
        "least" => queue.framing.least.0,
        "carrier" => carrier,
        "has_ethernet" => has_ethernet.into(),
        "threshold" => threshold,
        "threshold_in_bytes" => in_bytes,
        "sweep_ns" => span("sweep"),
        "idle_ns" => span("idle"),
        "half_life_ns" => span("half_life"),
        "drops_excess" => drops_excess.into(),
        "credit_bytes" => credit,
        _ => unreachable!("every word is here"),
    };
    PARAMETERS.map(word)
}

fn value<'s>(
    settings: &'s Settings,
    entry: &tidegate_core::entry::Entry,
    name: &str,
) -> Option<&'s Value> {
    let is_there = entry.parameters.iter().any(|parameter| parameter.name == name);
    is_there.then(|| settings.value(name))
}

/// The words that a program is told before it is loaded, and never again; none for a
/// discipline without promises.
///
/// # Panics
/// When there are settings that are [not supported](crate::programs::unsupported).
#[must_use]
pub fn contracts(queue: &Queue) -> Vec<u64> {
    if queue.entry.name != "deadlines" {
        return Vec::new();
    }
    contracts::words(&queue.settings).expect("settings were checked")
}

/// What a program has counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics(Vec<u64>);

impl Statistics {
    /// The words of `struct statistics`; `None` if they are not as many.
    #[must_use]
    pub fn new(words: Vec<u64>) -> Option<Statistics> {
        (words.len() == STATISTICS_WORDS).then_some(Statistics(words))
    }

    /// One of [`STATISTICS`].
    ///
    /// # Panics
    /// When there is no word of this name.
    #[must_use]
    pub fn word(&self, name: &str) -> u64 {
        let place = STATISTICS.iter().position(|it| *it == name);
        self.0[place.expect("the name of a word")]
    }

    fn of_level(&self, level: usize, name: &str) -> u64 {
        let place = LEVEL_WORDS.iter().position(|it| *it == name).expect("the name of a word");
        self.0[STATISTICS.len() + place * LEVELS + level]
    }

    fn delays(&self, level: usize) -> &[u64] {
        let from = STATISTICS.len() + LEVEL_WORDS.len() * LEVELS + level * DELAY_STEPS;
        &self.0[from..from + DELAY_STEPS]
    }

    /// The state of a queue, as far as the program knows it.
    #[must_use]
    pub fn status(&self, queue: &Queue, program: &Program) -> QueueStatus {
        let all: Vec<u64> =
            self.delays(0).iter().zip(self.delays(1)).map(|(high, low)| high + low).collect();
        let levels = program.levels.iter().enumerate().map(|(level, name)| LevelStatus {
            name: (*name).into(),
            queued_packets: small(self.of_level(level, "level_packets")),
            queued_bytes: self.of_level(level, "level_bytes"),
            enqueued_packets: self.of_level(level, "level_enqueued"),
            delay: delay(self.delays(level)),
        });
        QueueStatus {
            discipline: queue.entry.name.into(),
            parameters: queue.parameters(),
            rate_bps: queue.rate.0,
            buffer: queue.limit.to_string(),
            framing: queue.framing.to_string(),
            counts: Counts {
                arrived_packets: self.word("arrived_packets"),
                arrived_bytes: self.word("arrived_bytes"),
                sent_packets: self.word("sent_packets"),
                sent_bytes: self.word("sent_bytes"),
                lost: Lost {
                    refused: self.word("refused_packets"),
                    pushed_out: self.word("pushed_out_packets"),
                    early: self.word("early_packets"),
                    excess: self.word("excess_packets"),
                    ..Lost::default()
                },
                other_frames: self.word("other_frames"),
                ..Counts::default()
            },
            failures: Failures {
                malformed_frames: self.word("malformed_frames"),
                no_memory_packets: self.word("no_memory_packets"),
                ..Failures::default()
            },
            queued_packets: small(self.word("queued_packets")),
            queued_bytes: self.word("queued_bytes"),
            flows: self.word("flows") as usize,
            flows_peak: self.word("flows_peak") as usize,
            delay: delay(&all),
            delay_histogram: histogram(&all, self.word("delay_sum_ns")),
            levels: levels.collect(),
            ..QueueStatus::default()
        }
    }
}

fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The end of a step, in milliseconds: units of 2^12 ns, eight steps to an octave from the
/// eighth on.
fn end_ms(step: usize) -> f64 {
    let next = step + 1;
    let units = match next.checked_sub(8) {
        Some(above) => (8 + above % 8) << (above / 8),
        None => next,
    };
    units as f64 * 4_096.0 / 1e6
}

/// Percentiles of counted delays, each the end of its step: at most an eighth too long.
fn delay(steps: &[u64]) -> Delay {
    let count: u64 = steps.iter().sum();
    let percentile = |share: f64| {
        let rank = (share * count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let step = steps.iter().position(|of_it| {
            seen += of_it;
            seen >= rank
        });
        step.map_or(0.0, end_ms)
    };
    if count == 0 {
        return Delay::default();
    }
    Delay {
        count,
        p50_ms: percentile(0.5),
        p95_ms: percentile(0.95),
        p99_ms: percentile(0.99),
        max_ms: percentile(1.0),
    }
}

fn histogram(steps: &[u64], sum_ns: u64) -> DelayHistogram {
    let mut count = 0;
    // Octave by octave: so many buckets as others have.
    let buckets = steps.chunks(8).enumerate().map(|(octave, steps)| {
        count += steps.iter().sum::<u64>();
        DelayBucket { at_most_ms: end_ms(octave * 8 + 7), count }
    });
    DelayHistogram { sum_ms: sum_ns as f64 / 1e6, buckets: buckets.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_where_the_next_begins() {
        let units = |step: usize| (end_ms(step) * 1e6 / 4_096.0).round() as u64;
        assert_eq!([0, 1, 7, 8, 15, 16, 17].map(units), [1, 2, 8, 9, 16, 18, 20]);
        // 2^28 units of 4 us are 18 minutes.
        assert_eq!(units(DELAY_STEPS - 1), 1 << 29);
    }
}
