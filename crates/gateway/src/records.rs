//! What a client sends into a tunnel, piece by piece.
//!
//! TLS is encrypted, but its records are not: a byte of type, two of version, two of
//! length (RFC 8446 section 5.1). Records of the handshake ask for nothing. Whatever is
//! not TLS is data, of which each read is a piece.

use tidegate_core::Bytes;
use tidegate_core::request::Piece;
use tidegate_wire::tls::{LARGEST_RECORD, RECORD_HEADER};

const CHANGE_CIPHER_SPEC: u8 = 20;
const APPLICATION_DATA: u8 = 23;

/// Where in the stream of a client the next byte is.
///
/// ```
/// use tidegate_core::Bytes;
/// use tidegate_core::request::Piece;
/// use tidegate_gateway::Records;
///
/// let mut records = Records::default();
/// // The first three bytes of a record do not say what it is.
/// assert_eq!(records.next(&[22, 3, 1]), None);
/// let bytes = [22, 3, 1, 0, 2, 1, 0, 23, 3, 3, 0, 1, 9];
/// assert_eq!(records.next(&bytes), Some((Piece::Handshake(Bytes(7)), 7)));
/// assert_eq!(records.next(&bytes[7..]), Some((Piece::Data(Bytes(6)), 6)));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Records {
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// At the header of a record, if it is TLS.
    #[default]
    Header,
    /// In a record of application data, or another.
    Record { is_data: bool, left: usize },
    /// It is not TLS.
    Opaque,
}

impl Records {
    /// The next piece of `bytes`, and its size; `None` if more of them are needed, or
    /// there are none.
    pub fn next(&mut self, bytes: &[u8]) -> Option<(Piece, usize)> {
        if bytes.is_empty() {
            return None;
        }
        let mut size = 0;
        if self.state == State::Header {
            self.state = match *bytes {
                [kind @ CHANGE_CIPHER_SPEC..=APPLICATION_DATA, 3, 0..=4, high, low, ..]
                    if length(high, low) <= LARGEST_RECORD =>
                {
                    size = RECORD_HEADER;
                    State::Record { is_data: kind == APPLICATION_DATA, left: length(high, low) }
                }
                [CHANGE_CIPHER_SPEC..=APPLICATION_DATA]
                | [CHANGE_CIPHER_SPEC..=APPLICATION_DATA, 3]
                | [CHANGE_CIPHER_SPEC..=APPLICATION_DATA, 3, 0..=4]
                | [CHANGE_CIPHER_SPEC..=APPLICATION_DATA, 3, 0..=4, _] => return None,
                _ => State::Opaque,
            };
        }
        match &mut self.state {
            State::Record { is_data, left } => {
                let more = (*left).min(bytes.len() - size);
                let is_data = *is_data;
                *left -= more;
                if *left == 0 {
                    self.state = State::Header;
                }
                size += more;
                let amount = Bytes(size as u64);
                let piece = if is_data { Piece::Data(amount) } else { Piece::Handshake(amount) };
                Some((piece, size))
            }
            State::Opaque | State::Header => {
                Some((Piece::Data(Bytes(bytes.len() as u64)), bytes.len()))
            }
        }
    }
}

pub(crate) fn length(high: u8, low: u8) -> usize {
    usize::from(u16::from_be_bytes([high, low]))
}

/// Whether a stream begins as SSH does (RFC 4253 section 4.2).
pub(crate) fn is_ssh(bytes: &[u8]) -> bool {
    bytes.starts_with(b"SSH-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_add_up_to_the_bytes_however_they_come() {
        let mut bytes = Vec::new();
        for (kind, size) in [(22, 517), (20, 1), (23, 40), (23, 2_000), (21, 2), (23, 0), (23, 7)] {
            bytes.extend_from_slice(&[kind, 3, 3, (size >> 8) as u8, size as u8]);
            bytes.extend(std::iter::repeat_n(0, size));
        }
        for most in [1, 3, 4, 5, 6, 100, bytes.len()] {
            let mut records = Records::default();
            let (mut at, mut end, mut data, mut other) = (0, 0, 0, 0);
            while at < bytes.len() {
                end = (end + most).min(bytes.len());
                while let Some((piece, size)) = records.next(&bytes[at..end]) {
                    match piece {
                        Piece::Data(amount) => data += amount.0,
                        Piece::Handshake(amount) => other += amount.0,
                    }
                    at += size;
                }
            }
            assert_eq!((data, other), (40 + 2_000 + 7 + 4 * 5, 517 + 1 + 2 + 3 * 5));
        }
    }

    #[test]
    fn what_is_not_tls_is_data_from_its_first_byte_on() {
        for bytes in [&b"GET / HTTP/1.1\r\n"[..], &[22, 9, 9], &[22, 3, 1, 0xff, 0xff], &[0]] {
            let whole = (Piece::Data(Bytes(bytes.len() as u64)), bytes.len());
            assert_eq!(Records::default().next(bytes), Some(whole), "{}", bytes.escape_ascii());
        }
    }
}
