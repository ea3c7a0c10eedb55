//! The sending half: what may be sent when, and the state that all recovery
//! algorithms share.
//!
//! Offsets count in our own numbers: 0 is the SYN, 1 the first payload byte, and
//! the FIN stands after the last one. SND.NXT is always the highest that was ever
//! sent; going back after a timeout is marking records lost, and
//! [`Sender::next_segment`] sends lost segments before new ones.
//!
//! The sender does not build headers. The endpoint asks for segments until
//! there is none, so that acknowledgement and window are those of the moment.
//! [`output`] decides which one is next, and [`timers`] what follows when none is answered.

mod output;
mod timers;

use std::mem;

use tidegate_core::{Span, Time};

use super::accurate_ecn::Feedback;
use super::config::TcpConfig;
use super::congestion::{Ack, Congestion, RateSample};
use super::delivery::Delivery;
use super::header::{Flags, Header, SequenceSpace};
use super::pacing::Pacer;
use super::recovery::sack::Sack;
use super::rto::RoundTrip;
use super::scoreboard::{Scoreboard, Taken};
use super::statistics::Statistics;

/// Duplicate acknowledgements that mean a loss (RFC 5681 section 3.2).
pub(super) const DUPLICATE_THRESHOLD: u32 = 3;

/// A segment to send now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub(super) start: u64,
    pub(super) payload: u32,
    pub(super) fin: bool,
    /// Whether it is new data, which queues may mark and which carries CWR.
    pub(super) new_data: bool,
}

/// What a sender is doing about losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing.
    Open,
    /// Fast recovery, until `recover` is acknowledged.
    Recovery,
    /// After a timeout, until `recover` is acknowledged.
    Loss,
}

#[derive(Debug)]
pub(super) struct Sender {
    /// SND.UNA.
    pub(super) unacknowledged: u64,
    /// SND.NXT.
    pub(super) next: u64,
    /// One past the last byte written.
    end: u64,
    /// SND.UNA + SND.WND: the right edge of the peer's window, as the peer has set
    /// it. An acknowledgement that is newer than its window does not move it.
    edge: u64,
    /// Largest window the peer has advertised.
    largest_window: u64,
    /// SND.WL1 and SND.WL2: the segment that last set the window.
    window_sequence: u64,
    window_acknowledgement: u64,
    pub(super) board: Scoreboard,
    /// Bytes in the network, and bytes ever lost, before the present acknowledgement.
    before: (u64, u64),
    pub(super) congestion: Congestion,
    pub(super) pacer: Pacer,
    pub(super) round_trip: RoundTrip,
    /// Retransmission or persist timer.
    pub(super) retransmit_at: Time,
    /// Tail loss probe (RFC 8985 section 7).
    pub(super) probe_at: Time,
    /// End of the reordering window (RFC 8985 section 6.3).
    pub(super) reorder_at: Time,
    /// When pacing lets the next segment go, if nothing else holds it back.
    pub(super) release_at: Time,
    /// When the SYN was first sent.
    syn_sent: Time,
    /// When data, or the SYN, was last sent, for the first time or again.
    last_sent: Time,
    /// The offset at which recovery is over, or may begin again.
    pub(super) recover: u64,
    /// The reduction for a mark covers everything below this offset (RFC 3168
    /// section 6.1.2).
    pub(super) reduced_until: u64,
    /// Duplicate acknowledgements in a row.
    pub(super) duplicates: u32,
    /// Bytes sent by limited transmit.
    pub(super) limited: u32,
    /// Timeouts in a row.
    timeouts: u32,
    pub(super) mss: u32,
    pub(super) phase: Phase,
    /// The window, and nothing else, held back the last segment, or would have
    /// without pacing.
    window_limited: bool,
    /// The first lost segment goes out whatever window and pacing say.
    pub(super) urgent: bool,
    /// The application has closed.
    closing: bool,
    /// The FIN does not leave with data: what was written before it is leaving at once.
    fin_apart: bool,
    fin_sent: bool,
    /// All that is outstanding was sent into a closed window.
    pub(super) probing: bool,
    /// A partial acknowledgement has been seen in this recovery.
    pub(super) partial_seen: bool,
    /// The next new data carries CWR.
    pub(super) reduction_untold: bool,
    limited_transmit: bool,
    /// What is known of marks, if the peer counts them.
    pub(super) feedback: Option<Feedback>,
    /// The flags of the latest acknowledgement.
    flags: Flags,
    pub(super) sack: Option<Box<Sack>>,
    pub(super) statistics: Statistics,
}

