//! The name of the server that a client of TLS means.
//!
//! The first message of TLS is not encrypted, and says in an extension for which server
//! it is (RFC 8446 section 4.1.2, RFC 6066 section 3). It comes in one or more records,
//! these in any pieces. A name that is encrypted (ECH) is not seen: what is read then is
//! the public name of whoever hosts the server. Browsers send that extension with
//! nothing in it as well, so its presence says nothing.
//!
//! This is the one part of the crate that allocates: the message, and the name.
//!
//! Anybody can send anything here, so no more is read than a message may sensibly have,
//! and whatever is not as it should be has no name.

/// The largest record (RFC 8446 section 5.2, and RFC 5246 section 6.2.3, which allows more).
pub const LARGEST_RECORD: usize = 16_384 + 2_048;
/// Bytes in front of the contents of a record: type, version, length.
pub const RECORD_HEADER: usize = 5;

/// A length, as TLS writes it.
fn length(high: u8, low: u8) -> usize {
    u16::from_be_bytes([high, low]).into()
}

/// The name of a host in small letters, if it is one: letters, digits, hyphens and
/// underscores between dots (RFC 1123 section 2.1; hosts with underscores exist).
///
/// ```
/// use tidegate_wire::tls::host_name;
///
/// assert_eq!(host_name(b"WWW.example.org."), Some("www.example.org".into()));
/// assert_eq!(host_name(b"not a host"), None);
/// ```
#[must_use]
pub fn host_name(bytes: &[u8]) -> Option<String> {
    const LONGEST: usize = 253;

    let is_label = |label: &[u8]| {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !label.is_empty() && label.iter().all(plain)
    };
    let bytes = bytes.strip_suffix(b".").unwrap_or(bytes);
    let is_host = bytes.len() <= LONGEST && bytes.split(|byte| *byte == b'.').all(is_label);
    let name = std::str::from_utf8(bytes).ok().filter(|_| is_host)?;
    Some(name.to_ascii_lowercase())
}

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
/// The type and the length of a message of the handshake.
const PREFIX: usize = 4;
/// The largest message: with keys for quantum computers and tickets they have some two
/// kilobytes.
const MOST: usize = 16_384;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// What the first bytes of a client say.
///
/// ```
/// use tidegate_wire::tls::Hello;
///
/// assert_eq!(Hello::read(b"SSH-2.0-x\r\n"), Hello::Nameless);
/// assert_eq!(Hello::read(&[22, 3, 1, 2, 0, 1]), Hello::Unfinished);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hello {
    /// More bytes are needed.
    Unfinished,
    /// It names no server: it is not TLS, or says nothing of a name.
    Nameless,
    /// It means this server, in small letters.
    For(String),
}

impl Hello {
    /// Reads the first bytes of a stream.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Hello {
        match message(bytes) {
            Ok(Some(message)) => server_name(&message).map_or(Hello::Nameless, Hello::For),
            Ok(None) => Hello::Unfinished,
            Err(NoHello) => Hello::Nameless,
        }
    }
}

/// The bytes do not begin as they should.
struct NoHello;

/// The body of the first message, out of its records; `None` while some of it is missing.
fn message(mut bytes: &[u8]) -> Result<Option<Vec<u8>>, NoHello> {
    let mut message = Vec::new();
    loop {
        if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
            return Err(NoHello);
        }
        if let [_, high, middle, low, ..] = message[..] {
            let size = usize::from(high) << 16 | length(middle, low);
            if size > MOST {
                return Err(NoHello);
            }
            if message.len() >= PREFIX + size {
                return Ok(Some(message[PREFIX..PREFIX + size].to_vec()));
            }
        }
        let size = match *bytes {
            // An empty record says nothing and costs a header: none may be.
            [HANDSHAKE, 3, 0..=4, high, low, ..]
                if (1..=LARGEST_RECORD).contains(&length(high, low)) =>
            {
                length(high, low)
            }
            []
            | [HANDSHAKE]
            | [HANDSHAKE, 3]
            | [HANDSHAKE, 3, 0..=4]
            | [HANDSHAKE, 3, 0..=4, _] => {
                return Ok(None);
            }
            _ => return Err(NoHello),
        };
        let rest = &bytes[RECORD_HEADER..];
        let (part, next) = rest.split_at(size.min(rest.len()));
        message.extend_from_slice(part);
        bytes = next;
    }
}

