//! Settings that change while the gateway serves: as a whole or not at all.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tidegate_core::{Rate, Span};
use tidegate_gateway::class::Class;
use tidegate_gateway::config::{Change, Fixed};
use tidegate_gateway::{Config, Control, Status};
use tokio::task::LocalSet;
use tokio::time::sleep;

use crate::bed::{Client, Server, beside_control, config, soon};

#[tokio::test]
async fn a_change_touches_nothing_that_goes_on() {
    let server = Server::of_sizes().await;
    let silent = Server::that(|mut end| async move {
        end.request().await;
        end.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha").await;
        tokio::time::sleep(Duration::from_millis(600)).await;
        end.send("lf").await;
    })
    .await;
    let settings = config("paper", &[("window", "fixed"), ("start", "1")]);
    beside_control(settings.clone(), async |gateway, control| {
        let mut reading = Client::of(gateway, 1, 1).await;
        let request = format!("GET http://{}/ HTTP/1.1\r\nHost: a\r\n\r\n", silent.address);
        reading.send(request).await;
        reading.head().await;
        let mut waiting = Client::of(gateway, 1, 2).await;
        let request = format!("GET http://{}/7 HTTP/1.1\r\nHost: a\r\n\r\n", server.address);
        waiting.send(request).await;
        tokio::time::sleep(Duration::from_millis(100)).await;

        let mut stranger = Client::of(gateway, 3, 1).await;
        assert_eq!(stranger.get(server.address, "/1").await.status(), 403);
        let mut wider = settings.clone();
        wider.classes[1].sources.push("127.0.3.0/24".parse().expect("it is a network"));
        // And the first class is empty, but for who is there, and heavier on a slower link.
        (wider.rate, wider.classes[0].weight) = (Rate(50_000_000), NonZeroU32::MAX);
        wider.classes[0].sources = vec!["192.0.2.1/32".parse().expect("it is a network")];
        let changes = control.change(wider).expect("all of it may change");
        let keys: Vec<_> = changes.iter().map(|change| change.key.as_str()).collect();
        let expected = ["link.rate", "class.a.weight", "class.a.sources", "class.b.sources"];
        assert_eq!(keys, expected);
        assert_eq!((&*changes[0].before, &*changes[0].after), ("100 Mbit/s", "50 Mbit/s"));

        assert_eq!(reading.exactly(4).await, b"half");
        assert_eq!(waiting.answer().await.body.len(), 7);
        let mut stranger = Client::of(gateway, 3, 1).await;
        assert_eq!(stranger.get(server.address, "/1").await.status(), 200);
        let mut late = Client::of(gateway, 1, 3).await;
        assert_eq!(late.get(server.address, "/1").await.status(), 403);
    })
    .await;
}

#[tokio::test]
async fn a_change_that_is_not_possible_changes_nothing() {
    let server = Server::of_sizes().await;
    let settings = config("msf", &[]);
    beside_control(settings.clone(), async |gateway, control| {
        let mut wrong = settings.clone();
        wrong.local_targets.clear();
        wrong.interface = Some("lo".into());
        assert_eq!(control.change(wrong), Err(Fixed("link.interface")));
        let mut wrong = settings.clone();
        wrong.classes.swap(0, 1);
        wrong.listen.clear();
        assert_eq!(control.change(wrong), Err(Fixed("listen")));
        let mut client = Client::of(gateway, 1, 1).await;
        assert_eq!(client.get(server.address, "/1").await.status(), 200);

        // What is kept does not lead around a change.
        let mut right = settings.clone();
        right.local_targets.clear();
        assert_eq!(control.change(right).map(|changes| changes.len()), Ok(1));
        let mut client = Client::of(gateway, 1, 1).await;
        assert_eq!(client.get(server.address, "/1").await.status(), 403);
    })
    .await;
}

fn class(name: &str, weight: u32, source: &str) -> Class {
    let sources = vec![source.parse().expect("it is a network")];
    Class::of(name, NonZeroU32::new(weight).expect("not zero"), sources)
}

