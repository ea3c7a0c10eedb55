//! What tasks hold of their requests and tunnels.

use std::cell::Cell;
use std::rc::Rc;

use tidegate_core::request::{
    Ending, ExchangeId, OriginId, Piece, Reading, Refusal, TunnelId, Verdict,
};
use tidegate_core::{Bytes, Span};
use tokio::time::Instant;

use super::{Gate, Lane, Permission, Signal};
use crate::times::since;

/// What is known to have come and is not read.
#[derive(Debug, Default)]
struct Unread(Cell<Bytes>);

impl Unread {
    /// So much is there; returns how much of it is new.
    fn come(&self, unread: Bytes) -> Bytes {
        unread - self.0.replace(unread)
    }

    /// So much was read; returns how much of it was not known to be there.
    fn read(&self, size: Bytes) -> Bytes {
        let known = self.0.get();
        self.0.set(known - size);
        size - known
    }
}

/// In bytes; all that there are if it is free.
fn amount(reading: Reading) -> u64 {
    match reading {
        Reading::Freely => u64::MAX,
        Reading::UpTo(left) => left.0,
    }
}

/// A request that was heard. When it is dropped before it is over, its client is gone.
#[derive(Debug)]
pub(crate) struct Exchange {
    gate: Rc<Gate>,
    id: ExchangeId,
    signal: Rc<Signal<Permission>>,
    unread: Unread,
}

impl Exchange {
    pub(super) fn new(gate: Rc<Gate>, id: ExchangeId, signal: Rc<Signal<Permission>>) -> Exchange {
        Exchange { gate, id, signal, unread: Unread::default() }
    }

    /// Waits for its turn.
    pub(crate) async fn released(&self) -> Result<(), Ending> {
        let find = |permission| match permission {
            Permission::Wait => None,
            Permission::Read(_) => Some(Ok(())),
            Permission::Over(ending) => Some(Err(ending)),
        };
        self.signal.until(find).await
    }

    /// Waits until it is over without being complete.
    pub(crate) async fn failed(&self) -> Ending {
        let find = |permission| match permission {
            Permission::Over(ending) if ending != Ending::Completed => Some(ending),
            _ => None,
        };
        self.signal.until(find).await
    }

    /// Waits until some of the response may be read.
    pub(crate) async fn readable(&self) -> u64 {
        let find = |permission| match permission {
            Permission::Read(reading) => Some(amount(reading)).filter(|size| *size > 0),
            _ => None,
        };
        self.signal.until(find).await
    }

    /// How much of the response may be read now.
    pub(crate) fn may_read(&self) -> u64 {
        match self.signal.state.get() {
            Permission::Read(reading) => amount(reading),
            Permission::Wait | Permission::Over(_) => 0,
        }
    }

    /// The connection to its server is up, to which a round trip takes so long.
    pub(crate) fn connected(&self, round_trip: Span) {
        self.gate.tell(|core, now| {
            core.proxy.connected(now, self.id);
            core.proxy.path(now, self.id, round_trip);
        });
    }

    /// The request took so long to reach its server, this origin, and be acknowledged.
    pub(crate) fn acknowledged(&self, origin: OriginId, round_trip: Span) {
        self.gate.tell(|core, now| {
            core.proxy.timed(origin, round_trip);
            core.proxy.path(now, self.id, round_trip);
        });
    }

    /// So much was read, perhaps all that was missing.
    pub(crate) fn read(&self, size: usize, complete: bool) {
        let size = Bytes(size as u64);
        self.gate.tell(|core, now| {
            core.received += self.unread.read(size);
            let reading = core.proxy.read(now, self.id, size, complete);
            core.permit(self.id, |permission| match permission {
                Permission::Read(_) => Permission::Read(reading),
                other => other,
            });
        });
    }

    /// So much has come and is not read, perhaps all that is missing.
    pub(crate) fn came(&self, unread: u64, complete: bool) {
        self.gate.tell(|core, now| {
            core.received += self.unread.come(Bytes(unread));
            core.proxy.came(now, self.id, Bytes(unread), complete);
        });
    }

    /// What the receive buffer of its server's connection should hold.
    pub(crate) fn buffer(&self) -> Option<Bytes> {
        self.gate.core.borrow().proxy.buffer(self.id)
    }

