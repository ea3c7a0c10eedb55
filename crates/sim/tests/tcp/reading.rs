//! An application that stops reading at an offset closes the window there.

use std::sync::Arc;

use tidegate_core::{Bytes, Span, Time};
use tidegate_sim::tcp::{Endpoint, TcpConfig};

/// Lets both talk over a path of 10 ms either way for `rounds` round trips; at the end of each,
/// the client's application does something.
fn talk(
    now: &mut Time,
    client: &mut Endpoint,
    server: &mut Endpoint,
    rounds: u32,
    mut each: impl FnMut(u32, &mut Endpoint),
) {
    let (mut up, mut down) = (Vec::new(), Vec::new());
    client.poll(*now, &mut up);
    for round in 0..rounds {
        *now += Span::millis(10);
        server.on_timer(*now, &mut down);
        up.drain(..).for_each(|header| server.on_segment(*now, &header, false, &mut down));
        *now += Span::millis(10);
        client.on_timer(*now, &mut up);
        down.drain(..).for_each(|header| client.on_segment(*now, &header, false, &mut up));
        each(round, client);
        client.poll(*now, &mut up);
    }
}

#[test]
fn reading_up_to_an_offset_stops_there_and_goes_on_from_there() {
    const BUFFER: u64 = 10_000;
    let config = TcpConfig { receive_window: Bytes(BUFFER), ..TcpConfig::papers() };
    let config = Arc::new(config);
    let mut client = Endpoint::connect(config.clone(), 1);
    let mut server = Endpoint::listen(config, 2);
    server.write(100_000);
    server.close();
    client.read_up_to(3_000);
    let mut now = Time::ZERO;
    talk(&mut now, &mut client, &mut server, 100, |_, _| ());
    assert_eq!((client.delivered(), client.readable()), (3_000, 3_000));
    // What was not read fills the buffer to within a segment.
    let unread = server.acknowledged() - 3_000;
    assert!((BUFFER - 1_460..=BUFFER).contains(&unread), "{unread} bytes unread");
    client.read_up_to(20_000);
    talk(&mut now, &mut client, &mut server, 100, |_, _| ());
    assert_eq!(client.delivered(), 20_000);
    // What was read stays read.
    client.read_up_to(1_000);
    assert_eq!(client.delivered(), 20_000);
    client.set_reading(true);
    talk(&mut now, &mut client, &mut server, 200, |_, _| ());
    assert_eq!(client.delivered(), 100_000);
    assert!(client.peer_finished());
}

/// Who reads nothing has a window of 64 kB, and so has who always reads as little. Who then
/// reads all that comes has one that a sender in slow start does not reach.
#[test]
fn a_buffer_that_grows_follows_what_is_read() {
    const MSS: u64 = 1_448;
    let config = Arc::new(TcpConfig::today());
    let mut client = Endpoint::connect(config.clone(), 1);
    client.grow_buffer();
    client.read_up_to(0);
    let mut server = Endpoint::listen(config, 2);
    server.write(1 << 40);
    let mut now = Time::ZERO;
    talk(&mut now, &mut client, &mut server, 100, |round, client| {
        let least = if round < 10 { 0 } else { 45_000 };
        let unread = client.unread();
        assert!((least..80_000).contains(&unread), "{unread} bytes in round trip {round}");
        if round >= 50 {
            client.read_up_to(client.delivered() + 10 * MSS);
        }
    });
    client.set_reading(true);
    let before = client.delivered();
    talk(&mut now, &mut client, &mut server, 20, |_, _| ());
    let read = client.delivered() - before;
    assert!(read > 20 * 150_000, "{read} bytes in 20 round trips");
    client.set_reading(false);
    talk(&mut now, &mut client, &mut server, 20, |_, _| ());
    let unread = client.unread();
    assert!(unread > 1_000_000, "{unread} bytes of what a reader had let come");
}
