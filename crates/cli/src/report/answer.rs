//! The verdict in words: a headline, what it gains and costs, and the grade.
//!
//! The page and the terminal say the same. Every number is one of the verdict's
//! ([`tidegate_study::verdict`]), and no sentence claims a difference that it does not.

use serde::{Serialize, Serializer};
use tidegate_sim::scenario::Scenario;
use tidegate_study::measure::Quantity;
use tidegate_study::verdict::{Answer, Call, Change, Effect, Latency, Need, Verdict};

use super::figures::listed;
use super::number::{brief, pair, short};
use crate::output::filled;

/// From this factor on a change is stated as a factor and not in per cent.
const AS_FACTOR: f64 = 1.95;

/// The verdict in words.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Words {
    /// What to do, in a sentence or two.
    #[serde(serialize_with = "plain")]
    pub(crate) headline: String,
    /// What that changes, most urgent first.
    pub(crate) points: Vec<Point>,
    /// The latency under load; none without any delay measured.
    #[serde(serialize_with = "plain_if_any")]
    pub(crate) grade: Option<String>,
    /// What is better but cannot be run, and what to leave alone.
    pub(crate) asides: Vec<Aside>,
}

/// What a sentence is about: needs with their sources.
pub(crate) type About = Vec<(Need, String)>;

/// A change in words, or several that are not clear.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Point {
    pub(crate) effect: Effect,
    #[serde(skip)]
    pub(crate) about: About,
    #[serde(serialize_with = "plain")]
    pub(crate) text: String,
}

/// A sentence that follows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Aside {
    #[serde(skip)]
    pub(crate) about: About,
    #[serde(serialize_with = "plain")]
    pub(crate) text: String,
}

/// Programs get spaces that break, as a terminal does.
fn plain<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&broken(text))
}

fn plain_if_any<S: Serializer>(text: &Option<String>, to: S) -> Result<S::Ok, S::Error> {
    text.as_deref().map(broken).serialize(to)
}

fn broken(text: &str) -> String {
    text.replace(['\u{a0}', '\u{202f}'], " ")
}

/// The words for a verdict.
pub(crate) fn words(verdict: &Verdict) -> Words {
    let calls = |labels: &[String]| -> Vec<Call> {
        labels.iter().filter_map(|it| verdict.latency_of(it)?.call.clone()).collect()
    };
    let baseline: Vec<String> = verdict.baseline.iter().cloned().collect();
    let now = calls(&baseline);
    let run = calls(&verdict.run);
    let (unclear, clear): (Vec<_>, Vec<_>) = worth_saying(&verdict.changes)
        .into_iter()
        .partition(|change| change.effect == Effect::Unclear);
    let point = |change: &&Change| Point {
        effect: change.effect,
        about: about(&[*change]),
        text: clause(change, &run, now.first()),
    };
    let mut points: Vec<_> = clear.iter().map(point).collect();
    if !unclear.is_empty() {
        let subjects: Vec<_> = unclear.iter().map(|it| subject(it, now.first())).collect();
        let text = format!("no clear difference in {}", listed(&subjects));
        points.push(Point { effect: Effect::Unclear, about: about(&unclear), text });
    }
    let mut asides = Vec::new();
    asides.extend(with_tidegate(verdict, &now));
    asides.extend(verdict.avoid.iter().map(|it| {
        let label = std::slice::from_ref(&it.label);
        let text = format!("Not {}: {}.", it.label, clause(&it.change, &calls(label), now.first()));
        Aside { about: about(&[&it.change]), text }
    }));
    Words { headline: headline(verdict), points, grade: grade(verdict), asides }
}

fn about(changes: &[&Change]) -> About {
    changes.iter().map(|it| (it.need, it.source.clone())).collect()
}

/// The changes that say something to somebody who has read those before.
fn worth_saying(changes: &[Change]) -> Vec<&Change> {
    let loaded = |source: &str| {
        let same = |it: &&Change| it.need == Need::PagesLoaded && it.source == source;
        changes.iter().find(same).is_some_and(|it| it.effect != Effect::Same)
    };
    let call = changes.iter().find(|it| it.need == Need::Call);
    let told = call.is_some_and(|it| matches!(it.effect, Effect::Gain | Effect::Price));
    let says = |change: &&Change| match change.need {
        // A clause on calls tells their delay.
        Need::Reaction => !told,
        // That as many pages load as before is no news, nor that a film goes on as before, nor
        // that names come within what nobody notices.
        Need::PagesLoaded | Need::VideoStalls | Need::Lookups => change.effect != Effect::Same,
        // Who knows of no change of quality asks for none.
        Need::VideoSwitches => matches!(change.effect, Effect::Gain | Effect::Price),
        // Those that did not load would have been the slowest.
        Need::Pages => change.effect != Effect::Unclear || !loaded(&change.source),
        _ => true,
    };
    changes.iter().filter(says).collect()
}

