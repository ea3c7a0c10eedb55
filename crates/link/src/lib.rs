//! A live link in user space: any queue discipline between two network interfaces, or on a
//! router.
//!
//! A link stands where the queue should be, in front of the bottleneck: between the
//! users' interface and the provider's. It takes all frames of one and sends them at
//! the other, both ways, and each way has a queue: a discipline of
//! [`registry`](tidegate_core::registry) in front of a rate, the same
//! [`Egress`](tidegate_core::Egress) that the simulator drives.
//!
//! - [`lane`] is all that is decided, without a socket or clock: bytes and times go in,
//!   frames to send come out.
//! - [`segment`] cuts the super-packets that Linux hands over into packets of the link,
//!   because a queue of 64 kB pieces is no queue of packets.
//! - `packet_socket` takes frames from the kernel and gives them back.
//! - [`nfqueue`] has a router hold its packets instead, and lets them go in our order.
//! - [`priority`] has the threads that send go before others.
//! - [`Link`] runs two lanes, each on a thread, until it is told to stop.

mod between;
mod books;
pub mod bridge;
mod frames;
pub mod lane;
mod link;
pub mod nfqueue;
pub mod offload;
mod packet_socket;
pub mod priority;
mod router;
pub mod segment;
mod settings;
mod status;
mod worker;

pub use link::{ChangeError, Config, Form, Link, LinkError, Running};
pub use packet_socket::OpenError;
pub use settings::{Change, Direction, Queue};
pub use status::{
    Counts, Delay, DelayBucket, DelayHistogram, Failures, FlowStatus, LevelStatus, Lost,
    QueueStatus, Second, Status,
};
pub use worker::Failure;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
