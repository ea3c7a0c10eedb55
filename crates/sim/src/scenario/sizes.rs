//! Size laws: how large transfers are. All that is known of a law stands here: its
//! parameters, its sampler, its mean, and what reports call it.

use std::fmt;
use std::sync::Arc;

use tidegate_core::{Bytes, Stream};

use crate::trace::size_distribution::SizeDistribution;

/// How large transfers are, in bytes of payload.
#[derive(Clone, Debug)]
pub enum SizeLaw {
    /// All alike.
    Constant(Bytes),
    /// Never ends: a transfer that runs until the end of the simulation.
    Endless,
    /// `P(n) ~ n^-exponent` on whole segments from `least` to `most`.
    BoundedZipf {
        /// The exponent.
        exponent: f64,
        /// Fewest segments.
        least: u32,
        /// Most segments.
        most: u32,
        /// Bytes of a segment.
        segment: Bytes,
    },
    /// Pareto with `shape`, from `least` upwards; cut off at `most`.
    Pareto {
        /// Tail exponent.
        shape: f64,
        /// Smallest size.
        least: Bytes,
        /// Largest size; larger draws are drawn as bounded Pareto.
        most: Bytes,
    },
    /// The logarithm is normal.
    Lognormal {
        /// Mean of the natural logarithm of the size in bytes.
        log_mean: f64,
        /// Standard deviation of that logarithm.
        log_deviation: f64,
    },
    /// Exponential with this mean.
    Exponential(Bytes),
    /// As measured.
    Empirical(Arc<SizeDistribution>),
}

/// Draws sizes from a law.
#[derive(Debug)]
pub(crate) struct Sampler {
    law: SizeLaw,
    /// For the discrete law: the cumulative probability of each count.
    cumulative: Vec<f64>,
}

impl Sampler {
    /// A sampler for `law`.
    pub(crate) fn new(law: &SizeLaw) -> Sampler {
        let cumulative = match law {
            SizeLaw::BoundedZipf { exponent, least, most, .. } => {
                let mut sum = 0.0;
                let mut running: Vec<f64> = zipf_weights(*exponent, *least, *most)
                    .map(|weight| {
                        sum += weight;
                        sum
                    })
                    .collect();
                running.iter_mut().for_each(|value| *value /= sum);
                running
            }
            _ => Vec::new(),
        };
        Sampler { law: law.clone(), cumulative }
    }

    /// A size; `None` for a transfer without end. Every law takes exactly one step
    /// of the stream, except the lognormal, which takes two.
    pub(crate) fn draw(&self, stream: &mut Stream) -> Option<Bytes> {
        let at_least_one = |size: f64| Bytes(size.round().max(1.0) as u64);
        Some(match &self.law {
            SizeLaw::Constant(size) => *size,
            SizeLaw::Endless => return None,
            SizeLaw::BoundedZipf { least, segment, .. } => {
                let uniform = stream.uniform();
                let rank = self.cumulative.partition_point(|value| *value <= uniform);
                *segment * (u64::from(*least) + rank as u64)
            }
            SizeLaw::Pareto { shape, least, most } => {
                // The inverse of the distribution, cut off at `most` and rescaled.
                let (least, most) = (least.0 as f64, most.0 as f64);
                let cut = 1.0 - libm::pow(least / most, *shape);
                at_least_one(least * libm::pow(1.0 - stream.uniform() * cut, -1.0 / shape))
            }
            SizeLaw::Lognormal { log_mean, log_deviation } => {
                at_least_one(libm::exp(log_mean + log_deviation * stream.normal()))
            }
            SizeLaw::Exponential(mean) => at_least_one(stream.exponential() * mean.0 as f64),
            SizeLaw::Empirical(distribution) => {
                distribution.quantile(stream.uniform()).max(Bytes(1))
            }
        })
    }
}

