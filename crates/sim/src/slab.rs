//! Records that come and go, by numbers of 32 bits: events carry them.
//!
//! The slot that was freed last is used first, so that memory follows the records
//! alive and a run gives the same numbers every time.

use std::ops::{Index, IndexMut};

/// A growing set of `T`, each with a number.
#[derive(Debug)]
pub(crate) struct Slab<T>(slab::Slab<T>);

impl<T> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab(slab::Slab::new())
    }

    /// Puts `value` in; returns its number.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        u32::try_from(self.0.insert(value)).expect("under 2^32 packets on the way at once")
    }

    /// Takes the value with this number out. The number must be of a value that is in.
    pub(crate) fn remove(&mut self, number: u32) -> T {
        self.0.remove(number as usize)
    }

    /// The values that are in, by number. Takes time for every slot there ever was.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, value)| value)
    }

    /// How many values are in.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, number: u32) -> &T {
        &self.0[number as usize]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.0[number as usize]
    }
}
