//! The compiled programs, one for each discipline that has one.
//!
//! `make bpf` compiles them from `bpf/` again. A test compares what is here with its source,
//! where the compiler is the one that made it.

use tidegate_core::setting::Settings;

use crate::contracts;

/// A discipline as a program of BPF.
#[derive(Debug)]
pub struct Program {
    /// The discipline's name in the registry.
    pub discipline: &'static str,
    /// The program, in ELF.
    pub object: &'static [u8],
    /// The levels of the discipline, highest first; none if it has no levels.
    pub levels: &'static [&'static str],
}

const LEVELS: &[&str] = &["high", "low"];
const KINDS: &[&str] = &["real time", "best effort"];

/// All programs, in the order of the registry.
pub const PROGRAMS: &[Program] = &[
    Program { discipline: "fifo", object: include_bytes!("../objects/fifo.o"), levels: &[] },
    Program { discipline: "scfq", object: include_bytes!("../objects/scfq.o"), levels: &[] },
    Program { discipline: "las", object: include_bytes!("../objects/las.o"), levels: &[] },
    Program { discipline: "lars", object: include_bytes!("../objects/lars.o"), levels: &[] },
    Program { discipline: "run2c", object: include_bytes!("../objects/run2c.o"), levels: LEVELS },
    Program { discipline: "efd", object: include_bytes!("../objects/efd.o"), levels: LEVELS },
    Program {
        discipline: "deadlines",
        object: include_bytes!("../objects/deadlines.o"),
        levels: KINDS,
    },
    Program { discipline: "tide", object: include_bytes!("../objects/tide.o"), levels: &[] },
];

/// The program of a discipline.
#[must_use]
pub fn find(discipline: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| program.discipline == discipline)
}

/// The setting of a discipline that its program cannot have, if there is one: its name, and
/// what it has to be.
#[must_use]
pub fn unsupported(discipline: &str, settings: &Settings) -> Option<(&'static str, String)> {
    match discipline {
        "deadlines" => contracts::words(settings).err(),
        "efd" => {
            let is_other = |order: &&str| settings.choice(order) != "fifo";
            ["high", "low"].into_iter().find(is_other).map(|order| (order, "'fifo'".into()))
        }
        "tide" => settings.switch("hosts").then(|| ("hosts", "'off'".into())),
        _ => None,
    }
}