/// Weights of a bounded Zipf law: `n^-exponent` for `least..=most`.
fn zipf_weights(exponent: f64, least: u32, most: u32) -> impl Iterator<Item = f64> {
    (least..=most).map(move |count| libm::pow(f64::from(count), -exponent))
}

impl SizeLaw {
    /// The mean size in bytes; `None` for transfers without end.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        Some(match self {
            SizeLaw::Constant(size) | SizeLaw::Exponential(size) => size.0 as f64,
            SizeLaw::Endless => return None,
            SizeLaw::BoundedZipf { exponent, least, most, segment } => {
                let total: f64 = zipf_weights(*exponent, *least, *most).sum();
                let weighted: f64 = zipf_weights(*exponent - 1.0, *least, *most).sum();
                weighted / total * segment.0 as f64
            }
            SizeLaw::Pareto { shape, least, most } => {
                let (least, ratio) = (least.0 as f64, least.0 as f64 / most.0 as f64);
                let cut = 1.0 - libm::pow(ratio, *shape);
                if (shape - 1.0).abs() < 1e-9 {
                    -least * libm::log(ratio) / cut
                } else {
                    let tail = 1.0 - libm::pow(ratio, shape - 1.0);
                    least * shape / (shape - 1.0) * tail / cut
                }
            }
            SizeLaw::Lognormal { log_mean, log_deviation } => {
                libm::exp(log_mean + log_deviation * log_deviation / 2.0)
            }
            SizeLaw::Empirical(distribution) => distribution.mean(),
        })
    }
}

impl fmt::Display for SizeLaw {
    /// The kind of law, with its mean.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            SizeLaw::Constant(size) => return write!(f, "{size} each"),
            SizeLaw::Endless => return f.write_str("without an end"),
            SizeLaw::BoundedZipf { .. } => "Zipf",
            SizeLaw::Pareto { .. } => "Pareto",
            SizeLaw::Lognormal { .. } => "lognormal",
            SizeLaw::Exponential(_) => "exponential",
            SizeLaw::Empirical(_) => "measured",
        };
        let mean = self.mean().unwrap_or_default();
        write!(f, "{kind} sizes, mean {}", Bytes(mean.round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_efd_law_has_the_moments_that_are_known_of_it() {
        let law =
            SizeLaw::BoundedZipf { exponent: 1.9935, least: 6, most: 6_849, segment: Bytes(1) };
        assert!((law.mean().unwrap() - 40.0).abs() < 0.1);
        let sampler = Sampler::new(&law);
        let quantile = |p: f64| 6 + sampler.cumulative.partition_point(|value| *value < p);
        assert_eq!((quantile(0.5), quantile(0.9), quantile(0.99)), (11, 56, 524));
    }

    #[test]
    fn drawn_sizes_have_the_mean_of_their_law() {
        let laws = [
            SizeLaw::Constant(Bytes(3_000)),
            SizeLaw::Exponential(Bytes(3_000)),
            SizeLaw::BoundedZipf { exponent: 2.5, least: 2, most: 50, segment: Bytes(1_460) },
            SizeLaw::Pareto { shape: 1.0, least: Bytes(1_000), most: Bytes(20_000) },
            SizeLaw::Pareto { shape: 2.2, least: Bytes(1_000), most: Bytes(50_000) },
            SizeLaw::Lognormal { log_mean: 9.357, log_deviation: 0.8 },
        ];
        for law in laws {
            let (sampler, mut stream) = (Sampler::new(&law), Stream::new(1, "sizes"));
            let draws: Vec<f64> =
                (0..100_000).map(|_| sampler.draw(&mut stream).unwrap().0 as f64).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let square = draws.iter().map(|size| (size - mean).powi(2)).sum::<f64>();
            let error = (square / draws.len() as f64 / draws.len() as f64).sqrt();
            let expected = law.mean().unwrap();
            assert!((mean - expected).abs() < 5.0 * error + 1.0, "{law:?}: {mean}, {expected}");
        }
    }
}
