//! Packet scheduling disciplines as pure state machines.
//!
//! This crate owns no clock, no socket, no thread and no global randomness.
//! Time and packets come in as arguments, and everything that happened goes
//! out as a value, so that the same code runs in the simulator and in the replay
//! of a capture, and depends on neither.
//!
//! | module | holds |
//! | --- | --- |
//! | [`units`] | [`Time`], [`Span`], [`Bytes`], [`Rate`]: integers with their unit as type and in text |
//! | [`packet`] | what a discipline sees of a packet |
//! | [`flow_table`] | state per flow, hashed with a seed |
//! | [`buffer`] | how much a queue may hold |
//! | [`framing`] | what a packet costs on the link behind |
//! | [`contract`] | what real-time flows send at most and were promised, and the policer |
//! | [`curve`] | arrival curves of real-time flows, and what can be done with them |
//! | [`residual`] | whether all deadlines can be met, and what is left for best-effort packets |
//! | [`assignment`] | deadlines for best-effort packets in what is left |
//! | [`discipline`] | the [`Discipline`] trait, and one file for each discipline |
//! | [`shaper`] | disciplines that hold packets back to a rate |
//! | [`setting`] | parameters with their kinds and defaults, and the settings read for them |
//! | [`entry`] | what a discipline says about itself |
//! | [`registry`] | the one list of disciplines |
//! | [`request`] | scheduling of requests, where responses cannot be scheduled |
//! | [`port`] | a discipline with its counters |
//! | [`egress`] | a port in front of a rate: what drives a link |
//!
//! ```
//! use tidegate_core::{Buffer, Bytes, FlowKey, Packet, Port, Time, registry};
//!
//! let efd = registry::find("efd").expect("EFD is registered");
//! let discipline = efd.build(&[("threshold", "20 packets")], Buffer::packets(300), 1)?;
//! let mut port = Port::new(discipline);
//!
//! let flow = FlowKey::v4([10, 0, 0, 1], 443, [10, 0, 0, 2], 50_000, FlowKey::TCP);
//! port.offer(Time::ZERO, Packet::new(0, flow, Bytes(1_500)));
//! assert_eq!(port.backlog().packets, 1);
//! assert_eq!(port.take(Time::ZERO).map(|packet| packet.size), Some(Bytes(1_500)));
//! # Ok::<(), tidegate_core::setting::SettingError>(())
//! ```

pub mod assignment;
pub mod buffer;
pub mod contract;
pub mod curve;
pub mod discipline;
mod double_ended_heap;
pub mod egress;
pub mod entry;
pub mod flow_table;
pub mod framing;
mod pace;
pub mod packet;
pub mod port;
pub mod random;
pub mod registry;
pub mod request;
pub mod residual;
pub mod setting;
pub mod shaper;
pub mod units;

pub use buffer::Buffer;
pub use discipline::{Backlog, Discipline, Loss, LossReason, Losses};
pub use egress::{Egress, Poll};
pub use flow_table::FlowTable;
pub use packet::{Dscp, Ecn, FlowKey, Packet, TcpFacts};
pub use port::{Counters, Port};
pub use random::Stream;
pub use units::{Bytes, Rate, Span, Time};
