//! Rules by hand, laws by random events, and an ideal path.

mod laws;
mod pipe;
mod probing;
mod rules;

use tidegate_core::{Rate, Span, Time};

use super::super::tests::{self, MSS};
use super::super::{Ack, Controller, LostSegment, Phase, RateSample, Start};
use super::{Bbr, State};

fn ms(count: u64) -> Time {
    Time(count * 1_000_000)
}

/// Ten segments and a round trip of 100 ms, so 0.8 Mbit/s at first.
fn start() -> Start {
    tests::start(Span::millis(100))
}

/// An acknowledgement of `segments` without a measurement, with nothing left in flight.
fn ack(now: Time, segments: u64) -> Ack {
    Ack {
        acked: segments * MSS,
        delivered: segments * MSS,
        smoothed_round_trip: Some(Span::millis(100)),
        in_flight_before: segments * MSS,
        window_limited: false,
        ..tests::ack(now, None, 0, 0)
    }
}

/// A measurement of `kbits` kbit/s over 100 ms; the segment left when `prior` bytes had
/// been delivered, and `total` have now.
fn measured(kbits: u64, prior: u64, total: u64) -> Option<RateSample> {
    Some(RateSample {
        delivered: kbits * 100 / 8,
        interval: Span::millis(100),
        total_delivered: total,
        prior_delivered: prior,
        in_flight: 0,
        lost: 0,
        app_limited: false,
    })
}

/// A flow that has settled at 10 s on 8 Mbit/s and 100 ms, so 100 kB, with a million
/// bytes delivered and twice the product as its window. It cruises.
fn settled() -> Bbr {
    let mut bbr = Bbr::new(&start());
    bbr.full_pipe.declare();
    bbr.path.update_max_bandwidth(&super::Sample::new(&Ack {
        rate: measured(8_000, 0, 1_000_000),
        ..ack(ms(10_000), 1)
    }));
    bbr.path.bound_bandwidth();
    bbr.path.min_round_trip_at = ms(10_000);
    bbr.control.window = 200 * MSS;
    bbr.rounds.delivered = 1_000_000;
    bbr.update_min_round_trip(&super::Sample::new(&Ack {
        latest_round_trip: Some(Span::millis(100)),
        ..ack(ms(10_000), 1)
    }));
    bbr.start_down(ms(10_000));
    bbr.state = State::Cruise;
    bbr.set_pacing_rate(100);
    bbr
}

/// An acknowledgement within the round trip at whose start `settled` stands, at its rate.
/// It reports nothing new, so that neither the window grows nor anything comes in lumps.
fn steady(now: Time) -> Ack {
    Ack {
        in_flight: 100 * MSS,
        in_flight_before: 101 * MSS,
        rate: measured(8_000, 900_000, 1_001_000),
        ..ack(now, 0)
    }
}

/// The same at the start of the next round trip.
fn next_round(now: Time) -> Ack {
    Ack { rate: measured(8_000, 1_000_000, 1_001_000), ..steady(now) }
}

/// The segment at `start`, sent with `in_flight` segments in flight; of those `lost` have
/// been lost.
fn lost(start: u64, in_flight: u64, lost: u64) -> LostSegment {
    LostSegment {
        start: start * MSS,
        bytes: MSS,
        in_flight: in_flight * MSS,
        lost: lost * MSS,
        app_limited: false,
        total_delivered: 1_001_000,
    }
}

/// A flow that probes, one round trip after it has begun to fill the pipe.
fn probing() -> Bbr {
    let mut bbr = settled();
    bbr.start_refill();
    bbr.on_ack(&next_round(ms(10_100)));
    assert_eq!(bbr.state, State::Up);
    bbr
}

fn rate(bbr: &Bbr) -> Rate {
    bbr.pacing_rate().expect("BBR always paces")
}
