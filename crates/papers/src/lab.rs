//! Runs scenarios for claims, on all cores, each run once.
//!
//! Several claims are about the same runs. The lab keeps what it has run under what it
//! is of ([`tidegate_study::cache`]): the summary and one short row for each flow.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_core::{Bytes, FlowKey, Packet, Span, Time};
use tidegate_sim::metrics::{
    Discard, FlowRecord, PacketEvent, PacketRecord, ProgressSample, Recorder, RunSummary,
};
use tidegate_sim::requests::{self, Outcome, Setup, Way};
use tidegate_sim::scenario::{Capacity, DisciplineChoice, LinkSpec, QueueSpec, Scenario};
use tidegate_sim::simulation;
use tidegate_study::cache::{Cache, Content};
use tidegate_study::experiment::{self, Job, Output};
use tidegate_study::pool;

/// How much to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Three seeds: about a minute for each paper on two cores, and four for MSF.
    Quick,
    /// Ten seeds: what the published pages are made with.
    Usual,
    /// Thirty seeds.
    Full,
    /// So many seeds, whatever the paper had.
    Seeds(u64),
}

impl Effort {
    /// How many seeds.
    #[must_use]
    pub fn seeds(self) -> u64 {
        match self {
            Effort::Quick => 3,
            Effort::Usual => 10,
            Effort::Full => 30,
            Effort::Seeds(count) => count,
        }
    }
}

/// The runs were stopped before they were done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// Told how the work goes on; called from many threads.
pub trait Observer: Sync {
    /// So much simulated time more is to be run.
    fn planned(&self, span: Span);
    /// So much of it has been.
    fn advanced(&self, span: Span);
}

/// What is kept of a run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) summary: RunSummary,
    /// In the order in which they ended.
    pub(crate) flows: Vec<Flow>,
}

/// What is kept of a transfer: short, since there are a million of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) number: u32,
    /// Payload bytes to carry, at most 4 GB.
    pub(crate) size: u32,
    pub(crate) delivered: u32,
    /// Seconds from the SYN to the last byte's arrival, of completed flows.
    pub(crate) response: Option<f32>,
    /// The same on an empty network.
    pub(crate) unloaded: Option<f32>,
    /// Seconds from the SYN to the end of both directions, of completed flows.
    pub(crate) lasted: Option<f32>,
    /// The longest time without progress, in seconds.
    pub(crate) stall: f32,
    pub(crate) lost: u16,
    pub(crate) timeouts: u16,
    pub(crate) traffic: u16,
}

/// What is known of one connection's packets at the queue of the tested link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passage {
    /// Its packets that came.
    pub(crate) packets: u32,
    /// How many of them found none of the connection's packets queued.
    pub(crate) fragments: u32,
    queued: u32,
}

/// How one connection's payload came to the queue of the tested link.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    /// When its first packet came, its SYN or the answer to one.
    pub(crate) began: Time,
    /// Sequence number of its first payload byte.
    pub(crate) base: Option<u32>,
    /// Payload bytes that have come, each counted once.
    pub(crate) size: u32,
    /// When the link first took each of its first full packets, in seconds since
    /// the first packet came.
    pub(crate) sent: Vec<Option<f32>>,
    /// Payload bytes that had come before each of its lost packets with payload.
    pub(crate) losses: Vec<u32>,
}

/// A packet that went through the queue of a tested link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub(crate) class: u16,
    /// When it came to the queue.
    pub(crate) arrived: Time,
    /// When the link had sent it.
    pub(crate) ended: Time,
}

/// Where claims are measured.
pub struct Lab<'a> {
    effort: Effort,
    threads: usize,
    stop: &'a AtomicBool,
    observer: &'a dyn Observer,
    runs: Cache<Run>,
}

