//! Operations on curves: against brute force, which notices small faults, by the
//! laws of their algebra, and at the ends of what fits.

mod extremes;
mod faults;
mod laws;
mod measured;
mod model;
mod operations;
