//! What a recording says was transferred: downloads and uploads, with their times.
//!
//! A simulated transfer has one direction, and a recorded connection has two. It becomes
//! one transfer, in the direction that carried more; what it carried in the other (the
//! request of a download, say) is left out, and the bytes are counted.
//!
//! - Logs of a Web server or proxy, page loads and flow logs hold downloads.
//! - Logs of connections state both directions.
//! - Captures hold both too, by the sides of [`Hosts`]. Their transfers are the
//!   connections of TCP, and of QUIC (UDP port 443); other packets are left out and
//!   counted. What is sent twice counts once: TCP's sequence numbers tell.

use std::collections::BTreeMap;

use tidegate_core::{Bytes, FlowKey, Time};

use super::{
    Capture, CapturedPacket, ConnectionLog, Direction, FlowLog, Hosts, HttpLog, LoggedConnection,
    LoggedFlow, PageLoads, Recording,
};

/// The transfers of a recording. The first of them all is at zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    /// Towards the user, earliest first.
    pub down: Vec<LoggedFlow>,
    /// From the user, earliest first.
    pub up: Vec<LoggedFlow>,
    /// What connections carried in the direction in which they carried less.
    pub other_way: Bytes,
    /// Records that became no transfer: without a size, without a byte, or packets that
    /// are neither TCP nor QUIC or do not cross the link.
    pub left_out: u64,
    /// When the first of them began in the recording.
    pub first: Time,
}

impl Transfers {
    /// Those of any recording but a capture; of that, with the hosts that it suggests
    /// itself.
    #[must_use]
    pub fn of(recording: Recording) -> Transfers {
        match recording {
            Recording::Capture(capture) => {
                let hosts = capture.local_hosts();
                Transfers::of_capture(&capture, &hosts)
            }
            Recording::PageLoads(loads) => Transfers::of_page_loads(&loads),
            Recording::HttpLog(log) => Transfers::of_http_log(&log),
            Recording::FlowLog(log) => Transfers::of_flow_log(log),
            Recording::ConnectionLog(log) => Transfers::of_connections(log),
        }
    }

    /// Those of a capture, whose users have the addresses of `hosts`.
    #[must_use]
    pub fn of_capture(capture: &Capture, hosts: &Hosts) -> Transfers {
        let mut left_out = 0;
        let mut places: BTreeMap<FlowKey, usize> = BTreeMap::new();
        let mut carried: Vec<Carried> = Vec::new();
        for packet in &capture.packets {
            let Some(direction) = hosts.direction(packet.flow).filter(|_| is_transfer(packet))
            else {
                left_out += 1;
                continue;
            };
            let outward = match direction {
                Direction::Up => packet.flow,
                Direction::Down => packet.flow.reversed(),
            };
            let place = *places.entry(outward).or_insert_with(|| {
                carried.push(Carried::new(packet.at));
                carried.len() - 1
            });
            match direction {
                Direction::Up => carried[place].up.add(packet),
                Direction::Down => carried[place].down.add(packet),
            }
        }
        let connections = carried.iter().map(|it| LoggedConnection {
            start: it.start,
            up: it.up.total(),
            down: it.down.total(),
        });
        Transfers::of_each(connections, left_out)
    }

    fn of_connections(log: ConnectionLog) -> Transfers {
        Transfers::of_each(log.connections.into_iter(), log.without_size)
    }

    fn of_page_loads(loads: &PageLoads) -> Transfers {
        let flows = loads.pages.iter().flat_map(|page| {
            let start = page.start.since(Time::ZERO);
            let of_page = page.requests.iter();
            of_page.map(move |request| LoggedFlow { start: request.at + start, size: request.size })
        });
        Transfers::downloads(flows, loads.unknown_sizes)
    }

    fn of_http_log(log: &HttpLog) -> Transfers {
        let flows =
            log.replies.iter().map(|reply| LoggedFlow { start: reply.at, size: reply.size });
        Transfers::downloads(flows, log.without_size)
    }

    fn of_flow_log(log: FlowLog) -> Transfers {
        // Whoever writes such a log means each of its lines, also one without a byte.
        Transfers { down: log.flows, ..Transfers::default() }.starting_at_zero()
    }

    fn downloads(flows: impl Iterator<Item = LoggedFlow>, left_out: u64) -> Transfers {
        let connections = flows.map(|flow| LoggedConnection {
            start: flow.start,
            up: Bytes::ZERO,
            down: flow.size,
        });
        Transfers::of_each(connections, left_out)
    }

    fn of_each(connections: impl Iterator<Item = LoggedConnection>, left_out: u64) -> Transfers {
        let mut transfers = Transfers { left_out, ..Transfers::default() };
        for LoggedConnection { start, up, down } in connections {
            if up.max(down) == Bytes::ZERO {
                transfers.left_out += 1;
                continue;
            }
            let flow = LoggedFlow { start, size: up.max(down) };
            let list = if down >= up { &mut transfers.down } else { &mut transfers.up };
            list.push(flow);
            transfers.other_way += up.min(down);
        }
        transfers.down.sort_by_key(|flow| flow.start);
        transfers.up.sort_by_key(|flow| flow.start);
        transfers.starting_at_zero()
    }

