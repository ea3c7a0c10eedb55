//! Sockets for datagrams that clients meant for servers.
//!
//! The kernel hands such a datagram over as it is, and says where it was going. The answers
//! have to come from there: a socket for each pair of client and server is bound to the
//! server's address, which takes `CAP_NET_ADMIN` and, for its port, `CAP_NET_BIND_SERVICE`.
//! From then on the kernel gives that socket whatever the client sends to the server.
//!
//! Datagrams are never fragmented: both ends look for the largest that passes (RFC 9000
//! section 14), and have to see that one does not.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;

use nix::libc;
use nix::sys::socket::sockopt::{Ipv4OrigDstAddr, Ipv6OrigDstAddr};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrStorage, recvmsg, setsockopt,
};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

mod option {
    use nix::{libc, setsockopt_impl, sockopt_impl};

    sockopt_impl!(
        /// What becomes of datagrams of IPv4 that are larger than the path permits.
        DiscoverV4, SetOnly, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::c_int
    );
    sockopt_impl!(
        /// And of those of IPv6.
        DiscoverV6, SetOnly, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::c_int
    );
}

/// No datagram is larger.
pub(crate) const LARGEST: usize = 65_535;

fn open(of: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(of), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    if of.is_ipv4() {
        setsockopt(&socket, option::DiscoverV4, &libc::IP_PMTUDISC_PROBE)?;
    } else {
        setsockopt(&socket, option::DiscoverV6, &libc::IPV6_PMTUDISC_PROBE)?;
    }
    Ok(socket)
}

/// Opens the socket at which the kernel hands datagrams over.
pub(crate) fn listen(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = open(address)?;
    // One bit of the kernel serves both families.
    socket.set_ip_transparent_v4(true)?;
    setsockopt(&socket, Ipv4OrigDstAddr, &true)?;
    if address.is_ipv6() {
        setsockopt(&socket, Ipv6OrigDstAddr, &true)?;
    }
    socket.bind(&address.into())?;
    UdpSocket::from_std(socket.into())
}

/// Opens a socket that speaks to a client with the address of a server.
pub(crate) fn to_client(client: SocketAddr, server: SocketAddr) -> io::Result<UdpSocket> {
    let socket = open(server)?;
    socket.set_ip_transparent_v4(true)?;
    // Other clients have others with that address.
    socket.set_reuse_address(true)?;
    socket.bind(&server.into())?;
    socket.connect(&client.into())?;
    UdpSocket::from_std(socket.into())
}

/// Opens a socket that speaks to a server.
pub(crate) fn to_server(server: SocketAddr) -> io::Result<UdpSocket> {
    let socket = open(server)?;
    socket.connect(&server.into())?;
    UdpSocket::from_std(socket.into())
}

/// A datagram that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handed {
    pub(crate) size: usize,
    pub(crate) client: SocketAddr,
    /// Whom it was meant for.
    pub(crate) server: SocketAddr,
}

/// Waits for a datagram that was handed over.
pub(crate) async fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Handed> {
    loop {
        socket.readable().await?;
        match socket.try_io(Interest::READABLE, || take(socket, buffer)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            other => return other,
        }
    }
}

fn take(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Handed> {
    let mut said = nix::cmsg_space!(libc::sockaddr_in6);
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::empty();
    let message =
        recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut said), flags)?;
    let client = message.address.as_ref().and_then(address);
    let server = message.cmsgs()?.find_map(|said| match said {
        ControlMessageOwned::Ipv4OrigDstAddr(it) => {
            Some(SocketAddrV4::from(SockaddrIn::from(it)).into())
        }
        ControlMessageOwned::Ipv6OrigDstAddr(it) => {
            Some(SocketAddrV6::from(SockaddrIn6::from(it)).into())
        }
        _ => None,
    });
    match (client, server) {
        (Some(client), Some(server)) => {
            Ok(Handed { size: message.bytes, client: plain(client), server: plain(server) })
        }
        _ => Err(io::Error::other("the kernel does not say where it was going")),
    }
}

fn address(of: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = of.as_sockaddr_in().map(|it| SocketAddrV4::from(*it).into());
    v4.or_else(|| of.as_sockaddr_in6().map(|it| SocketAddrV6::from(*it).into()))
}

/// As the family of its own has it.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use super::*;

    #[tokio::test]
    async fn a_datagram_says_where_it_was_going() {
        for (listen_at, ip) in [
            ("0.0.0.0:0", IpAddr::V4(Ipv4Addr::LOCALHOST)),
            ("[::]:0", IpAddr::V4(Ipv4Addr::LOCALHOST)),
            ("[::]:0", IpAddr::V6(Ipv6Addr::LOCALHOST)),
        ] {
            let socket = match listen(listen_at.parse().unwrap()) {
                Ok(socket) => socket,
                Err(reason) => {
                    println!("SKIP {listen_at}: {reason}");
                    continue;
                }
            };
            let port = socket.local_addr().unwrap().port();
            let client = std::net::UdpSocket::bind((ip, 0)).unwrap();
            client.send_to(b"hello", (ip, port)).unwrap();
            let mut buffer = [0; 16];
            let handed = receive(&socket, &mut buffer).await.unwrap();
            let expected = Handed {
                size: 5,
                client: client.local_addr().unwrap(),
                server: SocketAddr::new(ip, port),
            };
            assert_eq!(handed, expected);
        }
    }

    #[tokio::test]
    async fn a_datagram_that_is_too_large_is_lost_and_not_cut_up() {
        let Ok(socket) = to_server("127.0.0.1:9".parse().unwrap()) else {
            println!("SKIP: no loopback");
            return;
        };
        socket.writable().await.unwrap();
        // Loopback carries no more than 65 536 bytes with headers.
        let sent = socket.try_send(&[0; LARGEST]);
        assert_eq!(sent.unwrap_err().raw_os_error(), Some(libc::EMSGSIZE));
    }
}
