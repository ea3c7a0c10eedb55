//! Where connections belong whose clients know of no gateway.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::time::Duration;

use crate::bed::{Bed, SERVER};

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a.Video.example\r\nConnection: close\r\n\r\n";

const FILE: &str = r#"
admin = "127.0.0.1:3129"
[link]
rate = "20 Mbit/s"
interface = "access"
[intercept]
listen = "[::]:3130"
count_others = true
[[class]]
name = "all"
sources = ["10.77.1.0/24", "fd77:1::/64"]
[[class]]
name = "video"
sources = ["10.77.1.0/24", "fd77:1::/64"]
hosts = ["*.video.example"]
"#;

/// The first message of a client of TLS for `a.video.example`, and an empty line, which the
/// server waits for.
fn hello() -> Vec<u8> {
    let name = b"A.video.example";
    let size = name.len() as u8;
    let mut body = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0]].concat();
    body.extend([0, size + 9, 0, 0, 0, size + 5, 0, size + 3, 0, 0, size]);
    body.extend(name);
    let size = body.len() as u8;
    [&[22, 3, 1, 0, size + 4, 1, 0, 0, size][..], &body, b"\r\n\r\n"].concat()
}

/// What a tunnel brings whose client sends these pieces.
fn through_tunnel(bed: &Bed, server: &str, pieces: Vec<Vec<u8>>) -> String {
    let server: IpAddr = server.parse().expect("an address");
    let answer = bed.client.run(move || {
        let mut stream = TcpStream::connect((server, 443))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        for piece in pieces {
            stream.write_all(&piece)?;
            std::thread::sleep(Duration::from_millis(30));
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    });
    answer.expect("there is an answer")
}

fn numbers(bed: &Bed, key: &str) -> Vec<u64> {
    bed.classes().iter().map(|class| class[key].as_u64().expect("a number")).collect()
}

#[test]
fn a_server_is_known_by_the_name_that_its_client_says() {
    let Some(bed) = Bed::new("names") else { return };
    let _gateway = bed.start(FILE);
    let hello = hello();
    for server in SERVER {
        let pieces = hello.chunks(20).map(<[u8]>::to_vec).collect();
        assert!(through_tunnel(&bed, server, pieces).contains("asked by"));
        assert!(bed.ask(server, 80, REQUEST).is_ok_and(|it| it.contains("Via: 1.1 tidegate")));
    }
    bed.until("all have ended", || numbers(&bed, "completed").iter().sum::<u64>() == 4);
    assert_eq!(numbers(&bed, "completed"), [0, 4]);
    // Without a name it is where it would be otherwise, and waits for none.
    let nameless = b"GET / HTTP/1.1\r\nHost: a.video.example\r\n\r\n".to_vec();
    assert!(through_tunnel(&bed, SERVER[0], vec![nameless]).contains("asked by"));
    bed.until("it has ended", || numbers(&bed, "completed") == [1, 4]);
}

#[test]
fn what_passes_the_gateway_by_counts_for_its_class() {
    let Some(bed) = Bed::new("others") else { return };
    let gateway = bed.start(FILE);
    for (earlier, server) in [(0, SERVER[0]), (1, SERVER[1])] {
        assert_eq!(numbers(&bed, "besides_bytes")[0] > 0, earlier > 0);
        let before = numbers(&bed, "besides_bytes")[0];
        assert!(bed.ask(server, 8080, REQUEST).is_ok());
        bed.until("it is counted", || numbers(&bed, "besides_bytes")[0] > before);
    }
    // What the gateway carries itself is not among it.
    std::thread::sleep(Duration::from_millis(1_500));
    let before = numbers(&bed, "besides_bytes");
    assert!((400..2_000).contains(&before[0]) && before[1] == 0, "{before:?}");
    for _ in 0..5 {
        assert!(bed.ask(SERVER[0], 80, REQUEST).is_ok());
    }
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(numbers(&bed, "besides_bytes"), before);
    // Rules that are set anew count on.
    bed.reload(&gateway, &FILE.replace("20 Mbit/s", "10 Mbit/s"));
    bed.until("it is counted again", || {
        bed.ask(SERVER[0], 8080, REQUEST).is_ok() && numbers(&bed, "besides_bytes") > before
    });
}
