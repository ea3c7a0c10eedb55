//! Rules of the kernel's packet filter that hand connections to the gateway.
//!
//! They are one table of nftables of their own, so that nothing of the machine's other
//! rules is touched, and to undo them is to delete that table. Only connections of the
//! users of a class are taken, on their way through this machine: its own connections and
//! its own services never are. What rules cannot undo themselves, the routes that packets
//! take that keep their destination, is [`routes`].

use std::fmt::Write as _;

use ipnet::IpNet;

use crate::config::Config;
use crate::intercept::{Intercept, Mode, Quic};

/// The name of the table, in the family `inet`.
pub const TABLE: &str = "tidegate";

/// The names of the sets that count what clients receive besides, for IPv4 and IPv6.
pub(crate) const OTHERS: [&str; 2] = ["others4", "others6"];

/// The mark of packets for the gateway, and the number of the table of routes that they
/// take: any that nobody else on the machine has.
const MARK: u32 = 0x71de;

/// All rules, as a program for `nft -f`; `None` if the configuration intercepts nothing. With `owned` they vanish with the socket of whoever
/// sets them.
#[must_use]
pub fn ruleset(config: &Config, owned: bool) -> Option<String> {
    let intercept = config.intercept.as_ref()?;
    let flags = if owned { "    flags owner\n" } else { "" };
    let mut text = format!("table inet {TABLE} {{\n{flags}");
    let of = |is_v4: bool| {
        // Whoever would have to log in cannot, and goes on to the server.
        let open = config.classes.iter().filter(|class| class.names.is_none());
        let sources = open.flat_map(|class| &class.sources);
        let mut sources: Vec<_> =
            sources.copied().filter(|source| matches!(source, IpNet::V4(_)) == is_v4).collect();
        sources = IpNet::aggregate(&sources);
        sources
    };
    let families =
        [("ip", "users4", "ipv4_addr", of(true)), ("ip6", "users6", "ipv6_addr", of(false))];
    for (_, set, kind, sources) in &families {
        let elements: Vec<_> = sources.iter().map(ToString::to_string).collect();
        let _ = write!(text, "    set {set} {{\n        type {kind}\n        flags interval\n");
        if !elements.is_empty() {
            let _ = writeln!(text, "        elements = {{ {} }}", elements.join(", "));
        }
        text.push_str("    }\n");
    }
    let families = families.map(|(family, set, ..)| (family, format!("{family} saddr @{set}")));
    let served =
        families.into_iter().filter(|(family, _)| *family == "ip" || intercept.listen.is_ipv6());
    let families: Vec<_> = served.collect();
    take(&mut text, intercept, &families);
    match intercept.quic {
        Quic::Reject => reject_quic(&mut text, intercept, &families),
        Quic::Relay => relay_quic(&mut text, intercept, &families),
        Quic::Pass => {}
    }
    if let Some(interface) = config.interface.as_ref().filter(|_| intercept.count_others) {
        count_others(&mut text, interface);
    }
    text.push_str("}\n");
    Some(text)
}

/// The program for `nft -f` that removes all rules, whether or not there are any.
#[must_use]
pub fn removal() -> String {
    format!("table inet {TABLE}\n{}", deletion())
}

/// The program for `nft -f` that removes the rules that there are.
#[must_use]
pub fn deletion() -> String {
    format!("delete table inet {TABLE}\n")
}

/// The arguments of `ip` that hand packets with the mark to this machine itself, first to
/// set that up and then to undo it; nothing where the kernel rewrites all destinations.
#[must_use]
pub fn routes(config: &Config) -> Vec<(String, String)> {
    if !config.intercept.as_ref().is_some_and(Intercept::needs_routes) {
        return Vec::new();
    }
    let of = |family: &str| {
        let rule = format!("fwmark {MARK:#x} lookup {MARK}");
        let route = format!("local default dev lo table {MARK}");
        [
            (format!("{family} rule add {rule}"), format!("{family} rule del {rule}")),
            (format!("{family} route replace {route}"), format!("{family} route del {route}")),
        ]
    };
    ["-4", "-6"].into_iter().flat_map(of).collect()
}

