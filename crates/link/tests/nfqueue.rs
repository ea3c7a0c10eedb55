//! A router of this machine's kernel holds packets, and lets them go as it is told.
//!
//! Each test has three hosts in network namespaces: a provider, a router, and a user. This
//! takes root's rights, `ip`, a kernel that has NFQUEUE, and a packet filter that has a
//! rule for it; elsewhere, a test prints `SKIP` and the reason.
#![cfg(target_os = "linux")]

use std::io::{self, IoSliceMut, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd as _};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use rustix::net::sockopt::{set_ip_tos, set_ipv6_tclass, set_socket_recv_buffer_size_force};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use tidegate_judge::host::{Host, Missing};
use tidegate_link::nfqueue::rules::{Name, Rules};
use tidegate_link::nfqueue::{Drops, HEADERS, OpenError, Queue, Settings, Verdict, WHOLE, filter};
use tidegate_wire::{Headers, Link, mark_congested};

const DOWN: u16 = 41;
const UP: u16 = 42;
/// The port of all receivers.
const PORT: u16 = 4_000;
/// How long packets may take that are let go, and so how long it takes to see that none
/// come.
const PATIENCE: Duration = Duration::from_millis(300);
const UDP: u8 = 17;

struct Bed {
    provider: Host,
    router: Host,
    user: Host,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

impl Family {
    /// The port of receivers at a host of a network: 1 between provider and router, 2
    /// between router and user; the router is host 1 in both, the other is host 2.
    fn at(self, network: u8, host: u8) -> SocketAddr {
        match self {
            Family::V4 => (Ipv4Addr::new(10, 9, network, host), PORT).into(),
            Family::V6 => {
                let [network, host] = [network, host].map(u16::from);
                (Ipv6Addr::new(0xfd00, 9, network, 0, 0, 0, 0, host), PORT).into()
            }
        }
    }

    fn protocol(self) -> u16 {
        match self {
            Family::V4 => 0x0800,
            Family::V6 => 0x86dd,
        }
    }

    /// Bytes of the headers of a datagram.
    fn headers(self) -> usize {
        match self {
            Family::V4 => 28,
            Family::V6 => 48,
        }
    }
}

/// The hosts; `None`, and why, if this machine cannot have them or hold packets.
fn bed(test: &str) -> Option<Bed> {
    let skip = |reason: &str| {
        // Past the harness, which hides what a test that passes prints.
        writeln!(io::stderr(), "SKIP {test}: {reason}").expect("standard error is open");
    };
    let bed = match Bed::new() {
        Ok(bed) => bed,
        Err(reason) => {
            skip(&reason.to_string());
            return None;
        }
    };
    let settings = settings(DOWN, HEADERS);
    match bed.router.run(move || Queue::open(&settings)) {
        Ok(_) => {}
        Err(error @ (OpenError::Unsupported(_) | OpenError::NotPermitted { .. })) => {
            skip(&error.to_string());
            return None;
        }
        Err(error) => panic!("{error}"),
    }
    match bed.set(&rules(true)) {
        Ok(_) => bed.remove(),
        Err(error @ filter::SetError::None(_)) => {
            skip(&error.to_string());
            return None;
        }
        Err(error) => panic!("{error}"),
    }
    Some(bed)
}

impl Bed {
    fn new() -> Result<Bed, Missing> {
        let [provider, router, user] = [Host::new()?, Host::new()?, Host::new()?];
        let missing = |error: io::Error| Missing(format!("a setting of the network: {error}"));
        for host in [&provider, &router, &user] {
            // Addresses that nobody else can have need no check, which takes seconds.
            host.set("ipv6/conf/default/accept_dad", "0").map_err(missing)?;
        }
        for (network, host, interface) in [(1, &provider, "outside"), (2, &user, "inside")] {
            let peer = format!("peer name eth0 netns {}", host.thread());
            router.words("ip", &format!("link add {interface} type veth {peer}"))?;
            for (host, interface, number) in [(&router, interface, 1), (host, "eth0", 2)] {
                let [v4, v6] = FAMILIES.map(|family| family.at(network, number).ip());
                host.words("ip", &format!("addr add {v4}/24 dev {interface}"))?;
                host.words("ip", &format!("addr add {v6}/64 dev {interface}"))?;
                host.words("ip", &format!("link set {interface} up"))?;
            }
            for family in FAMILIES {
                let gateway = family.at(network, 1).ip();
                let option = if family == Family::V4 { "-4" } else { "-6" };
                host.words("ip", &format!("{option} route add default via {gateway}"))?;
            }
        }
        router.set("ipv4/ip_forward", "1").map_err(missing)?;
        router.set("ipv6/conf/all/forwarding", "1").map_err(missing)?;
        Ok(Bed { provider, router, user })
    }

