//! Packet-level simulation of access links with real TCP dynamics.

pub mod tcp;
pub mod trace;
