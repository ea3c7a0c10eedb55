//! What is changed at an interface is undone, however a measurement ends.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::bed::{Bed, INTERFACE, Provider, SERVER, stderr};

const PROVIDER: Provider = Provider { down_bps: 20_000_000, up_bps: 10_000_000, buffer_ms: 100 };
const WORDS: [&str; 8] =
    ["--queues", "a=fifo:20ms", "--down", "10mbit", "--up", "5mbit", "--rounds", "100"];

/// A measurement that loads the link with a queue of ours.
fn begun(bed: &Bed) -> Child {
    let mut command = bed.measure(&[&["run", SERVER], &WORDS[..]].concat());
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let since = Instant::now();
    // It tries each queue first, and takes it away again.
    std::thread::sleep(Duration::from_millis(1_500));
    while !bed.left().contains("tbf 7d1e:") {
        assert!(since.elapsed() < Duration::from_secs(20), "no queue appears");
        std::thread::sleep(Duration::from_millis(50));
    }
    child
}

/// The number of the program that `ip` has become.
fn signal(child: &Child, signal: &str) {
    let number = child.id().to_string();
    let status = std::process::Command::new("kill").args([signal, &number]).status();
    assert!(status.unwrap().success());
}

#[test]
fn an_interruption_and_a_kill_leave_the_interface_as_it_was() {
    let Some(bed) = Bed::new("measure-undone", &PROVIDER) else { return };
    let before = bed.left();

    let child = begun(&bed);
    let since = Instant::now();
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    assert_eq!(bed.left(), before, "after Ctrl-C");

    let mut child = begun(&bed);
    signal(&child, "-KILL");
    child.wait().unwrap();
    let left = bed.left();
    assert!(left.contains("tbf 7d1e:") && left.contains("tgmeasure"), "{left}");
    let output = bed.measure(&["undo", INTERFACE]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(bed.left(), before, "after undo");
    let output = bed.measure(&["undo", INTERFACE]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("no measurement has left anything"), "{said}");

    let mut child = begun(&bed);
    signal(&child, "-KILL");
    child.wait().unwrap();
    let words = ["run", SERVER, "--rounds", "1", "--seconds", "3"];
    let output = bed.measure(&words).output().unwrap();
    assert!(stderr(&output).contains("undid what a measurement"), "{}", stderr(&output));
    assert!(output.status.success());
    assert_eq!(bed.left(), before, "after the next run");
}

#[test]
fn a_queue_that_somebody_has_configured_is_not_replaced() {
    let Some(bed) = Bed::new("measure-refused", &PROVIDER) else { return };
    let refused = |why: &str| {
        let before = bed.left();
        let output = bed.measure(&[&["run", SERVER], &WORDS[..]].concat()).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.lines().count() == 1 && said.contains(why), "{said}");
        assert_eq!(bed.left(), before);
    };
    bed.on("client", "tc", "qdisc add dev wan0 root handle 5: pfifo limit 100").unwrap();
    refused("found the queue pfifo 5:, which somebody has configured");
    bed.on("client", "tc", "qdisc del dev wan0 root").unwrap();
    bed.on("client", "tc", "qdisc add dev wan0 ingress").unwrap();
    refused("filters of what comes in");
    bed.on("client", "tc", "qdisc del dev wan0 ingress").unwrap();
    // Without a server nothing stays either.
    let before = bed.left();
    let words = [&["run", "198.51.100.77"], &WORDS[..]].concat();
    let output = bed.measure(&words).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(bed.left(), before, "after an error");
}
