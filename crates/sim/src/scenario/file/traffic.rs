//! Sources of traffic: senders, receivers, amounts and sizes.

mod datagrams;
mod dns;
mod pages;
mod quic;
mod video;

use std::ops::Range;
use std::sync::Arc;

use tidegate_core::{Bytes, Rate, Span, Time};

use super::data::{DataFiles, load, load_text};
use super::syntax::{self, Document, Sizes, Tcp, Traffic, TransferSource, WebSource};
use super::tcp::within;
use super::topology::Topology;
use super::values::{At, Names, Positive, Quantity};
use crate::scenario::{
    Arrivals, MOST_OPEN, Marking, NodeId, Opener, SizeLaw, TrafficKind, TrafficSpec, Transfer,
    WebProfile,
};
use crate::tcp::TcpConfig;
use crate::trace::{MOST_SIZE, Recording, SizeDistribution, Transfers};
use tidegate_files::Mistake;

pub(super) use self::pages::pages;

/// IPv4 and TCP headers without options.
const HEADERS: u64 = 40;
/// The bytes that the timestamps option adds to each segment.
const TIMESTAMPS: u64 = 12;
/// The size of a request for a Web object, as browsers send it.
const WEB_REQUEST: Bytes = Bytes(400);
const MOST_DATAGRAM: Bytes = Bytes(65_535);
const MOST_SOURCES: usize = 1_000;
/// Pairs of a sender and a receiver; each gets a route.
const MOST_PAIRS: usize = 100_000;
/// Of a transfer with an end.
/// e^20 bytes are 485 MB.
const MOST_LOG_MEAN: f64 = 20.0;
const MOST_LOG_DEVIATION: f64 = 5.0;
/// A run with more arrivals than this would take more than a day.
const MOST_ARRIVALS: f64 = 1e9;

/// What says when transfers begin, and how large they are.
struct WrittenArrivals<'a> {
    place: &'a Range<usize>,
    load: Option<&'a Quantity<Rate>>,
    per_second: Option<&'a At<Positive>>,
    count: Option<&'a At<syntax::Transfers>>,
    spread: Option<&'a Quantity<Span>>,
    log: Option<&'a At<String>>,
    local: &'a [At<String>],
    sizes: Option<&'a At<Sizes>>,
    /// So many transfers may be open at the same time.
    most_open: u32,
}

/// What the sources have in common.
pub(super) struct Reader<'a> {
    pub(super) topology: &'a Topology,
    pub(super) data: &'a dyn DataFiles,
    pub(super) duration: Span,
    pub(super) tcp: TcpConfig,
}

