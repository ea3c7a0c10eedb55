//! Runs as data files of Flent, which `flent` plots and `tidegate measured` reads.
//!
//! A file is one JSON object of version 4 ([format](https://flent.org/data-format.html)),
//! compressed by gzip: `raw_values` with each sample as it was measured, `results` with
//! the same at the steps of a plot, and metadata. Names of series and the test are those of
//! Flent's `rrul_be_nflows`, or of `tcp_ndown` where only downloads are possible, with a call
//! beside them, so that its plots fit. They want sums and averages over flows too, which Flent
//! computes when it measures. What the format has no place for, the short transfers, is a
//! series of page latencies.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};

use super::record::{Flow, Record, Way};

/// The step of a plot, in seconds, as Flent's.
const STEP_S: f64 = 0.2;

/// What a file says of a run beside its series.
pub(super) struct About<'a> {
    pub(super) title: &'a str,
    pub(super) server: &'a str,
    pub(super) queue: &'a str,
    pub(super) congestion: Option<&'a str>,
    pub(super) client: &'a str,
}

/// Writes the file of a run.
pub(super) fn write(path: &Path, record: &Record, about: &About<'_>) -> io::Result<()> {
    let text = serde_json::to_string(&document(record, about)).expect("our types are plain JSON");
    let mut file = GzEncoder::new(File::create(path)?, Compression::default());
    file.write_all(text.as_bytes())?;
    file.finish()?.sync_data()
}

/// A series: its samples as (time, value) with what each has beside them.
struct Series {
    name: String,
    samples: Vec<(f64, f64, Map<String, Value>)>,
    units: &'static str,
}

fn document(record: &Record, about: &About<'_>) -> Value {
    let begun_s = record.begun.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let all = series(record);
    let flows = |way| record.flows.iter().filter(move |it| it.way == way).count();
    let (downloads, uploads) = (flows(Way::Down), flows(Way::Up));
    let steps = (record.times.end_s() / STEP_S).ceil() as usize;
    let x_values: Vec<f64> = (0..=steps).map(|it| rounded(it as f64 * STEP_S)).collect();
    let mut raw_values = Map::new();
    let mut results = Map::new();
    let mut meta = Map::new();
    for series in all {
        let raw = series.samples.iter().map(|(at_s, value, more)| {
            let mut sample = more.clone();
            sample.insert("t".into(), json!(begun_s + at_s));
            sample.insert("val".into(), json!(rounded(*value)));
            Value::Object(sample)
        });
        raw_values.insert(series.name.clone(), raw.collect());
        let at_steps: Vec<_> = x_values.iter().map(|at| mean_at(&series.samples, *at)).collect();
        results.insert(series.name.clone(), json!(at_steps));
        meta.insert(series.name, json!({ "UNITS": series.units }));
    }
    for (name, of, mean) in COMPUTED {
        if let Some(values) = computed(&results, of, mean) {
            results.insert(name.into(), values);
        }
    }
    json!({
        "version": 4,
        "x_values": x_values,
        "results": results,
        "raw_values": raw_values,
        "metadata": {
            "NAME": if uploads > 0 { "rrul_be_nflows" } else { "tcp_ndown" },
            "TITLE": about.title,
            "NOTE": about.queue,
            "DATA_FILENAME": Value::Null,
            "HOST": about.server,
            "HOSTS": [about.server],
            "LOCAL_HOST": about.client,
            "TIME": iso_8601(record.begun.duration_since(UNIX_EPOCH).unwrap_or_default()),
            "T0": iso_8601(record.begun.duration_since(UNIX_EPOCH).unwrap_or_default()),
            "LENGTH": rounded(record.times.load_s),
            "TOTAL_LENGTH": rounded(record.times.end_s()),
            "STEP_SIZE": STEP_S,
            "FLENT_VERSION": concat!("tidegate ", env!("CARGO_PKG_VERSION")),
            "BATCH_NAME": Value::Null,
            "TEST_PARAMETERS": {
                "tcp_cong_control": about.congestion,
                "download_streams": downloads.to_string(),
                "upload_streams": uploads.to_string(),
            },
            "SERIES_META": meta,
        },
    })
}

/// What plots of Flent want besides: of which series, by the beginning of their names, and
/// whether it is their mean and not their sum.
const COMPUTED: [(&str, &str, bool); 6] = [
    ("TCP download avg", "TCP download", true),
    ("TCP download sum", "TCP download", false),
    ("TCP upload avg", "TCP upload", true),
    ("TCP upload sum", "TCP upload", false),
    ("TCP totals", "TCP", false),
    ("Ping (ms) avg", "Ping (ms)", true),
];