/// What a change is about.
fn subject(change: &Change, call: Option<&Call>) -> String {
    let source = &change.source;
    match change.need {
        Need::Call => format!("the quality of {}", call.map_or("calls".into(), who)),
        Need::Reaction => format!("the delay of {}", call.map_or("calls".into(), who)),
        Need::Delay => format!("the delay of ‘{source}’"),
        Need::VideoStalls => format!("how long the picture of ‘{source}’ stalls"),
        Need::CallRate => format!("the rate of ‘{source}’"),
        Need::VideoQuality => format!("the quality of ‘{source}’"),
        Need::VideoSwitches => format!("how often the picture of ‘{source}’ changes its quality"),
        Need::PagesLoaded => format!("how many pages of ‘{source}’ load"),
        Need::Lookups => format!("how fast ‘{source}’ are looked up"),
        Need::Pages => format!("how fast pages of ‘{source}’ load"),
        Need::ShortTransfers => "short transfers".into(),
        Need::LongTransfers => format!("the speed of ‘{source}’"),
    }
}

/// A stream of datagrams: most are calls, and are called so.
fn who(call: &Call) -> String {
    if call.source.to_lowercase().contains("call") {
        "calls".into()
    } else {
        format!("packets of ‘{}’", call.source)
    }
}

fn headline(verdict: &Verdict) -> String {
    let baseline = verdict.baseline.as_deref().unwrap_or("nothing");
    match verdict.answer {
        Answer::Run => format!("Run {} instead of {baseline}.", either(&verdict.run)),
        Answer::Unclear if verdict.parts > 0 => format!(
            "This recording does not say: {} may be better than {baseline}, but what differs is \
             within the noise of its parts. A longer one may say.",
            either(&verdict.run)
        ),
        Answer::Unclear => format!(
            "The runs do not say: {} may be better than {baseline}, but what differs is within \
             the noise. Run more seeds.",
            either(&verdict.run)
        ),
        Answer::Alike if verdict.with_tidegate.is_empty() => format!(
            "Keep {baseline}: none of the others makes a difference that anybody would notice."
        ),
        Answer::Alike => format!(
            "Keep {baseline}: of those that Linux brings along, none makes a difference that \
             anybody would notice."
        ),
        Answer::NotTheBottleneck => {
            let used = verdict.utilisation.map_or(String::new(), |used| {
                format!(" It is {} used, and no discipline changes", short(Quantity::Share, used))
            });
            format!("This link is not the bottleneck.{used} what its users notice.")
        }
        Answer::TooFewRuns => format!(
            "One run of each does not say what is better: with other arrivals it may be the other \
             way round. A scenario can be run with several seeds, for example --seeds 6; a \
             recording has to last {}.",
            short(Quantity::Time, (Scenario::LEAST_PART * Scenario::PARTS).as_seconds())
        ),
        Answer::OneOnly => format!(
            "There is only {baseline}, so there is nothing to choose. Add others with \
             --disciplines."
        ),
        Answer::DoesNotReact => "Recorded packets do not react to what becomes of them, and so do \
                                 not say what to run. With --as-transfers, TCP does."
            .into(),
        Answer::NothingMeasured => "Nothing was measured that anybody waits for.".into(),
    }
}

/// `cake, fq-codel or fq-pie`.
pub(super) fn either(labels: &[String]) -> String {
    match labels {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        labels => labels.join(""),
    }
}

