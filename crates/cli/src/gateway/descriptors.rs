//! How many connections this process may have.
//!
//! Shells and service managers permit 1 024 descriptors by default, for the sake of old
//! programs that use `select`, and far more to whoever asks.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tidegate_gateway::Config;

/// A client's connection and one to its server.
const OF_A_CONNECTION: u64 = 2;
/// Listeners, timers, logs, questions for names, and the connections of the admin port.
const OTHERS: u64 = 200;

/// Takes all that are permitted. Returns what to say if they are too few for what the file
/// permits.
pub(crate) fn take(config: &Config) -> Option<String> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // It never fails to set what is permitted; if it did, there would be fewer.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let there_are = getrlimit(Resource::Nofile).current?;
    let most = there_are.saturating_sub(OTHERS) / OF_A_CONNECTION;
    let limit = config.limits.connections;
    (most < limit.into()).then(|| {
        format!(
            "{there_are} descriptors are enough for {most} connections, and limits.connections \
             is {limit}; permit more (LimitNOFILE= of systemd, ulimit -n) or lower it"
        )
    })
}
