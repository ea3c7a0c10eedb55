//! Streams of RTP (RFC 3550) in a capture.
//!
//! Nothing in a datagram says that it is RTP. A flow of UDP is taken for it when nine of
//! ten of its datagrams have a header of version 2 and belong to streams of
//! [`LEAST_PACKETS`] or more each, and in a stream nine of ten sequence numbers follow
//! the one before, under one source identifier and one payload type. What shares the ports
//! of RTP by its first byte, such as RTCP and STUN, does not count (RFC 7983 section 7). Encryption (SRTP)
//! leaves the header as it is, and a capture that keeps the first 54 bytes of each frame
//! has all of it. The numbers that are missing are of packets that were lost before the
//! capture, or that it lacks.

use std::collections::BTreeMap;

use tidegate_core::FlowKey;

/// The fewest packets of a stream: as many follow each other by chance in no other protocol.
pub const LEAST_PACKETS: u64 = 20;
/// The most flows that are looked at; nobody reads as many.
const MOST_FLOWS: usize = 100_000;
/// The most streams of a flow: those of a conference share ports.
const MOST_STREAMS: usize = 16;
/// A gap of more numbers is not a loss but another stream.
const LARGEST_GAP: u16 = 1_000;
/// The fixed part of the header (RFC 3550 section 5.1).
const HEADER: usize = 12;

/// One stream of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpStream {
    /// Synchronisation source.
    pub source: u32,
    /// Payload type of most packets.
    pub payload_type: u8,
    /// Packets.
    pub packets: u64,
    /// Sequence numbers between the first and the last that the capture lacks.
    pub missing: u64,
}

impl RtpStream {
    /// The codec of a payload type that means the same everywhere (RFC 3551 section 6).
    ///
    /// ```
    /// use tidegate_sim::trace::RtpStream;
    /// let stream = RtpStream { source: 1, payload_type: 8, packets: 50, missing: 0 };
    /// assert_eq!(stream.codec(), Some("G.711 A-law"));
    /// ```
    #[must_use]
    pub fn codec(&self) -> Option<&'static str> {
        Some(match self.payload_type {
            0 => "G.711 µ-law",
            3 => "GSM",
            4 => "G.723",
            8 => "G.711 A-law",
            9 => "G.722",
            10 | 11 => "L16",
            12 => "QCELP",
            13 => "comfort noise",
            14 => "MPEG audio",
            15 => "G.728",
            18 => "G.729",
            26 => "JPEG",
            31 => "H.261",
            32 => "MPEG video",
            33 => "MPEG transport stream",
            34 => "H.263",
            _ => return None,
        })
    }
}

/// A stream that may be one.
struct Candidate {
    source: u32,
    payload_type: u8,
    /// Packets of this payload type.
    alike: u64,
    packets: u64,
    /// Packets whose number follows the one before, with a gap at most.
    in_order: u64,
    missing: u64,
    last: u16,
}

/// Finds streams while packets are read.
#[derive(Default)]
pub(super) struct RtpListener {
    flows: BTreeMap<FlowKey, (u64, Vec<Candidate>)>,
}

impl RtpListener {
    /// A datagram of `flow` carried `payload`, as far as it was captured.
    pub(super) fn hear(&mut self, flow: FlowKey, payload: &[u8]) {
        let known = self.flows.contains_key(&flow);
        if shares_ports(payload) || !known && self.flows.len() >= MOST_FLOWS {
            return;
        }
        let (datagrams, candidates) = self.flows.entry(flow).or_default();
        *datagrams += 1;
        let Some(header) = payload.first_chunk::<HEADER>() else { return };
        if header[0] >> 6 != 2 {
            return;
        }
        let payload_type = header[1] & 0x7f;
        let number = u16::from_be_bytes([header[2], header[3]]);
        let source = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
        match candidates.iter().position(|it| it.source == source) {
            Some(place) => candidates[place].take(number, payload_type),
            None if candidates.len() < MOST_STREAMS => candidates.push(Candidate {
                source,
                payload_type,
                alike: 1,
                packets: 1,
                in_order: 1,
                missing: 0,
                last: number,
            }),
            None => {}
        }
    }

    /// The streams of each flow that is RTP, the largest first.
    pub(super) fn streams(self) -> BTreeMap<FlowKey, Vec<RtpStream>> {
        let flows = self.flows.into_iter().filter_map(|(flow, (datagrams, candidates))| {
            let mut streams: Vec<RtpStream> =
                candidates.iter().filter_map(Candidate::stream).collect();
            streams.sort_by_key(|stream| (std::cmp::Reverse(stream.packets), stream.source));
            let packets: u64 = streams.iter().map(|stream| stream.packets).sum();
            is_most(packets, datagrams).then_some((flow, streams))
        });
        flows.filter(|(_, streams)| !streams.is_empty()).collect()
    }
}

