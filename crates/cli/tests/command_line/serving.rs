//! Results in a browser on this machine, as the browser and strangers see them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use super::Bench;

/// A running `tidegate serve`.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(bench: &Bench) -> Served {
        let mut child =
            bench.command().args(["serve", "."]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_once("http://").unwrap().1.split_once('/').unwrap().0.to_owned();
        Served { child, address }
    }

    /// The answer to a GET for `path`, asked for as `host`.
    fn asked_as(&self, host: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn asked(&self, path: &str) -> String {
        self.asked_as(&self.address, path)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn compare(bench: &Bench, out: &str, preset: &str) {
    bench.good(&[
        "compare",
        "--preset",
        preset,
        "--disciplines",
        "fifo,fq-codel",
        "--seeds",
        "3",
        "--duration",
        "6 s",
        "--out",
        out,
        "--force",
    ]);
}

#[test]
fn results_are_listed_opened_and_set_side_by_side() {
    let bench = Bench::new("serving");
    let served = Served::start(&bench);
    assert!(served.asked("/").contains("There are none yet"));
    compare(&bench, "slow link", "dsl");
    compare(&bench, "fast", "cable");
    bench.good(&["requests", "compare", "school", "--seeds", "1", "--out", "school"]);

    let list = served.asked("/");
    assert!(list.starts_with("HTTP/1.1 200 OK"), "{list}");
    for part in ["/runs/slow%20link/report.html", "/runs/fast/report.html", "Run fq-codel"] {
        assert!(list.contains(part), "{part}: {list}");
    }
    let report = served.asked("/runs/slow%20link/report.html");
    assert!(report.contains("16 Mbit/s down"));
    assert!(report.contains("content-security-policy: sandbox"), "reports may be a stranger's");
    assert!(served.asked("/runs/fast/flows.csv").contains("discipline,"));
    assert!(served.asked("/runs/fast/plots/loss.svg").contains("<svg"));

    let beside = served.asked("/beside?run=fast&run=slow%20link");
    for part in ["/runs/fast/plots/loss.svg", "/runs/slow%20link/plots/loss.svg", "Mbit/s"] {
        assert!(beside.contains(part), "{part}");
    }
    // The note of the table has the symbols too, but not their labels.
    assert!(beside.contains("aria-label=\"worse\""), "the slow link is not told from the fast");
    let mixed = served.asked("/beside?run=fast&run=school");
    assert!(mixed.starts_with("HTTP/1.1 200 OK"));
    assert!(served.asked("/beside?run=fast").contains("Fewer than two"));

    compare(&bench, "fast", "lte");
    let sweep = ["sweep", "--preset", "dsl", "--over", "rtt=10 ms,80 ms", "--out", "map"];
    bench.good(&[&sweep[..], &["--seeds", "2", "--duration", "6 s"]].concat());
    let list = served.asked("/");
    assert!(list.contains("A map over rtt") && list.contains("30 Mbit/s down"), "{list}");
}

#[cfg(unix)]
#[test]
fn nothing_but_results_is_given_out_and_only_to_this_machine() {
    let bench = Bench::new("serving-strangers");
    compare(&bench, "own", "dsl");
    bench.write("secret.txt", "a secret");
    bench.write("own/secret.csv", "a secret");
    std::os::unix::fs::symlink("../../secret.txt", bench.0.join("own/plots/link.svg")).unwrap();
    let served = Served::start(&bench);
    for path in [
        "/secret.txt",
        "/runs/secret.txt",
        "/runs/own/secret.csv",
        "/runs/own/../secret.txt",
        "/runs/own%2F..%2Fsecret.txt",
        "/runs/own/plots/link.svg",
        "/runs/own/plots/..%2F..%2F..%2Fsecret.txt",
        "/runs/../own/report.html",
        "/runs/%ff/report.html",
        "/runs/own/",
    ] {
        let answer = served.asked(path);
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
        assert!(!answer.contains("a secret"), "{path}");
    }
    assert!(served.asked("/runs/own/report.html").starts_with("HTTP/1.1 200"));
    assert!(served.asked_as("example.org", "/").starts_with("HTTP/1.1 403"));
    let mut stream = TcpStream::connect(&served.address).unwrap();
    let post =
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    stream.write_all(post.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
}

#[test]
fn a_folder_that_is_not_there_is_one_error() {
    let bench = Bench::new("serving-nothing");
    let message = bench.refused(&["serve", "missing"]);
    assert!(message.contains("missing: cannot be read"), "{message}");
}
