//! Senders who do not play fair, each beside the users of one link.
//!
//! All come from one pair of hosts, so that `tide` is also tried where it is fair to hosts. Each is worst for another part of a discipline: for
//! what it remembers of a flow, for how it tells flows apart, or for how it lets flows
//! begin.

use tidegate_sim::scenario::file::ScenarioError;

use super::cases::{ATTACKS, Case};
use super::variant;

/// The users, and nobody else.
const USERS: &str = "survey/attacked.toml";

/// Name of the case without an attacker.
pub(crate) const NOBODY: &str = "nobody";

/// One flow, or many of one transfer each: the name of the case, and the source's kind
/// and keys.
const ATTACKERS: [(&str, &str, &str); 8] = [
    ("12 Mbit/s in transfers of 29.2 kB", "transfers", "load = \"12 Mbit/s\"\nsizes = \"29200 B\""),
    ("7 Mbit/s in transfers of 29.2 kB", "transfers", "load = \"7 Mbit/s\"\nsizes = \"29200 B\""),
    ("7 Mbit/s in transfers of one packet", "transfers", "load = \"7 Mbit/s\"\nsizes = \"1400 B\""),
    ("20 endless transfers", "transfers", "count = 20\nsizes = \"endless\""),
    ("9 Mbit/s without a pause", "cbr", "rate = \"9 Mbit/s\"\npacket = \"1200 B\""),
    ("30 kB every 30 ms", "greedy", "curve = \"30 kB every 30 ms\"\npacket = \"1200 B\""),
    ("30 kB every 300 ms", "greedy", "curve = \"30 kB every 300 ms\"\npacket = \"1200 B\""),
    (
        "responses of 30 kB over one connection",
        "greedy",
        "curve = \"30 kB every 30 ms\"\npacket = \"1200 B\"\nburst = \"10 ms\"\n\
         spacing.uniform = { least = \"100 ms\", most = \"1 s\" }",
    ),
];

/// How many flows of 3 kB/s there are, each slower than what a discipline may let pass
/// as new again.
const TRICKLES: usize = 100;

/// The users without and with each attacker.
pub(crate) fn all() -> Result<Vec<Case>, ScenarioError> {
    let mut sources = vec![(NOBODY.to_owned(), String::new())];
    for (name, kind, keys) in ATTACKERS {
        sources.push((name.to_owned(), source(kind, "attacker", keys)));
    }
    let trickle = |number: usize| {
        let name = format!("attacker {number}");
        source("cbr", &name, "rate = \"24 kbit/s\"\npacket = \"300 B\"")
    };
    let trickles = (1..=TRICKLES).map(trickle).collect();
    sources.push((format!("{TRICKLES} flows of 3 kB/s"), trickles));
    let case = |(name, source): (String, String)| {
        Ok(Case::new(ATTACKS, name, variant::with(USERS, &[], &source)?))
    };
    sources.into_iter().map(case).collect()
}

/// A source from the fifth pair of hosts, in the words of scenario files.
fn source(kind: &str, name: &str, keys: &str) -> String {
    format!(
        "\n[[traffic.{kind}]]\nname = \"{name}\"\nfrom = \"sender5\"\nto = \"receiver5\"\n{keys}\n"
    )
}
