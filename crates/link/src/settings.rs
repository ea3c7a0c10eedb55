//! What a link is told: two interfaces, and a queue for each direction.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use tidegate_core::buffer::Limit;
use tidegate_core::entry::Entry;
use tidegate_core::framing::Framing;
use tidegate_core::setting::{Parameter, SettingError, Settings};
use tidegate_core::{Buffer, Rate};

/// One of the two ways through a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the provider to the users.
    Down,
    /// From the users to the provider.
    Up,
}

impl Direction {
    /// Both, in the order in which they are shown.
    pub const BOTH: [Direction; 2] = [Direction::Down, Direction::Up];

    /// Its name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Down => "down",
            Direction::Up => "up",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The queue of one direction: a discipline in front of a rate.
#[derive(Clone, Debug)]
pub struct Queue {
    /// The discipline.
    pub entry: &'static Entry,
    /// Its settings.
    pub settings: Settings,
    /// How much it may hold.
    pub limit: Limit,
    /// The rate to which packets are held back.
    pub rate: Rate,
    /// What a packet takes of the link behind.
    pub framing: Framing,
}

impl Queue {
    /// The limit at the rate.
    #[must_use]
    pub fn buffer(&self) -> Buffer {
        self.limit.at(self.rate)
    }

    /// The parameters of the discipline with their values, as in files.
    #[must_use]
    pub fn parameters(&self) -> BTreeMap<String, String> {
        let named = |parameter: &Parameter| {
            (parameter.name.into(), format!("{:#}", self.settings.value(parameter.name)))
        };
        self.entry.parameters.iter().map(named).collect()
    }

    /// This queue with a change.
    ///
    /// # Errors
    /// As [`Entry::change`].
    pub fn with(&self, change: &Change) -> Result<Queue, SettingError> {
        let pairs = change.parameters.iter();
        let given: Vec<_> = pairs.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Ok(Queue {
            entry: self.entry,
            settings: self.entry.change(&self.settings, &given)?,
            limit: change.limit.unwrap_or(self.limit),
            rate: change.rate.unwrap_or(self.rate),
            framing: change.framing.unwrap_or(self.framing),
        })
    }
}

/// What is to be different from now on; the rest stays.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// The rate to which packets are held back.
    pub rate: Option<Rate>,
    /// How much the queue may hold.
    pub limit: Option<Limit>,
    /// What a packet takes of the link behind.
    pub framing: Option<Framing>,
    /// Parameters of the discipline with their values, as in files.
    pub parameters: Vec<(String, String)>,
}
