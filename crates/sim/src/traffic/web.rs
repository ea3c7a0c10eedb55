//! Web sessions (`LAS section 5`, Table 1).
//!
//! Sessions begin at random; a session has pages, a page has objects, and each
//! object is a transfer of its own. All times run from start to start, whether or
//! not earlier parts are finished, as in the workload that the paper takes from
//! ns-2: the offered load therefore does not depend on the discipline. Exponential
//! counts are rounded to the nearest number, at least one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tidegate_core::{Stream, Time};

use super::transfers::Ends;
use super::{Action, Source};
use crate::scenario::sizes::Sampler;
use crate::scenario::{TrafficSpec, Transfer, WebProfile};

pub(super) struct Web {
    ends: Ends,
    sizes: Sampler,
    profile: WebProfile,
    start: Time,
    stop: Time,
    stream: Stream,
    /// What will begin, earliest first; the number keeps the order of equals.
    agenda: BinaryHeap<Reverse<(Time, u64, Step)>>,
    planned: u64,
}

/// Something that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Session,
    /// A page, with this many more to come in its session.
    Page {
        more: u64,
    },
    /// An object, with this many more to come on its page.
    Object {
        more: u64,
    },
}

impl Web {
    pub(super) fn new(
        spec: &TrafficSpec,
        transfer: &Transfer,
        profile: &WebProfile,
        stream: Stream,
    ) -> Web {
        Web {
            ends: Ends::new(transfer),
            sizes: Sampler::new(&profile.sizes),
            profile: profile.clone(),
            start: spec.start,
            stop: spec.stop,
            stream,
            agenda: BinaryHeap::new(),
            planned: 0,
        }
    }

    fn plan(&mut self, at: Time, step: Step) {
        if at < self.stop {
            self.agenda.push(Reverse((at, self.planned, step)));
            self.planned += 1;
        }
    }

    fn next(&self) -> Option<Time> {
        self.agenda.peek().map(|Reverse((at, ..))| *at)
    }

    /// How many come after the first one.
    fn draw_more(&mut self, mean: f64) -> u64 {
        ((self.stream.exponential() * mean).round() as u64).saturating_sub(1)
    }

    fn begin(&mut self, now: Time, step: Step, actions: &mut Vec<Action>) {
        match step {
            Step::Session => {
                let next = now + self.stream.exponential_span(self.profile.between_sessions);
                self.plan(next, Step::Session);
                let more = self.draw_more(self.profile.pages);
                self.begin(now, Step::Page { more }, actions);
            }
            Step::Page { more } => {
                if more > 0 {
                    let next = now + self.stream.exponential_span(self.profile.between_pages);
                    self.plan(next, Step::Page { more: more - 1 });
                }
                let more = self.draw_more(self.profile.objects);
                self.begin(now, Step::Object { more }, actions);
            }
            Step::Object { more } => {
                if more > 0 {
                    let next = now + self.stream.exponential_span(self.profile.between_objects);
                    self.plan(next, Step::Object { more: more - 1 });
                }
                let size = self.sizes.draw(&mut self.stream);
                actions.push(self.ends.open(size, &mut self.stream));
            }
        }
    }
}

impl Source for Web {
    fn first(&mut self) -> Option<Time> {
        let first = self.start + self.stream.exponential_span(self.profile.between_sessions);
        self.plan(first, Step::Session);
        self.next()
    }

    fn wake(&mut self, now: Time, actions: &mut Vec<Action>) -> Option<Time> {
        while self.next().is_some_and(|at| at <= now) {
            if let Some(Reverse((_, _, step))) = self.agenda.pop() {
                self.begin(now, step, actions);
            }
        }
        self.next()
    }
}
