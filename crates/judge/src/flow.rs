//! One long flow: what it carries, how long others wait behind it, and its window and
//! pacing rate over time.

use serde::{Deserialize, Serialize};

use crate::agent::Event;
use crate::cell::Link;
use crate::figures::quantile;
use crate::workload::Transfer;

/// The transfer that a long flow is: more than any link here carries in the time.
pub const ENDLESS: Transfer = Transfer { start_s: 0.0, size_bytes: 2_000_000_000 };
/// How long it is watched.
pub const SECONDS: f64 = 40.0;
/// Slow start is looked at, but counts neither for goodput nor for the delay.
pub const WARM_UP_S: f64 = 5.0;

/// The flow at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Since its start.
    pub at_s: f64,
    /// Congestion window in segments.
    pub window: f64,
    /// Smoothed round trip.
    pub round_trip_ms: f64,
    /// Pacing rate, if it is paced.
    pub pacing_mbps: Option<f64>,
    /// Payload that has arrived; at the kernel's sender, that is acknowledged.
    pub arrived_bytes: u64,
}

/// A flow from its start to its last moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// What is seen ten times a second.
    pub path: Vec<Moment>,
    /// Payload per second after the warm-up.
    pub goodput_mbps: f64,
    /// The mean time that a probe waits in the queue after the warm-up.
    pub delay_mean_ms: f64,
    /// Its 5th percentile, median and 95th percentile.
    pub delay_ms: [f64; 3],
}

impl Flow {
    /// A flow whose probes waited that long.
    #[must_use]
    pub fn new(path: Vec<Moment>, delay_mean_ms: f64, delay_ms: [f64; 3]) -> Flow {
        let warm = path.iter().find(|moment| moment.at_s >= WARM_UP_S);
        let goodput_mbps = match (warm, path.last()) {
            (Some(from), Some(to)) if to.at_s > from.at_s => {
                let bytes = to.arrived_bytes.saturating_sub(from.arrived_bytes) as f64;
                bytes * 8.0 / (to.at_s - from.at_s) / 1e6
            }
            _ => 0.0,
        };
        Flow { path, goodput_mbps, delay_mean_ms, delay_ms }
    }

    /// What the agents saw of one connection on `link`.
    #[must_use]
    pub fn of_events(events: &[Event], link: Link) -> Flow {
        let start = events.iter().find_map(|event| match event {
            Event::Start(at) => Some(*at),
            _ => None,
        });
        let start = start.unwrap_or_default();
        let mut path = Vec::new();
        let mut waits = Vec::new();
        for event in events {
            match event {
                Event::State(at, state) => path.push(Moment {
                    at_s: (at - start) as f64 / 1e6,
                    window: state.window,
                    round_trip_ms: state.round_trip_ms,
                    pacing_mbps: (state.pacing_bps > 0.0).then_some(state.pacing_bps / 1e6),
                    arrived_bytes: state.acked_bytes as u64,
                }),
                Event::Probe(sent, took) if (sent - start) as f64 / 1e6 >= WARM_UP_S => {
                    waits.push(*took as f64 / 1e3 - link.delay.as_seconds() * 1e3);
                }
                _ => {}
            }
        }
        if waits.is_empty() {
            return Flow::new(path, 0.0, [0.0; 3]);
        }
        waits.sort_by(f64::total_cmp);
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        Flow::new(path, mean, [0.05, 0.5, 0.95].map(|part| quantile(&waits, part)))
    }
}

/// The response times that the agents saw, in seconds, of the first `count` transfers.
#[must_use]
pub fn responses(events: &[Event], count: usize) -> Vec<Option<f64>> {
    let mut begun = vec![None; count];
    let mut responses = vec![None; count];
    for event in events {
        if let Event::Begun(number, at) = event
            && let Some(place) = begun.get_mut(*number)
        {
            *place = Some(*at);
        }
    }
    for event in events {
        if let Event::Done(number, at) = event
            && let Some(Some(start)) = begun.get(*number)
        {
            responses[*number] = Some((at - start) as f64 / 1e6);
        }
    }
    responses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::State;
    use crate::cell::USUAL_LINK;

    #[test]
    fn a_flow_is_measured_after_its_warm_up() {
        let moment = |at_s: u32| {
            let acked_bytes = f64::from(at_s) * 1_250_000.0;
            Event::State(1_000_000 * i64::from(at_s), State { acked_bytes, ..State::default() })
        };
        let mut events: Vec<Event> = (0..=10).map(moment).collect();
        events.insert(0, Event::Start(0));
        // In slow start, then after it: 20 ms of path and 30 of queue.
        events.push(Event::Probe(1_000_000, 900_000));
        events.push(Event::Probe(6_000_000, 50_000));
        let flow = Flow::of_events(&events, USUAL_LINK);
        assert_eq!((flow.goodput_mbps, flow.delay_mean_ms), (10.0, 30.0));
        assert_eq!(flow.delay_ms, [30.0; 3]);
    }

    #[test]
    fn a_transfer_that_did_not_end_has_no_response() {
        let events = [Event::Done(0, 1_500), Event::Begun(1, 1_100), Event::Begun(0, 1_000)];
        assert_eq!(responses(&events, 3), [Some(0.000_5), None, None]);
    }
}