impl Sender {
    pub(super) fn new(config: &TcpConfig) -> Sender {
        Sender {
            unacknowledged: 0,
            next: 0,
            end: 1,
            edge: 0,
            largest_window: 0,
            window_sequence: 0,
            window_acknowledgement: 0,
            board: Scoreboard::default(),
            before: (0, 0),
            congestion: Congestion::new(config, config.segment_size(), config.initial_window),
            pacer: Pacer::default(),
            round_trip: RoundTrip::new(config),
            retransmit_at: Time::FAR_FUTURE,
            probe_at: Time::FAR_FUTURE,
            reorder_at: Time::FAR_FUTURE,
            release_at: Time::FAR_FUTURE,
            syn_sent: Time::ZERO,
            last_sent: Time::ZERO,
            recover: 0,
            reduced_until: 0,
            duplicates: 0,
            limited: 0,
            timeouts: 0,
            mss: config.segment_size(),
            phase: Phase::Open,
            window_limited: false,
            urgent: false,
            closing: false,
            fin_apart: false,
            fin_sent: false,
            probing: false,
            partial_seen: false,
            reduction_untold: false,
            limited_transmit: config.limited_transmit,
            feedback: None,
            flags: Flags::empty(),
            sack: None,
            statistics: Statistics::default(),
        }
    }

    pub(super) fn write(&mut self, bytes: u64) {
        if !self.closing {
            self.note_gap();
            self.end = self.end.saturating_add(bytes);
        }
    }

    /// Marks what is sent next as limited by the application, if that has nothing left
    /// to send and nothing else holds the sender back (Linux 7.3,
    /// `tcp_rate_check_app_limited`).
    fn note_gap(&mut self) {
        let in_flight = self.board.pipe();
        let idle = self.end.saturating_sub(self.next) < u64::from(self.mss)
            && in_flight < self.congestion.window
            && !self.board.has_awaiting();
        if let Some(delivery) = &mut self.board.delivery
            && idle
        {
            delivery.mark_limited(in_flight);
        }
    }

    pub(super) fn close(&mut self, config: &TcpConfig) {
        self.fin_apart = config.separate_fin && !self.closing;
        self.closing = true;
    }

    /// Whether a segment ends what the application has written so far.
    pub(super) fn ends_write(&self, segment: &Outgoing) -> bool {
        segment.start + u64::from(segment.payload) == self.end
    }

