//! An 802.11 cell: an access point and its stations on one radio channel.
//!
//! Every sender follows the distributed coordination function (IEEE 802.11-2016
//! clause 10.3) over the OFDM physical layer (clause 17): 802.11a, or 802.11g
//! without old stations. Alternatively, all have QoS and follow its successor EDCA
//! (section 10.22.2), with the rates of 802.11n or ac and aggregates. There is no
//! central allocation: a sender that has waited for its own random number of idle
//! slots sends, and two whose wait ends in the same slot spoil each other's frames.
//!
//! The model simplifies the following: all senders hear each other at once and
//! without error (no hidden station, no propagation time, no capture of the
//! stronger of two frames, sensing takes no time); acknowledgements of frames are
//! never lost; there is no RTS, no fragments, no beacons, no power saving and no
//! change of rates; of the four access categories there is only best effort, with
//! one frame or aggregate at a time.
//!
//! [`phy`] and [`high_throughput`] say how long a frame takes, [`Cell`] who sends
//! when, [`aggregation`] what an aggregate consists of, and [`airtime`] to whom an
//! access point sends that shares out its time.

use std::fmt;

use tidegate_core::Rate;

pub mod aggregation;
pub mod airtime;
mod cell;
pub mod high_throughput;
pub mod phy;
#[cfg(test)]
mod tests;

pub use cell::{Cell, Counts, Frame, Outcome, Timing, Transmission};

/// How data are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modulation {
    /// As in 802.11a.
    Ofdm(phy::DataRate),
    /// As in 802.11n or ac, in aggregates.
    Aggregated(high_throughput::Mcs),
}

impl Modulation {
    /// In bits per second.
    #[must_use]
    pub fn rate(self) -> Rate {
        match self {
            Modulation::Ofdm(rate) => rate.rate(),
            Modulation::Aggregated(mcs) => mcs.rate(),
        }
    }
}

impl fmt::Display for Modulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Modulation::Ofdm(rate) => rate.fmt(f),
            Modulation::Aggregated(mcs) => mcs.fmt(f),
        }
    }
}
