//! Users who come and go.

use tidegate_core::Stream;

use super::{Alarm, Clients};
use crate::requests::{Class, Ending, Presence};
use crate::simulation::World;

/// A client whose user is not always there.
pub(super) struct Visitor {
    class: usize,
    client: u32,
    presence: Presence,
    present: bool,
    stream: Stream,
}

impl Visitor {
    pub(super) fn all(classes: &[Class], seed: u64) -> Vec<Visitor> {
        let mut visitors = Vec::new();
        for (number, class) in classes.iter().enumerate() {
            let Some(presence) = class.presence else { continue };
            visitors.extend((0..class.clients).map(|client| {
                let name = format!("class {number} client {client} presence");
                let mut stream = Stream::new(seed, &name);
                let present = presence.draw(&mut stream);
                Visitor { class: number, client, presence, present, stream }
            }));
        }
        visitors
    }
}

impl Clients<'_> {
    /// Whether the user of an asker is there.
    pub(super) fn is_present(&self, asker: usize) -> bool {
        let asker = &self.askers[asker];
        let is_it =
            |visitor: &&Visitor| (visitor.class, visitor.client) == (asker.class, asker.client);
        self.visitors.iter().find(is_it).is_none_or(|visitor| visitor.present)
    }

    pub(super) fn start_visits(&mut self, world: &mut World<'_>) {
        for visitor in 0..self.visitors.len() {
            self.plan_visit(world, visitor);
        }
    }

    fn plan_visit(&mut self, world: &mut World<'_>, number: usize) {
        let visitor = &mut self.visitors[number];
        let last = visitor.presence.last(visitor.present, &mut visitor.stream);
        self.wake_at(world, world.now() + last, Alarm::Visit(number));
    }

    /// A user comes and begins to ask, or goes and gives up all that is on its way.
    pub(super) fn visit(&mut self, world: &mut World<'_>, number: usize) {
        let visitor = &mut self.visitors[number];
        visitor.present = !visitor.present;
        let (present, whose) = (visitor.present, (visitor.class, visitor.client));
        let of_user =
            |asker: &usize| (self.askers[*asker].class, self.askers[*asker].client) == whose;
        let askers: Vec<usize> = (0..self.askers.len()).filter(of_user).collect();
        for asker in &askers {
            self.askers[*asker].visit += 1;
        }
        if present {
            askers.into_iter().for_each(|asker| self.plan_page(world, asker));
        } else {
            self.pages.retain(|_, page| !askers.contains(&page.asker));
            let of_user = self.objects.iter().filter(|(_, object)| askers.contains(&object.asker));
            let given_up: Vec<usize> = of_user.map(|(number, _)| *number).collect();
            for object in given_up {
                self.end(world, object, Ending::Abandoned, None);
            }
        }
        self.plan_visit(world, number);
    }
}
