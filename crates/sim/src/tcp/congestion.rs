//! Congestion control: how much may be in the network, and how fast it leaves.
//!
//! A [`Controller`] hears what acknowledgements say, what was lost and what a
//! queue has marked. It answers with a window and, if it wants segments spaced,
//! with a pacing rate. [`CONTROLLERS`] is the one list of them: configuration,
//! scenario files, their schema, documentation and tests read it, and a
//! controller describes itself by an [`Entry`] in its own file.
//!
//! A fast recovery sets the window itself while it lasts (by inflation or by
//! proportional rate reduction), because that is the same for every controller.
//! At its end it tells the controller the window that it leaves.
//!
//! The sender reads window and rate once per segment, so they are copied out of
//! the controller after each event. That leaves one dynamic call per event and
//! none per segment.

mod bbr;
mod bbr3;
mod cubic;
mod dctcp;
mod heard;
mod hystart;
mod hystart_plus_plus;
mod linux;
mod linux_reno;
mod loss_based;
mod prague;
mod reno;
mod scalable;
mod slow_start;

use std::fmt;

use tidegate_core::{Rate, Span, Time};

use super::config::TcpConfig;
pub use super::sender::Phase;
pub use heard::{Ack, Before, Loss, LostSegment, RateSample, Start};
pub use slow_start::SlowStart;

/// Every controller, in the order in which they are shown.
pub const CONTROLLERS: &[Entry] = &[
    reno::ENTRY,
    linux_reno::ENTRY,
    cubic::ENTRY,
    bbr::ENTRY,
    bbr3::ENTRY,
    prague::ENTRY,
    dctcp::ENTRY,
];

/// The controller of RFC 5681, which the papers used.
pub const NEW_RENO: &Entry = &reno::ENTRY;
/// Reno as Linux has it.
pub const LINUX_RENO: &Entry = &linux_reno::ENTRY;
/// CUBIC as Linux has it, which current systems use by default.
pub const CUBIC: &Entry = &cubic::ENTRY;
/// The first version of BBR, as in Linux.
pub const BBR: &Entry = &bbr::ENTRY;
/// Prague, for low-latency, low-loss, scalable traffic.
pub const PRAGUE: &Entry = &prague::ENTRY;

/// One controller: what it is called and how a connection gets one.
///
/// Two entries are equal when their names are.
pub struct Entry {
    /// Name in files and on the command line.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// Whether its rate falls with the share of marks and not with the root of it. Such a
    /// controller needs to know how many there are, so its connections ask for accurate
    /// ECN whatever [`ecn`](TcpConfig::ecn) says, and what they send says ECT(1).
    pub scalable: bool,
    /// Makes one for a new connection.
    pub start: fn(&Start) -> Box<dyn Controller>,
}

impl Entry {
    /// The controller of this name in [`CONTROLLERS`].
    ///
    /// ```
    /// use tidegate_sim::tcp::congestion::{CUBIC, Entry};
    /// assert_eq!(Entry::named("cubic"), Some(CUBIC));
    /// assert_eq!(Entry::named("vegas"), None);
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Entry> {
        CONTROLLERS.iter().find(|entry| entry.name == name)
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.name == other.name
    }
}

impl Eq for Entry {}

