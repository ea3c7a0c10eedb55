//! `tidegate measured`: a measurement of a link beside the link simulated.
//!
//! A result of Flent says what a link did; the simulator says what it would have done, and
//! what it would do under other disciplines. The result becomes a scenario, written as
//! anybody could write it, with what was measured in `[[measured]]`, and the rest is a
//! comparison: the same results, the same manifest. What came from the file and what was
//! assumed stands in the scenario's description, and so above every result. A test of which
//! the load is not known is reported as it was measured, and not simulated.

mod link;
mod scenario;

use std::fmt::Write as _;

use serde::Serialize;
use tidegate_sim::scenario::Observation;
use tidegate_sim::scenario::file::Overrides;
use tidegate_sim::trace::{Direction, Flent};
use tidegate_study::comparison::Beside;
use tidegate_study::comparison::beside::measured;
use tidegate_study::measured::Measurement;

use crate::arguments::MeasuredArguments;
use crate::beside;
use crate::compare::compare;
use crate::failure::Failure;
use crate::inputs::Input;
use crate::output::{self, print, print_json, wrapped};

use link::Link;

/// Of the series that are not understood, so many are named.
const NAMED: usize = 8;
/// Nothing is wider where there is no terminal.
const WIDTH: usize = 95;

pub(crate) fn run(arguments: &MeasuredArguments) -> Result<(), Failure> {
    let run = Flent::read(&arguments.file).map_err(Failure::input)?;
    let measurement = Measurement::of(&run);
    if let Some(reason) = not_simulated(&run, &measurement) {
        return alone(arguments, &run, &measurement, &reason);
    }
    let link = Link::of(&run, &measurement, &arguments.link)?;
    let about = format!("{} {}", heading(&run), notes(&run, &measurement));
    let description = format!("{} {}", about.trim(), link.words());
    let text = scenario::text(&run, &measurement, &link, &description);
    if arguments.link.print {
        return print(&text);
    }
    if !arguments.results.json {
        print(&wrapped(&about, ""))?;
        print(&format!("\n{}\n", link.listed()))?;
    }
    let stem = if run.test.is_empty() { "measured" } else { &run.test };
    let stem: String =
        stem.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' }).collect();
    let input = Input::of_text(&arguments.file.display().to_string(), &stem, text);
    compare(&input, &Overrides::default(), None, &arguments.results)
}

/// What was measured, for a machine.
#[derive(Serialize)]
struct Alone {
    about: String,
    not_simulated: String,
    measured: Vec<Beside>,
}

/// Reports what was measured, and why there is nothing beside it.
fn alone(
    arguments: &MeasuredArguments,
    run: &Flent,
    measurement: &Measurement,
    reason: &str,
) -> Result<(), Failure> {
    if arguments.link.print {
        let file = arguments.file.display();
        return Err(Failure::Input(format!(
            "{file}: found a test that cannot be simulated, expected another: {reason}"
        )));
    }
    let rows = |Observation { name, what }: &Observation| -> Vec<Beside> {
        let figures = measured(what).into_iter();
        let row = |(figure, measured): (_, Option<f64>)| {
            Some(Beside { name: name.clone(), figure, measured: measured?, simulated: None })
        };
        figures.filter_map(row).collect()
    };
    let rows: Vec<Beside> = measurement.observations.iter().flat_map(rows).collect();
    let about = format!("{} {}", heading(run), notes(run, measurement));
    if arguments.results.json {
        let (about, not_simulated) = (about.trim().into(), reason.into());
        return print_json(&Alone { about, not_simulated, measured: rows });
    }
    let mut text = wrapped(&about, "");
    let _ = write!(text, "\n{}\n", beside::table(&rows, None, output::width(WIDTH)));
    text += &wrapped(&format!("Not simulated: {reason}"), "");
    print(&text)
}

