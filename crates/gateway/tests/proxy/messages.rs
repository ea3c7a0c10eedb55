//! What passes, and what is refused.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::Span;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::bed::{Client, Server, beside, config, soon};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[tokio::test]
async fn connections_are_kept_on_both_sides() {
    let server = Server::answering(OK).await;
    beside(config("msf", &[]), async |gateway| {
        let mut client = Client::of(gateway, 1, 1).await;
        for _ in 0..3 {
            let answer = client.get(server.address, "/x?y").await;
            assert_eq!((answer.status(), answer.body), (200, b"ok".to_vec()));
        }
        // Another client's request finds the same connection.
        let mut other = Client::of(gateway, 2, 1).await;
        assert_eq!(other.get(server.address, "/x?y").await.status(), 200);
        assert_eq!(server.connections(), 1);
        let heard = server.heard();
        assert!(heard.starts_with("GET /x?y HTTP/1.1\r\nHost: 127.0.0.1:"), "{heard}");
        assert_eq!(heard.matches("Via: 1.1 tidegate\r\n").count(), 4);
    })
    .await;
}

#[tokio::test]
async fn who_breaks_a_response_off_opens_the_next_connection() {
    let lost = Arc::new(Notify::new());
    let tell = lost.clone();
    let server = Server::that(move |mut end| {
        let tell = tell.clone();
        async move {
            while let Some(request) = end.request().await {
                let size = if request.starts_with("GET /half ") { 4 } else { 2 };
                end.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\nok")).await;
            }
            tell.notify_one();
        }
    })
    .await;
    beside(config("msf", &[]), async |gateway| {
        let mut breaking = Client::of(gateway, 1, 1).await;
        let half = format!("GET http://{}/half HTTP/1.1\r\nHost: a\r\n\r\n", server.address);
        breaking.send(half).await;
        breaking.head().await;
        let mut other = Client::of(gateway, 1, 2).await;
        assert_eq!(other.get(server.address, "/").await.body, b"ok");
        assert_eq!(server.connections(), 2);
        drop(breaking);
        soon(lost.notified()).await;

        // One is kept, and whoever has lost the other brings a new one.
        let mut same = Client::of(gateway, 1, 1).await;
        assert_eq!(same.get(server.address, "/").await.body, b"ok");
        assert_eq!(server.connections(), 3);
        for client in [&mut other, &mut same] {
            assert_eq!(client.get(server.address, "/").await.body, b"ok");
        }
        assert_eq!(server.connections(), 3);
    })
    .await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = Server::of_sizes().await;
    beside(config("msf", &[]), async |gateway| {
        let mut client = Client::of(gateway, 1, 1).await;
        let address = server.address;
        let request = |size| format!("GET http://{address}/{size} HTTP/1.1\r\nHost: a\r\n\r\n");
        client.send([request(3), request(40_000), request(5)].concat()).await;
        for size in [3, 40_000, 5] {
            assert_eq!(client.answer().await.body.len(), size);
        }
    })
    .await;
}

