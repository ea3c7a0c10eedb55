//! What was measured on the link of a scenario.

use std::ops::RangeInclusive;

use super::Document;
use super::syntax::{Delays, MeasuredTable};
use super::values::{At, Text};
use crate::scenario::measured::{Observation, Observed, Spread};
use crate::scenario::{LinkSpec, TrafficSpec};
use tidegate_files::{Mistake, expectation};

/// All that the file says was measured, beside `traffic` on `links`.
pub(super) fn observations(
    document: &Document,
    traffic: &[TrafficSpec],
    links: &[LinkSpec],
) -> Result<Vec<Observation>, Mistake> {
    let names = || traffic.iter().map(|source| source.name.as_str());
    let observation = |table: &At<MeasuredTable>| {
        let kinds = [
            table.round_trip.is_some(),
            table.delay.is_some(),
            table.time.is_some(),
            table.throughput.is_some(),
            table.queue.is_some(),
        ];
        let given = kinds.iter().filter(|given| **given).count();
        if given != 1 {
            let found = format!("{given} of round_trip, delay, time, throughput and queue");
            return Err(Mistake::at(&table.place, found, "exactly one of them"));
        }
        if let (Some(_), Some(name)) = (&table.time, table.sources.first()) {
            let expected = "none, since nothing in a scenario corresponds to a time";
            return Err(Mistake::at(&name.place, "sources", expected));
        }
        let mut of = Vec::new();
        for name in &table.sources {
            let place = names().position(|it| it == name.value).ok_or_else(|| {
                let found = format!("unknown source '{}'", name.value);
                Mistake::at(&name.place, found, expectation(&name.value, names()))
            })?;
            let wanted = if table.throughput.is_some() { "transfers" } else { "datagrams" };
            let kind = &traffic[place].kind;
            let fits = match table.throughput {
                Some(_) => kind.is_transfers(),
                None => kind.is_datagrams(),
            };
            if !fits {
                let found = format!("'{}'", name.value);
                return Err(Mistake::at(&name.place, found, format!("a source of {wanted}")));
            }
            of.push(place);
        }
        let what = if let Some(delays) = &table.round_trip {
            delay(2, of, delays)?
        } else if let Some(delays) = &table.delay {
            delay(1, of, delays)?
        } else if let Some(times) = &table.time {
            delay(0, of, times)?
        } else if let Some(rates) = &table.throughput {
            let spread = spread([rates.mean, rates.p5, rates.median, rates.p95]);
            Observed::Throughput { of, spread }
        } else {
            let counts = table.queue.as_ref().expect("one of the five is given");
            let link = counts.link.as_ref().map(|name| {
                let names = || links.iter().map(|link| link.name.as_str());
                names().position(|it| it == name.value).ok_or_else(|| {
                    let found = format!("unknown link '{}'", name.value);
                    Mistake::at(&name.place, found, expectation(&name.value, names()))
                })
            });
            Observed::Queue {
                of: link.transpose()?,
                dropped_per_second: within(counts.dropped_per_second.as_ref(), 0.0..=1e12)?,
                marked_per_second: within(counts.marked_per_second.as_ref(), 0.0..=1e12)?,
                backlog: counts.backlog.map(|size| size.0),
            }
        };
        Ok(Observation { name: table.name.value.clone(), what })
    };
    document.measured.iter().map(observation).collect()
}

fn delay(ways: u32, of: Vec<usize>, delays: &Delays) -> Result<Observed, Mistake> {
    Ok(Observed::Delay {
        ways,
        of,
        idle: delays.idle.map(|idle| idle.0),
        spread: spread([delays.mean, delays.p5, delays.median, delays.p95]),
        loss: within(delays.loss.as_ref(), 0.0..=1.0)?,
        rating: within(delays.rating.as_ref(), 0.0..=100.0)?,
    })
}

fn spread<T>([mean, p5, median, p95]: [Option<Text<T>>; 4]) -> Spread<T> {
    let value = |text: Option<Text<T>>| text.map(|text| text.0);
    Spread { mean: value(mean), p5: value(p5), median: value(median), p95: value(p95) }
}

fn within(value: Option<&At<f64>>, range: RangeInclusive<f64>) -> Result<Option<f64>, Mistake> {
    match value {
        Some(value) if !range.contains(&value.value) => {
            let expected = format!("from {} to {}", range.start(), range.end());
            Err(Mistake::at(&value.place, value.value.to_string(), expected))
        }
        value => Ok(value.map(|value| value.value)),
    }
}
