//! What is written down about each request.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use tidegate_core::{Bytes, Span};
use tokio::time::Instant;

use crate::connections::Connection;
use crate::message::{Request, Target};
use crate::times::{between, since};

/// The events of `tracing` that are one for each request or tunnel.
pub const REQUESTS: &str = "tidegate::request";

/// One request or tunnel, from its head on.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) peer: SocketAddr,
    pub(crate) connection: Rc<Connection>,
    /// The name of the user, who has logged in.
    pub(crate) name: Option<Rc<str>>,
    pub(crate) method: Arc<str>,
    pub(crate) target: Target,
    /// The status code that the client was told; 0 for none.
    pub(crate) status: u16,
    /// What the server sent, heads and sizes of chunks included.
    pub(crate) received: Bytes,
    /// The time in line, if it was in one.
    pub(crate) waited: Option<Span>,
    /// From the release to the first byte of the response, and to the last.
    pub(crate) first_byte: Option<Span>,
    pub(crate) service: Option<Span>,
    released: Instant,
}

impl Record {
    pub(crate) fn new(
        peer: SocketAddr,
        connection: Rc<Connection>,
        name: Option<Rc<str>>,
        request: &Request,
    ) -> Record {
        Record {
            peer,
            connection,
            name,
            method: request.method.clone(),
            target: request.target.clone(),
            status: 0,
            received: Bytes::ZERO,
            waited: None,
            first_byte: None,
            service: None,
            released: Instant::now(),
        }
    }

    /// It has waited since it was heard, and may go.
    pub(crate) fn released(&mut self, heard: Instant) {
        self.released = Instant::now();
        self.waited = Some(between(heard, self.released));
    }

    /// The head of a response is here.
    pub(crate) fn first_byte(&mut self) {
        self.first_byte.get_or_insert_with(|| since(self.released));
    }

    /// All of the response is here.
    pub(crate) fn completed(&mut self) {
        self.service = Some(since(self.released));
    }
}
