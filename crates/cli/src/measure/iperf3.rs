//! One run against a server of iperf3, whose client loads the link.
//!
//! `iperf3` runs both ways at once (`--bidir`, version 3.7 and later) and tells what came in
//! each interval (`--json`). Round trips are those of ICMP, by a socket of the kernel that takes
//! no rights where `net.ipv4.ping_group_range` permits it, or else those of root.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use serde_json::Value;
use socket2::{Domain, Protocol, Socket, Type};

use super::client::{Clock, PROBE_EVERY, Plan};
use super::record::{Answer, Flow, Probes, Record, Way, moment};
use crate::failure::Failure;

/// The interval of iperf3's report: the shortest that it permits.
const INTERVAL_S: f64 = 0.1;
/// How long the last answers may take, and iperf3 to end after its time.
const GRACE: Duration = Duration::from_secs(2);
const END: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(100);
/// As `ping` sends it.
const PAYLOAD: usize = 56;
const HEADER: usize = 8;
/// The most bytes of a report.
const MOST_REPORT: u64 = 64 << 20;

/// A program that does not outlive whoever waits for it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a plan against a server.
pub(super) fn run(
    server: SocketAddr,
    plan: &Plan,
    stop: &'static AtomicBool,
) -> Result<Record, Failure> {
    let socket = echo_socket(server).map_err(|reason| {
        let help = "round trips take ICMP: run it as root, or have net.ipv4.ping_group_range \
                    include this user's group";
        Failure::Other(format!("{server}: {reason}; {help}"))
    })?;
    let clock = Clock { begun: Instant::now(), stop };
    let begun = moment();
    let times = plan.times;
    let (ping, flows) = thread::scope(|scope| {
        let ping = scope.spawn(|| echo(&socket, server, clock, times.end_s()));
        let flows =
            if clock.wait(times.idle_s) { load(server, plan, clock) } else { Ok(Vec::new()) };
        (ping.join().expect("the ping does not panic"), flows)
    });
    if clock.stopped() {
        return Err(Failure::Interrupted("interrupted".into()));
    }
    let flows = flows?;
    if ping.answers.is_empty() {
        return Err(Failure::Other(format!("{}: no ping was answered", server.ip())));
    }
    Ok(Record {
        begun,
        times,
        ping,
        calls: Vec::new(),
        flows,
        short: Vec::new(),
        notes: Vec::new(),
    })
}

/// Has iperf3 load the link, and returns what it tells.
fn load(server: SocketAddr, plan: &Plan, clock: Clock<'_>) -> Result<Vec<Flow>, Failure> {
    let failed = |reason: &dyn std::fmt::Display| Failure::Other(format!("iperf3: {reason}"));
    let begin_s = clock.now_s();
    let mut command = Command::new("iperf3");
    command.args(["--client", &server.ip().to_string(), "--port", &server.port().to_string()]);
    command.args(["--json", "--bidir", "--interval", &INTERVAL_S.to_string()]);
    command.args(["--time", &plan.times.load_s.ceil().to_string()]);
    command.args(["--parallel", &plan.flows.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = command.spawn().map_err(|reason| match reason.kind() {
        io::ErrorKind::NotFound => {
            failed(&"it is not installed; Debian has it in the package iperf3")
        }
        _ => failed(&reason),
    })?;
    let mut running = Running(child);
    let stdout = running.0.stdout.take().expect("it is a pipe");
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        stdout.take(MOST_REPORT).read_to_end(&mut text).map(|_| text)
    });
    let latest_s = plan.times.end_s() + END.as_secs_f64();
    while running.0.try_wait().map_err(|it| failed(&it))?.is_none() {
        if clock.stopped() {
            return Ok(Vec::new());
        }
        if clock.now_s() > latest_s {
            return Err(failed(&"it does not end"));
        }
        sleep(LOOK);
    }
    let text = reader.join().expect("the reader does not panic").map_err(|it| failed(&it))?;
    let report: Value = serde_json::from_slice(&text).map_err(|reason| failed(&reason))?;
    if let Some(error) = report["error"].as_str() {
        return Err(failed(&error.escape_debug()));
    }
    flows(&report, begin_s).ok_or_else(|| failed(&"found a report without flows both ways"))
}

/// The flows of a report that began at `begin_s`.
fn flows(report: &Value, begin_s: f64) -> Option<Vec<Flow>> {
    let connected = report["start"]["connected"].as_array()?;
    let flows = connected.iter().filter_map(|it| it["socket"].as_i64()).map(|socket| {
        let mut way = Way::Up;
        let mut points = vec![(begin_s, 0)];
        for interval in report["intervals"].as_array().into_iter().flatten() {
            let streams = interval["streams"].as_array().into_iter().flatten();
            for stream in streams.filter(|it| it["socket"].as_i64() == Some(socket)) {
                // Of what it sends, the report is of what its socket took.
                way = if stream["sender"] == false { Way::Down } else { Way::Up };
                let (end, bytes) = (stream["end"].as_f64(), stream["bytes"].as_u64());
                if let (Some(end), Some(bytes)) = (end, bytes) {
                    let before = points.last().map_or(0, |it: &(f64, u64)| it.1);
                    points.push((begin_s + end, before.saturating_add(bytes)));
                }
            }
        }
        Flow { way, points }
    });
    let flows: Vec<Flow> = flows.filter(|it| it.points.len() > 1).collect();
    let has = |way| flows.iter().any(|it| it.way == way);
    (has(Way::Up) && has(Way::Down)).then_some(flows)
}

