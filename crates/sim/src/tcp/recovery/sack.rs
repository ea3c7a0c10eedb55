//! Loss recovery by selective acknowledgements (RFC 6675).
//!
//! A report is compared with the runs already known, so that an acknowledgement
//! costs as much as it says that is new, however long its blocks are. This module
//! decides which segments are lost by counting what has arrived above them, and
//! [`rack`](super::rack) decides it by time. Either marks them on the board, and
//! the window says how large the pipe may be.

use tidegate_core::{Span, Time};

use super::rack::Rack;
use super::undo::{Evidence, Undo};
use crate::tcp::config::TcpConfig;
use crate::tcp::header::{Header, SequenceSpace, timestamp_age};
use crate::tcp::ranges::Ranges;
use crate::tcp::scoreboard::{Record, Scoreboard, Taken};
use crate::tcp::sender::{DUPLICATE_THRESHOLD, Outgoing, Phase, Sender};

/// The least round trip that a timestamp can measure.
const CLOCK_TICK: Span = Span::millis(1);

/// What a sender with SACK keeps besides the board.
#[derive(Clone, Debug, Default)]
pub(in crate::tcp) struct Sack {
    /// What the peer has reported above SND.UNA.
    sacked: Ranges,
    /// Everything below this offset has been looked at for losses.
    examined: u64,
    /// HighRxt: one past the highest offset sent again in this recovery.
    high_retransmitted: u64,
    /// RescueRxt.
    rescued: u64,
    /// What the latest reduction has taken, if that can be undone.
    pub(super) undo: Undo,
    /// Detection by time, if it is used.
    pub(super) rack: Option<Rack>,
}

/// What one acknowledgement reports.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Report {
    /// Whether SACK blocks tell of anything new.
    pub(super) fresh: bool,
    /// A duplicate that the peer has received (RFC 2883).
    pub(super) duplicate: Option<(u64, u64)>,
    /// Whether there are SACK blocks at all.
    pub(super) has_blocks: bool,
    /// Bytes that they are the first to report.
    pub(super) delivered: u64,
    /// When the first and the last sent of them were sent, of those that were sent once.
    pub(super) sent: Option<(Time, Time)>,
}

impl Sack {
    /// `handshake` is the round trip of the handshake, if it was measured.
    pub(in crate::tcp) fn new(rack_tlp: bool, handshake: Option<Span>) -> Sack {
        Sack { rack: rack_tlp.then(|| Rack::new(handshake)), ..Sack::default() }
    }

    pub(in crate::tcp) fn on_sent(&mut self, bytes: u32) {
        if let Some(rack) = &mut self.rack {
            rack.on_sent(bytes);
        }
    }

    /// A segment is sent again, in a recovery or as a probe.
    pub(in crate::tcp) fn on_retransmission(&mut self, record: &Record) {
        self.on_sent(record.payload());
        self.undo.on_retransmission(record);
        self.high_retransmitted = self.high_retransmitted.max(record.end());
        if let Some(rack) = &mut self.rack {
            rack.on_retransmission(record);
        }
    }

    /// A mark has reduced the window since: no loss explains what it is.
    pub(in crate::tcp) fn forget_reduction(&mut self) {
        self.undo.forget();
    }

    pub(in crate::tcp) fn on_timeout(&mut self, forward: bool) {
        self.undo.on_timeout(forward);
        if let Some(rack) = &mut self.rack {
            rack.forget_probe();
        }
    }

    /// What was deemed lost is not.
    pub(super) fn reexamine(&mut self) {
        self.examined = 0;
        if let Some(rack) = &mut self.rack {
            rack.reexamine();
        }
    }

