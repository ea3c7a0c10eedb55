//! QUIC that is relayed: datagrams between clients and servers, without opening them.
//!
//! What a client and a server send each other is a *flow*. It is a tunnel to the scheduler:
//! a burst of the client's after quiet is a request and waits, what comes back is its
//! response. Unlike TCP, nothing holds a server back that may not be read. So what comes
//! faster than the scheduler lets it go on waits in a queue, and what does not fit into that
//! is lost: the server's congestion control then finds the rate that its user has. The queue
//! holds what a receive buffer of TCP would: twice what came in the last round trip.
//!
//! Acknowledgements are as encrypted as requests. Datagrams keep no order, so those that are
//! too small for a request go past what is held, and those of a handshake do.
//!
//! A flow has no end that anybody could see. It is over when nothing has come from either
//! side for as long as a client's connection may be idle. Until then it counts as a
//! connection of its client.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tidegate_core::Bytes;
use tidegate_core::request::{Piece, UserId};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::books::Stage;
use crate::class::{Ask, Login, Place};
use crate::config::LEAST_BUFFER;
use crate::connections::Connection;
use crate::datagrams::{self, Handed, LARGEST};
use crate::gate::{Tunnel, duration};
use crate::gateway::{House, SAY_EVERY};
use crate::local::PAUSE;
use crate::log::Record;
use crate::message::Request;
use crate::servers::origin_of;
use crate::times::since;
use crate::window::MOST_BUFFER;

/// The largest acknowledgement (RFC 9000 sections 17.3.1 and 19.3): a header with the longest
/// connection identifier takes 25 bytes, the tag of the cipher 16, and a frame of some gaps
/// fewer than 40. Requests take more: their fields alone do.
const ACKNOWLEDGEMENT: usize = 80;

/// The first bit of a datagram whose header is long: a handshake (RFC 9000 section 17.2).
const LONG_HEADER: u8 = 0x80;

/// What is held of a flow before its turn.
const MOST_HELD: u64 = 65_536;

/// What all flows together may have in queues.
const MOST_QUEUED: u64 = 64 << 20;

/// Datagrams that were handed over for a flow whose socket was not ready yet.
const MOST_HANDED: usize = 64;

/// What a client sends so much later than its first datagram, it may send again: the answer
/// then tells no round trip (Karn's rule, RFC 6298 section 3).
const AGAIN: Duration = Duration::from_millis(100);

/// How many datagrams of a flow are taken before others have their turn.
const AT_ONCE: usize = 32;

/// The client and the server of a flow.
type Ends = (SocketAddr, SocketAddr);

/// All flows.
#[derive(Debug)]
pub(crate) struct Flows {
    open: RefCell<BTreeMap<Ends, mpsc::Sender<Vec<u8>>>>,
    /// What they have in queues.
    queued: Cell<u64>,
    /// Where datagrams are read to.
    buffer: RefCell<Vec<u8>>,
    refused: Cell<Option<Instant>>,
}

impl Flows {
    pub(crate) fn new() -> Flows {
        Flows {
            open: RefCell::default(),
            queued: Cell::new(0),
            buffer: RefCell::default(),
            refused: Cell::new(None),
        }
    }

    /// How many are open.
    pub(crate) fn len(&self) -> usize {
        self.open.borrow().len()
    }

    /// A datagram starts no flow. Each might be followed by many, so it is said now and then.
    fn refuse(&self, handed: &Handed, reason: &str) {
        if self.refused.get().is_none_or(|said| said.elapsed() > SAY_EVERY) {
            self.refused.set(Some(Instant::now()));
            let (client, server) = (handed.client.ip(), handed.server);
            tracing::warn!(%client, %server, reason, "QUIC is not relayed");
        }
    }
}

