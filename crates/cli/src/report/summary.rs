//! The summary: a sentence on what users gain and lose under each discipline,
//! compared with the first one.
//!
//! A gain or a loss is claimed only when the 95% confidence interval of the
//! difference, seed by seed, lies on one side of zero, and equality only when all of
//! it is close to zero. Everything else is "no clear difference". With too few seeds
//! for an interval, the numbers stand side by side without a claim.

use tidegate_study::comparison::{ClassResult, Comparison, DisciplineResult, TrafficResult};
pub(super) use tidegate_study::measure::Better;
use tidegate_study::{Estimate, Sample};

use super::figures::listed;
use super::number::{Quantity, brief, counted, pair, short};

/// A difference within this part of the first value is none to any user.
const SAME: f64 = 0.05;
/// Loss ratios that are this close are the same, whatever their ratio.
const SAME_LOSS: f64 = 0.000_5;
/// From this factor on a change is stated as a factor and not in per cent.
const AS_FACTOR: f64 = 1.95;
/// Where the parts of unfinished transfers are this far apart, response times
/// alone mislead: only finished transfers have one.
pub(super) const UNFINISHED: f64 = 0.01;

/// The summary of one discipline.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Summary {
    pub(super) label: String,
    pub(super) clauses: Vec<Clause>,
}

/// A part of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Clause {
    pub(super) verdict: Verdict,
    pub(super) text: String,
}

/// How a value compares with the baseline's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Gain,
    Loss,
    /// The same to any user.
    Same,
    /// The interval of the difference has zero in it.
    Unclear,
    /// Stated without a claim: a number of the baseline, or of too few runs.
    Told,
}

/// The words for datagrams that are of no use.
struct Harm {
    noun: &'static str,
    verb: &'static str,
    /// The words for their state.
    state: &'static str,
}

const LOSS: Harm = Harm { noun: "loss", verb: "loses", state: "" };
/// Where users wait for datagrams, a late one is as bad as a lost one.
const LATENESS: Harm = Harm { noun: "lateness", verb: "has", state: " late or lost" };

impl Summary {
    /// The clauses as one sentence.
    #[cfg(test)]
    pub(super) fn sentence(&self) -> String {
        let texts: Vec<_> = self.clauses.iter().map(|clause| clause.text.as_str()).collect();
        format!("{}: {}.", self.label, texts.join("; "))
    }
}

/// One summary for each discipline; the others are compared with the first.
pub(super) fn of(comparison: &Comparison) -> Vec<Summary> {
    let Some((baseline, others)) = comparison.disciplines.split_first() else { return Vec::new() };
    let mut out = vec![alone(baseline)];
    out.extend(others.iter().map(|other| against(baseline, other)));
    out
}

/// The numbers of the baseline.
fn alone(baseline: &DisciplineResult) -> Summary {
    let mut clauses = Vec::new();
    let mut tell = |text: String| clauses.push(Clause { verdict: Verdict::Told, text });
    if let Some(mean) = &baseline.short.mean_s {
        let time = short(Quantity::Time, mean.estimate().value);
        tell(format!("short transfers take {time} on average"));
    } else if baseline.short.started > 0 {
        tell(none_finished(&baseline.short));
    }
    for source in &baseline.traffic {
        let name = &source.name;
        if let Some(p95) = &source.delay.p95_s {
            let delay = short(Quantity::Time, p95.estimate().value);
            tell(format!("95 of 100 packets of ‘{name}’ arrive within {delay}"));
        }
        if let Some((Harm { verb, state, .. }, ratio)) = harm(source) {
            tell(match ratio.estimate().value {
                0.0 => format!("‘{name}’ {verb} nothing{state}"),
                mean => {
                    let part = short(Quantity::Share, mean);
                    format!("‘{name}’ {verb} {part} of its packets{state}")
                }
            });
        }
        if let Some(mean) = source.pages.as_ref().and_then(|pages| pages.load_mean_s.as_ref()) {
            let time = short(Quantity::Time, mean.estimate().value);
            tell(format!("pages of ‘{name}’ take {time} on average"));
        }
        if let Some(lookups) = &source.lookups
            && let Some(mean) = &lookups.time.mean_s
        {
            let time = short(Quantity::Time, mean.estimate().value);
            tell(format!("lookups of ‘{name}’ take {time} on average"));
        }
        if let Some(rate) = source.long_goodput_bps.as_ref().filter(|_| !source.datagrams) {
            let stall = source.longest_stall_s.as_ref().map(|stall| stall.estimate().value);
            let stall = stall
                .filter(|stall| *stall > 0.0)
                .map(|stall| format!(", with a longest stall of {}", short(Quantity::Time, stall)));
            tell(format!(
                "long transfers of ‘{name}’ run at {} on average{}",
                short(Quantity::Rate, rate.estimate().value),
                stall.unwrap_or_default()
            ));
        }
    }
    finished(&baseline.label, clauses)
}

