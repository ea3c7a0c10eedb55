//! QUIC connections between two hosts, driven by quinn-proto.
//!
//! quinn-proto is an implementation of QUIC (RFC 9000) that owns neither a socket nor a
//! clock, and it is used as it is: packets, streams, flow control, acknowledgements, loss
//! recovery (RFC 9002), pacing and congestion control are its own. The simulator carries
//! its datagrams, byte for byte, and wakes it when its timers are due. So there is a second
//! transport here that nobody of this project wrote, and TCP can be held against it.
//!
//! Three things are ours, because a simulation needs them: the handshake has no
//! cryptography but the round trips and bytes of one ([`session`]); what would be random
//! comes from the seed of the connection ([`secrets`]); and the clock is simulated time.
//! quinn counts in [`Instant`]s, which have no zero: one moment of the real clock stands
//! for it, and since quinn looks at differences only, which moment that is changes nothing.
//!
//! Each connection has endpoints of its own, as if each side had taken a new port, so
//! what it draws does not depend on the connections before it.
//!
//! quinn's CUBIC takes cube roots from the machine's C library, whose last bit differs between
//! versions. So its results are the same every time on one machine, and those of NewReno on
//! all.
//!
//! quinn's BBR is not offered: each of its controllers seeds a generator from the
//! operating system, out of reach from outside, so no run would be the same twice.

mod connection;
mod secrets;
mod session;
mod settings;

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use tidegate_core::Time;

pub(crate) use connection::{Datagram, QuicConnection, QuicConnections, QuicId, QuicOpening};
pub(crate) use settings::Settings;

/// The [`Instant`] of simulated time zero.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

pub(crate) fn instant(at: Time) -> Instant {
    // An instant has 63 bits of seconds: far more than the nanoseconds of a run.
    ORIGIN.checked_add(Duration::from_nanos(at.0)).unwrap_or(*ORIGIN)
}

fn time(at: Instant) -> Time {
    let after = at.saturating_duration_since(*ORIGIN);
    Time(u64::try_from(after.as_nanos()).unwrap_or(u64::MAX))
}
