//! The runs in words: the part of a report that is not a result.

use tidegate_sim::scenario::{Capacity, LinkSpec, QueueSpec, Scenario, TrafficKind, TrafficSpec};
use tidegate_study::manifest::Manifest;

use crate::calls;
use crate::report::Provenance;

/// Whether a scenario sends the packets of a capture, of which each flow has a row.
pub(crate) fn is_recorded(scenario: &Scenario) -> bool {
    scenario.traffic.iter().any(|source| matches!(source.kind, TrafficKind::Packets { .. }))
}

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
    let recorded =
        is_recorded(scenario).then_some(("recorded.csv", "one row for each recorded flow"));
    let is_call = |kind: &_| matches!(kind, TrafficKind::Packets { call: Some(_), .. });
    let calls = scenario.traffic.iter().any(|source| is_call(&source.kind));
    let calls = calls.then_some((calls::FILE, "one row for each direction of a call"));
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
        files: (files.into_iter().chain(recorded).chain(calls))
            .map(|(name, what)| (name.into(), what.into()))
            .collect(),
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
    let what = &source.kind;
    let from = if source.start.0 > 0 { format!(", from {}", source.start) } else { String::new() };
    let until = if source.stop.0 < scenario.duration.0 {
        format!(", until {}", source.stop)
    } else {
        String::new()
    };
    let deadline = source.deadline.map_or_else(String::new, |span| format!(", due after {span}"));
    format!("{}: {what}{from}{until}{deadline}", source.name)
}
