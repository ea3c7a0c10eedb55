//! `summary.csv`: every estimate of a comparison, one in each row, for tools
//! that pivot. Names of metrics contain the unit; `estimate` tells whether the value is
//! the mean or the median over runs, with the ends of its 95% interval, or the sum or
//! the largest of all runs.

use csv::Writer;
use tidegate_study::comparison::{
    ClassResult, Comparison, DisciplineResult, LinkResult, RatioResult, TrafficResult,
};
use tidegate_study::measure::{Measure, Value};
use tidegate_study::requests::{Class, Summary, Way};
use tidegate_study::{Estimate, Sample};

/// The columns behind the first, which names what was compared.
const COLUMNS: [&str; 8] =
    ["kind", "name", "metric", "estimate", "value", "low_95", "high_95", "runs"];

/// The content of the file.
pub(crate) fn of(comparison: &Comparison) -> Vec<u8> {
    let mut rows = Rows::under("discipline");
    for discipline in &comparison.disciplines {
        rows.discipline(discipline);
    }
    rows.0.into_inner().expect(MEMORY)
}

/// The same for ways of sharing a gateway's link.
pub(crate) fn of_ways(summary: &Summary) -> Vec<u8> {
    let mut rows = Rows::under("way");
    for way in &summary.ways {
        rows.measures(About(&way.label, "all classes", ""), Way::MEASURES, way);
        for class in &way.classes {
            rows.measures(About(&way.label, "class", &class.name), Class::MEASURES, class);
        }
    }
    rows.0.into_inner().expect(MEMORY)
}

/// Why writing cannot fail.
const MEMORY: &str = "memory takes everything, and all rows have the same length";

struct Rows(Writer<Vec<u8>>);

/// The subject of a row: discipline or way; kind (size class, traffic, link, class); name.
#[derive(Clone, Copy)]
struct About<'a>(&'a str, &'a str, &'a str);

impl Rows {
    /// A table whose first column is called `contender`.
    fn under(contender: &str) -> Rows {
        let mut rows = Rows(Writer::from_writer(Vec::new()));
        let heading = [contender].into_iter().chain(COLUMNS);
        rows.0.write_record(heading).expect(MEMORY);
        rows
    }

    fn write<const N: usize>(&mut self, fields: [&str; N]) {
        self.0.write_record(fields).expect(MEMORY);
    }

    fn sample(&mut self, about: About<'_>, metric: &str, sample: Option<&Sample>) {
        let Some(Estimate { centre, value, interval, runs }) = sample.map(Sample::estimate) else {
            return;
        };
        let end = |end: Option<f64>| end.map_or_else(String::new, |end| end.to_string());
        let [low, high] = [interval.map(|it| it.0), interval.map(|it| it.1)].map(end);
        let About(contender, kind, name) = about;
        let (value, runs) = (value.to_string(), runs.to_string());
        self.write([contender, kind, name, metric, centre.name(), &value, &low, &high, &runs]);
    }

    /// A count over all runs together.
    fn count(&mut self, about: About<'_>, metric: &str, estimate: &str, count: u64) {
        let About(contender, kind, name) = about;
        self.write([contender, kind, name, metric, estimate, &count.to_string(), "", "", ""]);
    }

    /// Every measure of `result`.
    fn measures<R>(&mut self, about: About<'_>, measures: &[Measure<R>], result: &R) {
        for measure in measures {
            match (measure.value)(result) {
                Value::Sample(sample) => self.sample(about, measure.name, sample),
                Value::Sum(number) | Value::Part { part: number, .. } => {
                    self.count(about, measure.name, "sum", number);
                }
                Value::Largest(number) => self.count(about, measure.name, "largest", number),
            }
        }
    }

    fn discipline(&mut self, discipline: &DisciplineResult) {
        let label = discipline.label.as_str();
        let classes = discipline.classes.iter().chain([&discipline.short, &discipline.all]);
        for class in classes {
            let about = About(label, "size class", &class.label);
            self.measures(about, ClassResult::MEASURES, class);
        }
        for traffic in &discipline.traffic {
            let about = About(label, "traffic", &traffic.name);
            self.measures(about, TrafficResult::MEASURES, traffic);
        }
        for ratio in &discipline.ratios {
            let name = format!("{} / {}", ratio.of, ratio.over);
            let about = About(label, "traffic ratio", &name);
            self.measures(about, &[RatioResult::MEASURE], ratio);
        }
        for link in &discipline.links {
            self.measures(About(label, "link", &link.name), LinkResult::MEASURES, link);
        }
    }
}
