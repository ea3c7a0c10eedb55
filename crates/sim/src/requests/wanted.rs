//! The content of a request.

use tidegate_core::{Bytes, Time};

use super::failures::Fate;

/// An object that a client asks for: the words of its request. They travel with the
/// connection, to the gateway and on to the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The class, and the client within it: the user.
    pub(crate) class: usize,
    pub(crate) client: u32,
    /// The server's number.
    pub(crate) server: usize,
    /// Size of the response; a header states it ahead of the body.
    pub(crate) size: Bytes,
    /// What becomes of the response.
    pub(crate) fate: Fate,
    /// The time of the client's request, for the records.
    pub(crate) asked: Time,
}
