//! How the viewers of a source watch video in segments.

use std::fmt;
use std::sync::Arc;

use tidegate_core::Span;

use super::short;
use crate::trace::Movie;
use crate::video::Rule;

/// What the viewers of a source watch, and how their players choose.
#[derive(Clone, Debug)]
pub struct VideoProfile {
    /// What they watch, again and again.
    pub movie: Arc<Movie>,
    /// How much of it a player holds in advance, in time.
    pub buffer: Span,
    /// How it chooses the quality of a segment.
    pub rule: Rule,
    /// The round trips of TLS before the first request of a connection: 1 with TLS 1.3
    /// (RFC 8446), 2 with TLS 1.2, none without TLS.
    pub handshakes: usize,
}

impl fmt::Display for VideoProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let movie = &self.movie;
        let segment = short(movie.segment().as_seconds());
        write!(f, "video in segments of {segment} s, ")?;
        match movie.rates() {
            [only] => write!(f, "of {only}")?,
            [least, .., most] => {
                write!(f, "{} qualities of {least} to {most}", movie.rates().len())?;
            }
            [] => unreachable!("a movie has a quality"),
        }
        f.write_str(match self.rule {
            Rule::Bola => ", by BOLA",
            Rule::Rate => ", by rate",
        })
    }
}
