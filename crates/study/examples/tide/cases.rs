//! The cases: loads, links drawn by chance, what papers measured, Wi-Fi, links with
//! measured traffic, situations, attackers, and `tide` with other credits.

use tidegate_core::discipline::fq_codel::{self, FqCodel};
use tidegate_core::discipline::tide::{self, Tide};
use tidegate_core::entry::{Entry, Place};
use tidegate_core::setting::Settings;
use tidegate_core::{Bytes, Span};
use tidegate_sim::scenario::file::ScenarioError;
use tidegate_sim::scenario::{ChoiceError, DisciplineChoice, Scenario};

use super::DISCIPLINES;
use super::variant::{self, BASE, Change};
use super::{attacks, chance};

/// One link with its traffic.
pub(crate) struct Case {
    pub(crate) group: &'static str,
    pub(crate) name: String,
    pub(crate) scenario: Scenario,
    pub(crate) disciplines: Vec<String>,
    /// How many times the seeds that were asked for.
    pub(crate) repeats: u64,
}

impl Case {
    pub(crate) fn new(group: &'static str, name: impl Into<String>, scenario: Scenario) -> Case {
        let probes = PROBES.into_iter().map(|(name, _)| name);
        let changed_rivals = RIVAL_PROBES.into_iter().map(|(_, name, _)| name);
        let all = DISCIPLINES.into_iter().chain(probes).chain(changed_rivals);
        let disciplines = all.map(String::from).collect();
        Case { group, name: name.into(), scenario, disciplines, repeats: 1 }
    }

    /// The same with twice the seeds: for what pages quote one by one.
    pub(crate) fn twice(self) -> Case {
        Case { repeats: 2, ..self }
    }

    /// The same, but no longer than this, with a part of it for warming up.
    fn within(mut self, seconds: u64, warm_up: u64) -> Case {
        let [duration, warm_up] = [seconds, warm_up].map(Span::seconds);
        self.scenario.duration = self.scenario.duration.min(duration);
        self.scenario.warm_up = warm_up;
        self
    }
}

pub(crate) const LOADS: &str = "Loads";
pub(crate) const CHANCE: &str = "Links by chance";
const PAPERS: &str = "The papers' experiments";
const WIFI: &str = "Wi-Fi";
const LINKS: &str = "Measured traffic and links";
const SITUATIONS: &str = "Situations";
pub(crate) const ATTACKS: &str = "Attacks";
pub(crate) const CREDITS: &str = "Credits";

/// After the nine, each case has `tide` changed in one way: fair to hosts, without credit,
/// with the largest, with a CoDel that leaves one packet alone, or everything, without
/// memory, and with FQ-CoDel's rule for a full buffer; and in two ways at once, or in four,
/// which is near to FQ-CoDel. With each stands the cause of a loss that this change takes
/// away.
pub(crate) const PROBES: [(&str, &str); 11] = [
    (FAIR_TO_HOSTS, "hosts"),
    ("tide:credit=0B", "credit"),
    ("tide:credit=300kB", "end of the credit"),
    (LOW_FLOOR.name, "floor"),
    (NO_CODEL.name, "CoDel"),
    (NO_MEMORY.name, "memory"),
    (NO_CREDIT_AND_LOW_FLOOR.name, "credit and floor"),
    (FATTEST_LOSES.name, "who gives way"),
    (ALMOST_FQ_CODEL.name, "several at once"),
    (FATTEST_LOSES_AND_NO_MEMORY.name, "memory and who gives way"),
    (FATTEST_LOSES_AND_NO_TOLL.name, "toll and who gives way"),
];
/// A rival changed in one way or two, and the cause of a loss that is not there beside it.
pub(crate) const RIVAL_PROBES: [(&str, &str, &str); 5] = [
    ("cake", "cake:isolation=flows", "hosts of CAKE"),
    ("cake", "cake:rtt=10s", "COBALT"),
    ("fq-codel", "fq-codel:form=rfc", "Linux's FQ-CoDel"),
    ("fq-codel", FQ_CODEL_SPARES_LAST.name, "last packets"),
    ("fq-codel", FQ_CODEL_SPARES_LAST_AND_IDLE_LAST.name, "idle first and last packets"),
];
pub(crate) const FAIR_TO_HOSTS: &str = "tide:hosts=on";

