//! The runs in words: the part of a gateway's report that is not a result.

use tidegate_sim::pages::Pages;
use tidegate_sim::requests::{
    Cbr, Class, Demand, Http, ServerFailures, ServerGroup, Setup, Through, Uplink,
};
use tidegate_sim::scenario::Protocol;
use tidegate_sim::scenario::file::gateway::Comparison;
use tidegate_sim::scenario::short;

use crate::report::Provenance;

/// The provenance of a comparison of the file with this `text`. Nothing in it
/// depends on the machine, the number of threads or the folder: the report is the
/// same everywhere.
pub(super) fn provenance(text: &str, comparison: &Comparison) -> Provenance {
    let setup = &comparison.setup;
    let classes = setup.classes.iter();
    let traffic = classes
        .map(|of| class(&of.name, of, setup))
        .chain(setup.passing.iter().map(passing))
        .collect();
    let files = [
        ("flows.csv", "one row for each request"),
        ("links.csv", "the state of each queue over time"),
        ("summary.csv", "means and intervals of every measure"),
        ("summary.json", "the means and intervals, and how requests ended"),
        ("manifest.json", "the inputs from which all of this was computed"),
    ];
    Provenance {
        version: format!("tidegate {}", env!("CARGO_PKG_VERSION")),
        command: "tidegate requests compare --from manifest.json".into(),
        links: links(setup),
        traffic,
        disciplines: Vec::new(),
        other: other(setup),
        scenario: text.into(),
        files: files.map(|(name, what)| (name.into(), what.into())).into(),
    }
}

fn links(setup: &Setup) -> Vec<String> {
    let Uplink { rate, queue, .. } = &setup.uplink;
    let uplink = (rate.is_some() || queue.is_some()).then(|| {
        let queue = queue.as_ref().map_or_else(String::new, |(discipline, buffer)| {
            format!(", {}, buffer {buffer}", discipline.label)
        });
        format!("uplink: {}{queue}", rate.unwrap_or(setup.rate))
    });
    let access = format!("access: {}, {}, buffer {}", setup.rate, setup.delay, setup.buffer);
    let clients = format!("of each client: {}, {}", setup.client_rate, setup.client_delay);
    [Some(access), uplink, Some(clients)].into_iter().flatten().collect()
}

fn class(name: &str, class: &Class, setup: &Setup) -> String {
    let pages = match &class.pages {
        Pages::Drawn if setup.objects == 1.0 => "single objects".into(),
        Pages::Drawn => format!("pages of {} objects", short(setup.objects)),
        Pages::Outlined(_) => "pages of a table".into(),
        Pages::Recorded(pages) => format!("{} recorded pages", pages.count()),
    };
    let asks = match &class.demand {
        Demand::Closed { loops: 1, pause } => format!("{pages} with pauses of {pause}"),
        Demand::Closed { loops, pause } => {
            format!("{pages} in {loops} loops with pauses of {pause}")
        }
        Demand::Open { every } => format!("{pages}, one every {every}"),
        Demand::Log(log) => format!("the requests of a log of {}", log.period()),
    };
    let presence = class.presence.as_ref().map_or_else(String::new, |presence| {
        format!(", there for {} and away for {}", presence.present, presence.absent)
    });
    let clients = match class.clients {
        1 => "1 client fetches".into(),
        clients => format!("{clients} clients fetch"),
    };
    let through = match class.through {
        Through::Requests => "",
        Through::Tunnels => ", through tunnels",
        Through::WebSocket => ", each over a WebSocket",
    };
    let request = class.request.map_or_else(String::new, |size| format!(", requests of {size}"));
    let sizes = class.sizes.as_ref().map_or_else(String::new, |law| format!(", objects {law}"));
    let slow = class.client_rate.map_or_else(String::new, |rate| format!(", over links of {rate}"));
    let failing = class.failures.as_ref().and_then(failing);
    let failing = failing.map_or_else(String::new, |how| format!(", of which {how}"));
    let whole = class
        .part_of
        .map_or_else(String::new, |whole| format!(", as users of {}", setup.classes[whole].name));
    format!(
        "{name}: weight {}{whole}, {clients} {asks}{request}{sizes}{through}{failing}{slow}{presence}",
        class.weight
    )
}

/// Which part of the responses fails, and how.
fn failing(failures: &ServerFailures) -> Option<String> {
    let ServerFailures { stall, reset, trickle, trickle_rate } = failures;
    let failures = [
        (*stall, "stall".to_string()),
        (*reset, "are reset".into()),
        (*trickle, format!("trickle at {trickle_rate}")),
    ];
    let failures = failures.iter().filter(|(part, _)| *part > 0.0);
    let failures = failures.map(|(part, how)| format!("{}% {how}", short(part * 100.0)));
    let failures: Vec<_> = failures.collect();
    (!failures.is_empty()).then(|| failures.join(", "))
}

fn passing(cbr: &Cbr) -> String {
    let Cbr { rate, packet, off, on, whose: _ } = cbr;
    let times = if off.0 > 0 { format!(", off for {off} and on for {on}") } else { String::new() };
    format!("outside of all classes: {rate} in datagrams of {packet}{times}")
}

/// The servers, the objects and the gateway.
fn other(setup: &Setup) -> Vec<(String, String)> {
    let servers = setup.servers.iter().map(|group| {
        let ServerGroup { count, delay, rate } = group;
        let [delay, rate] = [range(&delay.0, &delay.1), range(&rate.0, &rate.1)];
        ("servers".to_string(), format!("{count}, {delay} away, with links of {rate}"))
    });
    let objects = format!("{}; a request takes {}", setup.sizes, setup.request);
    let patience = setup.patience.map_or_else(String::new, |patience| {
        format!("; a response is given up after {patience} without new data")
    });
    let gateway =
        format!("receive buffers of {} if responses are held back{patience}", setup.server_window);
    let Http { protocol, keep_alive, .. } = setup.http;
    let connections = match protocol {
        Protocol::Http10 => "one for each response".into(),
        Protocol::Http11 | Protocol::Recorded => {
            format!("HTTP/1.1, six of a client to a server, kept for {keep_alive}")
        }
        Protocol::Http2 => format!("HTTP/2, one of a client to a server, kept for {keep_alive}"),
    };
    servers
        .chain([("objects".into(), objects), ("connections".into(), connections)])
        .chain([("gateway".into(), gateway)])
        .chain(failing(&setup.failures).map(|how| ("failures".into(), how)))
        .collect()
}

fn range<T: PartialEq + std::fmt::Display>(from: &T, to: &T) -> String {
    if from == to { from.to_string() } else { format!("{from} to {to}") }
}
