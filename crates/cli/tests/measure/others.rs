//! Servers of others: HTTP, iperf3 and netperf.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::bed::{Bed, Provider, SERVER, TIDEGATE, skip, stderr};

/// A server that has one large file, in parts if it is asked for them and gives them.
fn file_server(gives_parts: bool) -> SocketAddr {
    const SIZE: u64 = 1_000_000_000;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = move |stream: TcpStream| -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let (mut head, mut line) = (String::new(), String::new());
        while reader.read_line(&mut line)? > 2 {
            head += &std::mem::take(&mut line);
        }
        let last = head.lines().find_map(|it| it.strip_prefix("Range: bytes=0-"));
        let last = last.filter(|_| gives_parts).map(|it| it.parse::<u64>().unwrap());
        let (status, mut left) = match last {
            Some(last) => ("206 Partial Content", last + 1),
            None => ("200 OK", SIZE),
        };
        let mut stream = stream;
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {left}\r\n\r\n")?;
        let piece = [7; 10_000];
        while left > 0 && !head.starts_with("HEAD") {
            let size = left.min(10_000);
            stream.write_all(&piece[..size as usize])?;
            left -= size;
            // A rate of its own, so that a test does not take all of the machine.
            if left > 1_000_000 {
                thread::sleep(Duration::from_millis(2));
            }
        }
        Ok(())
    };
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream));
        }
    });
    address
}

fn run(server: &str) -> Value {
    let mut command = Command::new(TIDEGATE);
    let words = ["--rounds", "1", "--seconds", "3", "--flows", "2", "--json"];
    let output = command.args(["measure", "run", server]).args(words).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_file_at_a_server_of_http_loads_the_link_downwards() {
    // The interface towards the server is asked for.
    if Command::new("ip").arg("-V").stdout(Stdio::null()).status().is_err() {
        return skip("measure over HTTP", &"ip is not installed");
    }
    let both = [(true, 1), (false, 2)].map(|(gives_parts, notes)| {
        let server = format!("http://{}/large.bin", file_server(gives_parts));
        (thread::spawn(move || run(&server)), notes)
    });
    for (results, notes) in both {
        let results = results.join().unwrap();
        let run = &results["queues"][0]["runs"][0];
        let rate = run["download_bps"].as_f64().unwrap();
        // Two flows of 10 kB in a bit more than 2 ms each.
        assert!((5e6..81e6).contains(&rate), "{rate}");
        assert!(run["upload_bps"].is_null());
        assert!(run["round_trip"]["median_s"].as_f64().unwrap() < 0.1);
        assert_eq!(results["notes"].as_array().unwrap().len(), notes, "{}", results["notes"]);
        let short = &results["disciplines"][0]["short"];
        let (started, completed) = (&short["started"], &short["completed"]);
        assert!(started.as_u64() > Some(2) && started == completed, "{started} {completed}");
    }
}

/// Measures four seconds of load against a server of others, which runs in `bed` as `program`,
/// and holds the figures to the provider's rates.
fn load_both_ways(bed: &Bed, program: &str, arguments: &[&str], scheme: &str) {
    let mut server = bed.program("server", program, arguments);
    let mut server = server.stdout(Stdio::null()).spawn().unwrap();
    thread::sleep(Duration::from_millis(500));
    let target = format!("{scheme}://{SERVER}");
    let words = ["run", &target, "--rounds", "1", "--seconds", "4", "--flows", "2", "--json"];
    let output = bed.measure(&words).output().unwrap();
    let _ = server.kill();
    let _ = server.wait();
    assert!(output.status.success(), "{}", stderr(&output));
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = &results["queues"][0]["runs"][0];
    let (down, up) = (run["download_bps"].as_f64().unwrap(), run["upload_bps"].as_f64().unwrap());
    assert!((10e6..20e6).contains(&down) && (4e6..13e6).contains(&up), "{down} {up}");
    let median = run["round_trip"]["median_s"].as_f64().unwrap();
    assert!((0.02..0.3).contains(&median), "{median}");
}

const PROVIDER: Provider = Provider { down_bps: 20_000_000, up_bps: 10_000_000, buffer_ms: 100 };

#[test]
fn a_server_of_iperf3_loads_the_link_both_ways() {
    if Command::new("iperf3").arg("-v").stdout(Stdio::null()).status().is_err() {
        return skip("measure with iperf3", &"iperf3 is not installed");
    }
    let Some(bed) = Bed::new("measure-iperf3", &PROVIDER) else { return };
    load_both_ways(&bed, "iperf3", &["-s", "-1"], "iperf3");
}

#[test]
fn a_server_of_netperf_loads_the_link_both_ways() {
    if Command::new("netperf").arg("-V").stdout(Stdio::null()).status().is_err() {
        return skip("measure with netperf", &"netperf is not installed (Debian's non-free)");
    }
    let Some(bed) = Bed::new("measure-netperf", &PROVIDER) else { return };
    load_both_ways(&bed, "netserver", &["-D", "-4"], "netperf");
    // Nobody listens there any more.
    let target = format!("netperf://{SERVER}");
    let output =
        bed.measure(&["run", &target, "--rounds", "1", "--seconds", "3"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("netserver"), "{}", stderr(&output));
}
