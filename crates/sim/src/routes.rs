//! Routes: which link leads to which node.

use std::collections::VecDeque;

use crate::scenario::{LinkSpec, NodeId};

/// For every pair of nodes the first link of a way with the fewest links; among
/// those of equal length the one through the link listed first.
///
/// Most nodes are hosts with one link that leads away: whatever they send takes it,
/// and only the others need a table of all destinations.
pub(crate) struct Routes {
    /// What leads away from each node.
    ways: Vec<Ways>,
    /// The tables, one after the other: the link to take, by destination.
    tables: Vec<Option<u16>>,
    nodes: usize,
}

#[derive(Clone, Copy)]
enum Ways {
    None,
    Only(u16),
    /// The number of its table.
    Several(usize),
}

impl Routes {
    pub(crate) fn new(nodes: usize, links: &[LinkSpec]) -> Routes {
        let mut onward: Vec<Vec<u16>> = vec![Vec::new(); nodes];
        for (index, link) in (0_u16..).zip(links) {
            onward[usize::from(link.from.0)].push(index);
        }
        let mut routes = Routes { ways: Vec::with_capacity(nodes), tables: Vec::new(), nodes };
        for start in 0..nodes {
            let ways = match onward[start][..] {
                [] => Ways::None,
                [only] => Ways::Only(only),
                _ => Ways::Several(routes.add_table(start, links, &onward)),
            };
            routes.ways.push(ways);
        }
        routes
    }

    /// Goes through the network breadth first; returns the table's number.
    fn add_table(&mut self, start: usize, links: &[LinkSpec], onward: &[Vec<u16>]) -> usize {
        let mut first = vec![None; self.nodes];
        let mut reached = VecDeque::from([start]);
        while let Some(node) = reached.pop_front() {
            for index in &onward[node] {
                let to = usize::from(links[usize::from(*index)].to.0);
                if to != start && first[to].is_none() {
                    first[to] = if node == start { Some(*index) } else { first[node] };
                    reached.push_back(to);
                }
            }
        }
        self.tables.append(&mut first);
        self.tables.len() / self.nodes - 1
    }

    /// The link to take at `node` towards `destination`, if a way leads there.
    pub(crate) fn link(&self, node: NodeId, destination: NodeId) -> Option<usize> {
        let link = match self.ways[usize::from(node.0)] {
            Ways::None => None,
            Ways::Only(link) => Some(link),
            Ways::Several(table) => self.tables[table * self.nodes + usize::from(destination.0)],
        };
        link.map(usize::from)
    }
}
