//! Packet-level simulation of access links with real TCP dynamics.
//!
//! A [`scenario::Scenario`] says what is connected to what and who sends;
//! [`simulation::run`] runs it with one discipline and one seed; [`metrics`]
//! holds the results. The disciplines are those of `tidegate-core`.

mod air;
mod apps;
mod carrier;
mod connections;
mod datagrams;
pub mod gcc;
pub mod kernel;
mod lookups;
mod lot;
pub mod metrics;
mod network;
pub mod pages;
mod quic;
pub mod requests;
mod routes;
pub mod scenario;
pub mod simulation;
mod slab;
pub mod tcp;
pub mod trace;
mod traffic;
mod unloaded;
pub mod video;
pub mod wlan;
