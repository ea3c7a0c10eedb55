//! The kernel as judge: the same transfers through Linux and through the simulator.

#[cfg(target_os = "linux")]
pub mod agent;
pub mod workload;
