//! `tidegate link`: what it refuses, what a plan finds, and a link between two interfaces of a
//! network of its own.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::{Bench, json, stderr};

pub(super) const PATIENCE: Duration = Duration::from_secs(20);
const RATES: [&str; 4] = ["--down", "18 Mbit/s", "--up", "4 Mbit/s"];

#[test]
fn wrong_arguments_are_one_line_and_exit_code_2() {
    let bench = Bench::new("link-wrong");
    let link = ["link", "plan", "lan0", "wan0"];
    let with = |more: &[&'static str]| [&link[..], &RATES, more].concat();
    for (arguments, words) in [
        (vec!["link"], "a command is missing"),
        (link.to_vec(), "--down <RATE>"),
        (vec!["link", "plan", "--down", "1mbit", "--up", "1mbit"], "<INTERFACE>"),
        (
            vec!["link", "plan", "a", "b", "c", "--down", "1mbit", "--up", "1mbit"],
            "unexpected value 'c'",
        ),
        (
            [&["link", "run", "lan0", "lan0"][..], &RATES].concat(),
            "found 'lan0' twice, expected two interfaces",
        ),
        (
            [&["link", "run", "lan0", "an interface"][..], &RATES].concat(),
            "expected the name of an interface",
        ),
        ([&link[..], &["--down", "18", "--up", "4 Mbit/s"]].concat(), "'18' is not a rate"),
        ([&link[..], &["--down", "0 bit/s", "--up", "4 Mbit/s"]].concat(), "a rate above zero"),
        (with(&["--discipline", "efq"]), "unknown discipline 'efq', expected 'efd'"),
        (with(&["--discipline", "efd:treshold=1"]), "no parameter 'treshold'"),
        (with(&["--up-discipline", "efd:threshold=1 s"]), "threshold of 'efd'"),
        (with(&["--buffer", "0 ms"]), "'0 ms' is not a buffer"),
        (with(&["--buffer", "2 GB"]), "--buffer: found '2 GB'"),
        (with(&["--framing", "dsl"]), "'dsl' is not a link such as 'ethernet'"),
        (with(&["--page", "0.0.0.0:80"]), "expected a loopback or private address"),
        (with(&["--page", "4780"]), "expected an address with a port"),
        (with(&["--name", "../x"]), "expected a name of letters"),
        (with(&["--fail", "half"]), "'half'"),
        (vec!["link", "set"], "found nothing to set, expected at least one of --down"),
        (vec!["link", "set", "--direction", "up"], "found --direction alone"),
        (vec!["link", "set", "--parameter", "threshold"], "expected NAME=VALUE"),
        (vec!["link", "top", "--every", "1 ms"], "less than 100 ms"),
    ] {
        let message = bench.refused(&arguments);
        assert!(message.contains(words), "{arguments:?}: {message}");
    }
    let nobody = [&["link", "run", "lan0", "wan0", "--user", "no such"][..], &RATES].concat();
    assert!(bench.refused(&nobody).contains("--user: found 'no such', expected the name"));
}

#[test]
fn without_a_link_the_commands_say_so() {
    let bench = Bench::new("link-none");
    for arguments in [&["status"][..], &["set", "--down", "1 Mbit/s"], &["top"]] {
        let mut command = bench.command();
        command.arg("link").args(arguments).env("RUNTIME_DIRECTORY", &bench.0);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("no link runs: nobody answers in "), "{arguments:?}");
        let output = command.args(["--name", "x"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(stderr(&output), "tidegate: the link 'x': it does not run\n");
    }
}

#[test]
fn a_plan_names_the_queues_and_what_is_missing() {
    let bench = Bench::new("link-plan");
    let plan = [&["link", "plan", "none0", "none1"][..], &RATES].concat();
    let more = ["--discipline", "efd:threshold=30 kB", "--up-discipline", "fifo"];
    let output = bench.run(&[&plan[..], &more, &["--framing", "docsis", "--json"]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("tidegate: the link would not start: "));
    let plan = json(&String::from_utf8(output.stdout).unwrap());
    assert_eq!((&plan["name"], &plan["fail"]), (&"none0-none1".into(), &"closed".into()));
    assert_eq!(
        (&plan["down"]["discipline"], &plan["up"]["discipline"]),
        (&"efd".into(), &"fifo".into())
    );
    assert_eq!(plan["down"]["parameters"]["threshold"], "30 kB");
    assert_eq!(
        (&plan["up"]["rate_bps"], &plan["up"]["full_packet_bytes"]),
        (&4_000_000.into(), &1_518.into())
    );
    let missing = json(r#"{"kind": "problem", "text": "none0: there is no such interface"}"#);
    assert!(plan["findings"].as_array().unwrap().contains(&missing), "{plan}");
}

/// A network namespace, gone with the test.
pub(super) struct Network {
    name: String,
    pub(super) bench: Bench,
}

impl Network {
    /// With two pairs of interfaces, lan0 - users and wan0 - provider.
    fn new(name: &str) -> Option<Network> {
        let network = Network::empty(name)?;
        network.ip("link add lan0 type veth peer name users");
        network.ip("link add wan0 type veth peer name provider");
        for end in ["lan0", "users", "wan0", "provider"] {
            network.ip(&format!("link set dev {end} addrgenmode none up"));
        }
        Some(network)
    }

    /// Nothing where it takes rights that this user does not have, which is said.
    pub(super) fn empty(name: &str) -> Option<Network> {
        let network =
            Network { name: format!("{name}-{}", std::process::id()), bench: Bench::new(name) };
        let added = Command::new("ip").args(["netns", "add", &network.name]).output();
        if !added.as_ref().is_ok_and(|output| output.status.success()) {
            // Past the harness, which hides what a test that passes prints.
            writeln!(io::stderr(), "SKIP {name}: no network namespace: {added:?}")
                .expect("standard error is open");
            return None;
        }
        Some(network)
    }

    pub(super) fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]).args(words);
        command.current_dir(&self.bench.0).stdin(Stdio::null());
        command.env("RUNTIME_DIRECTORY", self.bench.0.join("run"));
        command
    }

    pub(super) fn ip(&self, words: &str) -> String {
        let words: Vec<_> = words.split(' ').collect();
        let output = self.command("ip", &words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(super) fn link(&self, words: &[&str]) -> Output {
        let words = [&["link"], words].concat();
        self.command(env!("CARGO_BIN_EXE_tidegate"), &words).output().unwrap()
    }

    /// Runs what must succeed, and returns what it prints.
    pub(super) fn good(&self, words: &[&str]) -> String {
        let output = self.link(words);
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// A link that carries frames.
    fn run(&self, more: &[&str]) -> Child {
        self.run_under(more, &[])
    }

    /// The same with more in its environment.
    fn run_under(&self, more: &[&str], variables: &[(&str, &str)]) -> Child {
        let words = [&["link", "run", "lan0", "wan0"][..], &RATES, more].concat();
        let mut command = self.command(env!("CARGO_BIN_EXE_tidegate"), &words);
        command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("carries frames between lan0 (inside) and wan0 (outside)") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "it has ended: {:?}", child.wait());
        }
        std::thread::spawn(move || io::copy(&mut said, &mut io::sink()));
        child
    }

    /// The bridge in which `lan0` is, if it is in one.
    fn bridge(&self) -> Option<String> {
        let listing = self.ip("-oneline link show dev lan0");
        let mut words = listing.split_whitespace().skip_while(|word| *word != "master");
        words.nth(1).map(str::to_string)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.name]).output();
    }
}

