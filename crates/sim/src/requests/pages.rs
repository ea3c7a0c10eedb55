//! Pages: their objects, the order of the requests, and the number of simultaneous ones.
//!
//! A recording does not contain what a page's objects wait for. It shows that an object
//! that was requested after others had arrived may have needed them, and that it did not
//! need objects that had not arrived yet. So an object is requested once all objects
//! have arrived that had arrived before its request in the recording, and then after the
//! same delay as there: the time of scripts and of waiting for a connection. The true
//! dependencies are among these; false ones make a page a little more sequential than it
//! is.
//!
//! A browser opens at most six connections to a host (RFC 9112 section 9.4 leaves
//! the number to it); further objects wait in the order in which they were due.

use std::collections::VecDeque;
use std::sync::Arc;

use tidegate_core::{Bytes, Span, Stream, Time};

use crate::trace::{PageLoad, PageLoads, PageOutline, PageTable};

/// The number of objects that a page requests from one host at once.
const AT_ONCE: u32 = 6;

/// The form of a class's pages.
#[derive(Clone, Debug, Default)]
pub enum Pages {
    /// A random number of objects, all requested at once, each from a server of
    /// its own; the setup determines their number and sizes.
    #[default]
    Drawn,
    /// Pages of a table, each with equal probability: the same numbers of
    /// objects and hosts, the first object alone and then the others. Their
    /// sizes are drawn, and scaled to the page's total.
    Outlined(Arc<PageTable>),
    /// Pages as a browser recorded them, each with equal probability.
    Recorded(Arc<RecordedPages>),
}

/// Page loads of a browser, in the form in which they are replayed.
#[derive(Clone, Debug)]
pub struct RecordedPages(Vec<Plan>);

impl RecordedPages {
    /// The pages of these archives that have an object; `None` if there are
    /// none. Redirections and cached objects have no body and do not count as
    /// objects, but the time that they took remains.
    #[must_use]
    pub fn new(loads: &[PageLoads]) -> Option<RecordedPages> {
        let pages = loads.iter().flat_map(|loads| &loads.pages).filter_map(Plan::of_recording);
        let pages: Vec<Plan> = pages.collect();
        (!pages.is_empty()).then_some(RecordedPages(pages))
    }

    /// The number of pages.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Mean size of a page's objects together, in bytes.
    #[must_use]
    pub fn mean_size(&self) -> f64 {
        let sizes = self.0.iter().flat_map(|page| &page.objects).map(|object| object.size.0 as f64);
        sizes.sum::<f64>() / self.count() as f64
    }

    pub(crate) fn draw(&self, stream: &mut Stream) -> Plan {
        self.0[stream.index(self.0.len())].clone()
    }
}

/// The plan by which a page is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Its objects, in the order in which they are due.
    objects: Vec<PlannedObject>,
    /// The numbers of the objects in the order of their arrival.
    order: Vec<usize>,
    /// The number of hosts that it asks.
    pub(crate) hosts: u32,
}

/// One object of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PlannedObject {
    size: Bytes,
    host: u32,
    /// The number of objects, in the order of the plan, that have to arrive before it is due.
    after: usize,
    /// The delay after that until it is due.
    gap: Span,
}

impl Plan {
    /// Objects that are all requested at once, without a limit.
    pub(crate) fn at_once(sizes: Vec<Bytes>) -> Plan {
        let object = |(host, size)| PlannedObject { size, host, after: 0, gap: Span::ZERO };
        let hosts = sizes.len() as u32;
        let order = (0..sizes.len()).collect();
        Plan { objects: (0..).zip(sizes).map(object).collect(), order, hosts }
    }

    /// The first object, and after its arrival the others; `draw` gives sizes
    /// that are in proportion to theirs.
    pub(crate) fn outlined(
        page: PageOutline,
        stream: &mut Stream,
        mut draw: impl FnMut(&mut Stream) -> Bytes,
    ) -> Plan {
        let drawn: Vec<Bytes> = (0..page.objects).map(|_| draw(stream)).collect();
        let sum: u128 = drawn.iter().map(|size| u128::from(size.0)).sum();
        let scaled = |size: Bytes| {
            let size = u128::from(size.0) * u128::from(page.size.0) / sum.max(1);
            Bytes(u64::try_from(size).unwrap_or(u64::MAX).max(1))
        };
        let object = |(number, size)| PlannedObject {
            size: scaled(size),
            // Each host has one at least.
            host: if number < page.hosts {
                number
            } else {
                stream.index(page.hosts as usize) as u32
            },
            after: usize::from(number > 0),
            gap: Span::ZERO,
        };
        let objects: Vec<_> = (0..).zip(drawn).map(object).collect();
        Plan { order: (0..objects.len()).collect(), objects, hosts: page.hosts }
    }

