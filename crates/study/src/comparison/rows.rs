//! The values of a discipline as rows, and what is measured of each kind of subject.

use std::borrow::Cow;

use super::{ClassResult, DisciplineResult, LinkResult, RatioResult, TrafficResult};
use crate::measure::{Facts, Measure, Row, Value};

/// A kind of subject: its name in rows, and the measures of it.
type Kind = (&'static str, fn() -> Vec<Facts>);

/// The size classes, short flows and all flows.
const CLASS: &str = "size class";
/// The sources of traffic.
const TRAFFIC: &str = "traffic";
/// One source against another.
const RATIO: &str = "traffic ratio";
/// The links with a queue.
const LINK: &str = "link";

const KINDS: [Kind; 4] = [
    (CLASS, || ClassResult::MEASURES.iter().map(Measure::facts).collect()),
    (TRAFFIC, || TrafficResult::MEASURES.iter().map(Measure::facts).collect()),
    (RATIO, || vec![RatioResult::MEASURE.facts()]),
    (LINK, || LinkResult::MEASURES.iter().map(Measure::facts).collect()),
];

/// What is measured of each kind of subject.
pub fn measured() -> impl Iterator<Item = (&'static str, Facts)> {
    KINDS.iter().flat_map(|(kind, facts)| facts().into_iter().map(move |it| (*kind, it)))
}

/// A kind of subject, a subject, the name of a measure, and what that says.
pub type Measured<'a> = (&'static str, Cow<'a, str>, &'static str, Value<'a>);

/// All of `measures` in `result`.
fn all<'a, R>(
    kind: &'static str,
    name: &'a str,
    measures: &'static [Measure<R>],
    result: &'a R,
) -> impl Iterator<Item = Measured<'a>> {
    let value = move |measure: &Measure<R>| (measure.value)(result);
    measures.iter().map(move |it| (kind, Cow::Borrowed(name), it.name, value(it)))
}

impl DisciplineResult {
    /// Every estimate of every measure, in the order of the tables.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let row =
            |(kind, name, metric, value): Measured<'_>| Row::from_value(kind, &name, metric, value);
        self.values().filter_map(row).collect()
    }

    /// The same as the measures say it, with the values of each run.
    pub fn values(&self) -> impl Iterator<Item = Measured<'_>> {
        let classes = self.classes.iter().chain([&self.short, &self.all]);
        let classes = classes.flat_map(|it| all(CLASS, &it.label, ClassResult::MEASURES, it));
        let traffic = self.traffic.iter();
        let traffic = traffic.flat_map(|it| all(TRAFFIC, &it.name, TrafficResult::MEASURES, it));
        let ratios = self.ratios.iter().map(|it| {
            let name = format!("{} / {}", it.of, it.over).into();
            (RATIO, name, RatioResult::MEASURE.name, (RatioResult::MEASURE.value)(it))
        });
        let links = self.links.iter();
        let links = links.flat_map(|it| all(LINK, &it.name, LinkResult::MEASURES, it));
        classes.chain(traffic).chain(ratios).chain(links)
    }

    /// The kinds and names of the subjects that contenders are judged by: no single size
    /// class, and no link that has the same queue under all of them.
    #[must_use]
    pub fn judged_by(&self) -> Vec<(String, String)> {
        let classes = [&self.short, &self.all].map(|it| (CLASS, it.label.clone()));
        let traffic = self.traffic.iter().map(|it| (TRAFFIC, it.name.clone()));
        let ratios = self.ratios.iter().map(|it| (RATIO, format!("{} / {}", it.of, it.over)));
        let links = self.links.iter().filter(|link| link.tested);
        let links = links.map(|it| (LINK, it.name.clone()));
        let all = classes.into_iter().chain(traffic).chain(ratios).chain(links);
        all.map(|(kind, name)| (kind.into(), name)).collect()
    }
}