/// The changes that `other` makes.
fn against(baseline: &DisciplineResult, other: &DisciplineResult) -> Summary {
    let mut said = Said::default();
    said.short_transfers(&baseline.short, &other.short);
    for (before, after) in baseline.traffic.iter().zip(&other.traffic) {
        // A call without an end is long, too, but has no speed to gain.
        if before.datagrams || after.datagrams {
            said.datagrams(before, after);
        } else {
            said.pages(before, after);
            said.lookups(before, after);
            said.long_transfers(before, after);
        }
    }
    finished(&other.label, said.clauses())
}

pub(super) fn finished(label: &str, mut clauses: Vec<Clause>) -> Summary {
    if clauses.is_empty() {
        let text = "no measured value can be compared".into();
        clauses.push(Clause { verdict: Verdict::Told, text });
    }
    Summary { label: label.into(), clauses }
}

/// Collects clauses; everything without a clear difference comes last, in one clause.
#[derive(Default)]
struct Said {
    clear: Vec<Clause>,
    unclear: Vec<String>,
}

impl Said {
    /// Adds a clause; returns whether it stands where the next one can refer to it.
    fn say(&mut self, verdict: Verdict, text: String) -> bool {
        let clear = verdict != Verdict::Unclear;
        if clear {
            self.clear.push(Clause { verdict, text });
        } else {
            self.unclear.push(text);
        }
        clear
    }

    fn clauses(self) -> Vec<Clause> {
        let mut clauses = self.clear;
        if !self.unclear.is_empty() {
            let text = format!("no clear difference in {}", listed(&self.unclear));
            clauses.push(Clause { verdict: Verdict::Unclear, text });
        }
        clauses
    }

    fn short_transfers(&mut self, before: &ClassResult, after: &ClassResult) {
        match (&before.mean_s, &after.mean_s) {
            (Some(was), Some(is)) => {
                let verdict = verdict(was, is, Better::Less);
                let [was, is] = values(was, is);
                let text = response("short transfers", verdict, was, is);
                self.say(verdict, text);
            }
            (None, Some(is)) => {
                let time = short(Quantity::Time, is.estimate().value);
                let text = format!("short transfers take {time}, where none finished before");
                self.say(Verdict::Told, text);
            }
            (_, None) if after.started > 0 => {
                self.say(Verdict::Told, none_finished(after));
            }
            (_, None) => {}
        }
        let counts = [before, after].map(|class| (class.completed, class.started));
        self.unfinished("the short transfers", counts);
    }

    /// Tells which parts of `what` have not finished, of how many, if that differs.
    fn unfinished(&mut self, what: &str, counts: [(u64, u64); 2]) {
        let [before, after] =
            counts.map(|(completed, started)| 1.0 - completed as f64 / started.max(1) as f64);
        if counts[1].0 > 0 && (before - after).abs() >= UNFINISHED {
            let change = pair(Quantity::Share, after, "instead of", before);
            self.say(Verdict::Told, format!("{change} of {what} remain unfinished"));
        }
    }

    fn pages(&mut self, before: &TrafficResult, after: &TrafficResult) {
        let [Some(before), Some(pages)] = [before, after].map(|source| source.pages.as_ref())
        else {
            return;
        };
        let what = format!("pages of ‘{}’", after.name);
        if let (Some(was), Some(is)) = (&before.load_mean_s, &pages.load_mean_s) {
            let verdict = verdict(was, is, Better::Less);
            let [was, is] = values(was, is);
            self.say(verdict, response(&what, verdict, was, is));
        }
        let counts = [before, pages].map(|pages| (pages.completed, pages.started));
        self.unfinished(&format!("the {what}"), counts);
    }

