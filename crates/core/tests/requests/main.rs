//! Request schedulers, held to the rules that all share, to a slow and obvious
//! twin, to bounds, and to their pages in the documentation.

mod bounds;
mod conformance;
mod examples;
mod exchanges;
mod pages;
mod places;
