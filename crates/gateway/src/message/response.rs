//! The head of a response.

use std::mem::MaybeUninit;

use httparse::ParserConfig;

use super::fields::{Fields, HEAD, MOST_FIELDS, write, write_framing, write_number};
use super::{Fault, Framing};

/// A response of a server, as far as it is understood.
///
/// ```
/// use tidegate_gateway::message::{Framing, Response};
///
/// let head = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nKeep-Alive: timeout=5\r\n\r\n";
/// let response = Response::read(head, "GET")?;
/// assert_eq!((response.status, response.framing), (200, Framing::Length(3)));
/// assert_eq!(
///     response.head_for(1, true),
///     b"HTTP/1.1 200 OK\r\nVia: 1.1 tidegate\r\nContent-Length: 3\r\n\r\n"
/// );
/// // The length of what a GET would have brought stays, and no body follows.
/// let response = Response::read(head, "HEAD")?;
/// assert_eq!((response.framing, response.states), (Framing::Empty, Framing::Length(3)));
/// # Ok::<(), tidegate_gateway::message::Fault>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// How the body is delimited.
    pub framing: Framing,
    /// How the head says that it is, which differs where there is none by the rules.
    pub states: Framing,
    /// Whether the server takes another request on this connection.
    pub keeps_connection: bool,
    /// The protocol that the server has changed to, of status 101.
    pub upgrade: Option<Vec<u8>>,
    /// Whether the body is an endless row of events (the media type `text/event-stream`).
    pub is_event_stream: bool,
    reason: String,
    /// The fields for the client.
    fields: Vec<u8>,
}

impl Response {
    /// Reads a head, which [`Scan`](super::Scan) has found the end of, of the response to
    /// a request with this `method`.
    ///
    /// # Errors
    /// It cannot be passed on without a doubt about what it says.
    pub fn read(bytes: &[u8], method: &str) -> Result<Response, Fault> {
        let mut fields = [const { MaybeUninit::uninit() }; MOST_FIELDS];
        let mut parsed = httparse::Response::new(&mut []);
        let parser = ParserConfig::default();
        match parser.parse_response_with_uninit_headers(&mut parsed, bytes, &mut fields)? {
            httparse::Status::Complete(size) if size == bytes.len() => {}
            _ => return Err(Fault::Syntax),
        }
        let (Some(status @ 100..=999), Some(version)) = (parsed.code, parsed.version) else {
            return Err(Fault::Syntax);
        };
        let fields = Fields(parsed.headers);
        // RFC 9112 section 6.3, in its order.
        let states = fields.framing(version)?.unwrap_or(Framing::UntilClose);
        let framing = match status {
            100..=199 | 204 | 304 => Framing::Empty,
            _ if method == "HEAD" => Framing::Empty,
            _ => states,
        };
        let is_event_stream = fields.all("content-type").any(|value| {
            let essence = value.split(|byte| *byte == b';').next().unwrap_or_default();
            essence.trim_ascii().eq_ignore_ascii_case(b"text/event-stream")
        });
        let mut kept = Vec::with_capacity(bytes.len());
        fields.write_end_to_end(version, &mut kept);
        Ok(Response {
            status,
            framing,
            states,
            keeps_connection: fields.keeps_connection(version) && framing != Framing::UntilClose,
            upgrade: fields.upgrade().filter(|_| status == 101),
            is_event_stream,
            reason: parsed.reason.unwrap_or_default().into(),
            fields: kept,
        })
    }

    /// Whether another response to the same request follows.
    #[must_use]
    pub fn is_interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }

    /// How the body is delimited for a client of this minor version of HTTP/1: one that
    /// does not know chunks gets it until the connection ends.
    #[must_use]
    pub fn framing_for(&self, version: u8) -> Framing {
        match self.framing {
            Framing::Chunked if version == 0 => Framing::UntilClose,
            framing => framing,
        }
    }

    /// The head for a client of this minor version of HTTP/1, which may use the
    /// connection again if that `keeps`.
    #[must_use]
    pub fn head_for(&self, version: u8, keeps: bool) -> Vec<u8> {
        let mut head = Vec::with_capacity(HEAD);
        head.extend_from_slice(b"HTTP/1.1 ");
        write_number(&mut head, self.status.into());
        for part in [" ", &self.reason, "\r\n"] {
            head.extend_from_slice(part.as_bytes());
        }
        head.extend_from_slice(&self.fields);
        match (self.status, self.states) {
            // They have no body at all (RFC 9110 section 8.6).
            (100..=199 | 204, _) => {}
            (_, Framing::Chunked) if version == 0 => {}
            (_, states) => write_framing(&mut head, states),
        }
        if let Some(protocol) = &self.upgrade {
            write(&mut head, "Upgrade", protocol);
            write(&mut head, "Connection", b"upgrade");
        } else if !self.is_interim() && !keeps {
            write(&mut head, "Connection", b"close");
        } else if !self.is_interim() && version == 0 {
            write(&mut head, "Connection", b"keep-alive");
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str], method: &str) -> Result<Response, Fault> {
        let head: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        Response::read(format!("{head}\r\n").as_bytes(), method)
    }

    #[test]
    fn bodies_end_where_the_rules_say() {
        let framing = |lines: &[&str], method| read(lines, method).map(|it| it.framing);
        assert_eq!(framing(&["HTTP/1.1 200 OK"], "GET"), Ok(Framing::UntilClose));
        assert_eq!(framing(&["HTTP/1.1 204 No Content"], "GET"), Ok(Framing::Empty));
        let length = "Content-Length: 7";
        assert_eq!(framing(&["HTTP/1.1 304 Not Modified", length], "GET"), Ok(Framing::Empty));
        assert_eq!(framing(&["HTTP/1.1 200 OK", length], "HEAD"), Ok(Framing::Empty));
        let chunked = "Transfer-Encoding: Chunked";
        assert_eq!(framing(&["HTTP/1.1 200 OK", chunked], "GET"), Ok(Framing::Chunked));
        assert_eq!(framing(&["HTTP/1.1 200 OK", chunked, length], "GET"), Err(Fault::Length));
        assert_eq!(
            framing(&["HTTP/1.1 200 OK", length, "Content-Length: 8"], "GET"),
            Err(Fault::Length)
        );
    }

    #[test]
    fn old_clients_get_neither_chunks_nor_a_connection_they_did_not_ask_for() {
        let response = read(&["HTTP/1.1 200 OK", "Transfer-Encoding: chunked"], "GET").unwrap();
        assert_eq!(response.framing_for(0), Framing::UntilClose);
        assert_eq!(
            response.head_for(0, false),
            b"HTTP/1.1 200 OK\r\nVia: 1.1 tidegate\r\nConnection: close\r\n\r\n"
        );
    }

    #[test]
    fn a_connection_is_kept_only_when_the_end_of_the_body_is_known() {
        let keeps = |lines: &[&str]| read(lines, "GET").is_ok_and(|it| it.keeps_connection);
        assert!(keeps(&["HTTP/1.1 200 OK", "Content-Length: 0"]));
        assert!(!keeps(&["HTTP/1.1 200 OK"]));
        assert!(!keeps(&["HTTP/1.1 200 OK", "Content-Length: 0", "Connection: close"]));
        assert!(!keeps(&["HTTP/1.0 200 OK", "Content-Length: 0"]));
        assert!(keeps(&["HTTP/1.0 200 OK", "Content-Length: 0", "Connection: keep-alive"]));
    }
}
