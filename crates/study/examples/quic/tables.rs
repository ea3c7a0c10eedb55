//! The tables that come of simulated time.

use tidegate_sim::metrics::{FlowRecord, RunSummary};
use tidegate_sim::scenario::Scenario;

use super::links::{
    CONTROLS, Carrier, Failure, MARKED, MEASURED, QUIC, SIZES, TCP, beside, carried, link, map,
    run, source, table,
};

/// In per cent of 10 Mbit/s, with transfers a second that make it with TCP's headers.
const LOADS: [(u32, f64); 2] = [(60, 26.2), (90, 39.3)];
const SEEDS: [u64; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

/// Transfers by size in bytes, as a head says.
const CLASSES: [(&str, u64, u64); 4] = [
    ("up to 3 kB, ms", 0, 3_000),
    ("3 to 10 kB", 3_000, 10_000),
    ("10 to 100 kB", 10_000, 100_000),
    ("more", 100_000, u64::MAX),
];

/// What the transfers of all seeds take over QUIC on a link that is empty, over what the same
/// ones take with TCP.
fn more_bytes(control: &str, per_second: f64) -> Result<f64, Failure> {
    let alone = |carrier: &Carrier| -> Result<f64, Failure> {
        let rest = format!("per_second = {per_second}\n{SIZES}");
        let scenario = link(1_000, "\"fifo\"", &source(carrier, control, "transfers", &rest))?;
        Ok(map(&SEEDS, |seed| carried(&run(&scenario, 0, *seed).0)).iter().sum())
    };
    Ok(alone(&QUIC)? / alone(beside(control)[0])?)
}

/// Mean and 95th percentile of a class in milliseconds.
fn response(flows: &[FlowRecord], least: u64, most: u64) -> String {
    let is_in = |row: &&FlowRecord| row.size.is_some_and(|it| (least..most).contains(&it.0));
    let own = flows.iter().filter(is_in);
    let mut times: Vec<f64> =
        own.filter_map(|row| Some(row.response?.as_seconds() * 1e3)).collect();
    times.sort_by(f64::total_cmp);
    let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
    let p95 = times.get(times.len() * 95 / 100).copied().unwrap_or(f64::NAN);
    format!("{mean:.0}, {p95:.0}")
}

/// What the queue lost of all packets.
fn lost_percent(runs: &[(RunSummary, Vec<FlowRecord>)]) -> f64 {
    let counted = |of: fn(&tidegate_core::Counters) -> u64| -> f64 {
        let links = runs.iter().filter_map(|(summary, _)| summary.links[0].as_ref());
        links.map(|link| of(&link.counters) as f64).sum()
    };
    let lost = counted(tidegate_core::Counters::lost);
    lost / (lost + counted(|it| it.delivered)) * 100.0
}

/// The classes of a table, what was lost, and what had not come at the end.
fn cells(runs: &[(RunSummary, Vec<FlowRecord>)]) -> Vec<String> {
    let flows: Vec<FlowRecord> = runs.iter().flat_map(|(_, flows)| flows.clone()).collect();
    let mut cells: Vec<String> =
        CLASSES.iter().map(|(_, least, most)| response(&flows, *least, *most)).collect();
    cells.push(format!("{:.2}", lost_percent(runs)));
    let open = flows.iter().filter(|row| row.response.is_none()).count();
    cells.push(format!("{:.1}", open as f64 / flows.len() as f64 * 100.0));
    cells
}

/// The table of the classes, a row for each source with a name.
fn by_class(rows: &[(String, String)]) -> Result<String, Failure> {
    let mut lines = Vec::new();
    for (name, source) in rows {
        let scenario = link(10, "\"fifo\"", source)?;
        let runs = map(&SEEDS, |seed| run(&scenario, 0, *seed));
        lines.push(std::iter::once(name.clone()).chain(cells(&runs)).collect());
    }
    let classes = CLASSES.map(|(head, ..)| head);
    let heads = [&[""], &classes[..], &["lost, %", "not done, %"]].concat();
    Ok(table(&heads, &lines))
}

pub(super) fn same_transfers() -> Result<String, Failure> {
    let mut rows = Vec::new();
    for control in CONTROLS {
        for (load, per_second) in LOADS {
            let more = more_bytes(control, per_second)?;
            let rarer = format!("QUIC, 1/{more:.3} as often");
            let mut row = |carrier: &Carrier, name: &str, per_second: f64| {
                let rest = format!("per_second = {per_second}\n{SIZES}");
                let source = source(carrier, control, "transfers", &rest);
                rows.push((format!("`{control}`, {load}%: {name}"), source));
            };
            row(&QUIC, QUIC.name, per_second);
            row(&QUIC, &rarer, per_second / more);
            for carrier in beside(control) {
                row(carrier, carrier.name, per_second);
            }
        }
    }
    by_class(&rows)
}

pub(super) fn one_long_transfer() -> Result<String, Failure> {
    let mut rows = Vec::new();
    for control in CONTROLS {
        for carrier in [&[&QUIC], beside(control)].concat() {
            let rest = "count = 1\nsizes = \"endless\"";
            let scenario = link(10, "\"fifo\"", &source(carrier, control, "long", rest))?;
            let (summary, flows) = run(&scenario, 0, 1);
            let link = summary.links[0].as_ref().expect("it has a queue");
            let wait = |share| link.delay.quantile(share).map_or(f64::NAN, |it| it * 1e3);
            let mbits = flows[0].delivered.0 as f64 * 8.0 / f64::from(MEASURED) / 1e6;
            rows.push(vec![
                format!("`{control}`: {}", carrier.name),
                format!("{mbits:.3}"),
                format!("{:.0}, {:.0}, {:.0}", wait(0.05), wait(0.5), wait(0.95)),
                flows[0].lost.to_string(),
                flows[0].retransmissions.to_string(),
            ]);
        }
    }
    let heads = [
        "",
        "goodput, Mbit/s",
        "wait in the queue: 5%, 50%, 95% within, ms",
        "lost after the warm-up",
        "sent again, with the warm-up",
    ];
    Ok(table(&heads, &rows))
}

/// Bytes both ways of one transfer that has the link to itself.
pub(super) fn bytes() -> Result<String, Failure> {
    let mut rows = Vec::new();
    for (name, carrier) in [("QUIC", &QUIC), ("TCP", &TCP)] {
        for request in ["", "request = \"400 B\"\n"] {
            let mut cells = vec![format!(
                "{name}, the {} opens",
                if request.is_empty() { "sender" } else { "receiver" }
            )];
            for size in [1_000_u64, 10_000, 27_600, 1_000_000] {
                let rest = format!("{request}start = \"6 s\"\ncount = 1\nsizes = \"{size} B\"");
                let source = source(carrier, "cubic", "one", &rest);
                let mut scenario = link(1_000, "\"fifo\"", &source)?;
                scenario.links[1].queue = scenario.links[0].queue.clone();
                let (summary, flows) = run(&scenario, 0, 1);
                let way = |link: usize| {
                    let link = summary.links[link].as_ref().expect("it has a queue");
                    link.counters.delivered_bytes.0
                };
                let forth = way(0).saturating_sub(size);
                let response = flows[0].response.map_or(f64::NAN, |it| it.as_seconds() * 1e3);
                cells.push(format!("{forth}, {}, {response:.1}", way(1)));
            }
            rows.push(cells);
        }
    }
    Ok(table(&["", "1 kB", "10 kB", "27.6 kB", "1 MB"], &rows))
}

pub(super) fn streams() -> Result<String, Failure> {
    let mut rows = Vec::new();
    for (load, per_second) in LOADS {
        let per_second = per_second / more_bytes("cubic", per_second)?;
        for streams in [1, 4, 16, 64] {
            let rest = format!("streams = {streams}\nper_second = {per_second}\n{SIZES}");
            let name = format!("{load}%, {streams}");
            rows.push((name, source(&QUIC, "cubic", "transfers", &rest)));
        }
    }
    by_class(&rows)
}

/// Recorded pages over HTTP/2 and HTTP/3, on a link that loses packets at random, or none.
pub(super) fn pages() -> Result<String, Failure> {
    let mut rows = Vec::new();
    for (load, mbits) in [(30, 3), (60, 6)] {
        for loss in [0.0, 0.01] {
            let mut cells = vec![format!("{load}%, {:.0}% lost at random", loss * 100.0)];
            for (protocol, tls) in [("http2", 1), ("http2", 0), ("http3", 1)] {
                let source = format!(
                    "[[traffic.pages]]\nname = \"web\"\nfrom = \"a\"\nto = \"b\"\n\
                     protocol = \"{protocol}\"\ntls = {tls}\nload = \"{mbits} Mbit/s\"\nstop = \"50 s\"\n\
                     recorded = [\"pages.har\"]"
                );
                let mut scenario = link(10, "\"fifo\"", &source)?;
                scenario.links.iter_mut().for_each(|link| link.loss = loss);
                let runs = map(&SEEDS, |seed| run(&scenario, 0, *seed).0);
                let mean = |of: fn(&RunSummary) -> Option<f64>| {
                    let values: Vec<f64> = runs.iter().filter_map(of).collect();
                    values.iter().sum::<f64>() / values.len() as f64
                };
                let pages = mean(|run| run.traffic[0].page_loads.mean());
                let objects = mean(|run| run.traffic[0].short.mean()) * 1e3;
                cells.push(format!("{pages:.2}, {objects:.0}"));
            }
            rows.push(cells);
        }
    }
    let heads = ["", "HTTP/2: page, s; object of up to 30 kB, ms", "HTTP/2 without TLS", "HTTP/3"];
    Ok(table(&heads, &rows))
}

/// A long transfer over QUIC beside one over TCP, on a link of so many Mbit/s under each
/// discipline.
fn beside_each_other(
    mbits: u32,
    disciplines: &[&str],
    control: &str,
    carrier: &Carrier,
) -> Result<Scenario, Failure> {
    let rest = "count = 1\nspread = \"1 s\"\nsizes = \"endless\"";
    let sources = [(&QUIC, "over QUIC"), (carrier, "over TCP")]
        .map(|(carrier, name)| source(carrier, control, name, rest));
    let quoted: Vec<String> = disciplines.iter().map(|name| format!("\"{name}\"")).collect();
    link(mbits, &quoted.join(", "), &sources.concat())
}

/// The rate of the one over QUIC over that of the other, under each discipline.
fn shares(
    mbits: u32,
    disciplines: &[&str],
    control: &str,
    carrier: &Carrier,
) -> Result<Vec<String>, Failure> {
    let scenario = beside_each_other(mbits, disciplines, control, carrier)?;
    let of = |place| {
        let ratios = map(&SEEDS, |seed| {
            let (_, flows) = run(&scenario, place, *seed);
            let of = |traffic| {
                let own = flows.iter().find(|row| row.traffic == traffic);
                own.map_or(f64::NAN, |row| row.delivered.0 as f64)
            };
            (of(0) / of(1)).ln()
        });
        let mean = (ratios.iter().sum::<f64>() / ratios.len() as f64).exp();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min).exp();
        let most = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max).exp();
        format!("{mean:.2} ({least:.2} to {most:.2})")
    };
    Ok((0..disciplines.len()).map(of).collect())
}

