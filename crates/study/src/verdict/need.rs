//! What people need of a link, most urgent first, and what of it they notice.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::{Change, Effect};
use crate::comparison::{Comparison, DisciplineResult, TrafficResult};
use crate::measure::{Better, Quantity};
use crate::{Sample, ranking};

/// A need, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// The worst call: its rating, R of 100.
    Call,
    /// Mean delay of the slowest stream of datagrams, in seconds: what somebody notices
    /// who plays or types.
    Reaction,
    /// Mean delay of other datagrams, in seconds.
    Delay,
    /// The part of the time for which a video is stalled, of one.
    VideoStalls,
    /// The part of the pages that load before the run ends, of one.
    PagesLoaded,
    /// Mean time until a name has been looked up, in seconds: what somebody waits before
    /// anything else begins.
    Lookups,
    /// Mean time until a page has loaded, in seconds.
    Pages,
    /// Mean rate of a call that adapts, in bit/s: the quality of its picture.
    CallRate,
    /// Mean nominal rate of a video that is shown, in bit/s.
    VideoQuality,
    /// How often a video changes its quality, a minute.
    VideoSwitches,
    /// Mean response time of short transfers, in seconds.
    ShortTransfers,
    /// Mean goodput of long transfers, in bit/s.
    LongTransfers,
}

impl Need {
    /// What its values are.
    #[must_use]
    pub fn quantity(self) -> Quantity {
        match self {
            Need::Call | Need::VideoSwitches => Quantity::Plain,
            Need::VideoStalls | Need::PagesLoaded => Quantity::Share,
            Need::Reaction | Need::Delay | Need::Lookups | Need::Pages | Need::ShortTransfers => {
                Quantity::Time
            }
            Need::CallRate | Need::VideoQuality | Need::LongTransfers => Quantity::Rate,
        }
    }

    /// The [`name`](crate::measure::Measure::name) of the measure that it is decided on.
    #[must_use]
    pub fn metric(self) -> &'static str {
        match self {
            Need::Call => "call_rating",
            Need::Reaction | Need::Delay => "delay_mean_s",
            Need::VideoStalls => "video_stalled_ratio",
            Need::CallRate => "throughput_bps",
            Need::VideoQuality => "video_quality_bps",
            Need::VideoSwitches => "video_switches_per_minute",
            Need::PagesLoaded => "pages_loaded_ratio",
            Need::Lookups => "lookup_mean_s",
            Need::Pages => "page_load_mean_s",
            Need::ShortTransfers => "response_mean_s",
            Need::LongTransfers => "long_goodput_bps",
        }
    }

    /// The least difference that anybody notices, beside a value. A rating's steps of
    /// quality are 10 apart (`ITU-T G.109`); of times and rates people notice about a
    /// tenth at best, and of delays nothing below ten milliseconds. Of a video that stands
    /// still for a hundredth of the time more, they watch less (Dobrian 2011). What takes a
    /// tenth of a second seems to be there at once (Nielsen 1993), and a page waits for two
    /// lookups one after the other: of its own host and of those that it names. From how many
    /// changes a minute on people mind a film's quality is not cited; one is a choice.
    fn noticed(self, value: f64) -> f64 {
        const RATING: f64 = 2.0;
        const DELAY_S: f64 = 0.010;
        const LOOKUP_S: f64 = 0.050;
        const PAGES: f64 = 0.02;
        const STALLS: f64 = 0.01;
        const SWITCHES: f64 = 1.0;
        const PART: f64 = 0.1;
        match self {
            Need::Call => RATING,
            Need::VideoStalls => STALLS,
            Need::PagesLoaded => PAGES,
            Need::VideoSwitches => (PART * value).max(SWITCHES),
            Need::Reaction | Need::Delay => (PART * value).max(DELAY_S),
            Need::Lookups => (PART * value).max(LOOKUP_S),
            Need::Pages
            | Need::CallRate
            | Need::VideoQuality
            | Need::ShortTransfers
            | Need::LongTransfers => PART * value,
        }
    }
}

/// A need with what each discipline makes of it.
pub(super) struct Wanted {
    pub(super) need: Need,
    pub(super) source: String,
    /// What the tables have.
    samples: Vec<Option<Sample>>,
    /// What is compared: the same, or the parts of a recording.
    compared: Vec<Option<Sample>>,
}

