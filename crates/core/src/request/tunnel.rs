//! The life of a tunnel: bytes of both directions that the gateway carries
//! without knowing their content, for example after CONNECT or in a redirected
//! connection.
//!
//! A burst of uplink data after quiet is taken for a request, and the downlink bytes
//! until the next quiet for its response. Clients that ask again as soon as they have an
//! answer leave no quiet: after a good answer, the next uplink data are a request, too.
//!
//! ```text
//!                 uplink data, held                 released, or held for `max_hold`
//!      +--------+ ---------------> +---------+ -----------------------------------+
//!      |  Idle  |                  | Pending |                                    |
//!      +--------+ <------------+   +---------+                                    |
//!           |                  |        ^                                         |
//!           | downlink bytes:  | quiet  | uplink data                             |
//!           | the response     |        |                                         v
//!           | goes on          |   +---------+  silence, or an upload      +-------------+
//!           |                  |   | Waiting | <-------------------------- | Active      |
//!           |                  |   +---------+                             |      | long |
//!           |                  |        |      more than `late` at once    |      v      |
//!           |                  |        +-------------------------------> |     Long    |
//!           |                  +----------------------------------------- |             |
//!           +-----------------------------------------------------------> +-------------+
//!
//!      any --- the driver says so, or a steady low rate ---> Exempt
//! ```
//!
//! *Active* holds a place in the window, and *Long* is read by the scheduler's grants;
//! every other state has neither, and what comes in it is charged to the tunnel's
//! user. Between two flights of a server there is a round trip, and the pauses of loss
//! recovery are longer: both look like the end of a response. So quiet counts on top of a
//! round trip, or what a response has been promised would be given to others while it is on
//! its way; and a response that goes on after quiet takes its place back at once, even past
//! *W+*. Without the latter, freeing places after quiet gives no shares at all (measured
//! with a quiet gap of 300 ms, on 2 Mbit/s).
//!
//! Quiet is long, and meanwhile the link would be kept free for what does not come. So when
//! nothing comes for a round trip, the delay of the queue and a moment, though the server may
//! send, all that is left of a response *seems* to have come: no room is kept for it any more,
//! and what is held back of it takes none. A pause of the server looks like that, too. What
//! comes after one draws on the room as it comes; its user was charged for it already.
//!
//! What is a *good* answer? More than window updates and heartbeats bring, and several times
//! what the client sends next: in calls and uploads, data go both ways all the time, and to
//! hold each piece would stop them. Nor does the client have an answer of which a part is
//! held back: what it sends is asked beside that, in a connection that many requests share.
//! What a server sends unasked, as in a handshake, is answer enough.
//!
//! A tunnel whose downlink goes on while a request of its own is held is *Pending*,
//! and has a place all the same until the next quiet.

mod response;
mod steady;

use super::buffer::Buffer;
use super::{Permit, Reading, Refusal, Request, Scheduler, Ticket};
use crate::units::{Bytes, Rate, Span, Time};
use response::Response;
pub use steady::STEADY_SECONDS;
use steady::Steady;

/// Settings of tunnels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelConfig {
    /// A response is over when nothing of it has arrived for this long and a round trip.
    pub quiet: Span,
    /// A request without an answer for this long gives its place back.
    pub silence: Span,
    /// A request that was held for this long is released out of order.
    pub max_hold: Span,
    /// Pieces of uplink data up to this size are no requests: window updates,
    /// acknowledgements and pings of HTTP/2 in records of TLS take 31 to 48 bytes,
    /// and the shortest request takes more.
    pub small: Bytes,
    /// More uplink data than this without an answer are an upload.
    pub upload: Bytes,
    /// More downlink bytes than this without a pause, after silence or during an
    /// upload, are a response, and without uplink data between them an answer. Window updates
    /// and heartbeats are less.
    pub late: Bytes,
    /// A tunnel that carries something in each of [`STEADY_SECONDS`] seconds in a row,
    /// and never more than this rate, is exempt until it carries more.
    pub steady: Rate,
}

impl Default for TunnelConfig {
    /// Quiet of 200 ms: the measured shares hold with 150 to 300 ms.
    fn default() -> TunnelConfig {
        TunnelConfig {
            quiet: Span::millis(200),
            silence: Span::seconds(3),
            max_hold: Span::seconds(8),
            small: Bytes(48),
            upload: Bytes(64_000),
            late: Bytes(2_000),
            steady: Rate(64_000),
        }
    }
}

/// What a client sends into a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A record of a handshake or an alert: nothing that could be a request.
    Handshake(Bytes),
    /// Data that the gateway cannot read.
    Data(Bytes),
}

/// What to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send it on.
    Pass,
    /// Hold it, and everything behind it.
    Hold,
}

