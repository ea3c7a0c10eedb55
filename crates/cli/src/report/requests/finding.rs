//! The finding in words: what each way does to small responses, and whether
//! classes get their weights.
//!
//! The rules are those of the report on disciplines: a difference is claimed only
//! where its interval, seed by seed, lies on one side of zero, and with too few seeds
//! for one numbers stand without a claim. Shares are compared with what weights promise, a value without an
//! interval; the way decides whether these are weights of classes or of users.
//! For a way without weights the finding states shares and claims nothing.

use tidegate_study::requests::{Class, Counts, Standard, Untested, Way};
use tidegate_study::{Sample, ranking};

use super::figures::{SHARES, SMALL_RESPONSES};
use super::{Results, classes};
use crate::report::figures::{Figure, listed};
use crate::report::markup::{Element, element};
use crate::report::number::{Quantity, pair, short};
use crate::report::page::{self, Mentions};
use crate::report::summary::{
    Better, Clause, Summary, UNFINISHED, Verdict, finished, judged, response, verdict,
};

/// The responses whose median is stated.
const SMALL: &str = "small responses";

/// The section at the top of the report, and where it first speaks of each figure.
pub(super) fn section(results: Results, figures: &[Figure]) -> (Element, Mentions) {
    let mut mentions = Mentions::default();
    let ways = &results.summary.ways;
    let Some((baseline, first)) = baseline(results) else {
        let section = page::section("summary", "Summary");
        return (section.child(page::paragraph("No way was compared.")), mentions);
    };
    let against = match (ways.len(), results.standard.no_gateway) {
        (1, _) => String::new(),
        (_, Some(_)) => format!(" against no gateway (‘{}’)", first.label),
        (_, None) => {
            format!(" against ‘{}’, the first way, since all have a gateway", first.label)
        }
    };
    let weights = if results.standard.is_one() {
        ""
    } else {
        " Each way applies weights either to classes or to each of their users."
    };
    let intro = format!(
        "What each way does to small responses{against}, and whether classes receive what their \
         weights promise. For small responses, those below 10 kB of all classes together, the \
         report states the median. A difference is stated only where its 95% confidence interval, \
         seed by seed, lies on one side of zero.{weights} A class that asks for less than its weight promises \
         leaves the rest to others, and then no way is at fault."
    );
    let summaries: Vec<_> = (0..ways.len()).map(|place| of(results, baseline, place)).collect();
    let lead = lead(results);
    let said: Vec<_> = lead.iter().map(|(_, sentence)| sentence.as_str()).collect();
    let about = lead.iter().filter_map(|(id, _)| figures.iter().position(|it| it.id == *id));
    let about: Vec<_> = about.collect();
    let section = if lead.is_empty() {
        page::section("summary", "Summary")
    } else {
        let sentence = element("span").text(said.join(" "));
        page::finding("summary", "Summary", mentions.said(sentence, &about, figures))
    };
    let section =
        section.child(page::paragraph(intro)).child(page::sentences(&summaries, baseline));
    (section, mentions)
}

/// What the ways are compared with: no gateway, or else the first.
fn baseline<'a>(results: Results<'a>) -> Option<(usize, &'a Way)> {
    let place = results.standard.no_gateway.unwrap_or(0);
    results.summary.ways.get(place).map(|way| (place, way))
}

/// The whole finding in a few sentences, each with the id of the figure that shows it:
/// nothing with one way or one seed, which show no difference.
fn lead(results: Results) -> Vec<(&'static str, String)> {
    let ways = &results.summary.ways;
    if ways.len() < 2 || results.summary.seeds.len() < 2 {
        return Vec::new();
    }
    let said = [(SMALL_RESPONSES, soonest(ways)), (SHARES, weights(results))];
    said.into_iter().filter_map(|(figure, text)| Some((figure, text?))).collect()
}

/// The ways at these places.
fn named(ways: &[Way], of: impl Fn(usize) -> bool) -> String {
    let chosen = ways.iter().enumerate().filter(|(place, _)| of(*place));
    listed(&chosen.map(|(_, way)| format!("‘{}’", way.label)).collect::<Vec<_>>())
}

