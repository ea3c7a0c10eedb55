//! A gateway without a network: it does to a scheduler what chance dictates, and
//! keeps the books that no fault of a scheduler may corrupt.

use std::num::NonZeroU32;

use tidegate_core::request::{
    ClassId, Config, Decision, LinkReport, Opening, Permit, Reading, Refusal, Request, Scheduler,
    Ticket, UserId, WindowMode,
};
use tidegate_core::{Bytes, Rate, Span, Time};

/// Something that happens. Numbers choose among what is there at the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A request comes, possibly from a class that does not exist.
    Arrive {
        /// Its class.
        class: u32,
        /// Its user.
        user: u64,
    },
    /// A client leaves before its request is released, or gives up an old ticket.
    Withdraw(usize),
    /// A response goes on that was taken for over, after so much of it.
    Resume {
        /// Its class.
        class: u32,
        /// Its user.
        user: u64,
        /// What had come of it before.
        received: Bytes,
    },
    /// A part of a response is read.
    Receive {
        /// Which of the responses outstanding.
        response: usize,
        /// The size of the part.
        size: Bytes,
    },
    /// So much of a response has come and is not read.
    Come {
        /// Which of the responses outstanding.
        response: usize,
        /// What is there.
        unread: Bytes,
    },
    /// The server of a response may send so much beyond what was read.
    Open {
        /// Which of the responses outstanding.
        response: usize,
        /// So much.
        opening: Opening,
    },
    /// The link has another rate.
    Rate(Rate),
    /// A class, or one that there is not, has another weight.
    Weigh {
        /// The class.
        class: u32,
        /// Its weight.
        weight: NonZeroU32,
    },
    /// All of a response has come.
    Complete(usize),
    /// Something is asked for that comes in a response.
    Ask(usize),
    /// A response is complete.
    End(usize),
    /// A response is broken off, by whomever.
    Break(usize),
    /// A response ends before its server is asked.
    Cancel(usize),
    /// Bytes that answer no known request.
    Unasked {
        /// Class and user that they are for, when that is known.
        whose: Option<(u32, u64)>,
        /// Their number.
        size: Bytes,
    },
    /// The link's counter is read.
    Report {
        /// Bytes of others that came since the last report.
        other: Bytes,
        /// The queueing delay that was measured, if it was.
        delay: Option<Span>,
    },
    /// Time passes.
    Wait(Span),
}

/// The result. Requests and responses are identified by their handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request waits.
    Arrived {
        /// The request.
        request: Request,
        /// The handle of the request that the ticket is for.
        ticket: u64,
    },
    /// A request may not wait.
    Refused {
        /// The request.
        request: Request,
        /// The reason.
        refusal: Refusal,
    },
    /// A client gave up a ticket.
    Withdrawn {
        /// The handle of the request that the ticket was for.
        ticket: u64,
        /// Whether the request was still waiting.
        found: bool,
    },
    /// A response went on that was taken for over.
    Resumed {
        /// What it answers.
        request: Request,
        /// What had come of it before.
        received: Bytes,
    },
    /// A part of a response was read.
    Received {
        /// The response.
        handle: u64,
        /// The size of the part.
        size: Bytes,
        /// How the response may be read from now on.
        reading: Reading,
    },
    /// So much of a response had come and was not read.
    Came {
        /// The response.
        handle: u64,
        /// What was there.
        unread: Bytes,
    },
    /// The server of a response could send so much beyond what had been read.
    Opened {
        /// The response.
        handle: u64,
        /// So much.
        opening: Opening,
    },
    /// The link got another rate.
    Rated {
        /// That.
        rate: Rate,
    },
    /// A class got another weight, if there was such a class.
    Weighed {
        /// The class.
        class: u32,
        /// Its weight.
        weight: NonZeroU32,
    },
    /// Something was asked for that comes in a response.
    Asked {
        /// The response.
        handle: u64,
    },
    /// All of a response had come.
    Whole {
        /// The response.
        handle: u64,
    },
    /// A response is over.
    Ended {
        /// The response.
        handle: u64,
        /// How.
        end: Ended,
    },
    /// Bytes came that answer no known request.
    Unasked {
        /// Class and user that they are for, when that is known.
        whose: Option<(u32, u64)>,
        /// Their number.
        size: Bytes,
    },
    /// The link's counter was read.
    Reported {
        /// What was read.
        report: LinkReport,
        /// *W+* afterwards, in units of 2^-32.
        window: u64,
    },
    /// The scheduler released a request to its server.
    Released {
        /// The request.
        handle: u64,
    },
    /// The scheduler allowed more of a long response to be read.
    Read {
        /// The response.
        handle: u64,
        /// How much more.
        size: Bytes,
    },
    /// There was nothing to do.
    Rested,
}

/// How a response is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All of it has come.
    Complete,
    /// Its server was never asked.
    Unasked,
    /// More of it may come.
    Broken,
}

/// Events in the order in which they happened, each with its time.
pub type Log = Vec<(Time, Event)>;

