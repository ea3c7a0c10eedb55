//! The queues that are measured: what there is, the kernel's own, and Tidegate's.
//!
//! A queue can only be ordered where it is, so all but `now` stand in front of a rate that
//! is a little below the link's: the kernel's FIFO and FQ-CoDel behind its token bucket,
//! CAKE and Tidegate's disciplines behind their own shapers. For what comes in, the kernel
//! needs a device that stands for it (`ifb`).
//!
//! A discipline of Tidegate runs in the kernel, by `tidegate qdisc`, where that works; else
//! by `tidegate link`, which holds the kernel's packets (NFQUEUE). Which of them it was is
//! part of the result.

use std::fmt::{self, Write as _};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tidegate_core::buffer::Limit;
use tidegate_core::units::Amount;
use tidegate_core::{Rate, Span};
use tidegate_sim::scenario::DisciplineChoice;

use super::changes::{Change, Held, ROOT_HANDLE, ourselves, said, tool};

/// What a FIFO holds if nothing else is said: what the modem of a comparison holds upwards.
const FIFO: Limit = Limit::Time(Span::millis(150));
/// A full frame of Ethernet.
const FRAME: u64 = 1_514;
/// How long a link may take to start, and to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// A queue with its name in the results.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) label: String,
    pub(super) queue: Queue,
}

#[derive(Clone, Debug)]
pub(super) enum Queue {
    /// Nothing is changed.
    Now,
    Fifo(Limit),
    FqCodel,
    Cake,
    /// A discipline of Tidegate, as the user wrote it.
    Ours(String),
}

impl FromStr for Choice {
    type Err = String;

    /// `NAME=QUEUE`, or a queue that has its own name. What follows a colon are settings,
    /// which have equals signs too.
    fn from_str(text: &str) -> Result<Choice, String> {
        let text = text.trim();
        let head = text.split(':').next().unwrap_or_default();
        let (label, queue) = match head.split_once('=') {
            Some((label, _)) => (label.trim(), text[label.len() + 1..].trim()),
            None => (text, text),
        };
        let expected = "expected now, fifo, fifo:300ms, fq-codel, cake or a discipline of \
                        'tidegate disciplines', or one of these as NAME=QUEUE";
        let wrong =
            |what: &str| format!("--queues: found '{}'{what}, {expected}", text.escape_debug());
        if label.is_empty() || label.chars().count() > 40 || label.chars().any(char::is_control) {
            return Err(wrong(", whose name is empty or longer than 40 characters"));
        }
        let queue = match queue.split_once(':') {
            None if queue == "now" => Queue::Now,
            None if queue == "fifo" => Queue::Fifo(FIFO),
            None if queue == "fq-codel" => Queue::FqCodel,
            None if queue == "cake" => Queue::Cake,
            Some(("fifo", limit)) => {
                Queue::Fifo(limit.parse().map_err(|reason| wrong(&format!(" ({reason})")))?)
            }
            Some(("now", _)) => return Err(wrong("")),
            _ => {
                let ours = queue.strip_prefix("ours:").unwrap_or(queue);
                let choice: Result<DisciplineChoice, _> = ours.parse();
                choice.map_err(|reason| wrong(&format!(" ({reason})")))?;
                Queue::Ours(ours.into())
            }
        };
        Ok(Choice { label: label.into(), queue })
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Queue::Now => f.write_str("now"),
            Queue::Fifo(limit) => write!(f, "fifo:{limit}"),
            Queue::FqCodel => f.write_str("fq-codel"),
            Queue::Cake => f.write_str("cake"),
            Queue::Ours(text) => write!(f, "ours:{text}"),
        }
    }
}

/// The rates that queues stand in front of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rates {
    pub(super) down: Option<Rate>,
    pub(super) up: Option<Rate>,
}

/// A queue that stands at the interface until it is dropped or undone with the rest.
pub(super) struct Standing {
    /// How it runs: the words of `tc`, or the form of one of ours.
    pub(super) form: String,
    link: Option<Child>,
}

