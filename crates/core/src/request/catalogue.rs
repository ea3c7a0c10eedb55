//! The one list of request schedulers.
//!
//! Each describes itself like a discipline, in the vocabulary of
//! [`setting`](crate::setting).

use std::num::NonZeroU32;

use super::window::MILLION;
use super::{
    ClassOrder, Config, ReadGateConfig, Scheduler, UserOrder, WaitingLimits, WindowConfig,
    WindowMode,
};
use crate::setting::{Kind, Parameter, SettingError, Settings};
use crate::units::{Bytes, Rate, Span};

/// Every request scheduler, in the order in which they are shown.
pub const SCHEDULERS: &[Entry] = &[MSF, PAPER, DRR, FIFO];

/// One request scheduler: its name, its parameters and their meaning.
#[derive(Debug)]
pub struct Entry {
    /// Name in files and on the command line; also the name of its page.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// The meaning of settings that have been checked.
    pub config: fn(&Settings) -> Config,
}

/// The entry of the request scheduler with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    SCHEDULERS.iter().find(|entry| entry.name == name)
}

impl Entry {
    /// Reads `(parameter, value)` pairs in the form of a file; parameters that
    /// are not given have their defaults.
    ///
    /// # Errors
    /// A name that the scheduler does not have, or a value of the wrong type or out of range.
    pub fn settings(&'static self, given: &[(&str, &str)]) -> Result<Settings, SettingError> {
        Settings::read(self.name, self.parameters, given)
    }

    /// Builds the scheduler for a link of this `rate` and classes of these
    /// `weights`; the hash of its users depends on `seed`.
    ///
    /// # Errors
    /// As [`Entry::settings`].
    pub fn build(
        &'static self,
        given: &[(&str, &str)],
        rate: Rate,
        weights: &[NonZeroU32],
        seed: u64,
    ) -> Result<Scheduler, SettingError> {
        Ok(Scheduler::new((self.config)(&self.settings(given)?), rate, weights, seed))
    }
}

const MSF: Entry = Entry {
    name: "msf",
    summary: "least service first, for requests and for reading responses that have become long",
    source: "MSF section 3",
    parameters: &[
        SHARES,
        Parameter {
            help: "whether requests are released as the link has room, as long as fewer than \
                   `start` responses hold a place, or at once",
            kind: Kind::Choice(&[ROOM, FIXED, UNLIMITED]),
            default: ROOM,
            ..WINDOW
        },
        Parameter { help: "how many responses may hold a place in a fixed window", ..START },
        // A percentage point above MSF's: capacity that is not used while requests wait is lost.
        Parameter { default: "0.99", ..TARGET },
        DELAY_LIMIT,
        LONG_FROM,
        GRANT,
        FLOOR,
        WAITING,
        WAITING_PER_USER,
    ],
    config: |settings| Config {
        class_order: least_service(settings),
        user_order: UserOrder::LeastService,
        limits: limits(settings),
        window: WindowConfig {
            mode: mode(settings),
            start: settings.count(START.name),
            target_millionths: millionths(settings, &TARGET),
            // Only a controlled window has them.
            interval: Span::ZERO,
            growth_millionths: MILLION,
        },
        read_gate: Some(ReadGateConfig {
            long_from: settings.bytes(LONG_FROM.name),
            grant: settings.bytes(GRANT.name),
            floor_millionths: millionths(settings, &FLOOR),
            delay_limit: settings.span(DELAY_LIMIT.name),
        }),
    },
};

const PAPER: Entry = Entry {
    name: "paper",
    summary: "MSF-RS as in its paper: the class with the least service first, one window",
    source: "MSF section 3",
    parameters: &[SHARES, WINDOW, START, INTERVAL, TARGET, GROWTH, WAITING, WAITING_PER_USER],
    config: |settings| plain(settings, least_service(settings)),
};

const DRR: Entry = Entry {
    name: "drr",
    summary: "classes in turn, each until it has received a quantum times its weight",
    source: "Shreedhar 1996",
    parameters: &[QUANTUM, WINDOW, START, INTERVAL, TARGET, GROWTH, WAITING, WAITING_PER_USER],
    config: |settings| plain(settings, ClassOrder::Turns { quantum: settings.bytes(QUANTUM.name) }),
};

const FIFO: Entry = Entry {
    name: "fifo",
    summary: "requests in the order of their arrival; without a window, an ordinary gateway",
    source: "MSF section 4.1",
    parameters: &[
        Parameter { default: UNLIMITED, ..WINDOW },
        START,
        INTERVAL,
        TARGET,
        GROWTH,
        WAITING,
        WAITING_PER_USER,
    ],
    config: |settings| plain(settings, ClassOrder::Arrival),
};

