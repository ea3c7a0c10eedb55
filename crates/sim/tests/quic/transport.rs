//! What QUIC does when packets are lost, reordered by queues or marked, over one stream or
//! many; and that it does the same every time.
//!
//! Every run ends with the simulator's own account: each packet made has been delivered,
//! lost or is on the way, and the bytes kept are those of the last.

use proptest::prelude::*;
use tidegate_core::Ecn;
use tidegate_sim::metrics::PacketEvent;

use super::runs::{Rows, run, run_quietly};

/// A link that may lose packets both ways, with this source.
fn link(loss: f64, discipline: &str, source: &str) -> String {
    format!(
        r#"
        title = "a link"
        duration = "30 s"
        disciplines = [{discipline}]
        sample_every = "100 ms"
        [[link]]
        from = "a"
        to = "b"
        rate = "10 Mbit/s"
        delay = "20 ms"
        loss = {loss}
        queue = "tested"
        buffer = "150 kB"
        [[traffic.quic]]
        name = "transfers"
        from = "a"
        to = "b"
        {source}
        "#
    )
}

const SOME: &str = "per_second = 10\nstop = '20 s'\nsizes.exponential = '30 kB'";
const FIFO: &str = "'fifo'";
const CONTROLS: [&str; 3] = ["reno", "cubic", "bbr"];

#[test]
fn all_transfers_complete_although_packets_are_lost() {
    for request in ["", "request = '400 B'"] {
        for congestion in CONTROLS {
            let source = format!("{SOME}\n{request}\ncongestion = '{congestion}'");
            let (_, flows) = run_quietly(&link(0.03, FIFO, &source), 1);
            assert!(flows.len() > 150);
            for row in &flows {
                assert_eq!(row.congestion, Some(congestion));
                assert_eq!(Some(row.delivered), row.size);
                assert!(row.response.is_some() && row.end >= row.response.map(|it| row.start + it));
            }
            let lost: u32 = flows.iter().map(|row| row.lost).sum();
            let again: u32 = flows.iter().map(|row| row.retransmissions).sum();
            assert!(lost > 100 && again > 50, "{lost} {again}");
        }
    }
}

/// Each of quinn's BBR controllers draws from a generator of its own that nobody can seed, so
/// rows that are the same twice are evidence that no draw reaches what is sent: in start-up, in
/// 30 s of probing, and after the round trip has been probed.
#[test]
fn a_seed_settles_every_row_and_another_one_differs() {
    for congestion in CONTROLS {
        let source = format!(
            "{SOME}\nfollow = true\nstreams = 3\nrequest = '400 B'\ncongestion = '{congestion}'"
        );
        let endless = format!(
            "[[traffic.quic]]\nname = 'long'\nfrom = 'a'\nto = 'b'\ncount = 2\nspread = '1 s'\n\
             sizes = 'endless'\ncongestion = '{congestion}'"
        );
        let text = link(0.002, FIFO, &source) + &endless;
        let of = |seed| run(&text, seed).1;
        let first: Rows = of(1);
        assert!(first.packets.len() > 20_000 && first.progress.len() > 100);
        assert!(first == of(1), "{congestion}: the same seed gives other rows");
        assert!(first != of(2), "{congestion}: another seed gives the same rows");
    }
}

/// Of a run that draws, loses and repeats a lot, with the controls that take no roots. They
/// change when quinn does.
#[test]
fn figures_are_the_same_on_every_machine() {
    let expected =
        [("reno", (16_235, 204, 39_287_267_065, 109)), ("bbr", (16_217, 204, 37_861_101_834, 109))];
    for (congestion, expected) in expected {
        let source = format!("{SOME}\nstreams = 3\nrequest = '400 B'\ncongestion = '{congestion}'");
        let (summary, flows) = run_quietly(&link(0.02, FIFO, &source), 1);
        let responses: u64 = flows.iter().filter_map(|row| row.response).map(|it| it.0).sum();
        let again: u32 = flows.iter().map(|row| row.retransmissions).sum();
        assert_eq!((summary.events, flows.len(), responses, again), expected, "{congestion}");
    }
}

