//! Nodes, groups and links, from the builders and from what is written out.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use tidegate_core::buffer::Limit;
use tidegate_core::{Buffer, Span};

use super::data::{DataFiles, load_text};
use super::disciplines;
use super::syntax::{self, Document, Queue};
use super::values::{At, Names, Text};
use crate::scenario::layout::{Layout, NewLink};
use crate::scenario::{Capacity, NodeId, QueueSpec};
use crate::trace::delivery::DeliveryTrace;
use tidegate_files::Mistake;
use tidegate_files::expectation;

/// More nodes than any access link needs; a [`NodeId`] holds ten times as many.
const MOST_NODES: usize = 5_000;
const MOST_LINKS: usize = 20_000;

/// What is known of the network so far.
#[derive(Default)]
pub(super) struct Topology {
    pub(super) layout: Layout,
    groups: BTreeMap<String, Vec<NodeId>>,
}

impl Topology {
    /// The network of `document`.
    pub(super) fn of(document: &Document, data: &dyn DataFiles) -> Result<Topology, Mistake> {
        let mut topology = Topology::default();
        if let Some(dumbbell) = &document.dumbbell {
            dumbbell.build(&mut topology, data)?;
        }
        if let Some(access) = &document.access {
            access.build(&mut topology, data)?;
        }
        if let Some(wifi) = &document.wifi {
            if document.access.is_some() {
                let expected = "one of them, since both have hosts and a router";
                return Err(Mistake::at(&wifi.place, "[wifi] beside [access]", expected));
            }
            wifi.build(&wifi.place, &mut topology)?;
        }
        for link in &document.link {
            topology.add_written(link, document, data)?;
        }
        // Groups may name any node, so they are resolved when all are known.
        for (name, members) in &document.groups {
            let members_of = topology.resolve(members)?;
            if topology.layout.node_called(name).is_some() || topology.groups.contains_key(name) {
                let found = format!("'{name}', which is there already");
                return Err(Mistake::at(&members.place, found, "a name of its own"));
            }
            topology.groups.insert(name.clone(), members_of);
        }
        if topology.layout.links.is_empty() {
            let expected = "[dumbbell], [access], [wifi] or [[link]]";
            return Err(Mistake::at(&(0..0), "no link", expected));
        }
        Ok(topology)
    }

    /// Makes a group of nodes that are there.
    pub(super) fn add_group(&mut self, name: &str, members: &[String]) {
        let members = members.iter().map(|member| self.layout.node(member)).collect();
        self.groups.insert(name.into(), members);
    }

    fn add_written(
        &mut self,
        link: &At<syntax::Link>,
        document: &Document,
        data: &dyn DataFiles,
    ) -> Result<(), Mistake> {
        let one_way = link.one_way.unwrap_or(false);
        if let (true, Some(back)) = (one_way, &link.back) {
            return Err(Mistake::at(&back.place, "a way back", "none, since one_way is true"));
        }
        let capacity = link.rate.as_ref().map(|rate| capacity(rate, data)).transpose()?;
        let capacity = capacity.unwrap_or(Capacity::Unlimited);
        let delay = link.delay.map_or(Span::ZERO, |delay| delay.0);
        let queue = queue(link.queue.as_ref(), link.buffer.as_ref(), &capacity, data)?;
        let loss = share(link.loss.as_ref())?;
        let (mut back_capacity, mut back_delay, mut back_loss) = (capacity.clone(), delay, loss);
        let mut back_queue = QueueSpec::Unbounded;
        if let Some(back) = &link.back {
            if let Some(rate) = &back.rate {
                back_capacity = self::capacity(rate, data)?;
            }
            back_delay = back.delay.map_or(delay, |delay| delay.0);
            back_loss = if back.loss.is_some() { share(back.loss.as_ref())? } else { loss };
            back_queue =
                self::queue(back.queue.as_ref(), back.buffer.as_ref(), &back_capacity, data)?;
        }
        let (starts, ends) =
            (self.ends_of(&link.from, document)?, self.ends_of(&link.to, document)?);
        let only = starts.len() * ends.len() == 1;
        let given = |name: Option<&At<String>>| match name {
            Some(name) if !only => {
                let expected = "no name, since there are several links: each is called by its ends";
                Err(Mistake::at(&name.place, format!("'{}'", name.value), expected))
            }
            name => Ok(name.map(|name| name.value.clone())),
        };
        let name = given(link.name.as_ref())?;
        let back_name = given(link.back.as_ref().and_then(|back| back.name.as_ref()))?;
        let by_ends = |from: &str, to: &str| format!("{from} > {to}");
        for from in &starts {
            for to in &ends {
                let way_out = NewLink {
                    name: name.clone().unwrap_or_else(|| by_ends(from, to)),
                    from,
                    to,
                    capacity: capacity.clone(),
                    delay,
                    loss,
                    queue: queue.clone(),
                };
                self.add_checked(way_out, &link.place)?;
                if !one_way {
                    let way_back = NewLink {
                        name: back_name.clone().unwrap_or_else(|| by_ends(to, from)),
                        from: to,
                        to: from,
                        capacity: back_capacity.clone(),
                        delay: back_delay,
                        loss: back_loss,
                        queue: back_queue.clone(),
                    };
                    self.add_checked(way_back, &link.place)?;
                }
            }
        }
        Ok(())
    }

