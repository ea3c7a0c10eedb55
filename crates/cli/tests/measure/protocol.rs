//! The server and strangers: what it refuses, and what it never sends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::bed::TIDEGATE;

struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start() -> Server {
        let mut command = Command::new(TIDEGATE);
        command.args(["measure", "serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_once(" at ").unwrap().1.split_once(',').unwrap().0;
        Server { child, address: address.parse().unwrap() }
    }

    /// A connection with the first line that it got.
    fn ask(&self, line: &str) -> (TcpStream, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(line.as_bytes()).unwrap();
        let (mut answer, mut byte) = (String::new(), [0]);
        while stream.read(&mut byte).is_ok_and(|size| size == 1) && byte != *b"\n" {
            answer.push(byte[0].into());
        }
        (stream, answer)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn strangers_get_a_refusal_and_nothing_else() {
    let server = Server::start();
    let unknown = "0".repeat(32);
    for (line, refusal) in [
        ("GET / HTTP/1.1\n".to_string(), "no expected tidegate-measure/1"),
        (format!("tidegate-measure/1 {unknown} down\n"), "no no session of this address"),
        (format!("tidegate-measure/1 {unknown} get 10000001\n"), "no expected a size"),
    ] {
        let (mut stream, answer) = server.ask(&line);
        assert!(answer.starts_with(refusal), "{line}: {answer}");
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "it is closed");
    }
    let (_, answer) = server.ask(&"x".repeat(1_000));
    assert_eq!(answer, "", "a line without an end");
}

#[test]
fn a_datagram_is_answered_with_as_many_bytes_and_only_within_a_session() {
    let server = Server::start();
    let (held, answer) = server.ask("tidegate-measure/1 session\n");
    let token = answer.split(' ').nth(1).unwrap();
    let token: Vec<u8> =
        (0..32).step_by(2).map(|it| u8::from_str_radix(&token[it..it + 2], 16).unwrap()).collect();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let answered = |token: &[u8], size: usize| {
        let mut question = [&b"TGm1"[..], token].concat();
        question.resize(size, 0);
        socket.send(&question).unwrap();
        socket.recv(&mut [0; 2_048]).ok()
    };
    assert_eq!(answered(&token, 172), Some(172));
    assert_eq!(answered(&token, 52), Some(52));
    assert_eq!(answered(&token, 51), None, "less than a header");
    assert_eq!(answered(&token, 1_400), None, "more than a datagram of a measurement");
    assert_eq!(answered(&[7; 16], 172), None, "no session has this token");
    let line = format!("{} down\n", answer.replacen("ok", "tidegate-measure/1", 1));
    let line = line.replace(" 900 ", " ");
    let (mut load, said) = server.ask(&line);
    assert_eq!(said, "ok");
    load.read_exact(&mut [0; 100_000]).unwrap();
    drop(held);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(answered(&token, 172), None, "the session is over");
    let (_, refusal) = server.ask(&line);
    assert!(refusal.starts_with("no "), "{refusal}");
}

#[test]
fn an_address_has_a_few_sessions() {
    let server = Server::start();
    let sessions: Vec<_> = (0..5).map(|_| server.ask("tidegate-measure/1 session\n")).collect();
    let granted = sessions.iter().filter(|(_, answer)| answer.starts_with("ok ")).count();
    assert_eq!(granted, 4);
    assert!(sessions[4].1.contains("too many sessions"), "{}", sessions[4].1);
}
