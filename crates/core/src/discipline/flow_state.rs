//! How long a discipline remembers a flow.
//!
//! [`Backlogged`] keeps an entry exactly while the flow has a packet in the queue;
//! [`Remembered`] keeps it until the flow has been idle for long. Both count the
//! packets that a flow has queued, for one reason: if an entry died before its
//! flow's last packet, the flow would start afresh and overtake its own past. As it
//! is, every packet that finds no entry is alone.

use crate::flow_table::{FlowId, FlowTable};
use crate::packet::FlowKey;
use crate::setting::{Kind, Parameter, Settings};
use crate::units::{Span, Time};

/// A table of flows that knows how many packets each of them has queued.
pub(crate) trait Flows {
    /// What is kept for a flow.
    type State;

    /// A packet of the flow joins the queue: its entry, made when there is none.
    fn join(&mut self, now: Time, key: &FlowKey) -> (FlowId, &mut Self::State);

    /// A packet of the flow leaves the queue, sent or lost.
    fn leave(&mut self, now: Time, id: FlowId);

    /// Number of entries.
    fn len(&self) -> usize;

    /// Marks a flow that has packets queued; the mark goes with the last of them.
    fn hold(&mut self, id: FlowId);

    /// Whether the flow is marked.
    fn is_held(&mut self, id: FlowId) -> bool;
}

impl<T: Default> Flows for Backlogged<T> {
    type State = T;

    fn join(&mut self, _now: Time, key: &FlowKey) -> (FlowId, &mut T) {
        Backlogged::join(self, key)
    }

    fn leave(&mut self, _now: Time, id: FlowId) {
        Backlogged::leave(self, id);
    }

    fn len(&self) -> usize {
        Backlogged::len(self)
    }

    fn hold(&mut self, id: FlowId) {
        self.table.state(id).is_held = true;
    }

    fn is_held(&mut self, id: FlowId) -> bool {
        self.table.state(id).is_held
    }
}

impl<T: Default> Flows for Remembered<T> {
    type State = T;

    fn join(&mut self, now: Time, key: &FlowKey) -> (FlowId, &mut T) {
        Remembered::join(self, now, key)
    }

    fn leave(&mut self, now: Time, id: FlowId) {
        Remembered::leave(self, now, id);
    }

    fn len(&self) -> usize {
        Remembered::len(self)
    }

    fn hold(&mut self, id: FlowId) {
        self.table.state(id).is_held = true;
    }

    fn is_held(&mut self, id: FlowId) -> bool {
        self.table.state(id).is_held
    }
}

/// Entries that die with the last queued packet of their flow, so that there
/// are never more than queued packets (`EFD section 3.1`).
#[derive(Debug)]
pub(crate) struct Backlogged<T> {
    table: FlowTable<BackloggedFlow<T>>,
}

#[derive(Debug)]
struct BackloggedFlow<T> {
    state: T,
    queued: u32,
    is_held: bool,
}

impl<T: Default> Backlogged<T> {
    /// An empty table whose hash depends on `seed`.
    pub(crate) fn new(seed: u64) -> Backlogged<T> {
        Backlogged { table: FlowTable::new(seed) }
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// A packet of the flow joins the queue: its entry, made when there is none.
    pub(crate) fn join(&mut self, key: &FlowKey) -> (FlowId, &mut T) {
        let fresh = || BackloggedFlow { state: T::default(), queued: 0, is_held: false };
        let (id, flow) = self.table.entry(key, fresh);
        flow.queued += 1;
        (id, &mut flow.state)
    }

    /// The entry of a flow that has packets queued.
    pub(crate) fn find(&mut self, key: &FlowKey) -> Option<(FlowId, &mut T)> {
        let id = self.table.find(key)?;
        Some((id, self.state(id)))
    }

    /// An entry.
    pub(crate) fn state(&mut self, id: FlowId) -> &mut T {
        &mut self.table.state(id).state
    }

    /// A packet of the flow leaves the queue, sent or lost.
    pub(crate) fn leave(&mut self, id: FlowId) {
        let flow = self.table.state(id);
        flow.queued -= 1;
        if flow.queued == 0 {
            self.table.remove(id);
        }
    }
}

/// How long flows are remembered, and how often this is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Time from one sweep of the flow table to the next.
    pub sweep: Span,
    /// A sweep forgets flows of which nothing arrived for this long.
    pub idle: Span,
}

