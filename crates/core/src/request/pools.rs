//! Read limits for each class, like the delay pools of Squid with one aggregate
//! bucket for each class (`Squid`, `delay_parameters`).
//!
//! A bucket is refilled once a second with what its rate brings in that time, which
//! is also the most that it holds. A response is read as bytes come in, while the
//! bucket of its class has bytes; after that, the response waits in line for the
//! next second. An empty bucket takes nothing from a full one: what a class leaves
//! is lost.

use std::collections::BTreeMap;

use super::ClassId;
use crate::units::{Bytes, Rate, Span, Time};

/// How often buckets are refilled.
const REFILL_EVERY: Span = Span::seconds(1);

/// The buckets of all classes.
#[derive(Debug)]
pub(super) struct Pools {
    pools: Vec<Pool>,
    refill_at: Time,
    /// How often a response has joined a line.
    joined: u64,
}

/// The bucket of one class.
#[derive(Debug)]
struct Pool {
    /// What a refill brings, which is also the most that the bucket holds.
    restore: Bytes,
    level: Bytes,
    /// Responses that found the bucket empty, each once, in the order in which they
    /// did; and the position of each in this order.
    line: BTreeMap<u64, u64>,
    places: BTreeMap<u64, u64>,
}

impl Pools {
    /// One bucket for each of these rates. Buckets begin half full
    /// (`delay_initial_bucket_level`).
    pub(super) fn new(now: Time, rates: &[Rate]) -> Pools {
        let pool = |rate: &Rate| {
            let restore = rate.volume(REFILL_EVERY);
            Pool { restore, level: restore / 2, line: BTreeMap::new(), places: BTreeMap::new() }
        };
        Pools { pools: rates.iter().map(pool).collect(), refill_at: now + REFILL_EVERY, joined: 0 }
    }

    /// Whether a class has a bucket.
    pub(super) fn limits(&self, class: ClassId) -> bool {
        (class.0 as usize) < self.pools.len()
    }

    /// When buckets are refilled next; `None` when there are none, or at the end of time.
    pub(super) fn next_refill(&self) -> Option<Time> {
        Some(self.refill_at).filter(|at| !self.pools.is_empty() && *at < Time::FAR_FUTURE)
    }

    /// Whether a response waits in line for bytes that are there.
    pub(super) fn is_serving(&self) -> bool {
        self.pools.iter().any(Pool::is_serving)
    }

    /// Takes up to `wanted` bytes from the bucket of a class. A response that leaves
    /// the bucket empty, or finds it so, gets in line.
    pub(super) fn draw(&mut self, class: ClassId, response: u64, wanted: Bytes) -> Bytes {
        let Some(pool) = self.pools.get_mut(class.0 as usize) else { return wanted };
        let drawn = wanted.min(pool.level);
        pool.level -= drawn;
        if pool.level == Bytes::ZERO && !pool.places.contains_key(&response) {
            pool.line.insert(self.joined, response);
            pool.places.insert(response, self.joined);
            self.joined += 1;
        }
        drawn
    }

    /// A response is over.
    pub(super) fn leave(&mut self, class: ClassId, response: u64) {
        if let Some(pool) = self.pools.get_mut(class.0 as usize)
            && let Some(place) = pool.places.remove(&response)
        {
            pool.line.remove(&place);
        }
    }

    /// Refills all buckets; a bucket that was refilled late is not refilled twice.
    pub(super) fn refill(&mut self, now: Time) {
        for pool in &mut self.pools {
            pool.level = pool.restore;
        }
        let missed = now.since(self.refill_at).0 / REFILL_EVERY.0;
        self.refill_at += REFILL_EVERY * (missed + 1);
    }

    /// Takes the response that has waited longest in any line whose bucket has bytes,
    /// class by class.
    pub(super) fn next_in_line(&mut self) -> Option<u64> {
        let pool = self.pools.iter_mut().find(|pool| pool.is_serving())?;
        let (_, response) = pool.line.pop_first()?;
        pool.places.remove(&response);
        Some(response)
    }
}

impl Pool {
    fn is_serving(&self) -> bool {
        self.level > Bytes::ZERO && !self.line.is_empty()
    }
}
