//! The cases: a base and what differs from it, and links with measured traffic.

use tidegate_sim::scenario::Scenario;
use tidegate_sim::scenario::file::ScenarioError;

use super::variant::{self, BASE, Change};

/// One link with its traffic.
pub(crate) struct Case {
    pub(crate) name: String,
    /// Under which heading it stands.
    pub(crate) group: &'static str,
    pub(crate) scenario: Scenario,
}

/// What differs from the base: a name, and texts with what replaces them.
type Variant = (&'static str, &'static [Change<'static>]);

const VARIANTS: [Variant; 9] = [
    ("base: load 50%, 300 packets, 40 ms", &[]),
    ("load 20%", &[("\"5 Mbit/s\"", "\"2 Mbit/s\"")]),
    ("load 80%", &[("\"5 Mbit/s\"", "\"8 Mbit/s\"")]),
    ("load 120%", &[("\"5 Mbit/s\"", "\"12 Mbit/s\"")]),
    ("buffer 50 packets", &[("\"300 packets\"", "\"50 packets\"")]),
    ("buffer 1 000 packets", &[("\"300 packets\"", "\"1000 packets\"")]),
    ("round trip 10 ms", &[("\"6667 us\"", "\"1667 us\"")]),
    ("round trip 200 ms", &[("\"6667 us\"", "\"33333 us\"")]),
    ("with ECN", &[("profile = \"today\"", "profile = \"today\"\necn = true")]),
];

/// Name, heading and file of links with measured traffic.
const MEASURED: [(&str, &str); 4] = [
    ("household (recorded pages over HTTP/2)", "links/household.toml"),
    ("office (recorded pages over HTTP/2, measured downloads)", "links/office.toml"),
    ("cellular (measured capacity and Web objects)", "links/cellular.toml"),
    ("recorded page load (capture)", "survey/capture.toml"),
];

pub(crate) const TODAY: &str = "Today's TCP (CUBIC and what else Linux does by default)";
pub(crate) const MIX: &str = "A mix of senders (CUBIC 36, BBR 22)";
pub(crate) const BBR: &str = "Today's TCP with BBR";
pub(crate) const PAPERS: &str = "The papers' TCP (NewReno, initial window 2)";
pub(crate) const REAL: &str = "Measured traffic and links, today's TCP";

/// Senders, and their profile.
const SENDERS: [(&str, &str); 4] =
    [(TODAY, "today"), (MIX, "mix"), (BBR, "today-bbr"), (PAPERS, "papers")];

/// Every case.
pub(crate) fn all() -> Result<Vec<Case>, ScenarioError> {
    let mut cases = Vec::new();
    for (group, profile) in SENDERS {
        for (name, changes) in VARIANTS {
            // The papers' TCP has no ECN, and BBR does not answer it.
            if group != TODAY && name == "with ECN" {
                continue;
            }
            let profile = format!("profile = \"{profile}\"");
            let changes = [changes, &[("profile = \"today\"", &profile)]].concat();
            cases.push(Case { name: name.into(), group, scenario: variant::of(BASE, &changes)? });
        }
    }
    for (name, file) in MEASURED {
        cases.push(Case { name: name.into(), group: REAL, scenario: variant::of(file, &[])? });
    }
    Ok(cases)
}
