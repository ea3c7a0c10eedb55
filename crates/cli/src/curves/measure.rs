//! `tidegate curves measure`: the most that recorded flows send, as curves for
//! a file of flows.
//!
//! The measured curve is the smallest that bounds the recording; the envelope
//! shown for it is nowhere below. Neither covers traffic that was not recorded.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use tidegate_core::contract::Envelope;
use tidegate_core::curve::Curve;
use tidegate_core::{Bytes, FlowKey, Span, Time};
use tidegate_sim::trace::Recording;

use crate::arguments::MeasureArguments;
use crate::failure::Failure;
use crate::output::{print, print_json};

/// The lengths of time at which a curve is shown, as far as it was measured.
const SHOWN: [Span; 11] = [
    Span::ZERO,
    Span::millis(1),
    Span::millis(5),
    Span::millis(10),
    Span::millis(20),
    Span::millis(50),
    Span::millis(100),
    Span::millis(500),
    Span::seconds(1),
    Span::seconds(10),
    Span::seconds(60),
];

/// The most pairs of packets that are compared for one flow; about ten seconds of work.
const MOST_PAIRS: u64 = 500_000_000;

/// The times and sizes of packets.
type Packets = Vec<(Time, Bytes)>;

/// The measured traffic of a flow.
#[derive(Serialize)]
struct Measured {
    flow: String,
    packets: usize,
    size_bytes: u64,
    duration_s: f64,
    /// Up to here the curve is the smallest there is.
    horizon_s: f64,
    /// The curve in the form of a file of flows.
    curve: String,
    shown: Vec<Shown>,
}

/// The most that came within a time.
#[derive(Serialize)]
struct Shown {
    within_s: f64,
    measured_bytes: u64,
    curve_bytes: u64,
    #[serde(skip)]
    within: Span,
}

pub(super) fn run(arguments: &MeasureArguments) -> Result<(), Failure> {
    let mut flows = recorded(arguments)?;
    let file = arguments.file.display();
    if flows.is_empty() {
        return Err(Failure::Input(format!(
            "{file}: found no such flow with at least two packets"
        )));
    }
    let all = flows.len();
    let size = |packets: &Packets| packets.iter().map(|(_, size)| *size).sum::<Bytes>();
    // Stable: flows of one size stay in the order of their addresses.
    flows.sort_by_key(|(_, packets)| std::cmp::Reverse(size(packets)));
    flows.truncate(usize::try_from(arguments.flows).expect("the range is checked by clap"));
    let measured: Vec<Measured> = flows
        .iter()
        .map(|(name, packets)| measure(name, packets, size(packets), arguments))
        .collect::<Result<_, _>>()
        .map_err(|reason| Failure::Input(format!("{file}: {reason}")))?;
    if arguments.json {
        return print_json(&measured);
    }
    let mut text = String::new();
    for (index, flow) in measured.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        flow.write(&mut text);
    }
    if all > measured.len() {
        let left_out = all - measured.len();
        let _ = writeln!(text, "\n{left_out} more flows; see --flows, --port, --from and --to.");
    }
    print(&text)
}

/// The requested flows with at least two packets at different times.
fn recorded(arguments: &MeasureArguments) -> Result<Vec<(String, Packets)>, Failure> {
    let file = &arguments.file;
    let flows: Vec<(String, Packets)> = match Recording::read(file).map_err(Failure::input)? {
        Recording::Capture(capture) => {
            let mut flows: BTreeMap<FlowKey, Packets> = BTreeMap::new();
            for packet in capture.packets.iter().filter(|packet| fits(arguments, &packet.flow)) {
                flows.entry(packet.flow).or_default().push((packet.at, packet.size));
            }
            flows.into_iter().map(|(key, packets)| (key.to_string(), packets)).collect()
        }
        Recording::FlowLog(log) => {
            if arguments.port.is_some() || arguments.from.is_some() || arguments.to.is_some() {
                let message = "--port, --from and --to are for captures; a CSV file is one flow";
                return Err(Failure::Input(message.into()));
            }
            let packets = log.flows.iter().map(|packet| (packet.start, packet.size)).collect();
            let name = file.file_name().unwrap_or(file.as_os_str());
            vec![(name.to_string_lossy().into_owned(), packets)]
        }
        other => {
            return Err(Failure::Input(format!(
                "{}: found a file of another kind ({}), expected a capture, or packets as CSV",
                file.display(),
                other.format()
            )));
        }
    };
    Ok(flows.into_iter().filter(|(_, packets)| duration(packets) > Span::ZERO).collect())
}

/// From the first packet to the last.
fn duration(packets: &Packets) -> Span {
    match packets.as_slice() {
        [first, .., last] => last.0.since(first.0),
        _ => Span::ZERO,
    }
}

fn fits(arguments: &MeasureArguments, flow: &FlowKey) -> bool {
    let (source, destination) = (flow.source(), flow.destination());
    arguments.port.is_none_or(|port| source.port() == port || destination.port() == port)
        && arguments.from.is_none_or(|address| source.ip() == address.to_canonical())
        && arguments.to.is_none_or(|address| destination.ip() == address.to_canonical())
}

fn measure(
    name: &str,
    packets: &Packets,
    size: Bytes,
    arguments: &MeasureArguments,
) -> Result<Measured, String> {
    let duration = duration(packets);
    let horizon = arguments.horizon.min(duration);
    if pairs(packets, horizon) > MOST_PAIRS {
        return Err(format!("{name}: too many packets within {horizon}: try a shorter --horizon"));
    }
    let curve = Curve::measured(packets, horizon).map_err(|error| format!("{name}: {error}"))?;
    let terms = usize::try_from(arguments.terms).expect("the range is checked by clap");
    let envelope = Envelope::above(&curve, terms).map_err(|error| format!("{name}: {error}"))?;
    let above = envelope.curve().map_err(|error| format!("{name}: {error}"))?;
    let shown = |within: Span| Shown {
        within_s: within.as_seconds(),
        measured_bytes: curve.bytes(within).0,
        curve_bytes: above.bytes(within).0,
        within,
    };
    Ok(Measured {
        flow: name.into(),
        packets: packets.len(),
        size_bytes: size.0,
        duration_s: duration.as_seconds(),
        horizon_s: horizon.as_seconds(),
        curve: envelope.to_string(),
        shown: SHOWN.into_iter().filter(|span| *span <= horizon).map(shown).collect(),
    })
}

/// The number of pairs of packets that are no further apart than `horizon`.
fn pairs(packets: &Packets, horizon: Span) -> u64 {
    let mut end = 0;
    let mut count = 0;
    for (index, (start, _)) in packets.iter().enumerate() {
        while packets.get(end).is_some_and(|(at, _)| at.since(*start) <= horizon) {
            end += 1;
        }
        count += (end - index) as u64;
    }
    count
}

impl Measured {
    fn write(&self, text: &mut String) {
        let Measured { flow, packets, curve, .. } = self;
        let (size, duration) = (Bytes(self.size_bytes), Span::from_seconds(self.duration_s));
        let _ = writeln!(text, "{flow}: {packets} packets, {size} in {duration}");
        let _ = writeln!(text, "\n  curve = \"{curve}\"\n");
        let _ = writeln!(text, "  {:>8}  {:>12}  {:>12}", "within", "measured", "this curve");
        for shown in &self.shown {
            // Padded as text: a quantity does not know widths.
            let within = shown.within.to_string();
            let measured = Bytes(shown.measured_bytes).to_string();
            let above = Bytes(shown.curve_bytes).to_string();
            let _ = writeln!(text, "  {within:>8}  {measured:>12}  {above:>12}");
        }
    }
}
