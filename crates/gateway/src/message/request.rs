//! The head of a request.

use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::sync::Arc;

use http::Uri;
use http::uri::Authority;

use super::credentials::Credentials;
use super::fields::{Fields, HEAD, MOST_FIELDS, write, write_framing};
use super::{Fault, Framing};

/// A request to a proxy, or one to a server that a proxy has intercepted, as far as it is
/// understood.
///
/// ```
/// use tidegate_gateway::message::{Framing, Request};
///
/// let head = b"POST http://example.org:8080/form?a=b HTTP/1.1\r\nHost: example.org:8080\r\n\
///     Content-Length: 3\r\nProxy-Connection: keep-alive\r\nX: y\r\n\r\n";
/// let request = Request::read(head, None)?;
/// assert_eq!(request.target.to_string(), "example.org:8080");
/// assert_eq!(request.framing, Framing::Length(3));
/// assert_eq!(
///     request.head,
///     b"POST /form?a=b HTTP/1.1\r\nHost: example.org:8080\r\nX: y\r\nVia: 1.1 tidegate\r\n\
///     Content-Length: 3\r\n\r\n"
/// );
/// # Ok::<(), tidegate_gateway::message::Fault>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: Arc<str>,
    /// The server that is asked for.
    pub target: Target,
    /// What the client of an intercepted connection says that the server is called, in small
    /// letters.
    pub said_host: Option<Arc<str>>,
    /// Who the client says it is, if it knows of the gateway.
    pub credentials: Option<Credentials>,
    /// The minor version of HTTP/1 that the client speaks.
    pub version: u8,
    /// How the body is delimited, there and in `head`.
    pub framing: Framing,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// Whether it wants to speak another protocol, such as WebSocket.
    pub upgrades: bool,
    /// Whether the client may send another request on this connection.
    pub keeps_connection: bool,
    /// The head to send to the server; nothing for CONNECT.
    pub head: Vec<u8>,
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// A name, in small letters, or an address, without the brackets of IPv6.
    pub host: Arc<str>,
    /// The port.
    pub port: u16,
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl Target {
    /// At this address.
    fn at(server: SocketAddr) -> Target {
        Target { host: server.ip().to_canonical().to_string().into(), port: server.port() }
    }

    /// From `host:port`; `default` is the port when there is none.
    fn of(authority: &Authority, default: Option<u16>) -> Option<Target> {
        let has_port = !authority.as_str().ends_with(authority.host());
        let port = match authority.port_u16() {
            Some(port) => port,
            // A port that is no port is not the default.
            None if has_port => return None,
            None => default?,
        };
        let host = authority.host();
        let host = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
        let is_plain = !authority.as_str().contains('@') && !host.is_empty() && port > 0;
        let is_small = !host.bytes().any(|byte| byte.is_ascii_uppercase());
        is_plain.then(|| {
            let host = if is_small { host.into() } else { host.to_ascii_lowercase().into() };
            Target { host, port }
        })
    }
}

