//! The tables: the main figures side by side, and the numbers behind the plots.

use tidegate_study::comparison::{
    ClassResult, Comparison, DisciplineResult, DistributionPoint, LinkResult, RatioResult,
    TrafficResult,
};
use tidegate_study::measure::{self, Better, Measure, Row, Value};
use tidegate_study::{Centre, Estimate, Sample, ranking};

use super::figures::distributions::is_known;
use super::figures::{over_seeds, shown_links, sources};
use super::markup::{Element, element};
use super::number::{
    Quantity, Units, count, counted, estimate, short, significant, value_and_interval,
};
use super::page::scrolling;
use super::plot::swatch;

/// Shown where nothing was measured.
const NOTHING: &str = "–";

/// With more columns than these, intervals stand below their values, so that the table fits.
const MOST_IN_A_LINE: usize = 6;

/// A table in groups of rows.
pub(super) struct Table {
    pub(super) id: &'static str,
    /// What a screen reader calls it; the heading under which it folds away.
    pub(super) name: &'static str,
    pub(super) note: String,
    pub(super) columns: Vec<Element>,
    pub(super) groups: Vec<(String, Vec<Vec<Element>>)>,
}

impl Table {
    pub(super) fn html(self) -> Element {
        let width = self.columns.len();
        let head = element("tr").children(self.columns);
        let group = |(heading, rows): (String, Vec<Vec<Element>>)| {
            let heading = (!heading.is_empty()).then(|| {
                let cell = element("th").with("scope", "rowgroup").with("colspan", width);
                // What is inside stays in sight when the table scrolls.
                let heading = element("span").text(heading);
                element("tr").class("group").child(cell.child(heading))
            });
            element("tbody")
                .children(heading)
                .children(rows.into_iter().map(|cells| element("tr").children(cells)))
        };
        let note = format!("{}-note", self.id);
        let table = element("table")
            .with("id", self.id)
            .with("aria-label", self.name)
            .with("aria-describedby", &note)
            .class(if width > MOST_IN_A_LINE { "many" } else { "" })
            .child(element("thead").child(head))
            .children(self.groups.into_iter().map(group));
        // Not a caption: that would scroll away with the table.
        let note = element("p").class("note").with("id", note).text(self.note);
        element("div").child(note).child(scrolling(self.name, table))
    }
}

/// The head of a column. One without words heads nothing: the corner above the heads of rows.
pub(super) fn column(text: impl Into<String>) -> Element {
    match text.into() {
        corner if corner.is_empty() => element("td"),
        text => element("th").with("scope", "col").text(text),
    }
}

pub(super) fn cell(text: impl Into<String>) -> Element {
    element("td").text(text)
}

/// The head of a row about one contender.
pub(super) fn row_name(style: usize, label: &str) -> Element {
    element("th").with("scope", "row").child(swatch(style)).text(label)
}

/// A value, shown according to how its runs were summed up.
fn shown(quantity: Quantity, measured: Value<'_>) -> Element {
    match measured {
        Value::Sample(None) => cell(NOTHING),
        Value::Sample(Some(sample)) => cell(estimate(quantity, &sample.estimate())),
        Value::Sum(number) | Value::Largest(number) => cell(count(number)),
        Value::Part { of: 0, .. } => cell(NOTHING),
        Value::Part { part, of } => cell(short(Quantity::Share, part as f64 / of as f64)),
    }
}

/// A stored value with its interval.
pub(super) fn estimated(quantity: Quantity, row: &Row) -> String {
    match (Centre::named(&row.estimate), row.runs) {
        (Some(centre), Some(runs)) => {
            let Row { value, interval, .. } = *row;
            estimate(quantity, &Estimate { centre, value, interval, runs })
        }
        _ => short(quantity, row.value),
    }
}

/// The headings of a detailed table: one for each of its measures.
pub(super) fn headings<R>(measures: &[Measure<R>], table: measure::Table) -> Vec<Element> {
    let own = measures.iter().filter(|measure| measure.is_in(table));
    std::iter::once("").chain(own.map(|measure| measure.heading)).map(column).collect()
}

