//! The wireless cells of a network: which links share which medium.
//!
//! Every station's link to the access point is a sender of the cell, and so is
//! the one link from the access point to all of them: its queue is where the
//! downloads of all stations meet.

use tidegate_core::{Packet, Time};

use crate::scenario::{AccessPoint, Capacity, NodeId, Scenario, Station};
use crate::wlan::{Cell, Frame, Outcome, Timing};

/// The access point is the first sender of its cell, then come the stations.
const ACCESS_POINT: usize = 0;

/// Where a link contends for a medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Radio {
    /// The cell: its place in the network's list.
    pub(crate) cell: usize,
    /// Which of its senders the link is.
    pub(crate) sender: usize,
}

impl Radio {
    /// The place of link `index`, if it is wireless.
    pub(crate) fn of_link(airs: &[Air], index: usize) -> Option<Radio> {
        airs.iter().enumerate().find_map(|(cell, air)| {
            let sender = air.links.iter().position(|link| *link == index)?;
            Some(Radio { cell, sender })
        })
    }
}

/// A cell with what it means to the network around it.
pub(crate) struct Air {
    pub(crate) cell: Cell,
    /// The link of each sender.
    pub(crate) links: Vec<usize>,
    pub(crate) frames: Frames,
    /// The time of the event that will come for the next access.
    pub(crate) scheduled: Time,
    // Used again for every access.
    pub(crate) taken: Vec<(usize, Option<Packet>)>,
    pub(crate) outcomes: Vec<Outcome>,
}

impl Air {
    /// All cells of `scenario`, one for each link from an access point.
    pub(crate) fn all(scenario: &Scenario, routes: &[Option<u16>], seed: u64) -> Vec<Air> {
        let links = scenario.links.iter().enumerate();
        let downlinks = links.filter_map(|(index, link)| match link.capacity {
            Capacity::Downlink(AccessPoint { immediate_replies, .. }) => {
                Some((index, Timing { immediate_replies, ..Timing::ofdm() }))
            }
            _ => None,
        });
        downlinks
            .map(|(downlink, timing)| Air::around(downlink, timing, scenario, routes, seed))
            .collect()
    }

    fn around(
        downlink: usize,
        timing: Timing,
        scenario: &Scenario,
        routes: &[Option<u16>],
        seed: u64,
    ) -> Air {
        let (access_point, medium) = (scenario.links[downlink].from, scenario.links[downlink].to);
        let mut links = vec![downlink];
        let mut stations = Vec::new();
        let mut station_nodes = Vec::new();
        for (index, link) in scenario.links.iter().enumerate() {
            if let (Capacity::Uplink(station), true) = (&link.capacity, link.to == access_point) {
                links.push(index);
                stations.push(*station);
                station_nodes.push(link.from);
            }
        }
        let nodes = scenario.nodes.len();
        let towards = (0..nodes).map(|destination| {
            let link = routes[usize::from(medium.0) * nodes + destination]?;
            let next = scenario.links[usize::from(link)].to;
            station_nodes.iter().position(|station| *station == next)
        });
        let name = &scenario.nodes[usize::from(access_point.0)];
        Air {
            cell: Cell::new(timing, links.len(), name, seed),
            frames: Frames { stations, towards: towards.collect() },
            links,
            scheduled: Time::FAR_FUTURE,
            taken: Vec::new(),
            outcomes: Vec::new(),
        }
    }
}

/// Makes frames of packets.
pub(crate) struct Frames {
    stations: Vec<Station>,
    /// The station through which a node is reached from the medium, by node.
    towards: Vec<Option<usize>>,
}

impl Frames {
    /// The frame that carries `packet` from `sender` on its way to `destination`.
    pub(crate) fn frame(&self, sender: usize, packet: &Packet, destination: NodeId) -> Frame {
        let downlink = sender == ACCESS_POINT;
        let station = if downlink {
            let station = self.towards[usize::from(destination.0)];
            station.expect("what the access point sends is for somebody behind a station")
        } else {
            sender - 1
        };
        let to = if downlink { station + 1 } else { ACCESS_POINT };
        let Station { rate, frame_error } = self.stations[station];
        Frame::new(packet.handle, packet.size, rate, to, frame_error)
    }
}
