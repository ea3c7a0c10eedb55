//! The random fate of a packet in transit.
//!
//! A link that loses packets must not lose different ones because a queue has
//! reordered them: the fate of a flow would then differ between disciplines for no
//! reason of their own. So each packet draws a lot where it is made, from its flow
//! and its number in the flow, and every link looks at that lot.

/// Mixes 64 bits well (the finaliser of SplitMix64).
pub(crate) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The lot of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lot(u64);

impl Lot {
    /// The lot of packet `number` of the flow that `flow` stands for.
    pub(crate) fn new(flow: u64, number: u64) -> Lot {
        Lot(mix(flow).wrapping_add(number))
    }

    /// True with the given probability, for the link that `salt` stands for.
    pub(crate) fn falls(self, salt: u64, probability: f64) -> bool {
        let uniform = (mix(self.0 ^ salt) >> 11) as f64 / (1_u64 << 53) as f64;
        uniform < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lots_fall_as_often_as_they_should_and_links_draw_apart() {
        const LOTS: u64 = 100_000;
        let count = |salts: &[u64], probability: f64| {
            let falls = |number: &u64| {
                let lot = Lot::new(number / 100, number % 100);
                salts.iter().all(|salt| lot.falls(*salt, probability))
            };
            (0..LOTS).filter(falls).count() as f64 / LOTS as f64
        };
        // Within five standard deviations.
        assert!((count(&[1], 0.1) - 0.1).abs() < 5.0 * (0.09 / LOTS as f64).sqrt());
        assert!((count(&[1, 2], 0.1) - 0.01).abs() < 5.0 * (0.0099 / LOTS as f64).sqrt());
        assert_eq!(count(&[1], 0.0), 0.0);
    }
}
