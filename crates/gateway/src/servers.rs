//! Connections to servers: new ones, and those that are kept for the next request.
//!
//! A connection has one response at a time, so that the gateway can stop reading one
//! response without stopping others. When that is complete, it is kept, and the one that
//! was used last is taken first: its congestion window has had the least time to expire.
//! Whoever had a response broken off opens the next connection to that server (see [`Debts`]).

use std::cell::RefCell;
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
use crate::window::{First, Offered, Window};

/// Round trips that are shorter count as this long: the gateway itself is no faster while it
/// serves others, and a buffer for less would stop the server again and again.
const LEAST_ROUND_TRIP: Span = Span::millis(1);

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
    /// How far the server may be ahead; `None` where the kernel decides that.
    window: Option<Window>,
}

impl Server {
    /// So much should come ahead of what is read.
    pub(crate) fn resize(&self, size: Bytes) {
        if let Some(window) = &self.window {
            window.resize(&self.stream, size);
        }
    }

    /// At most so much is read next.
    pub(crate) fn shrink(&self, most: usize) {
        if let Some(window) = &self.window {
            window.shrink(&self.stream, most);
        }
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
    offered: Offered,
}

impl Servers {
    pub(crate) fn new(config: Rc<Current>, own_ports: Vec<u16>) -> Servers {
        let (kept, debts) = (RefCell::default(), RefCell::default());
        let (names, offered) = (Names::default(), Offered::default());
        Servers { config, own_ports, names, kept, debts, offered }
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
        let first = holds_back.then(|| First::offer(&socket, &self.offered));
        let since = Instant::now();
        let stream = socket.connect(address).await?;
        let round_trip = Span(u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let round_trip = round_trip.max(LEAST_ROUND_TRIP);
        socket::prepare(&stream);
        let inbox = Inbox::default();
        let origin = origin_of(address.ip());
        let window = first.map(|first| Window::of(&stream, first, self.offered.clone()));
        Ok(Server { stream, inbox, round_trip, origin, is_kept: false, window })
    }
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
