//! An 802.11 cell in which every station always has something to send, against
//! theory.
//!
//! The model is Bianchi's (Bianchi 2000): a station that sends collides with
//! the same probability whatever has happened before, and a fixed point links
//! that probability with how often stations send. Frames are given up after
//! the retry limit (Chatzimisios 2003), and slots are counted as the standard
//! counts them (Tinnirello 2010): a slot in which somebody sends lets nobody
//! count down, so the others have at least one slot left after it, and the
//! slot right after DIFS belongs to those who have just sent and drew zero.
//! After a success that is one station, which sends again unhindered. The
//! model takes it that after a collision it is one at most.
//!
//! The model has one grid of slots. The standard has two after a collision:
//! those who collided resume 79 us after it (acknowledgement timeout and DIFS),
//! the others 94 us after it (EIFS), and 15 us are no whole number of slots. So
//! the former are a little ahead and cannot meet the latter until the next
//! frame has brought all together. That makes collisions rarer than in the
//! model, the more the more of them there are. With a timeout that ends with
//! EIFS there is one grid, and the agreement is several times closer.

use tidegate_core::{Bytes, Span, Time};
use tidegate_sim::wlan::phy::DataRate;
use tidegate_sim::wlan::{Cell, Frame, Outcome, Timing};

const PACKET: Bytes = Bytes(1_500);
const RATE: DataRate = DataRate::FASTEST;
const STATIONS: [i32; 6] = [1, 2, 5, 10, 20, 50];
/// 140 000 to 250 000 frames: a standard error of some tenths of a per cent at most.
const SIMULATED: Span = Span::seconds(100);

/// Throughput of IP packets, in Mbit/s.
fn mbits(packets_per_second: f64) -> f64 {
    packets_per_second * PACKET.0 as f64 * 8.0 / 1e6
}

fn simulated(timing: Timing, stations: usize) -> f64 {
    // The access point only receives.
    let mut cell = Cell::new(timing, stations + 1, "cell", 1);
    (1..=stations).for_each(|station| cell.offer(Time::ZERO, station));
    let frame = Frame::new(0, PACKET, RATE, 0, 0.0);
    let mut delivered = 0;
    while cell.next_access() < Time(SIMULATED.0) {
        let outcomes = cell.access(cell.next_access(), |_| Some((frame, true)));
        let whole = |outcome: &&Outcome| matches!(outcome, Outcome::Delivered { .. });
        delivered += outcomes.iter().filter(whole).count();
    }
    mbits(delivered as f64 / SIMULATED.as_seconds())
}

/// What a station does in one slot of the grid, when its frames collide there
/// with probability `collision`: the probability that it sends; and how often,
/// for each time it does, it sends in a slot right after DIFS.
fn station(timing: Timing, collision: f64) -> (f64, f64) {
    let (mut slots, mut in_grid, mut after_difs) = (0.0, 0.0, 0.0);
    let (mut reached, mut window) = (1.0, timing.least_window);
    for _ in 0..timing.retry_limit {
        let choices = f64::from(window) + 1.0;
        let zero = 1.0 / choices;
        slots += reached * f64::from(window) / 2.0;
        in_grid += reached * (1.0 - zero);
        after_difs += reached * zero;
        reached *= (1.0 - zero) * collision;
        window = (2 * window + 1).min(timing.largest_window);
    }
    (in_grid / slots, after_difs / in_grid)
}

fn model(timing: Timing, stations: i32) -> f64 {
    // Whether somebody else sends in the same slot; falls as `collision` rises.
    let others = |collision: f64| {
        let (sends, _) = station(timing, collision);
        1.0 - (1.0 - sends).powi(stations - 1)
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if others(middle) > middle { low = middle } else { high = middle }
    }
    let (sends, after_difs) = station(timing, low);
    let count = f64::from(stations);
    let nobody = (1.0 - sends).powi(stations);
    let one = count * sends * (1.0 - sends).powi(stations - 1);
    let several = 1.0 - nobody - one;
    // The duration of a slot of the grid is that of the idle slot before it and
    // of what is sent in it and, without another slot, right after.
    let delivered = one + count * sends * after_difs;
    let data = RATE.data_time(PACKET);
    let exchange = data + timing.sifs + RATE.acknowledgement_time() + timing.difs;
    let collision = data + timing.eifs;
    let duration = timing.slot.as_seconds()
        + delivered * exchange.as_seconds()
        + several * collision.as_seconds();
    mbits(delivered / duration)
}

/// The largest deviation of the simulation from the model of the standard, over
/// the numbers of stations.
fn deviation(timing: Timing) -> f64 {
    let of = |stations: &i32| {
        let theory = model(Timing::ofdm(), *stations);
        let measured = simulated(timing, *stations as usize);
        let off = measured / theory - 1.0;
        println!("{stations} stations: {theory:.2} Mbit/s, measured {measured:.2}, {off:+.4}");
        off.abs()
    };
    STATIONS.iter().map(of).fold(0.0, f64::max)
}

#[test]
fn saturated_stations_carry_what_the_model_says() {
    let off = deviation(Timing::ofdm());
    assert!(off < 0.03, "{off}");
}

#[test]
fn on_one_grid_of_slots_the_model_is_close() {
    let standard = Timing::ofdm();
    let timeout = standard.eifs - standard.difs;
    let off = deviation(Timing { acknowledgement_timeout: timeout, ..standard });
    assert!(off < 0.01, "{off}");
}

#[test]
fn another_window_or_slot_does_not_go_unnoticed() {
    let standard = Timing::ofdm();
    for wrong in [
        Timing { least_window: 7, ..standard },
        Timing { slot: Span::micros(20), ..standard },
        Timing { difs: standard.difs + standard.slot * 2, ..standard },
    ] {
        assert!(deviation(wrong) > 0.03, "{wrong:?}");
    }
}
