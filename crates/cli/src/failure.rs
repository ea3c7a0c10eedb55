//! The reasons for which a command fails, and their exit codes.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line or a file is wrong, or the results cannot be stored.
    Input(String),
    /// Anything else.
    Other(String),
    /// The user interrupted; the finished runs remain.
    Interrupted(String),
    /// Help or version was asked for; clap prints it.
    Shown(clap::Error),
    /// Nobody reads our output any more, for example in `tidegate ... | head`.
    NoReader,
}

impl Failure {
    /// One of our files cannot be written.
    pub(crate) fn unwritable(path: &Path, reason: &io::Error) -> Failure {
        Failure::Other(format!("{}: cannot be written: {reason}", path.display()))
    }

    pub(crate) fn input(message: impl Display) -> Failure {
        Failure::Input(message.to_string())
    }

    /// Reports the failure on standard error.
    pub(crate) fn report(self) -> ExitCode {
        let (message, code) = match self {
            Failure::Input(message) => (message, 2),
            Failure::Other(message) => (message, 1),
            Failure::Interrupted(message) => (message, 130),
            // A closed output is the reader's business.
            Failure::NoReader => return ExitCode::SUCCESS,
            Failure::Shown(error) => {
                return match error.print() {
                    Ok(()) => ExitCode::SUCCESS,
                    Err(_) => ExitCode::FAILURE,
                };
            }
        };
        eprintln!("tidegate: {}", message.trim_end());
        ExitCode::from(code)
    }
}

impl From<clap::Error> for Failure {
    /// clap's messages have several lines, with usage and hints; the first
    /// says what is wrong, and `--help` has the rest.
    fn from(error: clap::Error) -> Failure {
        use clap::error::ErrorKind;

        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Failure::Shown(error),
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                Failure::Input("a command is missing; see 'tidegate --help'".into())
            }
            _ => {
                let text = error.to_string();
                let head = text.split("\n\n").next().unwrap_or_default();
                let head = head.strip_prefix("error: ").unwrap_or(head);
                let words: Vec<_> = head.split_whitespace().collect();
                let meant =
                    meant(&error).map_or_else(String::new, |it| format!(", expected '{it}'"));
                Failure::Input(format!("{}{meant}; see --help", words.join(" ")))
            }
        }
    }
}

/// What clap takes somebody to have meant.
fn meant(error: &clap::Error) -> Option<&str> {
    use clap::error::{ContextKind, ContextValue};

    let kinds =
        [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    kinds.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(text) => Some(text.as_str()),
        // The best one is the last.
        ContextValue::Strings(texts) => texts.last().map(String::as_str),
        _ => None,
    })
}
