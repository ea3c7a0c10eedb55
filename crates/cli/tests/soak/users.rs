//! Users who want as much as they can get, and others who behave badly.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, sleep, timeout};

use crate::servers::{FAULTS, QUESTION, reset};

/// A response of a page, not a download.
const SMALL: usize = 10_000;

/// How long small responses took.
pub(crate) type Times = Arc<Mutex<Vec<Duration>>>;

/// A connection of a user of a class to the gateway.
pub(crate) async fn connect(
    gateway: SocketAddr,
    class: u8,
    user: u64,
) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    let [.., high, low] = (user + 1).to_be_bytes();
    socket.bind((Ipv4Addr::new(127, class, high, low), 0).into())?;
    let stream = socket.connect(gateway).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Sizes as the Web has them: most are small, and most bytes are in large ones.
fn size(random: &mut impl Rng) -> usize {
    let part: f64 = random.random_range(0.0..1.0);
    ((2_000.0 / (1.0 - part).powf(1.0 / 1.1)) as usize).min(2_000_000)
}

/// Asks for one response after another, for ever, by requests or through a tunnel.
pub(crate) async fn ask(
    gateway: SocketAddr,
    server: SocketAddr,
    class: u8,
    user: u64,
    by_tunnel: bool,
    seed: u64,
    times: Times,
) {
    let mut random = Pcg64::seed_from_u64(seed);
    loop {
        // What breaks it, a server that dies or a gateway without descriptors, passes.
        let Ok(mut stream) = connect(gateway, class, user).await else {
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let _ = converse(&mut stream, server, by_tunnel, &mut random, &times).await;
        sleep(Duration::from_millis(100)).await;
    }
}

async fn converse(
    stream: &mut TcpStream,
    server: SocketAddr,
    by_tunnel: bool,
    random: &mut impl Rng,
    times: &Times,
) -> std::io::Result<()> {
    if by_tunnel {
        let head = format!("CONNECT {server} HTTP/1.1\r\nHost: a\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        head_of(stream).await?;
    }
    loop {
        let size = size(random);
        let since = Instant::now();
        if by_tunnel {
            let mut question = [b' '; QUESTION];
            question[..5].copy_from_slice(&[23, 3, 3, 1, 144]);
            let digits = size.to_string();
            question[5..5 + digits.len()].copy_from_slice(digits.as_bytes());
            stream.write_all(&question).await?;
        } else {
            let head = format!("GET http://{server}/{size} HTTP/1.1\r\nHost: a\r\n\r\n");
            stream.write_all(head.as_bytes()).await?;
            head_of(stream).await?;
        }
        let mut left = size;
        let mut buffer = vec![0; 65_536];
        while left > 0 {
            let most = left.min(buffer.len());
            match stream.read(&mut buffer[..most]).await? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                size => left -= size,
            }
        }
        if size <= SMALL {
            times.lock().unwrap().push(since.elapsed());
        }
        // A tunnel asks again when it has been quiet.
        sleep(Duration::from_millis(if by_tunnel { 250 } else { 1 })).await;
    }
}

/// Reads a head byte by byte, and nothing behind it; only 200 will do.
async fn head_of(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    match head.starts_with(b"HTTP/1.1 200 ") {
        true => Ok(()),
        false => Err(std::io::ErrorKind::InvalidData.into()),
    }
}

/// Does something bad, again and again.
pub(crate) async fn misbehave(
    gateway: SocketAddr,
    server: SocketAddr,
    dead: SocketAddr,
    user: u64,
    seed: u64,
) {
    let mut random = Pcg64::seed_from_u64(seed);
    loop {
        let fault = FAULTS[random.random_range(0..FAULTS.len())];
        let wait = Duration::from_millis(random.random_range(0..3_000));
        let (kind, finishes) = (random.random_range(0..13), random.random_bool(0.2));
        if let Ok(mut stream) = connect(gateway, 3, user).await {
            let _ = once(&mut stream, kind, wait, fault, server, dead).await;
            if finishes {
                let _ = stream.shutdown().await;
                sleep(Duration::from_millis(50)).await;
            }
            reset(&stream);
        }
        sleep(Duration::from_millis(20)).await;
    }
}

async fn once(
    stream: &mut TcpStream,
    kind: u32,
    wait: Duration,
    fault: &str,
    server: SocketAddr,
    dead: SocketAddr,
) -> std::io::Result<()> {
    let get =
        |to: SocketAddr, path: &str| format!("GET http://{to}/{path} HTTP/1.1\r\nHost: a\r\n\r\n");
    let connect = format!("CONNECT {server} HTTP/1.1\r\nHost: a\r\n\r\n");
    let bytes = match kind {
        0 => String::new(),
        1 => "GET http://a.exam".into(),
        2 => get(server, "1000000"),
        3 => get(server, fault),
        4 => get(dead, "5"),
        5 => connect,
        6 => get(server, "5")
            .replace("GET", "POST")
            .replace("a\r\n", "a\r\nContent-Length: 900000\r\n"),
        7 => get(server, "5").replace("a\r\n", "a\r\nContent-Length: 5\r\nContent-Length: 6\r\n"),
        8 => format!(
            "GET http://a/ HTTP/1.1\r\n{}",
            format!("X: {}\r\n", "x".repeat(900)).repeat(50)
        ),
        9 => get(server, "100").repeat(20),
        10 => get(server, "5").replace("a\r\n", "a\r\nTransfer-Encoding: chunked\r\n") + "zz\r\n",
        11 => connect + &"x".repeat(2_000),
        _ => get(server, "5").replace('\r', ""),
    };
    stream.write_all(bytes.as_bytes()).await?;
    // It reads slowly, or not at all.
    let reads = async {
        while stream.read(&mut [0; 256]).await? > 0 {
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    };
    timeout(wait, reads).await.unwrap_or(Ok(()))
}
