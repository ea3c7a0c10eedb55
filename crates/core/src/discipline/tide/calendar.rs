//! Numbered queues in slots that go round: the first or the last of them is two steps
//! away.
//!
//! A bit for each slot says whether it is occupied, and a bit for each word of 64 such
//! bits whether any of them is set. To find the next occupied slot takes three words at
//! most, however many queues there are and however far apart. The queues of a slot
//! are in a linked list, in the order in which they came, and a queue knows its
//! neighbours: it is put in and taken out in O(1). Slots take 32 kB, a queue 12 bytes.

use super::mark::Slot;

/// No queue.
const NONE: u32 = u32::MAX;

const WORDS: usize = 64;
const SLOTS: usize = Slot::COUNT as usize;

/// Queues by slot. A queue is in it at most once.
#[derive(Debug)]
pub(super) struct Calendar {
    slots: Box<[Ends; SLOTS]>,
    queues: Vec<Link>,
    occupied: [u64; WORDS],
    /// Which of the words above are not zero.
    summary: u64,
}

/// The first and the last queue of a slot.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
}

/// A queue's neighbours in its slot.
#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
    slot: Option<Slot>,
}

impl Calendar {
    /// Without queues.
    pub(super) fn new() -> Calendar {
        let empty = Ends { first: NONE, last: NONE };
        Calendar {
            slots: Box::new([empty; SLOTS]),
            queues: Vec::new(),
            occupied: [0; WORDS],
            summary: 0,
        }
    }

    /// Puts a queue behind the others of a slot, wherever it was before.
    pub(super) fn insert(&mut self, queue: u32, slot: Slot) {
        match self.queues.get(queue as usize) {
            Some(&link @ Link { slot: Some(before), .. }) => self.unlink(link, before),
            Some(_) => {}
            None => self.grow(queue),
        }
        let number = slot.number();
        let ends = &mut self.slots[number];
        let previous = std::mem::replace(&mut ends.last, queue);
        if previous == NONE {
            ends.first = queue;
            self.occupied[number / 64] |= 1 << (number % 64);
            self.summary |= 1 << (number / 64);
        } else {
            self.queues[previous as usize].next = queue;
        }
        self.queues[queue as usize] = Link { previous, next: NONE, slot: Some(slot) };
    }

    /// Apart, since it is rare: what packets go through keeps its registers.
    #[cold]
    fn grow(&mut self, queue: u32) {
        let out = Link { previous: NONE, next: NONE, slot: None };
        self.queues.resize(queue as usize + 1, out);
    }

    /// Puts a queue into a slot; it keeps its place if it is there already.
    #[inline]
    pub(super) fn keep_in(&mut self, queue: u32, slot: Slot) {
        if self.queues.get(queue as usize).is_none_or(|link| link.slot != Some(slot)) {
            self.insert(queue, slot);
        }
    }

    /// Takes a queue out, if it is in.
    pub(super) fn remove(&mut self, queue: u32) {
        let Some(link) = self.queues.get_mut(queue as usize) else { return };
        let Some(slot) = link.slot.take() else { return };
        let link = *link;
        self.unlink(link, slot);
    }

    /// Closes the gap that a queue leaves in its slot.
    fn unlink(&mut self, Link { previous, next, .. }: Link, slot: Slot) {
        let number = slot.number();
        if previous != NONE {
            self.queues[previous as usize].next = next;
        }
        if next != NONE {
            self.queues[next as usize].previous = previous;
        }
        if previous != NONE && next != NONE {
            return;
        }
        let ends = &mut self.slots[number];
        if previous == NONE {
            ends.first = next;
        }
        if next == NONE {
            ends.last = previous;
        }
        if ends.first == NONE {
            self.occupied[number / 64] &= !(1 << (number % 64));
            if self.occupied[number / 64] == 0 {
                self.summary &= !(1 << (number / 64));
            }
        }
    }

