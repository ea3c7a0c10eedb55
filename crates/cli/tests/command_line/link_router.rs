//! `tidegate link` on a router: the rate that its users get, and what is left when the link
//! or the process beside it ends in any way.
//!
//! A router in a network of its own stands between a user and a provider, with the kernel's
//! TCP at both ends. This takes root's rights, `ip`, NFQUEUE, and nftables or iptables.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tidegate_judge::host::{Host, Missing};

use super::link::{Network, PATIENCE, kill_beside, until};
use super::{json, stderr};

const PROVIDER: [u8; 4] = [198, 51, 100, 1];
/// IP packets of 1500 bytes with 1448 of payload, without what Ethernet adds.
const RATES: [&str; 6] = ["--down", "20 Mbit/s", "--up", "20 Mbit/s", "--framing", "raw"];
const SIZE: usize = 1_000_000;
const EXPECTED: f64 = SIZE as f64 * 8.0 * (1_500.0 / 1_448.0) / 20e6;
/// What a connection is made in where nothing holds its packets.
const SOON: Duration = Duration::from_millis(500);

/// A user, a router and a provider, in a row.
struct Bed {
    router: Network,
    user: Host,
    server: SocketAddr,
    /// Serves as long as the bed is there.
    _provider: Host,
}

impl Bed {
    /// Nothing where this machine cannot hold packets, which is said.
    fn new(name: &str) -> Option<Bed> {
        let bed = Bed::connected(name)?;
        match bed.start(&[]) {
            Ok(link) => {
                bed.router.good(&["stop"]);
                drop(link);
                Some(bed)
            }
            Err(said) if said.contains("found no ") => {
                skip(name, &said);
                None
            }
            Err(said) => panic!("{said}"),
        }
    }

    fn connected(name: &str) -> Option<Bed> {
        let router = Network::empty(name)?;
        let hosts = || Ok((Host::new()?, Host::new()?));
        let (provider, user) = hosts().inspect_err(|missing: &Missing| skip(name, missing)).ok()?;
        let forwards = "echo 1 > /proc/sys/net/ipv4/ip_forward";
        assert!(router.command("sh", &["-c", forwards]).status().unwrap().success());
        for (host, name, network) in [(&provider, "wan0", "198.51.100"), (&user, "lan0", "192.0.2")]
        {
            let peer = host.thread();
            router.ip(&format!("link add {name} type veth peer name eth netns {peer}"));
            router.ip(&format!("address add {network}.254/24 dev {name}"));
            router.ip(&format!("link set dev {name} up"));
            host.words("ip", &format!("address add {network}.1/24 dev eth")).unwrap();
            host.words("ip", "link set eth up").unwrap();
            host.words("ip", &format!("route add default via {network}.254")).unwrap();
        }
        let (ready, listening) = mpsc::channel();
        drop(provider.begin(move || {
            let listener = TcpListener::bind(SocketAddr::from((PROVIDER, 0))).unwrap();
            ready.send(listener.local_addr().unwrap()).unwrap();
            for stream in listener.incoming() {
                // Those that only look whether it can be reached are gone by now.
                let _ = stream.and_then(|mut stream| stream.write_all(&[7; SIZE]));
            }
        }));
        let server = listening.recv().unwrap();
        Some(Bed { router, user, server, _provider: provider })
    }

    /// A link that carries, or what it says instead.
    fn start(&self, more: &[&str]) -> Result<Child, String> {
        self.start_by(&[], more)
    }

