//! Which congestion controller a transfer has when its source has a mix of them.
//!
//! The choice depends on the run's seed, the source and the transfer's number there, and
//! on nothing else: each discipline meets the same senders, and a source or a transfer
//! more leaves the others as they are.

use std::sync::Arc;

use tidegate_core::Stream;

use crate::tcp::TcpConfig;

/// The senders of a source.
pub(super) struct Senders {
    seed: u64,
    source: usize,
    /// One configuration for each controller, with its share; without a mix only one.
    kinds: Vec<(Arc<TcpConfig>, u32)>,
}

impl Senders {
    /// The senders of the source of this number in a run with this seed.
    pub(super) fn new(tcp: &Arc<TcpConfig>, seed: u64, source: usize) -> Senders {
        let kinds = tcp.mix.iter().map(|&(congestion, share)| {
            let config = TcpConfig { congestion, mix: Vec::new(), ..(**tcp).clone() };
            (Arc::new(config), share)
        });
        let mut kinds: Vec<_> = kinds.collect();
        if kinds.is_empty() {
            kinds.push((tcp.clone(), 1));
        }
        Senders { seed, source, kinds }
    }

    /// The sender of the transfer of this number.
    pub(super) fn of(&self, number: u64) -> &Arc<TcpConfig> {
        let mut drawn = 0;
        if self.kinds.len() > 1 {
            let whole = self.kinds.iter().map(|(_, share)| *share as usize).sum();
            let name = format!("sender {number} of source {}", self.source);
            drawn = Stream::new(self.seed, &name).index(whole);
        }
        let chosen = self.kinds.iter().find(|(_, share)| {
            let found = drawn < *share as usize;
            drawn = drawn.saturating_sub(*share as usize);
            found
        });
        &chosen.expect("what is drawn is less than all shares together").0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::congestion::{CUBIC, Entry, NEW_RENO};

    fn counted(mix: &[(&'static Entry, u32)], seed: u64) -> usize {
        let tcp = TcpConfig { mix: mix.to_vec(), ..TcpConfig::today() };
        let senders = Senders::new(&Arc::new(tcp), seed, 0);
        (0..10_000).filter(|number| senders.of(*number).congestion == NEW_RENO).count()
    }

    /// Of 10 000 transfers, a quarter has a standard deviation of 43.
    #[test]
    fn shares_are_kept() {
        for seed in 1..=5 {
            let count = counted(&[(CUBIC, 3), (NEW_RENO, 1)], seed);
            assert!(count.abs_diff(2_500) < 4 * 43, "seed {seed}: {count}");
        }
    }

    #[test]
    fn without_a_mix_all_are_alike() {
        assert_eq!(counted(&[], 1), 0);
        assert_eq!(counted(&[(NEW_RENO, 7)], 1), 10_000);
    }

    #[test]
    fn a_sender_depends_on_its_number_and_not_on_the_order() {
        let tcp = TcpConfig { mix: vec![(CUBIC, 1), (NEW_RENO, 1)], ..TcpConfig::today() };
        let senders = Senders::new(&Arc::new(tcp), 7, 3);
        let forward: Vec<_> = (0..100).map(|number| senders.of(number).congestion).collect();
        let mut back: Vec<_> = (0..100).rev().map(|number| senders.of(number).congestion).collect();
        back.reverse();
        assert_eq!(forward, back);
    }
}
