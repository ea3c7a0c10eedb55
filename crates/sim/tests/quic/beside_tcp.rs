//! The same transfers over quinn's QUIC and over our TCP with the same control.

use tidegate_sim::metrics::FlowRecord;

use super::runs::run_quietly;

fn link(duration: u32, source: &str) -> String {
    format!(
        r#"
        title = "beside"
        duration = "{duration} s"
        warm_up = "5 s"
        disciplines = ["fifo"]
        [[link]]
        from = "a"
        to = "b"
        rate = "10 Mbit/s"
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

pub(crate) fn tcp(rest: &str) -> String {
    format!("[[traffic.transfers]]\ntcp = {{ {rest} }}")
}

fn figures(name: &str, rows: &[FlowRecord]) {
    print!("{name:40}");
    for (low, high) in [(0, 3_000), (3_000, 10_000), (10_000, 30_000), (30_000, 100_000), (100_000, u64::MAX)] {
        let mut times: Vec<f64> = rows
            .iter()
            .filter(|row| row.size.is_some_and(|size| (low..high).contains(&size.0)))
            .filter_map(|row| Some(row.response?.as_seconds() * 1e3))
            .collect();
        times.sort_by(f64::total_cmp);
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        print!(" {:5}: {mean:5.0}/{:5.0}", times.len(), times[times.len() * 95 / 100]);
    }
    let lost: u32 = rows.iter().map(|row| row.lost).sum();
    let again: u32 = rows.iter().map(|row| row.retransmissions).sum();
    let unfinished = rows.iter().filter(|row| row.response.is_none()).count();
    println!(" lost {lost} again {again} unfinished {unfinished}");
}

#[test]
fn look_at_transfers() {
    let sizes = "sizes.lognormal = { log_mean = 9.357, log_deviation = 1.318 }";
    for per_second in [26.2, 39.3] {
        for control in ["reno", "cubic"] {
            let options = [
                ("quic 0.9", format!("[[traffic.quic]]\ncongestion = '{control}' # ")),
                ("quic", format!("[[traffic.quic]]\ncongestion = '{control}'")),
                ("today", tcp(&format!("congestion = '{control}'"))),
                ("classic", tcp(&format!("congestion = '{control}', slow_start = 'classic'"))),
                ("classic paced", tcp(&format!("congestion = '{control}', slow_start = 'classic', pacing = true"))),
            ];
            for (name, source) in options {
                let mut rows = Vec::new();
                let begun = std::time::Instant::now();
                for seed in 1..=5 {
                    let per = if name == "quic 0.9" { per_second / 1.0964 } else { per_second };
                    let text = link(65, &source) + &format!("per_second = {per}\n{sizes}\n");
                    rows.extend(run_quietly(&text, seed).1);
                }
                figures(&format!("{per_second} {control} {name} {:?}", begun.elapsed()), &rows);
            }
        }
    }
}

#[test]
fn look_at_a_long_one() {
    for control in ["reno", "cubic"] {
        let options = [
            ("quic", format!("[[traffic.quic]]\ncongestion = '{control}'")),
            ("today", tcp(&format!("congestion = '{control}'"))),
            ("classic", tcp(&format!("congestion = '{control}', slow_start = 'classic'"))),
        ];
        for (name, source) in options {
            let text = link(65, &source) + "count = 1\nsizes = 'endless'\n";
            let (summary, rows) = run_quietly(&text, 1);
            println!(
                "{control} {name} delivered {} lost {} again {} delay {:?} {:?}",
                rows[0].delivered.0 as f64 * 8.0 / 60e6, rows[0].lost, rows[0].retransmissions,
                summary.links[0].as_ref().map(|it| it.delay.mean()),
                summary.links[0].as_ref().map(|it| (it.delay.quantile(0.05), it.delay.quantile(0.5),it.delay.quantile(0.95))),
            );
        }
    }
}
