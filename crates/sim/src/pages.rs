//! Pages: their objects, what each object waits for, and how many are requested at once.
//!
//! A recording shows what discovered an object where the browser wrote it down (its
//! *initiator*). The object is then requested when as much of the initiator has
//! arrived as had arrived in the recording; a stylesheet that stands in the first
//! third of a document does not wait for the rest of it. If all of the initiator had
//! arrived, the object is requested after the same delay as in the recording, which is
//! the time of parsing and of scripts.
//!
//! Of other objects a recording shows that one which was requested after others had
//! arrived may have needed them, and that it did not need objects that had not arrived
//! yet. So such an object is requested once all objects have arrived that had arrived
//! before its request in the recording, and then after the same delay as there. The
//! true dependencies are among these; false ones make a page a little more sequential
//! than it is.
//!
//! Tools differ in whether the moment of a request is before or after it waited for a
//! free connection; where it is after, that wait is part of the delay.
//!
//! A browser opens at most six connections to a host (RFC 9112 section 9.4 leaves
//! the number to it); further objects wait in the order in which they were due.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tidegate_core::{Bytes, Span, Stream, Time};

use crate::trace::{HttpVersion, PageLoad, PageLoads, PageRequest, PageTable, Urgency};

/// The number of objects that a browser requests from one host at once, where each has
/// a connection to itself.
pub const AT_ONCE: u32 = 6;

/// The form of the pages that somebody asks for.
#[derive(Clone, Debug, Default)]
pub enum Pages {
    /// A random number of objects, all requested at once, each from a server of
    /// its own; a gateway's setup determines their number and sizes.
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
pub struct RecordedPages(Vec<Arc<Plan>>);

impl RecordedPages {
    /// The pages of these archives that have an object; `None` if there are
    /// none. Redirections and cached objects have no body and do not count as
    /// objects, but the time that they took remains.
    #[must_use]
    pub fn new(loads: &[PageLoads]) -> Option<RecordedPages> {
        let mut sites = Sites::default();
        let pages = loads.iter().flat_map(|loads| &loads.pages);
        let plans = pages.filter_map(|page| Plan::of_recording(page, &mut sites));
        let plans: Vec<_> = plans.map(Arc::new).collect();
        (!plans.is_empty()).then_some(RecordedPages(plans))
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

    /// Mean number of a page's objects.
    #[must_use]
    pub fn mean_objects(&self) -> f64 {
        let objects: usize = self.0.iter().map(|page| page.objects.len()).sum();
        objects as f64 / self.count() as f64
    }

    pub(crate) fn draw(&self, stream: &mut Stream) -> Arc<Plan> {
        self.0[stream.index(self.0.len())].clone()
    }
}

/// The hosts of all archives, and the connections that carried more than one response,
/// by number.
#[derive(Default)]
struct Sites(BTreeMap<(String, usize), u32>);

impl Sites {
    /// The `turn`th of the connections that a host was the first to use; the host
    /// itself is the first of them.
    fn number(&mut self, host: &str, turn: usize) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry((host.into(), turn)).or_insert(next)
    }
}

/// The plan by which a page is requested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Its objects, in the order in which they were requested or are due.
    objects: Vec<PlannedObject>,
    /// The numbers of the objects in the order of their arrival.
    order: Vec<usize>,
    /// What each object discovers: how many bytes of it have to arrive, and then which
    /// object is due; fewest bytes first.
    discovers: Vec<Vec<(u64, usize)>>,
    /// The hosts that it asks, by their numbers among those of all pages.
    pub(crate) hosts: Vec<u32>,
}

