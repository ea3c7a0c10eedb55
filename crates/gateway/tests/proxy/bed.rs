//! A gateway on loopback, servers that do as told, and clients that write bytes.
//!
//! Clients of different classes and users have different addresses of 127.0.0.0/8.
//! Waits have an end (`PATIENCE`) far beyond what a busy machine takes; nothing is
//! concluded from something being fast.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_core::request::{TunnelConfig, catalogue};
use tidegate_core::{Rate, Span};
use tidegate_gateway::class::Class;
use tidegate_gateway::config::{Limits, Timeouts};
use tidegate_gateway::{Config, Control, Gateway};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

/// The longest that any single step takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Ends after the longest time.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("it takes too long")
}

/// A gateway for 100 Mbit/s with this scheduler. The clients of class `a` are 127.0.1.0/24,
/// those of class `b` 127.0.2.0/24, and their weights 4 and 1.
pub(crate) fn config(scheduler: &str, settings: &[(&str, &str)]) -> Config {
    let entry = catalogue::find(scheduler).expect("it is in the catalogue");
    let settings = entry.settings(settings).expect("they are correct");
    let class = |name: &str, weight, source: &str| {
        let sources = vec![source.parse().expect("it is a network")];
        Class::of(name, NonZeroU32::new(weight).expect("not zero"), sources)
    };
    Config {
        intercept: None,
        listen: vec![(Ipv4Addr::LOCALHOST, 0).into()],
        admin: Some((Ipv4Addr::LOCALHOST, 0).into()),
        admin_token: None,
        rate: Rate(100_000_000),
        interface: None,
        scheduler: entry,
        settings: (entry.config)(&settings),
        classes: vec![class("a", 4, "127.0.1.0/24"), class("b", 1, "127.0.2.0/24")],
        passwords: Arc::default(),
        local_targets: vec!["127.0.0.0/8".parse().expect("it is a network")],
        log_requests: true,
        limits: Limits::default(),
        timeouts: Timeouts { client: Span::seconds(15), ..Timeouts::default() },
        tunnels: TunnelConfig::default(),
        files: Vec::new(),
    }
}

/// Runs `test` beside a gateway with these settings.
pub(crate) async fn beside<F: Future<Output = ()>>(
    config: Config,
    test: impl FnOnce(SocketAddr) -> F,
) {
    beside_admin(config, |gateway, _| test(gateway)).await;
}

/// Runs `test` beside a gateway with these settings, with the address of its admin port.
pub(crate) async fn beside_admin<F: Future<Output = ()>>(
    config: Config,
    test: impl FnOnce(SocketAddr, SocketAddr) -> F,
) {
    let gateway = Gateway::bind(config, 1).await.expect("loopback can be listened at");
    let address = gateway.addresses().expect("it is bound")[0];
    let admin = gateway.admin_address().expect("it has one");
    tokio::select! {
        () = gateway.serve() => {}
        () = test(address, admin) => {}
    }
}

/// Runs `test` beside a gateway with these settings, which it may change.
pub(crate) async fn beside_control<F: Future<Output = ()>>(
    config: Config,
    test: impl FnOnce(SocketAddr, Control) -> F,
) {
    let gateway = Gateway::bind(config, 1).await.expect("loopback can be listened at");
    let (address, control) = (gateway.addresses().expect("it is bound")[0], gateway.control());
    tokio::select! {
        () = gateway.serve() => {}
        () = test(address, control) => {}
    }
}

/// A client of the gateway.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    unread: Vec<u8>,
}

/// Head and body of a response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.head[9..12].parse().expect("a status code")
    }

    pub(crate) fn has(&self, line: &str) -> bool {
        self.head.contains(&format!("{line}\r\n"))
    }
}

impl Client {
    /// Somebody at this machine.
    pub(crate) async fn local(address: SocketAddr) -> Client {
        let stream = soon(TcpStream::connect(address)).await.expect("somebody listens");
        Client { stream, unread: Vec::new() }
    }

