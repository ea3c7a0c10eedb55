//! What a request says.

use tidegate_core::{Bytes, Time};

use super::failures::Fate;

/// An object that a client asks for: the words of its request. They travel with the
/// connection, to the gateway and on to the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Whose class, and which client of it: the user.
    pub(crate) class: usize,
    pub(crate) client: u32,
    /// The server's number.
    pub(crate) server: usize,
    /// Size of the response; a header says it ahead of the body.
    pub(crate) size: Bytes,
    /// What becomes of the response.
    pub(crate) fate: Fate,
    /// When the client asked: for the books.
    pub(crate) asked: Time,
}
