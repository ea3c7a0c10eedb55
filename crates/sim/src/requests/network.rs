//! The network around a gateway: the nodes and links of a [`Setup`] under a [`Way`].
//!
//! ```text
//! clients --- switch === gateway === access link === provider --- servers
//! ```
//!
//! A shaper, if the way has one, stands between gateway and switch; otherwise packets
//! pass there at once. Clients hang on wires, or are the stations of one wireless
//! cell, whose access point is the switch.

use std::sync::Arc;

use tidegate_core::{Rate, Span, Stream, Time};

use super::setup::{Cbr, Class, Setup};
use super::ways::Way;
use crate::scenario::layout::{Layout, NewLink};
use crate::scenario::{
    Arrivals, Capacity, Marking, NodeId, Opener, Pauses, QueueSpec, Scenario, SizeLaw, TrafficKind,
    TrafficSpec, Transfer,
};

/// Where the programs of a gateway's users run.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    /// By their number among those of all classes.
    pub(crate) clients: Vec<NodeId>,
    pub(crate) gateway: NodeId,
    pub(crate) servers: Vec<NodeId>,
    /// The uplink of the access link, if its queue has a discipline.
    pub(crate) uplink: Option<usize>,
    /// The downlink of the access link, and the shaper behind it.
    pub(crate) downlink: usize,
    pub(crate) shaper: Option<usize>,
}

impl Setup {
    /// The network for a seed, which draws the servers' links, and the hosts of the programs.
    pub(crate) fn network(&self, way: &Way, seed: u64) -> (Scenario, Hosts) {
        let mut layout = Layout::default();
        let access = Capacity::Fixed(self.rate);
        let uplink = layout.add(NewLink {
            name: UPLINK.into(),
            from: "gateway",
            to: "provider",
            capacity: Capacity::Fixed(self.uplink.rate.unwrap_or(self.rate)),
            delay: self.delay,
            loss: 0.0,
            queue: match &self.uplink.queue {
                Some((discipline, buffer)) => QueueSpec::Fixed(discipline.clone(), *buffer),
                None => QueueSpec::Unbounded,
            },
        });
        let downlink = layout.add(NewLink {
            name: DOWNLINK.into(),
            from: "provider",
            to: "gateway",
            capacity: access,
            delay: self.delay,
            loss: 0.0,
            queue: QueueSpec::Fixed(self.provider.clone(), self.buffer),
        });
        let clients = self.client_names();
        layout.one_way("switch", "gateway", &Capacity::Unlimited, Span::ZERO);
        // The classes of a shaper are known when all hosts have numbers.
        let shaper = layout.add(NewLink {
            name: SHAPER.into(),
            from: "gateway",
            to: "switch",
            capacity: Capacity::Unlimited,
            delay: Span::ZERO,
            loss: 0.0,
            queue: QueueSpec::Unbounded,
        });
        match &self.wifi {
            Some(cell) => cell.lay_out(&mut layout, "switch", &clients),
            None => {
                for (number, client) in clients.iter().enumerate() {
                    let of_class = self.classes[self.class_of(number)].client_rate;
                    let wire = Capacity::Fixed(of_class.unwrap_or(self.client_rate));
                    layout.both_ways(client, "switch", &wire, self.client_delay);
                }
            }
        }
        let servers = self.lay_out_servers(&mut layout, seed);
        let number =
            |layout: &Layout, name: &str| layout.node_called(name).expect("every host has a link");
        let clients: Vec<_> = clients.iter().map(|name| number(&layout, name)).collect();
        let mut classes = vec![0; layout.nodes.len()];
        for (client, node) in clients.iter().enumerate() {
            let class = self.whole(self.class_of(client));
            classes[usize::from(node.0)] = u16::try_from(class).expect("classes are few");
        }
        layout.links[shaper].queue = way.shaper_queue(self, Arc::from(classes));
        let hosts = Hosts {
            gateway: number(&layout, "gateway"),
            servers: servers.iter().map(|name| number(&layout, name)).collect(),
            clients,
            uplink: self.uplink.queue.is_some().then_some(uplink),
            downlink,
            shaper: way.is_shaped().then_some(shaper),
        };
        let provider = number(&layout, "provider");
        (self.scenario(layout, &hosts, provider, way), hosts)
    }

    /// The names of the links in a run's rows, by number; the same under every way.
    #[must_use]
    pub fn link_names(&self) -> Vec<String> {
        let (scenario, _) = self.network(&Way::direct(), 0);
        scenario.links.into_iter().map(|link| link.name).collect()
    }

    /// The names of the sources in a run's rows, by number: the classes, and
    /// then the traffic that answers no request.
    #[must_use]
    pub fn source_names(&self) -> Vec<String> {
        let (scenario, _) = self.network(&Way::direct(), 0);
        scenario.traffic.into_iter().map(|source| source.name).collect()
    }

