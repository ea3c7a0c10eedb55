//! Lookups of names: times by hand on an empty link and where queries or answers are lost, a
//! flow for each lookup, books that add up under any discipline, and floods.

mod by_hand;
mod floods;
mod flows;

use std::sync::atomic::AtomicBool;

use tidegate_core::registry;
use tidegate_sim::metrics::{FlowRecord, PacketEvent, PacketRecord, Recorder, RunSummary};
use tidegate_sim::scenario::DisciplineChoice;
use tidegate_sim::scenario::file::{self, Folder};
use tidegate_sim::simulation;

/// The rows of a run, and the packets that came to its queues.
#[derive(Default)]
struct Rows {
    flows: Vec<FlowRecord>,
    packets: Vec<PacketRecord>,
}

impl Recorder for Rows {
    fn flow(&mut self, row: &FlowRecord) {
        self.flows.push(row.clone());
    }

    fn takes_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, row: &PacketRecord) {
        if row.event == PacketEvent::Arrived {
            self.packets.push(*row);
        }
    }
}

/// The link of a home to its resolver, with a queue at both ends, and what is on it.
struct Home<'a> {
    seconds: u32,
    rate: &'a str,
    /// More keys of the link.
    link: &'a str,
    /// Keys of the lookups.
    lookups: &'a str,
    /// Other traffic.
    others: &'a str,
}

const QUIET: Home<'_> =
    Home { seconds: 100, rate: "1 Mbit/s", link: "", lookups: "per_second = 1", others: "" };

/// A loss of less than one is what a link may have.
const NOTHING_ARRIVES: &str = "loss = 0.999999999";

impl Home<'_> {
    fn run(&self, discipline: &str, seed: u64) -> (Rows, RunSummary) {
        let Home { seconds, rate, link, lookups, others } = self;
        let text = format!(
            r#"
            title = "lookups"
            duration = "{seconds} s"
            disciplines = ["fifo"]
            [[link]]
            name = "down"
            from = "resolver"
            to = "host"
            queue = "tested"
            rate = "{rate}"
            delay = "10 ms"
            buffer = "50 packets"
            {link}
            back = {{ name = "up", queue = "tested", buffer = "50 packets" }}
            [[traffic.dns]]
            name = "names"
            from = "host"
            to = "resolver"
            {lookups}
            {others}
            "#
        );
        let scenario = file::parse("test.toml", &text, &Folder(".".into()));
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        let entry = registry::find(discipline).expect("it is registered");
        let choice = DisciplineChoice::with_defaults(entry);
        let mut rows = Rows::default();
        let summary = simulation::run(&scenario, &choice, seed, &mut rows, &AtomicBool::new(false));
        (rows, summary)
    }
}
