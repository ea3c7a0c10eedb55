//! What this machine has for a link, looked at without changing anything.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;

use nix::ifaddrs::getifaddrs;
use rustix::process::{Resource, getrlimit};
use serde_json::Value;
use tidegate_gateway::machine::{CAP_NET_ADMIN, Finding, Kind, has_capability, is_there};
use tidegate_link::Config;

use super::bypass::Bridge;
use super::client::Client;
use super::socket;
use crate::arguments::{Fail, LinkRunArguments};
use crate::interface::{Interface, fact, printed};

/// To open packet sockets: its number in capabilities(7).
const CAP_NET_RAW: u32 = 13;
/// To have threads go before all ordinary ones.
const CAP_SYS_NICE: u32 = 23;
/// The largest frame that a packet socket hands over whole.
const MOST_FRAME: u64 = 65_536;
/// The flag of an interface that is up (netdevice(7)).
const IFF_UP: u32 = 1;

/// What there is to know before a link starts.
pub(super) fn findings(arguments: &LinkRunArguments, name: &str, config: &Config) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut tell = |kind, text: String| all.push(Finding { kind, text });
    let interfaces = [&config.inside, &config.outside];
    let bridge = Bridge::of(name);
    for interface in interfaces {
        of_interface(interface, &bridge, &mut tell);
    }
    of_both(config, &mut tell);
    of_others(name, config, &mut tell);
    of_rights(arguments, &mut tell);
    if let Some(address) = arguments.page {
        match TcpListener::bind(address) {
            Ok(_) => tell(Kind::Fine, format!("--page {address}: the port is free")),
            Err(reason) => tell(Kind::Problem, format!("--page {address}: {reason}")),
        }
    }
    all
}

/// Why a link cannot be at these interfaces, if it cannot: what `run` looks at as well.
pub(super) fn obstacle(name: &str, config: &Config) -> Option<String> {
    let mut found = None;
    let mut tell = |kind, text| {
        if kind == Kind::Problem {
            found.get_or_insert(text);
        }
    };
    let bridge = Bridge::of(name);
    for interface in [&config.inside, &config.outside] {
        is_free(interface, &bridge, &mut tell);
    }
    of_others(name, config, &mut tell);
    found
}

/// Whether an interface is there, is up, and belongs to nothing else.
fn is_free(name: &str, bridge: &Bridge, tell: &mut impl FnMut(Kind, String)) -> bool {
    let Some(flags) = fact(name, "flags") else {
        tell(Kind::Problem, format!("{name}: there is no such interface"));
        return false;
    };
    let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).unwrap_or_default();
    if flags & IFF_UP == 0 {
        let help = format!("it is down, and carries nothing; 'ip link set dev {name} up'");
        tell(Kind::Problem, format!("{name}: {help}"));
        return false;
    }
    let master = fs::read_link(format!("/sys/class/net/{name}/master")).ok();
    let master = master.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let Some(master) = master else { return true };
    if bridge.has(name) {
        let left = format!("a link that died has left it in {master}, which 'run' takes away");
        tell(Kind::Fine, format!("{name}: {left}"));
        return true;
    }
    let help = format!("'ip link set dev {name} nomaster' takes it out");
    let text = format!("{name}: it belongs to {master}, which takes the same frames; {help}");
    tell(Kind::Problem, text);
    true
}

fn of_interface(name: &str, bridge: &Bridge, tell: &mut impl FnMut(Kind, String)) {
    if !is_free(name, bridge, tell) {
        return;
    }
    // What the kernel calls its state follows a little later.
    let interface = Interface { state: "up".into(), ..Interface::of(name.into()) };
    match fact(name, "carrier").as_deref() {
        Some("0") => tell(Kind::Warning, format!("{name}: it is up, but nothing is connected")),
        _ => tell(Kind::Fine, interface.text()),
    }
    let addresses = addresses(name);
    if !addresses.is_empty() {
        tell(
            Kind::Warning,
            format!(
                "{name}: it has addresses ({}): what this machine itself sends there passes the \
                 queue by; 'ip address flush dev {name}' takes them away",
                addresses.join(", ")
            ),
        );
    }
    if has_routes(name) {
        let text = "there are routes through it, by which this machine sends past the queue; \
                    'ip route show dev'";
        tell(Kind::Warning, format!("{name}: {text} {name}"));
    }
    let lro = "large-receive-offload";
    if interface.merging.is_some_and(|merging| merging.iter().any(|it| it == lro)) {
        let text = "it merges packets in a way that cannot be undone; 'ethtool -K";
        tell(Kind::Warning, format!("{name}: {text} {name} lro off'"));
    }
    for (key, size) in sizes(name).into_iter().filter(|(_, size)| *size > MOST_FRAME) {
        tell(
            Kind::Warning,
            format!(
                "{name}: {key} {size}: frames above 64 kB cannot be handed over, and would be \
                 lost; 'ip link set dev {name} {key} {MOST_FRAME}'"
            ),
        );
    }
}

