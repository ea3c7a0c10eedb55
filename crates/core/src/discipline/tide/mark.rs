//! Places on the scale of virtual time, in bytes of service.
//!
//! The scale has no end: marks wrap around, as sequence numbers of TCP do, and are
//! compared by their distance. That is exact while all marks that are compared lie
//! within half of 2^64 of each other, which [`Tide`](super::Tide) keeps to a few
//! megabytes. A queue may therefore run for ever at any rate.

use crate::units::Bytes;

/// A place on the scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(u64);

/// The slots of a calendar are this long: tags are told apart to less than a full
/// packet, so that two packets of a flow that sends full ones are never equal. A
/// power of two, so that slots go on evenly where marks wrap around.
pub(super) const SLOT: Bytes = Bytes(1 << SLOT_BITS);
const SLOT_BITS: u32 = 10;

impl Mark {
    /// Where a queue begins; any mark would do.
    pub(super) const START: Mark = Mark(0);

    /// The mark so much later.
    pub(super) fn after(self, distance: Bytes) -> Mark {
        Mark(self.0.wrapping_add(distance.0))
    }

    /// The mark so much earlier.
    pub(super) fn before(self, distance: Bytes) -> Mark {
        Mark(self.0.wrapping_sub(distance.0))
    }

    /// How far it is ahead of `other`; zero if it is not.
    pub(super) fn ahead_of(self, other: Mark) -> Bytes {
        Bytes(u64::try_from(self.distance(other)).unwrap_or(0))
    }

    /// The later of two.
    pub(super) fn latest(self, other: Mark) -> Mark {
        if other.distance(self) > 0 { other } else { self }
    }

    /// The earlier of two.
    pub(super) fn earliest(self, other: Mark) -> Mark {
        if other.distance(self) < 0 { other } else { self }
    }

    /// The slot that it lies in.
    pub(super) fn slot(self) -> Slot {
        Slot((self.0 >> SLOT_BITS) as u16 & Slot::LAST)
    }

    /// The mark at which its slot begins.
    pub(super) fn start_of_slot(self) -> Mark {
        Mark(self.0 & !(SLOT.0 - 1))
    }

    /// Whether it lies in an earlier slot than `other`.
    pub(super) fn is_slots_before(self, other: Mark) -> bool {
        self.start_of_slot().distance(other.start_of_slot()) < 0
    }

    fn distance(self, other: Mark) -> i64 {
        self.0.wrapping_sub(other.0).cast_signed()
    }

    #[cfg(test)]
    pub(super) fn at(place: u64) -> Mark {
        Mark(place)
    }
}

/// A slot of a calendar, which goes round: marks that are [`Slot::COUNT`] slots apart
/// share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(u16);

impl Slot {
    /// How many there are: two levels of words of 64 bits.
    pub(super) const COUNT: u16 = 64 * 64;
    const LAST: u16 = Self::COUNT - 1;

    /// Its number, below [`Slot::COUNT`].
    pub(super) fn number(self) -> usize {
        // The compiler sees by the mask that no index needs a check.
        usize::from(self.0 & Self::LAST)
    }

    /// The one before.
    pub(super) fn previous(self) -> Slot {
        Slot(self.0.wrapping_sub(1) & Self::LAST)
    }

    #[cfg(test)]
    pub(super) fn at(number: u16) -> Slot {
        Slot(number & Self::LAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_compared_across_the_end_of_the_scale() {
        let early = Mark::at(u64::MAX - 999);
        let late = early.after(Bytes(3_000));
        assert_eq!(late, Mark::at(2_000));
        assert_eq!((late.ahead_of(early), early.ahead_of(late)), (Bytes(3_000), Bytes(0)));
        assert_eq!((early.latest(late), late.latest(early)), (late, late));
        assert_eq!((early.earliest(late), late.earliest(early)), (early, early));
        assert_eq!(late.before(Bytes(3_000)), early);
        assert!(early.is_slots_before(late) && !late.is_slots_before(early));
        assert!(!Mark::at(1_024).is_slots_before(Mark::at(2_047)));
        assert!(Mark::at(1_023).is_slots_before(Mark::at(1_024)));
        assert_eq!((early.slot(), late.slot()), (Slot::at(4_095), Slot::at(1)));
        assert_eq!(Mark::at(500).slot().previous(), Slot::at(4_095));
    }
}
