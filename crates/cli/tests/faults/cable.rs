//! A link between two TAP interfaces, or on a router that has them: every byte of a frame is
//! written and read here.
//!
//! The kernel treats what is written to a TAP as a frame that came by a wire, with its tags
//! taken out and told beside it, and hands out what a wire would carry. So frames need no
//! host that would understand them, and both ends can be compared byte by byte.

use std::fs::File;
use std::io::ErrorKind;
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use tappers::{Interface, Tap};

use crate::hosts::Form;
use crate::network::{Network, skip};

/// A link's network whose interfaces `lan0` and `wan0` are held here.
pub(crate) struct Cable {
    pub(crate) network: Network,
    pub(crate) form: Form,
    pub(crate) inside: Tap,
    pub(crate) outside: Tap,
}

/// The address of a host inside.
pub(crate) const HOST: [u8; 4] = [192, 0, 2, 9];

/// How long one waits for a frame before looking anew.
const LOOK: Duration = Duration::from_micros(200);

impl Cable {
    /// Nothing where this machine does not permit it, which is said.
    pub(crate) fn new(name: &str, form: Form) -> Option<Cable> {
        let network = Network::new(name)?;
        let path = format!("/run/netns/{}", network.name);
        // A thread of its own, which ends in the other network.
        let opened = thread::spawn(move || -> Result<[Tap; 2], String> {
            let there = File::open(&path).map_err(|error| format!("{path}: {error}"))?;
            setns(there, CloneFlags::CLONE_NEWNET).map_err(|error| error.to_string())?;
            let open = |name| -> std::io::Result<Tap> {
                let mut tap = Tap::new_named(Interface::new(name)?)?;
                tap.set_nonblocking(true)?;
                Ok(tap)
            };
            let both = || Ok([open("lan0")?, open("wan0")?]);
            both().map_err(|error: std::io::Error| format!("TAP: {error}"))
        });
        match opened.join().unwrap() {
            Ok([inside, outside]) => {
                for name in ["lan0", "wan0"] {
                    network.ip(&format!("link set dev {name} addrgenmode none up"));
                }
                let cable = Cable { network, form, inside, outside };
                (form == Form::Between || cable.routes(name)).then_some(cable)
            }
            Err(missing) => {
                skip(name, &missing);
                None
            }
        }
    }

    /// Whether what comes from outside for [`HOST`] can be held on its way; if not, that is
    /// said.
    fn routes(&self, name: &str) -> bool {
        let [a, b, c, d] = HOST;
        for words in [
            "link set dev wan0 address 02:00:00:00:00:01".into(),
            format!("address add {a}.{b}.{c}.254/24 dev lan0"),
            format!("neigh add {a}.{b}.{c}.{d} lladdr 02:00:00:00:00:09 dev lan0"),
            // Of strangers everywhere, none is asked for.
            "route add default dev wan0".into(),
        ] {
            self.network.ip(&words);
        }
        self.network.says("sh", &["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]);
        match self.network.run(&self.form.words(&["--down", "1 Gbit/s", "--up", "1 Gbit/s"])) {
            Ok(link) => link.stop(&self.network),
            Err(said) if said.contains("found no ") => {
                skip(name, &said);
                return false;
            }
            Err(said) => panic!("{said}"),
        }
        true
    }
}

/// The next frame, if one comes in time.
pub(crate) fn receive<'a>(tap: &Tap, buffer: &'a mut [u8], time: Duration) -> Option<&'a [u8]> {
    let since = Instant::now();
    loop {
        match tap.recv(buffer) {
            Ok(length) => return Some(&buffer[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if since.elapsed() > time {
                    return None;
                }
                thread::sleep(LOOK);
            }
            Err(error) => panic!("TAP: {error}"),
        }
    }
}

/// Ethernet's header.
pub(crate) fn ethernet(tags: &[[u8; 4]], kind: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    tags.iter().for_each(|tag| frame.extend(tag));
    frame.extend(kind.to_be_bytes());
    frame
}

/// A packet of UDP over IPv4.
pub(crate) fn udp([from, to]: [[u8; 4]; 2], ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let length = 28 + payload.len() as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    packet.extend(from);
    packet.extend(to);
    let words = packet.chunks(2).map(|it| u32::from(u16::from_be_bytes([it[0], it[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend(ports[0].to_be_bytes());
    packet.extend(ports[1].to_be_bytes());
    packet.extend((length - 20).to_be_bytes());
    // Without a checksum, which IPv4 permits.
    packet.extend([0, 0]);
    packet.extend(payload);
    packet
}

/// A packet of UDP over IPv6, with a checksum that nobody looks at.
pub(crate) fn udp6(ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([17, 64]);
    for end in [1, 2] {
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end]);
    }
    packet.extend(ports[0].to_be_bytes());
    packet.extend(ports[1].to_be_bytes());
    packet.extend(length.to_be_bytes());
    packet.extend([1, 1]);
    packet.extend(payload);
    packet
}
