//! The rights that a gateway keeps.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;

use crate::bed::{Bed, Gateway, SERVER};

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";

/// As a mask, `CAP_NET_ADMIN`.
const NET_ADMIN: &str = "0000000000001000";
const NONE: &str = "0000000000000000";

/// Debian's user and group of that name.
pub(crate) const NOBODY: u32 = 65_534;

fn file(mode: &str, sources: &str) -> String {
    format!(
        r#"
listen = ["10.77.1.1:81"]
admin = "127.0.0.1:3129"
[link]
rate = "20 Mbit/s"
interface = "access"
[intercept]
listen = "0.0.0.0:3130"
mode = "{mode}"
[[class]]
name = "all"
sources = ["{sources}"]
"#
    )
}

/// What the kernel says about each thread of these processes: proc_pid_status(5).
pub(crate) fn rights(processes: &[u32]) -> Vec<BTreeMap<String, String>> {
    let threads = processes.iter().flat_map(|process| {
        fs::read_dir(format!("/proc/{process}/task")).expect("it runs").flatten()
    });
    let fields = |thread: fs::DirEntry| {
        let status = fs::read_to_string(thread.path().join("status")).expect("it runs");
        let fields = status.lines().filter_map(|line| line.split_once(":\t"));
        fields.map(|(key, value)| (key.to_owned(), value.trim().to_owned())).collect()
    };
    threads.map(fields).collect()
}

/// The processes that a gateway has started and that run.
fn children(gateway: &Gateway) -> Vec<u32> {
    let id = gateway.0.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
    let children = children.expect("it runs");
    children.split_whitespace().map(|child| child.parse().expect("a number")).collect()
}

pub(crate) fn assert_has(rights: &[BTreeMap<String, String>], user: u32, mask: &str) {
    for thread in rights {
        for key in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
            assert_eq!(thread[key], mask, "{key} of {thread:?}");
        }
        let user = user.to_string();
        for key in ["Uid", "Gid"] {
            assert!(thread[key].split('\t').all(|id| id == user), "{key} of {thread:?}");
        }
        assert_eq!(thread["NoNewPrivs"], "1", "{thread:?}");
    }
}

#[test]
fn with_rules_a_gateway_keeps_the_right_to_them_and_nothing_else() {
    for (mode, user) in
        [("redirect", Some("nobody")), ("tproxy", Some("nobody")), ("redirect", None)]
    {
        let Some(bed) = Bed::new("rights") else { return };
        let gateway = bed.start_with(&file(mode, "10.77.9.9"), move |gateway| {
            gateway.arg("--rules").args(user.map(|user| format!("--user={user}")));
        });
        // A name to look up starts a thread that has no more than the others.
        let unknown = "GET http://unknown.invalid/ HTTP/1.1\r\nHost: a\r\n\r\n";
        let _ = bed.ask("10.77.1.1", 81, unknown);
        let id = user.map_or(0, |_| NOBODY);
        let nft = children(&gateway);
        assert_eq!(nft.len(), 1);
        assert_has(&rights(&[gateway.0.id(), nft[0]]), id, NET_ADMIN);

        // The rules follow the file all the same, and go with the gateway, however it goes.
        bed.reload(&gateway, &file(mode, "10.77.1.2"));
        bed.until("the client is taken", || {
            let answer = bed.ask(SERVER[0], 80, REQUEST);
            answer.is_ok_and(|answer| answer.contains("Via: 1.1 tidegate"))
        });
        assert_eq!(bed.routing_rules(), usize::from(mode == "tproxy"));
        if mode == "tproxy" {
            // What it undoes itself, it still may.
            bed.end(gateway);
            assert_eq!(bed.routing_rules(), 0);
        } else {
            drop(gateway);
        }
        bed.until("the rules are gone", || !bed.has_rules());
        assert!(bed.ask(SERVER[0], 8080, REQUEST).is_ok());
    }
}

#[test]
fn without_rules_a_gateway_keeps_no_rights() {
    let Some(bed) = Bed::new("no-rights") else { return };
    let alone = file("redirect", "10.77.1.2")
        .replace("[intercept]\nlisten = \"0.0.0.0:3130\"\nmode = \"redirect\"\n", "");
    let served = |port| {
        let request = "GET http://10.77.2.2/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let answer = bed.ask("10.77.1.1", port, request).expect("there is an answer");
        assert!(answer.contains("Via: 1.1 tidegate"), "{answer}");
    };
    for (user, id) in [(None, 0), (Some("nobody"), NOBODY)] {
        let gateway = bed.start_with(&alone, move |gateway| {
            gateway.args(user.map(|user| format!("--user={user}")));
        });
        served(81);
        assert_has(&rights(&[gateway.0.id()]), id, NONE);
    }
    // Who has none has none to lose.
    let alone = alone.replace(":81", ":3128");
    let ordinary = bed.try_to_start(&alone, |gateway| {
        gateway.uid(NOBODY).gid(NOBODY);
    });
    match ordinary {
        Ok(gateway) => {
            served(3128);
            assert_has(&rights(&[gateway.0.id()]), NOBODY, NONE);
        }
        Err(reason) => {
            assert_eq!(reason.kind(), io::ErrorKind::PermissionDenied);
            writeln!(io::stderr(), "SKIP an ordinary user: none may start the program where it is")
                .expect("standard error is open");
        }
    }
}
