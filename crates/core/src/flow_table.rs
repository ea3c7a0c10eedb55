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
use hashbrown::hash_table::Entry;
use siphasher::sip::SipHasher13;
use slab::Slab;

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
    /// What the hash table has room for at least.
    room: usize,
    /// The slot that was freed last is used first.
    slots: Slab<Slot<T>>,
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
            room: 0,
            slots: Slab::new(),
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
        if (self.slots.len() + 1) * 4 > self.room {
            self.make_room();
        }
        let FlowTable { slot_by_key, slots, .. } = self;
        let same = |index: &u32| slots[*index as usize].key == *key;
        match slot_by_key.entry(hash, same, |index| slots[*index as usize].hash) {
            Entry::Occupied(entry) => {
                let index = *entry.get();
                (FlowId(index), &mut slots[index as usize].state)
            }
            Entry::Vacant(entry) => {
                let slot = slots.vacant_entry();
                let index = u32::try_from(slot.key()).expect("under 2^32 flows at once");
                entry.insert(index);
                (FlowId(index), &mut slot.insert(Slot { key: *key, hash, state: fresh() }).state)
            }
        }
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
        &mut self.slots[id.0 as usize].state
    }

    /// Removes an entry and returns its state.
    ///
    /// # Panics
    /// When the entry has been removed before.
    pub fn remove(&mut self, id: FlowId) -> T {
        let slot = self.slots.remove(id.0 as usize);
        forget(&mut self.slot_by_key, slot.hash, id.0);
        slot.state
    }

    /// Removes every entry for which `keep` returns false, in the order of slots.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let FlowTable { slot_by_key, slots, .. } = self;
        slots.retain(|index, slot| {
            let is_kept = keep(&slot.state);
            if !is_kept {
                forget(slot_by_key, slot.hash, index as u32);
            }
            is_kept
        });
    }

    fn lookup(&self, hash: u64, key: &FlowKey) -> Option<u32> {
        let same = |index: &u32| self.slots[*index as usize].key == *key;
        self.slot_by_key.find(hash, same).copied()
    }

    /// A hash table that is at most a quarter full has empty places almost everywhere, so that
    /// a search ends at once, and what is removed leaves no trace. Half full, it would gather
    /// traces until the search for a new flow takes three steps; fuller, it would allocate
    /// whenever it happens to run out of room. A flow takes up to 90 bytes of it so.
    #[cold]
    fn make_room(&mut self) {
        let FlowTable { slot_by_key, slots, room, .. } = self;
        let live = slots.len() + 1;
        *room = slot_by_key.len() + live * 7;
        slot_by_key.reserve(live * 7, |index| slots[*index as usize].hash);
    }
}

/// Takes a slot out of the table that points at it.
fn forget(slot_by_key: &mut HashTable<u32>, hash: u64, slot: u32) {
    slot_by_key
        .find_entry(hash, |index| *index == slot)
        .expect("every live slot is in the table")
        .remove();
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
        assert!(table.slots.vacant_key() < 1_000);
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
