//! The clients of a case: they ask for what the simulator's clients ask for.
//!
//! Sizes, servers and pauses come from [`Loop`]s, which draw what they draw in a run with
//! the same seed. Connections are the simulator's too: a client has at most six to a server,
//! or to the proxy on behalf of a server, and each carries one response at a time and stays
//! open; or, in a setup without connections that stay open, each carries one response.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Bytes, Span, Time};
use tidegate_sim::pages::AT_ONCE;
use tidegate_sim::requests::{Loop, Setup, Through};
use tidegate_sim::scenario::Protocol;
use tokio::net::TcpSocket;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::network;
use super::talk::{self, Line};

/// The status by which a proxy says that nothing came for too long (RFC 9110 section 15.6.5).
const GATEWAY_TIMEOUT: u16 = 504;

/// How an object that somebody had asked for ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All of it has come.
    Completed,
    /// The proxy answered in the server's place.
    Refused,
    /// Nothing came for too long.
    Stalled,
    /// The connection broke.
    Broken,
}

/// An object that somebody has asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) class: usize,
    pub(crate) size: Bytes,
    pub(crate) at: Time,
    /// When and how it ended, unless the end of the run cut it off.
    pub(crate) over: Option<(Time, Ending)>,
}

/// What the clients have seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) asked: Vec<Asked>,
    /// What had come for each class at each of the times of samples.
    pub(crate) received: Vec<Vec<Bytes>>,
}

/// What clients are told.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) setup: Arc<Setup>,
    pub(crate) servers: Vec<Ipv4Addr>,
    /// The proxy that they know of.
    pub(crate) proxy: Option<SocketAddr>,
    /// Whether nobody else gives up for them a response that does not come.
    pub(crate) is_end_to_end: bool,
    pub(crate) begun: std::time::Instant,
    /// The times of samples, the last of which is the end.
    pub(crate) samples: Vec<Duration>,
}

/// The connections of a client to a server.
struct Pool {
    /// As many as may be open at a time.
    places: Semaphore,
    /// Those without a request, and since when.
    free: RefCell<Vec<(Line, Instant)>>,
}

/// What the clients have in common.
struct Crowd {
    order: Order,
    begun: Instant,
    pools: RefCell<BTreeMap<(usize, u32, usize), Rc<Pool>>>,
    seen: RefCell<Seen>,
    received: RefCell<Vec<Bytes>>,
}

/// Has all loops ask from now on, until the last sample.
pub(crate) async fn ask(order: Order, loops: Vec<Loop>) -> Seen {
    let begun = Instant::from_std(order.begun);
    let received = vec![Bytes::ZERO; order.setup.classes.len()];
    let crowd = Rc::new(Crowd {
        begun,
        pools: RefCell::default(),
        seen: RefCell::default(),
        received: RefCell::new(received),
        order,
    });
    let mut tasks = JoinSet::new();
    for one in loops {
        tasks.spawn_local(crowd.clone().go_round(one));
    }
    for at in crowd.order.samples.clone() {
        tokio::time::sleep_until(begun + at).await;
        let received = crowd.received.borrow().clone();
        crowd.seen.borrow_mut().received.push(received);
    }
    // Whatever is on its way now does not count.
    crowd.seen.take()
}

