//! One request, from its head to the last byte of its response.
//!
//! A request reaches the scheduler when it has arrived completely: its body, if it is
//! small, is read before; a large one is an upload, which goes to the server at once and
//! asks for its response with its last bytes. The response is read as the scheduler says.
//!
//! What else may happen is looked at after the work, and so not at all where that need not wait.

mod upload;

use std::net::SocketAddr;

use tidegate_core::Bytes;
use tidegate_core::request::{Ending, REPORT_EVERY, latest_round_trip};
use tokio::time::{Instant, sleep};

use crate::client::{Client, answer};
use crate::gate::{Exchange, Refused, Tunnel, duration};
use crate::gateway::House;
use crate::log::Record;
use crate::message::{Body, Fault, Framing, Request, Response, Scan};
use crate::servers::{DialError, Server};
use crate::socket::{self, AT_ONCE};
use crate::tunnel;

/// A larger body is an upload: no more than what a tunnel may send before it is one.
const UPLOAD: u64 = 64_000;

/// What becomes of the client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another request may come.
    Request,
    /// It ends in order.
    Close,
    /// It ends so that the client notices that something is missing.
    Abort,
}

/// Why a request was not answered, or not to the end.
#[derive(Debug)]
enum Failure {
    /// The client is gone.
    Client,
    /// The gateway says so itself.
    Answer(u16, String),
    /// A connection that was kept ended before anything came: the server had closed it.
    Stale,
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Failure {
        Failure::Answer(refused.status(), refused.to_string())
    }
}

impl From<DialError> for Failure {
    fn from(error: DialError) -> Failure {
        Failure::Answer(error.status(), error.to_string())
    }
}

/// The response of a server that cannot be passed on.
fn bad(fault: Fault) -> Failure {
    Failure::Answer(502, format!("the server's response is refused: {fault}"))
}

fn broken_off() -> Failure {
    Failure::Answer(502, "the server broke the response off".into())
}

/// Who says how a response may be read.
#[derive(Clone, Copy)]
enum Reader<'a> {
    Response(&'a Exchange),
    /// A row of events has no end that a place could wait for, and each counts when it
    /// comes.
    Events(&'a Tunnel),
}

impl Reader<'_> {
    /// Waits until its class is gone; of a response, whoever passes it on waits for that.
    async fn over(self) {
        match self {
            Reader::Response(_) => std::future::pending().await,
            Reader::Events(tunnel) => tunnel.over().await,
        }
    }

    fn may_read(self) -> u64 {
        match self {
            Reader::Response(exchange) => exchange.may_read(),
            Reader::Events(tunnel) => tunnel.may_read(),
        }
    }
}

/// One request of a client.
pub(crate) struct Relay<'a> {
    house: &'a House,
    client: &'a mut Client,
    request: Request,
    /// Whether something of the final response has been sent to the client, or an answer in
    /// HTTP is nothing that it could understand.
    has_begun: bool,
    /// What has come of the response and the scheduler does not know of yet.
    fresh: usize,
    record: Record,
}

