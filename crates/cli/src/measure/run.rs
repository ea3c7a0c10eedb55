//! `tidegate measure run`: rounds, in each of which every queue is measured once.
//!
//! What may be refused comes first, while nothing has changed. Then each queue is set once
//! for a moment: one that this machine lacks is named with its reason and left out, before
//! any time is spent. In each round the queues come in another order, since the link of an
//! evening changes from minute to minute, and whoever is always first would meet another
//! link than whoever is always last. Between two runs the interface is as it was.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tidegate_core::Span;
use tidegate_core::random::Stream as Random;
use tidegate_gateway::machine::{CAP_NET_ADMIN, has_capability};

use super::changes::{self, Held};
use super::client::Plan;
use super::flent::{self, About};
use super::queue::{Choice, Queue, Rates, Standing};
use super::record::{Record, Times};
use super::result::{LeftOut, Measured, Run};
use super::target::Target;
use crate::arguments::MeasureRunArguments;
use crate::failure::Failure;
use crate::interface::{fact, printed};
use crate::interrupt::stop_flag;
use crate::output::{self, json, print};
use crate::progress::Progress;
use crate::report;

/// How long the idle link is measured before each load: what an earlier load has left in
/// queues is gone by then, and the delay without load is known.
const IDLE_S: f64 = 2.0;
/// A measurement whose rounds do not say goes on, up to so many times as many.
const USUAL_MOST: u64 = 3;
/// How often whoever waits for a run looks up.
const LOOK: Duration = Duration::from_millis(100);
/// How long the threads of a run may take to see a stop.
const STOPPED: Duration = Duration::from_secs(1);
/// The name of the results in their folder.
const SUMMARY: &str = "summary.json";

pub(crate) fn run(arguments: &MeasureRunArguments) -> Result<(), Failure> {
    let target = Target::find(&arguments.server)?;
    let rates = Rates { down: arguments.down, up: arguments.up };
    let choices = choices(arguments, rates)?;
    let interface = interface(arguments, &target)?;
    let changes_something = choices.iter().any(|it| !matches!(it.queue, Queue::Now));
    if let Some(folder) = &arguments.out {
        prepare(folder)?;
    }
    let stop = stop_flag()?;
    let mut held = held(&interface, changes_something, rates)?;
    let (choices, left_out) = match &mut held {
        Ok(held) => tried(choices, held, rates)?,
        Err(reason) => without(choices, reason),
    };
    left_out.iter().for_each(|it| eprintln!("tidegate: left out {}: {}", it.label, it.reason));
    if choices.is_empty() {
        return Err(Failure::Other("there is no queue left to measure".into()));
    }
    let times = Times { idle_s: IDLE_S, load_s: arguments.seconds as f64 };
    let mut measured = Measured::new(arguments, &target, &interface, times, &choices, left_out);
    let mut held = held.ok();
    let bed = Bed { arguments, target: &target, rates, stop };
    let outcome = bed.rounds(&choices, times, held.as_mut(), &mut measured);
    let undone = held.as_mut().map_or(Ok(()), Held::undo);
    if measured.has_results() {
        shown(arguments, &mut measured)?;
    }
    outcome.map_err(|failure| measured.partial(failure))?;
    undone
}