    fn lookups(&mut self, before: &TrafficResult, after: &TrafficResult) {
        let [Some(before), Some(lookups)] = [before, after].map(|source| source.lookups.as_ref())
        else {
            return;
        };
        if let (Some(was), Some(is)) = (&before.time.mean_s, &lookups.time.mean_s) {
            let verdict = verdict(was, is, Better::Less);
            let [was, is] = values(was, is);
            self.say(verdict, response(&format!("lookups of ‘{}’", after.name), verdict, was, is));
        }
    }

    fn datagrams(&mut self, before: &TrafficResult, after: &TrafficResult) {
        let named = self.delay(before, after);
        let (Some((told_before, was)), Some((told, is))) = (harm(before), harm(after)) else {
            return;
        };
        let Harm { noun, verb, state } = told;
        let verdict = verdict(was, is, Better::Less);
        let [was, is] = values(was, is);
        // In a run that was cut short, nothing may have been due.
        if told_before.noun != noun || (was == 0.0 && is == 0.0) {
            return;
        }
        let verdict = match verdict {
            Verdict::Gain | Verdict::Loss if (was - is).abs() < SAME_LOSS => Verdict::Same,
            other => other,
        };
        let of = format!("‘{}’", after.name);
        let it = if named { "it" } else { &of };
        let instead = pair(Quantity::Share, is, "instead of", was);
        let text = match verdict {
            Verdict::Unclear => format!("the {noun} of {of}"),
            Verdict::Same if named => {
                format!("its {noun} stays at {}", short(Quantity::Share, was))
            }
            Verdict::Same => {
                format!("the {noun} of {of} stays at {}", short(Quantity::Share, was))
            }
            _ if is == 0.0 => {
                format!("{it} {verb} nothing{state} instead of {}", short(Quantity::Share, was))
            }
            _ => format!("{it} {verb} {instead} of its packets{state}"),
        };
        self.say(verdict, text);
    }

    fn delay(&mut self, before: &TrafficResult, after: &TrafficResult) -> bool {
        let of = format!("the delay of ‘{}’", after.name);
        let (Some(was), Some(is)) = (&before.delay.p95_s, &after.delay.p95_s) else {
            let silent = before.delay.p95_s.is_some() && after.loss_ratio.is_some();
            return silent
                && self.say(Verdict::Told, format!("no packet of ‘{}’ arrives", after.name));
        };
        let verdict = verdict(was, is, Better::Less);
        let [was, is] = values(was, is);
        let change = pair(Quantity::Time, was, "to", is);
        let instead = pair(Quantity::Time, is, "instead of", was);
        let text = match verdict {
            Verdict::Gain => format!("{of} falls from {change}"),
            Verdict::Loss => format!("{of} grows from {change}"),
            Verdict::Same => format!("{of} stays at {}", short(Quantity::Time, is)),
            Verdict::Unclear => of,
            Verdict::Told => format!("{of} is {instead}"),
        };
        self.say(verdict, text)
    }

    fn long_transfers(&mut self, before: &TrafficResult, after: &TrafficResult) {
        let name = &after.name;
        let named = match (&before.long_goodput_bps, &after.long_goodput_bps) {
            (Some(was), Some(is)) => {
                let verdict = verdict(was, is, Better::More);
                let [was, is] = values(was, is);
                self.say(verdict, speed(verdict, name, was, is))
            }
            (None, Some(is)) => {
                let rate = short(Quantity::Rate, is.estimate().value);
                self.say(Verdict::Told, format!("long transfers of ‘{name}’ run at {rate}"))
            }
            (Some(_), None) => {
                self.say(Verdict::Told, format!("no long transfer of ‘{name}’ was observed"))
            }
            (None, None) => false,
        };
        let (Some(was), Some(is)) = (&before.longest_stall_s, &after.longest_stall_s) else {
            return;
        };
        let verdict = verdict(was, is, Better::Less);
        let [was, is] = values(was, is);
        let change = pair(Quantity::Time, was, "to", is);
        let stall = if named {
            "their longest stall".into()
        } else {
            format!("the longest stall of ‘{name}’")
        };
        match verdict {
            Verdict::Gain => self.say(verdict, format!("{stall} shrinks from {change}")),
            Verdict::Loss => self.say(verdict, format!("{stall} grows from {change}")),
            Verdict::Unclear => self.say(verdict, format!("the longest stall of ‘{name}’")),
            Verdict::Told => {
                let instead = pair(Quantity::Time, is, "instead of", was);
                self.say(verdict, format!("{stall} is {instead}"))
            }
            Verdict::Same => false,
        };
    }
}

