//! What the gateway says about itself.

use std::net::SocketAddr;
use std::time::Duration;

use tidegate_gateway::config::Change;
use tidegate_gateway::{Config, Gateway, Status};

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

/// All that comes takes its time on the link, of use or not.
#[tokio::test]
async fn what_a_server_breaks_off_or_garbles_is_counted() {
    let pad = |size: usize| format!("X: {}\r\n", "x".repeat(size));
    let responses = [
        ("unfinished head", format!("HTTP/1.1 200 OK\r\n{}", pad(2_000))),
        ("two lengths", format!("HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n{}\r\n", pad(900))),
        ("broken off", format!("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n{}\r\nok", pad(500))),
        ("bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nno".into()),
        ("interim", format!("HTTP/1.1 103 Early Hints\r\n{}\r\nHTTP/1.1 200\r\n", pad(3_000))),
    ];
    for (what, response) in responses {
        let sent = response.len() as u64;
        let server = Server::that(move |mut end| {
            let response = response.clone();
            async move {
                end.request().await;
                end.send(response).await;
            }
        })
        .await;
        beside_admin(config("msf", &[]), async |gateway, admin| {
            let mut client = Client::of(gateway, 1, 1).await;
            client
                .send(format!("GET http://{}/ HTTP/1.1\r\nHost: a\r\n\r\n", server.address))
                .await;
            let _ = client.rest().await;
            let found = status(admin).await;
            assert_eq!(
                (found.classes[0].failed, found.classes[0].received_bytes),
                (1, sent),
                "{what}"
            );
        })
        .await;
    }
}

#[tokio::test]
async fn the_admin_port_is_for_this_machine() {
    beside_admin(config("msf", &[]), async |gateway, admin| {
        assert_eq!(ask(admin, "GET /status", "[::1]:1").await.status(), 200);
        // A page whose name resolves to loopback.
        assert_eq!(ask(admin, "GET /status", "attacker.example").await.status(), 403);
        assert_eq!(ask(admin, "POST /status", "localhost").await.status(), 405);
        assert_eq!(ask(admin, "GET /", "attacker.example").await.status(), 403);
        assert_eq!(ask(admin, "GET /nothing", "localhost").await.status(), 404);
        // And not for clients of the gateway.
        let mut client = Client::of(gateway, 1, 1).await;
        assert_eq!(client.get(admin, "/status").await.status(), 403);
        let mut client = Client::of(gateway, 1, 1).await;
        client.send(format!("CONNECT {admin} HTTP/1.1\r\nHost: {admin}\r\n\r\n")).await;
        assert_eq!(client.answer().await.status(), 403);
    })
    .await;
}

#[tokio::test]
async fn the_page_is_whole_and_loads_nothing_from_elsewhere() {
    beside_admin(config("msf", &[]), async |_, admin| {
        let page = ask(admin, "GET /", "localhost").await;
        assert!(page.has("content-type: text/html; charset=utf-8"), "{}", page.head);
        let text = String::from_utf8(page.body).expect("text");
        let targets = text.split(&[' ', '>']).filter_map(|word| {
            let target = word.strip_prefix("href=\"").or(word.strip_prefix("src=\""))?;
            target.strip_suffix('"')
        });
        let targets: Vec<_> = targets.filter(|target| !target.starts_with("data:")).collect();
        assert!(targets.len() >= 8 && targets.contains(&"/uplot/LICENSE"), "{targets:?}");
        for target in targets {
            let file = ask(admin, &format!("GET {target}"), "localhost").await;
            let kind = match target.rsplit_once('.').map(|(_, ending)| ending) {
                Some("js") => "text/javascript; charset=utf-8",
                Some("css") => "text/css; charset=utf-8",
                _ if target == "/metrics" => "application/openmetrics-text",
                _ if target.ends_with("LICENSE") => "text/plain; charset=utf-8",
                _ => "application/json",
            };
            assert!(file.status() == 200 && file.body.len() > 50, "{target}: {}", file.head);
            assert!(
                file.head.contains(&format!("content-type: {kind}")),
                "{target}: {}",
                file.head
            );
            assert!(file.has("x-content-type-options: nosniff"), "{target}: {}", file.head);
            let policy = "content-security-policy: default-src 'none'; script-src 'self';";
            assert!(file.head.contains(policy), "{target}: {}", file.head);
            assert!(!file.head.contains("unsafe"), "{target}: {}", file.head);
        }
        let head = ask(admin, "HEAD /", "localhost").await;
        assert!(head.status() == 200 && head.body.is_empty(), "{}", head.head);
        // The policy forbids scripts and styles in the page itself.
        assert!(
            !text.contains("style=") && !text.contains("<script>") && !text.contains("onclick")
        );
    })
    .await;
}