    fn add_checked(&mut self, link: NewLink<'_>, place: &Range<usize>) -> Result<(), Mistake> {
        let ends = (self.layout.node(link.from), self.layout.node(link.to));
        let wrong = |found: String, expected: &str| Err(Mistake::at(place, found, expected));
        if ends.0 == ends.1 {
            return wrong(format!("'{}' at both ends", link.from), "two nodes");
        }
        if self.layout.links.iter().any(|other| (other.from, other.to) == ends) {
            let found = format!("a second link from '{}' to '{}'", link.from, link.to);
            return wrong(found, "one at most");
        }
        if self.layout.links.iter().any(|other| other.name == link.name) {
            return wrong(format!("a second link called '{}'", link.name), "a name of its own");
        }
        if self.layout.nodes.len() > MOST_NODES || self.layout.links.len() >= MOST_LINKS {
            let expected = format!("at most {MOST_NODES} nodes and {MOST_LINKS} links");
            return wrong("more".into(), &expected);
        }
        if let QueueSpec::Fixed(choice, _) = &link.queue {
            disciplines::check_promises(choice, place, &link.name, &link.capacity)?;
        }
        self.layout.add(link);
        Ok(())
    }

    /// The ends of a link: nodes, which may be new, or the members of a group.
    fn ends_of(&self, names: &At<Names>, document: &Document) -> Result<Vec<String>, Mistake> {
        let mut ends: Vec<String> = Vec::new();
        for (name, place) in listed(names) {
            if let Some(members) = document.groups.get(name) {
                ends.extend(listed(members).map(|(name, _)| name.to_string()));
            } else if let Some(members) = self.groups.get(name) {
                ends.extend(members.iter().map(|node| self.name(*node).to_string()));
            } else if name.trim().is_empty() {
                return Err(Mistake::at(place, "an empty name", "the name of a node"));
            } else {
                ends.push(name.to_string());
            }
        }
        if ends.is_empty() {
            return Err(Mistake::at(&names.place, "an empty list", "at least one node"));
        }
        Ok(ends)
    }

    /// The nodes that `names` denote.
    pub(super) fn resolve(&self, names: &At<Names>) -> Result<Vec<NodeId>, Mistake> {
        let mut nodes = Vec::new();
        for (name, place) in listed(names) {
            if let Some(members) = self.groups.get(name) {
                nodes.extend(members);
            } else if let Some(node) = self.layout.node_called(name) {
                nodes.push(node);
            } else {
                let known = self.layout.nodes.iter().chain(self.groups.keys()).map(String::as_str);
                let expected = expectation(name, known);
                return Err(Mistake::at(place, format!("unknown node '{name}'"), expected));
            }
        }
        if nodes.is_empty() {
            return Err(Mistake::at(&names.place, "an empty list", "at least one node"));
        }
        let mut sorted = nodes.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let found = format!("'{}' twice", self.name(pair[0]));
            return Err(Mistake::at(&names.place, found, "each node once"));
        }
        Ok(nodes)
    }

    pub(super) fn name(&self, node: NodeId) -> &str {
        &self.layout.nodes[usize::from(node.0)]
    }

    /// Refuses traffic between nodes that cannot reach each other; where
    /// replies must return, in both directions.
    pub(super) fn check_reachable(
        &self,
        from: &[NodeId],
        to: &At<Names>,
        to_nodes: &[NodeId],
        both_ways: bool,
    ) -> Result<(), Mistake> {
        let unreachable = |start: NodeId, end: NodeId| {
            let found = format!("no way from '{}' to '{}'", self.name(start), self.name(end));
            Mistake::at(&to.place, found, "a destination that links lead to")
        };
        let mut onward = vec![Vec::new(); self.layout.nodes.len()];
        for link in &self.layout.links {
            onward[usize::from(link.from.0)].push(link.to);
        }
        let check = |starts: &[NodeId], ends: &[NodeId]| {
            for start in starts {
                let reached = reachable(&onward, *start);
                if let Some(end) = ends.iter().find(|end| !reached[usize::from(end.0)]) {
                    return Err(unreachable(*start, *end));
                }
            }
            Ok(())
        };
        check(from, to_nodes)?;
        if both_ways { check(to_nodes, from) } else { Ok(()) }
    }
}