/// The queues that were asked for, or the usual ones.
fn choices(arguments: &MeasureRunArguments, rates: Rates) -> Result<Vec<Choice>, Failure> {
    let has_rate = rates.up.is_some() || rates.down.is_some();
    let usual = if has_rate { &["now", "fq-codel", "cake", "efd"][..] } else { &["now"] };
    let usual = || usual.iter().map(|it| (*it).to_owned()).collect();
    let texts = arguments.queues.clone().unwrap_or_else(usual);
    let choices: Vec<Choice> =
        texts.iter().map(|text| text.parse().map_err(Failure::Input)).collect::<Result<_, _>>()?;
    for (index, choice) in choices.iter().enumerate() {
        if choices[..index].iter().any(|it| it.label == choice.label) {
            let label = &choice.label;
            let help = "name them, for example a=fifo,b=fifo";
            let found = format!("--queues: found '{label}' twice, expected names that differ");
            return Err(Failure::Input(format!("{found}; {help}")));
        }
        if !matches!(choice.queue, Queue::Now) && !has_rate {
            let label = &choice.label;
            let found = format!("--queues: found '{label}' without --up and --down");
            let why = "a queue can only be ordered in front of a rate that is known";
            return Err(Failure::Input(format!("{found}, expected at least one of them: {why}")));
        }
    }
    Ok(choices)
}

/// The interface that was named, or the one towards the server.
fn interface(arguments: &MeasureRunArguments, target: &Target) -> Result<String, Failure> {
    if let Some(name) = &arguments.interface {
        if fact(name, "ifindex").is_none() {
            let found = format!("--interface: found '{name}', which this machine does not have");
            return Err(Failure::Input(format!("{found}, expected one of 'ip link'")));
        }
        return Ok(name.clone());
    }
    let to = target.address().ip().to_string();
    let route = printed("ip", &["-json", "route", "get", &to]);
    let route: Option<serde_json::Value> = route.and_then(|it| serde_json::from_str(&it).ok());
    let device = route.as_ref().and_then(|it| it[0]["dev"].as_str());
    device.map(str::to_owned).ok_or_else(|| {
        let found = format!("found no interface towards {to}");
        Failure::Input(format!("{found}, expected one in the routes, or --interface"))
    })
}

/// The right to change the interface, or the reason why there is none; what an earlier
/// measurement has left is undone.
fn held(interface: &str, changes: bool, rates: Rates) -> Result<Result<Held, String>, Failure> {
    if !changes && !changes::is_noted(interface) {
        return Ok(Err("nothing is changed".into()));
    }
    if !has_capability(CAP_NET_ADMIN) {
        if changes::is_noted(interface) {
            let text = "an earlier measurement may have left a queue there";
            let help = format!("'sudo tidegate measure undo {interface}' takes it away");
            return Err(Failure::Other(format!("{interface}: {text}; {help}")));
        }
        return Ok(Err("it takes CAP_NET_ADMIN: run it as root, for example with sudo".into()));
    }
    let mut held = Held::take(interface)?;
    if held.has_changes() {
        held.undo()?;
        eprintln!("tidegate: {interface}: undid what a measurement that was killed had left");
    }
    if !changes {
        return Ok(Err("nothing is changed".into()));
    }
    let queues = changes::queues(interface).map_err(Failure::Other)?;
    let refused = |found: String| {
        let why = "it could not be put back as it was";
        let help = format!(
            "measure --queues now, or take it away: 'tc qdisc show dev {interface}' shows it"
        );
        Failure::Input(format!("{interface}: found {found}, {why}; {help}"))
    };
    if let Some(queue) = changes::configured(&queues) {
        return Err(refused(format!("the queue {queue}, which somebody has configured")));
    }
    if rates.down.is_some() && changes::filters(&queues) {
        return Err(refused(
            "filters of what comes in (ingress), where --down needs its own".into(),
        ));
    }
    Ok(Ok(held))
}

/// Sets each queue for a moment; those that cannot be set are left out.
fn tried(
    choices: Vec<Choice>,
    held: &mut Held,
    rates: Rates,
) -> Result<(Vec<Choice>, Vec<LeftOut>), Failure> {
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    for choice in choices {
        let set = choice.queue.set(held, rates).map(drop);
        held.undo()?;
        match set {
            Ok(()) => kept.push(choice),
            Err(reason) => left_out.push(LeftOut { label: choice.label, reason }),
        }
    }
    Ok((kept, left_out))
}