    /// `None` for a page without an object.
    fn of_recording(page: &PageLoad) -> Option<Plan> {
        let requests: Vec<_> =
            page.requests.iter().filter(|request| request.size > Bytes::ZERO).collect();
        let ends: Vec<Time> = requests.iter().map(|request| request.at + request.took).collect();
        let mut order: Vec<usize> = (0..requests.len()).collect();
        order.sort_by_key(|number| ends[*number]);
        let mut hosts: Vec<&str> = Vec::new();
        let begin = requests.first()?.at;
        let objects = requests.iter().enumerate().map(|(number, request)| {
            let host = hosts.iter().position(|host| *host == request.host);
            let host = host.unwrap_or_else(|| {
                hosts.push(&request.host);
                hosts.len() - 1
            });
            // An object that took no time had not arrived before itself.
            let after = order.partition_point(|other| {
                ends[*other] < request.at || (ends[*other] == request.at && *other < number)
            });
            let before = after.checked_sub(1).map_or(begin, |last| ends[order[last]]);
            let gap = request.at.since(before);
            PlannedObject { size: request.size, host: host as u32, after, gap }
        });
        let objects = objects.collect();
        Some(Plan { objects, order, hosts: hosts.len() as u32 })
    }
}

/// A page that is being requested.
#[derive(Debug)]
pub(crate) struct Loading {
    plan: Plan,
    /// The objects that have arrived, or never will.
    over: Vec<bool>,
    /// The number of objects in the plan's order that have arrived without a gap.
    in_order: usize,
    /// The number of objects that have been due.
    due: usize,
    left: usize,
    hosts: Vec<HostState>,
}

#[derive(Clone, Debug)]
struct HostState {
    /// The number of its server.
    server: usize,
    /// Objects on their way.
    open: u32,
    /// Objects that are due and wait for a connection.
    waiting: VecDeque<usize>,
}

impl Loading {
    /// A page whose hosts are these servers.
    pub(crate) fn new(plan: Plan, servers: impl Iterator<Item = usize>) -> Loading {
        let host = |server| HostState { server, open: 0, waiting: VecDeque::new() };
        let hosts: Vec<_> = servers.map(host).collect();
        debug_assert_eq!(hosts.len(), plan.hosts as usize, "each host has a server");
        Loading {
            over: vec![false; plan.objects.len()],
            in_order: 0,
            due: 0,
            left: plan.objects.len(),
            hosts,
            plan,
        }
    }

    /// The size of an object, and the number of its server.
    pub(crate) fn object(&self, object: usize) -> (Bytes, usize) {
        let object = self.plan.objects[object];
        (object.size, self.hosts[object.host as usize].server)
    }

    /// The next object that the arrivals make due, and the time until then;
    /// call it until it returns `None`, at the start and whenever an object is
    /// over.
    pub(crate) fn next_due(&mut self) -> Option<(usize, Span)> {
        let object = self.plan.objects.get(self.due).filter(|next| next.after <= self.in_order)?;
        self.due += 1;
        Some((self.due - 1, object.gap))
    }

    /// An object is due; returns whether it may be requested now, or waits for a connection.
    pub(crate) fn ask(&mut self, object: usize) -> bool {
        let host = &mut self.hosts[self.plan.objects[object].host as usize];
        let may = host.open < AT_ONCE;
        if may {
            host.open += 1;
        } else {
            host.waiting.push_back(object);
        }
        may
    }

    /// An object has arrived, or never will; returns one that may be requested instead.
    pub(crate) fn over(&mut self, object: usize) -> Option<usize> {
        self.left -= 1;
        self.over[object] = true;
        let order = &self.plan.order;
        while order.get(self.in_order).is_some_and(|next| self.over[*next]) {
            self.in_order += 1;
        }
        let host = &mut self.hosts[self.plan.objects[object].host as usize];
        let next = host.waiting.pop_front();
        if next.is_none() {
            host.open -= 1;
        }
        next
    }