/// An error after such a wait. Whoever has the patience on the way breaks off what has begun:
/// where a client saw nothing for nearly as long, that is why, since a gateway counts from what
/// it has passed on earlier.
fn error_after(waited: Duration, patience: Option<Span>, error: io::Error) -> io::Error {
    let nearly = patience.map(|patience| Duration::from_nanos(patience.0) * 9 / 10);
    match nearly {
        Some(nearly) if waited >= nearly => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

impl Crowd {
    fn now(&self) -> Time {
        Time::ZERO + Span(self.begun.elapsed().as_nanos() as u64)
    }

    /// One loop: pages with pauses between them, or at times of their own.
    async fn go_round(self: Rc<Crowd>, mut one: Loop) {
        let mut from = Time::ZERO;
        while let Some(at) = one.next_page(from) {
            tokio::time::sleep_until(self.begun + Duration::from_nanos(at.0)).await;
            let mut objects = JoinSet::new();
            for (size, server) in one.page() {
                let place = (one.class(), one.client(), server);
                objects.spawn_local(self.clone().fetch(place, size));
            }
            if one.is_closed() {
                while objects.join_next().await.is_some() {}
                from = self.now();
            } else {
                objects.detach_all();
                from = at;
            }
        }
    }

    /// One object, from the moment at which it is asked for.
    async fn fetch(self: Rc<Crowd>, place: (usize, u32, usize), size: Bytes) {
        let class = place.0;
        let number = {
            let asked = &mut self.seen.borrow_mut().asked;
            asked.push(Asked { class, size, at: self.now(), over: None });
            asked.len() - 1
        };
        let pool = {
            let places = Semaphore::new(AT_ONCE as usize);
            let new = || Rc::new(Pool { places, free: RefCell::default() });
            self.pools.borrow_mut().entry(place).or_insert_with(new).clone()
        };
        // Whoever waits the longest gets the place.
        let permit = match self.is_once() {
            true => None,
            false => Some(pool.places.acquire().await),
        };
        let ending = match self.exchange(place, &pool, size).await {
            Ok(200) => Ending::Completed,
            Ok(GATEWAY_TIMEOUT) => Ending::Stalled,
            Ok(_) => Ending::Refused,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ending::Stalled,
            Err(_) => Ending::Broken,
        };
        drop(permit);
        // After the last sample, nobody looks.
        if let Some(asked) = self.seen.borrow_mut().asked.get_mut(number) {
            asked.over = Some((self.now(), ending));
        }
    }

    /// Whether a connection carries only one response.
    fn is_once(&self) -> bool {
        self.order.setup.http.protocol == Protocol::Http10
    }

    /// Asks over a connection that is free, or a new one.
    async fn exchange(
        &self,
        place: (usize, u32, usize),
        pool: &Pool,
        size: Bytes,
    ) -> io::Result<u16> {
        loop {
            let free = {
                let mut free = pool.free.borrow_mut();
                let keep = Duration::from_nanos(self.order.setup.http.keep_alive.0);
                free.retain(|(line, since)| since.elapsed() < keep && !line.is_over());
                (!free.is_empty()).then(|| free.remove(0).0)
            };
            let is_kept = free.is_some();
            let mut line = match free {
                Some(line) => line,
                None => self.patiently(place.0, self.open(place)).await?,
            };
            match self.fetch_over(&mut line, place, size).await {
                Ok((status, is_last)) => {
                    if !is_last && !self.is_once() {
                        pool.free.borrow_mut().push((line, Instant::now()));
                    }
                    return Ok(status);
                }
                // It was closed while the request was on its way (RFC 9112 section 9.3.1).
                Err((error, 0)) if is_kept && error.kind() != io::ErrorKind::TimedOut => {}
                Err((error, _)) => return Err(error),
            }
        }
    }

    /// Waits for something; where no gateway knows of the request, not for ever.
    async fn patiently<T>(
        &self,
        class: usize,
        what: impl Future<Output = io::Result<T>>,
    ) -> io::Result<T> {
        let is_hidden = self.order.setup.classes[class].through == Through::Tunnels;
        let (since, patience) = (Instant::now(), self.order.setup.patience);
        let came = match patience {
            Some(patience) if is_hidden || self.order.is_end_to_end => {
                timeout(Duration::from_nanos(patience.0), what).await?
            }
            _ => what.await,
        };
        came.map_err(|error| error_after(since.elapsed(), patience, error))
    }

    /// A new connection to a server, through the proxy if there is one.
    async fn open(&self, (class, client, server): (usize, u32, usize)) -> io::Result<Line> {
        let setup = &self.order.setup;
        let is_tunnel = setup.classes[class].through == Through::Tunnels;
        let port = if is_tunnel { talk::TLS } else { talk::HTTP };
        let server = SocketAddr::from((self.order.servers[server], port));
        let socket = TcpSocket::new_v4()?;
        socket.bind((network::client(class, client), 0).into())?;
        let stream = socket.connect(self.order.proxy.unwrap_or(server)).await?;
        let mut line = Line::new(stream);
        if !is_tunnel {
            return Ok(line);
        }
        if self.order.proxy.is_some() {
            let connect = format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\n");
            line.write(connect.as_bytes(), 0).await?;
            let head = line.head(talk::response_head).await?;
            if head.is_none_or(|head| head.status != 200) {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
        }
        line.shake_hands(setup.http.handshakes.max(1)).await?;
        Ok(line.in_records())
    }

    /// Asks for an object over a connection: the status, and whether the connection ends
    /// with it; or what went wrong after how many bytes.
    async fn fetch_over(
        &self,
        line: &mut Line,
        (class, _, server): (usize, u32, usize),
        size: Bytes,
    ) -> Result<(u16, bool), (io::Error, u64)> {
        let setup = &self.order.setup;
        let host = self.order.servers[server].to_string();
        let is_absolute =
            self.order.proxy.is_some() && setup.classes[class].through == Through::Requests;
        let target = if is_absolute { format!("http://{host}") } else { String::new() };
        let length = setup.classes[class].request.unwrap_or(setup.request).0;
        let request = talk::request(&target, &host, size.0, length);
        let head = async {
            line.write(&request, 0).await?;
            line.head(talk::response_head).await?.ok_or(io::ErrorKind::UnexpectedEof.into())
        };
        let head = self.patiently(class, head).await.map_err(|error| (error, 0))?;
        self.count(class, head.size);
        let mut left = head.body;
        while left > 0 {
            let came = self.patiently(class, line.body(left)).await;
            let came = came.map_err(|error| (error, head.size + head.body - left))?;
            left -= came;
            self.count(class, came);
        }
        Ok((head.status, head.is_last))
    }

    fn count(&self, class: usize, bytes: u64) {
        self.received.borrow_mut()[class] += Bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_breaks_off_when_nothing_came_for_long_is_a_timeout() {
        let kind = |seconds, patience: Option<u64>| {
            let patience = patience.map(Span::seconds);
            let broken = io::ErrorKind::UnexpectedEof.into();
            error_after(Duration::from_secs(seconds), patience, broken).kind()
        };
        assert_eq!(kind(59, Some(60)), io::ErrorKind::TimedOut);
        assert_eq!(kind(50, Some(60)), io::ErrorKind::UnexpectedEof);
        assert_eq!(kind(3_600, None), io::ErrorKind::UnexpectedEof);
    }
}
