//! Finding the end of a head.

use memchr::memchr3;

use super::Fault;

/// Looks for the end of a head whose bytes come in pieces; each byte is looked at once,
/// however many pieces there are.
///
/// ```
/// use tidegate_gateway::message::{Fault, Scan};
///
/// let mut scan = Scan::default();
/// assert_eq!(scan.end(b"GET http://a/ HTTP/1.1\r\nHost: a\r"), Ok(None));
/// assert_eq!(scan.end(b"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\nrest"), Ok(Some(35)));
/// assert_eq!(Scan::default().end(b"GET / HTTP/1.1\nHost: a"), Err(Fault::LineEnd));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Scan {
    seen: usize,
}

impl Scan {
    /// The size of the head at the start of `bytes`, with its empty line; `None` while
    /// there is not all of it. Each call gets the bytes of the one before, and perhaps
    /// more.
    ///
    /// # Errors
    /// A line does not end with CR LF, or a field is folded.
    pub fn end(&mut self, bytes: &[u8]) -> Result<Option<usize>, Fault> {
        loop {
            let before = self.seen.checked_sub(1).map(|at| bytes[at]);
            if !matches!(before, Some(b'\r' | b'\n')) {
                let rest = bytes.get(self.seen..).unwrap_or_default();
                self.seen += memchr3(b'\r', b'\n', 0, rest).unwrap_or(rest.len());
            }
            let before = self.seen.checked_sub(1).map(|at| bytes[at]);
            let Some(byte) = bytes.get(self.seen) else { return Ok(None) };
            match (before, byte) {
                (Some(b'\r'), b'\n') => {
                    let head = &bytes[..=self.seen];
                    if head == b"\r\n" || head.ends_with(b"\r\n\r\n") {
                        return Ok(Some(head.len()));
                    }
                }
                (_, b'\n' | 0) | (Some(b'\r'), _) => return Err(Fault::LineEnd),
                (Some(b'\n'), b' ' | b'\t') => return Err(Fault::Folded),
                _ => {}
            }
            self.seen += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_the_same_however_the_bytes_come() {
        let head = b"GET http://a/ HTTP/1.1\r\nHost: a\r\nX: \r\n\r\nand more";
        let mut by_one = Scan::default();
        let found = (0..=head.len()).find_map(|size| by_one.end(&head[..size]).unwrap());
        assert_eq!(found, Some(head.len() - "and more".len()));
        assert_eq!(Scan::default().end(head), Ok(found));
    }

    #[test]
    fn what_two_readers_might_take_differently_is_refused() {
        for (head, fault) in [
            (&b"GET / HTTP/1.1\nHost: a\r\n\r\n"[..], Fault::LineEnd),
            (b"GET / HTTP/1.1\r\nHost: a\n\n", Fault::LineEnd),
            (b"GET / HTTP/1.1\r\nA: b\rC: d\r\n\r\n", Fault::LineEnd),
            (b"GET / HTTP/1.1\r\r\n\r\n", Fault::LineEnd),
            (b"GET / HTTP/1.1\r\nA: \0\r\n\r\n", Fault::LineEnd),
            (b"GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", Fault::Folded),
            (b"GET / HTTP/1.1\r\n\tA: b\r\n\r\n", Fault::Folded),
        ] {
            assert_eq!(Scan::default().end(head), Err(fault), "{}", head.escape_ascii());
        }
    }
}
