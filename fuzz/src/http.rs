//! Any bytes as messages of HTTP/1.1 at the live gateway, and as TLS.
//!
//! *Heads.* What is refused, and what is understood, is the same however the bytes come.
//! A head that the gateway writes is read again by a twin, which splits lines and knows
//! the rules of framing in their strictest form: no message that passes can be taken for
//! another one. *Bodies and records* end at the same byte in every division into pieces,
//! and a *hello* names the same server.

use tidegate_core::request::Piece;
use tidegate_gateway::Records;
use tidegate_gateway::message::{Body, Fault, Framing, Request, Response, Scan};
use tidegate_wire::tls::Hello;

/// A head, of a request and of a response.
///
/// # Panics
/// When something passes that should not.
pub fn head(input: &[u8]) {
    let whole = Scan::default().end(input);
    let mut by_byte = Scan::default();
    let grown = (0..=input.len()).map(|size| by_byte.end(&input[..size]));
    let grown = grown.into_iter().find(|end| *end != Ok(None)).unwrap_or(Ok(None));
    assert_eq!(whole, grown);
    let Ok(Some(size)) = whole else { return };
    let (head, _) = input.split_at(size);
    assert!(head.ends_with(b"\r\n") && !head[..size - 2].ends_with(b"\r\n\r\n"));
    if let Ok(request) = Request::read(head, None)
        && &*request.method != "CONNECT"
    {
        let (first, fields) = lines(&request.head);
        let words: Vec<_> = first.split(' ').collect();
        assert!(
            words.len() == 3 && words[0] == &*request.method && words[2] == "HTTP/1.1",
            "{first}"
        );
        assert!(words[1].starts_with('/') || words[1] == "*", "{first}");
        assert_eq!(values(&fields, "host").len(), 1);
        let framing = framing(&fields).unwrap_or(Framing::Empty);
        assert_eq!(framing, request.framing);
        let upgrade = if request.upgrades { vec!["upgrade".to_owned()] } else { Vec::new() };
        check_connection(&fields, &upgrade);
        assert_eq!(Request::read(&request.head, None), Err(Fault::Target), "it is for no proxy");
    }
    for method in ["GET", "HEAD"] {
        let Ok(response) = Response::read(head, method) else { continue };
        for (version, keeps) in [(0, false), (0, true), (1, false), (1, true)] {
            let (_, fields) = lines(&response.head_for(version, keeps));
            let stated = framing(&fields).unwrap_or(Framing::UntilClose);
            let has_none = method == "HEAD" || matches!(response.status, 100..=199 | 204 | 304);
            if !has_none {
                assert_eq!(stated, response.framing_for(version));
            }
            let connection = match response.upgrade {
                Some(_) => vec!["upgrade".to_owned()],
                None if response.is_interim() => Vec::new(),
                None if !keeps => vec!["close".to_owned()],
                None if version == 0 => vec!["keep-alive".to_owned()],
                None => Vec::new(),
            };
            check_connection(&fields, &connection);
        }
    }
}

type Fields = Vec<(String, String)>;

/// The first line and the fields of a head that was written.
fn lines(head: &[u8]) -> (String, Fields) {
    // Values may have any bytes above ASCII: a character for each byte.
    let text: String = head.iter().map(|byte| char::from(*byte)).collect();
    let text = text.strip_suffix("\r\n\r\n").expect("a head ends with an empty line");
    let mut lines = text.split("\r\n");
    let first = lines.next().expect("there is a first line").to_owned();
    let field = |line: &str| {
        assert!(!line.contains(['\r', '\n', '\0']), "{line:?}");
        let (name, value) = line.split_once(": ").expect("a field");
        assert!(!name.is_empty() && !name.contains([' ', '\t']), "{line:?}");
        (name.to_ascii_lowercase(), value.to_owned())
    };
    (first, lines.map(field).collect())
}

fn values<'a>(fields: &'a Fields, name: &str) -> Vec<&'a str> {
    fields.iter().filter(|(it, _)| it == name).map(|(_, value)| value.as_str()).collect()
}

