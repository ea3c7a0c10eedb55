//! Transfers on an empty link, worked out on paper: from the sizes of packets, the rate of
//! the link and its delay.
//!
//! The sizes are those of RFC 9000 and RFC 9001 with the messages of a TLS 1.3 handshake:
//!
//! - The first packet of a client is padded to 1 200 bytes of UDP's payload (RFC 9000
//!   section 14.1): 1 228 with the headers.
//! - The server says 122 bytes of hello and 3 460 of extensions, certificates, their proof
//!   and the end of its handshake. That takes two full packets, 1 500 bytes, and a third.
//!   All three may go before the client's address is validated, since quinn lets a server
//!   begin a datagram as long as it has sent less than three times 1 200 bytes.
//! - The client acknowledges the first of them, in a packet that is padded again, and the
//!   second; with the third its handshake is over, and its data go with the end of it.

use tidegate_sim::metrics::PacketEvent;

use super::runs::{Rows, run};

/// Nanoseconds per byte at 10 Mbit/s.
const BYTE: u64 = 800;
/// The propagation of the link, one way.
const DELAY: u64 = 20_000_000;
/// Payload of IP, by packet.
const HEADERS: u64 = 28;
const INITIAL: u64 = HEADERS + 1_200;
const FULL: u64 = HEADERS + 1_472;

fn link(delay: u64, request: &str, size: u64) -> String {
    format!(
        r#"
        title = "one transfer"
        duration = "10 s"
        disciplines = ["fifo"]
        [[link]]
        from = "a"
        to = "b"
        rate = "10 Mbit/s"
        delay = "{delay} ns"
        queue = "tested"
        buffer = "1000 packets"
        back.queue = "tested"
        [[traffic.quic]]
        name = "one"
        from = "a"
        to = "b"
        count = 1
        {request}
        sizes = "{size} B"
        "#
    )
}

/// Sizes and times of what a link has sent, in nanoseconds.
fn sent(rows: &Rows, link: usize) -> Vec<(u64, u64)> {
    let sent = rows.packets.iter().filter(|row| row.link == link && row.event == PacketEvent::Sent);
    sent.map(|row| (row.at.0, row.packet.size.0)).collect()
}

/// When the server's handshake is at the client: a round trip after the client's first
/// packet, which goes at zero.
fn greeted(server: &[(u64, u64)]) -> u64 {
    let [(first, a), (second, b), (third, c)] = server[..3] else {
        panic!("the server's handshake is in three packets")
    };
    assert_eq!((a, b), (FULL, FULL));
    // All of it is there: 3 582 bytes of handshake, and less than 500 of headers, tags and
    // connection IDs around them.
    let handshake = a + b + c;
    assert!((3_582..3_582 + 500).contains(&handshake), "{handshake}");
    let asked = INITIAL * BYTE + DELAY;
    assert_eq!((first, second, third), (asked, asked + a * BYTE, asked + (a + b) * BYTE));
    asked + handshake * BYTE + DELAY
}

#[test]
fn an_upload_takes_a_round_trip_and_a_half_and_its_bytes() {
    let (_, rows) = run(&link(DELAY, "", 3_000), 1);
    let (client, server) = (sent(&rows, 0), sent(&rows, 1));
    let greeted = greeted(&server);
    assert_eq!(client[0], (0, INITIAL));
    assert_eq!(client[1].1, INITIAL, "the acknowledgement of the server's hello");
    // All data go at once when the handshake is over; they are in three packets with what
    // ends it, and the last one is full to the size of the transfer.
    assert_eq!(client[3], (greeted, FULL));
    assert_eq!(client[4], (greeted + FULL * BYTE, FULL));
    let (last, size) = client[5];
    assert_eq!(last, greeted + 2 * FULL * BYTE);
    let data = client[3].1 + client[4].1 + size;
    assert!((3_000..3_000 + 500).contains(&data), "{data}");
    let response = last + size * BYTE + DELAY;
    assert_eq!(rows.flows[0].response.map(|it| it.0), Some(response));
    assert_eq!(rows.flows[0].delivered.0, 3_000);
}

#[test]
fn a_download_takes_two_round_trips_and_its_bytes() {
    let (_, rows) = run(&link(DELAY, "request = '400 B'", 3_000), 1);
    let (server, client) = (sent(&rows, 0), sent(&rows, 1));
    let greeted = greeted(&server);
    // The request goes with the end of the client's handshake, in one packet.
    let (asked, size) = client[3];
    assert_eq!(asked, greeted);
    assert!((400..400 + 300).contains(&size), "{size}");
    let answered = asked + size * BYTE + DELAY;
    assert_eq!(server[3..5], [(answered, FULL), (answered + FULL * BYTE, FULL)]);
    let (last, size) = server[5];
    assert_eq!(last, answered + 2 * FULL * BYTE);
    let response = last + size * BYTE + DELAY;
    assert_eq!(rows.flows[0].response.map(|it| it.0), Some(response));
}

/// An upload crosses the link three times before its last byte is there: the client's hello,
/// the server's, and the data. A download crosses it once more, with the request.
#[test]
fn a_longer_link_adds_its_delay_each_time_that_it_is_crossed() {
    for request in ["", "request = '400 B'"] {
        let response = |delay| {
            let (_, rows) = run(&link(delay, request, 3_000), 1);
            rows.flows[0].response.expect("it has ended").0
        };
        let passes = if request.is_empty() { 3 } else { 4 };
        assert_eq!(response(2 * DELAY) - response(DELAY), passes * DELAY, "{request:?}");
    }
}

/// The connection is over when the acceptor knows that it is closed.
#[test]
fn a_connection_is_closed_by_its_opener() {
    let (_, rows) = run(&link(DELAY, "request = '400 B'", 3_000), 1);
    let row = &rows.flows[0];
    let response = row.response.expect("it has ended").0;
    let end = row.end.expect("it is over").0;
    assert!((response + DELAY..response + DELAY + 1_000_000).contains(&end), "{response} {end}");
    assert_eq!((row.lost, row.retransmissions), (0, 0));
}

/// The initial window is 14 720 bytes, ten packets (RFC 9002 section 7.2). quinn leaves a window
/// alone that the next packet would just fill, so nine go before the first acknowledgement.
#[test]
fn nine_packets_are_in_the_first_flight() {
    let (_, rows) = run(&link(DELAY, "", 100_000), 1);
    let greeted = greeted(&sent(&rows, 1));
    let first_answer = greeted + FULL * BYTE + 2 * DELAY;
    let client = sent(&rows, 0);
    let flight = client.iter().filter(|(at, _)| (greeted..first_answer).contains(at)).count();
    assert_eq!(flight, 9);
}

#[test]
fn no_packet_is_larger_than_an_ethernet_link_takes() {
    let (_, rows) = run(&link(DELAY, "", 1_000_000), 1);
    let sizes: Vec<u64> = sent(&rows, 0).iter().map(|(_, size)| *size).collect();
    assert_eq!(sizes.iter().max(), Some(&FULL));
    assert!(sizes.iter().filter(|size| **size == FULL).count() > 600, "most are full");
    assert!(rows.flows[0].response.is_some());
}