    /// A name for each client's host.
    fn client_names(&self) -> Vec<String> {
        let clients: u32 = self.classes.iter().map(|class| class.clients).sum();
        (1..=clients).map(|number| format!("client{number}")).collect()
    }

    fn lay_out_servers(&self, layout: &mut Layout, seed: u64) -> Vec<String> {
        let links = self.server_links(seed).into_iter().zip(1..);
        let server = |((delay, rate), number): ((Span, Rate), u32)| {
            let name = format!("server{number}");
            layout.both_ways("provider", &name, &Capacity::Fixed(rate), delay);
            name
        };
        links.map(server).collect()
    }

    /// The link of each server as a seed draws it: one way to the provider, and its rate.
    #[must_use]
    pub fn server_links(&self, seed: u64) -> Vec<(Span, Rate)> {
        let mut stream = Stream::new(seed, "servers");
        let mut between =
            |(least, most): (u64, u64)| least + (stream.uniform() * (most - least) as f64) as u64;
        let mut links = Vec::new();
        for group in &self.servers {
            for _ in 0..group.count {
                let delay = Span(between((group.delay.0.0, group.delay.1.0)));
                links.push((delay, Rate(between((group.rate.0.0, group.rate.1.0)))));
            }
        }
        links
    }

    fn scenario(&self, layout: Layout, hosts: &Hosts, provider: NodeId, way: &Way) -> Scenario {
        let passing = self.passing.iter().enumerate();
        let passing = passing.map(|(n, cbr)| self.passing(n, *cbr, provider, hosts.gateway));
        let requests = self.classes.iter().map(|class| self.asking(class));
        let uploads = (self.uplink.uploads > 0).then(|| self.uploading(hosts.gateway, provider));
        Scenario {
            measured: Vec::new(),
            title: String::new(),
            description: String::new(),
            duration: self.duration,
            warm_up: self.warm_up,
            seeds: Vec::new(),
            sample_every: self.sample_every,
            size_classes: Scenario::SIZE_CLASSES.to_vec(),
            short_flow: Scenario::SHORT_FLOW,
            long_flow: Scenario::LONG_FLOW,
            disciplines: Vec::new(),
            nodes: layout.nodes,
            links: layout.links,
            // Classes first: a class and its requests have the same number.
            traffic: requests.chain(passing).chain(uploads).collect(),
            talks: talks(hosts, way.is_end_to_end()),
        }
    }

    fn passing(&self, number: usize, cbr: Cbr, from: NodeId, to: NodeId) -> TrafficSpec {
        let Cbr { rate, packet, off, on, whose: _ } = cbr;
        TrafficSpec {
            name: format!("passing{}", number + 1),
            start: Time::ZERO,
            stop: Time(self.duration.0),
            class: 0,
            marking: Marking::default(),
            deadline: None,
            kind: TrafficKind::Cbr { from, to, rate, packet, pauses: Some(Pauses { off, on }) },
        }
    }

    fn uploading(&self, from: NodeId, to: NodeId) -> TrafficSpec {
        let transfer = Transfer {
            from: vec![from],
            to: vec![to],
            opened_by: Opener::Sender,
            tcp: self.tcp.clone(),
            follow: false,
        };
        let arrivals = Arrivals::AtStart { count: self.uplink.uploads };
        TrafficSpec {
            name: "uploads".into(),
            start: Time::ZERO,
            stop: Time(self.duration.0),
            class: 0,
            marking: Marking::default(),
            deadline: None,
            kind: TrafficKind::Transfers { transfer, arrivals, sizes: SizeLaw::Endless },
        }
    }

    fn asking(&self, class: &Class) -> TrafficSpec {
        TrafficSpec {
            name: class.name.clone(),
            start: Time::ZERO,
            stop: Time(self.duration.0),
            class: 0,
            marking: Marking::default(),
            deadline: None,
            kind: TrafficKind::Requests,
        }
    }
}

/// The name of the access link's uplink.
const UPLINK: &str = "gateway > provider";
/// The name of the access link's downlink in tables and files.
const DOWNLINK: &str = "access";
/// The name of the link that a shaper holds back.
const SHAPER: &str = "shaper";

/// The pairs of hosts that exchange traffic. All clients are behind one node
/// and all servers behind another, so a link on the way sees at most the
/// traffic of two hosts of the far side.
fn talks(hosts: &Hosts, end_to_end: bool) -> Vec<(NodeId, NodeId)> {
    let mut talks = Vec::new();
    let mut between = |these: &[NodeId], those: &[NodeId]| {
        let few = |nodes: &[NodeId]| nodes[..nodes.len().min(2)].to_vec();
        for (these, those) in [(these.to_vec(), few(those)), (few(these), those.to_vec())] {
            talks.extend(these.iter().flat_map(|this| those.iter().map(|that| (*this, *that))));
        }
    };
    if end_to_end {
        between(&hosts.clients, &hosts.servers);
    } else {
        between(&hosts.clients, &[hosts.gateway]);
        between(&[hosts.gateway], &hosts.servers);
    }
    talks
}
