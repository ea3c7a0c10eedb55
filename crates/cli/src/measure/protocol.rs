//! What `tidegate measure run` and `tidegate measure serve` say to each other.
//!
//! Everything begins with a session: a TCP connection whose first line asks for one, and
//! whose answer is a token. The session ends with this connection. All else names the
//! token, in the first line of another TCP connection or in a datagram, and has to come
//! from the address that has the session. So nobody can have the server send anything to
//! somebody else: TCP answers who has shaken hands, and a datagram is answered, with as many
//! bytes as it has, to an address that has done so a moment ago.
//!
//! | line | answer |
//! | --- | --- |
//! | `tidegate-measure/1 session` | `ok TOKEN SECONDS`; ends with the connection |
//! | `tidegate-measure/1 TOKEN down` | `ok`, and bytes until the client closes |
//! | `tidegate-measure/1 TOKEN up` | `ok`; the client sends bytes, and gets a [`Report`] of what came ten times a second |
//! | `tidegate-measure/1 TOKEN get SIZE` | `ok`, and so many bytes |
//! | anything else | `no REASON` |
//!
//! Nothing is encrypted, and nothing is said that would have to be: the bytes carry no data.

use std::fmt;
use std::io::{self, Read};
use std::time::{Duration, Instant};

/// What each first line begins with: the protocol and its version.
pub(super) const NAME: &str = "tidegate-measure/1";
/// The most bytes of a line.
pub(super) const MOST_LINE: usize = 128;
/// The most bytes of a short answer.
pub(super) const MOST_ANSWER: u64 = 10_000_000;
/// How often what has come is reported.
pub(super) const REPORT_EVERY: Duration = Duration::from_millis(100);
/// How long it may take until all that has come is read; a reader that never gets that far
/// reports what it has.
const MOST_OVERDUE: Duration = Duration::from_secs(1);
/// The fewest bytes of a datagram: its header.
pub(super) const LEAST_DATAGRAM: usize = 52;
/// The most bytes of a datagram, which fits any path.
pub(super) const MOST_DATAGRAM: usize = 1_200;
/// Streams of datagrams in a session: a ping, and calls.
pub(super) const STREAMS: usize = 8;

const MAGIC: [u8; 4] = *b"TGm1";

/// What says that a connection or a datagram belongs to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Token(pub(super) [u8; 16]);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Token {
    fn parse(text: &str) -> Option<Token> {
        if text.len() != 32 || !text.bytes().all(|it| it.is_ascii_hexdigit()) {
            return None;
        }
        let mut token = [0; 16];
        for (byte, place) in token.iter_mut().zip((0..32).step_by(2)) {
            *byte = u8::from_str_radix(&text[place..place + 2], 16).ok()?;
        }
        Some(Token(token))
    }
}

/// What a client asks for in its first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Session,
    Down(Token),
    Up(Token),
    Get(Token, u64),
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Session => writeln!(f, "{NAME} session"),
            Request::Down(token) => writeln!(f, "{NAME} {token} down"),
            Request::Up(token) => writeln!(f, "{NAME} {token} up"),
            Request::Get(token, size) => writeln!(f, "{NAME} {token} get {size}"),
        }
    }
}

impl Request {
    /// What a line asks for, or why it is refused.
    pub(super) fn parse(line: &str) -> Result<Request, &'static str> {
        let words: Vec<&str> = line.split(' ').collect();
        let token = |word| Token::parse(word).ok_or("expected a token of 32 hexadecimal digits");
        match words[..] {
            [name, ..] if name != NAME => Err("expected tidegate-measure/1"),
            [_, "session"] => Ok(Request::Session),
            [_, it, "down"] => Ok(Request::Down(token(it)?)),
            [_, it, "up"] => Ok(Request::Up(token(it)?)),
            [_, it, "get", size] => match size.parse() {
                Ok(size) if size <= MOST_ANSWER => Ok(Request::Get(token(it)?, size)),
                _ => Err("expected a size of at most 10000000 bytes"),
            },
            _ => Err("expected session, down, up or get"),
        }
    }
}

/// The answer to a request for a session.
pub(super) fn granted(token: Token, seconds: u64) -> String {
    format!("ok {token} {seconds}\n")
}

/// The token and the seconds of such an answer.
pub(super) fn parse_granted(line: &str) -> Option<(Token, u64)> {
    let mut words = line.strip_prefix("ok ")?.split(' ');
    Some((Token::parse(words.next()?)?, words.next()?.parse().ok()?))
}

/// Reads a line without its end, byte by byte, so that what follows it stays; the other side
/// has until `deadline`. The connection has to have a timeout for each read.
pub(super) fn read_line(from: &mut impl Read, deadline: Instant) -> io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        if Instant::now() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match from.read(&mut byte) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) if line.len() == MOST_LINE => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long"));
            }
            Ok(_) => line.push(byte[0]),
            Err(reason) if is_pause(&reason) => {}
            Err(reason) => return Err(reason),
        }
    }
    String::from_utf8(line).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Whether nothing has come, or could be sent, for as long as was to be waited.
pub(super) fn is_pause(reason: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(reason.kind(), WouldBlock | TimedOut | Interrupted)
}

/// Whether to note what has come, so long after the last note.
///
/// `all_is_read` if the last read took less than it might have. While a program does not run,
/// its kernel goes on to receive; a note within what waited there would put it into the time
/// after the pause, and make a link faster than it is.
pub(super) fn is_due(since: Duration, all_is_read: bool) -> bool {
    since >= REPORT_EVERY && (all_is_read || since >= MOST_OVERDUE)
}

