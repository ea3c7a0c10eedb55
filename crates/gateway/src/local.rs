//! HTTP for browsers and scrapers of this machine: what the admin port of a gateway, the
//! control of a link and the pages of `tidegate serve` have in common.
//!
//! Whoever may connect may ask. What a browser could be tricked into is refused: a request
//! for another name, which a stranger's page had resolve to this machine. Answers are
//! neither stored nor framed nor read by pages of another origin, and each says by its
//! policy what the browser may load. Connections are bounded in number, and a head that
//! does not come is not waited for.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{self, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use http::uri::Authority;
use http::{Request, Response, StatusCode};
use hyper::body::{Body, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;

/// Connections at the same time: some scrapers and a few people.
const MOST_CONNECTIONS: usize = 32;
/// The time for the head of a request, and between two.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long no connection is accepted after the machine refused one: it has no more
/// descriptors or memory, and the reason has to pass.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// The type of plain text.
pub const TEXT: &str = "text/plain; charset=utf-8";

/// What every answer carries besides its type and policy.
const HEADERS: [(HeaderName, &str); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (CACHE_CONTROL, "no-store"),
];

/// Where connections come in.
pub trait Door {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + 'static;

    /// Waits for the next one.
    fn next(&self) -> impl Future<Output = io::Result<Self::Stream>>;
}

impl Door for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<TcpStream> {
        Ok(self.accept().await?.0)
    }
}

impl Door for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<UnixStream> {
        Ok(self.accept().await?.0)
    }
}

/// Answers at `door` for ever, each connection in a task of its own on the current
/// [`LocalSet`](tokio::task::LocalSet).
pub async fn serve<Answer, Answered, Content>(door: impl Door, answer: Answer)
where
    Answer: Fn(Request<Incoming>) -> Answered + Clone + 'static,
    Answered: Future<Output = Response<Content>> + 'static,
    Content: Body<Data = Bytes> + 'static,
    Content::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok(stream) = door.next().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let answer = answer.clone();
        tokio::task::spawn_local(async move {
            let service = service_fn(|request| {
                let answered = answer(request);
                async move { Ok::<_, Infallible>(answered.await) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
            // What a client does to its own connection is its business.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
            drop(place);
        });
    }
}

/// Whom a request is meant for, if that is this machine by an address. A page in a browser
/// can have any name resolve to this machine, and would read the answer as its own.
#[must_use]
pub fn host<Content>(request: &Request<Content>) -> Option<Authority> {
    let host: Authority = request.headers().get(HOST)?.to_str().ok()?.parse().ok()?;
    let name = host.host().trim_start_matches('[').trim_end_matches(']');
    (name == "localhost" || name.parse::<IpAddr>().is_ok()).then_some(host)
}

/// An answer of this `kind`, a media type, with what its `policy` lets the browser load
/// (Content Security Policy).
///
/// ```
/// use http::StatusCode;
/// use tidegate_gateway::local::{TEXT, reply};
///
/// let answer = reply(StatusCode::OK, TEXT, "default-src 'none'", "all is well\n");
/// assert_eq!(answer.headers()["content-security-policy"], "default-src 'none'");
/// assert_eq!(answer.headers()["cache-control"], "no-store");
/// ```
pub fn reply<Content>(
    status: StatusCode,
    kind: &'static str,
    policy: &'static str,
    content: Content,
) -> Response<Content> {
    let mut response = Response::new(content);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let own = [(CONTENT_TYPE, kind), (header::CONTENT_SECURITY_POLICY, policy)];
    for (name, value) in own.into_iter().chain(HEADERS) {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_localhost_are_this_machine() {
        let asked = |host: &str| {
            let request = Request::builder().header(HOST, host).body(()).expect("a host");
            self::host(&request).is_some()
        };
        for own in ["127.0.0.1:80", "localhost", "localhost:3129", "[::1]:3129", "10.0.0.1"] {
            assert!(asked(own), "{own}");
        }
        for foreign in ["example.org", "127.0.0.1.example.org", "localhost.example.org:80", ""] {
            assert!(!asked(foreign), "{foreign}");
        }
        assert!(host(&Request::new(())).is_none());
    }
}
