//! Files of gateways: an access link, its clients and servers, and the ways of
//! sharing it that are to be compared.
//!
//! A file is read with the same care as a scenario, and ends in a [`Comparison`]
//! or in one line that says what is wrong and where. What it leaves out is as in
//! [`Setup::today`].
//!
//! ```
//! use tidegate_sim::scenario::file::{Folder, gateway};
//!
//! let text = r#"
//!     title = "Two classes"
//!     ways = ["msf", { name = "htb", share = 0.9 }]
//!     link.rate = "4 Mbit/s"
//!     [[class]]
//!     name = "staff"
//!     weight = 2
//!     clients = 5
//!     [[class]]
//!     name = "guests"
//!     clients = 20
//!     every = "30 s"
//! "#;
//! let comparison = gateway::parse("two.toml", text, &Folder(".".into()))?;
//! assert_eq!((comparison.setup.classes.len(), comparison.seeds.len()), (2, 5));
//!
//! let error = gateway::parse("two.toml", &text.replace("30 s", "30"), &Folder(".".into()));
//! assert!(error.unwrap_err().to_string().starts_with("two.toml:12:13: class.every: found '30'"));
//! # Ok::<(), tidegate_sim::scenario::file::ScenarioError>(())
//! ```

mod syntax;

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use tidegate_core::discipline::fifo;
use tidegate_core::setting::SettingError;
use tidegate_core::{Bytes, Rate, Span, Time};

use self::syntax::{Cbr, Class, Document, Failures, Interval, Link, Servers, WayText};
use super::data::{DataFiles, Folder, load_text};
use super::disciplines;
use super::syntax::Sizes;
use super::tcp::within;
use super::traffic::{pages, size_law};
use super::values::{At, Quantity};
use super::{ScenarioError, schema_of};
use crate::pages::Pages;
use crate::requests::{
    self, Demand, Presence, RequestLog, ServerFailures, ServerGroup, Setup, Through, Way,
};
use crate::scenario::{DisciplineChoice, SizeLaw};
use crate::trace::HttpLog;
use tidegate_files::Mistake;
use tidegate_files::expectation;

/// What is compared when the file does not say.
const WAYS: [&str; 5] = ["msf", "paper", "fifo", "htb", "direct"];
/// Of seeds, likewise.
const SEEDS: u32 = 5;
/// How long a gateway waits for a server that is silent, when the file does not
/// say: as the reverse proxy nginx does.
const PATIENCE: Span = Span::seconds(60);
/// More clients, or loops of theirs, than this together are a mistake.
const MOST_ASKERS: u64 = 100_000;
/// Samples of one run; all are kept.
const MOST_SAMPLES: u64 = 100_000;
const MOST_SERVERS: u64 = 10_000;
/// As many as in the cell of a scenario.
const MOST_STATIONS: u64 = 200;
/// Clients and servers together, each a host of its own.
const MOST_HOSTS: u64 = 5_000;
/// A mean page has no more objects.
const MOST_OBJECTS: f64 = 1_000.0;
/// As long as any of the times of a file.
const LONGEST: Span = Span::seconds(1_000_000);
/// An upload of a gigabyte.
const LARGEST_REQUEST: Bytes = Bytes(1_000_000_000);
/// What a packet of IP with UDP takes at least, and at most.
const PACKET: (Bytes, Bytes) = (Bytes(28), Bytes(65_535));

/// Ways of sharing an access link, and all that they are compared on.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// One line for the head of results.
    pub title: String,
    /// A paragraph on what it shows.
    pub description: String,
    /// The link, its clients and its servers.
    pub setup: Setup,
    /// What to compare; each label once.
    pub ways: Vec<Way>,
    /// Each way runs once with each.
    pub seeds: Vec<u64>,
}

/// Reads the file at `path`; files that it names are relative to it.
///
/// # Errors
/// When it cannot be read or makes no sense.
pub fn read(path: &Path) -> Result<Comparison, ScenarioError> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|reason| ScenarioError::Unreadable { file: name.clone(), reason })?;
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    parse(&name, &text, &Folder(folder))
}

