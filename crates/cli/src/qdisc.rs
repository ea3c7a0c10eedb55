//! `tidegate qdisc`: disciplines as queues of the kernel.
//!
//! No process stays. The kernel keeps a queue, its parameters and its statistics, and a note
//! of how to undo what was done; the commands look there, so that nothing can disagree with
//! what is. A queue that is being added has its note before the first interface is touched:
//! if `add` dies, `del` undoes as much as there is.

mod device;
mod note;
mod text;

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::json;
use tidegate_core::Rate;
use tidegate_core::registry::DISCIPLINES;
use tidegate_link::bridge::WHOLE_FROM;
use tidegate_link::{Change, Direction, Queue, QueueStatus};
use tidegate_qdisc::programs::{self, Program};
use tidegate_qdisc::{Qdisc, QdiscError, missing};

use self::device::Line;
use self::note::{Note, NoteError};
use crate::arguments::{
    ChangeArguments, LinkDirection, QdiscAddArguments, QdiscChangeArguments, QdiscDelArguments,
    QdiscShowArguments,
};
use crate::failure::Failure;
use crate::link::changes::keeps_promises;
use crate::output::{print, print_json};

/// A queue of this machine.
struct Found {
    qdisc: Qdisc,
    note: Note,
    /// Whether its device is in this network and has it.
    is_here: bool,
}

/// What is shown of a queue.
#[derive(Serialize)]
struct State {
    /// The interface to the provider.
    interface: String,
    /// The device that `tc` knows.
    device: String,
    /// What `tc` calls it.
    qdisc: String,
    #[serde(flatten)]
    status: QueueStatus,
    /// Super-packets, which count as their packets and leave in one piece.
    super_packets: u64,
    /// Packets that went with the queue when the device went down.
    cleared_packets: u64,
    /// How often too many flows were remembered, so that some were forgotten sooner.
    crowded: u64,
}

/// What is to be added in a direction.
struct Plan {
    queue: Queue,
    program: &'static Program,
    note: Note,
}

impl Plan {
    /// What is done once the kernel has the queue, by this name.
    fn lines(&self, name: &str) -> Vec<Line> {
        let Note { interface, device, direction, restore, .. } = &self.note;
        let mut lines = Vec::new();
        if *direction == Direction::Down {
            lines.push(Line("ip", format!("link add name {device} type ifb")));
            lines.push(Line("ip", format!("link set dev {device} up")));
        }
        lines.push(Line("tc", format!("qdisc add dev {device} root {name}")));
        lines.extend(restore.map(|restore| restore.stop(interface)));
        if *direction == Direction::Down {
            // Last of all, packets go there.
            lines.push(Line("tc", format!("qdisc add dev {interface} clsact")));
            let to = format!("action mirred egress redirect dev {device}");
            lines.push(Line("tc", format!("filter add dev {interface} ingress matchall {to}")));
        }
        lines
    }
}

pub(crate) fn add(arguments: &QdiscAddArguments) -> Result<(), Failure> {
    let plans = plans(arguments)?;
    if arguments.dry_run {
        return dry_run(arguments, &plans);
    }
    if let Some(reason) = missing() {
        return Err(Failure::Other(reason));
    }
    obstacle(arguments)?;
    let mut names = Vec::new();
    for plan in &plans {
        let done = install(plan).map(|qdisc| names.push(qdisc));
        if let Err(failure) = done {
            // What is there by now goes again; why it failed matters more.
            let _ = clear(&arguments.interface);
            return Err(failure);
        }
    }
    if arguments.json {
        return show(&QdiscShowArguments {
            interface: Some(arguments.interface.clone()),
            json: true,
        });
    }
    let mut text = String::new();
    for (plan, qdisc) in plans.iter().zip(&names) {
        let Note { device, direction, .. } = &plan.note;
        let Queue { entry, rate, .. } = &plan.queue;
        let name = qdisc.name();
        text.push_str(&format!("{direction}: {} at {rate}, as {name} on {device}\n", entry.name));
    }
    text.push_str(&format!("'tidegate qdisc del {}' takes this away\n", arguments.interface));
    print(&text)
}

