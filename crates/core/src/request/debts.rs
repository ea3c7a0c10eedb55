//! Who has to open connections to servers that others could have used.
//!
//! A gateway keeps the connection of a response that is complete for whoever asks the same
//! server next, and saves them a handshake. A response that is broken off, by its client or by
//! its server, takes its connection with it, and the next who asks that server would wait for a
//! handshake: not those who break responses off, but everybody. So whoever had one broken off
//! opens a connection to that server when they ask it again, instead of taking one that was
//! kept; when that response is complete, the others have what they had.

use std::collections::BTreeMap;

/// So many debts are remembered; beyond that, the one with the least name is forgotten, and a
/// connection that was kept is used.
const MOST: usize = 4_096;
/// A user may owe a server so many: more than a page asks one for at a time.
const MOST_OF_ONE: u32 = 64;

/// How many connections each user owes each server, by what names both.
///
/// ```
/// use tidegate_core::request::Debts;
///
/// let mut debts = Debts::default();
/// debts.broke_off(("anna", "example.org"));
/// assert!(debts.owes(&("anna", "example.org")));
/// assert!(!debts.must_open(&("bert", "example.org")));
/// assert!(!debts.must_open(&("anna", "example.com")));
/// // Once for each.
/// assert!(debts.must_open(&("anna", "example.org")));
/// assert!(!debts.must_open(&("anna", "example.org")));
/// ```
#[derive(Clone, Debug)]
pub struct Debts<Name: Ord> {
    owed: BTreeMap<Name, u32>,
}

impl<Name: Ord> Default for Debts<Name> {
    fn default() -> Debts<Name> {
        Debts { owed: BTreeMap::new() }
    }
}

impl<Name: Ord> Debts<Name> {
    /// A response was broken off, and its connection is lost.
    pub fn broke_off(&mut self, name: Name) {
        let owed = self.owed.entry(name).or_default();
        *owed = MOST_OF_ONE.min(*owed + 1);
        if self.owed.len() > MOST {
            self.owed.pop_first();
        }
    }

    /// Whether the next request has to open a connection.
    pub fn owes(&self, name: &Name) -> bool {
        self.owed.contains_key(name)
    }

    /// Whether a request has to open a connection, which pays for one that was lost.
    pub fn must_open(&mut self, name: &Name) -> bool {
        let Some(owed) = self.owed.get_mut(name) else { return false };
        *owed -= 1;
        if *owed == 0 {
            self.owed.remove(name);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_debt_is_paid_once_and_there_are_no_more_than_so_many() {
        let mut debts = Debts::default();
        for _ in 0..MOST_OF_ONE + 5 {
            debts.broke_off(1);
        }
        assert_eq!((0..100).filter(|_| debts.must_open(&1)).count(), MOST_OF_ONE as usize);
        for name in 0..2 * MOST {
            debts.broke_off(name);
        }
        assert_eq!(debts.owed.len(), MOST);
        assert!(debts.must_open(&(2 * MOST - 1)) && !debts.must_open(&0));
    }
}
