//! The rows of objects.

use super::{Browsers, Object};
use crate::apps::trouble::Trouble;
use crate::simulation::World;

impl Browsers<'_> {
    /// Records the row of an object.
    pub(super) fn report(&self, world: &mut World<'_>, object: usize, trouble: Option<Trouble>) {
        let now = world.now();
        let state = &self.objects[object];
        let carrier = state.carrier.and_then(|key| self.carriers.get(key));
        let trouble = trouble.or_else(|| carrier?.way.trouble(world));
        let row = state.response.record(now, trouble, carrier.map(|it| it.congestion));
        world.report(&row, now);
    }

    /// Reports the objects that the end cuts off, by source and number.
    pub(crate) fn finish(&mut self, world: &mut World<'_>) {
        let order = |(key, object): (usize, &Object)| {
            let source = self.users[self.pages[object.page].user].source;
            (source, object.response.number, key)
        };
        let mut cut_off: Vec<_> = self.objects.iter().map(order).collect();
        cut_off.sort_unstable();
        for (.., object) in cut_off {
            self.report(world, object, None);
        }
    }
}
