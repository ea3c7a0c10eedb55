//! How much to send during a fast recovery: proportional rate reduction
//! (RFC 9937, earlier RFC 6937).
//!
//! Detection by time finds a whole burst of losses at once, so the pipe falls at
//! once. A sender that filled it up to the window would send the burst again into
//! the queue that has just overflowed; retransmissions lost that way are found
//! too, and such a recovery would go on for ever. Here the sender follows what is
//! delivered: in proportion while the pipe is above the threshold, segment for
//! segment below it, and one more when all goes well.

/// State of one recovery, in bytes; the names of the RFC are in the comments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reduction {
    /// `prr_delivered`.
    delivered: u64,
    /// `prr_out`.
    sent: u64,
    /// `RecoverFS`.
    flight: u64,
}

impl Reduction {
    /// A recovery begins with `flight` bytes outstanding.
    pub(super) fn begin(flight: u64) -> Reduction {
        Reduction { flight: flight.max(1), ..Reduction::default() }
    }

    pub(super) fn on_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// The window after an acknowledgement that tells of `delivered` bytes, with
    /// `pipe` bytes in the network. `safe` says that it covers new data and
    /// tells of no further loss.
    pub(super) fn window(
        &mut self,
        pipe: u64,
        threshold: u64,
        delivered: u64,
        safe: bool,
        mss: u64,
    ) -> u64 {
        self.delivered += delivered;
        let more = if pipe > threshold {
            (self.delivered * threshold).div_ceil(self.flight).saturating_sub(self.sent)
        } else {
            let conserved = self.delivered.saturating_sub(self.sent).max(delivered);
            let growth = if safe { mss } else { 0 };
            (conserved + growth).min(threshold - pipe)
        };
        // The first retransmission goes out at once.
        let first = if self.sent == 0 { mss } else { 0 };
        pipe + more.max(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_above_the_threshold_falls_in_proportion() {
        // 100 outstanding, threshold 70: 7 are sent for each 10 delivered.
        let mut reduction = Reduction::begin(100);
        let mut pipe = 99;
        let mut sent = 0;
        for _ in 0..90 {
            pipe -= 1;
            if reduction.window(pipe, 70, 1, true, 1) > pipe {
                reduction.on_sent(1);
                sent += 1;
                pipe += 1;
            }
        }
        assert_eq!((sent, pipe), (63, 72));
    }

    #[test]
    fn below_the_threshold_no_more_is_sent_than_was_delivered() {
        // 60 of 100 are lost at once: the pipe is 40, the threshold 70.
        let mut reduction = Reduction::begin(100);
        assert_eq!(reduction.window(40, 70, 1, false, 1), 41);
        reduction.on_sent(1);
        // All goes well: one more than was delivered, up to the threshold.
        assert_eq!(reduction.window(40, 70, 1, true, 1), 42);
        reduction.on_sent(2);
        assert_eq!(reduction.window(69, 70, 4, true, 1), 70);
    }
}