/// The chain that takes connections.
fn take(text: &mut String, intercept: &Intercept, families: &[(&str, String)]) {
    let Intercept { listen, mode, .. } = intercept;
    let port = listen.port();
    let ports = format!("tcp dport {}", ports(intercept));
    let hook = match mode {
        Mode::Redirect => "type nat hook prerouting priority dstnat",
        Mode::Tproxy => "type filter hook prerouting priority mangle",
    };
    let _ = write!(text, "    chain take {{\n        {hook}; policy accept\n");
    // What is meant for this machine stays here.
    text.push_str("        fib daddr type local return\n");
    if *mode == Mode::Tproxy {
        let _ = writeln!(
            text,
            "        meta l4proto tcp socket transparent 1 meta mark set {MARK:#x} accept"
        );
    }
    for (family, users) in families {
        let verdict = match mode {
            Mode::Redirect => format!("redirect to :{port}"),
            Mode::Tproxy => hand_over(family, port),
        };
        let _ = writeln!(text, "        {users} {ports} {verdict}");
    }
    text.push_str("    }\n");
}

/// The chain that refuses QUIC, on the ports where HTTP and tunnels are.
fn reject_quic(text: &mut String, intercept: &Intercept, families: &[(&str, String)]) {
    text.push_str(
        "    chain quic {\n        type filter hook forward priority filter; policy accept\n",
    );
    for (_, users) in families {
        let _ = writeln!(
            text,
            "        {users} udp dport {} reject with icmpx port-unreachable",
            ports(intercept)
        );
    }
    text.push_str("    }\n");
}

/// The chain that hands QUIC over: to the socket that has this client and this server, if
/// there is one, or else to the one where all begin.
fn relay_quic(text: &mut String, intercept: &Intercept, families: &[(&str, String)]) {
    text.push_str(
        "    chain quic {\n        type filter hook prerouting priority mangle; policy accept\n        \
         fib daddr type local return\n",
    );
    for (family, users) in families {
        let verdict = hand_over(family, intercept.listen.port());
        let _ = writeln!(text, "        {users} udp dport {} {verdict}", ports(intercept));
    }
    text.push_str("    }\n");
}

/// Packets keep their destination, and a mark has them routed to this machine.
fn hand_over(family: &str, port: u16) -> String {
    format!("tproxy {family} to :{port} meta mark set {MARK:#x} accept")
}

/// All ports that are taken.
fn ports(intercept: &Intercept) -> String {
    let all = intercept.http.iter().chain(&intercept.tunnels);
    let all: Vec<_> = all.map(ToString::to_string).collect();
    format!("{{ {} }}", all.join(", "))
}

