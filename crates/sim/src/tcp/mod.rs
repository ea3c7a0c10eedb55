//! TCP endpoints as state machines without sockets, clocks or payload bytes.
//!
//! An [`Endpoint`] is one end of a connection. Time and segments are arguments,
//! and what it wants to send it appends to a vector of [`Header`]s; the owner
//! carries them to the other end and calls back at [`Endpoint::next_timer`].
//!
//! ```
//! use std::sync::Arc;
//! use tidegate_core::{Span, Time};
//! use tidegate_sim::tcp::{Endpoint, TcpConfig};
//!
//! let config = Arc::new(TcpConfig::papers());
//! let mut client = Endpoint::connect(config.clone(), 7);
//! let mut server = Endpoint::listen(config, 1_000);
//! client.write(100_000);
//! client.close();
//! server.close();
//!
//! let (mut now, mut up, mut down) = (Time::ZERO, Vec::new(), Vec::new());
//! client.poll(now, &mut up);
//! while !(client.is_closed() && server.is_closed()) {
//!     // A path of 10 ms either way without a queue.
//!     now += Span::millis(10);
//!     for header in up.drain(..) {
//!         server.on_segment(now, &header, false, &mut down);
//!     }
//!     now += Span::millis(10);
//!     for header in down.drain(..) {
//!         client.on_segment(now, &header, false, &mut up);
//!     }
//!     server.on_timer(now, &mut down);
//!     client.on_timer(now, &mut up);
//! }
//! assert_eq!(server.delivered(), 100_000);
//! ```
//!
//! # What is modelled
//! Handshake, both directions of data, close and reset (RFC 9293, without
//! simultaneous open, urgent data and the quiet time); slow start, congestion
//! avoidance, fast retransmit and restart after idle (RFC 5681); NewReno
//! (RFC 6582); limited transmit (RFC 3042); SACK and D-SACK (RFC 2018, 2883,
//! 6675); RACK-TLP (RFC 8985); retransmission timeouts (RFC 6298); ECN
//! (RFC 3168); Reno, CUBIC, HyStart, BBR, pacing and quick acknowledgements as in
//! Linux; HyStart++ (RFC 9406); delayed acknowledgements, window probes and silly window
//! avoidance (RFC 9293 section 3.8.6). There is no Nagle algorithm. Recoveries and
//! timeouts that prove needless are undone (RFC 3522, 3708, 5682), as in Linux.
//!
//! # Structure
//! `endpoint` is the connection's state machine and builds headers; `receiver`
//! and `sender` are the halves, which share nothing; `quick_acks` tells the receiver
//! when Linux acknowledges. The sender keeps the outstanding segments in a `scoreboard`,
//! which `recovery` marks; `rto` estimates the timeout, and `ticks` says when timers fire
//! on a host that counts time in ticks. A controller
//! in [`congestion`] hears of acknowledgements and losses, and never sees the
//! board; `delivery` measures rates for those that want them, and `pacing` turns
//! a controller's rate into times of departure.
//!
//! # Cost
//! An endpoint is one flat struct and its controller, which is called once per
//! acknowledgement. Its queues own no memory until they are used, and give none
//! back, so that a connection does not allocate per segment. No acknowledgement
//! looks at more segments than it tells of.

mod accurate_ecn;
mod config;
pub mod congestion;
mod delivery;
mod endpoint;
mod header;
mod ns3;
mod pacing;
mod quick_acks;
mod ranges;
mod receiver;
mod recovery;
mod rto;
mod scoreboard;
mod sender;
mod statistics;
mod ticks;

pub use config::{DelayedAck, PROFILES, TcpConfig};
pub use endpoint::{Endpoint, State};
pub use header::{Flags, Header, MAX_SACK_BLOCKS, Options, SackBlock, SackBlocks, Timestamps};
pub use ns3::Ns3;
pub use statistics::Statistics;