/// Reads a file from `text`; `name` is for messages, `data` has the files that it names.
///
/// # Errors
/// When it makes no sense.
pub fn parse(name: &str, text: &str, data: &dyn DataFiles) -> Result<Comparison, ScenarioError> {
    toml::from_str(text)
        .map_err(|error| Mistake::from_toml(&error))
        .and_then(|document: Document| comparison(&document, data))
        .map_err(|mistake| mistake.in_file(name, text))
}

/// The JSON Schema of files of gateways, for editors.
#[must_use]
pub fn json_schema() -> String {
    schema_of::<Document>()
}

fn comparison(document: &Document, data: &dyn DataFiles) -> Result<Comparison, Mistake> {
    if document.title.trim().is_empty() {
        return Err(Mistake::at(&document.title.place, "an empty title", "a line of text"));
    }
    let today = Setup::today();
    let mut setup = Setup { patience: Some(PATIENCE), ..today };
    if let Some(duration) = &document.duration {
        setup.duration = within(duration, Span::seconds(1), LONGEST)?;
        setup.warm_up = setup.duration / 8;
    }
    if let Some(warm_up) = &document.warm_up {
        if warm_up.value.0 >= setup.duration {
            let expected = format!("less than the duration, '{}'", setup.duration);
            return Err(Mistake::at(&warm_up.place, format!("'{}'", warm_up.value.0), expected));
        }
        setup.warm_up = warm_up.value.0;
    }
    setup.sample_every = setup.sample_every.max(setup.duration / MOST_SAMPLES);
    link(&document.link, &mut setup, data)?;
    setup.tcp = Arc::new(document.tcp.over(&setup.tcp)?);
    if let Some(mix) = &document.tcp.mix {
        let expected = "one algorithm, as `congestion`: a gateway's connections are all alike";
        return Err(Mistake::at(&mix.place, "a mix", expected));
    }
    gateway(document, &mut setup)?;
    objects(document, &mut setup, data)?;
    if !document.servers.is_empty() {
        setup.servers = servers(&document.servers)?;
    }
    setup.passing = document.cbr.iter().map(passing).collect::<Result<_, _>>()?;
    if let Some(failing) = &document.failures {
        setup.failures = failures(failing)?;
    }
    setup.classes = classes(document, data)?;
    if let Some(wifi) = &document.wifi {
        setup.wifi = Some(wifi.around_gateway(&wifi.place, data)?);
        check_cell(document, &setup)?;
    }
    let hosts = setup.classes.iter().map(|class| u64::from(class.clients)).sum::<u64>()
        + setup.servers.iter().map(|group| u64::from(group.count)).sum::<u64>();
    if hosts > MOST_HOSTS {
        let expected = format!("at most {MOST_HOSTS}");
        return Err(Mistake::at(&(0..0), format!("{hosts} clients and servers"), expected));
    }
    let ways = ways(document)?;
    let seeds = match &document.seeds {
        Some(seeds) => super::seed_list(seeds)?,
        None => (1..=u64::from(SEEDS)).collect(),
    };
    let title = document.title.trim().into();
    let description = document.description.trim().into();
    Ok(Comparison { title, description, setup, ways, seeds })
}

fn link(written: &Link, setup: &mut Setup, data: &dyn DataFiles) -> Result<(), Mistake> {
    if let Some(queue) = &written.queue {
        setup.provider = disciplines::choice(&queue.value, &queue.place, &[], data)?;
    }
    // With room for segments of any path, at any rate that a gateway is for.
    if let Some(rate) = &written.rate {
        setup.rate = within(rate, Rate(1_000), Rate(10_000_000_000))?;
    }
    if let Some(delay) = &written.delay {
        setup.delay = within(delay, Span::ZERO, Span::seconds(10))?;
    }
    if let Some(buffer) = written.buffer {
        setup.buffer = buffer.0.at(setup.rate);
    }
    if let Some(rate) = &written.uplink_rate {
        setup.uplink.rate = Some(within(rate, Rate(1_000), Rate(10_000_000_000))?);
    }
    match (&written.uplink_queue, &written.uplink_buffer) {
        (Some(queue), None) => {
            let expected = "what that queue holds";
            return Err(Mistake::at(&queue.place, "no uplink_buffer", expected));
        }
        (queue, Some(buffer)) => {
            let discipline = match queue {
                Some(queue) => disciplines::choice(&queue.value, &queue.place, &[], data)?,
                None => DisciplineChoice::with_defaults(&fifo::ENTRY),
            };
            let rate = setup.uplink.rate.unwrap_or(setup.rate);
            setup.uplink.queue = Some((discipline, buffer.value.0.at(rate)));
        }
        (None, None) => {}
    }
    if let Some(rate) = &written.client_rate {
        setup.client_rate = client_rate(rate)?;
    }
    if let Some(delay) = &written.client_delay {
        setup.client_delay = within(delay, Span::ZERO, Span::seconds(10))?;
    }
    Ok(())
}

