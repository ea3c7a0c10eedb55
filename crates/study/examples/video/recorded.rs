//! Players behind recorded links, beside Sabre on the same rates.
//!
//! Sabre's link is a fluid that waits 100 ms before each segment. Ours has packets, TCP, a
//! queue of 100 of them, and 100 ms of round trip: what is different comes from there.

use std::error::Error;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde::Deserialize;
use tidegate_sim::scenario::file::{self, DataFiles, Folder};
use tidegate_sim::trace::Movie;
use tidegate_sim::video::Viewing;
use tidegate_study::experiment::{self, Forget};
use tidegate_twins::pages;

use super::{LINKS, Table};

/// What Sabre asks for, as the tests have it.
const SABRE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/tests/video/sabre.json");
/// The film, as seen from the scenarios' folder, and how long all of it plays.
const FILM: &str = "../data/big-buck-bunny.json";
const FILM_S: f64 = 199.0 * 3.0;

/// A recording, and what Sabre asks for on it.
#[derive(Deserialize)]
struct Recorded {
    trace: String,
    /// Length in ms, kbit/s, latency in ms.
    periods: Vec<(f64, f64, f64)>,
    bola: Asked,
    rate: Asked,
}

#[derive(Deserialize)]
struct Asked {
    qualities: String,
    stalled_ms: f64,
}

/// What a viewer saw: kbit/s, per cent of the time, changes a minute.
#[derive(Clone, Copy)]
struct Seen([f64; 3]);

impl Asked {
    fn seen(&self, film: &Movie) -> Seen {
        let qualities: Vec<usize> =
            self.qualities.bytes().map(|digit| usize::from(digit - b'0')).collect();
        let sum: f64 = qualities.iter().map(|quality| film.rates()[*quality].0 as f64 / 1e3).sum();
        let changes = qualities.windows(2).filter(|pair| pair[0] != pair[1]).count();
        let stalled_s = self.stalled_ms / 1e3;
        Seen([
            sum / qualities.len() as f64,
            stalled_s / (stalled_s + FILM_S) * 100.0,
            changes as f64 / (FILM_S / 60.0),
        ])
    }
}

impl Seen {
    fn of(viewing: &Viewing) -> Option<Seen> {
        Some(Seen([
            viewing.mean_rate()?.0 as f64 / 1e3,
            viewing.stalled_ratio()? * 100.0,
            viewing.switches_per_minute()?,
        ]))
    }

    fn mean(all: &[Seen]) -> Seen {
        Seen([0, 1, 2].map(|at| all.iter().map(|it| it.0[at]).sum::<f64>() / all.len() as f64))
    }

    fn cells(self) -> [String; 3] {
        let [rate, stalled, changes] = self.0;
        [format!("{rate:.0}"), format!("{stalled:.1}"), format!("{changes:.1}")]
    }
}

/// The files of the scenarios, and a recording as a link.
struct WithLink(Folder, String);

impl DataFiles for WithLink {
    fn open(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        if name == "recorded.down" { Ok(Box::new(self.1.as_bytes())) } else { self.0.open(name) }
    }
}

impl Recorded {
    /// An opportunity of 1 504 bytes each time that so much could have been sent.
    fn opportunities(&self) -> String {
        let (mut text, mut bits, mut now_ms) = (String::new(), 0.0, 0.0);
        for (length_ms, kbits, _) in &self.periods {
            let mut left_ms = *length_ms;
            while kbits * left_ms >= 1_504.0 * 8.0 - bits {
                let takes_ms = (1_504.0 * 8.0 - bits) / kbits;
                left_ms -= takes_ms;
                now_ms += takes_ms;
                bits = 0.0;
                text += &format!("{:.0}\n", f64::ceil(now_ms));
            }
            bits += kbits * left_ms;
            now_ms += left_ms;
        }
        text
    }

    /// What viewers behind this link see who have TCP, for each seed.
    fn through_tcp(&self, choice: &str) -> Result<Vec<Seen>, Box<dyn Error>> {
        let text = format!(
            r#"
            title = "{}"
            duration = "{FILM_S} s"
            seeds = 5
            disciplines = ["fifo"]
            [[link]]
            name = "down"
            from = "server"
            to = "phone"
            rate = {{ trace = "recorded.down" }}
            delay = "50 ms"
            buffer = "100 packets"
            queue = "tested"
            back = {{ name = "up" }}
            [[traffic.video]]
            name = "film"
            from = "server"
            to = "phone"
            movie = "{FILM}"
            choice = "{choice}"
            "#,
            self.trace
        );
        let data = WithLink(Folder(LINKS.into()), self.opportunities());
        let scenario = file::parse("recorded.toml", &text, &data)?;
        let threads = std::thread::available_parallelism()?.get();
        let Ok(runs) = experiment::run(&scenario, threads, &AtomicBool::new(false), &Forget);
        let viewings = runs.iter().flat_map(|run| &run.traffic[0].viewings);
        Ok(viewings.filter_map(Seen::of).collect())
    }
}

pub(super) fn tables() -> Result<Vec<Table>, Box<dyn Error>> {
    let all: Vec<Recorded> = serde_json::from_str(&std::fs::read_to_string(SABRE)?)?;
    let film = Movie::read(&Path::new(LINKS).join(FILM))?;
    let head = [
        "recording",
        "quality, fluid, kbit/s",
        "with TCP",
        "stalled, fluid, %",
        "with TCP",
        "changes a minute, fluid",
        "with TCP",
    ];
    let mut tables = Vec::new();
    for (heading, choice) in [("BOLA behind recorded links", "bola"), ("By rate", "rate")] {
        let mut rows = Vec::new();
        let mut pairs = [Vec::new(), Vec::new()];
        let row = |name: &str, fluid: Seen, tcp: Seen| {
            let ([a, b, c], [d, e, f]) = (fluid.cells(), tcp.cells());
            [name.into(), a, d, b, e, c, f]
        };
        for recorded in &all {
            let asked = if choice == "bola" { &recorded.bola } else { &recorded.rate };
            let (fluid, tcp) = (asked.seen(&film), Seen::mean(&recorded.through_tcp(choice)?));
            pairs[0].push(fluid);
            pairs[1].push(tcp);
            let name = recorded.trace.trim_start_matches("report.");
            rows.push(row(name, fluid, tcp));
        }
        rows.push(row("mean", Seen::mean(&pairs[0]), Seen::mean(&pairs[1])));
        tables.push((heading, pages::table(head, rows)));
    }
    Ok(tables)
}
