//! Round trips by ICMP, beside a load that a program of others makes: by a socket of the
//! kernel that takes no rights where `net.ipv4.ping_group_range` permits it, or else by one that
//! takes those of root.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use super::client::{Clock, PROBE_EVERY, Plan};
use super::record::{Answer, Flow, Probes, Record, moment};
use crate::failure::Failure;

/// How long the last answers may take.
const GRACE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(100);
/// As `ping` sends it.
const PAYLOAD: usize = 56;
const HEADER: usize = 8;

/// Runs a plan: round trips to `server` all the time, and the `load` after the idle part.
pub(super) fn beside(
    server: SocketAddr,
    plan: &Plan,
    stop: &'static AtomicBool,
    load: impl FnOnce(Clock<'_>) -> Result<Vec<Flow>, Failure>,
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
        let flows = if clock.wait(times.idle_s) { load(clock) } else { Ok(Vec::new()) };
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
}
