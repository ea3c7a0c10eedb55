//! Links between nodes.
//!
//! A link is a queue, a sender and a wire. Its packets in flight wait in a
//! FIFO of their own, and only the first of them stands in the event queue.
//!
//! Two kinds of links cost no event for their queue. A link without a limit on
//! its FIFO knows at once when a packet will have left. And if such a link gets
//! all its packets from a single link in front of it, which delivers them in
//! order, it can know even before they arrive: packets are handed through
//! whole chains of such links as they enter the first ([`Link::fed_by_one`]).
//! Both are plain arithmetic on the same times. The one thing that can come out
//! otherwise is which of two packets goes first that reach a queue in the same
//! nanosecond.

use std::collections::VecDeque;
use std::sync::Arc;

use tidegate_core::discipline::Discipline;
use tidegate_core::discipline::fifo::Fifo;
use tidegate_core::egress::{Egress, Poll};
use tidegate_core::entry::{Medium, Place};
use tidegate_core::{Buffer, Bytes, Loss, Packet, Port, Rate, Span, Time};

use crate::air::{Air, Radio};
use crate::lot::{Lot, mix};
use crate::metrics::run_summary::Times;
use crate::routes::Routes;
use crate::scenario::{Capacity, DisciplineChoice, LinkSpec, NodeId, QueueSpec, Scenario};
use crate::trace::delivery::{Cursor, DeliveryTrace, OPPORTUNITY};

/// The place of a packet's record in the simulation's slab.
pub(crate) type SegmentId = u32;

/// A link with its queue.
pub(crate) struct Link {
    pub(crate) to: NodeId,
    pub(crate) queue: Queue,
    delay: Span,
    /// The share of packets that are lost on the wire, and what stands for the
    /// link where that is drawn.
    loss: f64,
    salt: u64,
    /// Packets on the wire, with the time at which they arrive and the host that each is
    /// for.
    pub(crate) in_flight: VecDeque<(Time, SegmentId, NodeId)>,
    /// All packets come from one link, in order: see the module's text.
    pub(crate) fed_by_one: bool,
    /// The class of a packet by the host that it is for, where the link tells them apart.
    classes: Option<Arc<[u16]>>,
}

/// What stands in front of a wire.
pub(crate) enum Queue {
    /// FIFO without a limit.
    Unbounded {
        /// How fast it sends; `None` without any limit.
        rate: Option<Rate>,
        /// Until when what has come so far will be sent.
        busy_until: Time,
    },
    /// A discipline.
    Scheduled(Box<Scheduled>),
}

/// A discipline with its way out.
pub(crate) struct Scheduled {
    exit: Exit,
    /// Where it contends for the medium of a cell.
    pub(crate) radio: Option<Radio>,
    /// How long the medium was busy for it, if it contends for one.
    pub(crate) airtime: Span,
    /// Whether an event will come when the next packet may leave.
    pub(crate) wakes: bool,
    /// Time in the queue of every packet sent.
    pub(crate) delay: Times,
}

/// How packets become time.
enum Exit {
    /// Over a wire of a constant rate.
    Wire(Egress),
    /// Over a wire whose capacity varies.
    Trace(Port, TraceSender),
    /// At once: a medium, or the discipline itself, holds packets back. The rate is that
    /// of either.
    Paced(Port, Rate),
}