impl Candidate {
    fn take(&mut self, number: u16, payload_type: u8) {
        self.packets += 1;
        self.alike += u64::from(payload_type == self.payload_type);
        let ahead = number.wrapping_sub(self.last);
        if (1..=LARGEST_GAP).contains(&ahead) {
            self.in_order += 1;
            self.missing += u64::from(ahead - 1);
            self.last = number;
        } else if ahead == 0 || ahead > u16::MAX - LARGEST_GAP {
            // It comes late, or twice: what was missing is there.
            self.missing = self.missing.saturating_sub(u64::from(ahead != 0));
        } else {
            self.last = number;
        }
    }

    fn stream(&self) -> Option<RtpStream> {
        let Candidate { source, payload_type, packets, missing, .. } = *self;
        let is_one = packets >= LEAST_PACKETS
            && is_most(self.in_order, packets)
            && is_most(self.alike, packets);
        is_one.then_some(RtpStream { source, payload_type, packets, missing })
    }
}

/// Whether a datagram is none of RTP, but of a protocol that may share its ports: STUN,
/// ZRTP, DTLS, TURN (RFC 7983 section 7), or RTCP (RFC 5761 section 4).
fn shares_ports(payload: &[u8]) -> bool {
    match payload {
        [0..=79, ..] => true,
        [128..=191, second, ..] => (64..=95).contains(&(second & 0x7f)),
        _ => false,
    }
}

/// Whether nine of ten are.
fn is_most(part: u64, whole: u64) -> bool {
    part * 10 >= whole * 9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> FlowKey {
        let end = |text: &str| text.parse().expect("an address with a port");
        FlowKey::new(end("192.0.2.1:4000"), end("198.51.100.1:5000"), FlowKey::UDP)
    }

    fn header(number: u16, payload_type: u8, source: u32) -> Vec<u8> {
        let mut header = vec![0x80, payload_type];
        header.extend(number.to_be_bytes());
        header.extend((u32::from(number) * 160).to_be_bytes());
        header.extend(source.to_be_bytes());
        header
    }

    fn heard(payloads: impl IntoIterator<Item = Vec<u8>>) -> Vec<RtpStream> {
        let mut listener = RtpListener::default();
        payloads.into_iter().for_each(|payload| listener.hear(flow(), &payload));
        listener.streams().remove(&flow()).unwrap_or_default()
    }

    #[test]
    fn numbers_may_wrap_around_and_be_missing_or_late() {
        let numbers = (65_500..=u16::MAX).chain(0..100).filter(|n| *n != 7 && *n != 50);
        let late = numbers.flat_map(|n| if n == 60 { vec![60, 50] } else { vec![n] });
        let found = heard(late.map(|n| header(n, 8, 1)));
        let expected = RtpStream { source: 1, payload_type: 8, packets: 135, missing: 1 };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn streams_on_one_port_are_told_apart_and_control_packets_are_left_out() {
        let both = (0..60).flat_map(|n| {
            let mut payloads = vec![header(n, 96, 5)];
            payloads.extend((n % 2 == 0).then(|| header(n / 2, 111, 6)));
            payloads.extend((n % 3 == 0).then(|| header(1, 0x80 | 72, 5)));
            payloads.extend((n % 3 == 1).then(|| vec![0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42]));
            payloads
        });
        let found = heard(both);
        let facts: Vec<_> =
            found.iter().map(|it| (it.source, it.payload_type, it.packets)).collect();
        assert_eq!(facts, [(5, 96, 60), (6, 111, 30)]);
        assert_eq!(found[0].codec(), None);
    }

    #[test]
    fn other_datagrams_are_no_rtp() {
        // Numbers that do not follow, identifiers that change, too few, too short.
        assert_eq!(heard((0..100).map(|n| header(n * 601 % 9_973 * 5, 8, 1))), []);
        assert_eq!(heard((0..100).map(|n| header(n, 8, u32::from(n)))), []);
        assert_eq!(heard((0..19).map(|n| header(n, 8, 1))), []);
        assert_eq!(heard((0..100).map(|n| header(n, 8, 1)[..11].to_vec())), []);
        // A stream that is half of its flow.
        let half = (0..100).flat_map(|n| [header(n, 8, 1), vec![0xdc, 1, 2]]);
        assert_eq!(heard(half), []);
    }
}