#[tokio::test]
async fn a_page_that_is_opened_later_has_the_history() {
    let server = Server::of_sizes().await;
    beside_admin(config("msf", &[]), async |gateway, admin| {
        let mut client = Client::of(gateway, 2, 7).await;
        client.get(server.address, "/2000000").await;
        // Who is busy is told for a moment only.
        let busy = loop {
            if let [user, ..] = &status(admin).await.busy_users[..] {
                break user.clone();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert_eq!(busy.user, "127.0.2.7");
        let history = async |query: &str| -> serde_json::Value {
            let answer = ask(admin, &format!("GET /history{query}"), "localhost").await;
            assert_eq!(answer.status(), 200);
            serde_json::from_slice(&answer.body).expect("JSON")
        };
        let whole = loop {
            let history = history("").await;
            if history["next"].as_u64() >= Some(2) {
                break history;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert_eq!(whole["first"], 0);
        let [a, b] = &whole["classes"].as_array().expect("classes")[..] else { panic!("{whole}") };
        let sum = |class: &serde_json::Value| -> f64 {
            class["received_bps"]
                .as_array()
                .expect("rates")
                .iter()
                .filter_map(serde_json::Value::as_f64)
                .sum()
        };
        assert!(sum(a) == 0.0 && sum(b) > 1_000_000.0, "{whole}");
        assert_eq!(
            b["waited"]["p95_s"].as_array().map(Vec::len),
            whole["uptime_s"].as_array().map(Vec::len)
        );
        let next = whole["next"].as_u64().expect("a number");
        assert_eq!(history(&format!("?since={next}")).await["first"], next);
        for query in ["since=x", "since=-1", "until=3", "since"] {
            let answer = ask(admin, &format!("GET /history?{query}"), "localhost").await;
            assert_eq!(answer.status(), 400, "{query}");
        }

        let status = status(admin).await;
        let b = &status.classes[1];
        assert_eq!((b.waited.map(|it| it.count), b.service.map(|it| it.count)), (Some(1), Some(1)));
        assert!(busy.received_bps > 0 && status.carried_bytes > 2_000_000);
        let metrics = ask(admin, "GET /metrics", "localhost").await;
        let text = String::from_utf8(metrics.body).expect("text");
        for line in [
            "tidegate_class_service_seconds_count{class=\"b\"} 1",
            "tidegate_class_line_seconds_bucket{le=\"+Inf\",class=\"b\"} 1",
            "tidegate_class_line_seconds_count{class=\"a\"} 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
    })
    .await;
}

#[tokio::test]
async fn requests_in_tunnels_count_as_soon_as_they_are_released_and_answered() {
    let server = Server::of_sizes().await;
    beside_admin(config("msf", &[]), async |gateway, admin| {
        let mut client = Client::of(gateway, 1, 1).await;
        let target = server.address;
        client.send(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")).await;
        assert!(client.head().await.starts_with("HTTP/1.1 200"));
        // What is small asks for nothing.
        let cookie = "x".repeat(500);
        client.send(format!("GET /1000 HTTP/1.1\r\nCookie: {cookie}\r\n\r\n")).await;
        assert_eq!(client.answer().await.body.len(), 1_000);
        let found = status(admin).await;
        let a = &found.classes[0];
        assert_eq!((found.tunnels, a.waited.map(|it| it.count)), (1, Some(1)));
        assert_eq!((a.first_byte.map(|it| it.count), a.service), (Some(1), None));
    })
    .await;
}

#[tokio::test]
async fn whoever_does_not_know_the_token_sees_only_the_empty_page() {
    let folder = std::env::temp_dir().join(format!("tidegate-admin-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("it can be made");
    let path = folder.join("token");
    std::fs::write(&path, "0123456789abcdef\n").expect("it can be written");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .expect("it is ours");
    let name = folder.join("g.toml").display().to_string();
    let text = "admin = \"0.0.0.0:0\"\nadmin_token_file = \"token\"\nlink.rate = \"9 Mbit/s\"\n\
        [[class]]\nname = \"a\"\nsources = [\"127.0.1.0/24\"]";
    let written = tidegate_gateway::file::parse(&name, text).expect("it is correct");
    let without = text.replace("admin_token_file = \"token\"\n", "");
    let error = tidegate_gateway::file::parse(&name, &without).unwrap_err().to_string();
    assert!(error.contains(":1:9: admin: found '0.0.0.0:0', expected an address of this machine"));
    assert!(error.contains("or beside it admin_token_file"), "{error}");
    std::fs::remove_dir_all(&folder).expect("it is ours");
    let error = tidegate_gateway::file::parse(&name, text).unwrap_err().to_string();
    assert!(
        error.contains(":2:20: admin_token_file: found '") && error.contains("openssl"),
        "{error}"
    );

    let (listen, admin_token) = (config("msf", &[]).listen, written.admin_token.clone());
    let settings =
        Config { listen, admin: Some(([127, 0, 0, 1], 0).into()), admin_token, ..written };
    beside_admin(settings, async |_, admin| {
        assert_eq!(ask(admin, "GET /", "192.168.1.1:3129").await.status(), 200);
        assert_eq!(ask(admin, "GET /page.js", "localhost").await.status(), 200);
        assert_eq!(ask(admin, "GET /", "attacker.example").await.status(), 403);
        for path in ["GET /status", "GET /history", "GET /metrics", "POST /reload", "GET /x"] {
            let answer = ask(admin, path, "localhost").await;
            assert_eq!(answer.status(), 401, "{path}");
            assert!(answer.has("www-authenticate: Bearer realm=\"tidegate\""), "{}", answer.head);
            for (field, status) in [
                ("Bearer 0123456789abcdef", 200),
                ("bearer 0123456789abcdef", 200),
                ("Bearer 0123456789abcdeg", 401),
                ("Bearer 0123456789abcde", 401),
                ("Bearer", 401),
                ("Basic 0123456789abcdef", 401),
                ("0123456789abcdef", 401),
            ] {
                let host = format!("localhost\r\nAuthorization: {field}");
                let found = ask(admin, path, &host).await.status();
                let expected = match (status, path) {
                    (200, "POST /reload") => 503,
                    (200, "GET /x") => 404,
                    _ => status,
                };
                assert_eq!(found, expected, "{path} {field}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn settings_are_read_again_for_those_who_may_ask() {
    let mut gateway = Gateway::bind(config("msf", &[]), 1).await.expect("loopback is there");
    let admin = gateway.admin_address().expect("it has one");
    let mut reloads = gateway.reloads().expect("nobody has asked before");
    assert!(gateway.reloads().is_none());
    let owner = async {
        let change = Change { key: "k".into(), before: "1".into(), after: "2".into() };
        for outcome in [Ok(vec![change]), Err("it.toml:1:1: wrong".to_owned())] {
            let asked = reloads.recv().await.expect("somebody asks");
            asked.send(outcome).expect("somebody waits");
        }
    };
    let asking = async {
        let reload = async |host: &str| ask(admin, "POST /reload", host).await;
        for (origin, status) in [
            ("http://attacker.example", 403),
            ("null", 403),
            ("http://localhost:1", 403),
            ("http://localhost", 200),
        ] {
            let answer = reload(&format!("localhost\r\nOrigin: {origin}")).await;
            assert_eq!(answer.status(), status, "{origin}");
            if status == 200 {
                let body: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
                assert_eq!(body["changes"][0]["after"], "2");
            }
        }
        assert_eq!(ask(admin, "GET /reload", "localhost").await.status(), 405);
        assert_eq!(ask(admin, "PUT /reload", "localhost").await.status(), 405);
        assert_eq!(reload("attacker.example").await.status(), 403);
        let answer = reload("127.0.0.1").await;
        assert_eq!(answer.status(), 422);
        let body: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert_eq!(body["error"], "it.toml:1:1: wrong");
    };
    tokio::select! {
        () = gateway.serve() => {}
        _ = async { tokio::join!(owner, asking) } => {}
    }
}
