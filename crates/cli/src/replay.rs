//! `tidegate replay`: recorded traffic through several disciplines.
//!
//! The recording becomes the traffic of a scenario, written as anybody could
//! write it, and the rest is a comparison: same results, same manifest. What was made of
//! the recording stands in the scenario's description, and so above every result: who
//! are the users, what was left out, and whether senders react.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use tidegate_core::{Bytes, Span, Time};
use tidegate_sim::scenario::DisciplineChoice;
use tidegate_sim::scenario::file::Overrides;
use tidegate_sim::trace::applications::{self, Division};
use tidegate_sim::trace::hosts::{Hosts, network_of};
use tidegate_sim::trace::{Capture, Format, LoggedFlow, Recording, Transfers};

use crate::arguments::{By, ReplayArguments};
use crate::compare::{compare, distinct};
use crate::failure::Failure;
use crate::inputs::{Input, RecordingFile, is_flent};
use crate::output::{print, wrapped};

/// After the last recorded packet or transfer: time for queues to empty.
const PACKETS_TAIL: Span = Span::seconds(1);
const TRANSFERS_TAIL: Span = Span::seconds(60);
/// One way, of a whole path.
const TRANSFERS_DELAY: Span = Span::millis(20);
/// The addresses that a description names.
const ADDRESSES: usize = 4;

/// What recorded packets cannot show.
const NO_REACTION: &str = "The packets are sent at the times at which they were captured, \
    whatever happens to them: this shows the delay and loss that a queue adds, not how TCP would \
    have reacted. --as-transfers shows that.";

pub(crate) fn run(arguments: &ReplayArguments) -> Result<(), Failure> {
    distinct(&arguments.disciplines)?;
    // Found here, a mistake is reported as one of the command line; the
    // scenario made from it has no lines that the user has written.
    for choice in &arguments.disciplines {
        let up = arguments.up_rate.unwrap_or(arguments.rate);
        for (link, rate) in [("down", arguments.rate), ("up", up)] {
            choice
                .promises_on(link, rate)
                .map_err(|error| Failure::Input(format!("--disciplines: {error}")))?;
        }
    }
    let data = RecordingFile::open(&arguments.file).map_err(Failure::input)?;
    let recording = data.read().map_err(|error| {
        if !is_flent(&arguments.file) {
            return Failure::input(error);
        }
        let file = arguments.file.display();
        Failure::Input(format!(
            "{file}: found a result of Flent, expected a recording of traffic; 'tidegate measured \
             {file}' reads it"
        ))
    })?;
    let made = match recording {
        Recording::Capture(capture) if !arguments.as_transfers => {
            packets(arguments, &data.name, &capture)?
        }
        recording => transfers(arguments, &data.name, recording)?,
    };
    if !arguments.results.json {
        print(&format!("{}\n", wrapped(&made.description, "")))?;
    }
    let input = Input::of_recording(&arguments.file, data, made.text);
    compare(&input, &Overrides::default(), None, &arguments.results)
}

/// The scenario that was made of a recording.
struct Made {
    text: String,
    /// Also in the text: what was made of what.
    description: String,
}

/// The users' side of `capture`: as asked for, or else as the capture suggests.
fn hosts(arguments: &ReplayArguments, capture: &Capture) -> Hosts {
    if arguments.local.is_empty() {
        return capture.local_hosts();
    }
    let networks = arguments.local.iter().map(|text| network_of(text).expect("clap has read it"));
    Hosts::within(networks)
}

/// Says who are the users, or fails if there are none.
fn users(arguments: &ReplayArguments, capture: &Capture) -> Result<String, Failure> {
    let users = applications::users(capture, &hosts(arguments, capture));
    if users.is_empty() {
        let file = arguments.file.display();
        return Err(Failure::Input(format!(
            "{file}: found no packet that crosses the link, expected packets between the users' \
             addresses (--local) and others"
        )));
    }
    let mut text = match users.as_slice() {
        [(only, _)] => format!("The user is {only}"),
        _ => {
            let some = users.iter().take(ADDRESSES).map(|(address, _)| address.to_string());
            let some: Vec<String> = some.collect();
            let more = users.len() - some.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("The users are {}{more}", some.join(", "))
        }
    };
    text += if arguments.local.is_empty() {
        ", found from the capture; --local says otherwise."
    } else {
        ", by --local."
    };
    if let Some(cut) = capture.cut {
        let _ = write!(text, " Of the capture, {cut}: what is before that is used.");
    }
    Ok(text)
}

