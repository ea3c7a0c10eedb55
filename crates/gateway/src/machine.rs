//! What this machine has for a gateway, looked at without changing anything.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};

use ipnet::IpNet;
use rustix::process::{Resource, getrlimit};
use serde::Serialize;
use tidegate_core::{Rate, Span};
use tokio::net::TcpSocket;

use crate::config::Config;
use crate::counter::Counter;
use crate::intercept::Quic;
use crate::pipe;
use crate::window::fixes_nothing;

/// A round trip to a server that is far away, over which a connection should still be able
/// to fill the link.
const FAR: Span = Span::millis(100);
/// A client's connection and one to its server.
const OF_A_CONNECTION: u64 = 2;
/// Listeners, timers, logs, questions for names, and the connections of the admin port.
const OTHERS: u64 = 200;
/// The capability to answer for servers at ports below 1024: its number in capabilities(7).
const CAP_NET_BIND_SERVICE: u32 = 10;
/// The capability to change networks.
pub const CAP_NET_ADMIN: u32 = 12;

/// Something about the machine that whoever runs a gateway should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub kind: Kind,
    /// What it is, and what can be done.
    pub text: String,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// As it should be.
    Fine,
    /// The gateway runs, but not as well as it could.
    Warning,
    /// The gateway does not start.
    Problem,
}

/// What there is to know before a gateway with these settings starts, with rules or without.
#[must_use]
pub fn findings(config: &Config, with_rules: bool) -> Vec<Finding> {
    let mut all = Vec::new();
    sockets(config, &mut all);
    link(config, &mut all);
    clients(config, &mut all);
    limits(config, &mut all);
    if config.intercept.is_some() || with_rules {
        interception(config, with_rules, &mut all);
    }
    all
}

/// The file descriptors that a gateway with all its connections takes.
#[must_use]
pub fn descriptors(config: &Config) -> u64 {
    let of_pipes = 2 * pipe::MOST as u64;
    u64::from(config.limits.connections) * OF_A_CONNECTION + of_pipes + OTHERS
}

fn tell(all: &mut Vec<Finding>, kind: Kind, text: impl Into<String>) {
    all.push(Finding { kind, text: text.into() });
}

fn sockets(config: &Config, all: &mut Vec<Finding>) {
    let listen = config.listen.iter().map(|address| ("listen", *address));
    let intercept = config.intercept.as_ref().map(|it| ("intercept.listen", it.listen));
    let admin = config.admin.map(|address| ("admin", address));
    for (key, address) in listen.chain(intercept).chain(admin) {
        match TcpListener::bind(address) {
            Ok(_) => tell(all, Kind::Fine, format!("{key} {address}: the port is free")),
            Err(reason) => {
                tell(all, Kind::Problem, format!("{key} {address}: {}", taken(&reason)));
            }
        }
    }
}

fn taken(reason: &io::Error) -> String {
    match reason.kind() {
        io::ErrorKind::AddrInUse => {
            "another program listens there, or a gateway runs already".into()
        }
        io::ErrorKind::AddrNotAvailable => "this machine does not have that address".into(),
        io::ErrorKind::PermissionDenied => {
            "this user may not listen at that port; it takes CAP_NET_BIND_SERVICE".into()
        }
        _ => reason.to_string(),
    }
}

fn link(config: &Config, all: &mut Vec<Finding>) {
    match &config.interface {
        None => tell(
            all,
            Kind::Warning,
            "link.interface: none is named, so the gateway does not see what else the link \
             carries, and would not leave room for it",
        ),
        Some(name) => match Counter::open(name) {
            Ok(_) => tell(all, Kind::Fine, format!("link.interface {name}: it is there")),
            Err(reason) => tell(all, Kind::Problem, format!("link.interface: {reason}")),
        },
    }
}

/// Whether clients can come at all.
fn clients(config: &Config, all: &mut Vec<Finding>) {
    let is_local = |address: &SocketAddr| address.ip().is_loopback();
    if config.intercept.is_some() || !config.listen.iter().all(is_local) {
        return;
    }
    for class in &config.classes {
        let is_far = |source: &&IpNet| !source.addr().is_loopback();
        if let Some(source) = class.sources.iter().find(is_far) {
            tell(
                all,
                Kind::Warning,
                format!(
                    "class {}: clients of {source} cannot reach the gateway, which listens on \
                     this machine only",
                    class.name
                ),
            );
        }
    }
}