/// A table of shares, whose columns are disciplines.
fn of_shares(disciplines: &[&str], rows: &[Vec<String>]) -> String {
    let names: Vec<String> = disciplines.iter().map(|name| format!("`{name}`")).collect();
    let heads: Vec<&str> = std::iter::once("").chain(names.iter().map(String::as_str)).collect();
    table(&heads, rows)
}

pub(super) fn side_by_side() -> Result<String, Failure> {
    const DISCIPLINES: [&str; 8] =
        ["fifo", "pie", "codel", "fq-codel", "cake", "las", "efd", "tide"];
    let mut rows = Vec::new();
    for control in CONTROLS {
        let nearest = beside(control)[0];
        // With TCP's BBR, a mark counts nothing.
        let marked = (control != "bbr").then_some(&MARKED);
        for carrier in std::iter::once(nearest).chain(marked) {
            let name = format!("`{control}`: {}", carrier.name);
            let cells = shares(10, &DISCIPLINES, control, carrier)?;
            rows.push(std::iter::once(name).chain(cells).collect());
        }
    }
    Ok(of_shares(&DISCIPLINES, &rows))
}

/// What queues lose of a transfer by BBR over each beside the other.
pub(super) fn lost_of_both() -> Result<String, Failure> {
    const DISCIPLINES: [&str; 5] = ["fifo", "pie", "codel", "fq-codel", "efd"];
    let scenario = beside_each_other(10, &DISCIPLINES, "bbr", beside("bbr")[0])?;
    let lost = |place| lost_percent(&map(&SEEDS, |seed| run(&scenario, place, *seed)));
    let cells = (0..DISCIPLINES.len()).map(|place| format!("{:.1}", lost(place)));
    let row = std::iter::once("lost, %".to_owned()).chain(cells).collect();
    Ok(of_shares(&DISCIPLINES, &[row]))
}

/// Where both heed marks, on links whose windows have more packets.
pub(super) fn larger_windows() -> Result<String, Failure> {
    const DISCIPLINES: [&str; 3] = ["fq-codel", "cake", "tide"];
    let mut rows = Vec::new();
    for mbits in [10, 20, 40, 100] {
        let cells = shares(mbits, &DISCIPLINES, "reno", &MARKED)?;
        rows.push(std::iter::once(format!("{mbits} Mbit/s")).chain(cells).collect());
    }
    Ok(of_shares(&DISCIPLINES, &rows))
}
