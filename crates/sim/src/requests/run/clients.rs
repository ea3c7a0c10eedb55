//! What clients do: they begin pages, ask for objects, and have them in the end.

use tidegate_core::Time;

use super::super::connection::{Leg, Side};
use super::super::demand::{Asker, Object};
use super::super::outcome::SMALL;
use super::{Event, Exchange, Run};

impl Run<'_> {
    pub(super) fn plan_page(&mut self, asker: usize) {
        let class = &self.setup.classes[self.askers[asker].class];
        let at = self.askers[asker].next(self.kernel.now(), class);
        self.kernel.schedule(at, Event::Page(asker as u32));
    }

    pub(super) fn begin_page(&mut self, asker: usize) {
        let servers = self.to_server.len();
        let page = self.askers[asker].page(self.setup.objects, &self.sizes, servers);
        self.askers[asker].missing += page.len() as u32;
        for object in page {
            self.ask(asker, object);
        }
        if !self.askers[asker].waits_for_pages() {
            self.plan_page(asker);
        }
    }

    /// A client opens a connection to the gateway and sends a request.
    fn ask(&mut self, asker: usize, object: Object) {
        let exchange = self.opened;
        let wire = self.client_of(asker);
        let tcp = self.setup.tcp.clone();
        let client = self.open(Leg::Client(wire), exchange, [tcp.clone(), tcp]);
        let began = self.kernel.now();
        self.exchanges.insert(
            exchange,
            Exchange {
                asker: asker as u32,
                object,
                began,
                asked: None,
                released: None,
                permit: None,
                client,
                server: None,
                relayed: 0,
            },
        );
        self.act(client, Side::Opener);
    }

    /// The number of an asker's client among those of all classes.
    fn client_of(&self, asker: usize) -> usize {
        let Asker { class, client, .. } = self.askers[asker];
        let before: u32 = self.setup.classes[..class].iter().map(|class| class.clients).sum();
        (before + client) as usize
    }

    /// An object has come, or will not.
    pub(super) fn end_exchange(&mut self, number: u64, complete: bool) {
        let Some(exchange) = self.exchanges.remove(&number) else { return };
        let now = self.kernel.now();
        let asker = exchange.asker as usize;
        if exchange.began >= Time(self.setup.warm_up.0) {
            let class = &mut self.outcome.classes[self.askers[asker].class];
            if complete {
                class.completed += 1;
                class.response.record(now.since(exchange.began));
                if exchange.object.size < SMALL {
                    class.small.record(now.since(exchange.began));
                }
            } else {
                class.failed += 1;
            }
        }
        if !complete {
            // Neither end has anything more to say.
            self.connections.remove(&exchange.client);
            exchange.server.into_iter().for_each(|server| drop(self.connections.remove(&server)));
        }
        self.askers[asker].missing -= 1;
        if self.askers[asker].missing == 0 && self.askers[asker].waits_for_pages() {
            self.plan_page(asker);
        }
    }
}