    /// The same transfers with the first of them at zero.
    fn starting_at_zero(mut self) -> Transfers {
        let starts = [&self.down, &self.up].into_iter().filter_map(|flows| flows.first());
        let first = starts.map(|flow| flow.start).min().unwrap_or_default();
        for flow in self.down.iter_mut().chain(&mut self.up) {
            flow.start = Time::ZERO + flow.start.since(first);
        }
        self.first = first;
        self
    }

    /// When the last of them begins; `None` if there is none.
    #[must_use]
    pub fn last(&self) -> Option<Time> {
        let lasts = [&self.down, &self.up].into_iter().filter_map(|flows| flows.last());
        lasts.map(|flow| flow.start).max()
    }
}

/// Whether a packet belongs to a transfer: TCP, or QUIC at its usual port.
fn is_transfer(packet: &CapturedPacket) -> bool {
    const HTTPS: u16 = 443;
    let flow = packet.flow;
    match flow.protocol() {
        FlowKey::TCP => true,
        FlowKey::UDP => flow.source().port() == HTTPS || flow.destination().port() == HTTPS,
        _ => false,
    }
}

/// What a connection of a capture carried.
struct Carried {
    start: Time,
    up: Side,
    down: Side,
}

impl Carried {
    fn new(start: Time) -> Carried {
        Carried { start, up: Side::default(), down: Side::default() }
    }
}

/// One direction of a connection.
#[derive(Default)]
struct Side {
    /// The sequence number from which TCP's bytes are counted, and how many there are.
    sequence: Option<(u32, u64)>,
    /// Payload of datagrams.
    datagrams: Bytes,
}

impl Side {
    fn add(&mut self, packet: &CapturedPacket) {
        let Some(tcp) = packet.tcp else {
            if packet.flow.protocol() == FlowKey::UDP {
                self.datagrams += packet.payload();
            }
            return;
        };
        if tcp.payload == 0 {
            return;
        }
        let (base, length) = *self.sequence.get_or_insert((tcp.sequence, 0));
        // The distance from what is known, forwards or backwards, of numbers that wrap
        // around (RFC 9293 section 3.4).
        let known = base.wrapping_add(length as u32);
        let ahead = tcp.sequence.wrapping_sub(known).wrapping_add(tcp.payload).cast_signed();
        let more = u64::try_from(ahead).unwrap_or_default();
        // A number that is far ahead is not of this connection.
        const MOST_AHEAD: u64 = 1 << 26;
        if more <= MOST_AHEAD {
            self.sequence = Some((base, length + more));
        }
    }

    fn total(&self) -> Bytes {
        self.datagrams + Bytes(self.sequence.map_or(0, |(_, length)| length))
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{Dscp, Ecn, TcpFacts};

    use super::*;

    const USER: [u8; 4] = [192, 168, 0, 2];

    fn flow(server: [u8; 4]) -> FlowKey {
        FlowKey::v4(USER, 50_000, server, 443, FlowKey::TCP)
    }

    fn segment(millis: u64, flow: FlowKey, sequence: u32, payload: u32) -> CapturedPacket {
        let facts = TcpFacts {
            sequence,
            acknowledgement: Some(0),
            payload,
            syn: false,
            fin: false,
            plain: true,
        };
        CapturedPacket {
            at: Time(millis * 1_000_000),
            flow,
            size: Bytes(u64::from(payload) + 40),
            tcp: Some(facts),
            dscp: Dscp::default(),
            ecn: Ecn::NotEct,
        }
    }

    #[test]
    fn a_connection_is_one_transfer_and_what_is_sent_twice_counts_once() {
        let (one, two) = (flow([192, 0, 2, 1]), flow([192, 0, 2, 2]));
        let near_the_end = u32::MAX - 999;
        let packets = vec![
            segment(5, one, 7, 300),
            // The numbers wrap around; the second segment comes twice, the first late.
            segment(6, one.reversed(), near_the_end, 1_000),
            segment(7, one.reversed(), 0, 1_000),
            segment(8, one.reversed(), 0, 1_000),
            segment(9, one.reversed(), near_the_end, 1_000),
            segment(25, two, 1, 5_000),
            segment(26, two.reversed(), 1, 100),
            segment(27, flow([192, 168, 0, 9]), 1, 100),
        ];
        let capture = Capture { packets, ..Capture::default() };
        let hosts = Hosts::within(["192.168.0.0/16".parse().unwrap()]);
        let found = Transfers::of_capture(&capture, &hosts);
        let at =
            |millis: u64, size| LoggedFlow { start: Time(millis * 1_000_000), size: Bytes(size) };
        assert_eq!((found.down, found.up), (vec![at(0, 2_000)], vec![at(20, 5_000)]));
        assert_eq!((found.other_way, found.left_out), (Bytes(400), 1));
    }
}
