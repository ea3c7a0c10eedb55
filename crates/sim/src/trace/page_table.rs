//! Page loads in brief: for each, the number of its objects, their bytes and the
//! number of hosts contacted.
//!
//! CSV whose heading names the columns; `objects`, `body_bytes` and `hosts` are
//! read, in any order, and others are ignored. Lines that start with `#` are
//! comments.
//!
//! ```text
//! page,objects,body_bytes,hosts
//! front,40,640000,7
//! ```

use std::path::Path;

use tidegate_core::Bytes;

use super::error::{Mismatch, contents, quote};
use super::text::{lines, trimmed};
use super::{ReadError, within_most};

/// Page loads in brief.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageTable {
    /// The pages in the file's order, at least one.
    pub pages: Vec<PageOutline>,
}

/// One page load in brief.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageOutline {
    /// The number of objects, from 1 to [`MOST_OBJECTS`].
    pub objects: u32,
    /// The total size of all replies' bodies.
    pub size: Bytes,
    /// The number of hosts contacted, from 1 to the number of objects.
    pub hosts: u32,
}

/// A page with more objects than this is a mistake in the table.
pub const MOST_OBJECTS: u32 = 100_000;

/// Where the three columns are.
struct Columns([usize; 3]);

const NAMES: [&str; 3] = ["objects", "body_bytes", "hosts"];

impl PageTable {
    /// Reads a table file.
    ///
    /// # Errors
    /// When the heading lacks a column, a line does not match the heading, or there
    /// is no page.
    pub fn read(path: &Path) -> Result<PageTable, ReadError> {
        let (file, contents) = contents(path)?;
        PageTable::parse(&file, &contents)
    }

    /// Reads a table from memory; `name` is for error messages.
    ///
    /// # Errors
    /// As [`read`](PageTable::read).
    pub fn parse(name: &str, contents: &[u8]) -> Result<PageTable, ReadError> {
        let mut columns: Option<Columns> = None;
        let mut pages = Vec::new();
        for (number, line) in lines(contents).filter(|(_, line)| !line.starts_with(b"#")) {
            let at_line = |wrong: Mismatch| wrong.at_line(name, number);
            match &columns {
                None => columns = Some(Columns::of_heading(line).map_err(at_line)?),
                Some(columns) => pages.push(columns.page(line).map_err(at_line)?),
            }
        }
        if pages.is_empty() {
            let expected = format!("pages under a heading with {}", NAMES.join(", "));
            return Err(ReadError::Nothing { file: name.into(), expected });
        }
        Ok(PageTable { pages })
    }
}

impl Columns {
    fn of_heading(line: &[u8]) -> Result<Columns, Mismatch> {
        let heading = trimmed(line).unwrap_or_default();
        let column = |name| heading.split(',').position(|found| found.trim() == name);
        let [Some(objects), Some(size), Some(hosts)] = NAMES.map(column) else {
            let expected = format!("a heading with the columns {}", NAMES.join(", "));
            return Err(Mismatch::new(quote(line), expected));
        };
        Ok(Columns([objects, size, hosts]))
    }

    fn page(&self, line: &[u8]) -> Result<PageOutline, Mismatch> {
        let fields: Vec<&str> = trimmed(line).unwrap_or_default().split(',').collect();
        let values = self.0.map(|column| fields.get(column)?.trim().parse::<u64>().ok());
        let [Some(objects), Some(size), Some(hosts)] = values else {
            let columns = self.0.map(|column| (column + 1).to_string()).join(", ");
            let expected = format!("whole numbers in the columns {columns}");
            return Err(Mismatch::new(quote(line), expected));
        };
        let objects = u32::try_from(objects).ok().filter(|n| (1..=MOST_OBJECTS).contains(n));
        let hosts = u32::try_from(hosts).ok();
        let page = objects.zip(hosts).map(|(objects, hosts)| PageOutline {
            objects,
            size: Bytes(size),
            hosts,
        });
        let fits = |page: &PageOutline| {
            (1..=page.objects).contains(&page.hosts) && within_most(page.size).is_some()
        };
        page.filter(fits).ok_or_else(|| {
            let expected =
                format!("1 to {MOST_OBJECTS} objects of 1 to as many hosts, and at most 1 TB");
            Mismatch::new(quote(line), expected)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        PageTable::parse("t.csv", text.as_bytes()).expect_err("a broken table").to_string()
    }

    #[test]
    fn columns_are_found_by_name_and_comments_left_out() {
        let text = "# made by hand\nhosts,page,objects,body_bytes\n7,front,40,640000\n1,x,1,0\n";
        let pages = PageTable::parse("t.csv", text.as_bytes()).unwrap().pages;
        let page = |objects, size, hosts| PageOutline { objects, size: Bytes(size), hosts };
        assert_eq!(pages, [page(40, 640_000, 7), page(1, 0, 1)]);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let heading = "objects,body_bytes,hosts\n";
        let columns = "expected a heading with the columns objects, body_bytes, hosts";
        assert_eq!(error("objects,hosts\n"), format!("t.csv:1: found 'objects,hosts', {columns}"));
        let numbers = "expected whole numbers in the columns 1, 2, 3";
        assert_eq!(error(&format!("{heading}1,2\n")), format!("t.csv:2: found '1,2', {numbers}"));
        let range = "expected 1 to 100000 objects of 1 to as many hosts, and at most 1 TB";
        for line in ["0,5,1", "4,5,5", "4,5,0", "100001,5,1", "1,1000000000001,1"] {
            let expected = format!("t.csv:3: found '{line}', {range}");
            assert_eq!(error(&format!("{heading}1,1,1\n{line}\n")), expected);
        }
        let nothing = "expected pages under a heading with objects, body_bytes, hosts";
        assert_eq!(error(heading), format!("t.csv: found nothing to use, {nothing}"));
    }

    #[test]
    fn the_table_that_ships_is_that_of_its_page() {
        let text = tidegate_scenarios::bytes("data/page-loads.csv").unwrap();
        let pages = PageTable::parse("page-loads.csv", text).unwrap().pages;
        // scenarios/data/README.md: 17 page loads, 11 to 246 objects, median 40.
        let mut objects: Vec<u32> = pages.iter().map(|page| page.objects).collect();
        objects.sort_unstable();
        assert_eq!((objects.len(), objects[0], objects[8], objects[16]), (17, 11, 40, 246));
    }
}
