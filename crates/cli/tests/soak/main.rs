//! A gateway for long: what takes minutes, or more connections than a test may have.
//!
//! ```sh
//! cargo test --release -p tidegate --test soak -- --ignored --nocapture --test-threads 1
//! TIDEGATE_SOAK_SECONDS=1800 cargo test --release -p tidegate --test soak -- --ignored --nocapture long
//! ```
//!
//! The gateway is a process of its own, so that its memory and descriptors are its alone.
//! Clients and servers are here.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod gateway;
mod idle;
mod long;
mod servers;
mod users;
