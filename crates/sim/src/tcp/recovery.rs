//! What the sender does about losses, one algorithm per file.
//!
//! - [`newreno`]: duplicate acknowledgements and partial acknowledgements
//!   (RFC 5681, RFC 6582), when the peer has no SACK;
//! - [`sack`]: the scoreboard of RFC 6675;
//! - [`rack`]: detection by time and tail loss probes (RFC 8985). It decides what
//!   is lost, leaves the rest to [`sack`], and leaves it to [`prr`] (RFC 9937) how
//!   fast that is sent again;
//! - [`undo`]: whether what was deemed lost was, and what to do if not.
//!
//! All of them mark records on the same board and leave sending them to
//! [`Sender::next_segment`](super::sender::Sender::next_segment).

pub(super) mod newreno;
mod prr;
pub(super) mod rack;
pub(super) mod sack;
pub(super) mod undo;
