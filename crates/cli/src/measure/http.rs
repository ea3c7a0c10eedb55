//! One run against a server of HTTP: downloads of a large file.
//!
//! Each long transfer asks for the file again and again until the end. A short one asks for
//! its first bytes (`Range`), over a connection of its own; a server that gives no parts of
//! files is asked for the head alone. A round trip is the time until a connection stands:
//! any server answers that, and no firewall takes it for something else.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use super::client::{Clock, Plan, begin_short, download};
use super::protocol::is_pause;
use super::record::{Answer, Flow, Probes, Record, Way, moment};
use super::target::address;
use crate::failure::Failure;

/// A connection leaves something at the server for a while, so there are fewer of them than
/// a ping has packets.
const PROBE_EVERY: Duration = Duration::from_millis(100);
/// A first packet that was lost is sent again after a second (RFC 6298 section 2): what
/// has not come before that counts as lost.
const LOST: Duration = Duration::from_millis(950);
const LOOK: Duration = Duration::from_millis(100);
const ANSWER: Duration = Duration::from_secs(10);
/// The most bytes of an answer's head.
const MOST_HEAD: usize = 16 << 10;
/// A file that is smaller ends before TCP has found its rate.
const LEAST_FILE: u64 = 10_000_000;

/// A file at a server.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) address: SocketAddr,
    host: String,
    path: String,
}

/// What a server says of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    length: Option<u64>,
}

impl File {
    /// The file of `whole`, which is `http://` and `rest`.
    pub(super) fn find(whole: &str, rest: &str) -> Result<File, Failure> {
        let wrong = |what: &str| {
            let found = format!("found '{}'", whole.escape_debug());
            Failure::Input(format!("{found}, expected {what}, as in http://example.org/1GB.bin"))
        };
        let (host, path) = rest.split_once('/').ok_or_else(|| wrong("a host and a large file"))?;
        if host.is_empty() || path.is_empty() || host.contains('@') {
            return Err(wrong("a host and a large file"));
        }
        if whole.chars().any(|it| it.is_whitespace() || it.is_control() || !it.is_ascii()) {
            return Err(wrong("an address without spaces"));
        }
        let path = path.split('#').next().unwrap_or_default();
        let address = address(whole, host, 80)?;
        Ok(File { address, host: host.into(), path: format!("/{path}") })
    }