/// What is better than all that Linux brings along.
fn with_tidegate(verdict: &Verdict, now: &[Call]) -> Option<Aside> {
    if verdict.with_tidegate.is_empty() {
        return None;
    }
    let of_label = |it: &String| verdict.latency_of(it)?.call.clone();
    let calls: Vec<Call> = verdict.with_tidegate.iter().filter_map(of_label).collect();
    let reference = verdict.run.first().filter(|_| verdict.answer == Answer::Run);
    let call = reference.and_then(of_label).or(now.first().cloned());
    let changes = worth_saying(&verdict.with_tidegate_changes);
    let of = |effect| -> Vec<String> {
        let changes = changes.iter().filter(|it| it.effect == effect);
        changes.map(|it| clause(it, &calls, call.as_ref())).collect()
    };
    let (gains, prices) = (of(Effect::Gain), of(Effect::Price));
    if gains.is_empty() {
        return None;
    }
    let labels = listed(&verdict.with_tidegate);
    let is = if verdict.with_tidegate.len() == 1 { "is" } else { "are" };
    let beside = reference.or(verdict.baseline.as_ref()).map_or("", String::as_str);
    let gains = listed(&gains);
    let mut text = format!(
        "Better still, and run by Tidegate itself, {is} {labels}: beside {beside}, {gains}"
    );
    if !prices.is_empty() {
        text.push_str(&format!("; but {}", listed(&prices)));
    }
    let told = |it: &&Change| matches!(it.effect, Effect::Gain | Effect::Price);
    let told: Vec<_> = changes.into_iter().filter(told).collect();
    Some(Aside { about: about(&told), text: text + "." })
}

/// The latency under load, now and then.
fn grade(verdict: &Verdict) -> Option<String> {
    let of = |latency: &Latency| Some((latency.grade?, latency.added_s?));
    let (was, added_before) = verdict.latency.first().and_then(of)?;
    let run = verdict.run.iter().filter(|_| verdict.answer == Answer::Run);
    let mut after: Vec<_> = run.filter_map(|it| of(verdict.latency_of(it)?)).collect();
    after.sort_by(|one, other| one.1.total_cmp(&other.1));
    let [Some(best), Some(worst)] = [after.first(), after.last()] else {
        let added = added_in_words(added_before, added_before);
        let calls = verdict.latency.first().and_then(|it| it.call.as_ref());
        let calls = calls.map_or(String::new(), |it| {
            format!(" The quality of calls is {} of 4.5.", score(it.mos))
        });
        return Some(format!("Latency under load: grade {was} ({added} added).{calls}"));
    };
    let grades =
        if best.0 == worst.0 { best.0.to_string() } else { format!("{} to {}", best.0, worst.0) };
    Some(format!(
        "Latency under load: grade {grades} ({} added) instead of {was} ({}).",
        added_in_words(best.1, worst.1),
        added_in_words(added_before, added_before),
    ))
}

/// Of a delay that load adds, microseconds are nobody's concern.
const SMALL: f64 = 0.001;

/// An added delay in a table.
pub(super) fn added(delay: f64) -> String {
    if delay < SMALL { "<1\u{a0}ms".into() } else { format!("+{}", short(Quantity::Time, delay)) }
}

/// Added delays in a sentence.
fn added_in_words(least: f64, most: f64) -> String {
    match (least < SMALL, most < SMALL) {
        (_, true) => "less than 1 ms".into(),
        (true, false) => format!("up to {}", short(Quantity::Time, most)),
        (false, false) => range(Quantity::Time, least, most),
    }
}

/// A change as a clause.
fn clause(change: &Change, calls: &[Call], before: Option<&Call>) -> String {
    let (was, quantity) = (change.was, change.need.quantity());
    if change.effect == Effect::Unclear {
        return format!("no clear difference in {}", subject(change, before));
    }
    let source = &change.source;
    let instead = || {
        let values = range(quantity, change.least, change.most);
        format!("({values} instead of {})", short(quantity, was))
    };
    match change.need {
        Need::Call => call(change, calls, before),
        Need::Reaction | Need::Delay => {
            let what = match (change.need, before) {
                (Need::Reaction, Some(call)) => who(call),
                _ => format!("packets of ‘{source}’"),
            };
            let values = range(quantity, change.least, change.most);
            let was = short(quantity, was);
            match change.effect {
                Effect::Same => format!("{what} are as quick as before ({was} on average)"),
                _ => format!("{what} take {values} on average instead of {was}"),
            }
        }
        Need::VideoStalls => format!(
            "the picture of ‘{source}’ stalls for {} of the time instead of {}",
            range(quantity, change.least, change.most),
            short(quantity, was)
        ),
        Need::CallRate => match change.effect {
            Effect::Same => format!("‘{source}’ keeps its rate ({})", short(quantity, was)),
            _ => format!(
                "‘{source}’ has {} for its picture instead of {}",
                range(quantity, change.least, change.most),
                short(quantity, was)
            ),
        },
        Need::VideoQuality => match change.effect {
            Effect::Same => {
                format!("the picture of ‘{source}’ keeps its quality ({})", short(quantity, was))
            }
            _ => format!(
                "the picture of ‘{source}’ has {} instead of {}",
                range(quantity, change.least, change.most),
                short(quantity, was)
            ),
        },
        Need::VideoSwitches => format!(
            "the picture of ‘{source}’ changes its quality {} times a minute instead of {}",
            range(quantity, change.least, change.most),
            short(quantity, was)
        ),
        Need::PagesLoaded => format!(
            "{} of the pages of ‘{source}’ load instead of {}",
            range(quantity, change.least, change.most),
            short(quantity, was)
        ),
        Need::Lookups => quicker(&format!("lookups of ‘{source}’ finish"), change, &instead()),
        Need::Pages => quicker(&format!("pages of ‘{source}’ load"), change, &instead()),
        Need::ShortTransfers => quicker("short transfers finish", change, &instead()),
        Need::LongTransfers => {
            let [least, most] = [change.least / was, change.most / was];
            match change.effect {
                Effect::Gain if least >= AS_FACTOR => {
                    format!("‘{source}’ is {} times as fast {}", factors(least, most), instead())
                }
                Effect::Gain => {
                    format!(
                        "‘{source}’ is {} faster {}",
                        percents(least - 1.0, most - 1.0),
                        instead()
                    )
                }
                Effect::Price => {
                    format!(
                        "‘{source}’ is {} slower {}",
                        percents(1.0 - most, 1.0 - least),
                        instead()
                    )
                }
                _ => format!("‘{source}’ keeps its speed ({})", short(quantity, was)),
            }
        }
    }
}

