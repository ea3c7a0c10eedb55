//! The queues of a tin, and whose turn it is: deficit round robin in which a queue that
//! was idle goes first (`CAKE section III.B`, and Linux 7.3, `cake_dequeue`).
//!
//! A queue is
//! - *sparse* from its first packet on until it has used up a quantum: it goes before
//!   busy ones;
//! - *busy* while it takes turns with others, and counts for its hosts;
//! - *waiting* if it used up its quantum with its last packet: it will have a turn among
//!   the busy ones, but counts for nobody until it has a packet again;
//! - *decaying* once its turn came and it had no packet, for as long as COBALT's state
//!   has something to forget, but an interval at least. A packet makes it sparse again,
//!   with a new quantum.
//!
//! Each time that a packet is asked for, one decaying queue forgets a step. So a queue
//! belongs to its flow for an interval after its last packet. A queue that is found
//! empty with a part of its quantum left does not wait for a round, as it does in
//! `RFC 8290`: a flow that sends less than a quantum at a time, and the next only after
//! that has left, goes first every time.
//!
//! A quantum is divided by the load of the queue's hosts, counted in 2^-16 of a byte. It
//! may be small compared with a packet; whole rounds in which all busy queues only gather
//! credits are then computed and not walked through.

use super::Lane;
use super::cobalt::CobaltParameters;
use super::hosts::{Hosts, Isolation};
use crate::discipline::flow_queues::{FlowQueues, Rotation};
use crate::packet::FlowKey;
use crate::units::Time;

/// What a queue is to its tin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    #[default]
    Idle,
    Sparse,
    Busy,
    Waiting,
    Decaying,
}

/// The queues of a tin by number, in the order of their turns.
#[derive(Debug)]
pub(super) struct Flows {
    sparse: Rotation,
    /// Busy ones, and those that wait.
    busy: Rotation,
    decaying: Rotation,
    pub(super) hosts: Hosts,
    /// In credits.
    quantum: u32,
}

impl Flows {
    /// No queues yet; hashes depend on `seed`.
    pub(super) fn new(seed: u64) -> Flows {
        Flows {
            sparse: Rotation::default(),
            busy: Rotation::default(),
            decaying: Rotation::default(),
            hosts: Hosts::new(seed),
            quantum: 0,
        }
    }

    /// Sets the quantum of a queue that is alone with its hosts.
    pub(super) fn set_quantum(&mut self, credits: u32) {
        self.quantum = credits;
    }

    /// Queues that have turns or have something to forget.
    pub(super) fn active(&self) -> usize {
        self.sparse.len() + self.busy.len() + self.decaying.len()
    }

    /// Whether there are queues with turns: all that have packets are among them.
    pub(super) fn have_turns(&self) -> bool {
        self.sparse.len() + self.busy.len() > 0
    }

    /// A queue without packets becomes that of a flow.
    pub(super) fn claim(
        &mut self,
        lane: &mut Lane,
        hash: u64,
        isolation: Isolation,
        flow: FlowKey,
    ) {
        let is_busy = lane.standing == Standing::Busy;
        if is_busy {
            self.hosts.relieve(lane.hosts);
        }
        let hosts = self.hosts.join(isolation, flow);
        self.hosts.leave(std::mem::replace(&mut lane.hosts, hosts));
        if is_busy {
            self.hosts.burden(lane.hosts);
        }
        lane.tag = Some(hash);
        lane.is_shared = false;
    }

    /// A packet has come to a queue.
    pub(super) fn arrived(&mut self, lane: &mut Lane, queue: u32) {
        match lane.standing {
            Standing::Sparse | Standing::Busy => return,
            Standing::Waiting => {
                lane.standing = Standing::Busy;
                return self.hosts.burden(lane.hosts);
            }
            Standing::Decaying => self.decaying.remove(queue),
            Standing::Idle => {}
        }
        lane.standing = Standing::Sparse;
        lane.credits = self.share(lane);
        self.sparse.push_back(queue);
    }

    /// The queue whose turn it is, which may be empty; some queue has turns. The first
    /// time that a packet is asked for, `looks` is true, and a decaying one comes first.
    pub(super) fn next(&mut self, queues: &mut FlowQueues<Lane>, looks: bool) -> u32 {
        if let Some(queue) = self.decaying.first().filter(|_| looks) {
            return queue;
        }
        let mut waiting = 0;
        loop {
            let first = self.sparse.first().or(self.busy.first());
            let queue = first.expect("a tin with turns was chosen");
            let is_empty = queues.is_empty(queue);
            let lane = queues.state(queue);
            if lane.credits > 0 {
                return queue;
            }
            if lane.standing == Standing::Sparse {
                lane.standing = if is_empty { Standing::Waiting } else { Standing::Busy };
                if !is_empty {
                    self.hosts.burden(lane.hosts);
                }
                lane.credits += self.share(lane);
                self.sparse.remove(queue);
                self.busy.push_back(queue);
                continue;
            }
            lane.credits += self.share(lane);
            self.busy.rotate();
            waiting += 1;
            if waiting == self.busy.len() {
                self.skip_rounds(queues);
                waiting = 0;
            }
        }
    }

    /// The queue's turn came at `now`, and it has no packet.
    pub(super) fn found_empty(
        &mut self,
        lane: &mut Lane,
        queue: u32,
        cobalt: &CobaltParameters,
        now: Time,
    ) {
        lane.cobalt.found_empty(cobalt, now);
        match lane.standing {
            Standing::Sparse => self.sparse.remove(queue),
            Standing::Decaying => self.decaying.remove(queue),
            _ => self.busy.remove(queue),
        }
        if lane.standing == Standing::Busy {
            self.hosts.relieve(lane.hosts);
        }
        if lane.cobalt.is_at_rest(now) {
            lane.standing = Standing::Idle;
            self.hosts.leave(std::mem::take(&mut lane.hosts));
        } else {
            lane.standing = Standing::Decaying;
            self.decaying.push_back(queue);
        }
    }

    /// A queue's part of the quantum. A busy host's queues take many turns for a packet,
    /// so this is computed in 32 bits.
    fn share(&mut self, lane: &Lane) -> i128 {
        (self.quantum / self.hosts.load(lane.hosts)).into()
    }

    /// A round has just ended in which no busy queue had credits: gives them the quanta
    /// of all further rounds of that kind.
    fn skip_rounds(&mut self, queues: &mut FlowQueues<Lane>) {
        let mut rounds = i128::MAX;
        for _ in 0..self.busy.len() {
            let Some(queue) = self.busy.first() else { return };
            let lane = queues.state(queue);
            let share = self.share(lane);
            // Rounded up; a queue that has credits needs none.
            rounds = rounds.min((1 - lane.credits + share - 1) / share).max(0);
            self.busy.rotate();
        }
        for _ in 0..self.busy.len() {
            let Some(queue) = self.busy.first() else { return };
            let lane = queues.state(queue);
            lane.credits += rounds * self.share(lane);
            self.busy.rotate();
        }
    }
}
