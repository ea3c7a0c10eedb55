//! Disciplines that hold packets back to a rate of their own.
//!
//! A shaper is a discipline like any other. It stands just before a slower
//! link, so that the queue builds up here, under the control of a discipline.
//! It knows its [rate](crate::Discipline::rate), and its
//! [`next_ready`](crate::Discipline::next_ready) tells when the next packet may
//! leave.
//!
//! | shaper | holds back |
//! | --- | --- |
//! | [`Paced`] | any discipline, to the rate of a link |
//! | [`Htb`] | classes, each to its share, with borrowing |
//!
//! # Late polls
//!
//! No timer is exact, and no loop is always on time. A packet that is taken late
//! counts as leaving at the time at which it was due, so that the next one is due
//! no later than it would have been. That holds for polls up to [`CREDIT`] late;
//! further delay is lost, so that a driver that was stopped for a second does not
//! send a second's worth at once. Credit arises only while a packet waits and could
//! leave: an idle link saves up nothing. So in any time *t* there leaves at most
//! what the rate carries in *t* and `CREDIT`, plus the packet that crosses the end;
//! drivers that are never late see a shaper without any burst. CAKE's shaper in
//! Linux has the same rule without a bound (`sch_cake.c`, `cake_advance_shaper`); here
//! [`cake`](crate::discipline::cake) with a `bandwidth` follows this one.

mod htb;
mod paced;

pub use crate::pace::CREDIT;
pub use htb::Htb;
pub use paced::Paced;