/// How the strictest reader delimits the body.
fn framing(fields: &Fields) -> Option<Framing> {
    let (lengths, codings) =
        (values(fields, "content-length"), values(fields, "transfer-encoding"));
    match (lengths.as_slice(), codings.as_slice()) {
        ([], []) => None,
        ([length], []) => {
            assert!(length.bytes().all(|byte| byte.is_ascii_digit()), "{length}");
            Some(Framing::Length(length.parse().expect("digits")))
        }
        ([], ["chunked"]) => Some(Framing::Chunked),
        other => panic!("two readers may differ on {other:?}"),
    }
}

/// Nothing of the other connection is left.
fn check_connection(fields: &Fields, expected: &[String]) {
    assert_eq!(values(fields, "connection"), expected);
    for name in ["keep-alive", "proxy-connection", "proxy-authorization", "te"] {
        assert_eq!(values(fields, name), [""; 0], "{name}");
    }
}

/// The body of a message: in chunks, or of a length that the first byte says.
///
/// # Panics
/// When the pieces in which it comes make a difference.
pub fn body(input: &[u8]) {
    let Some((length, bytes)) = input.split_first() else { return };
    for framing in [Framing::Chunked, Framing::Length(u64::from(*length)), Framing::UntilClose] {
        let whole = read(framing, bytes, bytes.len().max(1));
        for piece in [1, 2, 7] {
            assert_eq!(read(framing, bytes, piece), whole, "{framing:?} in pieces of {piece}");
        }
    }
}

/// Whether a body is over, where, and its content.
fn read(framing: Framing, bytes: &[u8], piece: usize) -> Result<(bool, usize, Vec<u8>), Fault> {
    let mut body = Body::new(framing);
    let (mut at, mut content) = (0, Vec::new());
    for end in (0..bytes.len()).step_by(piece).map(|start| (start + piece).min(bytes.len())) {
        loop {
            let part = body.take(&bytes[at..end])?;
            if part.size == 0 {
                break;
            }
            if part.is_content {
                content.extend_from_slice(&bytes[at..at + part.size]);
            }
            at += part.size;
        }
    }
    Ok((body.is_over(), at, content))
}

/// What a client sends into a tunnel.
///
/// # Panics
/// When bytes are lost, or the pieces in which they come make a difference.
pub fn records(input: &[u8]) {
    let sum = |most: usize| {
        let mut records = Records::default();
        let (mut at, mut data, mut handshake) = (0, 0, 0);
        for end in (0..input.len()).step_by(most).map(|start| (start + most).min(input.len())) {
            while let Some((piece, size)) = records.next(&input[at..end]) {
                assert!(size > 0 && at + size <= end);
                let (Piece::Data(amount) | Piece::Handshake(amount)) = piece;
                assert_eq!(amount.0, size as u64);
                match piece {
                    Piece::Data(_) => data += size,
                    Piece::Handshake(_) => handshake += size,
                }
                at += size;
            }
        }
        assert!(input.len() - at < 5, "no more than a header can be undecided");
        (data, handshake)
    };
    let whole = sum(input.len().max(1));
    for most in [1, 3, 5, 64] {
        assert_eq!(sum(most), whole, "in pieces of {most}");
    }
}

/// What a client of TLS sends first.
///
/// # Panics
/// When what is known changes with more bytes, more is awaited than any hello has, or a name
/// is none.
pub fn hello(input: &[u8]) {
    /// Beyond the largest message in the smallest records.
    const MOST: usize = 6 * (16_384 + 4);

    let whole = Hello::read(input);
    for size in (0..input.len()).rev().step_by(1 + input.len() / 256) {
        let part = Hello::read(&input[..size]);
        assert!(part == Hello::Unfinished || part == whole, "{size}: {part:?}, then {whole:?}");
    }
    match &whole {
        Hello::Unfinished => assert!(input.len() < MOST),
        Hello::Nameless => {}
        Hello::For(name) => {
            assert!((1..254).contains(&name.len()) && !name.starts_with('.'), "{name:?}");
            let is_plain = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-' | '_' | '.');
            assert!(name.chars().all(is_plain), "{name:?}");
            // It stands there, in whatever case, though headers of records may divide it.
            let sent: Vec<_> = input.iter().map(u8::to_ascii_lowercase).collect();
            let mut rest = sent.iter();
            assert!(name.bytes().all(|byte| rest.any(|it| *it == byte)), "{name:?}");
        }
    }
}
