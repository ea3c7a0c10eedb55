//! `tidegate qdisc`: what it refuses, the rates that it holds, and what is left when it is
//! taken away, when its interface vanishes, and when it is killed.
//!
//! Queues of the kernel take root's rights, `ip`, `tc`, `nsenter` and `unshare`, and a kernel
//! that has BPF qdiscs. `make kernel-qdisc` runs these tests in a guest.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tidegate_judge::host::Host;

use super::{Bench, json, stderr};

const NEAR: [u8; 4] = [10, 9, 0, 1];
const FAR: [u8; 4] = [10, 9, 0, 2];
/// Promises on a link of 10 Mbit/s.
const CALLS: &str = r#"
    link = "10 Mbit/s"
    [[real_time]]
    name = "calls"
    protocol = "udp"
    curve = "400 B + 88 kbit/s"
    deadline = "20 ms"
"#;
/// Bytes of the headers of a datagram.
const HEADERS: usize = 28;
/// A datagram, with them.
const SIZE: usize = 1_000;

#[test]
fn wrong_arguments_are_one_line_and_exit_code_2() {
    let bench = Bench::new("qdisc-wrong");
    bench.write("calls.toml", CALLS);
    for (arguments, words) in [
        (&["qdisc"][..], "a command is missing"),
        (&["qdisc", "add", "--up", "1mbit"], "<INTERFACE>"),
        (&["qdisc", "add", "lo"], "--up <RATE>"),
        (&["qdisc", "add", "lo", "--up", "0 bit/s"], "a rate above zero"),
        (&["qdisc", "add", "an interface", "--up", "1mbit"], "the name of an interface"),
        (
            &["qdisc", "add", "lo", "--up", "1mbit", "--discipline", "cake"],
            "expected one of fifo, las, lars, run2c, scfq, efd, deadlines, tide",
        ),
        (
            &["qdisc", "add", "lo", "--up", "1mbit", "--discipline", "efd:low=las"],
            "found low=las, expected 'fifo'",
        ),
        (
            &["qdisc", "add", "lo", "--up", "1mbit", "--discipline", "deadlines:assignment=tight"],
            "found assignment=tight, expected 'bounded' or 'idle'",
        ),
        (
            &["qdisc", "add", "lo", "--up", "9mbit", "--discipline", "deadlines:flows=calls.toml"],
            "flows for at most the 9 Mbit/s of that link",
        ),
        (&["qdisc", "change", "lo"], "found nothing to set"),
        (&["qdisc", "change", "lo", "--direction", "up"], "found --direction alone"),
    ] {
        let message = bench.refused(arguments);
        assert!(message.contains(words), "{arguments:?}: {message}");
    }
}

