//! The demand of clients: what they ask for, and when.
//!
//! Each loop of a client, or each client with open demand, draws from a stream
//! of its own: the n-th page of a loop is the same under every scheduler, and
//! only its time depends on earlier events. A client with a log's demand asks
//! at the log's times.

use std::num::NonZeroU32;
use std::sync::Arc;

use tidegate_core::units::NANOS_PER_SECOND;
use tidegate_core::{Bytes, Span, Stream, Time};

use super::failures::{Fate, ServerFailures};
use super::setup::{Class, Demand, Setup};
use crate::pages::{Pages, Plan};
use crate::scenario::sizes::Sampler;
use crate::trace::HttpLog;

/// The requests of a Web server's log, for replay.
///
/// The times of a log are whole seconds: within its second, a request has a
/// random time. After the last request the log starts again, and its starting
/// point is random too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLog {
    /// The time and size of each request, and the number of its host.
    requests: Vec<(Time, Bytes, u32)>,
    speed: NonZeroU32,
}

impl RequestLog {
    /// The requests of a log, this many times as fast; `None` if it has none.
    #[must_use]
    pub fn new(log: &HttpLog, speed: NonZeroU32) -> Option<RequestLog> {
        let request =
            |reply: &crate::trace::LoggedReply| (reply.at, reply.size.max(Bytes(1)), reply.host);
        let requests: Vec<_> = log.replies.iter().map(request).collect();
        (!requests.is_empty()).then_some(RequestLog { requests, speed })
    }

    /// The number of hosts that ask.
    #[must_use]
    pub fn hosts(&self) -> u32 {
        self.requests.iter().map(|(.., host)| host + 1).max().unwrap_or_default()
    }

    /// The duration of the log when it is replayed.
    #[must_use]
    pub fn period(&self) -> Span {
        let last = self.requests.last().map_or(Time::ZERO, |(at, ..)| *at);
        Span((last.0.saturating_add(NANOS_PER_SECOND)) / u64::from(self.speed.get()))
    }
}

/// The requests of a log that one client makes.
#[derive(Debug)]
struct Turn {
    /// The time within each round and the size, in order of time.
    requests: Vec<(Span, Bytes)>,
    /// The duration of a round.
    period: Span,
    /// The round and the number in it of the next request.
    next: (u64, usize),
}

impl Turn {
    /// The turn of each client of a class: the hosts are distributed among them one by one.
    fn of_class(log: &RequestLog, clients: u32, mut stream: Stream) -> Vec<Turn> {
        let period = log.period();
        let begin = stream.uniform() * period.as_seconds();
        let begin = Span::from_seconds(begin).0;
        let mut turns: Vec<Turn> =
            (0..clients).map(|_| Turn { requests: Vec::new(), period, next: (0, 0) }).collect();
        for (second, size, host) in &log.requests {
            let within = (stream.uniform() * NANOS_PER_SECOND as f64) as u64;
            let at = second.0.saturating_add(within) / u64::from(log.speed.get());
            // Times are below the period, as `begin` is.
            let at = if at >= begin { at - begin } else { at + (period.0 - begin) };
            turns[(host % clients) as usize].requests.push((Span(at), *size));
        }
        turns.iter_mut().for_each(|turn| turn.requests.sort_by_key(|(at, _)| *at));
        turns
    }

    /// The next request outside the `silent` times; those within are not made.
    fn next(&mut self, silent: &[(Time, Time)]) -> Option<(Time, Bytes)> {
        loop {
            let (round, number) = self.next;
            let Some((at, size)) = self.requests.get(number) else {
                if self.requests.is_empty() {
                    return None;
                }
                self.next = (round + 1, 0);
                continue;
            };
            self.next.1 += 1;
            let at = Time(self.period.0.saturating_mul(round)) + *at;
            if !silent.iter().any(|(from, to)| *from <= at && at < *to) {
                return Some((at, *size));
            }
        }
    }
}

/// Something that asks for pages, one after the other.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) class: usize,
    /// The client's number in its class.
    pub(crate) client: u32,
    demand: Demand,
    pages: Pages,
    stream: Stream,
    /// The fate of its responses.
    fates: Stream,
    /// How often its user has come or gone: each time voids earlier plans.
    pub(crate) visit: u32,
    /// With a log's demand: what remains of it, and the size asked for next.
    turn: Option<Turn>,
    logged: Bytes,
}

