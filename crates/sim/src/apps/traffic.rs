//! The sources of a scenario at work: they open transfers and send datagrams.
//!
//! One program represents all hosts of a scenario's traffic. A source decides
//! when something begins; the two ends of a transfer decide how it continues.

use std::collections::VecDeque;

use slab::Slab;
use tidegate_core::Bytes;

use super::App;
use super::account::Asked;
use super::quic::QuicTransfers;
use super::senders::Senders;
use super::transfer::Transferring;
use crate::connections::{AppId, Connection, ConnectionId, Opening, Over, Side};
use crate::quic::{QuicConnection, QuicId};
use crate::scenario::{MOST_OPEN, Marking, NodeId, Opener, Scenario};
use crate::simulation::World;
use crate::traffic::{self, Action, Source};

/// The programs of all transfers and streams of datagrams.
pub(crate) struct Traffic {
    sources: Vec<Box<dyn Source>>,
    /// The senders of each source, if it opens transfers.
    senders: Vec<Option<Senders>>,
    /// Transfers begun so far, by source.
    begun: Vec<u64>,
    transfers: Slab<Transferring>,
    /// Transfers whose time has come, but which find no place among [`MOST_OPEN`];
    /// they take the places in this order.
    waiting: VecDeque<Asked>,
    /// Transfers whose progress is recorded, oldest first.
    followed: Vec<usize>,
    /// Those that QUIC carries.
    quic: QuicTransfers,
    /// Reused for every event.
    actions: Vec<Action>,
}

impl Traffic {
    pub(crate) fn new(scenario: &Scenario, seed: u64) -> Traffic {
        let sources = scenario.traffic.iter().enumerate();
        let sources: Vec<_> =
            sources.map(|(index, spec)| traffic::source(spec, seed, index)).collect();
        let senders = scenario.traffic.iter().enumerate().map(|(index, spec)| {
            let transfer = spec.kind.transfer()?;
            Some(Senders::new(&transfer.tcp, seed, index))
        });
        Traffic {
            senders: senders.collect(),
            begun: vec![0; sources.len()],
            sources,
            transfers: Slab::new(),
            waiting: VecDeque::new(),
            followed: Vec::new(),
            quic: QuicTransfers::new(scenario),
            actions: Vec::new(),
        }
    }

    /// The sources.
    pub(crate) fn sources(&self) -> &[Box<dyn Source>] {
        &self.sources
    }

    /// A source asks for a transfer: it begins if there is a place for it.
    fn ask(
        &mut self,
        world: &mut World<'_>,
        traffic: usize,
        (from, to): (NodeId, NodeId),
        size: Option<Bytes>,
    ) {
        let number = self.begun[traffic];
        self.begun[traffic] += 1;
        let asked = Asked { at: world.now(), size, traffic: traffic as u32, number, from, to };
        if self.quic.carries(traffic) {
            self.quic.ask(world, asked);
        } else if self.transfers.len() < MOST_OPEN as usize {
            self.open(world, asked);
        } else {
            world.summary.waited += 1;
            self.waiting.push_back(asked);
        }
    }

    fn open(&mut self, world: &mut World<'_>, asked: Asked) {
        let spec = &world.scenario.traffic[asked.traffic as usize];
        let transfer = spec.kind.transfer().expect("a source of connections");
        let (class, Marking { sender, receiver }) = (spec.class, spec.marking);
        let slot = self.transfers.vacant_entry();
        let tag = slot.key();
        let Asked { from, to, number, .. } = asked;
        let senders = self.senders[asked.traffic as usize].as_ref();
        let tcp = senders.expect("a source of connections").of(number);
        let connection = world.open(&Opening {
            nodes: match transfer.opened_by {
                Opener::Sender => [from, to],
                Opener::Receiver { .. } => [to, from],
            },
            tcp: [tcp.clone(), tcp.clone()],
            apps: [AppId::Traffic; 2],
            class,
            dscp: match transfer.opened_by {
                Opener::Sender => [sender, receiver],
                Opener::Receiver { .. } => [receiver, sender],
            },
            tag: tag as u64,
        });
        let congestion = tcp.congestion;
        slot.insert(Transferring::begin(world, connection, transfer, congestion, asked));
        if transfer.follow {
            self.followed.push(tag);
        }
        world.act(connection, Side::Opener);
    }