fn client_rate(written: &Quantity<Rate>) -> Result<Rate, Mistake> {
    within(written, Rate(1_000), Rate(100_000_000_000))
}

/// Refuses what a cell cannot be: links of clients beside it, and too many stations.
fn check_cell(document: &Document, setup: &Setup) -> Result<(), Mistake> {
    let Some(wifi) = &document.wifi else { return Ok(()) };
    let of_class = document.class.iter().any(|class| class.client_rate.is_some());
    if document.link.client_rate.is_some() || document.link.client_delay.is_some() || of_class {
        let expected = "no client_rate and client_delay beside it";
        return Err(Mistake::at(&wifi.place, "[wifi]", expected));
    }
    let stations: u64 = setup.classes.iter().map(|class| u64::from(class.clients)).sum();
    if stations > MOST_STATIONS {
        let expected = format!("at most {MOST_STATIONS} in a cell");
        return Err(Mistake::at(&wifi.place, format!("{stations} clients"), expected));
    }
    Ok(())
}

fn gateway(document: &Document, setup: &mut Setup) -> Result<(), Mistake> {
    if let Some(size) = &document.gateway.receive_buffer {
        setup.server_window = within(size, Bytes(u64::from(setup.tcp.mss)), Bytes(1 << 30))?;
    }
    if let Some(patience) = &document.gateway.patience {
        setup.patience = Some(within(patience, Span::millis(100), LONGEST)?);
    }
    if let Some(idle) = &document.gateway.keep_alive {
        setup.kept.idle = within(idle, Span::ZERO, LONGEST)?;
    }
    if let Some(most) = &document.gateway.kept {
        setup.kept.most = most.0;
    }
    http(&document.http, setup)?;
    Ok(())
}

fn http(written: &syntax::Http, setup: &mut Setup) -> Result<(), Mistake> {
    if let Some(protocol) = &written.protocol {
        setup.http.protocol = protocol.value.into();
        let refused = match protocol.value {
            super::syntax::Protocol::Recorded => Some("'recorded'"),
            super::syntax::Protocol::Http3 => Some("'http3'"),
            _ => None,
        };
        if let Some(found) = refused {
            let expected = "one of http1.0, http1.1, http2";
            return Err(Mistake::at(&protocol.place, found, expected));
        }
    }
    if let Some(order) = written.order {
        setup.http.order = order.into();
    }
    if let Some(tls) = &written.tls {
        setup.http.handshakes = tls.0 as usize;
    }
    if let Some(keep_alive) = &written.keep_alive {
        setup.http.keep_alive = within(keep_alive, Span::ZERO, LONGEST)?;
    }
    Ok(())
}

fn objects(document: &Document, setup: &mut Setup, data: &dyn DataFiles) -> Result<(), Mistake> {
    let written = &document.objects;
    if let Some(sizes) = &written.sizes {
        setup.sizes = object_sizes(sizes, data)?;
    }
    if let Some(count) = &written.per_page {
        if !(1.0..=MOST_OBJECTS).contains(&count.0) {
            let expected = format!("a number from 1 to {MOST_OBJECTS}");
            return Err(Mistake::at(&count.place, count.0.to_string(), expected));
        }
        setup.objects = count.0;
    }
    if let Some(request) = &written.request {
        setup.request = within(request, Bytes(1), LARGEST_REQUEST)?;
    }
    Ok(())
}

