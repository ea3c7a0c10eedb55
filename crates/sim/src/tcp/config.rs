//! What an endpoint is configured with, and the named profiles.

use tidegate_core::{Bytes, Span};

use super::congestion::{BBR, CUBIC, Entry, NEW_RENO, PRAGUE, SlowStart};
use super::ns3::Ns3;

/// When a receiver may hold back its acknowledgement (RFC 5681 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// How many segments may come in before an acknowledgement goes out at once.
    pub segments: u32,
    /// How long the first of them waits for it at most.
    pub timeout: Span,
}

/// Settings of one end of a connection, shared by all connections that use them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// The most payload in one segment, in bytes. TCP options do not reduce it: with
    /// timestamps, 1 448 fills an Ethernet frame. At most 65 495.
    pub mss: u32,
    /// Whether the SYN carries the maximum segment size option. Without it the
    /// peer uses its own [`mss`](TcpConfig::mss), not the 536 bytes of RFC 9293.
    pub mss_option: bool,
    /// Initial congestion window, in segments.
    pub initial_window: u32,
    /// How often the SYN may be lost before the initial window is one segment: never in
    /// RFC 5681, once in RFC 6928 section 2.
    pub lost_syns: u32,
    /// Slow start threshold of a new connection; `None` is unlimited.
    pub initial_ssthresh: Option<Bytes>,
    /// The most segments that one acknowledgement adds to the window in slow
    /// start: 1 in RFC 5681, 2 for the byte counting of RFC 3465, which doubles
    /// the window in each round trip even with delayed acknowledgements. Linux has no
    /// limit.
    pub slow_start_limit: u32,
    /// How slow start ends; `None` leaves it to the controller: by HyStart for CUBIC, as
    /// in Linux, and with a loss for the others.
    pub slow_start: Option<SlowStart>,
    /// Receive buffer, and so the largest window that is advertised. Above
    /// 65 535 the SYN carries the window scale option; the peer is taken to
    /// understand it.
    pub receive_window: Bytes,
    /// Retransmission timeout before the first round trip has been measured.
    pub initial_rto: Span,
    /// Lower limit of the retransmission timeout.
    pub min_rto: Span,
    /// Upper limit of the retransmission timeout, backed off or not.
    pub max_rto: Span,
    /// `G` in RFC 6298: least difference of round trips that the clock can tell.
    pub clock_granularity: Span,
    /// Whether RTTVAR is the largest deviation within a round trip and falls once per round
    /// trip, as in Linux, and does not follow each sample. Four times it is then no less
    /// than [`clock_granularity`](TcpConfig::clock_granularity).
    pub rttvar_per_round: bool,
    /// The tick of the host, by which its timers fire as in Linux: those of retransmissions,
    /// tail loss probes, the reordering window and delayed acknowledgements. Pacing stays
    /// exact. Zero for timers that are exact. All ticks begin at time zero, as on one host.
    pub timer_tick: Span,
    /// Delayed acknowledgements; `None` acknowledges every segment.
    pub delayed_ack: Option<DelayedAck>,
    /// Whether the first data segment of a connection is acknowledged at once, as
    /// in ns-3; Linux does so with the first few.
    pub ack_first_segment: bool,
    /// Whether acknowledgements are delayed as in Linux: not those of the first segments
    /// of a connection, nor of the end of a write, and others for as long as segments
    /// have been apart lately, from [`DelayedAck::timeout`] to 200 ms. Every other full
    /// segment is acknowledged at once, whatever [`DelayedAck::segments`] says.
    pub quick_acks: bool,
    /// Whether the first two duplicate acknowledgements each release new data
    /// (RFC 3042). With SACK they always do, by RFC 6675.
    pub limited_transmit: bool,
    /// Selective acknowledgements (RFC 2018, 2883, 6675), if the peer has them.
    pub sack: bool,
    /// Loss detection by time and tail loss probes (RFC 8985); needs
    /// [`sack`](TcpConfig::sack).
    pub rack_tlp: bool,
    /// Whether a loss that proves to be none is undone, as in Linux: by timestamps, by
    /// D-SACK and after a timeout by F-RTO (RFC 5682); needs [`sack`](TcpConfig::sack).
    pub undo: bool,
    /// What sets the congestion window and the pacing rate.
    pub congestion: &'static Entry,
    /// Whether a controller without a pacing rate of its own is paced as its window says
    /// ([`Controller::pacing_rate`](super::congestion::Controller::pacing_rate)). Linux
    /// does so on hosts whose queue discipline is `fq`, and for applications that ask
    /// for it (`SO_MAX_PACING_RATE`).
    pub pacing: bool,
    /// Which controllers transfers have instead, each with its share: a weight among the
    /// others. Empty when all have [`congestion`](TcpConfig::congestion).
    pub mix: Vec<(&'static Entry, u32)>,
    /// Explicit congestion notification (RFC 3168), if the peer has it. A
    /// [scalable](Entry::scalable) controller has accurate ECN (RFC 9768) in any case.
    pub ecn: bool,
    /// Whether the FIN leaves in a segment of its own when all that was written could be
    /// sent at once. So it does in any system in which writing and closing are two calls,
    /// and it shows the loss of the last segment before it. Otherwise, and always when
    /// what was written has to wait, the last segment carries it.
    pub separate_fin: bool,
    /// Whether segments carry the timestamps option: 12 bytes in each. With SACK they
    /// time what was sent again, and a handshake even if a SYN was lost; other round trips
    /// are measured as they are without it.
    pub timestamps_option: bool,
    /// Whether the handshake is timed from the first SYN even when the SYN was sent
    /// again, and the initial window kept. That breaks Karn's rule, but ns-3.37
    /// does it. Use it for comparisons with ns-3 only: one lost SYN makes the
    /// timeout 9 s.
    pub time_resent_syn: bool,
    /// Whether every acknowledgement of new data ends the back-off of the timeout,
    /// and not only one that measures a round trip (RFC 6298 section 5). ns-3.37
    /// does so, and so do hosts whose timestamps make each one a measurement.
    pub any_ack_ends_backoff: bool,
    /// In what the recovery without SACK departs from the RFCs as ns-3.37 does.
    pub ns3: Ns3,
    /// How often a SYN is sent again before the connection is given up, besides those
    /// of [`linear_syn_timeouts`](TcpConfig::linear_syn_timeouts).
    pub syn_retries: u32,
    /// How many timeouts of a SYN leave the timeout as it is before it doubles each time.
    /// The answer to a SYN backs off from the first.
    pub linear_syn_timeouts: u32,
    /// How many timeouts in a row without progress the connection survives.
    pub data_retries: u32,
}

