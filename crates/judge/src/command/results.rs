//! What the commands that measure live forms have in common: the program under test, and
//! where the figures go.

use std::fs;
use std::io;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::gateway::BadInput;

/// The program, and where the figures go.
#[derive(Args)]
pub(crate) struct Results {
    /// The program `tidegate`; without it, the one beside this program.
    #[arg(long, value_name = "FILE")]
    tidegate: Option<PathBuf>,
    #[command(flatten)]
    figures: Figures,
}

/// Where the figures go.
#[derive(Args)]
pub(crate) struct Figures {
    /// Also writes the table and all figures as JSON into this folder.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Prints all figures as JSON, in place of the table.
    #[arg(long)]
    json: bool,
}

impl Results {
    /// The program `tidegate`.
    pub(crate) fn tidegate(&self) -> Result<PathBuf, BadInput> {
        let beside = || std::env::current_exe().ok().map(|it| it.with_file_name("tidegate"));
        let path = self.tidegate.clone().or_else(beside).unwrap_or_default();
        if path.is_file() {
            let named = |error| BadInput(format!("{}: {error}", path.display()));
            return path.canonicalize().map_err(named);
        }
        Err(BadInput(format!(
            "there is no program {}; 'cargo build --release --package tidegate' builds it, and \
             --tidegate says where it is",
            path.display()
        )))
    }

    /// Prints and writes what was found: see [`Figures::show`].
    pub(crate) fn show(&self, name: &str, report: &impl Serialize, table: &str) -> io::Result<()> {
        self.figures.show(name, report, table)
    }
}

impl Figures {
    /// Prints and writes what was found; `name` is that of the JSON file.
    pub(crate) fn show(&self, name: &str, report: &impl Serialize, table: &str) -> io::Result<()> {
        let json = serde_json::to_string_pretty(report)? + "\n";
        if let Some(folder) = &self.out {
            fs::create_dir_all(folder)?;
            fs::write(folder.join(name), &json)?;
            fs::write(folder.join("table.txt"), table)?;
        }
        print!("{}", if self.json { &json } else { table });
        Ok(())
    }
}
