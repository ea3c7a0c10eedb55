//! The same transfers over quinn's QUIC and over our TCP with equal control, as a check of
//! each by the other: nobody who wrote one knew the other.
//!
//! **Equal** is the algorithm, the initial window of ten packets, slow start until a loss
//! (quinn has no HyStart), and pacing, which quinn always does. Each keeps what is its own:
//! quinn its recovery of RFC 9002 and acknowledgements that wait 25 ms, TCP its RACK-TLP,
//! PRR and acknowledgements as in Linux.
//!
//! **Tolerances**, set before the first run: the mean response time of transfers of 3 to
//! 10 kB within 25%, the goodput of a long transfer within 5%. The link has 10 Mbit/s, a
//! round trip of 40 ms and a FIFO of 150 kB.
//!
//! **What is out, and why.** At a load of 90%, QUIC takes 1.6 and 1.8 times as long. The same
//! transfers do not make the same load: QUIC sends two packets of 1 228 bytes for its
//! handshake, and connection IDs and acknowledgements, where TCP sends 164 bytes of SYN, ACK
//! and FIN. With a mean size of 28 kB that is 9.8% more on the link. A load of 60% becomes
//! 66%, and 90% becomes 99%, where no queue is short. The test repeats each cell with arrivals
//! that are rarer by what the transfers take more, counted on a link that is empty and not
//! fitted. Then every cell is within tolerance: 0.98 to 1.02 of TCP's. That it would be so
//! near was not foreseen; the bound of 10% below only holds on to what came out.

use tidegate_sim::metrics::FlowRecord;

use super::runs::run_quietly;

/// Transfers a second: 60% and 90% of the link with TCP's headers.
const RATES: [(u32, f64); 2] = [(60, 26.2), (90, 39.3)];
const CONTROLS: [&str; 2] = ["reno", "cubic"];
/// A mean of 27.6 kB.
const SIZES: &str = "sizes.lognormal = { log_mean = 9.357, log_deviation = 1.318 }";

/// A minute after a warm-up of 5 s.
fn link(mbits: u32, source: &str) -> String {
    format!(
        r#"
        title = "beside"
        duration = "65 s"
        warm_up = "5 s"
        disciplines = ["fifo"]
        [[link]]
        from = "a"
        to = "b"
        rate = "{mbits} Mbit/s"
        delay = "20 ms"
        queue = "tested"
        buffer = "150 kB"
        {source}
        name = "transfers"
        from = "a"
        to = "b"
        "#
    )
}

fn quic(control: &str) -> String {
    format!("[[traffic.quic]]\ncongestion = '{control}'")
}

fn tcp(control: &str) -> String {
    let equal = "slow_start = 'classic', pacing = true";
    format!("[[traffic.transfers]]\ntcp = {{ congestion = '{control}', {equal} }}")
}

/// Milliseconds of transfers of 3 to 10 kB, over five seeds.
fn mean_response(source: &str, per_second: f64) -> f64 {
    let text = link(10, source) + &format!("per_second = {per_second}\n{SIZES}\n");
    let of = |row: &FlowRecord| {
        let is_short = row.size.is_some_and(|size| (3_000..10_000).contains(&size.0));
        row.response.filter(|_| is_short).map(|it| it.as_seconds() * 1e3)
    };
    let times: Vec<f64> = (1..=5)
        .flat_map(|seed| run_quietly(&text, seed).1.iter().filter_map(of).collect::<Vec<_>>())
        .collect();
    times.iter().sum::<f64>() / times.len() as f64
}

/// Bytes that the senders of the same transfers put on a link that is empty.
fn bytes_alone(source: &str, per_second: f64) -> f64 {
    let text = link(1_000, source) + &format!("per_second = {per_second}\n{SIZES}\n");
    let of = |seed| {
        let (summary, _) = run_quietly(&text, seed);
        summary.links[0].as_ref().expect("it has a queue").counters.delivered_bytes.0 as f64
    };
    (1..=5).map(of).sum()
}

#[test]
fn short_transfers_take_as_long_as_with_tcp_at_the_same_load() {
    // Nothing is lost there, so it hardly matters which control it is.
    let alone = |source: &str| bytes_alone(source, RATES[0].1);
    let more = alone(&quic("reno")) / alone(&tcp("reno"));
    println!("{more:.3} times the bytes");
    assert!((1.05..1.15).contains(&more), "{more} times the bytes");
    let mut out = Vec::new();
    for control in CONTROLS {
        for (load, per_second) in RATES {
            let ours = mean_response(&tcp(control), per_second);
            let arrivals = [("transfers", per_second), ("load", per_second / more)];
            for (equal, per_second) in arrivals {
                let theirs = mean_response(&quic(control), per_second);
                let ratio = theirs / ours;
                println!("{control} {load}% same {equal}: {theirs:.0} / {ours:.0} ms = {ratio:.2}");
                if !(0.75..1.25).contains(&ratio) {
                    out.push((control, load, equal));
                }
                if equal == "load" {
                    assert!((0.9..1.1).contains(&ratio), "{control} {load}%: {ratio}");
                }
            }
        }
    }
    assert_eq!(out, [("reno", 90, "transfers"), ("cubic", 90, "transfers")]);
}

/// Of the goodput, 0.6% is headers: 1 439 bytes of data in a packet beside 1 448.
#[test]
fn a_long_transfer_has_the_goodput_of_tcp() {
    for control in CONTROLS {
        let goodput = |source: &str| {
            let text = link(10, source) + "count = 1\nsizes = 'endless'\n";
            let (summary, flows) = run_quietly(&text, 1);
            let wait = summary.links[0].as_ref().and_then(|it| it.delay.mean());
            (flows[0].delivered.0 as f64 * 8.0 / 60e6, wait.expect("packets have passed") * 1e3)
        };
        let ((theirs, their_wait), (ours, our_wait)) =
            (goodput(&quic(control)), goodput(&tcp(control)));
        println!(
            "{control}: {theirs:.3} / {ours:.3} Mbit/s, {their_wait:.1} / {our_wait:.1} ms in the queue"
        );
        assert!((0.95..1.05).contains(&(theirs / ours)), "{control}: {theirs} {ours}");
        let headers = 1_439.0 / 1_448.0;
        assert!((theirs / ours / headers - 1.0).abs() < 0.002, "{control}: {theirs} {ours}");
    }
}