impl<'a> Lab<'a> {
    /// A lab that has run nothing yet; setting `stop` ends its work early.
    #[must_use]
    pub fn new(
        effort: Effort,
        threads: usize,
        stop: &'a AtomicBool,
        observer: &'a dyn Observer,
    ) -> Lab<'a> {
        Lab { effort, threads, stop, observer, runs: Cache::default() }
    }

    /// The seeds of every experiment.
    #[must_use]
    pub fn seeds(&self) -> Vec<u64> {
        (1..=self.effort.seeds()).collect()
    }

    /// The seeds of an experiment that the paper ran so many times: as many, unless
    /// only a first impression or a number of seeds is asked for.
    pub(crate) fn seeds_as(&self, papers: u64) -> Vec<u64> {
        let count = match self.effort {
            Effort::Quick | Effort::Seeds(_) => self.effort.seeds(),
            Effort::Usual | Effort::Full => self.effort.seeds().max(papers),
        };
        (1..=count).collect()
    }

    /// How long to run what takes `usual`.
    pub(crate) fn length(&self, usual: Span) -> Span {
        if self.effort == Effort::Quick { Span(usual.0 / 2) } else { usual }
    }

    /// The runs of one discipline, by seed.
    pub(crate) fn runs(
        &self,
        scenario: &Scenario,
        discipline: &DisciplineChoice,
    ) -> Result<Vec<Arc<Run>>, Stopped> {
        let mut all = self.all_runs(scenario, std::slice::from_ref(discipline))?;
        Ok(all.pop().expect("one discipline was asked for"))
    }

    /// The runs of several disciplines, each by seed. All that is missing is
    /// run at once, so that all cores are busy.
    pub(crate) fn all_runs(
        &self,
        scenario: &Scenario,
        disciplines: &[DisciplineChoice],
    ) -> Result<Vec<Vec<Arc<Run>>>, Stopped> {
        self.all_runs_over(&self.seeds(), scenario, disciplines)
    }

    /// As [`Lab::all_runs`], with other seeds.
    pub(crate) fn all_runs_over(
        &self,
        seeds: &[u64],
        scenario: &Scenario,
        disciplines: &[DisciplineChoice],
    ) -> Result<Vec<Vec<Arc<Run>>>, Stopped> {
        let content = Content::of(scenario);
        let kept = |choice: &DisciplineChoice, seed| self.runs.find(content.key(choice, seed));
        let mut missing = scenario.clone();
        missing.seeds = seeds.to_vec();
        let unknown =
            |choice: &&DisciplineChoice| !seeds.iter().all(|seed| kept(choice, *seed).is_some());
        missing.disciplines = disciplines.iter().filter(unknown).cloned().collect();
        if !missing.disciplines.is_empty() {
            let count = missing.disciplines.len() * missing.seeds.len();
            self.observer.planned(missing.duration * count as u64);
            let keeping = Keeping { lab: self, content: &content, scenario: &missing };
            let outcome = experiment::run(&missing, self.threads, self.stop, &keeping);
            outcome.expect("keeping runs does not fail");
            if self.stop.load(Ordering::Relaxed) {
                return Err(Stopped);
            }
        }
        let of = |choice: &DisciplineChoice| {
            let run = |seed: &u64| kept(choice, *seed).expect("it was run, or known");
            seeds.iter().map(run).collect()
        };
        Ok(disciplines.iter().map(of).collect())
    }

    /// What passed the tested link, connection by connection, in one run.
    pub(crate) fn passages(
        &self,
        scenario: &Scenario,
        discipline: &DisciplineChoice,
        seed: u64,
    ) -> Result<Vec<Passage>, Stopped> {
        let mut census = Census { passages: HashMap::new(), clock: self.clock() };
        self.run_once(scenario, discipline, seed, &mut census)?;
        let mut passages: Vec<_> = census.passages.into_values().collect();
        passages.sort_unstable_by_key(|passage| (passage.packets, passage.fragments));
        Ok(passages)
    }

    /// The packets that a tested link has sent, of those that came from `from`
    /// until `until`, by arrival, in one run.
    pub(crate) fn served(
        &self,
        scenario: &Scenario,
        discipline: &DisciplineChoice,
        seed: u64,
        from: Time,
        until: Time,
    ) -> Result<Vec<Served>, Stopped> {
        let mut scenario = scenario.clone();
        // Nothing that comes later is needed, but for what is still queued then.
        scenario.duration = scenario.duration.min(Span(until.0) + Span::seconds(1));
        let links = &scenario.links;
        let mut stopwatch = Stopwatch { links, served: Vec::new(), clock: self.clock() };
        self.run_once(&scenario, discipline, seed, &mut stopwatch)?;
        let mut served = stopwatch.served;
        served.retain(|packet| (from..until).contains(&packet.arrived));
        served.sort_unstable_by_key(|packet| (packet.arrived, packet.ended));
        Ok(served)
    }

    /// How the connections of each run, by seed, have sent their first `packets` of
    /// `payload` bytes each, in the order of their keys, which are the same under
    /// every discipline.
    pub(crate) fn openings(
        &self,
        scenario: &Scenario,
        discipline: &DisciplineChoice,
        (packets, payload): (usize, u32),
    ) -> Result<Vec<Vec<(FlowKey, Opening)>>, Stopped> {
        let of_seed = |seed| {
            let openings = HashMap::new();
            let mut starter = Starter { openings, packets, payload, clock: self.clock() };
            self.run_once(scenario, discipline, seed, &mut starter)?;
            let mut openings: Vec<_> = starter.openings.into_iter().collect();
            openings.retain(|(_, opening)| opening.began.0 >= scenario.warm_up.0);
            openings.sort_unstable_by_key(|(key, _)| *key);
            Ok(openings)
        };
        self.each_seed(of_seed)?.into_iter().collect()
    }

    /// The progress of the followed transfers, in one run.
    pub(crate) fn progress(
        &self,
        scenario: &Scenario,
        discipline: &DisciplineChoice,
        seed: u64,
    ) -> Result<Vec<ProgressSample>, Stopped> {
        let mut rows = Rows { flows: Vec::new(), scenario, clock: self.clock() };
        Ok(self.run_once(scenario, discipline, seed, &mut rows)?.progress)
    }

    /// The runs of an access link with a gateway, or shared in another way, by seed.
    pub(crate) fn gateway_runs(
        &self,
        setup: &Setup,
        way: impl Into<Way>,
    ) -> Result<Vec<Outcome>, Stopped> {
        self.observer.planned(setup.duration * self.effort.seeds());
        let way = way.into();
        self.each_seed(|seed| {
            let outcome = requests::run_way(setup, &way, seed, &mut Discard, self.stop);
            self.observer.advanced(outcome.reached.since(Time::ZERO));
            outcome
        })
    }

    /// What `work` gives for each seed, on all cores.
    pub(crate) fn each_seed<T: Send>(
        &self,
        work: impl Fn(u64) -> T + Sync,
    ) -> Result<Vec<T>, Stopped> {
        let seeds = self.seeds();
        let results = pool::map(&seeds, self.threads, self.stop, |seed| work(*seed));
        if self.is_stopped() { Err(Stopped) } else { Ok(results) }
    }

    /// Whether the work is to end early.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// A run that is not kept.
    fn run_once(
        &self,
        scenario: &Scenario,
        discipline: &DisciplineChoice,
        seed: u64,
        recorder: &mut dyn Recorder,
    ) -> Result<RunSummary, Stopped> {
        self.observer.planned(scenario.duration);
        let run = simulation::run(scenario, discipline, seed, recorder, self.stop);
        if self.stop.load(Ordering::Relaxed) { Err(Stopped) } else { Ok(run) }
    }

    fn clock(&self) -> Clock<'_> {
        Clock { observer: self.observer, reached: Time::ZERO }
    }
}