/// More than any scheduler under test allows to wait.
const MOST_TICKETS: usize = 200;

/// A response in the gateway's hands.
struct Response {
    handle: u64,
    permit: Permit,
    long: bool,
    received: u64,
    /// What has come, read or not, and whether that seems to be all.
    arrived: u64,
    whole: bool,
}

/// A gateway under audit; a broken rule panics.
pub struct Gateway {
    /// The scheduler that it asks.
    pub scheduler: Scheduler,
    config: Config,
    classes: usize,
    now: Time,
    handles: u64,
    /// Handle and ticket of all requests that ever came, and whether they wait.
    tickets: Vec<(u64, Ticket, bool)>,
    responses: Vec<Response>,
    carried: Bytes,
    /// All that happened, for [`compare`](super::compare).
    pub log: Log,
}

impl Response {
    fn new(handle: u64, permit: Permit, received: Bytes) -> Response {
        let Bytes(received) = received;
        Response { handle, permit, long: false, received, arrived: received, whole: false }
    }

    /// What has come beyond what has been read: more than before is no longer all.
    fn bring(&mut self, unread: Bytes) {
        let arrived = self.received.saturating_add(unread.0).max(self.arrived);
        self.whole &= arrived == self.arrived;
        self.arrived = arrived;
    }
}

impl Gateway {
    /// A gateway in front of a link of this rate, with a class for each weight,
    /// at the start of time.
    #[must_use]
    pub fn new(config: Config, rate: Rate, weights: &[NonZeroU32]) -> Gateway {
        Gateway {
            scheduler: Scheduler::new(config, rate, weights, 1),
            config,
            classes: weights.len(),
            now: Time::ZERO,
            handles: 0,
            tickets: Vec::new(),
            responses: Vec::new(),
            carried: Bytes::ZERO,
            log: Log::new(),
        }
    }

    /// Does one thing, and then all that the scheduler wants.
    pub fn apply(&mut self, operation: Operation) {
        let event = match operation {
            Operation::Arrive { class, user } => Some(self.arrive(class, user)),
            Operation::Withdraw(which) => self.withdraw(which),
            Operation::Resume { class, user, received } => self.resume(class, user, received),
            Operation::Receive { response, size } => self.receive(response, size),
            Operation::Come { response, unread } => self.come(response, unread),
            Operation::Open { response, opening } => self.open(response, opening),
            Operation::Complete(which) => self.complete(which),
            Operation::Ask(which) => self.ask(which),
            Operation::End(which) => self.end(which, Ended::Complete),
            Operation::Break(which) => self.end(which, Ended::Broken),
            Operation::Cancel(which) => self.end(which, Ended::Unasked),
            Operation::Unasked { whose, size } => {
                let known = whose.map(|(class, user)| (ClassId(class), UserId(user)));
                self.carried += size;
                self.scheduler.received_unasked(self.now, known, size);
                Some(Event::Unasked { whose, size })
            }
            Operation::Report { other, delay } => {
                self.carried += other;
                let report = LinkReport { carried: self.carried, queueing_delay: delay };
                self.scheduler.report(self.now, report);
                Some(Event::Reported { report, window: self.window() })
            }
            Operation::Rate(rate) => {
                self.scheduler.set_rate(self.now, rate);
                Some(Event::Rated { rate })
            }
            Operation::Weigh { class, weight } => {
                self.scheduler.set_weight(ClassId(class), weight);
                Some(Event::Weighed { class, weight })
            }
            Operation::Wait(span) => {
                self.now += span;
                None
            }
        };
        self.log.extend(event.map(|event| (self.now, event)));
        self.obey();
        self.check();
    }

    /// *W+* in units of 2^-32, which an `f64` holds exactly.
    fn window(&self) -> u64 {
        (self.scheduler.window() * (1_u64 << 32) as f64) as u64
    }

    fn arrive(&mut self, class: u32, user: u64) -> Event {
        let handle = self.handles;
        self.handles += 1;
        let request = Request { handle, class: ClassId(class), user: UserId(user) };
        match self.scheduler.arrive(request) {
            Ok(ticket) => {
                // Old tickets are tried too, but not all that ever were.
                if self.tickets.len() >= MOST_TICKETS {
                    self.tickets.retain(|(.., waits)| *waits);
                }
                self.tickets.push((handle, ticket, true));
                Event::Arrived { request, ticket: handle }
            }
            Err(refusal) => {
                let missing = class as usize >= self.classes;
                let said = matches!(refusal, Refusal::NoSuchClass { .. });
                assert_eq!(said, missing, "{refusal} for {request:?}");
                Event::Refused { request, refusal }
            }
        }
    }

    fn withdraw(&mut self, which: usize) -> Option<Event> {
        let which = which.checked_rem(self.tickets.len())?;
        let (handle, ticket, waits) = &mut self.tickets[which];
        let found = self.scheduler.withdraw(*ticket);
        assert_eq!(found.map(|request| request.handle), waits.then_some(*handle));
        let event = Event::Withdrawn { ticket: *handle, found: *waits };
        *waits = false;
        Some(event)
    }

