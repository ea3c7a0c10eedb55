//! Tins: classes of packets by their codepoint, and who of them goes first.
//!
//! Each tin has a share of the rate, its threshold. Below it the tin goes before those
//! that stand lower, and above it only when nobody below a threshold has packets: so a
//! tin may use the whole link if it is alone, and whoever marks everything as urgent
//! gets the urgent tin's share of a busy link and no more. Thresholds are not limits.
//!
//! A tin knows where it stands by a clock of its own, which a packet moves on by what
//! it takes at the tin's share: while the clock is behind, the tin is below its
//! threshold. Where no rate is known there are no clocks, and tins take turns by deficit
//! round robin, with quanta in proportion to their shares (`tc-cake(8)`, and Linux 7.3,
//! `sch_cake.c`).

use std::ops::RangeInclusive;

use super::BYTE;
use super::cobalt::CobaltParameters;
use super::flows::Flows;
use crate::packet::Dscp;
use crate::units::{Bytes, Rate, Span, Time};

/// Which tins there are, in the words of tc-cake.
pub(super) const SCHEMES: &[&str] =
    &["diffserv3", "diffserv4", "diffserv8", "precedence", "besteffort"];

/// Tins, from the one that stands lowest to the highest.
#[derive(Debug)]
pub(super) struct Tins {
    by_codepoint: [u8; 64],
    shares: Vec<Share>,
    tins: Vec<Tin>,
    /// The tin whose turn it is, where no rate is known.
    turn: usize,
}

/// A tin's part of the rate, or of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Share {
    /// The whole, divided by two so many times.
    Halved(u32),
    /// The whole, of which an eighth is taken off so many times.
    Eighth(u32),
}

impl Share {
    fn of(self, whole: u64) -> u64 {
        match self {
            Share::Halved(times) => whole >> times,
            Share::Eighth(times) => (0..times).fold(whole, |rest, _| rest - rest.div_ceil(8)),
        }
    }
}

/// One tin.
#[derive(Debug)]
pub(super) struct Tin {
    pub(super) flows: Flows,
    pub(super) cobalt: CobaltParameters,
    /// What it holds.
    pub(super) packets: u32,
    rate: Option<Rate>,
    /// Its clock.
    next: Time,
    /// In bytes, and so wide that packets of any size fit.
    quantum: i128,
    deficit: i128,
}

impl Tins {
    /// The tins of a word of [`SCHEMES`], of a rate if it is known, for round trips of
    /// up to about `rtt`.
    pub(super) fn new(scheme: &str, rtt: Span, rate: Option<Rate>, seed: u64) -> Tins {
        let halved = |times: &[u32]| times.iter().map(|times| Share::Halved(*times)).collect();
        let (shares, whole): (Vec<Share>, u64) = match scheme {
            "diffserv3" => (halved(&[0, 4, 2]), 1_024),
            "diffserv4" => (halved(&[0, 4, 1, 2]), 1_024),
            "diffserv8" | "precedence" => ((0..8).map(Share::Eighth).collect(), 256),
            _ => (halved(&[0]), 65_535),
        };
        let tin = |share: &Share| Tin {
            flows: Flows::new(seed),
            cobalt: CobaltParameters::new(rtt, None),
            packets: 0,
            rate: None,
            next: Time::ZERO,
            quantum: share.of(whole).into(),
            deficit: 0,
        };
        let tins = shares.iter().map(tin).collect();
        let by_codepoint = std::array::from_fn(|codepoint| tin_of(scheme, codepoint as u8));
        let mut tins = Tins { by_codepoint, shares, tins, turn: 0 };
        tins.set(rtt, rate);
        tins
    }

    /// Sets the rate and the round trips from now on.
    pub(super) fn set(&mut self, rtt: Span, rate: Option<Rate>) {
        for (tin, share) in self.tins.iter_mut().zip(&self.shares) {
            // Slower than 64 bytes a second Linux does not count.
            let rate = rate.map(|rate| Rate(share.of(rate.0)).max(Rate(512)));
            tin.rate = rate;
            tin.cobalt = CobaltParameters::new(rtt, rate);
            tin.flows.set_quantum(quantum(rate));
        }
    }

