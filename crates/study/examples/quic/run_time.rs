//! What it costs to simulate QUIC, beside TCP in the same process.

use std::time::{Duration, Instant};

use super::links::{Failure, QUIC, SIZES, TCP, link, run, source, table};

/// Runs of each, in turn; the fastest counts, as the one that was disturbed least.
const TIMES: usize = 9;

pub(super) fn measured() -> Result<String, Failure> {
    let few = format!("per_second = 26.2\n{SIZES}");
    let cases = [
        ("transfers at 60% of 10 Mbit/s", 10, few.as_str()),
        ("a long transfer at 10 Mbit/s", 10, "count = 1\nsizes = \"endless\""),
        ("a long transfer at 100 Mbit/s", 100, "count = 1\nsizes = \"endless\""),
    ];
    let mut rows = Vec::new();
    for (name, mbits, rest) in cases {
        let mut measured = [(Duration::MAX, 0, 0_u64); 2];
        for _ in 0..TIMES {
            for (carrier, measured) in [&QUIC, &TCP].into_iter().zip(&mut measured) {
                let scenario = link(mbits, "\"fifo\"", &source(carrier, "cubic", "it", rest))?;
                let begun = Instant::now();
                let (summary, flows) = run(&scenario, 0, 1);
                let delivered = flows.iter().map(|row| row.delivered.0).sum();
                *measured = (measured.0.min(begun.elapsed()), summary.events, delivered);
            }
        }
        let [quic, tcp] = measured;
        // Nanoseconds for each kilobyte of payload that has reached its receiver.
        let cost = |(time, _, delivered): (Duration, u64, u64)| {
            time.as_nanos() as f64 / (delivered as f64 / 1e3)
        };
        let cell = |it: (Duration, u64, u64)| {
            format!("{:.0} ms, {:.2} million", it.0.as_secs_f64() * 1e3, it.1 as f64 / 1e6)
        };
        rows.push(vec![
            name.into(),
            cell(quic),
            cell(tcp),
            format!("{:.1}", quic.0.as_secs_f64() / tcp.0.as_secs_f64()),
            format!("{:.1}", cost(quic) / cost(tcp)),
        ]);
    }
    let heads = ["", "QUIC: time, events", "TCP", "time, ratio", "time per payload, ratio"];
    Ok(table(&heads, &rows))
}
