//! What clients do: they begin pages, ask for objects, and have them in the end.

use tidegate_core::{Span, Time};

use super::super::connection::{Leg, Side};
use super::super::demand::{Asker, Object};
use super::super::outcome::{Ending, SMALL};
use super::{Event, Exchange, Run};

impl Run<'_> {
    pub(super) fn plan_page(&mut self, asker: usize) {
        if !self.is_present(asker) {
            return;
        }
        let class = &self.setup.classes[self.askers[asker].class];
        if let Some(at) = self.askers[asker].next(self.kernel.now(), class) {
            let visit = self.askers[asker].visit;
            self.kernel.schedule(at, Event::Page(asker as u32, visit));
        }
    }

    pub(super) fn begin_page(&mut self, asker: usize, visit: u32) {
        if self.askers[asker].visit != visit {
            return;
        }
        let servers = self.to_server.len();
        let page = self.askers[asker].page(self.setup, &self.sizes, servers);
        let number = self.begun;
        self.begun += 1;
        self.pages.insert(number, (asker, page));
        self.go_on(number);
        if !self.askers[asker].waits_for_pages() {
            self.plan_page(asker);
        }
    }

    /// Asks for what has become due of a page, and plans what will.
    fn go_on(&mut self, page: u64) {
        let now = self.kernel.now();
        while let Some((_, loading)) = self.pages.get_mut(&page)
            && let Some((object, gap)) = loading.next_due()
        {
            if gap > Span::ZERO {
                self.kernel.schedule(now + gap, Event::Due(page, object as u32));
            } else {
                self.ask_if_possible(page, object);
            }
        }
    }

    pub(super) fn ask_if_possible(&mut self, page: u64, object: usize) {
        if self.pages.get_mut(&page).is_some_and(|(_, loading)| loading.ask(object)) {
            self.ask(page, object);
        }
    }

    /// A client opens a connection, to the gateway or to the server, and sends a
    /// request.
    fn ask(&mut self, page: u64, number: usize) {
        let Some((asker, loading)) = self.pages.get(&page) else { return };
        let (asker, (size, server)) = (*asker, loading.object(number));
        let fate = self.askers[asker].fate(&self.setup.failures, size);
        let object = Object { size, server, fate };
        let exchange = self.opened;
        let wire = self.client_of(asker);
        let tcp = self.setup.tcp.clone();
        let leg = if self.has_gateway {
            Leg::Client(wire)
        } else {
            Leg::Direct { client: wire, server, answered: false }
        };
        let client = self.open(leg, exchange, [tcp.clone(), tcp]);
        let began = self.kernel.now();
        self.exchanges.insert(
            exchange,
            Exchange {
                asker: asker as u32,
                page: (page, number),
                object,
                began,
                asked: None,
                released: None,
                ticket: None,
                permit: None,
                client,
                server: None,
                relayed: 0,
                trickled: 0,
                moved: began,
                ungranted: None,
            },
        );
        if began >= Time(self.setup.warm_up.0) {
            self.outcome.classes[self.askers[asker].class].asked += 1;
        }
        if self.has_gateway {
            self.act(client, Side::Opener);
        } else {
            self.arrive(exchange);
        }
    }

    /// An object of a page has come, or never will: the page goes on without it.
    fn over(&mut self, (page, object): (u64, usize)) {
        let Some((asker, loading)) = self.pages.get_mut(&page) else { return };
        let (asker, next) = (*asker, loading.over(object));
        if loading.is_over() {
            self.pages.remove(&page);
            if self.askers[asker].waits_for_pages() {
                self.plan_page(asker);
            }
            return;
        }
        if let Some(next) = next {
            self.ask(page, next);
        }
        self.go_on(page);
    }

    /// The number of an asker's client among those of all classes.
    fn client_of(&self, asker: usize) -> usize {
        let Asker { class, client, .. } = self.askers[asker];
        let before: u32 = self.setup.classes[..class].iter().map(|class| class.clients).sum();
        (before + client) as usize
    }

    /// An object has come, or will not.
    pub(super) fn end_exchange(&mut self, number: u64, ending: Ending) {
        let Some(exchange) = self.exchanges.remove(&number) else { return };
        let now = self.kernel.now();
        let asker = exchange.asker as usize;
        if exchange.began >= Time(self.setup.warm_up.0) {
            let class = &mut self.outcome.classes[self.askers[asker].class];
            class.count(ending);
            if ending == Ending::Completed {
                class.response.record(now.since(exchange.began));
                if exchange.object.size < SMALL {
                    class.small.record(now.since(exchange.began));
                }
            }
        }
        self.end_pause(&exchange);
        if ending != Ending::Completed {
            if let Some(ticket) = exchange.ticket {
                self.scheduler.withdraw(ticket);
            }
            // Neither end has anything more to say.
            self.connections.remove(&exchange.client);
            exchange.server.into_iter().for_each(|server| drop(self.connections.remove(&server)));
        }
        self.over(exchange.page);
    }
}
