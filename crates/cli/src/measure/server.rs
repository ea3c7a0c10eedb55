//! `tidegate measure serve`: the other end of measurements.
//!
//! It needs no rights, keeps nothing, and is open to whoever reaches it; so everything has
//! a bound. A session takes one of a few places, of which an address has at most
//! [`ADDRESS_SESSIONS`], and a part of the threads, each with a small stack. It ends with
//! its connection, and at the latest after the time that the server was started with.
//! Connections that say nothing are closed after some seconds, and datagrams beyond
//! [`MOST_DATAGRAMS`] a second of a session are not answered. What it does not bound is the
//! rate: it is there to fill a link. Whoever minds that has it listen at an address that only
//! clients of theirs reach.
//!
//! A thread serves a connection, since a measurement wants to know when a packet came, and
//! not when a loop got round to it.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::protocol::{
    Datagram, MOST_DATAGRAM, NAME, REPORT_EVERY, Report, Request, STREAMS, Token, granted, is_due,
    is_pause, read_line,
};
use crate::arguments::MeasureServeArguments;
use crate::failure::Failure;
use crate::interrupt::stop_flag;

/// Sessions at the same time.
const MOST_SESSIONS: usize = 32;
/// Of these, sessions of one address: whoever measures has one, and perhaps a last one ends.
const ADDRESS_SESSIONS: usize = 4;
/// Connections at the same time, sessions among them.
const MOST_CONNECTIONS: usize = 512;
/// Connections of a session: 16 flows each way, and short transfers that wait.
const SESSION_CONNECTIONS: usize = 100;
/// Datagrams of a session that are answered in a second: a call and a ping have 100.
const MOST_DATAGRAMS: u32 = 2_000;
/// How long a client may take for its first line.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a thread looks whether it is to end.
const LOOK: Duration = Duration::from_millis(200);
/// Enough for a buffer and some frames, also of a build without optimisation.
const STACK: usize = 256 << 10;
/// What is sent and read at once.
const PIECE: usize = 32 << 10;

/// What a client may do for a while.
#[derive(Debug)]
struct Session {
    address: IpAddr,
    begun: Instant,
    over: AtomicBool,
    connections: AtomicUsize,
    streams: Mutex<Streams>,
}

/// The datagrams of a session.
#[derive(Debug, Default)]
struct Streams {
    counts: [u32; STREAMS],
    second: u64,
    in_second: u32,
}

struct Server {
    begun: Instant,
    most: Duration,
    sessions: Mutex<HashMap<Token, Arc<Session>>>,
    connections: AtomicUsize,
    json: bool,
    stop: &'static AtomicBool,
}

/// A line of the log.
#[derive(Serialize)]
struct Entry<'a> {
    event: &'a str,
    address: IpAddr,
    seconds: f64,
    reason: Option<&'a str>,
}

/// A place that is free again when this is dropped.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    /// One more of at most so many.
    fn of(count: &'a AtomicUsize, most: usize) -> Option<Place<'a>> {
        let one_more = |count: usize| (count < most).then_some(count + 1);
        count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Place(count))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) fn serve(arguments: &MeasureServeArguments) -> Result<(), Failure> {
    let stop = stop_flag()?;
    let failed = |reason: io::Error| match reason.kind() {
        io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable => {
            Failure::Input(format!("--listen {}: {reason}", arguments.listen))
        }
        _ => Failure::Other(format!("--listen {}: {reason}", arguments.listen)),
    };
    let listener = TcpListener::bind(arguments.listen).map_err(failed)?;
    // With port 0, the kernel chooses one for TCP, and UDP takes the same.
    let address = listener.local_addr().map_err(failed)?;
    let datagrams = UdpSocket::bind(address).map_err(failed)?;
    datagrams.set_read_timeout(Some(LOOK)).map_err(failed)?;
    let server = Arc::new(Server {
        begun: Instant::now(),
        most: Duration::from_secs(arguments.most_seconds),
        sessions: Mutex::default(),
        connections: AtomicUsize::new(0),
        json: arguments.json,
        stop,
    });
    eprintln!("tidegate: serves measurements at {address}, TCP and UDP, until Ctrl-C");
    let echo = server.clone();
    thread::spawn(move || echo.echo(&datagrams));
    thread::spawn(move || {
        loop {
            match listener.accept() {
                Ok((stream, from)) => server.clone().take(stream, from),
                // Descriptors may be short for a moment.
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        }
    });
    // Threads end with the process.
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
    }
    Ok(())
}

impl Server {
    fn sessions(&self) -> MutexGuard<'_, HashMap<Token, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a connection in a thread of its own, if there is a place for it.
    fn take(self: Arc<Server>, stream: TcpStream, from: SocketAddr) {
        if self.connections.load(Ordering::Relaxed) >= MOST_CONNECTIONS {
            return;
        }
        let builder = thread::Builder::new().stack_size(STACK);
        // Where there is no thread, the connection is closed, and the client says so.
        let _ = builder.spawn(move || {
            let Some(_place) = Place::of(&self.connections, MOST_CONNECTIONS) else { return };
            // A client that goes away in the middle is an end like any other.
            let _ = self.answer(stream, from.ip().to_canonical());
        });
    }