/// The way under which small responses arrive soonest; `None` where too few seeds
/// leave that open.
fn soonest(ways: &[Way]) -> Option<String> {
    let values: Vec<_> = ways.iter().map(|way| way.small_p50_s.as_ref()).collect();
    let known = |sample: &&Sample| sample.estimate().interval.is_some();
    let compared = values.iter().flatten().copied().filter(known).count();
    if compared < 2 {
        return None;
    }
    let ahead = ranking::best(&values, Better::Less, 0.0);
    let best = ahead.iter().zip(&values).enumerate().filter(|(_, (ahead, _))| **ahead);
    let medians = best.filter_map(|(place, (_, it))| Some((place, (*it)?.estimate().value)));
    let medians: Vec<_> = medians.collect();
    let first = medians.iter().min_by(|(_, one), (_, other)| one.total_cmp(other));
    let Some((first, median)) = first.copied().filter(|_| medians.len() < compared) else {
        return Some(
            "Under no way do small responses arrive clearly sooner than under the \
                     others."
                .into(),
        );
    };
    let within = short(Quantity::Time, median);
    let as_soon = match named(ways, |place| ahead[place] && place != first) {
        none if none.is_empty() => none,
        others => format!("; the difference from {others} is not clear"),
    };
    let label = &ways[first].label;
    Some(format!(
        "Small responses arrive soonest under ‘{label}’, half of them within {within}{as_soon}."
    ))
}

/// The ways under which classes receive what their weights promise.
fn weights(results: Results) -> Option<String> {
    let ways = &results.summary.ways;
    if classes(results.summary).count() < 2 {
        return None;
    }
    let weighted = |place: &usize| results.standard.due(*place).is_some();
    if (0..ways.len()).filter(weighted).all(|place| ways[place].untested().is_some()) {
        let why = if ways.iter().all(|way| way.untested() == Some(Untested::NeverFull)) {
            "the link was never full"
        } else {
            "the link was rarely full"
        };
        return Some(format!("Shares are not tested: {why}."));
    }
    let verdict = |place| Shares::of(results, place).map(|shares| shares.verdict());
    let verdicts: Vec<_> = (0..ways.len()).map(verdict).collect();
    let with = |verdict| named(ways, |place| verdicts[place] == Some(verdict));
    let (kept, unclear) = (with(Verdict::Gain), with(Verdict::Unclear));
    let maybe = match &unclear[..] {
        "" => String::new(),
        ways => format!("; for {ways} no difference is clear"),
    };
    Some(if kept.is_empty() {
        format!("No way is certain to give classes what their weights promise{maybe}.")
    } else {
        format!("Classes receive what their weights promise under {kept}{maybe}.")
    })
}

/// The finding about the way at `place`.
fn of(results: Results, baseline: usize, place: usize) -> Summary {
    let ways = &results.summary.ways;
    let (way, before) = (&ways[place], &ways[baseline]);
    let mut clauses = Vec::new();
    let mut say = |verdict, text| clauses.push(Clause { verdict, text });
    match (&before.small_p50_s, &way.small_p50_s) {
        (_, None) => say(Verdict::Told, format!("none of the {SMALL} finished")),
        (Some(was), Some(is)) if place != baseline => {
            let verdict = verdict(was, is, Better::Less);
            let [was, is] = [was, is].map(|it| it.estimate().value);
            let text = response(SMALL, verdict, was, is);
            let unclear = verdict == Verdict::Unclear;
            say(verdict, if unclear { format!("no clear difference in {text}") } else { text });
        }
        (_, Some(is)) => {
            let time = short(Quantity::Time, is.estimate().value);
            say(Verdict::Told, format!("half of the {SMALL} arrive within {time}"));
        }
    }
    if way.classes.len() > 1
        && let Some(shares) = Shares::of(results, place)
    {
        say(shares.verdict(), shares.words(way, results.standard));
    }
    let (was, is) = (unanswered(before), unanswered(way));
    if (is - was).abs() >= UNFINISHED {
        let change = pair(Quantity::Share, is, "instead of", was);
        say(Verdict::Told, format!("{change} of all requests remain unanswered"));
    }
    finished(&way.label, clauses)
}

