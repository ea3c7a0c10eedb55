//! The life of a request, from its arrival at a gateway to the end of its response.
//!
//! ```text
//!        heard
//!          |
//!          v
//!     +----------+
//!     | Waiting  |--- left, broken -----------------------------+
//!     +----------+                                              |
//!          | released: it takes a place                         |
//!          v                                                    |
//!     +----------+                                              |
//!     | Dialling |--- left, broken, reset, silence ------------>+
//!     +----------+                                              |
//!          | connected, or the first bytes                      |
//!          v                                                    |
//!     +----------+                                              v
//!  +->| Reading  |--- left, broken, reset, silence, complete -> (over)
//!  |  +----------+
//!  |       | a part is read, or a grant comes: whether the response is
//!  +-------+ read freely, up to so much, or not now is its `Reading`
//! ```
//!
//! The place in the window belongs to the states in which a response is
//! outstanding. An exchange that is over is dropped together with its place, so no
//! order of events can lose one. An event without an arrow from a state, such as a
//! connection that comes up after the client has left, changes nothing.

use super::buffer::Buffer;
use super::{ClassId, Permit, Reading, Refusal, Request, Scheduler, Ticket, UserId};
use crate::units::{Bytes, Span, Time};

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// All of the response has been read.
    Completed,
    /// A connection of either side was lost, or none could be made.
    Broken,
    /// The server broke the response off.
    Reset,
    /// Nothing came for as long as the gateway is patient, and nothing was held
    /// back.
    Stalled,
    /// The client is gone.
    Abandoned,
}

/// The phase of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The scheduler has not released the request yet.
    Waiting,
    /// The request is released, and its server is not connected yet.
    Dialling,
    /// The server is connected, and the response is read as stated.
    Reading(Reading),
}

/// Something that happens to an exchange.
#[derive(Debug)]
pub(super) enum Event {
    /// The scheduler releases it. A pool may decide what is read of its response.
    Released { permit: Permit, pooled: bool },
    /// The connection to the server is up.
    Connected,
    /// This much has come and has not been read, and may be all that was left.
    Came { unread: Bytes, complete: bool },
    /// This much was read, which may have been the last part.
    Read { size: Bytes, complete: bool },
    /// This much more may be read.
    Granted(Bytes),
    /// A check whether it has been silent for this long.
    Watched(Span),
    /// A connection of either side is lost, or none could be made.
    Broken,
    /// The server broke the response off.
    Reset,
    /// The client is gone.
    Left,
}

/// A request that was heard and is not over.
#[derive(Debug)]
pub(super) struct Exchange {
    class: ClassId,
    user: UserId,
    /// What the receive buffer holds in any case.
    least: Bytes,
    state: State,
}

#[derive(Debug)]
enum State {
    Waiting(Ticket),
    Outstanding(Outstanding),
}

/// An outstanding response: it is being dialled for, or read.
#[derive(Debug)]
struct Outstanding {
    permit: Permit,
    connected: bool,
    /// Whether a pool rather than the scheduler says how much may be read.
    pooled: bool,
    reading: Reading,
    /// What has been read.
    received: Bytes,
    /// What has come and is not read.
    unread: Bytes,
    /// When something was last read, or was there and could not be read; before
    /// either, the release.
    moved: Time,
    /// The time since which everything that the scheduler granted has been read.
    ungranted: Option<Time>,
    buffer: Buffer,
}

impl Exchange {
    /// It waits; the receive buffer of its connection will hold `least` bytes.
    pub(super) fn new(class: ClassId, user: UserId, ticket: Ticket, least: Bytes) -> Exchange {
        Exchange { class, user, least, state: State::Waiting(ticket) }
    }

    /// Every transition. After an ending, the exchange must be dropped.
    pub(super) fn step(
        &mut self,
        now: Time,
        event: Event,
        scheduler: &mut Scheduler,
    ) -> Option<Ending> {
        match (&mut self.state, event) {
            (State::Waiting(_), Event::Released { permit, pooled }) => {
                let buffer = Buffer::new(self.least);
                self.state = State::Outstanding(Outstanding::new(now, permit, pooled, buffer));
                None
            }
            (State::Waiting(ticket), event @ (Event::Left | Event::Broken)) => {
                scheduler.withdraw(*ticket);
                Some(if matches!(event, Event::Left) { Ending::Abandoned } else { Ending::Broken })
            }
            (State::Outstanding(response), Event::Connected) => {
                response.connected = true;
                None
            }
            (State::Outstanding(response), Event::Came { unread, complete }) => {
                response.come(now, unread, complete, scheduler);
                None
            }
            (State::Outstanding(response), Event::Read { size, complete }) => {
                response.read(now, size, complete, scheduler);
                if complete { response.end(Ending::Completed) } else { None }
            }
            (State::Outstanding(response), Event::Granted(size)) => {
                response.grant(size);
                None
            }
            (State::Outstanding(response), Event::Watched(patience)) => {
                let is_silent = response.is_silent(now, patience);
                if is_silent { response.end(Ending::Stalled) } else { None }
            }
            (State::Outstanding(response), Event::Left) => response.end(Ending::Abandoned),
            (State::Outstanding(response), Event::Broken) => response.end(Ending::Broken),
            (State::Outstanding(response), Event::Reset) => response.end(Ending::Reset),
            // The event came too early, too late, or twice. A permit goes back as
            // it is dropped.
            (
                State::Waiting(_),
                Event::Connected
                | Event::Came { .. }
                | Event::Read { .. }
                | Event::Granted(_)
                | Event::Watched(_)
                | Event::Reset,
            )
            | (State::Outstanding(_), Event::Released { .. }) => None,
        }
    }