/// One object of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannedObject {
    /// Size of the response.
    pub(crate) size: Bytes,
    /// Its host, by the number in the page.
    host: u32,
    /// What has to arrive before it is due.
    after: After,
    /// The delay after that until it is due.
    gap: Span,
    /// Size of the request, where it is known.
    pub(crate) request: Option<Bytes>,
    /// The time of the server before the response begins.
    pub(crate) think: Span,
    pub(crate) urgency: Urgency,
    /// How it came in the recording.
    pub(crate) version: HttpVersion,
    /// The connection that it shares with others when it is multiplexed, by the number
    /// among those of all pages: that of its host, or of another host that the same
    /// certificate names (RFC 9113 section 9.1.1).
    pub(crate) shared: u32,
}

/// What an object waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// For so many objects, in the order of the plan.
    Arrivals(usize),
    /// For an object that discovers it.
    Discovery,
}

impl PlannedObject {
    /// An object that nothing is known of but its size, and that it is the `host`th's.
    fn new(size: Bytes, host: u32, site: u32, after: usize) -> PlannedObject {
        PlannedObject {
            size,
            host,
            after: After::Arrivals(after),
            gap: Span::ZERO,
            request: None,
            think: Span::ZERO,
            urgency: Urgency::default(),
            version: HttpVersion::default(),
            shared: site,
        }
    }
}

impl Plan {
    /// Objects that are all requested at once, without a limit.
    pub(crate) fn at_once(sizes: Vec<Bytes>) -> Plan {
        let hosts: Vec<u32> = (0..sizes.len() as u32).collect();
        let object = |(host, size): (&u32, _)| PlannedObject::new(size, *host, *host, 0);
        Plan::in_order(hosts.iter().zip(sizes).map(object).collect(), hosts.clone())
    }

    /// The size of each object.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = Bytes> {
        self.objects.iter().map(|object| object.size)
    }

    /// Objects none of which discovers another, and that arrive in their order.
    fn in_order(objects: Vec<PlannedObject>, hosts: Vec<u32>) -> Plan {
        let discovers = vec![Vec::new(); objects.len()];
        Plan { order: (0..objects.len()).collect(), discovers, objects, hosts }
    }

    /// A page of a table, drawn. The first object, and after its arrival the others;
    /// `draw` gives sizes that are in proportion to theirs.
    pub(crate) fn outlined(
        table: &PageTable,
        stream: &mut Stream,
        mut draw: impl FnMut(&mut Stream) -> Bytes,
    ) -> Plan {
        let number = stream.index(table.pages.len());
        let page = table.pages[number];
        // Each page has hosts of its own.
        let first: u32 = table.pages[..number].iter().map(|page| page.hosts).sum();
        let drawn: Vec<Bytes> = (0..page.objects).map(|_| draw(stream)).collect();
        let sum: u128 = drawn.iter().map(|size| u128::from(size.0)).sum();
        let scaled = |size: Bytes| {
            let size = u128::from(size.0) * u128::from(page.size.0) / sum.max(1);
            Bytes(u64::try_from(size).unwrap_or(u64::MAX).max(1))
        };
        let object = |(number, size)| {
            // Each host has one at least.
            let host =
                if number < page.hosts { number } else { stream.index(page.hosts as usize) as u32 };
            PlannedObject::new(scaled(size), host, first + host, usize::from(number > 0))
        };
        let objects: Vec<_> = (0..).zip(drawn).map(object).collect();
        Plan::in_order(objects, (first..first + page.hosts).collect())
    }

    /// `None` for a page without an object.
    fn of_recording(page: &PageLoad, sites: &mut Sites) -> Option<Plan> {
        let requests: Vec<(usize, &PageRequest)> =
            page.requests.iter().enumerate().filter(|(_, it)| it.size > Bytes::ZERO).collect();
        let begin = requests.first()?.1.at;
        // Their numbers without those that are no objects.
        let numbers: BTreeMap<usize, usize> =
            (0..).zip(&requests).map(|(number, (of_page, _))| (*of_page, number)).collect();
        let ends: Vec<Time> = requests.iter().map(|(_, it)| it.at + it.took).collect();
        let mut order: Vec<usize> = (0..requests.len()).collect();
        order.sort_by_key(|number| ends[*number]);
        let mut discovers = vec![Vec::new(); requests.len()];
        let mut hosts: Vec<u32> = Vec::new();
        let mut shared = Shared::default();
        let mut objects = Vec::new();
        for (number, (_, request)) in requests.iter().enumerate() {
            let site = sites.number(&request.host, 0);
            let host = hosts.iter().position(|host| *host == site).unwrap_or_else(|| {
                hosts.push(site);
                hosts.len() - 1
            });
            let initiator = request.initiator.and_then(|it| numbers.get(&it).copied());
            let discovery = initiator.and_then(|initiator| {
                let bytes = discovered_by(requests[initiator].1, request.at)?;
                Some((initiator, bytes))
            });
            let (after, gap) = match discovery {
                Some((initiator, bytes)) => {
                    discovers[initiator].push((bytes, number));
                    (After::Discovery, request.at.since(ends[initiator].min(request.at)))
                }
                None => {
                    // An object that took no time had not arrived before itself.
                    let after = order.partition_point(|other| {
                        ends[*other] < request.at || (ends[*other] == request.at && *other < number)
                    });
                    let before = after.checked_sub(1).map_or(begin, |last| ends[order[last]]);
                    (After::Arrivals(after), request.at.since(before))
                }
            };
            objects.push(PlannedObject {
                after,
                gap,
                request: request.request,
                think: request.think,
                urgency: request.urgency,
                version: request.version,
                shared: shared.number(request, sites),
                ..PlannedObject::new(request.size, host as u32, site, 0)
            });
        }
        discovers.iter_mut().for_each(|objects| objects.sort_unstable());
        Some(Plan { objects, order, discovers, hosts })
    }
}

