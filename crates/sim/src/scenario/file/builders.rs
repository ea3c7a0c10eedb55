//! Topologies for common needs: a few numbers in a file become the nodes and
//! links that a user would otherwise write out.

use std::ops::Range;

use tidegate_core::buffer::Limit;
use tidegate_core::discipline::fifo;
use tidegate_core::{Buffer, Rate, Span};

use super::data::DataFiles;
use super::disciplines;
use super::syntax::{self, Access, Dumbbell, Wifi};
use super::topology::{Topology, capacity, share};
use super::values::Text;
use super::wifi::Sending;
use crate::scenario::layout::NewLink;
use crate::scenario::{Capacity, DisciplineChoice, QueueSpec, WirelessCell};
use tidegate_files::Mistake;

/// `EFD section 4.1`.
const PAIRS: u32 = 5;
/// `EFD section 4.1`.
pub(super) const BOTTLENECK: Rate = Rate(10_000_000);
/// `EFD section 4.1`.
const EDGE: Rate = Rate(100_000_000);
/// `EFD section 4.1`, of each link.
const EDGE_DELAY: Span = Span::millis(1);

/// Between router and provider: what DSL and cable add before the first hop.
const ACCESS_DELAY: Span = Span::millis(5);
const LAN: Rate = Rate(1_000_000_000);
/// Between wire and a good Wi-Fi.
pub(super) const LAN_DELAY: Span = Span::millis(1);
/// To a server in the same country.
pub(super) const SERVER_DELAY: Span = Span::millis(10);

/// Between hosts and router of the wireless cell: ours, `WLAN section III` has none.
const WIRED: Rate = Rate(100_000_000);
/// `WLAN section III`, figure 1.
const WIRED_DELAY: Span = Span::millis(2);
/// Ten times the rate of its input: its queue never builds up (`WLAN section III`).
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
        let tested = QueueSpec::Tested(held(self.buffer, &bottleneck));
        let numbered = |role: &str| -> Vec<String> {
            (1..=pairs).map(|number| format!("{role}{number}")).collect()
        };
        let (senders, receivers) = (numbered("sender"), numbered("receiver"));
        for sender in &senders {
            topology.layout.both_ways(sender, "left", &edge, delay);
        }
        topology.layout.add(NewLink {
            name: "bottleneck".into(),
            from: "left",
            to: "right",
            capacity: bottleneck.clone(),
            delay,
            loss: 0.0,
            queue: tested,
        });
        topology.layout.one_way("right", "left", &bottleneck, delay);
        for receiver in &receivers {
            topology.layout.both_ways("right", receiver, &edge, delay);
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
            topology.layout.both_ways(host, "router", &lan, lan_delay);
        }
        let down = capacity(&self.down, data)?;
        topology.layout.add(NewLink {
            name: "down".into(),
            from: "isp",
            to: "router",
            queue: QueueSpec::Tested(held(self.down_buffer.or(self.buffer), &down)),
            capacity: down,
            delay,
            loss: 0.0,
        });
        let up = capacity(&self.up, data)?;
        topology.layout.add(NewLink {
            name: "up".into(),
            from: "router",
            to: "isp",
            queue: QueueSpec::Tested(held(self.up_buffer.or(self.buffer), &up)),
            capacity: up,
            delay,
            loss: 0.0,
        });
        // The core of the network has room for everybody.
        for (server, delay) in servers.iter().zip(server_delays) {
            topology.layout.both_ways("isp", server, &Capacity::Unlimited, delay);
        }
        topology.add_group("hosts", &hosts);
        topology.add_group("servers", &servers);
        Ok(())
    }
}

impl Wifi {
    /// Adds its nodes, groups and links.
    pub(super) fn build(
        &self,
        place: &Range<usize>,
        topology: &mut Topology,
    ) -> Result<(), Mistake> {
        let numbered = |role: &str, count: u32| -> Vec<String> {
            (1..=count).map(|number| format!("{role}{number}")).collect()
        };
        let Some(stations) = &self.stations else {
            return Err(Mistake::missing(place, "stations", "how many there are"));
        };
        if let Some(queue) = &self.queue {
            let expected = "none, since the discipline under test is there";
            return Err(Mistake::at(&queue.place, "a discipline for the downlink", expected));
        }
        let count = stations.value.0;
        let stations = numbered("station", count);
        let hosts = numbered("host", self.hosts.map_or(count, |hosts| hosts.0));
        self.cell(QueueSpec::Tested)?.lay_out(&mut topology.layout, "accesspoint", &stations);
        let router = Capacity::Fixed(or(self.router_rate, ROUTER));
        topology.layout.both_ways("accesspoint", "router", &router, Span::ZERO);
        let wired = Capacity::Fixed(or(self.wired_rate, WIRED));
        for host in &hosts {
            topology.layout.both_ways("router", host, &wired, or(self.wired_delay, WIRED_DELAY));
        }
        topology.add_group("stations", &stations);
        topology.add_group("hosts", &hosts);
        Ok(())
    }

    /// The cell around a gateway, whose stations are its clients.
    pub(super) fn around_gateway(
        &self,
        place: &Range<usize>,
        data: &dyn DataFiles,
    ) -> Result<WirelessCell, Mistake> {
        if let Some(stations) = &self.stations {
            let expected = "none, since every client is a station";
            return Err(Mistake::at(&stations.place, "stations", expected));
        }
        for (name, given) in [
            ("hosts", self.hosts.is_some()),
            ("wired_rate", self.wired_rate.is_some()),
            ("wired_delay", self.wired_delay.is_some()),
            ("router_rate", self.router_rate.is_some()),
        ] {
            if given {
                let expected = "[link] and [[servers]] for what is behind the gateway";
                return Err(Mistake::at(place, format!("'{name}' of a cell"), expected));
            }
        }
        let choice = match &self.queue {
            Some(queue) => disciplines::choice(&queue.value, &queue.place, &[], data)?,
            None => DisciplineChoice::with_defaults(&fifo::ENTRY),
        };
        self.cell(|buffer| QueueSpec::Fixed(choice, buffer))
    }

    /// The cell itself, with the queue that `downlink` makes of the buffer at its
    /// access point. A buffer in time is what the fastest station's rate sends in it.
    fn cell(&self, downlink: impl FnOnce(Buffer) -> QueueSpec) -> Result<WirelessCell, Mistake> {
        let Sending { modulations, aggregation } = self.sending()?;
        let fastest = modulations.iter().map(|it| it.rate()).max().unwrap_or(WIRED);
        let held = |limit: Option<Text<Limit>>| or(limit, Buffer::default().into()).at(fastest);
        Ok(WirelessCell {
            modulations,
            frame_error: share(self.frame_error.as_ref())?,
            aggregation,
            airtime_fairness: self.airtime_fairness.unwrap_or(false),
            immediate_replies: self.immediate_replies.unwrap_or(false),
            downlink: downlink(held(self.buffer)),
            station_buffer: held(self.station_buffer),
        })
    }
}

/// What a queue in front of a link holds. Without a limit nothing queues there, so that
/// the rate that such a link is taken to have decides nothing.
fn held(limit: Option<Text<Limit>>, link: &Capacity) -> Buffer {
    or(limit, Buffer::default().into()).at(link.rate().unwrap_or(LAN))
}

fn or<T>(written: Option<Text<T>>, default: T) -> T {
    written.map_or(default, |text| text.0)
}
