//! Stub resolvers: programs on hosts that look names up at a recursive resolver, over UDP.
//!
//! A lookup is one query and one answer, each a packet, from a port of its own: for a queue
//! that tells flows apart it is the shortest flow there is, one packet each way. A host asks
//! as glibc does (resolv.conf(5)): it waits for `timeout`, asks again, and gives up after so
//! many `attempts`. It asks again from the same socket, which glibc closes only after an
//! error: so a query that is sent again belongs to the same flow, and an answer to the first
//! query still counts after the second was sent.
//!
//! How long a lookup takes is what somebody waits: until the answer, or until the host gives
//! up. A lookup that fails has this time too, or a queue that drops answers would be the
//! quicker for it. One that finds no free port fails at once, as Linux has it fail, and
//! counts as if the host had waited: nobody gets an answer sooner by asking too often.
//!
//! Left out: the second query of a host that wants addresses of both kinds (IPv4 and IPv6) at
//! once, what a resolver does not have in its cache, truncated answers with their TCP, and DNS
//! over TLS, HTTPS or QUIC.

use std::collections::VecDeque;

use tidegate_core::{Span, Stream, Time};

use super::App;
use crate::connections::{AppId, Connection, ConnectionId, Over, Side};
use crate::lookups::{Lookup, LookupId};
use crate::scenario::sizes::Sampler;
use crate::scenario::{DnsProfile, NodeId, Scenario, TrafficKind};
use crate::simulation::World;

/// Timeouts of lookups that are over stay in line while they are fewer than the others and
/// these.
const FEW: usize = 64;

/// The stub resolvers of a run.
pub(crate) struct Resolvers<'a> {
    /// By the place of their source; `None` for sources of another kind.
    sources: Vec<Option<Source<'a>>>,
}

struct Source<'a> {
    start: Time,
    stop: Time,
    from: &'a [NodeId],
    to: &'a [NodeId],
    profile: &'a DnsProfile,
    /// The mean time between two lookups.
    between: Span,
    answers: Sampler,
    stream: Stream,
    /// Lookups so far, and those of them that are open.
    begun: u64,
    open: usize,
    /// When open lookups stop waiting, soonest first: all wait for the same time. Those of
    /// answered ones are among them until they come to the front or are too many.
    timeouts: VecDeque<Timeout>,
    /// Whether a wake for the first of them is set.
    is_set: bool,
}

#[derive(Clone, Copy)]
struct Timeout {
    at: Time,
    lookup: u32,
    number: u64,
}

/// What a source is woken for.
enum Alarm {
    Begin(usize),
    Timeout(usize),
}

impl Alarm {
    fn number(&self) -> u64 {
        match *self {
            Alarm::Begin(traffic) => 2 * traffic as u64,
            Alarm::Timeout(traffic) => 2 * traffic as u64 + 1,
        }
    }

    fn of(number: u64) -> Alarm {
        let traffic = (number / 2) as usize;
        if number.is_multiple_of(2) { Alarm::Begin(traffic) } else { Alarm::Timeout(traffic) }
    }
}