/// These settings with other classes, and this scheduler.
fn with(settings: &Config, scheduler: &str, classes: Vec<Class>) -> Config {
    let other = config(scheduler, &[]);
    Config { scheduler: other.scheduler, settings: other.settings, classes, ..settings.clone() }
}

fn told(changes: &[Change]) -> Vec<String> {
    let told = |it: &Change| format!("{}: {} -> {}", it.key, it.before, it.after);
    changes.iter().map(told).collect()
}

/// What nobody holds any more is free.
async fn at_rest(control: &Control) -> Status {
    loop {
        let status = control.status();
        if status.connections == 0 {
            let open = (status.held, status.outstanding, status.waiting, status.tunnels);
            assert_eq!(open, (0, 0, 0, 0), "{status:?}");
            return status;
        }
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn classes_and_the_scheduler_change_under_load_and_nothing_is_lost() {
    const ROUNDS: u64 = 40;
    const TUNNELS: u8 = 3;

    let server = Server::of_sizes().await;
    let settings = config("msf", &[]);
    let start = settings.clone();
    beside_control(start, async |gateway, control| {
        let mut patient = settings.clone();
        patient.timeouts.server = Span::seconds(40);
        patient.tunnels.quiet = Span::millis(150);
        let all = || class("rest", 3, "127.0.0.0/8");
        let a = || class("a", 2, "127.0.1.0/24");
        let b = || class("b", 7, "127.0.2.0/24");
        let variants = [
            with(&settings, "paper", vec![b(), a()]),
            with(&settings, "fifo", vec![all(), a()]),
            with(&patient, "msf", vec![a(), all(), class("c", 1, "127.0.2.2/32")]),
            with(&settings, "drr", vec![class("c", 1, "127.0.2.2/32"), b(), a(), all()]),
            settings.clone(),
        ];
        let tasks = LocalSet::new();
        let done = Rc::new(std::cell::Cell::new(0));
        for user in 1..=4 {
            for network in [1, 2] {
                let (done, target) = (done.clone(), server.address);
                tasks.spawn_local(async move {
                    let mut client = Client::of(gateway, network, user).await;
                    for round in 0..ROUNDS {
                        let size = [70, 9_000, 60_000, 400_000][(round % 4) as usize];
                        let answer = client.get(target, &format!("/{size}")).await;
                        assert_eq!((answer.status(), answer.body.len()), (200, size));
                        done.set(done.get() + 1);
                    }
                });
            }
        }
        for user in 1..=TUNNELS {
            let target = server.address;
            tasks.spawn_local(async move {
                let mut client = Client::of(gateway, 1, user).await;
                client.send(format!("CONNECT {target} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
                assert!(client.head().await.starts_with("HTTP/1.1 200 "));
                for _ in 0..ROUNDS {
                    client.send("GET /80000 HTTP/1.1\r\nHost: a\r\n\r\n").await;
                    let answer = client.answer().await;
                    assert_eq!((answer.status(), answer.body.len()), (200, 80_000));
                }
            });
        }
        let mut changes = 0;
        let change = async {
            loop {
                // A fast machine has answered all of them soon, and a slow one seldom looks.
                let (enough, since) = (done.get() + 8, Instant::now());
                while done.get() < enough && since.elapsed() < Duration::from_millis(15) {
                    sleep(Duration::from_millis(1)).await;
                }
                let next = variants[changes % variants.len()].clone();
                assert!(!control.change(next).expect("it may").is_empty());
                changes += 1;
            }
        };
        tokio::select! {
            () = tasks => {}
            () = change => {}
        }
        assert!(changes > 2 * variants.len(), "there were {changes} changes only");
        assert_eq!(done.get(), 8 * ROUNDS);
        let status = soon(at_rest(&control)).await;
        let of = |name: &str| status.classes.iter().find(|it| it.name == name).cloned();
        let a = of("a").expect("it is in all of them");
        // The requests of its four users, and the tunnels.
        assert_eq!(a.completed, 4 * ROUNDS + u64::from(TUNNELS), "{changes} changes: {status:?}");
        assert_eq!(a.failed, 0);
    })
    .await;
}

/// A client whose request waits for a place, or has one.
async fn asks(gateway: SocketAddr, network: u8, user: u8, server: SocketAddr) -> Client {
    let mut client = Client::of(gateway, network, user).await;
    client.send(format!("GET http://{server}/7 HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    client
}

#[tokio::test]
async fn what_belongs_to_a_class_that_goes_goes_on_in_another_or_is_refused() {
    let sizes = Server::of_sizes().await;
    let slow = Server::that(|mut end| async move {
        end.request().await;
        end.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha").await;
        sleep(Duration::from_millis(700)).await;
        end.send("lf").await;
    })
    .await;
    let settings = config("paper", &[("window", "fixed"), ("start", "1")]);
    let start = settings.clone();
    beside_control(start, async |gateway, control| {
        // It has the only place, and others of both classes wait.
        let mut reading = asks(gateway, 2, 1, slow.address).await;
        reading.head().await;
        let mut idle = Client::of(gateway, 2, 1).await;
        idle.send(format!("CONNECT {} HTTP/1.1\r\nHost: a\r\n\r\n", sizes.address)).await;
        idle.head().await;
        let mut other_tunnel = Client::of(gateway, 2, 2).await;
        let connect = format!("CONNECT {} HTTP/1.1\r\nHost: a\r\n\r\n", sizes.address);
        other_tunnel.send(connect).await;
        other_tunnel.head().await;
        let mut kept = asks(gateway, 1, 1, sizes.address).await;
        let mut moved = asks(gateway, 2, 1, sizes.address).await;
        let mut refused = asks(gateway, 2, 2, sizes.address).await;
        while control.status().waiting < 3 {
            sleep(Duration::from_millis(5)).await;
        }

        // Of class b, 127.0.2.1 alone has a class now.
        let mut fewer = settings.clone();
        fewer.classes = vec![class("heir", 1, "127.0.2.1/32"), settings.classes[0].clone()];
        let changes = control.change(fewer).expect("it may");
        let expected = [
            "class.b: weight 1, sources 127.0.2.0/24 -> none",
            "class.heir: none -> weight 1, sources 127.0.2.1/32",
            "class.b.connections: 2 -> refused",
            "class.b.connections: 3 -> in class heir",
        ];
        assert_eq!(told(&changes), expected);

        let answer = refused.answer().await;
        assert_eq!(answer.status(), 403);
        assert!(String::from_utf8_lossy(&answer.body).contains("any more"), "{answer:?}");
        assert!(!other_tunnel.rest().await.is_ok_and(|rest| !rest.is_empty()));
        // The rest goes on, each in its turn.
        assert_eq!(reading.exactly(4).await, b"half");
        assert_eq!(kept.answer().await.body.len(), 7);
        assert_eq!(moved.answer().await.body.len(), 7);
        idle.send("GET /9 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(idle.answer().await.body.len(), 9);
        let status = control.status();
        let names: Vec<_> = status.classes.iter().map(|it| (&*it.name, it.completed)).collect();
        assert_eq!(names, [("heir", 2), ("a", 1)]);
        drop((reading, idle, other_tunnel, kept, moved, refused));
        soon(at_rest(&control)).await;
    })
    .await;
}

/// Nothing has to come for that.
#[tokio::test]
async fn an_endless_response_ends_with_its_class() {
    let events = Server::that(|mut end| async move {
        end.request().await;
        end.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n").await;
        std::future::pending::<()>().await;
    })
    .await;
    let settings = config("msf", &[]);
    let start = settings.clone();
    beside_control(start, async |gateway, control| {
        let mut client = asks(gateway, 2, 1, events.address).await;
        client.head().await;
        assert_eq!(client.exactly(9).await, b"data: 1\n\n");
        let mut fewer = settings.clone();
        fewer.classes.truncate(1);
        control.change(fewer).expect("it may");
        assert!(!soon(client.rest()).await.is_ok_and(|rest| !rest.is_empty()));
        soon(at_rest(&control)).await;
    })
    .await;
}
