//! Sources of video.

use std::sync::Arc;

use tidegate_core::{Bytes, Span};

use super::super::data::load_text;
use super::super::syntax::{VideoChoice, VideoSource};
use super::super::values::At;
use super::{Reader, WEB_REQUEST, one_of};
use crate::scenario::{Marking, Opener, TrafficKind, TrafficSpec, VideoProfile};
use crate::trace::Movie;
use crate::trace::movie::{LONGEST_SEGMENT, MOST_QUALITIES};
use crate::video::Rule;
use tidegate_files::Mistake;

/// Of segments all of one size.
const SEGMENT: Span = Span::seconds(4);
/// That of BOLA's evaluation.
const BUFFER: Span = Span::seconds(25);
/// No player holds more: a day.
const MOST_BUFFER: Span = Span::seconds(86_400);

impl Reader<'_> {
    pub(in crate::scenario::file) fn video(
        &self,
        source: &At<VideoSource>,
    ) -> Result<TrafficSpec, Mistake> {
        let request = source.request.map_or(WEB_REQUEST, |request| request.0.max(Bytes(1)));
        let opened_by = Opener::Receiver { request };
        let transfer = self.transfer(&source.from, &source.to, opened_by, &source.tcp, false)?;
        let (start, stop) = self.times(source.start.as_ref(), source.stop.as_ref())?;
        let movie = self.movie(source)?;
        let buffer = source.buffer.as_ref().map_or(BUFFER, |buffer| buffer.value.0);
        let least = Span(movie.segment().0 * 2);
        if let Some(written) = &source.buffer
            && !(least..=MOST_BUFFER).contains(&buffer)
        {
            let expected = format!("two segments, '{least}', up to '{MOST_BUFFER}'");
            return Err(Mistake::at(&written.place, format!("'{buffer}'"), expected));
        }
        let profile = VideoProfile {
            movie: Arc::new(movie),
            buffer: buffer.max(least),
            rule: source.choice.map_or(Rule::default(), Rule::from),
            handshakes: source.tls.map_or(1, |tls| tls.0 as usize),
        };
        let kind = TrafficKind::Video { transfer, profile };
        let (name, class) = (source.name.value.clone(), source.class);
        let marking = Marking { sender: source.dscp.0, receiver: source.reply_dscp.0 };
        Ok(TrafficSpec { name, start, stop, class, marking, deadline: None, kind })
    }

    fn movie(&self, source: &At<VideoSource>) -> Result<Movie, Mistake> {
        let given = [
            source.movie.as_ref().map(|it| &it.place),
            source.qualities.as_ref().map(|it| &it.place),
        ];
        one_of(&given, &source.place, "one of movie, qualities")?;
        if let Some(file) = &source.movie {
            if let Some(segment) = &source.segment {
                let expected = "none, since the movie has it";
                return Err(Mistake::at(&segment.place, "segment", expected));
            }
            let expected = "a JSON file with the sizes of a movie's segments";
            return load_text(self.data, file, expected, Movie::parse);
        }
        let qualities = source.qualities.as_ref().expect("one of the two is given");
        let rates: Vec<_> = qualities.value.iter().map(|rate| rate.0).collect();
        let segment = source.segment.as_ref().map_or(SEGMENT, |segment| segment.value.0);
        if let Some(written) = &source.segment
            && !(Span::millis(100)..=LONGEST_SEGMENT).contains(&segment)
        {
            let expected = format!("from '100 ms' to '{LONGEST_SEGMENT}'");
            return Err(Mistake::at(&written.place, format!("'{segment}'"), expected));
        }
        Movie::constant(segment, &rates).ok_or_else(|| {
            let expected = format!("1 to {MOST_QUALITIES} rates, the lowest first, each another");
            Mistake::at(&qualities.place, format!("{} rates", rates.len()), expected)
        })
    }
}

impl From<VideoChoice> for Rule {
    fn from(written: VideoChoice) -> Rule {
        match written {
            VideoChoice::Bola => Rule::Bola,
            VideoChoice::Rate => Rule::Rate,
        }
    }
}
