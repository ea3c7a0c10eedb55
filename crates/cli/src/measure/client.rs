//! One run against our own server: load in both directions, and what it does to others.
//!
//! Each flow, and each side of the probes, has a thread: a packet's time is that at which its
//! thread wakes. Short transfers begin at times that were drawn before, whatever became of
//! those before them, and every queue of a round has the same times; what is slow is not
//! asked less often.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, Scope, sleep};
use std::time::{Duration, Instant};

use socket2::SockRef;
use tidegate_core::random::Stream as Random;
use tidegate_study::rounds::Transfer;

use super::protocol::{
    Datagram, Report, Request, Token, is_due, is_pause, parse_granted, read_line,
};
use super::record::{Answer, Flow, Probes, Record, Short, Times, Way, moment};
use super::server::noise;
use crate::failure::Failure;

/// A call has a packet every 20 ms, and so has the ping: 50 samples a second tell a
/// percentile of 99 within two seconds.
pub(super) const PROBE_EVERY: Duration = Duration::from_millis(20);
/// 160 bytes of voice behind 12 of RTP: G.711, which the rating assumes.
const CALL_PAYLOAD: usize = 172;
/// As an ICMP echo of usual size.
const PING_PAYLOAD: usize = 56;
/// How long the last packets of a run may take.
const GRACE: Duration = Duration::from_secs(2);
/// How long a short transfer may take beyond the end of the load.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a thread looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// The sizes of short transfers, in turn: three that a window or two carry, and one that
/// grows its window while it runs.
const SIZES: [u64; 4] = [10_000, 10_000, 10_000, 100_000];
/// The mean time between short transfers: together 130 kB/s, which leaves most of a slow link
/// to the long ones.
const SHORT_EVERY_S: f64 = 0.25;
/// Transfers that wait at the same time; more say nothing more of a queue that stands still.
const MOST_SHORT: usize = 40;
/// The largest short transfer.
pub(super) const SHORT_BYTES: u64 = 100_000;

/// What a run is to do.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) times: Times,
    /// Long transfers each way.
    pub(super) flows: u64,
    /// Calls at the same time.
    pub(super) calls: u8,
    /// When short transfers begin, in seconds from the start, with their sizes.
    pub(super) short: Vec<(f64, u64)>,
}

impl Plan {
    /// The plan of every run of a round.
    pub(super) fn of(times: Times, flows: u64, calls: u8, seed: u64, round: u64) -> Plan {
        let mut random = Random::new(seed, &format!("short transfers {round}"));
        let (mut at_s, end_s) = (times.idle_s, times.end_s());
        let mut short = Vec::new();
        for size in SIZES.into_iter().cycle() {
            // Half to one and a half of the mean: no beat with anything regular.
            at_s += SHORT_EVERY_S * (0.5 + random.uniform());
            // What begins with the end of the load would be measured without it.
            if at_s > end_s - SHORT_EVERY_S {
                break;
            }
            short.push((at_s, size));
        }
        Plan { times, flows, calls, short }
    }
}

/// The clock of a run, and whether it is to end early.
#[derive(Clone, Copy)]
pub(super) struct Clock<'a> {
    pub(super) begun: Instant,
    pub(super) stop: &'a AtomicBool,
}

impl Clock<'_> {
    pub(super) fn now_s(self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    pub(super) fn stopped(self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits until a time, or for the stop; says whether the time has come.
    pub(super) fn wait(self, until_s: f64) -> bool {
        while !self.stopped() {
            let left = until_s - self.now_s();
            if left <= 0.0 {
                return true;
            }
            sleep(Duration::from_secs_f64(left).min(LOOK));
        }
        false
    }
}

/// A session with the server, which ends when this is dropped.
struct Session {
    server: SocketAddr,
    token: Token,
    _held: TcpStream,
}

/// How long the other end may take to answer at all.
const ANSWER: Duration = Duration::from_secs(10);

impl Session {
    fn begin(server: SocketAddr, seconds: f64) -> Result<Session, Failure> {
        let failed = |reason: io::Error| {
            let help = "is 'tidegate measure serve' running there?";
            Failure::Other(format!("{server}: {reason}; {help}"))
        };
        let (stream, line) = asked(server, Request::Session, ANSWER).map_err(failed)?;
        let Some((token, most)) = parse_granted(&line) else {
            let found = format!("{server}: found the answer '{}'", line.escape_debug());
            return Err(Failure::Other(format!("{found}, expected a session")));
        };
        if (most as f64) < seconds {
            let help = "start it with a larger --most-seconds, or measure with fewer --seconds";
            let found = format!("{server}: the server gives {most} s, expected {seconds:.0} s");
            return Err(Failure::Other(format!("{found}; {help}")));
        }
        Ok(Session { server, token, _held: stream })
    }

    /// A connection that the server has said `ok` to.
    fn open(&self, request: fn(Token) -> Request) -> io::Result<TcpStream> {
        let (stream, line) = asked(self.server, request(self.token), ANSWER)?;
        if line == "ok" { Ok(stream) } else { Err(refusal(&line)) }
    }
}

fn refusal(line: &str) -> io::Error {
    io::Error::other(format!("refused: {}", line.trim_start_matches("no ").escape_debug()))
}

/// A connection with the first line that it got for this request.
fn asked(
    server: SocketAddr,
    request: Request,
    patience: Duration,
) -> io::Result<(TcpStream, String)> {
    let deadline = Instant::now() + patience;
    let mut stream = TcpStream::connect_timeout(&server, patience)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOOK))?;
    stream.write_all(request.to_string().as_bytes())?;
    let line = read_line(&mut stream, deadline)?;
    Ok((stream, line))
}

