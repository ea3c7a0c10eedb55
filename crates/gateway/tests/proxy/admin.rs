//! What the gateway says about itself.

use std::net::SocketAddr;
use std::time::Duration;

use tidegate_gateway::Status;

use crate::bed::{Answer, Client, Server, beside_admin, config};

async fn ask(admin: SocketAddr, line: &str, host: &str) -> Answer {
    let mut client = Client::local(admin).await;
    client.send(format!("{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")).await;
    let head = client.head().await;
    let body = client.rest().await.expect("it ends in order");
    Answer { head, body }
}

pub(crate) async fn status(admin: SocketAddr) -> Status {
    let answer = ask(admin, "GET /status", &admin.to_string()).await;
    assert_eq!(answer.status(), 200);
    serde_json::from_slice(&answer.body).expect("a status")
}

#[tokio::test]
async fn what_was_done_is_counted_where_it_belongs() {
    let server = Server::of_sizes().await;
    let silent = Server::that(|mut end| async move {
        end.request().await;
        std::future::pending::<()>().await;
    })
    .await;
    beside_admin(
        config("paper", &[("window", "fixed"), ("start", "2")]),
        async |gateway, admin| {
            let mut first = Client::of(gateway, 1, 1).await;
            for _ in 0..3 {
                first.get(server.address, "/10000").await;
            }
            let mut second = Client::of(gateway, 2, 7).await;
            second.get(server.address, "/500").await;
            second.send("nonsense\r\n\r\n").await;
            assert_eq!(second.answer().await.status(), 400);
            drop(second);

            // Two that hold the places, and one that waits.
            let request = format!("GET http://{}/ HTTP/1.1\r\nHost: a\r\n\r\n", silent.address);
            let mut others = Vec::new();
            for user in 1..=3 {
                let mut other = Client::of(gateway, 2, user).await;
                other.send(&request).await;
                others.push(other);
            }
            let found = loop {
                let found = status(admin).await;
                if (found.held, found.waiting, found.connections) == (2, 1, 4) {
                    break found;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            };
            assert_eq!((found.scheduler.as_str(), found.window), ("paper", Some(2.0)));
            assert_eq!((found.outstanding, found.tunnels), (2, 0));
            assert_eq!(found.kept, 1);
            let [a, b] = &found.classes[..] else { panic!("{found:?}") };
            assert_eq!((a.name.as_str(), a.weight, a.completed, a.refused), ("a", 4, 3, 0));
            assert_eq!((b.completed, b.refused, b.users), (1, 1, 3));
            // Heads are received too.
            assert!((30_000..31_000).contains(&a.received_bytes), "{a:?}");
            assert_eq!(found.top_users[0].user, "127.0.1.1");
            assert_eq!(found.top_users[0].received_bytes, a.received_bytes);

            let metrics = ask(admin, "GET /metrics", "localhost").await;
            let text = String::from_utf8(metrics.body).expect("text");
            let line = format!(
                "tidegate_class_received_bytes_total{{class=\"a\"}} {}\n",
                a.received_bytes
            );
            assert!(text.contains(&line) && text.contains("tidegate_waiting 1.0\n"), "{text}");

            drop(others);
            while status(admin).await.outstanding > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert_eq!(status(admin).await.classes[1].failed, 3);
        },
    )
    .await;
}

#[tokio::test]
async fn the_admin_port_is_for_this_machine() {
    beside_admin(config("msf", &[]), async |gateway, admin| {
        assert_eq!(ask(admin, "GET /status", "[::1]:1").await.status(), 200);
        // A page whose name resolves to loopback.
        assert_eq!(ask(admin, "GET /status", "attacker.example").await.status(), 403);
        assert_eq!(ask(admin, "POST /status", "localhost").await.status(), 405);
        assert_eq!(ask(admin, "GET /", "localhost").await.status(), 404);
        // And not for clients of the gateway.
        let mut client = Client::of(gateway, 1, 1).await;
        assert_eq!(client.get(admin, "/status").await.status(), 403);
        let mut client = Client::of(gateway, 1, 1).await;
        client.send(format!("CONNECT {admin} HTTP/1.1\r\nHost: {admin}\r\n\r\n")).await;
        assert_eq!(client.answer().await.status(), 403);
    })
    .await;
}
