//! Connections to servers: new ones, and those that are kept for the next request.
//!
//! A connection has one response at a time, so that the gateway can stop reading one
//! response without stopping others. When that is complete, it is kept, and the one that
//! was used last is taken first: its congestion window has had the least time to expire.
//! Whoever had a response broken off opens the next connection to that server (see [`Debts`]).

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::rc::Rc;

use tidegate_core::request::{Debts, OriginId, UserId};
use tidegate_core::{Bytes, Span};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, timeout};

use crate::config::{Current, LEAST_BUFFER};
use crate::gate::duration;
use crate::message::Target;
use crate::names::Names;
use crate::socket::{self, Inbox};

/// What the receive buffer of a connection holds at most when responses are held back: a round trip of 100 ms at 320 Mbit/s.
pub(crate) const MOST_BUFFER: Bytes = Bytes(4 << 20);

/// Round trips that are shorter count as this long: the gateway itself is no faster while it
/// serves others, and a buffer for less would stop the server again and again.
const LEAST_ROUND_TRIP: Span = Span::millis(1);

/// A receive buffer holds so many segments: a sender waits, up to a fifth of a second, until a
/// whole one fits (RFC 9293 section 3.8.6.2.1). Only those of the loopback interface, of 64 kB,
/// are so large that it matters.
const SEGMENTS: u64 = 4;

/// The window that a handshake offers at most, which has no scale (RFC 9293 section 3.1).
const FIRST_OFFER: u64 = 65_535;

/// Why a server cannot be reached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error("the target is not permitted")]
    Forbidden,
    #[error("the name cannot be resolved: {0}")]
    Unknown(io::Error),
    #[error("it cannot be reached: {0}")]
    Unreachable(io::Error),
    #[error("it does not answer in time")]
    Late,
}

impl DialError {
    /// The status code that tells a client so.
    pub(crate) fn status(&self) -> u16 {
        match self {
            DialError::Forbidden => 403,
            DialError::Unknown(_) | DialError::Unreachable(_) => 502,
            DialError::Late => 504,
        }
    }
}

/// A connection to a server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) stream: TcpStream,
    pub(crate) inbox: Inbox,
    /// The time that the connection took to come up, and whose that is.
    pub(crate) round_trip: Span,
    pub(crate) origin: OriginId,
    /// Whether it had a response before.
    pub(crate) is_kept: bool,
    /// What the receive buffer holds at least.
    least: Bytes,
    /// What the receive buffer has to hold, whatever it should: what the server was
    /// offered. `None` where the kernel sizes the buffer.
    offered: Cell<Option<u64>>,
    /// Its size.
    buffer: Cell<u64>,
}

impl Server {
    /// Changes the receive buffer to this size, or as near to it as what was offered
    /// permits, if that is worth a system call.
    pub(crate) fn resize(&self, size: Bytes) {
        let Some(offered) = self.offered.get() else { return };
        let size = size.clamp(self.least, MOST_BUFFER).0.max(offered);
        let before = self.buffer.get();
        // What is read is offered again unless the buffer shrinks at once, a little each time.
        if size < before || size - before > before / 4 {
            socket::set_buffer(&self.stream, size as usize);
            self.buffer.set(size);
        }
        self.offered.set(Some(self.buffer.get()));
    }

    /// So much of it was read, and is offered again or not.
    ///
    /// TCP never takes an offer back: what it offered comes, and what does not fit is lost
    /// and has to be sent again. The kernel doubles the size of a buffer for what each
    /// segment takes besides its payload, and may take less: half of what is read is
    /// certainly not missed.
    pub(crate) fn was_read(&self, size: usize) {
        let half = size as u64 / 2;
        self.offered.set(self.offered.get().map(|offered| offered.saturating_sub(half)));
    }
}

/// All connections to servers that have no response.
#[derive(Debug)]
pub(crate) struct Servers {
    config: Rc<Current>,
    /// The ports at which the gateway itself answers.
    own_ports: Vec<u16>,
    names: Names,
    kept: RefCell<BTreeMap<Target, VecDeque<(Server, Instant)>>>,
    debts: RefCell<Debts<(UserId, Target)>>,
}

impl Servers {
    pub(crate) fn new(config: Rc<Current>, own_ports: Vec<u16>) -> Servers {
        let (kept, debts) = (RefCell::default(), RefCell::default());
        Servers { config, own_ports, names: Names::default(), kept, debts }
    }