    /// A connection that has asked for the file.
    fn ask(&self, method: &str, range: Option<u64>, patience: Duration) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&self.address, patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LOOK))?;
        let range = range.map_or_else(String::new, |it| format!("Range: bytes=0-{}\r\n", it - 1));
        let (path, host) = (&self.path, &self.host);
        let agent = concat!("tidegate/", env!("CARGO_PKG_VERSION"));
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {agent}\r\nAccept: */*\r\n\
             {range}Connection: close\r\n\r\n"
        )?;
        Ok(stream)
    }

    /// Whether the server gives parts of the file; an error if it has none.
    fn gives_parts(&self) -> Result<bool, Failure> {
        let failed = |reason: &dyn std::fmt::Display| {
            Failure::Other(format!("http://{}{}: {reason}", self.host, self.path))
        };
        let deadline = Instant::now() + ANSWER;
        let part = self.ask("GET", Some(1_000), ANSWER);
        let head = part.and_then(|mut it| head(&mut it, deadline)).map_err(|it| failed(&it))?;
        if head.status == 206 {
            return Ok(true);
        }
        if head.status != 200 {
            let expected = "expected 200 or 206 and a large file";
            return Err(failed(&format!("found the answer {}, {expected}", head.status)));
        }
        if let Some(length) = head.length.filter(|it| *it < LEAST_FILE) {
            let expected = "expected a larger file, 10 MB at least";
            return Err(failed(&format!("found {length} bytes, {expected}")));
        }
        Ok(false)
    }
}

/// Reads the head of an answer, and leaves what follows.
fn head(stream: &mut impl Read, deadline: Instant) -> io::Result<Head> {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        if Instant::now() > deadline || text.len() >= MOST_HEAD {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match stream.read(&mut byte) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => text.push(byte[0]),
            Err(reason) if is_pause(&reason) => {}
            Err(reason) => return Err(reason),
        }
    }
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines();
    let status = lines.next().unwrap_or_default();
    let status = status.strip_prefix("HTTP/1.").and_then(|it| it.split(' ').nth(1)?.parse().ok());
    let status = status.ok_or_else(|| io::Error::other("the answer is none of HTTP/1.1"))?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    Ok(Head { status, length })
}

/// Runs a plan against a server.
pub(super) fn run(file: &File, plan: &Plan, stop: &'static AtomicBool) -> Result<Record, Failure> {
    let parts = file.gives_parts()?;
    let clock = Clock { begun: Instant::now(), stop };
    let begun = moment();
    let end_s = plan.times.end_s();
    let (ping, flows, short) = thread::scope(|scope| {
        let ping = scope.spawn(|| connections(file.address, clock, end_s));
        let flows: Vec<_> = if clock.wait(plan.times.idle_s) {
            (0..plan.flows).map(|_| scope.spawn(|| long(file, clock, end_s))).collect()
        } else {
            Vec::new()
        };
        let fetch = move |bytes, deadline| short(file, parts, bytes, deadline);
        let short = begin_short(scope, clock, plan, fetch);
        let flows: io::Result<Vec<Flow>> =
            flows.into_iter().map(|it| it.join().expect("a flow does not panic")).collect();
        (ping.join().expect("the probes do not panic"), flows, short.iter().collect::<Vec<_>>())
    });
    if clock.stopped() {
        return Err(Failure::Interrupted("interrupted".into()));
    }
    let flows = flows
        .map_err(|reason| Failure::Other(format!("{}: a long transfer: {reason}", file.address)))?;
    if ping.answers.is_empty() {
        return Err(Failure::Other(format!("{}: no connection was made", file.address)));
    }
    let mut notes = Vec::new();
    if !parts {
        let note = "The server gives no parts of the file: short transfers are its head alone.";
        notes.push(note.to_owned());
    }
    let mut short = short;
    short.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
    Ok(Record { begun, times: plan.times, ping, calls: Vec::new(), flows, short, notes })
}

/// Connects at regular times until the end.
fn connections(server: SocketAddr, clock: Clock<'_>, end_s: f64) -> Probes {
    let every_s = PROBE_EVERY.as_secs_f64();
    let mut probes = Probes { kind: "TCP connect", ..Probes::default() };
    thread::scope(|scope| {
        let mut under_way = Vec::new();
        for number in 0_usize.. {
            let due_s = number as f64 * every_s;
            if due_s >= end_s || !clock.wait(due_s) {
                break;
            }
            probes.sent_s.push(clock.now_s());
            under_way.push(scope.spawn(move || {
                let connected = TcpStream::connect_timeout(&server, LOST).is_ok();
                let at_s = clock.now_s();
                connected.then_some(Answer { number, at_s, there_s: 0.0, count: 0 })
            }));
        }
        let answers = under_way.into_iter().map(|it| it.join().expect("it does not panic"));
        probes.answers = answers.flatten().collect();
    });
    probes
}

/// Downloads the file until the end, again and again.
fn long(file: &File, clock: Clock<'_>, end_s: f64) -> io::Result<Flow> {
    let mut all = Flow { way: Way::Down, points: Vec::new() };
    while !clock.stopped() && clock.now_s() < end_s {
        let mut stream = file.ask("GET", None, ANSWER)?;
        let head = head(&mut stream, Instant::now() + ANSWER)?;
        if head.status != 200 {
            return Err(io::Error::other(format!(
                "found the answer {}, expected 200",
                head.status
            )));
        }
        let before = all.points.last().map_or(0, |it| it.1);
        let flow = download(stream, clock, end_s)?;
        let came = flow.points.last().map_or(0, |it| it.1);
        if came == 0 && clock.now_s() < end_s {
            return Err(io::Error::other("found an empty file, expected a large one"));
        }
        all.points.extend(flow.points.into_iter().map(|(at, bytes)| (at, before + bytes)));
    }
    Ok(all)
}

/// Fetches so many bytes of the file; whether all came by then.
fn short(file: &File, parts: bool, bytes: u64, deadline: Instant) -> bool {
    let left = || deadline.saturating_duration_since(Instant::now());
    let patience = left().max(Duration::from_millis(1));
    let (method, range, status) =
        if parts { ("GET", Some(bytes), 206) } else { ("HEAD", None, 200) };
    let Ok(mut stream) = file.ask(method, range, patience) else { return false };
    if !head(&mut stream, deadline).is_ok_and(|it| it.status == status) {
        return false;
    }
    if !parts {
        return true;
    }
    let mut piece = vec![0; 32 << 10];
    let mut came = 0;
    while came < bytes && !left().is_zero() {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(size) => came += size as u64,
            Err(reason) if is_pause(&reason) => {}
            Err(_) => break,
        }
    }
    came >= bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_answers_are_understood_and_what_follows_is_left() {
        let soon = Instant::now() + Duration::from_secs(5);
        let mut text: &[u8] = b"HTTP/1.1 206 Partial Content\r\ncontent-length: 1000\r\n\r\nbody";
        assert_eq!(head(&mut text, soon).unwrap(), Head { status: 206, length: Some(1_000) });
        assert_eq!(text, b"body");
        for wrong in ["SSH-2.0-x\r\n\r\n", "HTTP/1.1 200 OK\r\n", "", "HTTP/1.1 x\r\n\r\n"] {
            assert!(head(&mut wrong.as_bytes(), soon).is_err(), "{wrong}");
        }
        let endless = b"HTTP/1.1 200 OK\r\nX: ".iter().chain([b'x'; 20_000].iter());
        let endless: Vec<u8> = endless.copied().collect();
        assert!(head(&mut endless.as_slice(), soon).is_err());
    }
}
