//! Where the body of a message ends.

use super::Fault;

/// How a body is delimited (RFC 9112 section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    Empty,
    /// It has so many bytes.
    Length(u64),
    /// In chunks, each with its size.
    Chunked,
    /// It ends with the connection.
    UntilClose,
}

/// A body of which the beginning has been seen.
///
/// ```
/// use tidegate_gateway::message::{Body, Framing, Part};
///
/// let mut body = Body::new(Framing::Chunked);
/// let bytes = b"5\r\nhello\r\n0\r\n\r\nGET";
/// assert_eq!(body.take(bytes)?, Part { size: 3, is_content: false });
/// assert_eq!(body.take(&bytes[3..])?, Part { size: 5, is_content: true });
/// assert_eq!(body.take(&bytes[8..])?, Part { size: 7, is_content: false });
/// assert!(body.is_over());
/// # Ok::<(), tidegate_gateway::message::Fault>(())
/// ```
#[derive(Clone, Debug)]
pub struct Body {
    state: State,
}

/// Consecutive bytes of a message of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// How many.
    pub size: usize,
    /// Whether they are content, and not sizes of chunks or the trailer.
    pub is_content: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Over,
    Until,
    Left(u64),
    Chunks(Chunk),
}

/// The next byte of a body in chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    /// A digit of a size, of which there have been so many, or the end of its line.
    Size { digits: u8, size: u64 },
    /// The line feed behind a size.
    SizeEnd { size: u64 },
    /// Content.
    Data { left: u64 },
    /// The line behind the content.
    DataEnd { has_return: bool },
    /// The first byte of a line of the trailer; so many bytes came before.
    Trailer { before: u32 },
    /// Within a line of the trailer.
    Field { before: u32 },
    /// The line feed behind a field.
    FieldEnd { before: u32 },
    /// The last line feed.
    Last,
}

/// The largest trailer, in bytes: it has checksums and timings, a few lines.
const LARGEST_TRAILER: u32 = 8_192;

impl Body {
    /// A body of which nothing has been seen.
    #[must_use]
    pub fn new(framing: Framing) -> Body {
        let state = match framing {
            Framing::Empty | Framing::Length(0) => State::Over,
            Framing::Length(size) => State::Left(size),
            Framing::Chunked => State::Chunks(Chunk::Size { digits: 0, size: 0 }),
            Framing::UntilClose => State::Until,
        };
        Body { state }
    }

    /// Whether all of it has been seen. One that ends with its connection never says so.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Whether it is over if the connection ends now.
    #[must_use]
    pub fn may_end(&self) -> bool {
        matches!(self.state, State::Over | State::Until)
    }

    /// How many bytes are missing, if that is known.
    #[must_use]
    pub fn left(&self) -> Option<u64> {
        match self.state {
            State::Over => Some(0),
            State::Left(left) => Some(left),
            State::Until | State::Chunks(_) => None,
        }
    }

    /// The next bytes that are alike; the size is 0 when there are none, or none of this
    /// body.
    ///
    /// # Errors
    /// A chunk is malformed or has an extension.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Part, Fault> {
        match &mut self.state {
            State::Over => Ok(Part { size: 0, is_content: false }),
            State::Until => Ok(Part { size: bytes.len(), is_content: true }),
            State::Left(left) => {
                let size = size_within(bytes, *left);
                *left -= size as u64;
                if *left == 0 {
                    self.state = State::Over;
                }
                Ok(Part { size, is_content: true })
            }
            State::Chunks(Chunk::Data { left }) => {
                let size = size_within(bytes, *left);
                *left -= size as u64;
                if *left == 0 {
                    self.state = State::Chunks(Chunk::DataEnd { has_return: false });
                }
                Ok(Part { size, is_content: true })
            }
            State::Chunks(chunk) => {
                let mut next = Some(*chunk);
                let mut size = 0;
                while let Some(chunk) = next
                    && !matches!(chunk, Chunk::Data { .. })
                    && let Some(byte) = bytes.get(size)
                {
                    next = chunk.after(*byte)?;
                    size += 1;
                }
                self.state = next.map_or(State::Over, State::Chunks);
                Ok(Part { size, is_content: false })
            }
        }
    }

    /// All of the next bytes that belong to it.
    ///
    /// # Errors
    /// As [`take`](Body::take).
    pub fn take_all(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let mut size = 0;
        loop {
            match self.take(&bytes[size..])?.size {
                0 => return Ok(size),
                more => size += more,
            }
        }
    }
}

fn size_within(bytes: &[u8], left: u64) -> usize {
    usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()))
}

