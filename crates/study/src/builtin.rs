//! The scenarios, gateways and flows that users know by a name, on the command line and in
//! Python.

use tidegate_files::expectation;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::scenario::file::{self, DataFiles, ScenarioError, gateway};

use crate::data::Ledger;
use crate::shipped::{self, Beside};

/// A file that is built in.
#[derive(Debug)]
pub struct Builtin {
    /// Its name for users, and in the names of folders.
    pub name: &'static str,
    /// Its path among the shipped files.
    pub path: &'static str,
}

/// Scenarios. The first one is what `tidegate compare` runs without a file.
pub const SCENARIOS: &[Builtin] = &[
    Builtin { name: "household", path: "links/household.toml" },
    Builtin { name: "office", path: "links/office.toml" },
    Builtin { name: "evening", path: "links/evening.toml" },
    Builtin { name: "cellular", path: "links/cellular.toml" },
    Builtin { name: "wifi-54", path: "links/wifi-54.toml" },
    Builtin { name: "wifi-ac", path: "links/wifi-ac.toml" },
    Builtin { name: "wifi-slow", path: "links/wifi-slow.toml" },
    Builtin { name: "calls", path: "links/calls.toml" },
    Builtin { name: "marked", path: "links/marked.toml" },
    Builtin { name: "dumbbell", path: "papers/EFD/dumbbell.toml" },
    Builtin { name: "dumbbell-overload", path: "papers/EFD/dumbbell-overload.toml" },
    Builtin { name: "dumbbell-long-transfers", path: "papers/EFD/dumbbell-long-transfers.toml" },
    Builtin { name: "call", path: "papers/EFD/call.toml" },
];

/// Files of flows.
pub const FLOWS: &[Builtin] = &[
    Builtin { name: "home-10mbit", path: "flows/home-10mbit.toml" },
    Builtin { name: "calls", path: "flows/calls.toml" },
    Builtin { name: "papers-be", path: "flows/papers-be.toml" },
];

/// Files of gateways; the first one is what `tidegate requests compare` runs without a file.
pub const GATEWAYS: &[Builtin] = &[
    Builtin { name: "school", path: "gateways/school.toml" },
    Builtin { name: "rivals", path: "gateways/rivals.toml" },
    Builtin { name: "shared-connections", path: "gateways/shared-connections.toml" },
    Builtin { name: "hidden", path: "gateways/hidden.toml" },
    Builtin { name: "equal", path: "gateways/equal.toml" },
    Builtin { name: "failing", path: "gateways/failing.toml" },
    Builtin { name: "unfilled", path: "gateways/unfilled.toml" },
    Builtin { name: "viewers", path: "gateways/viewers.toml" },
    Builtin { name: "silent", path: "gateways/silent.toml" },
    Builtin { name: "hostile", path: "gateways/hostile.toml" },
    Builtin { name: "hostile-full", path: "gateways/hostile-full.toml" },
    Builtin { name: "unfilled-2-mbit", path: "gateways/unfilled-2-mbit.toml" },
    Builtin { name: "unfilled-1-gbit", path: "gateways/unfilled-1-gbit.toml" },
    Builtin { name: "equal-15-kb-80", path: "gateways/equal-15-kb-80.toml" },
    Builtin { name: "equal-15-kb-90", path: "gateways/equal-15-kb-90.toml" },
    Builtin { name: "equal-28-kb-80", path: "gateways/equal-28-kb-80.toml" },
    Builtin { name: "equal-100-kb-80", path: "gateways/equal-100-kb-80.toml" },
    Builtin { name: "equal-100-kb-90", path: "gateways/equal-100-kb-90.toml" },
    Builtin { name: "equal-500-kb-80", path: "gateways/equal-500-kb-80.toml" },
    Builtin { name: "equal-500-kb-90", path: "gateways/equal-500-kb-90.toml" },
    Builtin { name: "lognormal", path: "gateways/lognormal.toml" },
    Builtin { name: "pareto", path: "gateways/pareto.toml" },
    Builtin { name: "school-equal", path: "gateways/school-equal.toml" },
    Builtin { name: "viewers-and-pupils", path: "gateways/viewers-and-pupils.toml" },
    Builtin { name: "downloads", path: "gateways/downloads.toml" },
];

/// The file of this name among `builtins`.
#[must_use]
pub fn find(builtins: &'static [Builtin], name: &str) -> Option<&'static Builtin> {
    builtins.iter().find(|builtin| builtin.name == name)
}

/// What was expected in place of `name`: the nearest name of `builtins`, or all of them.
#[must_use]
pub fn expected(name: &str, builtins: &'static [Builtin]) -> String {
    expectation(name, builtins.iter().map(|builtin| builtin.name))
}

impl Builtin {
    /// The file.
    ///
    /// # Panics
    /// If it is missing, which a test denies.
    #[must_use]
    pub fn text(&self) -> &'static str {
        tidegate_scenarios::text(self.path).expect("a test reads every built-in file")
    }

    /// The scenario itself.
    #[must_use]
    pub fn scenario(&self) -> Scenario {
        shipped::scenario(self.path)
    }

    /// The text of a scenario in a form that runs from any folder.
    ///
    /// # Panics
    /// If it is no scenario, which a test of all scenarios denies.
    #[must_use]
    pub fn portable(&self) -> String {
        self.portable_as(|files| file::parse(self.name, self.text(), files))
    }

    /// The text of a gateway in a form that runs from any folder.
    ///
    /// # Panics
    /// If it is no gateway, which a test of all gateways denies.
    #[must_use]
    pub fn portable_gateway(&self) -> String {
        self.portable_as(|files| gateway::parse(self.name, self.text(), files))
    }

    /// Its text, with what `parse` reads beside it under names that are good anywhere.
    fn portable_as<T>(
        &self,
        parse: impl FnOnce(&dyn DataFiles) -> Result<T, ScenarioError>,
    ) -> String {
        let files = Beside(self.path);
        let ledger = Ledger::new(&files, None);
        if let Err(error) = parse(&ledger) {
            panic!("{error}, which a test of all shipped files denies");
        }
        let names: Vec<String> = ledger.into_seen().into_iter().map(|file| file.name).collect();
        shipped::portable(self.path, &names)
    }
}

#[cfg(test)]
mod tests {
    use tidegate_sim::scenario::file::{flows, gateway};

    use super::*;

    #[test]
    fn every_builtin_file_is_right() {
        SCENARIOS.iter().for_each(|it| drop(it.scenario()));
        for it in FLOWS {
            flows::parse(it.name, it.text()).unwrap_or_else(|error| panic!("{error}"));
        }
        for it in GATEWAYS {
            let parsed = gateway::parse(it.name, it.text(), &Beside(it.path));
            parsed.unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
