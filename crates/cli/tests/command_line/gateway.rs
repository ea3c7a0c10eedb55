//! `tidegate gateway`: the live gateway.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use super::running::{Running, SMALL};
use super::{Bench, json, stderr};

/// The hash of 'sesame'.
const SESAME: &str = "$2y$05$SfKZk2K.vBfaf3teYqPwB.mbLkjMio5bLbwjWFZcz8IPEnawhM2Zy";

#[test]
fn the_example_of_the_page_is_correct() {
    let bench = Bench::new("gateway-page");
    let page = include_str!("../../../../docs/gateway.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    bench.write("office.toml", example.expect("the page has one"));
    let text = bench.good(&["gateway", "check", "office.toml"]);
    assert!(text.starts_with("link       20 Mbit/s, at eth0\nscheduler  msf: "), "{text}");
    assert!(text.ends_with("class      guests, weight 1: 192.168.2.0/24\n"), "{text}");
    let plan = json(&bench.good(&["gateway", "check", "office.toml", "--json"]));
    assert_eq!(plan["rate_bps"], 20_000_000);
    assert_eq!(plan["classes"][0]["sources"][1], "2001:db8:0:1::/64");
}

#[test]
fn the_classes_of_the_page_are_shown_with_all_that_they_state() {
    let bench = Bench::new("gateway-classes");
    let page = include_str!("../../../../docs/gateway.md");
    let (_, section) = page.split_once("## Who is in which class").expect("the page has it");
    let example = section.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    bench.write("school.toml", example.expect("the section has one"));
    let message = bench.refused(&["gateway", "check", "school.toml"]);
    assert!(message.contains("school.toml:1:13: passwords: found 'users', which"), "{message}");
    bench.write("users", &format!("anna:{SESAME}\n"));
    let message = bench.refused(&["gateway", "check", "school.toml"]);
    assert!(message.contains("class.names: found 'bert', who has no password"), "{message}");
    bench.write("users", &format!("anna:{SESAME}\nbert:{SESAME}\n"));
    let text = bench.good(&["gateway", "check", "school.toml"]);
    for line in [
        "class      updates, weight 1: 10.1.0.0/16; to *.windowsupdate.com, deb.debian.org\n",
        "class      teachers, weight 4: 10.1.2.0/24; who logs in: anna, bert\n",
        "class      pupils, weight 2: 10.1.0.0/16\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let plan = json(&bench.good(&["gateway", "check", "school.toml", "--json"]));
    let classes = &plan["classes"];
    assert_eq!(classes[1]["users"], "name");
    assert_eq!(classes[1]["names"][1], "bert");
    assert_eq!(classes[0]["hosts"][1], "deb.debian.org");
    assert!(classes[2]["hosts"].is_null() && classes[2]["users"] == "address");
}

#[test]
fn who_logs_in_is_named_in_the_log() {
    let bench = Bench::new("gateway-login");
    let names = "names = [\"*\"]\n";
    bench.write("small.toml", &format!("passwords = \"users\"{SMALL}{names}"));
    bench.write("users", &format!("anna:{SESAME}\n"));
    let mut command = bench.command();
    let command = command.args(["gateway", "run", "small.toml"]);
    let mut gateway = Running::start(command.stdout(Stdio::piped()));
    let mut log = BufReader::new(gateway.child.stdout.take().unwrap()).lines();
    // Nobody listens at port 9, but whoever may not ask does not learn that.
    for (shown, status, user) in [
        ("", 407, serde_json::Value::Null),
        ("Proxy-Authorization: Basic YW5uYTp4\r\n", 407, "anna".into()),
        ("Proxy-Authorization: Basic YW5uYTpzZXNhbWU=\r\n", 502, "anna".into()),
    ] {
        let mut client = TcpStream::connect(gateway.address).unwrap();
        let head = format!("GET http://127.0.0.1:9/ HTTP/1.1\r\nHost: a\r\n{shown}\r\n");
        client.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        let record = json(&log.next().unwrap().unwrap());
        assert_eq!((&record["status"], &record["user"]), (&status.into(), &user), "{record}");
    }
    // Who is new in the file of passwords need not wait for another change.
    bench.write("users", &format!("anna:{SESAME}\nbert:{SESAME}\n"));
    let told = log.map(|line| json(&line.unwrap())).find(|line| !line["changes"].is_null());
    assert_eq!(told.unwrap()["changes"], "passwords");
}

#[test]
fn nobody_becomes_a_user_who_does_not_exist() {
    let bench = Bench::new("gateway-user");
    bench.write("small.toml", SMALL);
    let message = bench.refused(&["gateway", "run", "--user", "no such", "small.toml"]);
    assert!(message.contains("--user: found 'no such', expected the name of a user"), "{message}");
}

#[test]
fn the_schema_is_json_and_knows_the_tables() {
    let bench = Bench::new("gateway-schema");
    let schema = json(&bench.good(&["gateway", "check", "--schema"]));
    let class = &schema["$defs"]["Group"]["properties"];
    assert!(class["hosts"].is_object() && class["users"].is_object(), "{class}");
    for table in ["link", "intercept", "class", "timeouts", "limits", "tunnels"] {
        assert!(schema["properties"][table].is_object(), "{table}");
    }
}

#[test]
fn a_wrong_file_is_refused_in_one_line() {
    let bench = Bench::new("gateway-wrong");
    bench.write("wrong.toml", &SMALL.replace("10 Mbit/s", "10"));
    for command in ["check", "run"] {
        let message = bench.refused(&["gateway", command, "wrong.toml"]);
        assert!(
            message.contains("wrong.toml:6:8: link.rate: found '10', expected a rate"),
            "{message}"
        );
    }
    assert!(bench.refused(&["gateway", "run", "none.toml"]).contains("none.toml: cannot be read"));
    bench.refused(&["gateway", "check"]);
}

#[test]
fn it_serves_and_writes_a_line_of_json_for_each_request() {
    let bench = Bench::new("gateway-run");
    bench.write("small.toml", SMALL);
    let target = greeting(1);

    let mut command = bench.command();
    let command = command.args(["gateway", "run", "small.toml"]);
    let mut gateway = Running::start(command.stdout(Stdio::piped()));

    greet(gateway.address, target);
    let mut log = BufReader::new(gateway.child.stdout.take().unwrap());
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    let record = json(&line);
    assert_eq!((&record["class"], &record["status"]), (&"all".into(), &200.into()));
    assert_eq!(record["server"], target.to_string());
    assert!(record["waited_ms"].is_u64() && record["service_ms"].is_u64());

    let admin = gateway.admin;
    bench.write(
        "known.toml",
        &SMALL.replace("admin = \"127.0.0.1:0\"", &format!("admin = \"{admin}\"")),
    );
    let status = json(&bench.good(&["gateway", "status", "known.toml", "--json"]));
    assert_eq!(status["classes"][0]["completed"], 1);
    let text = bench.good(&["gateway", "status", "known.toml"]);
    assert!(text.starts_with("msf on 10 Mbit/s for ") && text.contains("\nall  "), "{text}");
    assert!(text.contains("127.0.0.1 ") && !text.lines().any(|line| line.len() > 120), "{text}");

    let top = ["gateway", "top", "known.toml", "--every", "100 ms", "--times", "2"];
    let lines = bench.good(&[&top[..], &["--json"]].concat());
    let moments: Vec<_> = lines.lines().map(json).collect();
    assert_eq!(moments.len(), 2);
    assert_eq!(moments[1]["classes"][0]["requests_per_s"], 0.0);
    let text = bench.good(&top);
    assert!(text.contains("s: 0% of 10 Mbit/s; ") && text.contains("waited ms\nall  "), "{text}");
    assert!(!text.contains('\x1b') && !text.lines().any(|line| line.len() > 120), "{text}");
    bench.refused(&["gateway", "top", "known.toml", "--every", "1 ms"]);

    // A signal has the file read again: what cannot change is refused, and nothing changes.
    for (text, expected) in [
        (
            SMALL.replace("[link]", "[link]\ninterface = \"lo\""),
            "link.interface cannot change while the gateway runs",
        ),
        (SMALL.replace("10 Mbit/s", "20"), "small.toml:6:8: link.rate: found '20'"),
        (SMALL.replace("10 Mbit/s", "20 Mbit/s"), "the file was read again"),
    ] {
        bench.write("small.toml", &text);
        gateway.signal("-HUP");
        // Where writing took long, the change of the file may have been seen before.
        until(&mut log, expected);
    }

    let status = json(&bench.good(&["gateway", "status", "known.toml", "--json"]));
    assert_eq!(status["rate_bps"], 20_000_000);

    drop(gateway);
    let gone = bench.run(&["gateway", "status", "known.toml"]);
    assert_eq!(gone.status.code(), Some(1));
    bench.write("none.toml", &SMALL.replace("admin = \"127.0.0.1:0\"", ""));
    assert!(bench.refused(&["gateway", "status", "none.toml"]).contains("admin: found nothing"));
}

#[test]
fn a_gateway_that_is_to_write_nothing_of_requests_writes_nothing() {
    let bench = Bench::new("gateway-silent");
    let silent = format!("log_requests = false\n{SMALL}");
    bench.write("small.toml", &silent);
    let target = greeting(3);
    let mut command = bench.command();
    let command = command.args(["gateway", "run", "small.toml"]);
    let mut gateway = Running::start(command.stdout(Stdio::piped()));
    let mut log = BufReader::new(gateway.child.stdout.take().unwrap());
    greet(gateway.address, target);
    let mut refused = TcpStream::connect(gateway.address).unwrap();
    refused.write_all(b"GET / HTTP/1.1\r\nbad\r\n\r\n").unwrap();
    let mut answer = String::new();
    refused.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");

    // From when the file says so, each has a line.
    bench.write("small.toml", SMALL);
    gateway.signal("-HUP");
    let mut line = String::new();
    while !line.contains("the file was read again") {
        line.clear();
        assert!(log.read_line(&mut line).unwrap() > 0);
        assert!(!line.contains("tidegate::request"), "{line}");
    }
    greet(gateway.address, target);
    assert_eq!(json(&until(&mut log, "tidegate::request"))["status"], 200);
    bench.write("small.toml", &silent);
    gateway.signal("-HUP");
    // The file may have been read twice before, and only this changes something.
    assert_eq!(json(&until(&mut log, "log_requests"))["changes"], "log_requests");
    greet(gateway.address, target);
    drop(gateway);
    let mut rest = String::new();
    log.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("tidegate::request"), "{rest}");
}

/// A server that greets so many clients, one after the other.
fn greeting(clients: usize) -> SocketAddr {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    std::thread::spawn(move || {
        for _ in 0..clients {
            let (mut stream, _) = server.accept().unwrap();
            let mut head = [0; 4_096];
            let _ = stream.read(&mut head).unwrap();
            stream
                .write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
                )
                .unwrap();
        }
    });
    address
}