impl Request {
    /// Reads a head, which [`Scan`](super::Scan) has found the end of. If the client meant to
    /// speak to a server, `server` is the address of that.
    ///
    /// # Errors
    /// It cannot be passed on without a doubt about what it says.
    pub fn read(bytes: &[u8], server: Option<SocketAddr>) -> Result<Request, Fault> {
        let mut fields = [const { MaybeUninit::uninit() }; MOST_FIELDS];
        let mut parsed = httparse::Request::new(&mut []);
        match parsed.parse_with_uninit_headers(bytes, &mut fields)? {
            httparse::Status::Complete(size) if size == bytes.len() => {}
            _ => return Err(Fault::Syntax),
        }
        let (Some(method), Some(target), Some(version)) =
            (parsed.method, parsed.path, parsed.version)
        else {
            return Err(Fault::Syntax);
        };
        let fields = Fields(parsed.headers);
        let framing = fields.framing(version)?.unwrap_or(Framing::Empty);
        let mut hosts = fields.all("host");
        match (hosts.next(), hosts.next()) {
            (Some(_), None) => {}
            (None, None) if version == 0 => {}
            _ => return Err(Fault::Host),
        }
        let mut expectations = fields.list("expect");
        let expects_continue = match (expectations.next(), expectations.next()) {
            (None, _) => false,
            (Some(only), None) if only.eq_ignore_ascii_case(b"100-continue") => {
                version > 0 && framing != Framing::Empty
            }
            _ => return Err(Fault::Expectation),
        };
        let mut request = Request {
            method: method.into(),
            target: Target { host: Arc::default(), port: 0 },
            said_host: None,
            credentials: None,
            version,
            framing,
            expects_continue,
            upgrades: false,
            keeps_connection: fields.keeps_connection(version),
            head: Vec::new(),
        };
        match (method, server) {
            ("CONNECT", None) => {
                if framing != Framing::Empty {
                    return Err(Fault::Length);
                }
                let authority: Authority = target.parse().map_err(|_| Fault::Target)?;
                request.target = Target::of(&authority, None).ok_or(Fault::Target)?;
            }
            // It would show what the gateway adds, and has no use here.
            ("TRACE" | "CONNECT", _) => return Err(Fault::Method),
            (_, None) => request.ask_proxy(target, fields)?,
            (_, Some(server)) => request.ask_server(target, server, fields)?,
        }
        if server.is_none() {
            request.credentials = Credentials::read(fields);
        }
        Ok(request)
    }

    /// A tunnel to a server, which its client never asked a proxy for, and of which it may
    /// have said the name.
    #[must_use]
    pub fn tunnel(server: SocketAddr, host: Option<Arc<str>>) -> Request {
        Request {
            method: "CONNECT".into(),
            target: Target::at(server),
            said_host: host,
            credentials: None,
            version: 1,
            framing: Framing::Empty,
            expects_continue: false,
            upgrades: false,
            keeps_connection: false,
            head: Vec::new(),
        }
    }

    /// The name that the client knows the server by, in small letters, or its address.
    #[must_use]
    pub fn host(&self) -> &str {
        self.said_host.as_ref().unwrap_or(&self.target.host)
    }

    /// Writes the head for the server at this address, from an origin-form target. The
    /// address and not the field says where it goes, or anybody could have a shared
    /// connection lead elsewhere.
    fn ask_server(
        &mut self,
        target: &str,
        server: SocketAddr,
        fields: Fields<'_>,
    ) -> Result<(), Fault> {
        self.target = Target::at(server);
        let is_path = target.starts_with('/') || (target == "*" && &*self.method == "OPTIONS");
        if !is_path || target.parse::<Uri>().is_err() {
            return Err(Fault::Target);
        }
        let host = match fields.all("host").next() {
            None => self.target.to_string().into_bytes(),
            Some(host) => {
                let authority = Authority::try_from(host).map_err(|_| Fault::Host)?;
                let named = Target::of(&authority, Some(server.port())).ok_or(Fault::Host)?;
                self.said_host = Some(named.host);
                host.to_vec()
            }
        };
        self.write_head(["", target], &host, fields);
        Ok(())
    }