/// A source more leaves what the others draw as it is: on a link that is never full, the
/// same transfers take the same time.
#[test]
fn transfers_do_not_depend_on_those_of_another_source() {
    let alone = link(0.0, FIFO, "count = 1\nsizes = '20 kB'");
    let other = "[[traffic.quic]]\nname = 'late'\nfrom = 'b'\nto = 'a'\nstart = '20 s'\n\
                 count = 1\nsizes = '9 kB'";
    let row = |text: &str| run_quietly(text, 1).1.into_iter().find(|row| row.traffic == 0);
    assert_eq!(row(&alone), row(&format!("{alone}\n{other}")));
}

/// A full link carries 1 439 bytes of data in each 1 500: the rest is headers of IPv4, UDP,
/// QUIC and its stream frames, and the tag.
#[test]
fn a_long_transfer_fills_the_link() {
    for congestion in CONTROLS {
        for request in ["", "request = '400 B'"] {
            let source = format!(
                "count = 1\nsizes = 'endless'\ncongestion = '{congestion}'\nfollow = true\n{request}"
            );
            let text = link(0.0, FIFO, &source).replace("title", "warm_up = '10 s'\ntitle");
            let (summary, rows) = run(&text, 1);
            let goodput = rows.flows[0].delivered.0 as f64 * 8.0 / 20.0 / 1e6;
            let best = 10.0 * 1_439.0 / 1_500.0;
            assert!((0.98 * best..1.002 * best).contains(&goodput), "{congestion} {goodput}");
            let link = summary.links[0].as_ref().expect("it has a queue");
            assert!(link.utilisation > 0.98, "{:?}", link.utilisation);
            let last = rows.progress.last().expect("it is followed");
            let trip = last.smoothed_rtt.expect("it has one").as_seconds();
            assert!((0.04..0.17).contains(&trip), "{trip}");
            assert!(last.congestion_window.0 > 40_000, "{}", last.congestion_window);
        }
    }
}

/// Two transfers with the same control share a link: over two minutes, none has more than one
/// and a half times what the other has.
#[test]
fn two_long_transfers_share_the_link() {
    for congestion in CONTROLS {
        let source =
            format!("count = 2\nspread = '2 s'\nsizes = 'endless'\ncongestion = '{congestion}'");
        let text = link(0.0, FIFO, &source)
            .replace("title", "warm_up = '10 s'\ntitle")
            .replace("\"30 s\"", "\"130 s\"");
        let (_, flows) = run_quietly(&text, 1);
        let share =
            flows[0].delivered.0 as f64 / (flows[0].delivered + flows[1].delivered).0 as f64;
        println!("{congestion}: {share:.3}");
        assert!((0.4..0.6).contains(&share), "{congestion}: {share}");
    }
}

#[test]
fn streams_share_the_size_and_all_of_it_arrives() {
    for streams in [1, 2, 7, 100] {
        for size in [1, 50, 99_999] {
            for request in ["", "request = '40 B'"] {
                let source =
                    format!("count = 1\nsizes = '{size} B'\nstreams = {streams}\n{request}");
                let (_, flows) = run_quietly(&link(0.02, FIFO, &source), 3);
                assert_eq!(flows[0].delivered.0, size, "{streams} streams");
                assert!(flows[0].response.is_some() && flows[0].end.is_some());
            }
        }
    }
}

