//! The kernel as judge: the same transfers through Linux and through the simulator, and
//! the same users behind real gateways ([`live`]), whose cost is measured too ([`speed`]), as
//! is what a link in user space carries ([`carry`]).
#![cfg(target_os = "linux")]

pub mod agent;
pub mod bed;
pub mod carry;
mod causes;
pub mod cell;
pub mod figures;
pub mod flow;
pub mod guest;
pub mod host;
pub mod kept;
pub mod link;
pub mod link_page;
pub mod live;
pub mod loaded;
mod loaded_page;
pub mod loaded_verdict;
pub mod native;
pub mod page;
mod path;
mod plot;
mod pooled;
mod program;
pub mod promises;
mod shaped;
pub mod simulated;
pub mod speed;
pub mod verdict;
pub mod workload;
