//! What runs elsewhere, shown moment by moment: as text on a screen, or as lines of JSON.

use std::io::{self, IsTerminal};
use std::thread::sleep;
use std::time::Duration;

use serde::Serialize;
use tidegate_core::Span;

use crate::failure::Failure;
use crate::output::print;

/// Clears the screen, and what was scrolled away of it stays.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Asks for a state so often, so many times or until interrupted, and shows what happened
/// between each two.
pub(crate) fn show<State, Moment: Serialize>(
    every: Span,
    times: Option<u32>,
    json: bool,
    ask: impl Fn() -> Result<State, Failure>,
    between: impl Fn(&State, &State) -> Moment,
    text: impl Fn(&Moment) -> String,
) -> Result<(), Failure> {
    let is_screen = io::stdout().is_terminal() && !json;
    let mut before = ask()?;
    let mut left = times;
    while left != Some(0) {
        sleep(Duration::from_nanos(every.0));
        let after = ask()?;
        let moment = between(&before, &after);
        if json {
            let line = serde_json::to_string(&moment);
            let line = line.map_err(|reason| Failure::Other(reason.to_string()))?;
            print(&format!("{line}\n"))?;
        } else {
            print(&format!("{}{}", if is_screen { CLEAR } else { "" }, text(&moment)))?;
        }
        before = after;
        left = left.map(|left| left - 1);
    }
    Ok(())
}
