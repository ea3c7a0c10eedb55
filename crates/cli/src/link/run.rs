//! `tidegate link run`: from the command line to frames that flow, and back.
//!
//! The order matters. What may be refused comes first, while nothing has changed. Sockets
//! are opened, and the process beside the link starts, before rights are given up; the
//! threads that send start after it, so that they have none that are not needed. A router's
//! packets are held once somebody decides about them, and no longer before nobody does.

use std::io::{self, Write as _};
use std::net::TcpListener;
use std::rc::Rc;
use std::time::Duration;

use rustix::thread::CapabilitySet;
use tidegate_core::Bytes;
use tidegate_core::units::Amount;
use tidegate_link::{Config, Direction, Form, Link, Queue, Running, priority};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::LocalSet;
use tokio::time::{MissedTickBehavior, interval};

use super::bridge::Bridge;
use super::bypass::{Bypass, Turn};
use super::changes;
use super::control::{self, Control, From};
use super::machine;
use super::rules;
use super::socket::{self, Held};
use super::state::State;
use super::text;
use crate::arguments::{Fail, LinkRunArguments};
use crate::failure::Failure;
use crate::output::{print, print_json};
use crate::{rights, service};

/// Memory for frames of each direction, and twice a buffer that is larger.
const MEMORY: Bytes = Bytes(16 << 20);
/// The most that a buffer may hold in bytes, whatever the rate.
const MOST_BUFFER: Bytes = Bytes(1 << 30);
/// What a packet of a buffer in packets is taken to need.
const PACKET: u64 = 2_048;
/// How often the link is asked whether it still works.
const LOOK: Duration = Duration::from_millis(500);

/// What the arguments call a link.
pub(super) fn name(arguments: &LinkRunArguments) -> String {
    arguments.name.clone().unwrap_or_else(|| arguments.interfaces.join("-"))
}

/// What the arguments make of a link, if they fit each other.
pub(super) fn config(arguments: &LinkRunArguments) -> Result<Config, Failure> {
    let LinkRunArguments { interfaces, discipline, up_discipline, .. } = arguments;
    let form = match interfaces.as_slice() {
        [inside, outside] if inside == outside => {
            let found = format!("found '{inside}' twice, expected two interfaces");
            return Err(Failure::Input(found));
        }
        [inside, outside] => Form::Between { inside: inside.clone(), outside: outside.clone() },
        others => {
            Form::Router { outside: others.concat(), fail_open: arguments.fail == Fail::Open }
        }
    };
    let queue = |choice: &tidegate_sim::scenario::DisciplineChoice, rate| Queue {
        entry: choice.entry,
        settings: choice.settings.clone(),
        limit: arguments.buffer,
        rate,
        framing: arguments.framing,
    };
    let down = queue(discipline, arguments.down);
    let up = queue(up_discipline.as_ref().unwrap_or(discipline), arguments.up);
    let mut memory = MEMORY;
    for (direction, queue) in [(Direction::Down, &down), (Direction::Up, &up)] {
        changes::keeps_promises(direction, queue).map_err(Failure::Input)?;
        let most = match queue.buffer().amount() {
            Amount::Packets(packets) => Bytes(u64::from(packets) * PACKET),
            Amount::Bytes(bytes) => bytes,
        };
        if most > MOST_BUFFER {
            let found = format!("--buffer: found '{}', {most} at {}", queue.limit, queue.rate);
            return Err(Failure::Input(format!("{found}, expected at most {MOST_BUFFER}")));
        }
        memory = memory.max(most + most);
    }
    Ok(Config { form, down, up, memory, seed: seed() })
}

/// Nobody can foresee where a discipline's table of flows has collisions.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

/// Tells whoever started it. If nobody hears it, the link carries frames all the same.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "tidegate: {text}");
}

/// What is opened while there are rights.
struct Opened {
    control: Held,
    page: Option<TcpListener>,
    bypass: Option<Bypass>,
    link: Link,
}

