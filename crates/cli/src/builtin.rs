//! The scenarios and gateways that are part of the program, with the files they
//! name, and the files of flows.

use std::io::{self, Cursor, Read};

use tidegate_sim::scenario::Scenario;
use tidegate_sim::scenario::file::{self, DataFiles};

/// A scenario or gateway that is part of the program.
pub(crate) struct Builtin {
    /// What it is called on the command line and in the names of folders.
    pub(crate) name: &'static str,
    /// The file.
    pub(crate) text: &'static str,
    /// The files that it names, and their content.
    pub(crate) data: &'static [(&'static str, &'static [u8])],
}

const WEB_OBJECTS: (&str, &[u8]) =
    ("../data/web-objects.csv", include_bytes!("../../../scenarios/data/web-objects.csv"));
const DOWNLOADS: (&str, &[u8]) =
    ("../data/downloads.csv", include_bytes!("../../../scenarios/data/downloads.csv"));
const CALL_G711: (&str, &[u8]) =
    ("../data/call-g711.csv", include_bytes!("../../../scenarios/data/call-g711.csv"));
const CALL_WHATSAPP: (&str, &[u8]) =
    ("../data/call-whatsapp.csv", include_bytes!("../../../scenarios/data/call-whatsapp.csv"));
const CALL_TELEGRAM: (&str, &[u8]) =
    ("../data/call-telegram.csv", include_bytes!("../../../scenarios/data/call-telegram.csv"));
const VIDEO: (&str, &[u8]) =
    ("../data/video-highway.csv", include_bytes!("../../../scenarios/data/video-highway.csv"));
const CALLS: (&str, &[u8]) =
    ("../flows/calls.toml", include_bytes!("../../../scenarios/flows/calls.toml"));
const VARIABLE_DOWN: (&str, &[u8]) =
    ("../data/variable.down", include_bytes!("../../../scenarios/data/variable.down"));
const VARIABLE_UP: (&str, &[u8]) =
    ("../data/variable.up", include_bytes!("../../../scenarios/data/variable.up"));

/// The first one is what `tidegate compare` runs without a file.
pub(crate) const SCENARIOS: &[Builtin] = &[
    Builtin {
        name: "household",
        text: include_str!("../../../scenarios/links/household.toml"),
        data: &[WEB_OBJECTS],
    },
    Builtin {
        name: "office",
        text: include_str!("../../../scenarios/links/office.toml"),
        data: &[WEB_OBJECTS, DOWNLOADS],
    },
    Builtin {
        name: "cellular",
        text: include_str!("../../../scenarios/links/cellular.toml"),
        data: &[WEB_OBJECTS, VARIABLE_DOWN, VARIABLE_UP],
    },
    Builtin {
        name: "wifi-54",
        text: include_str!("../../../scenarios/links/wifi-54.toml"),
        data: &[],
    },
    Builtin {
        name: "wifi-ac",
        text: include_str!("../../../scenarios/links/wifi-ac.toml"),
        data: &[],
    },
    Builtin {
        name: "wifi-slow",
        text: include_str!("../../../scenarios/links/wifi-slow.toml"),
        data: &[],
    },
    Builtin {
        name: "calls",
        text: include_str!("../../../scenarios/links/calls.toml"),
        data: &[WEB_OBJECTS, CALL_G711, CALL_WHATSAPP, CALL_TELEGRAM, VIDEO, CALLS],
    },
    Builtin {
        name: "dumbbell",
        text: include_str!("../../../scenarios/papers/EFD/dumbbell.toml"),
        data: &[],
    },
    Builtin {
        name: "dumbbell-overload",
        text: include_str!("../../../scenarios/papers/EFD/dumbbell-overload.toml"),
        data: &[],
    },
    Builtin {
        name: "dumbbell-long-transfers",
        text: include_str!("../../../scenarios/papers/EFD/dumbbell-long-transfers.toml"),
        data: &[],
    },
    Builtin {
        name: "call",
        text: include_str!("../../../scenarios/papers/EFD/call.toml"),
        data: &[],
    },
];

/// Files of flows that are part of the program: name and text.
pub(crate) const FLOWS: &[(&str, &str)] = &[
    ("home-10mbit", include_str!("../../../scenarios/flows/home-10mbit.toml")),
    ("calls", include_str!("../../../scenarios/flows/calls.toml")),
    ("papers-be", include_str!("../../../scenarios/flows/papers-be.toml")),
];

/// Files of gateways; the first one is what `tidegate requests compare` runs without a file.
pub(crate) const GATEWAYS: &[Builtin] = &[Builtin {
    name: "school",
    text: include_str!("../../../scenarios/gateways/school.toml"),
    data: &[
        WEB_OBJECTS,
        ("../data/page-loads.csv", include_bytes!("../../../scenarios/data/page-loads.csv")),
    ],
}];

/// The one of this name among `builtins`.
pub(crate) fn find(builtins: &'static [Builtin], name: &str) -> Option<&'static Builtin> {
    builtins.iter().find(|builtin| builtin.name == name)
}

/// All names of `builtins`, for messages.
pub(crate) fn names(builtins: &[Builtin]) -> String {
    match builtins {
        [only] => format!("'{}'", only.name),
        _ => {
            let names: Vec<_> = builtins.iter().map(|builtin| builtin.name).collect();
            format!("one of {}", names.join(", "))
        }
    }
}

impl Builtin {
    /// The scenario itself.
    pub(crate) fn parse(&self) -> Scenario {
        file::parse(self.name, self.text, &Embedded(self.data))
            .expect("every built-in scenario is parsed by a test")
    }
}

/// Files that are part of the program.
pub(crate) struct Embedded(pub(crate) &'static [(&'static str, &'static [u8])]);

impl DataFiles for Embedded {
    fn open(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        let (_, content) = found.ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Cursor::new(*content)))
    }
}

#[cfg(test)]
mod tests {
    use tidegate_sim::scenario::file::gateway;

    use super::*;

    #[test]
    fn every_builtin_scenario_is_right() {
        for scenario in SCENARIOS {
            let parsed = file::parse(scenario.name, scenario.text, &Embedded(scenario.data));
            parsed.unwrap_or_else(|error| panic!("{error}"));
        }
    }

    #[test]
    fn every_builtin_gateway_is_right() {
        for it in GATEWAYS {
            let parsed = gateway::parse(it.name, it.text, &Embedded(it.data));
            parsed.unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
