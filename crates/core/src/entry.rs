//! What a discipline says about itself: its name, its parameters, how to build it.
//!
//! Each discipline declares an [`Entry`] in its own file;
//! [`registry`](crate::registry) lists them. A discipline knows this module and
//! not the list, so that no dependency points from a discipline to the registry.

use crate::buffer::Buffer;
use crate::discipline::Discipline;
use crate::setting::{Parameter, SettingError, Settings};

/// One discipline: how it is called, what can be set, how it is built.
#[derive(Debug)]
pub struct Entry {
    /// Name in files and on the command line; also the name of its file and its page.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// When it gives up packets.
    pub drops: Drops,
    /// What can be set, besides the buffer.
    pub parameters: &'static [Parameter],
    /// Makes one with settings that are known to be right, a buffer, and the
    /// seed of its random stream and hash.
    pub build: fn(&Settings, Buffer, u64) -> Box<dyn Discipline>,
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
        buffer: Buffer,
        seed: u64,
    ) -> Result<Box<dyn Discipline>, SettingError> {
        Ok((self.build)(&self.settings(given)?, buffer, seed))
    }
}