impl Standing {
    /// What there is, with nothing of ours.
    pub(super) fn unchanged() -> Standing {
        Standing { form: "as it is".into(), link: None }
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        let Some(mut link) = self.link.take() else { return };
        // It takes its rules away itself.
        let number = i32::try_from(link.id()).ok().and_then(Pid::from_raw);
        let since = Instant::now();
        let told = number.is_some_and(|it| kill_process(it, Signal::TERM).is_ok());
        while told && matches!(link.try_wait(), Ok(None)) {
            if since.elapsed() > PATIENCE {
                // With its end, the process beside it takes the rules away.
                let _ = link.kill();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Queue {
    /// Puts the queue in front of the rates; what that changes is noted before it is done.
    pub(super) fn set(&self, held: &mut Held, rates: Rates) -> Result<Standing, String> {
        match self {
            Queue::Now => Ok(Standing::unchanged()),
            Queue::Ours(text) => ours(held, text, rates),
            _ => self.of_kernel(held, rates),
        }
    }

    fn of_kernel(&self, held: &mut Held, rates: Rates) -> Result<Standing, String> {
        let mut form = String::new();
        let interface = held.interface().to_owned();
        if let Some(rate) = rates.up {
            held.will(Change::Root { device: interface.clone() })?;
            self.at(&interface, rate)?;
            let _ = write!(form, "tc, up: {}", self.words(rate).join(" + "));
        }
        if let Some(rate) = rates.down {
            let device = held.device();
            held.will(Change::Device { name: device.clone() })?;
            tool("ip", &format!("link add name {device} type ifb"))?;
            tool("ip", &format!("link set dev {device} up"))?;
            self.at(&device, rate)?;
            held.will(Change::Ingress)?;
            tool("tc", &format!("qdisc add dev {interface} handle ffff: ingress"))?;
            let filter = |what: &str| {
                let to = format!("action mirred egress redirect dev {device}");
                tool(
                    "tc",
                    &format!("filter add dev {interface} parent ffff: protocol all {what} {to}"),
                )
            };
            // Kernels without the former have the latter.
            filter("matchall").or_else(|_| filter("u32 match u32 0 0"))?;
            let gap = if form.is_empty() { "tc, " } else { "; " };
            let _ = write!(form, "{gap}down: {}", self.words(rate).join(" + "));
        }
        Ok(Standing { form, link: None })
    }

    /// Sets it as the root of a device.
    fn at(&self, device: &str, rate: Rate) -> Result<(), String> {
        let words = self.words(rate);
        let mut parent = format!("root handle {ROOT_HANDLE}:");
        for words in words {
            tool("tc", &format!("qdisc add dev {device} {parent} {words}")).map_err(|reason| {
                let kind = words.split(' ').next().unwrap_or_default();
                match reason.contains("qdisc kind is unknown") {
                    true => format!("this kernel has no queue '{kind}' (module sch_{kind})"),
                    false => reason,
                }
            })?;
            parent = format!("parent {ROOT_HANDLE}:1 handle 7d1f:");
        }
        Ok(())
    }

    /// In the words of `tc`: the root, and what is behind it.
    fn words(&self, rate: Rate) -> Vec<String> {
        let bits = rate.0;
        // What the rate sends in a millisecond, so that a timer keeps up; below, two frames,
        // so that merged packets are cut before they are sent.
        let burst = (bits / 8_000).max(2 * FRAME);
        let shaper = |limit: u64| format!("tbf rate {bits}bit burst {burst} limit {limit}");
        match self {
            Queue::Fifo(limit) => match limit.at(rate).amount() {
                // The kernel's limit is of bytes with the headers of Ethernet, as they are.
                Amount::Bytes(bytes) => vec![shaper(bytes.0.max(burst))],
                Amount::Packets(packets) => {
                    vec![shaper(FRAME * u64::from(packets)), format!("pfifo limit {packets}")]
                }
            },
            Queue::FqCodel => vec![shaper(10 * FRAME), "fq_codel".into()],
            Queue::Cake => vec![format!("cake bandwidth {bits}bit")],
            Queue::Now | Queue::Ours(_) => Vec::new(),
        }
    }
}

/// One of ours: in the kernel, or else by a link that holds its packets.
fn ours(held: &mut Held, text: &str, rates: Rates) -> Result<Standing, String> {
    let interface = held.interface().to_owned();
    held.will(Change::Qdisc)?;
    let mut words = vec!["qdisc".to_owned(), "add".into(), interface.clone()];
    for (option, rate) in [("--up", rates.up), ("--down", rates.down)] {
        words.extend(rate.into_iter().flat_map(|it| [option.to_owned(), it.to_string()]));
    }
    words.extend(["--discipline".into(), text.to_owned(), "--json".into()]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let reason = match ourselves(&words) {
        Ok(()) => return Ok(Standing { form: "tidegate qdisc, in the kernel".into(), link: None }),
        Err(reason) => reason,
    };
    let as_link = match (rates.up, rates.down) {
        (Some(up), Some(down)) => by_link(held, &interface, text, [down, up]),
        _ => Err("it takes --down and --up".into()),
    };
    as_link.map_err(|it| format!("in the kernel: {reason}; by a link: {it}"))
}

/// Starts a link that keeps the queue of this machine at `interface`.
fn by_link(
    held: &mut Held,
    interface: &str,
    text: &str,
    [down, up]: [Rate; 2],
) -> Result<Standing, String> {
    let name = format!("measure-{interface}");
    held.will(Change::Link { name: name.clone() })?;
    let program = std::env::current_exe().map_err(|reason| reason.to_string())?;
    let (down, up) = (down.to_string(), up.to_string());
    let words = ["link", "run", interface, "--down", &down, "--up", &up];
    let more = ["--discipline", text, "--name", &name, "--fail", "open"];
    let mut command = Command::new(program);
    command.args(words).args(more).stdin(Stdio::null()).stdout(Stdio::null());
    let child = command.stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|reason| reason.to_string())?;
    let stderr = child.stderr.take().expect("it is a pipe");
    let mut standing =
        Standing { form: "tidegate link, beside the kernel".into(), link: Some(child) };
    let (mut reader, mut all) = (BufReader::new(stderr), String::new());
    let since = Instant::now();
    while !all.contains("' carries ") {
        let end = reader.read_line(&mut all).map_or(true, |size| size == 0);
        if end || since.elapsed() > PATIENCE {
            if end {
                // It has ended by itself, and there is nobody to tell.
                standing.link.take().map(|mut it| it.wait());
            }
            return Err(said(&all));
        }
    }
    // Nobody reads what else it says, and a full pipe would hold it up.
    std::thread::spawn(move || {
        let _ = reader.read_to_end(&mut Vec::new());
    });
    Ok(standing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Choice {
        text.parse().unwrap_or_else(|reason| panic!("{reason}"))
    }

    #[test]
    fn queues_have_the_name_that_they_are_given_or_their_own() {
        for (text, label, queue) in [
            ("now", "now", "now"),
            ("fifo:64kB", "fifo:64kB", "fifo:64 kB"),
            ("deep=fifo:300ms", "deep", "fifo:300 ms"),
            ("a=fq-codel", "a", "fq-codel"),
            ("efd:threshold=30kB", "efd:threshold=30kB", "ours:efd:threshold=30kB"),
            ("x=efd:threshold=30kB", "x", "ours:efd:threshold=30kB"),
            ("ours:fq-codel", "ours:fq-codel", "ours:fq-codel"),
        ] {
            let choice = parsed(text);
            assert_eq!((&*choice.label, &*choice.queue.to_string()), (label, queue), "{text}");
        }
        for wrong in ["", "=now", "nonsense", "fifo:soon", "efd:nonsense=1", "now:x", "fifo:0 ms"] {
            let reason = wrong.parse::<Choice>().expect_err(wrong);
            assert!(reason.contains("found '") && reason.contains("expected now"), "{reason}");
        }
    }

    #[test]
    fn a_fifo_holds_what_was_asked_for_in_the_words_of_tc() {
        let words = |text: &str, rate: u64| parsed(text).queue.words(Rate(rate)).join(" | ");
        assert_eq!(words("fifo:300ms", 10_000_000), "tbf rate 10000000bit burst 3028 limit 375000");
        assert_eq!(
            words("fifo:100packets", 100_000_000),
            "tbf rate 100000000bit burst 12500 limit 151400 | pfifo limit 100"
        );
        assert_eq!(words("cake", 9_000_000), "cake bandwidth 9000000bit");
        assert!(words("fq-codel", 9_000_000).ends_with(" | fq_codel"));
    }
}
