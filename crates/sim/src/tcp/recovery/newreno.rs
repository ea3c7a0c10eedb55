//! Fast retransmit and fast recovery without SACK: NewReno (RFC 6582).
//!
//! The window is inflated by a segment for each duplicate acknowledgement,
//! because each says that a segment has left the network, while FlightSize
//! stays as it is. Records are not marked lost here: it is only known that the
//! first one is missing, and not which others are.

use tidegate_core::Time;

use crate::tcp::config::TcpConfig;
use crate::tcp::scoreboard::Taken;
use crate::tcp::sender::{DUPLICATE_THRESHOLD, Phase, Sender};

impl Sender {
    /// An acknowledgement of new data.
    #[inline]
    pub(in crate::tcp) fn on_cumulative(
        &mut self,
        config: &TcpConfig,
        now: Time,
        offset: u64,
        taken: Taken,
    ) {
        let mut acked = self.advance(offset);
        self.measure(config, now, taken);
        if config.ns3.repair_end && self.phase == Phase::Loss && offset >= self.recover {
            acked = acked.min(offset - self.recover);
        }
        if self.congestion.rules_recovery && self.phase != Phase::Open {
            self.on_ruled_progress(offset);
        }
        self.tell(now, acked, taken.delivered, taken, self.phase);
        if self.phase == Phase::Recovery && !self.congestion.rules_recovery {
            self.on_recovery_progress(config, now, acked);
            return;
        }
        self.restart_timer(config, now);
        if self.phase == Phase::Loss && offset >= self.recover {
            self.phase = Phase::Open;
        }
    }

    /// The same for a controller that rules recovery: a partial acknowledgement shows
    /// that the next segment is missing too, and the window is left alone.
    fn on_ruled_progress(&mut self, offset: u64) {
        if offset >= self.recover {
            self.phase = Phase::Open;
            self.congestion.on_recovered(self.congestion.threshold());
        } else if self.phase == Phase::Recovery {
            self.board.count_lost(0);
            self.urgent = true;
        }
    }

    /// RFC 6582 section 3.2, step 3.
    fn on_recovery_progress(&mut self, config: &TcpConfig, now: Time, acked: u64) {
        let mss = u64::from(self.mss);
        if self.unacknowledged >= self.recover {
            self.phase = Phase::Open;
            if config.ns3.recovery_window {
                self.congestion.on_recovered(self.congestion.threshold());
                self.tell(now, acked, 0, Taken::default(), self.phase);
            } else {
                // Full acknowledgement, option (1), which sends no burst.
                let flight = self.flight().max(mss) + mss;
                self.congestion.on_recovered(self.congestion.threshold().min(flight));
            }
            self.restart_timer(config, now);
            return;
        }
        // Partial acknowledgement: the next segment is missing too. The window
        // is deflated by what has been acknowledged.
        self.urgent = true;
        self.congestion.window = self.congestion.window.saturating_sub(acked);
        if acked >= mss {
            self.congestion.window += mss;
        }
        let least = if config.ns3.recovery_window { self.congestion.threshold() } else { mss };
        self.congestion.window = self.congestion.window.max(least);
        if !self.partial_seen {
            // Only the first one: the "impatient" variant (section 4).
            self.partial_seen = true;
            self.restart_timer(config, now);
        }
    }

    /// The flight that a timeout in fast recovery halves. FlightSize counts new data
    /// sent for duplicates, though as much has left: what is out is the plain window.
    /// ns-3 takes off it what duplicates have told it of.
    pub(in crate::tcp) fn flight_in_recovery(&self, config: &TcpConfig) -> u64 {
        let threshold = self.congestion.threshold();
        if config.ns3.recovery_window {
            let delivered = self.congestion.window.saturating_sub(threshold);
            return self.flight().saturating_sub(delivered);
        }
        self.flight().min(threshold)
    }

    /// A duplicate acknowledgement: RFC 5681 section 3.2, RFC 6582 section 3.2.
    pub(in crate::tcp) fn on_duplicate(&mut self, config: &TcpConfig) {
        let mss = u64::from(self.mss);
        self.duplicates = self.duplicates.saturating_add(1);
        match self.phase {
            Phase::Recovery => self.congestion.set_window(self.congestion.window + mss),
            // Step 2: only if more than `recover` has been acknowledged. After
            // a timeout, duplicates are likely to come from segments that were
            // sent again without need.
            Phase::Open
                if self.duplicates == DUPLICATE_THRESHOLD
                    && (self.unacknowledged > self.recover
                        || config.ns3.recovery_point && self.unacknowledged == self.recover) =>
            {
                let delivered = if config.ns3.recovery_window { 1 } else { DUPLICATE_THRESHOLD };
                let early = if config.ns3.recovery_window { mss } else { 0 };
                self.board.count_lost(0);
                self.report_losses();
                self.enter_recovery(self.flight().saturating_sub(early));
                let inflation = u64::from(delivered) * mss;
                self.congestion.set_window(self.congestion.threshold().saturating_add(inflation));
            }
            Phase::Open | Phase::Loss => {}
        }
    }
}
