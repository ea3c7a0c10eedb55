//! A client's connection: one request after another.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tidegate_core::request::UserId;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use tidegate_wire::tls::Hello;

use crate::class::{Ask, Login, Place, Users};
use crate::connections::Connection;
use crate::gate::duration;
use crate::gateway::House;
use crate::message::{Fault, Request, Scan};
use crate::relay::{Next, Relay};
use crate::socket::{self, AT_ONCE, Inbox};

/// How long a client may take to read its last answer.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long a client of a tunnel may take to say which server it means. Who speaks no TLS,
/// and leaves the first word to the server, waits as long.
const HELLO: Duration = Duration::from_secs(1);

/// A client's end.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    pub(crate) inbox: Inbox,
    /// Which knows the class that its request belongs to.
    pub(crate) connection: Rc<Connection>,
    pub(crate) user: UserId,
    /// The name under which it has logged in, if that mattered.
    pub(crate) name: Option<Rc<str>>,
    /// The server that it means to speak to, if it knows of no gateway.
    pub(crate) server: Option<SocketAddr>,
    /// How long it may take nothing, or send nothing that is missing.
    pub(crate) patience: Duration,
}

impl Client {
    /// Sends bytes.
    pub(crate) async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        socket::write_all(&self.stream, bytes, self.patience).await
    }

    /// Waits until it is gone, or has finished.
    pub(crate) async fn gone(&mut self) {
        self.inbox.end(&self.stream).await;
    }
}

/// Serves the connection of a client, who may have meant it for a server, until either side
/// has had enough.
pub(crate) async fn serve(
    house: Rc<House>,
    stream: TcpStream,
    peer: SocketAddr,
    server: Option<SocketAddr>,
    connection: Rc<Connection>,
) {
    socket::prepare(&stream);
    let patience = duration(house.config.get().timeouts.client);
    let user = crate::user_of(peer.ip());
    let Some(class) = house.config.get().class_of(peer.ip()) else {
        house.stranger(peer);
        // It has to be heard before it is told, or the answer is lost.
        let mut inbox = Inbox::default();
        let _ = heard(&house, &stream, &mut inbox, server).await;
        let text = "this gateway does not serve your address";
        let _ = socket::write_all(&stream, &answer(403, text), patience).await;
        return socket::finish(stream, FAREWELL).await;
    };
    connection.place(Some(class));
    let inbox = Inbox::default();
    let mut client = Client { stream, inbox, connection, user, name: None, server, patience };
    if let Some(server) = server.filter(|server| house.tunnels_to(*server)) {
        let depends = house.config.get().depends_on_host(peer.ip(), server.port());
        let host = if depends { host_meant(&mut client).await } else { None };
        let tunnel = Request::tunnel(server, host.map(Into::into));
        if let Err(Denial { status, reason }) = admit(&house, &mut client, peer, &tunnel).await {
            house.denied(peer, None, status, reason);
            return socket::abort(client.stream);
        }
        return match Relay::new(&house, &mut client, peer, tunnel).run().await {
            Next::Abort => socket::abort(client.stream),
            Next::Close | Next::Request => socket::finish(client.stream, FAREWELL).await,
        };
    }
    loop {
        let request = match heard(&house, &client.stream, &mut client.inbox, server).await {
            Ok(request) => request,
            Err(Silence::Gone) => return,
            Err(Silence::Late) => {
                let _ = client.write(&answer(408, "the head takes too long")).await;
                return socket::finish(client.stream, FAREWELL).await;
            }
            Err(Silence::Fault(fault)) => {
                house.refused(&client, peer, fault);
                let _ = client.write(&answer(fault.status(), &fault.to_string())).await;
                return socket::finish(client.stream, FAREWELL).await;
            }
        };
        if let Err(Denial { status, reason }) = admit(&house, &mut client, peer, &request).await {
            let name = request.credentials.as_ref().map(|shown| shown.name.as_str());
            house.denied(peer, name, status, reason);
            let _ = client.write(&answer(status, reason)).await;
            return socket::finish(client.stream, FAREWELL).await;
        }
        match Relay::new(&house, &mut client, peer, request).run().await {
            Next::Request => client.inbox.rest(),
            Next::Close => return socket::finish(client.stream, FAREWELL).await,
            Next::Abort => return socket::abort(client.stream),
        }
    }
}

/// Why a request is not served.
struct Denial {
    status: u16,
    reason: &'static str,
}