/// Relays what the kernel hands over, for ever.
pub(crate) async fn serve(house: Rc<House>, socket: UdpSocket) {
    let mut buffer = vec![0; LARGEST];
    house.flows.buffer.replace(vec![0; LARGEST]);
    loop {
        match datagrams::receive(&socket, &mut buffer).await {
            Ok(handed) => take(&house, &handed, &buffer[..handed.size]),
            Err(error) => {
                tracing::warn!(%error, "no datagram can be received");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Gives a datagram to its flow, or to a new one.
fn take(house: &Rc<House>, handed: &Handed, datagram: &[u8]) {
    let Handed { client, server, .. } = *handed;
    let flows = &house.flows;
    if let Some(flow) = flows.open.borrow().get(&(client, server)) {
        // If there is no room for it, it is lost as others are.
        let _ = flow.try_send(datagram.to_vec());
        return;
    }
    let config = house.config.get();
    if !config.intercept.as_ref().is_some_and(|it| it.takes(server)) {
        return flows.refuse(handed, "it was meant for the gateway itself");
    }
    let ask = Ask {
        client: client.ip(),
        login: Login::Impossible,
        host: &server.ip().to_string(),
        port: server.port(),
    };
    let Place::In(class) = config.place(&ask) else {
        return flows.refuse(handed, "no class takes it");
    };
    if !house.servers.permits(server) {
        return flows.refuse(handed, "the target is not permitted");
    }
    let user = crate::user_of(client.ip());
    let Some(connection) = house.connections.open(client.ip(), &config.limits) else {
        return flows.refuse(handed, "too many connections");
    };
    connection.place(Some(class));
    let (to_client, to_server) =
        match (datagrams::to_client(client, server), datagrams::to_server(server)) {
            (Ok(to_client), Ok(to_server)) => (to_client, to_server),
            (Err(reason), _) | (_, Err(reason)) => {
                return flows.refuse(handed, &reason.to_string());
            }
        };
    let Ok(tunnel) = house.gate.open(&connection, user) else {
        return flows.refuse(handed, "there is no such class");
    };
    let (sender, first) = mpsc::channel(MOST_HANDED);
    let _ = sender.try_send(datagram.to_vec());
    flows.open.borrow_mut().insert((client, server), sender);
    let mut record = Record::new(client, connection.clone(), None, &Request::tunnel(server, None));
    record.method = "QUIC".into();
    let flow = Flow {
        house: house.clone(),
        tunnel,
        ends: (client, server),
        connection,
        user,
        to_client,
        to_server,
        held: Datagrams::default(),
        queue: Datagrams::default(),
        asked: None,
        sent: Instant::now(),
        moved: Instant::now(),
        failure: None,
        record,
    };
    tokio::task::spawn_local(flow.serve(first));
}

/// Datagrams in a row.
#[derive(Debug, Default)]
struct Datagrams {
    all: VecDeque<Vec<u8>>,
    size: u64,
}

impl Datagrams {
    fn push(&mut self, datagram: &[u8]) {
        self.size += datagram.len() as u64;
        self.all.push_back(datagram.to_vec());
    }

    fn pop(&mut self) -> Option<Vec<u8>> {
        let datagram = self.all.pop_front()?;
        self.size -= datagram.len() as u64;
        Some(datagram)
    }

    fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether this one fits, if so much does in all. There is always room for one.
    fn has_room(&self, datagram: &[u8], most: u64) -> bool {
        self.is_empty() || self.size + datagram.len() as u64 <= most
    }
}

/// What a client and a server send each other.
struct Flow {
    house: Rc<House>,
    tunnel: Tunnel,
    ends: Ends,
    connection: Rc<Connection>,
    user: UserId,
    to_client: UdpSocket,
    to_server: UdpSocket,
    /// What the client has sent and may not go yet.
    held: Datagrams,
    /// What the server has sent and may not go yet.
    queue: Datagrams,
    /// When the client's first datagram went on, and the last.
    asked: Option<Instant>,
    sent: Instant,
    /// When something last came.
    moved: Instant,
    /// What the network said last about the server.
    failure: Option<io::Error>,
    record: Record,
}

impl Drop for Flow {
    fn drop(&mut self) {
        let flows = &self.house.flows;
        flows.open.borrow_mut().remove(&self.ends);
        flows.queued.set(flows.queued.get() - self.queue.size);
    }
}

impl Flow {
    /// Relays until nothing has come for long.
    async fn serve(mut self, mut first: mpsc::Receiver<Vec<u8>>) {
        // Nothing can be sent before the runtime has heard of the sockets.
        let _ = tokio::join!(self.to_server.writable(), self.to_client.writable());
        loop {
            let idle = duration(self.house.config.get().timeouts.idle);
            let (is_held, is_queued) = (!self.held.is_empty(), !self.queue.is_empty());
            tokio::select! {
                Some(datagram) = first.recv() => self.up(&datagram),
                // What is wrong with a socket is found when it is read.
                _ = self.to_client.readable() => self.hear_client(),
                _ = self.to_server.readable() => self.hear_server(),
                () = self.tunnel.over() => break,
                () = self.tunnel.passes(), if is_held => self.release(),
                _ = self.tunnel.readable(), if is_queued => self.deliver(),
                () = sleep_until(self.moved + idle) => break,
            }
        }
        let failure = self.failure.take().map(|failure| failure.to_string());
        let reason = failure.unwrap_or_else(|| "the server sends nothing".into());
        let has_answered = self.record.received > Bytes::ZERO;
        self.house.done(&self.record, Some(&*reason).filter(|_| !has_answered));
    }

    fn hear_client(&mut self) {
        let house = self.house.clone();
        let buffer = &mut *house.flows.buffer.borrow_mut();
        for _ in 0..AT_ONCE {
            // A client that is gone does not say so twice, and may come back.
            let Ok(size) = self.to_client.try_recv(buffer) else { return };
            self.up(&buffer[..size]);
        }
    }

    fn hear_server(&mut self) {
        let house = self.house.clone();
        let buffer = &mut *house.flows.buffer.borrow_mut();
        for _ in 0..AT_ONCE {
            match self.to_server.try_recv(buffer) {
                Ok(size) => self.down(&buffer[..size]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // What ICMP says of one datagram need not hold for the next.
                Err(error) => self.failure = Some(error),
            }
        }
    }

    /// The client has sent a datagram.
    fn up(&mut self, datagram: &[u8]) {
        self.moved = Instant::now();
        let size = Bytes(datagram.len() as u64);
        let may_ask = may_be_request(datagram);
        if !self.held.is_empty() {
            if !may_ask {
                self.send(datagram);
            } else if self.held.has_room(datagram, MOST_HELD) {
                self.held.push(datagram);
            }
            return;
        }
        match self.tunnel.send(if may_ask { Piece::Data(size) } else { Piece::Handshake(size) }) {
            Ok(true) => {
                self.wait_is_over();
                self.send(datagram);
            }
            Ok(false) => self.held.push(datagram),
            // It will be sent again.
            Err(_) => {}
        }
    }

    /// What is held may go.
    fn release(&mut self) {
        self.wait_is_over();
        while let Some(datagram) = self.held.pop() {
            self.send(&datagram);
        }
    }

    fn wait_is_over(&mut self) {
        if let Some(waited) = self.tunnel.released() {
            self.house.took(&self.connection, Stage::Waited, waited);
        }
    }

    fn send(&mut self, datagram: &[u8]) {
        self.sent = Instant::now();
        self.asked.get_or_insert(self.sent);
        // What ICMP said of the last one is told instead of sending this one.
        if let Err(error) = self.to_server.try_send(datagram)
            && error.kind() != io::ErrorKind::WouldBlock
        {
            self.failure = Some(error);
            let _ = self.to_server.try_send(datagram);
        }
    }

    /// The server has sent a datagram.
    fn down(&mut self, datagram: &[u8]) {
        self.moved = Instant::now();
        let size = Bytes(datagram.len() as u64);
        if self.record.received == Bytes::ZERO
            && let Some(asked) = self.asked
            && self.sent - asked < AGAIN
        {
            let round_trip = since(asked);
            self.house.gate.timed(origin_of(self.ends.1.ip()), round_trip);
            self.tunnel.path(round_trip);
        }
        if let Some(first_byte) = self.tunnel.answered() {
            self.house.took(&self.connection, Stage::FirstByte, first_byte);
        }
        self.record.received += size;
        self.house.received(&self.connection, self.user, size);
        if self.queue.is_empty() && self.tunnel.may_read() > 0 {
            self.pass(datagram);
            return;
        }
        let flows = &self.house.flows;
        let most = self.tunnel.buffer().unwrap_or(LEAST_BUFFER).clamp(LEAST_BUFFER, MOST_BUFFER);
        let all = flows.queued.get() + size.0;
        if self.queue.has_room(datagram, most.0) && all <= MOST_QUEUED {
            flows.queued.set(all);
            self.queue.push(datagram);
            self.tunnel.came(self.queue.size);
        } else {
            // The link has carried it, and so it counts for its user.
            let class = self.connection.class();
            self.house.gate.received_unasked(class, self.user, size);
            self.house.count(&self.connection, |counts| counts.dropped += 1);
        }
    }

    /// Some of the queue may go on.
    fn deliver(&mut self) {
        while self.tunnel.may_read() > 0
            && let Some(datagram) = self.queue.pop()
        {
            let flows = &self.house.flows;
            flows.queued.set(flows.queued.get() - datagram.len() as u64);
            self.pass(&datagram);
        }
    }

    /// Sends on what the server has sent. A datagram is not cut: the last may be more than
    /// was granted, and counts as a whole.
    fn pass(&mut self, datagram: &[u8]) {
        // A client that does not take it loses it.
        let _ = self.to_client.try_send(datagram);
        self.tunnel.read(datagram.len());
    }
}

/// Whether a client's datagram may be a request: not a handshake, and no acknowledgement.
/// Requests of the first flight (0-RTT) look like a handshake.
fn may_be_request(datagram: &[u8]) -> bool {
    let is_long = datagram.first().is_some_and(|first| first & LONG_HEADER != 0);
    !is_long && datagram.len() > ACKNOWLEDGEMENT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshakes_and_acknowledgements_are_no_requests() {
        let datagram = |first: u8, size: usize| {
            let mut datagram = vec![0; size];
            datagram[0] = first;
            may_be_request(&datagram)
        };
        assert!(!datagram(0xc3, 1_200) && !datagram(0xe1, 300), "long headers");
        assert!(datagram(0x41, 200) && !datagram(0x41, ACKNOWLEDGEMENT), "short headers");
        assert!(!may_be_request(&[]));
    }

    #[test]
    fn a_queue_is_bounded_but_takes_the_largest_datagram() {
        let mut queue = Datagrams::default();
        assert!(queue.has_room(&[0; LARGEST], 24_000));
        for _ in 0..20 {
            assert!(queue.has_room(&[0; 1_200], 24_000));
            queue.push(&[0; 1_200]);
        }
        assert!(!queue.has_room(&[0; 1_200], 24_000));
        while queue.pop().is_some() {}
        assert_eq!(queue.size, 0);
    }
}
