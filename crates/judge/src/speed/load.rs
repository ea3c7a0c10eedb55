//! The clients of a measurement of speed.

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout_at;

use super::{CONNECTIONS, RESPONSE};
use crate::live::talk::{self, Line};

/// The proxy, if there is one, and the server.
type Way = (Option<SocketAddr>, SocketAddr);

/// The bytes of a request.
const REQUEST: u64 = 300;
/// The bytes of a response in a tunnel.
const IN_TUNNEL: u64 = 50_000_000;
/// Requests that are due within so long of each other are sent at once. Each wait sets a timer and
/// hands the processor over; with 40 000 waits a second, little of their core would be left for
/// clients and servers.
const TICK: Duration = Duration::from_micros(100);
/// What has not ended so long after its time never will.
const PATIENCE: Duration = Duration::from_secs(20);

/// What came back.
pub(super) struct Answered {
    pub(super) responses: u64,
    pub(super) bytes: u64,
    pub(super) elapsed: Duration,
    /// How long each took, where that is asked for, in order.
    times: Vec<Duration>,
}

impl Answered {
    /// So much of the responses took no longer than this, in milliseconds.
    pub(super) fn quantile(&self, part: f64) -> f64 {
        let last = self.times.len().saturating_sub(1);
        let place = (part * last as f64).round() as usize;
        self.times.get(place).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }
}

/// Opens a connection for requests and returns it with what to ask each time.
async fn connect((proxy, server): Way, response: u64) -> io::Result<(Line, Vec<u8>)> {
    let line = Line::new(TcpStream::connect(proxy.unwrap_or(server)).await?);
    let host = server.to_string();
    let target = proxy.map_or(String::new(), |_| format!("http://{host}"));
    Ok((line, talk::request(&target, &host, response, REQUEST)))
}

/// Asks once, and returns the size of the body.
async fn ask(line: &mut Line, request: &[u8]) -> io::Result<u64> {
    line.write(request, 0).await?;
    let head = line.head(talk::response_head).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    if head.status != 200 {
        return Err(io::Error::other(format!("a response with status {}", head.status)));
    }
    let mut left = head.body;
    while left > 0 {
        left -= line.body(left).await?;
    }
    Ok(head.body)
}

/// The number of a client's responses, their bytes, and how long each took, where that is
/// asked for.
type Share = io::Result<(u64, u64, Vec<Duration>)>;

/// Asks as soon as the response before is there.
async fn ask_until(end: Instant, mut line: Line, request: &[u8]) -> Share {
    let (mut responses, mut bytes) = (0, 0);
    while Instant::now() < end {
        bytes += ask(&mut line, request).await?;
        responses += 1;
    }
    Ok((responses, bytes, Vec::new()))
}

/// Asks on so many connections, on each as soon as the response before is there.
pub(super) async fn saturated(
    way: Way,
    connections: usize,
    response: u64,
    time: Duration,
) -> io::Result<Answered> {
    let mut clients = JoinSet::new();
    let begun = Instant::now();
    for _ in 0..connections {
        clients.spawn_local(async move {
            let (line, request) = connect(way, response).await?;
            ask_until(begun + time, line, &request).await
        });
    }
    collect(clients, begun, time).await
}

/// Asks `rate` times a second whatever comes back, on as many connections as `saturated`
/// has: a request that finds its connection busy waits, and its time counts.
pub(super) async fn paced(way: Way, rate: f64, time: Duration) -> io::Result<Answered> {
    let mut clients = JoinSet::new();
    let mut bells = Vec::new();
    for _ in 0..CONNECTIONS {
        let (bell, mut due) = mpsc::unbounded_channel::<Instant>();
        bells.push(bell);
        let (mut line, request) = connect(way, RESPONSE).await?;
        clients.spawn_local(async move {
            let (mut bytes, mut times) = (0, Vec::new());
            while let Some(due) = due.recv().await {
                bytes += ask(&mut line, &request).await?;
                times.push(due.elapsed());
            }
            io::Result::Ok((times.len() as u64, bytes, times))
        });
    }
    let begun = Instant::now();
    // The runtime's own timers are a millisecond apart.
    thread::spawn(move || {
        let all = (rate * time.as_secs_f64()) as u32;
        for number in 0..all {
            let due = begun + Duration::from_secs_f64(f64::from(number) / rate);
            let left = due.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                thread::sleep(left.max(TICK));
            }
            if bells[number as usize % bells.len()].send(due).is_err() {
                return;
            }
        }
    });
    collect(clients, begun, time).await
}

/// Has so many tunnels carry responses to a server of records, one after another.
pub(super) async fn tunnels(
    proxy: SocketAddr,
    server: SocketAddr,
    tunnels: usize,
    time: Duration,
) -> io::Result<Answered> {
    let mut clients = JoinSet::new();
    let begun = Instant::now();
    for _ in 0..tunnels {
        clients.spawn_local(async move {
            let line = open(proxy, server).await?.in_records();
            let request = talk::request("", &server.to_string(), IN_TUNNEL, REQUEST);
            ask_until(begun + time, line, &request).await
        });
    }
    collect(clients, begun, time).await
}

/// Opens so many tunnels, which have shaken hands and are then idle.
pub(super) async fn idle_tunnels(
    proxy: SocketAddr,
    server: SocketAddr,
    tunnels: usize,
) -> io::Result<Vec<Line>> {
    let mut open_ones = Vec::with_capacity(tunnels);
    for _ in 0..tunnels {
        open_ones.push(open(proxy, server).await?);
    }
    Ok(open_ones)
}

/// A tunnel behind its handshake.
async fn open(proxy: SocketAddr, server: SocketAddr) -> io::Result<Line> {
    let mut line = Line::new(TcpStream::connect(proxy).await?);
    let request = format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\n");
    line.write(request.as_bytes(), 0).await?;
    let head = line.head(talk::response_head).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    if head.status != 200 {
        return Err(io::Error::other(format!("a tunnel with status {}", head.status)));
    }
    line.shake_hands(1).await?;
    Ok(line)
}

async fn collect(
    mut clients: JoinSet<Share>,
    begun: Instant,
    time: Duration,
) -> io::Result<Answered> {
    let mut all = Answered { responses: 0, bytes: 0, elapsed: Duration::ZERO, times: Vec::new() };
    let last = (begun + time + PATIENCE).into();
    while let Some(ended) = timeout_at(last, clients.join_next()).await? {
        let (responses, bytes, times) = ended.map_err(io::Error::other)??;
        all.responses += responses;
        all.bytes += bytes;
        all.times.extend(times);
    }
    all.elapsed = begun.elapsed();
    all.times.sort_unstable();
    Ok(all)
}