/// The mean or sum of series at each step; nothing at a step where none has a value.
fn computed(results: &Map<String, Value>, of: &str, mean: bool) -> Option<Value> {
    let is_one = |name: &str| name.starts_with(of) && (name.contains("::") || of == "Ping (ms)");
    let all: Vec<&Vec<Value>> = (results.iter().filter(|(name, _)| is_one(name)))
        .filter_map(|(_, values)| values.as_array())
        .collect();
    let steps = all.first()?.len();
    let at = |step: usize| {
        let values: Vec<f64> = all.iter().filter_map(|it| it.get(step)?.as_f64()).collect();
        let count = if mean { values.len() as f64 } else { 1.0 };
        (!values.is_empty()).then(|| rounded(values.iter().sum::<f64>() / count))
    };
    Some(json!((0..steps).map(at).collect::<Vec<_>>()))
}

fn series(record: &Record) -> Vec<Series> {
    let has_uploads = record.flows.iter().any(|it| it.way == Way::Up);
    // Flent's names say how packets are marked: not at all, as best effort.
    let marked = if has_uploads { " BE" } else { "" };
    let everything = (0.0, f64::INFINITY);
    let numbered = |number: usize| Map::from_iter([("seq".to_owned(), json!(number))]);
    let ping = record.ping.answers.iter().filter_map(|answer| {
        let sent_s = record.ping.sent_s.get(answer.number)?;
        Some((*sent_s, (answer.at_s - sent_s) * 1e3, numbered(answer.number)))
    });
    let mut all = vec![Series {
        name: match record.ping.kind {
            "UDP" => "Ping (ms) UDP BE".into(),
            kind => format!("Ping (ms) {kind}"),
        },
        samples: ping.collect(),
        units: "ms",
    }];
    if let Some((call, ahead_s)) = record.calls.first().and_then(|it| Some((it, it.ahead_s?))) {
        let delays = call.answers.iter().filter_map(|answer| {
            let sent_s = call.sent_s.get(answer.number)?;
            let mut more = numbered(answer.number);
            more.insert("size".into(), json!(call.payload));
            Some((*sent_s, (answer.there_s - ahead_s - sent_s) * 1e3, more))
        });
        all.push(Series { name: "VoIP".into(), samples: delays.collect(), units: "ms" });
        let trips: Vec<f64> = call.round_trips(everything).map(|it| it.1).collect();
        let sent = call.answers.iter().filter_map(|it| call.sent_s.get(it.number));
        let jitter = sent.skip(1).zip(trips.windows(2));
        let jitter = jitter.map(|(at, pair)| (*at, (pair[1] - pair[0]).abs() * 1e3, Map::new()));
        all.push(Series { name: "VoIP::jitter".into(), samples: jitter.collect(), units: "ms" });
    }
    let short = record.short.iter().filter(|it| it.transfer.complete).map(|it| {
        let more = Map::from_iter([("bytes".to_owned(), json!(it.transfer.bytes))]);
        (it.at_s, it.transfer.response_s * 1e3, more)
    });
    let (name, samples) = ("HTTP latency".to_owned(), short.collect());
    all.push(Series { name, samples, units: "ms" });
    for (way, name) in [(Way::Down, "TCP download"), (Way::Up, "TCP upload")] {
        let flows = record.flows.iter().filter(|it| it.way == way);
        all.extend((1..).zip(flows).map(|(number, flow)| Series {
            name: format!("{name}{marked}::{number}"),
            samples: rates(flow),
            units: "Mbits/s",
        }));
    }
    all.retain(|it| !it.samples.is_empty());
    all
}

/// The rate of a flow between each two points.
fn rates(flow: &Flow) -> Vec<(f64, f64, Map<String, Value>)> {
    let pairs = flow.points.windows(2).filter(|pair| pair[1].0 > pair[0].0);
    let rate = |pair: &[(f64, u64)]| {
        let lasted_s = pair[1].0 - pair[0].0;
        let mbps = (pair[1].1 - pair[0].1) as f64 * 8e-6 / lasted_s;
        (pair[1].0, mbps, Map::from_iter([("dur".to_owned(), json!(rounded(lasted_s)))]))
    };
    pairs.map(rate).collect()
}

/// The mean of the samples within the step that ends at `at_s`; none in an empty one.
fn mean_at(samples: &[(f64, f64, Map<String, Value>)], at_s: f64) -> Option<f64> {
    let within = samples.iter().filter(|(time, ..)| *time > at_s - STEP_S && *time <= at_s);
    let (sum, count) = within.fold((0.0, 0_u32), |(sum, count), it| (sum + it.1, count + 1));
    (count > 0).then(|| rounded(sum / f64::from(count)))
}

