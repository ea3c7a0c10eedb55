//! The secret that whoever asks at the admin port has to know.
//!
//! It is a line of a file that only its owner and, if need be, a group can read, so that
//! it is in neither the settings nor a list of processes.

use std::fmt;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use constant_time_eq::constant_time_eq;

/// Fewer characters could be guessed, and of more a header has no room.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=256;

/// What would be correct, and how to have it.
pub(crate) const EXPECTED: &str = "a file with a line of 16 to 256 letters, digits or -._~+/=, \
    which others cannot read, as from 'umask 077; openssl rand -hex 32 > FILE'";

/// A secret; it compares in constant time and is not printed.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// The token in a file; if there is none, says what was found instead.
    pub(crate) fn read(path: &Path) -> Result<Token, String> {
        let name = path.display();
        let unreadable = |reason| format!("'{name}', which cannot be read ({reason})");
        let file = fs::File::open(path).map_err(unreadable)?;
        let mode = file.metadata().map_err(unreadable)?.mode();
        if mode & 0o007 != 0 {
            let mode = mode & 0o777;
            return Err(format!(
                "'{name}', which everybody on this machine may open (mode {mode:o})"
            ));
        }
        let mut text = String::new();
        let most = *LENGTHS.end() as u64 + 2;
        file.take(most).read_to_string(&mut text).map_err(unreadable)?;
        Token::of(text.trim_end()).ok_or_else(|| format!("'{name}', which has no such line"))
    }

    fn of(text: &str) -> Option<Token> {
        // What `Authorization: Bearer` can carry (RFC 6750 section 2.1).
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        let is_good = LENGTHS.contains(&text.len()) && text.bytes().all(is_plain);
        is_good.then(|| Token(text.into()))
    }

    /// Whether it is this.
    pub(crate) fn is(&self, other: &[u8]) -> bool {
        constant_time_eq(self.0.as_bytes(), other)
    }

    /// The value of `Authorization` that shows it.
    #[must_use]
    pub fn authorization(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Token) -> bool {
        self.is(other.0.as_bytes())
    }
}

impl Eq for Token {}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_is_a_line_that_others_cannot_read() {
        let path = std::env::temp_dir().join(format!("tidegate-token-{}", std::process::id()));
        let read = |text: &str, mode| {
            let _ = fs::remove_file(&path);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Token::read(&path)
        };
        let good = read("0123456789abcdef\n", 0o600).unwrap();
        assert!(good.is(b"0123456789abcdef") && !good.is(b"0123456789abcdeF") && !good.is(b""));
        assert_eq!(read("0123456789abcdef", 0o640), Ok(good.clone()));
        assert_eq!(format!("{good:?}"), "Token");
        let error = read("0123456789abcdef", 0o604).unwrap_err();
        assert!(error.ends_with("which everybody on this machine may open (mode 604)"), "{error}");
        let long = "x".repeat(257);
        for text in ["", "short", "0123456789abcde\u{e9}", "0123456789abcdef\n\nmore", &long] {
            assert!(read(text, 0o600).unwrap_err().ends_with("has no such line"), "{text}");
        }
        fs::remove_file(&path).unwrap();
        assert!(Token::read(&path).unwrap_err().contains("cannot be read (No such file"));
    }
}
