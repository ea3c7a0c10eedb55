//! The gateway, and what its process takes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A gateway with three classes, `a`, `b` and `c`, of the networks 127.1, 127.2 and 127.3,
/// and weights 4, 1 and 1.
pub(crate) struct Gateway {
    child: Child,
    folder: PathBuf,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    /// Lines of its log that are about a request.
    pub(crate) logged: Arc<AtomicU64>,
}

fn file(rate: &str, limits: &str) -> String {
    let class = |name, weight, network| {
        format!("[[class]]\nname = \"{name}\"\nweight = {weight}\nsources = [\"{network}\"]\n")
    };
    format!(
        "listen = [\"127.0.0.1:0\"]\nadmin = \"127.0.0.1:0\"\nlocal_targets = [\"127.0.0.0/8\"]\n\
         [link]\nrate = \"{rate}\"\n{limits}\n{}{}{}",
        class("a", 4, "127.1.0.0/16"),
        class("b", 1, "127.2.0.0/16"),
        class("c", 1, "127.3.0.0/16"),
    )
}

impl Gateway {
    pub(crate) fn start(name: &str, rate: &str, limits: &str) -> Gateway {
        let folder = std::env::temp_dir().join(format!("tidegate-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("gateway.toml"), file(rate, limits)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(["gateway", "run", "gateway.toml"]).current_dir(&folder);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut address = |what: &str| {
            let mut line = String::new();
            said.read_line(&mut line).unwrap();
            line.trim().strip_prefix(what).unwrap_or_else(|| panic!("{line}")).parse().unwrap()
        };
        let (address, admin) = (address("tidegate: listening at "), address("tidegate: admin at "));
        std::thread::spawn(move || {
            said.lines().map_while(Result::ok).for_each(|line| println!("{line}"));
        });
        let logged = Arc::new(AtomicU64::new(0));
        let (log, count) = (BufReader::new(child.stdout.take().unwrap()), logged.clone());
        std::thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                let line: Value = serde_json::from_str(&line).expect("every line is JSON");
                match line["target"] == "tidegate::request" {
                    true => drop(count.fetch_add(1, Ordering::Relaxed)),
                    false if line["level"] == "INFO" => {}
                    false => println!("    {}: {}", line["level"], line),
                }
            }
        });
        Gateway { child, folder, address, admin, logged }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Has it read its file again, with another rate.
    pub(crate) fn reload(&self, rate: &str, limits: &str) {
        fs::write(self.folder.join("gateway.toml"), file(rate, limits)).unwrap();
        self.signal("-HUP");
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.id().to_string()]).status();
        assert!(sent.unwrap().success(), "the gateway is gone");
    }

    /// Permits it so many descriptors from now on.
    pub(crate) fn permit(&self, descriptors: u64) {
        let limit = format!("--nofile={descriptors}:");
        let set = Command::new("prlimit").args(["--pid", &self.id().to_string(), &limit]).status();
        assert!(set.unwrap().success(), "prlimit");
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// The memory that is its own and in use, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1_024
    }

    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.id())).unwrap().count()
    }

    /// Its own status; `None` while it has no descriptor to answer with.
    pub(crate) async fn status(&self) -> Option<Value> {
        let mut stream = TcpStream::connect(self.admin).await.ok()?;
        let request = format!("GET /status HTTP/1.0\r\nHost: {}\r\n\r\n", self.admin);
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The sum of a count over all classes.
pub(crate) fn sum(status: &Value, key: &str) -> u64 {
    status["classes"].as_array().unwrap().iter().map(|class| class[key].as_u64().unwrap()).sum()
}