/// Microseconds and bits a second are beyond what anything here tells.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// A moment in UTC, by the rule for Gregorian dates that counts days from a first of March.
fn iso_8601(since_1970: Duration) -> String {
    let (days, second) = (since_1970.as_secs() / 86_400, since_1970.as_secs() % 86_400);
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let micros = since_1970.subsec_micros();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_core::Span;
    use tidegate_sim::scenario::Observed;
    use tidegate_sim::trace::{Direction, Flent, FlentKind};
    use tidegate_study::measured::Measurement;
    use tidegate_study::rounds::Transfer;

    use super::super::record::{Answer, Probes, Short, Times};
    use super::*;

    /// Idle for 5 s with round trips of 20 ms; then 30 s of load, in which they take 70 ms.
    fn record() -> Record {
        let probes = |kind, payload| {
            let sent_s: Vec<f64> = (0..1_750).map(|it| f64::from(it) * 0.02).collect();
            let lost = |number: &usize| *number >= 1_000 && number.is_multiple_of(10);
            let answers = sent_s.iter().enumerate().filter(|(it, _)| !lost(it));
            let answers = answers.map(|(number, sent)| {
                let queued = if *sent < 5.0 { 0.0 } else { 0.05 };
                let there_s = sent + 0.01 + queued + 77.0;
                Answer { number, at_s: sent + 0.02 + queued, there_s, count: 1 }
            });
            let answers = answers.collect();
            Probes { kind, payload, answers, ahead_s: Some(77.0), sent_s }
        };
        let flow = |way| Flow {
            way,
            points: (0..=300_u32)
                .map(|it| (5.0 + f64::from(it) * 0.1, u64::from(it) * 50_000))
                .collect(),
        };
        let transfer = Transfer { bytes: 10_000, response_s: 0.3, complete: true };
        Record {
            begun: UNIX_EPOCH + Duration::new(1_792_000_000, 500_000_000),
            times: Times { idle_s: 5.0, load_s: 30.0 },
            ping: probes("UDP", 56),
            calls: vec![probes("UDP", 172)],
            flows: vec![flow(Way::Down), flow(Way::Up), flow(Way::Up)],
            short: vec![Short { at_s: 20.0, transfer }],
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_reader_of_measurements_finds_what_was_written() {
        let about = About {
            title: "round 1, cake",
            server: "server.example.org",
            queue: "cake",
            congestion: Some("cubic"),
            client: "client",
        };
        let text = document(&record(), &about).to_string();
        assert!(Flent::recognises(text.as_bytes()));
        let run = Flent::parse("run", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((run.version, &*run.test, &*run.title), (4, "rrul_be_nflows", "round 1, cake"));
        assert_eq!((run.length_s, run.congestion.as_deref()), (Some(30.0), Some("cubic")));
        assert!(run.not_read.is_empty(), "{:?}", run.not_read);
        assert_eq!(run.of(FlentKind::Throughput(Direction::Up)).count(), 2);
        let call = run.of(FlentKind::CallDelay).next().expect("a call");
        assert_eq!(call.payload, Some(172));
        let measured = Measurement::of(&run);
        // The same idle time, load and settled part as the run's own figures have.
        assert_eq!(measured.load.map(|it| (it.0.round(), it.1.round())), Some((5.0, 35.0)));
        assert_eq!((measured.settled.0.round(), measured.settled.1.round()), (15.0, 35.0));
        assert_eq!(measured.round_trip(), Some(Span::millis(20)));
        assert_eq!(measured.added(), Some(Span::millis(50)));
        let ping = &measured.observations[measured.ping.expect("a ping")].what;
        let Observed::Delay { loss: Some(loss), .. } = ping else { panic!("{ping:?}") };
        assert!((loss - 0.075).abs() < 0.002, "a tenth of the last 15 of 20 s: {loss}");
        let up = &measured.observations[measured.throughput[1].expect("uploads")].what;
        let Observed::Throughput { spread, .. } = up else { panic!("{up:?}") };
        assert!(spread.mean.is_some_and(|it| it.0.abs_diff(8_000_000) < 10_000), "{spread:?}");
    }

    #[test]
    fn moments_are_written_as_calendars_have_them() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000000Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000000Z"),
        ] {
            assert_eq!(iso_8601(Duration::from_secs(seconds)), text);
        }
    }
}
