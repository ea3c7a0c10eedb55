//! One number for each discipline: loss, throughput, fairness, utilisation.

use tidegate_study::Sample;
use tidegate_study::comparison::{Comparison, DisciplineResult};

use super::{Figure, over_seeds, shown_links, sources};
use crate::report::number::{Quantity, count, counted, estimate};
use crate::report::plot::{Axis, Bar, Row, RowChart};

/// What bars and whiskers are, where there are several runs.
const BARS: &str = " The bars are means over seeds, the whiskers their 95% confidence intervals.";

/// Packets lost at each link, by reason.
pub(super) fn loss(comparison: &Comparison) -> Option<Figure> {
    let links = shown_links(comparison);
    let row = |(style, discipline): (usize, &DisciplineResult), index: usize| {
        let link = discipline.links.get(index);
        let offered = link.map_or(0, |link| link.offered);
        let (refused, later) =
            link.map_or((0, 0), |link| (link.refused, link.lost() - link.refused));
        let ratio = link.and_then(|link| link.loss_ratio.as_ref()).map(Sample::estimate);
        // The mean over seeds, like everywhere, divided as all seeds together.
        let both = ratio.map_or(0.0, |ratio| ratio.value);
        let first = both * refused as f64 / (refused + later).max(1) as f64;
        let note = match ratio {
            Some(ratio) if refused + later > 0 => {
                let lost = count(refused + later);
                let of = counted(offered, "packet", "packets");
                format!("{} ({lost} of {of})", estimate(Quantity::Share, &ratio))
            }
            Some(_) if offered > 0 => {
                format!("no loss ({})", counted(offered, "packet", "packets"))
            }
            _ => "no packets".into(),
        };
        Row {
            label: discipline.label.clone(),
            style,
            bars: vec![
                Bar { from: 0.0, to: first, outlined: false },
                Bar { from: first, to: both, outlined: true },
            ],
            whisker: ratio.and_then(|ratio| ratio.interval),
            dots: Vec::new(),
            mark: None,
            note,
        }
    };
    let groups: Vec<(String, Vec<Row>)> = links
        .iter()
        .map(|(index, link)| {
            let rows = comparison.disciplines.iter().enumerate().map(|each| row(each, *index));
            (link.name.clone(), rows.collect())
        })
        .collect();
    let figure = figure(groups, "Packets lost", Quantity::Share, None, None)?;
    Some(Figure {
        id: "loss".into(),
        title: "Loss by reason".into(),
        caption: format!(
            "Packets lost at the link, divided by packets that arrived there. Refused: lost on \
             arrival at a full buffer. Other: pushed out to make room for another, or dropped \
             early to tell its sender of congestion; the table says which. A packet that is sent \
             again counts again.{}",
            over_seeds(comparison, BARS)
        ),
        table: Some("table-links"),
        ..figure
    })
}

/// The throughput of each source of transfers, where there are several.
pub(super) fn throughput(comparison: &Comparison) -> Option<Figure> {
    let found =
        sources(comparison, |source| source.is_transfers() && source.throughput_bps.is_some());
    if found.len() < 2 {
        return None;
    }
    let groups = found.iter().map(|(index, name)| {
        let rows = comparison.disciplines.iter().enumerate().map(|(style, discipline)| {
            let value =
                discipline.traffic.get(*index).and_then(|source| source.throughput_bps.as_ref());
            bar(&discipline.label, style, value, Quantity::Rate, "nothing")
        });
        (format!("‘{name}’"), rows.collect())
    });
    let figure = figure(groups.collect(), "Throughput", Quantity::Rate, None, None)?;
    Some(Figure {
        id: "throughput".into(),
        title: "What each source carries".into(),
        caption: format!(
            "Payload of all transfers of a source, divided by the time of the run.{}",
            over_seeds(comparison, BARS)
        ),
        table: Some("table-transfers"),
        ..figure
    })
}

