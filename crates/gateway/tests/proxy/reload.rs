//! Settings that change while the gateway serves: as a whole or not at all.

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_core::{Rate, Span};
use tidegate_gateway::config::Fixed;

use crate::bed::{Client, Server, beside_control, config};

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
        wrong.local_targets.clear();
        wrong.classes.swap(0, 1);
        assert_eq!(control.change(wrong), Err(Fixed("the name of a class")));
        let mut wrong = settings.clone();
        wrong.timeouts.server = Span::seconds(1);
        assert_eq!(control.change(wrong), Err(Fixed("timeouts.server")));
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
