//! Who gets how much of a link that is full.
//!
//! The link is a row of times at which the servers may write a segment, in the order in
//! which they ask: what each response gets is the same, as behind a provider's queue.
//! Their send buffers are small, so what the gateway does not read is not sent.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_core::{Bytes, Rate, Span};
use tidegate_gateway::Config;
use tokio::time::{Instant, sleep_until};

use crate::bed::{Client, End, Server, beside, config};

const RATE: Rate = Rate(8_000_000);
/// What the gateway is told: a little less, so that the queue is where it decides even if
/// this machine is too busy to keep the link full.
const TOLD: Rate = Rate(7_000_000);
/// A link of a machine that does other things is late, and makes up for it.
const LATE: Duration = Duration::from_millis(200);
const SEGMENT: usize = 1_448;
const RESPONSE: usize = 80_000;
/// Requests of each class at the same time.
const LOOPS: u8 = 6;
/// The sizes of responses are learned in it.
const WARM_UP: Duration = Duration::from_secs(3);
const MEASURED: Duration = Duration::from_secs(5);

/// When the link is free.
type Link = Arc<Mutex<Instant>>;

/// Waits until the link has carried another segment.
async fn carry(link: &Link) {
    let span = RATE.transmission(Bytes(SEGMENT as u64));
    let at = {
        let mut free = link.lock().expect("no test panicked with it");
        *free = (*free).max(Instant::now() - LATE) + Duration::from_nanos(span.0);
        *free
    };
    sleep_until(at).await;
}

/// How a client asks.
#[derive(Clone, Copy, PartialEq)]
enum Through {
    Requests,
    /// In records of TLS, as far as a gateway sees them.
    Tunnels,
}

/// A record of application data, which asks for a response.
const QUESTION: [u8; 405] = {
    let mut record = [b'q'; 405];
    [record[0], record[1], record[2], record[3], record[4]] = [23, 3, 3, 1, 144];
    record
};

async fn respond(mut end: End, link: Link, through: Through) {
    let _ = socket2::SockRef::from(&end.stream).set_send_buffer_size(8_192);
    loop {
        let mut left = RESPONSE;
        match through {
            Through::Requests => {
                if end.request().await.is_none() {
                    return;
                }
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {RESPONSE}\r\n\r\n");
                end.send(head).await;
            }
            Through::Tunnels => {
                if end.exactly(QUESTION.len()).await.is_none() {
                    return;
                }
            }
        }
        while left > 0 {
            if end.stream.writable().await.is_err() {
                return;
            }
            let segment = [b'x'; SEGMENT];
            match end.stream.try_write(&segment[..left.min(SEGMENT)]) {
                Ok(size) => {
                    left -= size;
                    carry(&link).await;
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }
}

/// Asks again and again. What comes is counted while it comes.
async fn ask(mut client: Client, server: SocketAddr, through: Through, sum: Arc<Mutex<usize>>) {
    if through == Through::Tunnels {
        client.send(format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\n")).await;
        client.head().await;
    }
    loop {
        match through {
            Through::Requests => {
                let request = format!("GET http://{server}/ HTTP/1.1\r\nHost: a\r\n\r\n");
                client.send(request).await;
                client.head().await;
            }
            Through::Tunnels => client.send(QUESTION).await,
        }
        let mut left = RESPONSE;
        while left > 0 {
            let size = left.min(SEGMENT);
            client.exactly(size).await;
            left -= size;
            *sum.lock().expect("no test panicked with it") += size;
        }
    }
}

/// What these classes, of one user each, receive in the measured time.
async fn received(settings: Config, through: Through, classes: &[u8]) -> [usize; 2] {
    let link: Link = Arc::new(Mutex::new(Instant::now()));
    let server = Server::that(move |end| respond(end, link.clone(), through)).await;
    let sums: [Arc<Mutex<usize>>; 2] = Default::default();
    let now = || [0, 1].map(|class| *sums[class].lock().expect("no test panicked with it"));
    let mut result = [0; 2];
    beside(settings, async |gateway| {
        for class in classes {
            for _ in 0..LOOPS {
                let sum = sums[usize::from(*class) - 1].clone();
                let client = Client::of(gateway, *class, 1).await;
                tokio::spawn(ask(client, server.address, through, sum));
            }
        }
        tokio::time::sleep(WARM_UP).await;
        let before = now();
        tokio::time::sleep(MEASURED).await;
        let after = now();
        result = [after[0] - before[0], after[1] - before[1]];
    })
    .await;
    result
}

fn on_the_link(scheduler: &str) -> Config {
    let mut settings = config(scheduler, &[]);
    settings.rate = TOLD;
    settings.timeouts.server = Span::seconds(20);
    // Nobody is released out of order.
    settings.tunnels.max_hold = Span::seconds(60);
    settings
}

fn ratio([a, b]: [usize; 2]) -> f64 {
    a as f64 / b as f64
}

/// At least this share of the link is used, whoever uses it.
fn check_use(received: [usize; 2]) {
    let all = RATE.volume(Span(MEASURED.as_nanos() as u64)).0 as f64;
    let used = (received[0] + received[1]) as f64 / all;
    assert!(used > 0.6, "{used} of the link is used: {received:?}");
}

/// The weights are 4 and 1. The bounds allow for a machine that does other things.
#[tokio::test]
async fn classes_get_what_their_weights_say() {
    let found = received(on_the_link("msf"), Through::Requests, &[1, 2]).await;
    println!("{found:?} {}", ratio(found));
    check_use(found);
    assert!((2.5..6.5).contains(&ratio(found)), "{found:?}");
}

/// And so they do where the gateway sees bytes and no requests.
#[tokio::test]
async fn classes_get_it_through_tunnels_too() {
    let found = received(on_the_link("msf"), Through::Tunnels, &[1, 2]).await;
    println!("{found:?} {}", ratio(found));
    check_use(found);
    assert!((2.5..6.5).contains(&ratio(found)), "{found:?}");
}

/// The same without scheduling: what the tests above find is the scheduler's work.
#[tokio::test]
async fn without_a_scheduler_they_get_the_same() {
    let found = received(on_the_link("fifo"), Through::Requests, &[1, 2]).await;
    println!("{found:?} {}", ratio(found));
    check_use(found);
    assert!((0.6..1.6).contains(&ratio(found)), "{found:?}");
}

#[tokio::test]
async fn without_a_scheduler_they_get_the_same_through_tunnels() {
    let found = received(on_the_link("fifo"), Through::Tunnels, &[1, 2]).await;
    println!("{found:?} {}", ratio(found));
    check_use(found);
    assert!((0.6..1.6).contains(&ratio(found)), "{found:?}");
}

/// A class that asks for nothing leaves all to the other.
#[tokio::test]
async fn what_one_class_leaves_the_other_gets() {
    check_use(received(on_the_link("msf"), Through::Requests, &[2]).await);
}