#[tokio::test]
async fn chunks_and_trailers_pass_and_old_clients_get_the_content() {
    let body = "5\r\nhello\r\n6\r\n world\r\n0\r\nServer-Timing: db\r\n\r\n";
    let server = Server::answering(format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Server-Timing\r\n\r\n{body}"
    ))
    .await;
    beside(config("msf", &[]), async |gateway| {
        let mut client = Client::of(gateway, 1, 1).await;
        for _ in 0..2 {
            let request = format!("GET http://{} HTTP/1.1\r\nHost: a\r\n\r\n", server.address);
            client.send(request).await;
            let head = client.head().await;
            assert!(head.contains("\r\nTransfer-Encoding: chunked\r\n"), "{head}");
            assert!(head.contains("\r\nTrailer: Server-Timing\r\n"), "{head}");
            assert_eq!(client.exactly(body.len()).await, body.as_bytes());
        }
        let mut old = Client::of(gateway, 1, 1).await;
        old.send(format!("GET http://{}/ HTTP/1.0\r\n\r\n", server.address)).await;
        let answer = old.answer().await;
        assert!(answer.has("Connection: close") && !answer.head.contains("chunked"));
        assert_eq!(answer.body, b"hello world");
        assert_eq!(server.connections(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_body_that_ends_with_the_connection_does_so_for_the_client() {
    let server = Server::that(|mut end| async move {
        end.request().await;
        end.send("HTTP/1.1 200 OK\r\n\r\nall there is").await;
    })
    .await;
    beside(config("msf", &[]), async |gateway| {
        let mut client = Client::of(gateway, 1, 1).await;
        let answer = client.get(server.address, "/").await;
        assert!(answer.has("Connection: close"));
        assert_eq!(answer.body, b"all there is");
    })
    .await;
}

#[tokio::test]
async fn a_response_that_is_broken_off_does_not_look_complete() {
    for head in ["Content-Length: 100", "Transfer-Encoding: chunked"] {
        let server = Server::that(move |mut end| async move {
            end.request().await;
            end.send(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n3\r\nabc\r\n")).await;
        })
        .await;
        beside(config("msf", &[]), async |gateway| {
            let mut client = Client::of(gateway, 1, 1).await;
            let request = format!("GET http://{} HTTP/1.1\r\nHost: a\r\n\r\n", server.address);
            client.send(request).await;
            client.head().await;
            assert!(client.rest().await.is_err(), "{head}: the connection must be reset");
        })
        .await;
    }
}

#[tokio::test]
async fn responses_without_a_body_end_with_their_head() {
    let server = Server::that(|mut end| async move {
        while let Some(head) = end.request().await {
            end.send(match head.starts_with("HEAD") {
                true => "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n",
                false if head.contains("/204") => "HTTP/1.1 204 No Content\r\n\r\n",
                false => "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
            })
            .await;
        }
    })
    .await;
    beside(config("msf", &[]), async |gateway| {
        let mut client = Client::of(gateway, 1, 1).await;
        for (line, status, length) in [
            ("HEAD /", "200", Some("7")),
            ("GET /204", "204", None),
            ("GET /304", "304", Some("9")),
        ] {
            let (method, path) = line.split_once(' ').expect("two words");
            let target = format!("{method} http://{}{path} HTTP/1.1", server.address);
            client.send(format!("{target}\r\nHost: a\r\n\r\n")).await;
            let head = client.head().await;
            assert_eq!(&head[9..12], status);
            let found = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            assert_eq!(found, length);
        }
        assert_eq!(server.connections(), 1);
    })
    .await;
}

#[tokio::test]
async fn bodies_of_requests_arrive_whole_small_and_large() {
    let server = Server::that(|mut end| async move {
        while let Some(head) = end.request().await {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            let size = length.and_then(|length| length.parse().ok()).unwrap_or(0);
            let body = end.exactly(size).await.unwrap_or_default();
            let sum: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
            let text = format!("{size} {sum}");
            let length = text.len();
            end.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{text}")).await;
        }
    })
    .await;
    beside(config("msf", &[]), async |gateway| {
        let mut client = Client::of(gateway, 1, 1).await;
        for size in [0, 1, 64_000, 64_001, 3_000_000] {
            let body: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            let sum: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
            let head = format!(
                "POST http://{}/ HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n",
                server.address
            );
            client.send([head.as_bytes(), &body].concat()).await;
            let answer = client.answer().await;
            assert_eq!(String::from_utf8_lossy(&answer.body), format!("{size} {sum}"));
        }
    })
    .await;
}

#[tokio::test]
async fn an_expectation_goes_to_the_server_and_its_consent_comes_back() {
    let server = Server::that(|mut end| async move {
        let head = end.request().await.expect("a request");
        assert!(head.contains("\r\nExpect: 100-continue\r\n"));
        end.send("HTTP/1.1 100 Continue\r\n\r\n").await;
        let body = end.exactly(4).await.expect("a body");
        end.send("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n").await;
        end.send([OK.replace("ok", "").replace('2', "4").as_bytes(), &body].concat()).await;
    })
    .await;
    beside(config("msf", &[]), async |gateway| {
        let mut client = Client::of(gateway, 1, 1).await;
        client
            .send(format!(
                "PUT http://{}/ HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\
                 Content-Length: 4\r\n\r\n",
                server.address
            ))
            .await;
        assert!(client.head().await.starts_with("HTTP/1.1 100 "));
        client.send("body").await;
        assert!(client.head().await.contains("\r\nLink: </x>\r\n"));
        assert_eq!(client.answer().await.body, b"body");
    })
    .await;
}

#[tokio::test]
async fn a_server_may_refuse_an_upload_before_its_end() {
    let server = Server::that(|mut end| async move {
        end.request().await;
        end.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno").await;
        // Nothing more is read, and the connection stays.
        std::future::pending::<()>().await;
    })
    .await;
    beside(config("msf", &[]), async |gateway| {
        let mut client = Client::of(gateway, 1, 1).await;
        client
            .send(format!(
                "POST http://{}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n",
                server.address
            ))
            .await;
        let answer = client.answer().await;
        assert_eq!((answer.status(), &answer.body[..]), (413, &b"no"[..]));
        assert!(answer.has("Connection: close"));
    })
    .await;
}

#[tokio::test]
async fn what_smuggles_requests_is_refused_and_reaches_no_server() {
    let server = Server::answering(OK).await;
    beside(config("msf", &[]), async |gateway| {
        let target = format!("POST http://{}/ HTTP/1.1\r\nHost: a\r\n", server.address);
        for (rest, status) in [
            ("Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400),
            ("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
            ("Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
            ("X: a\r\n b\r\n\r\n", 400),
            ("X: a\nContent-Length: 3\r\n\r\nabc", 400),
            ("X : a\r\n\r\n", 400),
            ("Host: b\r\n\r\n", 400),
            // Lengths that some readers take for numbers.
            ("Content-Length: +3\r\n\r\nabc", 400),
            ("Content-Length: -3\r\n\r\nabc", 400),
            ("Content-Length: 0x3\r\n\r\nabc", 400),
            ("Content-Length: 3 \t3\r\n\r\nabc", 400),
            ("Content-Length: 3, 4\r\n\r\nabc", 400),
            ("Content-Length: 99999999999999999999\r\n\r\nabc", 400),
            ("Content-Length:\r\n\r\nabc", 400),
            // Codings that some readers take for `chunked`.
            ("Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 501),
            ("Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 501),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n", 501),
            ("Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400),
            ("Transfer_Encoding\0: chunked\r\n\r\n0\r\n\r\n", 400),
            // Ends of lines and of heads that some readers see.
            ("X: a\rContent-Length: 3\r\n\r\nabc", 400),
            ("X: a\0b\r\n\r\n", 400),
            ("X: a\r\n\nabc", 400),
            (": a\r\n\r\n", 400),
            (" X: a\r\n\r\n", 400),
            ("X\r\n\r\n", 400),
        ] {
            let mut client = Client::of(gateway, 1, 1).await;
            client.send(format!("{target}{rest}")).await;
            let answer = client.answer().await;
            assert_eq!(answer.status(), status, "{rest}");
            assert!(answer.has("Connection: close"));
            assert_eq!(client.rest().await.expect("it ends in order"), b"", "{rest}");
        }
        // What is wrong with chunks comes after the head has gone.
        for chunks in [
            "3;a=b\r\nabc\r\n0\r\n\r\n",
            "3\nabc\r\n0\r\n\r\n",
            "3\r\nabcd\r\n0\r\n\r\n",
            "0x3\r\nabc\r\n0\r\n\r\n",
            " 3\r\nabc\r\n0\r\n\r\n",
            "-3\r\nabc\r\n0\r\n\r\n",
            "fffffffffffffffff\r\nabc\r\n0\r\n\r\n",
            "\r\nabc\r\n0\r\n\r\n",
        ] {
            let mut client = Client::of(gateway, 1, 1).await;
            client.send(format!("{target}Transfer-Encoding: chunked\r\n\r\n")).await;
            client.send(chunks).await;
            assert_eq!(client.answer().await.status(), 400, "{chunks:?}");
        }
        assert!(!server.heard().contains("abc"));
        let lines = [
            ("POST /only-a-path HTTP/1.1", 400),
            ("POST ftp://a/ HTTP/1.1", 400),
            ("POST http://user@a/ HTTP/1.1", 400),
            ("POST http://a:0/ HTTP/1.1", 400),
            ("POST http://a:99999/ HTTP/1.1", 400),
            ("POST http:///x HTTP/1.1", 400),
            ("POST  http://a/ HTTP/1.1", 400),
            ("POST http://a/ b HTTP/1.1", 505),
            ("POST http://a/ HTTP/2.0", 505),
            ("POST http://a/ HTTP/1.1 ", 400),
            ("POST http://a/", 400),
            ("PO\u{7f}ST http://a/ HTTP/1.1", 400),
            ("CONNECT a HTTP/1.1", 400),
            ("CONNECT a:0 HTTP/1.1", 400),
            ("CONNECT http://a:80/ HTTP/1.1", 400),
            ("TRACE http://a/ HTTP/1.1", 405),
        ];
        for (line, status) in lines {
            let mut client = Client::of(gateway, 1, 1).await;
            client.send(format!("{line}\r\nHost: a\r\n\r\n")).await;
            assert_eq!(client.answer().await.status(), status, "{line:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_response_of_two_lengths_is_no_response() {
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked",
        "HTTP/1.1 200 OK\nContent-Length: 2",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade",
        "SSH-2.0-OpenSSH_9",
    ] {
        let server = Server::answering(format!("{head}\r\n\r\nok")).await;
        beside(config("msf", &[]), async |gateway| {
            let mut client = Client::of(gateway, 1, 1).await;
            assert_eq!(client.get(server.address, "/").await.status(), 502, "{head}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_head_has_a_largest_size_and_a_longest_time() {
    let mut settings = config("msf", &[]);
    settings.timeouts.head = Span::millis(300);
    beside(settings, async |gateway| {
        // A piece now and then keeps it alive no longer, and nor do empty lines before it.
        for (begun, piece) in [("GET http://a.example/ HTTP/1.1\r\n", "X"), ("\r\n", "\r\n")] {
            let mut client = Client::of(gateway, 1, 1).await;
            client.send(begun).await;
            let drip = async {
                let mut byte = [0];
                loop {
                    tokio::select! {
                        _ = client.stream.peek(&mut byte) => break,
                        () = sleep(Duration::from_millis(50)) => {
                            let _ = client.stream.try_write(piece.as_bytes());
                        }
                    }
                }
            };
            soon(drip).await;
            assert_eq!(client.answer().await.status(), 408);
        }

        let mut client = Client::of(gateway, 1, 1).await;
        let field = format!("X: {}\r\n", "x".repeat(1_000));
        client.send(format!("GET http://a/ HTTP/1.1\r\n{}", field.repeat(40))).await;
        assert_eq!(client.answer().await.status(), 431);
    })
    .await;
}

#[tokio::test]
async fn a_client_that_asks_for_nothing_is_left_after_a_time() {
    let server = Server::answering(OK).await;
    let mut settings = config("msf", &[]);
    settings.timeouts.idle = Span::millis(300);
    beside(settings, async |gateway| {
        let mut silent = Client::of(gateway, 1, 1).await;
        let mut busy = Client::of(gateway, 1, 2).await;
        for _ in 0..20 {
            assert_eq!(busy.get(server.address, "/").await.status(), 200);
            sleep(Duration::from_millis(50)).await;
        }
        for client in [&mut silent, &mut busy] {
            assert_eq!(soon(client.rest()).await.expect("it ends in order"), b"");
        }
    })
    .await;
}

#[tokio::test]
async fn it_is_no_open_proxy_and_no_way_into_the_machine() {
    let server = Server::answering(OK).await;
    let mut settings = config("msf", &[]);
    settings.local_targets.clear();
    beside(settings, async |gateway| {
        let mut stranger = Client::of(gateway, 3, 1).await;
        assert_eq!(stranger.get(server.address, "/").await.status(), 403);
        for host in ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]", "0x7f.1"] {
            let mut client = Client::of(gateway, 1, 1).await;
            let port = server.address.port();
            client.send(format!("GET http://{host}:{port}/ HTTP/1.1\r\nHost: a\r\n\r\n")).await;
            assert_eq!(client.answer().await.status(), 403, "{host}");
        }
        let mut client = Client::of(gateway, 1, 1).await;
        client.send("GET http://169.254.169.254/ HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(client.answer().await.status(), 403);
        assert_eq!(server.connections(), 0);
    })
    .await;
    // Not even where local targets are permitted does it talk to itself.
    beside(config("msf", &[]), async |gateway| {
        let mut client = Client::of(gateway, 1, 1).await;
        assert_eq!(client.get(gateway, "/").await.status(), 403);
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_its_server_has_closed_is_replaced() {
    let server = Server::that(|mut end| async move {
        end.request().await;
        end.send(OK).await;
        // It closes without having said so, at the second request.
        end.request().await;
    })
    .await;
    beside(config("msf", &[]), async |gateway| {
        let mut client = Client::of(gateway, 1, 1).await;
        for _ in 0..3 {
            assert_eq!(soon(client.get(server.address, "/")).await.status(), 200);
        }
        assert_eq!(server.connections(), 3);
    })
    .await;
}