/// The needs of those whose traffic was compared, most urgent first.
pub(super) fn all(comparison: &Comparison) -> Vec<Wanted> {
    let disciplines = &comparison.disciplines;
    let Some(first) = disciplines.first() else { return Vec::new() };
    let wanted = |need, source: &str, of: &dyn Fn(&DisciplineResult) -> Option<Sample>| {
        let samples: Vec<_> = disciplines.iter().map(of).collect();
        let parts = &comparison.parts;
        let compared =
            if parts.is_empty() { samples.clone() } else { parts.iter().map(of).collect() };
        Wanted { need, source: source.into(), samples, compared }
    };
    let mut needs = vec![wanted(Need::Call, "", &worst_call), wanted(Need::Reaction, "", &slowest)];
    let mut pages = false;
    for (index, source) in first.traffic.iter().enumerate() {
        let mut add = |need, of: fn(&TrafficResult) -> Option<&Sample>| {
            let of = |it: &DisciplineResult| of(it.traffic.get(index)?).cloned();
            needs.push(wanted(need, &source.name, &of));
        };
        if source.datagrams {
            // Recorded packets do not react: the more a discipline drops of them, the sooner
            // the others arrive, and nobody would be the better off.
            if !source.replayed {
                add(Need::Delay, |it| {
                    it.delay.mean_s.as_ref().filter(|_| it.call_rating.is_none())
                });
            }
            if source.adapts {
                add(Need::CallRate, |it| it.throughput_bps.as_ref());
            }
            continue;
        }
        if source.lookups.is_some() {
            add(Need::Lookups, |it| it.lookups.as_ref()?.time.mean_s.as_ref());
        } else if source.video.is_some() {
            // Nobody waits for one of its segments.
            add(Need::VideoStalls, |it| it.video.as_ref()?.stalled_ratio.as_ref());
            add(Need::VideoQuality, |it| it.video.as_ref()?.quality_bps.as_ref());
            add(Need::VideoSwitches, |it| it.video.as_ref()?.switches_per_minute.as_ref());
        } else if source.pages.is_some() {
            pages = true;
            add(Need::PagesLoaded, |it| it.pages.as_ref()?.loaded_ratio.as_ref());
            add(Need::Pages, |it| it.pages.as_ref()?.load_mean_s.as_ref());
        } else {
            add(Need::LongTransfers, |it| it.long_goodput_bps.as_ref());
        }
    }
    if !pages {
        // The objects of pages are short transfers too, and nobody waits for one alone.
        needs.push(wanted(Need::ShortTransfers, "", &|it| it.short.mean_s.clone()));
    }
    needs.retain(|it| it.samples.iter().any(Option::is_some));
    needs.sort_by_key(|it| it.need);
    needs
}

/// The rating of the worst call of each run.
fn worst_call(discipline: &DisciplineResult) -> Option<Sample> {
    let ratings: Vec<_> =
        discipline.traffic.iter().filter_map(|source| source.call_rating.as_ref()).collect();
    Sample::across(&ratings, f64::min)
}

/// The mean delay of the slowest stream of each run.
fn slowest(discipline: &DisciplineResult) -> Option<Sample> {
    let streams = discipline.traffic.iter().filter(|source| source.call_rating.is_some());
    let delays: Vec<_> = streams.filter_map(|source| source.delay.mean_s.as_ref()).collect();
    Sample::across(&delays, f64::max)
}

impl Wanted {
    /// Whether somebody waits for it, and would notice.
    pub(super) fn is_urgent(&self) -> bool {
        !matches!(self.need, Need::VideoSwitches | Need::LongTransfers)
    }

    /// Whether any two disciplines can be told apart by it.
    pub(super) fn is_decided(&self) -> bool {
        let with_interval =
            self.compared.iter().flatten().filter(|it| it.estimate().interval.is_some());
        with_interval.count() > 1
    }

    /// The difference that is noticed beside the best of `places`.
    fn noticed(&self, places: &[usize]) -> f64 {
        let values = places.iter().filter_map(|it| self.value(*it));
        let best = match self.need.better() {
            Better::Less => values.min_by(f64::total_cmp),
            Better::More | Better::Neither => values.max_by(f64::total_cmp),
        };
        self.need.noticed(best.unwrap_or(0.0))
    }

