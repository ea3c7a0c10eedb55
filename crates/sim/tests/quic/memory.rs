//! What open transfers cost in memory.

use allocation_counter::measure;

use super::runs::run_quietly;

/// The most memory of a run with `count` transfers that never end, in bytes.
fn peak(count: u32) -> f64 {
    let text = format!(
        r#"
        title = "many"
        duration = "20 s"
        disciplines = ["fifo"]
        dumbbell = {{ pairs = 2, rate = "100 Mbit/s", delay = "2 ms", buffer = "300 packets" }}
        [[traffic.quic]]
        name = "transfers"
        from = "senders"
        to = "receivers"
        count = {count}
        sizes = "endless"
        "#
    );
    measure(|| drop(run_quietly(&text, 1))).bytes_max as f64
}

#[test]
fn an_open_transfer_takes_less_than_70_kilobytes() {
    let (few, many) = (256, 2_048);
    let bytes = (peak(many) - peak(few)) / f64::from(many - few);
    println!("{bytes:.0} bytes for each open transfer");
    assert!((5_000.0..70_000.0).contains(&bytes), "{bytes}");
}
