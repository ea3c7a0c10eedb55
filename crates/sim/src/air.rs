//! The wireless cells of a network: the links that share a medium.
//!
//! Every station's link to the access point is a sender of the cell, and so is
//! the access point. The access point has either one link to all stations,
//! whose queue holds the downloads of all of them, or a link to each station,
//! whose queues take turns by airtime.

use tidegate_core::{Packet, Span, Time};

use crate::routes::Routes;
use crate::scenario::{AccessPoint, Capacity, NodeId, Scenario, Station};
use crate::wlan::aggregation::{Aggregation, Aggregator, Fate, Pulled};
use crate::wlan::airtime::AirtimeTurns;
use crate::wlan::{Cell, Frame, Modulation, Outcome, Timing, Transmission};

/// The access point is the first sender of its cell; the stations follow.
const ACCESS_POINT: usize = 0;

/// The place at which a link contends for a medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Radio {
    /// The cell: its place in the network's list.
    pub(crate) cell: usize,
    /// Which of its senders the link is.
    pub(crate) sender: usize,
    /// Which of the sender's links it is.
    pub(crate) place: usize,
}

impl Radio {
    /// The place of link `index`, if it is wireless.
    pub(crate) fn of_link(airs: &[Air], index: usize) -> Option<Radio> {
        airs.iter().enumerate().find_map(|(cell, air)| {
            air.feed.links.iter().enumerate().find_map(|(sender, links)| {
                let place = links.iter().position(|link| *link == index)?;
                Some(Radio { cell, sender, place })
            })
        })
    }
}

/// The queues in front of wireless links.
pub(crate) trait Queues {
    /// Whether a packet may leave the queue of a link.
    fn waits(&self, link: usize) -> bool;
    /// Takes the next packet, if the discipline releases one, with its final destination.
    fn take(&mut self, link: usize) -> Option<(Packet, NodeId)>;
}

/// A cell and its connection with the network around it.
pub(crate) struct Air {
    pub(crate) cell: Cell,
    pub(crate) feed: Feed,
    /// The time of the event that will come for the next access.
    pub(crate) scheduled: Time,
    pub(crate) demand: Demand,
    // Reused for every access.
    pub(crate) outcomes: Vec<Outcome>,
}

impl Air {
    /// All cells of `scenario`, one for each access point.
    pub(crate) fn all(scenario: &Scenario, routes: &Routes, seed: u64) -> Vec<Air> {
        let mut around: Vec<(AccessPoint, NodeId, Vec<usize>)> = Vec::new();
        for (index, link) in scenario.links.iter().enumerate() {
            let Capacity::Downlink(access_point) = link.capacity else { continue };
            match around.iter_mut().find(|(_, node, _)| *node == link.from) {
                Some((.., links)) => links.push(index),
                None => around.push((access_point, link.from, vec![index])),
            }
        }
        around
            .into_iter()
            .map(|(access_point, node, downlinks)| {
                Air::around(access_point, node, downlinks, scenario, routes, seed)
            })
            .collect()
    }

    fn around(
        access_point: AccessPoint,
        node: NodeId,
        downlinks: Vec<usize>,
        scenario: &Scenario,
        routes: &Routes,
        seed: u64,
    ) -> Air {
        let AccessPoint { immediate_replies, aggregation, airtime_fairness, .. } = access_point;
        let rules = if aggregation.is_some() { Timing::edca() } else { Timing::ofdm() };
        let timing = Timing { immediate_replies, ..rules };
        let medium = scenario.links[downlinks[0]].to;
        let mut links = vec![downlinks];
        let mut stations = Vec::new();
        let mut station_nodes = Vec::new();
        for (index, link) in scenario.links.iter().enumerate() {
            if let (Capacity::Uplink(station), true) = (&link.capacity, link.to == node) {
                links.push(vec![index]);
                stations.push(*station);
                station_nodes.push(link.from);
            }
        }
        let nodes = scenario.nodes.len();
        let towards = (0..nodes).map(|destination| {
            let link = routes.link(medium, NodeId(destination as u16))?;
            let next = scenario.links[link].to;
            station_nodes.iter().position(|station| *station == next)
        });
        let receivers = |sender: usize| -> Vec<(usize, Station)> {
            match sender {
                ACCESS_POINT => (1..).zip(stations.iter().copied()).collect(),
                station => vec![(ACCESS_POINT, stations[station - 1])],
            }
        };
        let aggregators = aggregation.map(|limits| {
            let of = |sender| aggregator(limits, timing, &receivers(sender));
            (0..links.len()).map(of).collect()
        });
        Air {
            cell: Cell::new(timing, links.len(), &scenario.nodes[usize::from(node.0)], seed),
            feed: Feed {
                turns: airtime_fairness.then(|| AirtimeTurns::new(stations.len())),
                towards: towards.collect(),
                aggregators: aggregators.unwrap_or_default(),
                stations,
                links,
            },
            scheduled: Time::FAR_FUTURE,
            demand: Demand::default(),
            outcomes: Vec::new(),
        }
    }
}

/// For how long a medium has sent, or somebody has waited to send: what is left is idle.
/// Back-off is part of it, since no sender can do without.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Demand {
    since: Option<Time>,
    /// All before this has been counted.
    until: Time,
    total: Span,
}

impl Demand {
    /// Somebody has something to send.
    pub(crate) fn begin(&mut self, now: Time) {
        self.since.get_or_insert(now.max(self.until));
    }

