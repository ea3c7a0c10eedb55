//! The frames of a recorded stream: when each was sent and how large it was.
//!
//! A frame is what an application hands down at once: a picture of a video, which
//! takes several packets, or the one packet in which a call sends 20 ms of speech.
//! The file is a table like a [flow log](super::flow_log), with the columns
//! `start_s` and `size_bytes`; frames may be in any order.

use std::ops::RangeInclusive;
use std::path::Path;

use tidegate_core::{Bytes, Rate, Span, Time};

use super::ReadError;
use super::error::{Mismatch, contents};
use super::flow_log::rows;

/// The frames of one stream, by time, the first at zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameTrace {
    frames: Vec<Frame>,
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// When it was sent, counted from the first frame.
    pub at: Time,
    /// Its size.
    pub size: Bytes,
}

impl FrameTrace {
    /// Reads a file of frames with sizes in `sizes`.
    ///
    /// # Errors
    /// When a line is malformed, or there is no frame.
    pub fn read(path: &Path, sizes: RangeInclusive<Bytes>) -> Result<FrameTrace, ReadError> {
        let (file, contents) = contents(path)?;
        FrameTrace::parse(&file, &contents, sizes)
    }

    /// Reads frames from memory; `name` is for error messages.
    ///
    /// # Errors
    /// As [`read`](FrameTrace::read).
    pub fn parse(
        name: &str,
        contents: &[u8],
        sizes: RangeInclusive<Bytes>,
    ) -> Result<FrameTrace, ReadError> {
        let mut frames = rows(name, contents, |row| {
            if sizes.contains(&row.size) {
                return Ok(Frame { at: row.start, size: row.size });
            }
            let expected = format!("from {} to {} in size_bytes", sizes.start().0, sizes.end().0);
            Err(Mismatch::new(row.size.0.to_string(), expected))
        })?;
        frames.sort_by_key(|frame| frame.at);
        let Some(first) = frames.first().map(|frame| frame.at) else {
            return Err(ReadError::Nothing { file: name.into(), expected: "frames".into() });
        };
        for frame in &mut frames {
            frame.at = Time::ZERO + frame.at.since(first);
        }
        Ok(FrameTrace { frames })
    }

    /// The frames: at least one.
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// The time after which it may start again: the last frame takes as long as the
    /// others do on average, so that repetition does not change the rate. Zero if
    /// all frames are at one time.
    #[must_use]
    pub fn period(&self) -> Span {
        let count = self.frames.len() as u128;
        let last = self.frames.last().map_or(0, |frame| u128::from(frame.at.0));
        let period = (last * count).checked_div(count - 1).unwrap_or(0);
        Span(u64::try_from(period).unwrap_or(u64::MAX))
    }

    /// The sum of all sizes.
    #[must_use]
    pub fn size(&self) -> Bytes {
        self.frames.iter().map(|frame| frame.size).sum()
    }

    /// The mean rate of the frames, without headers; zero if they take no time.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        super::mean_rate(self.size(), self.period())
    }
}
