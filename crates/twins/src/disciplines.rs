//! A slow and obvious twin of every discipline, with which to compare the fast
//! ones.
//!
//! A twin keeps the whole history of its queue and derives every answer from it
//! from scratch: what is queued is sorted at each step, and what a flow has had is
//! summed again for each packet. It has no flow table, no sweep and no counter that
//! could be wrong, and its sums have 128 bits.

mod bidirectional;
mod cake;
mod codel;
mod deadlines;
mod drr;
mod dualpi2;
mod efd;
mod efd_ack;
mod fifo;
mod fq;
mod fq_codel;
mod fq_pie;
mod lars;
mod las;
mod las_ack;
mod las_log;
mod pie;
mod red;
mod run2c;
mod run2c_ack;
mod scfq;
mod sfq;
mod tide;
mod turns;
mod x_protect;

use tidegate_core::entry::{Entry, Place};
use tidegate_core::setting::Settings;
use tidegate_core::units::Amount;
use tidegate_core::{
    Backlog, Buffer, Bytes, Discipline, FlowKey, LossReason, Losses, Packet, Span, Time,
};

use crate::audit::{self, Audited, Operation};

/// The twin of a registered discipline, or nothing when it has none.
fn find(name: &str, settings: &Settings, place: Place, seed: u64) -> Option<Box<dyn Discipline>> {
    let Place { buffer, .. } = place;
    let memory = || Memory { sweep: settings.span("sweep"), idle: settings.span("idle") };
    let levels_are_las = || ["high", "low"].map(|level| settings.choice(level) == "las");
    let refuses = |rule| Twin::boxed(buffer, WhenFull::Refuse, rule);
    let pushes_out = |rule| Twin::boxed(buffer, WhenFull::PushOut, rule);
    Some(match name {
        "fifo" => refuses(Box::new(fifo::Fifo)),
        "las" => pushes_out(Box::new(las::Las { memory: memory() })),
        "las-log" => pushes_out(Box::new(las_log::LasLog {
            k: settings.number("k"),
            in_packets: settings.choice("unit") == "packets",
            memory: memory(),
        })),
        "lars" => {
            let half_life = settings.span("half_life");
            pushes_out(Box::new(lars::Lars { half_life, memory: memory() }))
        }
        "las-ack" => pushes_out(Box::new(las_ack::LasAck { memory: memory() })),
        "run2c" => {
            let threshold = settings.bytes("threshold");
            pushes_out(Box::new(run2c::Run2c { threshold, memory: memory() }))
        }
        "run2c-ack" => {
            let threshold = settings.bytes("threshold");
            pushes_out(Box::new(run2c_ack::Run2cAck { threshold, memory: memory() }))
        }
        "x-protect" => pushes_out(Box::new(x_protect::XProtect {
            threshold: settings.bytes("threshold"),
            probability: settings.number("probability"),
            memory: memory(),
            seed,
        })),
        "scfq" => refuses(Box::new(scfq::Scfq)),
        "drr" => {
            let longest = settings.choice("full") == "longest";
            let when_full = if longest { WhenFull::PushOut } else { WhenFull::Refuse };
            Box::new(drr::Drr::by_flow(settings.bytes("quantum"), when_full, buffer))
        }
        "sfq" if settings.choice("form") == "linux" => sfq::Sfq::boxed(settings, buffer, seed),
        "sfq" => {
            let (quantum, count) = (settings.bytes("quantum"), settings.count("queues"));
            Box::new(drr::Drr::by_hash(quantum, count, buffer, seed))
        }
        "efd" => pushes_out(Box::new(efd::Efd {
            threshold: settings.amount("threshold"),
            levels_are_las: levels_are_las(),
        })),
        "efd-ack" => pushes_out(Box::new(efd_ack::EfdAck {
            threshold: settings.bytes("threshold"),
            levels_are_las: levels_are_las(),
        })),
        "red" => red::Red::boxed(settings, buffer, seed),
        "codel" => codel::Codel::boxed(settings, place),
        "fq" => fq::Fq::boxed(settings, buffer, seed),
        "fq-codel" => fq_codel::FqCodel::boxed(settings, place, seed),
        "pie" => pie::Pie::boxed(settings, buffer, seed),
        "deadlines" => deadlines::Deadlines::boxed(settings, buffer),
        "cake" => cake::Cake::boxed(settings, buffer, seed),
        "tide" => tide::Tide::boxed(settings, place),
        "dualpi2" => dualpi2::DualPi2::boxed(settings, buffer, seed),
        "fq-pie" => fq_pie::FqPie::boxed(settings, buffer, seed),
        _ => return None,
    })
}