/// How much of a reply, at least a byte, had arrived when the browser asked at `at` for
/// what it had found there; `None` if nothing had.
fn discovered_by(initiator: &PageRequest, at: Time) -> Option<u64> {
    if at >= initiator.at + initiator.took {
        return Some(initiator.size.0);
    }
    let begin = initiator.at + initiator.first_byte?;
    let receiving = (initiator.at + initiator.took).since(begin.min(at));
    let (into, size) = (at.0.checked_sub(begin.0)?, initiator.size.0);
    let bytes = u128::from(size) * u128::from(into) / u128::from(receiving.0.max(1));
    Some(u64::try_from(bytes).map_or(size, |bytes| bytes.clamp(1, size)))
}

/// The connections of one page that carry many responses at a time.
#[derive(Default)]
struct Shared<'a>(Vec<(&'a str, &'a str, usize)>);

impl<'a> Shared<'a> {
    /// The connection of an object: the one that the recording names, or that of its host.
    fn number(&mut self, request: &'a PageRequest, sites: &mut Sites) -> u32 {
        let Some(name) = &request.connection else { return sites.number(&request.host, 0) };
        if request.version == HttpVersion::One {
            return sites.number(&request.host, 0);
        }
        let known = self.0.iter().find(|(known, ..)| known == name).copied();
        let (_, host, turn) = known.unwrap_or_else(|| {
            let turn = self.0.iter().filter(|(_, host, _)| *host == request.host).count();
            self.0.push((name, &request.host, turn));
            (name, &request.host, turn)
        });
        sites.number(host, turn)
    }
}

/// A page that is being requested.
#[derive(Debug)]
pub(crate) struct Loading {
    plan: Arc<Plan>,
    /// The objects that have arrived, or never will.
    over: Vec<bool>,
    /// The number of objects in the plan's order that have arrived without a gap.
    in_order: usize,
    /// How many objects of the plan have been looked at, and are due or wait for a discovery.
    due: usize,
    /// How many of what each object discovers have been.
    discovered: Vec<usize>,
    /// Discovered, and not reported as due.
    found: VecDeque<usize>,
    left: usize,
}

