//! CONNECT, WebSocket, rows of events, and SSH.

use std::net::SocketAddr;
use std::time::Duration;

use tidegate_core::Span;
use tidegate_gateway::Config;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

use crate::bed::{Client, End, Server, beside, config, soon};

/// One place in all, which a server without an answer can hold.
fn one_place() -> Config {
    config("paper", &[("window", "fixed"), ("start", "1")])
}

async fn echo(mut end: End) {
    let mut bytes = vec![0; 65_536];
    while let Ok(size @ 1..) = end.stream.read(&mut bytes).await {
        end.send(&bytes[..size]).await;
    }
}

/// A client that has a tunnel to this server.
async fn tunnel(gateway: SocketAddr, server: SocketAddr) -> Client {
    let mut client = Client::of(gateway, 1, 1).await;
    client.send(format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\n")).await;
    assert!(client.head().await.starts_with("HTTP/1.1 200 "));
    client
}

/// A client whose request holds the place until the client is dropped.
async fn holder(gateway: SocketAddr, silent: &Server) -> Client {
    let before = silent.heard().len();
    let mut client = Client::of(gateway, 2, 1).await;
    client.send(format!("GET http://{}/ HTTP/1.1\r\nHost: a\r\n\r\n", silent.address)).await;
    while silent.heard().len() == before {
        sleep(Duration::from_millis(5)).await;
    }
    client
}

async fn silent() -> Server {
    Server::that(|mut end| async move {
        end.request().await;
        std::future::pending::<()>().await;
    })
    .await
}

/// A record of TLS with so many bytes of content.
fn record(kind: u8, size: u16) -> Vec<u8> {
    let [high, low] = size.to_be_bytes();
    [&[kind, 3, 3, high, low][..], &vec![kind; usize::from(size)]].concat()
}

#[tokio::test]
async fn bytes_pass_both_ways_and_either_end_may_finish_first() {
    let server = Server::that(echo).await;
    let last = Server::that(|mut end| async move {
        end.exactly(2).await;
        end.send("bye").await;
    })
    .await;
    beside(config("msf", &[]), async |gateway| {
        let mut client = tunnel(gateway, server.address).await;
        let bytes: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
        for _ in 0..2 {
            client.send(&bytes).await;
            assert!(client.exactly(bytes.len()).await == bytes);
        }
        client.send("end").await;
        client.stream.shutdown().await.expect("it is open");
        assert_eq!(client.rest().await.expect("it ends in order"), b"end");

        let mut client = tunnel(gateway, last.address).await;
        client.send("hi").await;
        assert_eq!(client.rest().await.expect("it ends in order"), b"bye");
    })
    .await;
}

/// Reads of much and of little in turn, and a client that does not read for a while: whatever
/// the gateway keeps bytes in meanwhile, they come whole and in order.
#[tokio::test]
async fn bulk_and_single_bytes_in_turn_come_whole_and_in_order() {
    fn pattern(from: usize, count: usize) -> Vec<u8> {
        (from..from + count).map(|at| (at % 251) as u8).collect()
    }
    const PARTS: [(usize, usize); 4] = [(1, 12_000_000), (40, 1), (1, 6_000_000), (3, 7)];
    let server = Server::that(|mut end| async move {
        end.exactly(1).await;
        let mut at = 0;
        for (times, size) in PARTS {
            for _ in 0..times {
                end.send(pattern(at, size)).await;
                at += size;
                sleep(Duration::from_millis(2)).await;
            }
        }
    })
    .await;
    for scheduler in ["fifo", "msf"] {
        beside(config(scheduler, &[]), async |gateway| {
            let mut client = tunnel(gateway, server.address).await;
            client.send("?").await;
            sleep(Duration::from_millis(200)).await;
            let all = PARTS.iter().map(|(times, size)| times * size).sum();
            let came = client.rest().await.expect("it ends in order");
            assert_eq!(came.len(), all);
            assert!(came == pattern(0, all), "bytes are changed or out of order");
        })
        .await;
    }
}

#[tokio::test]
async fn a_request_is_held_until_it_is_released_and_the_handshake_is_not() {
    let (server, silent) = (Server::that(echo).await, silent().await);
    beside(one_place(), async |gateway| {
        let holder = holder(gateway, &silent).await;
        let mut client = tunnel(gateway, server.address).await;
        // The handshake, and a window update of HTTP/2.
        for piece in [record(22, 500), record(20, 1), record(23, 30)] {
            client.send(&piece).await;
            assert!(client.exactly(piece.len()).await == piece);
        }
        // What came back is a response until it has been quiet for 200 ms.
        sleep(Duration::from_millis(600)).await;
        let request = [record(23, 400), record(23, 30)].concat();
        client.send(&request).await;
        let mut byte = [0];
        let early = tokio::time::timeout(Duration::from_millis(300), client.stream.peek(&mut byte));
        assert!(early.await.is_err(), "it was not held");
        drop(holder);
        assert!(client.exactly(request.len()).await == request);
    })
    .await;
}

#[tokio::test]
async fn nothing_is_held_for_ever() {
    let (server, silent) = (Server::that(echo).await, silent().await);
    let mut settings = one_place();
    settings.tunnels.max_hold = Span::millis(300);
    beside(settings, async |gateway| {
        let _holder = holder(gateway, &silent).await;
        let mut client = tunnel(gateway, server.address).await;
        client.send(record(23, 400)).await;
        assert_eq!(client.exactly(405).await.len(), 405);
    })
    .await;
}

#[tokio::test]
async fn a_held_client_that_leaves_is_no_longer_in_line() {
    let (server, silent) = (Server::that(echo).await, silent().await);
    let answering = Server::of_sizes().await;
    beside(one_place(), async |gateway| {
        let holder = holder(gateway, &silent).await;
        let mut client = tunnel(gateway, server.address).await;
        client.send(record(23, 400)).await;
        sleep(Duration::from_millis(100)).await;
        drop(client);
        drop(holder);
        let mut next = Client::of(gateway, 1, 2).await;
        assert_eq!(next.get(answering.address, "/3").await.body, b"xxx");
        assert_eq!(server.heard(), "");
    })
    .await;
}

#[tokio::test]
async fn ssh_and_websockets_are_never_held() {
    let (ssh, silent) = (Server::that(echo).await, silent().await);
    let socket = Server::that(|mut end| async move {
        let head = end.request().await.expect("a request");
        assert!(head.contains("\r\nUpgrade: websocket\r\n"), "{head}");
        end.send(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\nfirst",
        )
        .await;
        echo(end).await;
    })
    .await;
    beside(one_place(), async |gateway| {
        let mut web = Client::of(gateway, 1, 2).await;
        web.send(format!(
            "GET http://{}/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\n\r\n",
            socket.address
        ))
        .await;
        let head = web.head().await;
        assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("\r\nConnection: upgrade\r\n"));
        assert_eq!(web.exactly(5).await, b"first");

        let _holder = holder(gateway, &silent).await;
        let mut shell = tunnel(gateway, ssh.address).await;
        let key = [b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), vec![b'k'; 1_500]].concat();
        for _ in 0..2 {
            shell.send(&key).await;
            assert!(shell.exactly(key.len()).await == key);
            web.send(vec![b'm'; 2_000]).await;
            assert_eq!(web.exactly(2_000).await, [b'm'; 2_000]);
        }
    })
    .await;
}

