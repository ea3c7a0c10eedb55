//! The network in which a link runs, and what is left there.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A network namespace that `ip` knows by name, gone with the test.
pub(crate) struct Network {
    pub(crate) name: String,
    /// Where its links have their sockets.
    folder: PathBuf,
}

/// Says so past the harness, which hides what a test that passes prints.
pub(crate) fn skip(what: &str, missing: &dyn std::fmt::Display) {
    writeln!(io::stderr(), "SKIP {what}: {missing}").expect("standard error is open");
}

impl Network {
    /// Nothing where it takes rights that this user does not have, which is said.
    pub(crate) fn new(name: &str) -> Option<Network> {
        let name = format!("tidegate-{name}-{}", std::process::id());
        let added = Command::new("ip").args(["netns", "add", &name]).output();
        if !added.as_ref().is_ok_and(|output| output.status.success()) {
            skip(&name, &format!("no network namespace: {added:?}"));
            return None;
        }
        let folder = std::env::temp_dir().join(&name);
        let network = Network { name, folder };
        // The kernel says nothing of its own accord that would have to be counted.
        for which in ["all", "default"] {
            let path = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
            network.says("sh", &["-c", &format!("[ ! -e {path} ] || echo 1 > {path}")]);
        }
        Some(network)
    }

    fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]).args(words);
        command.env("RUNTIME_DIRECTORY", &self.folder).stdin(Stdio::null());
        command
    }

    /// What a program prints, whether or not it succeeds; nothing if there is none.
    pub(crate) fn says(&self, program: &str, words: &[&str]) -> String {
        let output = self.command(program, words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn ip(&self, words: &str) -> String {
        let words: Vec<_> = words.split(' ').collect();
        let output = self.command("ip", &words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn link(&self, words: &[&str]) -> Output {
        let words = [&["link"], words].concat();
        self.command(env!("CARGO_BIN_EXE_tidegate"), &words).output().unwrap()
    }

    /// A link that starts.
    pub(crate) fn start(&self, words: &[&str]) -> Link {
        let words = [&["link", "run"], words].concat();
        let mut command = self.command(env!("CARGO_BIN_EXE_tidegate"), &words);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Link { child, said: String::new() }
    }

    /// A link that carries, or what it says instead.
    pub(crate) fn run(&self, words: &[&str]) -> Result<Link, String> {
        let mut link = self.start(words);
        let mut said = BufReader::new(link.child.stderr.take().unwrap());
        while !link.said.contains("' carries ") {
            if said.read_line(&mut link.said).unwrap() == 0 {
                link.child.wait().unwrap();
                return Err(link.said.clone());
            }
        }
        std::thread::spawn(move || io::copy(&mut said, &mut io::sink()));
        Ok(link)
    }

    pub(crate) fn status(&self) -> Value {
        let output = self.link(&["status", "--json"]);
        let said = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no status: {said}"))
    }

    /// Everything of a link that is there, a line each.
    pub(crate) fn left(&self) -> Vec<String> {
        let mut left = Vec::new();
        let sockets = self.says("cat", &["/proc/thread-self/net/packet"]);
        left.extend(sockets.lines().skip(1).map(|line| format!("a packet socket: {line}")));
        let interfaces = self.says("ip", &["-oneline", "-details", "link", "show"]);
        left.extend(interfaces.lines().filter_map(|line| {
            let is_ours = line.contains("tidegate-") || !line.contains(" promiscuity 0 ");
            is_ours.then(|| format!("an interface: {line}"))
        }));
        left.extend(self.rules().into_iter().map(|line| format!("a rule: {line}")));
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        left.extend(files.map(|file| format!("a file: {}", file.path().display())));
        left.extend(self.processes().into_iter().map(|it| format!("a process: {it}")));
        left
    }

    /// What packet filters have of ours.
    pub(crate) fn rules(&self) -> Vec<String> {
        let families = ["iptables", "ip6tables", "iptables-legacy", "ip6tables-legacy"];
        let mut text = families.map(|it| self.says(&format!("{it}-save"), &[])).concat();
        text += &self.says("nft", &["list", "tables"]);
        text.lines().filter(|line| line.contains("tidegate")).map(Into::into).collect()
    }

    /// Processes of links of this network: those that know its folder.
    fn processes(&self) -> Vec<String> {
        let entry = format!("RUNTIME_DIRECTORY={}", self.folder.display());
        let numbers = fs::read_dir("/proc").unwrap().flatten();
        let ours = numbers.filter_map(|process| {
            let environment = fs::read(process.path().join("environ")).ok()?;
            let knows = environment.split(|byte| *byte == 0).any(|it| *it == *entry.as_bytes());
            let line = fs::read(process.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            (knows && line.contains(" link ")).then(|| format!("{:?} {line}", process.file_name()))
        });
        ours.collect()
    }

    /// Nothing of a link is there, within a moment.
    pub(crate) fn assert_clean(&self, after: &str) {
        let since = Instant::now();
        loop {
            let left = self.left();
            if left.is_empty() {
                return;
            }
            assert!(since.elapsed() < Duration::from_secs(5), "after {after}: {left:#?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.name]).output();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The process of a link.
pub(crate) struct Link {
    child: Child,
    /// What it said until it carried.
    pub(crate) said: String,
}

/// What a process has resident, and the most that it had, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) now: u64,
    pub(crate) most: u64,
}

impl Link {
    pub(crate) fn memory(&self) -> Memory {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let of = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1_024
        };
        Memory { now: of("VmRSS:"), most: of("VmHWM:") }
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops it, and returns its last state.
    pub(crate) fn stop(mut self, network: &Network) {
        let output = network.link(&["stop"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(self.child.wait().unwrap().success());
    }

    /// Waits until it ends by itself; returns its exit code.
    pub(crate) fn ended(mut self) -> Option<i32> {
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it does not end");
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A value of this number of hundred in order.
pub(crate) fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (values.len() * percent / 100).min(values.len().saturating_sub(1));
    values.get(at).copied().unwrap_or(f64::NAN)
}

/// Of so many probes, half a second's is 1%.
const MANY_PROBES: usize = 5_000;

/// Holds probes to be prompt beside a full FQ-CoDel, which gives them their turn at once.
///
/// Of many, 99% count. Of few it is the half: a machine that pauses for a moment holds up more
/// than 1% of them, and a link whose queue stands holds up most, for 4 to 11 ms under FIFO.
pub(crate) fn assert_prompt(times: &mut [f64]) {
    let (percent, most_ms) = if times.len() < MANY_PROBES { (50, 3.0) } else { (99, 60.0) };
    let took = percentile(times, percent);
    // Where none came back it is NaN, which is not below anything.
    assert!(took < most_ms, "{percent}% of {} probes take up to {took} ms", times.len());
}

/// How often, or for how long: short as one of many tests, or what the full one is told.
pub(crate) fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}
