//! The admin port of a running gateway, asked from here.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use serde::de::DeserializeOwned;
use tidegate_gateway::{Status, Token, file};

use crate::asked::{self, Answer};
use crate::failure::Failure;

/// The gateway that runs with a file.
pub(super) struct Admin {
    address: SocketAddr,
    token: Option<Token>,
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
        let mut stream = TcpStream::connect_timeout(&self.address, asked::PATIENCE)?;
        stream.set_read_timeout(Some(asked::PATIENCE))?;
        let token = self.token.as_ref().map(Token::authorization);
        let token = token.map(|token| format!("Authorization: {token}\r\n")).unwrap_or_default();
        asked::ask(&mut stream, line, &format!("Host: {}\r\n{token}", self.address), "")
    }
}