/// The clause on what takes less or more time.
fn quicker(what: &str, change: &Change, instead: &str) -> String {
    let [least, most] = [change.was / change.most, change.was / change.least];
    match change.effect {
        Effect::Gain if least >= AS_FACTOR => {
            format!("{what} {} times as fast {instead}", factors(least, most))
        }
        Effect::Gain => {
            let part = percents(1.0 - 1.0 / least, 1.0 - 1.0 / most);
            format!("{what} {part} sooner {instead}")
        }
        Effect::Price => {
            let part = percents(1.0 / most - 1.0, 1.0 / least - 1.0);
            format!("{what} {part} later {instead}")
        }
        _ => format!("{what} as fast as before ({})", short(Quantity::Time, change.was)),
    }
}

/// The clause on calls: their delay, loss and quality.
fn call(change: &Change, after: &[Call], before: Option<&Call>) -> String {
    let (Some(before), false) = (before, after.is_empty()) else {
        return format!("the rating of calls is {}", brief(change.most));
    };
    let who = who(before);
    let ends = |of: fn(&Call) -> f64| {
        let values = || after.iter().map(of);
        (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max))
    };
    let (best, worst) = ends(|it| it.mos);
    let quality = scores(best, worst);
    if change.effect == Effect::Same {
        return format!("{who} stay as good as they are (quality {} of 4.5)", score(before.mos));
    }
    let (least, most) = ends(|it| it.delay_p95_s);
    let delay = range(Quantity::Time, least, most);
    let (least, most) = ends(|it| it.loss_ratio);
    let was = short(Quantity::Time, before.delay_p95_s);
    let loss = if most.max(before.loss_ratio) < UNHEARD {
        String::new()
    } else {
        format!(
            " and lose {} instead of {}",
            lost(least, most),
            lost(before.loss_ratio, before.loss_ratio)
        )
    };
    format!(
        "{who} arrive within {delay} instead of {was}{loss} (quality {quality} instead of {} of \
         4.5)",
        score(before.mos)
    )
}

/// A loss of less than one packet in a thousand is not heard.
const UNHEARD: f64 = 0.001;

fn lost(least: f64, most: f64) -> String {
    match (least < UNHEARD, most < UNHEARD) {
        (_, true) => "nothing".into(),
        (true, false) => format!("up to {}", short(Quantity::Share, most)),
        (false, false) => range(Quantity::Share, least, most),
    }
}

/// A mean opinion score.
pub(super) fn score(mos: f64) -> String {
    format!("{mos:.1}")
}

fn scores(least: f64, most: f64) -> String {
    let [least, most] = [least, most].map(score);
    if least == most { least } else { format!("{least} to {most}") }
}

/// `5.1 to 5.4 s`, or one value where both look alike.
fn range(quantity: Quantity, least: f64, most: f64) -> String {
    let [one, other] = [least, most].map(|it| short(quantity, it));
    if one == other { one } else { pair(quantity, least, "to", most) }
}

fn factors(least: f64, most: f64) -> String {
    let [one, other] = [least, most].map(brief);
    if one == other { one } else { format!("{one} to {other}") }
}

fn percents(least: f64, most: f64) -> String {
    range(Quantity::Share, least.max(0.0), most.max(0.0))
}