    fn open(&self, settings: Settings) -> Queue {
        self.router.run(move || Queue::open(&settings)).expect("the queue is free")
    }

    fn set(&self, rules: &Rules) -> Result<filter::Filter, filter::SetError> {
        let rules = rules.clone();
        self.router.run(move || filter::set(&rules))
    }

    fn remove(&self) {
        self.router.run(|| filter::remove(&name())).expect("rules are removed");
    }

    /// Sends datagrams with these contents, ECN-capable.
    fn send(from: &Host, to: SocketAddr, contents: &[Vec<u8>]) {
        let socket = from.run(move || match to {
            SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)),
        });
        let socket = socket.expect("there is a free port");
        let capable = match to {
            SocketAddr::V4(_) => set_ip_tos(&socket, 2),
            SocketAddr::V6(_) => set_ipv6_tclass(&socket, 2),
        };
        capable.expect("all sockets have this option");
        for datagram in contents {
            socket.send_to(datagram, to).expect("there is a route");
        }
    }

    /// What the kernel lost of a queue, which is closed then.
    fn drops(&self, queue: Queue) -> Drops {
        self.router.run(move || queue.drops()).expect("the kernel lists it")
    }
}

fn name() -> Name {
    Name::new("test").expect("it is a name")
}

fn rules(bypass: bool) -> Rules {
    Rules::new(name(), "outside", DOWN, UP, bypass).expect("two queues")
}

fn settings(number: u16, copy_bytes: u32) -> Settings {
    Settings { number, copy_bytes, longest: 1_024, fail_open: false }
}

/// A receiver of datagrams, and of their congestion field.
struct Receiver(UdpSocket);

impl Receiver {
    fn new(host: &Host, at: SocketAddr) -> Receiver {
        let socket = host.run(move || UdpSocket::bind(at)).expect("the port is free");
        let tells = match at {
            SocketAddr::V4(_) => setsockopt(&socket, sockopt::IpRecvTos, &true),
            SocketAddr::V6(_) => setsockopt(&socket, sockopt::Ipv6RecvTClass, &true),
        };
        tells.expect("all sockets have this option");
        socket.set_nonblocking(true).expect("all sockets can");
        // For all that a test sends at once.
        set_socket_recv_buffer_size_force(&socket, 1 << 20).expect("root may");
        Receiver(socket)
    }

    /// What comes until nothing more does: contents, and the congestion field.
    fn all(&self) -> Vec<(Vec<u8>, u8)> {
        let mut found = Vec::new();
        while wait(&self.0) {
            let mut bytes = [0; 2_048];
            let mut space = nix::cmsg_space!(i32, i32);
            let mut parts = [IoSliceMut::new(&mut bytes)];
            let fd = self.0.as_raw_fd();
            let message = recvmsg::<()>(fd, &mut parts, Some(&mut space), MsgFlags::empty())
                .expect("a datagram waits");
            let mut controls = message.cmsgs().expect("there is room for all");
            let ecn = controls.find_map(|control| match control {
                ControlMessageOwned::Ipv4Tos(tos) => Some(tos & 3),
                ControlMessageOwned::Ipv6TClass(class) => Some(class.to_be_bytes()[3] & 3),
                _ => None,
            });
            let length = message.bytes;
            found.push((bytes[..length].to_vec(), ecn.expect("it was asked for")));
        }
        found
    }
}

/// Waits until something can be read, and returns whether it can.
fn wait(on: &impl AsFd) -> bool {
    let timeout = PollTimeout::try_from(PATIENCE).expect("it is short");
    let ready = poll(&mut [PollFd::new(on.as_fd(), PollFlags::POLLIN)], timeout);
    ready.expect("nothing interrupts it") > 0
}

/// A packet that was held.
#[derive(Clone, Debug)]
struct Taken {
    id: u32,
    protocol: u16,
    payload: Vec<u8>,
    length: u32,
}

