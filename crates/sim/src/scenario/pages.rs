//! How users load pages: when, over which connections, and in which order a server
//! sends what it has for several requests.

use std::fmt;

use tidegate_core::Span;

use super::{QuicProfile, SizeLaw, short};
use crate::pages::Pages;

/// How the users of a source load pages.
#[derive(Clone, Debug)]
pub struct PageProfile {
    /// The pages.
    pub pages: Pages,
    /// Sizes of the objects of pages that are not recorded.
    pub sizes: SizeLaw,
    /// When each user asks for one.
    pub visits: Visits,
    /// Over which connections.
    pub protocol: Protocol,
    /// How QUIC carries them, with [`Protocol::Http2`]: that is HTTP/3 (RFC 9114) then. `None`
    /// with TCP. Each response is a stream, so the number in it is not used.
    pub quic: Option<QuicProfile>,
    /// The order of the frames of one connection.
    pub order: FrameOrder,
    /// The round trips of TLS before the first request of a connection: 1 with TLS 1.3
    /// (RFC 8446), 2 with TLS 1.2, none without TLS.
    pub handshakes: usize,
    /// How long a connection without a request stays open.
    pub keep_alive: Span,
}

/// When a user asks for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visits {
    /// At random times, so far apart on average, whether or not earlier pages are
    /// complete: what is asked for does not depend on the network.
    Every(Span),
    /// So long on average after the last page was complete: the time of reading.
    After(Span),
}

/// How HTTP uses connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// A connection for each response, six to a host at once (RFC 1945).
    Http10,
    /// Connections that stay open, six to a host, with one response at a time (RFC 9112).
    Http11,
    /// One connection to a host, with all responses (RFC 9113).
    Http2,
    /// For each object what carried it in the recording.
    Recorded,
}

/// In which order a server sends the frames of several responses over one connection.
/// RFC 9113 leaves it to the server, and servers differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameOrder {
    /// A frame of each response in turn: what a server does that has no priorities,
    /// such as Go's.
    #[default]
    RoundRobin,
    /// RFC 9218: the most urgent response first, and of equally urgent ones the one
    /// that was asked for first, without taking turns, as for a request that says
    /// nothing of priorities.
    Priority,
}

impl fmt::Display for PageProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pages {
            Pages::Drawn => f.write_str("pages")?,
            Pages::Outlined(table) => write!(f, "{} pages of a table", table.pages.len())?,
            Pages::Recorded(pages) => write!(f, "{} recorded pages", pages.count())?,
        }
        match self.visits {
            Visits::Every(every) => {
                write!(f, ", each user one every {} s", short(every.as_seconds()))?;
            }
            Visits::After(pause) => {
                write!(f, ", each user one {} s after another", short(pause.as_seconds()))?;
            }
        }
        f.write_str(match self.protocol {
            Protocol::Http10 => ", over HTTP/1.0",
            Protocol::Http11 => ", over HTTP/1.1",
            Protocol::Http2 if self.quic.is_some() => ", over HTTP/3",
            Protocol::Http2 => ", over HTTP/2",
            Protocol::Recorded => ", as they came",
        })
    }
}
