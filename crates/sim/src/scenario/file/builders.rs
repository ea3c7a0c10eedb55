//! Topologies that are needed again and again: a few numbers in a file become
//! nodes and links, the same that somebody would write out.

use tidegate_core::discipline::fifo;
use tidegate_core::{Buffer, Rate, Span};

use super::data::DataFiles;
use super::error::Mistake;
use super::syntax::{self, Access, Dumbbell, Wifi};
use super::topology::{NewLink, Topology, capacity, share};
use super::values::Text;
use super::wifi::Sending;
use crate::scenario::{AccessPoint, Capacity, DisciplineChoice, QueueSpec, Station};

/// `EFD section 4.1`.
const PAIRS: u32 = 5;
/// `EFD section 4.1`.
const BOTTLENECK: Rate = Rate(10_000_000);
/// `EFD section 4.1`.
const EDGE: Rate = Rate(100_000_000);
/// `EFD section 4.1`, of each link.
const EDGE_DELAY: Span = Span::millis(1);

/// Between router and provider: what DSL and cable add before the first hop.
const ACCESS_DELAY: Span = Span::millis(5);
const LAN: Rate = Rate(1_000_000_000);
/// Between wire and a good Wi-Fi.
const LAN_DELAY: Span = Span::millis(1);
/// To a server in the same country.
const SERVER_DELAY: Span = Span::millis(10);

/// Between hosts and router of the wireless cell: ours, `WLAN section III` has none.
const WIRED: Rate = Rate(100_000_000);
/// `WLAN section III`, figure 1.
const WIRED_DELAY: Span = Span::millis(2);
/// Ten times what comes in: its queue never builds up (`WLAN section III`).
const ROUTER: Rate = Rate(1_000_000_000);

impl Dumbbell {
    /// Adds its nodes, groups and links.
    pub(super) fn build(
        &self,
        topology: &mut Topology,
        data: &dyn DataFiles,
    ) -> Result<(), Mistake> {
        let pairs = self.pairs.map_or(PAIRS, |pairs| pairs.0);
        let edge = Capacity::Fixed(or(self.edge_rate, EDGE));
        let rate = self.rate.clone().unwrap_or(syntax::Capacity::Rate(BOTTLENECK));
        let bottleneck = capacity(&rate, data)?;
        let delay = or(self.delay, EDGE_DELAY);
        let tested = QueueSpec::Tested(or(self.buffer, Buffer::default()));
        let numbered = |role: &str| -> Vec<String> {
            (1..=pairs).map(|number| format!("{role}{number}")).collect()
        };
        let (senders, receivers) = (numbered("sender"), numbered("receiver"));
        for sender in &senders {
            both_ways(topology, sender, "left", &edge, delay);
        }
        topology.add(NewLink {
            name: "bottleneck".into(),
            from: "left",
            to: "right",
            capacity: bottleneck.clone(),
            delay,
            loss: 0.0,
            queue: tested,
        });
        one_way(topology, "right", "left", &bottleneck, delay);
        for receiver in &receivers {
            both_ways(topology, "right", receiver, &edge, delay);
        }
        topology.add_group("senders", &senders);
        topology.add_group("receivers", &receivers);
        Ok(())
    }
}

impl Access {
    /// Adds its nodes, groups and links.
    pub(super) fn build(
        &self,
        topology: &mut Topology,
        data: &dyn DataFiles,
    ) -> Result<(), Mistake> {
        let lan = Capacity::Fixed(or(self.lan_rate, LAN));
        let lan_delay = or(self.lan_delay, LAN_DELAY);
        let delay = or(self.delay, ACCESS_DELAY);
        let buffer = or(self.buffer, Buffer::default());
        let server_delays: Vec<Span> = match &self.servers {
            Some(delays) if delays.is_empty() => {
                let expected = "the delay of at least one server";
                return Err(Mistake::at(&delays.place, "an empty list", expected));
            }
            Some(delays) => delays.iter().map(|delay| delay.0).collect(),
            None => vec![SERVER_DELAY],
        };
        let hosts: Vec<_> = (1..=self.hosts.0).map(|number| format!("host{number}")).collect();
        let servers: Vec<_> =
            (1..=server_delays.len()).map(|number| format!("server{number}")).collect();
        for host in &hosts {
            both_ways(topology, host, "router", &lan, lan_delay);
        }
        topology.add(NewLink {
            name: "down".into(),
            from: "isp",
            to: "router",
            capacity: capacity(&self.down, data)?,
            delay,
            loss: 0.0,
            queue: QueueSpec::Tested(or(self.down_buffer, buffer)),
        });
        topology.add(NewLink {
            name: "up".into(),
            from: "router",
            to: "isp",
            capacity: capacity(&self.up, data)?,
            delay,
            loss: 0.0,
            queue: QueueSpec::Tested(or(self.up_buffer, buffer)),
        });
        // The core of the network has room for everybody.
        for (server, delay) in servers.iter().zip(server_delays) {
            both_ways(topology, "isp", server, &Capacity::Unlimited, delay);
        }
        topology.add_group("hosts", &hosts);
        topology.add_group("servers", &servers);
        Ok(())
    }
}

