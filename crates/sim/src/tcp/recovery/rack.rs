//! Loss detection by time, and tail loss probes: RACK-TLP (RFC 8985).
//!
//! A segment is lost when one that was sent later has arrived and a round trip
//! and a reordering window have passed. The RFC looks at every outstanding
//! segment for each acknowledgement. Here the board has the segments that were
//! sent once in order of sending, with a pointer past those already decided, and
//! a queue has those that were sent again. Both are looked at only as far as the
//! latest segment that has arrived.

use std::collections::VecDeque;

use tidegate_core::{Span, Time};

use super::prr::Reduction;
use super::sack::Report;
use crate::tcp::config::TcpConfig;
use crate::tcp::header::{echoes_before, timestamp};
use crate::tcp::ranges::Ranges;
use crate::tcp::scoreboard::{Record, Scoreboard, sent_after};
use crate::tcp::sender::{DUPLICATE_THRESHOLD, Outgoing, Phase, Sender};
use crate::tcp::ticks;

/// `TLP.max_ack_delay`: how long a peer may hold back its acknowledgement of a
/// single segment (section 7.2; its authors' Linux has 200 ms).
const MAX_ACK_DELAY: Span = Span::millis(200);
/// Probe timeout without a round-trip estimate (section 7.2).
const PROBE_WITHOUT_ESTIMATE: Span = Span::seconds(1);
/// Recoveries without a duplicate after which a widened reordering window is
/// narrow again (section 6.2, step 4).
const WINDOW_PERSISTENCE: u32 = 16;

/// State of section 5.2 and 7.1; the names of the RFC are in the comments.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// The latest transmission that has arrived. The RFC orders transmissions by
    /// `RACK.xmit_ts` and, within a clock tick, by `RACK.end_seq`. Here all segments
    /// of a burst have the same time, so a retransmission among them would always
    /// seem older than new data before it. Transmissions are numbered instead.
    latest: Option<u32>,
    /// `RACK.rtt`.
    round_trip: Span,
    /// `RACK.min_RTT` (section 6.2, step 1). The handshake's round trip is the first:
    /// a SYN passes a queue that is empty yet and takes less time on each link, so
    /// no retransmission of a full segment is faster. Without it the answer to a
    /// tail loss probe would often be faster than any data before it, and be taken
    /// for the original's.
    ///
    /// It is the least of the whole connection. The RFC prefers that of a recent
    /// window (Linux: 300 s), so that a connection which moves to a longer path
    /// learns of it. Here no path changes, so a window could only forget the true
    /// minimum during a queue that stands for minutes.
    least_round_trip: Span,
    /// `RACK.fack`.
    forward: u64,
    /// `RACK.dsack_round`.
    duplicate_round: Option<u64>,
    /// `RACK.reo_wnd_mult`.
    multiplier: u32,
    /// `RACK.reo_wnd_persist`.
    persistence: u32,
    reordering_seen: bool,
    /// Segments below are sacked, lost, or in `repeats`.
    decided: u64,
    /// Segments sent again, in order of sending: start and place in the order.
    repeats: VecDeque<(u64, u32)>,
    /// `TLP.end_seq`, zero for Nil.
    probe_end: u64,
    /// `TLP.is_retrans`.
    probe_repeats: bool,
    /// A round trip has been measured since the last probe.
    sampled: bool,
    /// How fast the present recovery sends.
    reduction: Reduction,
    /// Bytes that have arrived by what the present acknowledgement tells.
    delivered: u64,
    /// It, or the reordering timer, has found a retransmission lost.
    repeat_lost: bool,
}

impl Rack {
    /// `handshake` is the round trip of the handshake, if it was measured.
    pub(super) fn new(handshake: Option<Span>) -> Rack {
        Rack {
            latest: None,
            round_trip: Span::ZERO,
            least_round_trip: handshake.unwrap_or(Span(u64::MAX)),
            forward: 0,
            duplicate_round: None,
            multiplier: 1,
            persistence: 0,
            reordering_seen: false,
            decided: 0,
            repeats: VecDeque::new(),
            probe_end: 0,
            probe_repeats: false,
            sampled: handshake.is_some(),
            reduction: Reduction::default(),
            delivered: 0,
            repeat_lost: false,
        }
    }