    /// The number of the tin for packets with this codepoint.
    pub(super) fn of(&self, dscp: Dscp) -> usize {
        self.by_codepoint[usize::from(dscp.number())].into()
    }

    pub(super) fn tin(&mut self, number: usize) -> &mut Tin {
        &mut self.tins[number]
    }

    /// Queues that have turns.
    pub(super) fn active(&self) -> usize {
        self.tins.iter().map(|tin| tin.flows.active()).sum()
    }

    /// The tin to take a packet from at `now`; some tin has packets.
    pub(super) fn next(&mut self, now: Time) -> usize {
        if self.tins[0].rate.is_some() { self.first_due(now) } else { self.next_in_turn() }
    }

    /// The highest tin below its threshold, or else the one that will be first.
    fn first_due(&self, now: Time) -> usize {
        let served = (0..self.tins.len()).rev().filter(|tin| self.tins[*tin].flows.have_turns());
        // Of equal ones the first, which stands highest.
        let first = served.min_by_key(|tin| self.tins[*tin].next.max(now));
        first.expect("a tin with packets has turns")
    }

    /// A tin keeps its turn until it is in debt.
    fn next_in_turn(&mut self) -> usize {
        let mut waiting = 0;
        loop {
            let tin = &mut self.tins[self.turn];
            let has_turns = tin.flows.have_turns();
            if has_turns && tin.deficit >= 0 {
                return self.turn;
            }
            if tin.deficit <= 0 {
                tin.deficit += tin.quantum;
            }
            self.turn = (self.turn + 1) % self.tins.len();
            waiting += 1;
            if waiting == self.tins.len() {
                self.skip_rounds();
                waiting = 0;
            }
        }
    }

    /// Gives all tins the quanta of all rounds in which none would have its turn but
    /// the last: a packet may be larger than many quanta.
    fn skip_rounds(&mut self) {
        let lacking = |tin: &Tin| (-tin.deficit).max(0) / tin.quantum;
        let served = self.tins.iter().filter(|tin| tin.flows.have_turns());
        let rounds = served.map(lacking).min().unwrap_or(0);
        for tin in &mut self.tins {
            let until_credit = if tin.deficit <= 0 { -tin.deficit / tin.quantum + 1 } else { 0 };
            tin.deficit += rounds.min(until_credit) * tin.quantum;
        }
    }
}

impl Tin {
    /// A packet comes to it at `now`: a tin that had none saves up nothing.
    pub(super) fn arrived(&mut self, now: Time) {
        if self.packets == 0 {
            self.next = self.next.max(now);
        }
        self.packets += 1;
    }

    /// A packet of it that takes `size` leaves at `now`.
    pub(super) fn sent(&mut self, now: Time, size: Bytes) {
        let Some(rate) = self.rate else {
            self.deficit -= i128::from(size.0);
            return;
        };
        let takes = rate.transmission(size);
        self.next = if self.next < now { self.next + takes } else { self.next.max(now + takes) };
    }
}

/// The credits of a flow for a turn: what the rate carries in about 2 ms, from 300 bytes
/// to an Ethernet frame.
fn quantum(rate: Option<Rate>) -> u32 {
    let bytes = rate.map_or(1_514, |rate| (rate.0 >> 15).clamp(300, 1_514));
    // A frame has 2^27 credits.
    (bytes * BYTE) as u32
}

