//! The rows of objects.

use tidegate_core::{Bytes, Span};

use super::{Browsers, Object};
use crate::apps::trouble::Trouble;
use crate::metrics::FlowRecord;
use crate::simulation::World;

impl Browsers<'_> {
    /// Records the row of an object.
    pub(super) fn report(
        &self,
        world: &mut World<'_>,
        object: usize,
        complete: bool,
        trouble: Option<Trouble>,
    ) {
        let now = world.now();
        let state = &self.objects[object];
        let carrier = state.carrier.and_then(|key| self.carriers.get(key));
        let trouble = trouble.or_else(|| carrier?.way.trouble(world));
        let trouble = trouble.unwrap_or(state.before).since(state.before);
        let still = if complete { Span::ZERO } else { now.since(state.moved) };
        let row = FlowRecord {
            traffic: self.users[self.pages[state.page].user].source,
            number: state.of_source,
            size: Some(state.size),
            start: state.asked,
            response: complete.then(|| now.since(state.asked)),
            end: complete.then_some(now),
            delivered: Bytes(state.taken),
            lost: trouble.lost,
            late: None,
            retransmissions: trouble.retransmissions as u32,
            timeouts: trouble.timeouts,
            longest_stall: state.longest_stall.max(still),
            unloaded: None,
            recorded: None,
            congestion: carrier.map(|it| it.congestion),
        };
        world.report(&row, now);
    }

    /// Reports the objects that the end cuts off, by source and number.
    pub(crate) fn finish(&mut self, world: &mut World<'_>) {
        let order = |(key, object): (usize, &Object)| {
            let source = self.users[self.pages[object.page].user].source;
            (source, object.of_source, key)
        };
        let mut cut_off: Vec<_> = self.objects.iter().map(order).collect();
        cut_off.sort_unstable();
        for (.., object) in cut_off {
            self.report(world, object, false, None);
        }
    }
}
