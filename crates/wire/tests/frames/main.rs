//! Frames composed at random, broken at random, and worked by hand.

mod compose;
mod examples;
mod reading;
mod rewriting;
