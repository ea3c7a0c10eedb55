//! Messages of HTTP/1.1, as RFC 9112 writes them: functions of bytes, without sockets.
//!
//! A proxy that understands a message otherwise than the server behind it lets one
//! user smuggle a request into the connection of another. So everything that two
//! readers might take differently is refused and never repaired: bare line feeds,
//! folded fields, two lengths, a length beside a transfer coding, extensions of
//! chunks. Heads are not passed on but written anew from what was understood, and
//! with them the fields that say where a message ends.

mod body;
mod credentials;
mod fields;
mod head;
mod request;
mod response;

pub use body::{Body, Framing, Part};
pub use credentials::Credentials;
pub use head::Scan;
pub use request::{Request, Target};
pub use response::Response;

/// The pseudonym of this gateway in `Via` (RFC 9110 section 7.6.3).
const NAME: &str = "tidegate";

/// Why a message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Fault {
    /// A line of the head or of the chunks does not end with CR LF, or contains one of
    /// the two alone.
    #[error("a line does not end with CR LF")]
    LineEnd,
    /// A field goes on in the next line.
    #[error("a field is folded over several lines")]
    Folded,
    /// The head is no head of HTTP.
    #[error("the head is malformed")]
    Syntax,
    /// The head is larger, or has more fields, than the gateway reads.
    #[error("the head is too large")]
    TooLarge,
    /// It is neither HTTP/1.1 nor HTTP/1.0.
    #[error("the version is neither HTTP/1.1 nor HTTP/1.0")]
    Version,
    /// The length is no number, or there are two lengths, or a length and a coding.
    #[error("the length of the body is wrong or given twice")]
    Length,
    /// A transfer coding other than `chunked`.
    #[error("the transfer coding is not 'chunked' alone")]
    Coding,
    /// A chunk has an extension or is malformed, or the trailer is.
    #[error("a chunk is malformed or has an extension")]
    Chunk,
    /// The target is not in the form that a proxy is asked in.
    #[error("the target is neither http://host/path nor, for CONNECT, host:port")]
    Target,
    /// There is no `Host`, or more than one.
    #[error("there is not exactly one Host field")]
    Host,
    /// A method that the gateway does not pass on.
    #[error("the method is not passed on")]
    Method,
    /// An expectation other than `100-continue`.
    #[error("the expectation is unknown")]
    Expectation,
}

impl Fault {
    /// The status code that tells a client so.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Fault::LineEnd
            | Fault::Folded
            | Fault::Syntax
            | Fault::Length
            | Fault::Chunk
            | Fault::Target
            | Fault::Host => 400,
            Fault::Method => 405,
            Fault::Expectation => 417,
            Fault::TooLarge => 431,
            Fault::Coding => 501,
            Fault::Version => 505,
        }
    }
}