#[test]
fn a_dry_run_says_what_would_be_typed_and_types_nothing() {
    let bench = Bench::new("qdisc-dry");
    let add = ["qdisc", "add", "lo", "--up", "9 Mbit/s", "--down", "47 Mbit/s", "--dry-run"];
    let text = bench.good(&add);
    for line in [
        "up: efd at 9 Mbit/s, a buffer of 100 ms, packets as on ethernet\n",
        "  tc qdisc add dev lo root efd_N\n",
        "  tc filter add dev lo ingress matchall action mirred egress redirect dev ifb4lo\n",
        "'tidegate qdisc del lo' would undo all of it.\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let plan = json(&bench.good(&[&add[..], &["--json"]].concat()));
    assert_eq!(plan["plan"][0]["note"]["rate_bps"], 47_000_000);
    assert!(!fs::exists("/sys/class/net/ifb4lo").unwrap());
}

/// An interface whose frames another host gets.
struct Bed {
    near: Host,
    far: Host,
    /// What has the files of the network of `near`.
    holder: Child,
    /// The process that they belong to.
    inside: u32,
    bench: Bench,
}

impl Bed {
    /// Nothing where this machine cannot have such queues, which is said.
    fn new(name: &str) -> Option<Bed> {
        let skip = |reason: &str| {
            // Past the harness, which hides what a test that passes prints.
            writeln!(io::stderr(), "SKIP {name}: {reason}").expect("standard error is open");
        };
        let hosts = || Ok::<_, tidegate_judge::host::Missing>((Host::new()?, Host::new()?));
        let (near, far) = hosts().inspect_err(|missing| skip(&missing.0)).ok()?;
        let mounts = "mount -t sysfs sysfs /sys && mount -t bpf bpf /sys/fs/bpf && echo $$ && exec sleep 86400";
        let thread = near.thread().to_string();
        let mut holder = Command::new("nsenter")
            .args(["-t", &thread, "-n", "unshare", "-m", "sh", "-c", mounts])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .inspect_err(|reason| skip(&format!("nsenter: {reason}")))
            .ok()?;
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Ok(inside) = line.trim().parse() else {
            skip("it cannot mount files of a network of its own");
            return None;
        };
        let bed = Bed { near, far, holder, inside, bench: Bench::new(name) };
        bed.connect();
        let probe = bed.output(&["add", "near", "--up", "9mbit"]);
        if !probe.status.success() {
            assert!(stderr(&probe).contains("no BPF qdiscs"), "{}", stderr(&probe));
            skip(stderr(&probe).trim());
            return None;
        }
        bed.good(&["del", "near"]);
        Some(bed)
    }

    fn connect(&self) {
        let other = self.far.thread();
        let line = format!("link add near type veth peer name far netns {other}");
        self.near.words("ip", &line).unwrap();
        for (host, name, own) in [(&self.near, "near", NEAR), (&self.far, "far", FAR)] {
            host.words("ip", &format!("link set {name} addrgenmode none up")).unwrap();
            let [a, b, c, d] = own;
            host.words("ip", &format!("address add {a}.{b}.{c}.{d}/24 dev {name}")).unwrap();
        }
    }

    fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.inside.to_string(), "-n", "-m", program]).args(words);
        command.stdin(Stdio::null());
        command
    }

    fn output(&self, words: &[&str]) -> Output {
        let words = [&["qdisc"], words].concat();
        self.command(env!("CARGO_BIN_EXE_tidegate"), &words).output().unwrap()
    }

    fn good(&self, words: &[&str]) -> String {
        let output = self.output(words);
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn bad(&self, words: &[&str]) -> String {
        let output = self.output(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        stderr(&output)
    }

    fn show(&self) -> serde_json::Value {
        json(&self.good(&["show", "near", "--json"]))
    }

    /// By its path, since the programs of a guest may be all in one, which knows better.
    fn says(&self, line: &str) -> String {
        let words: Vec<_> = line.split(' ').collect();
        let output = self.command(words[0], &words[1..]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// All that could be left: queues, filters, devices, settings, and what the kernel keeps.
    fn traces(&self) -> String {
        [
            "/sbin/tc qdisc show",
            "/sbin/tc filter show dev near ingress",
            "/sbin/ip -details link show type ifb",
            "/sbin/ip -details link show dev near",
            "/sbin/ethtool --show-features near",
            "ls /sys/fs/bpf",
        ]
        .map(|line| self.says(line))
        .concat()
    }

    /// Floods the way for so long, with a quarter more than `megabits`, and returns the rate
    /// at which datagrams arrive, in bits per second of IP.
    fn flood(&self, is_up: bool, megabits: f64, seconds: f64) -> f64 {
        let (from, to, address) = match is_up {
            true => (&self.near, &self.far, FAR),
            false => (&self.far, &self.near, NEAR),
        };
        let receiver = to.run(move || UdpSocket::bind(SocketAddr::from((address, 4_000))).unwrap());
        receiver.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let received = to.begin(move || {
            let mut bytes = [0; 2_048];
            let mut times = Vec::new();
            while receiver.recv(&mut bytes).is_ok() {
                times.push(Instant::now());
            }
            times
        });
        from.run(move || {
            // The packets of one sender that wait are bounded.
            let senders: Vec<_> = (0..4).map(|_| UdpSocket::bind("0.0.0.0:0").unwrap()).collect();
            let gap = Duration::from_secs_f64(SIZE as f64 * 8.0 / (1.25e6 * megabits));
            let begun = Instant::now();
            for number in 0.. {
                let due = gap * number;
                if due.as_secs_f64() > seconds {
                    return;
                }
                if let Some(wait) = due.checked_sub(begun.elapsed()) {
                    sleep(wait);
                }
                let _ = senders[number as usize % 4]
                    .send_to(&[0; SIZE - HEADERS], (std::net::Ipv4Addr::from(address), 4_000));
            }
        });
        let times = received.recv().unwrap();
        let span = *times.last().unwrap() - times[0];
        (times.len() - 1) as f64 * SIZE as f64 * 8.0 / span.as_secs_f64()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Within 1%.
fn near(found: f64, megabits: f64) {
    assert!((found / (1e6 * megabits) - 1.0).abs() < 0.01, "{found} bit/s of {megabits} Mbit/s");
}

#[test]
fn rates_are_held_both_ways_and_everything_is_put_back() {
    let Some(bed) = Bed::new("qdisc-rates") else { return };
    let before = bed.traces();
    let said =
        bed.good(&["add", "near", "--up", "4 Mbit/s", "--down", "8 Mbit/s", "--framing", "raw"]);
    assert!(said.contains("up: efd at 4 Mbit/s, as efd_"), "{said}");
    near(bed.flood(true, 4.0, 2.0), 4.0);
    near(bed.flood(false, 8.0, 2.0), 8.0);

    let states = bed.show();
    for (state, direction) in states.as_array().unwrap().iter().zip(["down", "up"]) {
        assert_eq!((&state["direction"], &state["discipline"]), (&direction.into(), &"efd".into()));
        let count = |name: &str| state["counts"][name].as_u64().unwrap();
        let lost: u64 = state["counts"]["lost"]
            .as_object()
            .unwrap()
            .values()
            .map(|it| it.as_u64().unwrap())
            .sum();
        assert!(lost > 0, "{state}");
        assert_eq!(count("arrived_packets"), count("sent_packets") + lost);
        // What `tc` says of it.
        let text = bed
            .says(&format!("/sbin/tc -s -j qdisc show dev {}", state["device"].as_str().unwrap()));
        let listed = json(&text);
        let listed =
            listed.as_array().unwrap().iter().find(|it| it["kind"] == state["qdisc"]).unwrap();
        let counted =
            ["packets", "drops", "qlen", "backlog"].map(|it| listed[it].as_u64().unwrap());
        assert_eq!(counted, [count("sent_packets"), lost, 0, 0]);
        // A full buffer of 100 ms, from which a packet that joins waits at most so long.
        let delay = state["delay"]["p50_ms"].as_f64().unwrap();
        assert!((80.0..115.0).contains(&delay), "{state}");
    }
    let text = bed.good(&["show"]);
    assert!(
        text.contains("near") && text.contains("ifb4near") && text.contains("8 Mbit/s"),
        "{text}"
    );

    // Another rate and another buffer, and nothing else.
    let change =
        ["change", "near", "--up", "2 Mbit/s", "--buffer", "20 packets", "--direction", "up"];
    bed.good(&change);
    near(bed.flood(true, 2.0, 2.0), 2.0);
    let states = bed.show();
    assert_eq!(
        (&states[1]["rate_bps"], &states[1]["buffer"]),
        (&2_000_000.into(), &"20 packets".into())
    );
    assert_eq!(
        (&states[0]["rate_bps"], &states[0]["buffer"]),
        (&8_000_000.into(), &"100 ms".into())
    );

    assert!(
        bed.bad(&["add", "near", "--up", "1mbit"]).contains("it has queues of Tidegate already")
    );
    let gone = bed.good(&["del", "near"]);
    assert_eq!(gone.lines().count(), 2, "{gone}");
    assert_eq!(bed.traces(), before);
    assert!(bed.bad(&["del", "near"]).contains("it has no queue of Tidegate"));
    assert_eq!(bed.good(&["show"]), "no interface has a queue of Tidegate\n");
}

#[test]
fn three_rights_of_root_suffice() {
    let Some(bed) = Bed::new("qdisc-rights") else { return };
    let before = bed.traces();
    let unit = include_str!("../../../../packaging/systemd/tidegate-qdisc@.service");
    let rights = unit.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet=CAP_"));
    let rights = rights.unwrap().to_lowercase().replace(" cap_", ",+");
    let rights = format!("-all,+{rights}");
    for words in [&["add", "near", "--up", "9mbit", "--down", "9mbit"][..], &["del", "near"]] {
        let program = ["--bounding-set", &rights, "--", env!("CARGO_BIN_EXE_tidegate"), "qdisc"];
        let output = bed.command("/usr/bin/setpriv", &[&program, words].concat()).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    assert_eq!(bed.traces(), before);
}

#[test]
fn what_others_have_put_there_stays() {
    let Some(bed) = Bed::new("qdisc-others") else { return };
    bed.near.words("tc", "qdisc add dev near root tbf rate 1mbit burst 3000 limit 30000").unwrap();
    assert!(bed.bad(&["add", "near", "--up", "1mbit"]).contains("the queue 'tbf'"));
    bed.good(&["add", "near", "--down", "1mbit"]);
    bed.good(&["del", "near"]);
    bed.near.words("tc", "qdisc add dev near clsact").unwrap();
    let before = bed.traces();
    assert!(bed.bad(&["add", "near", "--down", "1mbit"]).contains("use of its incoming traffic"));
    assert_eq!(bed.traces(), before);
}

#[test]
fn an_add_that_fails_or_is_killed_leaves_nothing_that_del_does_not_find() {
    let Some(bed) = Bed::new("qdisc-killed") else { return };
    let before = bed.traces();
    // A `tc` that does all but the last.
    let programs = bed.bench.0.join("programs");
    fs::create_dir_all(&programs).unwrap();
    let tc = programs.join("tc");
    let script = "#!/bin/sh\ncase $1 in filter) echo 'Error: not today' >&2; exit 2;; esac\n\
                  exec /sbin/tc \"$@\"\n";
    fs::write(&tc, script).unwrap();
    fs::set_permissions(&tc, fs::Permissions::from_mode(0o755)).unwrap();
    let add = ["qdisc", "add", "near", "--up", "9mbit", "--down", "9mbit"];
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut command = bed.command(env!("CARGO_BIN_EXE_tidegate"), &add);
    let failed = command.env("PATH", path).output().unwrap();
    assert_eq!(failed.status.code(), Some(1));
    assert!(stderr(&failed).ends_with("Error: not today\n"), "{}", stderr(&failed));
    assert_eq!(bed.traces(), before);

    let begun = Instant::now();
    bed.good(&add[1..]);
    bed.good(&["del", "near"]);
    let whole = begun.elapsed();
    for part in 1..=8 {
        let mut command = bed.command(env!("CARGO_BIN_EXE_tidegate"), &add);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        sleep(whole * part / 9);
        // nsenter has become the program: this is SIGKILL for it.
        let _ = child.kill();
        child.wait().unwrap();
        let cleared = bed.output(&["del", "near"]);
        assert!(cleared.status.success() || stderr(&cleared).contains("no queue"), "{cleared:?}");
        assert_eq!(bed.traces(), before, "killed after {part} ninths");
    }
}

#[test]
fn an_interface_may_vanish_with_packets_queued() {
    let Some(bed) = Bed::new("qdisc-vanished") else { return };
    let before = bed.says("ls /sys/fs/bpf");
    for discipline in ["fifo", "efd", "las"] {
        let add =
            ["add", "near", "--up", "8 kbit/s", "--down", "8 kbit/s", "--discipline", discipline];
        bed.good(&[&add[..], &["--buffer", "50 packets"]].concat());
        for (host, address) in [(&bed.near, FAR), (&bed.far, NEAR)] {
            host.run(move || {
                let sender = UdpSocket::bind("0.0.0.0:0").unwrap();
                for _ in 0..100 {
                    let _ = sender.send_to(&[0; 500], (std::net::Ipv4Addr::from(address), 9));
                }
            });
        }
        let states = bed.show();
        let queued = |way: usize| states[way]["queued_packets"].as_u64().unwrap();
        assert!(queued(0) >= 45 && queued(1) >= 45, "{states}");
        bed.near.words("ip", "link delete near").unwrap();
        assert_eq!(bed.good(&["del", "near"]).lines().count(), 2);
        assert_eq!(bed.says("ls /sys/fs/bpf"), before);
        assert!(!bed.says("/sbin/ip link show").contains("ifb4near"));
        bed.connect();
    }
}