impl Wifi {
    /// Adds its nodes, groups and links.
    pub(super) fn build(&self, topology: &mut Topology) -> Result<(), Mistake> {
        let Sending { modulations, aggregation } = self.sending()?;
        let airtime_fairness = self.airtime_fairness.unwrap_or(false);
        let frame_error = share(self.frame_error.as_ref())?;
        let count = self.stations.0;
        let numbered = |role: &str, count: u32| -> Vec<String> {
            (1..=count).map(|number| format!("{role}{number}")).collect()
        };
        let stations = numbered("station", count);
        let hosts = numbered("host", self.hosts.map_or(count, |hosts| hosts.0));
        let in_use = || modulations.iter().copied().cycle().take(stations.len());
        let fastest = in_use().max_by_key(|modulation| modulation.rate());
        let wireless = |name, from, to, capacity, queue| {
            let delay = Span::ZERO;
            NewLink { name, from, to, capacity, delay, loss: 0.0, queue }
        };
        let downlink = |name, to, fastest| {
            let immediate_replies = self.immediate_replies.unwrap_or(false);
            let access_point =
                AccessPoint { fastest, immediate_replies, aggregation, airtime_fairness };
            let queue = QueueSpec::Tested(or(self.buffer, Buffer::default()));
            wireless(name, "accesspoint", to, Capacity::Downlink(access_point), queue)
        };
        if airtime_fairness {
            for ((station, modulation), number) in stations.iter().zip(in_use()).zip(1..) {
                topology.add(downlink(format!("downlink{number}"), station, modulation));
            }
        } else {
            let fastest = fastest.expect("there is a station");
            topology.add(downlink("downlink".into(), "medium", fastest));
        }
        let station_buffer = or(self.station_buffer, Buffer::default());
        for ((station, modulation), number) in stations.iter().zip(in_use()).zip(1..) {
            let fifo = DisciplineChoice::with_defaults(&fifo::ENTRY);
            topology.add(wireless(
                format!("uplink{number}"),
                station,
                "accesspoint",
                Capacity::Uplink(Station { modulation, frame_error }),
                QueueSpec::Fixed(fifo, station_buffer),
            ));
            if !airtime_fairness {
                one_way(topology, "medium", station, &Capacity::Unlimited, Span::ZERO);
            }
        }
        let router = Capacity::Fixed(or(self.router_rate, ROUTER));
        both_ways(topology, "accesspoint", "router", &router, Span::ZERO);
        let wired = Capacity::Fixed(or(self.wired_rate, WIRED));
        for host in &hosts {
            both_ways(topology, "router", host, &wired, or(self.wired_delay, WIRED_DELAY));
        }
        topology.add_group("stations", &stations);
        topology.add_group("hosts", &hosts);
        Ok(())
    }
}

fn or<T>(written: Option<Text<T>>, default: T) -> T {
    written.map_or(default, |text| text.0)
}

fn one_way(topology: &mut Topology, from: &str, to: &str, capacity: &Capacity, delay: Span) {
    topology.add(NewLink {
        name: format!("{from} > {to}"),
        from,
        to,
        capacity: capacity.clone(),
        delay,
        loss: 0.0,
        queue: QueueSpec::Unbounded,
    });
}

fn both_ways(topology: &mut Topology, from: &str, to: &str, capacity: &Capacity, delay: Span) {
    one_way(topology, from, to, capacity, delay);
    one_way(topology, to, from, capacity, delay);
}