/// Tells the observer how far a run has come.
struct Clock<'a> {
    observer: &'a dyn Observer,
    reached: Time,
}

impl Clock<'_> {
    fn reach(&mut self, now: Time) {
        self.observer.advanced(now.since(self.reached));
        self.reached = now;
    }
}

/// Keeps the runs of an experiment in the lab.
struct Keeping<'a> {
    lab: &'a Lab<'a>,
    content: &'a Content,
    scenario: &'a Scenario,
}

impl<'a> Output<'a, Scenario> for Keeping<'a> {
    type Recorder = Rows<'a>;
    type Error = Infallible;

    fn begin(&self, _job: &Job<'a>) -> Result<Rows<'a>, Infallible> {
        Ok(Rows { flows: Vec::new(), scenario: self.scenario, clock: self.lab.clock() })
    }

    fn end(&self, job: &Job<'a>, rows: Rows<'a>, summary: &RunSummary) -> Result<(), Infallible> {
        let key = self.content.key(&self.scenario.disciplines[job.contender], job.seed);
        let mut summary = summary.clone();
        // Claims look at tested links over time, and an access point has dozens of others.
        for (link, spec) in std::iter::zip(&mut summary.links, &self.scenario.links) {
            if let (Some(link), false) = (link, matches!(spec.queue, QueueSpec::Tested(_))) {
                link.samples = Vec::new();
            }
        }
        let run = Run { summary, flows: rows.flows };
        self.lab.runs.keep(key, run);
        Ok(())
    }
}