    /// Another scheduler decides from now on. What the request had received goes on there.
    ///
    /// # Errors
    /// That scheduler does not take it: it is over.
    pub(super) fn transfer(
        &mut self,
        now: Time,
        request: Request,
        pooled: bool,
        scheduler: &mut Scheduler,
    ) -> Result<(), Refusal> {
        self.class = request.class;
        match &mut self.state {
            State::Waiting(ticket) => *ticket = scheduler.arrive(request)?,
            State::Outstanding(response) => {
                response.permit = scheduler.resume(request, response.received)?;
                response.pooled = pooled;
                let reading = scheduler.received(now, &response.permit, Bytes::ZERO);
                scheduler.came(now, &response.permit, response.unread);
                scheduler.opened(now, &response.permit, response.buffer.opening());
                response.reading = if pooled { Reading::UpTo(Bytes::ZERO) } else { reading };
                let waits = response.reading == Reading::UpTo(Bytes::ZERO) && !pooled;
                response.ungranted = waits.then_some(now);
            }
        }
        Ok(())
    }

    /// The ticket of a request that waits.
    pub(super) fn ticket(&self) -> Option<Ticket> {
        match &self.state {
            State::Waiting(ticket) => Some(*ticket),
            State::Outstanding(_) => None,
        }
    }

    pub(super) fn user(&self) -> UserId {
        self.user
    }

    pub(super) fn class(&self) -> ClassId {
        self.class
    }

    pub(super) fn phase(&self) -> Phase {
        match &self.state {
            State::Waiting(_) => Phase::Waiting,
            State::Outstanding(response) if !response.connected => Phase::Dialling,
            State::Outstanding(response) => Phase::Reading(response.reading),
        }
    }

    /// The time since which nothing has moved; `None` while the request waits.
    pub(super) fn moved(&self) -> Option<Time> {
        self.outstanding().map(|response| response.moved)
    }

    /// The time since which it has read everything that the scheduler granted, if
    /// it has.
    pub(super) fn ungranted(&self) -> Option<Time> {
        self.outstanding().and_then(|response| response.ungranted)
    }

    /// What has come, has not been read, and may not be read.
    pub(super) fn held_back(&self) -> Bytes {
        self.outstanding().map_or(Bytes::ZERO, Outstanding::held_back)
    }

    /// The buffer that a response needs, if its path is known.
    pub(super) fn buffer(&self) -> Option<Bytes> {
        let buffer = self.outstanding().map(|response| &response.buffer);
        buffer.filter(|buffer| buffer.is_timed()).map(Buffer::size)
    }

    /// A round trip to its server takes so long.
    pub(super) fn time(&mut self, now: Time, round_trip: Span) {
        if let State::Outstanding(response) = &mut self.state {
            response.buffer.time(now, round_trip);
        }
    }

    fn outstanding(&self) -> Option<&Outstanding> {
        match &self.state {
            State::Waiting(_) => None,
            State::Outstanding(response) => Some(response),
        }
    }
}

impl Outstanding {
    fn new(now: Time, permit: Permit, pooled: bool, buffer: Buffer) -> Outstanding {
        Outstanding {
            permit,
            connected: false,
            pooled,
            reading: if pooled { Reading::UpTo(Bytes::ZERO) } else { Reading::Freely },
            received: Bytes::ZERO,
            unread: Bytes::ZERO,
            moved: now,
            ungranted: None,
            buffer,
        }
    }

    /// Bytes are there.
    fn come(&mut self, now: Time, unread: Bytes, complete: bool, scheduler: &mut Scheduler) {
        self.connected = true;
        self.unread = unread;
        self.buffer.come(unread);
        scheduler.came(now, &self.permit, unread);
        if complete {
            scheduler.arrived(now, &self.permit);
        }
    }

    fn read(&mut self, now: Time, size: Bytes, complete: bool, scheduler: &mut Scheduler) {
        self.connected = true;
        if size == Bytes::ZERO {
            return;
        }
        self.moved = now;
        self.buffer.read(now, size);
        self.unread -= size;
        self.received += size;
        let reading = scheduler.received(now, &self.permit, size);
        scheduler.opened(now, &self.permit, self.buffer.opening());
        self.reading = match self.reading {
            Reading::UpTo(left) if self.pooled => Reading::UpTo(left - size),
            _ => reading,
        };
        if !self.pooled && self.reading == Reading::UpTo(Bytes::ZERO) && !complete {
            self.ungranted.get_or_insert(now);
        }
    }

    /// It is over. A server that never got the request has sent nothing.
    fn end(&mut self, ending: Ending) -> Option<Ending> {
        if ending == Ending::Completed {
            self.permit.complete();
        } else if !self.connected {
            self.permit.unasked();
        }
        Some(ending)
    }

    fn grant(&mut self, size: Bytes) {
        self.ungranted = None;
        if let Reading::UpTo(left) = self.reading {
            self.reading = Reading::UpTo(left + size);
        }
    }

    /// Whether nothing has moved for this long. While something is there that may
    /// not be read, the server is not to blame.
    fn is_silent(&mut self, now: Time, patience: Span) -> bool {
        if self.held_back() > Bytes::ZERO {
            self.moved = now;
        }
        self.moved + patience <= now
    }

    fn held_back(&self) -> Bytes {
        match self.reading {
            Reading::Freely => Bytes::ZERO,
            Reading::UpTo(may) => self.unread - may,
        }
    }
}