/// The cells of its row about `result`.
pub(super) fn cells<R>(measures: &[Measure<R>], table: measure::Table, result: &R) -> Vec<Element> {
    let own = measures.iter().filter(|measure| measure.is_in(table));
    own.map(|measure| shown(measure.quantity, (measure.value)(result))).collect()
}

/// A row of the main table: one value for each contender.
pub(super) struct MainRow<'a> {
    pub(super) name: String,
    pub(super) quantity: Quantity,
    pub(super) better: Better,
    pub(super) values: Vec<Option<&'a Sample>>,
}

/// A row for each measure that judges contenders, if it `belongs`; `of` gives
/// the results, one for each contender.
pub(super) fn headlines<'a, R: 'a, I: Iterator<Item = Option<&'a R>>>(
    measures: &'static [Measure<R>],
    belongs: impl Fn(&Measure<R>) -> bool,
    of: impl Fn() -> I,
) -> Vec<MainRow<'a>> {
    let row = |measure: &'static Measure<R>| {
        Some(MainRow {
            name: measure.headline?.into(),
            quantity: measure.quantity,
            better: measure.better,
            values: of().map(|result| (measure.value)(result?).sample()).collect(),
        })
    };
    measures.iter().filter(|it| belongs(it)).filter_map(row).collect()
}

/// The main figures: a row for each, a column for each discipline.
pub(super) fn main(comparison: &Comparison) -> Element {
    let labels: Vec<_> = comparison.disciplines.iter().map(|d| d.label.as_str()).collect();
    side_by_side(&labels, comparison.seeds.len(), main_rows(comparison))
}