/// The tin of a codepoint. Names are those of `RFC 4594`, with LE (`RFC 8622`), VA
/// (`RFC 5865`) and two from before there were codepoints, which asked for throughput
/// and for a low delay.
fn tin_of(scheme: &str, codepoint: u8) -> u8 {
    const LE: u8 = 1;
    const THROUGHPUT: u8 = 2;
    const DELAY: u8 = 4;
    const VA: u8 = 44;
    const EF: u8 = 46;
    let class = codepoint / 8;
    let is_class_selector = codepoint.is_multiple_of(8);
    // AF11 to AF43: the class, and how readily to drop.
    let is_assured = (1..=4).contains(&class) && matches!(codepoint % 8, 2 | 4 | 6);
    let cs = |classes: RangeInclusive<u8>| is_class_selector && classes.contains(&class);
    let af = |classes: RangeInclusive<u8>| is_assured && classes.contains(&class);
    match (scheme, codepoint) {
        ("diffserv3" | "diffserv4", LE) => 1,
        ("diffserv3" | "diffserv4", _) if cs(1..=1) => 1,
        ("diffserv3", DELAY | VA | EF) => 2,
        ("diffserv3", _) if cs(6..=7) => 2,
        ("diffserv4", DELAY) => 2,
        ("diffserv4", _) if af(2..=4) || cs(2..=3) => 2,
        ("diffserv4", VA | EF) => 3,
        ("diffserv4", _) if cs(4..=7) => 3,
        ("diffserv8", LE) => 0,
        ("diffserv8", THROUGHPUT) => 1,
        ("diffserv8", _) if af(1..=1) || cs(1..=1) => 1,
        ("diffserv8", _) if af(3..=4) || cs(3..=3) => 3,
        ("diffserv8", DELAY) => 4,
        ("diffserv8", _) if af(2..=2) => 4,
        ("diffserv8", _) if cs(2..=2) => 5,
        ("diffserv8", VA | EF) => 6,
        ("diffserv8", _) if cs(4..=5) => 6,
        ("diffserv8", _) if cs(6..=7) => 7,
        ("diffserv8", _) => 2,
        ("precedence", _) => class,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codepoints_have_the_tins_of_linux() {
        let table = |scheme: &str| (0..64).map(|dscp| tin_of(scheme, dscp)).collect::<Vec<_>>();
        let digits = |rows: [&str; 8]| rows.concat().bytes().map(|c| c - b'0').collect::<Vec<_>>();
        // A row for each class selector, from CS0 on.
        assert_eq!(
            table("diffserv3"),
            digits([
                "01002000", "10000000", "00000000", "00000000", "00000000", "00002020", "20000000",
                "20000000",
            ])
        );
        assert_eq!(
            table("diffserv4"),
            digits([
                "01002000", "10000000", "20202020", "20202020", "30202020", "30003030", "30000000",
                "30000000",
            ])
        );
        assert_eq!(
            table("diffserv8"),
            digits([
                "20124222", "12121212", "52424242", "32323232", "62323232", "62226262", "72222222",
                "72222222",
            ])
        );
        assert_eq!(table("besteffort"), [0; 64]);
        assert_eq!(table("precedence")[46], 5);
    }

    #[test]
    fn tins_have_their_shares_of_the_rate_and_of_a_round() {
        let shares = |scheme: &str| {
            let tins = Tins::new(scheme, Span::millis(100), Some(Rate(16_000_000)), 1);
            let kilobits = |tin: &Tin| (tin.rate.map_or(0, |rate| rate.0 / 1_000), tin.quantum);
            tins.tins.iter().map(kilobits).collect::<Vec<_>>()
        };
        assert_eq!(shares("besteffort"), [(16_000, 65_535)]);
        assert_eq!(shares("diffserv3"), [(16_000, 1_024), (1_000, 64), (4_000, 256)]);
        assert_eq!(shares("diffserv4")[2..], [(8_000, 512), (4_000, 256)]);
        let eighths = [
            (16_000, 256),
            (14_000, 224),
            (12_250, 196),
            (10_718, 171),
            (9_378, 149),
            (8_206, 130),
            (7_180, 113),
            (6_283, 98),
        ];
        assert_eq!(shares("diffserv8"), eighths);
        assert_eq!(shares("precedence"), eighths);
    }
}