    fn answer(&self, mut stream: TcpStream, address: IpAddr) -> io::Result<()> {
        stream.set_read_timeout(Some(LOOK))?;
        stream.set_write_timeout(Some(LOOK))?;
        stream.set_nodelay(true)?;
        let line = read_line(&mut stream, Instant::now() + PATIENCE)?;
        let refused = match Request::parse(&line) {
            Err(reason) => reason,
            Ok(Request::Session) => match self.begin(address) {
                Ok((token, session)) => return self.hold(stream, token, &session),
                Err(reason) => reason,
            },
            Ok(request) => match self.find(request, address) {
                None => "no session of this address has this token",
                Some(session) => match Place::of(&session.connections, SESSION_CONNECTIONS) {
                    None => "this session has too many connections",
                    Some(_place) => {
                        stream.write_all(b"ok\n")?;
                        return self.perform(stream, request, &session);
                    }
                },
            },
        };
        writeln!(stream, "no {refused}")
    }

    fn begin(&self, address: IpAddr) -> Result<(Token, Arc<Session>), &'static str> {
        let mut token = Token([0; 16]);
        let filled = rustix::rand::getrandom(&mut token.0, rustix::rand::GetRandomFlags::empty());
        if filled != Ok(token.0.len()) {
            return Err("this machine has no random numbers");
        }
        let mut sessions = self.sessions();
        let of_it = sessions.values().filter(|it| it.address == address).count();
        let refused = if of_it >= ADDRESS_SESSIONS {
            Some("this address has too many sessions")
        } else if sessions.len() >= MOST_SESSIONS {
            Some("the server is busy; try again later")
        } else {
            None
        };
        if let Some(reason) = refused {
            drop(sessions);
            self.log("refused", address, 0.0, Some(reason));
            return Err(reason);
        }
        let session = Arc::new(Session {
            address,
            begun: Instant::now(),
            over: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            streams: Mutex::default(),
        });
        sessions.insert(token, session.clone());
        Ok((token, session))
    }

    fn find(&self, request: Request, address: IpAddr) -> Option<Arc<Session>> {
        let (Request::Down(token) | Request::Up(token) | Request::Get(token, _)) = request else {
            return None;
        };
        self.sessions().get(&token).filter(|it| it.address == address).cloned()
    }

    /// Keeps a session until its connection ends, or its time.
    fn hold(&self, mut stream: TcpStream, token: Token, session: &Session) -> io::Result<()> {
        self.log("begins", session.address, 0.0, None);
        let mut ended = stream.write_all(granted(token, self.most.as_secs()).as_bytes());
        let mut ignored = [0; 64];
        while ended.is_ok() && self.goes_on(session) {
            ended = match stream.read(&mut ignored) {
                Ok(0) => break,
                Ok(_) => Ok(()),
                Err(reason) if is_pause(&reason) => Ok(()),
                Err(reason) => Err(reason),
            };
        }
        session.over.store(true, Ordering::Relaxed);
        self.sessions().remove(&token);
        self.log("ends", session.address, session.begun.elapsed().as_secs_f64(), None);
        ended
    }

    fn goes_on(&self, session: &Session) -> bool {
        !session.over.load(Ordering::Relaxed)
            && session.begun.elapsed() < self.most
            && !self.stop.load(Ordering::Relaxed)
    }

    fn perform(&self, stream: TcpStream, request: Request, session: &Session) -> io::Result<()> {
        match request {
            Request::Session => Ok(()),
            Request::Down(_) => self.send(stream, u64::MAX, session),
            Request::Get(_, size) => self.send(stream, size, session),
            Request::Up(_) => self.receive(stream, session),
        }
    }

    /// Sends so many bytes.
    fn send(&self, mut stream: TcpStream, mut left: u64, session: &Session) -> io::Result<()> {
        let piece = noise();
        while left > 0 && self.goes_on(session) {
            let size = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
            match stream.write(&piece[..size]) {
                Ok(0) => break,
                Ok(sent) => left -= sent as u64,
                Err(reason) if is_pause(&reason) => {}
                Err(reason) => return Err(reason),
            }
        }
        Ok(())
    }

    /// Reads until the client ends it, and reports what came.
    fn receive(&self, mut stream: TcpStream, session: &Session) -> io::Result<()> {
        stream.set_read_timeout(Some(REPORT_EVERY / 2))?;
        let mut piece = vec![0; PIECE];
        let (mut bytes, mut reported) = (0, Instant::now());
        while self.goes_on(session) {
            let came = match stream.read(&mut piece) {
                Ok(0) => break,
                Ok(came) => came,
                Err(reason) if is_pause(&reason) => 0,
                Err(reason) => return Err(reason),
            };
            bytes += came as u64;
            if is_due(reported.elapsed(), came < piece.len()) {
                reported = Instant::now();
                let report = Report { at: self.begun.elapsed(), bytes };
                stream.write_all(&report.written())?;
            }
        }
        Ok(())
    }

    /// Answers datagrams for ever.
    fn echo(&self, socket: &UdpSocket) {
        let mut buffer = [0; MOST_DATAGRAM + 1];
        while !self.stop.load(Ordering::Relaxed) {
            let Ok((size, from)) = socket.recv_from(&mut buffer) else { continue };
            let came = self.begun.elapsed();
            let Some(question) = Datagram::read(&buffer[..size]) else { continue };
            let Some(count) = self.counted(&question, from.ip().to_canonical(), came) else {
                continue;
            };
            Datagram { came, count, ..question }.write(&mut buffer[..size]);
            // Never more bytes than came; what cannot be sent is lost, as on any link.
            let _ = socket.send_to(&buffer[..size], from);
        }
    }

    /// The number of the datagram in its stream, if it is to be answered.
    fn counted(&self, question: &Datagram, address: IpAddr, now: Duration) -> Option<u32> {
        let session = self.sessions().get(&question.token).cloned()?;
        if session.address != address || !self.goes_on(&session) {
            return None;
        }
        let mut streams = session.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if streams.second != now.as_secs() {
            (streams.second, streams.in_second) = (now.as_secs(), 0);
        }
        streams.in_second += 1;
        if streams.in_second > MOST_DATAGRAMS {
            return None;
        }
        let count = &mut streams.counts[usize::from(question.stream)];
        *count = count.wrapping_add(1);
        Some(*count)
    }

    fn log(&self, event: &str, address: IpAddr, seconds: f64, reason: Option<&str>) {
        if self.json {
            let entry = Entry { event, address, seconds, reason };
            let line = serde_json::to_string(&entry).expect("our types are plain JSON");
            // Whoever does not read the log is served all the same.
            let _ = writeln!(io::stdout(), "{line}");
        }
    }
}