/// Finds out where a request belongs, which may depend on a password.
async fn admit(
    house: &House,
    client: &mut Client,
    peer: SocketAddr,
    request: &Request,
) -> Result<(), Denial> {
    let config = house.config.get();
    let mut ask = Ask {
        client: peer.ip(),
        login: if client.server.is_some() { Login::Impossible } else { Login::Missing },
        host: request.host(),
        port: request.target.port,
    };
    let mut place = config.place(&ask);
    if place == Place::AfterLogin
        && let Some(shown) = &request.credentials
    {
        if !house.logins.check(crate::user_of(peer.ip()), &config.passwords, shown).await {
            return Err(Denial { status: 407, reason: "the name or the password is wrong" });
        }
        ask.login = Login::As(&shown.name);
        place = config.place(&ask);
    }
    let class = match place {
        Place::In(class) => class,
        Place::AfterLogin => {
            return Err(Denial { status: 407, reason: "this gateway asks for a name" });
        }
        Place::Nowhere => {
            return Err(Denial { status: 403, reason: "this gateway does not serve this to you" });
        }
    };
    client.connection.place(Some(class));
    (client.user, client.name) = (crate::user_of(peer.ip()), None);
    if let Login::As(name) = ask.login {
        let (user, name) = house.logins.user(name);
        client.name = Some(name);
        if config.classes.get(class.0 as usize).is_some_and(|it| it.users == Users::Name) {
            client.user = user;
        }
    }
    Ok(())
}

/// The name of the server that the client of a tunnel means, if it says one. What it sends
/// stays in its inbox.
async fn host_meant(client: &mut Client) -> Option<String> {
    let Client { stream, inbox, .. } = client;
    let said = async {
        loop {
            match Hello::read(inbox.data()) {
                Hello::For(host) => return Some(host),
                Hello::Nameless => return None,
                Hello::Unfinished => {}
            }
            if !matches!(inbox.fill(stream, AT_ONCE as u64).await, Ok(1..)) {
                return None;
            }
        }
    };
    timeout(HELLO, said).await.ok().flatten()
}

/// Why there is no request.
enum Silence {
    Gone,
    Late,
    Fault(Fault),
}

/// Waits for the head of a request.
async fn heard(
    house: &House,
    stream: &TcpStream,
    inbox: &mut Inbox,
    server: Option<SocketAddr>,
) -> Result<Request, Silence> {
    let config = house.config.get();
    let (timeouts, largest) = (&config.timeouts, config.limits.head.0 as usize);
    let mut scan = Scan::default();
    // When all of it has to be there, once something is.
    let mut until = None;
    loop {
        let has_begun = !inbox.data().is_empty();
        match scan.end(inbox.data()).map_err(Silence::Fault)? {
            // An empty line before a request is the rest of an old client's body
            // (RFC 9112 section 2.2).
            Some(2) => {
                inbox.consume(2);
                scan = Scan::default();
                if !inbox.data().is_empty() {
                    continue;
                }
            }
            Some(size) if size <= largest => {
                let head = &inbox.data()[..size];
                let request = Request::read(head, server).map_err(Silence::Fault)?;
                inbox.consume(size);
                return Ok(request);
            }
            None if inbox.data().len() < largest => {}
            _ => return Err(Silence::Fault(Fault::TooLarge)),
        }
        if has_begun {
            until.get_or_insert_with(|| Instant::now() + duration(timeouts.head));
        }
        let (end, late) = match until {
            Some(until) => (until, Silence::Late),
            None => (Instant::now() + duration(timeouts.idle), Silence::Gone),
        };
        match timeout_at(end, inbox.fill(stream, AT_ONCE as u64)).await {
            Ok(Ok(1..)) => {}
            Ok(_) => return Err(Silence::Gone),
            Err(_) => return Err(late),
        }
    }
}

/// An answer of the gateway itself, after which the connection ends.
pub(crate) fn answer(status: u16, text: &str) -> Vec<u8> {
    let reason = http::StatusCode::from_u16(status).ok();
    let reason = reason.and_then(|status| status.canonical_reason()).unwrap_or_default();
    // Whoever asks again at once would wait as long.
    let also = match status {
        503 => "Retry-After: 5\r\n",
        407 => "Proxy-Authenticate: Basic realm=\"tidegate\", charset=\"UTF-8\"\r\n",
        _ => "",
    };
    let text = format!("tidegate: {text}\n");
    let length = text.len();
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {length}\r\nCache-Control: no-store\r\n{also}Connection: close\r\n\r\n{text}"
    )
    .into_bytes()
}
