//! Names that nobody answers for.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use crate::bed::{Bed, SERVER};

const FILE: &str = r#"
listen = ["10.77.1.1:3128"]
[link]
rate = "20 Mbit/s"
[intercept]
listen = "0.0.0.0:3130"
[[class]]
name = "all"
sources = ["10.77.1.0/24"]
"#;

/// More questions than a gateway has threads for.
const QUESTIONS: u32 = 100;
/// A question that nobody answers takes the system's resolver ten seconds.
const SOON: Duration = Duration::from_secs(4);

/// A name server that knows the server's address by all names that begin with `live`, and
/// never answers about others.
fn answer_names() -> io::Result<()> {
    let socket = UdpSocket::bind((SERVER[0], 53))?;
    let IpAddr::V4(address) = SERVER[0].parse().expect("an address") else { unreachable!() };
    thread::spawn(move || {
        let mut question = [0; 512];
        while let Ok((size, from)) = socket.recv_from(&mut question) {
            // A header of 12 bytes, and the labels of a name up to an empty one; then its
            // type and class (RFC 1035 section 4.1).
            let question = &question[..size];
            let Some(end) = question.iter().skip(12).position(|byte| *byte == 0) else { continue };
            let end = 12 + end + 5;
            if size < end || !question[13..].starts_with(b"live") {
                continue;
            }
            let is_v4 = question[end - 4..end - 2] == [0, 1];
            let mut answer = question[..2].to_vec();
            answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_v4), 0, 0, 0, 0]);
            answer.extend(&question[12..end]);
            if is_v4 {
                answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
                answer.extend(address.octets());
            }
            let _ = socket.send_to(&answer, from);
        }
    });
    Ok(())
}

/// Asks the gateway for a name on behalf of this user.
fn ask(user: [u8; 4], name: &str) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((user, 0)).into())?;
    socket.connect(&SocketAddr::from(([10, 77, 1, 1], 3128)).into())?;
    let mut stream = TcpStream::from(socket);
    write!(stream, "GET http://{name}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
    Ok(stream)
}

#[test]
fn names_that_nobody_answers_for_delay_no_other_user() {
    let Some(bed) = Bed::new("names") else { return };
    bed.server.run(answer_names).expect("the port is free");
    bed.client.words("ip", "address add 10.77.1.3/24 dev uplink").expect("it can be added");
    let _gateway = bed.start_with_names(SERVER[0], FILE);
    let open: Vec<_> = bed
        .client
        .run(|| (0..QUESTIONS).map(|n| ask([10, 77, 1, 3], &format!("dead{n}.example"))).collect());
    assert!(open.iter().all(Result::is_ok), "{open:?}");
    thread::sleep(Duration::from_millis(300));
    for name in ["live.example", "live-too.example"] {
        let since = Instant::now();
        let answer = bed.client.run(move || {
            let mut stream = ask([10, 77, 1, 2], name)?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).map(|_| answer)
        });
        let (answer, took) = (answer.expect("there is an answer"), since.elapsed());
        assert!(answer.contains("asked by 10.77.2.1, Via: 1.1 tidegate"), "{answer}");
        assert!(took < SOON, "{took:?}");
    }
}
