//! How many connections this process may have.
//!
//! Shells and service managers permit 1 024 descriptors by default, for the sake of old
//! programs that use `select`, and far more to whoever asks.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tidegate_gateway::{Config, machine};

/// Takes all that are permitted. Returns what to say if they are too few for what the file
/// permits.
pub(crate) fn take(config: &Config) -> Option<String> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // It never fails to set what is permitted; if it did, there would be fewer.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let there_are = getrlimit(Resource::Nofile).current?;
    let needed = machine::descriptors(config);
    (there_are < needed).then(|| {
        format!(
            "limits.connections {} takes {needed} descriptors, and {there_are} are permitted; \
             permit more (LimitNOFILE= of systemd, ulimit -n) or lower it",
            config.limits.connections
        )
    })
}
