//! Scheduling of requests where responses cannot be scheduled.
//!
//! On the user's side of an access link the downlink's queue is out of reach: it
//! is at the provider's end. But its future content has to be requested, and the
//! requests pass here. Releasing them in the right order and at the right time
//! divides the downlink among classes and users, and keeps its queue short (MSF,
//! S.-C. Tsao and others, 2008).
//!
//! A [`Scheduler`] is a state machine like the packet disciplines: it owns no
//! clock, socket or thread. Requests, received bytes and the link's counters
//! come in, and [`Decision`]s come out. It has an arbiter, which chooses the
//! next request, and two actuators:
//!
//! - the *window* limits outstanding responses to as many as fill the link;
//! - the *read gate*, in the mode `msf` only, takes a response out of the window
//!   once it has become long, and lets it be read as fast as the link has room.
//!   With heavy-tailed sizes a window without it is nearly first come, first
//!   served: a few long responses hold all its places.
//!
//! A place in the window is a [`Permit`], which ends the response when it is
//! dropped.
//!
//! A [`Proxy`] contains everything that a gateway does around a scheduler,
//! apart from moving bytes: the lives of its requests and tunnels, with their
//! places, pauses and ends. [`Debts`] say who may use connections to servers that were kept.
//!
//! ```
//! use std::num::NonZeroU32;
//! use tidegate_core::request::{ClassId, Decision, Request, UserId, catalogue};
//! use tidegate_core::{Bytes, Rate, Time};
//!
//! let paper = catalogue::find("paper").expect("it is in the catalogue");
//! let weights = [4, 2, 1].map(|weight| NonZeroU32::new(weight).expect("not zero"));
//! let mut scheduler = paper.build(&[], Rate(2_000_000), &weights, 1)?;
//!
//! let request = |handle, class| Request { handle, class: ClassId(class), user: UserId(7) };
//! scheduler.arrive(request(0, 2)).expect("there is room to wait");
//! scheduler.arrive(request(1, 0)).expect("there is room to wait");
//! // Neither class has received anything, and class 0 has the larger weight.
//! let Some(Decision::Release { request, permit }) = scheduler.next(Time::ZERO) else {
//!     panic!("a request waits and the window is open")
//! };
//! assert_eq!(request.handle, 1);
//! // The window starts with one place.
//! assert!(scheduler.next(Time::ZERO).is_none());
//! scheduler.received(Time::ZERO, &permit, Bytes(1_000));
//! drop(permit);
//! assert!(scheduler.next(Time::ZERO).is_some());
//! # Ok::<(), tidegate_core::setting::SettingError>(())
//! ```

mod alarms;
mod buffer;
pub mod catalogue;
mod classes;
mod debts;
mod exchange;
mod lines;
mod permit;
mod pools;
mod proxy;
mod room;
mod round_trips;
mod scheduler;
mod sizes;
mod tunnel;
mod window;

pub use buffer::Opening;
pub use classes::{ClassOrder, SERVICE_SCALE};
pub use debts::Debts;
pub use exchange::{Ending, Phase};
pub use lines::{UserOrder, WaitingLimits};
pub use permit::Permit;
pub use proxy::{
    Action, ExchangeId, Member, OriginId, Pauses, Proxy, ProxyConfig, REPORT_EVERY, TunnelId,
};
pub use room::ReadGateConfig;
pub use round_trips::{TcpPath, latest_round_trip};
pub use scheduler::{Config, Scheduler};
pub use tunnel::{Piece, STEADY_SECONDS, TunnelConfig, TunnelPhase, Verdict};
pub use window::{LinkReport, WindowConfig, WindowMode};

use crate::units::Bytes;

/// A configured group of users with a weight: its position in the list of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u32);

/// The user who asks: any number that is the same for the same user of a class.
///
/// The caller names users, for only the caller knows them: by who has logged in, or
/// on the users' own network by the hardware address, which the neighbour table has.
/// An IP address is the last resort: a device has several of IPv6, and new ones every
/// day (RFC 8981), and would get the share of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserId(pub u64);

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The caller's own name for it; decisions contain it.
    pub handle: u64,
    /// The class that it counts for.
    pub class: ClassId,
    /// The user that it counts for.
    pub user: UserId,
}

/// Names a waiting request, even after its release or withdrawal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    waiting: u32,
    arrived: u64,
}

/// A request that may not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The total number of waiting requests is at its limit.
    #[error("{limit} requests wait already")]
    Full {
        /// The limit.
        limit: u32,
    },
    /// The number of waiting requests of its user is at its limit.
    #[error("{limit} requests of this user wait already")]
    UserFull {
        /// The limit for one user.
        limit: u32,
    },
    /// The scheduler was built without this class.
    #[error("there is no class {}", class.0)]
    NoSuchClass {
        /// The given class.
        class: ClassId,
    },
}

/// An instruction of a scheduler.
#[derive(Debug)]
pub enum Decision {
    /// Send this request to its server.
    Release {
        /// The request.
        request: Request,
        /// Keep it until the response is over, for whatever reason, and then drop it.
        permit: Permit,
    },
    /// Read this much more of this long response.
    Read {
        /// Its request's handle.
        handle: u64,
        /// The amount in addition to earlier grants.
        size: Bytes,
    },
}

/// How a response may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// As fast as it arrives.
    Freely,
    /// This much, and then no more until [`Decision::Read`] adds to it.
    UpTo(Bytes),
}

/// The state of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassState {
    /// *SC*, in units of 1/[`SERVICE_SCALE`] byte; plain bytes where classes
    /// take turns. 0 while the class is idle, and where users have lines of their own
    /// and weights are theirs: then classes have no service.
    pub service: u128,
    /// *UC*: users with a request waiting or a response outstanding.
    pub users: u32,
    /// Whether a request waits.
    pub is_waiting: bool,
}
