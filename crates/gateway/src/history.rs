//! The last ten minutes, a sample for each second, for pages that are opened later.
//!
//! A sample is what the status says of something that changes. Samples have numbers from
//! 0 on, so that a reader asks only for those that it lacks.

use std::collections::VecDeque;

use serde::Serialize;

use crate::status::{ClassStatus, Status};
use crate::times::Typical;

/// How many samples are kept: they take some 100 bytes for each class.
const MOST: usize = 600;

/// All samples that are kept.
#[derive(Debug)]
pub(crate) struct History {
    samples: VecDeque<Sample>,
    /// The number of the first of them.
    first: u64,
    /// Tells one gateway from the next at the same address.
    started_unix_ms: u64,
}

#[derive(Debug)]
struct Sample {
    uptime_s: f64,
    rate_bps: u64,
    carried_bps: u64,
    window: Option<f64>,
    held: u64,
    outstanding: u64,
    waiting: u64,
    tunnels: u64,
    uploads: u64,
    classes: Vec<ClassSample>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ClassSample {
    received_bps: u64,
    share_bps: Option<u64>,
    waited: Option<Typical>,
    first_byte: Option<Typical>,
    service: Option<Typical>,
}

impl Sample {
    fn of(status: &Status) -> Sample {
        let class = |class: &ClassStatus| ClassSample {
            received_bps: class.received_bps,
            share_bps: class.share_bps,
            waited: class.waited,
            first_byte: class.first_byte,
            service: class.service,
        };
        Sample {
            // Nobody draws less than a millisecond.
            uptime_s: (status.uptime_s * 1e3).round() / 1e3,
            rate_bps: status.rate_bps,
            carried_bps: status.carried_bps,
            window: status.window,
            held: status.held,
            outstanding: status.outstanding,
            waiting: status.waiting,
            tunnels: status.tunnels,
            uploads: status.uploads,
            classes: status.classes.iter().map(class).collect(),
        }
    }
}

/// Samples in columns, as `/history` gives them.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Columns {
    started_unix_ms: u64,
    /// The number of the first sample, and the one that comes after the last.
    first: u64,
    next: u64,
    uptime_s: Vec<f64>,
    rate_bps: Vec<u64>,
    carried_bps: Vec<u64>,
    window: Vec<Option<f64>>,
    held: Vec<u64>,
    outstanding: Vec<u64>,
    waiting: Vec<u64>,
    tunnels: Vec<u64>,
    uploads: Vec<u64>,
    classes: Vec<ClassColumns>,
}

#[derive(Debug, PartialEq, Serialize)]
struct ClassColumns {
    name: String,
    received_bps: Vec<u64>,
    share_bps: Vec<Option<u64>>,
    waited: TypicalColumns,
    first_byte: TypicalColumns,
    service: TypicalColumns,
}

#[derive(Debug, PartialEq, Serialize)]
struct TypicalColumns {
    median_s: Vec<Option<f64>>,
    p95_s: Vec<Option<f64>>,
}

impl History {
    pub(crate) fn new(started_unix_ms: u64) -> History {
        History { samples: VecDeque::with_capacity(MOST), first: 0, started_unix_ms }
    }

    /// A second is over, and this has come of it.
    pub(crate) fn push(&mut self, status: &Status) {
        if self.samples.len() == MOST {
            self.samples.pop_front();
            self.first += 1;
        }
        self.samples.push_back(Sample::of(status));
    }

    /// From now on each class has the samples of the one that was at this position, or empty
    /// ones.
    pub(crate) fn rearrange(&mut self, earlier: &[Option<usize>]) {
        for sample in &mut self.samples {
            let before = std::mem::take(&mut sample.classes);
            let of = |at: &Option<usize>| before.get((*at)?).copied();
            sample.classes = earlier.iter().map(|at| of(at).unwrap_or_default()).collect();
        }
    }

    /// The samples from the number `since` on, of classes with these names. Whoever asks
    /// for what is still to come has asked another gateway before, and gets all.
    pub(crate) fn columns(&self, names: &[String], since: u64) -> Columns {
        let next = self.first + self.samples.len() as u64;
        let first = if since > next { self.first } else { since.max(self.first) };
        let samples = || self.samples.iter().skip((first - self.first) as usize);
        let counts = |of: fn(&Sample) -> u64| samples().map(of).collect();
        let class = |(number, name): (usize, &String)| {
            let classes = || samples().filter_map(move |sample| sample.classes.get(number));
            let typical = |of: fn(&ClassSample) -> Option<Typical>| TypicalColumns {
                median_s: classes().map(|class| of(class).map(|it| it.median_s)).collect(),
                p95_s: classes().map(|class| of(class).map(|it| it.p95_s)).collect(),
            };
            ClassColumns {
                name: name.clone(),
                received_bps: classes().map(|class| class.received_bps).collect(),
                share_bps: classes().map(|class| class.share_bps).collect(),
                waited: typical(|class| class.waited),
                first_byte: typical(|class| class.first_byte),
                service: typical(|class| class.service),
            }
        };
        Columns {
            started_unix_ms: self.started_unix_ms,
            first,
            next,
            uptime_s: samples().map(|sample| sample.uptime_s).collect(),
            rate_bps: counts(|sample| sample.rate_bps),
            carried_bps: counts(|sample| sample.carried_bps),
            window: samples().map(|sample| sample.window).collect(),
            held: counts(|sample| sample.held),
            outstanding: counts(|sample| sample.outstanding),
            waiting: counts(|sample| sample.waiting),
            tunnels: counts(|sample| sample.tunnels),
            uploads: counts(|sample| sample.uploads),
            classes: names.iter().enumerate().map(class).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(samples: u64) -> History {
        let mut history = History::new(7);
        for number in 0..samples {
            let class = ClassStatus { received_bps: 10 * number, ..ClassStatus::default() };
            history.push(&Status { held: number, classes: vec![class], ..Status::default() });
        }
        history
    }

    #[test]
    fn a_reader_gets_what_it_lacks() {
        let history = history(5);
        let columns = |since| history.columns(&["a".into()], since);
        assert_eq!(columns(0).held, [0, 1, 2, 3, 4]);
        let last = columns(3);
        assert_eq!((last.first, last.next), (3, 5));
        assert_eq!(
            (&last.held[..], &last.classes[0].received_bps[..]),
            (&[3, 4][..], &[30, 40][..])
        );
        assert!(columns(5).held.is_empty());
        // It speaks of a gateway that is no more.
        assert_eq!((columns(6).first, columns(u64::MAX).held.len()), (0, 5));
    }

    #[test]
    fn what_is_older_than_ten_minutes_is_forgotten() {
        let history = history(MOST as u64 + 3);
        let columns = history.columns(&["a".into()], 1);
        assert_eq!((columns.first, columns.next), (3, MOST as u64 + 3));
        assert_eq!((columns.held.len(), columns.held[0]), (MOST, 3));
    }
}
