//! How much a queue may hold.
//!
//! Most equipment counts its queues in packets (`EFD section 3.1`, footnote);
//! bytes are the alternative.

use std::fmt;
use std::str::FromStr;

use crate::discipline::Backlog;
use crate::units::{Amount, Bytes, UnitError};

/// The limit of a queue, in packets or in bytes; never zero.
///
/// ```
/// use tidegate_core::{Buffer, Bytes};
/// assert_eq!("300 packets".parse(), Ok(Buffer::packets(300)));
/// assert_eq!("64 kB".parse(), Ok(Buffer::bytes(Bytes(64_000))));
/// assert!("0 packets".parse::<Buffer>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer(Amount);

impl Buffer {
    /// A limit in packets; zero is taken as one.
    #[must_use]
    pub const fn packets(count: u32) -> Buffer {
        Buffer(Amount::Packets(if count == 0 { 1 } else { count }))
    }

    /// A limit in bytes; zero is taken as one.
    #[must_use]
    pub const fn bytes(size: Bytes) -> Buffer {
        Buffer(Amount::Bytes(if size.0 == 0 { Bytes(1) } else { size }))
    }

    /// The limit itself.
    #[must_use]
    pub const fn amount(self) -> Amount {
        self.0
    }

    /// Whether a queue with this `backlog` is within the limit.
    #[must_use]
    pub fn holds(self, backlog: Backlog) -> bool {
        match self.0 {
            Amount::Packets(limit) => backlog.packets <= limit,
            Amount::Bytes(limit) => backlog.bytes <= limit,
        }
    }

    /// Whether a queue with this `backlog` has room for one more packet of `size`.
    #[must_use]
    pub fn has_room(self, backlog: Backlog, size: Bytes) -> bool {
        match self.0 {
            Amount::Packets(limit) => backlog.packets < limit,
            Amount::Bytes(limit) => backlog.bytes + size <= limit,
        }
    }
}

impl Buffer {
    /// This limit, or the backlog where that is larger: a buffer that was made
    /// smaller keeps what it holds, and an arrival only takes another's room.
    #[must_use]
    pub(crate) fn stretched_to(self, backlog: Backlog) -> Buffer {
        Buffer(match self.0 {
            Amount::Packets(limit) => Amount::Packets(limit.max(backlog.packets)),
            Amount::Bytes(limit) => Amount::Bytes(limit.max(backlog.bytes)),
        })
    }
}

impl Default for Buffer {
    /// 300 packets (`EFD section 4.1`).
    fn default() -> Buffer {
        Buffer::packets(300)
    }
}

impl FromStr for Buffer {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Buffer, UnitError> {
        match text.parse() {
            Ok(Amount::Packets(0) | Amount::Bytes(Bytes(0))) | Err(_) => Err(UnitError {
                found: text.into(),
                expected: "a buffer of at least one packet, as '300 packets' or '64 kB'",
            }),
            Ok(amount) => Ok(Buffer(amount)),
        }
    }
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
