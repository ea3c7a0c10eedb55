//! The runs in words: the part of a report that is not a result.

use tidegate_sim::scenario::{
    Arrivals, Capacity, LinkSpec, QueueSpec, Scenario, SizeLaw, TrafficKind, TrafficSpec,
};
use tidegate_study::manifest::Manifest;

use crate::report::Provenance;

/// The provenance of a comparison. Nothing in it depends on the machine, the
/// number of threads or the folder: the report is the same everywhere.
pub(crate) fn provenance(scenario: &Scenario, manifest: &Manifest) -> Provenance {
    let tested = |link: &&LinkSpec| {
        matches!(link.queue, QueueSpec::Tested(_) | QueueSpec::Fixed(..) | QueueSpec::Shaped(_))
    };
    let disciplines = manifest.contenders.iter().map(|discipline| {
        let parameters: Vec<_> = discipline
            .parameters
            .iter()
            .map(|(name, text)| format!("{} {text}", name.replace('_', " ")))
            .collect();
        let parameters = parameters.join(", ");
        let words = match (discipline.label == discipline.name, parameters.is_empty()) {
            (true, _) => parameters,
            (false, true) => discipline.name.clone(),
            (false, false) => format!("{}, {parameters}", discipline.name),
        };
        (discipline.label.clone(), words)
    });
    let files = [
        ("flows.csv", "one row for each flow"),
        ("links.csv", "the state of each queue over time"),
        ("progress.csv", "the progress of followed flows over time"),
        ("summary.csv", "means and intervals of every measure"),
        ("summary.json", "the same, with the points of the plots"),
        ("manifest.json", "the inputs from which all of this was computed"),
    ];
    Provenance {
        version: format!("tidegate {}", manifest.tidegate),
        command: "tidegate compare --from manifest.json".into(),
        links: scenario.links.iter().filter(tested).map(link).collect(),
        traffic: scenario.traffic.iter().map(|source| traffic(source, scenario)).collect(),
        disciplines: disciplines.collect(),
        other: Vec::new(),
        scenario: manifest.source.text.clone(),
        files: files.map(|(name, what)| (name.into(), what.into())).into(),
    }
}

fn link(link: &LinkSpec) -> String {
    let capacity = match &link.capacity {
        Capacity::Unlimited => "unlimited".into(),
        Capacity::Fixed(rate) => rate.to_string(),
        Capacity::Trace(trace) => format!("{} on average, varying", trace.mean_rate()),
        Capacity::Uplink(station) => format!("802.11 at {}", station.modulation),
        Capacity::Downlink(access_point) => {
            format!("802.11 at up to {}", access_point.fastest)
        }
    };
    let queue = match &link.queue {
        QueueSpec::Tested(buffer) => format!("buffer {buffer}"),
        QueueSpec::Fixed(choice, buffer) => format!("always {}, buffer {buffer}", choice.label),
        QueueSpec::Shaped(shaper) => format!("shaped to {}", shaper.rate),
        QueueSpec::Unbounded => "no limit".into(),
    };
    format!("{}: {capacity}, {}, {queue}", link.name, link.delay)
}

fn traffic(source: &TrafficSpec, scenario: &Scenario) -> String {
    let what = match &source.kind {
        TrafficKind::Transfers { arrivals, sizes, .. } => match arrivals {
            Arrivals::Poisson { per_second } => {
                format!("{} transfers a second, {}", short(*per_second), law(sizes))
            }
            Arrivals::AtStart { count: 1 } => format!("one transfer, {}", law(sizes)),
            Arrivals::AtStart { count } => format!("{count} transfers, {}", law(sizes)),
            Arrivals::Log(flows) => format!("{} transfers from a log", flows.len()),
        },
        TrafficKind::Web { profile, .. } => format!(
            "Web sessions of about {} pages of {} objects every {}, {}",
            short(profile.pages),
            short(profile.objects),
            profile.between_sessions,
            law(&profile.sizes)
        ),
        TrafficKind::Cbr { rate, packet, .. } => format!("{rate} in datagrams of {packet}"),
        TrafficKind::Frames { trace, sending, .. } => {
            let packets = sending
                .packet
                .map_or("each a packet".into(), |packet| format!("in packets of up to {packet}"));
            let again = if sending.repeat { ", again and again" } else { "" };
            format!("{} frames from a file, {packets}{again}", trace.frames().len())
        }
        TrafficKind::Greedy { profile, .. } => {
            let bursts = if profile.bursts.is_some() { ", in bursts" } else { "" };
            format!("as much as {} allows{bursts}", profile.envelope)
        }
        TrafficKind::Packets { capture, .. } => {
            format!("{} packets from a capture", capture.packets.len())
        }
        TrafficKind::Requests => "requests of clients".into(),
    };
    let from = if source.start.0 > 0 { format!(", from {}", source.start) } else { String::new() };
    let until = if source.stop.0 < scenario.duration.0 {
        format!(", until {}", source.stop)
    } else {
        String::new()
    };
    let deadline = source.deadline.map_or_else(String::new, |span| format!(", due after {span}"));
    format!("{}: {what}{from}{until}{deadline}", source.name)
}

/// A law of sizes, with its mean.
pub(crate) fn law(sizes: &SizeLaw) -> String {
    let mean = || {
        let mean = sizes.mean().unwrap_or_default();
        tidegate_core::Bytes(mean.round() as u64)
    };
    match sizes {
        SizeLaw::Constant(size) => format!("{size} each"),
        SizeLaw::Endless => "without an end".into(),
        SizeLaw::BoundedZipf { .. } => format!("Zipf sizes, mean {}", mean()),
        SizeLaw::Pareto { .. } => format!("Pareto sizes, mean {}", mean()),
        SizeLaw::Lognormal { .. } => format!("lognormal sizes, mean {}", mean()),
        SizeLaw::Exponential(_) => format!("exponential sizes, mean {}", mean()),
        SizeLaw::Empirical(_) => format!("measured sizes, mean {}", mean()),
    }
}

/// Three significant digits, no trailing zeros.
pub(crate) fn short(value: f64) -> String {
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}
