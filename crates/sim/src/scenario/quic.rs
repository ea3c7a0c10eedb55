//! How QUIC carries transfers.

use std::fmt;

/// How the transfers of a source are carried over QUIC; all else is as quinn has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuicProfile {
    /// What sets the congestion window.
    pub congestion: QuicControl,
    /// The streams of a transfer, 1 to [`QuicProfile::MOST_STREAMS`], which share its size.
    pub streams: u16,
}

impl QuicProfile {
    /// As many streams as quinn lets a peer open at the same time by default.
    pub const MOST_STREAMS: u16 = 100;
}

/// A congestion controller of quinn's, under the name that TCP's has here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuicControl {
    /// NewReno as in RFC 9002.
    Reno,
    /// CUBIC (RFC 9438), without HyStart.
    Cubic,
    /// BBR, the first version, as far as a window alone can be it.
    Bbr,
}

impl QuicControl {
    /// Its name in files and rows.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            QuicControl::Reno => "reno",
            QuicControl::Cubic => "cubic",
            QuicControl::Bbr => "bbr",
        }
    }
}

impl fmt::Display for QuicProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "over QUIC with {}", self.congestion.name())?;
        if self.streams > 1 { write!(f, ", {} streams each", self.streams) } else { Ok(()) }
    }
}
