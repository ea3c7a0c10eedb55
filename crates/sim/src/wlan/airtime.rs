//! Turns by airtime: the station to which an access point sends, so that all
//! stations that want something get the medium for the same time.
//!
//! This is deficit round robin (Shreedhar 1996) in time instead of bytes (ATF).
//! Both directions are charged: what the access point sends to a station, each time
//! it does, and what it receives from it. The station that is first in line is
//! served while its deficit is not negative; otherwise it gets a quantum and goes
//! to the end. A station that gets something to send joins in front, as in Linux's
//! mac80211, where the paper has a list of new stations: it is served at once
//! unless it is in debt.

use std::collections::VecDeque;

use tidegate_core::Span;

/// mac80211's default weight of a station, in microseconds.
const QUANTUM: Span = Span::micros(256);

/// The stations of an access point.
#[derive(Debug)]
pub struct AirtimeTurns {
    line: VecDeque<usize>,
    stations: Vec<Account>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// In nanoseconds.
    deficit: i64,
    in_line: bool,
}

impl AirtimeTurns {
    /// None of the `stations` has anything to send.
    #[must_use]
    pub fn new(stations: usize) -> AirtimeTurns {
        AirtimeTurns { line: VecDeque::new(), stations: vec![Account::default(); stations] }
    }

    /// There is something for `station`.
    pub fn join(&mut self, station: usize) {
        let account = &mut self.stations[station];
        if !account.in_line {
            account.in_line = true;
            self.line.push_front(station);
        }
    }

    /// The station whose turn it is among those for which there is something to
    /// send, as `wants` says; the others leave the line.
    pub fn next(&mut self, wants: impl Fn(usize) -> bool) -> Option<usize> {
        loop {
            let station = *self.line.front()?;
            let account = &mut self.stations[station];
            if !wants(station) {
                account.in_line = false;
                self.line.pop_front();
            } else if account.deficit < 0 {
                // Amortised: every quantum given pays for airtime that was used.
                account.deficit += QUANTUM.0.cast_signed();
                self.line.rotate_left(1);
            } else {
                return Some(station);
            }
        }
    }

    /// The medium was used for `span` to or from `station`.
    pub fn charge(&mut self, station: usize, span: Span) {
        self.stations[station].deficit -= span.0.cast_signed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: fn(usize) -> bool = |_| true;

    #[test]
    fn a_station_sends_until_its_deficit_is_negative() {
        let mut turns = AirtimeTurns::new(2);
        turns.join(1);
        turns.join(0);
        let mut order = Vec::new();
        for _ in 0..9 {
            let station = turns.next(EVERY).expect("both want something");
            order.push(station);
            // A frame of station 0 takes 300 us, one of station 1 takes 100.
            turns.charge(station, Span::micros([300, 100][station]));
        }
        // 0 is at -300 and gets 256 twice before it sends at 212; 1 is at -100, at
        // 156 sends twice to -44, at 212 three times to -88.
        assert_eq!(order, [0, 1, 1, 1, 0, 1, 1, 1, 0]);
    }

    #[test]
    fn airtime_is_shared_equally_whatever_the_frames_take() {
        let mut turns = AirtimeTurns::new(3);
        (0..3).for_each(|station| turns.join(station));
        let mut used = [0_u64; 3];
        for _ in 0..10_000 {
            let station = turns.next(EVERY).expect("all want something");
            let micros = [250, 2_000, 5_000][station];
            turns.charge(station, Span::micros(micros));
            used[station] += micros;
        }
        let (least, most) = (used.iter().min(), used.iter().max());
        assert!(most > Some(&1_000_000) && most.zip(least).is_some_and(|(m, l)| m - l <= 5_256));
    }

    #[test]
    fn what_a_station_sends_is_charged_to_it_and_newcomers_are_first() {
        let mut turns = AirtimeTurns::new(2);
        turns.join(0);
        turns.charge(1, Span::micros(1_000));
        turns.join(1);
        // Station 1 is in debt: it needs four quanta, during which 0 continues to
        // send.
        let mut order = Vec::new();
        for _ in 0..5 {
            let station = turns.next(EVERY).expect("both want something");
            order.push(station);
            turns.charge(station, Span::micros(256));
        }
        assert_eq!(order, [0, 0, 0, 0, 1]);
        // Without debts, a station that comes goes first; one that wants nothing
        // leaves.
        let mut turns = AirtimeTurns::new(2);
        turns.join(0);
        turns.join(1);
        assert_eq!(turns.next(EVERY), Some(1));
        assert_eq!(turns.next(|station| station == 0), Some(0));
        assert_eq!(turns.next(|_| false), None);
        turns.join(1);
        assert_eq!(turns.next(EVERY), Some(1));
    }
}