/// The phase of a tunnel's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TunnelPhase {
    /// Quiet: nothing is asked for.
    Idle,
    /// A request is held.
    Pending,
    /// A request is on its way, or its response is read freely.
    Active,
    /// A long response is read by grants.
    Long,
    /// No answer came for too long, or it is an upload.
    Waiting,
    /// Never held.
    Exempt,
}

/// What a transition asks of the gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Orders {
    /// Send on everything that is held.
    pub(super) pass: bool,
    /// Read the downlink in this way.
    pub(super) read: Option<Reading>,
    /// A request was released out of order.
    pub(super) overdue: bool,
}

/// What a transition may change beside the tunnel itself.
#[derive(Debug)]
pub(super) struct Surroundings<'a> {
    pub(super) now: Time,
    pub(super) scheduler: &'a mut Scheduler,
    pub(super) config: &'a TunnelConfig,
}

/// A tunnel that is open.
#[derive(Debug)]
pub(super) struct Tunnel {
    /// The scheduler's name for all its requests.
    name: Request,
    held: Option<Held>,
    flow: Flow,
    steady: Steady,
    buffer: Buffer,
}

/// A request that waits, or the bytes that may be one.
#[derive(Debug)]
struct Held {
    ticket: Ticket,
    since: Time,
    size: Bytes,
}

/// What the downlink does.
#[derive(Debug)]
enum Flow {
    /// Quiet, after this much of a response.
    Idle {
        received: Bytes,
    },
    /// With a place in the window.
    Response(Response),
    /// Without an answer yet.
    Waiting(Waiting),
    Exempt {
        steady: bool,
    },
}

#[derive(Debug)]
struct Waiting {
    /// What had come of the response before.
    received: Bytes,
    /// When an upload sent last.
    upload: Option<Time>,
    /// Downlink bytes without a pause, and when the last of them came.
    late: Bytes,
    came: Time,
}

impl Tunnel {
    /// A tunnel that opens, with the name of its requests; the receive buffer of its
    /// connection will hold `least` bytes.
    pub(super) fn new(now: Time, name: Request, least: Bytes) -> Tunnel {
        let steady = Steady::new(now);
        let flow = Flow::Idle { received: Bytes::ZERO };
        Tunnel { name, held: None, flow, steady, buffer: Buffer::new(least) }
    }

    pub(super) fn phase(&self) -> TunnelPhase {
        match &self.flow {
            _ if self.held.is_some() => TunnelPhase::Pending,
            Flow::Idle { .. } => TunnelPhase::Idle,
            Flow::Response(Response { reading: Reading::Freely, .. }) => TunnelPhase::Active,
            Flow::Response(_) => TunnelPhase::Long,
            Flow::Waiting(_) => TunnelPhase::Waiting,
            Flow::Exempt { .. } => TunnelPhase::Exempt,
        }
    }

    /// How the downlink may be read.
    pub(super) fn reading(&self) -> Reading {
        match &self.flow {
            Flow::Response(response) => response.reading,
            _ => Reading::Freely,
        }
    }

    /// A round trip to its server takes so long.
    pub(super) fn time(&mut self, now: Time, round_trip: Span) {
        self.buffer.time(now, round_trip);
    }

    /// The receive buffer that its downlink needs, if its path is known.
    pub(super) fn buffer(&self) -> Option<Bytes> {
        self.buffer.is_timed().then(|| self.buffer.size())
    }

    /// The time at which [`Tunnel::look`] will do something, if nothing happens before.
    pub(super) fn due(&self, config: &TunnelConfig) -> Option<Time> {
        let held = self.held.as_ref().map(|held| held.since + config.max_hold);
        let round_trip = self.buffer.round_trip();
        let over = match &self.flow {
            Flow::Response(response) => Some(response.due(config, round_trip)),
            _ => None,
        };
        held.into_iter().chain(over).min()
    }

    /// The client sends a piece. Also returns what else to do.
    ///
    /// # Errors
    /// It would be a request, and too many are already waiting.
    pub(super) fn send(
        &mut self,
        piece: Piece,
        around: Surroundings<'_>,
    ) -> Result<(Verdict, Orders), Refusal> {
        let (Piece::Handshake(size) | Piece::Data(size)) = piece;
        let Surroundings { now, scheduler, config } = around;
        let orders = self.carry(size, now, config);
        if let Some(held) = &mut self.held {
            held.size += size;
            return Ok((Verdict::Hold, orders));
        }
        let is_request = matches!(piece, Piece::Data(size) if size > config.small);
        if !is_request {
            return Ok((Verdict::Pass, orders));
        }
        match &mut self.flow {
            Flow::Exempt { .. } => {}
            Flow::Response(response) if !response.is_answered(size, config) => {
                if response.unanswered.is_none() {
                    scheduler.asked(&response.permit);
                }
                let sent = response.unanswered.unwrap_or_default() + size;
                (response.unanswered, response.answer) = (Some(sent), Bytes::ZERO);
                response.moved = now;
                let received = response.received;
                if sent > config.upload {
                    return Ok((Verdict::Pass, self.wait(received, now, Some(now))));
                }
            }
            Flow::Waiting(waiting) if waiting.is_upload(now, config) => {
                waiting.upload = Some(now);
                waiting.late = Bytes::ZERO;
            }
            Flow::Idle { .. } | Flow::Waiting(_) | Flow::Response(_) => {
                let ticket = scheduler.arrive(self.name)?;
                self.held = Some(Held { ticket, since: now, size });
                return Ok((Verdict::Hold, orders));
            }
        }
        Ok((Verdict::Pass, orders))
    }

