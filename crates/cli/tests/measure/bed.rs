//! Three hosts in a row, and a server of measurements on the last.

use std::fmt::Display;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// The server, as the client finds it.
pub(crate) const SERVER: &str = "198.51.100.2";
/// The interface of the client.
pub(crate) const INTERFACE: &str = "wan0";

/// Says so past the harness, which hides what a test that passes prints.
pub(crate) fn skip(what: &str, missing: &dyn Display) {
    writeln!(io::stderr(), "SKIP {what}: {missing}").expect("standard error is open");
}

/// The queues of the provider, in front of its rates.
pub(crate) struct Provider {
    pub(crate) down_bps: u64,
    pub(crate) up_bps: u64,
    /// What each queue holds, in milliseconds of its rate.
    pub(crate) buffer_ms: u64,
}

/// One bed has the machine at a time: two measurements at once would measure each other.
static ALONE: Mutex<()> = Mutex::new(());

pub(crate) struct Bed {
    _alone: MutexGuard<'static, ()>,
    name: String,
    pub(crate) folder: PathBuf,
    server: Option<Child>,
}

impl Bed {
    /// Nothing where it takes what this machine lacks, which is said.
    pub(crate) fn new(name: &str, provider: &Provider) -> Option<Bed> {
        // A test that failed has still left the machine to the next.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("tidegate-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(&name);
        let mut bed = Bed { _alone: alone, name, folder, server: None };
        match bed.build(provider) {
            Ok(()) => Some(bed),
            Err(missing) => {
                skip(&bed.name, &missing);
                None
            }
        }
    }

    fn build(&mut self, provider: &Provider) -> Result<(), String> {
        for host in ["client", "provider", "server"] {
            words("ip", &format!("netns add {}-{host}", self.name))?;
            for which in ["all", "default"] {
                // The kernel says nothing of its own accord that would have to be counted.
                let path = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
                self.on_line(host, &format!("[ ! -e {path} ] || echo 1 > {path}"))?;
            }
            self.on(host, "ip", "link set lo up")?;
        }
        let name = &self.name;
        for (host, device, peer) in [("client", INTERFACE, "home0"), ("server", "wan0", "net0")] {
            let ends = format!("netns {name}-provider type veth peer name {device}");
            words("ip", &format!("link add {peer} {ends} netns {name}-{host}"))?;
        }
        self.on("client", "ip", "address add 192.0.2.2/24 dev wan0")?;
        self.on("server", "ip", "address add 198.51.100.2/24 dev wan0")?;
        self.on("provider", "ip", "address add 192.0.2.1/24 dev home0")?;
        self.on("provider", "ip", "address add 198.51.100.1/24 dev net0")?;
        for (host, device) in
            [("client", "wan0"), ("server", "wan0"), ("provider", "home0"), ("provider", "net0")]
        {
            self.on(host, "ip", &format!("link set {device} up"))?;
        }
        self.on("client", "ip", "route add default via 192.0.2.1")?;
        self.on("server", "ip", "route add default via 198.51.100.1")?;
        self.on_line("provider", "echo 1 > /proc/sys/net/ipv4/ip_forward")?;
        // It fills a queue that is deep, and may be set in a namespace on any machine.
        let reno = "echo reno > /proc/sys/net/ipv4/tcp_congestion_control";
        for host in ["client", "server"] {
            self.on_line(host, reno)?;
        }
        for (device, rate) in [("home0", provider.down_bps), ("net0", provider.up_bps)] {
            let limit = rate / 8 * provider.buffer_ms / 1_000;
            let queue = format!("root tbf rate {rate}bit burst 3028 limit {limit}");
            self.on("provider", "tc", &format!("qdisc add dev {device} {queue}"))?;
        }
        // What the client needs for what comes in.
        self.on("client", "ip", "link add probe type ifb")?;
        self.on("client", "ip", "link del probe")?;
        let mut server = self.program("server", TIDEGATE, &["measure", "serve"]);
        let mut server = server.stderr(Stdio::piped()).spawn().map_err(|it| it.to_string())?;
        let mut line = String::new();
        let said = server.stderr.take().unwrap();
        BufReader::new(said).read_line(&mut line).map_err(|it| it.to_string())?;
        self.server = Some(server);
        assert!(line.contains("serves measurements at 0.0.0.0:4790"), "{line}");
        Ok(())
    }

    /// A program on a host.
    pub(crate) fn program(&self, host: &str, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("{}-{host}", self.name), program]).args(words);
        command.env("RUNTIME_DIRECTORY", &self.folder).stdin(Stdio::null());
        command
    }

    pub(crate) fn on(&self, host: &str, program: &str, line: &str) -> Result<String, String> {
        let list: Vec<_> = line.split(' ').collect();
        said(self.program(host, program, &list).output(), &format!("{program} {line}"))
    }

    /// A line of a shell on a host.
    fn on_line(&self, host: &str, line: &str) -> Result<String, String> {
        said(self.program(host, "sh", &["-c", line]).output(), line)
    }

    /// `tidegate measure` with these words on the client.
    pub(crate) fn measure(&self, words: &[&str]) -> Command {
        self.program("client", TIDEGATE, &[&["measure"], words].concat())
    }

    /// A measurement that succeeds, as JSON.
    pub(crate) fn measured(&self, words: &[&str]) -> Value {
        let output = self.measure(&[&["run", SERVER, "--json"], words].concat()).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// What is at the client's interface beside it, by `tc` and `ip`, and the notes.
    pub(crate) fn left(&self) -> String {
        let mut left = self.on("client", "tc", "qdisc show").unwrap();
        left += &self.on("client", "ip", "-brief link show").unwrap();
        // What a device is called and whether it is up; not the order in which they came.
        left += &self.on("client", "tc", "filter show dev wan0 ingress").unwrap_or_default();
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        files.for_each(|file| left += &format!("{}\n", file.path().display()));
        left
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
        for host in ["client", "provider", "server"] {
            let _ = words("ip", &format!("netns delete {}-{host}", self.name));
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub(crate) const TIDEGATE: &str = env!("CARGO_BIN_EXE_tidegate");

fn words(program: &str, line: &str) -> Result<String, String> {
    said(Command::new(program).args(line.split(' ')).output(), &format!("{program} {line}"))
}

fn said(output: io::Result<Output>, what: &str) -> Result<String, String> {
    let output = output.map_err(|reason| format!("{what}: {reason}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{what}: {}", stderr(&output).trim()))
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
