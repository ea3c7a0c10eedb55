//! A router between users and servers.
//!
//! ```text
//! client --- users [router] access --- server
//! ```
//!
//! The gateway runs on the router. Servers answer with the address from which they were
//! asked: the client's, or the router's if the gateway asked for it.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tidegate_judge::host::{Host, Missing};

pub(crate) const CLIENT: [&str; 2] = ["10.77.1.2", "fd77:1::2"];
pub(crate) const ROUTER: [&str; 2] = ["10.77.2.1", "fd77:2::1"];
pub(crate) const SERVER: [&str; 2] = ["10.77.2.2", "fd77:2::2"];

const PATIENCE: Duration = Duration::from_secs(10);

/// The hosts.
pub(crate) struct Bed {
    pub(crate) client: Host,
    pub(crate) router: Host,
    pub(crate) server: Host,
    folder: PathBuf,
}

impl Bed {
    /// `None` if this machine has no such networks, which is said.
    pub(crate) fn new(name: &str) -> Option<Bed> {
        match Bed::set_up(name) {
            Ok(bed) => Some(bed),
            Err(reason) => {
                // Past the harness, which hides what a test that passes prints.
                writeln!(io::stderr(), "SKIP {name} in a network of its own: {reason}")
                    .expect("standard error is open");
                None
            }
        }
    }

