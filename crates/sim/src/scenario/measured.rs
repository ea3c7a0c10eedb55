//! What was measured on the link that a scenario describes.
//!
//! Nothing in a run depends on it. Results set it beside what the simulation gives, so that
//! whoever trusts the simulation of a link sees how far to.

use tidegate_core::{Bytes, Rate, Span};

/// One thing that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Its name in tables, such as `Ping (ms) ICMP`.
    pub name: String,
    /// What was measured.
    pub what: Observed,
}

/// What was measured, and what of the scenario corresponds to it.
#[derive(Clone, Debug, PartialEq)]
pub enum Observed {
    /// A delay of packets.
    Delay {
        /// 2 for a round trip, 1 for a one-way delay, 0 for the time of something else, such
        /// as a page.
        ways: u32,
        /// The sources of datagrams whose delays add up to it: places in the list of
        /// sources. Empty if nothing corresponds to it.
        of: Vec<usize>,
        /// The median without load.
        idle: Option<Span>,
        /// Under load.
        spread: Spread<Span>,
        /// Packets lost divided by packets sent, under load.
        loss: Option<f64>,
        /// What a call with this delay and loss each way is worth, R from 0 to 100.
        rating: Option<f64>,
    },
    /// Payload that TCP delivered.
    Throughput {
        /// The sources that it is the sum of; empty if nothing corresponds to it.
        of: Vec<usize>,
        /// Under load.
        spread: Spread<Rate>,
    },
    /// What a queue did under load.
    Queue {
        /// The link behind it, if it is in the scenario: a place in the list of links.
        of: Option<usize>,
        /// Packets dropped in a second.
        dropped_per_second: Option<f64>,
        /// Packets marked in a second.
        marked_per_second: Option<f64>,
        /// Bytes queued, on average.
        backlog: Option<Bytes>,
    },
}

/// A distribution in short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread<T> {
    /// Mean.
    pub mean: Option<T>,
    /// 5 of 100 values are not above this.
    pub p5: Option<T>,
    /// Median.
    pub median: Option<T>,
    /// 95 of 100 values are not above this.
    pub p95: Option<T>,
}
