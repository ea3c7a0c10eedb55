//! `tidegate gateway run` as a service: what it tells systemd, and what it does when disks,
//! readers and descriptors fail it.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::running::{Running, SMALL};
use super::{Bench, json};

const PATIENCE: Duration = Duration::from_secs(20);

/// A server that answers each connection once.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4_096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    address
}

/// What the gateway answers to a request for this server.
fn ask(gateway: SocketAddr, server: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(gateway)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET http://{server}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn systemd_hears_when_it_serves_reloads_works_and_stops() {
    let bench = Bench::new("daemon-notify");
    bench.write("gateway.toml", SMALL);
    let socket = std::env::temp_dir().join(format!("tidegate-notify-{}", std::process::id()));
    let _ = fs::remove_file(&socket);
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    // The next message with this in it, and what came before.
    let hear = |state: &str| {
        let mut all = String::new();
        loop {
            let mut message = [0; 4_096];
            let size = manager.recv(&mut message).unwrap_or_else(|_| panic!("{state}: {all}"));
            all += &format!("{}\n", String::from_utf8_lossy(&message[..size]));
            if all.lines().any(|line| line == state) {
                return all;
            }
        }
    };
    let mut command = bench.command();
    command.args(["gateway", "run", "gateway.toml"]).stdout(Stdio::null());
    command.env("NOTIFY_SOCKET", &socket).env("WATCHDOG_USEC", "1500000");
    let gateway = Running::start(&mut command);

    let ready = hear("READY=1");
    assert!(ready.contains("STATUS=msf on 10 Mbit/s: 0 connections"), "{ready}");
    assert!(ask(gateway.address, server()).unwrap().ends_with("ok"), "it serves by then");
    for _ in 0..3 {
        hear("WATCHDOG=1");
    }
    bench.write("gateway.toml", &SMALL.replace("10 Mbit/s", "20 Mbit/s"));
    gateway.signal("-HUP");
    let reloading = hear("RELOADING=1");
    assert!(reloading.contains("\nMONOTONIC_USEC="), "{reloading}");
    let ready = hear("READY=1");
    assert!(ready.contains("STATUS=msf on 20 Mbit/s: "), "{ready}");
    // A file that is wrong ends the reload too, and the earlier settings stay.
    bench.write("gateway.toml", "nonsense");
    gateway.signal("-HUP");
    assert!(hear("READY=1").contains("STATUS=msf on 20 Mbit/s: "));
    gateway.signal("-TERM");
    hear("STOPPING=1");
    let _ = fs::remove_file(&socket);
}