/// Packets say ECT(0). CoDel marks them then instead of losing them, the receiver tells of
/// the marks, and the sender slows down for them.
#[test]
fn marks_are_made_seen_and_heeded() {
    let source = "count = 1\nsizes = 'endless'\ncongestion = 'reno'";
    let codel = "{ name = 'codel', ecn = 'on' }";
    let (summary, rows) = run(&link(0.0, codel, source), 1);
    let at_the_queue = || rows.packets.iter().filter(|row| row.link == 0);
    assert!(at_the_queue().all(|row| row.packet.ecn != Ecn::NotEct && row.packet.tcp.is_none()));
    let marked = at_the_queue()
        .filter(|row| row.event == PacketEvent::Sent && row.packet.ecn == Ecn::Ce)
        .count();
    assert!(marked > 20, "{marked}");
    let link = summary.links[0].as_ref().expect("it has a queue");
    let wait = link.delay.quantile(0.9).expect("packets have passed");
    assert!(wait < 0.03, "{wait}");
    // A single Reno cannot keep this link busy with a queue of 5 ms, and TCP's cannot either.
    let tcp = "tcp = { congestion = 'reno', slow_start = 'classic', ecn = true }";
    let tcp = source.replace("congestion = 'reno'", tcp);
    let tcp = self::link(0.0, codel, &tcp).replace("traffic.quic", "traffic.transfers");
    let (summary, _) = run_quietly(&tcp, 1);
    let of_tcp = summary.links[0].as_ref().expect("it has a queue").utilisation;
    println!("{} {of_tcp}", link.utilisation);
    assert!((0.95..1.05).contains(&(link.utilisation / of_tcp)), "{} {of_tcp}", link.utilisation);
}

/// A cell of Wi-Fi loses frames, sends others again and aggregates; transfers go both ways, and
/// those of TCP are beside them.
#[test]
fn transfers_cross_a_wireless_cell() {
    let kinds = ["[wifi]\nstations = 4", "[wifi]\nstations = 4\nstandard = '802.11ac'"];
    for cell in kinds {
        let text = format!(
            r#"
            title = "a cell"
            duration = "10 s"
            disciplines = ["fifo"]
            {cell}
            frame_error = 0.1
            buffer = "30 packets"
            [[traffic.quic]]
            name = "uploads"
            from = "stations"
            to = "hosts"
            count = 20
            stop = "5 s"
            sizes = "200 kB"
            [[traffic.quic]]
            name = "downloads"
            from = "hosts"
            to = "stations"
            request = "400 B"
            per_second = 5
            stop = "5 s"
            sizes = "100 kB"
            [[traffic.transfers]]
            name = "others"
            from = "hosts"
            to = "stations"
            count = 4
            sizes = "500 kB"
            "#
        );
        let (_, flows) = run_quietly(&text, 1);
        assert!(flows.len() > 40 && flows.iter().all(|row| row.response.is_some()));
    }
}

/// On a link that lets next to nothing through, quinn gives up after 30 s without an answer; the row
/// says that nothing has come of it.
#[test]
fn a_connection_without_an_answer_is_given_up() {
    let text = link(0.999_999_9, FIFO, "count = 1\nsizes = '1 kB'");
    let (_, flows) = run_quietly(&text.replace("\"30 s\"", "\"40 s\""), 1);
    assert_eq!(flows.len(), 1);
    assert_eq!((flows[0].response, flows[0].end, flows[0].delivered.0), (None, None, 0));
    assert!(flows[0].longest_stall.as_seconds() >= 30.0);
    assert!(flows[0].longest_stall.as_seconds() < 40.0, "the row comes when it is given up");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever the path, what arrives is what was sent, and the accounts of packets and of
    /// their bytes are right.
    #[test]
    fn whatever_the_path_nothing_is_made_up(
        loss in 0.0..0.3,
        buffer in 1_u32..60,
        rate in 1_u32..100,
        streams in 1_u32..20,
        size in 1_u64..300_000,
        download in any::<bool>(),
        seed in any::<u32>(),
    ) {
        let request = if download { "request = '1 kB'" } else { "" };
        let source = format!(
            "count = 3\nspread = '2 s'\nsizes = '{size} B'\nstreams = {streams}\n{request}"
        );
        let text = link(loss, FIFO, &source)
            .replace("150 kB", &format!("{buffer} packets"))
            .replace("10 Mbit/s", &format!("{rate} Mbit/s"));
        let (_, flows) = run_quietly(&text, u64::from(seed));
        prop_assert_eq!(flows.len(), 3);
        for row in &flows {
            prop_assert!(row.delivered.0 <= size);
            if row.response.is_some() {
                prop_assert_eq!(row.delivered.0, size);
            }
        }
    }
}
