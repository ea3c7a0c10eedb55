//! What a running link says about itself: its own status, with its name.

use serde::{Deserialize, Serialize};
use tidegate_link::Status;

use crate::arguments::Fail;

/// The answer to `GET /status`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    /// The name of the link.
    pub(super) name: String,
    /// What becomes of frames when it dies.
    pub(super) fail: Fail,
    /// The rest.
    #[serde(flatten)]
    pub(super) status: Status,
}