/// Those that nobody can choose.
const LOW_FLOOR: Entry = Entry {
    name: "tide:floor=1514B",
    build: |settings, place, seed| Box::new(plain(settings, place, seed).with_floor(PACKET)),
    ..tide::ENTRY
};
const NO_CODEL: Entry = Entry {
    name: "tide:floor=none",
    build: |settings, place, seed| {
        Box::new(plain(settings, place, seed).with_floor(Bytes(u64::MAX)))
    },
    ..tide::ENTRY
};
const NO_MEMORY: Entry = Entry {
    name: "tide:memory=none",
    build: |settings, place, seed| Box::new(plain(settings, place, seed).without_memory()),
    ..tide::ENTRY
};
const NO_CREDIT_AND_LOW_FLOOR: Entry = Entry {
    name: "tide:credit=0B,floor=1514B",
    build: |_, place, seed| Box::new(Tide::new(Bytes::ZERO, place, seed).with_floor(PACKET)),
    ..tide::ENTRY
};
const FATTEST_LOSES: Entry = Entry {
    name: "tide:losses=fattest",
    build: |settings, place, seed| {
        Box::new(plain(settings, place, seed).with_losses_of_the_fattest())
    },
    ..tide::ENTRY
};
const ALMOST_FQ_CODEL: Entry = Entry {
    name: "tide:credit=0B,floor=1514B,memory=none,losses=fattest",
    build: |_, place, seed| {
        let tide = Tide::new(Bytes::ZERO, place, seed).with_floor(PACKET);
        Box::new(tide.without_memory().with_losses_of_the_fattest())
    },
    ..tide::ENTRY
};
const FATTEST_LOSES_AND_NO_MEMORY: Entry = Entry {
    name: "tide:memory=none,losses=fattest",
    build: |settings, place, seed| {
        let tide = plain(settings, place, seed);
        Box::new(tide.without_memory().with_losses_of_the_fattest())
    },
    ..tide::ENTRY
};
const FATTEST_LOSES_AND_NO_TOLL: Entry = Entry {
    name: "tide:toll=none,losses=fattest",
    build: |settings, place, seed| {
        let tide = plain(settings, place, seed);
        Box::new(tide.without_toll().with_losses_of_the_fattest())
    },
    ..tide::ENTRY
};
const FQ_CODEL_SPARES_LAST: Entry = Entry {
    name: "fq-codel:losses=longer",
    build: |settings, place, seed| {
        Box::new(FqCodel::in_place(settings, place, seed).with_losses_that_spare_the_last())
    },
    ..fq_codel::ENTRY
};
const FQ_CODEL_SPARES_LAST_AND_IDLE_LAST: Entry = Entry {
    name: "fq-codel:losses=longer,idle=last",
    build: |settings, place, seed| {
        let fq_codel = FqCodel::in_place(settings, place, seed);
        Box::new(fq_codel.with_losses_that_spare_the_last().with_idle_queues_last())
    },
    ..fq_codel::ENTRY
};
static UNLISTED: [Entry; 10] = [
    LOW_FLOOR,
    NO_CODEL,
    NO_MEMORY,
    NO_CREDIT_AND_LOW_FLOOR,
    FATTEST_LOSES,
    ALMOST_FQ_CODEL,
    FATTEST_LOSES_AND_NO_MEMORY,
    FATTEST_LOSES_AND_NO_TOLL,
    FQ_CODEL_SPARES_LAST,
    FQ_CODEL_SPARES_LAST_AND_IDLE_LAST,
];

const PACKET: Bytes = Bytes(1_514);

fn plain(settings: &Settings, place: Place, seed: u64) -> Tide {
    Tide::new(settings.bytes("credit"), place, seed)
}

/// What a name of a case's disciplines stands for.
pub(crate) fn choice(name: &str) -> Result<DisciplineChoice, ChoiceError> {
    let unlisted = UNLISTED.iter().find(|entry| entry.name == name);
    unlisted.map_or_else(|| name.parse(), |entry| Ok(DisciplineChoice::with_defaults(entry)))
}

/// Short transfers offer this part of the rate, in percent.
pub(crate) const LOAD_PERCENTS: [u32; 6] = [20, 50, 80, 100, 120, 150];

/// The load at which credits are compared: everything depends on who waits.
pub(crate) const CREDITS_LOAD: u32 = 120;
pub(crate) const CREDIT_BYTES: [u32; 7] = [0, 7_500, 15_000, 30_280, 60_000, 150_000, 300_000];

