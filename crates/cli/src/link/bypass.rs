//! The process beside a link, which does what a program that was killed cannot.
//!
//! It has the right to change networks, which the link gives up, and no socket. It holds the
//! end of a pipe, which the kernel closes when the link ends in any way. Between two
//! interfaces it stands by for `--fail open`: if the link has not said before that it ends
//! on purpose, it joins both in a [bridge](super::bridge), and frames go on, without a queue
//! of ours, within some milliseconds. On a router it sets the [rules](super::rules) by which
//! the kernel holds packets, and removes them.
//!
//! A link may start while the process beside the last one of its name is still undoing what
//! that left: it would take away the new rules, or join interfaces whose frames the new link
//! carries, which makes a loop. So there is one such process of a name at a time. Each has a
//! [name](Turn) among the kernel's abstract sockets, which leaves no file and is free when
//! the process ends in any way.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};
use rustix::thread::CapabilitySet;
use tidegate_link::Form;

use super::bridge::Bridge;
use super::rules::Rules;
use crate::arguments::{Fail, LinkBypassArguments};
use crate::failure::Failure;
use crate::rights;

/// What the link says to the process beside it, a line each.
const CARRIES: &str = "carries";
const STOPS: &str = "stops";
/// What that answers.
const DONE: &str = "done";

/// How long the process beside the last link of a name may take. Whoever else has the socket
/// keeps nobody from starting a link for longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The right to change what a link of this name has changed, of one process at a time.
pub(super) struct Turn {
    _socket: Option<OwnedFd>,
}

impl Turn {
    /// Waits until no other process has it.
    pub(super) fn of(link: &str) -> Turn {
        let since = Instant::now();
        loop {
            match Turn::taken(link) {
                Err(rustix::io::Errno::ADDRINUSE) if since.elapsed() < PATIENCE => {
                    sleep(Duration::from_millis(5));
                }
                taken => return Turn { _socket: taken.ok() },
            }
        }
    }

    fn taken(link: &str) -> rustix::io::Result<OwnedFd> {
        let address = SocketAddrUnix::new_abstract_name(format!("tidegate-link-{link}").as_bytes());
        let flags = SocketFlags::CLOEXEC;
        // Bound and nothing more: nobody can connect to it.
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        bind(&socket, &address?)?;
        Ok(socket)
    }
}