    /// Whether a retransmission has been found lost since this was asked last.
    pub(super) fn take_lost_repeat(&mut self) -> bool {
        std::mem::take(&mut self.repeat_lost)
    }

    pub(super) fn on_sent(&mut self, bytes: u32) {
        self.reduction.on_sent(u64::from(bytes));
    }

    pub(super) fn on_retransmission(&mut self, record: &Record) {
        self.repeats.push_back((record.start, record.order));
    }

    pub(super) fn on_sample(&mut self) {
        self.sampled = true;
    }

    /// A recovery or a timeout repairs the loss that a probe may have found.
    pub(super) fn forget_probe(&mut self) {
        self.probe_end = 0;
    }

    /// A segment has arrived, by whichever report (section 6.2, steps 1 to 3). A cumulative
    /// acknowledgement says by the timestamp that it echoes, zero for none, which transmission
    /// that was. A report of SACK does not: its echo is of the last data in order.
    #[inline]
    pub(super) fn on_delivered(&mut self, now: Time, record: &Record, echo: u32) {
        self.delivered += u64::from(record.payload());
        let end = record.end();
        if end > self.forward {
            self.forward = end;
        } else if end < self.forward && !record.retransmitted() {
            self.reordering_seen = true;
        }
        let round_trip = now.since(record.sent_at);
        if !record.retransmitted() {
            self.least_round_trip = self.least_round_trip.min(round_trip);
        } else if round_trip < self.least_round_trip
            || echoes_before(echo, timestamp(record.sent_at))
        {
            // The original has arrived, not the retransmission.
            return;
        }
        self.round_trip = round_trip;
        if self.is_after_latest(record.order) {
            self.latest = Some(record.order);
        }
    }

    fn is_after_latest(&self, order: u32) -> bool {
        self.latest.is_none_or(|latest| sent_after(order, latest))
    }

    /// Takes in what an acknowledgement says of duplicates and probes. Returns
    /// whether a probe has repaired a loss, of which congestion control must hear
    /// (section 7.4.2).
    pub(super) fn on_acknowledgement(
        &mut self,
        offset: u64,
        next: u64,
        progress: bool,
        report: Report,
    ) -> bool {
        // Section 6.2, step 4, `RACK_update_reo_wnd`.
        if self.duplicate_round.is_some_and(|round| offset >= round) {
            self.duplicate_round = None;
        }
        if self.duplicate_round.is_none() && report.duplicate.is_some() {
            self.duplicate_round = Some(next);
            self.multiplier += 1;
            self.persistence = WINDOW_PERSISTENCE;
        }
        if self.probe_end == 0 || offset < self.probe_end {
            return false;
        }
        let own_duplicate = report.duplicate.is_some_and(|(_, end)| end == self.probe_end);
        let beyond = offset > self.probe_end;
        let plain_duplicate = !progress && !report.has_blocks;
        if !self.probe_repeats || own_duplicate || plain_duplicate {
            // New data, or both the original and the probe have arrived.
            self.probe_end = 0;
            false
        } else {
            if beyond {
                self.probe_end = 0;
            }
            beyond
        }
    }

    /// Retransmissions that a probe has in the network.
    pub(super) fn probes_out(&self) -> u32 {
        u32::from(self.probe_end != 0 && self.probe_repeats)
    }

    /// What was deemed lost is not: all is looked at anew.
    pub(super) fn reexamine(&mut self) {
        self.decided = 0;
    }

    /// The end of a recovery narrows the reordering window some day.
    pub(super) fn on_recovered(&mut self) {
        self.persistence = self.persistence.saturating_sub(1);
        if self.persistence == 0 {
            self.multiplier = 1;
        }
    }

    /// `RACK.reo_wnd` (section 6.2, step 4).
    fn reordering_window(&self, phase: Phase, sacked: u32, smoothed: Option<Span>) -> Span {
        let certain = phase != Phase::Open || sacked >= DUPLICATE_THRESHOLD;
        if !self.reordering_seen && certain {
            return Span::ZERO;
        }
        let window = self.least_round_trip / 4 * u64::from(self.multiplier);
        window.min(smoothed.unwrap_or(Span::ZERO))
    }

