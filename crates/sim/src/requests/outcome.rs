//! What came out of a run.

use tidegate_core::{Bytes, Counters, Span, Time};

use crate::metrics::run_summary::Times;

/// Responses below this are small: a page's text, an icon.
pub(super) const SMALL: Bytes = Bytes(10_000);

/// What came out of a run, of requests that began after the warm-up.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Class by class.
    pub classes: Vec<ClassOutcome>,
    /// The state of things over time, from the start.
    pub samples: Vec<Sample>,
    /// Time in the provider's queue of every packet sent.
    pub queueing: Times,
    /// The provider's queue.
    pub downlink: Counters,
    /// Share of the downlink's rate that was used after the warm-up.
    pub utilisation: f64,
    /// How long was measured.
    pub measured: Span,
    /// Until when it ran.
    pub reached: Time,
}

/// One class.
#[derive(Clone, Debug, Default)]
pub struct ClassOutcome {
    /// Payload that reached the gateway for it.
    pub received: Bytes,
    /// Requests that were answered.
    pub completed: u64,
    /// Requests that failed: refused, or a connection was given up.
    pub failed: u64,
    /// From the client's first packet to the last byte that it gets.
    pub response: Times,
    /// The same for responses below 10 kB.
    pub small: Times,
    /// From the request's arrival at the gateway to its release.
    pub waiting: Times,
    /// From the release to the response's last byte at the gateway.
    pub service: Times,
}

/// The state at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// When.
    pub at: Time,
    /// *W+*.
    pub window: f64,
    /// *W*: responses that hold a place.
    pub held: u32,
    /// Responses outstanding, long ones among them.
    pub outstanding: usize,
    /// Requests that wait.
    pub waiting: usize,
    /// Packets in the provider's queue.
    pub queued: u32,
    /// Payload that has reached the gateway for each class so far.
    pub received: Vec<Bytes>,
    /// Bytes that the downlink has sent so far.
    pub carried: Bytes,
}

impl Outcome {
    /// Payload of a class in bit/s.
    #[must_use]
    pub fn throughput_bps(&self, class: usize) -> f64 {
        self.classes[class].received.0 as f64 * 8.0 / self.measured.as_seconds()
    }

    /// Payload of a class in bit/s between two samples, those at or before these times.
    #[must_use]
    pub fn throughput_between_bps(&self, class: usize, from: Time, to: Time) -> f64 {
        let at = |time: Time| {
            let sample = self.samples.iter().rev().find(|sample| sample.at <= time);
            sample.map_or((Time::ZERO, Bytes::ZERO), |s| (s.at, s.received[class]))
        };
        let ((start, before), (end, after)) = (at(from), at(to));
        (after - before).0 as f64 * 8.0 / end.since(start).as_seconds()
    }

    /// Times of all classes together.
    #[must_use]
    pub fn all(&self, of: impl Fn(&ClassOutcome) -> &Times) -> Times {
        let mut all = Times::default();
        self.classes.iter().for_each(|class| all.merge(of(class)));
        all
    }
}
