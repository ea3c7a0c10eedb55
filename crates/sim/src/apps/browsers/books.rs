//! The rows of objects.

use tidegate_core::{Bytes, Span};

use super::{Browsers, Object};
use crate::connections::{Connection, Side};
use crate::metrics::FlowRecord;
use crate::simulation::World;
use crate::tcp::Statistics;

/// What a connection has lost and repeated.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trouble {
    lost: u32,
    retransmissions: u64,
    timeouts: u32,
}

impl Trouble {
    /// What a connection has lost so far, and what its server has sent again.
    pub(super) fn of(connection: &mut Connection) -> Trouble {
        let lost = connection.lost;
        let Statistics { retransmissions, timeouts, .. } =
            *connection.endpoint(Side::Acceptor).statistics();
        Trouble { lost, retransmissions, timeouts }
    }
}

impl Browsers<'_> {
    /// Records the row of an object.
    pub(super) fn report(
        &self,
        world: &mut World<'_>,
        object: usize,
        complete: bool,
        connection: Option<&mut Connection>,
    ) {
        let now = world.now();
        let state = &self.objects[object];
        let carrier = state.carrier.and_then(|key| self.carriers.get(key));
        let connection = match connection {
            Some(connection) => Some(connection),
            None => carrier.and_then(|it| world.connections.live(it.carrier.connection)),
        };
        let (before, after) = (state.before, connection.map_or(state.before, Trouble::of));
        let still = if complete { Span::ZERO } else { now.since(state.moved) };
        let row = FlowRecord {
            traffic: self.users[self.pages[state.page].user].source,
            number: state.of_source,
            size: Some(state.size),
            start: state.asked,
            response: complete.then(|| now.since(state.asked)),
            end: complete.then_some(now),
            delivered: Bytes(state.taken),
            lost: after.lost - before.lost,
            late: None,
            retransmissions: (after.retransmissions - before.retransmissions) as u32,
            timeouts: after.timeouts - before.timeouts,
            longest_stall: state.longest_stall.max(still),
            unloaded: None,
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
