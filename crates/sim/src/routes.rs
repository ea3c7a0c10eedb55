//! Routes: which link leads to which node.

use std::collections::VecDeque;

use crate::scenario::{LinkSpec, NodeId};

/// For every pair of nodes the first link of a way with the fewest links; among
/// those of equal length the one through the link listed first.
///
/// Most nodes are hosts with one link that leads away: whatever they send takes it,
/// and only the others need a table of all destinations.
pub(crate) struct Routes {
    /// Where the entry of each node begins, and how far apart those of two
    /// destinations are: by nothing where all take the same link.
    entries: Vec<(usize, usize)>,
    /// The link to take.
    links: Vec<Option<u16>>,
}

impl Routes {
    pub(crate) fn new(nodes: usize, links: &[LinkSpec]) -> Routes {
        let mut onward: Vec<Vec<u16>> = vec![Vec::new(); nodes];
        for (index, link) in (0_u16..).zip(links) {
            onward[usize::from(link.from.0)].push(index);
        }
        let mut routes = Routes { entries: Vec::with_capacity(nodes), links: Vec::new() };
        for start in 0..nodes {
            let begin = routes.links.len();
            if let [] | [_] = onward[start][..] {
                routes.links.push(onward[start].first().copied());
                routes.entries.push((begin, 0));
            } else {
                routes.links.append(&mut first_links(start, links, &onward));
                routes.entries.push((begin, 1));
            }
        }
        routes
    }

    /// The link to take at `node` towards `destination`, if a way leads there.
    pub(crate) fn link(&self, node: NodeId, destination: NodeId) -> Option<usize> {
        let (begin, apart) = self.entries[usize::from(node.0)];
        self.links[begin + apart * usize::from(destination.0)].map(usize::from)
    }
}

/// The first link of the way from `start` to each node, breadth first; `onward` has the
/// links that lead away from each.
fn first_links(start: usize, links: &[LinkSpec], onward: &[Vec<u16>]) -> Vec<Option<u16>> {
    let mut first = vec![None; onward.len()];
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
    first
}
