//! Datagrams that are relayed between clients that know of no gateway and their servers.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use crate::bed::{Bed, CLIENT, ROUTER, SERVER};
use crate::rights::{NOBODY, assert_has, rights};

/// The second user, beside [`CLIENT`].
const OTHER: &str = "10.77.1.3";

/// As a mask, `CAP_NET_ADMIN` and `CAP_NET_BIND_SERVICE`.
const FOR_SERVERS: &str = "0000000000001400";

fn file(mode: &str, more: &str) -> String {
    format!(
        r#"
admin = "127.0.0.1:3129"
[link]
rate = "2 Mbit/s"
interface = "access"
[intercept]
listen = "[::]:3130"
mode = "{mode}"
quic = "relay"
tunnels = [443, 8443, 8444]
{more}
[[class]]
name = "four"
weight = 4
sources = ["10.77.1.2", "fd77:1::/64"]
[[class]]
name = "one"
sources = ["{OTHER}"]
"#
    )
}

/// A bed on which datagrams can be handed over.
fn bed(name: &str) -> Option<Bed> {
    let bed = Bed::new(name)?;
    // Modules that the rules need are loaded when they are first named.
    let rule = "add table inet probe; add chain inet probe c { type filter hook prerouting \
                priority mangle; }; add rule inet probe c udp dport 443 tproxy ip to :1; \
                delete table inet probe";
    match bed.router.words("nft", rule) {
        Ok(()) => Some(bed),
        Err(reason) => {
            writeln!(io::stderr(), "SKIP {name}: this kernel hands no datagrams over: {reason}")
                .expect("standard error is open");
            None
        }
    }
}

#[test]
fn datagrams_go_through_the_gateway_and_answers_come_from_the_server() {
    for mode in ["redirect", "tproxy"] {
        let Some(bed) = bed("relay") else { return };
        let gateway = bed.start_with(&file(mode, ""), |gateway| {
            // Without root's rights, but for those to answer for servers.
            gateway.args(["--rules", "--user=nobody"]);
        });
        assert_has(&rights(&[gateway.0.id()]), NOBODY, FOR_SERVERS);
        for family in [0, 1] {
            let asked = bed.ask_by_udp(SERVER[family]).expect("there is an answer");
            assert_eq!(asked, format!("asked by {}", ROUTER[family]), "{mode}");
        }
        let status = bed.status();
        assert_eq!(status["quic_flows"], 2, "{status}");
        assert!(status["classes"][0]["received_bytes"].as_u64() > Some(20), "{status}");
        // Whoever is in no class is no business of the gateway.
        bed.client.words("ip", "address add 10.77.1.9/24 dev uplink").expect("it can be set");
        let stranger = bed.client.run(|| {
            let socket = UdpSocket::bind("10.77.1.9:0")?;
            ask(&socket, 443)
        });
        assert_eq!(stranger.ok().as_deref(), Some("asked by 10.77.1.9"), "{mode}");
        drop(gateway);
        bed.until("the rules are gone", || !bed.has_rules());
        for family in [0, 1] {
            let asked = bed.ask_by_udp(SERVER[family]).expect("there is an answer");
            assert_eq!(asked, format!("asked by {}", CLIENT[family]), "{mode}");
        }
    }
}

fn ask(socket: &UdpSocket, port: u16) -> io::Result<String> {
    socket.connect((SERVER[0], port))?;
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    socket.send(b"initial")?;
    let mut answer = [0; 64];
    let size = socket.recv(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..size]).into())
}

#[test]
fn flows_are_bounded_for_each_user_and_end_when_they_are_idle() {
    let Some(bed) = bed("bounded") else { return };
    let more = "[limits]\nconnections_per_user = 3\n[timeouts]\nidle = \"1500 ms\"";
    let _gateway = bed.start(&file("redirect", more));
    let open = || {
        bed.client.run(|| {
            let sockets = (0..5).map(|_| UdpSocket::bind((CLIENT[0], 0)));
            let sockets: Vec<_> = sockets.collect::<Result<_, _>>().expect("there are ports");
            // At once, so that none is idle before the last.
            let answers =
                sockets.into_iter().map(|socket| thread::spawn(move || ask(&socket, 443)));
            let answers: Vec<_> = answers.collect();
            let answers = answers.into_iter().map(|answer| answer.join().expect("no panic"));
            answers.filter(io::Result::is_ok).count()
        })
    };
    assert_eq!(open(), 3);
    bed.until("they are over", || bed.status()["quic_flows"] == 0);
    assert_eq!(bed.status()["connections"], 0);
    assert_eq!(open(), 3);
    let classes = bed.classes();
    assert_eq!(classes[0]["failed"], 0, "{classes:?}");
    assert!(classes[0]["completed"].as_u64() >= Some(3), "{classes:?}");
}

#[test]
fn a_server_that_is_away_is_found_when_it_is_back() {
    let Some(bed) = bed("away") else { return };
    let _gateway = bed.start(&file("redirect", ""));
    // Nobody listens there, and ICMP says so to the gateway.
    let socket = bed.client.run(|| {
        let socket = UdpSocket::bind((CLIENT[0], 0)).expect("there are ports");
        for _ in 0..3 {
            assert!(ask(&socket, 8443).is_err());
        }
        socket
    });
    assert_eq!(bed.status()["quic_flows"], 1);
    bed.server
        .run(|| -> io::Result<()> {
            let back = UdpSocket::bind(("::", 8443))?;
            thread::spawn(move || {
                while let Ok((_, from)) = back.recv_from(&mut [0; 64]) {
                    let _ = back.send_to(b"back", from);
                }
            });
            Ok(())
        })
        .expect("the port is free");
    let answer = bed.client.run(move || ask(&socket, 8443));
    assert_eq!(answer.ok().as_deref(), Some("back"));
    assert_eq!(bed.status()["quic_flows"], 1);
    // A datagram that no path carries is lost, and nothing else.
    let large = bed.client.run(|| {
        let socket = UdpSocket::bind((CLIENT[0], 0))?;
        socket.connect((SERVER[0], 443))?;
        socket.send(&[0xc0; 1_400])?;
        socket.send(&[0xc0; 9_000])?;
        socket.set_read_timeout(Some(Duration::from_secs(2)))?;
        socket.recv(&mut [0; 64])
    });
    assert!(large.is_ok(), "{large:?}");
}

