//! `tidegate measure`: the user's own link under load, with each queue in turn.
//!
//! `serve` is the other end, `run` measures, `undo` puts back what a `run` that was killed
//! has left, and `read` shows what files of Flent say. A run is made of rounds, a round of
//! one run for each queue; what they come to is decided as a simulated comparison is.

mod changes;
mod client;
mod flent;
mod http;
mod icmp;
mod iperf3;
mod netperf;
mod program;
mod protocol;
mod queue;
mod read;
mod record;
mod result;
mod run;
mod server;
mod target;

use crate::arguments::MeasureUndoArguments;
use crate::failure::Failure;
use crate::output::print;

use changes::Held;

pub(crate) use read::read;
pub(crate) use run::run;
pub(crate) use server::serve;

/// Puts back what a measurement that was killed has left.
pub(crate) fn undo(arguments: &MeasureUndoArguments) -> Result<(), Failure> {
    let interface = &arguments.interface;
    if !changes::is_noted(interface) {
        return print(&format!("{interface}: no measurement has left anything here\n"));
    }
    let mut held = Held::take(interface)?;
    let changed = held.has_changes();
    held.undo()?;
    print(&match changed {
        true => format!("{interface}: undone\n"),
        false => format!("{interface}: no measurement has left anything here\n"),
    })
}