    /// The scheduler releases the request, which may turn out to be an upload.
    pub(super) fn release(&mut self, mut permit: Permit, around: Surroundings<'_>) -> Orders {
        let Surroundings { now, scheduler, config } = around;
        let Some(held) = self.held.take() else { return Orders::default() };
        if held.size > config.upload {
            permit.complete();
            return Orders { pass: true, ..self.wait(Bytes::ZERO, now, Some(now)) };
        }
        let unread = match &self.flow {
            Flow::Response(response) => response.unread,
            _ => Bytes::ZERO,
        };
        scheduler.take_on(&permit, unread);
        let orders = self.leave(Flow::Response(Response {
            permit,
            reading: Reading::Freely,
            received: Bytes::ZERO,
            unread,
            moved: now,
            unanswered: Some(held.size),
            answer: Bytes::ZERO,
            whole_at: None,
        }));
        Orders { pass: true, ..orders }
    }

    /// This much from the server has arrived and has not been read.
    pub(super) fn came(&mut self, now: Time, unread: Bytes, scheduler: &mut Scheduler) {
        self.buffer.come(unread);
        if let Flow::Response(response) = &mut self.flow {
            if unread > response.unread {
                response.expect_more(now, unread, &self.buffer, scheduler);
            }
            response.unread = unread;
            scheduler.came(now, &response.permit, unread);
            if response.is_held_back() {
                self.steady.interrupt();
            }
        }
    }

    /// This much was read from the server.
    pub(super) fn read(&mut self, size: Bytes, around: Surroundings<'_>) -> Orders {
        let Surroundings { now, scheduler, config } = around;
        let orders = self.carry(size, now, config);
        if size == Bytes::ZERO {
            return orders;
        }
        self.buffer.read(now, size);
        let resumed = match &mut self.flow {
            Flow::Response(_) => None,
            Flow::Idle { received } => Some(*received),
            Flow::Waiting(waiting) => {
                waiting.hear(size, now, config);
                (waiting.late > config.late).then_some(waiting.received)
            }
            Flow::Exempt { .. } => None,
        };
        if let Some(received) = resumed
            && let Ok(permit) = scheduler.resume(self.name, received)
        {
            self.flow = Flow::Response(Response {
                permit,
                reading: Reading::Freely,
                received,
                unread: Bytes::ZERO,
                moved: now,
                unanswered: None,
                answer: Bytes(u64::MAX),
                whole_at: None,
            });
        }
        let Request { class, user, .. } = self.name;
        match &mut self.flow {
            Flow::Response(response) => {
                if size > response.unread || response.may_fill(&self.buffer) {
                    response.expect_more(now, size, &self.buffer, scheduler);
                }
                response.reading = scheduler.received(now, &response.permit, size);
                scheduler.opened(now, &response.permit, self.buffer.opening());
                response.received += size;
                response.unread -= size;
                response.moved = now;
                response.unanswered = None;
                response.answer += size;
            }
            _ => scheduler.received_unasked(now, Some((class, user)), size),
        }
        orders
    }

    /// The scheduler lets a long response read on.
    pub(super) fn grant(&mut self, size: Bytes) -> Orders {
        let Flow::Response(response) = &mut self.flow else { return Orders::default() };
        let Reading::UpTo(left) = response.reading else { return Orders::default() };
        response.reading = Reading::UpTo(left + size);
        Orders { read: Some(response.reading), ..Orders::default() }
    }

    /// The consequences of silence: a response ends by quiet, and a request waits no longer.
    pub(super) fn look(&mut self, around: Surroundings<'_>) -> Orders {
        let Surroundings { now, scheduler, config } = around;
        let mut orders = Orders::default();
        let round_trip = self.buffer.round_trip();
        if let Flow::Response(response) = &mut self.flow
            && response.whole_at.take_if(|at| *at <= now).is_some()
            && !response.may_fill(&self.buffer)
        {
            scheduler.arrived(now, &response.permit);
        }
        if let Flow::Response(response) = &mut self.flow
            && response.over_at(config, round_trip) <= now
        {
            let received = response.received;
            if response.is_held_back() {
                response.moved = now;
            } else if response.unanswered.is_none() {
                orders = self.rest(received);
            } else {
                orders = self.wait(received, now, None);
            }
        }
        if let Some(held) = self.held.take_if(|held| held.since + config.max_hold <= now) {
            let resumed = scheduler.resume(self.name, Bytes::ZERO);
            // Its user has waited all the time, and loses nothing of what is due.
            scheduler.withdraw(held.ticket);
            if let Ok(permit) = resumed {
                self.held = Some(held);
                let around = Surroundings { now, scheduler, config };
                orders = Orders { overdue: true, ..self.release(permit, around) };
            }
        }
        orders
    }

