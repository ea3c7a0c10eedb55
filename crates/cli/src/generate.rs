//! Completions and manual pages, generated from the definition of the command line.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::output::print;

/// Prints the completion script for `shell`.
pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "tidegate", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Writes a manual page for the command and each of its subcommands.
pub(crate) fn manual(directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), directory))
        .map_err(|error| {
            Failure::Input(format!("{}: cannot be written: {error}", directory.display()))
        })
}
