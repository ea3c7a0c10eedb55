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
const SEGMENT: usize = 1_448;
const RESPONSE: usize = 80_000;
/// Requests of each class at the same time.
const LOOPS: u8 = 6;
const WARM_UP: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(5);

/// When the link is free.
type Link = Arc<Mutex<Instant>>;

/// Waits until the link has carried another segment.
async fn carry(link: &Link) {
    let span = RATE.transmission(Bytes(SEGMENT as u64));
    let at = {
        let mut free = link.lock().expect("no test panicked with it");
        *free = (*free).max(Instant::now()) + Duration::from_nanos(span.0);
        *free
    };
    sleep_until(at).await;
}

async fn respond(mut end: End, link: Link) {
    let _ = socket2::SockRef::from(&end.stream).set_send_buffer_size(8_192);
    while end.request().await.is_some() {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {RESPONSE}\r\n\r\n");
        end.send(head).await;
        let mut left = RESPONSE;
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

/// What a client asks for again and again is counted while it comes.
async fn ask(gateway: SocketAddr, server: SocketAddr, class: u8, user: u8, sum: Arc<Mutex<usize>>) {
    let mut client = Client::of(gateway, class, user).await;
    loop {
        client.send(format!("GET http://{server}/ HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        client.head().await;
        let mut left = RESPONSE;
        while left > 0 {
            let size = left.min(SEGMENT);
            client.exactly(size).await;
            left -= size;
            *sum.lock().expect("no test panicked with it") += size;
        }
    }
}

/// What classes `a` and `b`, one user each, receive in the measured time.
async fn received(settings: Config) -> [usize; 2] {
    let link: Link = Arc::new(Mutex::new(Instant::now()));
    let server = Server::that(move |end| respond(end, link.clone())).await;
    let sums: [Arc<Mutex<usize>>; 2] = Default::default();
    let now = || [0, 1].map(|class| *sums[class].lock().expect("no test panicked with it"));
    let mut result = [0; 2];
    beside(settings, async |gateway| {
        for class in [1, 2] {
            for _ in 0..LOOPS {
                let sum = sums[usize::from(class) - 1].clone();
                tokio::spawn(ask(gateway, server.address, class, 1, sum));
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
    settings.rate = RATE;
    settings.timeouts.server = Span::seconds(20);
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
    let found = received(on_the_link("msf")).await;
    println!("{found:?} {}", ratio(found));
    check_use(found);
    assert!((2.5..6.5).contains(&ratio(found)), "{found:?}");
}

/// The same without scheduling: what the test above finds is the scheduler's work.
#[tokio::test]
async fn without_a_scheduler_they_get_the_same() {
    let found = received(on_the_link("fifo")).await;
    println!("{found:?} {}", ratio(found));
    check_use(found);
    assert!((0.5..2.0).contains(&ratio(found)), "{found:?}");
}

/// A class that asks for nothing leaves all to the other.
#[tokio::test]
async fn what_one_class_leaves_the_other_gets() {
    let link: Link = Arc::new(Mutex::new(Instant::now()));
    let server = Server::that(move |end| respond(end, link.clone())).await;
    let sum: Arc<Mutex<usize>> = Arc::default();
    let now = || *sum.lock().expect("no test panicked with it");
    beside(on_the_link("msf"), async |gateway| {
        for _ in 0..LOOPS {
            tokio::spawn(ask(gateway, server.address, 2, 1, sum.clone()));
        }
        tokio::time::sleep(WARM_UP).await;
        let before = now();
        tokio::time::sleep(MEASURED).await;
        check_use([now() - before, 0]);
    })
    .await;
}