    /// The addresses of a target of this user that may be dialled.
    pub(crate) async fn resolve(
        &self,
        user: UserId,
        target: &Target,
    ) -> Result<Vec<SocketAddr>, DialError> {
        let port = target.port;
        let addresses: Vec<SocketAddr> = match target.host.parse::<IpAddr>() {
            Ok(address) => vec![(address, port).into()],
            Err(_) => {
                let found = self.names.find(user, &target.host, port);
                let found = timeout(duration(self.config.get().timeouts.connect), found).await;
                found.map_err(|_| DialError::Late)?.map_err(DialError::Unknown)?
            }
        };
        let found = addresses.len();
        // By address and not by name, whatever the name resolves to.
        let allowed: Vec<_> =
            addresses.into_iter().filter(|address| self.permits(*address)).collect();
        match allowed.is_empty() {
            true if found > 0 => Err(DialError::Forbidden),
            true => Err(DialError::Unknown(io::ErrorKind::NotFound.into())),
            false => Ok(allowed),
        }
    }

    /// Whether a server may be at this address.
    pub(crate) fn permits(&self, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        if ip.is_unspecified() || ip.is_multicast() {
            return false;
        }
        // A request to itself would come back for ever.
        if self.own_ports.contains(&address.port()) && is_of_this_machine(ip) {
            return false;
        }
        let is_near = match ip {
            IpAddr::V4(ip) => ip.is_loopback() || ip.is_link_local() || ip.is_broadcast(),
            IpAddr::V6(ip) => ip.is_loopback() || ip.is_unicast_link_local(),
        };
        !is_near || self.config.get().local_targets.iter().any(|target| target.contains(&ip))
    }

    /// A connection that was kept, if there is one, and if this user has not lost another.
    pub(crate) fn take(&self, user: UserId, target: &Target) -> Option<Server> {
        if self.debts.borrow_mut().must_open(&(user, target.clone())) {
            return None;
        }
        let mut all = self.kept.borrow_mut();
        let kept = all.get_mut(target)?;
        while let Some((server, _)) = kept.pop_back() {
            // A server that has closed it, or sent what nobody asked for, is of no use.
            if socket::is_quiet(&server.stream) {
                server.resize(LEAST_BUFFER);
                return Some(server);
            }
        }
        all.remove(target);
        None
    }

    /// Whether there may be one for this user.
    pub(crate) fn has_kept(&self, user: UserId, target: &Target) -> bool {
        self.kept.borrow().get(target).is_some_and(|kept| !kept.is_empty())
            && !self.debts.borrow().owes(&(user, target.clone()))
    }

    /// Keeps a connection whose response is complete.
    pub(crate) fn keep(&self, target: &Target, server: Server) {
        let mut all = self.kept.borrow_mut();
        let kept = all.entry(target.clone()).or_default();
        kept.push_back((Server { is_kept: true, ..server }, Instant::now()));
        if kept.len() > self.config.get().limits.kept as usize {
            kept.pop_front();
        }
    }

    /// A response of this user is broken off, and so is its connection, which others could
    /// have used.
    pub(crate) fn break_off(&self, user: UserId, target: &Target, server: Server) {
        self.debts.borrow_mut().broke_off((user, target.clone()));
        socket::abort(server.stream);
    }

    /// Closes those that have been kept for long enough, or whose server has closed them.
    pub(crate) fn close_idle(&self) {
        let idle = duration(self.config.get().timeouts.kept);
        self.kept.borrow_mut().retain(|_, kept| {
            kept.retain(|(server, since)| {
                since.elapsed() < idle && socket::is_quiet(&server.stream)
            });
            !kept.is_empty()
        });
    }

    /// Closes all that are kept.
    pub(crate) fn close_all(&self) {
        self.kept.borrow_mut().clear();
    }

    /// How many are kept.
    pub(crate) fn kept(&self) -> usize {
        self.kept.borrow().values().map(VecDeque::len).sum()
    }

    /// Opens a connection to one of these addresses, in their order.
    pub(crate) async fn dial(&self, addresses: &[SocketAddr]) -> Result<Server, DialError> {
        let all = async {
            let mut reason = io::ErrorKind::NotFound.into();
            for address in addresses {
                match self.dial_one(*address).await {
                    Ok(server) => return Ok(server),
                    Err(error) => reason = error,
                }
            }
            Err(DialError::Unreachable(reason))
        };
        timeout(duration(self.config.get().timeouts.connect), all)
            .await
            .map_err(|_| DialError::Late)?
    }