/// What has come of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// The server's clock.
    pub(super) at: Duration,
    /// All bytes so far.
    pub(super) bytes: u64,
}

impl Report {
    pub(super) const BYTES: usize = 16;

    pub(super) fn written(self) -> [u8; Report::BYTES] {
        let mut out = [0; Report::BYTES];
        out[..8].copy_from_slice(&nanos(self.at).to_be_bytes());
        out[8..].copy_from_slice(&self.bytes.to_be_bytes());
        out
    }

    pub(super) fn read(from: &[u8; Report::BYTES]) -> Report {
        let number = |place: usize| u64::from_be_bytes(array(&from[place..place + 8]));
        Report { at: Duration::from_nanos(number(0)), bytes: number(8) }
    }
}

/// The header of a datagram; the rest of it is only there to be carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Datagram {
    pub(super) token: Token,
    /// Which of the session's streams.
    pub(super) stream: u8,
    pub(super) number: u32,
    /// In an answer, the server's clock when the question came; zero in a question.
    pub(super) came: Duration,
    /// In an answer, how many of its stream have come, this one among them.
    pub(super) count: u32,
}

impl Datagram {
    /// Writes the header to the front of a datagram.
    pub(super) fn write(&self, to: &mut [u8]) {
        to[..4].copy_from_slice(&MAGIC);
        to[4..20].copy_from_slice(&self.token.0);
        to[20..24].copy_from_slice(&u32::from(self.stream).to_be_bytes());
        to[24..28].copy_from_slice(&self.number.to_be_bytes());
        to[28..36].copy_from_slice(&nanos(self.came).to_be_bytes());
        to[36..40].copy_from_slice(&self.count.to_be_bytes());
    }

    /// The header of a datagram; `None` if it is none of ours.
    pub(super) fn read(from: &[u8]) -> Option<Datagram> {
        if !(LEAST_DATAGRAM..=MOST_DATAGRAM).contains(&from.len()) || from[..4] != MAGIC {
            return None;
        }
        let number = |place: usize| u32::from_be_bytes(array(&from[place..place + 4]));
        let stream = u8::try_from(number(20)).ok().filter(|it| usize::from(*it) < STREAMS)?;
        Some(Datagram {
            token: Token(array(&from[4..20])),
            stream,
            number: number(24),
            came: Duration::from_nanos(u64::from_be_bytes(array(&from[28..36]))),
            count: number(36),
        })
    }
}

fn array<const N: usize>(from: &[u8]) -> [u8; N] {
    from.try_into().expect("a slice of this length")
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Token = Token([0xa7; 16]);

    #[test]
    fn a_request_is_read_as_it_was_written() {
        for request in
            [Request::Session, Request::Down(TOKEN), Request::Up(TOKEN), Request::Get(TOKEN, 9)]
        {
            let line = request.to_string();
            assert!(line.len() <= MOST_LINE && line.ends_with('\n'));
            assert_eq!(Request::parse(line.trim_end()), Ok(request));
        }
        assert_eq!(parse_granted(granted(TOKEN, 30).trim_end()), Some((TOKEN, 30)));
    }

    #[test]
    fn what_is_no_request_is_refused_with_what_was_expected() {
        let token = TOKEN.to_string();
        for (line, reason) in [
            ("GET / HTTP/1.1".to_string(), "tidegate-measure/1"),
            (String::new(), "tidegate-measure/1"),
            (NAME.into(), "session, down"),
            (format!("{NAME} x down"), "32 hexadecimal"),
            (format!("{NAME} {} up", "é".repeat(16)), "32 hexadecimal"),
            (format!("{NAME} {token} get 10000001"), "at most"),
            (format!("{NAME} {token} get -1"), "at most"),
            (format!("{NAME} {token} get 1 1"), "session, down"),
        ] {
            let refusal = Request::parse(&line).expect_err(&line);
            assert!(refusal.contains(reason), "{line}: {refusal}");
        }
    }

    #[test]
    fn a_line_that_does_not_end_is_cut_off() {
        let soon = Instant::now() + Duration::from_secs(5);
        let endless = vec![b'x'; 10_000];
        assert!(read_line(&mut endless.as_slice(), soon).is_err());
        let past = Instant::now().checked_sub(Duration::from_secs(1)).expect("it runs longer");
        assert!(read_line(&mut b"ok\n".as_slice(), past).is_err());
        let mut two = b"ok\nrest".as_slice();
        assert_eq!((read_line(&mut two, soon).expect("a line"), two), ("ok".into(), &b"rest"[..]));
    }

    #[test]
    fn datagrams_and_reports_are_read_as_they_were_written() {
        let came = Duration::from_nanos(123_456_789_012);
        let sent = Datagram { token: TOKEN, stream: 1, number: 7, came, count: 5 };
        let mut bytes = vec![0; 172];
        sent.write(&mut bytes);
        assert_eq!(Datagram::read(&bytes), Some(sent));
        for wrong in [&bytes[..LEAST_DATAGRAM - 1], &[0; 172], &[0; 1_400]] {
            assert_eq!(Datagram::read(wrong), None);
        }
        bytes[23] = 200;
        assert_eq!(Datagram::read(&bytes), None, "a stream that no session has");
        let report = Report { at: came, bytes: 1 << 40 };
        assert_eq!(Report::read(&report.written()), report);
    }
}