    /// Takes an acknowledgement's blocks in (RFC 6675 section 4, `Update`).
    fn update(
        &mut self,
        now: Time,
        board: &mut Scoreboard,
        (floor, ceiling): (u64, u64),
        header: &Header,
        space: SequenceSpace,
        on_delivered: &mut impl FnMut(&Record),
    ) -> Report {
        let mut report =
            Report { has_blocks: !header.sack.as_slice().is_empty(), ..Report::default() };
        let offsets = |block: &crate::tcp::header::SackBlock| {
            Some((space.offset_near(block.start, floor)?, space.offset_near(block.end, floor)?))
        };
        for (index, block) in header.sack.as_slice().iter().enumerate() {
            let Some((start, end)) = offsets(block) else { continue };
            if index == 0 {
                // RFC 2883 section 4: a first block below the cumulative
                // acknowledgement or inside the second block is a duplicate.
                let second = header.sack.as_slice().get(1).and_then(offsets);
                if start < floor || second.is_some_and(|(from, to)| from <= start && end <= to) {
                    report.duplicate = Some((start, end));
                    continue;
                }
            }
            // Blocks outside of what is outstanding are no reports.
            if start >= end || start < floor || end > ceiling {
                continue;
            }
            if let (run, Some(fresh)) = self.sacked.insert(start, end, 0) {
                let rack = &mut self.rack;
                let (delivered, sent) = (&mut report.delivered, &mut report.sent);
                report.fresh |= board.sack((run.start, run.end), fresh, |record| {
                    on_delivered(record);
                    if !record.reported() {
                        *delivered += u64::from(record.payload());
                    }
                    if !record.retransmitted() {
                        let at = record.sent_at;
                        let (first, last) = sent.unwrap_or((at, at));
                        *sent = Some((first.min(at), last.max(at)));
                    }
                    if let Some(rack) = rack {
                        rack.on_delivered(now, record, 0);
                    }
                });
            }
        }
        report
    }

    /// Marks what RFC 6675 section 4 (`IsLost`) deems lost: everything below
    /// which three runs, or more than two segments' bytes, have arrived.
    fn mark_losses(&mut self, board: &mut Scoreboard, mss: u32) {
        let enough = u64::from((DUPLICATE_THRESHOLD - 1) * mss);
        let mut bytes = 0;
        // At most three steps.
        let border = self.sacked.runs().iter().rev().zip(1..).find(|(run, count)| {
            bytes += run.end - run.start;
            bytes > enough || *count >= DUPLICATE_THRESHOLD
        });
        let Some((run, _)) = border else { return };
        let mut index = board.index_of(self.examined);
        while let Some(record) = board.get(index) {
            if record.start >= run.start {
                break;
            }
            self.examined = record.end();
            if !record.sacked() && !record.lost() {
                board.mark_lost(index);
            }
            index += 1;
        }
    }
}

