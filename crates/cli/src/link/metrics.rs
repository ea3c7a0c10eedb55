//! What a link says about itself, as metrics in the text form of OpenMetrics.
use super::state::State;

pub(super) fn metrics(_state: State) -> String {
    String::new()
}