    /// Something may have happened at a side of a QUIC connection: its program acts.
    pub(crate) fn on_quic(&mut self, world: &mut World<'_>, id: QuicId, side: Side) {
        let now = world.now();
        if let Some(connection) = world.quic.live(id) {
            self.quic.on_activity(now, connection, side);
        }
    }

    /// A QUIC connection has ended.
    pub(crate) fn on_quic_over(&mut self, world: &mut World<'_>, connection: QuicConnection) {
        self.quic.on_over(world, connection);
    }

    pub(crate) fn sample(&mut self, world: &mut World<'_>) {
        let now = world.now();
        self.quic.sample(world);
        for tag in &self.followed {
            let transfer = &self.transfers[*tag];
            let Some(connection) = world.connections.live(transfer.connection) else { continue };
            let row = transfer.progress(now, connection);
            world.recorder.progress(&row);
            world.summary.progress.push(row);
        }
    }

    pub(crate) fn forget_warm_up(&mut self, world: &mut World<'_>) {
        self.quic.forget_warm_up(world);
        self.transfers.iter_mut().for_each(|(_, transfer)| transfer.forget_warm_up(world));
        let endless = self.waiting.iter_mut().filter(|asked| asked.size.is_none());
        endless.for_each(|asked| asked.at = world.now());
    }

    /// Reports the flows that are cut off, by source and number.
    pub(crate) fn finish(&mut self, world: &mut World<'_>) {
        let mut cut_off: Vec<Transferring> = self.transfers.drain().collect();
        cut_off.sort_by_key(|transfer| (transfer.account.traffic, transfer.account.number));
        for transfer in cut_off {
            let mut connection = world.connections.remove(transfer.connection);
            report(world, &transfer, &mut connection, false);
        }
        let now = world.now();
        for asked in self.waiting.drain(..) {
            world.report(&asked.record(now), now);
        }
        self.quic.finish(world);
    }
}

impl App for Traffic {
    fn start(&mut self, world: &mut World<'_>) {
        for (index, source) in self.sources.iter_mut().enumerate() {
            if let Some(first) = source.first() {
                world.wake(AppId::Traffic, first, index as u64);
            }
        }
    }

    /// The source of this number acts.
    fn on_wake(&mut self, world: &mut World<'_>, index: u64) {
        let traffic = index as usize;
        let mut actions = std::mem::take(&mut self.actions);
        if let Some(next) = self.sources[traffic].wake(world.now(), &mut actions) {
            world.wake(AppId::Traffic, next, index);
        }
        for action in actions.drain(..) {
            match action {
                Action::Open { from, to, size } => self.ask(world, traffic, (from, to), size),
                Action::Send(datagram) => world.send_datagram(traffic, &datagram),
            }
        }
        self.actions = actions;
    }

    fn on_segment(&mut self, world: &mut World<'_>, id: ConnectionId, side: Side) -> bool {
        let now = world.now();
        let Some(connection) = world.connections.live(id) else { return false };
        let transfer = &mut self.transfers[connection.tag as usize];
        transfer.on_segment(now, connection.endpoint(side), side)
    }

    fn on_over(
        &mut self,
        world: &mut World<'_>,
        connection: &mut Connection,
        side: Side,
        over: Over,
    ) {
        // Both ends are here: one of them records the row.
        if side == Side::Opener {
            let tag = connection.tag as usize;
            let transfer = self.transfers.remove(tag);
            self.followed.retain(|followed| *followed != tag);
            report(world, &transfer, connection, over == Over::Closed);
            if let Some(next) = self.waiting.pop_front() {
                self.open(world, next);
            }
        }
    }
}

fn report(
    world: &mut World<'_>,
    transfer: &Transferring,
    connection: &mut Connection,
    finished: bool,
) {
    let row = transfer.record(world.now(), connection, finished);
    world.report_transfer(row);
}
