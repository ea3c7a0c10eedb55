//! The congestion window: how it grows with acknowledgements and shrinks with
//! losses.
//!
//! What recovery does to the window while it lasts (inflation, deflation, the
//! pipe) is not here but with the recovery algorithms, because it is the same
//! for every congestion control. An algorithm says two things: what one
//! acknowledgement adds in congestion avoidance, and what is left after a loss.
//! Both are enum arms, not trait objects: the call is made for every
//! acknowledgement.

mod cubic;
mod reno;

use tidegate_core::{Span, Time};

use self::cubic::Cubic;
use super::config::{Congestion, TcpConfig};

#[derive(Clone, Debug)]
pub(super) struct CongestionWindow {
    /// `cwnd`, in bytes; inflated during NewReno's fast recovery.
    pub(super) window: u64,
    /// `ssthresh`, in bytes.
    pub(super) threshold: u64,
    /// `SMSS`.
    mss: u64,
    /// Most bytes that one acknowledgement adds in slow start.
    slow_start_limit: u64,
    algorithm: Algorithm,
}

#[derive(Clone, Debug)]
enum Algorithm {
    Reno,
    /// Apart, because it is as large as a fifth of an endpoint.
    Cubic(Box<Cubic>),
}

/// Segments that are always allowed after a loss (RFC 5681 equation 4).
const LEAST_THRESHOLD: u64 = 2;

impl CongestionWindow {
    pub(super) fn new(config: &TcpConfig, mss: u32) -> CongestionWindow {
        let mss = u64::from(mss);
        CongestionWindow {
            window: mss * u64::from(config.initial_window.max(1)),
            threshold: config.initial_ssthresh.map_or(u64::MAX, |bytes| bytes.0),
            mss,
            slow_start_limit: mss * u64::from(config.slow_start_limit.max(1)),
            algorithm: match config.congestion {
                Congestion::NewReno => Algorithm::Reno,
                Congestion::Cubic => Algorithm::Cubic(Box::default()),
            },
        }
    }

    /// New data has been acknowledged outside fast recovery. `used` says that
    /// the window was what held the sender back: an unused window must not grow
    /// (RFC 9438 section 5.8, RFC 7661). After a timeout one acknowledgement
    /// adds one segment at most (RFC 3465 section 2.3).
    #[inline]
    pub(super) fn on_acknowledgement(
        &mut self,
        now: Time,
        acked: u64,
        round_trip: Option<Span>,
        used: bool,
        after_timeout: bool,
    ) {
        if !used {
            if let Algorithm::Cubic(cubic) = &mut self.algorithm {
                cubic.idle(now);
            }
        } else if self.window < self.threshold {
            // RFC 5681 equation 2.
            let limit = if after_timeout { self.mss } else { self.slow_start_limit };
            self.window += acked.min(limit);
        } else {
            match &mut self.algorithm {
                Algorithm::Reno => self.window = reno::avoid(self.window, self.mss),
                Algorithm::Cubic(cubic) => {
                    let round_trip = round_trip.unwrap_or(Span::ZERO);
                    self.window = cubic.avoid(now, self.window, self.mss, acked, round_trip);
                }
            }
        }
    }

    /// A loss or a mark, `flight` bytes being outstanding: sets the threshold.
    /// The caller sets the window, which depends on how the loss was found.
    pub(super) fn on_congestion(&mut self, flight: u64) {
        let left = match &mut self.algorithm {
            Algorithm::Reno => reno::reduced(flight),
            Algorithm::Cubic(cubic) => cubic.reduced(self.window, flight),
        };
        self.threshold = left.max(LEAST_THRESHOLD * self.mss);
    }

    /// A retransmission timeout has collapsed the window: the next congestion
    /// avoidance starts afresh.
    pub(super) fn on_timeout(&mut self) {
        self.window = self.mss;
        if let Algorithm::Cubic(cubic) = &mut self.algorithm {
            cubic.on_timeout();
        }
    }
}
