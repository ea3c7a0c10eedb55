//! Accurate ECN (RFC 9768): the receiver says how many packets came in with a mark, and
//! not only that one did.
//!
//! The three flags AE, CWR and ECE of every segment but a SYN hold the lowest bits of that
//! number, which begins at five. The number goes on and is not taken back, so a lost
//! acknowledgement loses nothing, as long as fewer than eight marks come between two that
//! arrive; the receiver acknowledges often enough for that. Where acknowledgements cover
//! more than seven packets, the sender takes the number to have gone round as often as it
//! can have, unless they do so all the time (section 3.2.2.5.2, and Linux's test for that).
//!
//! On a SYN all three flags ask for it, and the answer says in which of four ways the SYN
//! itself came in (section 3.1.1). Two things are left out: the option that counts bytes,
//! which no sender here needs, and the repetition of that code on the third segment of a
//! handshake, which serves to find what has been changed on the way.

use tidegate_core::Ecn;

use super::header::Flags;

/// Where both counters begin: no value that a broken path leaves behind.
const INITIAL: u8 = 5;
/// The counter's part that fits into three flags.
const MASK: u8 = 0b111;
/// Acknowledgements that cover more packets in the mean are thinned out on the way.
const THINNED_PACKETS: u16 = 4;
/// An acknowledgement's weight in that mean, as a shift, and the fraction bits.
const WEIGHT: u32 = 6;
const FRACTION: u32 = 6;
/// More than that counts as that in the mean.
const MOST_PACKETS: u64 = 1_000;
/// So many marks since the last acknowledgement call for one: if data waits for it, and if
/// none does. Fewer would have two ends acknowledge acknowledgements for ever.
const MOST_UNTOLD: (u8, u8) = (2, 3);

/// The flags that ask for accurate feedback, on a SYN.
pub(super) const REQUEST: Flags = Flags::ACE;

/// The flags of the answer to such a SYN, by how that one came in (Table 2).
pub(super) fn answer(syn: Ecn) -> Flags {
    match syn {
        Ecn::NotEct => Flags::CWR,
        Ecn::Ect1 => Flags::CWR | Flags::ECE,
        Ecn::Ect0 => Flags::AE,
        Ecn::Ce => Flags::AE | Flags::CWR,
    }
}

/// Whether an answer grants accurate feedback: not if it is as classic hosts answer, with
/// ECE alone or nothing, or sends back what it got.
pub(super) fn is_granted(flags: Flags) -> bool {
    [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce]
        .into_iter()
        .any(|syn| flags.ace() == answer(syn).ace())
}

/// What a receiver counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    /// `r.cep`, of which three bits count.
    marked: u8,
    /// Of these, those that no acknowledgement has told of.
    untold: u8,
    /// Whether the last packet had a mark.
    previous: bool,
}

impl Default for Counter {
    fn default() -> Counter {
        Counter { marked: INITIAL, untold: 0, previous: false }
    }
}

impl Counter {
    /// A packet has come in, `data` or not, while data `waits` for an acknowledgement or
    /// does not. Returns whether it must be acknowledged at once (section 3.2.2.5.1).
    pub(super) fn on_packet(&mut self, marked: bool, data: bool, waits: bool) -> bool {
        let changed = marked && !self.previous && data;
        self.previous = marked;
        if !marked {
            return false;
        }
        self.marked = self.marked.wrapping_add(1);
        self.untold = self.untold.saturating_add(1);
        let most = if data || waits { MOST_UNTOLD.0 } else { MOST_UNTOLD.1 };
        changed || self.untold >= most
    }

    /// The flags of a segment that leaves now.
    pub(super) fn tell(&mut self) -> Flags {
        self.untold = 0;
        Flags::of_ace(self.marked)
    }
}

/// What a sender makes of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Feedback {
    /// `s.cep`, of which three bits count.
    marked: u8,
    /// How many packets an acknowledgement covers in the mean, in 64ths.
    covered: u16,
}

