//! 802.11 cells.

mod cells;
mod saturation;
