//! The parts of a capture that people know by name: applications, calls, hosts.
//!
//! Each direction of a part is a part of its own, since the two pass different queues.
//!
//! **Calls.** A flow of UDP that keeps a steady rate is taken for a call: for
//! [`LEAST_CALL`] in a row each second has [`LEAST_RATE`] packets or more, nine of ten of
//! these seconds have between a third and three times as many as the median one, and they
//! have most of the flow's packets. Games look the same and need the same. Encryption
//! does not hide it. A flow of RTP ([`rtp`](super::rtp)) is a call however its packets are
//! spaced, and says so itself. A direction is a call where its own packets show one.
//!
//! **Applications.** Everything else goes by the name of the server (`example.org` for
//! `www.example.org`), and where that is not seen by the server's port. The
//! [`MOST_PARTS`] largest are told apart, and the rest is together.
//!
//! **Hosts.** The users' addresses, the busiest first.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use tidegate_core::units::NANOS_PER_SECOND;
use tidegate_core::{Bytes, FlowKey, Rate, Span, Time};

use super::{Capture, CapturedPacket, Direction, Hosts, RtpStream};

/// The shortest call that is recognised as one.
pub const LEAST_CALL: Span = Span::seconds(5);
/// The fewest packets of a call in a second. A voice has 50, or 8 where frames travel
/// together.
pub const LEAST_RATE: usize = 5;
/// The most applications or hosts that are told apart.
pub const MOST_PARTS: usize = 8;
/// The most calls that are told apart.
const MOST_CALLS: usize = 8;

/// How a capture is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// By application, calls apart.
    Application,
    /// By the users' addresses.
    Host,
    /// Calls apart, and nothing else.
    Calls,
}

/// A part of a capture, in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name, with the direction: `example.org down`, `call with 192.0.2.1:3478 up`.
    pub name: String,
    /// Its flows.
    pub flows: BTreeSet<FlowKey>,
    /// What it shows of a call, if it is one.
    pub call: Option<RecordedCall>,
}

/// What one direction of a call shows in a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCall {
    /// Its streams of RTP, the largest first; empty of a call that only its steady rate
    /// tells.
    pub rtp: Vec<RtpStream>,
    /// Its packets.
    pub packets: u64,
    /// Mean rate of its IP packets, from the first to the last.
    pub rate: Rate,
}

/// What is gathered under one name.
#[derive(Default)]
struct Gathered {
    is_call: bool,
    sides: [(BTreeSet<FlowKey>, Bytes); 2],
}

impl Capture {
    /// The parts of the packets that cross the link: calls first, then the others, each
    /// with the largest first.
    #[must_use]
    pub fn divided(&self, hosts: &Hosts, division: Division) -> Vec<Part> {
        let calls = match division {
            Division::Application | Division::Calls => self.calls(hosts),
            Division::Host => BTreeMap::new(),
        };
        let mut gathered: BTreeMap<String, Gathered> = BTreeMap::new();
        for (flow, total) in self.flow_totals() {
            let Some(direction) = hosts.direction(flow) else { continue };
            let outward = match direction {
                Direction::Up => flow,
                Direction::Down => flow.reversed(),
            };
            let call = calls.get(&outward);
            let name = match (call, division) {
                (Some(name), _) => name.clone(),
                (None, Division::Calls) => continue,
                (None, Division::Application) => self.application(outward),
                (None, Division::Host) => outward.source().ip().to_string(),
            };
            let part = gathered.entry(name).or_default();
            part.is_call = call.is_some();
            let side = &mut part.sides[usize::from(direction == Direction::Down)];
            side.0.insert(flow);
            side.1 += total.size;
        }
        let mut parts = parts(gathered);
        for part in parts.iter_mut().filter(|_| !calls.is_empty()) {
            part.call = self.recorded_call(part, &calls);
        }
        parts
    }

    /// What `part` shows of a call, if it is a direction of one of `calls`.
    fn recorded_call(
        &self,
        part: &Part,
        calls: &BTreeMap<FlowKey, String>,
    ) -> Option<RecordedCall> {
        let mut flows = part.flows.iter();
        let (Some(flow), None) = (flows.next(), flows.next()) else { return None };
        if !calls.contains_key(flow) && !calls.contains_key(&flow.reversed()) {
            return None;
        }
        let packets = || self.packets.iter().filter(|packet| packet.flow == *flow);
        let times: Vec<Time> = packets().map(|packet| packet.at).collect();
        let rtp = self.rtp.get(flow).cloned().unwrap_or_default();
        if rtp.is_empty() && !is_steady(&times) {
            return None;
        }
        let size: Bytes = packets().map(|packet| packet.size).sum();
        let lasts = times.last()?.since(*times.first()?);
        let rate = super::mean_rate(size, lasts);
        Some(RecordedCall { rtp, packets: times.len() as u64, rate })
    }

