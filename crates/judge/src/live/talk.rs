//! What clients and servers say to each other: HTTP/1.1, as it is or in a tunnel.
//!
//! In a tunnel it has the shape of TLS: a handshake of one or two round trips, and then
//! records of application data, with the sizes that the simulator gives them. Nothing is
//! encrypted, but a gateway that sees types and lengths of records cannot tell.
//!
//! Requests and responses have the bytes that the scenario says, head included; a response
//! that would be smaller than a head has no body.

use std::io::{self, ErrorKind};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Where servers listen: for HTTP, and for what is taken for TLS.
pub(crate) const HTTP: u16 = 80;
pub(crate) const TLS: u16 = 443;

/// The most that one call reads.
const CHUNK: usize = 65_536;
/// Heads are no larger than this, and have no more fields.
const LARGEST_HEAD: usize = 16_384;
const MOST_FIELDS: usize = 64;
/// The most payload of a record (RFC 8446 section 5.1).
const RECORD: usize = 16_384;
const RECORD_HEADER: usize = 5;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
/// The flights of a handshake, as the bytes of the client and of the server: those of the
/// simulator.
const FLIGHTS: [(usize, usize); 2] = [(517, 3_000), (126, 51)];

/// A connection, and what has come and is not used yet.
pub(crate) struct Line {
    stream: TcpStream,
    /// Whether its bytes are in records.
    in_records: bool,
    /// Bytes as they came, if they are in records, and without them.
    raw: Vec<u8>,
    unread: Vec<u8>,
    /// What is left of the record that the next byte is in.
    left: usize,
}

/// The head of a message.
#[derive(Debug)]
pub(crate) struct Head {
    /// Of a response.
    pub(crate) status: u16,
    /// Of a request: the last part of its path.
    pub(crate) name: String,
    /// The bytes of the head.
    pub(crate) size: u64,
    /// The bytes of the body.
    pub(crate) body: u64,
    /// Whether the connection ends behind this message.
    pub(crate) is_last: bool,
}

fn malformed(what: impl std::fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.to_string())
}

impl Line {
    pub(crate) fn new(stream: TcpStream) -> Line {
        // Without it nothing is sent late: heads and bodies leave in one call.
        let _ = stream.set_nodelay(true);
        Line { stream, in_records: false, raw: Vec::new(), unread: Vec::new(), left: 0 }
    }

    /// From now on all bytes are in records.
    pub(crate) fn in_records(mut self) -> Line {
        self.in_records = true;
        self.raw = std::mem::take(&mut self.unread);
        self
    }

    /// Whether the other end has closed it, or said something that nobody had asked for.
    pub(crate) fn is_over(&self) -> bool {
        let mut byte = [0];
        !matches!(self.stream.try_read(&mut byte), Err(error) if error.kind() == ErrorKind::WouldBlock)
    }

    /// The client's side of a handshake.
    pub(crate) async fn shake_hands(&mut self, round_trips: usize) -> io::Result<()> {
        for (ours, theirs) in FLIGHTS.iter().take(round_trips) {
            self.stream.write_all(&record(HANDSHAKE, ours - RECORD_HEADER)).await?;
            let mut flight = vec![0; *theirs];
            self.stream.read_exact(&mut flight).await?;
        }
        Ok(())
    }

    /// The server's side: answers all flights that come before data.
    pub(crate) async fn answer_hands(&mut self) -> io::Result<()> {
        for (ours, theirs) in FLIGHTS {
            let mut first = [0];
            if self.stream.peek(&mut first).await? == 0 || first[0] != HANDSHAKE {
                return Ok(());
            }
            let mut flight = vec![0; ours];
            self.stream.read_exact(&mut flight).await?;
            self.stream.write_all(&record(HANDSHAKE, theirs - RECORD_HEADER)).await?;
        }
        Ok(())
    }

    /// Writes bytes, and then so many more that mean nothing.
    pub(crate) async fn write(&mut self, head: &[u8], padding: u64) -> io::Result<()> {
        let mut piece = head.to_vec();
        let mut left = padding;
        while !piece.is_empty() || left > 0 {
            let more = left.min((RECORD - piece.len()) as u64);
            piece.resize(piece.len() + more as usize, b'x');
            left -= more;
            if self.in_records {
                let mut record = header(APPLICATION_DATA, piece.len()).to_vec();
                record.append(&mut piece);
                self.stream.write_all(&record).await?;
            } else {
                self.stream.write_all(&piece).await?;
                piece.clear();
            }
        }
        Ok(())
    }

    /// Waits for bytes and appends them to `unread`; the number of bytes, 0 at the end.
    async fn read(&mut self) -> io::Result<usize> {
        if !self.in_records {
            self.unread.reserve(CHUNK);
            return self.stream.read_buf(&mut self.unread).await;
        }
        let before = self.unread.len();
        loop {
            self.unwrap_records();
            if self.unread.len() > before {
                return Ok(self.unread.len() - before);
            }
            self.raw.reserve(CHUNK);
            if self.stream.read_buf(&mut self.raw).await? == 0 {
                return Ok(0);
            }
        }
    }