    /// Nobody has, and what is on the air will have been sent then.
    pub(crate) fn end(&mut self, until: Time) {
        self.total = self.total(until);
        (self.since, self.until) = (None, self.until.max(until));
    }

    /// It is counted from here on.
    pub(crate) fn forget(&mut self, now: Time) {
        self.since = self.since.map(|since| since.max(now));
        self.total = Span::ZERO;
    }

    /// All until `now`.
    pub(crate) fn total(&self, now: Time) -> Span {
        self.total + self.since.map_or(Span::ZERO, |since| now.since(since))
    }
}

fn aggregator(limits: Aggregation, timing: Timing, receivers: &[(usize, Station)]) -> Aggregator {
    let receivers = receivers.iter().map(|(to, station)| {
        let Modulation::Aggregated(mcs) = station.modulation else {
            unreachable!("a cell with aggregates has stations that know them")
        };
        (*to, mcs, station.frame_error)
    });
    Aggregator::new(limits, timing.retry_limit, receivers)
}

/// Forms frames from packets.
pub(crate) struct Feed {
    /// The links of each sender.
    links: Vec<Vec<usize>>,
    stations: Vec<Station>,
    /// The station through which the medium reaches a node, by node; unused
    /// where there is a link to each station.
    towards: Vec<Option<usize>>,
    /// What each sender aggregates; empty if none does.
    aggregators: Vec<Aggregator>,
    /// The station whose queue at the access point is next, where each has its own.
    turns: Option<AirtimeTurns>,
}

impl Feed {
    /// A packet has arrived at the queue of a link.
    pub(crate) fn offered(&mut self, radio: Radio) {
        if let (ACCESS_POINT, Some(turns)) = (radio.sender, &mut self.turns) {
            turns.join(radio.place);
        }
    }

    /// The next frame of a sender, and whether further ones are queued.
    pub(crate) fn next(
        &mut self,
        sender: usize,
        queues: &mut impl Queues,
    ) -> Option<(Frame, bool)> {
        let frame = match &self.turns {
            Some(_) if sender == ACCESS_POINT => self.next_by_airtime(queues),
            _ => self.next_from(sender, 0, queues),
        }?;
        let aggregator = self.aggregators.get(sender);
        let more = aggregator.is_some_and(Aggregator::has_more)
            || self.links[sender].iter().any(|link| queues.waits(*link));
        Some((frame, more))
    }

    /// From the queue of the station whose turn it is. A discipline that holds
    /// its packets back after all passes the turn to the next one.
    fn next_by_airtime(&mut self, queues: &mut impl Queues) -> Option<Frame> {
        loop {
            let (links, aggregators) = (&self.links[ACCESS_POINT], &self.aggregators);
            let wants = |station: usize| {
                let aggregator = aggregators.get(ACCESS_POINT);
                aggregator.is_some_and(|aggregator| aggregator.has_left(station))
                    || queues.waits(links[station])
            };
            let station = self.turns.as_mut()?.next(wants)?;
            if let Some(frame) = self.next_from(ACCESS_POINT, station, queues) {
                return Some(frame);
            }
        }
    }

    /// From one of the queues of a sender.
    fn next_from(
        &mut self,
        sender: usize,
        place: usize,
        queues: &mut impl Queues,
    ) -> Option<Frame> {
        let link = self.links[sender][place];
        let shared = sender == ACCESS_POINT && self.turns.is_none();
        let towards = &self.towards;
        let station_towards = |destination: NodeId| {
            let station = towards[usize::from(destination.0)];
            station.expect("what the access point sends is for somebody behind a station")
        };
        match self.aggregators.get_mut(sender) {
            Some(aggregator) if shared => aggregator.next_in_turn(|| {
                let (packet, destination) = queues.take(link)?;
                let receiver = station_towards(destination);
                Some(Pulled { receiver, handle: packet.handle, size: packet.size })
            }),
            Some(aggregator) => aggregator.next_for(place, || {
                let (packet, _) = queues.take(link)?;
                Some((packet.handle, packet.size))
            }),
            None => {
                let (packet, destination) = queues.take(link)?;
                let (station, to) = match sender {
                    ACCESS_POINT => {
                        let station = if shared { station_towards(destination) } else { place };
                        (station, station + 1)
                    }
                    station => (station - 1, ACCESS_POINT),
                };
                let Station { modulation, frame_error } = self.stations[station];
                let Modulation::Ofdm(rate) = modulation else {
                    unreachable!("who knows aggregates sends them")
                };
                Some(Frame::new(packet.handle, packet.size, rate, to, frame_error))
            }
        }
    }

    /// The link over which a transmission goes.
    pub(crate) fn link(&self, sender: usize, to: usize) -> usize {
        match self.links[sender][..] {
            [only] => only,
            ref links => links[to - 1],
        }
    }

    /// Charges the airtime of a transmission to its station, if that counts.
    /// The access point cannot know a station's failed transmissions.
    pub(crate) fn charge(&mut self, transmission: Transmission) {
        let Some(turns) = &mut self.turns else { return };
        let Transmission { from, to, time, collides } = transmission;
        if from == ACCESS_POINT {
            turns.charge(to - 1, time);
        } else if !collides {
            turns.charge(from - 1, time);
        }
    }

    /// An aggregate has been sent, and the receiver has these of its frames;
    /// tells `report` the fate of the packets.
    pub(crate) fn settle(&mut self, sender: usize, received: u64, report: impl FnMut(u64, Fate)) {
        self.aggregators[sender].settle(received, report);
    }
}