/// Without the right to change anything, there is what there is.
fn without(choices: Vec<Choice>, reason: &str) -> (Vec<Choice>, Vec<LeftOut>) {
    let (now, others): (Vec<_>, Vec<_>) =
        choices.into_iter().partition(|it| matches!(it.queue, Queue::Now));
    let left_out = |it: Choice| LeftOut { label: it.label, reason: reason.into() };
    (now, others.into_iter().map(left_out).collect())
}

struct Bed<'a> {
    arguments: &'a MeasureRunArguments,
    target: &'a Target,
    rates: Rates,
    stop: &'static AtomicBool,
}

impl Bed<'_> {
    /// All rounds, as far as they get.
    fn rounds(
        &self,
        choices: &[Choice],
        times: Times,
        mut held: Option<&mut Held>,
        measured: &mut Measured,
    ) -> Result<(), Failure> {
        let MeasureRunArguments { rounds, seed, flows, .. } = *self.arguments;
        let most = self.arguments.most_rounds.unwrap_or(rounds.saturating_mul(USUAL_MOST));
        let mut random = Random::new(seed, "the order of queues");
        let each = Span::from_seconds(times.end_s() * choices.len() as f64);
        let progress = Progress::of_unknown_length();
        let mut outcome = Ok(());
        'all: for round in 1..=most.max(rounds) {
            // The verdict is looked at after so many rounds, twice as many, and so on: who looks
            // all the time finds what chance makes.
            if (round - 1).is_multiple_of(rounds) {
                if round > 1 && measured.is_settled() {
                    break;
                }
                progress.extend(each * rounds);
            }
            let plan = Plan::of(times, flows, self.calls(), seed, round);
            for place in shuffled(choices.len(), &mut random) {
                let choice = &choices[place];
                progress.say(&format!("round {round}: {}", choice.label));
                match self.once(choice, &plan, held.as_deref_mut(), &progress) {
                    Ok((form, record)) => {
                        let run = Run { place, round, form, record };
                        let kept = self.keep(&run, &choice.label);
                        measured.add(run);
                        outcome = kept;
                    }
                    Err(failure) => outcome = Err(failure),
                }
                if outcome.is_err() {
                    break 'all;
                }
            }
        }
        progress.finish();
        outcome
    }

    /// Calls at the same time, each 86 kbit/s each way: as many as take a few hundredths of
    /// the slower rate, since the losses of a single one are few and say little.
    fn calls(&self) -> u8 {
        let slower = [self.rates.down, self.rates.up].into_iter().flatten().min();
        match slower.map_or(0, |rate| rate.0) {
            0..2_000_000 => 1,
            2_000_000..5_000_000 => 2,
            _ => 4,
        }
    }

    /// One queue in one round.
    fn once(
        &self,
        choice: &Choice,
        plan: &Plan,
        mut held: Option<&mut Held>,
        progress: &Progress,
    ) -> Result<(String, Record), Failure> {
        let standing = match held.as_deref_mut() {
            Some(held) => choice.queue.set(held, self.rates),
            None => Ok(Standing::unchanged()),
        };
        let standing =
            standing.map_err(|reason| Failure::Other(format!("{}: {reason}", choice.label)));
        let record = standing
            .and_then(|standing| Ok((standing.form.clone(), self.measured(plan, progress)?)));
        let undone = held.map_or(Ok(()), Held::undo);
        let record = record?;
        undone.map(|()| record)
    }

    /// Runs the plan in a thread that nobody has to wait for: a connection that hangs must
    /// not keep anybody from undoing what was changed.
    fn measured(&self, plan: &Plan, progress: &Progress) -> Result<Record, Failure> {
        let (done, result) = mpsc::channel();
        let (target, stop, plan) = (self.target.clone(), self.stop, plan.clone());
        let whole_s = plan.times.end_s();
        thread::spawn(move || {
            // Whoever was interrupted does not listen.
            let _ = done.send(target.run(&plan, stop));
        });
        let (begun, mut shown_s) = (Instant::now(), 0.0);
        let mut stopped: Option<Instant> = None;
        loop {
            match result.recv_timeout(LOOK) {
                Ok(record) => {
                    progress.advance(Span::from_seconds((whole_s - shown_s).max(0.0)));
                    return record;
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(Failure::Other("the measurement broke off".into()));
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            let now_s = begun.elapsed().as_secs_f64().min(whole_s);
            progress.advance(Span::from_seconds((now_s - shown_s).max(0.0)));
            shown_s = now_s;
            if self.stop.load(Ordering::Relaxed)
                && stopped.get_or_insert_with(Instant::now).elapsed() > STOPPED
            {
                return Err(Failure::Interrupted("interrupted".into()));
            }
        }
    }

    /// Writes the file of a run, if there is a folder for it.
    fn keep(&self, run: &Run, label: &str) -> Result<(), Failure> {
        let Some(folder) = &self.arguments.out else { return Ok(()) };
        let plain = |it: char| if it.is_ascii_alphanumeric() || it == '-' { it } else { '-' };
        let label_in_name: String = label.chars().map(plain).collect();
        let path = folder.join(format!(
            "round-{:03}-{}-{label_in_name}.flent.gz",
            run.round,
            run.place + 1
        ));
        let congestion = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").ok();
        let client = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let about = About {
            title: &format!("round {}, {label}", run.round),
            server: &self.arguments.server,
            queue: &format!("{label}: {}", run.form),
            congestion: congestion.as_deref().map(str::trim),
            client: client.trim(),
        };
        flent::write(&path, &run.record, &about)
            .map_err(|reason| Failure::unwritable(&path, &reason))
    }
}

/// All places in an order by chance (Fisher and Yates).
fn shuffled(count: usize, random: &mut Random) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        places.swap(last, random.index(last + 1));
    }
    places
}

