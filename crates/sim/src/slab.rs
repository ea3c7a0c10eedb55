//! Records that come and go, named by small numbers. A slot is used again as
//! soon as it is free, so that memory follows the records alive.

use std::ops::{Index, IndexMut};

/// A growing set of `T`, each with a number.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab { slots: Vec::new(), free: Vec::new() }
    }

    /// Puts `value` in; returns its number.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = value;
                index
            }
            None => {
                self.slots.push(value);
                u32::try_from(self.slots.len() - 1).expect("under 2^32 packets on the way at once")
            }
        }
    }

    /// Takes the value with this number out. The number must be of a value that is in.
    pub(crate) fn remove(&mut self, index: u32) -> T {
        self.free.push(index);
        self.slots[index as usize]
    }

    /// The values that are in, by number. Takes time for every slot there ever was.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        let mut is_in = vec![true; self.slots.len()];
        for index in &self.free {
            is_in[*index as usize] = false;
        }
        self.slots.iter().zip(is_in).filter_map(|(value, is_in)| is_in.then_some(value))
    }

    /// How many values are in.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, index: u32) -> &T {
        &self.slots[index as usize]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.slots[index as usize]
    }
}