impl<'a> Relay<'a> {
    pub(crate) fn new(
        house: &'a House,
        client: &'a mut Client,
        peer: SocketAddr,
        request: Request,
    ) -> Relay<'a> {
        let record = Record::new(peer, client.connection.clone(), client.name.clone(), &request);
        let has_begun = client.server.is_some() && &*request.method == "CONNECT";
        Relay { house, client, request, has_begun, fresh: 0, record }
    }

    /// Answers it, in one way or another.
    pub(crate) async fn run(mut self) -> Next {
        let (next, reason) = match self.pass_on().await {
            Ok(next) => (next, None),
            Err(Failure::Answer(status, text)) if !self.has_begun => {
                self.record.status = status;
                let _ = self.client.write(&answer(status, &text)).await;
                (Next::Close, Some(text))
            }
            Err(Failure::Answer(_, text)) => (Next::Abort, Some(text)),
            Err(Failure::Stale) => (Next::Abort, Some("the server is gone".into())),
            Err(Failure::Client) => (Next::Abort, Some("the client is gone".into())),
        };
        self.house.done(&self.record, reason.as_deref());
        next
    }

    async fn pass_on(&mut self) -> Result<Next, Failure> {
        if &*self.request.method == "CONNECT" {
            return self.connect().await;
        }
        let target = self.request.target.clone();
        let servers = &self.house.servers;
        // Before its turn, which is too precious to wait for a name in.
        let mut addresses = match servers.has_kept(self.client.user, &target) {
            true => Vec::new(),
            false => servers.resolve(self.client.user, &target).await?,
        };
        let mut body = Body::new(self.request.framing);
        let is_small = body.left().is_some_and(|left| left <= UPLOAD);
        let is_upload = !is_small || self.request.expects_continue;

        let mut out = std::mem::take(&mut self.request.head);
        let mut uploaded = None;
        if is_upload {
            if addresses.is_empty() {
                addresses = servers.resolve(self.client.user, &target).await?;
            }
            let mut server = self.dial(None, &addresses).await?;
            out = self.upload(&mut server, &mut body, out).await?;
            uploaded = Some(server);
        } else {
            self.read_body(&mut body, &mut out).await?;
        }

        let exchange = self.wait().await?;
        let (response, server) = match uploaded {
            Some(server) => self.ask(&exchange, server, &out).await?,
            None => {
                // A request that may not be sent twice gets a connection of its own.
                let mut kept = None;
                if self.request.is_idempotent() {
                    kept = servers.take(self.client.user, &target);
                }
                let asked = match kept {
                    Some(server) => self.ask(&exchange, server, &out).await,
                    None => Err(Failure::Stale),
                };
                match asked {
                    Err(Failure::Stale) => {
                        if addresses.is_empty() {
                            addresses = servers.resolve(self.client.user, &target).await?;
                        }
                        let server = self.dial(Some(&exchange), &addresses).await?;
                        self.ask(&exchange, server, &out).await?
                    }
                    other => other?,
                }
            }
        };
        self.respond(&exchange, response, server, body.is_over()).await
    }

    /// Opens a tunnel, which is dialled for at once, because it asks for nothing before
    /// bytes flow.
    async fn connect(&mut self) -> Result<Next, Failure> {
        let addresses = self.house.servers.resolve(self.client.user, &self.request.target).await?;
        let server = self.dial(None, &addresses).await?;
        let tunnel = self.open()?;
        if self.client.server.is_none() {
            self.record.status = 200;
            self.has_begun = true;
            let answer = b"HTTP/1.1 200 Connection established\r\n\r\n";
            self.send(answer).await?;
        }
        Ok(self.carry(&tunnel, server).await)
    }

    async fn carry(&mut self, tunnel: &Tunnel, server: Server) -> Next {
        let (house, record) = (self.house, &mut self.record);
        let (connection, user) = (self.client.connection.clone(), self.client.user);
        let received = |size| {
            record.received += size;
            house.received(&connection, user, size);
        };
        let took = |stage, span| house.took(&connection, stage, span);
        tunnel::carry(tunnel, self.client, server, &house.pipes, received, took).await
    }

    fn open(&self) -> Result<Tunnel, Failure> {
        Ok(self.house.gate.open(&self.client.connection, self.client.user)?)
    }

    /// The server speaks another protocol from here on, and so does the client.
    async fn change(
        &mut self,
        exchange: &Exchange,
        response: &Response,
        server: Server,
    ) -> Result<Next, Failure> {
        self.account(Reader::Response(exchange), &server, true);
        let tunnel = self.open()?;
        // Its messages are no requests that could wait.
        tunnel.exempt();
        self.has_begun = true;
        let head = response.head_for(self.request.version, true);
        self.send(&head).await?;
        Ok(self.carry(&tunnel, server).await)
    }

    /// Waits until the scheduler releases it.
    async fn wait(&mut self) -> Result<Exchange, Failure> {
        let heard = Instant::now();
        let exchange = self.house.gate.hear(&self.client.connection, self.client.user)?;
        tokio::select! {
            biased;
            released = exchange.released() => released.map_err(ended)?,
            () = self.client.gone() => return Err(Failure::Client),
        }
        self.record.released(heard);
        Ok(exchange)
    }

    /// Opens a connection, and tells the scheduler how long that took.
    async fn dial(
        &mut self,
        exchange: Option<&Exchange>,
        addresses: &[SocketAddr],
    ) -> Result<Server, Failure> {
        let dialled = tokio::select! {
            dialled = self.house.servers.dial(addresses) => dialled,
            ending = failed(exchange) => return Err(ended(ending)),
            () = self.client.gone(), if exchange.is_some() => return Err(Failure::Client),
        };
        match (dialled, exchange) {
            (Ok(server), _) => {
                if let Some(round_trip) =
                    self.house.paths.handshake(&server.stream, server.round_trip)
                {
                    self.house.gate.timed(server.origin, round_trip);
                }
                Ok(server)
            }
            (Err(error), exchange) => {
                if let Some(exchange) = exchange {
                    exchange.broken();
                }
                Err(error.into())
            }
        }
    }

    /// Sends the request, or the last bytes of an upload, and waits for the head of the
    /// response.
    async fn ask(
        &mut self,
        exchange: &Exchange,
        server: Server,
        out: &[u8],
    ) -> Result<(Response, Server), Failure> {
        let mut server = server;
        let paths = &self.house.paths;
        // The handshake of a new connection has been a sample.
        let wants_sample = server.is_kept && paths.wants_sample();
        let path = wants_sample.then(|| paths.of(&server.stream)).flatten();
        exchange.connected(path.map_or(server.round_trip, |path| path.smoothed));
        let asked = async {
            let sent = socket::write_all(&server.stream, out, self.client.patience).await;
            if sent.is_err() {
                return Err(if server.is_kept { Failure::Stale } else { broken_off() });
            }
            let response = self.read_head(exchange, &mut server).await?;
            if path.is_some()
                && let Some(after) = self.house.paths.of(&server.stream)
                && let Some(round_trip) = latest_round_trip(path, after)
            {
                exchange.acknowledged(server.origin, round_trip);
            }
            Ok(response)
        };
        let answered = tokio::select! {
            biased;
            answered = asked => answered,
            ending = exchange.failed() => Err(ended(ending)),
        };
        match answered {
            Ok(response) => Ok((response, server)),
            Err(failure) => {
                if matches!(failure, Failure::Stale) {
                    socket::abort(server.stream);
                    return Err(failure);
                }
                self.account(Reader::Response(exchange), &server, false);
                if !matches!(failure, Failure::Client) {
                    exchange.reset();
                }
                self.break_off(server);
                Err(failure)
            }
        }
    }

    async fn read_head(
        &mut self,
        exchange: &Exchange,
        server: &mut Server,
    ) -> Result<Response, Failure> {
        let largest = self.house.config.get().limits.head.0 as usize;
        let mut scan = Scan::default();
        let mut has_come = !server.inbox.data().is_empty();
        loop {
            if let Some(size) = scan.end(server.inbox.data()).map_err(bad)? {
                let head = &server.inbox.data()[..size];
                let response = Response::read(head, &self.request.method).map_err(bad)?;
                let is_unasked = response.status == 101 && !self.request.upgrades;
                if size > largest || is_unasked {
                    return Err(bad(if is_unasked { Fault::Syntax } else { Fault::TooLarge }));
                }
                server.inbox.consume(size);
                self.record.first_byte();
                if !response.is_interim() {
                    return Ok(response);
                }
                scan = Scan::default();
                self.account(Reader::Response(exchange), server, false);
                // HTTP/1.0 knows none.
                if self.request.version > 0 {
                    let head = response.head_for(self.request.version, true);
                    self.send(&head).await?;
                }
                continue;
            }
            if server.inbox.data().len() >= largest {
                return Err(bad(Fault::TooLarge));
            }
            self.account(Reader::Response(exchange), server, false);
            match self.read_on(Reader::Response(exchange), server, None).await {
                Ok(0) | Err(Failure::Answer(..)) if server.is_kept && !has_come => {
                    return Err(Failure::Stale);
                }
                Ok(0) => return Err(broken_off()),
                Err(failure) => return Err(failure),
                Ok(_) => has_come = true,
            }
        }
    }

    /// Passes the response on.
    async fn respond(
        &mut self,
        exchange: &Exchange,
        response: Response,
        mut server: Server,
        is_all_sent: bool,
    ) -> Result<Next, Failure> {
        self.record.status = response.status;
        if response.status == 101 {
            return self.change(exchange, &response, server).await;
        }
        let passed = tokio::select! {
            biased;
            passed = self.pass_body(exchange, &response, &mut server, is_all_sent) => passed,
            ending = exchange.failed() => Err(ended(ending)),
        };
        match passed {
            Ok(()) => {}
            Err(failure) => {
                self.account(Reader::Response(exchange), &server, false);
                if matches!(failure, Failure::Answer(..)) {
                    exchange.reset();
                }
                self.break_off(server);
                return Err(failure);
            }
        }
        // What follows a response belongs to nobody.
        if response.keeps_connection && is_all_sent && server.inbox.data().is_empty() {
            server.inbox.rest();
            self.house.servers.keep(&self.request.target, server);
        }
        Ok(if self.keeps(&response, is_all_sent) { Next::Request } else { Next::Close })
    }

    /// Nothing more of its response is wanted, or comes.
    fn break_off(&self, server: Server) {
        self.house.servers.break_off(self.client.user, &self.request.target, server);
    }

    /// Whether the client may use its connection again.
    fn keeps(&self, response: &Response, is_all_sent: bool) -> bool {
        let framing = response.framing_for(self.request.version);
        self.request.keeps_connection && is_all_sent && framing != Framing::UntilClose
    }

    async fn pass_body(
        &mut self,
        exchange: &Exchange,
        response: &Response,
        server: &mut Server,
        is_all_sent: bool,
    ) -> Result<(), Failure> {
        let keeps = self.keeps(response, is_all_sent);
        let takes_chunks = self.request.version > 0;
        let mut out = response.head_for(self.request.version, keeps);
        let mut body = Body::new(response.framing);
        let mut reader = Reader::Response(exchange);
        let events;
        if response.is_event_stream && !body.is_over() {
            self.account(reader, server, true);
            events = self.open()?;
            events.exempt();
            reader = Reader::Events(&events);
        }
        loop {
            let data = server.inbox.data();
            let used = if takes_chunks {
                body.take_all(data).map_err(bad)?
            } else {
                content_of(&mut body, data, &mut out).map_err(bad)?
            };
            // It is over when its last byte is here, not when the client has that.
            self.account(reader, server, body.is_over());
            self.has_begun = true;
            if takes_chunks && (out.is_empty() || used > AT_ONCE / 4) {
                self.send(&out).await?;
                self.send(&server.inbox.data()[..used]).await?;
            } else {
                // One segment rather than two.
                if takes_chunks {
                    out.extend_from_slice(&server.inbox.data()[..used]);
                }
                self.send(&out).await?;
            }
            out.clear();
            server.inbox.consume(used);
            if body.is_over() {
                return Ok(());
            }
            if self.read_on(reader, server, body.left()).await? == 0 {
                if !body.may_end() {
                    return Err(broken_off());
                }
                self.account(reader, server, true);
                return Ok(());
            }
        }
    }

    async fn send(&self, bytes: &[u8]) -> Result<(), Failure> {
        self.client.write(bytes).await.map_err(|_| Failure::Client)
    }

    /// Waits for bytes of the response, and reads as many as are granted; `left` is what
    /// is missing of it. 0 at the end of the stream.
    async fn read_on(
        &mut self,
        reader: Reader<'_>,
        server: &mut Server,
        left: Option<u64>,
    ) -> Result<usize, Failure> {
        while let Reader::Response(exchange) = reader
            && exchange.may_read() == 0
        {
            let unread = socket::unread(&server.stream);
            exchange.came(unread, left.is_some_and(|left| unread >= left));
            tokio::select! {
                _ = exchange.readable() => {}
                // More may have come.
                () = sleep(duration(REPORT_EVERY)) => {}
                () = self.client.gone() => return Err(Failure::Client),
            }
        }
        let may = reader.may_read();
        server.shrink(server.inbox.at_most(may));
        let Server { stream, inbox, .. } = server;
        let size = tokio::select! {
            biased;
            () = reader.over() => return Err(Refused::NoClass.into()),
            read = inbox.fill(stream, may) => read.map_err(|_| broken_off())?,
            () = self.client.gone() => return Err(Failure::Client),
        };
        self.fresh += size;
        Ok(size)
    }

    /// A server has sent so much.
    fn received(&mut self, size: Bytes) {
        self.record.received += size;
        self.house.received(&self.client.connection, self.client.user, size);
    }

    /// Tells the scheduler what was read, as late as it is clear whether it is all.
    fn account(&mut self, reader: Reader<'_>, server: &Server, complete: bool) {
        let size = std::mem::take(&mut self.fresh);
        if size == 0 && !complete {
            return;
        }
        self.received(Bytes(size as u64));
        let buffer = match reader {
            Reader::Response(exchange) => {
                exchange.read(size, complete);
                exchange.buffer()
            }
            Reader::Events(tunnel) => {
                tunnel.read(size);
                tunnel.buffer()
            }
        };
        if complete {
            self.record.completed();
        } else if let Some(size) = buffer {
            server.resize(size);
        }
    }
}

/// Appends the content of the next bytes of a body, without what delimits it; returns how
/// many of the bytes belong to the body.
fn content_of(body: &mut Body, data: &[u8], out: &mut Vec<u8>) -> Result<usize, Fault> {
    let mut used = 0;
    loop {
        let part = body.take(&data[used..])?;
        if part.size == 0 {
            return Ok(used);
        }
        if part.is_content {
            out.extend_from_slice(&data[used..used + part.size]);
        }
        used += part.size;
    }
}

/// Waits until the exchange, if there is one yet, has failed.
async fn failed(exchange: Option<&Exchange>) -> Ending {
    match exchange {
        Some(exchange) => exchange.failed().await,
        None => std::future::pending().await,
    }
}

fn refused(fault: Fault) -> Failure {
    Failure::Answer(fault.status(), fault.to_string())
}

/// What the scheduler gave up.
fn ended(ending: Ending) -> Failure {
    match ending {
        Ending::Stalled => Failure::Answer(504, "the server sends nothing".into()),
        // The gateway ends an exchange in this way itself if its class is gone.
        Ending::Abandoned => Refused::NoClass.into(),
        Ending::Completed | Ending::Broken | Ending::Reset => broken_off(),
    }
}
