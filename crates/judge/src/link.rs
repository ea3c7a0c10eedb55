//! The live link on a host of a bed, between its interfaces `outside` and `inside`.
//!
//! It runs as its users have it: the threads that send go before all ordinary ones.

use tidegate_core::buffer::Limit;
use tidegate_core::framing::Framing;
use tidegate_core::{Bytes, Rate};
use tidegate_link::{Config, Form, Link, Queue, Running, priority};
use tidegate_sim::scenario::DisciplineChoice;

use crate::host::{Host, Missing};

/// More than any queue of a bed holds.
const MEMORY: Bytes = Bytes(64_000_000);
/// The seed of the link's hashes.
const SEED: u64 = 1;

/// A queue whose rate is that of IP packets, as in the simulator.
#[must_use]
pub fn queue(choice: DisciplineChoice, limit: Limit, rate: Rate) -> Queue {
    let DisciplineChoice { entry, settings, .. } = choice;
    Queue { entry, settings, limit, rate, framing: Framing::RAW }
}

/// Starts a link on this host.
///
/// # Errors
/// This machine does not permit it.
pub fn start(host: &Host, down: Queue, up: Queue) -> Result<Running, Missing> {
    let form = Form::Between { inside: "inside".into(), outside: "outside".into() };
    let config = Config { form, down, up, memory: MEMORY, seed: SEED };
    host.run(move || {
        let link = Link::open(config).map_err(|error| Missing(error.to_string()))?;
        // Without the right to it, a busy machine makes packets late.
        let raised = priority::raise();
        let started = link.start().map_err(|error| Missing(error.to_string()));
        if raised.is_ok() {
            priority::lower().map_err(|error| Missing(error.to_string()))?;
        }
        started
    })
}