/// Default of Linux for either retry limit; about a quarter of an hour.
const DATA_RETRIES: u32 = 15;
/// Default of Linux.
const SYN_RETRIES: u32 = 6;
/// Largest timeout: RFC 6298 (2.5) allows any of 60 s and more, Linux has 120 s.
const MAX_RTO: Span = Span::seconds(120);
/// Tick of a kernel with 1 000 of them per second, and the default of ns-3.
const CLOCK_GRANULARITY: Span = Span::millis(1);

/// 65 535 less 40 bytes of headers.
const LARGEST_SEGMENT: u32 = 65_495;

/// Of the 20 000 most popular sites 36% had CUBIC and 22% BBR in 2019; by traffic BBR's
/// share is larger, more than 40% of the whole (Mishra 2019).
const CENSUS: &[(&Entry, u32)] = &[(CUBIC, 36), (BBR, 22)];

/// The named profiles, with what each stands for.
pub const PROFILES: &[(&str, &str)] = &[
    ("papers", "NewReno without SACK, initial window 2, timeouts of 3 s at first and 1 s at least"),
    (
        "today",
        "as a current Linux: CUBIC, HyStart, SACK, RACK-TLP, initial window 10, quick \
         acknowledgements, timeouts of 1 s at first, 200 ms at least",
    ),
    ("today-bbr", "the settings of today with BBR"),
    ("l4s", "the settings of today with Prague, accurate ECN and ECT(1)"),
    ("mix", "the settings of today, CUBIC for 36 of 58 transfers and BBR for 22"),
];

