//! The link that a measurement is of: what the file says, what is assumed where it says
//! nothing, and what the command line says otherwise.
//!
//! A shaper that the file describes comes before what its flows reached, since a queue that
//! drops early keeps flows below the rate. Where the file describes no shaped queue, the
//! link has the queue of most links, a FIFO, whose buffer is what the load added to the delay.

use std::collections::BTreeSet;

use tidegate_core::buffer::Limit;
use tidegate_core::entry::Entry;
use tidegate_core::registry::{self, DISCIPLINES};
use tidegate_core::{Buffer, Bytes, Rate, Span};
use tidegate_sim::scenario::{DisciplineChoice, Observed};
use tidegate_sim::trace::{Direction, Flent, FlentKind, FlentQueue};
use tidegate_study::measured::Measurement;

use super::scenario::tcp;
use super::{item, word};
use crate::arguments::MeasuredLinkArguments;
use crate::failure::Failure;

/// Where the file has no delay at all, as `tidegate compare` has it.
const RTT: Span = Span::millis(20);
/// Where it has no added delay.
const BUFFER: Span = Span::millis(150);
/// A buffer that is found from the added delay is not smaller.
const LEAST_BUFFER: Span = Span::millis(5);
/// A full packet for a shaper of Linux, which counts the header of Ethernet, and in IP.
const FRAME: u64 = 1_514;
const PACKET: u64 = 1_500;
/// The fastest link of a scenario, in bit/s.
const MOST_RATE: u64 = 1_000_000_000_000;
/// The payload of a full packet with timestamps, and an acknowledgement of two such packets.
const PAYLOAD: f64 = 1_448.0;
const ACKNOWLEDGEMENT: f64 = 52.0;

/// Both directions, down first, in lists of two.
const WAYS: [Direction; 2] = [Direction::Down, Direction::Up];

/// A link that was measured.
pub(super) struct Link {
    /// Down and up, for IP packets.
    pub(super) rates: [Rate; 2],
    /// Without load.
    pub(super) rtt: Span,
    /// Down and up.
    pub(super) buffers: [Limit; 2],
    /// What schedules it.
    pub(super) discipline: DisciplineChoice,
    facts: Vec<Fact>,
}

/// Something about the link, and who says it.
struct Fact {
    source: Source,
    text: String,
}

/// Who says something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    File,
    CommandLine,
    Nobody,
}

impl Source {
    const ALL: [(Source, &str); 3] = [
        (Source::File, "From the file"),
        (Source::CommandLine, "From the command line"),
        (Source::Nobody, "Assumed"),
    ];
}

impl Link {
    /// The link of `run`, unless `arguments` say otherwise.
    pub(super) fn of(
        run: &Flent,
        measurement: &Measurement,
        arguments: &MeasuredLinkArguments,
    ) -> Result<Link, Failure> {
        let mut facts = Vec::new();
        let mut say = |source, text: String| facts.push(Fact { source, text });
        let rates = rates(run, measurement, arguments, &mut say)?;
        let rtt = rtt(measurement, arguments, &mut say);
        let queue = WAYS.iter().rev().find_map(|way| queue(run, *way));
        let discipline = match (&arguments.discipline, queue) {
            (Some(given), _) => {
                say(Source::CommandLine, format!("{} on the link", given.label));
                given.clone()
            }
            (None, Some(queue)) => discipline(queue, &mut say),
            (None, None) => {
                say(Source::Nobody, "a FIFO, since the file describes no shaped queue".into());
                DisciplineChoice::with_defaults(fifo())
            }
        };
        let buffers = buffers(run, measurement, arguments, &mut say);
        flows(run, &mut say);
        Ok(Link { rates, rtt, buffers, discipline, facts })
    }

    /// Everything about the link in sentences.
    pub(super) fn words(&self) -> String {
        let sentences = Source::ALL.iter().filter_map(|(source, heading)| {
            let facts = self.of_source(*source);
            (!facts.is_empty()).then(|| format!("{heading}: {}.", facts.join("; ")))
        });
        sentences.collect::<Vec<_>>().join(" ")
    }

    /// The same as a list for a terminal.
    pub(super) fn listed(&self) -> String {
        let mut text = String::new();
        for (source, heading) in Source::ALL {
            let facts = self.of_source(source);
            if !facts.is_empty() {
                text += &format!("{heading}:\n");
                facts.iter().for_each(|fact| text += &item("  - ", fact));
            }
        }
        text
    }

    fn of_source(&self, source: Source) -> Vec<&str> {
        let facts = self.facts.iter().filter(|fact| fact.source == source);
        facts.map(|fact| fact.text.as_str()).collect()
    }
}