/// Performs the same operations on a discipline and its twin, both under audit.
///
/// # Panics
/// When the two differ, the discipline breaks a rule of the audit, or it has no
/// twin.
pub fn compare(
    entry: &'static Entry,
    given: &[(&str, &str)],
    place: impl Into<Place>,
    seed: u64,
    operations: &[Operation],
) {
    let (settings, place) = (entry.settings(given), place.into());
    let settings = settings.expect("only valid settings are tried");
    let real = Audited::new((entry.build)(&settings, place, seed), place.buffer);
    follow(entry, real, &settings, place, seed, operations, |_, _| {});
}

/// Does the same to `real`, a discipline with these settings in this place, and to a
/// twin that was built so. `before` is called with the number of each operation, and may
/// do to `real` what is to change nothing.
///
/// # Panics
/// As [`compare`].
pub fn follow(
    entry: &'static Entry,
    real: Audited,
    settings: &Settings,
    place: Place,
    seed: u64,
    operations: &[Operation],
    before: impl FnMut(usize, &mut Audited),
) {
    let twin = find(entry.name, settings, place, seed)
        .unwrap_or_else(|| panic!("'{}' needs a twin in crates/twins/src/disciplines", entry.name));
    audit::compare(entry.name, real, Audited::new(twin, place.buffer), operations, before);
}

/// What a full buffer does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WhenFull {
    Refuse,
    PushOut,
}

/// What makes a discipline: the order of service, and which flows it knows.
trait Rule: Send {
    /// The rank of `packet`, which arrives at `now`; lower is served first.
    fn rank(&self, history: &History, now: Time, packet: &Packet) -> u128;

    /// Whether it keeps state for `flow` at `now`.
    fn tracks(&self, history: &History, now: Time, flow: FlowKey) -> bool;
}

/// A packet that was taken into the queue, if only for a moment.
struct Record {
    packet: Packet,
    rank: u128,
    arrived: Moment,
    left: Option<Moment>,
    sent: bool,
}

/// A point in time, and the call that happened then: times may repeat.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    call: u64,
    time: Time,
}

/// Everything that ever happened to a queue, in order of arrival.
#[derive(Default)]
struct History(Vec<Record>);

impl History {
    fn of(&self, flow: FlowKey) -> Vec<&Record> {
        self.0.iter().filter(|record| record.packet.flow == flow).collect()
    }

    fn is_backlogged(&self, flow: FlowKey) -> bool {
        self.of(flow).iter().any(|record| record.left.is_none())
    }

    /// The indices of what is queued now, in order of service.
    fn queued(&self) -> Vec<usize> {
        let mut queued: Vec<_> = (0..self.0.len()).filter(|i| self.0[*i].left.is_none()).collect();
        queued.sort_by_key(|i| (self.0[*i].rank, *i));
        queued
    }

    fn queued_bytes(&self) -> u128 {
        self.queued().iter().map(|i| u128::from(self.0[*i].packet.size.0)).sum()
    }
}

/// How long a flow is remembered.
#[derive(Clone, Copy)]
struct Memory {
    sweep: Span,
    idle: Span,
}