/// How evenly the long flows of a source share.
pub(super) fn fairness(comparison: &Comparison) -> Option<Figure> {
    let found = sources(comparison, |source| source.is_transfers() && source.fairness.is_some());
    let groups = found.iter().map(|(index, name)| {
        let rows = comparison.disciplines.iter().enumerate().map(|(style, discipline)| {
            let value = discipline.traffic.get(*index).and_then(|source| source.fairness.as_ref());
            bar(&discipline.label, style, value, Quantity::Plain, "no long flow")
        });
        (format!("‘{name}’"), rows.collect())
    });
    let figure = figure(groups.collect(), "Jain's index", Quantity::Plain, Some(1.0), None)?;
    Some(Figure {
        id: "fairness".into(),
        title: "Fairness among long flows".into(),
        caption: format!(
            "Jain's index over the goodputs of the long flows of a source: 1 when all get the \
             same, 1/n when one of n gets everything.{}",
            over_seeds(comparison, BARS)
        ),
        table: Some("table-transfers"),
        ..figure
    })
}

/// How much of each link was used.
pub(super) fn utilisation(comparison: &Comparison) -> Option<Figure> {
    let groups = shown_links(comparison).into_iter().map(|(index, link)| {
        let rows = comparison.disciplines.iter().enumerate().map(|(style, discipline)| {
            let value = discipline.links.get(index).and_then(|link| link.utilisation.as_ref());
            bar(&discipline.label, style, value, Quantity::Share, "unknown")
        });
        (link.name.clone(), rows.collect())
    });
    let figure = figure(groups.collect(), "Utilisation", Quantity::Share, Some(1.0), None)?;
    Some(Figure {
        id: "utilisation".into(),
        title: "Utilisation of the links".into(),
        caption: format!(
            "Bytes sent, divided by the bytes that the link could have sent.{}",
            over_seeds(comparison, BARS)
        ),
        table: Some("table-links"),
        ..figure
    })
}

/// A row of one value, as a bar from zero with its interval.
pub(in crate::report) fn bar(
    label: &str,
    style: usize,
    value: Option<&Sample>,
    quantity: Quantity,
    without: &str,
) -> Row {
    let value = value.map(Sample::estimate);
    let end = value.map_or(0.0, |value| value.value);
    Row {
        label: label.into(),
        style,
        bars: vec![Bar { from: 0.0, to: end, outlined: false }],
        whisker: value.and_then(|value| value.interval),
        dots: Vec::new(),
        mark: None,
        note: value.map_or(without.into(), |value| estimate(quantity, &value)),
    }
}

/// A chart of bars from zero to `most`, or to the longest.
pub(in crate::report) fn figure(
    mut groups: Vec<(String, Vec<Row>)>,
    name: &str,
    quantity: Quantity,
    most: Option<f64>,
    mark_key: Option<&'static str>,
) -> Option<Figure> {
    if groups.is_empty() {
        return None;
    }
    let end = |row: &Row| {
        let bars = row.bars.iter().map(|bar| bar.to);
        let whisker = row.whisker.map(|(_, to)| to);
        bars.chain(whisker).chain(row.mark).fold(0.0, f64::max)
    };
    let longest = groups.iter().flat_map(|(_, rows)| rows).map(end).fold(0.0, f64::max);
    let by_reason = groups.iter().flat_map(|(_, rows)| rows).any(|row| row.bars.len() > 1);
    if let [(heading, _)] = &mut groups[..] {
        heading.clear();
    }
    let chart = RowChart {
        x: Axis::linear(name, quantity, most.unwrap_or(longest)).rounded(),
        groups,
        bar_key: by_reason.then_some(("refused", "other")),
        dot_key: Vec::new(),
        mark_key,
    };
    Some(Figure {
        id: String::new(),
        title: String::new(),
        caption: String::new(),
        description: chart.in_words(),
        table: None,
        plot: Ok(chart.draw()),
    })
}
