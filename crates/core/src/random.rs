//! Random numbers that are the same everywhere.
//!
//! Every source of randomness has its own stream, named after its purpose: changing
//! the discipline, or adding a source, leaves all other streams alone. The
//! generator is PCG64 (XSL RR 128/64). Logarithms and powers come from the `libm`
//! crate, not from the machine's C library, whose last bit differs between
//! versions.

use crate::units::Span;
use rand::Rng;
use rand_pcg::Pcg64;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64);

impl Stream {
    /// The stream called `name` of the run with this `seed`.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Stream {
        let mut generator = Pcg64::new(u128::from(seed), u128::from(fnv1a(name.as_bytes())));
        // Seeds that differ in a few bits give related first outputs.
        for _ in 0..4 {
            generator.next_u64();
        }
        Stream(generator)
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform on [0, 1), in steps of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// One of `0..count`, all equally likely.
    ///
    /// # Panics
    /// When `count` is zero.
    pub fn index(&mut self, count: usize) -> usize {
        assert!(count > 0, "there is nothing to choose from");
        // The high half of a product: the bias of count / 2^64 is invisible.
        ((u128::from(self.0.next_u64()) * count as u128) >> 64) as usize
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.uniform())
    }

    /// An exponential time with this mean.
    pub fn exponential_span(&mut self, mean: Span) -> Span {
        Span::from_seconds(self.exponential() * mean.as_seconds())
    }

    /// Normal with mean 0 and deviation 1 (Box and Muller's first value; the second
    /// is discarded, so that a draw leaves nothing behind).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential());
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }
}

/// FNV-1a: turns a name into a number, always the same one for the same name.
fn fnv1a(bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_reproducible_and_apart() {
        let draw = |seed, name| Stream::new(seed, name).bits();
        assert_eq!(draw(1, "web"), draw(1, "web"));
        assert_ne!(draw(1, "web"), draw(2, "web"));
        assert_ne!(draw(1, "web"), draw(1, "call"));
    }

    #[test]
    fn moments_are_right() {
        const DRAWS: u32 = 200_000;
        let mut stream = Stream::new(1, "moments");
        let mut mean_of = |draw: fn(&mut Stream) -> f64| {
            (0..DRAWS).map(|_| draw(&mut stream)).sum::<f64>() / f64::from(DRAWS)
        };
        // Five standard errors of the mean.
        let five = 5.0 / f64::from(DRAWS).sqrt();
        assert!((mean_of(Stream::exponential) - 1.0).abs() < five);
        assert!(mean_of(Stream::normal).abs() < five);
        assert!((mean_of(|s| s.normal().powi(2)) - 1.0).abs() < 1.42 * five);
        assert!((mean_of(|s| s.index(3) as f64) - 1.0).abs() < five);
    }
}
