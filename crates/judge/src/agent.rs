//! The programs at both ends of a kernel's path: a sender that opens its connections
//! when their time has come, and a sink that reads them to the end.
//!
//! Both write what happens as lines, one [`Event`] each. Stamps are of the monotonic
//! clock, which all hosts of a bed share. Everything runs in one thread that waits in
//! one place: a process of threads would spend more of a slow guest's time on switching
//! than on packets.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::prctl;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, setsockopt, socket, sockopt,
};
use nix::time::{ClockId, clock_gettime};

use crate::workload::{self, Transfer};

/// The first bytes of a connection: its number and its size.
const HEAD_BYTES: usize = 12;
/// As much as one call moves.
const CHUNK_BYTES: usize = 65_536;
/// From the sender's start to the log's: the sink and the first timer are then warm.
const LEAD_US: i64 = 500_000;
/// Between two probes, and between two looks at the connections' state.
pub(crate) const PROBE_EVERY_US: i64 = 100_000;
/// Between two notes of how far an endless transfer has come.
const NOTE_EVERY_US: i64 = 100_000;
/// No transfer of a log that ends is so large.
const ENDLESS_BYTES: u64 = 1_000_000_000;
/// A probe's payload: its number and its departure, padded to the size of a small
/// datagram.
const PROBE_BYTES: usize = 64;
/// The number of a probe that ends the sink, and how often it is sent in case some are
/// lost.
const LAST_PROBE: i64 = -1;
const LAST_PROBES: usize = 5;
const LAST_PROBE_GAP: Duration = Duration::from_millis(300);
/// Marks in an epoll event what is no connection.
const LISTENER: u64 = u64::MAX;
const PROBES: u64 = u64::MAX - 1;

/// Something that an agent saw.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The log begins at this time: starts count from here.
    Start(i64),
    /// Transfer number `.0` was opened at `.1`.
    Begun(usize, i64),
    /// The last byte of transfer number `.0` was read at `.1`.
    Done(usize, i64),
    /// Of transfer number `.0`, `.2` bytes had been read at `.1`: of endless ones only.
    Read(usize, i64, u64),
    /// A probe that left at `.0` took `.1` microseconds.
    Probe(i64, i64),
    /// What `ss -tin` says of a connection, at `.0`.
    State(i64, State),
}

/// A connection as `ss -tin` shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct State {
    /// Congestion window in segments.
    pub window: f64,
    /// Smoothed round trip in milliseconds.
    pub round_trip_ms: f64,
    /// Pacing rate in bits a second.
    pub pacing_bps: f64,
    /// Payload acknowledged so far, in bytes.
    pub acked_bytes: f64,
    /// Segments sent again so far.
    pub resent: f64,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Start(at) => write!(f, "start {at}"),
            Event::Begun(number, at) => write!(f, "begun {number} {at}"),
            Event::Done(number, at) => write!(f, "done {number} {at}"),
            Event::Read(number, at, bytes) => write!(f, "read {number} {at} {bytes}"),
            Event::Probe(sent, took) => write!(f, "probe {sent} {took}"),
            Event::State(at, state) => write!(
                f,
                "state {at} {} {} {} {} {}",
                state.window,
                state.round_trip_ms,
                state.pacing_bps,
                state.acked_bytes,
                state.resent
            ),
        }
    }
}

impl FromStr for Event {
    type Err = ();