/// A congestion controller of one connection.
///
/// It owns no clock and draws nothing at random, so equal events give equal
/// answers. Sizes are in bytes of payload. A constant window is the smallest one:
///
/// ```
/// use std::sync::Arc;
/// use tidegate_core::Rate;
/// use tidegate_sim::tcp::congestion::{Ack, Controller, Entry, Loss};
/// use tidegate_sim::tcp::{Endpoint, TcpConfig};
///
/// #[derive(Debug)]
/// struct Constant(u64);
///
/// impl Controller for Constant {
///     fn on_ack(&mut self, _: &Ack) {}
///     fn on_loss(&mut self, _: &Loss) {}
///     fn on_timeout(&mut self, _: u64) {}
///     fn on_idle(&mut self, _: u64) {}
///     fn on_recovered(&mut self, _: u64) {}
///     fn window(&self) -> u64 {
///         self.0
///     }
///     fn threshold(&self) -> u64 {
///         self.0
///     }
///     fn pacing_rate(&self) -> Option<Rate> {
///         Some(Rate(10_000_000))
///     }
/// }
///
/// const CONSTANT: &Entry = &Entry {
///     name: "constant",
///     summary: "20 segments at 10 Mbit/s, whatever happens",
///     source: "an example",
///     scalable: false,
///     start: |start| Box::new(Constant(20 * start.mss)),
/// };
///
/// let config = TcpConfig { congestion: CONSTANT, ..TcpConfig::today() };
/// let endpoint = Endpoint::connect(Arc::new(config), 1);
/// assert_eq!(endpoint.congestion_window(), 20 * 1_448);
/// ```
pub trait Controller: fmt::Debug + Send {
    /// An acknowledgement has reported data. When it also tells of a loss,
    /// [`on_loss`](Controller::on_loss) comes next.
    fn on_ack(&mut self, ack: &Ack);

    /// A loss has been found: once per fast recovery, and before
    /// [`on_timeout`](Controller::on_timeout) unless the same segment has timed
    /// out before.
    fn on_loss(&mut self, loss: &Loss);

    /// The peer echoes a congestion mark: at most once per window of data
    /// (RFC 3168 section 6.1.2).
    fn on_ecn(&mut self, loss: &Loss) {
        self.on_loss(loss);
    }

    /// The retransmission timer has run out, and the sender starts again with one
    /// segment (RFC 5681 section 3.1). What it deems lost has been taken off the
    /// network, where `in_flight` bytes are left: none, unless losses are detected by
    /// time.
    fn on_timeout(&mut self, in_flight: u64);

    /// Data is to be sent after a silence of more than the retransmission
    /// timeout: `initial` bytes is as much as RFC 5681 section 4.1 trusts the
    /// network with.
    fn on_idle(&mut self, initial: u64);

    /// A fast recovery is over, and RFC 6582 or RFC 9937 leaves `window` bytes. A
    /// controller that [rules recovery](Controller::rules_recovery) hears of it before
    /// the acknowledgement that ends the recovery, after a timeout too, and the window
    /// is its own.
    fn on_recovered(&mut self, window: u64);

    /// A segment has been found lost; the acknowledgement or the timer that shows it
    /// comes after all that it shows.
    fn on_segment_lost(&mut self, _: &LostSegment) {}

    /// The latest reduction was needless: nothing had been lost (RFC 3522, RFC 3708, RFC
    /// 5682). The recovery, or the repair after a timeout, ends if it is under way.
    fn on_spurious_recovery(&mut self, _: &Before) {}

    /// Data is to be sent at this time while nothing is in the network because the
    /// application had nothing to send. It comes to a controller that
    /// [samples rates](Controller::samples_rate), with the first data too.
    fn on_restart(&mut self, _: Time) {}

    /// Whether the sender is to keep account of delivery rates, which takes 48 bytes
    /// for each segment outstanding.
    fn samples_rate(&self) -> bool {
        false
    }

    /// Whether the controller sends less than it takes the network to carry, so that
    /// segments count as limited by the application. The sender asks after each
    /// acknowledgement.
    fn holds_back(&self) -> bool {
        false
    }

    /// Whether the window stays the controller's own during a fast recovery, and
    /// after a timeout, instead of proportional rate reduction's.
    fn rules_recovery(&self) -> bool {
        false
    }

    /// Whether a silence halves the window for each retransmission timeout that it lasts,
    /// as in Linux, instead of taking it back to the initial one at once.
    fn halves_when_idle(&self) -> bool {
        false
    }

    /// How many bytes may be in the network.
    fn window(&self) -> u64;

    /// `ssthresh` in bytes: where slow start ends, and the window at which a fast
    /// recovery aims. The largest number when there is none.
    fn threshold(&self) -> u64;