impl Default for Feedback {
    fn default() -> Feedback {
        Feedback { marked: INITIAL, covered: 0 }
    }
}

impl Feedback {
    /// How many packets more have had a mark, by an acknowledgement with these flags that
    /// tells of `packets` more that have arrived.
    pub(super) fn on_acknowledgement(&mut self, flags: Flags, packets: u64) -> u64 {
        let covered = (packets.min(MOST_PACKETS) as u16) << FRACTION;
        self.covered = match self.covered {
            0 => covered,
            mean => mean - (mean >> WEIGHT) + (covered >> WEIGHT),
        };
        let least = u64::from(flags.ace().wrapping_sub(self.marked) & MASK);
        let is_thinned = self.covered > THINNED_PACKETS << FRACTION;
        let more = if packets <= u64::from(MASK) || is_thinned {
            least
        } else {
            packets - ((packets - least) & u64::from(MASK))
        };
        self.marked = self.marked.wrapping_add(more as u8);
        more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 2 of the RFC, as AE, CWR and ECE.
    #[test]
    fn an_answer_says_how_the_syn_came_in() {
        for (syn, code) in
            [(Ecn::NotEct, 0b010), (Ecn::Ect1, 0b011), (Ecn::Ect0, 0b100), (Ecn::Ce, 0b110)]
        {
            assert_eq!(answer(syn).ace(), code);
            assert!(is_granted(answer(syn) | Flags::SYN | Flags::ACK));
        }
        for other in [0b000, 0b001, 0b101, 0b111] {
            assert!(!is_granted(Flags::of_ace(other)), "{other:03b}");
        }
    }

    #[test]
    fn the_counter_begins_at_five_and_goes_round() {
        let mut counter = Counter::default();
        assert_eq!(counter.tell().ace(), 5);
        let codes = [true, true, false, true, true].map(|marked| {
            counter.on_packet(marked, true, false);
            counter.tell().ace()
        });
        assert_eq!(codes, [6, 7, 7, 0, 1]);
    }

    #[test]
    fn a_first_mark_and_each_second_one_call_for_an_acknowledgement() {
        let mut counter = Counter::default();
        let at_once =
            [false, true, true, true, false, true].map(|m| counter.on_packet(m, true, true));
        // Nobody has acknowledged meanwhile: from the second on they all call.
        assert_eq!(at_once, [false, true, true, true, false, true]);
        counter.tell();
        assert!(!counter.on_packet(true, true, true));
        assert!(counter.on_packet(true, true, true));
        // Acknowledgements: the third.
        counter.tell();
        assert_eq!([true; 3].map(|m| counter.on_packet(m, false, false)), [false, false, true]);
    }

    #[test]
    fn the_sender_follows_round_after_round() {
        let (mut counter, mut feedback) = (Counter::default(), Feedback::default());
        for _ in 0..100 {
            counter.on_packet(true, true, true);
            counter.on_packet(true, true, true);
            assert_eq!(feedback.on_acknowledgement(counter.tell(), 2), 2);
            assert_eq!(feedback.on_acknowledgement(counter.tell(), 2), 0);
        }
    }

    /// Ten packets at once, and the number has gone on by two: it may have been ten.
    /// When acknowledgements always cover so many, it was two.
    #[test]
    fn a_gap_is_taken_for_the_worst_unless_gaps_are_the_rule() {
        let usual = |packets, times| {
            let mut feedback = Feedback::default();
            (0..times).for_each(|_| _ = feedback.on_acknowledgement(Flags::of_ace(5), packets));
            feedback
        };
        assert_eq!(usual(2, 1).on_acknowledgement(Flags::of_ace(7), 10), 10);
        assert_eq!(usual(2, 1).on_acknowledgement(Flags::of_ace(5), 10), 8);
        assert_eq!(usual(2, 1).on_acknowledgement(Flags::of_ace(7), 7), 2);
        assert_eq!(usual(7, 1).on_acknowledgement(Flags::of_ace(7), 10), 2);
    }
}