    fn from_str(line: &str) -> Result<Event, ()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let whole = |word: &str| word.parse::<i64>().map_err(|_| ());
        let real = |word: &str| word.parse::<f64>().map_err(|_| ());
        let number = |word: &str| word.parse::<usize>().map_err(|_| ());
        Ok(match words[..] {
            ["start", at] => Event::Start(whole(at)?),
            ["begun", which, at] => Event::Begun(number(which)?, whole(at)?),
            ["done", which, at] => Event::Done(number(which)?, whole(at)?),
            ["read", which, at, bytes] => {
                Event::Read(number(which)?, whole(at)?, bytes.parse().map_err(|_| ())?)
            }
            ["probe", sent, took] => Event::Probe(whole(sent)?, whole(took)?),
            ["state", at, window, round_trip, pacing, acked, resent] => Event::State(
                whole(at)?,
                State {
                    window: real(window)?,
                    round_trip_ms: real(round_trip)?,
                    pacing_bps: real(pacing)?,
                    acked_bytes: real(acked)?,
                    resent: real(resent)?,
                },
            ),
            _ => return Err(()),
        })
    }
}

/// Microseconds on the monotonic clock.
pub(crate) fn now_us() -> i64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux has this clock");
    now.tv_sec() * 1_000_000 + now.tv_nsec() / 1000
}

