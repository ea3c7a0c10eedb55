//! The connections of clients, and the class that each belongs to.
//!
//! A class is a position in the settings, and a reload may change positions, or take a class
//! away. So nobody keeps a position: it is asked for here, where it is of now.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::{Rc, Weak};

use tidegate_core::request::{ClassId, UserId};

use crate::config::{Limits, user_of};

/// All that are open.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    all: RefCell<BTreeMap<u64, Weak<Connection>>>,
    of: RefCell<BTreeMap<UserId, u32>>,
    opened: Cell<u64>,
}

impl Connections {
    /// A client at this address has one more, unless there are too many.
    pub(crate) fn open(
        self: &Rc<Connections>,
        client: IpAddr,
        limits: &Limits,
    ) -> Option<Rc<Connection>> {
        let user = user_of(client);
        let mut of = self.of.borrow_mut();
        let of_user = of.get(&user).copied().unwrap_or_default();
        if self.len() >= limits.connections as usize || of_user >= limits.connections_per_user {
            return None;
        }
        of.insert(user, of_user + 1);
        let number = self.opened.get();
        self.opened.set(number + 1);
        let (all, class) = (self.clone(), Cell::new(None));
        let connection = Rc::new(Connection { all, number, client, class });
        self.all.borrow_mut().insert(number, Rc::downgrade(&connection));
        Some(connection)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.borrow().len()
    }

    /// Each of them.
    pub(crate) fn each(&self) -> Vec<Rc<Connection>> {
        self.all.borrow().values().filter_map(Weak::upgrade).collect()
    }
}

/// A connection of a client, or a flow of its datagrams, counted while it is open.
#[derive(Debug)]
pub(crate) struct Connection {
    all: Rc<Connections>,
    number: u64,
    client: IpAddr,
    class: Cell<Option<ClassId>>,
}

impl Connection {
    /// The address of its client.
    pub(crate) fn client(&self) -> IpAddr {
        self.client
    }

    /// The class that it belongs to; `None` before that is known, and when there is none for
    /// it any more.
    pub(crate) fn class(&self) -> Option<ClassId> {
        self.class.get()
    }

    /// It belongs to this class from now on.
    pub(crate) fn place(&self, class: Option<ClassId>) {
        self.class.set(class);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.all.all.borrow_mut().remove(&self.number);
        let mut of = self.all.of.borrow_mut();
        let user = user_of(self.client);
        if let Some(count) = of.get_mut(&user) {
            *count -= 1;
            if *count == 0 {
                of.remove(&user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_than_are_permitted_and_none_is_forgotten() {
        let limits = Limits { connections: 3, connections_per_user: 2, ..Limits::default() };
        let connections = Rc::new(Connections::default());
        let open = |user: u8| connections.open([10, 0, 0, user].into(), &limits);
        let first = (open(1).expect("the first"), open(1).expect("the second"));
        assert!(open(1).is_none(), "two are of this user");
        let other = open(2).expect("the third");
        assert!(open(3).is_none(), "there are three");
        assert_eq!((connections.len(), connections.each().len()), (3, 3));
        drop(first);
        assert!(open(3).is_some_and(|third| third.client() == IpAddr::from([10, 0, 0, 3])));
        drop(other);
        assert_eq!((connections.len(), connections.of.borrow().len()), (0, 0));
    }
}