impl Sender {
    /// An acknowledgement when SACK is in use: RFC 6675 section 5.
    pub(in crate::tcp) fn on_selective(
        &mut self,
        config: &TcpConfig,
        now: Time,
        offset: u64,
        header: &Header,
        space: SequenceSpace,
    ) {
        // Moved out and back: a pointer, so that both can be borrowed.
        let Some(mut sack) = self.sack.take() else { return };
        let flight = self.flight();
        let progress = offset > self.unacknowledged;
        let mut acked = 0;
        let mut taken = Taken::default();
        // Something sent once and before the latest timeout, of which nothing told before it.
        let mut original = false;
        let recover = self.recover;
        let echo = header.timestamps.echo;
        let mut on_delivered = |record: &Record| {
            let told = record.retransmitted() || record.reported();
            original |= !told && record.end() <= recover;
        };
        if progress {
            let rack = &mut sack.rack;
            taken = self.board.acknowledge(offset, |record| {
                on_delivered(record);
                if let Some(rack) = rack {
                    rack.on_delivered(now, record, echo);
                }
            });
            sack.sacked.remove_below(offset);
            acked = self.advance(offset);
        }
        let outstanding = (self.unacknowledged, self.next);
        let report =
            sack.update(now, &mut self.board, outstanding, header, space, &mut on_delivered);
        if let (Some((first, last)), true) = (report.sent, sack.rack.is_some()) {
            // With detection by time a report of SACK is a measurement too. The first
            // segment acknowledged has the longest round trip, and the latest one says
            // what the path is like now.
            taken.timed = taken.timed.or(Some(first));
            taken.latest = Some(last);
        }
        if let (None, true, Some(age)) = (taken.timed, progress, timestamp_age(now, echo)) {
            // A timestamp tells which transmission has arrived (RFC 7323 section 4).
            let sent_at = Time(now.0.saturating_sub(age.max(CLOCK_TICK).0));
            taken.timed = Some(sent_at);
            taken.latest = taken.latest.or(Some(sent_at));
        }
        if let (Some(rack), Some(_)) = (&mut sack.rack, taken.timed) {
            rack.on_sample();
        }
        if progress || taken.timed.is_some() {
            self.measure(config, now, taken);
        }
        if report.fresh && !progress {
            self.duplicates = self.duplicates.saturating_add(1);
        }
        if config.undo {
            self.look_back(&mut sack, Evidence { progress, echo, original, report });
        }
        let awaiting = self.board.awaiting();
        match &mut sack.rack {
            Some(rack) => {
                let repaired = rack.on_acknowledgement(offset, self.next, progress, report);
                if repaired && self.phase == Phase::Open {
                    self.on_loss_repaired(flight);
                }
                self.detect_by_time(config, rack, &sack.sacked, now);
            }
            None => sack.mark_losses(&mut self.board, self.mss),
        }
        self.sack = Some(sack);
        let safe = progress && self.board.awaiting() <= awaiting;
        self.change_phase(now, acked, taken.delivered + report.delivered, taken);
        self.pace_recovery(safe, 0);
        // What was sent before the first segment outstanding was sent again says that the
        // repair is on its way (`FLAG_SET_XMIT_TIMER` of Linux).
        let repairing = report.sent.is_some_and(|(first, _)| {
            self.detects_by_time() && self.board.get(0).is_some_and(|head| first < head.sent_at)
        });
        if progress || repairing {
            self.restart_timer(config, now);
        }
        self.schedule_probe(config, now);
    }

    fn change_phase(&mut self, now: Time, acked: u64, delivered: u64, taken: Taken) {
        if self.congestion.rules_recovery {
            self.end_recovery();
        }
        if acked > 0 || delivered > 0 {
            let phase = if self.has_new_loss() { Phase::Recovery } else { self.phase };
            self.tell(now, acked, delivered, taken, phase);
        }
        self.renew_repair();
        self.end_recovery();
        if self.has_new_loss() {
            self.begin_selective_recovery();
        }
    }

    /// Ends a recovery, or what follows a timeout, if all of it has been acknowledged.
    fn end_recovery(&mut self) {
        if self.phase == Phase::Open || self.unacknowledged < self.recover {
            return;
        }
        if self.phase == Phase::Recovery || self.congestion.rules_recovery {
            self.congestion.on_recovered(self.congestion.threshold());
        }
        self.phase = Phase::Open;
        if let Some(rack) = self.sack.as_mut().and_then(|sack| sack.rack.as_mut()) {
            rack.on_recovered();
        }
    }

    /// Whether a fast recovery has to begin (RFC 6675 section 5, steps 1 and 2).
    fn has_new_loss(&self) -> bool {
        let by_count = || {
            self.duplicates >= DUPLICATE_THRESHOLD
                && self.sack.as_ref().is_some_and(|sack| sack.rack.is_none())
                && !self.board.is_empty()
        };
        self.phase == Phase::Open && (self.board.has_awaiting() || by_count())
    }

    /// A retransmission after a timeout has been lost too: Linux reduces the window for
    /// it and goes on as in a fast recovery (`FLAG_LOST_RETRANS` in tcp_input), where RFC
    /// 5681 goes on in slow start, into a queue that is still full.
    fn renew_repair(&mut self) {
        let rack = self.sack.as_mut().and_then(|sack| sack.rack.as_mut());
        if rack.is_some_and(Rack::take_lost_repeat)
            && self.phase == Phase::Loss
            && self.unacknowledged < self.recover
        {
            self.begin_selective_recovery();
        }
    }