fn object_sizes(written: &At<Sizes>, data: &dyn DataFiles) -> Result<SizeLaw, Mistake> {
    match size_law(written, data)? {
        SizeLaw::Endless => Err(Mistake::at(&written.place, "'endless'", "objects with an end")),
        law => Ok(law),
    }
}

impl From<syntax::Through> for Through {
    fn from(written: syntax::Through) -> Through {
        match written {
            syntax::Through::Requests => Through::Requests,
            syntax::Through::Tunnels => Through::Tunnels,
            syntax::Through::WebSocket => Through::WebSocket,
        }
    }
}

/// Two values of which the second is not the smaller.
fn interval<T>(written: &Interval<T>, least: T, most: T) -> Result<(T, T), Mistake>
where
    T: PartialOrd + Copy + std::fmt::Display,
{
    let [from, to] = written;
    let from = within(from, least, most)?;
    Ok((from, within(to, from, most)?))
}

fn servers(written: &[At<Servers>]) -> Result<Vec<ServerGroup>, Mistake> {
    let mut count = 0;
    let mut groups = Vec::new();
    for group in written {
        count += u64::from(group.count.0);
        if count > MOST_SERVERS {
            let expected = format!("at most {MOST_SERVERS} servers");
            return Err(Mistake::at(&group.place, format!("{count} servers"), expected));
        }
        groups.push(ServerGroup {
            count: group.count.0,
            delay: interval(&group.delay, Span::ZERO, Span::seconds(10))?,
            rate: interval(&group.rate, Rate(1_000), Rate(100_000_000_000))?,
        });
    }
    Ok(groups)
}

fn passing(written: &At<Cbr>) -> Result<requests::Cbr, Mistake> {
    let packet = match &written.packet {
        Some(packet) => within(packet, PACKET.0, PACKET.1)?,
        None => Bytes(1_000),
    };
    let time = |span: &Option<Quantity<Span>>, default| match span {
        Some(span) => within(span, Span::ZERO, LONGEST),
        None => Ok(default),
    };
    Ok(requests::Cbr {
        rate: within(&written.rate, Rate(1_000), Rate(10_000_000_000))?,
        packet,
        off: time(&written.off, Span::ZERO)?,
        on: time(&written.on, LONGEST)?,
        whose: None,
    })
}

fn failures(written: &At<Failures>) -> Result<ServerFailures, Mistake> {
    let share = |share: Option<syntax::Share>| share.map_or(0.0, |share| share.0);
    let trickle_rate = match &written.trickle_rate {
        Some(rate) => within(rate, Rate(8), Rate(10_000_000_000))?,
        None => ServerFailures::NONE.trickle_rate,
    };
    let (stall, reset, trickle) =
        (share(written.stall), share(written.reset), share(written.trickle));
    let sum = stall + reset + trickle;
    if sum > 1.0 {
        let found = format!("probabilities that add up to {sum}");
        return Err(Mistake::at(&written.place, found, "at most 1"));
    }
    Ok(ServerFailures { stall, reset, trickle, trickle_rate })
}