impl Chunk {
    /// What follows this byte; `None` at the end of the body.
    fn after(self, byte: u8) -> Result<Option<Chunk>, Fault> {
        let next = match (self, byte) {
            (Chunk::Size { digits, size }, b'\r') if digits > 0 => Chunk::SizeEnd { size },
            // Fifteen digits are a petabyte, and do not overflow.
            (Chunk::Size { digits, size }, _) if digits < 15 => {
                let digit = char::from(byte).to_digit(16).ok_or(Fault::Chunk)?;
                Chunk::Size { digits: digits + 1, size: size * 16 + u64::from(digit) }
            }
            (Chunk::SizeEnd { size: 0 }, b'\n') => Chunk::Trailer { before: 0 },
            (Chunk::SizeEnd { size }, b'\n') => Chunk::Data { left: size },
            (Chunk::DataEnd { has_return: false }, b'\r') => Chunk::DataEnd { has_return: true },
            (Chunk::DataEnd { has_return: true }, b'\n') => Chunk::Size { digits: 0, size: 0 },
            (Chunk::Trailer { .. }, b'\r') => Chunk::Last,
            (Chunk::Trailer { .. }, b' ' | b'\t') => return Err(Fault::Folded),
            (Chunk::Field { before }, b'\r') => Chunk::FieldEnd { before: before + 1 },
            (Chunk::Trailer { .. } | Chunk::Field { .. }, b'\n' | 0) => return Err(Fault::LineEnd),
            (Chunk::Trailer { before } | Chunk::Field { before }, _)
                if before < LARGEST_TRAILER =>
            {
                Chunk::Field { before: before + 1 }
            }
            (Chunk::FieldEnd { before }, b'\n') => Chunk::Trailer { before: before + 1 },
            (Chunk::Last, b'\n') => return Ok(None),
            _ => return Err(Fault::Chunk),
        };
        Ok(Some(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Size and content of a body that is over within these bytes.
    fn read(framing: Framing, bytes: &[u8], piece: usize) -> Result<(usize, Vec<u8>), Fault> {
        let mut body = Body::new(framing);
        let (mut size, mut content) = (0, Vec::new());
        for end in (0..bytes.len()).step_by(piece).map(|at| (at + piece).min(bytes.len())) {
            while size < end && !body.is_over() {
                let part = body.take(&bytes[size..end])?;
                if part.is_content {
                    content.extend_from_slice(&bytes[size..size + part.size]);
                }
                size += part.size;
            }
        }
        if body.is_over() { Ok((size, content)) } else { Err(Fault::Syntax) }
    }

    #[test]
    fn a_body_is_the_same_however_its_bytes_come() {
        let bytes = b"3\r\nabc\r\n00A\r\n0123456789\r\n0\r\nA: b\r\nC: d\r\n\r\nHTTP/1.1";
        for piece in 1..=bytes.len() {
            let (size, content) = read(Framing::Chunked, bytes, piece).unwrap();
            assert_eq!(size, bytes.len() - "HTTP/1.1".len());
            assert_eq!(content, b"abc0123456789");
        }
        for piece in 1..=8 {
            let read = read(Framing::Length(5), b"01234567", piece).unwrap();
            assert_eq!(read, (5, b"01234".to_vec()));
        }
    }

    #[test]
    fn chunks_that_two_readers_might_take_differently_are_refused() {
        for bytes in [
            &b"5;a=b\r\nhello\r\n0\r\n\r\n"[..],
            b"5 \r\nhello\r\n0\r\n\r\n",
            b"+5\r\nhello\r\n0\r\n\r\n",
            b"0x5\r\nhello\r\n0\r\n\r\n",
            b"\r\nhello\r\n0\r\n\r\n",
            b"5\nhello\r\n0\r\n\r\n",
            b"5\r\nhello\n0\r\n\r\n",
            b"5\r\nhello0\r\n\r\n",
            b"5\r\nhelloo\r\n0\r\n\r\n",
            b"0\r\n\n",
            b"0\r\nA: b\nC: d\r\n\r\n",
            b"0\r\nA: b\r\n c\r\n\r\n",
            b"0\r\nA: b\r\r\n\r\n",
            b"1234567890123456\r\n",
        ] {
            for piece in [1, bytes.len()] {
                let found = read(Framing::Chunked, bytes, piece);
                let known = [Fault::Chunk, Fault::LineEnd, Fault::Folded];
                assert!(
                    known.iter().any(|fault| found == Err(*fault)),
                    "{}: {found:?}",
                    bytes.escape_ascii()
                );
            }
        }
    }

    #[test]
    fn a_trailer_has_an_end() {
        let mut bytes = b"0\r\n".to_vec();
        while bytes.len() < LARGEST_TRAILER as usize + 100 {
            bytes.extend_from_slice(b"A: b\r\n");
        }
        assert_eq!(read(Framing::Chunked, &bytes, bytes.len()), Err(Fault::Chunk));
    }
}
