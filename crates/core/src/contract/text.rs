//! Contracts in one line of text.
//!
//! Statements end with semicolons: `link RATE`, `packets to SIZE`, and for each
//! flow `NAME = SELECTOR: SERVICE`. A selector is one or more of `class N`,
//! `udp`, `tcp`, `protocol N`, `port N`, `from ADDRESS`, `to ADDRESS`, joined by
//! `and`; a service is `ENVELOPE within TIME` or `weight N`.

use std::fmt;
use std::str::FromStr;

use super::{Contract, Contracts, Selector, Service};
use crate::packet::FlowKey;
use crate::units::Bytes;

/// A text that does not describe contracts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found '{found}', expected {expected}")]
pub struct ContractError {
    /// What was found.
    pub found: String,
    /// What would have been right.
    pub expected: String,
}

impl ContractError {
    fn new(found: &str, expected: impl Into<String>) -> ContractError {
        ContractError { found: found.trim().into(), expected: expected.into() }
    }
}

impl fmt::Display for Contracts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link {:#}; packets to {:#}", self.link, self.largest_packet)?;
        self.flows.iter().try_for_each(|flow| write!(f, "; {flow}"))
    }
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}: ", self.name, self.selector)?;
        match &self.service {
            Service::RealTime { envelope, deadline } => {
                write!(f, "{envelope} within {deadline:#}")
            }
            Service::BestEffort { weight } => write!(f, "weight {weight}"),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = self.protocol.map(|protocol| match protocol {
            FlowKey::TCP => "tcp".into(),
            FlowKey::UDP => "udp".into(),
            other => format!("protocol {other}"),
        });
        let parts = [
            self.class.map(|class| format!("class {class}")),
            protocol,
            self.port.map(|port| format!("port {port}")),
            self.source.map(|address| format!("from {address}")),
            self.destination.map(|address| format!("to {address}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(&parts.join(" and "))
    }
}

impl FromStr for Contracts {
    type Err = ContractError;

    fn from_str(text: &str) -> Result<Contracts, ContractError> {
        let (mut link, mut largest_packet) = (None, None);
        let mut flows: Vec<Contract> = Vec::new();
        for statement in text.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
            let wrong =
                |error: crate::units::UnitError| ContractError::new(&error.found, error.expected);
            // This comes first because a flow may be called 'link up'.
            if statement.contains('=') {
                flows.push(statement.parse()?);
            } else if let Some(rate) = statement.strip_prefix("link ") {
                link = Some(rate.parse().map_err(wrong)?);
            } else if let Some(size) = statement.strip_prefix("packets to ") {
                largest_packet = Some(size.parse().map_err(wrong)?);
            } else {
                flows.push(statement.parse()?);
            }
        }
        let missing = |what: &str| ContractError::new(text, format!("'{what};' among them"));
        Contracts::new(
            link.ok_or_else(|| missing("link RATE"))?,
            largest_packet.unwrap_or(Bytes(1_500)),
            flows,
        )
    }
}

impl FromStr for Contract {
    type Err = ContractError;

    fn from_str(text: &str) -> Result<Contract, ContractError> {
        let wrong = || ContractError::new(text, "NAME = SELECTOR: SERVICE");
        let (name, rest) = text.split_once('=').ok_or_else(wrong)?;
        let (selector, service) = rest.split_once(": ").ok_or_else(wrong)?;
        Ok(Contract {
            name: name.trim().into(),
            selector: selector.parse()?,
            service: service.parse()?,
        })
    }
}

impl FromStr for Service {
    type Err = ContractError;

    fn from_str(text: &str) -> Result<Service, ContractError> {
        let expected = "an arrival curve within a time, or 'weight N'";
        let wrong = || ContractError::new(text, expected);
        if let Some(weight) = text.trim().strip_prefix("weight ") {
            return Ok(Service::BestEffort { weight: weight.trim().parse().map_err(|_| wrong())? });
        }
        let (envelope, deadline) = text.split_once(" within ").ok_or_else(wrong)?;
        let late =
            |error: crate::units::UnitError| ContractError::new(&error.found, error.expected);
        Ok(Service::RealTime {
            envelope: envelope.parse()?,
            deadline: deadline.parse().map_err(late)?,
        })
    }
}

impl FromStr for Selector {
    type Err = ContractError;

    fn from_str(text: &str) -> Result<Selector, ContractError> {
        let mut selector = Selector::default();
        for part in text.split(" and ").map(str::trim) {
            let wrong = || {
                let expected = "one of class N, udp, tcp, protocol N, port N, from ADDRESS, \
                                to ADDRESS, joined by 'and'";
                ContractError::new(part, expected)
            };
            match part.split_once(' ').unwrap_or((part, "")) {
                ("class", class) => selector.class = Some(class.parse().map_err(|_| wrong())?),
                ("udp", "") => selector.protocol = Some(FlowKey::UDP),
                ("tcp", "") => selector.protocol = Some(FlowKey::TCP),
                ("protocol", number) => {
                    selector.protocol = Some(number.parse().map_err(|_| wrong())?);
                }
                ("port", port) => selector.port = Some(port.parse().map_err(|_| wrong())?),
                ("from", address) => selector.source = Some(address.parse().map_err(|_| wrong())?),
                ("to", address) => {
                    selector.destination = Some(address.parse().map_err(|_| wrong())?);
                }
                _ => return Err(wrong()),
            }
        }
        Ok(selector)
    }
}
