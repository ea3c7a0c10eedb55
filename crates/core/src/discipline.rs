//! The contract of a packet discipline, and the disciplines, one file each.
//!
//! A discipline decides which packet a queue sends next and which it gives up when
//! it is full. It is a state machine: the caller states the time, hands packets in
//! and takes packets out. Every packet handed in comes back exactly once, either
//! from [`Discipline::dequeue`] or in the [`Losses`] of the call that decided to
//! lose it. Counting and plotting are not a discipline's work:
//! [`Port`](crate::Port) counts.
//!
//! The following rules hold for all disciplines, and the conformance suite checks
//! them:
//! - no packet is made, lost unseen, or changed (except for an ECN mark);
//! - packets of one flow with one codepoint leave in the order in which they came,
//!   except where a discipline [sorts](Discipline::sorts_by_ecn) by the ECN field too;
//! - the backlog is within the buffer after every call, or no larger than before it
//!   if the buffer was made smaller;
//! - while there is a backlog and [`Discipline::next_ready`] returns now, a packet
//!   comes out;
//! - no input makes it panic.

use std::fmt;

use crate::entry::Place;
use crate::packet::{Ecn, Packet};
use crate::setting::Settings;
use crate::units::{Bytes, Rate, Time};

mod allotments;
mod attained;
mod bidirectional;
pub mod cake;
pub mod codel;
mod codel_law;
pub mod deadlines;
mod deficits;
pub mod drr;
pub mod dualpi2;
pub mod efd;
pub mod efd_ack;
pub mod fifo;
mod flow_queues;
mod flow_state;
mod form;
pub mod fq;
pub mod fq_codel;
pub mod fq_pie;
mod hosts;
pub mod lars;
pub mod las;
pub mod las_ack;
pub mod las_log;
pub mod pie;
mod pie_law;
mod pie_tuning;
mod ranked;
pub mod red;
mod red_settings;
pub mod run2c;
pub mod run2c_ack;
pub mod scfq;
pub mod sfq;
mod sparse_first;
mod threshold;
pub mod tide;
#[cfg(test)]
mod trial;
mod two_level;
pub mod x_protect;

pub use codel_law::CodelParameters;
pub use flow_state::Memory;
pub use form::Form;
pub use pie_tuning::Tuning;
pub use two_level::Order;

/// Decides the order of service and which packets to lose.
pub trait Discipline: Send {
    /// Takes in `packet`, which has arrived at `now`. Time never goes back from one
    /// call to the next. Packets that do not fit (this one, or others that have to
    /// make room for it) go into `losses`.
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses);

    /// Hands out the packet to send at `now`, or nothing if no packet may leave
    /// yet. A discipline that drops at the head puts those packets into `losses`.
    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet>;

    /// Adopts other `settings` and another place while it runs, from `now` on. No
    /// packet is lost by that, and each keeps its place. Parameters that the entry
    /// calls [fixed](crate::entry::Entry::fixed) stay as they are:
    /// [`Entry::change`](crate::entry::Entry::change) refuses other values. A buffer
    /// that becomes smaller keeps what it holds; until that is within the new limit,
    /// an arriving packet is refused or takes the room of others.
    ///
    /// # Panics
    /// When the settings are those of another discipline.
    fn reconfigure(&mut self, now: Time, settings: &Settings, place: Place);

    /// The time at which the next packet may leave: `now` if there is one, `None`
    /// if the queue is empty. Work-conserving disciplines need no other answer.
    fn next_ready(&self, now: Time) -> Option<Time> {
        (self.backlog().packets > 0).then_some(now)
    }

    /// What is queued.
    fn backlog(&self) -> Backlog;

    /// The rate to which it holds packets back, as a [shaper](crate::shaper) does;
    /// `None` for a discipline that sends whenever it is asked.
    fn rate(&self) -> Option<Rate> {
        None
    }

    /// Whether packets of low-latency traffic ([`Ecn::is_low_latency`]) may overtake
    /// others of their flow, and be overtaken by them. Senders use one or the other
    /// (RFC 9331 section 4.1), so that none is hurt but by a mark that another queue set.
    fn sorts_by_ecn(&self) -> bool {
        false
    }

    /// The number of flows for which it keeps state.
    fn flows_tracked(&self) -> usize {
        0
    }

    /// Backlog by priority level or class, highest first; empty when there is only one.
    fn levels(&self) -> &[Level] {
        &[]
    }
}

