//! Measurements of a link under load: results of [Flent](https://flent.org).
//!
//! A test of Flent loads a link with TCP flows and measures pings, calls or page latency
//! beside them. Its result is one JSON object, mostly compressed by gzip, of which four
//! versions exist ([format](https://flent.org/data-format.html)). A series has two forms:
//! `raw_values`, as the tool printed them, and `results`, interpolated to the steps of a
//! plot. The raw ones are taken where they are, because interpolation makes up values
//! where packets were lost. Before version 4 some raw values had the unit of the tool, and
//! are converted here: UDP pings of netperf are transactions a second, page latencies are
//! seconds, and counters of queues grow from the start.
//!
//! Names of series say what they are. Sums and averages that Flent computed from other
//! series, and fields of a flow (`::tcp_cwnd`), are left out; whatever else is not
//! understood is named in [`Flent::not_read`]. What the metadata say of shaped queues is in
//! [`FlentQueue`]. They are a matter of the machine that ran the test: one that is missing or
//! of another type than usual is as if it were not there.

mod queue;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::error::{Mismatch, quote};
use super::text::without_mark;
use super::{Direction, ReadError, stream};

pub use queue::FlentQueue;

/// The most bytes of a result, unpacked. An hour of the longest test is a tenth of it.
pub const MOST_FLENT: u64 = 1 << 28;
/// The versions of the format.
const VERSIONS: std::ops::RangeInclusive<i64> = 1..=4;
/// No value of any series is larger, in whatever unit, and no test takes as many seconds.
const LARGEST: f64 = 1e9;
/// The series of a call's jitter, which looks like a field.
const JITTER: &str = "VoIP::jitter";
/// No sample of any tool is a mean over more.
const LONGEST_SAMPLE_S: f64 = 600.0;
/// No clock is ahead of the year 5138.
const LATEST_S: f64 = 1e11;

/// The result of one test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flent {
    /// Version of the format, 1 to 4.
    pub version: i64,
    /// The test, such as `rrul_be`.
    pub test: String,
    /// What the user called it; empty if nothing.
    pub title: String,
    /// The machine that ran the test; empty if the file does not say.
    pub client: String,
    /// The machines at the other end.
    pub servers: Vec<String>,
    /// When it began, as the file writes it: ISO 8601, before version 3 without a zone.
    pub time: String,
    /// Seconds of load that were asked for.
    pub length_s: Option<f64>,
    /// The client's congestion control, in Linux's words.
    pub congestion: Option<String>,
    /// Whether the client asks for ECN.
    pub ecn: bool,
    /// Whether the client's own port has the queue `fq`, which paces TCP.
    pub paced: bool,
    /// What was measured, in the order of names.
    pub series: Vec<FlentSeries>,
    /// The shaped queues on the path, those of the uplink first.
    pub queues: Vec<FlentQueue>,
    /// Series of a kind that is not known here.
    pub not_read: Vec<String>,
}

/// One series of a result; it has at least one sample.
#[derive(Clone, Debug, PartialEq)]
pub struct FlentSeries {
    /// Its name in the file.
    pub name: String,
    /// What its values are.
    pub kind: FlentKind,
    /// Its samples, earliest first.
    pub samples: Vec<FlentSample>,
    /// The congestion control of a flow, where the file says it of this one.
    pub congestion: Option<String>,
    /// Bytes of payload in a packet of a call.
    pub payload: Option<u64>,
}

/// What the values of a series are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlentKind {
    /// Round trips in ms.
    Ping,
    /// One-way delay of a call's packets from the client in ms. Clocks that differ shift it.
    CallDelay,
    /// How much the delay of a call's packets varies, in ms, as the tool counts it.
    Jitter,
    /// Time to fetch a page in ms.
    PageLatency,
    /// Payload of a TCP flow in Mbit/s.
    Throughput(Direction),
    /// Packets that a queue has dropped since the last sample.
    Dropped,
    /// Packets that a queue has marked since the last sample.
    Marked,
    /// Bytes in a queue.
    Backlog,
}

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlentSample {
    /// Seconds from the start of the measurement; never negative.
    pub at_s: f64,
    /// Seconds before that over which it is a mean; zero for a single event.
    pub covers_s: f64,
    /// The value, in the unit of its kind.
    pub value: f64,
    /// Number of the packet, where the tool counts them.
    pub number: Option<u64>,
}

