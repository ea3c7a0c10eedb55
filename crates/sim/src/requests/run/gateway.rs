//! What the gateway does: it hears requests, carries out what the scheduler
//! wants, and reads responses. Without one, a scheduler that releases every request
//! at once keeps the books.

use tidegate_core::request::{ClassId, Decision, LinkReport, Permit, Reading, Request, UserId};
use tidegate_core::{Bytes, Span, Time};

use super::super::connection::{Leg, Side};
use super::super::demand::Asker;
use super::super::failures::Fate;
use super::super::outcome::Ending;
use super::{Event, Run};

/// How often the gateway reads the counters of its access link: many times in
/// an interval of the window, and within the read gate's memory.
const REPORT_EVERY: Span = Span::millis(100);

impl Run<'_> {
    /// A request has come to the gateway.
    pub(super) fn arrive(&mut self, number: u64) {
        let now = self.kernel.now();
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        exchange.asked = Some(now);
        let Asker { class, client, .. } = self.askers[exchange.asker as usize];
        let request = Request {
            handle: number,
            class: ClassId(class as u32),
            user: UserId(u64::from(client)),
        };
        match self.scheduler.arrive(request) {
            Ok(ticket) => exchange.ticket = Some(ticket),
            Err(_) => self.end_exchange(number, Ending::Refused),
        }
    }

    /// Carries out what the scheduler wants, and sees to it that it is asked again.
    pub(super) fn obey(&mut self) {
        let now = self.kernel.now();
        while let Some(decision) = self.scheduler.next(now) {
            match decision {
                Decision::Release { request, permit } => self.release(request.handle, permit),
                Decision::Read { handle, size } => self.read_on(handle, size),
            }
        }
        let long = self.scheduler.outstanding() - self.scheduler.held() as usize;
        self.outcome.pauses.long = self.outcome.pauses.long.max(long);
        if let Some(at) = self.scheduler.next_ready(now)
            && at < self.gate_at
        {
            self.gate_at = at;
            self.kernel.schedule(at, Event::Gate);
        }
    }

    fn release(&mut self, number: u64, permit: Permit) {
        let now = self.kernel.now();
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        exchange.permit = Some(permit);
        exchange.released = Some(now);
        exchange.moved = now;
        if let Some(patience) = self.setup.patience {
            self.kernel.schedule(now + patience, Event::Watch(number));
        }
        let waited = exchange.asked.map(|asked| now.since(asked));
        let (began, server, client) = (exchange.began, exchange.object.server, exchange.client);
        let class = self.askers[exchange.asker as usize].class;
        if began >= Time(self.setup.warm_up.0)
            && let Some(waited) = waited
        {
            self.outcome.classes[class].waiting.record(waited);
        }
        if !self.has_gateway {
            return self.act(client, Side::Opener);
        }
        let leg = Leg::Server { server, answered: false, timed: false };
        let configs = [self.server_side.clone(), self.setup.tcp.clone()];
        let connection = self.open(leg, number, configs);
        if !self.pools.is_empty() {
            self.hold(connection);
        }
        if let Some(exchange) = self.exchanges.get_mut(&number) {
            exchange.server = Some(connection);
        }
        self.act(connection, Side::Opener);
    }

    /// A long response may be read for so much more.
    fn read_on(&mut self, number: u64, size: Bytes) {
        self.granted(number);
        let Some(exchange) = self.exchanges.get(&number) else { return };
        let Some(connection) = exchange.server else { return };
        if let Some(state) = self.connections.get_mut(&connection) {
            let end = &mut state.ends[Side::Opener as usize];
            end.read_up_to(end.readable().saturating_add(size.0));
        }
        self.relay(number);
        self.act(connection, Side::Opener);
    }

    /// The gateway reads what has come from the server and passes it on.
    pub(super) fn relay(&mut self, number: u64) {
        let Some(exchange) = self.exchanges.get(&number) else { return };
        let (relayed, client, fate) = (exchange.relayed, exchange.client, exchange.object.fate);
        let class = self.askers[exchange.asker as usize].class;
        let Some(server) = exchange.server.and_then(|id| self.connections.get_mut(&id)) else {
            return;
        };
        let end = &mut server.ends[Side::Opener as usize];
        if let Some(pool) = self.pools.get_mut(class) {
            pool.draw(number, end, relayed);
        }
        let (delivered, is_reset) = fate.seen(end.delivered());
        let fresh = delivered - relayed;
        let counted = self.count(number, Bytes(fresh));
        if is_reset {
            return self.end_exchange(number, Ending::Reset);
        }
        let Some((reading, complete)) = counted else { return };
        let Some(server) = self.exchanges.get(&number).and_then(|exchange| exchange.server) else {
            return;
        };
        if reading == Reading::UpTo(Bytes::ZERO) && !complete {
            self.ungrant(number);
        }
        if let Some(state) = self.connections.get_mut(&server) {
            let end = &mut state.ends[Side::Opener as usize];
            if let Reading::UpTo(left) = reading {
                end.read_up_to(delivered + left.0);
            }
            if complete {
                end.close();
            }
        }
        if let Some(state) = self.connections.get_mut(&client) {
            let end = &mut state.ends[Side::Acceptor as usize];
            end.write(fresh);
            if complete {
                end.close();
            }
        }
        self.act(client, Side::Acceptor);
    }

    /// Counts what has come of a response; how it may be read on, and whether it is
    /// complete. `None` when nothing has come, or nothing is expected.
    fn count(&mut self, number: u64, fresh: Bytes) -> Option<(Reading, bool)> {
        let now = self.kernel.now();
        let exchange = self.exchanges.get_mut(&number)?;
        let permit = exchange.permit.as_ref().filter(|_| fresh > Bytes::ZERO)?;
        if exchange.object.fate == Fate::Answered {
            let silent = now.since(exchange.moved);
            self.outcome.pauses.silent = self.outcome.pauses.silent.max(silent);
        }
        exchange.moved = now;
        exchange.relayed += fresh.0;
        let class = self.askers[exchange.asker as usize].class;
        self.received[class] += fresh;
        let reading = self.scheduler.received(now, permit, fresh);
        let complete = exchange.relayed >= exchange.object.size.0;
        if complete {
            exchange.permit = None;
            if exchange.began >= Time(self.setup.warm_up.0)
                && let Some(released) = exchange.released
            {
                self.outcome.classes[class].service.record(now.since(released));
            }
        }
        Some((reading, complete))
    }

    /// So much of a response has come to its client without a gateway.
    pub(super) fn take_in(&mut self, number: u64, delivered: u64) {
        let Some(exchange) = self.exchanges.get(&number) else { return };
        let (delivered, is_reset) = exchange.object.fate.seen(delivered);
        self.count(number, Bytes(delivered - exchange.relayed));
        if is_reset {
            self.end_exchange(number, Ending::Reset);
        }
    }

    pub(super) fn report(&mut self) {
        let now = self.kernel.now();
        self.kernel.schedule(now + REPORT_EVERY, Event::Report);
        let (sum, count) = std::mem::take(&mut self.delays);
        let queueing_delay = (count > 0).then(|| sum / count);
        let carried = self.downlink.port.counters().delivered_bytes;
        self.scheduler.report(now, LinkReport { carried, queueing_delay });
    }
}
