//! Operations on curves: against brute force, by the laws of their algebra, and
//! at the ends of what fits.

mod extremes;
mod laws;
mod measured;
mod model;
mod operations;