    /// Finds the server of an absolute-form target, and writes the head for it.
    fn ask_proxy(&mut self, target: &str, fields: Fields<'_>) -> Result<(), Fault> {
        let uri: Uri = target.parse().map_err(|_| Fault::Target)?;
        let (Some("http"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(Fault::Target);
        };
        self.target = Target::of(authority, Some(80)).ok_or(Fault::Target)?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        // RFC 9112 section 3.2.4.
        let is_asterisk = &*self.method == "OPTIONS" && target.ends_with(authority.as_str());
        let path = if is_asterisk { "*" } else { path };
        // A query alone has the empty path, which is written as one stroke.
        let root = if path.starts_with('?') { "/" } else { "" };
        // The target and not the field says whom it is for (RFC 9112 section 3.2.2).
        self.write_head([root, path], authority.as_str().as_bytes(), fields);
        Ok(())
    }

    /// Writes the head for the server that has this path, of two parts.
    fn write_head(&mut self, path: [&str; 2], host: &[u8], fields: Fields<'_>) {
        let upgrade =
            fields.upgrade().filter(|_| self.version > 0 && self.framing == Framing::Empty);
        self.upgrades = upgrade.is_some();

        let head = &mut self.head;
        head.reserve(HEAD);
        for part in [&self.method, " ", path[0], path[1], " HTTP/1.1\r\n"] {
            head.extend_from_slice(part.as_bytes());
        }
        write(head, "Host", host);
        fields.write_end_to_end(self.version, head);
        write_framing(head, self.framing);
        if self.expects_continue {
            write(head, "Expect", b"100-continue");
        }
        if let Some(protocol) = upgrade {
            write(head, "Upgrade", &protocol);
            write(head, "Connection", b"upgrade");
        }
        head.extend_from_slice(b"\r\n");
    }

    /// Whether sending it twice does no more than sending it once
    /// (RFC 9110 section 9.2.2).
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        matches!(&*self.method, "GET" | "HEAD" | "OPTIONS" | "PUT" | "DELETE")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Result<Request, Fault> {
        let head: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        Request::read(format!("{head}\r\n").as_bytes(), None)
    }

    fn sent(lines: &[&str]) -> String {
        String::from_utf8(read(lines).unwrap().head).unwrap()
    }

    #[test]
    fn fields_of_one_connection_stay_there() {
        let head = sent(&[
            "GET http://a.example/x HTTP/1.1",
            "Host: elsewhere.example",
            "Connection: close, X-Secret, content-length",
            "X-Secret: 1",
            "Keep-Alive: timeout=5",
            "TE: trailers",
            "Proxy-Authorization: Basic eDp5",
            "Accept: */*",
        ]);
        assert_eq!(
            head,
            "GET /x HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\nVia: 1.1 tidegate\r\n\r\n"
        );
    }

    #[test]
    fn a_length_that_is_listed_in_connection_is_kept() {
        let head = sent(&[
            "POST http://a/ HTTP/1.1",
            "Host: a",
            "Connection: content-length",
            "Content-Length: 5",
        ]);
        assert!(head.ends_with("\r\nContent-Length: 5\r\n\r\n"), "{head}");
    }

    #[test]
    fn upgrades_are_passed_on_and_nothing_else_in_connection() {
        let head = sent(&[
            "GET http://a/chat HTTP/1.1",
            "Host: a",
            "Connection: keep-alive, Upgrade",
            "Upgrade: websocket",
        ]);
        assert!(head.ends_with("\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"), "{head}");
        assert!(
            read(&["GET http://a/ HTTP/1.1", "Host: a", "Upgrade: x"]).is_ok_and(|it| !it.upgrades)
        );
    }

    #[test]
    fn what_smuggles_requests_is_refused() {
        for (fields, fault) in [
            (&["Content-Length: 3", "Content-Length: 4"][..], Fault::Length),
            (&["Content-Length: 3, 4"], Fault::Length),
            (&["Content-Length: +3"], Fault::Length),
            (&["Content-Length: 0x3"], Fault::Length),
            (&["Content-Length:"], Fault::Length),
            (&["Content-Length: 18446744073709551616"], Fault::Length),
            (&["Content-Length: 3", "Transfer-Encoding: chunked"], Fault::Length),
            (&["Transfer-Encoding: gzip, chunked"], Fault::Coding),
            (&["Transfer-Encoding: chunked, identity"], Fault::Coding),
            (&["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], Fault::Coding),
            (&["Transfer-Encoding: \u{b}chunked"], Fault::Syntax),
            (&["Transfer-Encoding : chunked"], Fault::Syntax),
            (&["Host: b"], Fault::Host),
            (&["Expect: 200-ok"], Fault::Expectation),
        ] {
            let lines = [&["POST http://a/ HTTP/1.1", "Host: a"], fields].concat();
            assert_eq!(read(&lines).map(|request| request.head), Err(fault), "{fields:?}");
        }
        let old = ["POST http://a/ HTTP/1.0", "Transfer-Encoding: chunked"];
        assert_eq!(read(&old).map(drop), Err(Fault::Coding));
        assert_eq!(read(&["GET http://a/ HTTP/1.1"]).map(drop), Err(Fault::Host));
        assert_eq!(read(&["GET http://a/ HTTP/2.0", "Host: a"]).map(drop), Err(Fault::Version));
    }

    #[test]
    fn what_was_meant_for_a_server_goes_to_its_address() {
        let server = "192.0.2.7:8080".parse().unwrap();
        let read = |lines: &[&str]| {
            let head: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
            Request::read(format!("{head}\r\n").as_bytes(), Some(server))
        };
        let request = read(&["GET /x?y HTTP/1.1", "Host: A.example:8080", "Keep-Alive: 3"]);
        let request = request.unwrap();
        assert_eq!(request.target.to_string(), "192.0.2.7:8080");
        assert_eq!(request.host(), "a.example");
        let head = "GET /x?y HTTP/1.1\r\nHost: A.example:8080\r\nVia: 1.1 tidegate\r\n\r\n";
        assert_eq!(String::from_utf8(request.head).unwrap(), head);
        let old = read(&["GET / HTTP/1.0"]).unwrap();
        assert!(old.head.starts_with(b"GET / HTTP/1.1\r\nHost: 192.0.2.7:8080\r\n"));
        assert!(read(&["OPTIONS * HTTP/1.1", "Host: a"]).is_ok());
        for (lines, fault) in [
            (["GET http://a/ HTTP/1.1", "Host: a"], Fault::Target),
            (["GET x HTTP/1.1", "Host: a"], Fault::Target),
            (["GET * HTTP/1.1", "Host: a"], Fault::Target),
            (["GET / HTTP/1.1", "Host: a b"], Fault::Host),
            (["GET / HTTP/1.1", "Host: u@a"], Fault::Host),
            (["GET / HTTP/1.1", "Accept: x"], Fault::Host),
            (["CONNECT a:443 HTTP/1.1", "Host: a"], Fault::Method),
            (["TRACE / HTTP/1.1", "Host: a"], Fault::Method),
        ] {
            assert_eq!(read(&lines), Err(fault), "{lines:?}");
        }
    }

    #[test]
    fn targets_are_those_of_a_proxy() {
        let target = |line: &str| read(&[line, "Host: a"]).map(|it| it.target.to_string());
        for (line, expected) in [
            ("GET http://A.example HTTP/1.1", "a.example:80"),
            ("GET http://a:81?x HTTP/1.1", "a:81"),
            ("GET http://[2001:db8::1]/ HTTP/1.1", "[2001:db8::1]:80"),
            ("CONNECT a.example:443 HTTP/1.1", "a.example:443"),
            ("CONNECT [2001:db8::1]:443 HTTP/1.1", "[2001:db8::1]:443"),
        ] {
            assert_eq!(target(line).as_deref(), Ok(expected), "{line}");
        }
        for line in [
            "GET / HTTP/1.1",
            "GET * HTTP/1.1",
            "GET https://a/ HTTP/1.1",
            "GET http:///x HTTP/1.1",
            "GET http://user@a/ HTTP/1.1",
            "GET http://a:0/ HTTP/1.1",
            "GET http://a:65536/ HTTP/1.1",
            "GET http://a:/ HTTP/1.1",
            "CONNECT a HTTP/1.1",
            "CONNECT a: HTTP/1.1",
            "CONNECT http://a:443/ HTTP/1.1",
            "CONNECT user@a:443 HTTP/1.1",
        ] {
            assert_eq!(target(line), Err(Fault::Target), "{line}");
        }
        assert!(sent(&["GET http://a?b HTTP/1.1", "Host: a"]).starts_with("GET /?b HTTP/1.1\r\n"));
        assert!(sent(&["OPTIONS http://a:81 HTTP/1.1", "Host: a"]).starts_with("OPTIONS * HTTP"));
    }
}
