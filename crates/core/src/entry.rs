//! What a discipline says about itself: its name, its parameters, how to build it.
//!
//! Each discipline declares an [`Entry`] in its own file;
//! [`registry`](crate::registry) lists them. A discipline knows this module and
//! not the list, so that no dependency points from a discipline to the registry.

use crate::buffer::Buffer;
use crate::discipline::Discipline;
use crate::setting::{Parameter, SettingError, Settings};
use crate::units::Rate;

/// One discipline: how it is called, what can be set, how it is built.
#[derive(Debug)]
pub struct Entry {
    /// Name in files and on the command line; also the name of its file and its page.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// The queue of Linux that does the same, by its name for `tc`; `None` if there is
    /// none, or only one that sorts packets by filters and not by their flow.
    pub linux: Option<&'static str>,
    /// When it gives up packets.
    pub drops: Drops,
    /// What can be set, besides the buffer.
    pub parameters: &'static [Parameter],
    /// Those of them that cannot be set while it runs: another value would
    /// reorder flows or break promises.
    pub fixed: &'static [Parameter],
    /// Makes one with settings that are known to be right, for a place, with the
    /// seed of its random stream and hash.
    pub build: fn(&Settings, Place, u64) -> Box<dyn Discipline>,
}

/// Where a discipline stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// How much it may hold.
    pub buffer: Buffer,
    /// The rate of the link or shaper behind it, where that is known and constant.
    pub rate: Option<Rate>,
    /// What carries its packets.
    pub medium: Medium,
}

impl From<Buffer> for Place {
    /// In front of a wire of whatever rate.
    fn from(buffer: Buffer) -> Place {
        Place { buffer, rate: None, medium: Medium::Wire }
    }
}

impl Place {
    /// The same in front of a link or shaper of this rate.
    #[must_use]
    pub fn at_rate(self, rate: Rate) -> Place {
        Place { rate: Some(rate), ..self }
    }
}

/// What carries packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// It takes a packet as soon as the one before has left.
    Wire,
    /// Stations take turns on it, so that packets leave many at a time and wait between.
    Radio,
}

/// When a discipline gives up packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drops {
    /// Only when its buffer is full.
    WhenFull,
    /// Also while there is room: active queue management (RFC 7567), or policing.
    Early,
}

impl Entry {
    /// Reads `(parameter, value)` pairs as written in a file; what is not given has its default.
    ///
    /// # Errors
    /// A name that the discipline does not have, or a value of the wrong type or out of range.
    pub fn settings(&'static self, given: &[(&str, &str)]) -> Result<Settings, SettingError> {
        Settings::read(self.name, self.parameters, given)
    }

    /// Builds the discipline from `(parameter, value)` pairs as written in a file.
    ///
    /// # Errors
    /// As [`Entry::settings`].
    pub fn build(
        &'static self,
        given: &[(&str, &str)],
        place: impl Into<Place>,
        seed: u64,
    ) -> Result<Box<dyn Discipline>, SettingError> {
        Ok((self.build)(&self.settings(given)?, place.into(), seed))
    }

    /// Settings for a discipline that runs with the settings `running`, to be given
    /// to [`Discipline::reconfigure`]; what is not given stays as it is.
    ///
    /// ```
    /// use tidegate_core::registry;
    /// let entry = registry::find("sfq").expect("it is registered");
    /// let running = entry.settings(&[])?;
    /// assert!(entry.change(&running, &[("quantum", "3000 B")]).is_ok());
    /// let error = entry.change(&running, &[("queues", "16")]).unwrap_err();
    /// assert_eq!(error.to_string(), "queues of 'sfq' cannot be set while it runs");
    /// # Ok::<(), tidegate_core::setting::SettingError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Entry::settings`], and another value of a parameter that is
    /// [fixed](Entry::fixed).
    pub fn change(
        &'static self,
        running: &Settings,
        given: &[(&str, &str)],
    ) -> Result<Settings, SettingError> {
        let changed = running.with(self.name, self.parameters, given)?;
        let is_kept = |fixed: &&Parameter| running.value(fixed.name) == changed.value(fixed.name);
        match self.fixed.iter().find(|fixed| !is_kept(fixed)) {
            Some(fixed) => Err(SettingError::Fixed { owner: self.name, parameter: fixed.name }),
            None => Ok(changed),
        }
    }

    /// Whether the parameter of this name can be set while the discipline runs.
    #[must_use]
    pub fn can_change(&self, parameter: &str) -> bool {
        self.fixed.iter().all(|fixed| fixed.name != parameter)
    }
}