fn install(plan: &Plan) -> Result<Qdisc, Failure> {
    let Plan { queue, program, note } = plan;
    let qdisc = Qdisc::load(program, queue, note.has_ethernet, &note.text()).map_err(failed)?;
    plan.lines(qdisc.name()).iter().try_for_each(Line::run).map_err(Failure::Other)?;
    Ok(qdisc)
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
fn failed(error: QdiscError) -> Failure {
    let help = match &error {
        QdiscError::File { reason, .. }
            if reason.kind() == std::io::ErrorKind::PermissionDenied =>
        {
            "; run it as root, for example with sudo"
        }
        _ => "",
    };
    Failure::Other(format!("{error}{help}"))
}

/// What the arguments ask for, if it can be had.
fn plans(arguments: &QdiscAddArguments) -> Result<Vec<Plan>, Failure> {
    let QdiscAddArguments { interface, discipline, buffer, framing, .. } = arguments;
    let program = programs::find(discipline.entry.name).ok_or_else(|| {
        let all = DISCIPLINES.iter().filter(|entry| programs::find(entry.name).is_some());
        let all: Vec<_> = all.map(|entry| entry.name).collect();
        let name = discipline.entry.name;
        Failure::Input(format!(
            "--discipline: found '{name}', which the kernel does not have from here, expected one \
             of {}; 'tidegate link run' has all disciplines",
            all.join(", ")
        ))
    })?;
    if let Some((name, only)) = programs::unsupported(program.discipline, &discipline.settings) {
        let found = discipline.settings.value(name);
        return Err(Failure::Input(format!(
            "--discipline: found {name}={found}, expected {only}, all that the kernel has from here"
        )));
    }
    if !device::is_there(interface) {
        return Err(Failure::Other(format!("{interface}: there is no such interface")));
    }
    let plan = |direction: Direction, rate: Rate| {
        let queue = Queue {
            entry: discipline.entry,
            settings: discipline.settings.clone(),
            limit: *buffer,
            rate,
            framing: *framing,
        };
        let is_slow = rate < WHOLE_FROM;
        let (device, merges) = match direction {
            Direction::Up => (interface.clone(), device::merges_outgoing(interface)),
            Direction::Down => (device::incoming(interface), device::merges_incoming(interface)),
        };
        let note = Note {
            version: env!("CARGO_PKG_VERSION").into(),
            interface: interface.clone(),
            has_ethernet: device::has_ethernet(interface),
            direction,
            device: device.clone(),
            discipline: String::new(),
            parameters: Default::default(),
            rate_bps: 0,
            buffer: String::new(),
            framing: String::new(),
            restore: merges.filter(|_| is_slow),
        };
        let note = note.with(&queue);
        Plan { queue, program, note }
    };
    let rates = [(Direction::Down, arguments.down), (Direction::Up, arguments.up)];
    let plans: Vec<Plan> =
        rates.into_iter().filter_map(|(way, rate)| Some(plan(way, rate?))).collect();
    for Plan { queue, note, .. } in &plans {
        keeps_promises(note.direction, queue).map_err(Failure::Input)?;
    }
    Ok(plans)
}

/// Why nothing can be added there, if that is so.
fn obstacle(arguments: &QdiscAddArguments) -> Result<(), Failure> {
    let interface = &arguments.interface;
    let refuse = |text: String| Err(Failure::Other(format!("{interface}: {text}")));
    if found()?.iter().any(|found| found.note.interface == *interface && found.is_ours()) {
        let help = "'tidegate qdisc change' changes them, and 'tidegate qdisc del' takes them away";
        return refuse(format!("it has queues of Tidegate already; {help}"));
    }
    if arguments.up.is_some()
        && let Some((kind, true)) = device::root(interface)
    {
        return refuse(format!(
            "somebody has put the queue '{kind}' there, which could not be put back; 'tc qdisc \
             del dev {interface} root' takes it away"
        ));
    }
    if arguments.down.is_some() {
        if device::has_ingress(interface) {
            return refuse(format!(
                "somebody has use of its incoming traffic; 'tc filter show dev {interface} ingress' \
                 shows it"
            ));
        }
        let incoming = device::incoming(interface);
        if device::is_there(&incoming) {
            return refuse(format!(
                "the device {incoming} is there already; 'ip link delete dev {incoming}' takes it \
                 away"
            ));
        }
    }
    Ok(())
}

fn dry_run(arguments: &QdiscAddArguments, plans: &[Plan]) -> Result<(), Failure> {
    let named = |plan: &Plan| format!("{}_N", plan.program.discipline);
    let lines = |plan: &Plan| plan.lines(&named(plan)).iter().map(Line::text).collect::<Vec<_>>();
    let obstacle = missing().map(Failure::Other).map_or_else(|| obstacle(arguments), Err);
    let reason = match obstacle {
        Ok(()) => None,
        Err(Failure::Other(reason) | Failure::Input(reason)) => Some(reason),
        Err(other) => return Err(other),
    };
    if arguments.json {
        let all = plans.iter().map(|plan| json!({ "note": plan.note, "lines": lines(plan) }));
        return print_json(&json!({ "plan": all.collect::<Vec<_>>(), "obstacle": reason }));
    }
    let mut text = String::new();
    for plan in plans {
        let Queue { entry, rate, limit, framing, .. } = &plan.queue;
        let direction = plan.note.direction;
        text.push_str(&format!(
            "{direction}: {} at {rate}, a buffer of {limit}, packets as on {framing}\n",
            entry.name
        ));
        text.push_str(&format!("  the kernel is given the discipline, as {}\n", named(plan)));
        for line in lines(plan) {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text.push_str(&format!("'tidegate qdisc del {}' would undo all of it.\n", arguments.interface));
    if let Some(reason) = reason {
        text.push_str(&format!("It cannot be done now: {reason}\n"));
    }
    print(&text)
}

/// All that the kernel has of ours. One whose note cannot be read is of others, or of another
/// version; it keeps nobody from the rest.
fn found() -> Result<Vec<Found>, Failure> {
    let mut all = Vec::new();
    for qdisc in Qdisc::all().into_iter().filter(Qdisc::is_whole) {
        match Note::of(&qdisc) {
            Ok(note) => {
                let root = device::root(&note.device);
                let is_here = root.is_some_and(|(kind, _)| kind == qdisc.name());
                all.push(Found { qdisc, note, is_here });
            }
            Err(NoteError::Unknown(reason)) => eprintln!("tidegate: {reason}"),
            Err(NoteError::Unreadable(reason)) => return Err(Failure::Other(reason)),
        }
    }
    Ok(all)
}

impl Found {
    /// Whether it is of this network, and not of another one on this machine: one that no
    /// device has is what an `add` or an interface that died has left.
    fn is_ours(&self) -> bool {
        let in_use = || self.qdisc.statistics().is_ok_and(|it| it.word("in_use") > 0);
        self.is_here || !in_use()
    }
}

/// The queues of an interface, or of all.
fn ours(interface: Option<&str>) -> Result<Vec<Found>, Failure> {
    let mut all = found()?;
    all.retain(|found| interface.is_none_or(|it| found.note.interface == it) && found.is_ours());
    all.sort_by(|a, b| {
        let key = |it: &Found| (it.note.interface.clone(), it.note.direction.name());
        key(a).cmp(&key(b))
    });
    match interface {
        Some(interface) if all.is_empty() => {
            Err(Failure::Other(format!("{interface}: it has no queue of Tidegate")))
        }
        _ => Ok(all),
    }
}

pub(crate) fn show(arguments: &QdiscShowArguments) -> Result<(), Failure> {
    let mut states = Vec::new();
    for Found { qdisc, note, .. } in ours(arguments.interface.as_deref())? {
        let queue = note.queue()?;
        let program = programs::find(queue.entry.name).expect("it was loaded");
        let statistics = qdisc.statistics().map_err(failed)?;
        let status = statistics.status(&queue, program);
        states.push(State {
            interface: note.interface,
            device: note.device,
            qdisc: qdisc.name().into(),
            status: QueueStatus { direction: Some(note.direction), ..status },
            super_packets: statistics.word("super_packets"),
            cleared_packets: statistics.word("cleared_packets"),
            crowded: statistics.word("crowded"),
        });
    }
    if arguments.json {
        return print_json(&states);
    }
    if states.is_empty() {
        return print("no interface has a queue of Tidegate\n");
    }
    print(&text::text(&states))
}

pub(crate) fn change(arguments: &QdiscChangeArguments) -> Result<(), Failure> {
    if let Some(mistake) = arguments.changes.mistake() {
        return Err(Failure::Input(mistake));
    }
    let QdiscChangeArguments { interface, changes, .. } = arguments;
    let ChangeArguments { down, up, buffer, framing, parameters: given, direction } = changes;
    let all = ours(Some(interface))?;
    for (rate, way) in [(down, Direction::Down), (up, Direction::Up)] {
        if rate.is_some() && !all.iter().any(|found| found.note.direction == way) {
            let found = format!("found --{way}, but {interface} has no queue in that direction");
            return Err(Failure::Input(format!("{found}; expected one that it has")));
        }
    }
    // All of it holds, or nothing.
    let mut changed = Vec::new();
    for Found { qdisc, note, .. } in all {
        let (way, rate) = match note.direction {
            Direction::Down => (LinkDirection::Down, *down),
            Direction::Up => (LinkDirection::Up, *up),
        };
        let is_meant = direction.is_none_or(|it| it == way);
        let change = Change {
            rate,
            limit: buffer.filter(|_| is_meant),
            framing: framing.filter(|_| is_meant),
            parameters: if is_meant { given.clone() } else { Vec::new() },
        };
        let before = note.queue()?;
        let queue = before.with(&change).map_err(Failure::input)?;
        keeps_promises(note.direction, &queue).map_err(Failure::Input)?;
        if let Some((name, only)) = programs::unsupported(queue.entry.name, &queue.settings) {
            return Err(Failure::Input(format!(
                "--parameter: {name}: expected {only}, all that the kernel has from here"
            )));
        }
        changed.push((qdisc, note.with(&queue), queue));
    }
    for (qdisc, note, queue) in &changed {
        qdisc.change(queue, note.has_ethernet).map_err(failed)?;
        qdisc.set_note(&note.text()).map_err(failed)?;
    }
    show(&QdiscShowArguments { interface: Some(interface.clone()), json: arguments.json })
}

pub(crate) fn del(arguments: &QdiscDelArguments) -> Result<(), Failure> {
    let gone = clear(&arguments.interface)?;
    if gone.is_empty() {
        let interface = &arguments.interface;
        return Err(Failure::Other(format!("{interface}: it has no queue of Tidegate")));
    }
    let lines: String = gone.iter().map(|line| format!("{line}\n")).collect();
    print(&lines)
}

/// Takes away what an interface has of ours, or what an `add` that died has left of it, and
/// says what.
fn clear(interface: &str) -> Result<BTreeSet<String>, Failure> {
    let mut gone = BTreeSet::new();
    for debris in Qdisc::all().iter().filter(|qdisc| !qdisc.is_whole()) {
        debris.remove().map_err(failed)?;
    }
    for found in found()? {
        if found.note.interface != interface || !found.is_ours() {
            continue;
        }
        let Found { qdisc, note, is_here } = found;
        let mut lines = Vec::new();
        if is_here {
            lines.push(Line("tc", format!("qdisc del dev {} root", note.device)));
        }
        if note.direction == Direction::Down {
            // First of all, packets no longer go there.
            if device::has_ingress(interface) {
                lines.insert(0, Line("tc", format!("qdisc del dev {interface} clsact")));
            }
            if device::is_there(&note.device) {
                lines.push(Line("ip", format!("link delete dev {} type ifb", note.device)));
            }
        }
        if device::is_there(interface) {
            lines.extend(note.restore.map(|restore| restore.again(interface)));
        }
        // One that fails does not keep the others from being tried. As long as the device has
        // the queue, its note is needed.
        let wrong: Vec<_> = lines.iter().filter_map(|line| line.run().err()).collect();
        let stays = device::root(&note.device).is_some_and(|(kind, _)| kind == qdisc.name());
        if !stays {
            qdisc.remove().map_err(failed)?;
        }
        if let Some(first) = wrong.into_iter().next() {
            return Err(Failure::Other(first));
        }
        let Note { device, direction, .. } = note;
        gone.insert(format!("{direction}: took {} away from {device}", qdisc.name()));
    }
    Ok(gone)
}
