//! A gateway that runs beside a test.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

/// A file for one, at ports that the system chooses.
pub(crate) const SMALL: &str = r#"
listen = ["127.0.0.1:0"]
admin = "127.0.0.1:0"
local_targets = ["127.0.0.0/8"]
[link]
rate = "10 Mbit/s"
[[class]]
name = "all"
sources = ["127.0.0.0/8"]
"#;

/// A gateway that ends with the test.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
}

impl Running {
    /// Starts a command that runs one, and reads on standard error where it listens.
    pub(crate) fn start(command: &mut Command) -> Running {
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut running = Running { child, address: ([0; 4], 0).into(), admin: ([0; 4], 0).into() };
        let mut said = BufReader::new(running.child.stderr.take().unwrap());
        let mut address = |what: &str| -> SocketAddr {
            let mut line = String::new();
            said.read_line(&mut line).unwrap();
            line.trim().strip_prefix(what).unwrap_or_else(|| panic!("{line}")).parse().unwrap()
        };
        running.address = address("tidegate: listening at ");
        running.admin = address("tidegate: admin at ");
        // It goes on to say what fails, which must not fail for want of a reader.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        running
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