/// Whether new connections to servers can offer less than the kernel would by itself.
fn first_offers(all: &mut Vec<Finding>) {
    let offers = TcpSocket::new_v4().is_ok_and(|socket| fixes_nothing(&socket));
    if offers {
        tell(all, Kind::Fine, "first offers: a server may send 24 kB at once, and no more");
    } else {
        tell(
            all,
            Kind::Warning,
            "first offers: this kernel has servers send 64 kB at once, which hundreds of \
             connections make seconds of a slow link; Linux 5.15, or 'ip route change' of the \
             route to the servers with 'initrwnd 16', has them send less",
        );
    }
}

fn limits(config: &Config, all: &mut Vec<Finding>) {
    let connections = config.limits.connections;
    let needed = descriptors(config);
    // The gateway takes all that it may have.
    match getrlimit(Resource::Nofile).maximum {
        Some(limit) if limit < needed => tell(
            all,
            Kind::Warning,
            format!(
                "limits.connections {connections}: with those to servers they take {needed} file \
                 descriptors, and a process may have {limit}; 'ulimit -n {needed}', or \
                 LimitNOFILE={needed} in a unit of systemd"
            ),
        ),
        _ => tell(
            all,
            Kind::Fine,
            format!("limits.connections {connections}: there are enough file descriptors"),
        ),
    }
    // Only then does the gateway size buffers itself.
    if config.settings.read_gate.is_none() {
        return;
    }
    first_offers(all);
    let Some(most) = number("net/core/rmem_max") else { return };
    let wanted = config.rate.volume(FAR).0;
    if most < wanted {
        let rate = Rate(most * 8 * 1_000_000_000 / FAR.0);
        tell(
            all,
            Kind::Warning,
            format!(
                "net.core.rmem_max {most}: a connection with a round trip of {FAR} carries at \
                 most some {rate}; 'sysctl net.core.rmem_max={wanted}'"
            ),
        );
    } else {
        tell(
            all,
            Kind::Fine,
            format!("net.core.rmem_max {most}: receive buffers are large enough"),
        );
    }
}

fn interception(config: &Config, with_rules: bool, all: &mut Vec<Finding>) {
    let Some(intercept) = &config.intercept else {
        tell(all, Kind::Problem, "intercept: there is no such table, and --rules sets its rules");
        return;
    };
    let is_v6 = |source: &IpNet| source.addr().is_ipv6();
    let sources = || config.classes.iter().flat_map(|class| &class.sources);
    if !intercept.listen.is_ipv6() && sources().any(is_v6) {
        let text = "intercept.listen: it is of IPv4 alone, and connections by IPv6 pass \
                    unscheduled; '[::]' and the port is for both";
        tell(all, Kind::Warning, text);
    }
    for (family, key, is_used) in [
        ("IPv4", "net/ipv4/ip_forward", sources().any(|source| !is_v6(source))),
        ("IPv6", "net/ipv6/conf/all/forwarding", sources().any(is_v6)),
    ] {
        if is_used && number(key) == Some(0) {
            let key = key.replace('/', ".");
            let text = format!(
                "{key} 0: this machine does not route {family} for its users; 'sysctl {key}=1'"
            );
            tell(all, Kind::Warning, text);
        }
    }
    let needs_routes = intercept.needs_routes();
    if !has_capability(CAP_NET_ADMIN) && (with_rules || needs_routes) {
        let text = "CAP_NET_ADMIN: this user does not have it, and it takes it to hand \
                    connections over; run it as root";
        tell(all, Kind::Problem, text);
    }
    if intercept.quic == Quic::Relay && !has_capability(CAP_NET_BIND_SERVICE) {
        let text = "CAP_NET_BIND_SERVICE: this user does not have it, and it takes it to answer \
                    for servers of QUIC at ports below 1024; run it as root";
        tell(all, Kind::Problem, text);
    }
    if !with_rules {
        let text = "intercept: connections come only while rules are set; 'run --rules' or \
                    'rules apply' sets them";
        tell(all, Kind::Warning, text);
        return;
    }
    let programs = [("nft", "nftables", true), ("ip", "iproute2", needs_routes)];
    for (program, package, _) in programs.into_iter().filter(|(.., is_used)| *is_used) {
        if is_there(program) {
            tell(all, Kind::Fine, format!("{program}: it is there"));
        } else {
            let text =
                format!("{program}: it is not there; Debian has it in the package {package}");
            tell(all, Kind::Problem, text);
        }
    }
}