    /// The flows that look like calls, from the user outwards, each with the name of its
    /// call; a call has both directions.
    fn calls(&self, hosts: &Hosts) -> BTreeMap<FlowKey, String> {
        let mut times: BTreeMap<FlowKey, Vec<Time>> = BTreeMap::new();
        for packet in self.packets.iter().filter(|packet| may_be_of_call(packet)) {
            times.entry(packet.flow).or_default().push(packet.at);
        }
        let steady = times
            .iter()
            .filter(|(flow, times)| self.rtp.contains_key(flow) || is_steady(times))
            .filter_map(|(flow, times)| {
                let outward = match hosts.direction(*flow)? {
                    Direction::Up => *flow,
                    Direction::Down => flow.reversed(),
                };
                Some((outward, times.len()))
            });
        let mut packets: BTreeMap<FlowKey, usize> = BTreeMap::new();
        steady.for_each(|(flow, count)| *packets.entry(flow).or_default() += count);
        let mut largest: Vec<(FlowKey, usize)> = packets.into_iter().collect();
        largest.sort_by_key(|(flow, count)| (std::cmp::Reverse(*count), *flow));
        largest.truncate(MOST_CALLS);
        let others: Vec<_> = largest.iter().map(|(flow, _)| flow.destination()).collect();
        let named = largest.into_iter().map(|(flow, _)| {
            let (user, other) = (flow.source(), flow.destination());
            let alike = others.iter().filter(|end| **end == other).count();
            let of = if alike > 1 { format!(" of {user}") } else { String::new() };
            (flow, format!("call{of} with {other}"))
        });
        named.collect()
    }

    /// The application of a flow from the user outwards.
    fn application(&self, outward: FlowKey) -> String {
        let server = outward.destination();
        match self.names.of(outward) {
            Some(name) if !is_name_service(outward) => site(name).to_string(),
            _ => service(outward.protocol(), server.port(), outward.source().port()),
        }
    }
}

/// The parts under their names, with what exceeds [`MOST_PARTS`] together.
fn parts(gathered: BTreeMap<String, Gathered>) -> Vec<Part> {
    let size = |part: &Gathered| part.sides[0].1 + part.sides[1].1;
    let mut ordered: Vec<(String, Gathered)> = gathered.into_iter().collect();
    ordered.sort_by_key(|(_, part)| (!part.is_call, std::cmp::Reverse(size(part))));
    let calls = ordered.iter().filter(|(_, part)| part.is_call).count();
    if ordered.len() > calls + MOST_PARTS {
        let rest = ordered.split_off(calls + MOST_PARTS - 1);
        let mut others = Gathered::default();
        let count = rest.len();
        for (_, part) in rest {
            for (all, side) in others.sides.iter_mut().zip(part.sides) {
                all.0.extend(side.0);
                all.1 += side.1;
            }
        }
        ordered.push((format!("{count} others"), others));
    }
    let sides = ordered.into_iter().flat_map(|(name, part)| {
        let [(up, _), (down, _)] = part.sides;
        [("down", down), ("up", up)].map(|(direction, flows)| Part {
            name: format!("{name} {direction}"),
            flows,
            call: None,
        })
    });
    sides.filter(|part| !part.flows.is_empty()).collect()
}

/// UDP, but neither QUIC nor the DNS.
fn may_be_of_call(packet: &CapturedPacket) -> bool {
    const OTHERS: [u16; 4] = [53, 443, 5353, 1900];
    let ports = [packet.flow.source().port(), packet.flow.destination().port()];
    packet.flow.protocol() == FlowKey::UDP && !ports.iter().any(|port| OTHERS.contains(port))
}

