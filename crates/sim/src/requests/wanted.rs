//! The content of a request.

use tidegate_core::{Bytes, Span, Time};

use super::failures::Fate;

/// An object that a client asks for: the words of its request, to the gateway and on to
/// the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wanted {
    /// The class, and the client within it: the user.
    pub(crate) class: usize,
    pub(crate) client: u32,
    /// The server's number.
    pub(crate) server: usize,
    /// Size of the response; a header states it ahead of the body.
    pub(crate) size: Bytes,
    /// Size of the request.
    pub(crate) request: Bytes,
    /// How long the server thinks before it answers, and how urgent that is.
    pub(crate) think: Span,
    pub(crate) urgency: u8,
    /// What becomes of the response.
    pub(crate) fate: Fate,
    /// The time of the client's request, for the records.
    pub(crate) asked: Time,
}
