//! Which segment goes out next, and what that leaves behind.
//!
//! Urgent segments come first, then lost ones, then new data as far as the
//! congestion window and the peer's window allow. If there is none of these, SACK
//! sends again what may have been lost. Pacing holds back all but what is urgent. A segment that is
//! handed out is on the board, and a timer runs.

use tidegate_core::{Rate, Time};

use super::super::config::TcpConfig;
use super::super::recovery::undo::Next;
use super::{DUPLICATE_THRESHOLD, Outgoing, Phase, Sender};

impl Sender {
    /// The next segment that may be sent now, already on the board.
    #[inline]
    pub(in crate::tcp) fn next_segment(
        &mut self,
        config: &TcpConfig,
        now: Time,
    ) -> Option<Outgoing> {
        self.release_at = Time::FAR_FUTURE;
        if self.urgent {
            self.urgent = false;
            return self.urgent_segment(config, now);
        }
        match self.order() {
            Next::Repairs => {}
            Next::NewOnly => return self.next_new(config, now),
            Next::NewFirst => {
                let segment = self.next_new(config, now);
                let waits = self.release_at != Time::FAR_FUTURE || self.next > self.recover;
                if segment.is_some() || waits {
                    return segment;
                }
                self.repair_after_all();
            }
        }
        if self.board.has_awaiting() && self.phase != Phase::Open {
            let index = self.board.first_awaiting()?;
            let payload = self.board.get(index).map_or(0, |record| u64::from(record.payload()));
            if self.board.pipe() + payload > self.congestion.window {
                self.window_limited = true;
                return None;
            }
            let waiting = u64::from(self.board.awaiting()) * u64::from(self.mss);
            if self.is_paced_out(now, waiting) {
                return None;
            }
            return Some(self.retransmit(config, now, index, true));
        }
        match self.next_new(config, now) {
            None if self.sack.is_some() && self.release_at == Time::FAR_FUTURE => {
                self.next_doubtful(config, now)
            }
            segment => segment,
        }
    }

    /// Whether pacing holds back the next segment, the first of `waiting` bytes that
    /// would be sent one after the other. If so, the release timer runs.
    #[inline]
    pub(in crate::tcp) fn is_paced_out(&mut self, now: Time, waiting: u64) -> bool {
        if self.congestion.pacing_rate.is_none() {
            return false;
        }
        let departure = self.pacer.departure(now);
        if departure <= now {
            return false;
        }
        self.release_at = departure;
        self.window_limited = self.board.pipe() + waiting > self.congestion.window;
        true
    }

    /// From when on the retransmission timer and the probe timer count: what waits
    /// for its departure is not overdue.
    #[inline]
    pub(in crate::tcp) fn next_departure(&self, now: Time) -> Time {
        match self.congestion.pacing_rate {
            Some(_) => self.pacer.idle_from(now),
            None => now,
        }
    }

    /// Has the rate pay for a segment that leaves, urgent ones included.
    #[inline]
    fn charge(&mut self, now: Time, payload: u32) {
        if let Some(rate) = self.congestion.pacing_rate
            && payload > 0
        {
            self.pay(now, rate, payload);
        }
    }

    /// Out of line, so that senders without pacing have no more than a test.
    #[inline(never)]
    fn pay(&mut self, now: Time, rate: Rate, payload: u32) {
        let sizes = (u64::from(payload), u64::from(self.mss));
        let (segments, least) = (self.statistics.data_segments_sent, self.round_trip.least());
        self.pacer.on_sent(now, &self.congestion, rate, sizes, segments, least);
    }

    /// The segment that goes out whatever window and pacing say: the first one
    /// lost, or a window probe.
    fn urgent_segment(&mut self, config: &TcpConfig, now: Time) -> Option<Outgoing> {
        if self.board.is_empty() {
            let unsent = self.end.saturating_sub(self.next);
            let payload = self.usable().max(1).min(unsent).min(u64::from(self.mss)) as u32;
            return (payload > 0).then(|| self.send(config, now, payload));
        }
        // NewReno does not mark its first segment lost: the retransmission takes
        // the original's place in FlightSize.
        match self.board.first_awaiting() {
            Some(index) => Some(self.retransmit(config, now, index, true)),
            None => Some(self.retransmit(config, now, 0, false)),
        }
    }

    pub(in crate::tcp) fn retransmit(
        &mut self,
        config: &TcpConfig,
        now: Time,
        index: usize,
        counted: bool,
    ) -> Outgoing {
        if self.board.delivery.is_some() {
            self.note_restart(now);
        }
        let record = self.board.retransmit(index, now, counted);
        self.statistics.retransmissions += 1;
        self.last_sent = now;
        if let Some(sack) = &mut self.sack {
            sack.on_retransmission(&record);
        }
        self.charge(now, record.payload());
        if index == 0 && self.detects_by_time() {
            // RFC 6675 section 6 allows it, and Linux does it: the timeout counts from
            // the last transmission of the first segment outstanding. Otherwise the
            // retransmission may have less than a round trip left to be acknowledged.
            self.restart_timer(config, now);
        } else {
            self.start_timer(config, now);
        }
        Outgoing {
            start: record.start,
            payload: record.payload(),
            fin: record.fin(),
            new_data: false,
        }
    }

