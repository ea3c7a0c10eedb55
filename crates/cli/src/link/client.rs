//! A running link, asked from here.

use std::io;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::socket;
use super::state::State;
use crate::asked::{self, Answer};
use crate::failure::Failure;

/// The link of a name.
pub(super) struct Client {
    folder: PathBuf,
    pub(super) name: String,
}

impl Client {
    /// The link of this name, or else the only one that runs.
    pub(super) fn of(name: Option<&str>) -> Result<Client, Failure> {
        let folder = socket::folder();
        if let Some(name) = name {
            return Ok(Client { folder, name: name.into() });
        }
        match &socket::running(&folder)[..] {
            [name] => Ok(Client { folder, name: name.clone() }),
            [] => Err(Failure::Other(format!(
                "no link runs: nobody answers in {}; 'tidegate link run' starts one",
                folder.display()
            ))),
            several => Err(Failure::Input(format!(
                "found several links that run, expected --name with one of {}",
                several.join(", ")
            ))),
        }
    }

    pub(super) fn state(&self) -> Result<State, Failure> {
        self.read(&self.ask("GET /status", "")?)
    }

    /// Has it change its settings; returns what differs, as the JSON of the answer.
    pub(super) fn set(&self, settings: &Value) -> Result<Value, Failure> {
        let value: Value = self.read(&self.ask("PUT /settings", &settings.to_string())?)?;
        match value["error"].as_str() {
            Some(error) => Err(Failure::Input(error.into())),
            None => Ok(value),
        }
    }

    /// Has it end.
    pub(super) fn stop(&self) -> Result<(), Failure> {
        self.ask("POST /stop", "").map(drop)
    }

    /// Whether it runs.
    pub(super) fn runs(&self) -> bool {
        socket::connect(&self.folder, &self.name).is_ok()
    }

    /// Removes what is left of its socket: who has become another user could not.
    pub(super) fn forget(&self) {
        socket::forget(&self.folder, &self.name);
    }

    fn ask(&self, line: &str, body: &str) -> Result<Answer, Failure> {
        let answer = self.exchange(line, body).map_err(|reason| match reason.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                self.failed(&"it does not run")
            }
            io::ErrorKind::PermissionDenied => {
                self.failed(&"it belongs to another user; ask with sudo")
            }
            _ => self.failed(&reason),
        })?;
        match answer.status {
            200 | 422 => Ok(answer),
            _ => Err(self.failed(&answer.body.trim_end())),
        }
    }

    fn exchange(&self, line: &str, body: &str) -> io::Result<Answer> {
        let mut stream = socket::connect(&self.folder, &self.name)?;
        stream.set_read_timeout(Some(asked::PATIENCE))?;
        asked::ask(&mut stream, line, "Host: localhost\r\n", body)
    }

    fn read<T: DeserializeOwned>(&self, answer: &Answer) -> Result<T, Failure> {
        serde_json::from_str(&answer.body).map_err(|reason| self.failed(&reason))
    }

    fn failed(&self, reason: &dyn std::fmt::Display) -> Failure {
        Failure::Other(format!("the link '{}': {reason}", self.name))
    }
}
