//! QUIC by quinn beside our TCP: the same transfers, what they put on a link, how they share
//! one, and what it costs to simulate them.
//!
//! ```text
//! cargo run --release -p tidegate-study --example quic -- docs/quic.md
//! ```
//!
//! writes the tables of that page. All but the last are the same on every machine.

mod links;
mod run_time;
mod tables;

use std::error::Error;
use std::fs;

use tidegate_twins::pages;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: quic PAGE")?;
    let mut page = fs::read_to_string(&path)?;
    // First, and one by one: nothing else may run beside it.
    let run_time = run_time::measured()?;
    let tables = [
        ("The same transfers", tables::same_transfers()?),
        ("One long transfer", tables::one_long_transfer()?),
        ("BBR", tables::lost_of_both()?),
        ("What a transfer puts on the link", tables::bytes()?),
        ("Streams", tables::streams()?),
        ("Beside TCP on one link", tables::side_by_side()?),
        ("Where both heed marks", tables::larger_windows()?),
        ("Pages", tables::pages()?),
        ("Run time", run_time),
    ];
    for (heading, table) in tables {
        page = pages::with_table(&page, heading, &table);
    }
    fs::write(path, page)?;
    Ok(())
}
