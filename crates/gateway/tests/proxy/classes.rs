//! Where requests belong: by address, by name, and by the server that is asked for.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use tidegate_gateway::class::{Class, Names, Users};
use tidegate_gateway::{Config, Control, Passwords, Status};

use crate::admin::status;
use crate::bed::{Client, Server, beside_admin, beside_control, config};

/// As `printf %s anna:sesame | base64`, and so on.
const ANNA: &str = "Proxy-Authorization: Basic YW5uYTpzZXNhbWU=\r\n";
const BERT: &str = "Proxy-Authorization: Basic YmVydDpzZXNhbWU=\r\n";
const WRONG: &str = "Proxy-Authorization: Basic YW5uYTpTZXNhbWU=\r\n";

/// The password of both is 'sesame'.
fn passwords(hashes: [&str; 2]) -> Arc<Passwords> {
    let [anna, bert] = hashes;
    Arc::new(Passwords::parse(&format!("anna:{anna}\nbert:{bert}")).expect("they are correct"))
}

const SESAME: &str = "$2y$05$SfKZk2K.vBfaf3teYqPwB.mbLkjMio5bLbwjWFZcz8IPEnawhM2Zy";
const OTHER: &str = "$2y$05$2OL7RqC/Pxxt9nTzBaGk9ugyJSuuejLFtwvKOMfZzS4ZfiuaXedIm";

/// As `config`, and before class `a` one of its addresses, `named`, in which users log in.
fn with_names(names: Names) -> Config {
    let mut config = config("msf", &[]);
    let named = Class {
        names: Some(names),
        users: Users::Name,
        ..Class::of("named", NonZeroU32::MIN, config.classes[0].sources.clone())
    };
    config.classes.push(named);
    config.passwords = passwords([SESAME, SESAME]);
    config
}

