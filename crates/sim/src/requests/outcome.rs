//! The results of a run.

use tidegate_core::{Bytes, Counters, Rate, Span, Time, request};

use crate::metrics::run_summary::Times;

/// Responses below this are small: a page's text, an icon.
pub const SMALL: Bytes = Bytes(10_000);

/// A link is full between two samples when it carries at least this much of what the
/// way hands out. A little is always missing: windows of gateways aim at 98%, and TCP
/// over a short buffer leaves gaps after its losses.
const FULL: f64 = 0.9;

/// The results of a run, for requests that began after the warm-up.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The results of each class.
    pub classes: Vec<ClassOutcome>,
    /// The state over time, from the start.
    pub samples: Vec<Sample>,
    /// Time in the provider's queue of every packet sent.
    pub queueing: Times,
    /// The provider's queue.
    pub downlink: Counters,
    /// The queue of a shaper behind it.
    pub shaper: Option<Counters>,
    /// The uplink's queue, if it has a discipline.
    pub uplink: Option<Counters>,
    /// How long responses received nothing.
    pub pauses: Pauses,
    /// Share of the downlink's rate that was used after the warm-up.
    pub utilisation: f64,
    /// The share of the measured time in which the link was full: in which, from one
    /// sample to the next, it carried nine tenths of what the way hands out of its rate.
    /// Only then do requests compete, and only then does a way decide who gets what.
    pub full: f64,
    /// The time that was measured.
    pub measured: Span,
    /// The end of the run.
    pub reached: Time,
}

/// One class.
#[derive(Clone, Debug, Default)]
pub struct ClassOutcome {
    /// Payload that reached the gateway for it, and datagrams that nobody requested.
    pub received: Bytes,
    /// Requests that clients made. Each counts in one of the fields below.
    pub asked: u64,
    /// Requests that were answered.
    pub completed: u64,
    /// Requests that failed.
    pub failures: Failures,
    /// Requests whose user had left.
    pub abandoned: u64,
    /// Requests that the end of the run cut off.
    pub unfinished: Unfinished,
    /// From the client's first packet to the last byte that it receives.
    pub response: Times,
    /// The same for responses below 10 kB.
    pub small: Times,
    /// From the request's arrival at the gateway to its release.
    pub waiting: Times,
    /// From the release to the response's last byte at the gateway.
    pub service: Times,
}

/// Requests that failed, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Too many were already waiting.
    pub refused: u64,
    /// TCP gave up a connection.
    pub broken: u64,
    /// The server reset its connection.
    pub reset: u64,
    /// Nothing arrived for too long.
    pub stalled: u64,
}

impl Failures {
    /// All of them.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.refused + self.broken + self.reset + self.stalled
    }
}

/// The places of requests when a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// On their way to the gateway.
    pub arriving: u64,
    /// Waiting for their release.
    pub waiting: u64,
    /// Released, and their response not complete at the gateway.
    pub outstanding: u64,
    /// Complete there, and on their way to the client.
    pub leaving: u64,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    Arriving,
    Waiting,
    Outstanding,
    Leaving,
}

impl Unfinished {
    pub(crate) fn count(&mut self, place: Whereabouts) {
        *match place {
            Whereabouts::Arriving => &mut self.arriving,
            Whereabouts::Waiting => &mut self.waiting,
            Whereabouts::Outstanding => &mut self.outstanding,
            Whereabouts::Leaving => &mut self.leaving,
        } += 1;
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.arriving + self.waiting + self.outstanding + self.leaving
    }
}

/// How long responses received nothing, since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// The longest time for which a response had used up everything that it was granted.
    pub ungranted: Span,
    /// The most long responses, those outside the window, at any time.
    pub long: usize,
    /// The longest time from one byte of a response at the gateway to the next,
    /// for responses whose server did not fail: it includes the path's own
    /// pauses.
    pub silent: Span,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Completed,
    Refused,
    Broken,
    Reset,
    Stalled,
    Abandoned,
}

/// The reason that a program gives for breaking a connection off: a status of
/// HTTP where there is one (RFC 9110 section 15).
const REASONS: [(Ending, u16); 6] = [
    (Ending::Completed, 200),
    (Ending::Refused, 503),
    (Ending::Broken, 500),
    (Ending::Reset, 502),
    (Ending::Stalled, 504),
    // The status that nginx logs.
    (Ending::Abandoned, 499),
];