#[test]
fn a_full_disk_costs_lines_of_the_log_and_no_requests() {
    let bench = Bench::new("daemon-full");
    bench.write("gateway.toml", SMALL);
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    let server = server();
    let mut command = bench.command();
    command.args(["gateway", "run", "gateway.toml"]).stdout(full()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("tidegate: listening at ").expect(&line);
    let address = address.parse().unwrap();
    for _ in 0..20 {
        assert!(ask(address, server).unwrap().ends_with("ok"));
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    let message = "the log cannot be written: No space left on device (os error 28)";
    assert_eq!(rest.matches(message).count(), 1, "{rest}");

    // Nor does it need a standard error that works.
    let mut command = bench.command();
    bench.write("gateway.toml", &SMALL.replacen("127.0.0.1:0", &free_address(), 1));
    let text = fs::read_to_string(bench.0.join("gateway.toml")).unwrap();
    let address: SocketAddr = text.split('"').nth(1).unwrap().parse().unwrap();
    command.args(["gateway", "run", "gateway.toml"]).stdout(full()).stderr(full());
    let child = command.spawn().unwrap();
    let _ends = Running { child, address, admin: address };
    until("it listens", || TcpStream::connect(address).is_ok());
    assert!(ask(address, server).unwrap().ends_with("ok"));
}

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[test]
fn a_log_that_nobody_reads_delays_no_requests() {
    let bench = Bench::new("daemon-pipe");
    bench.write("gateway.toml", SMALL);
    let mut command = bench.command();
    command.args(["gateway", "run", "gateway.toml"]).stdout(Stdio::piped());
    let gateway = Running::start(&mut command);
    let server = server();
    // A pipe holds 64 kB, and a line has more than 200 bytes.
    for _ in 0..400 {
        assert!(ask(gateway.address, server).unwrap().ends_with("ok"));
    }
}

#[test]
fn without_descriptors_it_waits_and_says_so_and_then_goes_on() {
    let bench = Bench::new("daemon-descriptors");
    bench.write("gateway.toml", SMALL);
    let mut command = Command::new("sh");
    command.current_dir(bench.0.join("."));
    let program = env!("CARGO_BIN_EXE_tidegate");
    command.args(["-c", &format!("ulimit -n 40; exec {program} gateway run gateway.toml")]);
    let log = fs::File::create(bench.0.join("log")).unwrap();
    let gateway = Running::start(command.stdout(log));
    let said = || fs::read_to_string(bench.0.join("log")).unwrap();
    let server = server();
    assert!(ask(gateway.address, server).unwrap().ends_with("ok"));

    let idle: Vec<_> = (0..60).map(|_| TcpStream::connect(gateway.address).unwrap()).collect();
    until("the log says so", || said().contains("no connection can be accepted"));
    let before = cpu_time(gateway.child.id());
    std::thread::sleep(Duration::from_secs(2));
    let spent = cpu_time(gateway.child.id()) - before;
    assert!(spent < Duration::from_millis(500), "it spins: {spent:?} in 2 s");
    assert_eq!(said().matches("no connection can be accepted").count(), 1, "{}", said());

    drop(idle);
    until("it serves again", || {
        ask(gateway.address, server).is_ok_and(|answer| answer.ends_with("ok"))
    });
    bench.write(
        "known.toml",
        &SMALL.replace("admin = \"127.0.0.1:0\"", &format!("admin = \"{}\"", gateway.admin)),
    );
    until("nothing is left over", || {
        let status = json(&bench.good(&["gateway", "status", "known.toml", "--json"]));
        status["connections"] == 0 && status["outstanding"] == 0 && status["held"] == 0
    });
}

#[test]
fn steps_of_the_clock_change_nothing_but_the_times_in_the_log() {
    let libraries = ["x86_64", "aarch64"]
        .map(|machine| format!("/usr/lib/{machine}-linux-gnu/faketime/libfaketime.so.1"));
    let Some(library) = libraries.iter().find(|path| fs::exists(path).unwrap_or(false)) else {
        // Past the harness, which hides what a test that passes prints.
        writeln!(std::io::stderr(), "SKIP steps of the clock: libfaketime is not installed")
            .expect("standard error is open");
        return;
    };
    let bench = Bench::new("daemon-clock");
    bench.write("gateway.toml", SMALL);
    bench.write("offset", "+0");
    let mut command = bench.command();
    command.args(["gateway", "run", "gateway.toml"]).env("LD_PRELOAD", library);
    command.env("FAKETIME_TIMESTAMP_FILE", bench.0.join("offset")).env("FAKETIME_NO_CACHE", "1");
    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let log = fs::File::create(bench.0.join("log")).unwrap();
    let gateway = Running::start(command.stdout(log));
    let server = server();
    // A step would end it if the time between two requests were the clock's.
    let mut idle = TcpStream::connect(gateway.address).unwrap();
    let began = Instant::now();
    for offset in ["+0", "+30d", "-30d", "+0"] {
        bench.write("offset", offset);
        assert!(ask(gateway.address, server).unwrap().ends_with("ok"), "{offset}");
    }
    write!(idle, "GET http://{server}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    idle.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("ok"), "{answer}");
    bench.write(
        "known.toml",
        &SMALL.replace("admin = \"127.0.0.1:0\"", &format!("admin = \"{}\"", gateway.admin)),
    );
    let status = json(&bench.good(&["gateway", "status", "known.toml", "--json"]));
    assert!(status["uptime_s"].as_f64().unwrap() <= began.elapsed().as_secs_f64() + 5.0);
    assert_eq!(status["classes"][0]["completed"], 5);
    until("the log is written", || {
        fs::read_to_string(bench.0.join("log")).unwrap().lines().count() >= 5
    });
    let log = fs::read_to_string(bench.0.join("log")).unwrap();
    let days: std::collections::BTreeSet<_> = log
        .lines()
        .map(|line| json(line)["timestamp"].as_str().unwrap()[..10].to_owned())
        .collect();
    assert!(days.len() >= 3, "the clock has not been set: {days:?}");
    let lines = log.lines().map(json);
    assert!(lines.clone().all(|line| line["waited_ms"].as_u64().is_some_and(|ms| ms < 20_000)));
}

/// The time that a process has spent (proc_pid_stat(5)), of which a second has 100 ticks.
fn cpu_time(process: u32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, numbers) = text.rsplit_once(')').unwrap();
    let number =
        |index: usize| -> u64 { numbers.split_whitespace().nth(index).unwrap().parse().unwrap() };
    Duration::from_millis(10 * (number(11) + number(12)))
}
