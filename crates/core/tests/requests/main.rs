//! Request schedulers and the proxy, held to the rules that all share, to slow and
//! obvious twins, to bounds, and to their pages in the documentation.

mod adversaries;
mod bounds;
mod conformance;
mod examples;
mod exchanges;
mod found;
mod leads;
mod lives;
mod pages;
mod places;
mod replacement;
mod tunnels;