impl Asker {
    /// All askers of a class.
    pub(crate) fn of_class(number: usize, class: &Class, seed: u64) -> Vec<Asker> {
        let (loops, turns) = match &class.demand {
            Demand::Closed { loops, .. } => (*loops, Vec::new()),
            Demand::Open { .. } => (1, Vec::new()),
            Demand::Log(log) => {
                let stream = Stream::new(seed, &format!("class {number} log"));
                (1, Turn::of_class(log, class.clients, stream))
            }
        };
        let mut turns = turns.into_iter();
        let all = (0..class.clients).flat_map(|client| (0..loops).map(move |turn| (client, turn)));
        let asker = |(client, turn)| Asker {
            class: number,
            client,
            demand: class.demand.clone(),
            pages: class.pages.clone(),
            stream: Stream::new(seed, &format!("class {number} client {client} loop {turn}")),
            fates: Stream::new(seed, &format!("class {number} client {client} fates {turn}")),
            visit: 0,
            turn: turns.next(),
            logged: Bytes::ZERO,
        };
        all.map(asker).collect()
    }

    /// The start of its next page, seen from `now`: the start of the run, the
    /// end of its last page, or with open demand that page's start. `None` if
    /// it asks for nothing more.
    pub(crate) fn next(&mut self, now: Time, class: &Class) -> Option<Time> {
        if let Some(turn) = &mut self.turn {
            // Requests that fall into the user's absence are not made.
            let (at, size) = loop {
                let next = turn.next(&class.silent)?;
                if next.0 >= now {
                    break next;
                }
            };
            self.logged = size;
            return Some(at);
        }
        let mean = match self.demand {
            Demand::Closed { pause, .. } => pause,
            Demand::Open { every } => every,
            Demand::Log(_) => return None,
        };
        let mut at = now + self.stream.exponential_span(mean);
        for (from, to) in &class.silent {
            if *from <= at && at < *to {
                at = *to;
            }
        }
        Some(at)
    }

    /// The fate of a response.
    pub(crate) fn fate(&mut self, failures: &ServerFailures, size: Bytes) -> Fate {
        failures.draw(size, &mut self.fates)
    }

    /// Whether its next page waits for this one.
    pub(crate) fn waits_for_pages(&self) -> bool {
        matches!(self.demand, Demand::Closed { .. })
    }

    /// Draws a page, and the server of each of its hosts, one of this many `servers`.
    pub(crate) fn page(
        &mut self,
        setup: &Setup,
        sizes: &Sizes,
        servers: usize,
    ) -> (Arc<Plan>, Vec<usize>) {
        let stream = &mut self.stream;
        if self.turn.is_some() {
            let server = stream.index(servers);
            return (Arc::new(Plan::at_once(vec![self.logged])), vec![server]);
        }
        let plan = match &self.pages {
            Pages::Drawn => return drawn(setup.objects, sizes, servers, stream),
            Pages::Outlined(table) => {
                Arc::new(Plan::outlined(table, stream, |stream| sizes.draw(stream)))
            }
            Pages::Recorded(pages) => pages.draw(stream),
        };
        let servers = plan.hosts.iter().map(|_| stream.index(servers)).collect();
        (plan, servers)
    }
}

/// Somebody who asks for the objects of a [`Setup`] outside of the simulator: one loop of a
/// client, or a client with open demand, which draws what it draws in a run with the same
/// seed.
#[derive(Debug)]
pub struct Loop {
    setup: Arc<Setup>,
    asker: Asker,
    sizes: Sizes,
    servers: usize,
}

impl Loop {
    /// All of them; `None` when a class asks for pages whose objects wait for each other.
    #[must_use]
    pub fn all(setup: &Arc<Setup>, seed: u64) -> Option<Vec<Loop>> {
        let servers = setup.servers.iter().map(|group| group.count as usize).sum();
        let mut loops = Vec::new();
        for (number, class) in setup.classes.iter().enumerate() {
            if !matches!(class.pages, Pages::Drawn) {
                return None;
            }
            loops.extend(Asker::of_class(number, class, seed).into_iter().map(|asker| {
                let sizes = Sizes::of(class, setup);
                Loop { setup: setup.clone(), asker, sizes, servers }
            }));
        }
        Some(loops)
    }

    /// The number of its class.
    #[must_use]
    pub fn class(&self) -> usize {
        self.asker.class
    }

    /// The number of its client in the class.
    #[must_use]
    pub fn client(&self) -> u32 {
        self.asker.client
    }

