//! What the gateway has done for each class and user since its start.

use std::cell::RefCell;
use std::collections::BTreeMap;

use tidegate_core::request::{ClassId, UserId};
use tidegate_core::{Bytes, Span};

/// Users that are remembered: whoever received the least makes room for the next.
const MOST_USERS: usize = 4_096;

/// All counts.
#[derive(Debug)]
pub(crate) struct Books {
    classes: RefCell<Vec<Counts>>,
    users: RefCell<BTreeMap<(ClassId, UserId), Bytes>>,
}

/// What was done for a class.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Requests and tunnels that ended in order, that failed, and that were refused
    /// because they could not be understood.
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) refused: u64,
    /// What servers sent for it.
    pub(crate) received: Bytes,
    /// What its clients received besides.
    pub(crate) besides: Bytes,
    /// How long its requests were in line, all together.
    pub(crate) waited: Span,
}

impl Books {
    pub(crate) fn new(classes: usize) -> Books {
        let classes = RefCell::new(vec![Counts::default(); classes]);
        Books { classes, users: RefCell::default() }
    }

    /// Changes the counts of a class.
    pub(crate) fn count(&self, class: ClassId, change: impl FnOnce(&mut Counts)) {
        self.classes.borrow_mut().get_mut(class.0 as usize).map(change);
    }

    /// A server has sent this much for a user.
    pub(crate) fn received(&self, class: ClassId, user: UserId, size: Bytes) {
        self.count(class, |counts| counts.received += size);
        let users = &mut *self.users.borrow_mut();
        if let Some(sum) = users.get_mut(&(class, user)) {
            *sum += size;
            return;
        }
        if users.len() >= MOST_USERS {
            let least = users.iter().min_by_key(|(_, sum)| **sum).map(|(name, _)| *name);
            least.map(|least| users.remove(&least));
        }
        users.insert((class, user), size);
    }

    /// The counts of a class.
    pub(crate) fn class(&self, class: ClassId) -> Counts {
        self.classes.borrow().get(class.0 as usize).copied().unwrap_or_default()
    }

    /// Those who have received the most, the first of them first.
    pub(crate) fn top(&self, count: usize) -> Vec<(ClassId, UserId, Bytes)> {
        let users = self.users.borrow();
        let mut all: Vec<_> =
            users.iter().map(|((class, user), sum)| (*class, *user, *sum)).collect();
        all.sort_by_key(|(class, user, sum)| (std::cmp::Reverse(*sum), *class, *user));
        all.truncate(count);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_received_the_most_are_never_forgotten() {
        let books = Books::new(1);
        let large = u64::MAX - 3;
        for user in [large, large + 1] {
            books.received(ClassId(0), UserId(user), Bytes(1_000_000));
        }
        for user in 0..2 * MOST_USERS as u64 {
            books.received(ClassId(0), UserId(user), Bytes(user));
        }
        let top: Vec<_> = books.top(3).into_iter().map(|(_, user, _)| user.0).collect();
        assert_eq!(top, [large, large + 1, 2 * MOST_USERS as u64 - 1]);
        assert_eq!(books.users.borrow().len(), MOST_USERS);
        let all = 2_000_000 + (0..2 * MOST_USERS as u64).sum::<u64>();
        assert_eq!(books.class(ClassId(0)).received, Bytes(all));
    }
}
