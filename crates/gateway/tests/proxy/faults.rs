//! Ends that fail, in every state that they can be in, leave nothing behind and harm
//! nobody else.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tidegate_core::Span;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::admin::status;
use crate::bed::{Client, End, Server, beside_admin, config, soon};

const STEP: Duration = Duration::from_millis(20);

/// Waits until nothing is left of all connections but those that are kept.
async fn nothing_is_left(admin: SocketAddr, after: &str) {
    let all = async {
        loop {
            let now = status(admin).await;
            let left = [now.held, now.outstanding, now.waiting, now.tunnels, now.connections];
            if left == [0; 5] {
                return;
            }
            sleep(STEP).await;
        }
    };
    let done = tokio::time::timeout(Duration::from_secs(20), all).await;
    assert!(done.is_ok(), "after {after}: {:?}", status(admin).await);
}

/// Has a connection that is dropped end in a reset.
fn reset(stream: &TcpStream) {
    let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

/// Waits for a request, which comes in one piece.
async fn heard(stream: &mut TcpStream) {
    let size = soon(stream.read(&mut [0; 4_096])).await;
    assert!(size.is_ok_and(|size| size > 0), "the gateway is gone");
}

async fn never(mut end: End) {
    end.request().await;
    std::future::pending::<()>().await;
}

/// A server that the kernel answers for, and nobody else.
async fn deaf() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().expect("there are sockets");
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
    let address = socket.local_addr().expect("it is bound");
    (socket, address)
}

