//! Faults of a live link, under load: it is killed, its interfaces vanish, and strangers send
//! what they should not.
//!
//! ```sh
//! cargo test -p tidegate --test faults   # half a minute
//! make link-faults                       # a hundred kills, and the rest for as long
//! make link-soak                         # half an hour
//! make link-soak DURATION=180            # seconds
//! ```
//!
//! How often and for how long each test works is told by the environment, as `make` does.
//! The link is a process of its own in a network namespace of its own, so that its memory and
//! what it leaves are its alone. Nothing here is tuned to a quiet machine: what is asserted of
//! time leaves room for others, and what was measured is printed. This takes root's rights,
//! `ip` and `/dev/net/tun`; a test that lacks something prints `SKIP`.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod cable;
mod floods;
mod frames;
mod hosts;
mod interfaces;
mod kills;
mod load;
mod network;
mod soak;