/// The rows in groups, a column for each of `labels`.
pub(super) fn side_by_side(
    labels: &[&str],
    seeds: usize,
    rows: Vec<(String, Vec<MainRow<'_>>)>,
) -> Element {
    let name = |(style, label): (usize, &&str)| {
        let name = element("th").with("scope", "col").child(swatch(style));
        name.child(element("br")).text(*label)
    };
    let names = labels.iter().enumerate().map(name);
    let groups = rows.into_iter().filter_map(|(heading, rows)| {
        let known = |row: &MainRow<'_>| row.values.iter().any(Option::is_some);
        let rows: Vec<_> = rows.into_iter().filter(known).map(|it| it.cells()).collect();
        (!rows.is_empty()).then_some((heading, rows))
    });
    let least = Centre::Median.least_runs();
    let few = if seeds < least {
        format!(" Medians of fewer than {least} seeds have no interval, and so no star.")
    } else {
        String::new()
    };
    Table {
        id: "table-main",
        name: "Numbers",
        note: if seeds == 1 {
            "One run of each: values without intervals, and so without stars.".into()
        } else {
            format!(
                "Over {}: means ± half the width of the 95% confidence interval; of quantiles, \
             largest values and ratios of two sources, medians with the ends of theirs. ★ marks \
             the best values of a row, those that no other beats. One beats another where the \
             95% interval of their difference, seed by seed, lies on one side of zero; rows \
             without a star have no winner.{few}",
                counted(seeds as u64, "seed", "seeds")
            )
        },
        columns: std::iter::once(column("")).chain(names).collect(),
        groups: groups.collect(),
    }
    .html()
}

fn main_rows(comparison: &Comparison) -> Vec<(String, Vec<MainRow<'_>>)> {
    let all = || comparison.disciplines.iter();
    let up_to = short(Quantity::Size, comparison.short_flow_bytes as f64);
    let mut out = vec![
        (
            format!("Short transfers, up to {up_to}"),
            headlines(ClassResult::MEASURES, |_| true, || all().map(|it| Some(&it.short))),
        ),
        (
            "All transfers that have an end".into(),
            headlines(ClassResult::MEASURES, |_| true, || all().map(|it| Some(&it.all))),
        ),
    ];
    for (index, name) in sources(comparison, |_| true) {
        let source = || all().map(move |it| it.traffic.get(index));
        let datagrams = source().flatten().any(|source| source.datagrams);
        let video = source().flatten().any(|source| source.video.is_some());
        let lookups = source().flatten().any(|source| source.lookups.is_some());
        let tables: &[measure::Table] = if datagrams {
            &[TrafficResult::DATAGRAMS]
        } else if video {
            &[TrafficResult::VIDEO]
        } else if lookups {
            &[TrafficResult::LOOKUPS]
        } else {
            &[TrafficResult::TRANSFERS, TrafficResult::PAGES]
        };
        let rows = headlines(TrafficResult::MEASURES, |it| tables.contains(&it.tables[0]), source);
        out.push((format!("‘{name}’"), rows));
    }
    let ratios = comparison.disciplines.first().map_or(&[][..], |first| &first.ratios);
    let ratio = |(index, ratio): (usize, &RatioResult)| MainRow {
        name: format!("‘{}’ over ‘{}’", ratio.of, ratio.over),
        quantity: Quantity::Plain,
        better: Better::Neither,
        values: all()
            .map(|it| it.ratios.get(index).and_then(|it| it.throughput.as_ref()))
            .collect(),
    };
    let rows = ratios.iter().enumerate().map(ratio).collect();
    out.push(("Throughput of one source over another’s".into(), rows));
    for (index, link) in shown_links(comparison) {
        let links = || all().map(move |it| it.links.get(index));
        let rows = headlines(LinkResult::MEASURES, |_| true, links);
        out.push((format!("Link ‘{}’", link.name), rows));
    }
    out
}

impl MainRow<'_> {
    fn cells(&self) -> Vec<Element> {
        let known = || self.values.iter().flatten();
        let unit = self.quantity.unit_for(known().map(|sample| sample.estimate().value));
        let name = match unit.name {
            "" => self.name.clone(),
            unit => format!("{} ({unit})", self.name),
        };
        let stars = self.stars();
        let best = || element("span").with("aria-label", "best").with("role", "img").text("★");
        let cells = self.values.iter().zip(&stars).map(|(value, star)| {
            let Some(value) = value else { return cell(NOTHING) };
            let (value, interval) = value_and_interval(unit, &value.estimate());
            let cell =
                if *star { element("td").class("best").child(best()) } else { element("td") };
            let interval = interval.map(|it| element("small").text(format!("\u{a0}{it}")));
            cell.text(value).children(interval)
        });
        std::iter::once(element("th").with("scope", "row").text(name)).chain(cells).collect()
    }

    /// Which values are best ([`ranking::best`]).
    fn stars(&self) -> Vec<bool> {
        let stars = ranking::best(&self.values, self.better, 0.0);
        let known = self.values.iter().flatten().count();
        // A star on every value says nothing.
        if stars.iter().filter(|star| **star).count() == known {
            return vec![false; stars.len()];
        }
        stars
    }
}

