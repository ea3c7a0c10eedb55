//! The transfers that `benches/ns3/dumbbell.cc` draws for a seed: the same
//! sizes, at the same times, between the same hosts.
//!
//! Sizes are heavy-tailed, so two draws of 300 s differ more than two simulators
//! do. With the same transfers, no difference is due to chance, and five seeds show
//! what otherwise takes a hundred.

use tidegate_core::{Span, Time};

/// The `mt19937_64` of C++, seeded by a `seed_seq` as there.
struct MersenneTwister {
    state: [u64; WORDS],
    next: usize,
}

const WORDS: usize = 312;
const MIDDLE: usize = 156;
/// 32-bit words that fill the state.
const SEED_WORDS: usize = 2 * WORDS;

impl MersenneTwister {
    /// The generator that the peer calls `Uniform(seed, stream)`.
    fn new(seed: u64, stream: u32) -> MersenneTwister {
        let [low, high] = [seed, seed >> 32].map(|half| half as u32);
        let words = seed_sequence([low, high, stream]);
        let state =
            std::array::from_fn(|i| u64::from(words[2 * i]) | u64::from(words[2 * i + 1]) << 32);
        MersenneTwister { state, next: WORDS }
    }

    fn bits(&mut self) -> u64 {
        if self.next == WORDS {
            for i in 0..WORDS {
                let joined =
                    (self.state[i] & !0x7fff_ffff) | (self.state[(i + 1) % WORDS] & 0x7fff_ffff);
                let twist = if joined % 2 == 1 { 0xb502_6f5a_a966_19e9 } else { 0 };
                self.state[i] = self.state[(i + MIDDLE) % WORDS] ^ joined >> 1 ^ twist;
            }
            self.next = 0;
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 29 & 0x5555_5555_5555_5555;
        word ^= word << 17 & 0x71d6_7fff_eda6_0000;
        word ^= word << 37 & 0xfff7_eee0_0000_0000;
        word ^ word >> 43
    }

    /// In (0, 1).
    fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn index(&mut self, count: usize) -> usize {
        (self.uniform() * count as f64) as usize
    }
}

/// What `std::seed_seq` makes of these words.
fn seed_sequence(seed: [u32; 3]) -> [u32; SEED_WORDS] {
    // The standard's names: lengths s and n, shifts p and q.
    let (s, n) = (seed.len(), SEED_WORDS);
    let p = (n - 11) / 2;
    let q = p + 11;
    let mix = |word: u32| word ^ word >> 27;
    let mut words = [0x8b8b_8b8b_u32; SEED_WORDS];
    for k in 0..n {
        let last = words[(k + n - 1) % n];
        let first = mix(words[k] ^ words[(k + p) % n] ^ last).wrapping_mul(1_664_525);
        let add = match k {
            0 => s as u32,
            _ if k <= s => (k as u32).wrapping_add(seed[k - 1]),
            _ => k as u32,
        };
        let second = first.wrapping_add(add);
        words[(k + p) % n] = words[(k + p) % n].wrapping_add(first);
        words[(k + q) % n] = words[(k + q) % n].wrapping_add(second);
        words[k] = second;
    }
    for k in 0..n {
        let last = words[(k + n - 1) % n];
        let sum = words[k].wrapping_add(words[(k + p) % n]).wrapping_add(last);
        let third = mix(sum).wrapping_mul(1_566_083_941);
        let fourth = third.wrapping_sub(k as u32);
        words[(k + p) % n] ^= third;
        words[(k + q) % n] ^= fourth;
        words[k] = fourth;
    }
    words
}

/// One transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    /// When its SYN goes out.
    pub(crate) start: Time,
    /// Number of the sender, from 0.
    pub(crate) from: usize,
    /// Number of the receiver, from 0.
    pub(crate) to: usize,
    /// Segments.
    pub(crate) size: u32,
}

/// Hosts on either side.
pub(crate) const PAIRS: usize = 5;
/// Sizes are Zipf of this exponent ...
const EXPONENT: f64 = 1.99345;
/// ... on so many segments.
const SIZES: std::ops::RangeInclusive<u32> = 6..=6_849;
/// Bits on the wire that a segment counts in the load.
const SEGMENT_BITS: f64 = 12_000.0;

/// The transfers of a load in Mbit/s that begin within `duration`.
pub(crate) fn poisson(seed: u64, load: f64, duration: Span) -> Vec<Transfer> {
    let (mut sum, mut mean) = (0.0, 0.0);
    let mut cumulative: Vec<f64> = SIZES
        .map(|size| {
            let weight = libm::pow(f64::from(size), -EXPONENT);
            mean += f64::from(size) * weight;
            sum += weight;
            sum
        })
        .collect();
    cumulative.iter_mut().for_each(|value| *value /= sum);
    let per_second = load * 1e6 / (mean / sum * SEGMENT_BITS);
    let [mut sizes, mut times, mut hosts] =
        [1, 2, 3].map(|stream| MersenneTwister::new(seed, stream));
    let mut at = Time::ZERO;
    std::iter::from_fn(|| {
        at += Span::from_seconds(-libm::log(times.uniform()) / per_second);
        let (from, to) = (hosts.index(PAIRS), hosts.index(PAIRS));
        let draw = sizes.uniform();
        let place = cumulative.partition_point(|value| *value < draw) as u32;
        let size = (SIZES.start() + place).min(*SIZES.end());
        (at < Time(duration.0)).then_some(Transfer { start: at, from, to, size })
    })
    .collect()
}

/// When transfers without end begin, in the order of their hosts.
pub(crate) fn starts(seed: u64, count: usize) -> Vec<Time> {
    let mut stream = MersenneTwister::new(seed, 4);
    (0..count).map(|_| Time::ZERO + Span::from_seconds(stream.uniform())).collect()
}
