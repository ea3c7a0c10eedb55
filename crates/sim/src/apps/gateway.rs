//! A run of a gateway's users: their programs on the simulator's network, and
//! the records of all of them.

use tidegate_core::{Bytes, Time};

use super::{App, Clients, Proxy, Servers};
use crate::connections::AppId;
use crate::network::Queue;
use crate::requests::{Hosts, Outcome, Pauses, Sample, Setup, Way, Whereabouts};
use crate::simulation::World;

/// The programs of the hosts that share a gateway's access link.
pub(crate) struct Gateway<'a> {
    clients: Clients<'a>,
    servers: Servers,
    /// Without one, clients and servers talk to each other.
    proxy: Option<Proxy<'a>>,
    downlink: usize,
    samples: Vec<Sample>,
    /// Payload for each class when the warm-up was over.
    received_base: Vec<Bytes>,
    outcome: Option<Outcome>,
}

impl<'a> Gateway<'a> {
    pub(crate) fn new(setup: &'a Setup, way: &Way, hosts: &Hosts, seed: u64) -> Gateway<'a> {
        let proxy = (!way.is_end_to_end()).then(|| Proxy::new(setup, way, hosts, seed));
        Gateway {
            clients: Clients::new(setup, hosts, proxy.is_none(), seed),
            servers: Servers::new(),
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
            (
                AppId::Proxy
                | AppId::Traffic
                | AppId::Browsers
                | AppId::Viewers
                | AppId::Calls
                | AppId::Resolvers,
                _,
            ) => {
                unreachable!("{app:?} is not of this gateway")
            }
        }
    }

    pub(crate) fn start(&mut self, world: &mut World<'_>) {
        self.clients.start(world);
        self.servers.start(world);
        if let Some(proxy) = &mut self.proxy {
            proxy.start(world);
        }
        self.sample(world);
    }

    /// A datagram of a source, by its number, has arrived behind the downlink.
    pub(crate) fn on_datagram(&mut self, world: &mut World<'_>, traffic: usize, size: Bytes) {
        if let Some(proxy) = &mut self.proxy {
            proxy.hear_unrequested(world, traffic, size);
        }
    }

    pub(crate) fn forget_warm_up(&mut self) {
        self.received_base = self.received().to_vec();
    }

    /// Payload that has arrived for each class: at the gateway, or at clients without one.
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

    /// Closes the records, and compares those of clients with those of the gateway.
    pub(crate) fn finish(&mut self, world: &mut World<'_>, end: Time) {
        let proxy = &mut self.proxy;
        let unfinished = self.clients.leave_off(world, |world, connection, object| match proxy {
            Some(proxy) => proxy.whereabouts(world, connection, object),
            None => Whereabouts::Outstanding,
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

    /// What came out, once the run has ended.
    pub(crate) fn outcome(self) -> Outcome {
        self.outcome.expect("a run ends with its books closed")
    }
}