impl<'a> Source<'a> {
    fn new(scenario: &'a Scenario, seed: u64, index: usize) -> Option<Source<'a>> {
        let spec = &scenario.traffic[index];
        let TrafficKind::Dns { from, to, profile } = &spec.kind else { return None };
        Some(Source {
            start: spec.start,
            stop: spec.stop,
            from,
            to,
            profile,
            between: Span::from_seconds(1.0 / profile.per_second),
            answers: Sampler::new(&profile.answers),
            stream: Stream::new(seed, &spec.name),
            begun: 0,
            open: 0,
            timeouts: VecDeque::new(),
            is_set: false,
        })
    }

    /// When the lookup after `now` begins.
    fn after(&mut self, now: Time) -> Option<Time> {
        let next = now + self.stream.exponential_span(self.between);
        (next < self.stop).then_some(next)
    }

    /// The lookup that begins at `now`, with all that is random of it.
    fn draw(&mut self, now: Time, traffic: usize) -> Lookup {
        let from = self.from[self.stream.index(self.from.len())];
        let to = self.to[self.stream.index(self.to.len())];
        let answer = self.answers.draw(&mut self.stream).expect("answers have an end");
        let answer = answer.clamp(self.profile.query, DnsProfile::MOST_ANSWER);
        let id = (traffic as u16, self.begun);
        self.begun += 1;
        Lookup::new(id, now, (from, to), answer)
    }

    /// Sends a query of an open lookup, and waits for the answer.
    fn ask(&mut self, world: &mut World<'_>, number: u32, id: LookupId) {
        let Some(lookup) = world.lookups.live(number, id) else { return };
        let asked = *lookup;
        lookup.asked += 1;
        world.send_query(number, &asked, self.profile.query);
        if self.timeouts.len() > 2 * self.open + FEW {
            let traffic = id.0;
            self.timeouts
                .retain(|it| world.lookups.live(it.lookup, (traffic, it.number)).is_some());
        }
        let at = world.now() + self.profile.timeout;
        self.timeouts.push_back(Timeout { at, lookup: number, number: id.1 });
        self.set(world, id.0);
    }

    /// Sets the wake for the first timeout, unless it is set.
    fn set(&mut self, world: &mut World<'_>, traffic: u16) {
        if let Some(first) = self.timeouts.front()
            && !self.is_set
        {
            self.is_set = true;
            world.wake(AppId::Resolvers, first.at, Alarm::Timeout(traffic.into()).number());
        }
    }

    fn begin(&mut self, world: &mut World<'_>, traffic: usize) {
        let now = world.now();
        let lookup = self.draw(now, traffic);
        if let Some(next) = self.after(now) {
            world.wake(AppId::Resolvers, next, Alarm::Begin(traffic).number());
        }
        match world.lookups.open(lookup) {
            Some(number) => {
                self.open += 1;
                self.ask(world, number, lookup.id);
            }
            None => self.end(world, &lookup, None),
        }
    }

    /// Asks again, or gives up, for those who have waited long enough.
    fn on_timeout(&mut self, world: &mut World<'_>, traffic: u16) {
        let now = world.now();
        self.is_set = false;
        while let Some(Timeout { at, lookup: number, number: of_source }) =
            self.timeouts.front().copied()
        {
            let id = (traffic, of_source);
            let asked = world.lookups.live(number, id).map(|lookup| lookup.asked);
            if asked.is_some() && at > now {
                break;
            }
            self.timeouts.pop_front();
            match asked {
                Some(asked) if asked < self.profile.attempts => self.ask(world, number, id),
                Some(_) => {
                    let lookup = world.lookups.close(number, id).expect("it is open");
                    self.open -= 1;
                    self.end(world, &lookup, None);
                }
                None => {}
            }
        }
        self.set(world, traffic);
    }

    /// Reports a lookup that has ended with an answer at this time, or without one.
    fn end(&self, world: &mut World<'_>, lookup: &Lookup, answered: Option<Time>) {
        let timeouts = u32::from(lookup.asked) - u32::from(answered.is_some());
        if world.is_measured(lookup.began) {
            let took = answered.map_or(self.profile.patience(), |at| at.since(lookup.began));
            let traffic = usize::from(lookup.id.0);
            world.summary.note(lookup.began, |it| {
                let lookups = &mut it.traffic[traffic].lookups;
                lookups.asked_again += u64::from(lookup.asked > 1);
                lookups.failed += u64::from(answered.is_none());
                lookups.times.record(took);
            });
        }
        let now = world.now();
        world.report(&lookup.record(answered, timeouts), now);
    }
}

impl<'a> Resolvers<'a> {
    pub(crate) fn new(scenario: &'a Scenario, seed: u64) -> Resolvers<'a> {
        let sources = (0..scenario.traffic.len()).map(|it| Source::new(scenario, seed, it));
        Resolvers { sources: sources.collect() }
    }

    /// An answer has arrived at the host that asked.
    pub(crate) fn on_answer(&mut self, world: &mut World<'_>, number: u32, id: LookupId) {
        // That to the first query after the second's, or after the host has given up, is nobody's.
        let Some(lookup) = world.lookups.close(number, id) else { return };
        let source = self.sources[usize::from(id.0)].as_mut().expect("a source of lookups");
        source.open -= 1;
        source.end(world, &lookup, Some(world.now()));
    }

    /// Reports the lookups that are cut off.
    pub(crate) fn finish(&mut self, world: &mut World<'_>) {
        let now = world.now();
        for lookup in world.lookups.drain() {
            let timeouts = u32::from(lookup.asked.saturating_sub(1));
            world.report(&lookup.record(None, timeouts), now);
        }
    }
}

impl App for Resolvers<'_> {
    fn start(&mut self, world: &mut World<'_>) {
        for (traffic, source) in self.sources.iter_mut().enumerate() {
            if let Some(source) = source
                && let Some(first) = source.after(source.start)
            {
                world.wake(AppId::Resolvers, first, Alarm::Begin(traffic).number());
            }
        }
    }

    fn on_wake(&mut self, world: &mut World<'_>, number: u64) {
        let alarm = Alarm::of(number);
        let (Alarm::Begin(traffic) | Alarm::Timeout(traffic)) = alarm;
        let Some(source) = &mut self.sources[traffic] else { return };
        match alarm {
            Alarm::Begin(_) => source.begin(world, traffic),
            Alarm::Timeout(_) => source.on_timeout(world, traffic as u16),
        }
    }

    fn on_segment(&mut self, _: &mut World<'_>, _: ConnectionId, _: Side) -> bool {
        unreachable!("lookups have no connections")
    }

    fn on_over(&mut self, _: &mut World<'_>, _: &mut Connection, _: Side, _: Over) {
        unreachable!("lookups have no connections")
    }
}