    /// How fast segments leave, counted in payload. `None` sends as much as the
    /// window allows at once, unless [`pacing`](TcpConfig::pacing) says otherwise; below
    /// 1 bit/s the rate is 1 bit/s.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// How many segments leave at once, if that is not the pacer's choice.
    fn burst(&self) -> Option<u32> {
        None
    }

    /// How many segments leave at once however low the rate is, if there are so many:
    /// `tcp_min_tso_segs` of Linux.
    fn least_burst(&self) -> u64 {
        2
    }
}

/// A sender's controller, and what it last answered.
#[derive(Debug)]
pub(super) struct Congestion {
    /// The window in force, in bytes: the controller's, or a fast recovery's own.
    pub(super) window: u64,
    /// The controller's pacing rate, or one that follows the window.
    pub(super) pacing_rate: Option<Rate>,
    /// Segments that leave at once at any rate.
    pub(super) least_burst: u64,
    /// Segments that leave at once, if the controller says, else zero.
    pub(super) burst: u32,
    /// Whether a controller without a rate is paced as its window says.
    pub(super) follows_window: bool,
    /// Whether the controller sets the window in recoveries too.
    pub(super) rules_recovery: bool,
    controller: Box<dyn Controller>,
}

impl Congestion {
    /// A controller for segments of `mss` bytes that starts with a window of
    /// `segments`.
    pub(super) fn new(config: &TcpConfig, mss: u32, segments: u32) -> Congestion {
        Congestion::established(config, mss, segments, Time::ZERO, None, (0, config.sack))
    }

    /// The same for a connection that comes up, whose handshake took `round_trip`, and for
    /// which `selective` acknowledgements have been agreed on.
    pub(super) fn established(
        config: &TcpConfig,
        mss: u32,
        segments: u32,
        now: Time,
        round_trip: Option<Span>,
        (seed, selective): (u32, bool),
    ) -> Congestion {
        let mss = u64::from(mss);
        let controller = (config.congestion.start)(&Start {
            mss,
            window: mss * u64::from(segments.max(1)),
            threshold: config.initial_ssthresh.map_or(u64::MAX, |bytes| bytes.0),
            slow_start_limit: mss * u64::from(config.slow_start_limit.max(1)),
            slow_start: config.slow_start,
            paced: config.pacing,
            now,
            round_trip,
            seed,
            selective,
        });
        let rules_recovery = controller.rules_recovery();
        let follows_window = config.pacing && controller.pacing_rate().is_none();
        let mut congestion = Congestion {
            window: 0,
            pacing_rate: None,
            least_burst: 0,
            burst: 0,
            follows_window,
            rules_recovery,
            controller,
        };
        congestion.adopt();
        congestion
    }

    pub(super) fn samples_rate(&self) -> bool {
        self.controller.samples_rate()
    }

    pub(super) fn holds_back(&self) -> bool {
        self.controller.holds_back()
    }

    /// A recovery sets the window, if that is not left to the controller.
    pub(super) fn set_window(&mut self, window: u64) {
        if !self.rules_recovery {
            self.window = window;
        }
    }

    /// `ssthresh`, in bytes.
    pub(super) fn threshold(&self) -> u64 {
        self.controller.threshold()
    }

    #[inline]
    pub(super) fn on_ack(&mut self, ack: &Ack) {
        self.controller.on_ack(ack);
        if ack.phase == Phase::Recovery && !self.rules_recovery {
            self.adopt_rate();
        } else {
            self.adopt();
        }
    }

    /// A loss is found with `flight` bytes outstanding.
    pub(super) fn on_loss(&mut self, flight: u64) {
        self.controller.on_loss(&Loss { window: self.window, flight });
        self.adopt();
    }

    /// A mark is echoed with `flight` bytes outstanding.
    pub(super) fn on_ecn(&mut self, flight: u64) {
        self.controller.on_ecn(&Loss { window: self.window, flight });
        self.adopt();
    }

