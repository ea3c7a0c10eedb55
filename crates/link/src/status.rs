//! What a link says about itself, as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::settings::Direction;

/// The state of a link. What is counted is counted since its start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// How packets come to the link: `packet` between two interfaces, `nfqueue` as keeper
    /// of a router's queue.
    pub form: String,
    /// The interface on the users' side; none on a router, which has its own.
    pub inside: Option<String>,
    /// The interface on the provider's side.
    pub outside: String,
    /// The time since the start.
    pub uptime_s: f64,
    /// Its queues: down, then up.
    pub queues: Vec<QueueStatus>,
}

/// The state of the queue of one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueStatus {
    /// Where it leads.
    pub direction: Option<Direction>,
    /// The discipline.
    pub discipline: String,
    /// Its parameters with their values, as in files.
    pub parameters: BTreeMap<String, String>,
    /// The rate to which packets are held back.
    pub rate_bps: u64,
    /// How much it may hold, as in files.
    pub buffer: String,
    /// What a packet takes of the link behind, as in files.
    pub framing: String,
    /// What has gone through.
    pub counts: Counts,
    /// What went wrong that should not.
    pub failures: Failures,
    /// Packets in the queue.
    pub queued_packets: u32,
    /// Their bytes, counted as the link behind counts them.
    pub queued_bytes: u64,
    /// Flows of which something is remembered.
    pub flows: usize,
    /// The most of them at once.
    pub flows_peak: usize,
    /// Memory for frames.
    pub memory_bytes: u64,
    /// Time in the queue of the packets that were sent.
    pub delay: Delay,
    /// The same as a histogram.
    pub delay_histogram: DelayHistogram,
    /// The delay of each level of the discipline, highest first.
    pub levels: Vec<LevelStatus>,
    /// What happened in the last whole second.
    pub last_second: Second,
    /// The flows that sent the most in about the last ten seconds, largest first.
    pub top_flows: Vec<FlowStatus>,
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Packets that arrived; those of a super-packet that was split count each.
    pub arrived_packets: u64,
    /// Their bytes, counted as the link behind counts them.
    pub arrived_bytes: u64,
    /// Packets handed out for sending.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets marked, to tell their senders of congestion.
    pub marked_packets: u64,
    /// Packets lost, by reason.
    pub lost: Lost,
    /// Super-packets that were split.
    pub split_frames: u64,
    /// Frames that held something other than IP.
    pub other_frames: u64,
}

/// Packets that the discipline gave up, by the reasons of
/// [`LossReason`](tidegate_core::LossReason).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lost {
    /// The buffer was full.
    pub refused: u64,
    /// Packets of the queue that made room for others.
    pub pushed_out: u64,
    /// There was room, but their senders had to be told of congestion.
    pub early: u64,
    /// Acknowledgements that a later one made needless.
    pub superseded: u64,
    /// More than their flow had declared.
    pub excess: u64,
}

impl Lost {
    /// For any reason.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.refused + self.pushed_out + self.early + self.superseded + self.excess
    }
}

/// Packets lost by the link itself, or by what is around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Failures {
    /// Frames that contradict themselves, and are carried as they are in a flow of their own.
    pub malformed_frames: u64,
    /// Frames that the kernel could not hand over: merged in a way that it cannot describe,
    /// or larger than 64 kB.
    pub unreadable_frames: u64,
    /// Frames that the kernel lost because the link was too slow to take them.
    pub missed_frames: u64,
    /// Packets for which there was no memory.
    pub no_memory_packets: u64,
    /// Packets that the interface refused to send.
    pub unsent_packets: u64,
}

/// Times in the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Delay {
    /// How many there are.
    pub count: u64,
    /// Half of them were at most this long.
    pub p50_ms: f64,
    /// 95 of 100 were.
    pub p95_ms: f64,
    /// 99 of 100 were.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

/// Times in the queue, counted by their length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DelayHistogram {
    /// All of them together.
    pub sum_ms: f64,
    /// How many were at most so long; those of the buckets before count as well.
    pub buckets: Vec<DelayBucket>,
}

/// A bucket of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DelayBucket {
    /// The longest that it counts.
    pub at_most_ms: f64,
    /// How many there are, right within a percent of the time.
    pub count: u64,
}

/// The state of a level of a discipline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LevelStatus {
    /// Its name in the field, such as `high`.
    pub name: String,
    /// Packets in it.
    pub queued_packets: u32,
    /// Their bytes.
    pub queued_bytes: u64,
    /// Packets that ever joined it.
    pub enqueued_packets: u64,
    /// Time in the queue of the packets that joined it.
    pub delay: Delay,
}

/// What happened within a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Second {
    /// Its end, in seconds since the start of the link.
    pub at_s: u64,
    /// The rate to which packets were held back at its end.
    pub rate_bps: u64,
    /// The rate at which packets were sent, counted as the link behind counts them.
    pub sent_bps: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets lost, for any reason.
    pub lost_packets: u64,
    /// Packets marked.
    pub marked_packets: u64,
    /// Bytes in the queue at its end.
    pub queued_bytes: u64,
    /// Time in the queue of the packets sent in it.
    pub delay: Delay,
}

/// A flow, and what it sent of late.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowStatus {
    /// Addresses, ports and protocol.
    pub flow: String,
    /// Its rate, estimated from about a thousand samples of all that was sent.
    pub rate_bps: u64,
}
