//! Pages over HTTP/3.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::sync::atomic::AtomicBool;

use tidegate_core::Span;
use tidegate_sim::metrics::RunSummary;
use tidegate_sim::scenario::file::{self, DataFiles};
use tidegate_sim::simulation;

use super::runs::{Rows, run, run_quietly};

/// Pages for a user over a link that may lose packets.
fn link(loss: f64, source: &str) -> String {
    format!(
        r#"
        title = "pages"
        duration = "60 s"
        disciplines = ["fifo"]
        [[link]]
        from = "server"
        to = "user"
        rate = "10 Mbit/s"
        delay = "20 ms"
        loss = {loss}
        queue = "tested"
        buffer = "150 kB"
        {source}
        from = "server"
        to = "user"
        "#
    )
}

const PAGES: &str = "[[traffic.pages]]\nname = 'web'\nprotocol = 'http3'";

/// A file of page loads with one page of so many objects, all asked for at once.
struct OnePage {
    har: String,
}

impl OnePage {
    fn new(objects: usize, size: u64) -> OnePage {
        let entry = |number| {
            format!(
                r#"{{"startedDateTime": "2016-01-24T14:41:00.000Z", "time": 10,
                    "request": {{"url": "https://a.org/{number}", "headersSize": 400}},
                    "response": {{"bodySize": {size}}}}}"#
            )
        };
        let entries: Vec<String> = (0..objects).map(entry).collect();
        OnePage { har: format!(r#"{{"log": {{"entries": [{}]}}}}"#, entries.join(",")) }
    }
}

impl DataFiles for OnePage {
    fn open(&self, _name: &str) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.har.as_bytes()))
    }
}

/// A run in which a user asks for a page of so many objects again and again.
fn one_page(seconds: u32, objects: usize, size: u64, loss: f64, rest: &str) -> (RunSummary, Rows) {
    let text = link(loss, &format!("{PAGES}\nrecorded = ['one.har']\n{rest}"));
    let text = text.replace("\"60 s\"", &format!("\"{seconds} s\""));
    let page = file::parse("page.toml", &text, &OnePage::new(objects, size));
    let page = page.unwrap_or_else(|error| panic!("{error}"));
    let (mut rows, stop) = (Rows::default(), AtomicBool::new(false));
    let summary = simulation::run(&page, &page.disciplines[0], 1, &mut rows, &stop);
    (summary, rows)
}

/// A document is a download: its time is that of a transfer with a request of the same size.
#[test]
fn a_page_of_one_object_takes_as_long_as_a_transfer() {
    let (summary, _) = one_page(60, 1, 5_000, 0.0, "pause = '1 s'");
    let transfer = "[[traffic.quic]]\nname = 'it'\ncount = 1\nrequest = '400 B'\nsizes = '5 kB'";
    let (_, flows) = run_quietly(&link(0.0, transfer), 1);
    // Only the first page has a handshake before it.
    let longest = summary.traffic[0].page_loads.largest();
    assert_eq!(longest, flows[0].response.map(Span::as_seconds));
    assert!(summary.traffic[0].pages > 30);
    let mean = summary.traffic[0].page_loads.mean().expect("pages are complete");
    assert!((0.0401..0.0475).contains(&mean), "a round trip, on a connection that is open: {mean}");
}

#[test]
fn every_object_of_recorded_pages_arrives_once_and_the_same_every_time() {
    for order in ["round-robin", "priority"] {
        for loss in [0.0, 0.02] {
            let source = format!(
                "{PAGES}\norder = '{order}'\nrecorded = ['pages.har']\nevery = '4 s'\nstop = '40 s'"
            );
            let text = link(loss, &source);
            let (summary, rows) = run(&text, 1);
            let web = &summary.traffic[0];
            assert!(web.pages > 5);
            assert_eq!(web.page_loads.count(), web.pages, "{order} {loss}");
            let numbers: BTreeSet<u64> = rows.flows.iter().map(|row| row.number).collect();
            assert_eq!(numbers.len(), rows.flows.len());
            for row in &rows.flows {
                assert_eq!(Some(row.delivered), row.size);
                assert_eq!(row.congestion, Some("cubic"));
            }
            let lost: u32 = rows.flows.iter().map(|row| row.lost).sum();
            assert!(loss == 0.0 || lost > 0);
            assert!(rows.packets.iter().all(|row| row.packet.tcp.is_none()), "there is no TCP");
            assert!(rows == run(&text, 1).1, "the same seed gives other rows");
        }
    }
}

/// quinn grants a hundred streams at a time; other requests wait for one.
#[test]
fn a_page_may_have_more_objects_than_streams() {
    let (summary, _) = one_page(60, 350, 900, 0.01, "pause = '1 s'");
    let web = &summary.traffic[0];
    assert!(web.pages > 10 && web.page_loads.count() + 1 >= web.pages);
}

/// A connection of which nothing has been heard for 30 s is given up at both ends, and one
/// without a request for the keep-alive time is closed. The next page opens another.
#[test]
fn a_connection_that_has_nothing_to_do_ends() {
    let connections = |seconds: u32, rest: &str| {
        let (summary, rows) = one_page(seconds, 1, 5_000, 0.0, rest);
        let web = &summary.traffic[0];
        assert!(web.page_loads.count() + 1 >= web.pages);
        let flows: BTreeSet<_> = rows.packets.iter().map(|row| row.packet.flow).collect();
        (web.pages, flows.len() as u64)
    };
    // Pages follow each other after 1 s on average, and never after 30 s.
    let (pages, one) = connections(60, "pause = '1 s'");
    assert!(pages > 30 && one == 1, "{pages} {one}");
    // More often than not after 2 s: of exponential pauses, 1 of 7.
    let (pages, some) = connections(60, "pause = '1 s'\nkeep_alive = '2 s'");
    assert!((pages / 20..pages / 3).contains(&some), "{pages} {some}");
    // Of pauses of 300 s on average, 9 of 10 are longer than 30 s.
    let (pages, most) = connections(6_000, "pause = '300 s'\nkeep_alive = '1 h'");
    assert!(pages > 10 && most >= pages * 3 / 4, "{pages} {most}");
}
