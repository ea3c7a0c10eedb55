//! What is known of a queue in the kernel beyond what the kernel counts.
//!
//! It stands in a map of the queue itself, so that it lives exactly as long, and says how to
//! undo everything: whoever takes the queue away needs nothing else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_core::registry;
use tidegate_link::{Direction, Queue};
use tidegate_qdisc::{FOLDER, Qdisc};

use crate::failure::Failure;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    /// Who wrote this.
    pub(super) version: String,
    /// The interface to the provider.
    pub(super) interface: String,
    /// Whether its frames have Ethernet headers.
    pub(super) has_ethernet: bool,
    pub(super) direction: Direction,
    /// The device with the queue: the interface, or what stands for its incoming traffic.
    pub(super) device: String,
    pub(super) discipline: String,
    pub(super) parameters: BTreeMap<String, String>,
    pub(super) rate_bps: u64,
    pub(super) buffer: String,
    pub(super) framing: String,
    /// What the interface is to be told when the queue goes; nothing if it was left as it was.
    pub(super) restore: Option<Restore>,
}

/// A setting of the interface as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Restore {
    /// The most packets that this machine may send merged.
    GsoMaxSegs(u64),
    /// Incoming packets are merged (generic-receive-offload).
    Gro,
}

/// Why nothing is known of a queue.
pub(super) enum NoteError {
    /// It cannot be looked at, for example without rights.
    Unreadable(String),
    /// Somebody else wrote what is there.
    Unknown(String),
}

impl Note {
    pub(super) fn of(qdisc: &Qdisc) -> Result<Note, NoteError> {
        let text = qdisc.note().map_err(|reason| NoteError::Unreadable(reason.to_string()))?;
        serde_json::from_str(&text).map_err(|reason| {
            let name = qdisc.name();
            NoteError::Unknown(format!(
                "{name}: found a note that this version does not know ({reason}), expected its \
                 own; 'tc qdisc show' says where it is, and 'rm -r {FOLDER}/{name}' forgets it"
            ))
        })
    }

    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).expect("a note is plain JSON")
    }

    /// Notes what a queue is told.
    pub(super) fn with(self, queue: &Queue) -> Note {
        Note {
            discipline: queue.entry.name.into(),
            parameters: queue.parameters(),
            rate_bps: queue.rate.0,
            buffer: queue.limit.to_string(),
            framing: queue.framing.to_string(),
            ..self
        }
    }

    /// What the queue was told.
    pub(super) fn queue(&self) -> Result<Queue, Failure> {
        let wrong = |reason: String| {
            Failure::Other(format!("the note of {} at {}: {reason}", self.discipline, self.device))
        };
        let entry = registry::find(&self.discipline)
            .ok_or_else(|| wrong("found a discipline that this version does not have".into()))?;
        let given: Vec<(&str, &str)> =
            self.parameters.iter().map(|(name, value)| (&**name, &**value)).collect();
        Ok(Queue {
            entry,
            settings: entry.settings(&given).map_err(|reason| wrong(reason.to_string()))?,
            limit: self
                .buffer
                .parse()
                .map_err(|reason: tidegate_core::units::UnitError| wrong(reason.to_string()))?,
            rate: tidegate_core::Rate(self.rate_bps),
            framing: self
                .framing
                .parse()
                .map_err(|reason: tidegate_core::units::UnitError| wrong(reason.to_string()))?,
        })
    }
}
