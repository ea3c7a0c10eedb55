//! Every end of a request frees its place, once.
//!
//! The scheduler has one place in all: if one were lost, nothing would ever be answered
//! again.

use std::net::SocketAddr;
use std::time::Duration;

use tidegate_core::Span;
use tidegate_gateway::Config;
use tokio::net::TcpListener;

use crate::bed::{Client, Server, beside, config};

fn one_place() -> Config {
    let mut config = config("paper", &[("window", "fixed"), ("start", "1")]);
    config.timeouts.server = Span::millis(400);
    config.timeouts.connect = Span::seconds(2);
    config
}

/// The place is free.
async fn check(gateway: SocketAddr, server: &Server, after: &str) {
    let mut client = Client::of(gateway, 2, 9).await;
    assert_eq!(client.get(server.address, "/5").await.body, b"xxxxx", "after {after}");
}

#[tokio::test]
async fn whatever_a_server_does_its_place_is_free_afterwards() {
    let server = Server::of_sizes().await;
    let silent = Server::that(|mut end| async move {
        end.request().await;
        std::future::pending::<()>().await;
    })
    .await;
    let stuck = Server::that(|mut end| async move {
        end.request().await;
        end.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nsome").await;
        std::future::pending::<()>().await;
    })
    .await;
    let gone = Server::that(|mut end| async move {
        end.request().await;
    })
    .await;
    let resetting = Server::that(|mut end| async move {
        end.request().await;
        end.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nsome").await;
        let _ = socket2::SockRef::from(&end.stream).set_linger(Some(Duration::ZERO));
    })
    .await;
    let senseless = Server::answering("what?\r\n\r\n").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let nobody = listener.local_addr().expect("it is bound");
    drop(listener);
    beside(one_place(), async |gateway| {
        for (name, address, status) in [
            ("silence", silent.address, Some(504)),
            ("silence within a body", stuck.address, None),
            ("an end before the response", gone.address, Some(502)),
            ("a reset within a body", resetting.address, None),
            ("nonsense", senseless.address, Some(502)),
            ("a refused connection", nobody, Some(502)),
        ] {
            let mut client = Client::of(gateway, 1, 1).await;
            client.send(format!("GET http://{address}/ HTTP/1.1\r\nHost: a\r\n\r\n")).await;
            match status {
                Some(status) => assert_eq!(client.answer().await.status(), status, "{name}"),
                None => assert!(client.rest().await.is_err(), "{name}"),
            }
            check(gateway, &server, name).await;
        }
        let mut client = Client::of(gateway, 1, 1).await;
        client.send("GET http://no-such-host.invalid/ HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(client.answer().await.status(), 502);
        check(gateway, &server, "an unknown name").await;
    })
    .await;
}

#[tokio::test]
async fn whenever_a_client_leaves_its_place_is_free_afterwards() {
    let server = Server::of_sizes().await;
    let silent = Server::that(|mut end| async move {
        end.request().await;
        std::future::pending::<()>().await;
    })
    .await;
    let mut settings = one_place();
    // Only the client's leaving frees the place.
    settings.timeouts.server = Span::seconds(1_000);
    beside(settings, async |gateway| {
        let request =
            |address, path| format!("GET http://{address}{path} HTTP/1.1\r\nHost: a\r\n\r\n");
        for abrupt in [false, true] {
            let leave = |client: Client| {
                if abrupt {
                    let _ = socket2::SockRef::from(&client.stream).set_linger(Some(Duration::ZERO));
                }
                drop(client);
            };
            let mut first = Client::of(gateway, 1, 1).await;
            first.send(request(silent.address, "/")).await;
            while silent.heard().matches("GET").count() < 1 + usize::from(abrupt) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            // One that waits in line behind it, and leaves first.
            let mut second = Client::of(gateway, 1, 2).await;
            second.send(request(server.address, "/7")).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            leave(second);
            leave(first);
            check(gateway, &server, "a server without an answer").await;

            // In the middle of a response that the client does not take.
            let mut client = Client::of(gateway, 1, 1).await;
            client.send(request(server.address, "/50000000")).await;
            client.head().await;
            leave(client);
            check(gateway, &server, "half of a response").await;

            // In the middle of an upload, which has no place yet.
            let mut client = Client::of(gateway, 1, 1).await;
            let head = request(server.address, "/").replace("GET", "POST");
            client.send(head.replace("\r\n\r\n", "\r\nContent-Length: 200000\r\n\r\nsome")).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            leave(client);
            check(gateway, &server, "half of an upload").await;
        }
    })
    .await;
}

#[tokio::test]
async fn too_many_that_wait_are_refused() {
    let silent = Server::that(|mut end| async move {
        end.request().await;
        std::future::pending::<()>().await;
    })
    .await;
    let mut settings =
        config("paper", &[("window", "fixed"), ("start", "1"), ("waiting_per_user", "2")]);
    settings.timeouts.server = Span::seconds(1_000);
    beside(settings, async |gateway| {
        let request = format!("GET http://{}/ HTTP/1.1\r\nHost: a\r\n\r\n", silent.address);
        let mut others = Vec::new();
        for _ in 0..3 {
            let mut client = Client::of(gateway, 1, 1).await;
            client.send(&request).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            others.push(client);
        }
        let mut client = Client::of(gateway, 1, 1).await;
        client.send(&request).await;
        let answer = client.answer().await;
        assert_eq!(answer.status(), 503);
        assert!(answer.has("Retry-After: 5"));
    })
    .await;
}
