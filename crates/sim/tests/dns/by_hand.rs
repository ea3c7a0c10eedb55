//! Times of lookups, to the nanosecond.

use tidegate_core::{Bytes, Rate, Span, Time};
use tidegate_sim::metrics::FlowRecord;

use super::{Home, NOTHING_ARRIVES, QUIET};

/// 10 ms each way, and 67 and 142 bytes at 1 Mbit/s.
fn round_trip() -> Span {
    let rate = Rate(1_000_000);
    Span::millis(20) + rate.transmission(Bytes(67)) + rate.transmission(Bytes(142))
}

/// Those that no other one may have delayed: none begins within 50 ms of them, or of when they
/// ask again.
fn alone(rows: &[FlowRecord]) -> Vec<&FlowRecord> {
    let is_near = |one: &FlowRecord, other: &FlowRecord| {
        let apart = one.start.0.abs_diff(other.start.0);
        let is_within = |time: u64| apart.abs_diff(time) < Span::millis(50).0;
        one.number != other.number && (is_within(0) || is_within(Span::seconds(5).0))
    };
    rows.iter().filter(|one| !rows.iter().any(|other| is_near(one, other))).collect()
}

#[test]
fn a_lookup_on_an_empty_link_takes_the_way_there_and_back() {
    assert_eq!(round_trip(), Span(21_672_000));
    let home = Home { lookups: "per_second = 1\nanswer = \"142 B\"", ..QUIET };
    for discipline in ["fifo", "fq-codel", "las", "efd", "tide"] {
        let (rows, summary) = home.run(discipline, 1);
        let took: Vec<_> = rows.flows.iter().filter_map(|row| row.response).collect();
        assert!(took.len() > 60 && took.len() + 1 >= rows.flows.len(), "{}", took.len());
        // Where two begin together, one may wait for a packet of the other.
        let exact = took.iter().filter(|took| **took == round_trip()).count();
        assert!(exact * 10 > took.len() * 9, "{discipline}: {exact} of {}", took.len());
        assert!(took.iter().all(|took| *took >= round_trip()));
        let row = &rows.flows[0];
        assert_eq!(
            (row.size, row.delivered, row.lost, row.retransmissions, row.timeouts),
            (Some(Bytes(142)), Bytes(142), 0, 0, 0)
        );
        assert_eq!(row.end, Some(row.start + round_trip()));
        let lookups = &summary.traffic[0].lookups;
        assert_eq!((lookups.asked_again, lookups.failed), (0, 0));
        assert_eq!(lookups.times.count(), took.len() as u64);
    }
}

#[test]
fn what_is_lost_is_asked_for_again_after_the_timeout_and_twice_is_a_failure() {
    let home = Home {
        seconds: 600,
        link: "loss = 0.3",
        lookups: "per_second = 0.5\nanswer = \"142 B\"\nstop = \"580 s\"",
        ..QUIET
    };
    let (rows, summary) = home.run("fifo", 1);
    let rows = alone(&rows.flows);
    assert!(rows.len() > 200, "{}", rows.len());
    let mut seen = [0; 3];
    for row in &rows {
        let attempts = match row.response {
            Some(took) => {
                assert_eq!(took, round_trip() + Span::seconds(5) * u64::from(row.timeouts));
                assert_eq!((row.timeouts, row.lost), (row.retransmissions, row.retransmissions));
                row.timeouts
            }
            None => {
                assert_eq!((row.retransmissions, row.timeouts, row.lost), (1, 2, 2));
                assert_eq!((row.end, row.delivered), (None, Bytes::ZERO));
                2
            }
        };
        seen[attempts as usize] += 1;
    }
    // Of 0.7 x 0.7 in both directions: within five standard deviations.
    let expected = [0.49, 0.51 * 0.49, 0.51 * 0.51];
    for (seen, expected) in std::iter::zip(seen, expected) {
        let all = rows.len() as f64;
        let deviation = (all * expected * (1.0 - expected)).sqrt();
        assert!((f64::from(seen) - all * expected).abs() < 5.0 * deviation, "{seen}");
    }
    let lookups = &summary.traffic[0].lookups;
    // All that began have ended, and those that failed have waited twice.
    assert_eq!(lookups.times.count(), summary.traffic[0].started);
    assert_eq!(lookups.failed, summary.traffic[0].started - summary.traffic[0].completed);
    assert_eq!(lookups.times.largest(), Some(10.0));
}

#[test]
fn nobody_answers_and_every_lookup_fails_after_all_its_attempts() {
    let lookups = "per_second = 2\ntimeout = \"700 ms\"\nattempts = 3\nstop = \"90 s\"";
    let (rows, summary) = Home { link: NOTHING_ARRIVES, lookups, ..QUIET }.run("fifo", 1);
    let source = &summary.traffic[0];
    assert_eq!((source.completed, source.lookups.failed), (0, source.started));
    assert_eq!(source.lookups.asked_again, source.started);
    assert_eq!(source.lookups.times.largest(), Some(2.1));
    assert!((source.lookups.times.mean().unwrap() - 2.1).abs() < 1e-9);
    assert!(rows.flows.iter().all(|row| row.response.is_none() && row.lost == 3));
    assert_eq!(rows.packets.len() as u64, 3 * source.started);
}

/// A round trip of 6 s is longer than the timeout: the answer to the first query comes after
/// the second has been sent, to the same socket, and ends the lookup.
#[test]
fn an_answer_to_the_first_query_counts_after_the_second() {
    let others = r#"
        [[link]]
        from = "resolver"
        to = "far"
        delay = "2990 ms"
        [[traffic.dns]]
        name = "far names"
        from = "host"
        to = "far"
        per_second = 0.1
        answer = "142 B"
        stop = "80 s"
    "#;
    let (rows, summary) = Home { others, lookups: "per_second = 0.001", ..QUIET }.run("fifo", 1);
    let far: Vec<_> = rows.flows.iter().filter(|row| row.traffic == 1).collect();
    assert!(far.len() > 3);
    for row in far {
        // The first answer counts, so the second is nobody's.
        assert_eq!(row.response, Some(round_trip() + Span::millis(5_980)));
        assert_eq!((row.retransmissions, row.timeouts), (1, 1));
    }
    let lookups = &summary.traffic[1].lookups;
    assert_eq!((lookups.asked_again, lookups.failed), (lookups.times.count(), 0));
}

#[test]
fn what_begins_in_the_warm_up_or_is_open_at_the_end_has_no_time() {
    let lookups = "per_second = 5\ntimeout = \"5 s\"";
    let (rows, summary) =
        Home { seconds: 8, link: NOTHING_ARRIVES, lookups, ..QUIET }.run("fifo", 1);
    let source = &summary.traffic[0];
    // None has been asked for twice five seconds, and none is forgotten.
    assert_eq!((source.lookups.times.count(), source.lookups.failed), (0, 0));
    assert_eq!(rows.flows.len() as u64, source.started);
    for row in &rows.flows {
        let has_waited = Time(8_000_000_000).since(row.start) >= Span::seconds(5);
        assert_eq!((row.timeouts, row.response), (u32::from(has_waited), None));
    }
}
