//! Names of hosts that a capture reveals.
//!
//! Clients say in clear to which server they talk: in the first message of TLS
//! ([`tidegate_wire::tls`]), and before that to the DNS, whose answers give addresses
//! to names. The first is of one connection and is believed first; the second is all
//! that is seen of QUIC and of servers whose names are encrypted. Where several names
//! have one address, the latest answer counts, since it is the one that was asked for.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use simple_dns::Packet;
use simple_dns::rdata::RData;
use tidegate_core::FlowKey;
use tidegate_wire::tls::{Hello, host_name};

/// The most names of a kind that are kept: nobody reads as many, and a capture may
/// hold any number.
const MOST_NAMES: usize = 100_000;
/// The most connections whose first message has not come as a whole yet.
const MOST_UNFINISHED: usize = 1_000;
const DNS: u16 = 53;

/// Names of hosts, by connection and by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// From the client to the server.
    connections: BTreeMap<FlowKey, String>,
    addresses: BTreeMap<IpAddr, String>,
}

impl Names {
    /// The name of the host at an end of `flow`, in whichever direction it is: from TLS,
    /// or else from the DNS.
    #[must_use]
    pub fn of(&self, flow: FlowKey) -> Option<&str> {
        let of_connection = [flow, flow.reversed()].into_iter();
        let of_address = [flow.destination(), flow.source()].into_iter();
        of_connection
            .filter_map(|flow| self.connections.get(&flow))
            .chain(of_address.filter_map(|end| self.addresses.get(&end.ip())))
            .next()
            .map(String::as_str)
    }
}

/// Collects names from packets.
#[derive(Default)]
pub(super) struct Listener {
    pub(super) names: Names,
    /// The first bytes of clients whose first message is not complete.
    unfinished: BTreeMap<FlowKey, Vec<u8>>,
}

impl Listener {
    /// Whether the payload of a packet of `flow` may tell a name.
    pub(super) fn listens(&self, flow: FlowKey) -> bool {
        match flow.protocol() {
            FlowKey::TCP => flow.source().port() > flow.destination().port(),
            FlowKey::UDP => flow.source().port() == DNS,
            _ => false,
        }
    }

    /// A packet of `flow` carried `payload`.
    pub(super) fn hear(&mut self, flow: FlowKey, payload: &[u8]) {
        if payload.is_empty() {
            return;
        }
        if flow.protocol() == FlowKey::UDP {
            self.hear_answer(payload);
        } else {
            self.hear_client(flow, payload);
        }
    }

    fn hear_client(&mut self, flow: FlowKey, payload: &[u8]) {
        let names = &mut self.names.connections;
        if names.len() >= MOST_NAMES {
            return;
        }
        let earlier = self.unfinished.remove(&flow);
        // The first record of a client is of the handshake.
        if earlier.is_none() && !payload.starts_with(&[22, 3]) {
            return;
        }
        let bytes = [earlier.as_deref().unwrap_or_default(), payload].concat();
        match Hello::read(&bytes) {
            Hello::For(name) => {
                names.insert(flow, name);
            }
            Hello::Unfinished if self.unfinished.len() < MOST_UNFINISHED => {
                self.unfinished.insert(flow, bytes);
            }
            Hello::Unfinished | Hello::Nameless => {}
        }
    }

    fn hear_answer(&mut self, payload: &[u8]) {
        let names = &mut self.names.addresses;
        let Ok(message) = Packet::parse(payload) else { return };
        // What was asked for, not the names behind it that its answers may lead to.
        let Some(asked) = message.questions.first() else { return };
        let Some(name) = host_name(asked.qname.to_string().as_bytes()) else { return };
        for answer in &message.answers {
            let address: IpAddr = match &answer.rdata {
                RData::A(record) => Ipv4Addr::from(record.address).into(),
                RData::AAAA(record) => Ipv6Addr::from(record.address).into(),
                _ => continue,
            };
            if names.len() < MOST_NAMES || names.contains_key(&address) {
                names.insert(address, name.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: [u8; 4] = [192, 168, 0, 2];
    const SERVER: [u8; 4] = [192, 0, 2, 5];

    fn long(bytes: &[u8]) -> Vec<u8> {
        [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
    }

    /// The first message of a client of TLS that means this server.
    fn hello(host: &[u8]) -> Vec<u8> {
        let name = long(&[&[0][..], &long(host)].concat());
        let extensions = long(&[&[0, 0][..], &long(&name)].concat());
        let body = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0], &extensions].concat();
        let message = [&[1, 0][..], &long(&body)].concat();
        [&[22, 3, 1][..], &long(&message)].concat()
    }

    /// An answer of the DNS: `www.example.org` has the address of the server.
    fn answer() -> Vec<u8> {
        let header = [0, 2, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0];
        let asked = b"\x03www\x07example\x03org\0\0\x01\0\x01";
        let record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4];
        [&header[..], asked, &record, &SERVER].concat()
    }

    #[test]
    fn names_come_from_the_dns_and_better_ones_from_tls() {
        let mut listener = Listener::default();
        let resolver = FlowKey::v4([9, 9, 9, 9], 53, CLIENT, 40_000, FlowKey::UDP);
        assert!(listener.listens(resolver) && !listener.listens(resolver.reversed()));
        listener.hear(resolver, &answer());
        let flow = FlowKey::v4(CLIENT, 50_000, SERVER, 443, FlowKey::TCP);
        assert_eq!(listener.names.of(flow), Some("www.example.org"));
        assert_eq!(listener.names.of(flow.reversed()), Some("www.example.org"));
        // The message comes in two segments.
        let hello = hello(b"Video.Example.NET");
        listener.hear(flow, &hello[..20]);
        listener.hear(flow, &hello[20..]);
        assert_eq!(listener.names.of(flow), Some("video.example.net"));
        let other = FlowKey::v4(CLIENT, 50_001, [198, 51, 100, 1], 443, FlowKey::TCP);
        listener.hear(other, b"GET / HTTP/1.1\r\n");
        assert_eq!(listener.names.of(other), None);
        assert!(listener.unfinished.is_empty());
    }
}