impl Reader<'_> {
    /// All sources, in the order of the file.
    pub(super) fn sources(&self, document: &Document) -> Result<Vec<TrafficSpec>, Mistake> {
        let traffic = &document.traffic;
        let mut sources = traffic.read(self)?;
        sources.sort_by_key(|(_, start, _)| *start);
        if sources.is_empty() {
            return Err(Mistake::at(&traffic.place, "no traffic", Traffic::KINDS));
        }
        if sources.len() > MOST_SOURCES {
            let expected = format!("at most {MOST_SOURCES}");
            return Err(Mistake::at(
                &traffic.place,
                format!("{} sources", sources.len()),
                expected,
            ));
        }
        for (index, (name, _, source)) in sources.iter().enumerate() {
            if name.trim().is_empty() {
                return Err(Mistake::at(&name.place, "an empty name", "a text"));
            }
            if sources[..index].iter().any(|(.., other)| other.name == source.name) {
                let found = format!("a second source called '{}'", source.name);
                return Err(Mistake::at(&name.place, found, "a name of its own"));
            }
        }
        Ok(sources.into_iter().map(|(_, _, source)| source).collect())
    }

    pub(super) fn transfers(&self, source: &At<TransferSource>) -> Result<TrafficSpec, Mistake> {
        let opened_by = source
            .request
            .map_or(Opener::Sender, |request| Opener::Receiver { request: request.0 });
        let transfer =
            self.transfer(&source.from, &source.to, opened_by, &source.tcp, source.follow)?;
        let (start, stop) = self.times(source.start.as_ref(), source.stop.as_ref())?;
        let written = WrittenArrivals {
            place: &source.place,
            load: source.load.as_ref(),
            per_second: source.per_second.as_ref(),
            count: source.count.as_ref(),
            spread: source.spread.as_ref(),
            log: source.log.as_ref(),
            local: &source.local,
            sizes: source.sizes.as_ref(),
            most_open: MOST_OPEN,
        };
        let per_second = |load, mean| per_second_of(load, mean, &transfer.tcp);
        let (arrivals, sizes) = self.arrivals(&written, opened_by, per_second)?;
        let kind = TrafficKind::Transfers { transfer, arrivals, sizes };
        let (name, class) = (source.name.value.clone(), source.class);
        let marking = Marking { sender: source.dscp.0, receiver: source.reply_dscp.0 };
        Ok(TrafficSpec { name, start, stop, class, marking, deadline: None, kind })
    }

    /// When the transfers of a source begin, and how large they are: a load, and a mean size
    /// in bytes, make so many a second.
    fn arrivals(
        &self,
        source: &WrittenArrivals<'_>,
        opened_by: Opener,
        per_second_of: impl Fn(Rate, f64) -> f64,
    ) -> Result<(Arrivals, SizeLaw), Mistake> {
        let given = [
            source.load.map(|at| &at.place),
            source.per_second.map(|at| &at.place),
            source.count.map(|at| &at.place),
            source.log.map(|at| &at.place),
        ];
        one_of(&given, source.place, "one of load, per_second, count, log")?;
        let sizes = match (source.sizes, source.log) {
            (Some(sizes), None) => size_law(sizes, self.data)?,
            (None, None) => {
                return Err(Mistake::missing(source.place, "sizes", "how large transfers are"));
            }
            (Some(sizes), Some(_)) => {
                let expected = "none, since the log has the sizes";
                return Err(Mistake::at(&sizes.place, "sizes", expected));
            }
            // Not used with a log.
            (None, Some(_)) => SizeLaw::Constant(Bytes(1)),
        };
        let endless = matches!(sizes, SizeLaw::Endless);
        if let (Some(spread), None) = (source.spread, source.count) {
            let expected = "count beside it, since other transfers begin at random in any case";
            return Err(Mistake::at(&spread.place, "spread", expected));
        }
        let place = given.into_iter().flatten().next().unwrap_or(source.place);
        if endless && source.count.is_none() {
            let expected = "count, since transfers without an end add up for ever";
            return Err(Mistake::at(place, "endless transfers", expected));
        }
        let poisson = |per_second: f64| {
            self.check_arrivals(per_second, place)?;
            Ok(Arrivals::Poisson { per_second })
        };
        let arrivals = if let Some(load) = source.load {
            poisson(per_second_of(load.value.0, mean(&sizes)))?
        } else if let Some(per_second) = source.per_second {
            poisson(per_second.0)?
        } else if let Some(count) = source.count {
            if count.value.0 > source.most_open {
                let found = format!("{} transfers at once", count.value.0);
                let expected = format!("at most {}, which may be open at once", source.most_open);
                return Err(Mistake::at(&count.place, found, expected));
            }
            match source.spread {
                Some(spread) if spread.value.0 > Span::ZERO => {
                    Arrivals::Within { count: count.value.0, within: spread.value.0 }
                }
                _ => Arrivals::AtStart { count: count.value.0 },
            }
        } else {
            let log = source.log.expect("one of the four is given");
            self.log(log, source.local, opened_by)?
        };
        Ok((arrivals, sizes))
    }

    pub(super) fn web(&self, source: &At<WebSource>) -> Result<TrafficSpec, Mistake> {
        let request = source.request.map_or(WEB_REQUEST, |request| request.0);
        let opened_by = Opener::Receiver { request };
        let transfer =
            self.transfer(&source.from, &source.to, opened_by, &source.tcp, source.follow)?;
        let (start, stop) = self.times(source.start.as_ref(), source.stop.as_ref())?;
        let given = [
            source.load.as_ref().map(|at| &at.place),
            source.between_sessions.as_ref().map(|at| &at.place),
        ];
        one_of(&given, &source.place, "one of load, between_sessions")?;
        let sizes = size_law(&source.sizes, self.data)?;
        if matches!(sizes, SizeLaw::Endless) {
            return Err(Mistake::at(&source.sizes.place, "'endless'", "objects with an end"));
        }
        let (pages, objects) = (source.pages.0, source.objects.0);
        let per_session = mean_count(pages) * mean_count(objects);
        let place = given.into_iter().flatten().next().unwrap_or(&source.place);
        let between_sessions = match (&source.load, &source.between_sessions) {
            (Some(load), _) => {
                let objects_per_second = per_second_of(load.value.0, mean(&sizes), &transfer.tcp);
                Span::from_seconds(per_session / objects_per_second)
            }
            (None, Some(between)) => between.value.0,
            (None, None) => unreachable!("one of the two is given"),
        };
        if between_sessions == Span::ZERO {
            return Err(Mistake::at(place, "'0 s'", "a time above zero between two sessions"));
        }
        self.check_arrivals(per_session / between_sessions.as_seconds(), place)?;
        let profile = WebProfile {
            between_sessions,
            pages,
            between_pages: source.between_pages.0,
            objects,
            between_objects: source.between_objects.0,
            sizes,
        };
        let kind = TrafficKind::Web { transfer, profile };
        let (name, class) = (source.name.value.clone(), source.class);
        let marking = Marking { sender: source.dscp.0, receiver: source.reply_dscp.0 };
        Ok(TrafficSpec { name, start, stop, class, marking, deadline: None, kind })
    }

    fn transfer(
        &self,
        from: &At<Names>,
        to: &At<Names>,
        opened_by: Opener,
        tcp: &Tcp,
        follow: bool,
    ) -> Result<Transfer, Mistake> {
        let (from, to_nodes) = (self.topology.resolve(from)?, self.topology.resolve(to)?);
        self.check_ways(&from, to, &to_nodes, true)?;
        let tcp = Arc::new(tcp.over(&self.tcp)?);
        Ok(Transfer { from, to: to_nodes, opened_by, tcp, follow })
    }

    pub(super) fn check_ways(
        &self,
        from: &[NodeId],
        to: &At<Names>,
        to_nodes: &[NodeId],
        both_ways: bool,
    ) -> Result<(), Mistake> {
        if let Some(node) = from.iter().find(|node| to_nodes.contains(node)) {
            let found = format!("'{}' at both ends", self.topology.name(*node));
            return Err(Mistake::at(&to.place, found, "other nodes than the sender's"));
        }
        let pairs = from.len() * to_nodes.len();
        if pairs > MOST_PAIRS {
            let found = format!("{pairs} pairs of nodes");
            return Err(Mistake::at(&to.place, found, format!("at most {MOST_PAIRS}")));
        }
        self.topology.check_reachable(from, to, to_nodes, both_ways)
    }

    pub(super) fn single(&self, names: &At<Names>) -> Result<NodeId, Mistake> {
        match self.topology.resolve(names)?.as_slice() {
            [node] => Ok(*node),
            several => {
                Err(Mistake::at(&names.place, format!("{} nodes", several.len()), "one node"))
            }
        }
    }

    pub(super) fn times(
        &self,
        start: Option<&Quantity<Span>>,
        stop: Option<&Quantity<Span>>,
    ) -> Result<(Time, Time), Mistake> {
        let begin = start.map_or(Span::ZERO, |start| start.value.0);
        let end = stop.map_or(self.duration, |stop| stop.value.0);
        if let Some(start) = start.filter(|_| begin >= self.duration) {
            let expected = format!("a time before the end of the run, '{}'", self.duration);
            return Err(Mistake::at(&start.place, format!("'{begin}'"), expected));
        }
        if let Some(stop) = stop.filter(|_| end <= begin) {
            let expected = format!("a time after the start, '{begin}'");
            return Err(Mistake::at(&stop.place, format!("'{end}'"), expected));
        }
        Ok((Time::ZERO + begin, Time::ZERO + end))
    }

    pub(super) fn check_arrivals(
        &self,
        per_second: f64,
        place: &Range<usize>,
    ) -> Result<(), Mistake> {
        let arrivals = per_second * self.duration.as_seconds();
        // Written so that NaN is refused as well.
        if arrivals <= MOST_ARRIVALS {
            return Ok(());
        }
        let found = format!("{arrivals:.0} arrivals in '{}'", self.duration);
        Err(Mistake::at(place, found, format!("at most {MOST_ARRIVALS}")))
    }

    /// The transfers of a recording: its downloads for a source of which the receiver
    /// opens the connections, its uploads for another.
    fn log(
        &self,
        file: &At<String>,
        local: &[At<String>],
        opened_by: Opener,
    ) -> Result<Arrivals, Mistake> {
        let expected = "a CSV file with start_s and size_bytes, or another recording of transfers";
        let recording =
            load(self.data, file, expected, |name, file| Recording::stream(name, file))?;
        let (transfers, both) = match recording {
            Recording::Capture(capture) => {
                let hosts = datagrams::local_hosts(local, &capture)?;
                (Transfers::of_capture(&capture, &hosts), true)
            }
            _ if !local.is_empty() => {
                let expected = "none, since only captures have addresses";
                return Err(Mistake::at(&local[0].place, "addresses", expected));
            }
            Recording::ConnectionLog(_) => (Transfers::of(recording), true),
            _ => (Transfers::of(recording), false),
        };
        let (flows, expected) = match opened_by {
            Opener::Sender if both => (transfers.up, "at least one upload, or 'request' beside it"),
            _ => (transfers.down, "at least one transfer"),
        };
        if flows.is_empty() {
            return Err(Mistake::at(&file.place, "an empty log", expected));
        }
        Ok(Arrivals::Log(Arc::new(flows.iter().map(|flow| (flow.start, flow.size)).collect())))
    }
}

