//! Promises policed and deadlines derived by their definitions, over the whole
//! past.
//!
//! A packet keeps to its contract if no stretch of time that ends with it exceeds
//! the arrival curve. A best-effort deadline is the least with which all best
//! effort since the queue was last empty fits under the curve of what is left (`BE
//! section 3`, the exact assignment), or under its approximation.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::assignment::fit::{origin_line, shifted_line, two_segments};
use tidegate_core::assignment::{Scheme, Typical};
use tidegate_core::contract::{Contracts, Service};
use tidegate_core::curve::{Curve, PER_BYTE};
use tidegate_core::entry::Place;
use tidegate_core::residual::{Residual, SMALLEST_PACKET};
use tidegate_core::setting::Settings;
use tidegate_core::{
    Backlog, Buffer, Bytes, Discipline, FlowKey, LossReason, Losses, Packet, Span, Time,
};

pub(super) struct Deadlines {
    contracts: Arc<Contracts>,
    /// `None`: best effort when idle.
    scheme: Option<Scheme>,
    /// What best effort is fitted under.
    capacity: Curve,
    drops_excess: bool,
    buffer: Buffer,
    /// Everything that was ever taken in, in order of arrival.
    records: Vec<Record>,
    /// The last tag of each 5-tuple with packets queued.
    flow_tags: BTreeMap<FlowKey, u128>,
    /// Best effort since the queue was last empty: when a packet became the head,
    /// and its size.
    history: Vec<(Time, Bytes)>,
    /// When the last head was chosen and how long it had, for the scheme that
    /// looks no further back.
    last: Option<(Time, Span)>,
    virtual_time: u128,
    busy_until: Time,
}

struct Record {
    packet: Packet,
    contract: Option<usize>,
    real_time: bool,
    /// Of best effort once it is the head.
    deadline: Option<Time>,
    /// Whether that is later than assigned.
    put_off: bool,
    /// Of best effort, the latest deadline of the real-time packets of its 5-tuple that
    /// it found.
    after: Time,
    tag: u128,
    queued: bool,
}

impl Deadlines {
    pub(super) fn boxed(settings: &Settings, buffer: Buffer) -> Box<dyn Discipline> {
        let contracts = settings.contracts("flows");
        let residual = Residual::new(&contracts).expect("the settings were checked");
        let scheme: Option<Scheme> = settings.choice("assignment").parse().ok();
        let packet = contracts.largest_packet;
        let typical = Typical { packet, burst: packet * settings.count("burst").into() };
        let effective = residual.effective();
        let capacity = match scheme {
            None | Some(Scheme::Exact) => effective.clone(),
            Some(Scheme::Bounded) => {
                let straight = effective.line_below_from(effective.tail());
                straight.least_from_here_on().expect("it rises")
            }
            Some(Scheme::Tight) => {
                let in_order = residual.in_order();
                let straight = in_order.line_below_from(in_order.tail());
                straight.least_from_here_on().expect("it rises")
            }
            Some(Scheme::OriginLine) => Curve::rate(origin_line(effective)),
            Some(Scheme::ShiftedLine) => shifted_line(effective, typical).curve(),
            Some(Scheme::TwoSegments | Scheme::ConstantState) => {
                two_segments(effective, typical).curve()
            }
        };
        Box::new(Deadlines {
            contracts,
            scheme,
            capacity,
            drops_excess: settings.choice("excess") == "drop",
            buffer,
            records: Vec::new(),
            flow_tags: BTreeMap::new(),
            history: Vec::new(),
            last: None,
            virtual_time: 0,
            busy_until: Time::ZERO,
        })
    }

    fn queued(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(|record| record.queued)
    }

    fn backlog_of(&self, counted: impl Fn(&Record) -> bool) -> Backlog {
        let mut backlog = Backlog::default();
        self.queued().filter(|r| counted(r)).for_each(|r| backlog.add(r.packet.size));
        backlog
    }

