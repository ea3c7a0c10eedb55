//! The admin port of a running gateway, asked from here.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tidegate_gateway::{Status, Token, file};

use crate::failure::Failure;

/// How long a gateway may take to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// The gateway that runs with a file.
pub(super) struct Admin {
    address: SocketAddr,
    token: Option<Token>,
}

/// What it says to a request.
pub(super) struct Answer {
    status: u16,
    body: String,
}

impl Admin {
    pub(super) fn of(path: &Path) -> Result<Admin, Failure> {
        let config = file::read(path).map_err(Failure::input)?;
        let Some(address) = config.admin else {
            let expected = "an address of this machine, such as admin = \"127.0.0.1:3129\"";
            return Err(Failure::Input(format!(
                "{}: admin: found nothing, expected {expected}",
                path.display()
            )));
        };
        Ok(Admin { address, token: config.admin_token })
    }

    /// Its state.
    pub(super) fn status(&self) -> Result<Status, Failure> {
        let answer = self.ask("GET /status")?;
        self.read(&answer)
    }

    /// Has it read its file again; returns what differs, as the JSON of the answer.
    pub(super) fn reload(&self) -> Result<serde_json::Value, Failure> {
        let answer = self.ask("POST /reload")?;
        let value: serde_json::Value = self.read(&answer)?;
        match value["error"].as_str() {
            Some(error) => Err(Failure::Input(error.into())),
            None => Ok(value),
        }
    }

    fn ask(&self, line: &str) -> Result<Answer, Failure> {
        let answer = self.exchange(line).map_err(|reason| self.failed(&reason))?;
        match answer.status {
            200 | 422 => Ok(answer),
            401 => Err(self.failed(
                &"it has another token than the file names; SIGHUP has it read that again",
            )),
            _ => Err(self.failed(&answer.body.trim_end())),
        }
    }

    fn read<T: DeserializeOwned>(&self, answer: &Answer) -> Result<T, Failure> {
        serde_json::from_str(&answer.body).map_err(|reason| self.failed(&reason))
    }

    fn failed(&self, reason: &dyn std::fmt::Display) -> Failure {
        Failure::Other(format!("the gateway at {}: {reason}", self.address))
    }

    fn exchange(&self, line: &str) -> io::Result<Answer> {
        let mut stream = TcpStream::connect_timeout(&self.address, ANSWER)?;
        stream.set_read_timeout(Some(ANSWER))?;
        let mut request = format!("{line} HTTP/1.0\r\nHost: {}\r\n", self.address);
        if let Some(token) = &self.token {
            request += &format!("Authorization: {}\r\n", token.authorization());
        }
        stream.write_all((request + "Content-Length: 0\r\n\r\n").as_bytes())?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
        match head.split(' ').nth(1).and_then(|status| status.parse().ok()) {
            Some(status) => Ok(Answer { status, body: body.into() }),
            None => Err(io::Error::other("it does not answer as a gateway does")),
        }
    }
}
