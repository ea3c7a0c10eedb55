//! What a plan finds on this machine: shown, and judged.

use std::fmt::Write as _;

use tidegate_gateway::machine::{Finding, Kind};

use crate::failure::Failure;
use crate::output::wrapped;

/// The findings for a terminal, a paragraph each.
pub(crate) fn text(findings: &[Finding]) -> String {
    let mut text = "\nThis machine:\n".to_string();
    for Finding { kind, text: what } in findings {
        let kind = match kind {
            Kind::Fine => "fine",
            Kind::Warning => "WARNING",
            Kind::Problem => "PROBLEM",
        };
        let _ = write!(text, "  {kind:<8} {}", wrapped(what, "           ").trim_start());
    }
    text
}

/// Fails if what was planned would not start.
pub(crate) fn verdict(findings: &[Finding], what: &str) -> Result<(), Failure> {
    match findings.iter().filter(|finding| finding.kind == Kind::Problem).count() {
        0 => Ok(()),
        1 => Err(Failure::Other(format!("{what} would not start: there is a problem"))),
        problems => Err(Failure::Other(format!("{what} would not start: {problems} problems"))),
    }
}
