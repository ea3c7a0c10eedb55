//! What scalable controllers have in common: they lower the window by half of the share
//! of marks, which they follow as a moving mean (RFC 8257 section 3.3).

/// `g`: the weight of a round in the mean.
const GAIN: f64 = 1.0 / 16.0;

/// The share of what has arrived that had a mark.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkedShare {
    /// `alpha`: from none, 0, to all, 1.
    mean: f64,
    /// In bytes, since the mean last moved.
    marked: u64,
    delivered: u64,
}

impl MarkedShare {
    /// Nothing is known: the first mark is taken for a loss.
    pub(super) const UNKNOWN: MarkedShare = MarkedShare { mean: 1.0, marked: 0, delivered: 0 };

    /// Takes in what an acknowledgement says, in bytes.
    pub(super) fn on_ack(&mut self, delivered: u64, marked: u64) {
        self.delivered += delivered;
        self.marked += marked;
    }

    /// A round is over. Its share counts if `counts`.
    pub(super) fn end_round(&mut self, counts: bool) {
        if counts {
            let share = self.marked as f64 / self.delivered.max(1) as f64;
            self.mean += (share.min(1.0) - self.mean) * GAIN;
        }
        (self.marked, self.delivered) = (0, 0);
    }

    /// What a mark leaves of a window.
    pub(super) fn reduced(&self, window: f64) -> f64 {
        window * (1.0 - self.mean / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1, then 15/16 + 1/64, then a round without marks.
    #[test]
    fn the_mean_moves_by_a_sixteenth() {
        let mut share = MarkedShare::UNKNOWN;
        assert_eq!(share.reduced(1_000.0), 500.0);
        share.on_ack(3_000, 0);
        share.on_ack(1_000, 1_000);
        share.end_round(true);
        assert_eq!(share.mean, 1.0 - 0.75 / 16.0);
        share.on_ack(4_000, 0);
        share.end_round(true);
        assert_eq!(share.mean, (1.0 - 0.75 / 16.0) * 15.0 / 16.0);
        // What does not count is forgotten all the same.
        let before = share.mean;
        share.on_ack(1_000, 1_000);
        share.end_round(false);
        assert_eq!((share.mean, share.marked, share.delivered), (before, 0, 0));
    }

    #[test]
    fn more_marks_than_packets_are_all_packets() {
        let mut share = MarkedShare::UNKNOWN;
        share.on_ack(1_000, 5_000);
        share.end_round(true);
        assert_eq!(share.mean, 1.0);
    }
}
