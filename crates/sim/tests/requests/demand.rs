//! The simulated request gateway with measured demand: pages of a table, pages
//! as a browser recorded them, the requests of a server's log.

use std::num::NonZeroU32;
use std::sync::Arc;

use tidegate_core::Span;
use tidegate_sim::pages::{Pages, RecordedPages};
use tidegate_sim::requests::{Demand, Outcome, RequestLog, Setup};
use tidegate_sim::scenario::SizeLaw;
use tidegate_sim::trace::{HttpLog, PageLoads, PageTable, SizeDistribution};

use super::outcome;

/// Every class fetches these pages, one at a time, on a link with room for them.
fn idle(pages: &Pages) -> Setup {
    let mut setup = Setup { duration: Span::seconds(400), warm_up: Span::ZERO, ..Setup::today() };
    for class in &mut setup.classes {
        class.demand = Demand::Closed { loops: 1, pause: Span::seconds(200) };
        class.pages = pages.clone();
    }
    setup
}

fn completed(outcome: &Outcome) -> u64 {
    outcome.classes.iter().map(|class| class.completed).sum()
}

/// Bytes that all classes received.
fn received(outcome: &Outcome) -> u64 {
    outcome.classes.iter().map(|class| class.received.0).sum()
}

#[test]
fn recorded_pages_bring_their_objects_and_bytes() {
    let archive = r#"{"log": {"entries": [
        {"startedDateTime": "2016-01-24T14:41:45.000Z", "time": 200,
         "request": {"url": "https://a.org/"}, "response": {"bodySize": 10000}},
        {"startedDateTime": "2016-01-24T14:41:45.300Z", "time": 50,
         "request": {"url": "https://a.org/1"}, "response": {"bodySize": 2000}},
        {"startedDateTime": "2016-01-24T14:41:45.300Z", "time": 90,
         "request": {"url": "https://b.org/2"}, "response": {"bodySize": 3000}}
    ]}}"#;
    let loads = PageLoads::parse("har", archive.as_bytes()).expect("a good archive");
    let pages = RecordedPages::new(&[loads]).expect("it has a page");
    assert_eq!((pages.count(), pages.mean_size()), (1, 15_000.0));
    let outcome = outcome(&idle(&Pages::Recorded(Arc::new(pages))), "msf", &[], 1);
    assert!(completed(&outcome) >= 12, "{}", completed(&outcome));
    assert_eq!(completed(&outcome) % 3, 0);
    assert_eq!(received(&outcome), completed(&outcome) / 3 * 15_000);
}

#[test]
fn pages_of_a_table_bring_its_bytes_whatever_sizes_are_drawn() {
    let table = tidegate_scenarios::bytes("data/page-loads.csv").unwrap();
    let table = PageTable::parse("page-loads.csv", table).expect("it ships");
    // One page of it, so that its bytes are known.
    let page = table.pages[8];
    let one = PageTable { pages: vec![page] };
    let sizes = tidegate_scenarios::bytes("data/web-objects.csv").unwrap();
    let sizes = SizeDistribution::parse("web-objects.csv", sizes).expect("it ships");
    let mut setup = idle(&Pages::Outlined(Arc::new(one)));
    setup.sizes = SizeLaw::Empirical(Arc::new(sizes));
    let outcome = outcome(&setup, "msf", &[], 1);
    // Pages that the end cuts off have some of their objects only.
    let pages = completed(&outcome) as f64 / f64::from(page.objects);
    assert!(pages > 5.0, "{pages} pages");
    let size = received(&outcome) as f64 / pages;
    assert!((size / page.size.0 as f64 - 1.0).abs() < 0.05, "{size} bytes a page");
}

#[test]
fn a_logs_requests_are_made_at_their_rate_by_its_hosts() {
    let line = |(second, size): (u32, u32)| {
        let host = if size < 3_000 { "a" } else { "b" };
        format!("{host} - - [01/Jul/1995:00:00:{second:02} +0000] \"G\" 200 {size}\n")
    };
    // Ten requests in 60 s, six of them of the first host.
    let log: String = (0..10).map(|n| (n * 59 / 9, 500 * n + 100)).map(line).collect();
    let log = HttpLog::parse("log", log.as_bytes()).expect("a good log");
    let log = RequestLog::new(&log, NonZeroU32::new(2).expect("not zero")).expect("not empty");
    assert_eq!((log.hosts(), log.period()), (2, Span::seconds(30)));
    let mut setup = idle(&Pages::Drawn);
    setup.classes.truncate(1);
    setup.classes[0].clients = 2;
    setup.classes[0].demand = Demand::Log(Arc::new(log));
    let outcome = outcome(&setup, "msf", &[], 1);
    // 400 s are 13 rounds and a third, a request or two on their way at the end.
    assert!((128..=136).contains(&completed(&outcome)), "{}", completed(&outcome));
    let mean = received(&outcome) as f64 / completed(&outcome) as f64;
    assert!((2_250.0..2_450.0).contains(&mean), "{mean}");
}