/// A result as it is written.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    version: Value,
    metadata: Metadata,
    #[serde(default)]
    x_values: Vec<Number>,
    results: BTreeMap<String, Vec<Number>>,
    #[serde(default)]
    raw_values: BTreeMap<String, Vec<Raw>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
struct Metadata {
    #[serde(default)]
    name: Value,
    #[serde(default)]
    title: Value,
    #[serde(default)]
    local_host: Value,
    #[serde(default)]
    host: Value,
    #[serde(default)]
    hosts: Value,
    #[serde(default)]
    time: Value,
    #[serde(default)]
    length: Value,
    #[serde(default)]
    sysctls: Value,
    #[serde(default)]
    test_parameters: Value,
    #[serde(default)]
    egress_info: Value,
    #[serde(default)]
    remote_metadata: Value,
    #[serde(default)]
    series_meta: Option<BTreeMap<String, About>>,
}

/// What the file says about one series.
#[derive(Default, Deserialize)]
struct About {
    #[serde(default, rename = "CONG_CONTROL")]
    congestion: Value,
    /// Where version 1 has its raw values.
    #[serde(default, rename = "RAW_VALUES")]
    raw: Option<Vec<Raw>>,
}

/// A raw value; tools add fields of their own.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Raw {
    t: Number,
    val: Number,
    dur: Number,
    seq: Number,
    size: Number,
    dropped: Number,
    ecn_mark: Number,
    backlog_bytes: Number,
}

/// A number, or whatever else is in its place.
#[derive(Clone, Copy, Default)]
struct Number(Option<f64>);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        deserializer.deserialize_any(AnyNumber)
    }
}

/// Takes finite numbers, and ignores anything else.
struct AnyNumber;

