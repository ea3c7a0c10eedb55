//! Ten thousand tunnels in which nothing happens.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::gateway::Gateway;
use crate::users::connect;

const TUNNELS: u64 = 10_000;
/// Of one user.
const EACH: u64 = 100;
const PER_TUNNEL: u64 = 60_000;
const EMPTY: u64 = 15_000_000;
/// A tunnel has two ends here, and two in the gateway.
const DESCRIPTORS: u64 = 2 * TUNNELS + 1_000;

/// As many descriptors as it takes, or how many there are.
fn take_descriptors() -> u64 {
    let most = getrlimit(Resource::Nofile).maximum.unwrap_or(DESCRIPTORS);
    for maximum in [most.max(DESCRIPTORS), most] {
        let limit = Rlimit { current: Some(maximum), maximum: Some(maximum) };
        if setrlimit(Resource::Nofile, limit).is_ok() {
            return maximum;
        }
    }
    most
}

#[tokio::test]
#[ignore = "it takes ten thousand connections and a release build"]
async fn idle_tunnels_take_little_memory_and_leave_none_of_it_in_use() {
    let descriptors = take_descriptors();
    let tunnels = TUNNELS.min((descriptors - 1_000) / 2);
    if tunnels < TUNNELS {
        println!("{descriptors} descriptors are permitted: only {tunnels} tunnels");
    }
    let limits = "[limits]\nconnections = 12000";
    let gateway = Gateway::start("idle", "100 Mbit/s", limits);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    sleep(Duration::from_secs(1)).await;
    let (empty, none_open) = (gateway.memory(), gateway.descriptors());
    println!("without a client: {:.1} MB, {none_open} descriptors", empty as f64 / 1e6);

    let mut open: Vec<(TcpStream, TcpStream)> = Vec::new();
    for number in 0..tunnels {
        let mut client = connect(gateway.address, 1, number / EACH).await.unwrap();
        let head = format!("CONNECT {server} HTTP/1.1\r\nHost: a\r\n\r\n");
        client.write_all(head.as_bytes()).await.unwrap();
        let (mut end, _) = listener.accept().await.unwrap();
        let mut answer = [0; 39];
        client.read_exact(&mut answer).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200 "));
        // Each has carried something, as every tunnel has.
        client.write_all(&[22, 3, 1, 0, 1, 7]).await.unwrap();
        end.read_exact(&mut answer[..6]).await.unwrap();
        end.write_all(&[b'x'; 3_000]).await.unwrap();
        client.read_exact(&mut [0; 3_000]).await.unwrap();
        open.push((client, end));
    }
    sleep(Duration::from_secs(2)).await;
    let (full, all_open) = (gateway.memory(), gateway.descriptors());
    let status = gateway.status().await.unwrap();
    assert_eq!(status["tunnels"], tunnels);
    let each = (full - empty) / tunnels;
    println!(
        "{tunnels} tunnels: {:.1} MB, {all_open} descriptors, {each} bytes a tunnel",
        full as f64 / 1e6
    );

    // They are still tunnels.
    for (client, end) in open.iter_mut().step_by(997) {
        end.write_all(b"still").await.unwrap();
        let mut answer = [0; 5];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"still");
    }
    drop(open);
    let mut left = all_open;
    for _ in 0..100 {
        left = gateway.descriptors();
        if left <= none_open {
            break;
        }
        sleep(Duration::from_millis(100)).await;
    }
    println!("afterwards: {:.1} MB, {left} descriptors", gateway.memory() as f64 / 1e6);
    assert!(left <= none_open, "{left} descriptors are left of {none_open}");
    assert_eq!(gateway.status().await.unwrap()["tunnels"], 0);
    assert!(each < PER_TUNNEL, "{each} bytes a tunnel");
    if !cfg!(debug_assertions) {
        assert!(empty < EMPTY, "{empty} bytes without a client");
    }
}
