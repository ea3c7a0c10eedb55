//! A player of video in segments (DASH, ISO/IEC 23009-1; HLS, RFC 8216): which segment it
//! asks for, when, in which quality, and what its viewer sees.
//!
//! The player asks for one segment at a time and plays what it has, from the moment at which
//! the first segment is complete. When its buffer runs dry, it stalls, or rebuffers, until
//! the next segment is complete: it *stalls*. It asks for the next segment as soon as its
//! buffer has room for it. What quality it asks for is the choice of a [`Rule`]:
//!
//! * *BOLA* (Spiteri 2016) goes by the buffer alone. Of the qualities
//!   `m` it takes the one with the largest `(V (v_m + γp) - Q) / S_m`, where `Q` is the buffer,
//!   `S_m` the nominal size of a segment and `v_m = ln(S_m / S_1)` what a quality is worth. `V`
//!   is such that the best quality fills the buffer (`γp` is 5): `V = (B - p) / (v_M + γp)`.
//!   Two things that the authors add are in it: near the start, the rule is that of a smaller
//!   buffer (their BOLA-FINITE), half of what has been asked for and at least three
//!   segments; and it goes up only as far as the network has been fast enough lately, or by
//!   one step beyond (their BOLA-U), so that it does not swing between two qualities.
//! * The *rate-based* rule takes the best quality whose segments come as fast as they play, at
//!   nine tenths of the rate at which segments came lately: the smaller of two exponential
//!   means with half-lives of three and eight seconds of loading, as in the reference player
//!   of the DASH Industry Forum.
//!
//! Left out: to give up a segment on the way, to replace one in the buffer, to seek, and the
//! end of a movie, near which the authors' rule lets the buffer run down. A movie that is over
//! begins again.
//!
//! The player knows no network: whoever asks for segments tells it when they came. So the
//! same code stands behind simulated connections and behind the fluid link on which tests
//! hold it against the authors' own program.

mod rule;

use std::collections::VecDeque;
use std::sync::Arc;

use tidegate_core::{Bytes, Rate, Span, Time};

pub use self::rule::Rule;
use self::rule::{Estimate, Weighing};
use crate::trace::Movie;

/// What a player does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It asks for a segment of this size, now.
    Ask(Bytes),
    /// It asks again after so long.
    Wait(Span),
}

/// What a viewer saw.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Viewing {
    /// How long the picture moved.
    pub played: Span,
    /// How long it stood still after it had begun.
    pub stalled: Span,
    /// How often.
    pub stalls: u32,
    /// Start-up: from the first request to the first picture; `None` if that was not in the time.
    pub startup: Option<Span>,
    /// Changes of quality between segments that were played one after the other.
    pub switches: u32,
    /// The nominal rate of what was played times how long that was played, in bits.
    bits: f64,
    /// How long it waited for a picture that did not come.
    pub waited: Span,
}

impl Viewing {
    /// The mean nominal rate of what was played; `None` if nothing was.
    #[must_use]
    pub fn mean_rate(&self) -> Option<Rate> {
        (self.played > Span::ZERO).then(|| Rate((self.bits / self.played.as_seconds()) as u64))
    }

    /// The share of the time in which the picture stood still, of all time in which it moved or
    /// should have; `None` if there was no such time. A player that never showed one is
    /// counted from its first request.
    #[must_use]
    pub fn stalled_ratio(&self) -> Option<f64> {
        let still = self.stalled.as_seconds() + self.waited.as_seconds();
        let whole = still + self.played.as_seconds();
        (whole > 0.0).then(|| still / whole)
    }

    /// Stalls for each minute of the picture; `None` if there was none.
    #[must_use]
    pub fn stalls_per_minute(&self) -> Option<f64> {
        self.per_minute(self.stalls)
    }

    /// Changes of quality for each minute of the picture; `None` if there was none.
    #[must_use]
    pub fn switches_per_minute(&self) -> Option<f64> {
        self.per_minute(self.switches)
    }

    fn per_minute(&self, count: u32) -> Option<f64> {
        let minutes = self.played.as_seconds() / 60.0;
        (minutes > 0.0).then(|| f64::from(count) / minutes)
    }
}