/// A law of sizes, with the file that it names.
pub(super) fn size_law(sizes: &At<Sizes>, data: &dyn DataFiles) -> Result<SizeLaw, Mistake> {
    let one = Bytes(1);
    Ok(match &sizes.value {
        Sizes::Constant(size) => SizeLaw::Constant(*size),
        Sizes::Endless => SizeLaw::Endless,
        Sizes::Exponential(mean) => SizeLaw::Exponential(within(mean, one, MOST_SIZE)?),
        Sizes::File(file) => {
            let expected = "a CSV file with size_bytes and cumulative_probability";
            let distribution = load_text(data, file, expected, SizeDistribution::parse)?;
            SizeLaw::Empirical(Arc::new(distribution))
        }
        Sizes::Zipf(zipf) => {
            let (least, most) = (zipf.least.0, zipf.most.value.0);
            if most < least {
                let expected = format!("at least {least}, as 'least'");
                return Err(Mistake::at(&zipf.most.place, most.to_string(), expected));
            }
            let segment = within(&zipf.segment, one, MOST_DATAGRAM)?;
            SizeLaw::BoundedZipf { exponent: zipf.exponent.0, least, most, segment }
        }
        Sizes::Pareto(pareto) => {
            let least = within(&pareto.least, one, MOST_SIZE)?;
            let most = within(&pareto.most, least + one, MOST_SIZE)?;
            SizeLaw::Pareto { shape: pareto.shape.0, least, most }
        }
        Sizes::Lognormal(law) => SizeLaw::Lognormal {
            log_mean: up_to(&law.log_mean, MOST_LOG_MEAN)?,
            log_deviation: up_to(&law.log_deviation, MOST_LOG_DEVIATION)?,
        },
    })
}

