//! Why cells are out, as far as somebody knows.

/// Why cells are out: a line for each cause, `BEGINNING OF NAMES: cause`.
const CAUSES: &str = include_str!("../causes.txt");

/// The causes with the beginnings of the names that they are for.
fn causes() -> impl Iterator<Item = (&'static str, &'static str)> {
    CAUSES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(": ").expect("a line of causes.txt is 'NAMES: cause'"))
}

/// The cause for a cell, if one is known.
pub(crate) fn cause(name: &str) -> Option<&'static str> {
    causes().find(|(names, _)| name.starts_with(names)).map(|(_, cause)| cause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{cells, loaded_cells, papers_cells};
    use crate::loaded;

    #[test]
    fn every_cause_is_for_a_cell() {
        let all = cells().into_iter().chain(papers_cells());
        let mut names: Vec<String> = all.map(|cell| cell.to_string()).collect();
        names.extend(loaded_cells().iter().map(loaded::name));
        for (beginning, cause) in causes() {
            assert!(names.iter().any(|name| name.starts_with(beginning)), "{beginning}: {cause}");
        }
    }
}