fn classes(document: &Document, data: &dyn DataFiles) -> Result<Vec<requests::Class>, Mistake> {
    let mut classes: Vec<requests::Class> = Vec::new();
    let mut askers = 0;
    for written in &document.class {
        let name = written.name.trim();
        if name.is_empty()
            || name.chars().any(char::is_control)
            || classes.iter().any(|class| class.name == name)
        {
            let found = format!("'{}'", name.escape_debug());
            return Err(Mistake::at(&written.name.place, found, "a name of its own, on one line"));
        }
        let mut class = class(written, data)?;
        match (&written.part_of, classes.last()) {
            (Some(whole), _) => {
                if let Some(weight) = &written.weight {
                    let found = "a weight of a part of a class";
                    return Err(Mistake::at(&weight.place, found, "that of the class alone"));
                }
                let mut wholes = classes.iter().take_while(|class| class.part_of.is_none());
                let number = wholes.position(|class| class.name == whole.trim());
                let found = || format!("'{}'", whole.escape_debug());
                let expected = "a class before it that is part of no other";
                let number = number.ok_or_else(|| Mistake::at(&whole.place, found(), expected))?;
                (class.part_of, class.weight) = (Some(number), classes[number].weight);
            }
            (None, Some(last)) if last.part_of.is_some() => {
                let expected = "parts of other classes behind all that are not";
                return Err(Mistake::at(&written.place, "a class behind a part of one", expected));
            }
            (None, _) => {}
        }
        let loops = if let Demand::Closed { loops, .. } = class.demand { loops } else { 1 };
        askers += u64::from(class.clients) * u64::from(loops);
        if askers > MOST_ASKERS {
            let found = format!("{askers} loops of clients");
            let expected = format!("at most {MOST_ASKERS} in all classes");
            return Err(Mistake::at(&written.place, found, expected));
        }
        classes.push(class);
    }
    if classes.is_empty() {
        let expected = "at least one [[class]]";
        return Err(Mistake::at(&(0..0), "no class of clients", expected));
    }
    Ok(classes)
}

fn class(written: &At<Class>, data: &dyn DataFiles) -> Result<requests::Class, Mistake> {
    let place = &written.place;
    let demand = demand(written, data)?;
    let pages = pages(written.page_table.as_ref(), written.recorded.as_ref(), data)?;
    if let (Demand::Log(_), Some(log)) = (&demand, &written.log)
        && !matches!(pages, Pages::Drawn)
    {
        let expected = "no pages beside it, since it has the sizes";
        return Err(Mistake::at(&log.place, "a log", expected));
    }
    let clients = match (written.clients, &demand) {
        (Some(clients), _) => clients.0,
        (None, Demand::Log(log)) => log.hosts(),
        (None, _) => return Err(Mistake::missing(place, "clients", "how many there are")),
    };
    let second = Span::seconds(1);
    let presence = match (&written.present, &written.absent) {
        (None, None) => None,
        (Some(present), Some(absent)) => Some(Presence {
            present: within(present, second, LONGEST)?,
            absent: within(absent, second, LONGEST)?,
        }),
        (Some(_), None) => return Err(Mistake::missing(place, "absent", "it beside present")),
        (None, Some(_)) => return Err(Mistake::missing(place, "present", "it beside absent")),
    };
    let mut silent = Vec::new();
    for times in &written.silent {
        let (from, to) = interval(times, Span::ZERO, LONGEST)?;
        silent.push((Time(from.0), Time(to.0)));
    }
    // In order, so that what moves to the end of one can move on from there.
    silent.sort_unstable();
    if let Some(sizes) = &written.sizes
        && (matches!(demand, Demand::Log(_)) || matches!(pages, Pages::Recorded(_)))
    {
        let expected = "none, since logs and recordings have the sizes";
        return Err(Mistake::at(&sizes.place, "sizes", expected));
    }
    let sizes = written.sizes.as_ref().map(|sizes| object_sizes(sizes, data)).transpose()?;
    let request = written.request.as_ref().map(|size| within(size, Bytes(1), LARGEST_REQUEST));
    let weight = written.weight.as_ref().map_or(1, |weight| weight.value.0);
    Ok(requests::Class {
        name: written.name.trim().into(),
        weight: NonZeroU32::new(weight).expect("weights are read from 1 on"),
        part_of: None,
        clients,
        demand,
        pages,
        sizes,
        request: request.transpose()?,
        through: written.through.map_or(Through::Requests, Through::from),
        failures: written.failures.as_ref().map(failures).transpose()?,
        client_rate: written.client_rate.as_ref().map(client_rate).transpose()?,
        presence,
        silent,
    })
}