impl Memory {
    /// Registers [`Memory::sweep`].
    pub(crate) const SWEEP: Parameter = Parameter {
        name: "sweep",
        help: "time between two searches for flows to forget",
        kind: Kind::Span { least: Span::millis(1), most: Span::seconds(86_400) },
        default: "5 s",
    };

    /// Registers [`Memory::idle`].
    pub(crate) const IDLE: Parameter = Parameter {
        name: "idle",
        help: "a flow is forgotten when no packet of it has arrived for this long",
        kind: Kind::Span { least: Span::ZERO, most: Span::seconds(86_400) },
        default: "30 s",
    };

    /// The values of [`Memory::SWEEP`] and [`Memory::IDLE`].
    pub(crate) fn from_settings(settings: &Settings) -> Memory {
        Memory { sweep: settings.span(Self::SWEEP.name), idle: settings.span(Self::IDLE.name) }
    }
}

impl Default for Memory {
    /// The defaults of the registered parameters: a sweep every 5 s, which
    /// forgets flows idle for 30 s (`EFD section 5.1`).
    fn default() -> Memory {
        Memory::from_settings(&Settings::defaults(&[Self::SWEEP, Self::IDLE]))
    }
}

/// Entries that a sweep removes once their flow is idle and has nothing queued.
///
/// There is no timer: a sweep that is due is made up for at the next join or leave,
/// as of the time at which it was due. Between two calls only time changes, so the
/// latest sweep that was due does the work of all before it, and the result is that
/// of a timer. A sweep visits every entry, which costs a few nanoseconds each.
#[derive(Debug)]
pub(crate) struct Remembered<T> {
    table: FlowTable<RememberedFlow<T>>,
    memory: Memory,
    swept: Time,
}

#[derive(Debug)]
struct RememberedFlow<T> {
    state: T,
    last_arrival: Time,
    queued: u32,
    is_held: bool,
}

impl<T> RememberedFlow<T> {
    fn join(&mut self, now: Time) -> &mut T {
        self.last_arrival = now;
        self.queued += 1;
        &mut self.state
    }
}

impl<T: Default> Remembered<T> {
    /// An empty table whose hash depends on `seed`.
    pub(crate) fn new(memory: Memory, seed: u64) -> Remembered<T> {
        Remembered { table: FlowTable::new(seed), memory, swept: Time::ZERO }
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// A packet of the flow joins the queue: its entry, made when there is none.
    pub(crate) fn join(&mut self, now: Time, key: &FlowKey) -> (FlowId, &mut T) {
        self.sweep(now);
        let fresh =
            || RememberedFlow { state: T::default(), last_arrival: now, queued: 0, is_held: false };
        let (id, flow) = self.table.entry(key, fresh);
        (id, flow.join(now))
    }

    /// As [`Remembered::join`] when the flow has an entry, and nothing otherwise.
    pub(crate) fn join_known(&mut self, now: Time, key: &FlowKey) -> Option<(FlowId, &mut T)> {
        self.sweep(now);
        let id = self.table.find(key)?;
        Some((id, self.table.state(id).join(now)))
    }

    /// A packet of the flow leaves the queue, sent or lost.
    pub(crate) fn leave(&mut self, now: Time, id: FlowId) {
        self.sweep(now);
        let flow = self.table.state(id);
        flow.queued -= 1;
        flow.is_held &= flow.queued > 0;
    }

    /// Remembers flows as `memory` says from `now` on.
    pub(crate) fn set_memory(&mut self, now: Time, memory: Memory) {
        if memory != self.memory {
            self.sweep(now);
            self.memory = memory;
        }
    }

    /// Makes up for a sweep that is due.
    pub(crate) fn sweep(&mut self, now: Time) {
        let Memory { sweep, idle } = self.memory;
        if now.since(self.swept) < sweep {
            return;
        }
        let due = Time(now.0 - now.0 % sweep.0);
        self.table.retain(|flow| flow.queued > 0 || due.since(flow.last_arrival) < idle);
        self.swept = due;
    }
}
