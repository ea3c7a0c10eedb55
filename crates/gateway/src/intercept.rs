//! Connections that clients meant for servers, and that the machine hands to the gateway.
//!
//! Whoever routes for the users can take their connections without their knowledge: the
//! kernel rewrites the destination (*redirect*), or hands packets over as they are
//! (*tproxy*). Which connections it takes is up to [rules](crate::rules); the gateway only
//! asks where a connection was going. HTTP is then read as a server reads it, and all else
//! is a tunnel to that address.
//!
//! QUIC has no connections that the kernel could rewrite and remember: to relay it, datagrams
//! are always handed over as they are.
//!
//! A connection that was meant for the gateway itself is none of these, and is closed: it
//! would lead back here for ever.

use std::io;
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use crate::datagrams;

/// Which connections of clients are intercepted, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Intercept {
    /// Where the kernel hands them over.
    pub listen: SocketAddr,
    /// How it does.
    pub mode: Mode,
    /// The ports of servers that speak HTTP.
    pub http: Vec<u16>,
    /// The ports of servers whose connections are tunnels.
    pub tunnels: Vec<u16>,
    /// What becomes of QUIC.
    pub quic: Quic,
    /// Whether what clients receive besides counts for them.
    pub count_others: bool,
}

/// How the kernel hands connections over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Their destination is rewritten, and remembered.
    #[default]
    Redirect,
    /// They keep their destination; needs `CAP_NET_ADMIN`.
    Tproxy,
}

/// What becomes of QUIC, in which no gateway can tell one request from another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Quic {
    /// It is refused by ICMP, so that browsers use TCP instead.
    #[default]
    Reject,
    /// It passes unscheduled.
    Pass,
    /// The gateway relays it unopened; needs `CAP_NET_ADMIN`, and `CAP_NET_BIND_SERVICE` for
    /// ports below 1024.
    Relay,
}

impl Intercept {
    /// Whether packets keep their destination, and so need a route to this machine.
    #[must_use]
    pub fn needs_routes(&self) -> bool {
        self.mode == Mode::Tproxy || self.quic == Quic::Relay
    }

    /// Opens the socket.
    pub(crate) fn listen(&self) -> io::Result<TcpListener> {
        let named = |reason: io::Error| {
            let hint = match (self.mode, reason.kind()) {
                (Mode::Tproxy, io::ErrorKind::PermissionDenied) => " (tproxy needs CAP_NET_ADMIN)",
                _ => "",
            };
            let text = format!("cannot listen at {}: {reason}{hint}", self.listen);
            io::Error::new(reason.kind(), text)
        };
        self.open().map_err(named)
    }

    /// Opens the socket for QUIC, if it is relayed.
    pub(crate) fn listen_for_quic(&self) -> io::Result<Option<UdpSocket>> {
        let open = (self.quic == Quic::Relay).then(|| datagrams::listen(self.listen));
        open.transpose().map_err(|reason| {
            let hint = match reason.kind() {
                io::ErrorKind::PermissionDenied => " (to relay QUIC needs CAP_NET_ADMIN)",
                _ => "",
            };
            let text = format!("cannot listen at {} for QUIC: {reason}{hint}", self.listen);
            io::Error::new(reason.kind(), text)
        })
    }

    fn open(&self) -> io::Result<TcpListener> {
        /// As long as the queue of tokio's own listeners.
        const QUEUE: i32 = 1_024;

        let socket =
            Socket::new(Domain::for_address(self.listen), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        if self.mode == Mode::Tproxy {
            // One bit of the kernel serves both families.
            socket.set_ip_transparent_v4(true)?;
        }
        socket.bind(&self.listen.into())?;
        socket.listen(QUEUE)?;
        TcpListener::from_std(socket.into())
    }

    /// The server that a connection was meant for, and that the gateway takes for it.
    pub(crate) fn server(&self, stream: &TcpStream) -> io::Result<SocketAddr> {
        let local = stream.local_addr()?;
        let server = match self.mode {
            Mode::Tproxy => local,
            Mode::Redirect => {
                let socket = SockRef::from(stream);
                let is_v4 = local.ip().to_canonical().is_ipv4();
                let server =
                    if is_v4 { socket.original_dst_v4() } else { socket.original_dst_v6() };
                server?.as_socket().ok_or(io::ErrorKind::InvalidData)?
            }
        };
        if !self.takes(server) || (self.mode == Mode::Redirect && server == local) {
            return Err(io::Error::other("it was meant for the gateway itself"));
        }
        Ok(SocketAddr::new(server.ip().to_canonical(), server.port()))
    }

    /// Whether what is meant for this server is taken.
    pub(crate) fn takes(&self, server: SocketAddr) -> bool {
        self.http.contains(&server.port()) || self.is_tunnel(server)
    }

    /// Whether the bytes of connections to this server are none of the gateway's business.
    pub(crate) fn is_tunnel(&self, server: SocketAddr) -> bool {
        self.tunnels.contains(&server.port())
    }
}
