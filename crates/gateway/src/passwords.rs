//! Who may log in, and with which password.
//!
//! A file of names and hashes, a line each, as `htpasswd -B` of Apache writes it. The
//! hashes are bcrypt's: they are made to be slow, so that a file that falls into wrong
//! hands gives no passwords away. Slow is also what checking one is, some milliseconds
//! at least: never do it where others wait.

use std::collections::BTreeMap;
use std::ops::Range;

use bcrypt::HashParts;
use tidegate_files::Mistake;

/// The effort of a hash, in doublings, that a gateway still bears: at this one a check
/// takes most of a second.
const COSTS: Range<u32> = 4..15;
/// No line is longer in a file that a program wrote.
const LONGEST_NAME: usize = 255;

/// Names, and the hashes of their passwords.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Passwords(BTreeMap<String, String>);

impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Hashes belong in no log.
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Passwords {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// A line is no name with a hash of bcrypt, or has a name that stands there already.
    pub fn parse(text: &str) -> Result<Passwords, Mistake> {
        let mut all = BTreeMap::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let place = start..start + line.trim_end().len();
            start += line.len();
            let line = line.trim_end();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |found: &str| {
                let expected = "a name, ':' and a hash of bcrypt, as 'htpasswd -B' writes them";
                Mistake::at(&place, found, expected)
            };
            let (name, hash) = line.split_once(':').ok_or_else(|| wrong("a line without ':'"))?;
            let is_name = (1..=LONGEST_NAME).contains(&name.len())
                && name != "*"
                && !name.contains(char::is_control);
            if !is_name {
                return Err(wrong(&format!("the name '{}'", name.escape_debug())));
            }
            if hash.parse::<HashParts>().is_err() {
                // Whatever it is, it may be a password.
                return Err(wrong("something else behind the name"));
            }
            let cost = hash[4..6].parse().unwrap_or(0);
            if !COSTS.contains(&cost) {
                let expected = format!("from {} to {}", COSTS.start, COSTS.end - 1);
                return Err(Mistake::at(&place, format!("a hash of cost {cost}"), expected));
            }
            if all.insert(name.to_owned(), hash.to_owned()).is_some() {
                return Err(Mistake::at(&place, format!("'{name}' again"), "each name once"));
            }
        }
        Ok(Passwords(all))
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.keys().map(String::as_str)
    }

    /// The hash of a name's password.
    pub(crate) fn hash(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Whether this is the password of a name. Of a name that there is not, it takes as
    /// long to find out.
    pub(crate) fn verify(&self, name: &str, password: &[u8]) -> bool {
        let hash = self.hash(name).or_else(|| self.0.values().next().map(String::as_str));
        let fits = hash.is_some_and(|hash| bcrypt::verify(password, hash).unwrap_or(false));
        fits && self.0.contains_key(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `htpasswd -nbB anna 'open sesame'` of Debian 12 wrote it.
    const ANNA: &str = "anna:$2y$05$lmTEW163G6rt7JqqJpmp2eq0HPo14.GNUNUQNGh6WRNkYqOU2JqOi";

    fn error(text: &str) -> String {
        Passwords::parse(text).unwrap_err().in_file("users", text).to_string()
    }

    #[test]
    fn what_htpasswd_writes_is_understood() {
        let text = format!("# pupils\n\n{ANNA}\r\n");
        let passwords = Passwords::parse(&text).unwrap();
        assert_eq!(passwords.names().collect::<Vec<_>>(), ["anna"]);
        assert!(passwords.verify("anna", b"open sesame"));
        assert!(!passwords.verify("anna", b"open sesame "));
        assert!(!passwords.verify("bert", b"open sesame"));
        assert!(!Passwords::default().verify("anna", b""));
        assert!(!format!("{passwords:?}").contains("$2y$"));
    }

    #[test]
    fn lines_that_are_wrong_are_told_without_what_is_secret() {
        for (text, expected) in [
            ("anna", "users:1:1: found a line without ':', expected a name, ':' and a hash"),
            ("\nanna:secret\n", "users:2:1: found something else behind the name, expected a name"),
            ("anna:$apr1$abc$defghijklmnopqrstuvwxy", "users:1:1: found something else"),
            (":x", "users:1:1: found the name ''"),
            ("*:x", "users:1:1: found the name '*'"),
            (&format!("{ANNA}\n{ANNA}"), "users:2:1: found 'anna' again, expected each name once"),
            (&ANNA.replace("$05$", "$31$"), "users:1:1: found a hash of cost 31, expected from 4"),
        ] {
            let found = error(text);
            assert!(found.starts_with(expected) && !found.contains("secret"), "{found}");
        }
    }
}
