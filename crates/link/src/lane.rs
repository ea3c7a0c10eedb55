//! The queue of one direction: an egress, its settings, and its books.
//!
//! A lane knows neither bytes nor clock nor socket. Its owner names each packet by a
//! handle, and gets it back once: to be sent, or as lost. Time never goes back from one
//! call to the next.
//!
//! Some disciplines remember a flow for long after its last packet, as LAS does for 30 s. A
//! sender whose every packet has other ports would fill the memory of the machine in that
//! time, so beyond [`MOST_FLOWS`] the lane has the discipline forget sooner: what has been
//! silent for half of the time in which the table filled, and if that is not enough, all
//! that has nothing in the queue. To look through a full table takes under a millisecond.

use tidegate_core::port::Counters;
use tidegate_core::{Ecn, Egress, LossReason, Packet, Poll, Span, Time};

use crate::books::Books;
use crate::settings::Queue;
use crate::status::{Counts, LevelStatus, Lost, QueueStatus, Second};

/// Flows that a discipline may remember: as many as an address has ports. It is exceeded by
/// those that come until the discipline has looked, and by those with packets in the queue.
pub const MOST_FLOWS: usize = 65_536;
/// The parameters of disciplines that remember flows, and the shortest time between two looks.
const SWEEP: &str = "sweep";
const IDLE: &str = "idle";
const SHORTEST_SWEEP: Span = Span::millis(1);

/// A queue of one direction.
///
/// ```
/// use tidegate_core::framing::Framing;
/// use tidegate_core::{Buffer, Bytes, FlowKey, Packet, Rate, Time, registry};
/// use tidegate_link::Queue;
/// use tidegate_link::lane::{Lane, Step};
///
/// let entry = registry::find("efd").expect("EFD is registered");
/// let mut lane = Lane::new(
///     Queue {
///         entry,
///         settings: entry.settings(&[])?,
///         limit: Buffer::packets(300).into(),
///         rate: Rate(12_000_000),
///         framing: Framing::RAW,
///     },
///     1,
/// );
/// let flow = FlowKey::v4([10, 0, 0, 1], 443, [10, 0, 0, 2], 50_000, FlowKey::TCP);
/// let mut lost = Vec::new();
/// for handle in [7, 8] {
///     lane.offer(Time::ZERO, Packet::new(handle, flow, Bytes(1_500)), &mut lost);
/// }
/// assert_eq!(lane.poll(Time::ZERO, &mut lost), Step::Send { handle: 7, mark: false });
/// // 1 500 bytes take a millisecond.
/// assert_eq!(lane.poll(Time::ZERO, &mut lost), Step::Wait(Some(Time(1_000_000))));
/// assert!(lost.is_empty());
/// # Ok::<(), tidegate_core::setting::SettingError>(())
/// ```
pub struct Lane {
    queue: Queue,
    egress: Egress,
    waiting: Vec<Waiting>,
    /// Places in `waiting` that are free.
    free: Vec<u32>,
    arrived_bytes: u64,
    /// Packets that ever joined each level.
    enqueued: Vec<u64>,
    books: Books,
    crowd: Crowd,
}

/// Whether there are too many flows.
#[derive(Clone, Copy, Debug)]
enum Crowd {
    /// Not since this time.
    Fits(Time),
    /// Since then, flows that have been silent for so long are forgotten.
    Forgets(Time, Span),
}

/// A packet in the queue.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// The owner's name for it.
    handle: u64,
    ecn: Ecn,
    /// The level that it joined, if there are several.
    level: Option<u8>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this packet.
    Send {
        /// Its handle.
        handle: u64,
        /// Its sender is to be told of congestion: write CE into its header.
        mark: bool,
    },
    /// Poll again at this time, if there is one, and when a packet arrives.
    Wait(Option<Time>),
}

impl Lane {
    /// An empty queue; `seed` is that of its random stream and hash.
    #[must_use]
    pub fn new(queue: Queue, seed: u64) -> Lane {
        let place = tidegate_core::entry::Place::from(queue.buffer()).at_rate(queue.rate);
        let discipline = (queue.entry.build)(&queue.settings, place, seed);
        let books = Books::new(discipline.levels().len(), queue.rate);
        let enqueued = vec![0; discipline.levels().len()];
        Lane {
            egress: Egress::new(discipline, queue.rate),
            queue,
            waiting: Vec::new(),
            free: Vec::new(),
            arrived_bytes: 0,
            enqueued,
            books,
            crowd: Crowd::Fits(Time::ZERO),
        }
    }

    /// What the lane was told.
    #[must_use]
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Takes in a packet that arrives at `now`; its size is that of the IP packet. The
    /// handles of packets that are lost over it are added to `lost`.
    pub fn offer(&mut self, now: Time, mut packet: Packet, lost: &mut Vec<u64>) {
        packet.size = self.queue.framing.charge(packet.size);
        self.arrived_bytes += packet.size.0;
        let entry = Waiting { handle: packet.handle, ecn: packet.ecn, level: None };
        let place = match self.free.pop() {
            Some(place) => {
                self.waiting[place as usize] = entry;
                place
            }
            None => {
                self.waiting.push(entry);
                u32::try_from(self.waiting.len() - 1).expect("memory ends before that")
            }
        };
        packet.handle = place.into();
        self.egress.offer(now, packet);
        self.waiting[place as usize].level = self.level_joined();
        self.collect(lost);
        self.bound_flows(now);
    }