/// Runs a plan against a server of ours.
pub(super) fn run(server: SocketAddr, plan: &Plan, stop: &AtomicBool) -> Result<Record, Failure> {
    let Times { idle_s, .. } = plan.times;
    let end_s = plan.times.end_s();
    let session = Session::begin(server, end_s + (GRACE + PATIENCE).as_secs_f64())?;
    let clock = Clock { begun: Instant::now(), stop };
    let begun = moment();
    let probes =
        |stream, payload, offset_s| probe(&session, clock, stream, payload, offset_s, end_s);
    let probes = &probes;
    let (ping, calls, flows, short) = thread::scope(|scope| {
        // Evenly spread, so that one burst does not meet all of them.
        let gap_s = PROBE_EVERY.as_secs_f64() / f64::from(plan.calls + 1);
        let ping = scope.spawn(move || probes(0, PING_PAYLOAD, 0.0));
        let call = |it| scope.spawn(move || probes(it, CALL_PAYLOAD, f64::from(it) * gap_s));
        let calls: Vec<_> = (1..=plan.calls).map(call).collect();
        let flows =
            if clock.wait(idle_s) { load(scope, &session, clock, plan) } else { Vec::new() };
        let short = short(scope, &session, clock, plan);
        let joined = flows.into_iter().map(|it| it.join().expect("a flow does not panic"));
        let flows: io::Result<Vec<_>> = joined.collect();
        let of =
            |it: thread::ScopedJoinHandle<'_, io::Result<Probes>>| it.join().expect("no panic");
        let calls: io::Result<Vec<_>> = calls.into_iter().map(of).collect();
        (of(ping), calls, flows, short.iter().collect::<Vec<_>>())
    });
    if clock.stopped() {
        return Err(Failure::Interrupted("interrupted".into()));
    }
    let failed =
        |what: &str, reason: io::Error| Failure::Other(format!("{server}: {what}: {reason}"));
    let ping = ping.map_err(|reason| failed("the ping", reason))?;
    let mut calls = calls.map_err(|reason| failed("a call", reason))?;
    let mut flows = flows.map_err(|reason| failed("a long transfer", reason))?;
    if ping.answers.is_empty() {
        let help = "does a firewall let UDP pass to the same port?";
        return Err(Failure::Other(format!("{server}: no datagram was answered; {help}")));
    }
    // All streams measure the same two clocks, and the smaller packets do it better.
    let ahead_s = ping.ahead(idle_s).ok_or_else(|| {
        let text = "no datagram was answered while the link was idle, so the delays of one way \
                    are not known";
        Failure::Other(format!("{server}: {text}"))
    })?;
    calls.iter_mut().for_each(|it| it.ahead_s = Some(ahead_s));
    for flow in flows.iter_mut().filter(|it| it.way == Way::Up) {
        flow.points.iter_mut().for_each(|point| point.0 -= ahead_s);
    }
    let mut short = short;
    short.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
    Ok(Record { begun, times: plan.times, ping, calls, flows, short, notes: Vec::new() })
}