/// The process, as the link sees it.
#[derive(Debug)]
pub(super) struct Bypass {
    child: Child,
    told: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Bypass {
    /// Starts it for a link, and waits until it is ready.
    pub(super) fn start(
        name: &str,
        form: &Form,
        numbers: Option<[u16; 2]>,
        fail: Fail,
        user: Option<&str>,
    ) -> Result<Bypass, Failure> {
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(["link", "bypass", "--name", name]);
        if fail == Fail::Open {
            command.args(["--fail", "open"]);
        }
        if let Some([down, up]) = numbers {
            command.arg(format!("--numbers={down},{up}"));
        }
        command.args(user.map(|user| format!("--user={user}")));
        command.arg("--").args(form.inside()).arg(form.outside());
        // Ctrl-C in a terminal is for the link, which then tells it.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let told = child.stdin.take().expect("it was asked for");
        let answers = BufReader::new(child.stdout.take().expect("it was asked for"));
        let mut bypass = Bypass { child, told, answers };
        bypass.hear().map_err(failed)?;
        Ok(bypass)
    }

    /// From now on the link carries: the bridge does not until it dies, and rules hold
    /// packets for it.
    pub(super) fn stand_by(&mut self) -> Result<(), Failure> {
        self.tell(CARRIES).map_err(failed)
    }

    /// The link ends on purpose: the bridge or the rules go.
    pub(super) fn end(mut self) -> io::Result<()> {
        self.tell(STOPS)?;
        self.child.wait().map(drop)
    }

    /// Whether it still waits.
    pub(super) fn waits(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn tell(&mut self, what: &str) -> io::Result<()> {
        writeln!(self.told, "{what}")?;
        self.hear()
    }

    fn hear(&mut self) -> io::Result<()> {
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        match answer.trim_end() {
            DONE => Ok(()),
            "" => Err(io::Error::other("the process beside the link has ended")),
            error => Err(io::Error::other(error.to_string())),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn failed(reason: io::Error) -> Failure {
    Failure::Other(reason.to_string())
}

/// What it does for a link.
enum Task {
    /// Stands by between two interfaces. A bridge that was there before is that of a link
    /// that died.
    Bridge { bridge: Bridge, interfaces: [String; 2], was_there: bool },
    /// Has a router hold packets.
    Rules(Rules),
}

impl Task {
    fn of(arguments: &LinkBypassArguments) -> Result<Task, Failure> {
        let LinkBypassArguments { interfaces, name, fail, numbers, .. } = arguments;
        match (interfaces.as_slice(), numbers.as_slice()) {
            ([inside, outside], []) => {
                let bridge = Bridge::of(name);
                let was_there = bridge.is_there();
                let interfaces = [inside.clone(), outside.clone()];
                Ok(Task::Bridge { bridge, interfaces, was_there })
            }
            ([outside], [down, up]) => {
                Rules::new(name, outside, [*down, *up], *fail).map(Task::Rules)
            }
            _ => Err(Failure::Input("expected two interfaces, or one and --numbers".into())),
        }
    }

    /// Does first what could fail.
    fn prepare(&self) -> io::Result<()> {
        match self {
            Task::Bridge { bridge, was_there: false, .. } => bridge.make(),
            Task::Bridge { .. } => Ok(()),
            Task::Rules(rules) => rules.note(),
        }
    }

    /// The link carries.
    fn begin(&self) -> io::Result<()> {
        match self {
            Task::Bridge { bridge, interfaces: [inside, outside], .. } => {
                bridge.empty([inside, outside])
            }
            Task::Rules(rules) => rules.set(),
        }
    }

    /// The link ends on purpose.
    fn end(&self) -> io::Result<()> {
        match self {
            Task::Bridge { bridge, .. } => bridge.remove(),
            Task::Rules(rules) => rules.remove(),
        }
    }

    /// The link is no more, and has not said why; `carried`: after it had begun.
    fn died(&self, name: &str, carried: bool) -> io::Result<()> {
        match self {
            Task::Bridge { bridge, interfaces: [inside, outside], .. } if carried => {
                let joins = format!("{} joins {inside} and {outside}", bridge.name);
                eprintln!("tidegate: the link '{name}' has died: {joins}");
                bridge.join([inside, outside])
            }
            // What there was before stays.
            Task::Bridge { was_there: true, .. } => Ok(()),
            Task::Bridge { bridge, .. } => bridge.remove(),
            Task::Rules(rules) => rules.died(name, carried),
        }
    }
}

/// Is that process: waits until the link ends, and does what is left to do.
pub(crate) fn bypass(arguments: &LinkBypassArguments) -> Result<(), Failure> {
    let name = &arguments.name;
    let _turn = Turn::of(name);
    let task = Task::of(arguments)?;
    let (user, needed) = match task {
        Task::Bridge { .. } => (arguments.user.as_deref(), CapabilitySet::NET_ADMIN),
        // The old iptables takes a lock that is root's, and a raw socket.
        Task::Rules(_) => (None, CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW),
    };
    let user = user.map(rights::user).transpose()?;
    rights::give_up(user.as_ref(), needed)?;
    // A service manager sends its signals to both; this one ends when the link has ended.
    ctrlc::set_handler(|| {}).map_err(|reason| Failure::Other(reason.to_string()))?;
    let prepared = task.prepare();
    let is_ready = prepared.is_ok();
    answer(prepared);
    if !is_ready {
        return Ok(());
    }
    let mut carries = false;
    for line in io::stdin().lines() {
        match line.as_deref() {
            Ok(CARRIES) => {
                let begun = task.begin();
                carries |= begun.is_ok();
                answer(begun);
            }
            Ok(STOPS) => {
                answer(task.end());
                return Ok(());
            }
            _ => break,
        }
    }
    let died = task.died(name, carries);
    died.map_err(|reason| Failure::Other(format!("after the link '{name}': {reason}")))
}

/// Tells the link, which may be gone.
fn answer(outcome: io::Result<()>) {
    let text = outcome.map_or_else(|reason| reason.to_string(), |()| DONE.into());
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}