/// The name in the body of a message.
fn server_name(body: &[u8]) -> Option<String> {
    /// The version, and a number that nobody guesses.
    const FIXED: usize = 2 + 32;

    let mut body = Reader(body);
    body.take(FIXED)?;
    let (_session, _suites, _compressions) = (body.short()?, body.long()?, body.short()?);
    let mut extensions = Reader(body.long()?);
    while !extensions.0.is_empty() {
        let (kind, data) = (extensions.number()?, extensions.long()?);
        if kind != SERVER_NAME {
            continue;
        }
        let mut names = Reader(Reader(data).long()?);
        while let [kind, ..] = *names.0 {
            names.take(1)?;
            let name = names.long()?;
            if kind == HOST_NAME {
                return host_name(name);
            }
        }
        return None;
    }
    None
}

/// What is left of a message.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// What stands behind its length in one byte.
    fn short(&mut self) -> Option<&'a [u8]> {
        let size = self.take(1)?[0];
        self.take(size.into())
    }

    /// What stands behind its length in two bytes.
    fn long(&mut self) -> Option<&'a [u8]> {
        let size = self.number()?;
        self.take(size.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(bytes: &[u8]) -> Vec<u8> {
        let size = u16::try_from(bytes.len()).expect("it is short");
        [&size.to_be_bytes(), bytes].concat()
    }

    /// The message of a client with these extensions.
    fn hello(extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut list = Vec::new();
        for (kind, data) in extensions {
            list.extend(kind.to_be_bytes());
            list.extend(long(data));
        }
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([2, 8, 9]);
        body.extend(long(&[0x13, 1, 0x13, 2]));
        body.extend([1, 0]);
        body.extend(long(&list));
        [&[CLIENT_HELLO, 0][..], &long(&body)].concat()
    }

    fn name(host: &[u8]) -> (u16, Vec<u8>) {
        (SERVER_NAME, long(&[&[HOST_NAME][..], &long(host)].concat()))
    }

    /// In records of at most this size.
    fn records(message: &[u8], most: usize) -> Vec<u8> {
        let record = |part: &[u8]| [&[HANDSHAKE, 3, 1][..], &long(part)].concat();
        message.chunks(most).flat_map(record).collect()
    }

    #[test]
    fn a_name_is_found_however_it_comes_and_not_before_it_is_all_there() {
        let message = hello(&[(0xfe0d, vec![1; 200]), (10, vec![]), name(b"WWW.Example.com.")]);
        for most in [1, 2, 3, 100, message.len()] {
            let bytes = records(&message, most);
            for end in 0..bytes.len() {
                assert_eq!(Hello::read(&bytes[..end]), Hello::Unfinished, "{most}, {end}");
            }
            let found = Hello::For("www.example.com".into());
            assert_eq!(Hello::read(&bytes), found);
            assert_eq!(Hello::read(&[&bytes[..], b"and more"].concat()), found);
        }
    }

    #[test]
    fn what_names_no_server_is_known_at_once() {
        let whole = |message: &[u8]| records(message, LARGEST_RECORD);
        let mut large = hello(&[name(b"a.example")]);
        large[1] = 1;
        for bytes in [
            b"GET / HTTP/1.1\r\n".to_vec(),
            vec![23, 3, 3, 0, 1, 9],
            vec![HANDSHAKE, 3, 1, 0, 0],
            whole(&[2, 0, 0, 0]),
            whole(&large),
            whole(&hello(&[])),
            whole(&hello(&[(10, vec![0; 4])])),
            whole(&hello(&[name(b"")])),
            whole(&hello(&[name(b"a b")])),
            whole(&hello(&[name(b"a\0.example")])),
            whole(&hello(&[(SERVER_NAME, vec![0, 9, 0])])),
            whole(&hello(&[(SERVER_NAME, vec![])])),
            whole(&[CLIENT_HELLO, 0, 0, 3, 3, 3, 1]),
        ] {
            assert_eq!(Hello::read(&bytes), Hello::Nameless, "{}", bytes.escape_ascii());
        }
    }
}