impl Ending {
    pub(crate) fn reason(self) -> u16 {
        let found = REASONS.iter().find(|(ending, _)| *ending == self);
        found.map_or(500, |(_, reason)| *reason)
    }

    pub(crate) fn of(reason: u16) -> Ending {
        let found = REASONS.iter().find(|(_, known)| *known == reason);
        found.map_or(Ending::Broken, |(ending, _)| *ending)
    }
}

impl From<request::Ending> for Ending {
    fn from(ending: request::Ending) -> Ending {
        match ending {
            request::Ending::Completed => Ending::Completed,
            request::Ending::Broken => Ending::Broken,
            request::Ending::Reset => Ending::Reset,
            request::Ending::Stalled => Ending::Stalled,
            request::Ending::Abandoned => Ending::Abandoned,
        }
    }
}

impl ClassOutcome {
    pub(crate) fn count(&mut self, ending: Ending) {
        *match ending {
            Ending::Completed => &mut self.completed,
            Ending::Refused => &mut self.failures.refused,
            Ending::Broken => &mut self.failures.broken,
            Ending::Reset => &mut self.failures.reset,
            Ending::Stalled => &mut self.failures.stalled,
            Ending::Abandoned => &mut self.abandoned,
        } += 1;
    }
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
    /// Responses outstanding, including long ones.
    pub outstanding: usize,
    /// Requests waiting.
    pub waiting: usize,
    /// Packets in the provider's queue.
    pub queued: u32,
    /// Payload that has reached the gateway for each class so far, and datagrams
    /// that nobody requested.
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

    /// The share of the time between the samples from `start` on in which the downlink
    /// carried nearly `rate`; 0 without two samples.
    pub(crate) fn full_time(&self, start: Time, rate: Rate) -> f64 {
        let measured = self.samples.iter().filter(|sample| sample.at >= start);
        let (mut full, mut all) = (Span::ZERO, Span::ZERO);
        for (one, next) in measured.clone().zip(measured.skip(1)) {
            let between = next.at.since(one.at);
            all += between;
            let carried = (next.carried - one.carried).0 as f64;
            if carried >= rate.volume(between).0 as f64 * FULL {
                full += between;
            }
        }
        if all == Span::ZERO { 0.0 } else { full.as_seconds() / all.as_seconds() }
    }

    /// Times of all classes together.
    #[must_use]
    pub fn all(&self, of: impl Fn(&ClassOutcome) -> &Times) -> Times {
        let mut all = Times::default();
        self.classes.iter().for_each(|class| all.merge(of(class)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples a second apart on a link of 80 kbit/s, which carries 10 kB a second: what
    /// each second has carried.
    fn carrying(seconds: &[u64]) -> Outcome {
        let mut carried = 0;
        let sample = |(second, bytes): (usize, &u64)| {
            carried += bytes;
            Sample {
                at: Time::ZERO + Span::seconds(second as u64),
                window: 1.0,
                held: 0,
                outstanding: 0,
                waiting: 0,
                queued: 0,
                received: Vec::new(),
                carried: Bytes(carried),
            }
        };
        let samples = [0].iter().chain(seconds).enumerate().map(sample).collect();
        Outcome { samples, ..Outcome::default() }
    }

    #[test]
    fn a_link_is_full_in_the_seconds_in_which_it_carries_nine_tenths() {
        let full = |seconds: &[u64], start: u64, rate: u64| {
            carrying(seconds).full_time(Time::ZERO + Span::seconds(start), Rate(rate))
        };
        assert_eq!(full(&[10_000, 9_000, 8_999, 0], 0, 80_000), 0.5);
        // What came before the start does not count.
        assert_eq!(full(&[10_000, 9_000, 8_999, 0], 2, 80_000), 0.0);
        // A way that hands out half of the rate fills the link with half as much.
        assert_eq!(full(&[4_500, 4_499], 0, 40_000), 0.5);
        assert_eq!(full(&[10_000], 1, 80_000), 0.0);
    }
}