/// Keeps the rows of transfers.
struct Rows<'a> {
    flows: Vec<Flow>,
    scenario: &'a Scenario,
    clock: Clock<'a>,
}

impl Recorder for Rows<'_> {
    fn flow(&mut self, row: &FlowRecord) {
        if !self.scenario.traffic[row.traffic].kind.is_transfers() {
            return;
        }
        let narrow = |bytes: Bytes| u32::try_from(bytes.0).unwrap_or(u32::MAX);
        self.flows.push(Flow {
            number: row.number as u32,
            size: row.size.map_or(u32::MAX, narrow),
            delivered: narrow(row.delivered),
            response: row.response.filter(|_| row.end.is_some()).map(|r| r.as_seconds() as f32),
            unloaded: row.unloaded.map(|unloaded| unloaded.as_seconds() as f32),
            lasted: row.end.map(|end| end.since(row.start).as_seconds() as f32),
            stall: row.longest_stall.as_seconds() as f32,
            lost: row.lost.min(u32::from(u16::MAX)) as u16,
            timeouts: row.timeouts.min(u32::from(u16::MAX)) as u16,
            traffic: row.traffic as u16,
        });
    }
    fn reached(&mut self, now: Time) {
        self.clock.reach(now);
    }
}

/// Takes the times of packets.
struct Stopwatch<'a> {
    links: &'a [LinkSpec],
    served: Vec<Served>,
    clock: Clock<'a>,
}

impl Recorder for Stopwatch<'_> {
    fn takes_packets(&self) -> bool {
        true
    }
    fn packet(&mut self, row: &PacketRecord) {
        let Capacity::Fixed(rate) = self.links[row.link].capacity else { return };
        if row.event == PacketEvent::Sent {
            let Packet { class, arrived, size, .. } = row.packet;
            self.served.push(Served { class, arrived, ended: row.at + rate.transmission(size) });
        }
    }
    fn reached(&mut self, now: Time) {
        self.clock.reach(now);
    }
}

/// Counts the packets of each connection at the tested link.
struct Census<'a> {
    passages: HashMap<FlowKey, Passage>,
    clock: Clock<'a>,
}

impl Recorder for Census<'_> {
    fn takes_packets(&self) -> bool {
        true
    }
    fn packet(&mut self, row: &PacketRecord) {
        let passage = self.passages.entry(row.packet.flow).or_default();
        match row.event {
            PacketEvent::Arrived => {
                passage.packets += 1;
                passage.fragments += u32::from(passage.queued == 0);
                passage.queued += 1;
            }
            PacketEvent::Sent | PacketEvent::Lost(_) => passage.queued -= 1,
        }
    }
    fn reached(&mut self, now: Time) {
        self.clock.reach(now);
    }
}