    /// RFC 6675 section 5, step 4.
    pub(super) fn begin_selective_recovery(&mut self) {
        let flight = self.flight();
        let window = self.congestion.window;
        self.note_reduction();
        self.enter_recovery(flight);
        self.congestion.set_window(self.congestion.threshold());
        self.begin_reduction(window);
        if !self.board.has_awaiting() {
            self.board.mark_lost(0);
        }
        if let Some(sack) = &mut self.sack {
            sack.high_retransmitted = self.unacknowledged;
            if let Some(rack) = &mut sack.rack {
                rack.forget_probe();
            }
        }
    }

    /// What a timeout deems lost.
    pub(in crate::tcp) fn mark_losses_after_timeout(&mut self, now: Time) {
        let Some(sack) = &mut self.sack else {
            return self.board.mark_all_lost();
        };
        match &mut sack.rack {
            Some(rack) => {
                rack.mark_losses_after_timeout(&mut self.board, now, self.round_trip.smoothed());
            }
            None => {
                // RFC 6675 section 5.1 leaves RFC 2018 section 8 as it is: what
                // the peer has reported is forgotten.
                sack.sacked.clear();
                sack.examined = 0;
                self.board.mark_all_lost();
            }
        }
    }

    /// Retransmissions of what is not deemed lost, when nothing else can be
    /// sent (RFC 6675 section 4, `NextSeg` rules 3 and 4). Detection by time
    /// has probes instead.
    pub(in crate::tcp) fn next_doubtful(
        &mut self,
        config: &TcpConfig,
        now: Time,
    ) -> Option<Outgoing> {
        let sack = self.sack.as_ref()?;
        if sack.rack.is_some()
            || self.phase != Phase::Recovery
            || self.board.pipe() + u64::from(self.mss) > self.congestion.window
        {
            return None;
        }
        let highest = sack.sacked.runs().last().map_or(0, |run| run.end);
        let mut index = self.board.index_of(sack.high_retransmitted);
        while let Some(record) = self.board.get(index)
            && record.start < highest
        {
            if !record.sacked() && !record.repeated() {
                let payload = u64::from(record.payload());
                if self.is_paced_out(now, payload) {
                    return None;
                }
                return Some(self.retransmit(config, now, index, true));
            }
            index += 1;
        }
        if self.unacknowledged <= sack.rescued {
            return None;
        }
        // The rescue: once in a recovery, the highest segment outstanding.
        let last = (0..self.board.len())
            .rev()
            .find(|index| self.board.get(*index).is_some_and(|record| !record.sacked()))?;
        let high_retransmitted = sack.high_retransmitted;
        if self.is_paced_out(now, 0) {
            return None;
        }
        let segment = self.retransmit(config, now, last, true);
        if let Some(sack) = &mut self.sack {
            sack.rescued = self.recover;
            sack.high_retransmitted = high_retransmitted;
        }
        Some(segment)
    }

    /// The reordering timer, when it is due (RFC 8985 section 6.3).
    pub(in crate::tcp) fn on_reordering_timer(&mut self, config: &TcpConfig, now: Time) {
        self.reorder_at = Time::FAR_FUTURE;
        let Some(mut sack) = self.sack.take() else { return };
        let awaiting = self.board.awaiting();
        if let Some(rack) = &mut sack.rack {
            self.detect_by_time(config, rack, &sack.sacked, now);
        }
        self.sack = Some(sack);
        self.report_losses();
        let found = self.board.awaiting() > awaiting;
        if self.has_new_loss() || found && self.phase == Phase::Loss {
            self.begin_selective_recovery();
            // One segment counts as delivered: the timer allows one to be sent.
            self.pace_recovery(false, u64::from(self.mss));
        }
        self.schedule_probe(config, now);
    }
}