    /// Bytes that a packet counts for.
    fn counted(size: Bytes) -> i128 {
        i128::from(size.max(SMALLEST_PACKET).0)
    }

    fn conforms(&self, now: Time, contract: usize, size: Bytes) -> bool {
        let Service::RealTime { envelope, .. } = &self.contracts.flows[contract].service else {
            return false;
        };
        let curve = envelope.curve().expect("the settings were checked");
        let mut bytes = Self::counted(size);
        let own = curve.value(0) >= bytes * PER_BYTE;
        let before = self.records.iter().rev();
        own && before.filter(|r| r.real_time && r.contract == Some(contract)).all(|record| {
            bytes += Self::counted(record.packet.size);
            curve.value(now.since(record.packet.arrived).0) >= bytes * PER_BYTE
        })
    }

    fn promise(&self, contract: Option<usize>) -> Option<Span> {
        match self.contracts.flows[contract?].service {
            Service::RealTime { deadline, .. } => Some(deadline),
            Service::BestEffort { .. } => None,
        }
    }

    fn tag(&self, packet: &Packet, contract: Option<usize>) -> u128 {
        let shares = contract.is_some() && self.promise(contract).is_none();
        let mut best_effort = self.records.iter().filter(|record| !record.real_time);
        let last_of_contract = best_effort.rfind(|record| record.contract == contract);
        let last_of_contract = last_of_contract.map_or(0, |record| record.tag);
        let last_of_flow = self.flow_tags.get(&packet.flow).copied().unwrap_or(0);
        let weight = match contract.map(|contract| &self.contracts.flows[contract].service) {
            Some(Service::BestEffort { weight }) => *weight,
            _ => 1,
        };
        let before =
            self.virtual_time.max(last_of_flow).max(if shares { last_of_contract } else { 0 });
        before + (u128::from(packet.size.0) << 32) / u128::from(weight)
    }

    /// Forgets the tags of 5-tuples that have nothing queued.
    fn forget_flows(&mut self) {
        let queued: Vec<_> = self.queued().map(|record| record.packet.flow).collect();
        self.flow_tags.retain(|flow, _| queued.contains(flow));
    }

    fn head(&self) -> Option<usize> {
        self.records.iter().position(|record| record.queued && record.deadline.is_some())
    }

    fn choose_head(&mut self, now: Time) {
        let waiting = (0..self.records.len())
            .filter(|i| self.records[*i].queued && !self.records[*i].real_time)
            .min_by_key(|i| (self.records[*i].tag, *i));
        let (None, Some(next)) = (self.head(), waiting) else { return };
        let Record { packet, tag, .. } = self.records[next];
        self.virtual_time = tag;
        self.history.push((now, packet.size));
        let assigned = self.deadline(now);
        let waits = self.queued().any(|r| r.real_time && r.packet.flow == packet.flow);
        let before = if waits { self.records[next].after } else { Time::ZERO };
        self.records[next].deadline = Some(assigned.max(before));
        self.records[next].put_off = before > assigned;
    }

    /// The deadline of the last packet of the history.
    fn deadline(&mut self, now: Time) -> Time {
        let reached = |amount: i128| Span(self.capacity.first_reaching(amount).unwrap_or(u64::MAX));
        let own = self.history.last().map_or(0, |(_, size)| Self::counted(*size) * PER_BYTE);
        match self.scheme {
            None => Time::FAR_FUTURE,
            Some(Scheme::ConstantState) => {
                let behind = self.last.map_or(Time::ZERO, |(arrived, relative)| {
                    arrived + reached(self.capacity.value(relative.0) + own)
                });
                let deadline = (now + reached(own)).max(behind);
                self.last = Some((now, deadline.since(now)));
                deadline
            }
            _ => {
                let mut demand = 0;
                let fits = self.history.iter().rev().map(|(arrived, size)| {
                    demand += Self::counted(*size) * PER_BYTE;
                    *arrived + reached(demand)
                });
                fits.max().expect("the history has this packet")
            }
        }
    }

