//! Connections that are taken from clients that know of no gateway.

use std::io::ErrorKind;

use crate::bed::{Bed, CLIENT, ROUTER, SERVER};

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";

fn file(mode: &str, sources: &str) -> String {
    format!(
        r#"
admin = "127.0.0.1:3129"
[link]
rate = "20 Mbit/s"
[intercept]
listen = "[::]:3130"
mode = "{mode}"
[[class]]
name = "all"
sources = [{sources}]
"#
    )
}

#[test]
fn http_and_tunnels_pass_the_gateway_and_nothing_else_does() {
    for mode in ["redirect", "tproxy"] {
        let Some(bed) = Bed::new(mode) else { return };
        let gateway = bed.start(&file(mode, "\"10.77.1.0/24\", \"fd77:1::/64\""));
        for family in [0, 1] {
            let (client, router, server) = (CLIENT[family], ROUTER[family], SERVER[family]);
            let ask = |port| bed.ask(server, port, REQUEST).expect("there is an answer");
            let http = ask(80);
            assert!(http.ends_with(&format!("asked by {router}, Via: 1.1 tidegate\n")), "{http}");
            let tunnel = ask(443);
            assert!(tunnel.ends_with(&format!("asked by {router}, no Via\n")), "{tunnel}");
            let other = ask(8080);
            assert!(other.ends_with(&format!("asked by {client}, no Via\n")), "{other}");
            let quic = bed.ask_by_udp(server).map_err(|error| error.kind());
            assert_eq!(quic, Err(ErrorKind::ConnectionRefused), "{mode}");
        }
        // Its own port is no server.
        let own = bed.ask("10.77.1.1", 3130, REQUEST);
        assert!(!own.is_ok_and(|answer| answer.contains("200")), "{mode}");
        // However it ends, connections go to their servers again.
        drop(gateway);
        bed.until("the rules are gone", || !bed.has_rules());
        for family in [0, 1] {
            let (client, server) = (CLIENT[family], SERVER[family]);
            let http = bed.ask(server, 80, REQUEST).expect("there is an answer");
            assert!(http.ends_with(&format!("asked by {client}, no Via\n")), "{mode}: {http}");
            assert!(bed.ask_by_udp(server).is_ok(), "{mode}");
        }
    }
}

#[test]
fn who_is_in_no_class_is_not_taken_until_the_file_says_so() {
    let Some(bed) = Bed::new("no-class") else { return };
    let gateway = bed.start(&file("redirect", "\"10.77.9.0/24\""));
    for family in [0, 1] {
        let answer = bed.ask(SERVER[family], 80, REQUEST).expect("there is an answer");
        assert!(answer.ends_with(&format!("asked by {}, no Via\n", CLIENT[family])), "{answer}");
    }
    assert!(bed.ask_by_udp(SERVER[0]).is_ok());
    bed.reload(&gateway, &file("redirect", "\"10.77.1.2\""));
    bed.until("the client is taken", || {
        let answer = bed.ask(SERVER[0], 80, REQUEST);
        answer.is_ok_and(|answer| answer.contains("Via: 1.1 tidegate"))
    });
}

#[test]
fn rules_are_set_once_and_removed_as_a_whole() {
    for (mode, routing_rules) in [("redirect", 0), ("tproxy", 1)] {
        let Some(bed) = Bed::new("rules") else { return };
        let file = file(mode, "\"10.77.1.0/24\"");
        bed.rules("apply", &file);
        bed.rules("apply", &file);
        assert!(bed.has_rules());
        assert_eq!(bed.routing_rules(), routing_rules, "{mode}");
        // Nobody listens, and only packets that are as they were still have a server.
        let answer = bed.ask(SERVER[0], 80, REQUEST);
        assert_eq!(answer.is_ok(), mode == "tproxy", "{answer:?}");
        bed.rules("remove", &file);
        bed.rules("remove", &file);
        assert!(!bed.has_rules());
        assert_eq!(bed.routing_rules(), 0, "{mode}");
        let answer = bed.ask(SERVER[0], 80, REQUEST).expect("there is an answer");
        assert!(answer.ends_with("asked by 10.77.1.2, no Via\n"), "{answer}");
    }
}

#[test]
fn rules_that_are_refused_leave_everything_as_it_was() {
    let Some(bed) = Bed::new("refused") else { return };
    // One address is none to this nft, once it has been checked.
    let script = "#!/bin/sh\nreal=$(PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin command -v nft)\n\
                  [ \"$1\" = -i ] || exec \"$real\" \"$@\"\n\
                  sed -u 's/10\\.77\\.1\\.66/10.77.1.666/' | \"$real\" -i\n";
    let programs = bed.instead_of_nft(script);
    let path = std::env::var("PATH").expect("there is one");
    let _gateway = bed.start_with(&file("redirect", "\"10.77.1.2\""), move |gateway| {
        gateway.arg("--rules").env("PATH", format!("{}:{path}", programs.display()));
    });
    let taken = || bed.ask(SERVER[0], 80, REQUEST).expect("there is an answer");
    assert!(taken().contains("Via: 1.1 tidegate"));

    let answer = bed.ask_to_reload(&file("redirect", "\"10.77.1.66\""));
    assert!(!answer.status.success(), "{answer:?}");
    let said = String::from_utf8_lossy(&answer.stderr).into_owned();
    assert!(said.contains("nft: ") && said.contains("the earlier rules hold"), "{said}");
    // Neither the rules nor the classes are others.
    assert!(taken().contains("Via: 1.1 tidegate"));

    let answer = bed.ask_to_reload(&file("redirect", "\"10.77.1.7\""));
    assert!(answer.status.success(), "{answer:?}");
    assert!(taken().ends_with("asked by 10.77.1.2, no Via\n"));
}
