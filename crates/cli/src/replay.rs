//! `tidegate replay`: recorded traffic through several disciplines.
//!
//! The recording becomes the traffic of a scenario, written as anybody could
//! write it, and the rest is a comparison: same results, same manifest.

use std::path::{Path, PathBuf};

use tidegate_core::Span;
use tidegate_sim::scenario::DisciplineChoice;
use tidegate_sim::scenario::file::{Folder, Overrides};
use tidegate_sim::trace::{Capture, FlowLog};

use crate::arguments::ReplayArguments;
use crate::compare::{compare, distinct};
use crate::failure::Failure;
use crate::inputs::{Input, starts_as_capture};

/// After the last recorded packet or transfer: time for queues to empty.
const PACKETS_TAIL: Span = Span::seconds(1);
const TRANSFERS_TAIL: Span = Span::seconds(60);

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
    let file = &arguments.file;
    let is_capture = starts_as_capture(file).map_err(|reason| {
        Failure::Input(format!("{}: cannot be read: {reason}", file.display()))
    })?;
    let text = if is_capture { packets(arguments)? } else { transfers(arguments)? };
    let folder = file.parent().unwrap_or(Path::new("")).to_path_buf();
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let input = Input {
        name: file.display().to_string(),
        stem,
        text,
        data: Box::new(Folder(folder.clone())),
        folder: Some(folder),
    };
    compare(&input, &Overrides::default(), None, &arguments.results)
}

fn packets(arguments: &ReplayArguments) -> Result<String, Failure> {
    let capture = Capture::read(&arguments.file).map_err(Failure::input)?;
    let last = capture.packets.iter().map(|packet| packet.at).max().unwrap_or_default();
    let local: Vec<_> =
        arguments.local.iter().map(|address| quoted(&address.to_string())).collect();
    let local = match local.as_slice() {
        [] => String::new(),
        _ => format!("local = [{}]\n", local.join(", ")),
    };
    Ok(format!(
        "{}\
         [[link]]\nfrom = \"network\"\nto = \"users\"\nname = \"down\"\nrate = {}\n\
         queue = \"tested\"\nbuffer = {}\n\
         back = {{ name = \"up\", rate = {}, queue = \"tested\", buffer = {} }}\n\n\
         [[traffic.packets]]\nname = \"packets\"\ninside = \"users\"\noutside = \"network\"\n\
         capture = {}\n{local}",
        head(arguments, Span(last.0) + PACKETS_TAIL),
        bits(arguments.rate.0),
        quoted(&buffer(arguments)),
        bits(arguments.up_rate.unwrap_or(arguments.rate).0),
        quoted(&buffer(arguments)),
        quoted(&file_name(&arguments.file)),
    ))
}

fn transfers(arguments: &ReplayArguments) -> Result<String, Failure> {
    let log = FlowLog::read(&arguments.file).map_err(Failure::input)?;
    let last = log.from_first().flows.iter().map(|flow| flow.start).max().unwrap_or_default();
    if !arguments.local.is_empty() {
        let message = "--local is for captures; a log of transfers has no addresses";
        return Err(Failure::Input(message.into()));
    }
    Ok(format!(
        "{}\
         [access]\nhosts = 1\ndown = {}\nup = {}\nbuffer = {}\ndelay = \"0 s\"\n\
         lan_delay = \"0 s\"\nservers = [\"{} ns\"]\n\n\
         [[traffic.transfers]]\nname = \"transfers\"\nfrom = \"servers\"\nto = \"hosts\"\n\
         request = \"400 B\"\nlog = {}\n",
        head(arguments, Span(last.0) + TRANSFERS_TAIL),
        bits(arguments.rate.0),
        bits(arguments.up_rate.unwrap_or(arguments.rate).0),
        quoted(&buffer(arguments)),
        arguments.delay.0,
        quoted(&file_name(&arguments.file)),
    ))
}

fn head(arguments: &ReplayArguments, duration: Span) -> String {
    let name = file_name(&arguments.file);
    let disciplines: Vec<_> = arguments.disciplines.iter().map(discipline).collect();
    // A recording has no randomness of its own: one seed says it all.
    format!(
        "title = {}\nduration = \"{} ns\"\nseeds = 1\ndisciplines = [\n{}]\n\n",
        quoted(&format!("Replay of {name} at {}", arguments.rate)),
        duration.0,
        disciplines.concat(),
    )
}

fn discipline(choice: &DisciplineChoice) -> String {
    let parameters = choice.parameters().into_iter();
    let parameters: String =
        parameters.map(|(name, text)| format!(", {name} = {}", quoted(&text))).collect();
    let (name, label) = (quoted(choice.entry.name), quoted(&choice.label));
    format!("    {{ name = {name}, label = {label}{parameters} }},\n")
}

fn file_name(path: &Path) -> String {
    PathBuf::from(path.file_name().unwrap_or_default()).display().to_string()
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
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}