impl TcpConfig {
    /// The settings of the simulations in the papers.
    #[must_use]
    pub fn papers() -> TcpConfig {
        TcpConfig {
            mss: 1_460,
            mss_option: false,
            initial_window: 2,
            lost_syns: 0,
            initial_ssthresh: None,
            slow_start_limit: 1,
            slow_start: None,
            receive_window: Bytes(65_535),
            initial_rto: Span::seconds(3),
            min_rto: Span::seconds(1),
            max_rto: MAX_RTO,
            clock_granularity: CLOCK_GRANULARITY,
            rttvar_per_round: false,
            timer_tick: Span::ZERO,
            delayed_ack: Some(DelayedAck { segments: 2, timeout: Span::millis(200) }),
            ack_first_segment: false,
            quick_acks: false,
            limited_transmit: false,
            sack: false,
            rack_tlp: false,
            undo: false,
            congestion: NEW_RENO,
            pacing: false,
            mix: Vec::new(),
            ecn: false,
            separate_fin: false,
            timestamps_option: false,
            time_resent_syn: false,
            any_ack_ends_backoff: false,
            ns3: Ns3::default(),
            syn_retries: SYN_RETRIES,
            linear_syn_timeouts: 0,
            data_retries: DATA_RETRIES,
        }
    }

    /// What a current Linux does by default.
    #[must_use]
    pub fn today() -> TcpConfig {
        TcpConfig {
            // 1 500 less 20 of IPv4, 20 of TCP and 12 of timestamps.
            mss: 1_448,
            mss_option: true,
            initial_window: 10,
            lost_syns: 1,
            // `tcp_syn_linear_timeouts` of Linux.
            linear_syn_timeouts: 4,
            // Whatever an acknowledgement covers.
            slow_start_limit: u32::MAX,
            receive_window: Bytes(4 << 20),
            initial_rto: Span::seconds(1),
            min_rto: Span::millis(200),
            // Linux applies its floor of 200 ms to the variation and not to the
            // sum: RTO = SRTT + max(200 ms, 4 RTTVAR). Otherwise a path of
            // constant delay above 200 ms would time out in every recovery.
            clock_granularity: Span::millis(200),
            rttvar_per_round: true,
            delayed_ack: Some(DelayedAck { segments: 2, timeout: Span::millis(40) }),
            quick_acks: true,
            limited_transmit: true,
            sack: true,
            rack_tlp: true,
            undo: true,
            congestion: CUBIC,
            separate_fin: true,
            timestamps_option: true,
            // With timestamps every acknowledgement is a measurement.
            any_ack_ends_backoff: true,
            ..TcpConfig::papers()
        }
    }

    /// The MSS in use: at least a byte, and no more than an IPv4 packet holds.
    pub(super) fn segment_size(&self) -> u32 {
        self.mss.clamp(1, LARGEST_SEGMENT)
    }

    /// The profile of this name: one of [`PROFILES`].
    #[must_use]
    pub fn profile(name: &str) -> Option<TcpConfig> {
        match name {
            "papers" => Some(TcpConfig::papers()),
            "today" => Some(TcpConfig::today()),
            "today-bbr" => Some(TcpConfig { congestion: BBR, ..TcpConfig::today() }),
            "l4s" => Some(TcpConfig { congestion: PRAGUE, ..TcpConfig::today() }),
            "mix" => Some(TcpConfig { mix: CENSUS.to_vec(), ..TcpConfig::today() }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_profile_exists() {
        for (name, _) in PROFILES {
            assert!(TcpConfig::profile(name).is_some(), "{name}");
        }
        assert_eq!(TcpConfig::profile("tomorrow"), None);
    }
}