/// Whether packets at these times have the rate of a call.
fn is_steady(times: &[Time]) -> bool {
    let Some(first) = times.first() else { return false };
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for at in times {
        *counts.entry(at.since(*first).0 / NANOS_PER_SECOND).or_default() += 1;
    }
    // The longest row of busy seconds.
    let mut longest: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = Vec::new();
    let mut before = None;
    for (second, count) in counts {
        let follows = before.is_some_and(|before| second == before + 1);
        if count < LEAST_RATE || !follows {
            longest = longest_of(longest, std::mem::take(&mut row));
        }
        if count >= LEAST_RATE {
            row.push(count);
        }
        before = Some(second);
    }
    let mut row = longest_of(longest, row);
    if (row.len() as u64) < LEAST_CALL.0 / NANOS_PER_SECOND {
        return false;
    }
    row.sort_unstable();
    let median = row[row.len() / 2];
    let steady = row.iter().filter(|count| **count * 3 >= median && **count <= median * 3).count();
    let packets: usize = row.iter().sum();
    steady * 10 >= row.len() * 9 && packets * 2 > times.len()
}

fn longest_of(one: Vec<usize>, other: Vec<usize>) -> Vec<usize> {
    if other.len() > one.len() { other } else { one }
}

fn is_name_service(outward: FlowKey) -> bool {
    [53, 5353].contains(&outward.destination().port())
}

/// The part of a host's name that its owner has registered: two labels, or three below
/// countries that divide their names (`example.co.uk`). Close enough to tell
/// applications apart.
fn site(name: &str) -> &str {
    let mut dots = name.rmatch_indices('.').map(|(place, _)| place);
    let (Some(last), Some(second)) = (dots.next(), dots.next()) else { return name };
    let (country, below) = (&name[last + 1..], &name[second + 1..last]);
    let start = if country.len() == 2 && below.len() <= 3 { dots.next() } else { Some(second) };
    start.map_or(name, |dot| &name[dot + 1..])
}

/// What a port is for.
fn service(protocol: u8, server: u16, client: u16) -> String {
    /// Services that an access link carries (IANA's register).
    const KNOWN: &[(u16, &str)] = &[
        (22, "SSH"),
        (25, "mail"),
        (53, "DNS"),
        (80, "HTTP"),
        (110, "mail"),
        (123, "NTP"),
        (143, "mail"),
        (443, "HTTPS"),
        (465, "mail"),
        (587, "mail"),
        (853, "DNS"),
        (993, "mail"),
        (995, "mail"),
        (3478, "STUN"),
        (5353, "DNS"),
        (6881, "BitTorrent"),
        (8080, "HTTP"),
    ];
    let known = |port: u16| KNOWN.iter().find(|(known, _)| *known == port);
    match (protocol, known(server).or_else(|| known(client))) {
        (FlowKey::UDP, Some((443, _))) => "QUIC".into(),
        (FlowKey::TCP | FlowKey::UDP, Some((_, name))) => (*name).into(),
        (FlowKey::TCP, None) => "other TCP".into(),
        (FlowKey::UDP, None) => "other UDP".into(),
        _ => "other protocols".into(),
    }
}

/// The user's addresses that take part in a capture, with the IP bytes of each; the
/// busiest first.
#[must_use]
pub fn users(capture: &Capture, hosts: &Hosts) -> Vec<(IpAddr, Bytes)> {
    let mut sizes: BTreeMap<IpAddr, Bytes> = BTreeMap::new();
    for (flow, total) in capture.flow_totals() {
        let user = match hosts.direction(flow) {
            Some(Direction::Up) => flow.source(),
            Some(Direction::Down) => flow.destination(),
            None => continue,
        };
        *sizes.entry(user.ip()).or_default() += total.size;
    }
    let mut users: Vec<_> = sizes.into_iter().collect();
    users.sort_by_key(|(address, size)| (std::cmp::Reverse(*size), *address));
    users
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_what_somebody_registered() {
        for (name, expected) in [
            ("www.example.org", "example.org"),
            ("a.b.example.co.uk", "example.co.uk"),
            ("example.co.uk", "example.co.uk"),
            ("example.org", "example.org"),
            ("localhost", "localhost"),
            ("edge.example.de", "example.de"),
        ] {
            assert_eq!(site(name), expected, "{name}");
        }
    }

    #[test]
    fn steady_flows_are_calls_and_bursts_are_not() {
        let every = |millis: u64, count: u64| -> Vec<Time> {
            (0..count).map(|n| Time(n * millis * 1_000_000)).collect()
        };
        assert!(is_steady(&every(20, 400)));
        assert!(is_steady(&every(120, 100)));
        // Too short, too slow, and a download that comes in bursts.
        assert!(!is_steady(&every(20, 200)));
        assert!(!is_steady(&every(500, 100)));
        let burst = |n: u64| Time((n / 200) * 3_000_000_000 + n % 200 * 1_000_000);
        assert!(!is_steady(&(0..2_000).map(burst).collect::<Vec<_>>()));
        assert!(!is_steady(&[]));
    }
}
