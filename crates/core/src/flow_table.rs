//! State per flow, hashed with a seed.
//!
//! Entries lie in a slab and are identified by a [`FlowId`], so that a queued
//! packet can find its flow's entry again without hashing its key a second time.
//! The hash is SipHash-1-3 with a key drawn from the seed: a sender that chooses
//! ports and addresses cannot aim at one bucket, and a run stays reproducible.
//! Slots of removed entries are reused, so a table that has reached its working
//! size allocates no more.

use std::hash::Hasher;

use hashbrown::HashTable;
use siphasher::sip::SipHasher13;

use crate::packet::FlowKey;

/// Maps flows to numbers, differently for every seed.
#[derive(Clone, Debug)]
pub struct FlowHash(SipHasher13);

impl FlowHash {
    /// The hash of the run with this `seed`.
    #[must_use]
    pub fn new(seed: u64) -> FlowHash {
        // Two words that differ for every seed; the constant is the golden
        // ratio's, as good as any that is not zero.
        FlowHash(SipHasher13::new_with_keys(seed, seed ^ 0x9e37_79b9_7f4a_7c15))
    }

    /// Any 64 bits, always the same for a flow.
    #[must_use]
    pub fn of(&self, key: &FlowKey) -> u64 {
        let mut hasher = self.0;
        key.write_to(&mut hasher);
        hasher.finish()
    }

    /// One of `0..count`, for disciplines that distribute flows among that many
    /// queues.
    #[must_use]
    pub fn bucket(&self, key: &FlowKey, count: u32) -> u32 {
        // The high half of a product, which is below `count`, without a division.
        ((u128::from(self.of(key)) * u128::from(count)) >> 64) as u32
    }
}

/// Identifies an entry of a [`FlowTable`] for as long as the entry lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowId(u32);

impl FlowId {
    /// The entry's slot: less than the largest number of entries that there ever
    /// were.
    #[must_use]
    pub fn slot(self) -> u32 {
        self.0
    }

    /// The entry in a slot that has one.
    pub(crate) fn at_slot(slot: u32) -> FlowId {
        FlowId(slot)
    }
}

/// A map from flow to `T`.
#[derive(Debug)]
pub struct FlowTable<T> {
    hash: FlowHash,
    slot_by_key: HashTable<u32>,
    slots: Vec<Option<Slot<T>>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<T> {
    key: FlowKey,
    hash: u64,
    state: T,
}

impl<T> FlowTable<T> {
    /// An empty table whose hash depends on `seed`.
    #[must_use]
    pub fn new(seed: u64) -> FlowTable<T> {
        FlowTable {
            hash: FlowHash::new(seed),
            slot_by_key: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slot_by_key.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slot_by_key.is_empty()
    }

    /// The entry of the flow, made by `fresh` if there is none.
    pub fn entry(&mut self, key: &FlowKey, fresh: impl FnOnce() -> T) -> (FlowId, &mut T) {
        let hash = self.hash.of(key);
        let index = match self.lookup(hash, key) {
            Some(index) => index,
            None => self.insert(hash, *key, fresh()),
        };
        let slot = self.slots[index as usize].as_mut().expect("the table points at live slots");
        (FlowId(index), &mut slot.state)
    }

    /// The entry of the flow, if it has one.
    #[must_use]
    pub fn find(&self, key: &FlowKey) -> Option<FlowId> {
        self.lookup(self.hash.of(key), key).map(FlowId)
    }

    /// The state of an entry.
    ///
    /// # Panics
    /// When the entry has been removed: a `FlowId` is good for its entry's life.
    pub fn state(&mut self, id: FlowId) -> &mut T {
        &mut self.slots[id.0 as usize].as_mut().expect("a FlowId names a live entry").state
    }

    /// Removes an entry and returns its state.
    ///
    /// # Panics
    /// When the entry has been removed before.
    pub fn remove(&mut self, id: FlowId) -> T {
        let slot = self.slots[id.0 as usize].take().expect("a FlowId names a live entry");
        self.slot_by_key
            .find_entry(slot.hash, |index| *index == id.0)
            .expect("every live slot is in the table")
            .remove();
        self.free.push(id.0);
        slot.state
    }

    /// Removes every entry for which `keep` returns false, in the order of slots.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        for index in 0..self.slots.len() {
            if self.slots[index].as_ref().is_some_and(|slot| !keep(&slot.state)) {
                self.remove(FlowId(index as u32));
            }
        }
    }

    fn lookup(&self, hash: u64, key: &FlowKey) -> Option<u32> {
        let same =
            |index: &u32| self.slots[*index as usize].as_ref().is_some_and(|slot| slot.key == *key);
        self.slot_by_key.find(hash, same).copied()
    }

    fn insert(&mut self, hash: u64, key: FlowKey, state: T) -> u32 {
        let slot = Some(Slot { key, hash, state });
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                index
            }
            None => {
                let index = u32::try_from(self.slots.len()).expect("under 2^32 flows at once");
                self.slots.push(slot);
                index
            }
        };
        let slots = &self.slots;
        self.slot_by_key.insert_unique(hash, index, |index| {
            slots[*index as usize].as_ref().expect("the table points at live slots").hash
        });
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(port: u16) -> FlowKey {
        FlowKey::v4([10, 0, 0, 1], port, [10, 0, 0, 2], 80, FlowKey::TCP)
    }

    #[test]
    fn entries_are_found_changed_removed_and_their_slots_reused() {
        let mut table = FlowTable::new(7);
        for round in 0..3 {
            for port in 0..1_000 {
                *table.entry(&key(port), || 0).1 += u32::from(port);
            }
            assert_eq!(table.len(), 1_000, "round {round}");
            table.retain(|state| state % 2 == 0);
            assert_eq!(table.len(), 500);
            let id = table.find(&key(2)).unwrap();
            table.remove(id);
            assert_eq!(table.find(&key(2)), None);
            table.retain(|_| false);
            assert!(table.is_empty());
        }
        assert_eq!(table.slots.len(), 1_000);
    }

    #[test]
    fn the_hash_depends_on_the_seed() {
        assert_ne!(FlowHash::new(1).of(&key(1)), FlowHash::new(2).of(&key(1)));
    }

    #[test]
    fn buckets_are_within_their_count_and_evenly_filled() {
        let mut flows = [0; 5];
        for port in 0..10_000 {
            flows[FlowHash::new(1).bucket(&key(port), 5) as usize] += 1;
        }
        // 2 000 each with a deviation of 40: five of them.
        assert!(flows.iter().all(|flows| (1_800..=2_200).contains(flows)), "{flows:?}");
        assert_eq!(FlowHash::new(1).bucket(&key(1), 1), 0);
    }
}