    /// The server broke the response off.
    pub(crate) fn reset(&self) {
        self.gate.tell(|core, now| core.proxy.reset(now, self.id));
    }

    /// No connection to the server could be made.
    pub(crate) fn broken(&self) {
        self.gate.tell(|core, now| core.proxy.broken(now, self.id));
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !matches!(self.signal.state.get(), Permission::Over(_)) {
            self.gate.tell(|core, now| core.proxy.left(now, self.id));
        }
    }
}

/// A tunnel that is open until it is dropped.
#[derive(Debug)]
pub(crate) struct Tunnel {
    gate: Rc<Gate>,
    id: TunnelId,
    signal: Rc<Signal<Lane>>,
    unread: Unread,
    /// Since when a request is held, or has been without a byte of its response.
    heard: Cell<Option<Instant>>,
    released: Cell<Option<Instant>>,
}

impl Tunnel {
    pub(super) fn new(gate: Rc<Gate>, id: TunnelId, signal: Rc<Signal<Lane>>) -> Tunnel {
        let (heard, released) = (Cell::new(None), Cell::new(None));
        Tunnel { gate, id, signal, unread: Unread::default(), heard, released }
    }

    /// The client has sent a piece; returns whether it may go on now. If not, it and all
    /// behind it are held until [`passes`](Tunnel::passes).
    ///
    /// # Errors
    /// It would be a request, and too many wait.
    pub(crate) fn send(&self, piece: Piece) -> Result<bool, Refusal> {
        self.gate.tell(|core, now| {
            let verdict = core.proxy.send(now, self.id, piece)?;
            let passes = verdict == Verdict::Pass;
            if !passes && self.heard.get().is_none() {
                self.heard.set(Some(Instant::now()));
            }
            // The release may be among the actions that follow.
            core.direct(self.id, |lane| Lane { passes, ..lane });
            Ok(())
        })?;
        Ok(self.signal.state.get().passes)
    }

    /// Waits until what is held may go on.
    pub(crate) async fn passes(&self) {
        self.signal.until(|lane| lane.passes.then_some(())).await;
    }

    /// What was held goes on; returns how long a request was in line, if there is one.
    pub(crate) fn released(&self) -> Option<Span> {
        let heard = self.heard.take()?;
        self.released.set(Some(Instant::now()));
        Some(since(heard))
    }

    /// Something comes from the server; returns the time since the request to which it is
    /// the beginning of the response.
    pub(crate) fn answered(&self) -> Option<Span> {
        self.released.take().map(since)
    }

    /// Waits until its class is gone, and it has to end.
    pub(crate) async fn over(&self) {
        self.signal.until(|lane| lane.is_over.then_some(())).await;
    }

    /// Waits until some of the downlink may be read.
    pub(crate) async fn readable(&self) -> u64 {
        self.signal.until(|lane| Some(amount(lane.reading)).filter(|size| *size > 0)).await
    }

    /// How much of the downlink may be read now.
    pub(crate) fn may_read(&self) -> u64 {
        amount(self.signal.state.get().reading)
    }

    /// So much of the downlink was read.
    pub(crate) fn read(&self, size: usize) {
        let size = Bytes(size as u64);
        self.gate.tell(|core, now| {
            core.received += self.unread.read(size);
            let reading = core.proxy.tunnel_read(now, self.id, size);
            core.direct(self.id, |lane| Lane { reading, ..lane });
        });
    }

    /// So much of the downlink has come and is not read.
    pub(crate) fn came(&self, unread: u64) {
        self.gate.tell(|core, now| {
            core.received += self.unread.come(Bytes(unread));
            core.proxy.tunnel_came(now, self.id, Bytes(unread));
        });
    }

    /// A round trip to its server takes so long.
    pub(crate) fn path(&self, round_trip: Span) {
        self.gate.tell(|core, now| core.proxy.tunnel_path(now, self.id, round_trip));
    }

    /// What the receive buffer of its server's connection should hold.
    pub(crate) fn buffer(&self) -> Option<Bytes> {
        self.gate.core.borrow().proxy.tunnel_buffer(self.id)
    }

    /// It carries what must not be held.
    pub(crate) fn exempt(&self) {
        self.gate.tell(|core, _| core.proxy.exempt(self.id));
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.gate.tell(|core, _| {
            core.proxy.close(self.id);
            core.tunnels.remove(&self.id);
        });
    }
}