/// Takes datagrams until no more come, or there are `most`. What else is held, such as the
/// neighbour discovery of IPv6, goes on.
fn take(queue: &mut Queue, most: usize) -> Vec<Taken> {
    let mut taken = Vec::new();
    while taken.len() < most && wait(queue) {
        let mut others = Vec::new();
        let received = queue.receive(|held| {
            let length = u64::from(held.length);
            let headers = Headers::read_captured(Link::RawIp, held.payload, length);
            let headers = headers.expect("it is a packet");
            if headers.flow.protocol() == UDP {
                let (id, protocol) = (held.id, held.protocol);
                let payload = held.payload.to_vec();
                taken.push(Taken { id, protocol, payload, length: held.length });
            } else {
                others.push(held.id);
            }
        });
        received.expect("the kernel makes sense");
        for id in others {
            queue.verdict(id, Verdict::Accept).expect("there is room");
        }
        queue.flush().expect("the kernel takes verdicts");
    }
    taken
}

/// Datagrams that say their number.
fn numbered(count: u8, bytes: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| vec![number; bytes]).collect()
}

#[test]
fn packets_leave_in_the_order_of_their_verdicts() {
    let Some(bed) = bed("order of verdicts") else { return };
    let filter = bed.set(&rules(false)).unwrap();
    for family in FAMILIES {
        let ways = [
            // Routed, and the router's own.
            (DOWN, &bed.provider, &bed.user, family.at(2, 2)),
            (UP, &bed.user, &bed.provider, family.at(1, 2)),
            (DOWN, &bed.provider, &bed.router, family.at(1, 1)),
            (UP, &bed.router, &bed.provider, family.at(1, 2)),
        ];
        for (number, from, to, address) in ways {
            let other = bed.open(settings(DOWN + UP - number, WHOLE));
            // The other queue lets go what it holds for neighbour discovery.
            let pump = thread::spawn(move || {
                let mut other = other;
                take(&mut other, usize::MAX).len()
            });
            let mut queue = bed.open(settings(number, WHOLE));
            let receiver = Receiver::new(to, address);
            Bed::send(from, address, &numbered(10, 100));
            let taken = take(&mut queue, 10);
            assert_eq!(taken.len(), 10, "{family:?} {number}");
            assert_eq!(pump.join().unwrap(), 0, "{family:?}: only one way is held");
            for (number, packet) in taken.iter().enumerate().rev() {
                let at = family.headers();
                assert_eq!(packet.protocol, family.protocol());
                assert_eq!((packet.payload.len(), packet.length as usize), (at + 100, at + 100));
                assert_eq!(usize::from(packet.payload[at]), number);
                let mut marked = packet.payload.clone();
                mark_congested(Link::RawIp, &mut marked).unwrap();
                let verdict = match number {
                    3 => Verdict::Drop,
                    5 => Verdict::Replace(&marked),
                    _ => Verdict::Accept,
                };
                queue.verdict(packet.id, verdict).unwrap();
            }
            let none = UdpSocket::recv(&receiver.0, &mut [0]).unwrap_err();
            assert_eq!(none.kind(), io::ErrorKind::WouldBlock, "verdicts wait for a flush");
            queue.flush().unwrap();
            let found: Vec<_> = receiver.all().iter().map(|(d, ecn)| (d[0], *ecn)).collect();
            let order = [9, 8, 7, 6, 5, 4, 2, 1, 0];
            let expected = order.map(|number| (number, if number == 5 { 3 } else { 2 }));
            assert_eq!(found, expected, "{family:?} {number} by {filter}");
            assert_eq!(queue.refused(), 0);
        }
    }
}

#[test]
fn headers_are_enough_to_let_a_packet_go_whole() {
    let Some(bed) = bed("copies of headers") else { return };
    bed.set(&rules(true)).unwrap();
    for family in FAMILIES {
        let mut queue = bed.open(settings(DOWN, HEADERS));
        let receiver = Receiver::new(&bed.user, family.at(2, 2));
        // More than fit into one call, and less than a neighbour who is not known yet may
        // have waiting.
        let sent = numbered(120, 300);
        Bed::send(&bed.provider, family.at(2, 2), &sent);
        let taken = take(&mut queue, 120);
        for packet in &taken {
            assert_eq!(packet.payload.len(), 128);
            assert_eq!(packet.length as usize, family.headers() + 300);
            queue.verdict(packet.id, Verdict::Accept).unwrap();
        }
        queue.flush().unwrap();
        let found: Vec<_> = receiver.all().into_iter().map(|(datagram, _)| datagram).collect();
        assert!(found == sent, "{family:?}: {} of {} arrived", found.len(), sent.len());
        assert_eq!(bed.drops(queue), Drops::default());
    }
}