/// A setting of the kernel.
fn number(setting: &str) -> Option<u64> {
    fs::read_to_string(format!("/proc/sys/{setting}")).ok()?.trim().parse().ok()
}

/// Whether a program can be called by its name.
#[must_use]
pub fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Whether this process has a capability, by its number in capabilities(7).
#[must_use]
pub fn has_capability(number: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits >> number & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;

    fn found(text: &str, with_rules: bool) -> Vec<Finding> {
        let classes = "\n[[class]]\nname = \"a\"\nsources = [\"10.0.0.0/8\", \"2001:db8::/64\"]";
        let config = file::parse("it", &format!("{text}{classes}")).expect("it is correct");
        findings(&config, with_rules)
    }

    fn has(findings: &[Finding], kind: Kind, beginning: &str) -> bool {
        findings.iter().any(|it| it.kind == kind && it.text.starts_with(beginning))
    }

    #[test]
    fn ports_that_others_have_are_found() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let text = format!("listen = [\"{address}\"]\nlink = {{ rate = \"1 Mbit/s\" }}");
        let findings_now = found(&text, false);
        let expected = format!("listen {address}: another program listens there");
        assert!(has(&findings_now, Kind::Problem, &expected), "{findings_now:?}");
        drop(taken);
        let later = found(&text, false);
        assert!(has(&later, Kind::Fine, &format!("listen {address}: ")), "{later:?}");
        assert!(has(&later, Kind::Warning, "class a: clients of 10.0.0.0/8 cannot"), "{later:?}");
        assert!(has(&later, Kind::Warning, "link.interface: none is named"), "{later:?}");
        assert!(has(&later, Kind::Fine, "first offers: "), "this takes Linux 5.15: {later:?}");
        let foreign = "listen = [\"192.0.2.1:1\"]\nlink = { rate = \"1 Mbit/s\" }";
        let foreign = found(foreign, false);
        assert!(has(&foreign, Kind::Problem, "listen 192.0.2.1:1: this machine does not"));
    }

    #[test]
    fn what_the_link_and_its_rate_need_is_looked_for() {
        let of = |interface: &str| {
            let link = format!("link = {{ rate = \"10 Gbit/s\", interface = \"{interface}\" }}");
            found(
                &format!("listen = [\"127.0.0.1:0\"]\nlimits.connections = 1000000\n{link}"),
                false,
            )
        };
        let all = of("lo");
        assert!(has(&all, Kind::Fine, "link.interface lo: "), "{all:?}");
        assert!(has(&of("none0"), Kind::Problem, "link.interface: there is no"));
        if getrlimit(Resource::Nofile).maximum.is_some_and(|limit| limit < 2_000_200) {
            assert!(has(&all, Kind::Warning, "limits.connections 1000000: "), "{all:?}");
        }
        // The window of 100 ms at this rate is 125 MB.
        if number("net/core/rmem_max").is_some_and(|most| most < 125_000_000) {
            assert!(has(&all, Kind::Warning, "net.core.rmem_max "), "{all:?}");
        }
    }

    #[test]
    fn interception_is_looked_at_where_it_is_wanted() {
        let link = "listen = [\"127.0.0.1:0\"]\nlink = { rate = \"1 Mbit/s\" }";
        assert!(has(&found(link, true), Kind::Problem, "intercept: there is no such table"));
        let all = found(&format!("{link}\nintercept = {{ listen = \"0.0.0.0:1\" }}"), false);
        assert!(has(&all, Kind::Warning, "intercept: connections come only while"), "{all:?}");
        assert!(has(&all, Kind::Warning, "intercept.listen: it is of IPv4 alone"), "{all:?}");
    }
}