/// Takes the times of each connection's first packets, and counts its losses.
struct Starter<'a> {
    openings: HashMap<FlowKey, Opening>,
    packets: usize,
    payload: u32,
    clock: Clock<'a>,
}

impl Recorder for Starter<'_> {
    fn takes_packets(&self) -> bool {
        true
    }
    fn packet(&mut self, row: &PacketRecord) {
        let Some(tcp) = row.packet.tcp else { return };
        let opening = self.openings.entry(row.packet.flow).or_insert_with(|| Opening {
            began: row.at,
            base: None,
            size: 0,
            sent: Vec::new(),
            losses: Vec::new(),
        });
        if tcp.payload == 0 {
            return;
        }
        let base = *opening.base.get_or_insert(tcp.sequence);
        // A transfer is far shorter than the 4 GB after which numbers repeat.
        let offset = tcp.sequence.wrapping_sub(base);
        match row.event {
            PacketEvent::Arrived => opening.size = opening.size.max(offset + tcp.payload),
            PacketEvent::Sent => {
                let place = (offset / self.payload) as usize;
                if place < self.packets {
                    opening.sent.resize(opening.sent.len().max(place + 1), None);
                    let since = row.at.since(opening.began).as_seconds() as f32;
                    opening.sent[place].get_or_insert(since);
                }
            }
            PacketEvent::Lost(_) => opening.losses.push(opening.size - tcp.payload),
        }
    }
    fn reached(&mut self, now: Time) {
        self.clock.reach(now);
    }
}

/// Watches nothing, in tests.
#[cfg(test)]
pub(crate) struct Nobody;

#[cfg(test)]
impl Observer for Nobody {
    fn planned(&self, _: Span) {}
    fn advanced(&self, _: Span) {}
}

#[cfg(test)]
mod tests {
    use tidegate_core::{LossReason, TcpFacts};

    use super::*;

    /// A handshake, two packets, of which the second is lost and sent again, and
    /// a third.
    #[test]
    fn first_packets_and_losses_are_counted_from_the_handshake() {
        let flow = FlowKey::v4([0; 4], 1, [0; 4], 2, FlowKey::TCP);
        let clock = Clock { observer: &Nobody, reached: Time::ZERO };
        let mut starter = Starter { openings: HashMap::new(), packets: 2, payload: 100, clock };
        // Sequence numbers wrap around within the transfer.
        let first = u32::MAX - 99;
        let (came, sent) = (PacketEvent::Arrived, PacketEvent::Sent);
        let lost = PacketEvent::Lost(LossReason::Refused);
        for (millis, offset, payload, event) in [
            (1_000, 0, 0, came),
            (1_050, 0, 0, sent),
            (1_100, 0, 100, came),
            (1_200, 0, 100, sent),
            (1_300, 100, 100, came),
            (1_300, 100, 100, lost),
            (1_900, 100, 100, came),
            (2_000, 100, 100, sent),
            (2_100, 200, 30, came),
            (2_200, 200, 30, sent),
        ] {
            let sequence = first.wrapping_add(offset);
            let facts = TcpFacts {
                sequence,
                acknowledgement: None,
                payload,
                syn: payload == 0,
                fin: false,
                plain: payload > 0,
            };
            let packet = Packet { tcp: Some(facts), ..Packet::new(0, flow, Bytes(140)) };
            starter.packet(&PacketRecord { link: 0, at: Time(millis * 1_000_000), packet, event });
        }
        let opening = &starter.openings[&flow];
        assert_eq!(opening.sent, [Some(0.2), Some(1.0)]);
        assert_eq!((opening.size, &opening.losses[..]), (230, &[100][..]));
    }
}