/// A player.
#[derive(Clone, Debug)]
pub struct Player {
    movie: Arc<Movie>,
    /// What it may have of a movie beyond what is on the screen, in time.
    buffer: Span,
    weighing: Weighing,
    estimate: Estimate,
    /// Qualities of the segments that it has; the first is on the screen.
    has: VecDeque<usize>,
    /// How long the first of them has played.
    shown: Span,
    /// The quality of the last segment that played, or plays.
    last_shown: Option<usize>,
    /// The number and the quality of the segment that it asks for, or asked for last.
    segment: u64,
    quality: usize,
    /// When it asked for the first segment.
    began: Option<Time>,
    /// Whether the picture has moved.
    started: bool,
    /// Whether it has stopped since.
    stands_still: bool,
    /// The time up to which it has played.
    at: Time,
    viewing: Viewing,
}

impl Player {
    /// A player that has nothing yet. `buffer` is at least a segment.
    #[must_use]
    pub fn new(movie: Arc<Movie>, buffer: Span, rule: Rule) -> Player {
        let buffer = buffer.max(movie.segment());
        Player {
            weighing: Weighing::new(&movie, buffer, rule),
            estimate: Estimate::default(),
            buffer,
            movie,
            has: VecDeque::new(),
            shown: Span::ZERO,
            last_shown: None,
            segment: 0,
            quality: 0,
            began: None,
            started: false,
            stands_still: false,
            at: Time::ZERO,
            viewing: Viewing::default(),
        }
    }

    /// What it does at `now`, when no segment is on its way.
    pub fn next(&mut self, now: Time) -> Next {
        self.play_until(now);
        if self.began.is_none() {
            self.began = Some(now);
            return Next::Ask(self.movie.size(0, 0));
        }
        let too_much = (self.level() + self.movie.segment()).0.saturating_sub(self.buffer.0);
        if too_much > 0 {
            return Next::Wait(Span(too_much));
        }
        let level = self.level();
        self.quality =
            self.weighing.choose(&self.movie, self.segment, level, self.quality, &self.estimate);
        Next::Ask(self.movie.size(self.segment, self.quality))
    }

    /// The segment that it asked for is complete at `now`: `first` after the request came its
    /// first byte, and the last one `rest` later.
    pub fn came(&mut self, now: Time, first: Span, rest: Span) {
        self.play_until(now);
        let size = self.movie.size(self.segment, self.quality);
        self.estimate.learn(size, first, rest, self.movie.segment());
        self.has.push_back(self.quality);
        self.segment += 1;
        self.stands_still = false;
        if !self.started {
            self.started = true;
            self.viewing.startup = self.began.map(|began| now.since(began));
            self.viewing.waited = Span::ZERO;
        }
    }

    /// The quality of the last segment that it asked for, from 0, the lowest.
    #[must_use]
    pub fn quality(&self) -> usize {
        self.quality
    }

    /// What a viewer saw up to `now`.
    pub fn viewing(&mut self, now: Time) -> Viewing {
        self.play_until(now);
        self.viewing
    }

    /// Forgets what the viewer saw up to `now`; the player goes on.
    pub fn forget(&mut self, now: Time) {
        self.play_until(now);
        self.viewing = Viewing::default();
    }

    /// How much it has to play.
    fn level(&self) -> Span {
        Span(self.movie.segment().0 * self.has.len() as u64 - self.shown.0)
    }

    fn play_until(&mut self, now: Time) {
        let mut left = now.since(self.at);
        self.at = self.at.max(now);
        if !self.started {
            if self.began.is_some() {
                self.viewing.waited += left;
            }
            return;
        }
        while let Some(&quality) = self.has.front()
            && left > Span::ZERO
        {
            if self.shown == Span::ZERO {
                let is_switch = self.last_shown.is_some_and(|last| last != quality);
                self.viewing.switches += u32::from(is_switch);
                self.last_shown = Some(quality);
            }
            let plays = left.min(Span(self.movie.segment().0 - self.shown.0));
            self.viewing.played += plays;
            self.viewing.bits += self.movie.rates()[quality].0 as f64 * plays.as_seconds();
            self.shown += plays;
            left = Span(left.0 - plays.0);
            if self.shown == self.movie.segment() {
                self.has.pop_front();
                self.shown = Span::ZERO;
            }
        }
        if left > Span::ZERO && !self.stands_still {
            self.stands_still = true;
            self.viewing.stalls += 1;
        }
        self.viewing.stalled += left;
    }
}
