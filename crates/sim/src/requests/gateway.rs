//! A run of a gateway's users: their programs on the simulator's network, and the
//! books of all of them.

use std::sync::atomic::AtomicBool;

use tidegate_core::{Bytes, Time};

use super::network::Hosts;
use super::outcome::{Outcome, Pauses, Sample};
use super::setup::{SchedulerChoice, Setup};
use super::ways::Way;
use crate::apps::{App, AppId, Clients, Proxy, Servers};
use crate::metrics::{Discard, Recorder};
use crate::network::Queue;
use crate::simulation::{self, World};

/// Runs `setup` with a gateway and this scheduler. When `stop` becomes true the run
/// ends early, with what it has.
#[must_use]
pub fn run(setup: &Setup, scheduler: &SchedulerChoice, seed: u64, stop: &AtomicBool) -> Outcome {
    run_way(setup, &scheduler.clone().into(), seed, &mut Discard, stop)
}

/// Runs `setup` in any way, as [`run`], and gives the rows of requests and links to
/// `recorder`.
#[must_use]
pub fn run_way(
    setup: &Setup,
    way: &Way,
    seed: u64,
    recorder: &mut dyn Recorder,
    stop: &AtomicBool,
) -> Outcome {
    let (scenario, hosts) = setup.network(way, seed);
    let gateway = Gateway::new(setup, way, &hosts, seed);
    // Nothing is tested here: every queue is what the way or the setup says.
    let tested = &setup.provider;
    let (summary, gateway) =
        simulation::run_gateway(&scenario, tested, seed, recorder, stop, gateway);
    let mut outcome = gateway.outcome();
    let link = |index: usize| summary.links[index].clone().unwrap_or_default();
    let downlink = link(hosts.downlink);
    outcome.downlink = downlink.counters;
    outcome.utilisation = downlink.utilisation;
    outcome.queueing = downlink.delay;
    outcome.shaper = hosts.shaper.map(|shaper| link(shaper).counters);
    outcome.reached = summary.reached;
    outcome.measured = summary.reached.since(Time(setup.warm_up.0));
    outcome
}

/// The programs of those who share a gateway's access link.
pub(crate) struct Gateway<'a> {
    clients: Clients<'a>,
    servers: Servers<'a>,
    /// Without one, clients and servers talk to each other.
    proxy: Option<Proxy<'a>>,
    downlink: usize,
    samples: Vec<Sample>,
    /// Payload for each class when the warm-up was over.
    received_base: Vec<Bytes>,
    outcome: Option<Outcome>,
}

impl<'a> Gateway<'a> {
    fn new(setup: &'a Setup, way: &Way, hosts: &Hosts, seed: u64) -> Gateway<'a> {
        let proxy = (!way.is_end_to_end()).then(|| Proxy::new(setup, way, hosts, seed));
        Gateway {
            clients: Clients::new(setup, hosts, proxy.is_none(), seed),
            servers: Servers::new(setup),
            proxy,
            downlink: hosts.downlink,
            samples: Vec::new(),
            received_base: vec![Bytes::ZERO; setup.classes.len()],
            outcome: None,
        }
    }

    pub(crate) fn app(&mut self, app: AppId) -> &mut dyn App {
        match (app, &mut self.proxy) {
            (AppId::Clients, _) => &mut self.clients,
            (AppId::Servers, _) => &mut self.servers,
            (AppId::Proxy, Some(proxy)) => proxy,
            (AppId::Proxy | AppId::Traffic, _) => unreachable!("{app:?} is not of this gateway"),
        }
    }

    fn each(&mut self, mut act: impl FnMut(&mut dyn App)) {
        act(&mut self.clients);
        act(&mut self.servers);
        if let Some(proxy) = &mut self.proxy {
            act(proxy);
        }
    }

    pub(crate) fn start(&mut self, world: &mut World<'_>) {
        self.each(|app| app.start(world));
        self.sample(world);
    }

    pub(crate) fn forget_warm_up(&mut self) {
        self.received_base = self.received().to_vec();
    }

    /// Payload that has come for each class: to the gateway, or to clients without one.
    fn received(&self) -> &[Bytes] {
        self.proxy.as_ref().map_or(self.clients.received(), Proxy::received)
    }

    pub(crate) fn sample(&mut self, world: &mut World<'_>) {
        let Queue::Scheduled(queue) = &world.network.links[self.downlink].queue else { return };
        let (queued, carried) =
            (queue.port().backlog().packets, queue.port().counters().delivered_bytes);
        let on_their_way = self.clients.on_their_way();
        let (window, held, outstanding, waiting) = match &mut self.proxy {
            Some(proxy) => proxy.window(),
            None => (f64::INFINITY, on_their_way as u32, on_their_way, 0),
        };
        self.samples.push(Sample {
            at: world.now(),
            window,
            held,
            outstanding,
            waiting,
            queued,
            received: self.received().to_vec(),
            carried,
        });
    }

    /// Closes the books, and holds those of clients and gateway against each other.
    pub(crate) fn finish(&mut self, world: &mut World<'_>, end: Time) {
        let proxy = &mut self.proxy;
        let unfinished = self.clients.leave_off(world, |world, connection| match proxy {
            Some(proxy) => proxy.whereabouts(world, connection),
            None => super::outcome::Whereabouts::Outstanding,
        });
        if let Some(proxy) = &mut self.proxy {
            proxy.leave_off(&unfinished);
        }
        let mut classes = self.clients.books().to_vec();
        for (class, books) in classes.iter_mut().enumerate() {
            books.received = self.received()[class] - self.received_base[class];
            if let Some(proxy) = &self.proxy {
                proxy.add_to(class, books);
            }
            let ended = books.completed + books.failures.all() + books.abandoned;
            let all = ended + books.unfinished.all();
            assert_eq!(books.asked, all, "a request ended twice or never");
        }
        let pauses = match &self.proxy {
            Some(proxy) => proxy.pauses(end),
            None => Pauses { silent: self.clients.longest_silence(), ..Pauses::default() },
        };
        self.outcome = Some(Outcome {
            classes,
            samples: std::mem::take(&mut self.samples),
            pauses,
            ..Outcome::default()
        });
    }

    fn outcome(self) -> Outcome {
        self.outcome.expect("a run ends with its books closed")
    }
}
