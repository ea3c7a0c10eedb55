//! The connections of somebody to one place, and who waits for one of them.

use std::collections::VecDeque;

use crate::pages::AT_ONCE;

/// The ends of what a client of a gateway's setup says: the client, by its number among
/// those of all classes, and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) client: usize,
    pub(super) server: usize,
}

impl Place {
    /// The name of a client's connection, which says to whom it leads even where it ends
    /// at a gateway.
    pub(super) fn tag(self) -> u64 {
        (self.client as u64) << 32 | self.server as u64
    }

    pub(super) fn of(tag: u64) -> Place {
        Place { client: (tag >> 32) as usize, server: (tag & 0xffff_ffff) as usize }
    }
}

/// Connections, by whatever name their owner has for them.
#[derive(Debug)]
pub(super) struct Pool<C> {
    pub(super) open: Vec<C>,
    /// Objects that wait for a free connection.
    pub(super) waiting: VecDeque<usize>,
}

/// The connection that an object gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice<C> {
    /// This one.
    Free(C),
    /// A new one.
    Open,
    /// The first that becomes free.
    Wait,
}

impl<C> Default for Pool<C> {
    fn default() -> Pool<C> {
        Pool { open: Vec::new(), waiting: VecDeque::new() }
    }
}

impl<C: Copy + PartialEq> Pool<C> {
    /// The oldest connection that is free, or a new one as long as there are fewer than
    /// `most`.
    pub(super) fn choose(&self, most: usize, mut is_free: impl FnMut(C) -> bool) -> Choice<C> {
        match self.open.iter().copied().find(|it| is_free(*it)) {
            Some(free) => Choice::Free(free),
            None if self.open.len() < most => Choice::Open,
            None => Choice::Wait,
        }
    }

    /// An object that waits although it may have a new connection, as one has ended.
    pub(super) fn next_to_open(&mut self) -> Option<usize> {
        if self.open.len() < AT_ONCE as usize { self.waiting.pop_front() } else { None }
    }

    /// A connection is closed, or is about to be.
    pub(super) fn leave(&mut self, connection: C) {
        self.open.retain(|it| *it != connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_names_its_place() {
        let place = Place { client: 4_999, server: 9_999 };
        assert_eq!(Place::of(place.tag()), place);
    }

    #[test]
    fn an_object_gets_a_free_connection_or_a_new_one_or_waits() {
        let mut pool = Pool::default();
        assert_eq!(pool.choose(2, |_| true), Choice::Open);
        pool.open.extend([7, 8]);
        assert_eq!(pool.choose(2, |it| it == 8), Choice::Free(8));
        assert_eq!(pool.choose(2, |_| true), Choice::Free(7));
        assert_eq!(pool.choose(3, |_| false), Choice::Open);
        assert_eq!(pool.choose(2, |_| false), Choice::Wait);
        pool.leave(7);
        assert_eq!(pool.choose(2, |_| false), Choice::Open);
        pool.waiting.extend([1, 2]);
        assert_eq!(pool.next_to_open(), Some(1));
        pool.open.extend(9..14);
        assert_eq!(pool.next_to_open(), None);
    }
}
