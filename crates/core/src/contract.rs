//! What flows were promised: how much a real-time flow may send and by when its
//! packets are on the wire, and how best-effort flows share what is left.
//!
//! [`Contracts`] belong to one direction of one link. They are written in a file,
//! which the reader of files turns into this type, or in one line:
//!
//! ```
//! use tidegate_core::contract::Contracts;
//!
//! let contracts: Contracts = "link 10 Mbit/s; packets to 1536 B; \
//!     voice = class 1: 100 B + 2 Mbit/s, 300 B + 1.2 Mbit/s within 5 ms; \
//!     ftp = class 4: weight 5; http = class 5: weight 2"
//!     .parse()?;
//! assert_eq!(contracts.real_time().count(), 1);
//! assert_eq!(contracts.to_string().parse(), Ok(contracts));
//! # Ok::<(), tidegate_core::contract::ContractError>(())
//! ```
//!
//! A packet belongs to the first flow that it fits; a packet that fits none is best
//! effort, with its 5-tuple as its flow and a weight of 1.

mod envelope;
mod policer;
mod text;

use std::net::IpAddr;

use crate::packet::Packet;
use crate::units::{Bytes, Rate, Span};

pub use envelope::{Envelope, Term};
pub use policer::Policer;
pub use text::ContractError;

/// The promises that a link has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contracts {
    /// What the link sends.
    pub link: Rate,
    /// The largest packet of any flow, best effort included (`BE section 2`).
    pub largest_packet: Bytes,
    /// The flows, in the order in which a packet is compared with them.
    pub flows: Vec<Contract>,
}

/// One flow, or several that are treated as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// Name in tables and messages.
    pub name: String,
    /// Which packets are meant.
    pub selector: Selector,
    /// What these packets get.
    pub service: Service,
}

/// What the packets of a flow get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// Each packet is on the wire within `deadline` of its arrival, as long as the
    /// flow keeps to its envelope.
    RealTime {
        /// What it may send.
        envelope: Envelope,
        /// From a packet's arrival to the end of its transmission.
        deadline: Span,
    },
    /// A share of what real-time flows leave.
    BestEffort {
        /// Its share, relative to those of other best-effort flows.
        weight: u32,
    },
}

/// Which packets belong to a flow: those that match everything that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// The packet's class.
    pub class: Option<u16>,
    /// IANA protocol number.
    pub protocol: Option<u8>,
    /// Port at either end.
    pub port: Option<u16>,
    /// Address it comes from.
    pub source: Option<IpAddr>,
    /// Address it goes to.
    pub destination: Option<IpAddr>,
}

impl Selector {
    /// Whether `packet` matches.
    #[must_use]
    pub fn fits(&self, packet: &Packet) -> bool {
        let (source, destination) = (packet.flow.source(), packet.flow.destination());
        self.class.is_none_or(|class| class == packet.class)
            && self.protocol.is_none_or(|protocol| protocol == packet.flow.protocol())
            && self.port.is_none_or(|port| source.port() == port || destination.port() == port)
            && self.source.is_none_or(|address| address == source.ip())
            && self.destination.is_none_or(|address| address == destination.ip())
    }
}

/// A real-time flow of [`Contracts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealTime<'a> {
    /// Name in tables and messages.
    pub name: &'a str,
    /// What it may send.
    pub envelope: &'a Envelope,
    /// From a packet's arrival to the end of its transmission.
    pub deadline: Span,
}

impl Contracts {
    /// The largest number of flows with which a packet is compared.
    pub const MOST_FLOWS: usize = 256;

    /// Contracts of a link, checked.
    ///
    /// # Errors
    /// When a rate, size, deadline or weight is zero, when a name is empty, occurs
    /// twice or contains a character of the text form, or when there are too many
    /// flows.
    pub fn new(
        link: Rate,
        largest_packet: Bytes,
        flows: Vec<Contract>,
    ) -> Result<Contracts, ContractError> {
        let wrong =
            |found: String, expected: &str| Err(ContractError { found, expected: expected.into() });
        if !(1..=Envelope::FASTEST.0).contains(&link.0) {
            return wrong(link.to_string(), "a rate from 1 bit/s to 1 Tbit/s");
        }
        if !(1..=1 << 20).contains(&largest_packet.0) {
            return wrong(largest_packet.to_string(), "a packet size from 1 B to 1 MiB");
        }
        if flows.len() > Contracts::MOST_FLOWS {
            return wrong(format!("{} flows", flows.len()), "at most 256 flows");
        }
        for (index, flow) in flows.iter().enumerate() {
            let name = &flow.name;
            let marks = |mark: char| ['=', ';', ':'].contains(&mark) || mark.is_control();
            if name.is_empty() || name.trim() != name || name.contains(marks) {
                let expected = "a name on one line without '=', ';', ':' and spaces around it";
                return wrong(name.clone(), expected);
            }
            if flows[..index].iter().any(|other| other.name == *name) {
                return wrong(format!("a second flow '{name}'"), "another name");
            }
            match &flow.service {
                Service::RealTime { deadline, .. } if deadline.0 == 0 => {
                    return wrong(format!("'{name}' within {deadline}"), "a deadline above zero");
                }
                Service::BestEffort { weight: 0 } => {
                    return wrong(format!("'{name}' with weight 0"), "a weight above zero");
                }
                _ => {}
            }
        }
        Ok(Contracts { link, largest_packet, flows })
    }

    /// The real-time flows, in their order.
    pub fn real_time(&self) -> impl Iterator<Item = RealTime<'_>> {
        self.flows.iter().filter_map(|flow| match &flow.service {
            Service::RealTime { envelope, deadline } => {
                Some(RealTime { name: &flow.name, envelope, deadline: *deadline })
            }
            Service::BestEffort { .. } => None,
        })
    }

    /// The index in `flows` of the flow to which `packet` belongs.
    #[must_use]
    pub fn flow_of(&self, packet: &Packet) -> Option<usize> {
        self.flows.iter().position(|flow| flow.selector.fits(packet))
    }
}