    fn resume(&mut self, class: u32, user: u64, received: Bytes) -> Option<Event> {
        let handle = self.handles;
        self.handles += 1;
        let request = Request { handle, class: ClassId(class), user: UserId(user) };
        let resumed = self.scheduler.resume(request, received);
        assert_eq!(resumed.is_ok(), (class as usize) < self.classes, "{resumed:?}");
        self.responses.push(Response::new(handle, resumed.ok()?, received));
        Some(Event::Resumed { request, received })
    }

    fn receive(&mut self, which: usize, size: Bytes) -> Option<Event> {
        let which = which.checked_rem(self.responses.len())?;
        let response = &mut self.responses[which];
        self.carried += size;
        let reading = self.scheduler.received(self.now, &response.permit, size);
        response.long |= reading != Reading::Freely;
        response.received = response.received.saturating_add(size.0);
        response.bring(Bytes::ZERO);
        Some(Event::Received { handle: response.handle, size, reading })
    }

    fn come(&mut self, which: usize, unread: Bytes) -> Option<Event> {
        let which = which.checked_rem(self.responses.len())?;
        let response = &mut self.responses[which];
        self.scheduler.came(self.now, &response.permit, unread);
        response.bring(unread);
        Some(Event::Came { handle: response.handle, unread })
    }

    fn open(&mut self, which: usize, opening: Opening) -> Option<Event> {
        let which = which.checked_rem(self.responses.len())?;
        let response = &self.responses[which];
        self.scheduler.opened(self.now, &response.permit, opening);
        Some(Event::Opened { handle: response.handle, opening })
    }

    fn ask(&mut self, which: usize) -> Option<Event> {
        let which = which.checked_rem(self.responses.len())?;
        let Response { handle, permit, .. } = &self.responses[which];
        self.scheduler.asked(permit);
        Some(Event::Asked { handle: *handle })
    }

    fn complete(&mut self, which: usize) -> Option<Event> {
        let which = which.checked_rem(self.responses.len())?;
        let response = &mut self.responses[which];
        self.scheduler.arrived(self.now, &response.permit);
        response.whole = true;
        Some(Event::Whole { handle: response.handle })
    }

    fn end(&mut self, which: usize, end: Ended) -> Option<Event> {
        let which = which.checked_rem(self.responses.len())?;
        let Response { handle, mut permit, .. } = self.responses.remove(which);
        match end {
            Ended::Complete => permit.complete(),
            Ended::Unasked => permit.unasked(),
            Ended::Broken => {}
        }
        Some(Event::Ended { handle, end })
    }

    /// Carries out decisions until there are none.
    fn obey(&mut self) {
        loop {
            let ready = self.scheduler.next_ready(self.now).is_some_and(|at| at <= self.now);
            let decision = self.scheduler.next(self.now);
            assert_eq!(decision.is_some(), ready, "next_ready and next disagree at {}", self.now);
            let event = match decision {
                Some(Decision::Release { request, permit }) => {
                    let handle = request.handle;
                    let waited = self.tickets.iter_mut().find(|(known, ..)| *known == handle);
                    let (_, _, waits) = waited.expect("only what came is released");
                    assert!(std::mem::take(waits), "released twice: {request:?}");
                    self.responses.push(Response::new(handle, permit, Bytes::ZERO));
                    Event::Released { handle }
                }
                Some(Decision::Read { handle, size }) => {
                    let known = self.responses.iter().find(|known| known.handle == handle);
                    assert!(known.is_some_and(|known| known.long), "read of what is not long");
                    Event::Read { handle, size }
                }
                None => Event::Rested,
            };
            self.log.push((self.now, event));
            if event == Event::Rested {
                return;
            }
        }
    }

    /// The books.
    fn check(&mut self) {
        let waiting = self.tickets.iter().filter(|(.., waits)| *waits).count();
        assert_eq!(self.scheduler.waiting(), waiting);
        assert_eq!(self.scheduler.outstanding(), self.responses.len());
        let places = self.responses.iter().filter(|it| !it.long && !it.whole).count();
        let held = self.scheduler.held() as usize;
        // With a read gate, slow responses give their places back.
        let lost = if self.config.read_gate.is_some() { places } else { 0 };
        assert!((places - lost..=places).contains(&held), "{held} places held of {places}");
        assert!(waiting <= self.config.limits.all as usize);
        if self.config.window.mode == WindowMode::Unlimited {
            assert_eq!(waiting, 0, "a request waits without a limit on the window");
        } else if waiting > 0 && self.config.window.mode != WindowMode::Room {
            assert!(held as f64 >= self.scheduler.window(), "a request waits, and a place is free");
        }
    }

    /// All responses end, and all clients leave.
    pub fn close(&mut self) {
        while !self.tickets.is_empty() {
            self.apply(Operation::Withdraw(0));
            self.tickets.remove(0);
        }
        while !self.responses.is_empty() {
            self.apply(Operation::End(0));
        }
    }
}