    /// The timer runs out and leaves `in_flight` bytes in the network.
    pub(super) fn on_timeout(&mut self, in_flight: u64) {
        self.controller.on_timeout(in_flight);
        self.adopt();
    }

    pub(super) fn on_segment_lost(&mut self, segment: &LostSegment) {
        self.controller.on_segment_lost(segment);
    }

    /// What was before the latest reduction is restored.
    pub(super) fn on_spurious_recovery(&mut self, before: &Before) {
        if !self.rules_recovery {
            self.controller.on_recovered(self.window);
        }
        self.controller.on_spurious_recovery(before);
        self.adopt();
    }

    pub(super) fn on_restart(&mut self, now: Time) {
        self.controller.on_restart(now);
        if self.rules_recovery {
            self.adopt();
        } else {
            self.adopt_rate();
        }
    }

    /// Data is to be sent after a silence of so many retransmission timeouts.
    pub(super) fn on_idle(&mut self, initial: u64, timeouts: u64) {
        let initial = if self.controller.halves_when_idle() {
            let halvings = u32::try_from(timeouts).unwrap_or(u32::MAX);
            initial.max(self.window.checked_shr(halvings).unwrap_or(0))
        } else {
            initial
        };
        self.controller.on_idle(initial);
        self.adopt();
    }

    /// A fast recovery ends and leaves `window` bytes.
    pub(super) fn on_recovered(&mut self, window: u64) {
        self.controller.on_recovered(window);
        self.adopt();
    }

    fn adopt(&mut self) {
        self.window = self.controller.window();
        self.adopt_rate();
    }

    fn adopt_rate(&mut self) {
        if self.follows_window {
            return;
        }
        self.pacing_rate = self.controller.pacing_rate().map(|rate| rate.max(Rate(1)));
        // Nobody asks for it without a rate.
        if self.pacing_rate.is_some() {
            self.least_burst = self.controller.least_burst();
            self.burst = self.controller.burst().map_or(0, |segments| segments.max(1));
        }
    }

    /// Paces what has no rate of its own: twice the window per round trip in the first
    /// half of slow start, when the window doubles, and 1.2 times the window later
    /// (Linux 7.3, `tcp_update_pacing_rate`). With more than a window `outstanding`
    /// that much counts.
    pub(super) fn follow_window(&mut self, smoothed: Option<Span>, outstanding: u64) {
        let Some(round_trip) = smoothed else { return };
        let doubles = self.window < self.threshold() / 2;
        let percent = if doubles { 200 } else { 120 };
        let bits = u128::from(self.window.max(outstanding)) * 8 * percent / 100;
        let per_second = bits * u128::from(Span::seconds(1).0) / u128::from(round_trip.0.max(1));
        self.pacing_rate = Some(Rate(u64::try_from(per_second).unwrap_or(u64::MAX).max(1)));
        self.least_burst = self.controller.least_burst();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of a thousand bytes make the arithmetic readable.
    pub(super) const MSS: u64 = 1_000;

    /// A connection with this round trip and a window of ten segments.
    pub(super) fn start(round_trip: Span) -> Start {
        Start {
            mss: MSS,
            window: 10 * MSS,
            threshold: u64::MAX,
            slow_start_limit: 2 * MSS,
            slow_start: None,
            paced: false,
            now: Time::ZERO,
            round_trip: Some(round_trip),
            seed: 1,
            selective: true,
        }
    }

    /// An acknowledgement of a segment, when nothing is lost.
    pub(super) fn ack(now: Time, delay: Option<Span>, acknowledged: u64, sent: u64) -> Ack {
        Ack {
            now,
            acked: MSS,
            delivered: MSS,
            round_trip: delay,
            latest_round_trip: delay,
            smoothed_round_trip: delay,
            in_flight: sent - acknowledged.min(sent),
            in_flight_before: sent - acknowledged.min(sent) + MSS,
            lost: 0,
            marked: 0,
            departure: now,
            acknowledged,
            sent,
            rate: None,
            window_limited: true,
            phase: Phase::Open,
        }
    }
}