/// The tables behind the figures.
pub(super) fn detailed(comparison: &Comparison) -> Vec<Table> {
    [
        Some(classes(comparison)),
        sizes(comparison),
        Some(quantiles(comparison)),
        transfers(comparison),
        pages(comparison),
        lookups(comparison),
        video(comparison),
        datagrams(comparison),
        links(comparison),
        queues(comparison),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn per_discipline(
    comparison: &Comparison,
    cells: impl Fn(&DisciplineResult) -> Vec<Element>,
) -> Vec<Vec<Element>> {
    let row = |(style, discipline): (usize, &DisciplineResult)| {
        std::iter::once(row_name(style, &discipline.label)).chain(cells(discipline)).collect()
    };
    comparison.disciplines.iter().enumerate().map(row).collect()
}

pub(super) fn columns(names: &[&str]) -> Vec<Element> {
    names.iter().map(|name| column(*name)).collect()
}

fn classes(comparison: &Comparison) -> Table {
    let columns = headings(ClassResult::MEASURES, ClassResult::CLASSES);
    type Pick<'a> = &'a dyn Fn(&DisciplineResult) -> Option<&ClassResult>;
    let group = |heading: String, class: Pick| {
        let cells = |discipline: &DisciplineResult| {
            let none = || vec![cell(NOTHING); columns.len() - 1];
            class(discipline).map_or_else(none, |class| {
                cells(ClassResult::MEASURES, ClassResult::CLASSES, class)
            })
        };
        (heading, per_discipline(comparison, cells))
    };
    let first = comparison.disciplines.first();
    let mut groups: Vec<_> = first
        .iter()
        .flat_map(|d| d.classes.iter().enumerate())
        .map(|(index, class)| group(class.label.clone(), &|d| d.classes.get(index)))
        .collect();
    groups.extend(first.map(|d| group(d.short.label.clone(), &|d| Some(&d.short))));
    groups.extend(first.map(|d| group(d.all.label.clone(), &|d| Some(&d.all))));
    Table {
        id: "table-classes",
        name: ClassResult::CLASSES,
        note: format!(
            "By size of the transfer; times are those of finished transfers.{}",
            over_seeds(
                comparison,
                " Counts cover all seeds together; times are means over seeds ± half the width of \
                 the 95% confidence interval, and medians with the ends of theirs."
            )
        ),
        columns,
        groups,
    }
}

fn sizes(comparison: &Comparison) -> Option<Table> {
    let mut bins: Vec<(f64, f64)> = comparison
        .disciplines
        .iter()
        .flat_map(|d| d.response_by_size.iter().map(|bin| (bin.from_bytes, bin.to_bytes)))
        .collect();
    bins.sort_by(|one, other| one.0.total_cmp(&other.0));
    bins.dedup();
    let row = |(from, to): &(f64, f64)| {
        let unit = Quantity::Size.unit(*from);
        let name = format!("{} to {}", unit.number(*from, 3), unit.behind(&unit.number(*to, 3)));
        let of = |discipline: &DisciplineResult| {
            let bin = discipline.response_by_size.iter().find(|bin| bin.from_bytes == *from);
            cell(bin.map_or(NOTHING.into(), |bin| {
                format!("{} ({})", estimate(Quantity::Time, &bin.mean_s), count(bin.flows))
            }))
        };
        let name = element("th").with("scope", "row").text(name);
        std::iter::once(name).chain(comparison.disciplines.iter().map(of)).collect()
    };
    let rows: Vec<Vec<Element>> = bins.iter().map(row).collect();
    (!rows.is_empty()).then(|| Table {
        id: "table-sizes",
        name: "Response times by size, finer",
        note: format!(
            "Mean response time of finished transfers, and their number{}.",
            over_seeds(comparison, " in all seeds together")
        ),
        columns: discipline_columns(comparison, "Size"),
        groups: vec![(String::new(), rows)],
    })
}

fn discipline_columns(comparison: &Comparison, first: &str) -> Vec<Element> {
    let names = comparison.disciplines.iter().map(|discipline| column(discipline.label.clone()));
    std::iter::once(column(first)).chain(names).collect()
}

fn quantiles(comparison: &Comparison) -> Table {
    const FRACTIONS: [f64; 9] = [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999];
    type Counted = (Vec<DistributionPoint>, u64);
    let group = |heading: String, of: &dyn Fn(&DisciplineResult) -> Counted| {
        let distributions: Vec<_> = comparison.disciplines.iter().map(of).collect();
        let row = |fraction: f64| {
            let cell_of = |(points, values): &Counted| {
                let point = points.iter().find(|point| point.fraction >= fraction - 1e-12);
                let point = point.filter(|_| is_known(fraction, *values));
                cell(point.map_or(NOTHING.into(), |point| {
                    let unit = Quantity::Time.unit(point.at_s);
                    unit.behind(&significant(point.at_s / unit.factor, 3))
                }))
            };
            let name = element("th").with("scope", "row").text(short(Quantity::Share, fraction));
            std::iter::once(name).chain(distributions.iter().map(cell_of)).collect()
        };
        (heading, FRACTIONS.into_iter().map(row).collect())
    };
    let mut groups = vec![group("Response time of short transfers".into(), &|d| {
        (d.short_distribution.clone(), d.short.completed)
    })];
    groups.extend(sources(comparison, |source| source.pages.is_some()).into_iter().map(
        |(index, name)| {
            group(format!("Time of a page of ‘{name}’"), &|d| {
                let pages = d.traffic.get(index).and_then(|source| source.pages.as_ref());
                pages.map(|it| (it.load_distribution.clone(), it.completed)).unwrap_or_default()
            })
        },
    ));
    groups.extend(sources(comparison, |source| source.lookups.is_some()).into_iter().map(
        |(index, name)| {
            group(format!("Time of a lookup of ‘{name}’"), &|d| {
                let lookups = d.traffic.get(index).and_then(|source| source.lookups.as_ref());
                lookups.map(|it| (it.time_distribution.clone(), it.ended)).unwrap_or_default()
            })
        },
    ));
    groups.extend(sources(comparison, |source| source.datagrams).into_iter().map(
        |(index, name)| {
            group(format!("Delay of ‘{name}’"), &|d| {
                let source = d.traffic.get(index);
                source.map(|it| (it.delay_distribution.clone(), it.arrived)).unwrap_or_default()
            })
        },
    ));
    Table {
        id: "table-quantiles",
        name: "Quantiles of the distributions",
        note: format!(
            "The time within which this part had arrived{}. {NOTHING} marks what fewer than ten \
             values lie beyond: too few to tell.",
            over_seeds(comparison, ", all seeds together")
        ),
        columns: discipline_columns(comparison, "Part"),
        groups,
    }
}

fn by_source(
    comparison: &Comparison,
    has: impl Fn(&TrafficResult) -> bool,
    cells: impl Fn(&TrafficResult) -> Vec<Element>,
) -> Vec<(String, Vec<Vec<Element>>)> {
    let group = |(index, name): (usize, &str)| {
        let rows = per_discipline(comparison, |discipline| {
            discipline.traffic.get(index).map(&cells).unwrap_or_default()
        });
        (format!("‘{name}’"), rows)
    };
    sources(comparison, has).into_iter().map(group).collect()
}

/// A detailed table of the sources that it is about.
fn of_sources(
    comparison: &Comparison,
    (id, name): (&'static str, measure::Table),
    has: impl Fn(&TrafficResult) -> bool,
    note: String,
) -> Option<Table> {
    const MEASURES: &[Measure<TrafficResult>] = TrafficResult::MEASURES;
    let groups = by_source(comparison, has, |source| cells(MEASURES, name, source));
    let columns = headings(MEASURES, name);
    (!groups.is_empty()).then_some(Table { id, name, note, columns, groups })
}

fn transfers(comparison: &Comparison) -> Option<Table> {
    let long = short(Quantity::Size, comparison.long_flow_bytes as f64);
    of_sources(
        comparison,
        ("table-transfers", TrafficResult::TRANSFERS),
        |source| source.is_transfers() && source.video.is_none(),
        format!("Long flows have at least {long}, or no end."),
    )
}

fn pages(comparison: &Comparison) -> Option<Table> {
    let largest = short(Quantity::Size, comparison.short_flow_bytes as f64);
    of_sources(
        comparison,
        ("table-pages", TrafficResult::PAGES),
        |source| source.pages.is_some(),
        format!(
            "Pages from their start to the last byte of their last object, and objects of at \
             most {largest} from the moment at which the browser wants them, waiting for a \
             connection included."
        ),
    )
}

fn lookups(comparison: &Comparison) -> Option<Table> {
    of_sources(
        comparison,
        ("table-lookups", TrafficResult::LOOKUPS),
        |source| source.lookups.is_some(),
        "From the first query to the answer; lookups that failed count with the time after which \
         their host gave up. Those that were open at the end are not among them."
            .into(),
    )
}

fn video(comparison: &Comparison) -> Option<Table> {
    of_sources(
        comparison,
        ("table-video", TrafficResult::VIDEO),
        |source| source.video.is_some(),
        "The mean nominal rate of what was on the screen, the part of the time for which the \
         player was stalled, and changes of quality between one segment and the next; the mean of \
         all viewers."
            .into(),
    )
}

fn datagrams(comparison: &Comparison) -> Option<Table> {
    let own = || TrafficResult::MEASURES.iter().filter(|it| it.is_in(TrafficResult::DATAGRAMS));
    // Lateness depends on the deadline, which is set and not measured.
    let before_lateness = |measure: &Measure<TrafficResult>| measure.name == "late_ratio";
    let cells = |source: &TrafficResult| {
        // Payload is counted by flow, and a flow that began during the warm-up is not.
        let counted = source
            .throughput_bps
            .as_ref()
            .is_some_and(|it| source.started > 0 || it.estimate().value > 0.0);
        let due = source.deadline_s.map_or(NOTHING.into(), |due| short(Quantity::Time, due));
        let cells = |measure: &Measure<TrafficResult>| {
            let known = counted || measure.name != "throughput_bps";
            let value = if known { (measure.value)(source) } else { Value::Sample(None) };
            let due = before_lateness(measure).then(|| cell(due.clone()));
            due.into_iter().chain([shown(measure.quantity, value)])
        };
        own().flat_map(cells).collect()
    };
    let names = own().flat_map(|measure| {
        before_lateness(measure).then_some("Deadline").into_iter().chain([measure.heading])
    });
    let columns = columns(&std::iter::once("").chain(names).collect::<Vec<_>>());
    let groups = by_source(comparison, |source| source.datagrams, cells);
    (!groups.is_empty()).then(|| Table {
        id: "table-datagrams",
        name: TrafficResult::DATAGRAMS,
        note: "One-way delay of the packets that arrived; lost packets divided by packets sent. \
               Late packets came after their deadline or never; their number is divided by that \
               of the packets due within the run."
            .into(),
        columns,
        groups,
    })
}

fn by_link(
    comparison: &Comparison,
    cells: impl Fn(&LinkResult) -> Vec<Element>,
) -> Vec<(String, Vec<Vec<Element>>)> {
    let links = comparison.disciplines.first().map_or(&[][..], |discipline| &discipline.links);
    let group = |(index, link): (usize, &LinkResult)| {
        let rows = per_discipline(comparison, |discipline| {
            discipline.links.get(index).map(&cells).unwrap_or_default()
        });
        let tested = if link.tested { "" } else { " (same discipline in every run)" };
        (format!("‘{}’{tested}", link.name), rows)
    };
    links.iter().enumerate().map(group).collect()
}

fn links(comparison: &Comparison) -> Option<Table> {
    let cells = |link: &LinkResult| cells(LinkResult::MEASURES, LinkResult::PACKETS, link);
    let groups = by_link(comparison, cells);
    (!groups.is_empty()).then(|| Table {
        id: "table-links",
        name: LinkResult::PACKETS,
        note: format!(
            "Ratios are of the packets that arrived at the link.{}",
            over_seeds(
                comparison,
                " Packet counts cover all seeds together; ratios are means over seeds."
            )
        ),
        columns: headings(LinkResult::MEASURES, LinkResult::PACKETS),
        groups,
    })
}

fn queues(comparison: &Comparison) -> Option<Table> {
    let cells = |link: &LinkResult| cells(LinkResult::MEASURES, LinkResult::QUEUES, link);
    let groups = by_link(comparison, cells);
    (!groups.is_empty()).then(|| Table {
        id: "table-queues",
        name: LinkResult::QUEUES,
        note: format!(
            "The time that packets wait in front of the link, and what is kept there, as means \
             over time.{}",
            over_seeds(
                comparison,
                " Over seeds, quantiles and the longest wait are medians, all else are means. The \
                 peak is the largest of all seeds."
            )
        ),
        columns: headings(LinkResult::MEASURES, LinkResult::QUEUES),
        groups,
    })
}