    /// Whether its next page waits until this one is complete.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.asker.waits_for_pages()
    }

    /// The start of its next page: seen from the end of its last page, or with open demand
    /// from that page's start. `None` if it asks for nothing more.
    pub fn next_page(&mut self, now: Time) -> Option<Time> {
        self.asker.next(now, &self.setup.classes[self.asker.class])
    }

    /// Draws that page: the size of each object, and the number of its server. All are
    /// asked for at once.
    pub fn page(&mut self) -> Vec<(Bytes, usize)> {
        let (plan, servers) = self.asker.page(&self.setup, &self.sizes, self.servers);
        plan.sizes().zip(servers).collect()
    }
}

/// A page of `objects` on average, each from one of so many `servers`.
fn drawn(
    objects: f64,
    sizes: &Sizes,
    servers: usize,
    stream: &mut Stream,
) -> (Arc<Plan>, Vec<usize>) {
    let count = (stream.exponential() * objects).round().max(1.0) as usize;
    // A mean of one is one, always.
    let count = if objects > 1.0 { count } else { 1 };
    let object = |_| (sizes.draw(stream), stream.index(servers));
    let (sizes, hosts): (Vec<_>, Vec<_>) = (0..count).map(object).unzip();
    (Arc::new(Plan::at_once(sizes)), hosts)
}

/// Sizes of objects.
#[derive(Debug)]
pub(crate) struct Sizes(Sampler);

impl Sizes {
    /// Those of a class.
    pub(crate) fn of(class: &Class, setup: &Setup) -> Sizes {
        Sizes(Sampler::new(class.sizes.as_ref().unwrap_or(&setup.sizes)))
    }

    fn draw(&self, stream: &mut Stream) -> Bytes {
        self.0.draw(stream).unwrap_or(Bytes(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::LoggedReply;

    /// Replies of 1, 2, 3 ... bytes at these seconds by these hosts.
    fn log(replies: &[(u64, u32)]) -> HttpLog {
        let reply = |(size, (second, host)): (u64, &(u64, u32))| LoggedReply {
            at: Time(second * NANOS_PER_SECOND),
            size: Bytes(size),
            host: *host,
        };
        HttpLog { replies: (1..).zip(replies).map(reply).collect(), without_size: 0 }
    }

    fn turns(replies: &[(u64, u32)], speed: u32, clients: u32) -> Vec<Turn> {
        let speed = NonZeroU32::new(speed).unwrap();
        let log = RequestLog::new(&log(replies), speed).unwrap();
        Turn::of_class(&log, clients, Stream::new(1, "log"))
    }

    #[test]
    fn a_log_is_made_again_round_and_round_by_its_hosts() {
        let replies = [(0, 0), (10, 1), (10, 2), (39, 0)];
        let mut turns = turns(&replies, 4, 2);
        // Four requests in 40 s, four times as fast: a round of 10 s.
        let requests = |turn: &mut Turn| -> Vec<(f64, u64)> {
            (0..9)
                .map(|_| turn.next(&[]).unwrap())
                .map(|(at, size)| (at.as_seconds(), size.0))
                .collect()
        };
        let first = requests(&mut turns[0]);
        assert!(first.is_sorted_by(|a, b| a.0 <= b.0));
        for pair in first.windows(4) {
            // The same size again a round later, at the same place in it.
            assert_eq!(pair[0].1, pair[3].1);
            assert!((pair[3].0 - pair[0].0 - 10.0).abs() < 1e-6);
        }
        // The first host's requests are a quarter of 39 s apart, give or take a
        // quarter of the second that the log does not resolve.
        let at = |size: u64| first.iter().find(|request| request.1 == size).unwrap().0;
        let apart = (at(4) - at(1)).rem_euclid(10.0);
        assert!((9.5..10.0).contains(&apart), "{apart}");
        // The second client is the second host.
        assert!(requests(&mut turns[1]).iter().all(|request| request.1 == 2));
    }

    #[test]
    fn requests_in_silent_times_are_not_made() {
        let mut turn = turns(&[(0, 0), (1, 0)], 1, 1).remove(0);
        let silent = [(Time::ZERO, Time(1_000 * NANOS_PER_SECOND))];
        let (at, _) = turn.next(&silent).unwrap();
        assert!((1_000.0..1_002.0).contains(&at.as_seconds()), "{at:?}");
    }

    #[test]
    fn a_client_without_a_host_asks_for_nothing() {
        let mut turns = turns(&[(0, 0)], 1, 2);
        assert!(turns[0].next(&[]).is_some());
        assert!(turns[1].next(&[]).is_none());
    }
}
