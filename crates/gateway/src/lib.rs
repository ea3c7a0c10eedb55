//! The live request gateway.
//!
//! A proxy for HTTP/1.1 on the users' side of an access link whose downlink is the
//! bottleneck. Every request waits in the scheduler of [`tidegate_core::request`], and
//! every response is read as that scheduler says: the code that decides is the code
//! that [`tidegate_sim`](https://docs.rs/tidegate-sim) simulates. This crate only moves
//! bytes.
//!
//! [`message`] understands HTTP, without sockets. A [`Gateway`] listens, and serves on
//! one thread: the scheduler has one owner.

mod admin;
mod books;
pub mod class;
mod client;
pub mod config;
mod connections;
mod counter;
mod datagrams;
pub mod file;
mod gate;
mod gateway;
mod history;
pub mod intercept;
pub mod local;
mod log;
mod logins;
pub mod machine;
pub mod message;
mod metrics;
mod names;
pub mod others;
mod overview;
pub mod page;
mod passwords;
mod paths;
mod pipe;
mod quic;
mod records;
mod relay;
pub mod rules;
mod servers;
mod socket;
mod status;
mod times;
mod token;
mod tunnel;
mod window;

pub use config::{Config, user_of};
pub use gateway::{Control, Gateway, ReloadWanted, Reloaded};
pub use log::REQUESTS;
pub use passwords::Passwords;
pub use records::Records;
pub use status::{ClassStatus, Status, UserStatus};
pub use times::Typical;
pub use token::Token;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