fn packets(arguments: &ReplayArguments, name: &str, capture: &Capture) -> Result<Made, Failure> {
    let last = capture.packets.last().map_or(Time::ZERO, |packet| packet.at);
    let mut description = users(arguments, capture)?;
    let hosts = hosts(arguments, capture);
    let stay = capture.packets.iter().filter(|packet| hosts.direction(packet.flow).is_none());
    let left_out = [
        (stay.count() as u64, "packets that do not cross the link"),
        (capture.skipped.non_ip, "frames that are not IP"),
        (capture.skipped.malformed, "frames that are broken"),
        (capture.skipped.other_link, "frames of an unknown link layer"),
    ];
    let left_out: Vec<String> = left_out
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if !left_out.is_empty() {
        let _ = write!(description, " Left out: {}.", left_out.join(", "));
    }
    description += " ";
    description += NO_REACTION;
    let divide = match arguments.by {
        By::Application => "divide = \"application\"\n",
        By::Host => "divide = \"host\"\n",
        By::Nothing => "",
    };
    let text = format!(
        "{}\
         [[link]]\nfrom = \"network\"\nto = \"users\"\nname = \"down\"\nrate = {}\n\
         delay = \"{} ns\"\nqueue = \"tested\"\nbuffer = {}\n\
         back = {{ name = \"up\", rate = {}, queue = \"tested\", buffer = {} }}\n\n\
         [[traffic.packets]]\nname = \"packets\"\ninside = \"users\"\noutside = \"network\"\n\
         capture = {}\n{}{divide}",
        head(arguments, name, &description, Span(last.0) + PACKETS_TAIL),
        bits(arguments.rate.0),
        arguments.delay.unwrap_or_default().0,
        quoted(&buffer(arguments)),
        bits(arguments.up_rate.unwrap_or(arguments.rate).0),
        quoted(&buffer(arguments)),
        quoted(name),
        local(arguments),
    );
    Ok(Made { text, description })
}