    async fn dial_one(&self, address: SocketAddr) -> io::Result<Server> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        let holds_back = self.config.get().settings.read_gate.is_some();
        let (buffer, offered) = holds_back.then(|| first_buffer(&socket)).unzip();
        let since = Instant::now();
        let stream = socket.connect(address).await?;
        let round_trip = Span(u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let round_trip = round_trip.max(LEAST_ROUND_TRIP);
        socket::prepare(&stream);
        let inbox = Inbox::default();
        let origin = origin_of(address.ip());
        if let Some(size) = buffer {
            // From here on the kernel does not size it.
            socket::set_buffer(&stream, size as usize);
        }
        let least = least_buffer(&stream);
        let (offered, buffer) = (Cell::new(offered), Cell::new(buffer.unwrap_or_default()));
        let is_kept = false;
        let server = Server { stream, inbox, round_trip, origin, is_kept, least, offered, buffer };
        server.resize(LEAST_BUFFER);
        Ok(server)
    }
}

/// Has the handshake of a connection that is held back offer little, and returns the size
/// of its buffer then and what is offered.
fn first_buffer(socket: &TcpSocket) -> (u64, u64) {
    if socket::offer_little(socket) {
        return (LEAST_BUFFER.0, LEAST_BUFFER.0);
    }
    // Before Linux 5.15, the handshake fixes the scale of the window by this.
    let _ = socket.set_recv_buffer_size(MOST_BUFFER.0 as u32);
    (MOST_BUFFER.0, FIRST_OFFER)
}

/// What the receive buffer of a connection holds at least.
fn least_buffer(stream: &TcpStream) -> Bytes {
    LEAST_BUFFER.max(Bytes(SEGMENTS * socket::largest_segment(stream)))
}

/// Servers at one address share a path, and those in one network of IPv6.
pub(crate) fn origin_of(address: IpAddr) -> OriginId {
    match address.to_canonical() {
        IpAddr::V4(address) => OriginId(address.to_bits().into()),
        // Nobody has fewer addresses than a network of them.
        IpAddr::V6(address) => OriginId((address.to_bits() >> 64) as u64),
    }
}

/// Only a machine's own addresses can be bound to.
fn is_of_this_machine(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use socket2::SockRef;
    use tokio::net::TcpListener;

    use super::*;

    /// A connection over the loopback interface whose buffer holds as much as possible.
    async fn server(least: impl Fn(&TcpStream) -> Bytes) -> (Server, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback is there");
        let address = listener.local_addr().expect("it is bound");
        let stream = TcpStream::connect(address).await.expect("somebody listens");
        let server = Server {
            least: least(&stream),
            stream,
            inbox: Inbox::default(),
            round_trip: Span::ZERO,
            origin: origin_of(address.ip()),
            is_kept: false,
            offered: Cell::new(Some(FIRST_OFFER)),
            buffer: Cell::new(MOST_BUFFER.0),
        };
        (server, listener)
    }

    fn size(server: &Server) -> usize {
        SockRef::from(&server.stream).recv_buffer_size().expect("it is a socket")
    }

    /// With less, servers on the same machine wait again and again until a segment fits.
    #[tokio::test]
    async fn a_buffer_holds_a_few_segments_however_large_they_are() {
        let (server, _listener) = server(least_buffer).await;
        for _ in 0..20 {
            server.was_read(60_000);
            server.resize(LEAST_BUFFER);
        }
        assert!(size(&server) > 4 * 32_000, "{}", size(&server));
    }

    #[tokio::test]
    async fn a_buffer_shrinks_with_what_is_read_however_small_the_pieces() {
        let (server, _listener) = server(|_| LEAST_BUFFER).await;
        server.resize(LEAST_BUFFER);
        let first = size(&server);
        assert!(first as u64 >= FIRST_OFFER, "what was offered has to fit: {first}");
        // Half of what is read is certainly not missed.
        let piece = 8_000;
        let pieces = (FIRST_OFFER - LEAST_BUFFER.0).div_ceil(piece / 2);
        for _ in 0..pieces {
            server.was_read(piece as usize);
            server.resize(LEAST_BUFFER);
        }
        assert!(size(&server) < first / 2, "{} after {first}", size(&server));
    }
}