/// The shaped queue of a direction.
fn queue(run: &Flent, way: Direction) -> Option<&FlentQueue> {
    run.queues.iter().find(|queue| queue.direction == way)
}

/// `at testbed-02`.
fn place(queue: &FlentQueue) -> String {
    if queue.host.is_empty() { "at the client".into() } else { format!("at {}", queue.host) }
}

type Say<'a> = dyn FnMut(Source, String) + 'a;

fn rates(
    run: &Flent,
    measurement: &Measurement,
    arguments: &MeasuredLinkArguments,
    say: &mut Say<'_>,
) -> Result<[Rate; 2], Failure> {
    let reached =
        measurement.throughput.map(|place| match &measurement.observations[place?].what {
            Observed::Throughput { spread, .. } => spread.mean,
            _ => None,
        });
    let given = [arguments.down, arguments.up];
    let mut rates = [None; 2];
    for (index, way) in WAYS.into_iter().enumerate() {
        let name = word(way);
        rates[index] = if let Some(rate) = given[index] {
            say(Source::CommandLine, format!("{rate} {name}"));
            Some(rate)
        } else if let Some(queue) = queue(run, way) {
            let rate =
                Rate((u128::from(queue.rate.0) * u128::from(PACKET) / u128::from(FRAME)) as u64);
            say(
                Source::File,
                format!(
                    "{rate} {name}: the {} of the shaper {}, less {} B of Ethernet for each packet",
                    queue.rate,
                    place(queue),
                    FRAME - PACKET
                ),
            );
            Some(rate)
        } else if let Some(payload) = reached[index] {
            let back = reached[1 - index].map_or(0.0, |rate| rate.0 as f64);
            let acknowledgements = back / PAYLOAD / 2.0 * ACKNOWLEDGEMENT;
            let wire = payload.0 as f64 * PACKET as f64 / PAYLOAD + acknowledgements;
            let rate = Rate((wire.round() as u64).clamp(1, MOST_RATE));
            say(
                Source::File,
                format!(
                    "{rate} {name}: the {payload} of payload that its flows reached, with headers \
                     and acknowledgements"
                ),
            );
            Some(rate)
        } else {
            None
        };
    }
    let rates = rates.map(|rate| rate.map(|rate| rate.min(Rate(MOST_RATE))));
    match rates {
        [Some(down), Some(up)] => Ok([down, up]),
        [Some(rate), None] | [None, Some(rate)] => {
            let missing = word(WAYS[usize::from(rates[1].is_none())]);
            say(
                Source::Nobody,
                format!("{rate} {missing} too, since nothing was measured that way (--{missing})"),
            );
            Ok([rate; 2])
        }
        [None, None] => {
            let message = "found no rate in the file, expected --down and --up";
            Err(Failure::Input(message.into()))
        }
    }
}

fn rtt(measurement: &Measurement, arguments: &MeasuredLinkArguments, say: &mut Say<'_>) -> Span {
    if let Some(rtt) = arguments.rtt {
        say(Source::CommandLine, format!("a round trip of {rtt}"));
        return rtt;
    }
    let Some(rtt) = measurement.round_trip() else {
        say(Source::Nobody, format!("a round trip of {RTT}, since the file has none (--rtt)"));
        return RTT;
    };
    let name = |place: usize| measurement.observations[place].name.as_str();
    match (measurement.ping, measurement.call) {
        (Some(ping), _) => {
            let text =
                format!("a round trip of {rtt} without load, the median of '{}'", name(ping));
            say(Source::File, text);
        }
        // It depends on both clocks, and on the way back being as long.
        (None, call) => say(
            Source::Nobody,
            format!(
                "a round trip of {rtt}, twice the one-way delay of '{}' without load (--rtt)",
                call.map_or("the call", name)
            ),
        ),
    }
    rtt
}

/// The queue of most links.
fn fifo() -> &'static Entry {
    registry::find("fifo").expect("it is registered")
}

