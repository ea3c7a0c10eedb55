//! `tidegate reproduce`: measures the claims of the papers and reports the results.

mod page;
mod record;

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use serde::Serialize;
use tidegate_core::Span;
use tidegate_papers::{CLAIMS, Claim, Effort, Finding, Lab, Observer, select};
use tidegate_study::machine;

use crate::arguments::ReproduceArguments;
use crate::failure::Failure;
use crate::interrupt::stop_flag;
use crate::output::{print, print_json, wrapped};
use crate::progress::Progress;
use crate::report::finding;

pub(crate) fn run(arguments: &ReproduceArguments) -> Result<(), Failure> {
    let claims = select(&arguments.claims).map_err(|unknown| {
        let papers: Vec<_> = CLAIMS.iter().map(|claims| claims[0].paper.key).collect();
        Failure::Input(format!(
            "found claim '{unknown}', expected a paper ({}) or an id of 'tidegate reproduce \
             --list'",
            papers.join(", ")
        ))
    })?;
    if arguments.list {
        return list(&claims, arguments.json);
    }
    let effort = match (arguments.quick, arguments.full, arguments.seeds) {
        (true, ..) => Effort::Quick,
        (_, true, _) => Effort::Full,
        (.., Some(count)) => Effort::Seeds(count),
        _ => Effort::Usual,
    };
    if let Some(folder) = &arguments.out {
        fs::create_dir_all(folder).map_err(|reason| {
            Failure::Input(format!("{}: cannot be written to: {reason}", folder.display()))
        })?;
    }
    let stop = stop_flag()?;
    let threads = arguments.threads.map_or_else(machine::cores, NonZeroUsize::get);
    let progress = Progress::of_unknown_length();
    let lab = Lab::new(effort, threads, stop, &progress);
    let mut found: Vec<(&Claim, Finding)> = Vec::new();
    let mut interrupted = None;
    for claim in claims {
        progress.say(claim.id);
        let Ok(finding) = claim.measure(&lab) else {
            interrupted = Some(claim.id);
            break;
        };
        if !arguments.json {
            progress.aside(|| print(&text(claim, &finding)))?;
        }
        if let Some(folder) = &arguments.out {
            draw(folder, &finding)?;
        }
        found.push((claim, finding));
    }
    progress.finish();
    if let Some(folder) = &arguments.out {
        for (name, content) in page::all(&found, effort) {
            write(&folder.join(name), &content)?;
        }
        write(&folder.join("results.json"), &record::of(&found))?;
    }
    match &arguments.out {
        _ if arguments.json => print_json(&results(&found)),
        Some(folder) => print(&format!("Pages: {}\n", folder.join(page::INDEX).display())),
        None => Ok(()),
    }?;
    match interrupted {
        Some(id) => Err(Failure::Interrupted(format!(
            "interrupted while measuring {id}: the {} claims before it have been measured",
            found.len()
        ))),
        None => Ok(()),
    }
}

/// A claim as `--list` prints it.
#[derive(Serialize)]
struct Listed {
    id: &'static str,
    source: &'static str,
    text: &'static str,
    method: &'static str,
}

/// A claim with what was found.
#[derive(Serialize)]
struct Measured<'a> {
    source: &'static str,
    text: &'static str,
    #[serde(flatten)]
    finding: &'a Finding,
}

fn results<'a>(found: &'a [(&Claim, Finding)]) -> Vec<Measured<'a>> {
    let result = |(claim, finding): &'a (&Claim, Finding)| Measured {
        source: claim.source,
        text: claim.text,
        finding,
    };
    found.iter().map(result).collect()
}

fn list(claims: &[&Claim], as_json: bool) -> Result<(), Failure> {
    if as_json {
        let listed = |claim: &&Claim| Listed {
            id: claim.id,
            source: claim.source,
            text: claim.text,
            method: claim.method,
        };
        return print_json(&claims.iter().map(listed).collect::<Vec<_>>());
    }
    let line = |claim: &&Claim| {
        format!("{:8} {}\n{}", claim.id, claim.source, wrapped(claim.text, "         "))
    };
    print(&claims.iter().map(line).collect::<String>())
}

/// What was found, for a terminal.
fn text(claim: &Claim, finding: &Finding) -> String {
    let mut text = format!("{}  {}  ({})\n", claim.id, finding.verdict.words(), claim.source);
    text.push_str(&wrapped(claim.text, "  "));
    for check in &finding.checks {
        let outcome = check.outcome.words();
        text.push_str(&format!("  {outcome:9}  {}\n", check.statement));
        text.push_str(&format!("             here {}; paper: {}\n", check.ours, check.paper));
    }
    text.push('\n');
    text
}

fn draw(folder: &Path, finding: &Finding) -> Result<(), Failure> {
    for figure in &finding.figures {
        write(&folder.join(format!("{}.svg", figure.id)), &finding::draw(figure))?;
    }
    Ok(())
}

fn write(path: &Path, content: &str) -> Result<(), Failure> {
    fs::write(path, content).map_err(|reason| Failure::unwritable(path, &reason))
}

impl Observer for Progress {
    fn planned(&self, span: Span) {
        self.extend(span);
    }

    fn advanced(&self, span: Span) {
        self.advance(span);
    }
}