    /// Marks what is lost by now. Returns when more will be (step 5).
    fn mark_losses(
        &mut self,
        board: &mut Scoreboard,
        sacked: &Ranges,
        now: Time,
        window: Span,
    ) -> Option<Time> {
        let patience = self.round_trip + window;
        let mut wait = None;
        let mut all_decided = true;
        let mut index = board.index_of(self.decided);
        while let Some(record) = board.get(index).copied() {
            let mut end = record.end();
            let mut following = index + 1;
            if record.sacked() {
                // Past the whole run.
                end = sacked.covering(record.start, end).map_or(end, |run| run.end);
                following = board.index_of(end).max(following);
            } else if !record.lost() && !record.repeated() {
                if self.is_after_latest(record.order) {
                    break;
                }
                let deadline = record.sent_at + patience;
                if deadline <= now {
                    board.mark_lost(index);
                } else {
                    wait = wait.max(Some(deadline));
                    all_decided = false;
                }
            }
            if all_decided {
                self.decided = end;
            }
            index = following;
        }
        self.mark_lost_repeats(board, now, patience).max(wait)
    }

    /// Does the same for segments that have been sent again.
    fn mark_lost_repeats(
        &mut self,
        board: &mut Scoreboard,
        now: Time,
        patience: Span,
    ) -> Option<Time> {
        let mut wait = None;
        let mut at = 0;
        while let Some(&(start, order)) = self.repeats.get(at) {
            let index = board.index_of(start);
            let outstanding =
                board.get(index).filter(|record| record.repeated() && record.order == order);
            let decided = match outstanding.map(|record| record.sent_at + patience) {
                None => true,
                Some(_) if self.is_after_latest(order) => break,
                Some(deadline) if deadline <= now => {
                    board.mark_lost(index);
                    self.repeat_lost = true;
                    true
                }
                Some(deadline) => {
                    wait = wait.max(Some(deadline));
                    false
                }
            };
            match (decided, at) {
                (true, 0) => drop(self.repeats.pop_front()),
                _ => at += 1,
            }
        }
        wait
    }

    /// Section 6.3: after a timeout the first segment is lost, and so is every
    /// other one whose time is over.
    pub(super) fn mark_losses_after_timeout(
        &self,
        board: &mut Scoreboard,
        now: Time,
        smoothed: Option<Span>,
    ) {
        let window = self.reordering_window(Phase::Loss, board.sacked(), smoothed);
        let patience = self.round_trip + window;
        for index in 0..board.len() {
            let Some(record) = board.get(index) else { break };
            if !record.sacked() && (index == 0 || record.sent_at + patience <= now) {
                board.mark_lost(index);
            }
        }
    }
}

impl Sender {
    pub(in crate::tcp) fn detects_by_time(&self) -> bool {
        self.sack.as_ref().is_some_and(|sack| sack.rack.is_some())
    }

    /// A recovery begins: from now on the sender follows what is delivered, until the
    /// `window` has become the threshold. RFC 9937 reduces the flight, as its controllers
    /// do. Linux reduces the window, as its own do; a sender that had less in flight keeps
    /// the pace that its window allowed.
    pub(super) fn begin_reduction(&mut self, window: u64) {
        if let Some(rack) = self.sack.as_mut().and_then(|sack| sack.rack.as_mut()) {
            rack.reduction = Reduction::begin(window);
        }
    }

    /// Sets the window of a recovery, after an acknowledgement or the
    /// reordering timer. `safe` as in [`Reduction::window`]; `least` bytes count as
    /// delivered whatever has been.
    pub(super) fn pace_recovery(&mut self, safe: bool, least: u64) {
        let (pipe, mss) = (self.board.pipe(), u64::from(self.mss));
        let threshold = self.congestion.threshold();
        let Some(rack) = self.sack.as_mut().and_then(|sack| sack.rack.as_mut()) else { return };
        let delivered = std::mem::take(&mut rack.delivered).max(least);
        rack.repeat_lost = false;
        // What tells of no delivery leaves the window: a loss that it shows makes room.
        if self.phase == Phase::Recovery && delivered > 0 {
            let window = rack.reduction.window(pipe, threshold, delivered, safe, mss);
            self.congestion.set_window(window);
        }
    }