/// The nodes that can be reached from `start`; `onward` has the next nodes of each.
fn reachable(onward: &[Vec<NodeId>], start: NodeId) -> Vec<bool> {
    let mut reached = vec![false; onward.len()];
    let mut open = VecDeque::from([start]);
    reached[usize::from(start.0)] = true;
    while let Some(node) = open.pop_front() {
        for next in &onward[usize::from(node.0)] {
            if !std::mem::replace(&mut reached[usize::from(next.0)], true) {
                open.push_back(*next);
            }
        }
    }
    reached
}

/// The names in a value, each with its place.
fn listed(names: &At<Names>) -> impl Iterator<Item = (&str, &Range<usize>)> {
    let (one, many) = match &names.value {
        Names::One(name) => (Some((name.as_str(), &names.place)), [].as_slice()),
        Names::Many(list) => (None, list.as_slice()),
    };
    one.into_iter().chain(many.iter().map(|name| (name.as_str(), &name.place)))
}

/// A capacity with its trace read.
pub(super) fn capacity(
    written: &syntax::Capacity,
    data: &dyn DataFiles,
) -> Result<Capacity, Mistake> {
    match written {
        syntax::Capacity::Rate(rate) => Ok(Capacity::Fixed(*rate)),
        syntax::Capacity::Trace(file) => {
            load_text(data, file, "a trace of delivery opportunities", DeliveryTrace::parse)
                .map(|trace| Capacity::Trace(Arc::new(trace)))
        }
    }
}

/// A share of packets; zero if it is not given.
pub(super) fn share(written: Option<&At<f64>>) -> Result<f64, Mistake> {
    match written {
        Some(share) if !(0.0..1.0).contains(&share.value) => {
            let expected = "a share of packets from 0 to below 1, as 0.01";
            Err(Mistake::at(&share.place, format!("{}", share.value), expected))
        }
        share => Ok(share.map_or(0.0, |share| share.value)),
    }
}

fn queue(
    written: Option<&At<Queue>>,
    buffer: Option<&At<Text<Limit>>>,
    capacity: &Capacity,
    data: &dyn DataFiles,
) -> Result<QueueSpec, Mistake> {
    let limit = match (buffer, capacity.rate()) {
        (None, _) => Buffer::default(),
        (Some(buffer), Some(rate)) => buffer.value.0.at(rate),
        (Some(At { value: Text(Limit::Amount(buffer)), .. }), None) => *buffer,
        (Some(At { value: Text(Limit::Time(time)), place }), None) => {
            let expected = "packets or a size, since a link without a rate sends all at once";
            return Err(Mistake::at(place, format!("a buffer of {time}"), expected));
        }
    };
    match (written.map(|queue| (&queue.value, queue)), buffer) {
        (Some((Queue::Tested, _)), _) => Ok(QueueSpec::Tested(limit)),
        (Some((Queue::Fixed(named), queue)), _) => Ok(QueueSpec::Fixed(
            disciplines::choice(named, &queue.place, &["tested", "unbounded"], data)?,
            limit,
        )),
        (None | Some((Queue::Unbounded, _)), None) => Ok(QueueSpec::Unbounded),
        (None | Some((Queue::Unbounded, _)), Some(buffer)) => Err(Mistake::at(
            &buffer.place,
            "a buffer for a queue without a limit",
            "queue = \"tested\" or a discipline beside it",
        )),
    }
}
