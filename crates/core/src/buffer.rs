//! How much a queue may hold.
//!
//! Most equipment counts its queues in packets (`EFD section 3.1`, footnote);
//! bytes are the alternative.

use std::fmt;
use std::str::FromStr;

use crate::discipline::Backlog;
use crate::units::{Amount, Bytes, NANOS_PER_SECOND, Rate, Span, UnitError};

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

/// The limit of a queue as people state it: an amount, or the time that the link takes
/// to send a full queue.
///
/// ```
/// use tidegate_core::{Buffer, Bytes, Rate, Span};
/// use tidegate_core::buffer::Limit;
/// let limit: Limit = "100 ms".parse()?;
/// assert_eq!(limit.at(Rate(20_000_000)), Buffer::bytes(Bytes(250_000)));
/// // At least one full packet: a link that can hold none carries none.
/// assert_eq!(limit.at(Rate(64_000)), Buffer::bytes(Bytes(1_514)));
/// assert_eq!("300 packets".parse(), Ok(Limit::Amount(Buffer::packets(300))));
/// # Ok::<(), tidegate_core::units::UnitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So much.
    Amount(Buffer),
    /// What the link sends in this time; never zero.
    Time(Span),
}

impl Limit {
    /// The limit in front of a link of this `rate`.
    #[must_use]
    pub fn at(self, rate: Rate) -> Buffer {
        /// A full Ethernet frame.
        const LEAST: Bytes = Bytes(1_514);
        match self {
            Limit::Amount(buffer) => buffer,
            Limit::Time(time) => {
                let bits = u128::from(rate.0) * u128::from(time.0) / u128::from(NANOS_PER_SECOND);
                let size = u64::try_from(bits / 8).unwrap_or(u64::MAX);
                Buffer::bytes(Bytes(size).max(LEAST))
            }
        }
    }
}

impl From<Buffer> for Limit {
    fn from(buffer: Buffer) -> Limit {
        Limit::Amount(buffer)
    }
}

impl FromStr for Limit {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Limit, UnitError> {
        const EXPECTED: &str =
            "a buffer of at least one packet, for example '300 packets', '64 kB' or '100 ms'";
        match text.parse::<Span>() {
            Ok(time) if time > Span::ZERO => Ok(Limit::Time(time)),
            Ok(_) => Err(UnitError { found: text.into(), expected: EXPECTED }),
            Err(_) => text
                .parse()
                .map(Limit::Amount)
                .map_err(|error: UnitError| UnitError { expected: EXPECTED, ..error }),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Amount(buffer) => buffer.fmt(f),
            Limit::Time(time) => time.fmt(f),
        }
    }
}
