//! How a player chooses a quality. See [`super`] for the two rules.

use tidegate_core::{Bytes, Span};

use crate::trace::Movie;

/// What a player goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// The buffer: BOLA.
    #[default]
    Bola,
    /// The rate at which segments came lately.
    Rate,
}

/// What a quality is worth beside playing at all: the `γp` of BOLA's evaluation.
const PLAYING: f64 = 5.0;
/// The part of a rate that the rate-based rule counts on.
const SAFE: f64 = 0.9;
/// Half-lives of the two means, in seconds of loading.
const HALF_LIVES_S: [f64; 2] = [3.0, 8.0];
/// The least buffer with which BOLA begins, in segments.
const LEAST_SEGMENTS: f64 = 3.0;
/// A segment whose bytes all come at once says nothing of a rate beyond this time.
const AT_ONCE: Span = Span::micros(100);

/// A rule with what it knows of a movie.
#[derive(Clone, Debug)]
pub(super) struct Weighing {
    rule: Rule,
    buffer_s: f64,
    /// What each quality is worth.
    utilities: Vec<f64>,
}

impl Weighing {
    pub(super) fn new(movie: &Movie, buffer: Span, rule: Rule) -> Weighing {
        let least = movie.rates()[0].0 as f64;
        let utilities = movie.rates().iter().map(|rate| libm::log(rate.0 as f64 / least)).collect();
        Weighing { rule, buffer_s: buffer.as_seconds(), utilities }
    }

    /// The quality of the `segment`th segment, with `level` in the buffer, after one of
    /// quality `last`.
    pub(super) fn choose(
        &self,
        movie: &Movie,
        segment: u64,
        level: Span,
        last: usize,
        estimate: &Estimate,
    ) -> usize {
        match self.rule {
            Rule::Rate => estimate.sustained(movie, SAFE),
            Rule::Bola => {
                let wanted = self.by_buffer(movie, segment, level);
                let sustained = estimate.sustained(movie, 1.0);
                if wanted <= last.max(sustained) { wanted } else { last.max(sustained + 1) }
            }
        }
    }

    fn by_buffer(&self, movie: &Movie, segment: u64, level: Span) -> usize {
        let playing_s = movie.segment().as_seconds();
        let segments = (segment as f64 / 2.0).max(LEAST_SEGMENTS);
        let buffer_s = self.buffer_s.min(segments * playing_s);
        let best = self.utilities.last().copied().unwrap_or(0.0);
        let weight = (buffer_s - playing_s) / (best + PLAYING);
        let score = |quality: usize| {
            let worth = weight * (self.utilities[quality] + PLAYING) - level.as_seconds();
            worth / movie.rates()[quality].0 as f64
        };
        // Of equal qualities the lowest.
        (1..self.utilities.len())
            .fold(0, |best, quality| if score(quality) > score(best) { quality } else { best })
    }
}

/// What is known of the network from the segments that came.
#[derive(Clone, Debug, Default)]
pub(super) struct Estimate {
    /// Bits a second, and seconds up to a first byte, each in two means.
    rates: [f64; 2],
    latencies: [f64; 2],
    /// Seconds of loading, and segments, so far.
    loading_s: f64,
    segments: f64,
}

impl Estimate {
    pub(super) fn learn(&mut self, size: Bytes, first: Span, rest: Span, playing: Span) {
        let took_s = rest.max(AT_ONCE).as_seconds();
        let rate = size.0 as f64 * 8.0 / took_s;
        for (at, half_life_s) in HALF_LIVES_S.into_iter().enumerate() {
            let kept = libm::exp2(-took_s / half_life_s);
            self.rates[at] = kept * self.rates[at] + (1.0 - kept) * rate;
            let kept = libm::exp2(-playing.as_seconds() / half_life_s);
            self.latencies[at] = kept * self.latencies[at] + (1.0 - kept) * first.as_seconds();
        }
        self.loading_s += took_s;
        self.segments += 1.0;
    }

    /// The best quality whose segments come as fast as they play, at a `part` of the rate of
    /// late.
    fn sustained(&self, movie: &Movie, part: f64) -> usize {
        let playing_s = movie.segment().as_seconds();
        // What a mean lacks because it began with nothing.
        let whole = |weight: f64, half_life_s: f64| 1.0 - libm::exp2(-weight / half_life_s);
        let (mut rate, mut latency_s) = (f64::INFINITY, 0.0_f64);
        for (at, half_life_s) in HALF_LIVES_S.into_iter().enumerate() {
            rate = rate.min(self.rates[at] / whole(self.loading_s, half_life_s));
            let segments_s = self.segments * playing_s;
            latency_s = latency_s.max(self.latencies[at] / whole(segments_s, half_life_s));
        }
        let comes = |quality: &usize| {
            let loading_s = playing_s * movie.rates()[*quality].0 as f64 / (rate * part);
            latency_s + loading_s <= playing_s
        };
        (1..movie.rates().len()).take_while(comes).last().unwrap_or(0)
    }
}
