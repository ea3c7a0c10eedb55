//! The table `[intercept]`.

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_files::{At, Count, Mistake, Quantity};

use super::SocketAddress;
use crate::intercept::{Intercept, Mode, Quic};

/// Ports of servers whose connections are taken when the file does not say which.
const HTTP: &[u16] = &[80];
const TUNNELS: &[u16] = &[443];

/// Connections that are taken without their clients' knowledge.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InterceptTable {
    /// The address and port at which the kernel hands them over, such as 0.0.0.0:3130, or
    /// [::]:3130 for both families.
    listen: Quantity<SocketAddress>,
    /// How it does; by default it rewrites their destination.
    #[serde(default)]
    mode: ModeName,
    /// Ports of servers that speak HTTP; by default 80.
    http: Option<At<Vec<At<Count<1, 65_535>>>>>,
    /// Ports of servers whose connections are tunnels; by default 443.
    tunnels: Option<At<Vec<At<Count<1, 65_535>>>>>,
    /// What becomes of QUIC on those ports; by default it is refused, so that browsers use
    /// TCP.
    #[serde(default)]
    quic: QuicName,
}

/// How the kernel hands connections over.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ModeName {
    /// Their destination is rewritten.
    #[default]
    Redirect,
    /// They keep their destination.
    Tproxy,
}

/// What becomes of QUIC.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum QuicName {
    /// It is refused by ICMP.
    #[default]
    Reject,
    /// It passes unscheduled.
    Pass,
}

/// What the table says.
pub(super) fn intercept(table: &At<InterceptTable>) -> Result<Intercept, Mistake> {
    let ports = |written: &Option<At<Vec<At<Count<1, 65_535>>>>>, default: &[u16]| match written {
        None => default.to_vec(),
        Some(list) => list.iter().map(|port| port.value.0 as u16).collect(),
    };
    let intercept = Intercept {
        listen: table.listen.value.0.0,
        mode: match table.mode {
            ModeName::Redirect => Mode::Redirect,
            ModeName::Tproxy => Mode::Tproxy,
        },
        http: ports(&table.http, HTTP),
        tunnels: ports(&table.tunnels, TUNNELS),
        quic: match table.quic {
            QuicName::Reject => Quic::Reject,
            QuicName::Pass => Quic::Pass,
        },
    };
    let all = || intercept.http.iter().chain(&intercept.tunnels);
    let mut sorted: Vec<_> = all().copied().collect();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let expected = "each port once, in 'http' or in 'tunnels'";
        return Err(Mistake::at(&table.place, format!("port {} twice", twice[0]), expected));
    }
    let own = intercept.listen.port();
    match sorted.is_empty() {
        _ if own == 0 => {
            let expected = "a port that rules can name, such as 3130";
            Err(Mistake::at(&table.listen.place, "port 0", expected))
        }
        true => Err(Mistake::at(&table.place, "no ports", "a port in 'http' or in 'tunnels'")),
        false if sorted.contains(&own) => {
            let expected = "a port that is none of those taken";
            Err(Mistake::at(&table.listen.place, format!("'{}'", intercept.listen), expected))
        }
        false => Ok(intercept),
    }
}
