//! Memory for the frames that wait: bounded, and used again.
//!
//! A frame lies in a slot of one of two sizes, with the header that the kernel wants in
//! front of it. Slots are made when they are needed and kept, so that a link in steady
//! state allocates nothing; all of them together never exceed the bound. A queue in
//! packets needs small slots, but a link that lets super-packets pass whole needs large
//! ones: where the bound is reached, unused slots of the other size make room.

use tidegate_core::Bytes;

use crate::offload::HEADER_LENGTH;

/// A header and a full Ethernet frame with tags.
const SMALL: usize = 2_048;
/// A header and the largest frame that the kernel hands over.
pub(crate) const LARGE: usize = HEADER_LENGTH + 18 + 65_535;
const SIZES: [usize; 2] = [SMALL, LARGE];

/// The slots.
#[derive(Debug)]
pub(crate) struct Frames {
    slots: Vec<Slot>,
    /// Those without a frame, by size.
    free: [Vec<u32>; 2],
    /// Places in `slots` whose memory was given back.
    hollow: Vec<u32>,
    memory: usize,
    bound: usize,
}

#[derive(Debug, Default)]
struct Slot {
    memory: Box<[u8]>,
    /// Bytes of header and frame.
    length: usize,
}

impl Frames {
    /// No frames, and never more than `bound` of memory.
    pub(crate) fn new(bound: Bytes) -> Frames {
        Frames {
            slots: Vec::new(),
            free: [Vec::new(), Vec::new()],
            hollow: Vec::new(),
            memory: 0,
            bound: usize::try_from(bound.0).unwrap_or(usize::MAX),
        }
    }

    /// A slot for a frame of `length` bytes, whose content is arbitrary; `None` if there is
    /// no memory, or the frame is larger than the kernel could send.
    pub(crate) fn take(&mut self, length: usize) -> Option<u32> {
        let length = HEADER_LENGTH + length;
        let class = SIZES.iter().position(|size| length <= *size)?;
        let slot = match self.free[class].pop() {
            Some(slot) => slot,
            None => self.make(class)?,
        };
        self.slots[slot as usize].length = length;
        Some(slot)
    }

    fn make(&mut self, class: usize) -> Option<u32> {
        let size = SIZES[class];
        while self.memory + size > self.bound {
            let unused = self.free[1 - class].pop()?;
            self.memory -= SIZES[1 - class];
            self.slots[unused as usize] = Slot::default();
            self.hollow.push(unused);
        }
        self.memory += size;
        let slot = Slot { memory: vec![0; size].into(), length: 0 };
        if let Some(hollow) = self.hollow.pop() {
            self.slots[hollow as usize] = slot;
            return Some(hollow);
        }
        self.slots.push(slot);
        u32::try_from(self.slots.len() - 1).ok()
    }

    /// The header and the frame.
    pub(crate) fn whole(&self, slot: u32) -> &[u8] {
        let slot = &self.slots[slot as usize];
        &slot.memory[..slot.length]
    }

    /// The frame.
    pub(crate) fn frame_mut(&mut self, slot: u32) -> &mut [u8] {
        let slot = &mut self.slots[slot as usize];
        &mut slot.memory[HEADER_LENGTH..slot.length]
    }

    /// Sets the header.
    pub(crate) fn set_header(&mut self, slot: u32, header: [u8; HEADER_LENGTH]) {
        self.slots[slot as usize].memory[..HEADER_LENGTH].copy_from_slice(&header);
    }

    /// Forgets a frame.
    pub(crate) fn release(&mut self, slot: u32) {
        let class = usize::from(self.slots[slot as usize].memory.len() > SMALL);
        self.free[class].push(slot);
    }

    /// The memory of all slots.
    pub(crate) fn memory(&self) -> Bytes {
        Bytes(self.memory as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again_and_stay_within_the_bound() {
        let mut frames = Frames::new(Bytes(3 * SMALL as u64));
        let taken: Vec<_> = (0..3).map(|_| frames.take(1_514).unwrap()).collect();
        assert_eq!(frames.take(60), None);
        frames.frame_mut(taken[1]).fill(7);
        frames.set_header(taken[1], [9; HEADER_LENGTH]);
        assert_eq!(frames.whole(taken[1])[..11], [[9; 10].as_slice(), &[7]].concat());
        frames.release(taken[1]);
        assert_eq!(frames.take(60), Some(taken[1]));
        assert_eq!(frames.whole(taken[1]).len(), HEADER_LENGTH + 60);
        assert_eq!(frames.memory(), Bytes(3 * SMALL as u64));
    }

    #[test]
    fn unused_slots_of_the_other_size_make_room() {
        let mut frames = Frames::new(Bytes(LARGE as u64 + 100));
        let small: Vec<_> = std::iter::from_fn(|| frames.take(100)).collect();
        assert_eq!(small.len(), (LARGE + 100) / SMALL);
        assert_eq!(frames.take(60_000), None);
        small.iter().for_each(|slot| frames.release(*slot));
        let large = frames.take(60_000).unwrap();
        assert_eq!((frames.take(60), frames.take(60_000)), (None, None));
        frames.release(large);
        assert!(frames.take(60).is_some());
        assert!(frames.memory().0 <= LARGE as u64 + 100);
        // Nothing is as large as that.
        assert_eq!(frames.take(LARGE), None);
    }
}
