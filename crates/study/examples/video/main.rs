//! What players of adaptive video make of links, and disciplines of what players ask for.
//!
//! ```text
//! cargo run --release -p tidegate-study --example video -- docs/video.md
//! ```
//!
//! writes the tables of that page, and a figure into the folder of its name: players behind
//! recorded links, with TCP between them and the server, beside the program of BOLA's authors,
//! which has none; and homes with films, a call, pages and a download.

mod homes;
mod recorded;

// The plots are those of the report, which is part of a program and of no library.
#[path = "../../../cli/src/report"]
#[allow(dead_code, unused_imports, reason = "the report has more kinds of plots than this page")]
mod report {
    mod markup;
    mod number;
    #[path = "../../../study/examples/video/over_time.rs"]
    pub(crate) mod over_time;
    mod plot;
}

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use tidegate_twins::pages;

use report::over_time;

/// Where the scenarios are.
const LINKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/links");

/// A table, and the heading under which it stands.
type Table = (&'static str, String);

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args().nth(1).ok_or("usage: video PAGE")?);
    let folder = path.with_extension("");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("capacity.svg"), over_time::capacity()?)?;
    let mut page = fs::read_to_string(&path)?;
    for (heading, table) in recorded::tables()?.into_iter().chain(homes::tables()?) {
        page = pages::with_table(&page, heading, &(table + "\n"));
    }
    fs::write(path, page)?;
    Ok(())
}
