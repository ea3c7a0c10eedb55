//! The other end of a measurement: our own server, or one of others that a user names.
//!
//! Ours measures everything. A server of HTTP has no uploads and no call, so its round trips
//! are those of connections, and its short transfers parts of the file. One of iperf3 or netperf
//! has long transfers both ways and nothing else; round trips are those of ICMP, of which half
//! stands for one way of a call, and there are no short transfers.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::AtomicBool;

use super::client::{self, Plan};
use super::record::Record;
use super::{http, iperf3, netperf};
use crate::arguments::MEASURE_PORT;
use crate::failure::Failure;

/// The ports of servers of iperf3 and netperf, if nothing else is said.
const IPERF3_PORT: u16 = 5201;
const NETPERF_PORT: u16 = 12865;

#[derive(Clone, Debug)]
pub(super) enum Target {
    Ours(SocketAddr),
    Http(http::File),
    Iperf3(SocketAddr),
    Netperf(SocketAddr),
}

impl Target {
    /// What a user names.
    pub(super) fn find(text: &str) -> Result<Target, Failure> {
        if let Some(rest) = text.strip_prefix("http://") {
            return http::File::find(text, rest).map(Target::Http);
        }
        if let Some(rest) = text.strip_prefix("iperf3://") {
            let host = rest.trim_end_matches('/');
            return address(text, host, IPERF3_PORT).map(Target::Iperf3);
        }
        if let Some(rest) = text.strip_prefix("netperf://") {
            let host = rest.trim_end_matches('/');
            return address(text, host, NETPERF_PORT).map(Target::Netperf);
        }
        if let Some((scheme, _)) = text.split_once("://") {
            let expected =
                "expected HOST, HOST:PORT, http://HOST/FILE, iperf3://HOST or netperf://HOST";
            let why = if scheme == "https" { " (a load over TLS is not known here)" } else { "" };
            let found = format!("found '{}'{why}, {expected}", text.escape_debug());
            return Err(Failure::Input(found));
        }
        address(text, text, MEASURE_PORT).map(Target::Ours)
    }

    pub(super) fn address(&self) -> SocketAddr {
        match self {
            Target::Ours(address) | Target::Iperf3(address) | Target::Netperf(address) => *address,
            Target::Http(file) => file.address,
        }
    }

    /// Runs a plan against it.
    pub(super) fn run(&self, plan: &Plan, stop: &'static AtomicBool) -> Result<Record, Failure> {
        match self {
            Target::Ours(address) => client::run(*address, plan, stop),
            Target::Http(file) => http::run(file, plan, stop),
            Target::Iperf3(address) => iperf3::run(*address, plan, stop),
            Target::Netperf(address) => netperf::run(*address, plan, stop),
        }
    }

    /// What of a measurement it lacks, in a sentence; nothing of ours.
    pub(super) fn lacks(&self) -> Option<&'static str> {
        match self {
            Target::Ours(_) => None,
            Target::Http(_) => Some(
                "A server of HTTP takes no uploads: only the queue towards this machine is \
                 measured. Round trips are those of connections, and half of one stands for one \
                 way of a call.",
            ),
            Target::Iperf3(_) | Target::Netperf(_) => Some(
                "A server of iperf3 or netperf has no short transfers. Round trips are those of \
                 ICMP, and half of one stands for one way of a call.",
            ),
        }
    }
}

/// The address of a host, with a port or without.
pub(super) fn address(whole: &str, host: &str, port: u16) -> Result<SocketAddr, Failure> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    // An address of IPv6 has colons too.
    let with_port = if bare.parse::<std::net::Ipv6Addr>().is_ok() {
        (bare, port).to_socket_addrs()
    } else if host.contains(':') {
        host.to_socket_addrs()
    } else {
        (host, port).to_socket_addrs()
    };
    let failed = |reason: &dyn std::fmt::Display| {
        let found = format!("found the server '{}'", whole.escape_debug());
        Failure::Input(format!("{found}, expected one that can be found: {reason}"))
    };
    let mut found = with_port.map_err(|reason| failed(&reason))?;
    found.next().ok_or_else(|| failed(&"it has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_as_people_name_them() {
        for (text, address) in [
            ("127.0.0.1", "127.0.0.1:4790"),
            ("127.0.0.1:99", "127.0.0.1:99"),
            ("::1", "[::1]:4790"),
            ("[::1]:99", "[::1]:99"),
            ("iperf3://127.0.0.1", "127.0.0.1:5201"),
            ("iperf3://127.0.0.1:7/", "127.0.0.1:7"),
            ("netperf://[::1]", "[::1]:12865"),
            ("http://127.0.0.1/1GB.bin", "127.0.0.1:80"),
            ("http://127.0.0.1:8080/x", "127.0.0.1:8080"),
        ] {
            let target = Target::find(text).unwrap_or_else(|it| panic!("{text}: {it:?}"));
            assert_eq!(target.address().to_string(), address, "{text}");
        }
        for wrong in
            ["https://127.0.0.1/x", "ftp://127.0.0.1/x", "127.0.0.1:port", "http://127.0.0.1"]
        {
            let found = Target::find(wrong);
            let is_told = |text: &str| text.contains("found") && text.contains("expected");
            assert!(matches!(&found, Err(Failure::Input(text)) if is_told(text)), "{found:?}");
        }
    }
}