/// Who measured what, and when.
fn heading(run: &Flent) -> String {
    let of = |text: &str, word: &str| {
        if text.is_empty() { String::new() } else { format!(" {word} {text}") }
    };
    let test = if run.test.is_empty() { "a test without a name" } else { &run.test };
    let title = if run.title.is_empty() { String::new() } else { format!(" ('{}')", run.title) };
    let length = run.length_s.map_or_else(String::new, |it| format!(", {it} s of load"));
    format!(
        "Measured by Flent: {test}{title}{}{}{}{length}.",
        of(&run.client, "on"),
        of(&run.servers.join(", "), "towards"),
        of(&run.time, "at"),
    )
}

/// What figures are of, and what is not what it seems.
fn notes(run: &Flent, measurement: &Measurement) -> String {
    let mut text = String::new();
    if let Some((begin, _)) = measurement.load {
        let (from, to) = measurement.settled;
        let _ = write!(
            text,
            "Figures under load are of {:.0} s, without the first {:.0} s.",
            to - from,
            from - begin
        );
    }
    for note in &measurement.notes {
        let _ = write!(text, " {note}");
    }
    if !run.not_read.is_empty() {
        let named = &run.not_read[..run.not_read.len().min(NAMED)];
        let more = run.not_read.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = write!(text, " Not read: {}{more}.", named.join(", "));
    }
    text
}

/// Why a test cannot be simulated; `None` if it can.
fn not_simulated(run: &Flent, measurement: &Measurement) -> Option<String> {
    let test = run.test.as_str();
    if test.is_empty() {
        return Some("the file does not name its test, and so not its load.".into());
    }
    if !is_known(test) {
        return Some(format!(
            "the load of '{test}' is not known here. Known are ping, rrul and its forms, \
             tcp_upload, tcp_download, tcp_bidirectional, tcp_nup, tcp_ndown, tcp_4up and so on, \
             voip-1up, http-1up and so on."
        ));
    }
    if measurement.load.is_none() {
        return Some(format!("'{test}' has no TCP flow that loads the link; rrul, for one, has."));
    }
    if run.servers.len() > 1 {
        let count = run.servers.len();
        return Some(format!("the flows go to {count} servers, and so to {count} round trips."));
    }
    None
}

/// Whether all load of a test is in its TCP flows and a call.
fn is_known(test: &str) -> bool {
    /// Those whose names have no number.
    const TESTS: &[&str] = &[
        "ping",
        "http",
        "voip",
        "rrul",
        "rrul_be",
        "rrul_be_iperf",
        "rrul_be_nflows",
        "rrul_cs8",
        "rrul_icmp",
        "rrul_noclassification",
        "rrul_up",
        "tcp_bidirectional",
        "tcp_download",
        "tcp_ndown",
        "tcp_nup",
        "tcp_upload",
        "voip-rrul",
        "http-rrul",
    ];
    let numbered = |rest: &str| {
        let rest = rest.strip_suffix("_noping").unwrap_or(rest);
        let flows = rest.strip_suffix("up").or_else(|| rest.strip_suffix("down"));
        flows.is_some_and(|flows| flows.parse::<u16>().is_ok())
    };
    let prefixed = ["tcp_", "voip-", "http-"].iter().find_map(|it| test.strip_prefix(it));
    TESTS.contains(&test) || prefixed.is_some_and(numbered)
}

/// The word for a direction.
fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Down => "down",
        Direction::Up => "up",
    }
}

/// `text` behind `mark`, in lines that fit.
fn item(mark: &str, text: &str) -> String {
    output::filled(mark, text, output::width(WIDTH))
}

#[cfg(test)]
mod tests {
    use super::is_known;

    #[test]
    fn tests_are_known_by_their_names() {
        for test in ["rrul", "tcp_1up", "tcp_12down", "tcp_1up_noping", "voip-1up", "http-4down"] {
            assert!(is_known(test), "{test}");
        }
        for test in
            ["", "udp_flood", "tcp_2up_square", "rtt_fair", "tcp_up", "voip-", "rrul_torrent"]
        {
            assert!(!is_known(test), "{test}");
        }
    }
}