/// The sets and the chain that count what comes from the link for each client and is routed
/// to it. What is for this machine itself, and so for the gateway, is not among that.
fn count_others(text: &mut String, interface: &str) {
    let families = [
        ("ip", "ipv4_addr", "@users4", "ip daddr"),
        ("ip6", "ipv6_addr", "@users6", "ip6 daddr & ffff:ffff:ffff:ffff::"),
    ];
    for (set, (_, kind, ..)) in OTHERS.iter().zip(families) {
        // Whoever is silent for long is forgotten.
        let _ = write!(
            text,
            "    set {set} {{\n        type {kind}\n        size 65536\n        \
             flags dynamic,timeout\n        timeout 10m\n        counter\n    }}\n"
        );
    }
    text.push_str(
        "    chain others {\n        type filter hook forward priority filter; policy accept\n",
    );
    for (set, (family, _, users, user)) in OTHERS.iter().zip(families) {
        let _ = writeln!(
            text,
            "        iifname \"{interface}\" {family} daddr {users} update @{set} {{ {user} }}"
        );
    }
    text.push_str("    }\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;

    fn config(intercept: &str) -> Config {
        let text = format!(
            "[link]\nrate = \"20 Mbit/s\"\n{intercept}\n[[class]]\nname = \"a\"\nsources = \
             [\"10.1.0.0/24\", \"10.1.1.0/24\"]\n[[class]]\nname = \"b\"\nsources = \
             [\"10.1.0.7\", \"2001:db8::/64\"]"
        );
        file::parse("test.toml", &text).expect("it is correct")
    }

    #[test]
    fn rules_name_all_users_once() {
        let config = config("[intercept]\nlisten = \"[::]:3130\"\ntunnels = [443, 8443]");
        let expected = "\
table inet tidegate {
    set users4 {
        type ipv4_addr
        flags interval
        elements = { 10.1.0.0/23 }
    }
    set users6 {
        type ipv6_addr
        flags interval
        elements = { 2001:db8::/64 }
    }
    chain take {
        type nat hook prerouting priority dstnat; policy accept
        fib daddr type local return
        ip saddr @users4 tcp dport { 80, 443, 8443 } redirect to :3130
        ip6 saddr @users6 tcp dport { 80, 443, 8443 } redirect to :3130
    }
    chain quic {
        type filter hook forward priority filter; policy accept
        ip saddr @users4 udp dport { 80, 443, 8443 } reject with icmpx port-unreachable
        ip6 saddr @users6 udp dport { 80, 443, 8443 } reject with icmpx port-unreachable
    }
}
";
        assert_eq!(ruleset(&config, false).as_deref(), Some(expected));
        assert!(routes(&config).is_empty());
    }

    #[test]
    fn what_is_not_asked_for_has_no_rules() {
        assert_eq!(ruleset(&config(""), false), None);
        let lean = config("[intercept]\nlisten = \"0.0.0.0:3130\"\nquic = \"pass\"");
        let lean = ruleset(&lean, true).expect("it intercepts");
        assert!(lean.contains("flags owner"), "{lean}");
        assert!(!lean.contains("counter"), "{lean}");
        // Who listens for IPv4 alone takes nothing else.
        assert!(!lean.contains("udp") && !lean.contains("ip6 saddr"), "{lean}");
    }

    #[test]
    fn quic_is_handed_over_where_it_is_relayed() {
        let config = config("[intercept]\nlisten = \"[::]:3130\"\nquic = \"relay\"");
        let rules = ruleset(&config, false).expect("it intercepts");
        let expected = "\
    chain quic {
        type filter hook prerouting priority mangle; policy accept
        fib daddr type local return
        ip saddr @users4 udp dport { 80, 443 } tproxy ip to :3130 meta mark set 0x71de accept
        ip6 saddr @users6 udp dport { 80, 443 } tproxy ip6 to :3130 meta mark set 0x71de accept
    }
}
";
        assert!(rules.ends_with(expected), "{rules}");
        assert_eq!(routes(&config).len(), 4);
    }

    #[test]
    fn who_would_have_to_log_in_is_not_taken() {
        let mut config = config("[intercept]\nlisten = \"[::]:3130\"");
        config.classes[1].names = Some(crate::class::Names::All);
        let rules = ruleset(&config, false).expect("it intercepts");
        assert!(rules.contains("{ 10.1.0.0/23 }") && !rules.contains("2001:db8"), "{rules}");
    }

    #[test]
    fn what_is_routed_to_users_is_counted_for_each() {
        let text = "listen = \"[::]:3130\"\ncount_others = true\nquic = \"pass\"";
        let config = config(&format!("interface = \"eth0\"\n[intercept]\n{text}"));
        let rules = ruleset(&config, false).expect("it intercepts");
        let expected = "\
    set others4 {
        type ipv4_addr
        size 65536
        flags dynamic,timeout
        timeout 10m
        counter
    }
    set others6 {
        type ipv6_addr
        size 65536
        flags dynamic,timeout
        timeout 10m
        counter
    }
    chain others {
        type filter hook forward priority filter; policy accept
        iifname \"eth0\" ip daddr @users4 update @others4 { ip daddr }
        iifname \"eth0\" ip6 daddr @users6 update @others6 { ip6 daddr & ffff:ffff:ffff:ffff:: }
    }
}
";
        assert!(rules.ends_with(expected), "{rules}");
    }
}