#[test]
fn nothing_is_allocated_for_a_packet() {
    let Some(bed) = bed("allocations") else { return };
    bed.set(&rules(true)).unwrap();
    let mut queue = bed.open(settings(DOWN, WHOLE));
    let to = Family::V4.at(2, 2);
    Bed::send(&bed.provider, to, &numbered(100, 100));
    let mut packets: Vec<(u32, [u8; 128])> = Vec::with_capacity(200);
    let mut allocations = allocation_counter::measure(|| {
        while queue.receive(|held| packets.push((held.id, [0; 128]))).unwrap() > 0 {}
    });
    allocations += allocation_counter::measure(|| {
        for (number, (id, payload)) in packets.iter().enumerate() {
            let verdict = if number % 2 == 0 { Verdict::Drop } else { Verdict::Replace(payload) };
            queue.verdict(*id, verdict).unwrap();
        }
        queue.flush().unwrap();
    });
    assert!(packets.len() >= 100, "{}", packets.len());
    assert_eq!(allocations.count_total, 0);
}

#[test]
fn super_packets_are_split() {
    let Some(bed) = bed("super-packets") else { return };
    bed.set(&rules(false)).unwrap();
    for family in FAMILIES {
        let at = family.at(2, 2);
        let listener = bed.user.run(move || TcpListener::bind(at)).unwrap();
        let receiver = thread::spawn(move || {
            let mut bytes = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
            bytes
        });
        let sent: Vec<u8> = (0..1_000_000_u32).map(|at| at.to_le_bytes()[0] ^ 0x5a).collect();
        let copy = sent.clone();
        let sender = bed
            .provider
            .begin(move || TcpStream::connect(at).and_then(|mut stream| stream.write_all(&copy)));
        let [mut down, mut up] = [DOWN, UP].map(|number| bed.open(settings(number, HEADERS)));
        let until = Instant::now() + Duration::from_secs(20);
        let mut longest = 0;
        while !receiver.is_finished() && Instant::now() < until {
            for queue in [&mut down, &mut up] {
                let mut ids = Vec::new();
                queue
                    .receive(|held| {
                        longest = longest.max(held.length);
                        ids.push(held.id);
                    })
                    .unwrap();
                ids.iter().for_each(|id| queue.verdict(*id, Verdict::Accept).unwrap());
                queue.flush().unwrap();
            }
            thread::sleep(Duration::from_micros(100));
        }
        sender.recv().unwrap().unwrap();
        assert!(receiver.join().unwrap() == sent, "{family:?}: something else arrived");
        assert_eq!(longest, 1_500, "{family:?}");
    }
}

#[test]
fn rules_say_what_becomes_of_packets_while_nobody_is_there() {
    let Some(bed) = bed("no queue") else { return };
    for family in FAMILIES {
        let receiver = Receiver::new(&bed.user, family.at(2, 2));
        let arrived = || {
            Bed::send(&bed.provider, family.at(2, 2), &numbered(3, 10));
            receiver.all().len()
        };
        bed.set(&rules(true)).unwrap();
        assert_eq!(arrived(), 3, "{family:?}: bypass");
        bed.set(&rules(false)).unwrap();
        assert_eq!(arrived(), 0, "{family:?}: no bypass");
        // What waits when a queue is closed is lost, and then it is as if there were none.
        let mut queue = bed.open(settings(DOWN, HEADERS));
        Bed::send(&bed.provider, family.at(2, 2), &numbered(3, 10));
        assert_eq!(take(&mut queue, 3).len(), 3);
        drop(queue);
        assert_eq!(receiver.all().len(), 0, "{family:?}: closed");
        // Removal needs no rules.
        bed.remove();
        bed.remove();
        assert_eq!(arrived(), 3, "{family:?}: removed");
    }
}

