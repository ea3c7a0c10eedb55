use tidegate_core::{Buffer, Bytes};

use super::super::data::Folder;
use super::*;
use crate::scenario::{LinkSpec, QueueSpec, TrafficKind};

const HOME: &str = r#"
    title = "t"
    duration = "10 s"
    seeds = 1
    disciplines = ["fifo"]
    [access]
    hosts = 2
    down = "20 Mbit/s"
    up = "5 Mbit/s"
    down_buffer = "100 ms"
    servers = ["3 ms", "40 ms"]
    [[traffic.transfers]]
    name = "files"
    from = "servers"
    to = "hosts"
    per_second = 2
    sizes = "30 kB"
    [[traffic.cbr]]
    name = "call, up"
    from = "host1"
    to = "server1"
    rate = "80 kbit/s"
    packet = "200 B"
"#;

fn with(text: &str, settings: &[(&str, &str)]) -> Result<Scenario, String> {
    let settings: Vec<_> = settings
        .iter()
        .map(|(key, value)| Setting { key: (*key).into(), value: (*value).into() })
        .collect();
    parse("t", text, &Folder(".".into()), &Overrides::default(), &settings)
        .map_err(|error| error.to_string())
}

fn home(key: &str, value: &str) -> Result<Scenario, String> {
    with(HOME, &[(key, value)])
}

fn link<'a>(scenario: &'a Scenario, name: &str) -> &'a LinkSpec {
    scenario.links.iter().find(|link| link.name == name).unwrap()
}

#[test]
fn a_setting_is_what_the_file_would_say() {
    let down = |key, value| link(&home(key, value).unwrap(), "down").clone();
    assert_eq!(down("access.down", "8 Mbit/s").capacity.rate(), Some(Rate(8_000_000)));
    assert_eq!(down("access.'delay'", "9 ms").delay, Span::millis(9));
    assert_eq!(home("access.hosts", "7").unwrap().nodes.len(), 7 + 4);
    assert_eq!(home("duration", "20 s").unwrap().duration, Span::seconds(20));
    // Entries of lists go by their names or numbers, and tables that are missing are made.
    let call = "traffic.cbr.'call, up'.rate";
    assert!(format!("{:?}", home(call, "1 Mbit/s").unwrap().traffic).contains("1000000"));
    assert!(home("traffic.cbr.1.rate", "1 Mbit/s").is_ok());
    assert!(home("access.servers.2", "90 ms").is_ok());
    assert!(home("tcp.profile", "papers").is_ok());
}

#[test]
fn short_names_act_on_whatever_the_network_is() {
    let faster = home("rate", "40 Mbit/s").unwrap();
    let rate = |name| link(&faster, name).capacity.rate();
    assert_eq!([rate("down"), rate("up")], [40_000_000, 10_000_000].map(|it| Some(Rate(it))));
    // A buffer in time follows the rate.
    let QueueSpec::Tested(buffer) = &link(&faster, "down").queue else { panic!() };
    assert_eq!(*buffer, Buffer::bytes(Bytes(500_000)));
    // 1 ms in the home and 3 ms to the nearest server leave 21 of 25 ms.
    let farther = home("rtt", "50 ms").unwrap();
    assert_eq!(link(&farther, "down").delay, Span::millis(21));
    let TrafficKind::Transfers { .. } = &home("load", "2").unwrap().traffic[0].kind else {
        panic!()
    };
    assert_ne!(
        format!("{:?}", home("load", "2").unwrap().traffic),
        format!("{:?}", home("load", "1").unwrap().traffic)
    );
    let small = home("buffer", "10 packets").unwrap();
    for name in ["down", "up"] {
        let QueueSpec::Tested(buffer) = &link(&small, name).queue else { panic!() };
        assert_eq!(*buffer, Buffer::packets(10));
    }
    let dumbbell = HOME.replace("[access]", "[dumbbell]\n[unused]");
    let dumbbell = dumbbell.split("[unused]").next().unwrap().to_string()
        + "[[traffic.transfers]]\nname = \"a\"\nfrom = \"senders\"\nto = \"receivers\"\n\
           count = 1\nsizes = \"1 MB\"\n";
    let slow = with(&dumbbell, &[("rate", "1 Mbit/s"), ("rtt", "60 ms")]).unwrap();
    assert_eq!(link(&slow, "bottleneck").capacity.rate(), Some(Rate(1_000_000)));
    assert_eq!(link(&slow, "bottleneck").delay, Span::millis(10));
}

#[test]
fn errors_name_the_key_what_was_found_and_what_was_expected() {
    let error = |key, value| home(key, value).unwrap_err();
    for (key, value, expected) in [
        ("access.dwon", "1 Mbit/s", "access.dwon: found unknown 'dwon', expected 'down'"),
        ("raet", "1 Mbit/s", "raet: found unknown 'raet', expected 'rate'"),
        ("rate", "5 Mbyte/s", "rate: found '5 Mbyte/s', expected a rate from 1 bit/s"),
        ("rtt", "2 ms", "rtt: found '2 ms', expected at least the 8 ms"),
        ("load", "-1", "load: found '-1', expected a factor above 0"),
        ("access.hosts", "0", "access.hosts: found 0, expected "),
        (
            "traffic.cbr.'call, pu'.rate",
            "1 Mbit/s",
            "traffic.cbr.'call, pu'.rate: found unknown 'call, pu' in 'cbr', expected 'call, up'",
        ),
        ("access.down.rate", "1", "access.down.rate: found a key below the value of 'down'"),
        ("traffic.cbr.1", "1", "traffic.cbr.1: found a whole entry of a list, expected a key"),
        ("seeds", "3", "seeds: found 'seeds', expected another key"),
        ("a..b", "3", "a..b: found 'a..b', expected a key"),
        // What a value breaks elsewhere is told with the value.
        ("duration", "0 s", "duration: found '0 ns', expected "),
        ("warm_up", "10 s", "warm_up: found '10 s', expected less than the duration"),
    ] {
        let message = error(key, value);
        assert!(message.starts_with(expected), "{key} = {value}: {message}");
    }
}

#[test]
fn a_key_that_an_override_would_hide_is_refused() {
    let settings = [Setting { key: "duration".into(), value: "20 s".into() }];
    let overrides = Overrides { duration: Some(Span::seconds(5)), ..Overrides::default() };
    let error = parse("t", HOME, &Folder(".".into()), &overrides, &settings).unwrap_err();
    assert!(error.to_string().starts_with("duration: found '20 s', expected another key"));
}