/// Sends datagrams until the end, and collects the answers.
fn probe(
    session: &Session,
    clock: Clock<'_>,
    stream: u8,
    payload: usize,
    offset_s: f64,
    end_s: f64,
) -> io::Result<Probes> {
    let any = if session.server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any)?;
    socket.connect(session.server)?;
    socket.set_read_timeout(Some(LOOK))?;
    let every_s = PROBE_EVERY.as_secs_f64();
    let (sent_s, mut answers) = thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut bytes = vec![0; payload];
            let mut sent_s = Vec::new();
            for number in 0_u32.. {
                let due_s = offset_s + f64::from(number) * every_s;
                if due_s >= end_s || !clock.wait(due_s) {
                    break;
                }
                let token = session.token;
                let zero = Duration::ZERO;
                Datagram { token, stream, number, came: zero, count: 0 }.write(&mut bytes);
                sent_s.push(clock.now_s());
                // What cannot be sent is lost, as on any link.
                let _ = socket.send(&bytes);
            }
            sent_s
        });
        let mut answers: Vec<Answer> = Vec::new();
        let mut buffer = [0; 2_048];
        while !clock.stopped() && clock.now_s() < end_s + GRACE.as_secs_f64() {
            let Ok(size) = socket.recv(&mut buffer) else {
                continue;
            };
            let at_s = clock.now_s();
            let Some(answer) = Datagram::read(&buffer[..size]) else { continue };
            if answer.token == session.token && answer.stream == stream {
                answers.push(Answer {
                    number: answer.number as usize,
                    at_s,
                    there_s: answer.came.as_secs_f64(),
                    count: answer.count,
                });
            }
            let last = f64::from(answer.number + 1) * every_s + offset_s >= end_s;
            if last {
                break;
            }
        }
        (sender.join().expect("the sender does not panic"), answers)
    });
    answers.sort_by_key(|it| it.number);
    answers.dedup_by_key(|it| it.number);
    Ok(Probes { kind: "UDP", payload, sent_s, answers, ahead_s: None })
}

type FlowThread<'scope> = thread::ScopedJoinHandle<'scope, io::Result<Flow>>;

/// Starts the long transfers.
fn load<'scope>(
    scope: &'scope Scope<'scope, '_>,
    session: &'scope Session,
    clock: Clock<'scope>,
    plan: &Plan,
) -> Vec<FlowThread<'scope>> {
    let end_s = plan.times.end_s();
    let mut flows = Vec::new();
    for _ in 0..plan.flows {
        flows.push(scope.spawn(move || download(session.open(Request::Down)?, clock, end_s)));
        flows.push(scope.spawn(move || upload(session, clock, end_s)));
    }
    flows
}

/// Reads until the end.
pub(super) fn download(mut stream: impl Read, clock: Clock<'_>, end_s: f64) -> io::Result<Flow> {
    let mut piece = vec![0; 64 << 10];
    let begun_s = clock.now_s();
    let (mut bytes, mut noted_s, mut points) = (0, begun_s, vec![(begun_s, 0)]);
    while !clock.stopped() {
        let came = match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(came) => came,
            Err(reason) if is_pause(&reason) => 0,
            Err(reason) => return Err(reason),
        };
        bytes += came as u64;
        let now_s = clock.now_s();
        if is_due(Duration::from_secs_f64(now_s - noted_s), came < piece.len()) {
            points.push((now_s, bytes));
            noted_s = now_s;
        }
        if now_s >= end_s {
            break;
        }
    }
    Ok(Flow { way: Way::Down, points })
}

/// Writes until the end, and collects what the server reports of it, by its clock.
fn upload(session: &Session, clock: Clock<'_>, end_s: f64) -> io::Result<Flow> {
    let mut stream = session.open(Request::Up)?;
    stream.set_write_timeout(Some(LOOK))?;
    let mut reports = stream.try_clone()?;
    let (told, points) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut report = [0; Report::BYTES];
        let mut filled = 0;
        loop {
            match reports.read(&mut report[filled..]) {
                Ok(0) => break,
                Ok(came) => filled += came,
                Err(reason) if is_pause(&reason) => {}
                Err(_) => break,
            }
            if filled == Report::BYTES {
                filled = 0;
                let Report { at, bytes } = Report::read(&report);
                // Whoever no longer listens does not want to know.
                let _ = told.send((at.as_secs_f64(), bytes));
            }
        }
    });
    let piece = noise();
    while !clock.stopped() && clock.now_s() < end_s {
        match stream.write(&piece) {
            Ok(0) => break,
            Ok(_) => {}
            Err(reason) if is_pause(&reason) => {}
            Err(reason) => return Err(reason),
        }
    }
    // What is still to be sent would load the link of the next run.
    SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
    let _ = stream.shutdown(Shutdown::Both);
    drop(stream);
    reader.join().expect("the reader does not panic");
    let mut points: Vec<_> = points.iter().collect();
    points.dedup_by_key(|it| it.0);
    Ok(Flow { way: Way::Up, points })
}