    /// Section 6.2, step 5, and its timer.
    pub(super) fn detect_by_time(
        &mut self,
        config: &TcpConfig,
        rack: &mut Rack,
        sacked: &Ranges,
        now: Time,
    ) {
        let smoothed = self.round_trip.smoothed();
        let window = rack.reordering_window(self.phase, self.board.sacked(), smoothed);
        let wait = rack.mark_losses(&mut self.board, sacked, now, window);
        self.reorder_at =
            wait.map_or(Time::FAR_FUTURE, |at| ticks::fires(config.timer_tick, now, at.since(now)));
    }

    /// A probe has repaired the one loss of a flight: nothing is left to
    /// retransmit, but the window is reduced (section 7.4.2).
    pub(super) fn on_loss_repaired(&mut self, flight: u64) {
        if self.unacknowledged < self.reduced_until {
            return;
        }
        self.congestion.on_loss(flight);
        self.reduction_untold = true;
    }

    /// Sets the probe timer (section 7.2), for new data and for every
    /// acknowledgement.
    #[inline]
    pub(in crate::tcp) fn schedule_probe(&mut self, config: &TcpConfig, now: Time) {
        self.probe_at = Time::FAR_FUTURE;
        if !self.detects_by_time()
            || self.phase != Phase::Open
            || self.board.is_empty()
            || self.board.sacked() > 0
            || self.probing
        {
            return;
        }
        let timeout = match self.round_trip.smoothed() {
            None => PROBE_WITHOUT_ESTIMATE,
            Some(smoothed) if self.board.len() == 1 => smoothed * 2 + MAX_ACK_DELAY,
            Some(smoothed) => smoothed * 2,
        };
        let departure = self.next_departure(now);
        self.probe_at = ticks::fires(config.timer_tick, departure, timeout).min(self.retransmit_at);
    }

