//! Operations on curves: checked by brute force, which notices small faults, by the
//! laws of their algebra, and at the limits of their ranges.

mod extremes;
mod faults;
mod laws;
mod measured;
mod model;
mod operations;
