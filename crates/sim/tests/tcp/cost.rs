//! What an endpoint costs: nanoseconds per call, and bytes of memory.
//!
//! The time depends on the machine, so no test checks it:
//! `cargo test --release --test tcp cost:: -- --ignored --nocapture`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use tidegate_core::{Bytes, Span, Time};
use tidegate_sim::tcp::congestion::CUBIC;
use tidegate_sim::tcp::{Endpoint, Header, TcpConfig};

const SEGMENTS: u64 = 660_000;
const ONE_WAY: Span = Span::millis(5);
/// Between two segments leaving the bottleneck.
const SPACING: Span = Span::micros(200);

/// Calls that are timed together: about a tenth of a millisecond, so that a
/// machine with other work interrupts few of the batches.
const BATCH: u64 = 2_000;

/// Calls of either endpoint, the median time of one of them in nanoseconds, and
/// retransmissions, for one long transfer over a link that loses every
/// `loss`-th segment. The loop around the calls is included.
fn transfer(config: &TcpConfig, loss: u64) -> (u64, f64, u64) {
    let mss = u64::from(config.mss);
    let config = Arc::new(config.clone());
    let mut client = Endpoint::connect(config.clone(), 1);
    let mut server = Endpoint::listen(config, 2);
    client.write(SEGMENTS * mss);
    client.close();
    let mut up: VecDeque<(Time, Header)> = VecDeque::new();
    let mut down: VecDeque<(Time, Header)> = VecDeque::new();
    let mut out = Vec::new();
    let (mut free_at, mut sent, mut calls) = (Time::ZERO, 0_u64, 0);
    let mut batches = Vec::new();
    let mut start = Instant::now();
    client.poll(Time::ZERO, &mut out);
    let mut now = Time::ZERO;
    loop {
        for header in out.drain(..) {
            sent += 1;
            if loss == 0 || sent % loss != 0 {
                free_at = free_at.max(now) + SPACING;
                up.push_back((free_at + ONE_WAY, header));
            }
        }
        let next_up = up.front().map_or(Time::FAR_FUTURE, |(at, _)| *at);
        let next_down = down.front().map_or(Time::FAR_FUTURE, |(at, _)| *at);
        let timers = client.next_timer().unwrap_or(Time::FAR_FUTURE);
        let delayed = server.next_timer().unwrap_or(Time::FAR_FUTURE);
        now = next_up.min(next_down).min(timers).min(delayed);
        if now == Time::FAR_FUTURE || server.peer_finished() {
            break;
        }
        calls += 1;
        if calls % BATCH == 0 {
            batches.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
            start = Instant::now();
        }
        if now == next_down {
            let (_, header) = down.pop_front().expect("it is the next");
            client.on_segment(now, &header, false, &mut out);
        } else if now == next_up {
            let (_, header) = up.pop_front().expect("it is the next");
            server.on_segment(now, &header, false, &mut out);
            down.extend(out.drain(..).map(|answer| (now + ONE_WAY, answer)));
        } else if now == timers {
            client.on_timer(now, &mut out);
        } else {
            server.on_timer(now, &mut out);
            down.extend(out.drain(..).map(|answer| (now + ONE_WAY, answer)));
        }
    }
    batches.sort_by(f64::total_cmp);
    assert_eq!(server.delivered(), SEGMENTS * mss);
    (calls, batches[batches.len() / 2], client.statistics().retransmissions)
}

#[test]
#[ignore = "a measurement"]
fn nanoseconds_per_call() {
    let papers = TcpConfig::papers();
    let large = TcpConfig { receive_window: Bytes(1 << 20), ..papers.clone() };
    let sack = TcpConfig { sack: true, ..large.clone() };
    let cubic = TcpConfig { congestion: CUBIC, ..papers.clone() };
    for (name, config, loss) in [
        ("NewReno, window 65 535", papers, 0),
        ("CUBIC, window 65 535", cubic, 0),
        ("NewReno, window 1 MiB", large.clone(), 0),
        ("SACK, window 1 MiB", sack.clone(), 0),
        ("today", TcpConfig::today(), 0),
        ("NewReno, 1% lost", large, 100),
        ("SACK, 1% lost", sack, 100),
        ("today, 1% lost", TcpConfig::today(), 100),
    ] {
        let (calls, each, repeated) = transfer(&config, loss);
        println!("{name:<24} {each:>6.1} ns of {calls} calls, {repeated} retransmissions");
    }
    println!("Endpoint {} bytes, Header {}", size_of::<Endpoint>(), size_of::<Header>());
}

/// 3 000 flows alive at once have two endpoints each.
#[test]
fn an_endpoint_is_small() {
    assert!(size_of::<Endpoint>() <= 700, "{}", size_of::<Endpoint>());
    assert!(size_of::<Header>() <= 68, "{}", size_of::<Header>());
}