async fn get(client: &mut Client, server: SocketAddr, fields: &str) -> u16 {
    let head = format!("GET http://{server}/1000 HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    client.send(head).await;
    client.answer().await.status()
}

fn completed(status: &Status) -> Vec<u64> {
    status.classes.iter().map(|class| class.completed).collect()
}

#[tokio::test]
async fn who_has_to_log_in_is_asked_and_nobody_else_is() {
    let server = Server::of_sizes().await;
    beside_admin(with_names(Names::Only(["anna".to_owned()].into())), async |gateway, admin| {
        let mut client = Client::of(gateway, 1, 1).await;
        client.send(format!("GET http://{}/ HTTP/1.1\r\nHost: a\r\n\r\n", server.address)).await;
        let asked = client.answer().await;
        assert_eq!(asked.status(), 407);
        assert!(asked.has("Proxy-Authenticate: Basic realm=\"tidegate\", charset=\"UTF-8\""));
        // For HTTPS it is the same.
        let mut client = Client::of(gateway, 1, 1).await;
        client.send(format!("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\n", server.address)).await;
        assert_eq!(client.answer().await.status(), 407);
        let connect = format!("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n{ANNA}\r\n", server.address);
        let mut client = Client::of(gateway, 1, 1).await;
        client.send(connect).await;
        assert!(client.head().await.starts_with("HTTP/1.1 200 "));
        client.send("GET /7 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(client.answer().await.body.len(), 7);
        drop(client);

        let mut client = Client::of(gateway, 1, 1).await;
        assert_eq!(get(&mut client, server.address, WRONG).await, 407);
        let mut client = Client::of(gateway, 1, 1).await;
        assert_eq!(get(&mut client, server.address, ANNA).await, 200);
        // Who has a password and is not meant is where he would be without.
        assert_eq!(get(&mut client, server.address, BERT).await, 200);
        let mut other = Client::of(gateway, 2, 1).await;
        assert_eq!(get(&mut other, server.address, "").await, 200);
        assert_eq!(get(&mut other, server.address, WRONG).await, 200, "it does not matter");
        let found = loop {
            let found = status(admin).await;
            if found.tunnels == 0 {
                break found;
            }
        };
        assert_eq!(completed(&found), [1, 2, 2]);
        assert!(!server.heard().contains("Proxy"), "passwords stay here");
    })
    .await;
}

#[tokio::test]
async fn devices_of_one_name_are_one_user() {
    let server = Server::of_sizes().await;
    beside_admin(with_names(Names::All), async |gateway, admin| {
        for (device, shown) in [(1, ANNA), (2, ANNA), (3, BERT)] {
            let mut client = Client::of(gateway, 1, device).await;
            assert_eq!(get(&mut client, server.address, shown).await, 200);
        }
        let found = status(admin).await;
        let users: Vec<_> = found.top_users.iter().map(|user| user.user.as_str()).collect();
        assert_eq!(users, ["anna", "bert"]);
        assert_eq!(found.top_users[0].received_bytes, 2 * found.top_users[1].received_bytes);
    })
    .await;
    // Unless the class says otherwise.
    let mut config = with_names(Names::All);
    config.classes[2].users = Users::Address;
    beside_admin(config, async |gateway, admin| {
        for device in [1, 2] {
            let mut client = Client::of(gateway, 1, device).await;
            assert_eq!(get(&mut client, server.address, ANNA).await, 200);
        }
        let found = status(admin).await;
        let users: Vec<_> = found.top_users.iter().map(|user| user.user.as_str()).collect();
        assert_eq!(users, ["127.0.1.1", "127.0.1.2"]);
    })
    .await;
}

#[tokio::test]
async fn requests_of_one_connection_belong_where_their_servers_do() {
    let (by_port, by_host, other) =
        (Server::of_sizes().await, Server::of_sizes().await, Server::of_sizes().await);
    let mut config = config("msf", &[]);
    let sources = config.classes[0].sources.clone();
    let plain = |name: &str| Class::of(name, NonZeroU32::MIN, sources.clone());
    let hosts = vec!["localhost".parse().expect("a host")];
    config.classes.push(Class { ports: vec![by_port.address.port()], ..plain("port") });
    config.classes.push(Class { hosts, ..plain("host") });
    beside_admin(config, async |gateway, admin| {
        let mut client = Client::of(gateway, 1, 1).await;
        for (name, server) in
            [("127.0.0.1", &by_port), ("localhost", &by_host), ("127.0.0.1", &other)]
        {
            let target = format!("{name}:{}", server.address.port());
            client.send(format!("GET http://{target}/7 HTTP/1.1\r\nHost: a\r\n\r\n")).await;
            assert_eq!(client.answer().await.status(), 200);
        }
        assert_eq!(completed(&status(admin).await), [1, 0, 1, 1]);
        let mut client = Client::of(gateway, 1, 1).await;
        let target = format!("LocalHost:{}", by_host.address.port());
        client.send(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")).await;
        client.head().await;
        drop(client);
        while status(admin).await.tunnels > 0 {}
        assert_eq!(completed(&status(admin).await).iter().sum::<u64>(), 4);
        assert_eq!(status(admin).await.classes[3].completed, 2);
    })
    .await;
}

/// The keys that change.
fn changed(control: &Control, config: Config) -> Vec<String> {
    let changes = control.change(config).expect("all of it may change");
    changes.into_iter().map(|change| change.key).collect()
}

#[tokio::test]
async fn a_password_that_changes_holds_for_the_next_request() {
    let server = Server::of_sizes().await;
    let before = with_names(Names::All);
    beside_control(before.clone(), async |gateway, control| {
        let mut client = Client::of(gateway, 1, 1).await;
        assert_eq!(get(&mut client, server.address, ANNA).await, 200);
        let after = Config { passwords: passwords([OTHER, SESAME]), ..before.clone() };
        assert_eq!(changed(&control, after), ["passwords"]);
        assert_eq!(get(&mut client, server.address, ANNA).await, 407);
        // And a class that asks for nothing any more asks for nothing.
        let mut open = before.clone();
        open.classes[2].names = None;
        open.classes[2].ports = vec![server.address.port()];
        let names = before.classes[2].name.clone();
        let keys = ["names", "ports"].map(|key| format!("class.{names}.{key}"));
        assert_eq!(changed(&control, open), [&keys[0], &keys[1], "passwords"]);
        let mut client = Client::of(gateway, 1, 1).await;
        assert_eq!(get(&mut client, server.address, "").await, 200);
    })
    .await;
}