/// The addresses of an interface, but those that each has by itself (link-local).
fn addresses(name: &str) -> Vec<String> {
    let Ok(all) = getifaddrs() else { return Vec::new() };
    let of_it = all.filter(|it| it.interface_name == name).filter_map(|it| it.address);
    let found: BTreeSet<_> = of_it
        .filter_map(|address| {
            let v4 = address.as_sockaddr_in().map(|it| it.ip().to_string());
            let v6 = address.as_sockaddr_in6().map(nix::sys::socket::SockaddrIn6::ip);
            let v6 = v6.filter(|ip| !ip.is_unicast_link_local()).map(|ip| ip.to_string());
            v4.or(v6)
        })
        .collect();
    found.into_iter().collect()
}

/// Whether a route of IPv4 leads through it. Routes of IPv6 are there without anybody's doing.
fn has_routes(name: &str) -> bool {
    let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
    routes.lines().skip(1).any(|line| line.split_whitespace().next() == Some(name))
}

/// How large merged frames may become, by the names of ip-link(8); nothing without `ip`.
fn sizes(name: &str) -> Vec<(&'static str, u64)> {
    let listing = printed("ip", &["-json", "-details", "link", "show", "dev", name]);
    let listing: Option<Value> = listing.and_then(|text| serde_json::from_str(&text).ok());
    let Some(listing) = listing else { return Vec::new() };
    let keys = ["gso_max_size", "gro_max_size", "gso_ipv4_max_size", "gro_ipv4_max_size"];
    keys.into_iter().filter_map(|key| Some((key, listing[0][key].as_u64()?))).collect()
}

fn of_both(config: &Config, tell: &mut impl FnMut(Kind, String)) {
    let both = [&config.inside, &config.outside];
    let [Some(inside), Some(outside)] = both.map(|name| fact(name, "mtu")) else { return };
    if inside != outside {
        let [a, b] = both;
        tell(
            Kind::Warning,
            format!(
                "MTU: {a} has {inside} and {b} has {outside}: larger packets of the one do not \
                 fit the other, and are lost; 'ip link set dev {a} mtu {outside}'"
            ),
        );
    }
    let routes =
        fs::read_to_string("/proc/sys/net/ipv4/ip_forward").is_ok_and(|it| it.trim() == "1");
    if routes && both.iter().all(|name| !addresses(name).is_empty()) {
        let text = "net.ipv4.ip_forward 1: this machine routes between its addresses there, past \
                    the queue; a link takes the place of a cable, not of a router";
        tell(Kind::Warning, text.into());
    }
}

/// Links that run already.
fn of_others(name: &str, config: &Config, tell: &mut impl FnMut(Kind, String)) {
    for other in socket::running(&socket::folder()) {
        if other == name {
            tell(Kind::Problem, socket::runs_already(name));
            continue;
        }
        // Those of others cannot be asked.
        let Ok(state) = Client::of(Some(&other)).and_then(|client| client.state()) else {
            continue;
        };
        let theirs = [&state.status.inside, &state.status.outside];
        if let Some(shared) =
            theirs.iter().find(|it| [&config.inside, &config.outside].contains(it))
        {
            tell(Kind::Problem, format!("{shared}: the link '{other}' carries its frames already"));
        }
    }
}

fn of_rights(arguments: &LinkRunArguments, tell: &mut impl FnMut(Kind, String)) {
    let help = "this user does not have it; run it as root, for example with sudo";
    if has_capability(CAP_NET_RAW) {
        tell(Kind::Fine, "CAP_NET_RAW: this user may open packet sockets".into());
    } else {
        tell(Kind::Problem, format!("CAP_NET_RAW: packets take it, and {help}"));
    }
    if arguments.fail == Fail::Open {
        if !has_capability(CAP_NET_ADMIN) {
            tell(Kind::Problem, format!("CAP_NET_ADMIN: --fail open takes it, and {help}"));
        }
        if !is_there("ip") {
            let text = "ip: --fail open takes it; Debian has it in the package iproute2";
            tell(Kind::Problem, text.into());
        }
    }
    let may = getrlimit(Resource::Rtprio).current.is_none_or(|most| most > 0);
    if !may && !has_capability(CAP_SYS_NICE) {
        let text = "CAP_SYS_NICE: without it the link has no real-time priority, and sends a \
                    little late on a busy machine";
        tell(Kind::Warning, text.into());
    }
}