/// Makes the folder for results, which may not have any yet.
fn prepare(folder: &Path) -> Result<(), Failure> {
    if folder.join(SUMMARY).exists() {
        let found = format!("--out {}: found earlier results", folder.display());
        return Err(Failure::Input(format!("{found}, expected a folder without any")));
    }
    std::fs::create_dir_all(folder).map_err(|reason| Failure::unwritable(folder, &reason))
}

/// Prints the results, and writes them into the folder.
fn shown(arguments: &MeasureRunArguments, measured: &mut Measured) -> Result<(), Failure> {
    let answered = measured.answered();
    let document = json(&answered);
    if let Some(folder) = &arguments.out {
        let path = folder.join(SUMMARY);
        std::fs::write(&path, &document).map_err(|it| Failure::unwritable(&path, &it))?;
        answered.write(folder, &typed()).map_err(|it| Failure::unwritable(folder, &it))?;
    }
    if arguments.json {
        return print(&document);
    }
    print(&answered.text(output::columns(crate::table::WIDTH)))?;
    match &arguments.out {
        Some(folder) => print(&format!("\nReport: {}\n", folder.join(report::NAME).display())),
        None => Ok(()),
    }
}

/// The command as a shell takes it.
fn typed() -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./:,=@".contains(it);
    let words = std::env::args_os().skip(1).map(|word| {
        let word = word.to_string_lossy();
        let quote = if !word.is_empty() && word.chars().all(is_plain) { "" } else { "'" };
        format!("{quote}{}{quote}", word.replace('\'', r"'\''"))
    });
    std::iter::once("tidegate".into()).chain(words).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_comes_once_in_a_round_and_rounds_have_other_orders() {
        let mut random = Random::new(1, "x");
        let orders: Vec<_> = (0..50).map(|_| shuffled(4, &mut random)).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
        }
        let firsts = |place| orders.iter().filter(|it| it[0] == place).count();
        assert!((0..4).all(|place| firsts(place) > 4), "{orders:?}");
    }
}
