//! The round trips that TCP measures, and whether it had to send something again.
//!
//! A socket does not say them without unsafe code, but the kernel does, about any socket
//! and to anybody, over netlink (`sock_diag(7)`): a question of 72 bytes, answered before
//! it returns.

use std::cell::Cell;
use std::io;
use std::time::Duration;

use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr};
use tidegate_core::Span;
use tidegate_core::request::{TcpPath, latest_round_trip};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// The delay signal is asked for every 100 ms, and more samples than this make no better
/// mean of it.
const EVERY: Duration = Duration::from_millis(5);
/// An answer takes some 400 bytes.
const ANSWER: usize = 8_192;
/// Of a socket whose number nobody knows.
const NO_COOKIE: [u8; 8] = [0xff; 8];

/// Asks the kernel.
#[derive(Debug)]
pub(crate) struct Paths {
    /// `None` where the kernel does not answer: then only handshakes tell of delay.
    socket: Option<Socket>,
    asked: Cell<Option<Instant>>,
    /// The number of the last question.
    question: Cell<u32>,
}

impl Paths {
    pub(crate) fn new() -> Paths {
        let open = || -> io::Result<Socket> {
            let socket = Socket::new(NETLINK_SOCK_DIAG)?;
            socket.connect(&SocketAddr::new(0, 0))?;
            socket.set_non_blocking(true)?;
            Ok(socket)
        };
        let socket = open().inspect_err(|error| {
            tracing::warn!(%error, "TCP's round trips are unknown");
        });
        Paths { socket: socket.ok(), asked: Cell::new(None), question: Cell::new(0) }
    }

    /// Whether it is time for another sample.
    pub(crate) fn wants_sample(&self) -> bool {
        let wants =
            self.socket.is_some() && self.asked.get().is_none_or(|asked| asked.elapsed() >= EVERY);
        if wants {
            self.asked.set(Some(Instant::now()));
        }
        wants
    }

    /// The round trip of the handshake of a new connection, which took `elapsed`; `None` if
    /// it is too early for another sample, or a part of the handshake was sent again.
    pub(crate) fn handshake(&self, stream: &TcpStream, elapsed: Span) -> Option<Span> {
        if self.socket.is_none() {
            return Some(elapsed);
        }
        self.wants_sample().then(|| latest_round_trip(None, self.of(stream)?)).flatten()
    }

    /// What the kernel says of a connection.
    pub(crate) fn of(&self, stream: &TcpStream) -> Option<TcpPath> {
        let socket = self.socket.as_ref()?;
        let (local, peer) = (stream.local_addr().ok()?, stream.peer_addr().ok()?);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST;
        header.sequence_number = self.question.get().wrapping_add(1);
        self.question.set(header.sequence_number);
        let request = InetRequest {
            family: if peer.is_ipv4() { AF_INET } else { AF_INET6 },
            protocol: IPPROTO_TCP,
            extensions: ExtensionFlags::INFO,
            states: StateFlags::all(),
            socket_id: SocketId {
                source_port: local.port(),
                destination_port: peer.port(),
                source_address: local.ip(),
                destination_address: peer.ip(),
                interface_id: 0,
                cookie: NO_COOKIE,
            },
        };
        let payload = SockDiagMessage::InetRequest(request).into();
        let mut question = NetlinkMessage::new(header, payload);
        question.finalize();
        let mut bytes = vec![0; question.buffer_len()];
        question.serialize(&mut bytes);
        socket.send(&bytes, 0).ok()?;
        let answer = loop {
            let mut answer = Vec::with_capacity(ANSWER);
            socket.recv(&mut answer, 0).ok()?;
            let answer = NetlinkMessage::<SockDiagMessage>::deserialize(&answer).ok()?;
            // Another is left from a question that was given up.
            if answer.header.sequence_number == header.sequence_number {
                break answer;
            }
        };
        let NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(found)) = answer.payload
        else {
            return None;
        };
        found.nlas.iter().find_map(|attribute| match attribute {
            Nla::TcpInfo(info) => Some(TcpPath {
                smoothed: Span::micros(info.rtt.into()),
                retransmissions: info.total_retrans.into(),
            }),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    #[tokio::test]
    async fn the_kernel_knows_the_round_trip_of_both_families() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address).await else {
                println!("SKIP {address}: this machine does not have it");
                continue;
            };
            let client = TcpStream::connect(listener.local_addr().unwrap());
            let (client, server) = tokio::join!(client, listener.accept());
            let (mut client, (mut server, _)) = (client.unwrap(), server.unwrap());
            client.write_all(b"x").await.unwrap();
            server.read_exact(&mut [0]).await.unwrap();
            let found = Paths::new().of(&client).expect("the kernel answers").smoothed;
            assert!(found > Span::ZERO && found < Span::seconds(1), "{found}");
        }
    }

    #[tokio::test]
    async fn a_handshake_that_was_sent_again_is_no_sample() {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let listener = socket.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let paths = Paths::new();
        let first = TcpStream::connect(address).await.unwrap();
        assert!(paths.handshake(&first, Span::ZERO).is_some());
        // It waits to be accepted, so there is no room for another, whose SYN is dropped.
        let since = Instant::now();
        let (late, _) = tokio::join!(TcpStream::connect(address), async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            listener.accept().await.unwrap()
        });
        let late = late.unwrap();
        assert!(since.elapsed() >= Duration::from_millis(300), "the SYN was dropped");
        tokio::time::sleep(EVERY).await;
        assert!(paths.of(&late).unwrap().retransmissions > 0);
        assert_eq!(paths.handshake(&late, Span::seconds(1)), None);
    }

    #[tokio::test]
    async fn a_connection_that_is_over_has_none() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let paths = Paths::new();
        assert!(paths.of(&client).is_some());
        crate::socket::abort(listener.accept().await.unwrap().0);
        client.readable().await.unwrap();
        let _ = client.try_read(&mut [0]);
        assert_eq!(paths.of(&client), None);
        // And the socket still answers.
        let other = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        assert!(paths.of(&other).is_some());
    }
}