impl<'de> Visitor<'de> for AnyNumber {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_f64<E>(self, value: f64) -> Result<Number, E> {
        Ok(Number(value.is_finite().then_some(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Number, E> {
        Ok(Number(Some(value as f64)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Number, E> {
        Ok(Number(Some(value as f64)))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Number, E> {
        Ok(Number(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<Number, E> {
        Ok(Number(None))
    }

    fn visit_unit<E>(self) -> Result<Number, E> {
        Ok(Number(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Number, A::Error> {
        while values.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Number(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<Number, A::Error> {
        while values.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Number(None))
    }
}

impl Flent {
    /// Reads a result, which may be compressed; standard input if `path` is `-`.
    ///
    /// # Errors
    /// When it is no result of Flent, of a version that is not known, without any
    /// measured value, or larger than [`MOST_FLENT`].
    pub fn read(path: &Path) -> Result<Flent, ReadError> {
        let file = stream::name(path);
        let contents = stream::text(&file, stream::open(path)?.take(MOST_FLENT + 1))?;
        Flent::parse(&file, &contents)
    }

    /// Reads a result from memory that is not compressed; `name` is for error messages.
    ///
    /// ```
    /// use tidegate_sim::trace::Flent;
    ///
    /// let text = br#"{"version": 4, "metadata": {"NAME": "ping"}, "x_values": [0, 0.2],
    ///     "results": {"Ping (ms) ICMP": [20.5, null]}}"#;
    /// let run = Flent::parse("ping.flent", text)?;
    /// assert_eq!((run.test.as_str(), run.series[0].samples[0].value), ("ping", 20.5));
    /// # Ok::<(), tidegate_sim::trace::ReadError>(())
    /// ```
    ///
    /// # Errors
    /// As [`read`](Flent::read).
    pub fn parse(name: &str, contents: &[u8]) -> Result<Flent, ReadError> {
        const EXPECTED: &str = "a result of Flent, version 1 to 4 of its format";
        if contents.len() as u64 > MOST_FLENT {
            let found = format!("more than {} MiB", MOST_FLENT >> 20);
            return Err(Mismatch::new(found, EXPECTED).at_header(name, 0));
        }
        let contents = without_mark(contents);
        if contents.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
            let found = if contents.is_empty() { "an empty file".into() } else { quote(contents) };
            return Err(Mismatch::new(found, EXPECTED).at_header(name, 0));
        }
        let file: File = serde_json::from_slice(&in_json(contents)).map_err(|error| {
            let message = error.to_string();
            // The place already stands in front of the message.
            let message = message.split(" at line ").next().unwrap_or_default();
            let line = u64::try_from(error.line()).unwrap_or(u64::MAX).max(1);
            Mismatch::new(quote(message), EXPECTED).at_line(name, line)
        })?;
        let version = match &file.version {
            Value::Null => 1,
            given => given.as_i64().unwrap_or(0),
        };
        if !VERSIONS.contains(&version) {
            let found = format!("version {} of the format", quote(file.version.to_string()));
            return Err(Mismatch::new(found, EXPECTED).at_header(name, 0));
        }
        let run = result(file, version);
        if run.series.is_empty() {
            let expected =
                "a result of Flent with a ping, a call, page latencies, TCP flows or queues";
            return Err(ReadError::Nothing { file: name.into(), expected: expected.into() });
        }
        Ok(run)
    }

    /// Whether this text, of which the start is enough, looks like a result of Flent.
    #[must_use]
    pub fn recognises(contents: &[u8]) -> bool {
        let has = |key: &[u8]| contents.windows(key.len()).any(|window| window == key);
        let starts = without_mark(contents).iter().find(|byte| !byte.is_ascii_whitespace());
        starts == Some(&b'{')
            && (has(b"\"FLENT_VERSION\"") || has(b"\"BATCH_NAME\"") && has(b"\"metadata\""))
    }

    /// The series of one kind.
    pub fn of(&self, kind: FlentKind) -> impl Iterator<Item = &FlentSeries> + '_ {
        self.series.iter().filter(move |series| series.kind == kind)
    }
}

/// The text in JSON proper: Python writes numbers that are none as `NaN` and `Infinity`,
/// which JSON does not have. They are no values here.
fn in_json(contents: &[u8]) -> Cow<'_, [u8]> {
    const WORDS: [&[u8]; 3] = [b"NaN", b"-Infinity", b"Infinity"];
    let has = |word: &[u8]| contents.windows(word.len()).any(|window| window == word);
    if !WORDS.iter().any(|word| has(word)) {
        return Cow::Borrowed(contents);
    }
    let mut text = Vec::with_capacity(contents.len());
    let (mut place, mut quoted) = (0, false);
    while let Some(byte) = contents.get(place) {
        let word = WORDS.iter().find(|word| !quoted && contents[place..].starts_with(word));
        if let Some(word) = word {
            text.extend(b"null");
            place += word.len();
            continue;
        }
        text.push(*byte);
        place += 1;
        match byte {
            b'"' => quoted = !quoted,
            // What is escaped ends no string.
            b'\\' if quoted => {
                text.extend(contents.get(place));
                place += 1;
            }
            _ => {}
        }
    }
    Cow::Owned(text)
}

/// Puts the parts of a file into their places.
fn result(mut file: File, version: i64) -> Flent {
    let metadata = &mut file.metadata;
    let mut about = metadata.series_meta.take().unwrap_or_default();
    for (name, about) in &mut about {
        if let Some(raw) = about.raw.take() {
            file.raw_values.entry(name.clone()).or_insert(raw);
        }
    }
    let mut run = Flent {
        version,
        test: text(&metadata.name),
        title: text(&metadata.title),
        client: text(&metadata.local_host),
        servers: servers(metadata),
        time: text(&metadata.time),
        length_s: metadata.length.as_f64().filter(|length| (0.0..LARGEST).contains(length)),
        congestion: (metadata.test_parameters.get("tcp_cong_control"))
            .or_else(|| metadata.sysctls.get("net.ipv4.tcp_congestion_control"))
            .and_then(Value::as_str)
            .map(printable),
        ecn: metadata.sysctls.get("net.ipv4.tcp_ecn").and_then(Value::as_i64) == Some(1),
        paced: queue::names(&metadata.egress_info).any(|name| name == "fq"),
        series: Vec::new(),
        queues: queue::shaped(&metadata.egress_info, &metadata.remote_metadata),
        not_read: Vec::new(),
    };
    let begin = beginning(&file.raw_values);
    let congestion = |name: &str| {
        let algorithm = about.get(name)?.congestion.as_str()?;
        Some(printable(algorithm)).filter(|it| !it.is_empty())
    };
    for (name, raw) in &file.raw_values {
        if let Some(host) = name.strip_prefix("qdisc_stats_") {
            run.series.extend(queue_series(host, raw, begin, version));
            continue;
        }
        let Some(kind) = kind_of(name) else { continue };
        let mut samples: Vec<_> =
            raw.iter().filter_map(|raw| sample(raw, kind, begin, version, name)).collect();
        samples.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
        if !samples.is_empty() {
            let payload = raw.iter().find_map(|raw| raw.size.0).and_then(whole);
            let congestion = congestion(name);
            let name = printable(name);
            run.series.push(FlentSeries { name, kind, samples, congestion, payload });
        }
    }
    for (name, values) in &file.results {
        // Of a call, the raw values have another name.
        let alias = if name == "VoIP::delay" { "VoIP" } else { name };
        let Some(kind) = kind_of(alias) else {
            if !is_computed(name) && values.iter().any(|value| value.0.is_some()) {
                run.not_read.push(printable(name));
            }
            continue;
        };
        if run.series.iter().any(|series| series.name == alias) {
            continue;
        }
        let samples = interpolated(&file.x_values, values, kind);
        if !samples.is_empty() {
            let (name, congestion) = (printable(alias), congestion(name));
            run.series.push(FlentSeries { name, kind, samples, congestion, payload: None });
        }
    }
    run.series.sort_by(|one, other| one.name.cmp(&other.name));
    run
}

/// What a series of this name is; `None` if it is computed or unknown.
fn kind_of(name: &str) -> Option<FlentKind> {
    if is_computed(name) && name != JITTER {
        return None;
    }
    let kinds = [
        ("Ping (ms)", FlentKind::Ping),
        ("TCP upload", FlentKind::Throughput(Direction::Up)),
        ("TCP download", FlentKind::Throughput(Direction::Down)),
        ("HTTP latency", FlentKind::PageLatency),
        (JITTER, FlentKind::Jitter),
        ("VoIP", FlentKind::CallDelay),
    ];
    kinds.into_iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, kind)| kind)
}

/// Whether Flent computed a series from others, or it is a field of another.
fn is_computed(name: &str) -> bool {
    // Numbers are flows: `TCP upload::2`.
    let field = name.rsplit_once("::").map(|(_, field)| field);
    let is_field = field.is_some_and(|field| field.parse::<u32>().is_err());
    is_field
        || name == "TCP totals"
        || [" avg", " sum", " fairness"].iter().any(|end| name.ends_with(end))
}

/// The moment at which the earliest raw value begins, in seconds.
fn beginning(raw: &BTreeMap<String, Vec<Raw>>) -> f64 {
    let begin = |raw: &Raw| {
        let lasted = raw.dur.0.filter(|dur| (0.0..=LONGEST_SAMPLE_S).contains(dur));
        Some(raw.t.0.filter(|t| (0.0..LATEST_S).contains(t))? - lasted.unwrap_or(0.0))
    };
    let begins = raw.values().flatten().filter_map(begin);
    begins.min_by(f64::total_cmp).unwrap_or(0.0)
}

fn sample(raw: &Raw, kind: FlentKind, begin: f64, version: i64, name: &str) -> Option<FlentSample> {
    let at_s = raw.t.0? - begin;
    let covers = raw.dur.0.unwrap_or(0.0);
    let value = raw.val.0?;
    let value = match kind {
        FlentKind::PageLatency if version < 4 => value * 1e3,
        // netperf answers with transactions a second, and only netperf states a duration.
        FlentKind::Ping if version < 4 && name.contains("UDP") && raw.dur.0.is_some() => {
            (value > 0.0).then_some(1e3 / value)?
        }
        _ => value,
    };
    let is_fine = (0.0..LARGEST).contains(&at_s)
        && (0.0..=LONGEST_SAMPLE_S).contains(&covers)
        && (-LARGEST..LARGEST).contains(&value)
        && (value >= 0.0 || kind == FlentKind::CallDelay);
    is_fine.then_some(FlentSample {
        at_s,
        covers_s: covers.min(at_s),
        value,
        number: raw.seq.0.and_then(whole),
    })
}

/// The samples of a series that has only values for a plot.
fn interpolated(times: &[Number], values: &[Number], kind: FlentKind) -> Vec<FlentSample> {
    let step = times.windows(2).find_map(|pair| Some(pair[1].0? - pair[0].0?)).unwrap_or(0.0);
    let covers = if matches!(kind, FlentKind::Throughput(_)) { step.max(0.0) } else { 0.0 };
    let pairs = times.iter().zip(values).filter_map(|(at, value)| Some((at.0?, value.0?)));
    let fine = pairs
        .filter(|(at, value)| (0.0..LARGEST).contains(at) && (-LARGEST..LARGEST).contains(value));
    let mut samples: Vec<_> = fine
        .map(|(at_s, value)| FlentSample { at_s, covers_s: covers.min(at_s), value, number: None })
        .collect();
    samples.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
    samples
}

/// The series of the counters of a queue at `host`.
fn queue_series(host: &str, raw: &[Raw], begin: f64, version: i64) -> Vec<FlentSeries> {
    type Field = fn(&Raw) -> Option<f64>;
    let fields: [(&str, FlentKind, Field); 3] = [
        ("dropped", FlentKind::Dropped, |raw| raw.dropped.0),
        ("marked", FlentKind::Marked, |raw| raw.ecn_mark.0),
        ("backlog", FlentKind::Backlog, |raw| raw.backlog_bytes.0),
    ];
    let series = fields.into_iter().map(|(name, kind, field)| {
        let mut last: Option<f64> = None;
        let values = raw.iter().filter_map(|raw| {
            let (at_s, value) = (raw.t.0? - begin, field(raw)?);
            let grows = version < 4 && kind != FlentKind::Backlog;
            let before = last.replace(value);
            let value = if grows { value - before.unwrap_or(value) } else { value };
            let is_fine = (0.0..LARGEST).contains(&at_s) && (0.0..LARGEST).contains(&value);
            is_fine.then_some(FlentSample { at_s, covers_s: 0.0, value, number: None })
        });
        let mut samples: Vec<_> = values.collect();
        samples.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
        let name = format!("{}, {name}", printable(host));
        FlentSeries { name, kind, samples, congestion: None, payload: None }
    });
    series.filter(|series| !series.samples.is_empty()).collect()
}

/// The machines at the other end, each once.
fn servers(metadata: &Metadata) -> Vec<String> {
    let listed = metadata.hosts.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut servers: Vec<String> = Vec::new();
    for host in listed.iter().chain([&metadata.host]).filter_map(Value::as_str) {
        if !servers.iter().any(|server| server == host) {
            servers.push(printable(host));
        }
    }
    servers
}

/// A text as a name in tables: without control characters, which a terminal would obey.
fn text(value: &Value) -> String {
    printable(value.as_str().unwrap_or_default())
}

/// As much of `text` as a table shows, without control characters.
fn printable(text: &str) -> String {
    const LONGEST: usize = 200;
    text.chars().filter(|letter| !letter.is_control()).take(LONGEST).collect()
}

/// A number of something, if it is one.
fn whole(value: f64) -> Option<u64> {
    (0.0..1e15).contains(&value).then_some(value as u64)
}
