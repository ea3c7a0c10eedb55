//! BBR over a path, beside the kernel's: 10 Mbit/s of IP packets, 40 ms, a queue that is
//! long enough. Linux 7.3 (Debian's, in virtual time) told what `ss -ti` shows every
//! 100 ms; times count from the first SYN.

use tidegate_core::{Bytes, Rate, Span, Time};
use tidegate_sim::tcp::TcpConfig;
use tidegate_sim::tcp::congestion::BBR;

use crate::pair::{CLIENT, Fate, Pair};

const MSS: u64 = 1_448;

fn bulk() -> Pair {
    let config = TcpConfig { receive_window: Bytes(4 << 20), ..TcpConfig::today() };
    let config = TcpConfig { congestion: BBR, ..config };
    let mut pair = Pair::new(config.clone(), config).upload(1 << 40);
    pair.traced = false;
    pair.delay = Span::millis(20);
    pair.bottleneck = Some(Rate(10_000_000));
    pair
}

/// What a sender shows at a time: its window and what is unacknowledged, in segments, and
/// bytes acknowledged.
fn shown(pair: &mut Pair, millis: u64) -> (u64, u64, u64) {
    pair.run_until(Time(millis * 1_000_000));
    let end = &pair.ends[CLIENT];
    (end.congestion_window() / MSS, end.bytes_in_flight() / MSS, end.acknowledged())
}

/// Start-up fills the pipe by 300 ms and notices it after 500; then the drain, and the
/// first second of probing. Tolerance: windows within 5%, and what is acknowledged within
/// eight segments, 9 ms of the link. The kernel's link is a token bucket for two packets: it
/// shows 2% more bandwidth in start-up than the link has, so that for ten rounds the window
/// is larger by that and by as much excess.
#[test]
fn start_up_and_drain_are_those_of_the_kernel() {
    // Milliseconds, window, unacknowledged, acknowledged.
    const KERNEL: [(u64, u64, u64, u64); 9] = [
        (100, 20, 16, 14_481),
        (300, 106, 106, 211_409),
        (400, 106, 105, 334_489),
        (500, 106, 106, 454_673),
        (600, 116, 71, 574_857),
        (700, 88, 46, 695_041),
        (800, 78, 44, 816_673),
        (900, 78, 46, 935_409),
        (1_500, 76, 44, 1_659_409),
    ];
    let mut pair = bulk();
    for (millis, window, unacknowledged, acknowledged) in KERNEL {
        let ours = shown(&mut pair, millis);
        let at = format!("{millis} ms: {ours:?}");
        assert!(ours.0.abs_diff(window) * 100 <= 5 * window, "{at}");
        assert!(ours.1.abs_diff(unacknowledged) <= 8, "{at}");
        assert!(ours.2.abs_diff(acknowledged) <= 8 * MSS, "{at}");
    }
}

/// From 2 to 10 s the link is full and the queue is small: the kernel's smoothed round trip
/// was 47.8 ms in the mean, of which 40 are the path, and its goodput 1 205.7 kB/s.
/// Tolerance: 10% of the queueing delay, 3% of the goodput. Then the least round trip is
/// ten seconds old, and for 200 ms no more than four segments are in the network.
#[test]
fn probing_keeps_the_kernels_queue() {
    let mut pair = bulk();
    let (_, _, from) = shown(&mut pair, 2_000);
    let mut sum = 0;
    for tenth in 20..100 {
        shown(&mut pair, 100 * tenth);
        sum += pair.ends[CLIENT].smoothed_rtt().expect("data has been acknowledged").0 / 1_000;
    }
    let (_, _, to) = shown(&mut pair, 10_000);
    let (queueing, goodput) = (sum / 80 - 40_000, (to - from) / 8);
    assert!(queueing.abs_diff(7_800) <= 780, "{queueing} us");
    assert!(goodput.abs_diff(1_205_700) <= 36_000, "{goodput} B/s");
    assert_eq!(shown(&mut pair, 10_200).0, 4);
    assert!(shown(&mut pair, 10_400).0 > 70);
}

/// Every twentieth segment is lost before the link, and BBR goes on at the link's rate,
/// less the losses: they are no reason to slow down.
#[test]
fn random_losses_cost_little() {
    let mut pair = bulk().deciding(|from, header, number| {
        let lost = from == CLIENT && header.payload > 0 && number % 20 == 0;
        if lost { Fate::Lose } else { Fate::Pass }
    });
    let (_, _, from) = shown(&mut pair, 2_000);
    let (_, _, to) = shown(&mut pair, 10_000);
    let goodput = (to - from) / 8;
    assert!(goodput > 1_100_000, "{goodput} B/s");
}
