//! The timer of retransmissions and window probes: when it runs, and what follows when it
//! has run out (RFC 6298 section 5, RFC 9293 section 3.8.6.1).
//!
//! What detection by time does when its timers have run out stands with it, in
//! [`rack`](crate::tcp::recovery::rack) and [`sack`](crate::tcp::recovery::sack).

use tidegate_core::Time;

use super::super::config::TcpConfig;
use super::{Phase, Sender};

impl Sender {
    /// Starts the retransmission timer anew, or stops it when nothing is
    /// outstanding (RFC 6298 (5.2) and (5.3)).
    #[inline]
    pub(in crate::tcp) fn restart_timer(&mut self, config: &TcpConfig, now: Time) {
        self.retransmit_at = if self.board.is_empty() {
            Time::FAR_FUTURE
        } else {
            self.round_trip.deadline(config, self.next_departure(now))
        };
    }

    /// The retransmission or persist timer has run out; `false` means to give up.
    pub(in crate::tcp) fn on_timeout(&mut self, config: &TcpConfig, now: Time) -> bool {
        self.probe_at = Time::FAR_FUTURE;
        self.reorder_at = Time::FAR_FUTURE;
        if self.board.is_empty() || self.probing {
            self.on_persist_timeout();
        } else {
            self.timeouts += 1;
            self.statistics.timeouts += 1;
            if self.timeouts > config.data_retries {
                return false;
            }
            let recovering = self.phase == Phase::Recovery;
            let flight = if recovering { self.flight_in_recovery(config) } else { self.flight() };
            let reduces = self.timeouts == 1 && !(recovering && self.detects_by_time());
            self.mark_losses_after_timeout(now);
            if reduces {
                self.note_reduction();
            }
            let forward = self.phase == Phase::Open || self.timeouts > 1;
            if let Some(sack) = &mut self.sack {
                sack.on_timeout(forward);
            }
            self.report_losses();
            if reduces {
                // RFC 5681 equation 4; held when the same segment times out again. With
                // detection by time a recovery has reduced the window for all that is
                // outstanding (`tcp_enter_loss` of Linux).
                self.congestion.on_loss(flight);
                self.reduction_untold = true;
            }
            self.congestion.on_timeout(self.board.pipe());
            self.phase = Phase::Loss;
            self.recover = self.next;
            self.duplicates = 0;
            self.limited = 0;
            self.urgent = true;
        }
        self.round_trip.back_off();
        self.retransmit_at = self.round_trip.deadline(config, self.next_departure(now));
        true
    }

    /// The window has been closed, or too small to be worth a segment, for a
    /// timeout: something is sent all the same (RFC 9293 sections 3.8.6.1 and
    /// 3.8.6.2.1).
    fn on_persist_timeout(&mut self) {
        self.urgent = true;
        // A segment that the window only cuts short is data and no probe.
        if self.usable() == 0 || self.probing {
            self.statistics.window_probes += 1;
            self.probing = true;
        }
    }

    /// An acknowledgement while a window probe is out.
    pub(super) fn on_probe_answer(&mut self, offset: u64) {
        // The peer is alive, so probing goes on for ever (RFC 9293 section 3.8.6.1).
        self.timeouts = 0;
        if offset > self.unacknowledged {
            self.probing = false;
            self.round_trip.forgive();
        } else if self.edge > self.unacknowledged {
            // The probe was refused, and now the window is open: it is taken
            // back, and its byte goes out with a whole segment.
            self.board.clear();
            self.next = self.unacknowledged;
            self.fin_sent = false;
            self.probing = false;
            self.round_trip.forgive();
            self.retransmit_at = Time::FAR_FUTURE;
        }
    }

    /// RFC 6298 (5.1).
    #[inline]
    pub(super) fn start_timer(&mut self, config: &TcpConfig, now: Time) {
        if self.retransmit_at == Time::FAR_FUTURE {
            self.retransmit_at = self.round_trip.deadline(config, self.next_departure(now));
        }
    }

    /// The earliest of this half's timers.
    #[inline]
    pub(in crate::tcp) fn next_timer(&self) -> Time {
        self.retransmit_at.min(self.probe_at).min(self.reorder_at).min(self.release_at)
    }

    pub(in crate::tcp) fn stop_timers(&mut self) {
        self.retransmit_at = Time::FAR_FUTURE;
        self.probe_at = Time::FAR_FUTURE;
        self.reorder_at = Time::FAR_FUTURE;
        self.release_at = Time::FAR_FUTURE;
    }
}