    /// The first queue of the first occupied slot, from `start` on and all the way round.
    pub(super) fn first_from(&self, start: Slot) -> Option<u32> {
        let start = start.number();
        let number = self.at_or_after(start).or_else(|| self.at_or_after(0))?;
        Some(self.slots[number].first)
    }

    /// The first queue of the last occupied slot, if counting begins at `start`.
    pub(super) fn last_from(&self, start: Slot) -> Option<u32> {
        let end = start.previous().number();
        let number = self.at_or_before(end).or_else(|| self.at_or_before(SLOTS - 1))?;
        Some(self.slots[number].first)
    }

    fn at_or_after(&self, start: usize) -> Option<usize> {
        let (word, bit) = (start / 64, start % 64);
        let here = self.occupied[word] & (u64::MAX << bit);
        if here != 0 {
            return Some(64 * word + here.trailing_zeros() as usize);
        }
        // Twice, for a shift by 64 is none.
        let later = self.summary & (u64::MAX << word << 1);
        (later != 0).then(|| {
            let word = later.trailing_zeros() as usize;
            64 * word + self.occupied[word].trailing_zeros() as usize
        })
    }

    fn at_or_before(&self, end: usize) -> Option<usize> {
        let (word, bit) = (end / 64, end % 64);
        let here = self.occupied[word] & (u64::MAX >> (63 - bit));
        if here != 0 {
            return Some(64 * word + 63 - here.leading_zeros() as usize);
        }
        let earlier = self.summary & !(u64::MAX << word);
        (earlier != 0).then(|| {
            let word = 63 - earlier.leading_zeros() as usize;
            64 * word + 63 - self.occupied[word].leading_zeros() as usize
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Operation {
        Insert { queue: u32, slot: u16 },
        KeepIn { queue: u32, slot: u16 },
        Remove { queue: u32 },
    }

    fn slot() -> impl Strategy<Value = u16> {
        prop_oneof![
            select(&[0_u16, 1, 63, 64, 65, 127, 128, 4_031, 4_032, 4_094, 4_095][..]),
            0..Slot::COUNT
        ]
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            (0..6_u32, slot()).prop_map(|(queue, slot)| Operation::Insert { queue, slot }),
            (0..6_u32, slot()).prop_map(|(queue, slot)| Operation::KeepIn { queue, slot }),
            (0..7_u32).prop_map(|queue| Operation::Remove { queue }),
        ]
    }

    proptest! {
        #[test]
        fn the_first_and_the_last_are_those_of_a_list(
            operations in prop::collection::vec(operation(), 0..100),
            start in slot(),
        ) {
            let mut calendar = Calendar::new();
            // In the order in which they came.
            let mut list: Vec<(u32, u16)> = Vec::new();
            for operation in operations {
                match operation {
                    Operation::Insert { queue, slot } => {
                        calendar.insert(queue, Slot::at(slot));
                        list.retain(|(other, _)| *other != queue);
                        list.push((queue, slot));
                    }
                    Operation::KeepIn { queue, slot } => {
                        calendar.keep_in(queue, Slot::at(slot));
                        if !list.contains(&(queue, slot)) {
                            list.retain(|(other, _)| *other != queue);
                            list.push((queue, slot));
                        }
                    }
                    Operation::Remove { queue } => {
                        calendar.remove(queue);
                        list.retain(|(other, _)| *other != queue);
                    }
                }
                let place = |slot: u16| slot.wrapping_sub(start) % Slot::COUNT;
                // `min_by_key` takes the first of equal ones.
                let first = list.iter().min_by_key(|(_, slot)| place(*slot));
                let last = list.iter().min_by_key(|(_, slot)| Slot::COUNT - place(*slot));
                let found = |found: Option<&(u32, u16)>| found.map(|(queue, _)| *queue);
                prop_assert_eq!(calendar.first_from(Slot::at(start)), found(first));
                prop_assert_eq!(calendar.last_from(Slot::at(start)), found(last));
            }
        }
    }
}
