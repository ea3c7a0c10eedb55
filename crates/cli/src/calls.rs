//! The calls of a replayed capture: what it shows of each direction, and what each
//! discipline makes of it for those who talk.

use std::fmt::Write as _;

use csv::Writer;
use tidegate_core::Rate;
use tidegate_study::comparison::{Comparison, RecordedCall, RecordedStream, TrafficResult};
use tidegate_study::{Sample, e_model};

use crate::output;
use crate::parts::number;

/// The file of recorded calls.
pub(crate) const FILE: &str = "calls.csv";
/// Nothing is wider where there is no terminal.
const WIDTH: usize = 100;
/// Longer labels are cut off.
const LABEL: usize = 48;

/// What a discipline makes of one direction of a call.
pub(crate) struct Quality {
    pub(crate) delay_median_s: Option<f64>,
    pub(crate) delay_p95_s: Option<f64>,
    pub(crate) loss_ratio: Option<f64>,
    /// R of the E-model, from 0 to 100, and the mean opinion score of that.
    pub(crate) rating: Option<f64>,
    pub(crate) mos: Option<f64>,
}

impl Quality {
    pub(crate) fn of(part: &TrafficResult) -> Quality {
        let value = |sample: &Option<Sample>| sample.as_ref().map(|it| it.estimate().value);
        let rating = value(&part.call_rating);
        Quality {
            delay_median_s: value(&part.delay.median_s),
            delay_p95_s: value(&part.delay.p95_s),
            loss_ratio: value(&part.loss_ratio),
            rating,
            mos: rating.map(e_model::mos),
        }
    }
}

/// The calls of a capture: what it shows of each direction, and what each discipline makes
/// of it; empty without any.
pub(crate) fn text(comparison: &Comparison) -> String {
    let Some(first) = comparison.disciplines.first() else { return String::new() };
    let mut text = String::new();
    let label_width = comparison.disciplines.iter().map(|it| it.label.chars().count()).max();
    let label_width = label_width.unwrap_or(0).clamp("discipline".len(), LABEL);
    for (index, source) in first.traffic.iter().enumerate() {
        let Some(call) = &source.recorded_call else { continue };
        let _ = writeln!(text, "{}: {}", source.name, shown(call));
        if text.lines().count() == 1 {
            let _ = writeln!(
                text,
                "  {:label_width$} {:>9} {:>9} {:>7} {:>6} {:>5}",
                "discipline", "median ms", "p95 ms", "lost %", "R", "MOS"
            );
        }
        for discipline in &comparison.disciplines {
            let quality = Quality::of(&discipline.traffic[index]);
            let millis = |value: Option<f64>| value.map_or("-".into(), |it| number(it * 1e3));
            let tenths = |value: Option<f64>| value.map_or("-".into(), |it| format!("{it:.1}"));
            let label: String = discipline.label.chars().take(label_width).collect();
            let lost = quality.loss_ratio.map_or("-".into(), |it| format!("{:.2}", it * 1e2));
            let _ = writeln!(
                text,
                "  {label:label_width$} {:>9} {:>9} {lost:>7} {:>6} {:>5}",
                millis(quality.delay_median_s),
                millis(quality.delay_p95_s),
                tenths(quality.rating),
                tenths(quality.mos),
            );
        }
    }
    if !text.is_empty() {
        text += &output::filled(
            "",
            "R is the E-model's rating of a call with the delay and loss that the link adds, and \
             with what --delay adds; of what was lost before the capture, it knows nothing.",
            output::width(WIDTH),
        );
    }
    text
}

/// The calls of a capture as a table: a row for each direction of each, under each
/// discipline. `None` without any.
pub(crate) fn csv(comparison: &Comparison) -> Option<Vec<u8>> {
    const COLUMNS: [&str; 13] = [
        "discipline",
        "traffic",
        "recognised_by",
        "payload_type",
        "codec",
        "packets",
        "missing_packets",
        "rate_bps",
        "delay_median_s",
        "delay_p95_s",
        "loss_ratio",
        "call_rating",
        "mos",
    ];
    let mut rows = Writer::from_writer(Vec::new());
    let mut any = false;
    rows.write_record(COLUMNS).expect("memory can be written to");
    for discipline in &comparison.disciplines {
        for part in &discipline.traffic {
            let Some(call) = &part.recorded_call else { continue };
            let written = |value: Option<f64>| value.map(|it| it.to_string()).unwrap_or_default();
            let largest = call.rtp.first();
            let missing: u64 = call.rtp.iter().map(|stream| stream.missing).sum();
            let quality = Quality::of(part);
            let row = [
                discipline.label.clone(),
                part.name.clone(),
                if largest.is_some() { "rtp" } else { "rate" }.into(),
                largest.map(|it| it.payload_type.to_string()).unwrap_or_default(),
                largest.and_then(|it| it.codec.clone()).unwrap_or_default(),
                call.packets.to_string(),
                largest.map(|_| missing.to_string()).unwrap_or_default(),
                call.rate_bps.to_string(),
                written(quality.delay_median_s),
                written(quality.delay_p95_s),
                written(quality.loss_ratio),
                written(quality.rating),
                written(quality.mos),
            ];
            rows.write_record(row).expect("memory can be written to");
            any = true;
        }
    }
    any.then(|| rows.into_inner().expect("memory can be written to"))
}

/// What a capture shows of a call, in words.
pub(crate) fn shown(call: &RecordedCall) -> String {
    let rate = Rate(call.rate_bps as u64 / 100 * 100);
    let packets = format!("{} packets, {rate}", call.packets);
    if call.rtp.is_empty() {
        return format!("UDP at a steady rate, {packets}");
    }
    let stream = |it: &RecordedStream| {
        let codec = it.codec.as_ref().map_or_else(String::new, |codec| format!(" ({codec})"));
        let missing = match it.missing {
            0 => String::new(),
            missing => format!(", {missing} missing in the capture"),
        };
        format!("payload type {}{codec}{missing}", it.payload_type)
    };
    let streams: Vec<String> = call.rtp.iter().map(stream).collect();
    format!("RTP, {}; {packets}", streams.join("; "))
}
