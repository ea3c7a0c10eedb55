//! `tidegate curves`: whether a link can keep its promises to flows, and what
//! it leaves to best-effort packets.
//!
//! The results are a few tables ([`tables`]), the same on the terminal and in
//! the page, and the same again as JSON ([`json()`]) in units of bytes, seconds
//! and bits per second.

mod json;
mod measure;
pub(crate) mod tables;

use std::fs;
use std::path::Path;

use clap::Parser;
use tidegate_core::assignment::{Line, Scheme, Typical, fit};
use tidegate_core::contract::Contracts;
use tidegate_core::curve::{Curve, PER_BYTE};
use tidegate_core::residual::{Residual, SMALLEST_PACKET, Unschedulable};
use tidegate_core::{Bytes, Span};
use tidegate_sim::scenario::file::flows;
use tidegate_sim::scenario::nearest;
use tidegate_study::builtin::{self, FLOWS};

use crate::arguments::{Arguments, CurvesArguments, CurvesCommand};
use crate::failure::Failure;
use crate::output::{json, print};
use crate::report;

/// The analysis of the flows of a file.
pub(crate) struct Analysis {
    /// The file, or the built-in one, for headings.
    pub(crate) name: String,
    /// The promises.
    pub(crate) contracts: Contracts,
    /// What the promises leave, or why they cannot be kept.
    pub(crate) outcome: Result<Left, Unschedulable>,
}

/// What remains of a link beside promises that it can keep.
pub(crate) struct Left {
    /// The curves.
    pub(crate) residual: Residual,
    /// The best-effort packets whose deadlines are shown, smallest first.
    pub(crate) sizes: Vec<Bytes>,
    /// Simpler curves that lie under E.
    pub(crate) approximations: Vec<Approximation>,
}

/// A curve under E from which a scheme assigns deadlines.
pub(crate) struct Approximation {
    /// The scheme with everything that it needs to know about the capacity.
    pub(crate) scheme: Scheme,
    /// The fitted parameters, in words.
    pub(crate) parameters: String,
    /// The curve.
    pub(crate) curve: Curve,
}

/// Best-effort traffic for which an approximation is fitted: what a TCP
/// connection sends at once when it begins (RFC 6928).
const TYPICAL_PACKETS: u64 = 10;

impl Approximation {
    /// The schemes that differ for a single packet: the constant-state scheme
    /// relies on the same two segments.
    fn of(residual: &Residual) -> Vec<Approximation> {
        let capacity = residual.effective();
        let packet = residual.largest_packet();
        let typical = Typical { packet, burst: packet * TYPICAL_PACKETS };
        let line = fit::origin_line(capacity);
        let shifted = fit::shifted_line(capacity, typical);
        let segments = fit::two_segments(capacity, typical);
        let from = |line: Line| format!("{} from {} on", line.slope, line.start);
        [
            (Scheme::OriginLine, line.to_string(), Curve::rate(line)),
            (Scheme::ShiftedLine, from(shifted), shifted.curve()),
            (
                Scheme::TwoSegments,
                format!("{}, or {} when that is more", segments.first, from(segments.second)),
                segments.curve(),
            ),
        ]
        .map(|(scheme, parameters, curve)| Approximation { scheme, parameters, curve })
        .into()
    }

    /// The deadline of a single packet.
    pub(crate) fn deadline(&self, size: Bytes) -> Span {
        let at = self.curve.first_reaching(i128::from(size.0) * PER_BYTE);
        Span(at.unwrap_or(u64::MAX))
    }
}