fn open(arguments: &LinkRunArguments, name: &str, config: Config) -> Result<Opened, Failure> {
    if let Some(obstacle) = machine::obstacle(name, &config) {
        return Err(Failure::Other(obstacle));
    }
    let control = socket::take(&socket::folder(), name)?;
    // The last one of this name may have died a moment ago.
    drop(Turn::of(name));
    let page = arguments.page.map(|address| {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    let page = page.transpose().map_err(|reason: io::Error| {
        Failure::Other(format!("--page {}: {reason}", arguments.page.expect("it was bound")))
    })?;
    let form = config.form.clone();
    let link = Link::open(config).map_err(|reason| Failure::Other(reason.to_string()))?;
    let fail = arguments.fail;
    // A router needs somebody who sets its rules, and a link in place of a cable somebody who
    // replaces it.
    let bypass = match (&form, fail) {
        (Form::Between { .. }, Fail::Closed) => None,
        _ => {
            let user = arguments.user.as_deref();
            Some(Bypass::start(name, &form, link.numbers(), fail, user)?)
        }
    };
    // What an earlier one with `--fail open` has left would carry all frames a second time.
    let left = Bridge::of(name);
    if arguments.fail == Fail::Closed && left.is_there() {
        left.remove().map_err(|reason| Failure::Other(format!("{}: {reason}", left.name)))?;
        say(&format!("took the bridge {} away", left.name));
    }
    Ok(Opened { control, page, bypass, link })
}

pub(crate) fn run(arguments: &LinkRunArguments) -> Result<(), Failure> {
    let name = name(arguments);
    let config = config(arguments)?;
    let user = arguments.user.as_deref().map(rights::user).transpose()?;
    let failed = |reason: io::Error| Failure::Other(reason.to_string());
    let queues = [(Direction::Down, config.down.clone()), (Direction::Up, config.up.clone())];
    let Opened { control: held, page, mut bypass, link } = open(arguments, &name, config)?;
    // Threads that start from here on have the priority, and this one gives it back.
    let raised = priority::raise();
    let is_router = link.numbers().is_some();
    // The kernel takes verdicts only from those who may change networks.
    let kept = if is_router { CapabilitySet::NET_ADMIN } else { CapabilitySet::empty() };
    rights::give_up(user.as_ref(), kept)?;
    if let Some(bypass) = bypass.as_mut().filter(|_| !is_router) {
        bypass.stand_by()?;
    }
    let link = link.start().map_err(failed)?;
    if let Some(bypass) = bypass.as_mut().filter(|_| is_router) {
        bypass.stand_by()?;
    }
    match raised {
        Ok(()) => priority::lower().map_err(failed)?,
        Err(reason) => {
            say(&format!(
                "without real-time priority ({reason}): on a busy machine, packets are sent a little late"
            ));
        }
    }
    let control = Rc::new(Control {
        name,
        fail: arguments.fail,
        link,
        queues: queues.into(),
        stop: tokio::sync::Notify::new(),
    });
    let served = serve(&control, &held, page, bypass.as_mut());
    service::stopping();
    let Control { name, fail, link, .. } =
        Rc::into_inner(control).expect("whoever was answered is gone with the tasks");
    // Otherwise it takes over when this process has ended.
    let ended = match bypass {
        Some(bypass) if served.is_ok() => bypass.end().or_else(|reason| {
            // Somebody killed it. Of what it would have undone, this one may undo rules.
            let undone = if is_router { rules::remove(&name) } else { Err(reason) };
            let help = format!("'tidegate link stop --name {name}' removes what is left");
            undone.map_err(|reason| io::Error::other(format!("{reason}; {help}")))
        }),
        _ => Ok(()),
    };
    let state = State { name, fail, status: link.stop() };
    drop(held);
    if arguments.json {
        print_json(&state)?;
    } else {
        print(&text::last(&state))?;
    }
    ended.map_err(failed)?;
    served
}

/// Answers until it is to end, or the link fails.
fn serve(
    control: &Rc<Control<Running>>,
    held: &Held,
    page: Option<TcpListener>,
    mut bypass: Option<&mut Bypass>,
) -> Result<(), Failure> {
    let failed = |reason: io::Error| Failure::Other(reason.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(failed)?;
    LocalSet::new().block_on(&runtime, async {
        let mut terminated = signal(SignalKind::terminate()).map_err(failed)?;
        let mut hung_up = signal(SignalKind::hangup()).map_err(failed)?;
        let listener = held.listener.try_clone().map_err(failed)?;
        let listener = UnixListener::from_std(listener).map_err(failed)?;
        let owner = control::serve(control.clone(), listener, From::Owner);
        let shown = async {
            match page.map(tokio::net::TcpListener::from_std).transpose() {
                Ok(Some(listener)) => {
                    if let Ok(address) = listener.local_addr() {
                        say(&format!("page at http://{address}/"));
                    }
                    control::serve(control.clone(), listener, From::Anybody).await;
                }
                Ok(None) => std::future::pending().await,
                Err(reason) => say(&format!("no page: {reason}")),
            }
        };
        let State { name, status, .. } = control.state();
        say(&format!("'{name}' carries {}", text::place(&status)));
        service::ready(&text::short(&control.state()));
        // The seconds of both directions, which stand still with their threads.
        let seconds = || {
            let status = control.link.status();
            status.queues.iter().map(|queue| queue.last_second.at_s).min().unwrap_or_default()
        };
        let looked = async {
            let mut ticks = interval(LOOK);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                if let Some(reason) = control.link.failed() {
                    return Failure::Other(reason.to_string());
                }
                if bypass.take_if(|bypass| !bypass.waits()).is_some() {
                    say(
                        "the process beside this one has ended: nothing is undone if this one dies",
                    );
                }
            }
        };
        tokio::select! {
            () = owner => Ok(()),
            () = shown => Err(Failure::Other("the page cannot be shown any more".into())),
            failure = looked => Err(failure),
            () = service::watch(|| text::short(&control.state()), seconds) => Ok(()),
            () = control.stop.notified() => Ok(()),
            interrupted = tokio::signal::ctrl_c() => interrupted.map_err(failed),
            _ = terminated.recv() => Ok(()),
            // The terminal is gone.
            _ = hung_up.recv() => Ok(()),
        }
    })
}