fn up_to(written: &At<Positive>, most: f64) -> Result<f64, Mistake> {
    if written.0 > most {
        let expected = format!("a number above 0 and up to {most}");
        return Err(Mistake::at(&written.place, written.0.to_string(), expected));
    }
    Ok(written.0)
}

/// Refuses unless exactly one of `given` is present.
fn one_of(
    given: &[Option<&Range<usize>>],
    place: &Range<usize>,
    expected: &str,
) -> Result<(), Mistake> {
    let mut places = given.iter().flatten();
    match (places.next(), places.next()) {
        (Some(_), None) => Ok(()),
        (None, _) => Err(Mistake::at(place, "neither of them", expected)),
        (_, Some(second)) => Err(Mistake::at(second, "two of them", expected)),
    }
}

/// The mean of sizes in bytes, infinite without an end.
fn mean(sizes: &SizeLaw) -> f64 {
    sizes.mean().unwrap_or(f64::INFINITY)
}

/// The number of transfers a second, of so many bytes on average, that make up `load` on the wire: each
/// counts as its payload in full packets, that is
/// `mean size x packet / segment`.
fn per_second_of(load: Rate, mean: f64, tcp: &TcpConfig) -> f64 {
    let segment = f64::from(tcp.mss);
    let options = if tcp.timestamps_option { TIMESTAMPS } else { 0 };
    let packet = segment + (HEADERS + options) as f64;
    load.0 as f64 / (8.0 * mean * packet / segment)
}

/// The mean of an exponential count that is rounded to the nearest number, at
/// least one, as Web sessions draw it.
fn mean_count(mean: f64) -> f64 {
    1.0 + libm::exp(-1.5 / mean) / (1.0 - libm::exp(-1.0 / mean))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_counts_full_packets() {
        let rate = Rate(12_000_000);
        assert!((per_second_of(rate, 14_600.0, &TcpConfig::papers()) - 100.0).abs() < 1e-9);
        assert!((per_second_of(rate, 14_480.0, &TcpConfig::today()) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn rounded_counts_have_a_larger_mean() {
        let by_sum = |mean: f64| -> f64 {
            (1..10_000)
                .map(|count| {
                    // The probability that the count is at least this.
                    if count == 1 { 1.0 } else { (-(f64::from(count) - 0.5) / mean).exp() }
                })
                .sum()
        };
        for mean in [0.3, 1.0, 3.0, 60.0] {
            assert!((mean_count(mean) - by_sum(mean)).abs() < 1e-9, "{mean}");
        }
    }
}