pub(crate) fn run(arguments: &CurvesArguments) -> Result<(), Failure> {
    if let Some(CurvesCommand::Measure(arguments)) = &arguments.command {
        return measure::run(arguments);
    }
    if arguments.schema {
        return print(&flows::json_schema());
    }
    let Some(name) = &arguments.flows else { return Err(help()) };
    let text = text_of(name)?;
    if arguments.print {
        return print(&text);
    }
    let contracts = flows::parse(name, &text).map_err(Failure::input)?;
    let analysis = Analysis::of(name, contracts, &arguments.packets);
    let document = json(&json::Document::of(&analysis));
    if let Some(directory) = &arguments.out {
        write(directory, &analysis, &document)?;
    }
    print(&if arguments.json { document } else { tables::text(&analysis) })?;
    match &analysis.outcome {
        Ok(_) => Ok(()),
        Err(fault) => Err(Failure::Other(format!("{name}: not schedulable: {fault}"))),
    }
}

/// The help of this command, as `--help` shows it.
fn help() -> Failure {
    match Arguments::try_parse_from(["tidegate", "curves", "--help"]) {
        Err(shown) => shown.into(),
        Ok(_) => unreachable!("clap answers --help itself"),
    }
}

/// The text of the file called `name`, or of the built-in one.
fn text_of(name: &str) -> Result<String, Failure> {
    if let (Some(builtin), false) = (builtin::find(FLOWS, name), Path::new(name).is_file()) {
        return Ok(builtin.text().into());
    }
    fs::read_to_string(name).map_err(|reason| {
        let names = || FLOWS.iter().map(|builtin| builtin.name);
        let or = match nearest(name, names()) {
            _ if Path::new(name).extension().is_some() => String::new(),
            Some(near) => format!("; built in: '{near}'"),
            None => format!("; built in: {}", names().collect::<Vec<_>>().join(", ")),
        };
        Failure::Input(format!("{name}: cannot be read: {reason}{or}"))
    })
}

impl Analysis {
    fn of(name: &str, contracts: Contracts, packets: &[Bytes]) -> Analysis {
        let left = |residual: Residual| {
            let mut sizes = vec![SMALLEST_PACKET, residual.largest_packet()];
            sizes.extend(packets);
            sizes.sort_unstable();
            sizes.dedup();
            let approximations = Approximation::of(&residual);
            Left { residual, sizes, approximations }
        };
        let outcome = Residual::new(&contracts).map(left);
        Analysis { name: name.into(), contracts, outcome }
    }
}

/// Writes page, plots and JSON into `directory`, which is created if it does not exist.
fn write(directory: &Path, analysis: &Analysis, document: &str) -> Result<(), Failure> {
    let unwritable = |path: &Path| {
        let path = path.to_path_buf();
        move |reason| Failure::Input(format!("{}: cannot be written: {reason}", path.display()))
    };
    fs::create_dir_all(directory).map_err(unwritable(directory))?;
    let path = directory.join("curves.json");
    fs::write(&path, document).map_err(unwritable(&path))?;
    report::curves::write(directory, analysis).map_err(unwritable(directory))
}

#[cfg(test)]
mod tests {
    use tidegate_core::Time;

    use super::*;

    #[test]
    fn a_packet_that_comes_alone_gets_the_deadline_that_is_shown() {
        for builtin in FLOWS {
            let contracts = flows::parse(builtin.name, builtin.text()).expect("built in");
            let analysis = Analysis::of(builtin.name, contracts, &[Bytes(300)]);
            let left = analysis.outcome.expect("a test of the files says so");
            let packet = left.residual.largest_packet();
            let typical = Typical { packet, burst: packet * TYPICAL_PACKETS };
            assert_eq!(left.sizes.len(), 3);
            for size in &left.sizes {
                let assigned = |scheme: Scheme| {
                    scheme
                        .build(&left.residual, typical)
                        .assign(Time::ZERO, *size)
                        .since(Time::ZERO)
                };
                assert_eq!(assigned(Scheme::Exact), left.residual.earliest_deadline(*size));
                for it in &left.approximations {
                    assert_eq!(assigned(it.scheme), it.deadline(*size), "{} {size}", it.scheme);
                    assert!(it.deadline(*size) >= assigned(Scheme::Exact));
                }
                let constant = assigned(Scheme::ConstantState);
                assert_eq!(constant, assigned(Scheme::TwoSegments));
            }
        }
    }
}