/// A socket for ICMP's echo: that of the kernel's own, or a raw one.
fn echo_socket(server: SocketAddr) -> io::Result<Socket> {
    let (domain, protocol) = if server.is_ipv4() {
        (Domain::IPV4, Protocol::ICMPV4)
    } else {
        (Domain::IPV6, Protocol::ICMPV6)
    };
    let socket = Socket::new(domain, Type::DGRAM, Some(protocol))
        .or_else(|_| Socket::new(domain, Type::RAW, Some(protocol)))?;
    socket.connect(&SocketAddr::new(server.ip(), 0).into())?;
    socket.set_read_timeout(Some(LOOK))?;
    Ok(socket)
}

/// Asks for echoes at regular times until the end.
fn echo(socket: &Socket, server: SocketAddr, clock: Clock<'_>, end_s: f64) -> Probes {
    let (ask, answered): (u8, u8) = if server.is_ipv4() { (8, 0) } else { (128, 129) };
    let identity = (std::process::id() as u16).to_be_bytes();
    let every_s = PROBE_EVERY.as_secs_f64();
    let mut probes = Probes { kind: "ICMP", payload: PAYLOAD, ..Probes::default() };
    let mut answers: Vec<Answer> = Vec::new();
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut sent_s = Vec::new();
            for number in 0_u16..u16::MAX {
                let due_s = f64::from(number) * every_s;
                if due_s >= end_s || !clock.wait(due_s) {
                    break;
                }
                let mut packet = vec![0; HEADER + PAYLOAD];
                packet[0] = ask;
                packet[4..6].copy_from_slice(&identity);
                packet[6..8].copy_from_slice(&number.to_be_bytes());
                let sum = checksum(&packet);
                packet[2..4].copy_from_slice(&sum.to_be_bytes());
                sent_s.push(clock.now_s());
                // What cannot be sent is lost, as on any link.
                let _ = socket.send(&packet);
            }
            sent_s
        });
        let mut buffer = [0; 2_048];
        while !clock.stopped() && clock.now_s() < end_s + GRACE.as_secs_f64() {
            let Ok(size) = (&mut &*socket).read(&mut buffer) else { continue };
            let at_s = clock.now_s();
            if let Some(number) = number(&buffer[..size], answered) {
                answers.push(Answer { number: number.into(), at_s, there_s: 0.0, count: 0 });
            }
        }
        probes.sent_s = sender.join().expect("the sender does not panic");
    });
    answers.sort_by_key(|it| it.number);
    answers.dedup_by_key(|it| it.number);
    probes.answers = answers;
    probes
}

/// The number of an echo's answer; raw sockets of IPv4 have the header of IP in front.
fn number(packet: &[u8], answered: u8) -> Option<u16> {
    let header =
        packet.first().filter(|it| **it >> 4 == 4).map_or(0, |it| usize::from(it & 15) * 4);
    let echo = packet.get(header..)?;
    let is_ours = echo.len() == HEADER + PAYLOAD && echo[0] == answered;
    is_ours.then(|| u16::from_be_bytes([echo[6], echo[7]]))
}

/// The Internet checksum (RFC 1071).
fn checksum(packet: &[u8]) -> u16 {
    let words = packet.chunks(2).map(|it| u32::from(u16::from_be_bytes([it[0], it[1]])));
    let mut sum: u32 = words.sum();
    while sum >> 16 > 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_checksum_makes_the_sum_of_all_words_zero() {
        let mut packet = vec![8, 0, 0, 0, 0x12, 0x34, 0, 7];
        packet.resize(64, 0x5a);
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(checksum(&packet), 0);
        packet[0] = 0;
        assert_eq!(number(&packet, 0), Some(7));
        let mut raw = vec![0x45; 20];
        raw.extend(&packet);
        assert_eq!(number(&raw, 0), Some(7));
        assert_eq!(number(&packet[..10], 0), None);
        assert_eq!(number(&[], 0), None);
    }

    #[test]
    fn flows_are_found_in_a_report_by_their_sockets() {
        let stream = |socket: u32, sender: bool, end: f64, bytes: u32| json!({ "socket": socket, "sender": sender, "end": end, "bytes": bytes });
        let interval = |end: f64| json!({ "streams": [stream(5, true, end, 1_000), stream(6, false, end, 3_000)] });
        let report = json!({
            "start": { "connected": [{ "socket": 5 }, { "socket": 6 }] },
            "intervals": [interval(0.1), interval(0.2)],
        });
        let flows = flows(&report, 2.0).unwrap();
        assert_eq!(
            (flows[0].way, &flows[0].points[..]),
            (Way::Up, &[(2.0, 0), (2.1, 1_000), (2.2, 2_000)][..])
        );
        assert_eq!((flows[1].way, flows[1].points[2].1), (Way::Down, 6_000));
        assert!(super::flows(&json!({ "start": {} }), 0.0).is_none());
    }
}