    /// Tells a controller that samples rates of data that leaves when nothing is in the
    /// network because the application had nothing to send.
    #[inline(never)]
    fn note_restart(&mut self, now: Time) {
        if let Some(delivery) = &self.board.delivery
            && delivery.is_limited()
            && self.board.pipe() == 0
        {
            self.congestion.on_restart(now);
        }
    }

    /// The next new data, as far as both windows and pacing allow.
    #[inline]
    fn next_new(&mut self, config: &TcpConfig, now: Time) -> Option<Outgoing> {
        self.window_limited = false;
        let unsent = self.end.saturating_sub(self.next);
        if unsent == 0 {
            // The FIN alone is no data, and the peer's window does not apply to it. Apart
            // from the data before it, it waits for a place as in Linux.
            let waits = self.fin_apart && self.board.pipe() >= self.congestion.window;
            let due = self.closing && !self.fin_sent && !waits;
            return due.then(|| self.send(config, now, 0));
        }
        let length = u64::from(self.next_length());
        if length == 0 {
            self.fin_apart = false;
            if self.board.is_empty() && self.retransmit_at == Time::FAR_FUTURE {
                // The persist timer.
                self.retransmit_at = self.round_trip.deadline(config, now);
            }
            return None;
        }
        if self.board.is_empty() {
            self.restart_after_idle(config, now);
        }
        if self.board.pipe() + length > self.congestion.window + self.extra() {
            self.window_limited = true;
            // What is left waits, and the FIN behind it.
            self.fin_apart = false;
            return None;
        }
        if self.is_paced_out(now, unsent.min(self.usable())) {
            return None;
        }
        if self.duplicates > 0 && self.phase == Phase::Open {
            // Sent on a duplicate acknowledgement: with SACK by the pipe,
            // without it beyond the window.
            self.limited += length as u32;
        }
        Some(self.send(config, now, length as u32))
    }

    /// Bytes of new data that fit into the peer's window.
    pub(super) fn usable(&self) -> u64 {
        self.edge.saturating_sub(self.next)
    }

    /// Payload that is written, and that neither window lets go now.
    pub(in crate::tcp) fn held_back(&self) -> u64 {
        let window = self.congestion.window + self.extra();
        let room = window.saturating_sub(self.board.pipe()).min(self.usable());
        self.end.saturating_sub(self.next).saturating_sub(room)
    }

    /// Payload of the next new segment by the peer's window alone. Zero means that
    /// there is nothing to send, or nothing that is worth a segment.
    ///
    /// Sender's silly window avoidance (RFC 9293 section 3.8.6.2.1): a segment
    /// that the peer's window cuts short waits for more, unless it is half of
    /// the largest window ever and nothing is outstanding. There is no Nagle
    /// algorithm: a segment that ends what was written never waits.
    #[inline]
    pub(in crate::tcp) fn next_length(&self) -> u32 {
        let unsent = self.end.saturating_sub(self.next);
        let whole = unsent.min(u64::from(self.mss));
        let length = whole.min(self.usable());
        let worth = length == whole || self.board.is_empty() && length >= self.largest_window / 2;
        if worth { length as u32 } else { 0 }
    }

    /// RFC 5681 section 4.1: after a timeout's time without sending, the old
    /// window says nothing about the network.
    fn restart_after_idle(&mut self, config: &TcpConfig, now: Time) {
        let (silence, timeout) = (now.since(self.last_sent), self.round_trip.timeout(config));
        if silence > timeout {
            let initial = u64::from(self.mss) * u64::from(config.initial_window.max(1));
            // One more begun does not count.
            self.congestion.on_idle(initial, (silence.0 - 1) / timeout.0.max(1));
        }
    }

    /// Limited transmit (RFC 3042): a segment for each of the first two
    /// duplicate acknowledgements.
    fn extra(&self) -> u64 {
        let allowed = self.limited_transmit
            && self.sack.is_none()
            && self.phase == Phase::Open
            && self.duplicates < DUPLICATE_THRESHOLD;
        if allowed { u64::from(self.duplicates * self.mss) } else { 0 }
    }

    /// Puts new data on the board, and the FIN with the last of it.
    #[inline]
    pub(in crate::tcp) fn send(&mut self, config: &TcpConfig, now: Time, payload: u32) -> Outgoing {
        if self.board.is_empty() {
            // The persist timer may be running.
            self.retransmit_at = Time::FAR_FUTURE;
        }
        if self.board.delivery.is_some() {
            self.note_restart(now);
        }
        let start = self.next;
        let stop = start + u64::from(payload);
        let fin =
            self.closing && stop == self.end && !self.fin_sent && (payload == 0 || !self.fin_apart);
        self.fin_sent |= fin;
        self.next = stop + u64::from(fin);
        self.board.push(now, start, payload as u16, fin);
        self.last_sent = now;
        self.charge(now, payload);
        self.start_timer(config, now);
        if let Some(sack) = &mut self.sack {
            sack.on_sent(payload);
            self.schedule_probe(config, now);
        }
        Outgoing { start, payload, fin, new_data: payload > 0 && !self.probing }
    }
}