/// Asks for a greeting through a gateway.
fn greet(gateway: SocketAddr, server: SocketAddr) {
    let mut client = TcpStream::connect(gateway).unwrap();
    let request = format!("GET http://{server}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("hello"), "{answer}");
}

/// Waits for a line of the log.
fn until(log: &mut impl BufRead, expected: &str) -> String {
    let mut line = String::new();
    while !line.contains(expected) {
        line.clear();
        assert!(log.read_line(&mut line).unwrap() > 0, "no line has {expected}");
    }
    line
}

#[test]
fn a_running_gateway_takes_a_file_that_changes_and_refuses_a_mistake() {
    let bench = Bench::new("gateway-reload");
    let with_token = SMALL.replace("[link]", "admin_token_file = \"token\"\n[link]");
    bench.write("token", "0123456789abcdef\n");
    let path = bench.0.join("token");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    bench.write("small.toml", &with_token);
    let mut command = bench.command();
    let command = command.args(["gateway", "run", "small.toml"]);
    let mut gateway = Running::start(command.stdout(Stdio::piped()));
    let mut log = BufReader::new(gateway.child.stdout.take().unwrap());
    let admin = gateway.admin;
    // The same file, but for the port that the system chose.
    let known =
        |text: &str| text.replace("admin = \"127.0.0.1:0\"", &format!("admin = \"{admin}\""));
    bench.write("known.toml", &known(&with_token));
    let rate =
        || json(&bench.good(&["gateway", "status", "known.toml", "--json"]))["rate_bps"].clone();
    let reload = ["gateway", "reload", "known.toml"];
    assert_eq!(bench.good(&reload), "the file was read again, and nothing differs\n");
    until(&mut log, "the file was read again");

    // As an editor writes it: a new file in the place of the old one.
    bench.write("new", &with_token.replace("10 Mbit/s", "20 Mbit/s"));
    fs::rename(bench.0.join("new"), bench.0.join("small.toml")).unwrap();
    let line = until(&mut log, "the file was read again");
    assert_eq!(json(&line)["changes"], "link.rate");
    assert_eq!(rate(), 20_000_000);
    // And in place.
    bench.write("small.toml", &with_token.replace("10 Mbit/s", "30 Mbit/s"));
    until(&mut log, "the file was read again");
    assert_eq!(rate(), 30_000_000);

    let mistake = "small.toml:7:8: link.rate: found '10', expected a rate";
    bench.write("small.toml", &with_token.replace("10 Mbit/s", "10"));
    assert!(bench.refused(&reload).contains(mistake));
    until(&mut log, mistake);
    assert_eq!(rate(), 30_000_000);
    // A mistake that is still there is still told.
    assert!(bench.refused(&[&reload[..], &["--json"]].concat()).contains(mistake));
    bench.write("small.toml", &with_token.replace("[link]", "limits.kept = 3\n[link]"));
    let answer = json(&bench.good(&[&reload[..], &["--json"]].concat()));
    assert!(answer["changes"].is_array(), "{answer}");
    assert_eq!(rate(), 10_000_000);

    // So is a change of another file that it names.
    bench.write("token", "fedcba9876543210\n");
    let mut line = String::new();
    while !line.contains("admin_token_file") {
        line = until(&mut log, "the file was read again");
    }
    assert_eq!(rate(), 10_000_000);

    bench.write("stranger.toml", &known(SMALL));
    for command in ["status", "reload"] {
        let refused = bench.run(&["gateway", command, "stranger.toml"]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(stderr(&refused).contains("it has another token than the file names"));
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let message = bench.refused(&["gateway", "status", "known.toml"]);
    assert!(message.contains("known.toml:5:20: admin_token_file: found 'token', which everybody"));
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_plan_says_who_gets_what_and_what_this_machine_lacks() {
    let bench = Bench::new("gateway-plan");
    let guests = "[[class]]\nname = \"guests\"\nweight = 4\nsources = [\"10.0.0.0/8\"]\n";
    bench.write("plan.toml", &(SMALL.to_owned() + guests));
    let plan = json(&bench.good(&["gateway", "plan", "plan.toml", "--users", "5", "--json"]));
    let [one, five] = &plan["shares"].as_array().unwrap()[..] else { panic!("{plan}") };
    assert_eq!(one["classes"][1]["user_bps"], 8_000_000);
    assert_eq!(
        (&five["users_of_each_class"], &five["classes"][1]["user_bps"]),
        (&5.into(), &1_600_000.into())
    );
    assert_eq!(five["classes"][0]["class_bps"], 2_000_000);
    assert!(plan["rules"].is_null());
    let text = bench.good(&["gateway", "plan", "plan.toml"]);
    assert!(!text.lines().any(|line| line.len() > 100), "{text}");
    let text = on_one_line(&text);
    for expected in [
        "link 10 Mbit/s scheduler",
        "While 10 users of each class want as much as they can get: all 2 Mbit/s together, 200 kbit/s each",
        "QUIC and other ports among it, passes as before",
        "fine listen 127.0.0.1:0: the port is free",
        "WARNING link.interface: none is named",
        "WARNING class guests: clients of 10.0.0.0/8 cannot reach",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap();
    let intercept = "intercept = { listen = \"0.0.0.0:13130\", tunnels = [443, 8443] }\n[link]";
    let text = SMALL.replace("listen = [\"127.0.0.1:0\"]", &format!("listen = [\"{taken}\"]"));
    bench.write("taken.toml", &text.replace("[link]", intercept));
    let output = bench.run(&["gateway", "plan", "--rules", "taken.toml"]);
    drop(listener);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("tidegate: the gateway would not start: "));
    let text = on_one_line(&String::from_utf8(output.stdout).unwrap());
    for expected in [
        &format!("PROBLEM listen {taken}: another program listens there"),
        "TCP to port 80 as HTTP and TCP to port 443, 8443 as tunnels, without",
        "QUIC (UDP to port 80, 443, 8443) is refused",
        "table inet tidegate { flags owner set users4",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}
