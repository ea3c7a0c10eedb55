//! The programs on a device that leads nowhere: what is left when they have gone ([`life`]),
//! and what they cost ([`cost`]); and on a line that hostile senders share ([`hostile`]).
//!
//! This takes root's rights, `ip`, `tc`, and a kernel that has BPF qdiscs; elsewhere, a test
//! prints `SKIP` and the reason. `tools/check-qdisc.sh` runs the tests in a guest,
//! `tools/qdisc-cost.sh` what measures.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cost;
mod device;
#[expect(dead_code, reason = "frames of all kinds are for other tests")]
#[path = "../frames/mod.rs"]
mod frames;
mod hostile;
mod life;
mod line;