impl Memory {
    /// Whether a sweep between the last of `records` and `now` has forgotten
    /// their flow: it found the flow idle, and none of its packets queued.
    fn forgot(self, records: &[&Record], now: Time) -> bool {
        let Some(last) = records.last() else { return false };
        let (sweep, idle) = (u128::from(self.sweep.0), u128::from(self.idle.0));
        let latest_sweep = u128::from(now.0) / sweep * sweep;
        let left_before = |record: &&Record| {
            record.left.is_some_and(|left| u128::from(left.time.0) < latest_sweep)
        };
        latest_sweep >= u128::from(last.arrived.time.0) + idle && records.iter().all(left_before)
    }

    /// The `records` that came since their flow was last forgotten.
    fn remembered<'a, 'b>(self, records: &'b [&'a Record], now: Time) -> &'b [&'a Record] {
        if self.forgot(records, now) {
            return &[];
        }
        let first = (0..records.len())
            .rev()
            .find(|i| self.forgot(&records[..*i], records[*i].arrived.time))
            .unwrap_or(0);
        &records[first..]
    }

    /// The bytes of the flow since it was last forgotten.
    fn attained(self, records: &[&Record], now: Time) -> u128 {
        bytes(self.remembered(records, now))
    }
}

/// The sizes of all packets together.
fn bytes(records: &[&Record]) -> u128 {
    records.iter().map(|record| u128::from(record.packet.size.0)).sum()
}

/// The twin itself: a history and a rule.
struct Twin {
    buffer: Buffer,
    when_full: WhenFull,
    rule: Box<dyn Rule>,
    history: History,
    /// The last call that put a packet in or took one out.
    last: Moment,
}

impl Twin {
    fn boxed(buffer: Buffer, when_full: WhenFull, rule: Box<dyn Rule>) -> Box<dyn Discipline> {
        let last = Moment { call: 0, time: Time::ZERO };
        Box::new(Twin { buffer, when_full, rule, history: History::default(), last })
    }

    /// Whether `packets` of together `bytes` are within the buffer.
    fn fits(&self, packets: usize, bytes: u128) -> bool {
        match self.buffer.amount() {
            Amount::Packets(limit) => packets <= limit as usize,
            Amount::Bytes(limit) => bytes <= u128::from(limit.0),
        }
    }
}

impl Discipline for Twin {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        let (packets, bytes) = match self.when_full {
            WhenFull::Refuse => (self.history.queued().len(), self.history.queued_bytes()),
            // Only a packet larger than the whole buffer is not let in at all.
            WhenFull::PushOut => (0, 0),
        };
        if !self.fits(packets + 1, bytes + u128::from(packet.size.0)) {
            return losses.push(packet, LossReason::Refused);
        }
        let rank = self.rule.rank(&self.history, now, &packet);
        self.last = Moment { call: self.last.call + 1, time: now };
        let record = Record { packet, rank, arrived: self.last, left: None, sent: false };
        self.history.0.push(record);
        while !self.fits(self.history.queued().len(), self.history.queued_bytes()) {
            let end = *self.history.queued().last().expect("nothing would fit");
            self.history.0[end].left = Some(self.last);
            losses.push_out(self.history.0[end].packet, &packet);
        }
    }

    fn dequeue(&mut self, now: Time, _losses: &mut Losses) -> Option<Packet> {
        let first = *self.history.queued().first()?;
        self.last = Moment { call: self.last.call + 1, time: now };
        let record = &mut self.history.0[first];
        record.left = Some(self.last);
        record.sent = true;
        Some(record.packet)
    }

    fn reconfigure(&mut self, _now: Time, _settings: &Settings, _place: Place) {
        // A twin is only ever set to what it is set to already.
    }

    fn backlog(&self) -> Backlog {
        let bytes = u64::try_from(self.history.queued_bytes()).unwrap_or(u64::MAX);
        Backlog { packets: self.history.queued().len() as u32, bytes: Bytes(bytes) }
    }

    fn flows_tracked(&self) -> usize {
        let mut flows: Vec<_> = self.history.0.iter().map(|record| record.packet.flow).collect();
        flows.sort_unstable();
        flows.dedup();
        flows.retain(|flow| self.rule.tracks(&self.history, self.last.time, *flow));
        flows.len()
    }
}
