//! The machine on which the program runs. It does not change the results, only the
//! time that they take, for which the manifest records it.

use std::fs;

use serde::{Deserialize, Serialize};

/// A machine, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the processor.
    pub processor: String,
    /// Cores that may be used.
    pub cores: usize,
    /// Name and version of the operating system.
    pub system: String,
}

impl Machine {
    /// The present machine, as far as it is known.
    pub fn this() -> Machine {
        let line_of = |path: &str, key: &str, separator: char| {
            let text = fs::read_to_string(path).ok()?;
            let line = text.lines().find(|line| line.starts_with(key))?;
            let (_, value) = line.split_once(separator)?;
            Some(value.trim().trim_matches('"').to_string())
        };
        let processor = line_of("/proc/cpuinfo", "model name", ':');
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let system = line_of("/etc/os-release", "PRETTY_NAME", '=');
        let parts = [system.unwrap_or_default(), std::env::consts::OS.into(), kernel.trim().into()];
        Machine {
            processor: processor.unwrap_or_else(|| std::env::consts::ARCH.into()),
            cores: cores(),
            system: parts
                .iter()
                .filter(|part| !part.is_empty())
                .cloned()
                .collect::<Vec<_>>()
                .join(" "),
        }
    }
}

/// Cores that this process may use; one if the system does not tell.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}
