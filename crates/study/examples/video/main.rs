//! What players of adaptive video make of links, and disciplines of what players ask for.
//!
//! ```text
//! cargo run --release -p tidegate-study --example video -- docs/video.md
//! ```
//!
//! writes the tables of that page: players behind recorded links, with TCP between them and
//! the server, beside the program of BOLA's authors, which has none; and homes with films, a
//! call, pages and a download.

mod homes;
mod recorded;

use std::error::Error;
use std::fs;

use tidegate_twins::pages;

/// Where the scenarios are.
const LINKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/links");

/// A table, and the heading under which it stands.
type Table = (&'static str, String);

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: video PAGE")?;
    let mut page = fs::read_to_string(&path)?;
    for (heading, table) in recorded::tables()?.into_iter().chain(homes::tables()?) {
        page = pages::with_table(&page, heading, &(table + "\n"));
    }
    fs::write(path, page)?;
    Ok(())
}