/// The part of a source's datagrams that is of no use, and the words for it.
fn harm(source: &TrafficResult) -> Option<(Harm, &Sample)> {
    let late = source.late_ratio.as_ref().map(|ratio| (LATENESS, ratio));
    late.or(source.loss_ratio.as_ref().map(|ratio| (LOSS, ratio)))
}

fn none_finished(class: &ClassResult) -> String {
    match class.started {
        1 => "the only short transfer did not finish".into(),
        started => format!(
            "none of the {} finished",
            counted(started, "short transfer", "short transfers")
        ),
    }
}

/// The clause on the response time of `transfers`.
pub(super) fn response(transfers: &str, verdict: Verdict, was: f64, is: f64) -> String {
    let instead = pair(Quantity::Time, is, "instead of", was);
    match verdict {
        Verdict::Gain if was / is >= AS_FACTOR => {
            format!("{transfers} finish {} times sooner ({instead})", brief(was / is))
        }
        Verdict::Gain => {
            let part = short(Quantity::Share, 1.0 - is / was);
            format!("{transfers} finish {part} sooner ({instead})")
        }
        Verdict::Loss if is / was >= AS_FACTOR => {
            format!("{transfers} take {} times as long ({instead})", brief(is / was))
        }
        Verdict::Loss => {
            let part = short(Quantity::Share, is / was - 1.0);
            format!("{transfers} take {part} longer ({instead})")
        }
        Verdict::Same => format!("{transfers} take the same time ({})", short(Quantity::Time, is)),
        Verdict::Unclear => format!("the response time of {transfers}"),
        Verdict::Told => format!("{transfers} take {instead}"),
    }
}

/// The clause on the speed of a source's long transfers.
fn speed(verdict: Verdict, name: &str, was: f64, is: f64) -> String {
    let instead = pair(Quantity::Rate, is, "instead of", was);
    let of = format!("long transfers of ‘{name}’");
    match verdict {
        Verdict::Gain if was == 0.0 => format!("{of} get through ({instead})"),
        Verdict::Gain if is / was >= AS_FACTOR => {
            format!("{of} are {} times as fast ({instead})", brief(is / was))
        }
        Verdict::Gain => {
            format!("{of} are {} faster ({instead})", short(Quantity::Share, is / was - 1.0))
        }
        Verdict::Loss if is == 0.0 => format!("{of} come to a standstill ({instead})"),
        Verdict::Loss if was / is >= AS_FACTOR => {
            let part = short(Quantity::Share, is / was);
            format!("{of} keep only {part} of their speed ({instead})")
        }
        Verdict::Loss => {
            format!("{of} are {} slower ({instead})", short(Quantity::Share, 1.0 - is / was))
        }
        Verdict::Same => format!("{of} keep their speed ({})", short(Quantity::Rate, is)),
        Verdict::Unclear => format!("the speed of {of}"),
        Verdict::Told => format!("{of} run at {instead}"),
    }
}

/// What the two are over all their runs.
fn values(before: &Sample, after: &Sample) -> [f64; 2] {
    [before, after].map(|sample| sample.estimate().value)
}

/// Compares `after` with `before`, seed by seed.
pub(super) fn verdict(before: &Sample, after: &Sample, better: Better) -> Verdict {
    let difference = after.less(before);
    difference.map_or(Verdict::Told, |it| judged(values(before, after), &it, better))
}

/// Judges two values by the estimate of their difference.
pub(super) fn judged([was, is]: [f64; 2], difference: &Estimate, better: Better) -> Verdict {
    let Some((low, high)) = difference.interval else { return Verdict::Told };
    // The median of differences may have another sign than the difference of medians.
    let (lower, higher) = (high < 0.0 && is < was, low > 0.0 && is > was);
    if low.abs().max(high.abs()) <= SAME * was.abs() {
        Verdict::Same
    } else if lower || higher {
        if lower == (better == Better::Less) { Verdict::Gain } else { Verdict::Loss }
    } else {
        Verdict::Unclear
    }
}

#[cfg(test)]
mod tests;