/// Packets and bytes in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets queued.
    pub packets: u32,
    /// Bytes queued.
    pub bytes: Bytes,
}

impl Backlog {
    /// Adds a packet of `size`.
    pub fn add(&mut self, size: Bytes) {
        self.packets += 1;
        self.bytes += size;
    }

    /// Removes a packet of `size`.
    pub fn remove(&mut self, size: Bytes) {
        self.packets -= 1;
        self.bytes -= size;
    }
}

/// One priority level of a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Its name in the field: `high`, `low`.
    pub name: &'static str,
    /// Its backlog.
    pub backlog: Backlog,
    /// Packets that ever joined it.
    pub enqueued: u64,
}

impl Level {
    /// An empty level.
    #[must_use]
    pub const fn new(name: &'static str) -> Level {
        let backlog = Backlog { packets: 0, bytes: Bytes::ZERO };
        Level { name, backlog, enqueued: 0 }
    }
}

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossReason {
    /// The buffer was full, and the arriving packet was the one to go.
    Refused,
    /// A packet already queued made room for another.
    PushedOut,
    /// There was room, but its sender had to be told of congestion.
    Early,
    /// A later acknowledgement of the same flow says everything that this one said.
    Superseded,
    /// It was more than its flow had declared that it would send.
    Excess,
}

impl LossReason {
    /// All reasons, in the order in which tables show them.
    pub const ALL: [LossReason; 5] = [
        LossReason::Refused,
        LossReason::PushedOut,
        LossReason::Early,
        LossReason::Superseded,
        LossReason::Excess,
    ];

    /// The column that counts packets lost for this reason.
    #[must_use]
    pub const fn column(self) -> &'static str {
        match self {
            LossReason::Refused => "refused_packets",
            LossReason::PushedOut => "pushed_out_packets",
            LossReason::Early => "early_packets",
            LossReason::Superseded => "superseded_packets",
            LossReason::Excess => "excess_packets",
        }
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LossReason::Refused => "refused",
            LossReason::PushedOut => "pushed out",
            LossReason::Early => "dropped early",
            LossReason::Superseded => "superseded",
            LossReason::Excess => "in excess",
        })
    }
}

/// A packet that a discipline gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The packet, as it was handed in.
    pub packet: Packet,
    /// Why it is lost.
    pub reason: LossReason,
}

/// Where a call puts the packets that it loses, and counts those that it marks. The
/// caller owns it and reuses it, so that losing packets allocates nothing.
#[derive(Debug, Default)]
pub struct Losses {
    lost: Vec<Loss>,
    marked: u32,
}

impl Losses {
    /// Nothing lost yet.
    #[must_use]
    pub fn new() -> Losses {
        Losses::default()
    }

    /// Records that `packet` is lost.
    pub fn push(&mut self, packet: Packet, reason: LossReason) {
        self.lost.push(Loss { packet, reason });
    }

    /// Signals congestion to the sender of `packet`. A packet whose sender
    /// understands marks is marked and comes back; any other is lost (RFC 3168
    /// section 5).
    #[must_use]
    pub fn signal(&mut self, packet: Packet) -> Option<Packet> {
        if !packet.ecn.is_markable() {
            self.push(packet, LossReason::Early);
            return None;
        }
        self.marked += 1;
        Some(Packet { ecn: Ecn::Ce, ..packet })
    }

    /// Records what a full buffer gives up while `arriving` comes in: the
    /// arriving packet itself is refused, any other is pushed out.
    pub fn push_out(&mut self, victim: Packet, arriving: &Packet) {
        let own = victim.handle == arriving.handle;
        self.push(victim, if own { LossReason::Refused } else { LossReason::PushedOut });
    }

    /// Takes the recorded losses out, in the order in which they happened.
    pub fn drain(&mut self) -> impl Iterator<Item = Loss> + '_ {
        self.marked = 0;
        self.lost.drain(..)
    }

    /// The recorded losses.
    #[must_use]
    pub fn as_slice(&self) -> &[Loss] {
        &self.lost
    }

    /// The number of packets marked.
    #[must_use]
    pub fn marked(&self) -> u32 {
        self.marked
    }

    /// Forgets what is recorded.
    pub fn clear(&mut self) {
        self.lost.clear();
        self.marked = 0;
    }
}
