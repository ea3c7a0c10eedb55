//! Records that come and go, named by small numbers. A slot is used again as
//! soon as it is free, so that memory follows the most records alive at once.

use std::ops::{Index, IndexMut};

/// A growing set of `T`, each with a number.
#[derive(Debug)]
pub(super) struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Slab<T> {
        Slab { slots: Vec::new(), free: Vec::new() }
    }

    /// Puts `value` in; returns its number.
    pub(super) fn insert(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = Some(value);
                number
            }
            None => {
                self.slots.push(Some(value));
                u32::try_from(self.slots.len() - 1).expect("limits keep it under 2^32")
            }
        }
    }

    /// The value with this number, when there is one.
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.slots.get(number as usize)?.as_ref()
    }

    /// Takes the value with this number out. The number must be of a value that is in.
    pub(super) fn remove(&mut self, number: u32) -> T {
        self.free.push(number);
        self.slots[number as usize].take().expect("only a live record is removed")
    }

    /// How many values are in.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, number: u32) -> &T {
        self.slots[number as usize].as_ref().expect("a number names a live record")
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, number: u32) -> &mut T {
        self.slots[number as usize].as_mut().expect("a number names a live record")
    }
}