/// The payload of a datagram of a download, as QUIC has it.
const PAYLOAD: usize = 1_200;

/// A sender with a window that grows by one in a round trip and is halved by a loss, as NewReno
/// without slow start. It takes a pause for no loss: as in QUIC, it sends two more datagrams and
/// hears from their acknowledgements what is missing (RFC 9002 section 6.2). It sends to whoever
/// asks, until nobody acknowledges any more.
fn send(socket: &UdpSocket) -> io::Result<()> {
    let (mut asked, mut window) = ([0; 2_000], 10.0_f64);
    let (_, client) = socket.recv_from(&mut asked)?;
    socket.connect(client)?;
    let (mut next, mut recover, mut silent) = (0_u64, 0_u64, 0);
    let (mut smoothed, mut varies) = (Duration::from_millis(333), Duration::from_millis(166));
    let mut outstanding = BTreeMap::new();
    let mut probes = 0;
    while silent < 5 {
        while (outstanding.len() as f64) < window || probes > 0 {
            let mut datagram = [0x40; PAYLOAD];
            datagram[1..9].copy_from_slice(&next.to_be_bytes());
            // A full queue of its own is a loss, too.
            let _ = socket.send(&datagram);
            outstanding.insert(next, Instant::now());
            (next, probes) = (next + 1, (probes - 1).max(0));
        }
        socket.set_read_timeout(Some((smoothed + 4 * varies) * (1 << silent)))?;
        let Ok(9) = socket.recv(&mut asked) else {
            (probes, silent) = (2, silent + 1);
            continue;
        };
        silent = 0;
        let number = u64::from_be_bytes(asked[1..9].try_into().expect("eight bytes"));
        if let Some(sent) = outstanding.remove(&number) {
            let sample = sent.elapsed();
            varies = (3 * varies + smoothed.abs_diff(sample)) / 4;
            smoothed = (7 * smoothed + sample) / 8;
        }
        window += 1.0 / window;
        // What was sent three before it is lost (RFC 9002 section 6.1.1).
        let rest = outstanding.split_off(&number.saturating_sub(2));
        if outstanding.keys().any(|lost| *lost >= recover) {
            (window, recover) = ((window / 2.0).max(2.0), next);
        }
        outstanding = rest;
    }
    Ok(())
}

/// How long users download. What comes in the second half counts. At 2 Mbit/s, a sender that a
/// busy machine lets wait for 20 ms still has something in its queue.
const TIME: Duration = Duration::from_secs(8);

fn download(from: &str, port: u16) -> io::Result<usize> {
    let socket = UdpSocket::bind((from, 0))?;
    socket.connect((SERVER[0], port))?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    // What looks like a request.
    socket.send(&[0x41; 200])?;
    let (since, mut all) = (Instant::now(), 0);
    let mut datagram = [0; 2_000];
    while since.elapsed() < TIME {
        let size = socket.recv(&mut datagram)?;
        if since.elapsed() > TIME / 2 {
            all += size;
        }
        socket.send(&datagram[..9])?;
    }
    Ok(all)
}

/// What the two users receive who download at the same time, each from one of these ports.
fn both(bed: &Bed, ports: [u16; 2]) -> (f64, f64) {
    let servers = bed.server.run(move || ports.map(|port| UdpSocket::bind((SERVER[0], port))));
    for server in servers {
        let server = server.expect("the port is free");
        thread::spawn(move || send(&server));
    }
    let users = [(CLIENT[0], ports[0]), (OTHER, ports[1])];
    let downloads = users.map(|(user, port)| {
        // In a thread of the client, and so in its network.
        bed.client.run(move || thread::spawn(move || download(user, port)))
    });
    let [four, one] = downloads
        .map(|download| download.join().expect("it does not panic").expect("it is served") as f64);
    (four, one)
}

#[test]
fn two_users_share_the_link_by_their_weights() {
    let Some(bed) = bed("shares-of-quic") else { return };
    let shape = "qdisc add dev uplink root tbf rate 10mbit burst 4000 limit 40000";
    if let Err(reason) = bed.server.words("tc", shape) {
        writeln!(io::stderr(), "SKIP shares of QUIC: {reason}").expect("standard error is open");
        return;
    }
    bed.client.words("ip", &format!("address add {OTHER}/24 dev uplink")).expect("it can be set");
    let gateway = bed.start(&file("redirect", ""));
    let (four, one) = both(&bed, [8443, 8444]);
    let classes = bed.classes();
    assert!((2.5..6.5).contains(&(four / one)), "{four} and {one}: {classes:?}");
    // In four seconds the link carries 1 MB at the rate that the gateway was told.
    assert!(four + one > 0.6e6, "{four} and {one}: {classes:?}");
    assert!(classes.iter().any(|class| class["dropped_datagrams"].as_u64() > Some(0)));
    drop(gateway);
    bed.until("the rules are gone", || !bed.has_rules());
    let (four, one) = both(&bed, [9443, 9444]);
    assert!((0.4..2.5).contains(&(four / one)), "without: {four} and {one}");
}
