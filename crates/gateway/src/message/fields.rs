//! The fields of a head that concern a proxy.

use httparse::Header;

use super::{Fault, Framing};

/// More fields than any browser or server sends.
pub(super) const MOST_FIELDS: usize = 128;

/// Memory for so much of a head is asked for at once; a larger one asks for more.
pub(super) const HEAD: usize = 512;

/// Fields that concern one connection and no more (RFC 9110 section 7.6.1), or say where
/// a message ends or whom it is for: the gateway writes those anew.
const OWN: [&str; 12] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// The fields of a head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [Header<'a>]);

impl<'a> Fields<'a> {
    /// The values of a field, without the white space around them.
    pub(super) fn all(self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let named = self.0.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| field.value.trim_ascii())
    }

    /// The elements of a field that is a list.
    pub(super) fn list(self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let split = |value: &'a [u8]| value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        self.all(name).flat_map(split).filter(|element| !element.is_empty())
    }

    pub(super) fn has(self, name: &'a str, element: &str) -> bool {
        self.list(name).any(|it| it.eq_ignore_ascii_case(element.as_bytes()))
    }

    /// How the body is delimited, as far as fields say it: `None` if they do not.
    pub(super) fn framing(self, version: u8) -> Result<Option<Framing>, Fault> {
        let mut codings = self.all("transfer-encoding");
        let coding = codings.next();
        let length = self.length()?;
        match coding {
            Some(_) if length.is_some() => Err(Fault::Length),
            // A reader of HTTP/1.0 knows no coding, and takes what follows for something else.
            Some(coding) => match coding.eq_ignore_ascii_case(b"chunked") {
                true if version > 0 && codings.next().is_none() => Ok(Some(Framing::Chunked)),
                _ => Err(Fault::Coding),
            },
            None => Ok(length.map(Framing::Length)),
        }
    }

    /// The one length that is given.
    fn length(self) -> Result<Option<u64>, Fault> {
        let mut lengths = self.all("content-length").map(number);
        let Some(first) = lengths.next() else { return Ok(None) };
        let first = first.ok_or(Fault::Length)?;
        let is_one = lengths.all(|length| length == Some(first));
        if is_one { Ok(Some(first)) } else { Err(Fault::Length) }
    }

    /// Whether the connection may be used for another message.
    pub(super) fn keeps_connection(self, version: u8) -> bool {
        match version {
            0 => self.has("connection", "keep-alive"),
            _ => !self.has("connection", "close"),
        }
    }

    /// The protocol to change to, if there is one.
    pub(super) fn upgrade(self) -> Option<Vec<u8>> {
        let upgrade = self.all("upgrade").next()?;
        self.has("connection", "upgrade").then(|| upgrade.to_vec())
    }

    /// Appends the fields that are for the other side, and this gateway's `Via`.
    pub(super) fn write_end_to_end(self, version: u8, head: &mut Vec<u8>) {
        for field in self.0 {
            let name = field.name;
            let is_own = OWN.iter().any(|own| name.eq_ignore_ascii_case(own));
            if is_own || self.has("connection", name) {
                continue;
            }
            write(head, name, field.value);
        }
        for part in ["Via: 1.", if version == 0 { "0 " } else { "1 " }, super::NAME, "\r\n"] {
            head.extend_from_slice(part.as_bytes());
        }
    }
}

/// Appends a field.
pub(super) fn write(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        head.extend_from_slice(part);
    }
}

/// Appends a number, without the machinery of formats, which would cost a percent of a request.
pub(super) fn write_number(head: &mut Vec<u8>, number: u64) {
    head.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends the field that says where the body ends.
pub(super) fn write_framing(head: &mut Vec<u8>, framing: Framing) {
    match framing {
        Framing::Empty | Framing::UntilClose => {}
        Framing::Length(size) => {
            head.extend_from_slice(b"Content-Length: ");
            write_number(head, size);
            head.extend_from_slice(b"\r\n");
        }
        Framing::Chunked => write(head, "Transfer-Encoding", b"chunked"),
    }
}

/// A length: digits and nothing else, and not so many that readers differ.
fn number(text: &[u8]) -> Option<u64> {
    let is_plain = (1..=18).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| is_plain)?.parse().ok()
}

/// What httparse finds wrong.
impl From<httparse::Error> for Fault {
    fn from(error: httparse::Error) -> Fault {
        match error {
            httparse::Error::TooManyHeaders => Fault::TooLarge,
            httparse::Error::Version => Fault::Version,
            _ => Fault::Syntax,
        }
    }
}
