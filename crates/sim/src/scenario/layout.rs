//! Nodes and links, as they are put together: by name, one link after the other.

use std::collections::BTreeMap;

use tidegate_core::discipline::fifo;
use tidegate_core::{Buffer, Span};

use super::{AccessPoint, Capacity, DisciplineChoice, LinkSpec, NodeId, QueueSpec, Station};
use crate::wlan::Modulation;
use crate::wlan::aggregation::Aggregation;

/// What is known of a network so far.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) nodes: Vec<String>,
    pub(crate) links: Vec<LinkSpec>,
    numbers: BTreeMap<String, NodeId>,
}

/// A link to be added; the layout numbers its ends.
pub(crate) struct NewLink<'a> {
    pub(crate) name: String,
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) capacity: Capacity,
    pub(crate) delay: Span,
    pub(crate) loss: f64,
    pub(crate) queue: QueueSpec,
}

impl Layout {
    /// The node called `name`, if there is one.
    pub(crate) fn node_called(&self, name: &str) -> Option<NodeId> {
        self.numbers.get(name).copied()
    }

    /// The node called `name`, made when it is new.
    pub(crate) fn node(&mut self, name: &str) -> NodeId {
        self.node_called(name).unwrap_or_else(|| {
            // Whoever adds nodes without an end is stopped long before.
            let number = NodeId(u16::try_from(self.nodes.len()).unwrap_or(u16::MAX));
            self.nodes.push(name.into());
            self.numbers.insert(name.into(), number);
            number
        })
    }

    /// Adds a link and those of its ends that are new; returns its number.
    pub(crate) fn add(&mut self, link: NewLink<'_>) -> usize {
        let (from, to) = (self.node(link.from), self.node(link.to));
        let NewLink { name, capacity, delay, loss, queue, .. } = link;
        self.links.push(LinkSpec { name, from, to, capacity, delay, loss, queue });
        self.links.len() - 1
    }

    /// A link with a queue that has no limit.
    pub(crate) fn one_way(&mut self, from: &str, to: &str, capacity: &Capacity, delay: Span) {
        self.add(NewLink {
            name: format!("{from} > {to}"),
            from,
            to,
            capacity: capacity.clone(),
            delay,
            loss: 0.0,
            queue: QueueSpec::Unbounded,
        });
    }

    /// The same with one for the way back.
    pub(crate) fn both_ways(&mut self, from: &str, to: &str, capacity: &Capacity, delay: Span) {
        self.one_way(from, to, capacity, delay);
        self.one_way(to, from, capacity, delay);
    }
}

/// A cell of 802.11: an access point and its stations on one channel.
#[derive(Clone, Debug)]
pub struct WirelessCell {
    /// How data are sent; stations take turns at them. At least one.
    pub modulations: Vec<Modulation>,
    /// The share of frames that noise spoils.
    pub frame_error: f64,
    /// What goes into aggregates; `None` in a cell of 802.11a.
    pub aggregation: Option<Aggregation>,
    /// Each station has a queue of its own at the access point, and these take turns by
    /// airtime.
    pub airtime_fairness: bool,
    /// [`AccessPoint::immediate_replies`].
    pub immediate_replies: bool,
    /// The queue of the access point, or each of its queues.
    pub downlink: QueueSpec,
    /// What a station holds.
    pub station_buffer: Buffer,
}

impl WirelessCell {
    /// Adds the links between an access point and its stations.
    pub(crate) fn lay_out(&self, layout: &mut Layout, access_point: &str, stations: &[String]) {
        let in_use = || self.modulations.iter().copied().cycle().take(stations.len());
        let wireless = |name: String, from, to, capacity, queue| {
            let delay = Span::ZERO;
            NewLink { name, from, to, capacity, delay, loss: 0.0, queue }
        };
        let downlink = |name: String, to, fastest| {
            let WirelessCell { immediate_replies, aggregation, airtime_fairness, .. } = *self;
            let sender = AccessPoint { fastest, immediate_replies, aggregation, airtime_fairness };
            wireless(name, access_point, to, Capacity::Downlink(sender), self.downlink.clone())
        };
        if self.airtime_fairness {
            for ((station, modulation), number) in stations.iter().zip(in_use()).zip(1..) {
                layout.add(downlink(format!("downlink{number}"), station, modulation));
            }
        } else {
            let fastest = in_use().max_by_key(|modulation| modulation.rate());
            let fastest = fastest.expect("there is a station");
            layout.add(downlink("downlink".into(), "medium", fastest));
        }
        for ((station, modulation), number) in stations.iter().zip(in_use()).zip(1..) {
            let fifo = DisciplineChoice::with_defaults(&fifo::ENTRY);
            let sender = Station { modulation, frame_error: self.frame_error };
            layout.add(wireless(
                format!("uplink{number}"),
                station,
                access_point,
                Capacity::Uplink(sender),
                QueueSpec::Fixed(fifo, self.station_buffer),
            ));
            if !self.airtime_fairness {
                layout.one_way("medium", station, &Capacity::Unlimited, Span::ZERO);
            }
        }
    }
}
