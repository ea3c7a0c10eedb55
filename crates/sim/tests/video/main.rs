//! Video in segments: what players choose beside the program of BOLA's authors, what their
//! viewers see, by hand, and that nothing is lost on the way.

mod authors;
mod by_hand;
mod simulated;

use std::sync::Arc;

use tidegate_core::Rate;
use tidegate_core::Span;
use tidegate_sim::trace::Movie;

/// Segments of 2 s in qualities of 1, 2 and 4 Mbit/s.
fn three_qualities() -> Arc<Movie> {
    let rates = [1, 2, 4].map(|rate| Rate(rate * 1_000_000));
    Movie::constant(Span::seconds(2), &rates).expect("they ascend").into()
}
