//! The workloads of `benches/ns3/run-aqm.sh` as scenarios: ours is measured on the
//! same transfers as ns-3, one by one.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tidegate_core::{Bytes, Span};
use tidegate_sim::metrics::Discard;
use tidegate_sim::scenario::file::{self, Folder};
use tidegate_sim::scenario::{
    Arrivals, DisciplineChoice, NodeId, Scenario, SizeLaw, TrafficKind, TrafficSpec, Transfer,
};
use tidegate_sim::simulation;

use super::figures::{self, Figure};
use super::transfers::{self, PAIRS};

/// TCP as ns-3 has it, and the dumbbell.
const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/ns3/crosscheck.toml");

/// The scenario of the file. `departures`, separated by commas, are those of ns-3's
/// recovery that TCP imitates; `None` leaves those of the file.
///
/// # Panics
/// When the file is not a scenario, or there is no such departure.
pub(crate) fn dumbbell(departures: Option<&str>) -> Scenario {
    let text = std::fs::read_to_string(SCENARIO).expect("the scenario is beside the peer");
    let text = match departures {
        None => text,
        Some(departures) => {
            let words = departures.split(',').filter(|word| !word.is_empty());
            let chosen = format!("ns3 = {:?}", words.collect::<Vec<_>>());
            let line = text.lines().find(|line| line.starts_with("ns3 = "));
            text.replace(line.expect("the file says what is imitated"), &chosen)
        }
    };
    file::parse(SCENARIO, &text, &Folder(".".into())).unwrap_or_else(|error| panic!("{error}"))
}

/// Time simulated with transfers that end.
const SHORT_RUN: Span = Span::seconds(300);
/// With transfers without end, the time that does not count.
pub(crate) const WARM_UP: Span = Span::seconds(20);
/// Of each link, with transfers without end: 48 ms there and back.
const DELAY: Span = Span::millis(8);
/// Limits no sender here.
const WINDOW: Bytes = Bytes(1 << 20);
/// Progress of transfers without end is read so often.
const SAMPLE_EVERY: Span = Span::seconds(10);

/// What crosses the dumbbell.
pub(crate) struct Workload {
    /// Its name in the files of `benches/ns3/results`.
    pub(crate) name: &'static str,
    traffic: Traffic,
    ecn: bool,
}

enum Traffic {
    /// Transfers at random; Mbit/s.
    Load(f64),
    /// So many without end.
    Long(usize),
}

/// All of them.
pub(crate) const WORKLOADS: [Workload; 6] = [
    Workload { name: "load8", traffic: Traffic::Load(8.0), ecn: false },
    Workload { name: "load15", traffic: Traffic::Load(15.0), ecn: false },
    Workload { name: "long1", traffic: Traffic::Long(1), ecn: false },
    Workload { name: "long4", traffic: Traffic::Long(4), ecn: false },
    Workload { name: "long16", traffic: Traffic::Long(16), ecn: false },
    Workload { name: "long4-ecn", traffic: Traffic::Long(4), ecn: true },
];

impl Workload {
    /// Whether its transfers end.
    pub(crate) fn ends(&self) -> bool {
        matches!(self.traffic, Traffic::Load(_))
    }

    /// How many transfers begin that end, for a seed of ns-3.
    pub(crate) fn transfers(&self, seed: u64) -> usize {
        match self.traffic {
            Traffic::Load(load) => transfers::poisson(seed, load, SHORT_RUN).len(),
            Traffic::Long(_) => 0,
        }
    }

    /// The figures of our run for a seed of ns-3; the rest as [`Workload::scenario`].
    pub(crate) fn run(
        &self,
        discipline: &DisciplineChoice,
        seed: u64,
        long_run: Span,
        departures: Option<&str>,
    ) -> Vec<Figure> {
        let never = AtomicBool::new(false);
        let scenario = self.scenario(seed, long_run, departures);
        let summary = simulation::run(&scenario, discipline, seed, &mut Discard, &never);
        figures::ours(self, &summary)
    }

    /// What to simulate for a seed of ns-3, under a TCP with these `departures`
    /// ([`dumbbell`]). With transfers without end, `long_run` is how long; ns-3's
    /// figures are of 620 s.
    fn scenario(&self, seed: u64, long_run: Span, departures: Option<&str>) -> Scenario {
        let mut scenario = dumbbell(departures);
        match self.traffic {
            Traffic::Load(load) => {
                scenario.duration = SHORT_RUN;
                replay(&mut scenario, &transfers::poisson(seed, load, SHORT_RUN));
            }
            Traffic::Long(count) => {
                let (template, mut transfer) = take_template(&mut scenario);
                let tcp = Arc::make_mut(&mut transfer.tcp);
                tcp.ecn = self.ecn;
                tcp.receive_window = WINDOW;
                transfer.follow = true;
                scenario.duration = long_run;
                scenario.warm_up = WARM_UP;
                scenario.sample_every = SAMPLE_EVERY;
                scenario.links.iter_mut().for_each(|link| link.delay = DELAY);
                for (number, start) in transfers::starts(seed, count).into_iter().enumerate() {
                    let ends = (number % PAIRS, number % PAIRS);
                    let arrivals = Arrivals::AtStart { count: 1 };
                    let kind = between(&scenario, ends, &transfer, arrivals);
                    scenario.traffic.push(TrafficSpec {
                        name: number.to_string(),
                        start,
                        kind,
                        ..template.clone()
                    });
                }
            }
        }
        scenario
    }
}

/// The one source of the scenario, and what it says of its transfers.
fn take_template(scenario: &mut Scenario) -> (TrafficSpec, Transfer) {
    let template = scenario.traffic.pop().expect("the scenario has traffic");
    let TrafficKind::Transfers { transfer, .. } = template.kind.clone() else {
        panic!("the scenario's traffic is transfers")
    };
    (template, transfer)
}

/// Puts these transfers into the place of the scenario's own: one source for each pair
/// of hosts, in the order of [`source`].
pub(crate) fn replay(scenario: &mut Scenario, drawn: &[transfers::Transfer]) {
    let (template, transfer) = take_template(scenario);
    let segment = u64::from(transfer.tcp.mss);
    for pair in 0..PAIRS * PAIRS {
        let own = drawn.iter().filter(|one| source(one) == pair);
        let log = own.map(|one| (one.start, Bytes(u64::from(one.size) * segment)));
        let arrivals = Arrivals::Log(Arc::new(log.collect()));
        let kind = between(scenario, (pair / PAIRS, pair % PAIRS), &transfer, arrivals);
        scenario.traffic.push(TrafficSpec { name: pair.to_string(), kind, ..template.clone() });
    }
}

/// The number of the source that [`replay`] gives a transfer to.
pub(crate) fn source(one: &transfers::Transfer) -> usize {
    one.from * PAIRS + one.to
}

/// Such transfers between one sender and one receiver. A log brings its own sizes.
fn between(
    scenario: &Scenario,
    (from, to): (usize, usize),
    transfer: &Transfer,
    arrivals: Arrivals,
) -> TrafficKind {
    let host = |role: &str, number: usize| {
        let name = format!("{role}{}", number + 1);
        let place = scenario.nodes.iter().position(|node| *node == name);
        vec![NodeId(place.expect("the dumbbell has five pairs of hosts") as u16)]
    };
    let transfer =
        Transfer { from: host("sender", from), to: host("receiver", to), ..transfer.clone() };
    TrafficKind::Transfers { transfer, arrivals, sizes: SizeLaw::Endless }
}
