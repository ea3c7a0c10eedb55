//! BBR over a path, beside the kernel's.

mod tcp;

use tcp::{CLIENT, Pair};
use tidegate_core::{Bytes, Rate, Span, Time};
use tidegate_sim::tcp::TcpConfig;
use tidegate_sim::tcp::congestion::BBR;

const MILLISECOND: u64 = 1_000_000;

#[test]
fn trajectory() {
    let config =
        TcpConfig { congestion: BBR, receive_window: Bytes(4 << 20), ..TcpConfig::today() };
    let mut pair = Pair::new(config.clone(), config).upload(100_000_000);
    pair.traced = false;
    pair.delay = Span::millis(20);
    pair.bottleneck = Some(Rate(10_000_000));
    for tenth in 1..=120_u64 {
        pair.run_until(Time((tenth * 100 + 40) * MILLISECOND));
        let end = &pair.ends[CLIENT];
        println!(
            "{} cwnd {} srtt {:?} unacked {} acked {} retrans {} {end:?}",
            tenth * 100,
            end.congestion_window() / 1_448,
            end.smoothed_rtt(),
            end.bytes_in_flight() / 1_448,
            end.acknowledged(),
            end.statistics().retransmissions,
        );
    }
}