/// Waits until something is ready, or at most this long.
fn wait(epoll: &Epoll, most_us: i64, ready: &mut [EpollEvent]) -> io::Result<usize> {
    // Epoll counts whole milliseconds: the rest is slept, which is exact.
    let timeout = match most_us {
        i64::MAX => EpollTimeout::NONE,
        _ => EpollTimeout::try_from(most_us / 1000).unwrap_or(EpollTimeout::MAX),
    };
    match epoll.wait(ready, timeout) {
        Ok(0) if most_us < 1000 => {
            thread::sleep(Duration::from_micros(most_us.max(0) as u64));
            Ok(0)
        }
        Ok(count) => Ok(count),
        Err(Errno::EINTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

fn epoll() -> io::Result<Epoll> {
    // Timers of this thread are then exact; by default they may be 50 us late.
    prctl::set_timerslack(1)?;
    Ok(Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?)
}

/// Hears no more of a connection that is about to be closed. To close it does not suffice:
/// a program that another thread is about to start has it open, too, until it begins, and
/// may wait for the very processor on which this thread is told of the connection without end.
fn forget(epoll: &Epoll, stream: &TcpStream) -> io::Result<()> {
    Ok(epoll.delete(stream)?)
}

/// A connection at the sink.
struct Incoming {
    stream: TcpStream,
    head: Vec<u8>,
    number: usize,
    size: u64,
    left: u64,
    /// When it was last written how far it had come.
    noted_us: i64,
}

impl Incoming {
    fn new(stream: TcpStream) -> Incoming {
        let head = Vec::with_capacity(HEAD_BYTES);
        Incoming { stream, head, number: 0, size: 0, left: 0, noted_us: 0 }
    }

    /// How far an endless transfer has come, at most ten times a second. Others are not
    /// worth the lines: when they end says it all.
    fn progress(&mut self) -> Option<Event> {
        if self.size < ENDLESS_BYTES {
            return None;
        }
        let now = now_us();
        (now - self.noted_us >= NOTE_EVERY_US).then(|| {
            self.noted_us = now;
            Event::Read(self.number, now, self.size - self.left)
        })
    }

    /// Reads what is there. The time of the last byte comes out once; `Err` when the
    /// connection is over.
    fn read(&mut self, chunk: &mut [u8]) -> Result<Option<i64>, ()> {
        let mut done = None;
        loop {
            let wanted = HEAD_BYTES - self.head.len();
            let into = if wanted > 0 { &mut chunk[..wanted] } else { &mut *chunk };
            match self.stream.read(into) {
                Ok(0) => return done.map_or(Err(()), |at| Ok(Some(at))),
                Ok(count) if wanted > 0 => {
                    self.head.extend_from_slice(&chunk[..count]);
                    if self.head.len() == HEAD_BYTES {
                        let (number, size) = self.head.split_at(4);
                        let number = number.try_into().expect("four bytes");
                        self.number = u32::from_be_bytes(number) as usize;
                        self.size = u64::from_be_bytes(size.try_into().expect("eight bytes"));
                        self.left = self.size.saturating_sub(HEAD_BYTES as u64);
                    }
                }
                Ok(count) => {
                    self.left = self.left.saturating_sub(count as u64);
                    if self.left == 0 && done.is_none() {
                        done = Some(now_us());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(done),
                Err(_) => return Err(()),
            }
        }
    }
}

/// Reads all that comes to `address`, until the sender's last probe.
///
/// # Errors
/// When the address cannot be listened on, or `out` not be written.
pub fn sink(address: SocketAddrV4, out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let probes = UdpSocket::bind(address)?;
    probes.set_nonblocking(true)?;
    let epoll = epoll()?;
    epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
    epoll.add(&probes, EpollEvent::new(EpollFlags::EPOLLIN, PROBES))?;
    let mut open: BTreeMap<u64, Incoming> = BTreeMap::new();
    let mut accepted = 0;
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut ready = [EpollEvent::empty(); 256];
    loop {
        let count = wait(&epoll, i64::MAX, &mut ready)?;
        for event in &ready[..count] {
            match event.data() {
                LISTENER => {
                    while let Ok((stream, _)) = listener.accept() {
                        stream.set_nonblocking(true)?;
                        epoll.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN, accepted))?;
                        open.insert(accepted, Incoming::new(stream));
                        accepted += 1;
                    }
                }
                PROBES => {
                    let mut probe = [0; PROBE_BYTES];
                    while probes.recv(&mut probe).is_ok_and(|count| count == PROBE_BYTES) {
                        let field = |at| {
                            i64::from_be_bytes(probe[at..at + 8].try_into().expect("eight bytes"))
                        };
                        let (number, sent) = (field(0), field(8));
                        if number == LAST_PROBE {
                            return out.flush();
                        }
                        writeln!(out, "{}", Event::Probe(sent, now_us() - sent))?;
                    }
                }
                key => {
                    let Some(connection) = open.get_mut(&key) else { continue };
                    let came = connection.read(&mut chunk);
                    if let Some(event) = connection.progress() {
                        writeln!(out, "{event}")?;
                    }
                    match came {
                        Ok(Some(at)) => writeln!(out, "{}", Event::Done(connection.number, at))?,
                        Ok(None) => {}
                        Err(()) => {
                            forget(&epoll, &connection.stream)?;
                            open.remove(&key);
                        }
                    }
                }
            }
        }
    }
}

/// What a sender is told.
#[derive(Clone, Debug)]
pub struct Order<'a> {
    /// The file of transfers.
    pub log: &'a Path,
    /// The sink's address.
    pub to: SocketAddrV4,
    /// The sender's own address.
    pub from: Ipv4Addr,
    /// The kernel's name of a congestion controller.
    pub controller: &'a str,
    /// How long it stays after the start of the log.
    pub seconds: f64,
    /// Whether it looks at the state of its connections.
    pub watches: bool,
}

/// A connection at the sender.
struct Outgoing {
    stream: TcpStream,
    head: Vec<u8>,
    left: u64,
}

impl Outgoing {
    fn open(order: &Order, number: usize, size: u64) -> io::Result<Outgoing> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd: OwnedFd = socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
        setsockopt(&fd, sockopt::TcpCongestion, &OsString::from(order.controller))?;
        bind(fd.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(order.from, 0)))?;
        match connect(fd.as_raw_fd(), &SockaddrIn::from(order.to)) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let mut head = (number as u32).to_be_bytes().to_vec();
        head.extend(size.to_be_bytes());
        Ok(Outgoing { stream: TcpStream::from(fd), head, left: size })
    }

    /// Writes what the socket takes; false when nothing is left to write, or to hope.
    /// Header and first bytes leave in one call, so that they share a segment.
    fn write(&mut self, chunk: &mut [u8]) -> bool {
        while self.left > 0 {
            let length = self.left.min(chunk.len() as u64) as usize;
            let headed = self.head.len().min(length);
            chunk[..headed].copy_from_slice(&self.head[..headed]);
            match self.stream.write(&chunk[..length]) {
                Ok(count) => {
                    self.left -= count as u64;
                    self.head.drain(..headed.min(count));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.raw_os_error() == Some(Errno::ENOTCONN as i32) => return true,
                Err(_) => return false,
            }
        }
        false
    }
}

/// Opens the connections of a log at their times, sends and closes them; meanwhile a
/// probe leaves every tenth of a second.
///
/// # Errors
/// When there is no such controller, when a socket or the log fails, or `out` cannot be
/// written.
pub fn send(order: &Order, out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    let transfers: Vec<Transfer> = workload::read(File::open(order.log)?)?;
    let probes = UdpSocket::bind((order.from, 0))?;
    probes.connect(order.to)?;
    let epoll = epoll()?;
    let start = now_us() + LEAD_US;
    let end = start + (order.seconds * 1e6) as i64;
    writeln!(out, "{}", Event::Start(start))?;
    let due = |transfer: &Transfer| start + (transfer.start_s * 1e6).round() as i64;
    let (mut next, mut next_probe, mut next_look) = (0, start, start);
    let mut open: BTreeMap<u64, Outgoing> = BTreeMap::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut ready = [EpollEvent::empty(); 256];
    loop {
        let now = now_us();
        if now >= end {
            break;
        }
        if now >= next_probe {
            let number = (next_probe - start) / PROBE_EVERY_US;
            next_probe += PROBE_EVERY_US;
            // A full socket loses a probe as a full queue does.
            let _ = probes.send(&probe(number));
            continue;
        }
        if order.watches && now >= next_look {
            next_look += PROBE_EVERY_US;
            for state in states(order.to)? {
                writeln!(out, "{}", Event::State(now, state))?;
            }
            continue;
        }
        if let Some(transfer) = transfers.get(next)
            && now >= due(transfer)
        {
            let size = transfer.size_bytes.max(HEAD_BYTES as u64 + 1);
            writeln!(out, "{}", Event::Begun(next, now_us()))?;
            let connection = Outgoing::open(order, next, size)?;
            let event = EpollEvent::new(EpollFlags::EPOLLOUT, next as u64);
            epoll.add(connection.stream.as_fd(), event)?;
            open.insert(next as u64, connection);
            next += 1;
            continue;
        }
        let mut wake = end.min(next_probe);
        if order.watches {
            wake = wake.min(next_look);
        }
        if let Some(transfer) = transfers.get(next) {
            wake = wake.min(due(transfer));
        }
        let count = wait(&epoll, wake - now, &mut ready)?;
        for event in &ready[..count] {
            let key = event.data();
            if let Some(connection) = open.get_mut(&key)
                && !connection.write(&mut chunk)
            {
                forget(&epoll, &connection.stream)?;
                open.remove(&key);
            }
        }
    }
    for _ in 0..LAST_PROBES {
        let _ = probes.send(&probe(LAST_PROBE));
        thread::sleep(LAST_PROBE_GAP);
    }
    out.flush()
}

/// A probe's payload.
fn probe(number: i64) -> [u8; PROBE_BYTES] {
    let mut payload = [0; PROBE_BYTES];
    payload[..8].copy_from_slice(&number.to_be_bytes());
    payload[8..16].copy_from_slice(&now_us().to_be_bytes());
    payload
}

/// What `ss` says of the connections to `address`.
fn states(address: SocketAddrV4) -> io::Result<Vec<State>> {
    let output = Command::new("ss")
        .args(["-tinH", "dst", &address.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(state).collect())
}

/// Reads a line of `ss -tin`: `cubic ... rtt:44.1/3.2 cwnd:20 ... pacing_rate 5254048bps`.
fn state(line: &str) -> Option<State> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let after =
        |prefix: &str| words.iter().find_map(|word| word.strip_prefix(prefix)?.split('/').next());
    let pacing = words.iter().position(|word| *word == "pacing_rate");
    let pacing = pacing.and_then(|at| words.get(at + 1)?.strip_suffix("bps"));
    let resent = words.iter().find_map(|word| word.strip_prefix("retrans:")?.split('/').nth(1));
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok()).unwrap_or(0.0);
    Some(State {
        window: after("cwnd:")?.parse().ok()?,
        round_trip_ms: number(after("rtt:")),
        pacing_bps: number(pacing),
        acked_bytes: number(after("bytes_acked:")),
        resent: number(resent),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_survives_its_line() {
        let state = State {
            window: 20.0,
            round_trip_ms: 44.125,
            pacing_bps: 5_254_048.0,
            acked_bytes: 14_481.0,
            resent: 3.0,
        };
        for event in [
            Event::Start(17),
            Event::Begun(3, 500),
            Event::Done(3, 90_500),
            Event::Read(3, 90_500, 2_000_000_000),
            Event::Probe(-4, 20_031),
            Event::State(100_074, state),
        ] {
            assert_eq!(event.to_string().parse(), Ok(event));
        }
        assert_eq!("[ 1.2] reboot: Power down".parse::<Event>(), Err(()));
    }

    #[test]
    fn the_state_of_a_connection_is_read_from_ss() {
        let line = "\t cubic wscale:7,7 rto:244 rtt:44.1/3.25 mss:1448 cwnd:20 ssthresh:17 \
                    bytes_sent:43440 bytes_retrans:1448 bytes_acked:14481 segs_out:32 \
                    send 5253515bps lastsnd:4 pacing_rate 6304216bps delivery_rate 2626752bps \
                    retrans:0/3 minrtt:40";
        let expected = State {
            window: 20.0,
            round_trip_ms: 44.1,
            pacing_bps: 6_304_216.0,
            acked_bytes: 14_481.0,
            resent: 3.0,
        };
        assert_eq!(state(line), Some(expected));
        assert_eq!(state("ESTAB 0 0 198.18.0.1:10000 192.0.2.2:9000"), None);
    }

    #[test]
    fn what_is_sent_on_this_machine_arrives() {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let address =
            SocketAddrV4::new(Ipv4Addr::LOCALHOST, port.expect("the machine has itself").port());
        let folder = std::env::temp_dir().join(format!("tidegate-judge-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("there is room");
        let log = folder.join("log.csv");
        let transfers = [(0.0, 100), (0.05, 5_000), (0.1, 1_000_000)]
            .map(|(start_s, size_bytes)| Transfer { start_s, size_bytes });
        workload::write(&transfers, File::create(&log).expect("there is room")).expect("it fits");
        let reader = thread::spawn(move || {
            let mut lines = Vec::new();
            sink(address, &mut lines).map(|()| lines)
        });
        // The sink listens before the first connection: the log begins half a second on.
        let order = Order {
            log: &log,
            to: address,
            from: Ipv4Addr::LOCALHOST,
            controller: "cubic",
            seconds: 0.6,
            watches: false,
        };
        let mut sent = Vec::new();
        send(&order, &mut sent).expect("nothing is in the way");
        let read = reader.join().expect("no panic").expect("nothing is in the way");
        std::fs::remove_dir_all(&folder).expect("it is ours");
        let events = |bytes: Vec<u8>| -> Vec<Event> {
            let text = String::from_utf8(bytes).expect("lines are text");
            text.lines().map(|line| line.parse().expect("an event")).collect()
        };
        let begun: Vec<usize> = events(sent)
            .into_iter()
            .filter_map(
                |event| if let Event::Begun(number, _) = event { Some(number) } else { None },
            )
            .collect();
        let mut done: Vec<usize> = events(read)
            .into_iter()
            .filter_map(
                |event| if let Event::Done(number, _) = event { Some(number) } else { None },
            )
            .collect();
        done.sort_unstable();
        assert_eq!((begun, done), (vec![0, 1, 2], vec![0, 1, 2]));
    }
}