    /// Moves what records contain from `raw` to `unread`.
    fn unwrap_records(&mut self) {
        let mut used = 0;
        loop {
            let rest = &self.raw[used..];
            if self.left > 0 {
                let more = self.left.min(rest.len());
                self.unread.extend_from_slice(&rest[..more]);
                self.left -= more;
                used += more;
                if self.left > 0 {
                    break;
                }
            } else if let [_, _, _, high, low, ..] = *rest {
                self.left = usize::from(u16::from_be_bytes([high, low]));
                used += RECORD_HEADER;
            } else {
                break;
            }
        }
        self.raw.drain(..used);
    }

    /// The head of the next message; `None` when the connection ends before it. `parse`
    /// says whether it is whole.
    pub(crate) async fn head(
        &mut self,
        parse: impl Fn(&[u8]) -> io::Result<Option<Head>>,
    ) -> io::Result<Option<Head>> {
        loop {
            if let Some(head) = parse(&self.unread)? {
                self.unread.drain(..head.size as usize);
                return Ok(Some(head));
            }
            if self.unread.len() > LARGEST_HEAD {
                return Err(malformed("a head without an end"));
            }
            if self.read().await? == 0 {
                return if self.unread.is_empty() {
                    Ok(None)
                } else {
                    Err(ErrorKind::UnexpectedEof.into())
                };
            }
        }
    }

    /// Waits for bytes of a body of which so many are left; the number of those that came.
    pub(crate) async fn body(&mut self, left: u64) -> io::Result<u64> {
        if self.unread.is_empty() && self.read().await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let came = left.min(self.unread.len() as u64);
        self.unread.drain(..came as usize);
        Ok(came)
    }
}

fn header(kind: u8, length: usize) -> [u8; RECORD_HEADER] {
    let [high, low] = (length as u16).to_be_bytes();
    [kind, 3, 3, high, low]
}

fn record(kind: u8, length: usize) -> Vec<u8> {
    let mut record = header(kind, length).to_vec();
    record.resize(RECORD_HEADER + length, 0);
    record
}

/// A request for so many bytes of a `target`, which is an address or nothing, in `size`
/// bytes.
pub(crate) fn request(target: &str, host: &str, wanted: u64, size: u64) -> Vec<u8> {
    let start = format!("GET {target}/{wanted} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: ");
    let rest = (size as usize).saturating_sub(start.len() + 4);
    format!("{start}{}\r\n\r\n", "x".repeat(rest)).into_bytes()
}

/// The head of a response of `size` bytes in all, and what follows it.
pub(crate) fn response(size: u64) -> (Vec<u8>, u64) {
    let head = |body: u64| format!("HTTP/1.1 200 OK\r\nContent-Length: {body}\r\n\r\n");
    // The head's own length depends on the body's.
    let mut body = size.saturating_sub(head(0).len() as u64);
    body = size.saturating_sub(head(body).len() as u64);
    (head(body).into_bytes(), body)
}

/// The head of a request, if all of it is there.
pub(crate) fn request_head(bytes: &[u8]) -> io::Result<Option<Head>> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let httparse::Status::Complete(size) = request.parse(bytes).map_err(malformed)? else {
        return Ok(None);
    };
    let name = request.path.unwrap_or_default().rsplit('/').next().unwrap_or_default().to_owned();
    let is_last = is_last(request.headers);
    let body = length(request.headers)?;
    Ok(Some(Head { status: 0, name, size: size as u64, body, is_last }))
}

/// The head of a response, if all of it is there.
pub(crate) fn response_head(bytes: &[u8]) -> io::Result<Option<Head>> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(size) = response.parse(bytes).map_err(malformed)? else {
        return Ok(None);
    };
    let is_last = is_last(response.headers);
    let body = length(response.headers)?;
    let status = response.code.unwrap_or_default();
    Ok(Some(Head { status, name: String::new(), size: size as u64, body, is_last }))
}

fn field<'a>(fields: &'a [httparse::Header<'_>], name: &str) -> Option<&'a str> {
    let found = fields.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
    std::str::from_utf8(found.value).ok()
}

fn is_last(fields: &[httparse::Header<'_>]) -> bool {
    field(fields, "Connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
}

fn length(fields: &[httparse::Header<'_>]) -> io::Result<u64> {
    field(fields, "Content-Length").map_or(Ok(0), |value| value.trim().parse().map_err(malformed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_responses_have_the_size_that_is_asked_for() {
        let request = request("http://198.18.0.1", "198.18.0.1", 5_000, 300);
        assert_eq!(request.len(), 300);
        let head = request_head(&request).unwrap().unwrap();
        assert_eq!((head.name.as_str(), head.size, head.is_last), ("5000", 300, false));
        for size in [60, 138, 139, 1_041, 1_042, 1_043, 10_000_000] {
            let (head, body) = response(size);
            assert!((head.len() as u64 + body).abs_diff(size) <= 1, "{size}");
            let read = response_head(&head).unwrap().unwrap();
            assert_eq!((read.status, read.body, read.size), (200, body, head.len() as u64));
        }
        // There is no smaller response than its head.
        assert_eq!(response(1).1, 0);
    }

    #[test]
    fn a_head_that_is_not_whole_is_waited_for_and_a_wrong_one_is_an_error() {
        assert!(response_head(b"HTTP/1.1 200 OK\r\nConte").unwrap().is_none());
        assert!(response_head(b"nonsense\r\n\r\n").is_err());
        let length = b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n";
        assert!(response_head(length).is_err());
    }
}
