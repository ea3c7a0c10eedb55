//! Links that nobody chose: rate, round trip, buffer, load and senders by chance.
//!
//! A discipline can be good where its author looked. These points are drawn once, from a
//! stream of random numbers with a fixed name, and every one that is drawn is run.

use tidegate_core::random::Stream;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::scenario::file::ScenarioError;

use super::cases::{CHANCE, Case};
use super::variant::{self, BASE};

/// How many points there are.
const POINTS: usize = 36;

/// What is drawn from, uniformly in the logarithm: bit/s, seconds, and the product of
/// rate and round trip.
const RATES: (f64, f64) = (1e6, 1e9);
const ROUND_TRIPS: (f64, f64) = (0.005, 0.6);
const BUFFERS: (f64, f64) = (0.5, 10.0);
/// Percent of the rate, uniformly.
const LOADS: (f64, f64) = (20.0, 150.0);
/// Who sends: what a page calls them, and the profile of TCP.
const SENDERS: [(&str, &str); 5] = [
    ("CUBIC", "profile = \"today\""),
    ("CUBIC with ECN", "profile = \"today\"\necn = true"),
    ("BBR", "profile = \"today-bbr\""),
    ("CUBIC and BBR", "profile = \"mix\""),
    ("NewReno", "profile = \"papers\""),
];

/// The least buffer, in packets of 1 500 bytes.
const LEAST_PACKETS: f64 = 10.0;
const PACKET_BITS: f64 = 12_000.0;

/// About what a run carries once it is warm, unless that takes too short or too long.
const CARRIED_BITS: f64 = 480e6;
const MEASURED_SECONDS: (f64, f64) = (4.0, 200.0);
const MEASURED_ROUND_TRIPS: f64 = 20.0;
/// Senders need some round trips before they fill a link.
const WARM_UP_SECONDS: f64 = 2.0;
const WARM_UP_ROUND_TRIPS: f64 = 10.0;

/// A link and its load.
struct Point {
    rate: f64,
    round_trip: f64,
    /// In products of rate and round trip.
    buffer: f64,
    load: f64,
    senders: (&'static str, &'static str),
}

/// Every point that was drawn.
pub(crate) fn all() -> Result<Vec<Case>, ScenarioError> {
    let mut stream = Stream::new(1, "the evidence for tide");
    (1..=POINTS)
        .map(|number| {
            let point = Point::drawn(&mut stream);
            Ok(Case::new(CHANCE, format!("{number}: {}", point.words()), point.scenario()?))
        })
        .collect()
}

impl Point {
    fn drawn(stream: &mut Stream) -> Point {
        let mut between =
            |(least, most): (f64, f64)| least * libm::pow(most / least, stream.uniform());
        let (rate, round_trip, buffer) = (between(RATES), between(ROUND_TRIPS), between(BUFFERS));
        let load = (LOADS.0 + stream.uniform() * (LOADS.1 - LOADS.0)).round();
        let senders = SENDERS[stream.index(SENDERS.len())];
        Point { rate, round_trip, buffer, load, senders }
    }

    fn words(&self) -> String {
        let rate = self.rate / 1e6;
        let rate = if rate < 10.0 { format!("{rate:.1}") } else { format!("{rate:.0}") };
        format!(
            "{rate} Mbit/s, {:.0} ms, {:.1} BDP, {}%, {}",
            self.round_trip * 1e3,
            self.buffer,
            self.load,
            self.senders.0
        )
    }

    fn scenario(&self) -> Result<Scenario, ScenarioError> {
        let packets = (self.buffer * self.rate * self.round_trip / PACKET_BITS).max(LEAST_PACKETS);
        let (rate, load) = (self.rate / 1e3, self.rate * self.load / 1e5);
        let warm_up = WARM_UP_SECONDS.max(WARM_UP_ROUND_TRIPS * self.round_trip);
        let (least, most) = MEASURED_SECONDS;
        let least = least.max(MEASURED_ROUND_TRIPS * self.round_trip);
        let measured = (CARRIED_BITS / self.rate).clamp(least, most);
        let bottleneck = format!("rate = \"{rate:.0} kbit/s\"\nedge_rate = \"10 Gbit/s\"");
        // Three links each way.
        let delay = format!("delay = \"{:.0} us\"", self.round_trip / 6.0 * 1e6);
        let stream = format!("rate = \"{:.0} kbit/s\"\npacket = \"1200 B\"", rate / 10.0);
        variant::of(
            BASE,
            &[
                ("rate = \"10 Mbit/s\"\nedge_rate = \"1 Gbit/s\"", &bottleneck),
                ("delay = \"6667 us\"", &delay),
                ("buffer = \"300 packets\"", &format!("buffer = \"{packets:.0} packets\"")),
                ("load = \"5 Mbit/s\"", &format!("load = \"{load:.0} kbit/s\"")),
                ("rate = \"1 Mbit/s\"\npacket = \"1200 B\"", &stream),
                ("profile = \"today\"", self.senders.1),
                ("duration = \"300 s\"", &format!("duration = \"{:.1} s\"", warm_up + measured)),
                ("warm_up = \"20 s\"", &format!("warm_up = \"{warm_up:.1} s\"")),
            ],
        )
    }
}