    /// A client at 127.0.`class`.`user`.
    pub(crate) async fn of(gateway: SocketAddr, class: u8, user: u8) -> Client {
        let socket = TcpSocket::new_v4().expect("there are sockets");
        socket.bind((Ipv4Addr::new(127, 0, class, user), 0).into()).expect("loopback is all ours");
        let stream = soon(socket.connect(gateway)).await.expect("the gateway listens");
        Client { stream, unread: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        soon(self.stream.write_all(bytes.as_ref())).await.expect("the gateway reads");
    }

    /// Asks for a path of a server.
    pub(crate) async fn get(&mut self, server: SocketAddr, path: &str) -> Answer {
        self.send(format!("GET http://{server}{path} HTTP/1.1\r\nHost: {server}\r\n\r\n")).await;
        self.answer().await
    }

    /// A head, and nothing behind it.
    pub(crate) async fn head(&mut self) -> String {
        loop {
            let end = self.unread.windows(4).position(|it| it == b"\r\n\r\n");
            if let Some(end) = end {
                let head = self.unread.drain(..end + 4).collect();
                return String::from_utf8(head).expect("heads are in ASCII");
            }
            let mut piece = vec![0; 65_536];
            let size = soon(self.stream.read(&mut piece)).await.expect("the gateway answers");
            let so_far = self.unread.escape_ascii();
            assert!(size > 0, "the gateway ends within a head: {so_far}");
            self.unread.extend_from_slice(&piece[..size]);
        }
    }

    /// A response with a length, or else all until the end of the connection.
    pub(crate) async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let body = match length {
            Some(length) => self.exactly(length.parse().expect("a number")).await,
            None => self.rest().await.expect("it ends in order"),
        };
        Answer { head, body }
    }

    pub(crate) async fn exactly(&mut self, size: usize) -> Vec<u8> {
        while self.unread.len() < size {
            let mut piece = vec![0; 65_536];
            let more = soon(self.stream.read(&mut piece)).await.expect("the gateway answers");
            assert!(more > 0, "the connection ends too early");
            self.unread.extend_from_slice(&piece[..more]);
        }
        self.unread.drain(..size).collect()
    }

    /// Everything until the end of the connection.
    pub(crate) async fn rest(&mut self) -> std::io::Result<Vec<u8>> {
        let mut all = std::mem::take(&mut self.unread);
        soon(self.stream.read_to_end(&mut all)).await?;
        Ok(all)
    }
}

/// A server that plays its part for each connection, and what it was sent.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    heard: Arc<Mutex<Vec<u8>>>,
}

/// A server's end of a connection.
pub(crate) struct End {
    pub(crate) stream: TcpStream,
    unread: Vec<u8>,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl End {
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // The gateway may have left, which is what some tests are about.
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    /// The head of the next request; `None` when there is none.
    pub(crate) async fn request(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.unread.windows(4).position(|it| it == b"\r\n\r\n") {
                let head = self.unread.drain(..end + 4).collect();
                return Some(String::from_utf8(head).expect("heads are in ASCII"));
            }
            self.more().await?;
        }
    }

    pub(crate) async fn exactly(&mut self, size: usize) -> Option<Vec<u8>> {
        while self.unread.len() < size {
            self.more().await?;
        }
        Some(self.unread.drain(..size).collect())
    }

    async fn more(&mut self) -> Option<()> {
        let mut piece = vec![0; 65_536];
        let size = self.stream.read(&mut piece).await.ok().filter(|size| *size > 0)?;
        self.unread.extend_from_slice(&piece[..size]);
        self.heard.lock().expect("no test panicked with it").extend_from_slice(&piece[..size]);
        Some(())
    }
}

impl Server {
    pub(crate) async fn that<F>(play: impl Fn(End) -> F + Send + Sync + 'static) -> Server
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let server = Server { address, connections: Arc::default(), heard: Arc::default() };
        let (connections, heard) = (server.connections.clone(), server.heard.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let _ = stream.set_nodelay(true);
                tokio::spawn(play(End { stream, unread: Vec::new(), heard: heard.clone() }));
            }
        });
        server
    }

    /// A server that answers every request on a connection with these bytes.
    pub(crate) async fn answering(bytes: impl Into<Vec<u8>>) -> Server {
        let bytes = Arc::new(bytes.into());
        Server::that(move |mut end| {
            let bytes = bytes.clone();
            async move {
                while end.request().await.is_some() {
                    end.send(&*bytes).await;
                }
            }
        })
        .await
    }

    /// A server whose responses have the size that the path is.
    pub(crate) async fn of_sizes() -> Server {
        Server::that(|mut end| async move {
            while let Some(head) = end.request().await {
                let path = head.split(' ').nth(1).unwrap_or_default();
                let size = path.trim_start_matches('/').parse().unwrap_or(0);
                end.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n")).await;
                end.send(vec![b'x'; size]).await;
            }
        })
        .await
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// All that it was sent.
    pub(crate) fn heard(&self) -> String {
        let heard = self.heard.lock().expect("no test panicked with it");
        String::from_utf8_lossy(&heard).into_owned()
    }
}