/// Starts each short transfer at its time, in a thread of its own; returns where they come
/// out, which ends when all have.
fn short<'scope>(
    scope: &'scope Scope<'scope, '_>,
    session: &'scope Session,
    clock: Clock<'scope>,
    plan: &Plan,
) -> mpsc::Receiver<Short> {
    let fetch = |bytes: u64, deadline: Instant| get(session, bytes, deadline);
    begin_short(scope, clock, plan, fetch)
}

/// The same, for any way to fetch so many bytes; `fetch` says whether all came by then.
pub(super) fn begin_short<'scope>(
    scope: &'scope Scope<'scope, '_>,
    clock: Clock<'scope>,
    plan: &Plan,
    fetch: impl Fn(u64, Instant) -> bool + Copy + Send + 'scope,
) -> mpsc::Receiver<Short> {
    let (done, all) = mpsc::channel();
    let last_s = plan.times.end_s() + PATIENCE.as_secs_f64();
    let deadline = clock.begun + Duration::from_secs_f64(last_s);
    let mut under_way: Vec<thread::ScopedJoinHandle<'_, ()>> = Vec::new();
    for (due_s, bytes) in &plan.short {
        if !clock.wait(*due_s) {
            break;
        }
        under_way.retain(|it| !it.is_finished());
        if under_way.len() >= MOST_SHORT {
            continue;
        }
        let (done, bytes) = (done.clone(), *bytes);
        under_way.push(scope.spawn(move || {
            let at_s = clock.now_s();
            let complete = fetch(bytes, deadline);
            // One that was refused or broken off is as bad as one that never ends.
            let until_s = if complete { clock.now_s() } else { clock.now_s().max(last_s) };
            let transfer = Transfer { bytes, response_s: until_s - at_s, complete };
            // The receiver waits for all.
            let _ = done.send(Short { at_s, transfer });
        }));
    }
    all
}

/// Fetches so many bytes over a connection of its own; whether all came by then. What the
/// server refuses or the network breaks off has not come.
fn get(session: &Session, bytes: u64, deadline: Instant) -> bool {
    let left = || deadline.saturating_duration_since(Instant::now());
    let request = Request::Get(session.token, bytes);
    let patience = left().max(Duration::from_millis(1));
    let Ok((mut stream, line)) = asked(session.server, request, patience) else { return false };
    let mut piece = vec![0; 32 << 10];
    let mut came = 0;
    while line == "ok" && came < bytes && !left().is_zero() {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(size) => came += size as u64,
            Err(reason) if is_pause(&reason) => {}
            Err(_) => break,
        }
    }
    came == bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times { idle_s: 1.0, load_s: 12.0 };

    #[test]
    fn every_queue_of_a_round_has_the_same_short_transfers_and_rounds_differ() {
        let plan = |seed, round| Plan::of(TIMES, 4, 1, seed, round).short;
        assert_eq!(plan(1, 1), plan(1, 1));
        assert!(plan(1, 1) != plan(1, 2) && plan(1, 1) != plan(2, 1));
        let times: Vec<f64> = plan(1, 1).iter().map(|it| it.0).collect();
        assert!((35..60).contains(&times.len()), "{}", times.len());
        assert!(times.iter().all(|it| (1.0..12.8).contains(it)));
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= SHORT_EVERY_S / 2.0));
    }

    /// A connection whose kernel received while its reader did not run.
    struct Paused(usize);

    impl Read for Paused {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            match self.0 {
                1 => sleep(Duration::from_millis(150)),
                2..=9 => {}
                10 => return Ok(1_000),
                _ => return Ok(0),
            }
            Ok(to.len())
        }
    }

    #[test]
    fn what_came_in_a_pause_is_noted_at_once() {
        let stop = AtomicBool::new(false);
        let clock = Clock { begun: Instant::now(), stop: &stop };
        let flow = download(Paused(0), clock, 1e6).unwrap();
        let bytes: Vec<u64> = flow.points.iter().map(|it| it.1).collect();
        assert_eq!(bytes, [0, 9 * (64 << 10) + 1_000]);
    }

    #[test]
    fn a_stop_ends_a_wait() {
        let stop = AtomicBool::new(true);
        let clock = Clock { begun: Instant::now(), stop: &stop };
        assert!(!clock.wait(1e6));
    }
}