    fn due(&self, record: &Record) -> Option<Time> {
        if record.real_time {
            Some(record.packet.arrived + self.promise(record.contract)?)
        } else {
            record.deadline
        }
    }
}

impl Discipline for Deadlines {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        if packet.size > self.contracts.largest_packet {
            return losses.push(packet, LossReason::Excess);
        }
        if self.scheme == Some(Scheme::Tight)
            && self.queued().next().is_none()
            && now >= self.busy_until
        {
            self.history.clear();
        }
        let contract = self.contracts.flow_of(&packet);
        let of_flow = |r: &Record| !r.real_time && r.packet.flow == packet.flow;
        let follows = self.queued().any(|r| of_flow(r) && self.promise(r.contract).is_none());
        let mut record = Record {
            packet,
            contract,
            real_time: false,
            deadline: None,
            put_off: false,
            after: Time::ZERO,
            tag: 0,
            queued: true,
        };
        if self.promise(contract).is_some() && !follows {
            if !self.buffer.has_room(self.backlog_of(|r| r.real_time), packet.size) {
                return losses.push(packet, LossReason::Refused);
            }
            if contract.is_some_and(|contract| self.conforms(now, contract, packet.size)) {
                while !self.buffer.has_room(self.backlog(), packet.size) {
                    let victim = (0..self.records.len())
                        .filter(|i| self.records[*i].queued && !self.records[*i].real_time)
                        .max_by_key(|i| (self.records[*i].tag, *i))
                        .expect("without best effort there is room");
                    self.records[victim].queued = false;
                    losses.push_out(self.records[victim].packet, &packet);
                }
                self.forget_flows();
                record.real_time = true;
                self.records.push(record);
                return;
            }
            if self.drops_excess {
                return losses.push(packet, LossReason::Excess);
            }
        }
        if !self.buffer.has_room(self.backlog(), packet.size) {
            return losses.push(packet, LossReason::Refused);
        }
        let found = self.queued().filter(|r| r.real_time && r.packet.flow == packet.flow);
        record.after = found.filter_map(|r| self.due(r)).max().unwrap_or(Time::ZERO);
        record.tag = self.tag(&packet, contract);
        self.flow_tags.insert(packet.flow, record.tag);
        self.records.push(record);
        self.choose_head(now);
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        // Real time comes before best effort with the same deadline.
        let next = (0..self.records.len())
            .filter(|i| self.records[*i].queued)
            .filter_map(|i| Some((self.due(&self.records[i])?, !self.records[i].real_time, i)))
            .min()?
            .2;
        self.records[next].queued = false;
        let packet = self.records[next].packet;
        if self.records[next].real_time {
            let is_promised = |r: &Record| !r.real_time && self.promise(r.contract).is_some();
            let overtaken: Vec<usize> = (0..next)
                .filter(|i| self.records[*i].queued && is_promised(&self.records[*i]))
                .filter(|i| self.records[*i].packet.flow == packet.flow)
                .collect();
            for index in overtaken {
                self.records[index].queued = false;
                losses.push(self.records[index].packet, LossReason::Excess);
            }
        }
        if self.scheme == Some(Scheme::Tight) && self.records[next].put_off {
            self.history.push((now, packet.size));
        }
        self.forget_flows();
        self.choose_head(now);
        self.busy_until = self.busy_until.max(now) + self.contracts.link.transmission(packet.size);
        if self.scheme != Some(Scheme::Tight) && self.queued().next().is_none() {
            self.history.clear();
            self.last = None;
        }
        Some(packet)
    }

    fn reconfigure(&mut self, _now: Time, _settings: &Settings, _place: Place) {
        // A twin is only ever set to what it is set to already.
    }

    fn backlog(&self) -> Backlog {
        self.backlog_of(|_| true)
    }

    fn flows_tracked(&self) -> usize {
        let mut flows: Vec<_> = self.queued().map(|record| record.packet.flow).collect();
        flows.sort_unstable();
        flows.dedup();
        flows.len()
    }
}