/// The part of the requests that remained unanswered although their users had
/// not left: where it differs, response times alone mislead.
fn unanswered(way: &Way) -> f64 {
    let all = |of: &dyn Fn(&Counts) -> u64| {
        way.classes.iter().map(|class| of(&class.counts)).sum::<u64>() as f64
    };
    all(&|counts| counts.failed() + counts.unfinished) / all(&|counts| counts.asked).max(1.0)
}

/// The shares of a way's classes beside what weights promise them.
struct Shares<'a> {
    /// The shares by weight; `None` where the way has no weights.
    due: Option<&'a [f64]>,
    /// Why they are not tested, if they are not.
    untested: Option<Untested>,
    received: Vec<&'a Sample>,
}

impl<'a> Shares<'a> {
    /// `None` when nothing was received.
    fn of(results: Results<'a>, place: usize) -> Option<Shares<'a>> {
        let classes = results.summary.ways[place].classes.iter();
        let received = classes.map(|class| class.share.as_ref()).collect::<Option<_>>()?;
        let untested = results.summary.ways[place].untested();
        Some(Shares { due: results.standard.due(place), untested, received })
    }

    /// For each class what it receives, what it is due, and how the two compare.
    fn each(&self, due: &[f64]) -> Vec<(f64, f64, Verdict)> {
        let compared = self.received.iter().zip(due).map(|(share, due)| {
            let (is, due) = (share.estimate(), *due);
            (is.value, due, judged([due, is.value], &is.shifted(due), Better::More))
        });
        compared.collect()
    }

    /// A gain when all classes get what they are due, a loss when one clearly does not.
    fn verdict(&self) -> Verdict {
        let (Some(due), None) = (self.due, self.untested) else { return Verdict::Told };
        let each = self.each(due);
        let any = |verdict| each.iter().any(|(_, _, it)| *it == verdict);
        if any(Verdict::Told) {
            Verdict::Told
        } else if any(Verdict::Gain) || any(Verdict::Loss) {
            Verdict::Loss
        } else if any(Verdict::Unclear) {
            Verdict::Unclear
        } else {
            Verdict::Gain
        }
    }

    fn words(&self, way: &Way, standard: &Standard) -> String {
        let share =
            |(class, is): (&Class, f64)| format!("‘{}’ {}", class.name, short(Quantity::Share, is));
        let shares =
            way.classes.iter().zip(self.received.iter().map(|share| share.estimate().value));
        let shares = listed(&shares.map(share).collect::<Vec<_>>());
        let Some(due) = self.due else {
            return format!("it has no weights ({shares})");
        };
        let whose = match standard.is_one() {
            true => "weights",
            false if std::ptr::eq(due, &*standard.by_user) => "the weights of users",
            false => "the weights of classes",
        };
        if let Some(untested) = self.untested {
            return format!("shares are not tested, since {untested} ({shares})");
        }
        match self.verdict() {
            Verdict::Gain => format!("classes receive what {whose} promise ({shares})"),
            Verdict::Unclear => {
                format!("no clear difference between shares and {whose} ({shares})")
            }
            Verdict::Loss => {
                let apart = way.classes.iter().zip(self.each(due));
                let apart =
                    apart.filter(|(_, (.., it))| !matches!(it, Verdict::Same | Verdict::Unclear));
                let told = apart.map(|(class, (is, due, _))| {
                    format!("‘{}’ {}", class.name, pair(Quantity::Share, is, "instead of", due))
                });
                let told = listed(&told.collect::<Vec<_>>());
                format!("classes do not receive what {whose} promise ({told})")
            }
            Verdict::Same | Verdict::Told => {
                let due: Vec<_> = due.iter().map(|due| short(Quantity::Share, *due)).collect();
                format!("shares are {shares}, where {whose} promise {}", listed(&due))
            }
        }
    }
}