    /// Whether all objects have arrived, or never will.
    pub(crate) fn is_over(&self) -> bool {
        self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::PageRequest;

    fn request(at: u64, took: u64, host: &str, size: u64) -> PageRequest {
        PageRequest {
            at: Time(at * 1_000_000),
            took: Span::millis(took),
            host: host.into(),
            size: Bytes(size),
        }
    }

    fn recorded(requests: Vec<PageRequest>) -> Plan {
        let page = PageLoad { name: "p".into(), requests };
        Plan::of_recording(&page).expect("it has objects")
    }

    /// Asks for a page whose objects take as long as `took` says, in milliseconds;
    /// when each was asked for.
    fn asked(plan: Plan, took: impl Fn(usize) -> u64) -> Vec<u64> {
        let mut asked = vec![0; plan.objects.len()];
        let hosts = 0..plan.hosts as usize;
        let mut page = Loading::new(plan, hosts);
        // Moments, objects, and whether they end.
        let mut events: Vec<(u64, usize, bool)> = Vec::new();
        let mut now = 0;
        loop {
            while let Some((object, gap)) = page.next_due() {
                events.push((now + gap.0 / 1_000_000, object, false));
            }
            events.sort_by_key(|(at, object, ends)| std::cmp::Reverse((*at, *object, !ends)));
            let Some((at, object, ends)) = events.pop() else { break };
            now = at;
            let start = if ends { page.over(object) } else { page.ask(object).then_some(object) };
            if let Some(object) = start {
                asked[object] = now;
                events.push((now + took(object), object, true));
            }
        }
        assert!(page.is_over());
        asked
    }

    #[test]
    fn a_recording_asks_for_an_object_after_those_that_had_come_before() {
        let plan = recorded(vec![
            request(0, 100, "a", 10),
            // The document is being read: it needs only a part of it.
            request(60, 80, "b", 20),
            // A redirection, over before the next one starts.
            request(110, 40, "a", 0),
            request(160, 10, "a", 30),
        ]);
        let objects: Vec<_> = plan.objects.iter().map(|o| (o.size.0, o.host, o.after)).collect();
        assert_eq!(objects, [(10, 0, 0), (20, 1, 0), (30, 0, 2)]);
        // As it was, and where each takes ten times as long.
        assert_eq!(asked(plan.clone(), |object| [100, 80, 10][object]), [0, 60, 160]);
        // The one at 60 is over at 860, 140 ms before the document; 20 ms later
        // than the later of the two the last is due.
        assert_eq!(asked(plan, |object| [1_000, 800, 100][object]), [0, 60, 1_020]);
    }

    #[test]
    fn a_host_gives_six_objects_at_once_and_the_others_in_order() {
        let mut requests: Vec<_> = (0..8).map(|_| request(0, 10, "a", 5)).collect();
        requests.push(request(0, 10, "b", 5));
        let plan = recorded(requests);
        let times = asked(plan, |object| 10 + object as u64);
        assert_eq!(times, [0, 0, 0, 0, 0, 0, 10, 11, 0]);
    }

    #[test]
    fn an_outlined_page_has_its_bytes_and_hosts_and_the_first_object_comes_alone() {
        let page = PageOutline { objects: 50, size: Bytes(1_000_000), hosts: 4 };
        let mut stream = Stream::new(1, "test");
        let plan = Plan::outlined(page, &mut stream, |stream| Bytes(1 + stream.bits() % 90_000));
        let sum: u64 = plan.objects.iter().map(|object| object.size.0).sum();
        assert!((999_950..=1_000_050).contains(&sum), "{sum}");
        for host in 0..4 {
            assert!(plan.objects.iter().any(|object| object.host == host));
        }
        let times = asked(plan, |_| 10);
        assert_eq!(times[0], 0);
        assert!(times[1..].iter().all(|at| *at >= 10));
        // No more than four times six at once.
        assert_eq!(times.iter().filter(|at| **at == 10).count(), 24);
    }

    #[test]
    fn objects_that_took_no_time_wait_for_none_but_those_before_them() {
        let plan = recorded(vec![request(0, 0, "a", 1), request(0, 0, "a", 1)]);
        assert_eq!(asked(plan, |_| 5), [0, 5]);
    }

    #[test]
    fn archives_without_an_object_are_no_pages() {
        let page = PageLoad { name: "p".into(), requests: vec![request(0, 5, "a", 0)] };
        let loads = PageLoads { pages: vec![page], unknown_sizes: 0 };
        assert!(RecordedPages::new(&[loads]).is_none());
    }
}
