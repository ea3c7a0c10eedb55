//! What a run measures.
//!
//! Rows are passed on as things happen, to a [`Recorder`] that writes them to
//! files; memory does not grow with the flows ever seen. A [`RunSummary`] condenses
//! meanwhile what tables and plots need; `tidegate-study` sums it up over seeds.

pub mod run_summary;

use std::sync::Arc;

use tidegate_core::{Backlog, Bytes, Counters, FlowKey, LossReason, Packet, Rate, Span, Time};

pub use run_summary::RunSummary;

/// Takes the rows of a run, in the order of simulated time; by default it ignores
/// all of them.
pub trait Recorder {
    /// A flow has ended, or the run has ended while the flow was still going.
    fn flow(&mut self, _row: &FlowRecord) {}
    /// The state of a link, every [`Scenario::sample_every`](crate::scenario::Scenario::sample_every).
    fn link(&mut self, _row: &LinkSample) {}
    /// The progress of a followed flow, at the same times.
    fn progress(&mut self, _row: &ProgressSample) {}
    /// Whether it takes the rows of packets, of which there are many: asked once,
    /// at the start.
    fn takes_packets(&self) -> bool {
        false
    }
    /// Something has happened to a packet at a queue.
    fn packet(&mut self, _row: &PacketRecord) {}
    /// The run has reached this simulated time.
    fn reached(&mut self, _now: Time) {}
}

/// Takes rows and forgets them.
#[derive(Debug, Default)]
pub struct Discard;

impl Recorder for Discard {}

/// One flow, from beginning to end.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRecord {
    /// Its source: the place in [`Scenario::traffic`](crate::scenario::Scenario::traffic).
    pub traffic: usize,
    /// Its number within the source, from 0.
    pub number: u64,
    /// How much it has to carry; `None` if it has no end.
    pub size: Option<Bytes>,
    /// When its first packet was sent (of a connection: the SYN), or would have been if
    /// fewer than [`MOST_OPEN`](crate::scenario::MOST_OPEN) transfers had been open.
    pub start: Time,
    /// What set its congestion window, by name; `None` if it has none or never began.
    pub congestion: Option<&'static str>,
    /// From the start to the last byte's arrival at the receiver.
    pub response: Option<Span>,
    /// When it was over: both directions of a connection finished.
    pub end: Option<Time>,
    /// Payload that reached the receiver in order.
    pub delivered: Bytes,
    /// Its packets lost on the way, in both directions.
    pub lost: u32,
    /// Its datagrams that were lost or came after their deadline; `None` without
    /// a deadline.
    pub late: Option<u32>,
    /// Segments sent again.
    pub retransmissions: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// The longest time in which nothing new reached the receiver in order.
    pub longest_stall: Span,
    /// The response time of a flow of this size that has the links to itself;
    /// `None` without a response.
    pub unloaded: Option<Span>,
    /// What is known of a flow of a capture.
    pub recorded: Option<RecordedFlow>,
}

/// A flow of a capture that is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedFlow {
    /// Between whom it was recorded.
    pub key: FlowKey,
    /// The name of the host at one end, if the capture reveals one.
    pub host: Option<Arc<str>>,
    /// Its packets that were sent.
    pub packets: u64,
    /// The mean one-way delay of those that arrived; `None` if none did.
    pub delay_mean: Option<Span>,
    /// The longest of these delays; zero if none arrived.
    pub delay_max: Span,
}

/// The state of a link with a queue, at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSample {
    /// The link: the place in [`Scenario::links`](crate::scenario::Scenario::links).
    pub link: usize,
    /// The moment.
    pub at: Time,
    /// What is queued.
    pub backlog: Backlog,
    /// Flows that the discipline keeps state for.
    pub flows_tracked: usize,
    /// What has gone through since the start.
    pub counters: Counters,
}

/// Something that happened to a packet at a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// The link: the place in [`Scenario::links`](crate::scenario::Scenario::links).
    pub link: usize,
    /// When it happened.
    pub at: Time,
    /// The packet.
    pub packet: Packet,
    /// What happened.
    pub event: PacketEvent,
}

/// What can happen to a packet at a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEvent {
    /// It arrived; it may still be lost.
    Arrived,
    /// It was taken out to be sent.
    Sent,
    /// It was lost.
    Lost(LossReason),
}

/// How far a followed flow has come.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressSample {
    /// Its source.
    pub traffic: usize,
    /// Its number within the source.
    pub number: u64,
    /// The moment.
    pub at: Time,
    /// Payload that has reached the receiver in order.
    pub delivered: Bytes,
    /// Payload that has reached the receiver, each byte once: `delivered`, and what
    /// waits there for something lost. Its difference over a span of time is what the
    /// network carried; that of `delivered` also has what a repair has released.
    pub arrived: Bytes,
    /// The sender's congestion window, in bytes.
    pub congestion_window: Bytes,
    /// The sender's smoothed round-trip time, once it has measured one.
    pub smoothed_rtt: Option<Span>,
    /// The rate at which the sender spaces its segments; `None` if it does not.
    pub pacing_rate: Option<Rate>,
}