#[tokio::test]
async fn a_row_of_events_holds_no_place_and_is_not_given_up() {
    let answering = Server::of_sizes().await;
    let events = Server::that(|mut end| async move {
        end.request().await;
        end.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n").await;
        for _ in 0..3 {
            sleep(Duration::from_millis(400)).await;
            end.send("data: x\n\n").await;
        }
    })
    .await;
    let mut settings = one_place();
    settings.timeouts.server = Span::millis(200);
    beside(settings, async |gateway| {
        let mut client = Client::of(gateway, 1, 1).await;
        client.send(format!("GET http://{}/ HTTP/1.1\r\nHost: a\r\n\r\n", events.address)).await;
        client.head().await;
        let mut other = Client::of(gateway, 1, 2).await;
        assert_eq!(other.get(answering.address, "/3").await.status(), 200);
        let all = soon(client.rest()).await.expect("it ends in order");
        assert_eq!(all, b"data: x\n\n".repeat(3));
    })
    .await;
}

#[tokio::test]
async fn a_tunnel_leads_nowhere_that_a_request_may_not_go() {
    let server = Server::that(echo).await;
    let mut settings = config("msf", &[]);
    settings.local_targets.clear();
    beside(settings, async |gateway| {
        for target in [server.address, gateway] {
            let mut client = Client::of(gateway, 1, 1).await;
            client.send(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")).await;
            assert_eq!(client.answer().await.status(), 403);
        }
        assert_eq!(server.connections(), 0);
    })
    .await;
}