/// What schedules a shaped queue, with those of its parameters that are known here.
fn discipline(queue: &FlentQueue, say: &mut Say<'_>) -> DisciplineChoice {
    /// What Linux puts behind a shaper where nothing else is said, or has a simpler name for.
    const PLAIN: &[&str] = &["tbf", "netem", "htb", "pfifo_fast", "bfifo"];
    let name = queue.name.as_str();
    let found = DISCIPLINES.iter().find(|entry| entry.linux == Some(name));
    let Some(entry) = found.or_else(|| PLAIN.contains(&name).then(fifo)) else {
        let (name, place) = (&queue.name, place(queue));
        say(Source::Nobody, format!("a FIFO in place of '{name}' {place}, which is not simulated"));
        return DisciplineChoice::with_defaults(fifo());
    };
    let written: Vec<(&str, String)> = entry
        .parameters
        .iter()
        .filter_map(|parameter| {
            let text = value(parameter.name, queue.parameters.get(parameter.name)?)?;
            entry.settings(&[(parameter.name, &text)]).is_ok().then_some((parameter.name, text))
        })
        .collect();
    let pairs: Vec<(&str, &str)> = written.iter().map(|(name, text)| (*name, &**text)).collect();
    // Each is right by itself; together they may not be.
    let default = DisciplineChoice::with_defaults(entry);
    let settings = entry.settings(&pairs).unwrap_or_else(|_| default.settings.clone());
    let with: Vec<String> = written.iter().map(|(name, text)| format!("{name} {text}")).collect();
    let with = if with.is_empty() { String::new() } else { format!(", {}", with.join(", ")) };
    say(Source::File, format!("{name}{with} {}", place(queue)));
    DisciplineChoice { settings, ..default }
}

/// A parameter of `tc` in the form of a scenario; `None` if it says nothing here.
fn value(name: &str, printed: &str) -> Option<String> {
    match name {
        // The link has the rate.
        "bandwidth" => None,
        // In Linux with the header of Ethernet.
        "quantum" | "mtu" => {
            let size: u64 = printed.trim_end_matches('b').parse().ok()?;
            Some(format!("{} B", size.saturating_sub(FRAME - PACKET).max(1)))
        }
        _ => Some(printed.into()),
    }
}

fn buffers(
    run: &Flent,
    measurement: &Measurement,
    arguments: &MeasuredLinkArguments,
    say: &mut Say<'_>,
) -> [Limit; 2] {
    if let Some(buffer) = arguments.buffer {
        say(Source::CommandLine, format!("a buffer of {buffer} each way"));
        return [buffer; 2];
    }
    let of = WAYS.map(|way| queue(run, way).and_then(limit));
    if let [Some(one), other] | [other, Some(one)] = of {
        let buffers = if of[0].is_some() { [one, other.unwrap_or(one)] } else { [one, one] };
        let same = buffers[0] == buffers[1];
        let text = format!("a buffer of {} down and {} up", buffers[0], buffers[1]);
        say(Source::File, if same { format!("a buffer of {one} each way") } else { text });
        return buffers;
    }
    let loaded = measurement.throughput.iter().flatten().count().max(1) as u64;
    match measurement.added() {
        Some(added) => {
            let each = Span((added.0 / loaded).max(LEAST_BUFFER.0));
            let each = Span(each.0 / 100_000 * 100_000);
            let half = if loaded == 2 { ", half of it each way" } else { "" };
            say(
                Source::Nobody,
                format!(
                    "a buffer of {each} each way: 95 of 100 packets were late by at most \
                     {added}{half} (--buffer)"
                ),
            );
            [Limit::Time(each); 2]
        }
        None => {
            say(Source::Nobody, format!("a buffer of {BUFFER} each way (--buffer)"));
            [Limit::Time(BUFFER); 2]
        }
    }
}

/// How much a queue of Linux holds, if that is printed.
fn limit(queue: &FlentQueue) -> Option<Limit> {
    let printed = queue.parameters.get("limit")?;
    if let Some(packets) = printed.strip_suffix('p') {
        return packets.parse().ok().map(|count| Limit::Amount(Buffer::packets(count)));
    }
    let bytes = printed.strip_suffix('b')?.parse().ok()?;
    Some(Limit::Amount(Buffer::bytes(Bytes(bytes))))
}

/// Says how the flows send.
fn flows(run: &Flent, say: &mut Say<'_>) {
    let flows = run.series.iter().filter(|it| matches!(it.kind, FlentKind::Throughput(_)));
    let names: BTreeSet<Option<&str>> =
        flows.map(|flow| flow.congestion.as_deref().or(run.congestion.as_deref())).collect();
    for name in names {
        match name {
            None => say(Source::Nobody, "CUBIC as the congestion control".into()),
            Some(name) if tcp(name).is_some() => {
                say(Source::File, format!("{name} as the congestion control"));
            }
            Some(name) => {
                say(Source::Nobody, format!("CUBIC in place of '{name}', which is not simulated"));
            }
        }
    }
    if run.ecn {
        say(Source::File, "ECN, which the client asks for".into());
    }
    if run.paced {
        say(Source::File, "pacing of what the client sends, by its queue 'fq'".into());
    }
}
