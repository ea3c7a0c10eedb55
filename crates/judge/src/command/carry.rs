//! `tidegate-judge carry`: what a link in user space carries, beside the kernel.

use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tidegate_core::Rate;
use tidegate_judge::carry::{self, Delays, Flood, RateFound, Way};
use tidegate_judge::host::BedError;
use tidegate_judge::native;

use super::gateway::load;
use super::results::Figures;

/// The rates that are set.
const RATES: [Rate; 4] =
    [Rate(1_000_000), Rate(10_000_000), Rate(100_000_000), Rate(1_000_000_000)];
/// The rates at which probes are sent.
const PROBED: [Rate; 2] = [Rate(10_000_000), Rate(1_000_000_000)];
/// Disciplines of the link; the first is that of `tbf`.
const DISCIPLINES: [&str; 3] = ["fifo", "efd", "fq-codel"];

/// How long, and where the figures go.
#[derive(Args)]
pub(crate) struct Arguments {
    /// How often everything is measured; ways take turns.
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,
    /// How long each measurement takes.
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..))]
    seconds: u64,
    /// What is measured.
    #[arg(long, value_name = "PARTS", value_delimiter = ',', default_value = "rates,delays,speed")]
    parts: Vec<Part>,
    #[command(flatten)]
    figures: Figures,
}

/// A part of what can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Rates,
    Delays,
    Speed,
}

/// A measurement of a way.
#[derive(Serialize)]
struct Row<T> {
    round: u8,
    way: String,
    #[serde(flatten)]
    found: T,
}

#[derive(Serialize)]
struct Probed {
    rate_bps: u64,
    idle: Delays,
    loaded: Delays,
}

#[derive(Serialize)]
struct Report {
    kernel: String,
    /// As `/proc/loadavg` says it, before and after.
    load: [String; 2],
    seconds: u64,
    rates: Vec<Row<RateFound>>,
    delays: Vec<Row<Probed>>,
    speed: Vec<Row<Flood>>,
}

fn name(way: Way) -> String {
    match way {
        Way::Bridge => "kernel bridge".into(),
        Way::Tbf(_) => "bridge, tbf".into(),
        Way::Link(discipline, _) => format!("link, {discipline}"),
    }
}

pub(crate) fn carry(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let mut report = Report {
        kernel: native::release()?,
        load: [load(), String::new()],
        seconds: arguments.seconds,
        rates: Vec::new(),
        delays: Vec::new(),
        speed: Vec::new(),
    };
    for round in 1..=arguments.rounds {
        eprintln!("round {round}");
        if let Err(error) = measure(&mut report, round, arguments) {
            let BedError::Missing(reason) = error else { return Err(error.into()) };
            println!("SKIP what a link carries: {reason}");
            return Ok(());
        }
    }
    report.load[1] = load();
    let table = table(&report);
    Ok(arguments.figures.show("carry.json", &report, &table)?)
}

fn measure(report: &mut Report, round: u8, arguments: &Arguments) -> Result<(), BedError> {
    let time = Duration::from_secs(arguments.seconds);
    let links = |rate| DISCIPLINES.map(|name| Way::Link(name, rate));
    let asked = |part| arguments.parts.contains(&part);
    for rate in RATES.into_iter().filter(|_| asked(Part::Rates)) {
        for way in [Way::Tbf(rate)].into_iter().chain(links(Some(rate))) {
            let found = carry::rate(way, rate, time)?;
            report.rates.push(Row { round, way: name(way), found });
        }
    }
    for rate in PROBED.into_iter().filter(|_| asked(Part::Delays)) {
        for way in [Way::Bridge, Way::Tbf(rate)].into_iter().chain(links(Some(rate))) {
            let [idle, loaded] = carry::delays(way, time)?;
            let found = Probed { rate_bps: rate.0, idle, loaded };
            report.delays.push(Row { round, way: name(way), found });
        }
    }
    let fast = [Way::Bridge, Way::Tbf(Rate(100_000_000_000))].into_iter().chain(links(None));
    for way in fast.filter(|_| asked(Part::Speed)) {
        let found = carry::speed(way, time)?;
        report.speed.push(Row { round, way: name(way), found });
    }
    Ok(())
}

/// All rounds, one line for each measurement.
fn table(report: &Report) -> String {
    let mut text = String::from("rate of IP packets: set, offered, found\n");
    for Row { round, way, found } in &report.rates {
        let RateFound { set_bps, offered_bps, found_bps } = *found;
        let error = 100.0 * (found_bps / set_bps as f64 - 1.0);
        let (set, offered, found) = (Rate(set_bps), offered_bps / 1e6, found_bps / 1e6);
        let _ = writeln!(
            text,
            "{round}  {way:<16} {set:>12}  {offered:>9.3}  {found:>9.3} Mbit/s  {error:>+6.2}%"
        );
    }
    text.push_str("\nround trips of probes in ms: half, 95 and 99 of 100, jitter, lost\n");
    for Row { round, way, found } in &report.delays {
        let rate = Rate(found.rate_bps).to_string();
        for (load, it) in [("idle", found.idle), ("beside a download", found.loaded)] {
            let Delays { p50_ms, p95_ms, p99_ms, jitter_ms, lost, .. } = it;
            let _ = writeln!(
                text,
                "{round}  {way:<16} {rate:>10} {load:<17} {p50_ms:>8.3} {p95_ms:>8.3} {p99_ms:>8.3} {jitter_ms:>8.3} {lost:>5}"
            );
        }
    }
    text.push_str(
        "\nas fast as can be: 64-byte frames offered and carried, CPU of the link, TCP\n",
    );
    for Row { round, way, found } in &report.speed {
        let Flood { offered_pps, carried_pps, cpu_ns_per_packet, tcp_bps } = *found;
        let cpu = cpu_ns_per_packet.map_or(String::new(), |ns| format!("{ns:.0} ns"));
        let _ = writeln!(
            text,
            "{round}  {way:<16} {:>6.3} Mpps {:>6.3} Mpps {cpu:>8}  {:>6.2} Gbit/s",
            offered_pps / 1e6,
            carried_pps / 1e6,
            tcp_bps / 1e9
        );
    }
    text
}