impl Loading {
    pub(crate) fn new(plan: Arc<Plan>) -> Loading {
        let objects = plan.objects.len();
        Loading {
            over: vec![false; objects],
            in_order: 0,
            due: 0,
            discovered: vec![0; objects],
            found: VecDeque::new(),
            left: objects,
            plan,
        }
    }

    /// An object.
    pub(crate) fn object(&self, object: usize) -> &PlannedObject {
        &self.plan.objects[object]
    }

    /// The host of an object, by its number among those of all pages.
    pub(crate) fn site(&self, object: usize) -> u32 {
        self.plan.hosts[self.object(object).host as usize]
    }

    /// The next object that the arrivals make due, and the time until then;
    /// call it until it returns `None`, at the start and whenever something has arrived.
    pub(crate) fn next_due(&mut self) -> Option<(usize, Span)> {
        if let Some(found) = self.found.pop_front() {
            return Some((found, self.plan.objects[found].gap));
        }
        loop {
            let object = self.plan.objects.get(self.due)?;
            let is_due = match object.after {
                After::Arrivals(count) if count > self.in_order => return None,
                After::Arrivals(_) => true,
                After::Discovery => false,
            };
            self.due += 1;
            if is_due {
                return Some((self.due - 1, object.gap));
            }
        }
    }

    /// So many bytes of an object have arrived; returns whether that discovers others.
    pub(crate) fn arrived(&mut self, object: usize, bytes: u64) -> bool {
        let (all, seen) = (&self.plan.discovers[object], &mut self.discovered[object]);
        let fresh = all[*seen..].iter().take_while(|(needed, _)| *needed <= bytes);
        let before = *seen;
        for (_, found) in fresh {
            self.found.push_back(*found);
            *seen += 1;
        }
        *seen > before
    }

    /// An object has arrived, or never will.
    pub(crate) fn over(&mut self, object: usize) {
        self.arrived(object, u64::MAX);
        self.left -= 1;
        self.over[object] = true;
        let order = &self.plan.order;
        while order.get(self.in_order).is_some_and(|next| self.over[*next]) {
            self.in_order += 1;
        }
    }

    /// Whether all objects have arrived, or never will.
    pub(crate) fn is_over(&self) -> bool {
        self.left == 0
    }
}

/// The hosts of one page: who may ask now, and who waits.
#[derive(Debug)]
pub(crate) struct Turns {
    hosts: Vec<HostTurns>,
    /// How many objects of a host may be on their way.
    at_once: u32,
}

#[derive(Clone, Debug)]
struct HostTurns {
    /// The number of its server.
    server: usize,
    /// Objects on their way.
    open: u32,
    /// Objects that are due and wait for a connection.
    waiting: VecDeque<usize>,
}

impl Turns {
    /// The hosts of a page are these servers.
    pub(crate) fn new(plan: &Plan, servers: impl Iterator<Item = usize>, at_once: u32) -> Turns {
        let host = |server| HostTurns { server, open: 0, waiting: VecDeque::new() };
        let hosts: Vec<_> = servers.map(host).collect();
        debug_assert_eq!(hosts.len(), plan.hosts.len(), "each host has a server");
        Turns { hosts, at_once }
    }

    /// The number of an object's server.
    pub(crate) fn server(&self, object: &PlannedObject) -> usize {
        self.hosts[object.host as usize].server
    }

    /// An object is due; returns whether it may be requested now, or waits for a connection.
    pub(crate) fn ask(&mut self, page: &Loading, object: usize) -> bool {
        let host = &mut self.hosts[page.object(object).host as usize];
        let may = host.open < self.at_once;
        if may {
            host.open += 1;
        } else {
            host.waiting.push_back(object);
        }
        may
    }

    /// An object has arrived, or never will; returns one that may be requested instead.
    pub(crate) fn over(&mut self, page: &Loading, object: usize) -> Option<usize> {
        let host = &mut self.hosts[page.object(object).host as usize];
        let next = host.waiting.pop_front();
        if next.is_none() {
            host.open -= 1;
        }
        next
    }
}