    pub(super) fn value(&self, place: usize) -> Option<f64> {
        Some(self.samples[place].as_ref()?.estimate().value)
    }

    /// Which of `places` nobody among them beats noticeably.
    pub(super) fn best_among(&self, places: &[usize]) -> Vec<bool> {
        let samples: Vec<_> = places.iter().map(|it| self.compared[*it].as_ref()).collect();
        ranking::best(&samples, self.need.better(), self.noticed(places))
    }

    /// Whether the discipline at `one` is noticeably better than the `other`.
    pub(super) fn beats(&self, one: usize, other: usize) -> bool {
        self.best_among(&[one, other]) == [true, false] && self.samples[other].is_some()
    }

    /// Whether the discipline at `one` is better than the `other` by certainly more than what
    /// is noticed.
    pub(super) fn surely_beats(&self, one: usize, other: usize) -> bool {
        let difference = match (&self.compared[one], &self.compared[other]) {
            (Some(one), Some(other)) => one.less(other),
            _ => None,
        };
        let noticed = self.noticed(&[one, other]);
        difference.and_then(|it| it.interval).is_some_and(|(low, high)| match self.need.better() {
            Better::More => low > noticed,
            Better::Less | Better::Neither => high < -noticed,
        })
    }

    /// Whether the discipline at `one` looks noticeably better than the `other`, and the
    /// runs do not say.
    pub(super) fn may_beat(&self, one: usize, other: usize) -> bool {
        let (Some(value), Some(beside)) = (self.value(one), self.value(other)) else {
            return false;
        };
        let better =
            if self.need.better() == Better::More { value - beside } else { beside - value };
        better > self.noticed(&[one, other]) && self.effect(one, other) == Effect::Unclear
    }

    /// What those at `places` change against the one at `baseline`; `None` where a value
    /// is missing.
    pub(super) fn change(&self, places: &[usize], baseline: usize) -> Option<Change> {
        let was = self.value(baseline)?;
        let values = places.iter().map(|it| self.value(*it)).collect::<Option<Vec<_>>>()?;
        let least = values.iter().copied().min_by(f64::total_cmp)?;
        let most = values.iter().copied().max_by(f64::total_cmp)?;
        let effects: Vec<_> = places.iter().map(|it| self.effect(*it, baseline)).collect();
        let all = |effect| effects.iter().all(|it| *it == effect);
        let effect = [Effect::Same, Effect::Gain, Effect::Price].into_iter().find(|it| all(*it));
        let effect = effect.unwrap_or_else(|| {
            // Each is certain, though some of them are small.
            let signs: Vec<_> = places.iter().map(|it| self.sign(*it, baseline)).collect();
            match signs[..] {
                _ if signs.iter().all(|it| *it == Some(true)) => Effect::Gain,
                _ if signs.iter().all(|it| *it == Some(false)) => Effect::Price,
                _ => Effect::Unclear,
            }
        });
        Some(Change { need: self.need, source: self.source.clone(), effect, was, least, most })
    }

    pub(super) fn effect(&self, place: usize, baseline: usize) -> Effect {
        let difference = match (&self.compared[place], &self.compared[baseline]) {
            (Some(one), Some(other)) => one.less(other),
            _ => None,
        };
        let Some((low, high)) = difference.and_then(|it| it.interval) else {
            return Effect::Unclear;
        };
        if low.abs().max(high.abs()) <= self.noticed(&[place, baseline]) {
            return Effect::Same;
        }
        match self.sign(place, baseline) {
            Some(true) => Effect::Gain,
            Some(false) => Effect::Price,
            None => Effect::Unclear,
        }
    }

    /// Whether the one at `place` is better than the one at `baseline`; `None` where the
    /// interval of the difference has zero in it.
    fn sign(&self, place: usize, baseline: usize) -> Option<bool> {
        let difference = self.compared[place].as_ref()?.less(self.compared[baseline].as_ref()?)?;
        let (low, high) = difference.interval?;
        // The parts of a recording weigh the same, however much traffic they have: where the
        // whole says something else, nothing is certain.
        let is_more =
            match (low > 0.0, high < 0.0, self.value(place)?.total_cmp(&self.value(baseline)?)) {
                (true, _, Ordering::Greater) => true,
                (_, true, Ordering::Less) => false,
                _ => return None,
            };
        Some(is_more == (self.need.better() == Better::More))
    }
}
