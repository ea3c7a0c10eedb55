//! A call behind links: RFC 8867's test of a capacity that changes, and a call beside a
//! download.

use std::io::{self, Read};
use std::sync::atomic::AtomicBool;

use tidegate_core::registry;
use tidegate_sim::metrics::{PacketEvent, PacketRecord, Recorder, RunSummary};
use tidegate_sim::scenario::DisciplineChoice;
use tidegate_sim::scenario::file::{self, DataFiles};
use tidegate_sim::simulation;

/// The call's packets that left the queue, and how long they had waited.
#[derive(Default)]
struct Left(Vec<(f64, u64, f64)>);

impl Recorder for Left {
    fn takes_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, row: &PacketRecord) {
        let PacketRecord { at, packet, .. } = row;
        // Reports go the other way, over a link that has no queue.
        if row.event == PacketEvent::Sent && packet.flow.protocol() == 17 {
            let waited = at.since(packet.arrived).as_seconds();
            self.0.push((at.as_seconds(), packet.size.0, waited));
        }
    }
}

impl Left {
    /// Mean rate in Mbit/s, and the mean and the longest wait in ms.
    fn between(&self, from: f64, to: f64) -> [f64; 3] {
        let of = self.0.iter().filter(|(at, ..)| (from..to).contains(at));
        let (mut bits, mut waited, mut longest, mut count) = (0.0, 0.0, 0.0_f64, 0.0);
        for (_, size, waits) in of {
            bits += *size as f64 * 8.0;
            waited += waits;
            longest = longest.max(*waits);
            count += 1.0;
        }
        [bits / (to - from) / 1e6, waited / count * 1e3, longest * 1e3]
    }
}

/// A link's opportunities, for each second of these so many kbit/s.
struct Steps(String);

impl Steps {
    fn new(parts: &[(u64, u64)]) -> Steps {
        let (mut text, mut bits, mut now_ms) = (String::new(), 0, 0);
        for (seconds, kbits) in parts {
            for _ in 0..seconds * 1_000 {
                now_ms += 1;
                bits += kbits;
                while bits >= 1_504 * 8 {
                    bits -= 1_504 * 8;
                    text += &format!("{now_ms}\n");
                }
            }
        }
        Steps(text)
    }
}

impl DataFiles for Steps {
    fn open(&self, _name: &str) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.0.as_bytes()))
    }
}

fn run(steps: &[(u64, u64)], discipline: &str, buffer: &str, more: &str) -> (Left, RunSummary) {
    let seconds: u64 = steps.iter().map(|(seconds, _)| seconds).sum();
    let rate = match steps {
        [(_, kbits)] => format!("\"{kbits} kbit/s\""),
        _ => "{ trace = \"steps\" }".into(),
    };
    let text = format!(
        r#"
        title = "call"
        duration = "{seconds} s"
        disciplines = ["fifo"]
        [[link]]
        name = "down"
        from = "server"
        to = "user"
        rate = {rate}
        delay = "50 ms"
        buffer = "{buffer}"
        queue = "tested"
        back = {{ name = "up" }}
        [[traffic.call]]
        name = "call"
        from = "server"
        to = "user"
        {more}
        "#
    );
    let scenario = file::parse("test.toml", &text, &Steps::new(steps));
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    let entry = registry::find(discipline).expect("it is registered");
    let choice = DisciplineChoice::with_defaults(entry);
    let (mut left, never) = (Left::default(), AtomicBool::new(false));
    let summary = simulation::run(&scenario, &choice, 1, &mut left, &never);
    (left, summary)
}

/// RFC 8867 section 5.1: 1 Mbit/s, after 40 s two and a half times as much, then 0.6, and 1
/// again, with 50 ms each way and a queue of 300 ms.
const CHANGES: [(u64, u64); 4] = [(40, 1_000), (20, 2_500), (20, 600), (20, 1_000)];

/// Of the last quarter of each part it has more than half, and hardly waits. It is slow upwards,
/// by 5% a second, and two seconds after less than a quarter is left, its queue is short.
#[test]
fn a_call_follows_a_capacity_that_changes() {
    let (left, summary) = run(&CHANGES, "fifo", "37500 B", "");
    let mut end = 0.0;
    for (seconds, kbits) in CHANGES {
        end += seconds as f64;
        let [rate, mean, longest] = left.between(end - 5.0, end);
        let share = rate * 1e3 / kbits as f64;
        println!("{kbits} kbit/s: {share:.2} of it, {mean:.0} ms, at most {longest:.0} ms");
        assert!(share > 0.55 && share < 0.98, "{share} of {kbits} kbit/s");
        assert!(mean < 30.0 && longest < 100.0, "{mean} {longest} ms");
    }
    let [_, mean, longest] = left.between(63.0, 65.0);
    assert!(mean < 30.0 && longest < 60.0, "{mean} {longest} ms");
    // It meets a full queue once, of some 300 packets that it sends in that second.
    let lost = summary.traffic[0].datagrams_lost;
    assert!(lost > 10 && lost < 150, "{lost}");
}

/// Beside a download in a FIFO it gives way altogether, as those who evaluated it at first
/// found (De Cicco 2013), and waits nevertheless; where a queue is short, or its own, it keeps
/// a rate that is worth a picture.
#[test]
fn a_call_beside_a_download_is_what_the_queue_makes_of_it() {
    let more = r#"
        [[traffic.transfers]]
        name = "download"
        from = "server"
        to = "user"
        count = 1
        sizes = "endless"
        start = "20 s"
        "#;
    let found = |discipline| {
        let (left, _) = run(&[(80, 2_000)], discipline, "100 packets", more);
        left.between(40.0, 80.0)
    };
    let [rate, mean, _] = found("fifo");
    assert!(rate < 0.1 && mean > 300.0, "{rate} {mean}");
    for discipline in ["fq-codel", "codel", "tide"] {
        let [rate, mean, _] = found(discipline);
        println!("{discipline}: {rate:.2} Mbit/s, {mean:.0} ms");
        assert!(rate > 0.4 && mean < 25.0, "{discipline}: {rate} {mean}");
    }
}

/// It keeps between its rates, whatever the path has.
#[test]
fn a_call_keeps_between_its_least_and_its_most() {
    let (left, _) = run(&[(60, 20_000)], "fifo", "100 packets", "most = \"1 Mbit/s\"");
    let [rate, mean, _] = left.between(40.0, 60.0);
    // 40 bytes of headers around up to 1 200.
    assert!(rate > 0.95 && rate < 1.08 && mean < 1.0, "{rate} {mean}");
    let (left, summary) = run(&[(60, 100)], "fifo", "10 packets", "least = \"200 kbit/s\"");
    let [rate, ..] = left.between(40.0, 60.0);
    assert!(rate > 0.09 && rate < 0.101, "{rate}");
    let sent = summary.traffic[0].datagrams as f64;
    let lost = summary.traffic[0].datagrams_lost as f64 / sent;
    assert!(lost > 0.4 && lost < 0.65, "{lost}");
}

#[test]
fn runs_are_the_same_for_a_seed() {
    let packets = || run(&CHANGES, "fq-codel", "37500 B", "").0.0;
    assert_eq!(packets(), packets());
}