const SHARES: Parameter = Parameter {
    name: "shares",
    help: "whether the weight applies to each active user of a class or to the whole class",
    kind: Kind::Choice(&[PER_USER, "class"]),
    default: PER_USER,
};

const PER_USER: &str = "user";

const QUANTUM: Parameter = Parameter {
    name: "quantum",
    help: "what a class of weight 1 receives in its turn, plus what is still outstanding then",
    kind: Kind::Bytes { least: Bytes(1), most: Bytes(1_000_000_000) },
    // About the mean response of MSF section 5.1.
    default: "30 kB",
};

const WINDOW: Parameter = Parameter {
    name: "window",
    help: "whether the number of outstanding responses follows the link's use, stays at the \
           start, or has no limit",
    kind: Kind::Choice(&[CONTROLLED, FIXED, UNLIMITED]),
    default: CONTROLLED,
};

const CONTROLLED: &str = "controlled";
const ROOM: &str = "room";
const FIXED: &str = "fixed";
const UNLIMITED: &str = "unlimited";

const START: Parameter = Parameter {
    name: "start",
    help: "how many responses may be outstanding at the start",
    kind: Kind::Count { least: 1, most: 1_000_000 },
    default: "1",
};

const INTERVAL: Parameter = Parameter {
    name: "interval",
    help: "time between two updates of the window (T)",
    kind: Kind::Span { least: Span::millis(100), most: Span::seconds(3_600) },
    default: "5 s",
};

const TARGET: Parameter = Parameter {
    name: "target",
    help: "target utilisation of the link (U+)",
    kind: Kind::Number { least: 0.1, most: 1.0 },
    default: "0.98",
};

const GROWTH: Parameter = Parameter {
    name: "growth",
    help: "the most that one update multiplies the window by (K)",
    kind: Kind::Number { least: 1.0, most: 100.0 },
    default: "2",
};

const DELAY_LIMIT: Parameter = Parameter {
    name: "delay_limit",
    help: "queueing delay of the path above which requests and grants slow down",
    kind: Kind::Span { least: Span::millis(1), most: Span::seconds(3_600) },
    default: "30 ms",
};

const LONG_FROM: Parameter = Parameter {
    name: "long_from",
    help: "a response that has received this much leaves the window and is read as capacity allows",
    kind: Kind::Bytes { least: Bytes(1), most: Bytes(1_000_000_000_000) },
    default: "16 kB",
};

const GRANT: Parameter = Parameter {
    name: "grant",
    help: "what a long response may read at a time, or what the link carries in 50 us if that is more",
    kind: Kind::Bytes { least: Bytes(1), most: Bytes(1_000_000_000) },
    default: "8 kB",
};

const FLOOR: Parameter = Parameter {
    name: "floor",
    help: "share of the link that long responses always have, the longest waiting first, and requests",
    kind: Kind::Number { least: 0.001, most: 1.0 },
    // It ignores the classes' shares, so it is small compared with them.
    default: "0.02",
};

const WAITING: Parameter = Parameter {
    name: "waiting",
    help: "how many requests may wait; further ones are refused",
    kind: Kind::Count { least: 1, most: 10_000_000 },
    default: "100000",
};

const WAITING_PER_USER: Parameter = Parameter {
    name: "waiting_per_user",
    help: "how many requests of one user may wait; further ones are refused",
    kind: Kind::Count { least: 1, most: 10_000_000 },
    default: "1000",
};

fn least_service(settings: &Settings) -> ClassOrder {
    ClassOrder::LeastService { per_user: settings.choice(SHARES.name) == PER_USER }
}

/// One line for each class, and a window.
fn plain(settings: &Settings, class_order: ClassOrder) -> Config {
    Config {
        class_order,
        user_order: UserOrder::Arrival,
        limits: limits(settings),
        window: window(settings),
        read_gate: None,
    }
}

fn limits(settings: &Settings) -> WaitingLimits {
    let [all, per_user] = [WAITING, WAITING_PER_USER].map(|limit| settings.count(limit.name));
    WaitingLimits { all, per_user }
}

fn window(settings: &Settings) -> WindowConfig {
    WindowConfig {
        mode: mode(settings),
        start: settings.count(START.name),
        interval: settings.span(INTERVAL.name),
        target_millionths: millionths(settings, &TARGET),
        growth_millionths: millionths(settings, &GROWTH),
    }
}

fn mode(settings: &Settings) -> WindowMode {
    match settings.choice(WINDOW.name) {
        CONTROLLED => WindowMode::Controlled,
        UNLIMITED => WindowMode::Unlimited,
        ROOM => WindowMode::Room,
        _ => WindowMode::Fixed,
    }
}

fn millionths(settings: &Settings, parameter: &Parameter) -> u64 {
    (settings.number(parameter.name) * MILLION as f64).round() as u64
}
