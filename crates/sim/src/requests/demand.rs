//! What clients ask for, and when.
//!
//! Each loop of a client, or each client with open demand, draws from a stream
//! of its own: the n-th page of a loop is the same under every scheduler, only
//! its time depends on what came before.

use tidegate_core::{Bytes, Stream, Time};

use super::setup::{Class, Demand};
use crate::scenario::SizeLaw;
use crate::traffic::sizes::Sampler;

/// One object of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) size: Bytes,
    pub(super) server: usize,
}

/// Something that asks for pages, one after the other.
#[derive(Debug)]
pub(super) struct Asker {
    pub(super) class: usize,
    /// The client's number in its class.
    pub(super) client: u32,
    demand: Demand,
    stream: Stream,
    /// Objects of its page that are still missing; with open demand it has no meaning.
    pub(super) missing: u32,
}

impl Asker {
    /// All askers of a class.
    pub(super) fn of_class(number: usize, class: &Class, seed: u64) -> Vec<Asker> {
        let loops = match class.demand {
            Demand::Closed { loops, .. } => loops,
            Demand::Open { .. } => 1,
        };
        let all = (0..class.clients).flat_map(|client| (0..loops).map(move |turn| (client, turn)));
        let asker = |(client, turn)| Asker {
            class: number,
            client,
            demand: class.demand,
            stream: Stream::new(seed, &format!("class {number} client {client} loop {turn}")),
            missing: 0,
        };
        all.map(asker).collect()
    }

    /// When it begins its next page, seen from `now`: the start of the run, the
    /// end of its last page, or with open demand that page's start.
    pub(super) fn next(&mut self, now: Time, class: &Class) -> Time {
        let mean = match self.demand {
            Demand::Closed { pause, .. } => pause,
            Demand::Open { every } => every,
        };
        let mut at = now + self.stream.exponential_span(mean);
        for (from, to) in &class.silent {
            if *from <= at && at < *to {
                at = *to;
            }
        }
        at
    }

    /// Whether its next page waits for this one.
    pub(super) fn waits_for_pages(&self) -> bool {
        matches!(self.demand, Demand::Closed { .. })
    }

    /// Draws a page of `objects` on average, each from one of `servers`.
    pub(super) fn page(&mut self, objects: f64, sizes: &Sizes, servers: usize) -> Vec<Object> {
        let count = (self.stream.exponential() * objects).round().max(1.0) as usize;
        // A mean of one is one, always.
        let count = if objects > 1.0 { count } else { 1 };
        let object = |_| Object {
            size: sizes.0.draw(&mut self.stream).unwrap_or(Bytes(1)),
            server: self.stream.index(servers),
        };
        (0..count).map(object).collect()
    }
}

/// Sizes of objects.
#[derive(Debug)]
pub(super) struct Sizes(Sampler);

impl Sizes {
    pub(super) fn new(law: &SizeLaw) -> Sizes {
        Sizes(Sampler::new(law))
    }
}
