//! Transfers that begin independently of each other.

use std::sync::Arc;

use tidegate_core::{Bytes, Span, Stream, Time};

use super::{Action, Source};
use crate::scenario::sizes::Sampler;
use crate::scenario::{Arrivals, NodeId, SizeLaw, TrafficSpec, Transfer};

/// Opens transfers at random, all at once, or at the times of a log.
pub(super) struct Transfers {
    ends: Ends,
    sizes: Sampler,
    start: Time,
    stop: Time,
    arrivals: Clock,
    stream: Stream,
}

enum Clock {
    Poisson { mean: Span },
    AtStart { count: u32 },
    Within { starts: Vec<Time>, next: usize },
    Log { entries: Arc<Vec<(Time, Bytes)>>, next: usize },
}

/// The ends of transfers.
pub(super) struct Ends {
    from: Vec<NodeId>,
    to: Vec<NodeId>,
}

impl Ends {
    pub(super) fn new(transfer: &Transfer) -> Ends {
        Ends { from: transfer.from.clone(), to: transfer.to.clone() }
    }

    /// A transfer of `size` between the ends whose turn it is.
    fn open_in_turn(&self, number: usize, size: Option<Bytes>) -> Action {
        let from = self.from[number % self.from.len()];
        let to = self.to[number % self.to.len()];
        Action::Open { from, to, size }
    }

    /// A transfer of `size` between two ends taken at random.
    pub(super) fn open(&self, size: Option<Bytes>, stream: &mut Stream) -> Action {
        let from = self.from[stream.index(self.from.len())];
        let to = self.to[stream.index(self.to.len())];
        Action::Open { from, to, size }
    }
}

impl Transfers {
    pub(super) fn new(
        spec: &TrafficSpec,
        transfer: &Transfer,
        arrivals: &Arrivals,
        sizes: &SizeLaw,
        mut stream: Stream,
    ) -> Transfers {
        let arrivals = match arrivals {
            Arrivals::Poisson { per_second } => {
                Clock::Poisson { mean: Span::from_seconds(1.0 / per_second) }
            }
            Arrivals::AtStart { count } => Clock::AtStart { count: *count },
            Arrivals::Within { count, within } => {
                let after = |_| Span::from_seconds(stream.uniform() * within.as_seconds());
                let mut starts: Vec<_> = (0..*count).map(after).map(|it| spec.start + it).collect();
                starts.sort_unstable();
                Clock::Within { starts, next: 0 }
            }
            Arrivals::Log(entries) => Clock::Log { entries: entries.clone(), next: 0 },
        };
        Transfers {
            ends: Ends::new(transfer),
            sizes: Sampler::new(sizes),
            start: spec.start,
            stop: spec.stop,
            arrivals,
            stream,
        }
    }

    fn after(&mut self, now: Time) -> Option<Time> {
        let next = match &self.arrivals {
            Clock::Poisson { mean } => now + self.stream.exponential_span(*mean),
            Clock::AtStart { .. } => return None,
            Clock::Within { starts, next } => *starts.get(*next)?,
            Clock::Log { entries, next } => self.start + Span(entries.get(*next)?.0.0),
        };
        (next < self.stop).then_some(next)
    }

    fn open(&mut self) -> Action {
        let size = self.sizes.draw(&mut self.stream);
        self.ends.open(size, &mut self.stream)
    }
}

impl Source for Transfers {
    fn first(&mut self) -> Option<Time> {
        match self.arrivals {
            Clock::AtStart { .. } => (self.start < self.stop).then_some(self.start),
            _ => self.after(self.start),
        }
    }

    fn wake(&mut self, now: Time, actions: &mut Vec<Action>) -> Option<Time> {
        match &mut self.arrivals {
            Clock::Poisson { .. } => {
                let open = self.open();
                actions.push(open);
            }
            Clock::AtStart { count } => {
                for number in 0..*count as usize {
                    let size = self.sizes.draw(&mut self.stream);
                    actions.push(self.ends.open_in_turn(number, size));
                }
            }
            Clock::Within { next, .. } => {
                let number = *next;
                *next += 1;
                let size = self.sizes.draw(&mut self.stream);
                actions.push(self.ends.open_in_turn(number, size));
            }
            Clock::Log { entries, next } => {
                let size = entries[*next].1;
                *next += 1;
                actions.push(self.ends.open(Some(size), &mut self.stream));
            }
        }
        self.after(now)
    }
}
