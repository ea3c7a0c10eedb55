//! Response times on an empty link, as the yardstick for slowdown.
//!
//! The response time of a flow of a given size that has all links to itself is
//! found by simulating exactly that, for a few sizes per decade as they are needed;
//! sizes between two of them are interpolated linearly. Beyond the largest, the
//! slope of the last two is continued: such a flow runs at a constant rate.

use std::sync::Arc;

use tidegate_core::{Bytes, Span, Time};

use crate::metrics::{FlowRecord, Recorder};
use crate::scenario::{Arrivals, Scenario, SizeLaw, TrafficKind, Transfer};
use crate::simulation;
use crate::tcp::TcpConfig;

/// Sizes that are simulated: 1, 2 and 5 times a power of ten.
const STEPS: [u64; 3] = [1, 2, 5];
/// The smallest is a hundred bytes, the largest 10 MB.
const SIZES: usize = 3 * 5 + 1;
/// Long enough for 10 MB at a few kilobits per second.
const PATIENCE: Span = Span::seconds(10_000);

/// Yardsticks for each source of a scenario.
pub(crate) struct Unloaded<'a> {
    scenario: &'a Scenario,
    /// By source and step: `None` if not asked for yet, otherwise the response if
    /// there is one.
    known: Vec<[Option<Option<Span>>; SIZES]>,
}

fn step_size(step: usize) -> u64 {
    let decade = 10_u64.pow((step / STEPS.len()) as u32);
    100 * decade * STEPS[step % STEPS.len()]
}

impl<'a> Unloaded<'a> {
    pub(crate) fn new(scenario: &'a Scenario) -> Unloaded<'a> {
        Unloaded { scenario, known: vec![[None; SIZES]; scenario.traffic.len()] }
    }

    /// The response time of a flow of `size` of this source when it is alone;
    /// `None` for sources without transfers.
    pub(crate) fn response(&mut self, traffic: usize, size: Bytes) -> Option<Span> {
        let above = (1..SIZES).find(|step| step_size(*step) >= size.0).unwrap_or(SIZES - 1);
        let (low, high) = (self.at(traffic, above - 1)?, self.at(traffic, above)?);
        let (from, to) = (step_size(above - 1), step_size(above));
        let into = size.0.saturating_sub(from);
        let rise = u128::from((high - low).0) * u128::from(into) / u128::from(to - from);
        Some(low + Span(rise as u64))
    }

    fn at(&mut self, traffic: usize, step: usize) -> Option<Span> {
        if let Some(known) = self.known[traffic][step] {
            return known;
        }
        let measured = self.measure(traffic, Bytes(step_size(step)));
        self.known[traffic][step] = Some(measured);
        measured
    }

    /// Simulates one flow alone.
    fn measure(&self, traffic: usize, size: Bytes) -> Option<Span> {
        let mut alone = self.scenario.traffic[traffic].clone();
        let (arrivals, sizes) = (Arrivals::AtStart { count: 1 }, SizeLaw::Constant(size));
        alone.kind = if let TrafficKind::Quic { transfer, profile, .. } = &alone.kind {
            let transfer = Transfer { follow: false, ..transfer.clone() };
            TrafficKind::Quic { transfer, profile: *profile, arrivals, sizes }
        } else {
            let mut transfer = Transfer { follow: false, ..alone.kind.transfer()?.clone() };
            if !transfer.tcp.mix.is_empty() {
                // One yardstick for all: that of `congestion`.
                transfer.tcp = Arc::new(TcpConfig { mix: Vec::new(), ..(*transfer.tcp).clone() });
            }
            TrafficKind::Transfers { transfer, arrivals, sizes }
        };
        (alone.start, alone.stop) = (Time::ZERO, Time(PATIENCE.0));
        let scenario = Scenario {
            measured: Vec::new(),
            duration: PATIENCE,
            warm_up: Span::ZERO,
            sample_every: PATIENCE,
            traffic: vec![alone],
            ..self.scenario.clone()
        };
        let mut flow = OneFlow(None);
        simulation::run_alone(&scenario, &mut flow);
        flow.0
    }
}

/// Keeps the response time of the only flow.
struct OneFlow(Option<Span>);

impl Recorder for OneFlow {
    fn flow(&mut self, row: &FlowRecord) {
        self.0 = row.response;
    }
}
