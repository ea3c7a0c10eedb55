//! The rules of the packet filter that hand a router's packets to a link.
//!
//! They stand for as long as the link does, and for longer if it dies with `--fail closed`:
//! then the kernel drops what nobody decides about, until a link runs again or somebody
//! takes them away. With `--fail open` the rules let packets pass when nobody is there, and
//! go when the link has died. A note beside the link's socket says which rules are set, so
//! that they are found after a crash.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tidegate_link::nfqueue::filter;
use tidegate_link::nfqueue::rules::{Name, Rules as Text};

use super::bridge::hashed;
use super::socket;
use crate::arguments::Fail;
use crate::failure::Failure;

/// The longest name of rules.
const LONGEST: usize = 14;
/// The end of a note's name.
const ENDING: &str = ".rules";

/// The rules of a link.
pub(super) struct Rules {
    text: Text,
    fail: Fail,
    note: PathBuf,
}

impl Rules {
    pub(super) fn new(
        link: &str,
        outside: &str,
        [down, up]: [u16; 2],
        fail: Fail,
    ) -> Result<Rules, Failure> {
        let wrong = |reason: tidegate_link::nfqueue::rules::RulesError| {
            Failure::Input(reason.to_string())
        };
        let name = name(link);
        let text = Text::new(name, outside, down, up, fail == Fail::Open).map_err(wrong)?;
        Ok(Rules { text, fail, note: note(&socket::folder(), link) })
    }

    /// Notes that they will be set.
    pub(super) fn note(&self) -> io::Result<()> {
        fs::write(&self.note, "")
    }

    pub(super) fn set(&self) -> io::Result<()> {
        let set = filter::set(&self.text).map_err(|reason| io::Error::other(reason.to_string()));
        if set.is_err() {
            let _ = self.remove();
        }
        set.map(drop)
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        undo(self.text.name(), &self.note)
    }

    /// The link has died.
    pub(super) fn died(&self, link: &str, carried: bool) -> io::Result<()> {
        if carried && self.fail == Fail::Closed {
            let help = format!("'tidegate link stop --name {link}' has them pass");
            eprintln!("tidegate: the link '{link}' has died: packets are dropped; {help}");
            return Ok(());
        }
        self.remove()
    }
}

/// The links that have left rules.
pub(super) fn left() -> Vec<String> {
    let Ok(entries) = fs::read_dir(socket::folder()) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.strip_suffix(ENDING).map(Into::into)).collect()
}

/// Takes away what a link of this name has left.
pub(super) fn remove(link: &str) -> io::Result<()> {
    undo(&name(link), &note(&socket::folder(), link))
}

fn undo(name: &Name, note: &Path) -> io::Result<()> {
    filter::remove(name).map_err(|reason| io::Error::other(reason.to_string()))?;
    match fs::remove_file(note) {
        Err(reason) if reason.kind() != io::ErrorKind::NotFound => Err(reason),
        _ => Ok(()),
    }
}

/// The name of a link's rules: that of the link, or a part of its hash.
fn name(link: &str) -> Name {
    Name::new(link)
        .or_else(|_| Name::new(&hashed(link, LONGEST)))
        .expect("a hash has letters and digits only")
}

fn note(folder: &Path, link: &str) -> PathBuf {
    folder.join(format!("{link}{ENDING}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rules_fit_and_differ() {
        assert_eq!(name("home"), Name::new("home").expect("it is a name"));
        assert_ne!(name("lan0-wan0"), name("lan0-wan1"));
    }
}