    /// The same, started by a program with these words.
    fn start_by(&self, starter: &[&str], more: &[&str]) -> Result<Child, String> {
        let program = [env!("CARGO_BIN_EXE_tidegate"), "link", "run", "wan0"];
        let words = [starter, &program, &RATES, more].concat();
        let mut command = self.router.command(words[0], &words[1..]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut all = String::new();
        while !all.contains("carries what passes wan0 of this router") {
            if said.read_line(&mut all).unwrap() == 0 {
                child.wait().unwrap();
                return Err(all);
            }
        }
        std::thread::spawn(move || io::copy(&mut said, &mut io::sink()));
        Ok(child)
    }

    fn run(&self, more: &[&str]) -> Child {
        self.start(more).unwrap()
    }

    /// The seconds that a download takes.
    fn fetch(&self) -> f64 {
        let server = self.server;
        self.user.run(move || {
            let mut stream = TcpStream::connect_timeout(&server, PATIENCE).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut buffer = vec![0; SIZE];
            let first = stream.read(&mut buffer).unwrap();
            let begun = Instant::now();
            stream.read_exact(&mut buffer[first..]).unwrap();
            let part = SIZE as f64 / (SIZE - first) as f64;
            begun.elapsed().mul_f64(part).as_secs_f64()
        })
    }

    /// Whether packets pass.
    fn passes(&self) -> bool {
        let server = self.server;
        self.user.run(move || TcpStream::connect_timeout(&server, SOON).is_ok())
    }

    /// Nothing is held, and what is set for it is gone.
    fn assert_free(&self) {
        assert_eq!(self.rules(), "");
        let took = self.fetch();
        assert!(took < EXPECTED / 2.0, "{took} s without a link");
        let left: Vec<_> = fs::read_dir(self.router.bench.0.join("run")).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }

    /// What packet filters have of ours.
    fn rules(&self) -> String {
        let ours = |program: &str, words: &[&str]| {
            let output = self.router.command(program, words).output();
            let text = output.map(|output| String::from_utf8(output.stdout).unwrap());
            // A program that is missing has set nothing.
            let text = text.unwrap_or_default();
            let lines = text.lines().filter(|line| line.contains("tidegate"));
            lines.map(|line| format!("{program}: {line}\n")).collect::<String>()
        };
        let families = ["iptables", "ip6tables", "iptables-legacy", "ip6tables-legacy"];
        let of_iptables = families.map(|program| ours(&format!("{program}-save"), &[]));
        of_iptables.concat() + &ours("nft", &["list", "tables"])
    }
}

/// Says so past the harness, which hides what a test that passes prints.
fn skip(name: &str, missing: &dyn std::fmt::Display) {
    writeln!(io::stderr(), "SKIP {name}: {missing}").expect("standard error is open");
}

fn kill(mut link: Child) {
    link.kill().unwrap();
    link.wait().unwrap();
}

#[test]
fn a_router_gets_its_rate_and_is_as_before_when_the_link_stops() {
    let Some(bed) = Bed::new("router-run") else { return };
    bed.assert_free();
    let mut link = bed.run(&["--discipline", "fq-codel"]);
    let took = bed.fetch();
    // On a machine that others use too, the end of a download may be late.
    assert!((EXPECTED * 0.95..EXPECTED * 1.3).contains(&took), "{took} s, expected {EXPECTED}");
    let status = json(&bed.router.good(&["status", "--json"]));
    let said = ["name", "form", "inside", "outside"].map(|key| status[key].clone());
    assert_eq!(said, ["wan0".into(), "nfqueue".into(), serde_json::Value::Null, "wan0".into()]);
    let down = &status["queues"][0];
    assert!(down["counts"]["sent_packets"].as_u64() > Some(600), "{down}");
    assert_eq!(down["failures"]["missed_frames"], 0, "{down}");
    let text = bed.router.good(&["status"]);
    assert!(text.starts_with("wan0: what passes wan0 of this router for "), "{text}");
    assert_ne!(bed.rules(), "");
    assert_eq!(bed.router.good(&["stop"]), "the link 'wan0' has ended\n");
    assert!(link.wait().unwrap().success());
    bed.assert_free();
}

#[test]
fn a_killed_link_that_fails_closed_holds_traffic_until_somebody_mends_it() {
    let Some(bed) = Bed::new("router-closed") else { return };
    kill(bed.run(&[]));
    assert!(!bed.passes(), "nobody decides about packets, and still they pass");
    assert_eq!(bed.router.good(&["stop"]), "took the rules of 'wan0' away\n");
    bed.assert_free();
    kill(bed.run(&[]));
    assert!(!bed.passes());
    let link = bed.run(&[]);
    assert!(bed.fetch() > EXPECTED * 0.95);
    bed.router.good(&["stop"]);
    bed.assert_free();
    drop(link);
}

#[test]
fn a_killed_link_that_fails_open_lets_packets_pass_and_its_rules_go() {
    let Some(bed) = Bed::new("router-open") else { return };
    kill(bed.run(&["--fail", "open"]));
    assert!(bed.passes(), "packets are held, and nobody decides about them");
    until("the rules go", || bed.rules().is_empty());
    // Its socket is the one thing that nobody takes away but the next link, or who stops it.
    let link = bed.run(&["--fail", "open"]);
    bed.router.good(&["stop"]);
    bed.assert_free();
    drop(link);
}

#[test]
fn a_link_goes_on_without_the_process_beside_it_and_stop_removes_what_that_would_have() {
    let Some(bed) = Bed::new("router-beside") else { return };
    for fail in ["closed", "open"] {
        let link = bed.run(&["--fail", fail]);
        kill_beside(&link);
        // As long as it takes to notice.
        std::thread::sleep(Duration::from_millis(700));
        assert!(bed.fetch() > EXPECTED * 0.95);
        let said = bed.router.good(&["stop"]);
        assert!(said.starts_with("the link 'wan0' has ended\n"), "{said}");
        bed.assert_free();
        drop(link);
        // As a service manager or Ctrl-C ends it: the link removes rules of nftables itself,
        // and may lack the right to remove those of iptables.
        let mut link = bed.run(&["--fail", fail]);
        let is_nft = bed.rules().starts_with("nft:");
        kill_beside(&link);
        let id = link.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let ended = link.wait().unwrap();
        assert_eq!(ended.success(), bed.rules().is_empty(), "{ended}");
        assert!(ended.success() || !is_nft, "{ended}");
        if !ended.success() {
            assert_eq!(bed.router.good(&["stop"]), "took the rules of 'wan0' away\n");
        }
        bed.assert_free();
        // Both at once.
        let link = bed.run(&["--fail", fail]);
        kill_beside(&link);
        kill(link);
        assert_eq!(bed.passes(), fail == "open");
        assert_eq!(bed.router.good(&["stop"]), "took the rules of 'wan0' away\n");
        bed.assert_free();
    }
}

#[test]
fn a_plan_for_a_router_says_what_is_held_and_changes_nothing() {
    let Some(bed) = Bed::connected("router-plan") else { return };
    let words = [&["plan", "wan0"][..], &RATES].concat();
    let output = bed.router.link(&words);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "Whatever comes from wan0 goes on at 20 Mbit/s at most, through fq-codel",
        "Whatever is to leave by wan0 does so at 20 Mbit/s at most",
        "rules of the packet filter have the kernel hold these packets (NFQUEUE)",
        "If the link dies, what passes wan0 is dropped until it runs again or 'tidegate link stop \
         --name wan0' takes the rules away.",
        "fine CAP_NET_ADMIN: this user may hold packets",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let open = bed.router.good(&[&words[..], &["--fail", "open", "--json"]].concat());
    let plan = json(&open);
    assert_eq!((&plan["inside"], &plan["outside"]), (&serde_json::Value::Null, &"wan0".into()));
    assert!(open.contains("packets pass without these queues"), "{open}");
    assert_eq!(bed.rules(), "");
    assert!(bed.passes());
}

#[test]
fn a_router_link_keeps_one_right_as_another_user() {
    let Some(bed) = Bed::new("router-rights") else { return };
    let link = bed.run(&["--user", "nobody"]);
    for task in fs::read_dir(format!("/proc/{}/task", link.id())).unwrap() {
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        // CAP_NET_ADMIN is number 12 in capabilities(7).
        for line in ["CapEff:\t0000000000001000", "CapPrm:\t0000000000001000", "NoNewPrivs:\t1"] {
            assert!(status.lines().any(|it| it == line), "{line}\n{status}");
        }
        assert!(!status.contains("Uid:\t0"), "{status}");
    }
    assert!(bed.fetch() > EXPECTED * 0.95);
    bed.router.good(&["stop"]);
    bed.assert_free();
    drop(link);
}

#[test]
fn a_router_link_that_nftables_serves_needs_no_root() {
    let Some(bed) = Bed::new("router-service") else { return };
    let link = bed.run(&[]);
    let holder = bed.rules();
    bed.router.good(&["stop"]);
    drop(link);
    if !holder.starts_with("nft:") {
        return skip("a router without root", &"nftables does not hold its packets here");
    }
    // What the unit has with net-admin.conf.
    let run = bed.router.bench.0.join("run");
    fs::create_dir_all(&run).unwrap();
    fs::set_permissions(&run, fs::Permissions::from_mode(0o777)).unwrap();
    let starter = "setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs \
                   --inh-caps -all,+net_admin --ambient-caps -all,+net_admin \
                   --bounding-set -all,+net_admin";
    let starter: Vec<_> = starter.split_whitespace().collect();
    for fail in ["closed", "open"] {
        let mut link = bed.start_by(&starter, &["--fail", fail]).unwrap();
        assert!(bed.fetch() > EXPECTED * 0.95);
        assert!(bed.rules().starts_with("nft:"));
        let id = link.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert!(link.wait().unwrap().success());
        bed.assert_free();
    }
}