/// Kills the process beside a link.
pub(super) fn kill_beside(link: &Child) {
    let id = link.id();
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    let beside = children.split_whitespace().next().expect("it is beside the link");
    assert!(Command::new("kill").args(["-KILL", beside]).status().unwrap().success());
}

pub(super) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_plan_finds_what_stands_in_the_way_of_a_link() {
    let Some(network) = Network::new("link-machine") else { return };
    let plan = [&["plan", "lan0", "wan0"][..], &RATES].concat();
    let one_line = |output: Output| {
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        (output.status.code(), text.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let (code, text) = one_line(network.link(&plan));
    assert_eq!(code, Some(0), "{text}");
    for expected in [
        "Whatever comes from wan0 goes to lan0 at 18 Mbit/s at most, through fq-codel with a \
         buffer of 100 ms (225 kB). A packet of 1500 B takes 1538 B of the link (ethernet).",
        "If the link dies, nothing passes between lan0 and wan0",
        "fine lan0: up, ",
        "fine CAP_NET_RAW: ",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    network.ip("link set dev wan0 mtu 1400");
    network.ip("address add 192.0.2.1/24 dev wan0");
    network.ip("link add br0 type bridge");
    network.ip("link set dev lan0 master br0");
    let (code, text) = one_line(network.link(&plan));
    assert_eq!(code, Some(1));
    for expected in [
        "PROBLEM lan0: it belongs to br0, which takes the same frames; 'ip link set dev lan0 nomaster'",
        "WARNING wan0: it has addresses (192.0.2.1)",
        "WARNING wan0: there are routes through it",
        "WARNING MTU: lan0 has 1500 and wan0 has 1400",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    network.ip("link set dev lan0 nomaster");
    network.ip("link set dev wan0 down");
    let (code, text) = one_line(network.link(&plan));
    assert!(code == Some(1) && text.contains("PROBLEM wan0: it is down"), "{text}");
    let refused = network.link(&[&["run", "lan0", "wan0"][..], &RATES].concat());
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("wan0: it is down, and carries nothing; 'ip link set dev"));
}

#[test]
fn a_link_is_watched_changed_and_stopped_by_name_and_without() {
    let Some(network) = Network::new("link-run") else { return };
    let mut link = network.run(&["--discipline", "efd", "--json"]);
    let status = json(&network.good(&["status", "--json"]));
    assert_eq!((&status["name"], &status["form"]), (&"lan0-wan0".into(), &"packet".into()));
    assert_eq!(status["queues"][0]["rate_bps"], 18_000_000);
    let text = network.good(&["status", "--name", "lan0-wan0"]);
    assert!(
        text.starts_with("lan0-wan0: frames between lan0 (inside) and wan0 (outside) for "),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");

    let set = ["set", "--up", "3 Mbit/s", "--parameter", "threshold=30 kB", "--direction", "down"];
    let text = network.good(&set);
    assert!(text.contains("down.parameters.threshold: 30 kB, before "), "{text}");
    assert!(text.contains("up.rate: 3 Mbit/s, before 4 Mbit/s\n"), "{text}");
    assert_eq!(network.good(&set), "nothing differs\n");
    let wrong = network.link(&["set", "--parameter", "treshold=30 kB"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("down.parameters: 'efd' has no parameter 'treshold'"));
    let status = json(&network.good(&["status", "--json"]));
    assert_eq!(status["queues"][1]["rate_bps"], 3_000_000);
    assert_eq!(status["queues"][0]["parameters"]["threshold"], "30 kB");

    let second = [&["run", "lan0", "wan0"][..], &RATES].concat();
    let refused = network.link(&second);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("a link called 'lan0-wan0' runs already"));
    // Nor is there a second one at an interface of the first, whatever it is called.
    network.ip("link add lan1 type veth peer name others");
    network.ip("link set dev lan1 up");
    let other = [&["run", "lan1", "wan0"][..], &RATES].concat();
    let refused = network.link(&other);
    assert_eq!(refused.status.code(), Some(1));
    let message = "tidegate: wan0: the link 'lan0-wan0' is there already\n";
    assert_eq!(stderr(&refused), message);
    let lines = network.good(&["top", "--every", "100 ms", "--times", "2", "--json"]);
    assert_eq!(lines.lines().map(json).filter(|state| state["name"] == "lan0-wan0").count(), 2);

    assert_eq!(network.good(&["stop"]), "the link 'lan0-wan0' has ended\n");
    assert!(link.wait().unwrap().success());
    let last = json(&io::read_to_string(link.stdout.take().unwrap()).unwrap());
    assert_eq!(last["queues"][1]["rate_bps"], 3_000_000);
    assert_eq!(network.link(&["status"]).status.code(), Some(1));
}

#[test]
fn a_link_that_is_killed_leaves_a_bridge_or_nothing() {
    let Some(network) = Network::new("link-fail") else { return };
    let kill = |mut link: Child| {
        link.kill().unwrap();
        link.wait().unwrap();
    };
    kill(network.run(&[]));
    assert!(network.bridge().is_none() && !network.ip("link show").contains("tidegate-"));

    // The socket of the one that was killed is in nobody's way.
    kill(network.run(&["--fail", "open"]));
    until("the bridge joins them", || network.bridge().is_some());
    let bridge = network.bridge().unwrap();
    assert!(bridge.starts_with("tidegate-"), "{bridge}");
    assert!(network.ip("-oneline link show dev wan0").contains(&format!("master {bridge}")));
    // The next one takes it away, and leaves nothing when it is stopped.
    let link = network.run(&["--fail", "open"]);
    assert!(network.bridge().is_none());
    network.good(&["stop"]);
    until("the bridge goes", || !network.ip("link show").contains("tidegate-"));
    drop(link);
    kill(network.run(&["--fail", "open"]));
    until("the bridge joins them again", || network.bridge().is_some());
    let text = network.good(&["stop"]);
    assert_eq!(text, format!("took the bridge {bridge} of 'lan0-wan0' away\n"));
    assert!(network.bridge().is_none());

    // Without the process that would take the bridge away, whoever stops the link does.
    let link = network.run(&["--fail", "open"]);
    kill_beside(&link);
    let text = network.good(&["stop"]);
    assert!(text.ends_with(&format!("took the bridge {bridge} of 'lan0-wan0' away\n")), "{text}");
    assert!(!network.ip("link show").contains("tidegate-"));
    drop(link);
}

#[test]
fn a_link_keeps_no_rights() {
    let Some(network) = Network::new("link-rights") else { return };
    let link = network.run(&["--user", "nobody"]);
    let tasks = std::fs::read_dir(format!("/proc/{}/task", link.id())).unwrap();
    for task in tasks {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        for line in ["CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1"] {
            assert!(status.lines().any(|it| it == line), "{line}\n{status}");
        }
        assert!(!status.contains("Uid:\t0"), "{status}");
    }
    network.good(&["stop"]);
    // Its socket stays in a folder of root, and is taken away by who stops it.
    assert_eq!(std::fs::read_dir(network.bench.0.join("run")).unwrap().count(), 0);
    drop(link);
}

#[test]
fn systemd_hears_when_a_link_is_ready_works_and_stops() {
    let Some(network) = Network::new("link-notify") else { return };
    let path = std::env::temp_dir().join(format!("tidegate-link-notify-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    // The next message with this in it, and what came before.
    let hear = |state: &str| {
        let mut all = String::new();
        while !all.lines().any(|line| line == state) {
            let mut message = [0; 4_096];
            let size = manager.recv(&mut message).unwrap_or_else(|_| panic!("{state}: {all}"));
            all += &format!("{}\n", String::from_utf8_lossy(&message[..size]));
        }
        all
    };
    let variables = [("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "3000000")];
    let mut link = network.run_under(&[], &variables);
    let ready = hear("READY=1");
    assert!(ready.contains("STATUS=down fq-codel at 18 Mbit/s, sends 0.00 Mbit/s; up "), "{ready}");
    // Its seconds go on, whether or not there are frames.
    for _ in 0..3 {
        hear("WATCHDOG=1");
    }
    let id = link.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    hear("STOPPING=1");
    assert!(link.wait().unwrap().success());
    let last = io::read_to_string(link.stdout.take().unwrap()).unwrap();
    assert!(last.starts_with("'lan0-wan0' ran for ") && last.lines().count() == 1, "{last}");
    let _ = std::fs::remove_file(&path);
}