impl Link {
    fn new(
        spec: &LinkSpec,
        tested: &DisciplineChoice,
        seed: u64,
        index: u64,
        fed_by_one: bool,
        radio: Option<Radio>,
    ) -> Link {
        let scheduled = |exit| {
            Queue::Scheduled(Box::new(Scheduled {
                exit,
                radio,
                airtime: Span::ZERO,
                wakes: false,
                delay: Times::default(),
            }))
        };
        let medium = match &spec.capacity {
            Capacity::Uplink(_) | Capacity::Downlink(_) => Medium::Radio,
            Capacity::Unlimited | Capacity::Fixed(_) | Capacity::Trace(_) => Medium::Wire,
        };
        // Without the rate: what is compared are the disciplines with their settings.
        let place = |buffer: Buffer| Place { medium, ..buffer.into() };
        let discipline: Option<Box<dyn Discipline>> = match &spec.queue {
            QueueSpec::Shaped(shaper) => Some(shaper.build(seed)),
            QueueSpec::Tested(buffer) => Some(tested.build(place(*buffer), seed)),
            QueueSpec::Fixed(choice, buffer) => Some(choice.build(place(*buffer), seed)),
            QueueSpec::Unbounded => None,
        };
        let endless = || Box::new(Fifo::new(Buffer::packets(u32::MAX)));
        let queue = match (&spec.capacity, discipline) {
            // Where no rate limits a link nothing ever waits, unless its queue is a shaper.
            (Capacity::Unlimited, discipline) => {
                match discipline.and_then(|it| it.rate().map(|rate| (it, rate))) {
                    Some((shaper, rate)) => scheduled(Exit::Paced(Port::new(shaper), rate)),
                    None => Queue::Unbounded { rate: None, busy_until: Time::ZERO },
                }
            }
            (Capacity::Fixed(rate), Some(discipline)) => {
                scheduled(Exit::Wire(Egress::new(discipline, *rate)))
            }
            (Capacity::Fixed(rate), None) => {
                Queue::Unbounded { rate: Some(*rate), busy_until: Time::ZERO }
            }
            (Capacity::Trace(trace), discipline) => {
                let port = Port::new(discipline.unwrap_or_else(|| endless()));
                scheduled(Exit::Trace(port, TraceSender::new(trace.clone())))
            }
            (Capacity::Uplink(_) | Capacity::Downlink(_), discipline) => {
                let port = Port::new(discipline.unwrap_or_else(|| endless()));
                let rate = spec.capacity.rate().unwrap_or_default();
                scheduled(Exit::Paced(port, rate))
            }
        };
        let classes = match &spec.queue {
            QueueSpec::Shaped(shaper) => Some(shaper.classes.clone()),
            _ => None,
        };
        Link {
            to: spec.to,
            queue,
            delay: spec.delay,
            loss: spec.loss,
            salt: mix(seed ^ mix(index)),
            in_flight: VecDeque::new(),
            fed_by_one,
            classes,
        }
    }

    /// The class of a packet for `destination` that comes with a class of its own.
    pub(crate) fn class(&self, destination: NodeId, own: u16) -> u16 {
        let Some(classes) = &self.classes else { return own };
        classes.get(usize::from(destination.0)).copied().unwrap_or(own)
    }

    /// Whether a packet with this lot is lost on the wire.
    #[inline]
    pub(crate) fn loses(&self, lot: Lot) -> bool {
        self.loss > 0.0 && lot.falls(self.salt, self.loss)
    }

    /// The time of arrival at the far end of a packet whose last bit leaves at `sent`.
    pub(crate) fn arrival(&self, sent: Time) -> Time {
        sent + self.delay
    }
}

impl Queue {
    /// When the last bit of a packet that arrives `now` will have left; for
    /// queues without a limit.
    pub(crate) fn pass(&mut self, now: Time, size: Bytes) -> Option<Time> {
        match self {
            Queue::Unbounded { rate, busy_until } => {
                let start = now.max(*busy_until);
                *busy_until = rate.map_or(start, |rate| start + rate.transmission(size));
                Some(*busy_until)
            }
            Queue::Scheduled(_) => None,
        }
    }
}

impl Scheduled {
    /// The queue and its counters.
    pub(crate) fn port(&self) -> &Port {
        match &self.exit {
            Exit::Wire(egress) => egress.port(),
            Exit::Trace(port, _) | Exit::Paced(port, _) => port,
        }
    }

    /// Hands in a packet that has arrived at `now`; returns the packets lost over it.
    pub(crate) fn offer(&mut self, now: Time, packet: Packet) -> &[Loss] {
        match &mut self.exit {
            Exit::Wire(egress) => egress.offer(now, packet),
            Exit::Trace(port, _) | Exit::Paced(port, _) => port.offer(now, packet),
        }
    }

    /// The earliest time from `now` on at which a packet may leave; `None` while none
    /// waits.
    pub(crate) fn next_ready(&mut self, now: Time) -> Option<Time> {
        match &mut self.exit {
            Exit::Wire(egress) => egress.next_ready(now),
            Exit::Trace(port, sender) => port.next_ready(now).map(|at| sender.ready_at(at)),
            Exit::Paced(port, _) => port.next_ready(now),
        }
    }

    /// Takes the next packet, with the time at which its last bit will have left.
    /// `None` when none may leave after all: the discipline has lost those that waited.
    pub(crate) fn send(&mut self, now: Time) -> Option<(Packet, Time)> {
        match &mut self.exit {
            Exit::Wire(egress) => match egress.poll(now) {
                Poll::Packet { packet, sent } => Some((packet, sent)),
                Poll::ReadyAt(_) | Poll::Idle => None,
            },
            Exit::Trace(port, sender) => {
                let packet = port.take(now)?;
                Some((packet, sender.send(packet.size)))
            }
            Exit::Paced(port, _) => port.take(now).map(|packet| (packet, now)),
        }
    }

