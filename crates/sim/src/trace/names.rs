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

    /// The name of `address` in the DNS.
    #[must_use]
    pub fn of_address(&self, address: IpAddr) -> Option<&str> {
        self.addresses.get(&address).map(String::as_str)
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