/// Bytes that no modem or tunnel compresses. They need not be unforeseeable.
pub(super) fn noise() -> Vec<u8> {
    let mut stream = tidegate_core::random::Stream::new(1, NAME);
    let words = (0..PIECE / 8).map(|_| stream.bits().to_ne_bytes());
    words.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    static NEVER: AtomicBool = AtomicBool::new(false);
    const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const AWAY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    fn server() -> Server {
        Server {
            begun: Instant::now(),
            most: Duration::from_secs(60),
            sessions: Mutex::default(),
            connections: AtomicUsize::new(0),
            json: false,
            stop: &NEVER,
        }
    }

    #[test]
    fn an_address_has_few_sessions_and_all_together_too() {
        let server = server();
        for _ in 0..ADDRESS_SESSIONS {
            assert!(server.begin(HOME).is_ok());
        }
        assert!(server.begin(HOME).is_err_and(|it| it.contains("this address")));
        let others = (0..).map(|it| IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + it)));
        let granted = others.take(200).filter(|it| server.begin(*it).is_ok()).count();
        assert_eq!(granted, MOST_SESSIONS - ADDRESS_SESSIONS);
    }

    #[test]
    fn a_token_is_of_use_only_to_the_address_that_got_it() {
        let server = server();
        let (token, session) = server.begin(HOME).unwrap();
        assert!(server.find(Request::Down(token), HOME).is_some());
        assert!(server.find(Request::Down(token), AWAY).is_none());
        let question = Datagram { token, stream: 0, number: 1, came: Duration::ZERO, count: 0 };
        let now = Duration::from_secs(1);
        assert_eq!(server.counted(&question, HOME, now), Some(1));
        assert_eq!(server.counted(&question, AWAY, now), None);
        let other = Datagram { token: Token([0; 16]), ..question };
        assert_eq!(server.counted(&other, HOME, now), None);
        session.over.store(true, Ordering::Relaxed);
        assert_eq!(server.counted(&question, HOME, now), None);
    }

    #[test]
    fn a_flood_of_datagrams_is_answered_up_to_a_rate() {
        let server = server();
        let (token, _session) = server.begin(HOME).unwrap();
        let question = Datagram { token, stream: 3, number: 1, came: Duration::ZERO, count: 0 };
        let answered = |second| {
            let now = Duration::from_secs(second);
            let asked = (0..3 * MOST_DATAGRAMS).map(|_| server.counted(&question, HOME, now));
            asked.flatten().count()
        };
        assert_eq!(answered(1), MOST_DATAGRAMS as usize);
        assert_eq!(answered(2), MOST_DATAGRAMS as usize);
    }

    #[test]
    fn places_are_free_again_when_they_are_left() {
        let count = AtomicUsize::new(0);
        let first = Place::of(&count, 1);
        assert!(first.is_some() && Place::of(&count, 1).is_none());
        drop(first);
        assert!(Place::of(&count, 1).is_some());
    }
}
