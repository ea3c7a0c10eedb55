//! A gateway as one would write it down, with lists that it searches: the twin of the
//! life of exchanges.

use tidegate_core::request::{
    Action, ClassId, Decision, Ending, ExchangeId, LinkReport, Opening, Permit, Phase, ProxyConfig,
    Reading, Request, Scheduler, Ticket, UserId,
};
use tidegate_core::{Bytes, Rate, Span, Time};

/// The twin: a gateway around a scheduler of its own. It knows no tunnels.
#[derive(Debug)]
pub(super) struct Twin {
    scheduler: Scheduler,
    receive_buffer: Bytes,
    patience: Option<Span>,
    /// Of each class with a pool: what a second brings, what is there, and who waits.
    pools: Vec<(u64, u64, Vec<ExchangeId>)>,
    refill_at: Time,
    heard: u64,
    pub(super) records: Vec<Record>,
    actions: Vec<Action>,
    /// Every sample since the start, and how many there were at the last report.
    pub(super) round_trips: Vec<(u64, Span)>,
    reported: usize,
    /// The first one that may still count.
    heard_since: usize,
    /// Whether the scheduler has to be asked before anything else that is due.
    asks_first: bool,
}

/// An exchange that is not over.
#[derive(Debug)]
pub(super) struct Record {
    handle: u64,
    exchange: ExchangeId,
    class: usize,
    ticket: Ticket,
    permit: Option<Permit>,
    connected: bool,
    unread: u64,
    /// What it may read; `None` for all.
    may: Option<u64>,
    moved: Time,
    /// When somebody looks whether it is silent.
    look: Option<Time>,
}

impl Record {
    pub(super) fn held_back(&self) -> u64 {
        self.may.map_or(0, |may| self.unread.saturating_sub(may))
    }

    pub(super) fn reading(&self) -> Reading {
        self.may.map_or(Reading::Freely, |may| Reading::UpTo(Bytes(may)))
    }

    pub(super) fn phase(&self) -> Phase {
        match (&self.permit, self.connected) {
            (None, _) => Phase::Waiting,
            (Some(_), false) => Phase::Dialling,
            (Some(_), true) => Phase::Reading(self.reading()),
        }
    }
}

impl Twin {
    pub(super) fn new(scheduler: Scheduler, config: &ProxyConfig) -> Twin {
        let pool = |rate: &Rate| (rate.0 / 8, rate.0 / 8 / 2, Vec::new());
        Twin {
            scheduler,
            patience: config.patience,
            receive_buffer: config.receive_buffer,
            pools: config.pools.iter().map(pool).collect(),
            refill_at: Time::ZERO + Span::seconds(1),
            heard: 0,
            records: Vec::new(),
            actions: Vec::new(),
            round_trips: Vec::new(),
            reported: 0,
            heard_since: 0,
            asks_first: false,
        }
    }

    pub(super) fn at(&self, exchange: ExchangeId) -> Option<usize> {
        self.records.iter().position(|record| record.exchange == exchange)
    }

    /// A request comes, to which the proxy gave this name if it took it.
    pub(super) fn hear(&mut self, exchange: Option<ExchangeId>, class: u32, user: u64) {
        let request = Request { handle: self.heard, class: ClassId(class), user: UserId(user) };
        let ticket = self.scheduler.arrive(request);
        assert_eq!(ticket.is_ok(), exchange.is_some(), "{ticket:?}");
        let (Ok(ticket), Some(exchange)) = (ticket, exchange) else { return };
        self.heard += 1;
        self.records.push(Record {
            handle: request.handle,
            exchange,
            class: class as usize,
            ticket,
            permit: None,
            connected: false,
            unread: 0,
            may: None,
            moved: Time::ZERO,
            look: None,
        });
    }

    pub(super) fn connected(&mut self, exchange: ExchangeId) {
        let Some(at) = self.at(exchange) else { return };
        self.records[at].connected = self.records[at].permit.is_some();
    }

    pub(super) fn came(&mut self, now: Time, exchange: ExchangeId, unread: Bytes, all: bool) {
        self.connected(exchange);
        let Some(at) = self.at(exchange) else { return };
        let record = &mut self.records[at];
        let Some(permit) = &record.permit else { return };
        record.unread = unread.0;
        self.scheduler.came(now, permit, unread);
        if all {
            self.scheduler.arrived(now, permit);
        }
        self.draw(exchange);
    }

    pub(super) fn read(
        &mut self,
        now: Time,
        exchange: ExchangeId,
        size: Bytes,
        complete: bool,
    ) -> Reading {
        const NOT_NOW: Reading = Reading::UpTo(Bytes::ZERO);
        self.connected(exchange);
        let Some(at) = self.at(exchange) else { return NOT_NOW };
        let record = &mut self.records[at];
        let Some(permit) = &record.permit else { return NOT_NOW };
        if size > Bytes::ZERO {
            record.moved = now;
            record.unread = record.unread.saturating_sub(size.0);
            let reading = self.scheduler.received(now, permit, size);
            let opening = Opening { ahead: self.receive_buffer, pace: Bytes::ZERO };
            self.scheduler.opened(now, permit, opening);
            record.may = match (record.may, reading) {
                (Some(may), _) if record.class < self.pools.len() => {
                    Some(may.saturating_sub(size.0))
                }
                (_, Reading::Freely) => None,
                (_, Reading::UpTo(may)) => Some(may.0),
            };
        }
        let reading = record.reading();
        if complete {
            self.end(exchange, Ending::Completed);
            return NOT_NOW;
        }
        reading
    }