#[tokio::test]
async fn a_client_that_resets_in_any_state_leaves_nothing_behind() {
    let large = Server::of_sizes().await;
    let silent = Server::that(never).await;
    let socket = Server::that(|mut end| async move {
        end.request().await;
        end.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
            .await;
        std::future::pending::<()>().await;
    })
    .await;
    let flood = Server::that(|mut end| async move {
        while end.stream.write_all(&[b'x'; 65_536]).await.is_ok() {}
    })
    .await;
    // Its queue has one place, which this connection takes: others wait for the handshake.
    let (deaf, full) = deaf().await;
    let _listening = deaf.listen(0).expect("it listens");
    let _first = TcpStream::connect(full).await.expect("there is one place");
    let mut settings = config("msf", &[]);
    settings.timeouts.connect = Span::seconds(2);
    // Only that the client is gone ends anything.
    settings.timeouts.server = Span::seconds(1_000);
    settings.timeouts.client = Span::seconds(1_000);

    beside_admin(settings, async |gateway, admin| {
        let get = |to: SocketAddr| format!("GET http://{to}/90000000 HTTP/1.1\r\nHost: a\r\n\r\n");
        let connect = |to: SocketAddr| format!("CONNECT {to} HTTP/1.1\r\nHost: a\r\n\r\n");
        let upload = get(silent.address).replace("GET", "POST");
        let upload = upload.replace("\r\n\r\n", "\r\nContent-Length: 9000000\r\n\r\nsome");
        let small = upload.replace("9000000\r\n", "9000\r\n");
        let upgrade = get(socket.address);
        let upgrade = upgrade.replace("\r\n\r\n", "\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n");
        let states = [
            ("nothing at all", String::new(), false),
            ("half a head", "GET http://a.exam".into(), false),
            ("a question to a server without an answer", get(silent.address), false),
            ("a head and half of a response", get(large.address), true),
            ("half of a small body", small, false),
            ("half of an upload", upload, false),
            ("a handshake that nobody answers", get(full), false),
            ("the same for a tunnel", connect(full), false),
            ("an idle tunnel", connect(silent.address), true),
            ("a tunnel full of what it does not take", connect(flood.address), true),
            ("another protocol", upgrade, true),
            ("several requests at once", get(large.address).repeat(3), true),
        ];
        for (state, request, has_head) in states {
            for finishes_first in [false, true] {
                let mut client = Client::of(gateway, 1, 1).await;
                client.send(&request).await;
                if has_head {
                    client.head().await;
                } else {
                    sleep(STEP).await;
                }
                if finishes_first {
                    client.stream.shutdown().await.expect("it is open");
                    sleep(STEP).await;
                }
                reset(&client.stream);
                drop(client);
                nothing_is_left(admin, state).await;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_killed_and_starts_again_is_found_again() {
    // It answers once on each connection, and then dies in the middle of the next response.
    let start = async |address: SocketAddr| {
        let socket = TcpSocket::new_v4().expect("there are sockets");
        socket.set_reuseaddr(true).expect("it can be");
        socket.bind(address).expect("its port is its own");
        socket.listen(16).expect("it listens")
    };
    let listener = start((Ipv4Addr::LOCALHOST, 0).into()).await;
    let address = listener.local_addr().expect("it is bound");
    beside_admin(config("msf", &[]), async |gateway, admin| {
        let serve = async |listener: &TcpListener| {
            let (mut stream, _) = soon(listener.accept()).await.expect("the gateway dials");
            stream.set_nodelay(true).expect("it can be");
            heard(&mut stream).await;
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
            stream.write_all(answer.as_bytes()).await.expect("the gateway reads");
            stream
        };
        let mut listener = listener;
        for _ in 0..3 {
            let mut client = Client::of(gateway, 1, 1).await;
            let (answer, mut stream) = tokio::join!(client.get(address, "/"), serve(&listener));
            assert_eq!(answer.body, b"ok");
            // The connection is kept, and used for what dies.
            client.send(format!("GET http://{address}/ HTTP/1.1\r\nHost: a\r\n\r\n")).await;
            heard(&mut stream).await;
            let part = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome";
            stream.write_all(part.as_bytes()).await.expect("the gateway reads");
            client.head().await;
            drop(listener);
            reset(&stream);
            drop(stream);
            assert!(client.rest().await.is_err(), "it must not look complete");
            let mut client = Client::of(gateway, 1, 1).await;
            assert_eq!(client.get(address, "/").await.status(), 502, "nobody is there");
            listener = start(address).await;
        }
        nothing_is_left(admin, "all of it").await;
    })
    .await;
}

#[tokio::test]
async fn who_sends_slowly_or_asks_servers_that_do_harms_no_other_user() {
    let server = Server::of_sizes().await;
    // A byte now and then, for ever.
    let tarpit = Server::that(|mut end| async move {
        end.request().await;
        end.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n").await;
        while end.stream.write_all(b"x").await.is_ok() {
            sleep(STEP).await;
        }
    })
    .await;
    let mut settings = config("msf", &[]);
    settings.timeouts.head = Span::seconds(1);
    settings.limits.connections_per_user = 60;
    beside_admin(settings, async |gateway, admin| {
        let mut attackers = JoinSet::new();
        for number in 0..40 {
            // A loris: a head that never ends. Its connection does.
            attackers.spawn(async move {
                let mut client = Client::of(gateway, 2, 1).await;
                client.send("GET http://a.example/ HTTP/1.1\r\n").await;
                while client.stream.write_all(b"X").await.is_ok() {
                    sleep(STEP).await;
                }
            });
            let to = tarpit.address;
            attackers.spawn(async move {
                let mut client = Client::of(gateway, 2, 2).await;
                client.send(format!("GET http://{to}/{number} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
                let _ = client.rest().await;
            });
            // It takes nothing of a large response.
            let to = server.address;
            attackers.spawn(async move {
                let mut client = Client::of(gateway, 2, 3).await;
                client.send(format!("GET http://{to}/9000000 HTTP/1.1\r\nHost: a\r\n\r\n")).await;
                std::future::pending::<()>().await;
            });
        }
        while status(admin).await.connections < 100 {
            sleep(STEP).await;
        }
        for _ in 0..10 {
            // Each within the time that any step may take, which tarpits outlast.
            let mut client = Client::of(gateway, 1, 1).await;
            assert_eq!(client.get(server.address, "/5000").await.body.len(), 5_000);
        }
        while status(admin).await.connections > 80 {
            sleep(STEP).await;
        }
        attackers.shutdown().await;
        nothing_is_left(admin, "all attackers").await;
    })
    .await;
}

#[tokio::test]
async fn one_user_cannot_take_all_connections() {
    let server = Server::of_sizes().await;
    let mut settings = config("msf", &[]);
    settings.limits.connections_per_user = 5;
    beside_admin(settings, async |gateway, admin| {
        let mut open = Vec::new();
        for _ in 0..5 {
            open.push(Client::of(gateway, 1, 1).await);
        }
        let sixth = Client::of(gateway, 1, 1).await.rest().await;
        assert!(sixth.is_err() || sixth.is_ok_and(|bytes| bytes.is_empty()));
        let mut other = Client::of(gateway, 1, 2).await;
        assert_eq!(other.get(server.address, "/5").await.body, b"xxxxx");
        drop((open, other));
        nothing_is_left(admin, "all of them").await;
        let mut first = Client::of(gateway, 1, 1).await;
        assert_eq!(first.get(server.address, "/5").await.body, b"xxxxx");
    })
    .await;
}

#[tokio::test]
async fn names_that_lead_nowhere_fail_and_leave_nothing() {
    let server = Server::of_sizes().await;
    let label = "x".repeat(64);
    beside_admin(config("msf", &[]), async |gateway, admin| {
        let mut all = JoinSet::new();
        for number in 0..30 {
            // No question leaves this machine: a label has at most 63 letters.
            let name = format!("{number}.{label}.example");
            all.spawn(async move {
                let mut client = Client::of(gateway, 2, 1).await;
                client.send(format!("GET http://{name}/ HTTP/1.1\r\nHost: a\r\n\r\n")).await;
                let answer = client.answer().await.status();
                let mut client = Client::of(gateway, 2, 1).await;
                client.send(format!("CONNECT {name}:443 HTTP/1.1\r\nHost: a\r\n\r\n")).await;
                (answer, client.answer().await.status())
            });
        }
        let mut client = Client::of(gateway, 1, 1).await;
        let port = server.address.port();
        client.send(format!("GET http://localhost:{port}/5 HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        assert_eq!(client.answer().await.body, b"xxxxx");
        while let Some(answers) = all.join_next().await {
            assert_eq!(answers.expect("it does not panic"), (502, 502));
        }
        drop(client);
        nothing_is_left(admin, "thirty names").await;
    })
    .await;
}