    /// Payload bytes that the peer has acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.unacknowledged.min(self.end).saturating_sub(1)
    }

    pub(super) fn fin_acknowledged(&self) -> bool {
        self.fin_sent && self.unacknowledged > self.end
    }

    /// Bytes in the network: FlightSize of RFC 5681, `pipe` of RFC 6675.
    pub(super) fn bytes_in_flight(&self) -> u64 {
        self.board.pipe()
    }

    /// The SYN is sent, for the first time or again.
    pub(super) fn on_syn_sent(&mut self, config: &TcpConfig, now: Time) {
        if self.next == 1 {
            // A repeated SYN of the peer may have asked for it without a timeout.
            // That measures no round trip either.
            self.timeouts = self.timeouts.max(1);
        } else {
            self.next = 1;
            self.syn_sent = now;
        }
        self.last_sent = now;
        self.retransmit_at = self.round_trip.deadline(config, now);
    }

    /// The timer of the SYN, or of the `answer` to one, has run out; `false` means to give
    /// up.
    pub(super) fn on_syn_timeout(&mut self, config: &TcpConfig, answer: bool) -> bool {
        let linear = if answer { 0 } else { config.linear_syn_timeouts };
        self.timeouts += 1;
        self.statistics.timeouts += 1;
        if self.timeouts > linear {
            self.round_trip.back_off();
        }
        self.timeouts <= config.syn_retries + linear
    }

    /// The handshake is complete: our SYN has been acknowledged by a segment
    /// that starts at `sequence`.
    pub(super) fn on_established(
        &mut self,
        config: &TcpConfig,
        now: Time,
        (mss, timestamps): (u32, bool),
        window: u32,
        sequence: u64,
        (seed, selective): (u32, bool),
    ) {
        self.unacknowledged = 1;
        let mut initial_window = config.initial_window;
        if self.timeouts > config.lost_syns && !config.time_resent_syn {
            // RFC 5681 section 3.1.
            initial_window = 1;
        }
        if self.timeouts == 0 || config.time_resent_syn {
            self.round_trip.sample(config, now.since(self.syn_sent), (1, 1));
        } else if timestamps {
            // They tell which SYN has been answered (RFC 7323 section 4): the last one,
            // as long as a round trip is less than the timeout.
            self.round_trip.forgive();
            self.round_trip.sample(config, now.since(self.last_sent), (1, 1));
        } else {
            // RFC 6298 (5.7).
            self.round_trip.syn_was_lost();
        }
        let samples_rate = self.congestion.samples_rate();
        if samples_rate || (mss, initial_window) != (self.mss, config.initial_window) {
            self.mss = mss;
            let handshake = self.round_trip.smoothed();
            self.congestion = Congestion::established(
                config,
                mss,
                initial_window,
                now,
                handshake,
                (seed, selective),
            );
        }
        if samples_rate {
            // Whatever is sent first follows a gap.
            let mut delivery = Delivery::new(self.round_trip.smoothed());
            delivery.mark_limited(0);
            self.board.delivery = Some(Box::new(delivery));
        }
        self.timeouts = 0;
        self.last_sent = now;
        self.retransmit_at = Time::FAR_FUTURE;
        self.largest_window = u64::from(window);
        self.edge = 1 + self.largest_window;
        self.window_sequence = sequence;
        self.window_acknowledgement = 1;
        self.pace_by_window();
    }

    /// An acceptable acknowledgement of a synchronized connection.
    #[inline]
    pub(super) fn on_acknowledgement(
        &mut self,
        config: &TcpConfig,
        now: Time,
        (offset, sequence): (u64, u64),
        header: &Header,
        space: SequenceSpace,
    ) {
        let window = u64::from(header.window);
        let old_edge = self.edge;
        // RFC 9293 section 3.10.7.4: never from an older segment. One that
        // acknowledges more is newer, even if it is a retransmission.
        let known = (self.window_sequence, self.window_acknowledgement);
        if (sequence, offset) >= known || offset > self.unacknowledged {
            self.window_sequence = self.window_sequence.max(sequence);
            self.window_acknowledgement = offset;
            self.edge = offset + window;
            self.largest_window = self.largest_window.max(window);
        }
        self.before = (self.board.pipe(), self.board.lost());
        if self.probing {
            self.on_probe_answer(offset);
        }
        self.flags = header.flags;
        if self.feedback.is_none() && config.ecn && header.flags.contains(Flags::ECE) {
            self.on_echo(config, now);
            // No growth on such an acknowledgement (RFC 3168 section 6.1.2).
            self.window_limited = false;
        }
        if self.sack.is_some() {
            self.on_selective(config, now, offset, header, space);
        } else if offset > self.unacknowledged {
            let taken = self.board.acknowledge(offset, |_| ());
            self.on_cumulative(config, now, offset, taken);
        } else if offset == self.unacknowledged
            && !self.board.is_empty()
            && !self.probing
            && header.payload == 0
            && !header.flags.intersects(Flags::SYN | Flags::FIN)
            && offset + window == old_edge
        {
            // A duplicate acknowledgement by RFC 5681 section 2.
            self.on_duplicate(config);
        }
        self.pace_by_window();
    }

    /// Has the pacing rate follow the window, if the controller leaves it to that.
    #[inline]
    fn pace_by_window(&mut self) {
        if self.congestion.follows_window {
            let outstanding = self.next - self.unacknowledged;
            self.congestion.follow_window(self.round_trip.smoothed(), outstanding);
        }
    }

    /// Does what every acknowledgement of new data does, before recovery has its
    /// say. Returns how many payload bytes more it covers.
    #[inline]
    pub(super) fn advance(&mut self, offset: u64) -> u64 {
        // The FIN, if it is covered, is not payload.
        let acked = offset.min(self.end).saturating_sub(self.unacknowledged);
        self.unacknowledged = offset;
        self.duplicates = 0;
        self.limited = 0;
        self.timeouts = 0;
        acked
    }

    /// Takes the round trip that an acknowledgement measures, if it measures one.
    #[inline]
    pub(super) fn measure(&mut self, config: &TcpConfig, now: Time, taken: Taken) {
        if let Some(sent_at) = taken.timed {
            let offsets = (self.unacknowledged, self.next);
            self.round_trip.sample(config, now.since(sent_at), offsets);
        } else if config.any_ack_ends_backoff {
            self.round_trip.forgive();
        }
    }

    /// Tells the controller of an acknowledgement by which `acked` bytes more are
    /// covered and `delivered` bytes more have arrived.
    #[inline]
    pub(super) fn tell(
        &mut self,
        now: Time,
        acked: u64,
        delivered: u64,
        taken: Taken,
        phase: Phase,
    ) {
        let (rate, latest_round_trip) = if self.board.delivery.is_some() {
            self.measure_rate(now, delivered)
        } else {
            (None, taken.latest.map(|sent_at| now.since(sent_at)))
        };
        let marked = match &mut self.feedback {
            Some(feedback) => {
                let mss = u64::from(self.mss);
                feedback.on_acknowledgement(self.flags, delivered.div_ceil(mss)) * mss
            }
            None => 0,
        };
        let (in_flight_before, lost_before) = self.before;
        self.congestion.on_ack(&Ack {
            now,
            acked,
            delivered,
            round_trip: taken.timed.map(|sent_at| now.since(sent_at)),
            latest_round_trip,
            smoothed_round_trip: self.round_trip.smoothed(),
            in_flight: self.board.pipe(),
            in_flight_before,
            lost: self.board.lost() - lost_before,
            marked,
            departure: self.next_departure(now),
            acknowledged: self.unacknowledged,
            sent: self.next,
            rate,
            window_limited: self.window_limited,
            phase,
        });
        if self.board.delivery.is_some() {
            self.note_holding_back();
        }
    }

    /// What an acknowledgement measures for a controller that samples rates. This and
    /// [`note_holding_back`](Sender::note_holding_back) stay out of line, so that others
    /// pay for no more than a test.
    #[inline(never)]
    fn measure_rate(&mut self, now: Time, delivered: u64) -> (Option<RateSample>, Option<Span>) {
        let measured = match &mut self.board.delivery {
            Some(delivery) => delivery.measure(now, delivered),
            None => (None, None),
        };
        self.report_losses();
        measured
    }

    #[inline(never)]
    fn note_holding_back(&mut self) {
        let in_flight = self.board.pipe();
        if let Some(delivery) = &mut self.board.delivery
            && self.congestion.holds_back()
        {
            delivery.mark_limited(in_flight);
        }
    }

    /// Tells the controller what has been found lost.
    pub(super) fn report_losses(&mut self) {
        if let Some(delivery) = &mut self.board.delivery {
            for segment in delivery.found_lost() {
                self.congestion.on_segment_lost(&segment);
            }
        }
    }

    /// FlightSize: bytes outstanding when a loss is found, without those of
    /// limited transmit (RFC 5681 section 3.2). In a recovery that marks segments,
    /// most of what is unacknowledged has left the network, and the flight is
    /// `pipe`. In one that follows it at once, the flight is at most the window that
    /// the first has left (RFC 9438 section 4.6): if what has arrived counted,
    /// windows would grow by recovering.
    pub(super) fn flight(&self) -> u64 {
        let marks =
            self.phase == Phase::Loss || self.phase == Phase::Recovery && self.sack.is_some();
        if marks {
            return self.board.pipe();
        }
        let sent = self.next.min(self.end) - self.unacknowledged.min(self.end);
        let flight = sent - u64::from(self.limited).min(sent);
        if self.sack.is_some() { flight.min(self.congestion.window) } else { flight }
    }

    /// Begins a fast recovery with `flight` bytes outstanding: the threshold is set, the
    /// window is the caller's.
    pub(super) fn enter_recovery(&mut self, flight: u64) {
        // A window that a mark has just reduced is not reduced for a loss
        // among the same segments.
        if self.unacknowledged >= self.reduced_until {
            self.congestion.on_loss(flight);
            self.reduction_untold = true;
        }
        self.phase = Phase::Recovery;
        self.recover = self.next;
        self.partial_seen = false;
        // Whoever rules recovery has the first retransmission wait for window and pace.
        self.urgent = !self.congestion.rules_recovery || self.sack.is_none();
        self.statistics.fast_recoveries += 1;
    }

    /// ECE: the window is reduced as for a loss, once per window of data
    /// (RFC 3168 section 6.1.2).
    fn on_echo(&mut self, config: &TcpConfig, now: Time) {
        if self.phase != Phase::Open || self.unacknowledged < self.reduced_until {
            return;
        }
        if self.board.is_empty() {
            return;
        }
        if self.congestion.window <= u64::from(self.mss) {
            // The window cannot shrink any more: the rate does, by the timer.
            self.restart_timer(config, now);
        }
        self.congestion.on_ecn(self.flight());
        if let Some(sack) = &mut self.sack {
            sack.forget_reduction();
        }
        self.reduced_until = self.next;
        self.reduction_untold = true;
        self.statistics.ecn_reductions += 1;
    }

    /// Whether the segment just handed out has to carry CWR.
    pub(super) fn take_reduction(&mut self) -> bool {
        mem::take(&mut self.reduction_untold)
    }
}