/// A file, what differs from it, a name, and how long to run and to warm up, in seconds,
/// where that is less than in the file.
type Shorter = (&'static str, &'static [Change<'static>], &'static str, Option<(u64, u64)>);

/// The claims that have these runs are in `docs/reproduction`.
const FROM_PAPERS: [Shorter; 8] = [
    ("papers/EFD/dumbbell.toml", &[], "EFD-2 to 6: 8 Mbit/s", Some((200, 20))),
    ("papers/EFD/dumbbell-overload.toml", &[], "EFD-2 to 5: 15 Mbit/s", Some((200, 20))),
    ("papers/EFD/dumbbell-long-transfers.toml", &[], "EFD-5: 15 Mbit/s, long", Some((200, 20))),
    ("papers/EFD/call.toml", &[], "EFD-7: a call of 64 kbit/s", Some((200, 20))),
    (
        "papers/EFD/call.toml",
        &[("64 kbit/s", "500 kbit/s")],
        "EFD-7: a call of 500 kbit/s",
        Some((200, 20)),
    ),
    ("papers/LAS/web.toml", &[], "LAS-4, LAS-5: load 70%", Some((900, 300))),
    (
        "papers/LAS/web.toml",
        &[("between_sessions = \"8 s\"", "between_sessions = \"6222 ms\"")],
        "LAS-4: load 90%",
        Some((900, 300)),
    ),
    ("papers/LAS/ftp.toml", &[], "LAS-6: a long transfer", Some((1_200, 600))),
];

/// Cells. `mixed` of the papers is also run with turns by airtime, each station with a
/// queue of its own.
const CELLS: [Shorter; 7] = [
    ("links/wifi-54.toml", &[], "54 Mbit/s, 5 uploads, 5 downloads", Some((30, 5))),
    ("papers/WLAN/long-lived-today.toml", &[], "the same with today's TCP", Some((30, 5))),
    ("papers/WLAN/mixed.toml", &[], "54 Mbit/s, short and long", Some((60, 5))),
    (
        "papers/WLAN/mixed.toml",
        &[("stations = 10\n", "stations = 10\nairtime_fairness = true\n")],
        "54 Mbit/s, short and long, by airtime",
        Some((60, 5)),
    ),
    ("links/wifi-ac.toml", &[], "802.11ac", Some((15, 5))),
    (
        "links/wifi-ac.toml",
        &[("stations = 11\n", "stations = 11\nairtime_fairness = true\n")],
        "802.11ac, by airtime",
        Some((15, 5)),
    ),
    ("links/wifi-slow.toml", &[], "802.11ac, a slow station, by airtime", Some((15, 5))),
];

const MEASURED: [Shorter; 5] = [
    ("links/household.toml", &[], "household", None),
    ("links/office.toml", &[], "office", None),
    ("links/cellular.toml", &[], "cellular", None),
    ("links/marked.toml", &[], "marked", None),
    ("survey/capture.toml", &[], "recorded page load", None),
];

/// Without `lte`, which is a part of `cellular`.
const OF_PEOPLE: [Shorter; 11] = [
    ("situations/cafe-wifi.toml", &[], "café", None),
    ("situations/call.toml", &[], "recorded call", None),
    ("situations/dsl-uplink.toml", &[], "DSL", None),
    ("situations/gamer.toml", &[], "game", None),
    ("situations/home.toml", &[], "home", None),
    ("situations/idle.toml", &[], "idle link", None),
    ("situations/office.toml", &[], "office of 40", None),
    ("situations/satellite.toml", &[], "satellite", None),
    ("situations/school.toml", &[], "school", None),
    ("situations/server.toml", &[], "server", None),
    ("situations/video.toml", &[], "video", None),
];

/// Every case, in the order of the pages.
pub(crate) fn all() -> Result<Vec<Case>, ScenarioError> {
    let mut cases = Vec::new();
    for percent in LOAD_PERCENTS {
        cases.push(Case::new(LOADS, load_name(percent), loaded(percent)?).twice().within(200, 20));
    }
    cases.extend(chance::all()?);
    let listed: [(&'static str, &'static [Shorter]); 4] =
        [(PAPERS, &FROM_PAPERS), (WIFI, &CELLS), (LINKS, &MEASURED), (SITUATIONS, &OF_PEOPLE)];
    for (group, files) in listed {
        for (file, changes, name, shorter) in files {
            let case = Case::new(group, *name, variant::of(file, changes)?);
            cases.push(match shorter {
                Some((seconds, warm_up)) => case.within(*seconds, *warm_up),
                None => case,
            });
        }
    }
    cases.extend(attacks::all()?);
    let credits = Case::new(CREDITS, load_name(CREDITS_LOAD), loaded(CREDITS_LOAD)?);
    let disciplines = CREDIT_BYTES.map(|bytes| format!("tide:credit={bytes}B")).into();
    let credits = Case { disciplines, ..credits };
    cases.push(credits.twice().within(200, 20));
    Ok(cases)
}

/// The name of the case with this load.
pub(crate) fn load_name(percent: u32) -> String {
    format!("load {percent}%")
}

/// The base case, with short transfers that offer so many percent of its 10 Mbit/s.
fn loaded(percent: u32) -> Result<Scenario, ScenarioError> {
    let load = format!("load = \"{} kbit/s\"", percent * 100);
    variant::of(BASE, &[("load = \"5 Mbit/s\"", &load)])
}