    /// Another scheduler decides from now on, which calls it by this name. A request that
    /// may not wait there is released out of order.
    ///
    /// # Errors
    /// That scheduler does not take it: it has to be closed.
    pub(super) fn transfer(
        &mut self,
        name: Request,
        around: Surroundings<'_>,
    ) -> Result<Orders, Refusal> {
        let Surroundings { now, scheduler, config } = around;
        self.name = name;
        if let Flow::Response(response) = &mut self.flow {
            response.permit = scheduler.resume(name, response.received)?;
            response.reading = scheduler.received(now, &response.permit, Bytes::ZERO);
            scheduler.came(now, &response.permit, response.unread);
            scheduler.opened(now, &response.permit, self.buffer.opening());
        }
        let orders = Orders { read: Some(self.reading()), ..Orders::default() };
        let Some(held) = &mut self.held else { return Ok(orders) };
        match scheduler.arrive(name) {
            Ok(ticket) => held.ticket = ticket,
            Err(_) => {
                let permit = scheduler.resume(name, Bytes::ZERO)?;
                let released = self.release(permit, Surroundings { now, scheduler, config });
                return Ok(Orders { overdue: true, read: Some(self.reading()), ..released });
            }
        }
        Ok(orders)
    }

    /// The ticket of a request that is held.
    pub(super) fn ticket(&self) -> Option<Ticket> {
        self.held.as_ref().map(|held| held.ticket)
    }

    /// The scheduler's name for its requests.
    pub(super) fn name(&self) -> Request {
        self.name
    }

    /// It is never held from now on.
    pub(super) fn exempt(&mut self, scheduler: &mut Scheduler) -> Orders {
        let held = self.held.take();
        if let Some(held) = &held {
            scheduler.withdraw(held.ticket);
        }
        let orders = self.leave(Flow::Exempt { steady: false });
        Orders { pass: held.is_some(), ..orders }
    }

    /// It is closed.
    pub(super) fn close(self, scheduler: &mut Scheduler) {
        if let Some(held) = self.held {
            scheduler.withdraw(held.ticket);
        }
    }

    /// A response is over, as far as the gateway can see.
    fn rest(&mut self, received: Bytes) -> Orders {
        self.leave(Flow::Idle { received })
    }

    /// No answer comes for now: the place goes back.
    fn wait(&mut self, received: Bytes, now: Time, upload: Option<Time>) -> Orders {
        self.leave(Flow::Waiting(Waiting { received, upload, late: Bytes::ZERO, came: now }))
    }

    /// From a response, if there is one, to something else. What comes of the response
    /// later counts as it comes.
    fn leave(&mut self, to: Flow) -> Orders {
        let before = self.reading();
        if let Flow::Response(response) = &mut self.flow {
            response.permit.complete();
        }
        self.flow = to;
        self.reads(before)
    }

    /// What changes for the reader.
    fn reads(&self, before: Reading) -> Orders {
        let now = self.reading();
        Orders { read: (now != before).then_some(now), ..Orders::default() }
    }

    /// Bytes of either direction: little for long makes it exempt, more ends that.
    fn carry(&mut self, size: Bytes, now: Time, config: &TunnelConfig) -> Orders {
        let most = config.steady.volume(Span::seconds(1));
        self.steady.carry(size, now, most);
        if self.steady.carried() > most && matches!(self.flow, Flow::Exempt { steady: true }) {
            self.flow = Flow::Idle { received: Bytes::ZERO };
        }
        let is_exempt = matches!(self.flow, Flow::Exempt { .. });
        if !self.steady.is_steady() || is_exempt || self.held.is_some() {
            return Orders::default();
        }
        self.leave(Flow::Exempt { steady: true })
    }
}

impl Waiting {
    /// Whether uplink data go on with an upload.
    fn is_upload(&self, now: Time, config: &TunnelConfig) -> bool {
        self.upload.is_some_and(|sent| now < sent + config.silence)
    }

    /// Downlink bytes have arrived.
    fn hear(&mut self, size: Bytes, now: Time, config: &TunnelConfig) {
        let goes_on = now < self.came + config.quiet;
        self.late = if goes_on { self.late + size } else { size };
        self.came = now;
    }
}
