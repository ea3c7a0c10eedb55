//! What a gateway says about itself, as JSON.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use tidegate_core::request::UserId;

use crate::times::Typical;

/// The state of a gateway. What is counted is counted since its start; rates are averages
/// of the last seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The request scheduler.
    pub scheduler: String,
    /// The rate of the link that it works for.
    pub rate_bps: u64,
    /// The time since the start.
    pub uptime_s: f64,
    /// What the link has carried: what its interface counts, or else what servers sent,
    /// with headers.
    pub carried_bytes: u64,
    /// What it carries.
    pub carried_bps: u64,
    /// How many responses may be outstanding (*W+*); nothing without such a limit.
    pub window: Option<f64>,
    /// Responses that hold a place.
    pub held: u64,
    /// Responses that are outstanding, long ones among them.
    pub outstanding: u64,
    /// Requests in line.
    pub waiting: u64,
    /// Tunnels that are open.
    pub tunnels: u64,
    /// Requests whose bodies are being sent while they come.
    pub uploads: u64,
    /// Requests of tunnels that were released out of order, because they had been held
    /// for as long as any may be.
    pub overdue: u64,
    /// Flows of QUIC that are relayed. Each is a tunnel, too, and a connection.
    pub quic_flows: u64,
    /// Connections of clients.
    pub connections: u64,
    /// Connections to servers that are kept for later requests.
    pub kept: u64,
    /// The classes, in the order of the file.
    pub classes: Vec<ClassStatus>,
    /// Those who have received the most.
    pub top_users: Vec<UserStatus>,
    /// Those who receive the most.
    pub busy_users: Vec<UserStatus>,
}

/// The state of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassStatus {
    /// Its name.
    pub name: String,
    /// Its weight.
    pub weight: u32,
    /// Users with a request in line or a response outstanding.
    pub users: u32,
    /// Requests and tunnels that ended in order.
    pub completed: u64,
    /// Those that did not.
    pub failed: u64,
    /// Requests that could not be understood without a doubt.
    pub refused: u64,
    /// Datagrams of QUIC that came faster than it receives, and were lost.
    pub dropped_datagrams: u64,
    /// What servers sent for it.
    pub received_bytes: u64,
    /// What its clients received besides, where that is counted.
    pub besides_bytes: u64,
    /// How long its requests were in line, all together.
    pub waited_s: f64,
    /// What it receives.
    pub received_bps: u64,
    /// What it would receive if all who want something wanted as much as they can get;
    /// nothing under a scheduler that knows no shares.
    pub share_bps: Option<u64>,
    /// How long requests were in line, those of tunnels among them.
    pub waited: Option<Typical>,
    /// The time from their release to the first byte of the response.
    pub first_byte: Option<Typical>,
    /// The time from their release to the last byte, of requests that are not in tunnels.
    pub service: Option<Typical>,
}

/// What a user has received.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UserStatus {
    /// The name, or else the address or the network of 64 bits.
    pub user: String,
    /// The class.
    pub class: String,
    /// What servers sent for the user.
    pub received_bytes: u64,
    /// What they send.
    pub received_bps: u64,
}

/// The address, or the network, that a user was named after.
pub(crate) fn name_of(user: UserId) -> String {
    match u32::try_from(user.0) {
        Ok(address) => Ipv4Addr::from_bits(address).to_string(),
        Err(_) => format!("{}/64", Ipv6Addr::from_bits(u128::from(user.0) << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user_of;

    #[test]
    fn users_are_named_as_their_addresses() {
        for (address, name) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:0:7::1", "2001:db8:0:7::/64"),
        ] {
            assert_eq!(name_of(user_of(address.parse().unwrap())), name);
        }
    }
}