fn transfers(
    arguments: &ReplayArguments,
    name: &str,
    recording: Recording,
) -> Result<Made, Failure> {
    let format = recording.format();
    // Calls do not react, and are what TCP is to leave room for: their packets, and the last.
    let mut calls = None;
    let (transfers, who) = match recording {
        Recording::Capture(capture) => {
            let who = users(arguments, &capture)?;
            let transfers = Transfers::of_capture(&capture, &hosts(arguments, &capture));
            let parts = capture.divided(&hosts(arguments, &capture), Division::Calls);
            let flows: BTreeSet<_> = parts.iter().flat_map(|part| &part.flows).collect();
            let packets = || capture.packets.iter().filter(|it| flows.contains(&it.flow));
            calls = packets().next_back().map(|last| (packets().count() as u64, last.at));
            (transfers, who)
        }
        _ if !arguments.local.is_empty() => {
            let message = format!("--local is for captures, and this is a {format}");
            return Err(Failure::Input(message));
        }
        _ if arguments.as_transfers => {
            let message = format!("--as-transfers is for captures, and this is a {format}");
            return Err(Failure::Input(message));
        }
        recording => (Transfers::of(recording), String::new()),
    };
    let Some(last) = transfers.last() else {
        let file = arguments.file.display();
        return Err(Failure::Input(format!("{file}: found no transfer, expected at least one")));
    };
    let mut description = format!(
        "From {} {format}: {}, {}.",
        if format == Format::HttpLog { "an" } else { "a" },
        amount(&transfers.down, "download"),
        amount(&transfers.up, "upload")
    );
    let others = transfers.left_out.saturating_sub(calls.map_or(0, |(packets, _)| packets));
    let left_out = [
        (others > 0).then(|| format!("{others} records or packets")),
        (transfers.other_way > Bytes::ZERO)
            .then(|| format!("{} that went the other way", transfers.other_way)),
    ];
    let left_out: Vec<String> = left_out.into_iter().flatten().collect();
    if !left_out.is_empty() {
        let _ = write!(description, " Left out: {}.", left_out.join(", "));
    }
    if !who.is_empty() {
        let _ = write!(description, " {who}");
    }
    description += " Each transfer is simulated with TCP over a connection of its own.";
    if let Some((packets, _)) = calls {
        let _ = write!(description, " Calls are sent as they were captured, {packets} packets.");
    }
    // Beside calls, transfers begin when they did; alone, the first begins at once.
    let first = if calls.is_some() { transfers.first } else { Time::ZERO };
    let talked = calls.map_or(Time::ZERO, |(_, last)| last);
    let duration = Span((first.0 + last.0 + TRANSFERS_TAIL.0).max(talked.0));
    let start = format!("start = \"{} ns\"\n", first.0);
    let source = |name: &str, from: &str, to: &str, request: &str| {
        format!(
            "[[traffic.transfers]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\n\
             {start}{request}"
        )
    };
    let log = format!("log = {}\n{}\n", quoted(name), local(arguments));
    let mut sources = String::new();
    if !transfers.down.is_empty() {
        let _ = write!(
            sources,
            "{}{log}",
            source("downloads", "servers", "hosts", "request = \"400 B\"\n")
        );
    }
    if !transfers.up.is_empty() {
        let _ = write!(sources, "{}{log}", source("uploads", "hosts", "servers", ""));
    }
    if calls.is_some() {
        let _ = write!(
            sources,
            "[[traffic.packets]]\nname = \"calls\"\ninside = \"hosts\"\noutside = \"servers\"\n\
             divide = \"calls\"\ncapture = {}\n{}\n",
            quoted(name),
            local(arguments)
        );
    }
    let text = format!(
        "{}\
         [access]\nhosts = 1\ndown = {}\nup = {}\nbuffer = {}\ndelay = \"0 s\"\n\
         lan_delay = \"0 s\"\nservers = [\"{} ns\"]\n\n{sources}",
        head(arguments, name, &description, duration),
        bits(arguments.rate.0),
        bits(arguments.up_rate.unwrap_or(arguments.rate).0),
        quoted(&buffer(arguments)),
        arguments.delay.unwrap_or(TRANSFERS_DELAY).0,
    );
    Ok(Made { text, description })
}

/// `12 downloads of 3.4 MB`.
fn amount(flows: &[LoggedFlow], what: &str) -> String {
    let size: Bytes = flows.iter().map(|flow| flow.size).sum();
    match flows.len() {
        0 => format!("no {what}s"),
        1 => format!("one {what} of {size}"),
        count => format!("{count} {what}s of {size} together"),
    }
}

fn local(arguments: &ReplayArguments) -> String {
    if arguments.local.is_empty() {
        return String::new();
    }
    let networks: Vec<String> = arguments.local.iter().map(|text| quoted(text)).collect();
    format!("local = [{}]\n", networks.join(", "))
}

fn head(arguments: &ReplayArguments, name: &str, description: &str, duration: Span) -> String {
    let disciplines: Vec<_> = arguments.disciplines.iter().map(discipline).collect();
    let what = if name == "-" { "standard input" } else { name };
    // A recording has no randomness of its own: one seed says it all.
    format!(
        "title = {}\ndescription = {}\nduration = \"{} ns\"\nseeds = 1\ndisciplines = [\n{}]\n\n",
        quoted(&format!("Replay of {what} at {}", arguments.rate)),
        quoted(description),
        duration.0,
        disciplines.concat(),
    )
}

pub(crate) fn discipline(choice: &DisciplineChoice) -> String {
    let parameters = choice.parameters().into_iter();
    let parameters: String =
        parameters.map(|(name, text)| format!(", {name} = {}", quoted(&text))).collect();
    let (name, label) = (quoted(choice.entry.name), quoted(&choice.label));
    format!("    {{ name = {name}, label = {label}{parameters} }},\n")
}

fn bits(rate: u64) -> String {
    format!("\"{rate} bit/s\"")
}

fn buffer(arguments: &ReplayArguments) -> String {
    use tidegate_core::units::Amount;

    match arguments.buffer.amount() {
        Amount::Packets(count) => format!("{count} packets"),
        Amount::Bytes(size) => format!("{} B", size.0),
    }
}

/// A TOML string; JSON's escapes are a subset of TOML's.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}
