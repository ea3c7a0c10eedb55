//! Servers behind one link, which answer, fail, die and start again.
//!
//! The link is a row of times at which segments may be written, as in the gateway's test of
//! shares.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

/// What the link carries, in bits a second.
pub(crate) const RATE: f64 = 20e6;
const SEGMENT: usize = 1_448;
/// With the options of its header.
const LARGEST_SEGMENT: u32 = 1_460;
/// A busy machine is late, and makes up for it.
const LATE: Duration = Duration::from_millis(200);

/// A record of application data that asks for a response: its header, and the size in
/// digits.
pub(crate) const QUESTION: usize = 405;

/// What servers do besides answering.
pub(crate) const FAULTS: [&str; 7] =
    ["gone", "reset", "stuck", "tarpit", "nonsense", "chunk", "head"];

/// When the link is free.
#[derive(Clone)]
pub(crate) struct Link(Arc<Mutex<Instant>>);

impl Link {
    pub(crate) fn new() -> Link {
        Link(Arc::new(Mutex::new(Instant::now())))
    }

    async fn carry(&self) {
        let at = {
            let mut free = self.0.lock().unwrap();
            let time = Duration::from_secs_f64(SEGMENT as f64 * 8.0 / RATE);
            *free = (*free).max(Instant::now() - LATE) + time;
            *free
        };
        sleep_until(at).await;
    }
}

/// Serves at this address until the end, or until it is killed: `alive` says when it is.
pub(crate) async fn serve(address: SocketAddr, link: Link, alive: watch::Receiver<bool>) {
    loop {
        let mut here = alive.clone();
        let _ = here.wait_for(|alive| *alive).await;
        let listener = listen(address);
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let Ok((stream, _)) = accepted else { continue };
                    let (link, mut alive) = (link.clone(), alive.clone());
                    tokio::spawn(async move {
                        let _ = socket2::SockRef::from(&stream).set_send_buffer_size(8_192);
                        let _ = stream.set_nodelay(true);
                        let mut stream = stream;
                        tokio::select! {
                            _ = converse(&mut stream, &link) => {}
                            _ = alive.wait_for(|alive| !*alive) => reset(&stream),
                        }
                    });
                }
                _ = here.wait_for(|alive| !*alive) => break,
            }
        }
    }
}

pub(crate) fn listen(address: SocketAddr) -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    // As on Ethernet: the gateway has room for some segments of every response, and those of a
    // loopback interface are of 64 kB.
    socket2::SockRef::from(&socket).set_tcp_mss(LARGEST_SEGMENT).unwrap();
    socket.bind(address).unwrap();
    socket.listen(1_024).unwrap()
}

/// A port that nobody has.
pub(crate) fn free_address() -> SocketAddr {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}

pub(crate) fn reset(stream: &TcpStream) {
    let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

async fn converse(stream: &mut TcpStream, link: &Link) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        if buffer.first() == Some(&23) {
            if buffer.len() >= QUESTION {
                let digits = String::from_utf8_lossy(&buffer[5..17]).into_owned();
                buffer.drain(..QUESTION);
                send(stream, link, digits.trim().parse().unwrap_or(0)).await?;
                continue;
            }
        } else if let Some(end) = buffer.windows(4).position(|it| it == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            buffer.drain(..end + 4);
            let path = head.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
            match path.parse() {
                Ok(size) => {
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n");
                    stream.write_all(head.as_bytes()).await?;
                    send(stream, link, size).await?;
                }
                Err(_) => return fail(stream, path).await,
            }
            continue;
        }
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    }
}

async fn send(stream: &TcpStream, link: &Link, size: usize) -> std::io::Result<()> {
    let mut left = size;
    while left > 0 {
        stream.writable().await?;
        match stream.try_write(&[b'x'; SEGMENT][..left.min(SEGMENT)]) {
            Ok(size) => {
                left -= size;
                link.carry().await;
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn fail(stream: &mut TcpStream, how: &str) -> std::io::Result<()> {
    let begins = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nsome";
    match how {
        "reset" => {
            stream.write_all(begins.as_bytes()).await?;
            reset(stream);
        }
        "stuck" => {
            stream.write_all(begins.as_bytes()).await?;
            sleep(Duration::from_secs(30)).await;
        }
        "tarpit" => {
            stream.write_all(begins.as_bytes()).await?;
            for _ in 0..60 {
                stream.write_all(b"x").await?;
                sleep(Duration::from_millis(500)).await;
            }
        }
        "nonsense" => stream.write_all(b"SSH-2.0-what\r\n\r\n").await?,
        "chunk" => {
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            stream.write_all(format!("{head}3;x\r\nabc\r\nzz\r\n").as_bytes()).await?;
        }
        "head" => {
            let field = format!("X: {}\r\n", "x".repeat(1_000));
            stream
                .write_all(format!("HTTP/1.1 200 OK\r\n{}", field.repeat(100)).as_bytes())
                .await?;
        }
        _ => {}
    }
    Ok(())
}