    fn set_up(name: &str) -> Result<Bed, Missing> {
        let (client, router, server) = (Host::new()?, Host::new()?, Host::new()?);
        router.words("nft", "list ruleset")?;
        for (device, host) in [("users", &client), ("access", &server)] {
            let peer = host.thread();
            router.words(
                "ip",
                &format!("link add {device} type veth peer name uplink netns {peer}"),
            )?;
        }
        let addresses = [
            (&client, "uplink", CLIENT),
            (&router, "users", ["10.77.1.1", "fd77:1::1"]),
            (&router, "access", ROUTER),
            (&server, "uplink", SERVER),
        ];
        for (host, device, [v4, v6]) in addresses {
            host.words("ip", &format!("address add {v4}/24 dev {device}"))?;
            host.words("ip", &format!("address add {v6}/64 dev {device} nodad"))?;
            host.words("ip", &format!("link set dev {device} up"))?;
        }
        for (host, [v4, v6]) in [(&client, ["10.77.1.1", "fd77:1::1"]), (&server, ROUTER)] {
            host.words("ip", &format!("route add default via {v4}"))?;
            host.words("ip", &format!("-6 route add default via {v6}"))?;
        }
        for setting in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            router.set(setting, "1").map_err(|reason| Missing(format!("{setting}: {reason}")))?;
        }
        for port in [80, 8080, 443] {
            server.run(move || serve(port)).map_err(|reason| Missing(reason.to_string()))?;
        }
        server.run(answer_datagrams).map_err(|reason| Missing(reason.to_string()))?;
        let folder = std::env::temp_dir().join(format!("tidegate-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|reason| Missing(reason.to_string()))?;
        Ok(Bed { client, router, server, folder })
    }

    /// Starts the gateway, and waits until its rules hold.
    pub(crate) fn start(&self, file: &str) -> Gateway {
        self.start_with(file, |gateway| {
            gateway.arg("--rules");
        })
    }

    /// The same with other arguments, or as somebody else.
    pub(crate) fn start_with(
        &self,
        file: &str,
        prepare: impl FnOnce(&mut Command) + Send + 'static,
    ) -> Gateway {
        self.try_to_start(file, prepare).expect("it starts")
    }

    /// Starts a gateway, and waits until it serves, with the rules that it is to set.
    ///
    /// # Errors
    /// The program cannot be started.
    pub(crate) fn try_to_start(
        &self,
        file: &str,
        prepare: impl FnOnce(&mut Command) + Send + 'static,
    ) -> io::Result<Gateway> {
        let mut gateway = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        gateway.args(["gateway", "run"]);
        self.spawn(gateway, file, |gateway| {
            prepare(gateway);
            gateway.arg("gateway.toml");
        })
    }

    /// Starts a gateway with rules and a name server of the bed's own.
    pub(crate) fn start_with_names(&self, server: &str, file: &str) -> Gateway {
        let resolv = self.folder.join("resolv.conf");
        fs::write(&resolv, format!("nameserver {server}\n")).expect("it can be written");
        let mounted = "mount --bind resolv.conf \"$(readlink -f /etc/resolv.conf)\"";
        let run = "exec \"$0\" gateway run --rules gateway.toml";
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "sh", "-c", &format!("{mounted} && {run}")]);
        shell.arg(env!("CARGO_BIN_EXE_tidegate"));
        self.spawn(shell, file, |_| {}).expect("it starts")
    }

    /// Starts what becomes a gateway, and waits until it serves.
    fn spawn(
        &self,
        mut command: Command,
        file: &str,
        prepare: impl FnOnce(&mut Command) + Send + 'static,
    ) -> io::Result<Gateway> {
        fs::write(self.folder.join("gateway.toml"), file).expect("it can be written");
        command.current_dir(&self.folder).stdout(Stdio::null()).stderr(Stdio::piped());
        let gateway = self.router.run(move || {
            prepare(&mut command);
            command.spawn()
        });
        let mut gateway = Gateway(gateway?);
        let stderr = gateway.0.stderr.take().expect("it is a pipe");
        let mut said = Vec::new();
        for line in BufReader::new(stderr).lines() {
            said.push(line.expect("it is text"));
            // The table of its rules may be seen for a moment before they hold, while those
            // of an earlier gateway are removed.
            if said.last().is_some_and(|line| line == "tidegate: serving") {
                return Ok(gateway);
            }
        }
        panic!("the gateway ends: {said:?}");
    }

    /// Has `tidegate gateway rules` do this with the file of the gateway.
    pub(crate) fn rules(&self, what: &'static str, file: &str) {
        let path = self.folder.join("rules.toml");
        fs::write(&path, file).expect("it can be written");
        let output = self.router.run(move || {
            let mut tidegate = Command::new(env!("CARGO_BIN_EXE_tidegate"));
            tidegate.args(["gateway", "rules", what]).arg(path).output()
        });
        let output = output.expect("it starts");
        assert!(output.status.success(), "{what}: {output:?}");
    }

    /// What the gateway says about its classes.
    pub(crate) fn classes(&self) -> Vec<serde_json::Value> {
        self.status()["classes"].as_array().expect("a list").clone()
    }

    /// What the gateway says about itself.
    pub(crate) fn status(&self) -> serde_json::Value {
        let path = self.folder.join("gateway.toml");
        let output = self.router.run(move || {
            let mut tidegate = Command::new(env!("CARGO_BIN_EXE_tidegate"));
            tidegate.args(["gateway", "status", "--json"]).arg(path).output()
        });
        let output = output.expect("it starts");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    }

    /// How many routing rules lead to a gateway.
    pub(crate) fn routing_rules(&self) -> usize {
        let listed = self.router.run(|| Command::new("ip").args(["rule"]).output());
        let listed = listed.expect("it starts").stdout;
        String::from_utf8_lossy(&listed).matches("fwmark").count()
    }

    /// Has a gateway read its file again, with these contents.
    pub(crate) fn reload(&self, gateway: &Gateway, file: &str) {
        fs::write(self.folder.join("gateway.toml"), file).expect("it can be written");
        let id = gateway.0.id().to_string();
        let sent = Command::new("kill").args(["-HUP", &id]).status();
        assert!(sent.is_ok_and(|status| status.success()));
    }

    /// Has a gateway read its file again, with these contents, and returns its answer.
    pub(crate) fn ask_to_reload(&self, file: &str) -> Output {
        let path = self.folder.join("gateway.toml");
        // Never seen half written, nor without being asked for.
        fs::write(self.folder.join("new.toml"), file).expect("it can be written");
        fs::rename(self.folder.join("new.toml"), &path).expect("it can be renamed");
        let output = self.router.run(move || {
            let mut tidegate = Command::new(env!("CARGO_BIN_EXE_tidegate"));
            tidegate.args(["gateway", "reload", "--json"]).arg(path).output()
        });
        output.expect("it starts")
    }

    /// A folder with a program that is called instead of `nft`.
    pub(crate) fn instead_of_nft(&self, script: &str) -> PathBuf {
        let folder = self.folder.join("programs");
        fs::create_dir_all(&folder).expect("it can be made");
        let program = folder.join("nft");
        fs::write(&program, script).expect("it can be written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
        folder
    }

    /// Has a gateway end in order.
    pub(crate) fn end(&self, mut gateway: Gateway) {
        let id = gateway.0.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status();
        assert!(sent.is_ok_and(|status| status.success()));
        assert!(gateway.0.wait().is_ok_and(|status| status.success()));
    }

    pub(crate) fn has_rules(&self) -> bool {
        self.router.words("nft", "list table inet tidegate").is_ok()
    }

    /// Waits for something that takes a moment.
    pub(crate) fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let since = Instant::now();
        while !holds() {
            assert!(since.elapsed() < PATIENCE, "{what}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// What a server answers, or why there is no answer.
    pub(crate) fn ask(
        &self,
        server: &str,
        port: u16,
        question: &'static str,
    ) -> io::Result<String> {
        let server: SocketAddr =
            (server.parse::<std::net::IpAddr>().expect("an address"), port).into();
        self.client.run(move || {
            let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(question.as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        })
    }

    /// The same by UDP. The answer has to come from the server that was asked.
    pub(crate) fn ask_by_udp(&self, server: &'static str) -> io::Result<String> {
        self.client.run(move || {
            let any = if server.contains(':') { "[::]:0" } else { "0.0.0.0:0" };
            let socket = UdpSocket::bind(any)?;
            socket.connect((server, 443))?;
            socket.set_read_timeout(Some(PATIENCE))?;
            socket.send(b"initial")?;
            let mut answer = [0; 64];
            let size = socket.recv(&mut answer)?;
            Ok(String::from_utf8_lossy(&answer[..size]).into())
        })
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A gateway that runs. It is killed when this goes.
pub(crate) struct Gateway(pub(crate) Child);

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Answers each connection once, with who asked and what of its head matters.
fn serve(port: u16) -> io::Result<()> {
    let listener = TcpListener::bind(("::", port))?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream));
        }
    });
    Ok(())
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    let peer = stream.peer_addr()?.ip().to_canonical();
    let mut head = String::new();
    let mut lines = BufReader::new(stream.try_clone()?);
    while lines.read_line(&mut head)? > 2 {}
    let via = head.lines().find(|line| line.starts_with("Via:")).unwrap_or("no Via");
    let body = format!("asked by {peer}, {via}\n");
    let length = body.len();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

/// Answers each datagram with who sent it.
fn answer_datagrams() -> io::Result<()> {
    let socket = UdpSocket::bind(("::", 443))?;
    thread::spawn(move || {
        while let Ok((_, from)) = socket.recv_from(&mut [0; 64]) {
            let text = format!("asked by {}", from.ip().to_canonical());
            let _ = socket.send_to(text.as_bytes(), from);
        }
    });
    Ok(())
}
