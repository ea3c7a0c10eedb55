//! An 802.11 cell: an access point and its stations on one radio channel.
//!
//! Every sender follows the distributed coordination function (IEEE 802.11-2016
//! clause 10.3) over the OFDM physical layer (clause 17): 802.11a, or 802.11g
//! without old stations around. There is no central allocation: who has waited
//! for its own random number of idle slots sends, and two that come to their
//! end in the same slot spoil each other's frames.
//!
//! What is simplified: all hear all at once and without error of their own
//! (no hidden station, no propagation time, no capture of the stronger of two
//! frames, sensing takes no time); acknowledgements of frames are never lost;
//! no RTS, no fragments, no beacons, no power saving, no change of rates.
//!
//! [`phy`] says how long a frame takes, [`Cell`] who sends when.

mod cell;
pub mod phy;
#[cfg(test)]
mod tests;

pub use cell::{Cell, Counts, Frame, Outcome, Timing};
