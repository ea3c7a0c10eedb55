//! Pages of the documentation that repeat what the code says, held against it.
//!
//! A page that differs fails its test; `make generated` writes what the code says
//! into it instead.

use std::fs;
use std::path::PathBuf;

/// A folder of pages.
#[derive(Clone, Debug)]
pub struct Pages(PathBuf);

impl Pages {
    /// The pages in `folder`, below the project's `docs`.
    #[must_use]
    pub fn of(folder: &str) -> Pages {
        Pages(PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs")).join(folder))
    }

    /// The text of a page.
    ///
    /// # Panics
    /// When it cannot be read.
    #[must_use]
    pub fn read(&self, name: &str) -> String {
        let path = self.0.join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Holds `part` of a page against what it `should` be, or with `UPDATE_GENERATED` in
    /// the environment writes that in its place.
    ///
    /// # Panics
    /// When the two differ, or the page cannot be written.
    pub fn hold(&self, name: &str, part: &str, should: &str) {
        assert!(!part.is_empty(), "{name} lacks what is to be replaced");
        if part != should && std::env::var_os("UPDATE_GENERATED").is_some() {
            let page = self.read(name).replace(part, should);
            return fs::write(self.0.join(name), page)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        assert_eq!(part, should, "{name} differs from the code: run `make generated`");
    }
}

/// What stands in a page below a heading of the second level.
///
/// # Panics
/// When there is no such heading.
#[must_use]
pub fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let start = page.split_once(&format!("\n## {heading}\n")).map(|(_, rest)| rest);
    let rest = start.unwrap_or_else(|| panic!("no heading '## {heading}'"));
    rest.split("\n## ").next().unwrap_or(rest).trim()
}

/// The page with `table` in the place of the first one below a heading of the second
/// level.
///
/// # Panics
/// When there is no such heading, or no table after it.
///
/// ```
/// use tidegate_twins::pages;
/// let page = "\n## Rates\n\nIn Mbit/s:\n\n| a |\n| --- |\n| 1 |\n\nAs measured.\n";
/// let page = pages::with_table(page, "Rates", "| a |\n| --- |\n| 2 |\n");
/// assert_eq!(page, "\n## Rates\n\nIn Mbit/s:\n\n| a |\n| --- |\n| 2 |\n\nAs measured.\n");
/// ```
#[must_use]
pub fn with_table(page: &str, heading: &str, table: &str) -> String {
    let heading = format!("\n## {heading}\n");
    let below = page.find(&heading).map(|at| at + heading.len());
    let below = below.unwrap_or_else(|| panic!("no heading {heading:?}"));
    let start = page[below..].find("\n|").map(|at| below + at + 1);
    let start = start.unwrap_or_else(|| panic!("no table below {heading:?}"));
    let rows = page[start..].split_inclusive('\n').take_while(|line| line.starts_with('|'));
    let end = start + rows.map(str::len).sum::<usize>();
    format!("{}{table}{}", &page[..start], &page[end..])
}

/// The headings of the second level.
#[must_use]
pub fn headings(page: &str) -> Vec<&str> {
    page.lines().filter_map(|line| line.strip_prefix("## ")).collect()
}

/// A Markdown table with this head.
#[must_use]
pub fn table<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let head = [head, ["---"; N]].map(|cells| line(&cells.map(String::from)));
    let lines = head.into_iter().chain(rows.into_iter().map(|cells| line(&cells)));
    lines.collect::<Vec<_>>().join("\n")
}