    /// What it has used of `span`: `sent` over what could have been sent, or the time
    /// of its medium.
    pub(crate) fn utilisation(&self, sent: Bytes, span: Span) -> f64 {
        if self.radio.is_some() {
            return self.airtime.as_seconds() / span.max(Span(1)).as_seconds();
        }
        let rate = match &self.exit {
            Exit::Wire(egress) => egress.rate(),
            Exit::Trace(_, sender) => sender.trace.mean_rate(),
            Exit::Paced(_, rate) => *rate,
        };
        sent.0 as f64 / rate.volume(span).0.max(1) as f64
    }
}

/// Sends at the opportunities of a trace. What is left of an opportunity goes
/// to the next packet if that one is already waiting; a packet larger than
/// what is left goes on at the next opportunity.
struct TraceSender {
    trace: Arc<DeliveryTrace>,
    cursor: Cursor,
    /// The opportunity in use, and what is left of it.
    at: Time,
    left: Bytes,
}

impl TraceSender {
    fn new(trace: Arc<DeliveryTrace>) -> TraceSender {
        let cursor = trace.cursor();
        TraceSender { trace, cursor, at: Time::ZERO, left: Bytes::ZERO }
    }

    /// The opportunity for a packet that may leave at `from`, but not before the last
    /// one has left.
    fn ready_at(&mut self, from: Time) -> Time {
        let from = from.max(self.at);
        if self.at < from || self.left == Bytes::ZERO {
            self.take_opportunity(from);
        }
        self.at
    }

    fn take_opportunity(&mut self, from: Time) {
        self.at = self.cursor.next_opportunity(&self.trace, from);
        self.left = OPPORTUNITY;
    }

    fn send(&mut self, size: Bytes) -> Time {
        let mut rest = size;
        while rest > self.left {
            rest -= self.left;
            self.take_opportunity(self.at);
        }
        self.left -= rest;
        self.at
    }
}

/// All links, and which one leads where.
pub(crate) struct Network {
    pub(crate) links: Vec<Link>,
    pub(crate) airs: Vec<Air>,
    routes: Routes,
}

impl Network {
    /// The network of `scenario` with `tested` in the tested places.
    pub(crate) fn new(scenario: &Scenario, tested: &DisciplineChoice, seed: u64) -> Network {
        let routes = Routes::new(scenario.nodes.len(), &scenario.links);
        let airs = Air::all(scenario, &routes, seed);
        let link = |((spec, fed_by_one), index): ((&LinkSpec, bool), usize)| {
            let radio = Radio::of_link(&airs, index);
            Link::new(spec, tested, seed, index as u64, fed_by_one, radio)
        };
        let links =
            std::iter::zip(&scenario.links, fed_by_one(scenario, &routes)).zip(0..).map(link);
        Network { links: links.collect(), airs, routes }
    }

    /// The link to take at `node` towards `destination`.
    ///
    /// # Panics
    /// When there is none; scenarios are checked for that as they are read.
    pub(crate) fn next_link(&self, node: NodeId, destination: NodeId) -> usize {
        let link = self.routes.link(node, destination);
        link.expect("the scenario has a route between the ends of its traffic")
    }
}

/// For each link, whether all its packets come from one and the same link.
fn fed_by_one(scenario: &Scenario, routes: &Routes) -> Vec<bool> {
    /// What is known of where a link's packets come from.
    #[derive(Clone, Copy, PartialEq)]
    enum Feeder {
        Unused,
        Link(usize),
        HostOrSeveral,
    }
    let mut feeders = vec![Feeder::Unused; scenario.links.len()];
    for (from, to) in scenario.pairs() {
        let mut feeder = Feeder::HostOrSeveral;
        let mut node = from;
        while node != to
            && let Some(link) = routes.link(node, to)
        {
            let known = &mut feeders[link];
            *known = if [Feeder::Unused, feeder].contains(known) {
                feeder
            } else {
                Feeder::HostOrSeveral
            };
            feeder = Feeder::Link(link);
            node = scenario.links[link].to;
        }
    }
    feeders.iter().map(|feeder| matches!(feeder, Feeder::Link(_))).collect()
}