fn demand(written: &At<Class>, data: &dyn DataFiles) -> Result<Demand, Mistake> {
    let closed =
        [written.loops.as_ref().map(|at| &at.place), written.pause.as_ref().map(|at| &at.place)];
    let of_loops = closed.into_iter().flatten().next();
    match (&written.every, &written.log, of_loops) {
        (Some(every), None, None) => {
            Ok(Demand::Open { every: within(every, Span::millis(1), LONGEST)? })
        }
        (None, Some(file), None) => {
            let expected = "a log of a Web server with a reply of known size";
            let log = load_text(data, file, expected, HttpLog::parse)?;
            let speed = written.speed.as_ref().map_or(1, |speed| speed.value.0);
            let speed = NonZeroU32::new(speed).expect("speeds are read from 1 on");
            let log = RequestLog::new(&log, speed)
                .ok_or_else(|| Mistake::at(&file.place, "a log without one", expected))?;
            Ok(Demand::Log(Arc::new(log)))
        }
        (None, None, _) => Ok(Demand::Closed {
            loops: written.loops.as_ref().map_or(10, |loops| loops.value.0),
            pause: match &written.pause {
                Some(pause) => within(pause, Span::millis(1), LONGEST)?,
                None => Span::seconds(5),
            },
        }),
        (every, log, of_loops) => {
            let places =
                [every.as_ref().map(|at| &at.place), log.as_ref().map(|at| &at.place), of_loops];
            let second = places.into_iter().flatten().nth(1).unwrap_or(&written.place);
            let expected = "one of loops with pause, every, log";
            Err(Mistake::at(second, "two of them", expected))
        }
    }
    .and_then(|demand| match (&written.speed, &demand) {
        (Some(speed), Demand::Closed { .. } | Demand::Open { .. }) => {
            Err(Mistake::at(&speed.place, "a speed without a log", "log beside it"))
        }
        _ => Ok(demand),
    })
}

fn ways(document: &Document) -> Result<Vec<Way>, Mistake> {
    let Some(written) = &document.ways else {
        let default = |name| {
            let way = Way::new(name, name, &[]).expect("defaults are within range");
            way.expect("the defaults are listed")
        };
        return Ok(WAYS.map(default).to_vec());
    };
    let mut ways: Vec<Way> = Vec::new();
    for text in &written.value {
        let way = way(text)?;
        if ways.iter().any(|other| other.label == way.label) {
            let found = format!("a second way labelled '{}'", way.label);
            return Err(Mistake::at(&text.place, found, "another label = \"...\""));
        }
        ways.push(way);
    }
    if ways.is_empty() {
        return Err(Mistake::at(&written.place, "an empty list", "at least one way"));
    }
    Ok(ways)
}

fn way(written: &At<WayText>) -> Result<Way, Mistake> {
    let (place, named) = (&written.place, &written.value.0);
    let Some(name) = &named.name else {
        return Err(Mistake::missing(place, "name", "the name of a way"));
    };
    let label = named.label.as_ref().map_or(name.as_str(), |label| label.trim());
    if label.is_empty() || label.chars().any(char::is_control) {
        return Err(Mistake::at(place, "a label of no text", "a line of text"));
    }
    let settings: Vec<_> =
        named.settings.iter().map(|(key, value)| (key.as_str(), value.0.as_str())).collect();
    let given = |name: &str| named.settings.iter().find(|(key, _)| key.as_str() == name);
    match Way::new(label, name, &settings) {
        Ok(Some(way)) => Ok(way),
        Ok(None) => {
            let place = if name.place.is_empty() { place } else { &name.place };
            let known: Vec<String> = requests::names().map(|(name, _)| name).collect();
            let expected = expectation(name, known.iter().map(String::as_str));
            let found = format!("unknown way '{}'", name.escape_debug());
            Err(Mistake::at(place, found, expected))
        }
        Err(SettingError::UnknownParameter { found, known, .. }) => {
            let place = given(&found).map_or(place, |(key, _)| &key.place);
            let shown = found.escape_debug();
            let known = known.split(", ").chain(["label"]);
            Err(Mistake::at(place, format!("unknown '{shown}'"), expectation(&found, known)))
        }
        Err(SettingError::WrongValue { parameter, found, expected, .. }) => {
            let place = given(parameter).map_or(place, |(_, value)| &value.place);
            Err(Mistake::at(place, format!("'{}'", found.escape_debug()), expected))
        }
        Err(SettingError::Fixed { .. }) => unreachable!("nothing runs while a file is read"),
    }
}

#[cfg(test)]
mod tests;