    pub(super) fn end(&mut self, exchange: ExchangeId, ending: Ending) {
        let Some(at) = self.at(exchange) else { return };
        if self.records[at].permit.is_none() {
            if ending == Ending::Reset {
                return;
            }
            self.scheduler.withdraw(self.records[at].ticket);
        }
        let Record { permit, connected, .. } = self.records.remove(at);
        match permit {
            Some(mut permit) if ending == Ending::Completed => permit.complete(),
            Some(mut permit) if !connected => permit.unasked(),
            _ => {}
        }
        self.pools.iter_mut().for_each(|(.., line)| line.retain(|waiting| *waiting != exchange));
        let is_other = |action: &Action| match *action {
            Action::Dial { exchange: of, .. } | Action::Read { exchange: of, .. } => of != exchange,
            _ => true,
        };
        self.actions.retain(is_other);
        self.actions.push(Action::End { exchange, ending });
    }

    /// A response reads what its class's pool has, or gets in line.
    pub(super) fn draw(&mut self, exchange: ExchangeId) {
        let Some(at) = self.at(exchange) else { return };
        let record = &mut self.records[at];
        let Some((_, level, line)) = self.pools.get_mut(record.class) else { return };
        let size = record.held_back().min(*level);
        *level -= size;
        if *level == 0 && !line.contains(&exchange) {
            line.push(exchange);
        }
        if size > 0 {
            record.may = record.may.map(|may| may + size);
            self.actions.push(Action::Read { exchange, size: Bytes(size) });
        }
    }

    pub(super) fn report(&mut self, now: Time, carried: Bytes) {
        let queueing_delay = self.delay();
        self.scheduler.report(now, LinkReport { carried, queueing_delay });
    }

    /// The median over the five origins that were heard last, of how much the latest round
    /// trip of each exceeds the least until then. An origin's first round trip is none.
    fn delay(&mut self) -> Option<Span> {
        let origin_of = |at: usize| self.round_trips[at].0;
        let is_first = |at: usize| !(0..at).any(|before| origin_of(before) == origin_of(at));
        let excess = |at: usize| {
            let of_origin = self.round_trips[..=at].iter().filter(|(of, _)| *of == origin_of(at));
            self.round_trips[at].1 - of_origin.map(|(_, it)| *it).min().unwrap_or_default()
        };
        let new = std::mem::replace(&mut self.reported, self.round_trips.len());
        if (new..self.round_trips.len()).all(is_first) {
            self.heard_since = self.round_trips.len();
            return None;
        }
        let heard = self.heard_since..self.round_trips.len();
        let is_latest =
            |at: &usize| !heard.clone().any(|it| it > *at && origin_of(it) == origin_of(*at));
        let latest = heard.clone().rev().filter(|at| !is_first(*at)).filter(is_latest);
        let mut delays: Vec<Span> = latest.take(5).map(excess).collect();
        delays.sort();
        Some(delays[(delays.len() - 1) / 2])
    }

    pub(super) fn next_action(&mut self, now: Time) -> Option<Action> {
        loop {
            if !self.actions.is_empty() {
                return Some(self.actions.remove(0));
            }
            if !self.asks_first && self.does_what_is_due(now) {
                self.asks_first = true;
                continue;
            }
            match self.scheduler.next(now) {
                Some(Decision::Release { request, permit }) => {
                    let at = self.records.iter().position(|r| r.handle == request.handle);
                    let record = &mut self.records[at.expect("only what waits is released")];
                    record.permit = Some(permit);
                    record.moved = now;
                    record.look = self.patience.map(|patience| now + patience);
                    record.may = (record.class < self.pools.len()).then_some(0);
                    let (exchange, reading) = (record.exchange, record.reading());
                    self.actions.push(Action::Dial { exchange, reading });
                }
                Some(Decision::Read { handle, size }) => {
                    let at = self.records.iter().position(|record| record.handle == handle);
                    let record = &mut self.records[at.expect("only what lives is read")];
                    if record.class >= self.pools.len() {
                        record.may = record.may.map(|may| may + size.0);
                        let exchange = record.exchange;
                        self.actions.push(Action::Read { exchange, size });
                    }
                }
                None if self.asks_first => self.asks_first = false,
                None => return None,
            }
        }
    }

    /// One thing that is due.
    pub(super) fn does_what_is_due(&mut self, now: Time) -> bool {
        let due = |record: &&mut Record| record.look.is_some_and(|look| look <= now);
        let first = self.records.iter_mut().filter(due).min_by_key(|r| (r.look, r.handle));
        if let (Some(record), Some(patience)) = (first, self.patience) {
            if record.held_back() > 0 {
                record.moved = now;
            }
            record.look = Some(record.moved + patience);
            if record.moved + patience <= now {
                let exchange = record.exchange;
                self.end(exchange, Ending::Stalled);
            }
            return true;
        }
        for (_, level, line) in &mut self.pools {
            if *level > 0 && !line.is_empty() {
                let exchange = line.remove(0);
                self.draw(exchange);
                return true;
            }
        }
        let is_due = !self.pools.is_empty() && self.refill_at <= now;
        if is_due {
            self.pools.iter_mut().for_each(|(restore, level, _)| *level = *restore);
            while self.refill_at <= now {
                self.refill_at += Span::seconds(1);
            }
        }
        is_due
    }
}