    /// Has the discipline forget flows if it remembers too many.
    fn bound_flows(&mut self, now: Time) {
        let is_full = self.egress.port().flows_tracked() > MOST_FLOWS;
        let idle = match self.crowd {
            Crowd::Fits(_) if !is_full => return,
            Crowd::Fits(since) => Span(now.since(since).0 / 2),
            Crowd::Forgets(..) if !is_full => {
                self.crowd = Crowd::Fits(now);
                let Queue { settings, .. } = &self.queue;
                return self.egress.reconfigure(now, settings, self.queue.buffer());
            }
            // It has not looked yet, or it has, and those that are left have packets queued.
            Crowd::Forgets(at, idle) if now.since(at) <= SHORTEST_SWEEP || idle == Span::ZERO => {
                return;
            }
            Crowd::Forgets(..) => Span::ZERO,
        };
        let Queue { entry, settings, .. } = &self.queue;
        if !entry.parameters.iter().any(|parameter| parameter.name == IDLE) {
            return;
        }
        let idle = idle.min(settings.span(IDLE));
        let words = [SHORTEST_SWEEP, idle].map(|span| format!("{} ns", span.0));
        let forgetful = entry.change(settings, &[(SWEEP, &words[0]), (IDLE, &words[1])]);
        let forgetful = forgetful.expect("both can be set, and are within their bounds");
        self.egress.reconfigure(now, &forgetful, self.queue.buffer());
        self.crowd = Crowd::Forgets(now, idle);
    }

    /// The level that has grown since the last call.
    fn level_joined(&mut self) -> Option<u8> {
        let levels = self.egress.port().levels().iter().map(|level| level.enqueued);
        let (index, (before, now)) = self
            .enqueued
            .iter_mut()
            .zip(levels)
            .enumerate()
            .find(|(_, (before, now))| **before < *now)?;
        *before = now;
        u8::try_from(index).ok()
    }

    /// What is to be done at `now`. The handles of packets that are lost on the way are
    /// added to `lost`.
    pub fn poll(&mut self, now: Time, lost: &mut Vec<u64>) -> Step {
        if now >= self.books.turns_at() {
            let port = self.egress.port();
            self.books.turn(now, self.queue.rate, port.counters(), port.backlog());
        }
        let step = self.egress.poll(now);
        self.collect(lost);
        match step {
            Poll::Packet { packet, .. } => {
                let place = packet.handle as u32;
                let Waiting { handle, ecn, level } = self.waiting[place as usize];
                self.free.push(place);
                self.books.sent(now, &packet, level.map(usize::from));
                Step::Send { handle, mark: packet.ecn == Ecn::Ce && ecn != Ecn::Ce }
            }
            Poll::ReadyAt(time) => Step::Wait(Some(time)),
            Poll::Idle => Step::Wait(None),
        }
    }

    /// Tells the owner what the last call lost.
    fn collect(&mut self, lost: &mut Vec<u64>) {
        for loss in self.egress.losses() {
            let place = loss.packet.handle as u32;
            self.free.push(place);
            lost.push(self.waiting[place as usize].handle);
        }
    }

    /// Adopts another queue from `now` on: no packet is lost by that, and each keeps its
    /// place.
    ///
    /// # Panics
    /// When the discipline is another one.
    pub fn change(&mut self, now: Time, queue: Queue) {
        assert_eq!(queue.entry.name, self.queue.entry.name, "a discipline cannot be changed");
        self.egress.set_rate(queue.rate);
        self.egress.reconfigure(now, &queue.settings, queue.buffer());
        self.books.rate_changed(queue.rate);
        self.queue = queue;
        self.crowd = Crowd::Fits(now);
    }

    /// What has gone through.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.egress.port().counters()
    }

    /// The whole seconds that ended after this one, since the start; at most ten minutes.
    pub fn history(&self, since_s: u64) -> impl Iterator<Item = &Second> {
        self.books.history(since_s)
    }

    /// The state at `now`, as far as a lane knows it.
    #[must_use]
    pub fn status(&self, now: Time) -> QueueStatus {
        let Queue { entry, limit, rate, framing, .. } = &self.queue;
        let port = self.egress.port();
        let counters = port.counters();
        let levels = port.levels().iter().enumerate().map(|(index, level)| LevelStatus {
            name: level.name.into(),
            queued_packets: level.backlog.packets,
            queued_bytes: level.backlog.bytes.0,
            enqueued_packets: level.enqueued,
            delay: self.books.delay_of_level(index),
        });
        QueueStatus {
            discipline: entry.name.into(),
            parameters: self.queue.parameters(),
            rate_bps: rate.0,
            buffer: limit.to_string(),
            framing: framing.to_string(),
            counts: Counts {
                arrived_packets: counters.offered,
                arrived_bytes: self.arrived_bytes,
                sent_packets: counters.delivered,
                sent_bytes: counters.delivered_bytes.0,
                marked_packets: counters.marked,
                lost: Lost {
                    refused: counters.lost_as(LossReason::Refused),
                    pushed_out: counters.lost_as(LossReason::PushedOut),
                    early: counters.lost_as(LossReason::Early),
                    superseded: counters.lost_as(LossReason::Superseded),
                    excess: counters.lost_as(LossReason::Excess),
                },
                ..Counts::default()
            },
            queued_packets: port.backlog().packets,
            queued_bytes: port.backlog().bytes.0,
            flows: port.flows_tracked(),
            flows_peak: counters.flows_peak,
            delay: self.books.delay(),
            delay_histogram: self.books.delay_histogram(),
            levels: levels.collect(),
            last_second: self.books.last_second(),
            top_flows: self.books.top_flows(now),
            ..QueueStatus::default()
        }
    }
}