impl Words {
    /// The words for a terminal, in lines of at most `width` columns.
    pub(crate) fn text(&self, width: usize) -> String {
        let mut text = String::new();
        let mut add = |mark: &str, words: &str| text.push_str(&filled(mark, words, width));
        add("", &self.headline);
        for point in &self.points {
            let mark = match point.effect {
                Effect::Gain => "  + ",
                Effect::Price => "  - ",
                Effect::Same => "  = ",
                Effect::Unclear => "  ? ",
            };
            add(mark, &point.text);
        }
        let asides = self.asides.iter().map(|it| &it.text);
        self.grade.iter().chain(asides).for_each(|it| add("", it));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    fn change(need: Need, effect: Effect, was: f64, least: f64, most: f64) -> Change {
        Change { need, source: "x".into(), effect, was, least, most }
    }

    #[test]
    fn changes_are_stated_as_people_state_them() {
        for (change, words) in [
            (
                change(Need::Pages, Effect::Gain, 10.0, 5.0, 5.1),
                "pages of ‘x’ load 2 times as fast (5 to 5.1 s instead of 10 s)",
            ),
            (
                change(Need::Pages, Effect::Gain, 10.0, 7.0, 8.0),
                "pages of ‘x’ load 20% to 30% sooner (7 to 8 s instead of 10 s)",
            ),
            (
                change(Need::Lookups, Effect::Gain, 0.2, 0.025, 0.025),
                "lookups of ‘x’ finish 8 times as fast (25 ms instead of 200 ms)",
            ),
            (
                change(Need::ShortTransfers, Effect::Price, 1.0, 1.5, 1.5),
                "short transfers finish 50% later (1.5 s instead of 1 s)",
            ),
            (
                change(Need::LongTransfers, Effect::Price, 3e6, 2.4e6, 2.7e6),
                "‘x’ is 10% to 20% slower (2.4 to 2.7 Mbit/s instead of 3 Mbit/s)",
            ),
            (
                change(Need::LongTransfers, Effect::Gain, 1e6, 3e6, 3e6),
                "‘x’ is 3 times as fast (3 Mbit/s instead of 1 Mbit/s)",
            ),
            (
                change(Need::LongTransfers, Effect::Unclear, 1e6, 3e6, 3e6),
                "no clear difference in the speed of ‘x’",
            ),
            (
                change(Need::PagesLoaded, Effect::Gain, 0.8, 0.99, 0.99),
                "99% of the pages of ‘x’ load instead of 80%",
            ),
        ] {
            assert_eq!(clause(&change, &[], None).replace('\u{a0}', " "), words);
        }
    }

    #[test]
    fn calls_are_stated_by_delay_loss_and_quality() {
        let call = |delay_p95_s, loss_ratio, mos| Call {
            source: "call, up".into(),
            delay_p95_s,
            loss_ratio,
            rating: 0.0,
            mos,
        };
        let before = call(0.259, 0.012, 3.9);
        let gain = change(Need::Call, Effect::Gain, 75.0, 92.0, 93.0);
        let after = [call(0.017, 0.0, 4.4), call(0.021, 0.0, 4.4)];
        assert_eq!(
            clause(&gain, &after, Some(&before)).replace('\u{a0}', " "),
            "calls arrive within 17 to 21 ms instead of 259 ms and lose nothing instead of 1.2% \
             (quality 4.4 instead of 3.9 of 4.5)"
        );
    }

    #[test]
    fn the_delay_of_calls_is_told_once() {
        let said = |effect| {
            let changes = [
                change(Need::Call, effect, 81.0, 92.0, 92.0),
                change(Need::Reaction, Effect::Gain, 0.113, 0.016, 0.016),
            ];
            worth_saying(&changes).len()
        };
        assert_eq!([Effect::Gain, Effect::Unclear, Effect::Same].map(said), [1, 2, 2]);
    }

    #[test]
    fn the_words_fit_a_terminal_and_say_what_to_run() {
        let verdict = Verdict::of(&fixture::comparison(8, 10));
        let words = words(&verdict);
        assert!(words.headline.starts_with("Run "), "{}", words.headline);
        for width in [60, 80, 100] {
            let text = words.text(width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        }
    }

    #[test]
    fn one_seed_and_one_discipline_are_no_verdict() {
        let headline = |disciplines, runs| {
            words(&Verdict::of(&fixture::comparison(disciplines, runs))).headline
        };
        assert!(headline(3, 1).contains("--seeds 6"));
        assert!(headline(1, 6).contains("--disciplines"));
    }
}