    /// The probe timer is due (section 7.3).
    pub(in crate::tcp) fn on_probe_timer(
        &mut self,
        config: &TcpConfig,
        now: Time,
    ) -> Option<Outgoing> {
        let rack = self.sack.as_mut().and_then(|sack| sack.rack.as_mut());
        let allowed = rack.is_some_and(|rack| rack.probe_end == 0 && rack.sampled);
        let mut probe = None;
        if allowed && !self.board.is_empty() {
            let payload = self.next_length();
            let segment = if payload > 0 {
                self.send(config, now, payload)
            } else {
                let last = self.board.len() - 1;
                self.retransmit(config, now, last, true)
            };
            self.statistics.tail_loss_probes += 1;
            if let Some(rack) = self.sack.as_mut().and_then(|sack| sack.rack.as_mut()) {
                rack.probe_end = self.next;
                rack.probe_repeats = payload == 0;
                rack.sampled = false;
            }
            probe = Some(segment);
        }
        // One that is not sent leaves the retransmission timer where it is, as in Linux. By
        // the RFC it would start anew, and what is lost would wait for both.
        if probe.is_some() {
            self.restart_timer(config, now);
        }
        self.probe_at = Time::FAR_FUTURE;
        probe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    /// A board of ten segments of a byte, one sent each millisecond from 0.
    fn board() -> Scoreboard {
        let mut board = Scoreboard::default();
        for start in 0..10 {
            board.push(Time(start * MILLISECOND), start, 1, false);
        }
        board
    }

    fn delivered(rack: &mut Rack, board: &Scoreboard, index: usize, now: u64) {
        let record = *board.get(index).expect("the board has ten");
        rack.on_delivered(Time(now * MILLISECOND), &record, 0);
    }

    /// Section 6.2, step 2: what is acknowledged sooner than the least round
    /// trip after it was sent again is its original.
    #[test]
    fn an_early_acknowledgement_is_of_the_original() {
        let mut board = board();
        let mut rack = Rack::new(None);
        delivered(&mut rack, &board, 0, 100);
        board.retransmit(1, Time(150 * MILLISECOND), true);
        delivered(&mut rack, &board, 1, 200);
        assert_eq!((rack.round_trip, rack.latest), (Span::millis(100), Some(1)));
        delivered(&mut rack, &board, 1, 250);
        // The eleventh transmission.
        assert_eq!((rack.round_trip, rack.latest), (Span::millis(100), Some(11)));
    }

    /// Section 6.2, step 1: the handshake is the first measurement. Data that filled
    /// a queue took 100 ms, its retransmission 60 ms, which is no less than the
    /// 50 ms of the handshake.
    #[test]
    fn a_retransmission_may_be_faster_than_all_data_before_it() {
        for (handshake, latest) in [(Some(Span::millis(50)), Some(11)), (None, Some(1))] {
            let mut board = board();
            let mut rack = Rack::new(handshake);
            delivered(&mut rack, &board, 0, 100);
            board.retransmit(9, Time(300 * MILLISECOND), true);
            delivered(&mut rack, &board, 9, 360);
            assert_eq!(rack.latest, latest, "{handshake:?}");
        }
    }

    /// Steps 3 and 4: without reordering no window once three have arrived;
    /// with it a quarter of the least round trip, and for each round with a
    /// duplicate another one, until sixteen recoveries have passed without.
    #[test]
    fn duplicates_widen_the_reordering_window() {
        let board = board();
        let mut rack = Rack::new(None);
        let window = |rack: &Rack, sacked| {
            rack.reordering_window(Phase::Open, sacked, Some(Span::millis(90)))
        };
        delivered(&mut rack, &board, 5, 105);
        assert_eq!((window(&rack, 2), window(&rack, 3)), (Span::millis(25), Span::ZERO));
        delivered(&mut rack, &board, 4, 106);
        assert_eq!(window(&rack, 3), Span::millis(25));
        let report = Report { duplicate: Some((4, 5)), ..Report::default() };
        rack.on_acknowledgement(5, 10, false, report);
        // The same round of data: nothing more.
        rack.on_acknowledgement(6, 12, false, report);
        assert_eq!(window(&rack, 3), Span::millis(50));
        rack.on_acknowledgement(10, 14, false, report);
        assert_eq!(window(&rack, 3), Span::millis(75));
        rack.on_acknowledgement(14, 20, false, report);
        // Four quarters are 100 ms, but the window is not above SRTT.
        assert_eq!(window(&rack, 3), Span::millis(90));
        for _ in 1..WINDOW_PERSISTENCE {
            rack.on_recovered();
        }
        assert_eq!(window(&rack, 3), Span::millis(90));
        rack.on_recovered();
        assert_eq!(window(&rack, 3), Span::millis(25));
    }

    /// Section 6.2, step 5, on originals and on segments sent again, each after
    /// its own time.
    #[test]
    fn segments_are_lost_in_order_of_sending() {
        let mut board = board();
        let mut rack = Rack::new(None);
        let mut sacked = Ranges::default();
        let none = Ranges::default();
        board.retransmit(0, Time(20 * MILLISECOND), true);
        rack.on_retransmission(board.get(0).expect("the board has ten"));
        // Segment 4 arrives at 104 ms: 1 to 3 were sent before, 0 after.
        delivered(&mut rack, &board, 4, 104);
        sacked.insert(4, 5, 0);
        board.sack((4, 5), (4, 5), |_| ());
        let now = Time(104 * MILLISECOND);
        let wait = rack.mark_losses(&mut board, &sacked, now, Span::millis(2));
        let lost = |board: &Scoreboard| -> Vec<usize> {
            (0..10).filter(|at| board.get(*at).is_some_and(Record::lost)).collect()
        };
        // Sent at 1 and 2 ms, 100 ms of round trip, 2 ms of window.
        assert_eq!(lost(&board), [1, 2]);
        assert_eq!(wait, Some(Time(105 * MILLISECOND)));
        let later = Time(105 * MILLISECOND);
        assert_eq!(rack.mark_losses(&mut board, &sacked, later, Span::millis(2)), None);
        assert_eq!(lost(&board), [1, 2, 3]);
        // Something sent after the second 0 arrives: that one is lost again.
        let record = board.retransmit(1, Time(30 * MILLISECOND), true);
        rack.on_retransmission(&record);
        rack.on_delivered(Time(130 * MILLISECOND), &record, 0);
        rack.mark_losses(&mut board, &none, Time(130 * MILLISECOND), Span::ZERO);
        assert!(lost(&board).contains(&0));
    }
}