#[test]
fn rules_of_every_packet_filter_are_replaced_and_removed() {
    let Some(bed) = bed("removal") else { return };
    // What somebody else has stays, and so do the rules of another link.
    let other = Rules::new(Name::new("other").unwrap(), "inside", 7, 8, true).unwrap();
    let listings = || {
        bed.router.run(|| {
            let programs = ["iptables-save", "iptables-legacy-save", "ip6tables-legacy-save"];
            let list = |program: &&str| Command::new(program).args(["-t", "mangle"]).output();
            let text = |list: io::Result<std::process::Output>| {
                list.map_or(String::new(), |output| String::from_utf8(output.stdout).unwrap())
            };
            programs.iter().map(list).map(text).collect::<String>()
        })
    };
    bed.set(&other).unwrap();
    // The packet filter that is the last choice has rules of an earlier run, twice.
    let text = rules(true).iptables("");
    bed.router.run(move || {
        for program in ["iptables-legacy-restore", "ip6tables-legacy-restore"] {
            for _ in 0..2 {
                let mut command = Command::new(program);
                command.arg("--noflush").stdin(std::process::Stdio::piped());
                let Ok(mut child) = command.spawn() else { continue };
                child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
                assert!(child.wait().unwrap().success(), "{program}");
            }
        }
    });
    let filter = bed.set(&rules(false)).unwrap();
    let once = bed.set(&rules(false)).unwrap();
    assert_eq!(filter, once);
    if filter != filter::Filter::Nftables {
        let listings = listings();
        let jumps = listings.matches("-A FORWARD -j tidegate_test_down").count();
        let families = if filter == filter::Filter::Iptables { 1 } else { 2 };
        assert_eq!(jumps, families, "{listings}");
    }
    bed.remove();
    let left = listings();
    assert!(!left.contains("tidegate_test"), "{left}");
    if filter != filter::Filter::Nftables {
        assert!(left.contains("-A FORWARD -j tidegate_other_down"), "{left}");
    }
}

#[test]
fn a_full_queue_loses_packets_or_lets_them_go() {
    let Some(bed) = bed("a full queue") else { return };
    bed.set(&rules(true)).unwrap();
    // Nothing but what is sent: no neighbour discovery.
    bed.provider.set("ipv6/conf/all/disable_ipv6", "1").unwrap();
    let family = Family::V4;
    let receiver = Receiver::new(&bed.user, family.at(2, 2));
    for fail_open in [false, true] {
        let settings = Settings { longest: 4, fail_open, ..settings(DOWN, HEADERS) };
        let mut queue = bed.open(settings);
        Bed::send(&bed.provider, family.at(2, 2), &numbered(10, 10));
        assert_eq!(take(&mut queue, 10).len(), 4);
        assert_eq!(receiver.all().len(), if fail_open { 6 } else { 0 });
        let full = if fail_open { 0 } else { 6 };
        assert_eq!(bed.drops(queue), Drops { full, unread: 0 });
    }
}

#[test]
fn what_the_kernel_refuses_is_said() {
    let Some(bed) = bed("refusals") else { return };
    let mut queue = bed.open(settings(DOWN, HEADERS));
    let error = bed.router.run(|| Queue::open(&settings(DOWN, HEADERS)).unwrap_err());
    assert!(matches!(error, OpenError::Taken { number: DOWN, .. }), "{error}");
    // Another network has queues of its own.
    drop(bed.user.run(|| Queue::open(&settings(DOWN, HEADERS))).expect("it is free"));
    let error = bed.provider.run(|| {
        let mut ours = capabilities(None).expect("all threads have them");
        ours.effective.remove(CapabilitySet::NET_ADMIN);
        set_capabilities(None, ours).expect("all may have fewer");
        Queue::open(&settings(DOWN, HEADERS)).unwrap_err()
    });
    assert!(matches!(error, OpenError::NotPermitted { number: DOWN }), "{error}");
    // There is no such packet.
    queue.verdict(77, Verdict::Drop).unwrap();
    queue.verdict(78, Verdict::Replace(&[0; 20])).unwrap();
    queue.flush().unwrap();
    assert_eq!(queue.receive(|held| panic!("{held:?}")).unwrap(), 0);
    assert_eq!(queue.refused(), 2);
    let error = queue.verdict(1, Verdict::Replace(&[0; 65_532])).unwrap_err();
    assert_eq!(error.to_string(), "found a packet of 65532 bytes, expected at most 65531");
    let other = bed.user.run(move || queue.drops()).unwrap_err();
    assert_eq!(other.kind(), io::ErrorKind::NotFound);
}
