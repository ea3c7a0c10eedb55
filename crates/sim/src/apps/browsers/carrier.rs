//! One connection of a browser, seen from both of its ends: what each end has written,
//! and what that means when it arrives.
//!
//! Payload is counted, not carried. So the words of each direction are kept here in
//! their order, and come out when so much payload has arrived. From the browser these
//! are the flights of the TLS handshake and requests; from the server flights and
//! frames.
//!
//! A server with several responses decides frame by frame which of them goes on, and as
//! late as it can: it keeps one frame in the socket beyond what TCP may send now. What it
//! has handed over it cannot take back. Frames have 16 384 bytes, the most that a
//! receiver has to accept (RFC 9113 section 4.2) and one record of TLS. Their headers
//! (9 bytes) and those of records (22 bytes) are left out: 0.2%.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tidegate_core::Span;

use crate::connections::ConnectionId;
use crate::scenario::FrameOrder;
use crate::tcp::Endpoint;

/// Payload of a full frame.
const FRAME: u64 = 16_384;

/// The round trips of a TLS handshake, as the bytes of the browser and of the server.
/// TLS 1.3 has one: a ClientHello, which browsers pad to about 500 bytes, and a flight
/// that consists of certificates, of more than 3.6 kB with 35% of all servers
/// (Nawrocki 2022). TLS 1.2 has another, of keys. The browser's last flight travels
/// with the first request and is left out.
const FLIGHTS: [(u64, u64); 2] = [(517, 3_000), (126, 51)];

/// A request, as it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// The object that it asks for.
    pub(super) object: usize,
    /// Size of the request, and of the response.
    pub(super) size: u64,
    pub(super) response: u64,
    /// How long the server thinks.
    pub(super) think: Span,
    pub(super) urgency: u8,
}

/// What arrives at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Flight,
    Request(Request),
}

/// What arrives at a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// The handshake goes on, and a request may be sent if it is over.
    Flight,
    /// So many bytes more of an object.
    Object(usize, u64),
}

/// A response that a server has to send.
#[derive(Clone, Copy, Debug)]
struct Response {
    object: usize,
    left: u64,
    /// Of the request; 0 where all take turns.
    urgency: u8,
}

/// A connection that carries responses.
#[derive(Debug)]
pub(super) struct Carrier {
    pub(super) connection: ConnectionId,
    /// Distinguishes it from others that have had its place.
    pub(super) serial: u64,
    order: FrameOrder,
    /// Flights of the handshake that each end has to send, and how many of them have arrived.
    flights: usize,
    arrived: usize,
    /// Requests that wait for the end of the handshake.
    held: VecDeque<Request>,
    /// What the browser has written and the server has not heard, by the place of its end.
    asked: VecDeque<(u64, Heard)>,
    written: u64,
    /// Responses that the server has to send, by their turns.
    ready: BTreeMap<(u8, u64), Response>,
    turn: u64,
    /// What the server has written and has not arrived: what, and how much of it.
    sent: VecDeque<(Option<usize>, u64)>,
    taken: u64,
    /// The objects that it carries or is to carry.
    pub(super) objects: BTreeSet<usize>,
    /// How many objects it has been given.
    pub(super) given: u64,
}

impl Carrier {
    /// A connection that is being opened; the browser writes first what it has to send.
    pub(super) fn open(
        connection: ConnectionId,
        serial: u64,
        order: FrameOrder,
        handshakes: usize,
        end: &mut Endpoint,
    ) -> Carrier {
        let mut carrier = Carrier {
            connection,
            serial,
            order,
            flights: handshakes.min(FLIGHTS.len()),
            arrived: 0,
            held: VecDeque::new(),
            asked: VecDeque::new(),
            written: 0,
            ready: BTreeMap::new(),
            turn: 0,
            sent: VecDeque::new(),
            taken: 0,
            objects: BTreeSet::new(),
            given: 0,
        };
        carrier.go_on(end);
        carrier
    }

    // The browser's end.

    /// The browser asks for an object, once the handshake is over.
    pub(super) fn ask(&mut self, request: Request, end: &mut Endpoint) {
        self.objects.insert(request.object);
        self.given += 1;
        self.held.push_back(request);
        if self.arrived == self.flights {
            self.go_on(end);
        }
    }

    /// The browser writes what it may: the next flight of the handshake, or all requests.
    fn go_on(&mut self, end: &mut Endpoint) {
        if self.arrived < self.flights {
            return self.say(Heard::Flight, FLIGHTS[self.arrived].0, end);
        }
        while let Some(request) = self.held.pop_front() {
            self.say(Heard::Request(request), request.size, end);
        }
    }

    fn say(&mut self, what: Heard, bytes: u64, end: &mut Endpoint) {
        self.written += bytes;
        self.asked.push_back((self.written, what));
        end.write(bytes);
    }

    /// What comes next of the payload that has arrived at the browser; call it until it
    /// returns `None`.
    pub(super) fn come(&mut self, delivered: u64, end: &mut Endpoint) -> Option<Came> {
        let fresh = delivered - self.taken;
        let (object, left) = self.sent.front_mut()?;
        match *object {
            Some(_) if fresh == 0 => None,
            Some(object) => {
                let bytes = fresh.min(*left);
                *left -= bytes;
                self.taken += bytes;
                if *left == 0 {
                    self.sent.pop_front();
                }
                Some(Came::Object(object, bytes))
            }
            None if fresh < *left => None,
            None => {
                self.taken += *left;
                self.sent.pop_front();
                self.arrived += 1;
                self.go_on(end);
                Some(Came::Flight)
            }
        }
    }

    // The server's end.

    /// What comes next of the payload that has arrived at the server, which answers
    /// flights by itself; call it until it returns `None`.
    pub(super) fn hear(&mut self, delivered: u64, end: &mut Endpoint) -> Option<Heard> {
        self.asked.front().filter(|(place, _)| *place <= delivered)?;
        let (_, heard) = self.asked.pop_front()?;
        if heard == Heard::Flight {
            let bytes = FLIGHTS[self.arrived].1;
            self.sent.push_back((None, bytes));
            end.write(bytes);
        }
        Some(heard)
    }

    /// The server has a response.
    pub(super) fn respond(&mut self, request: Request) {
        let urgency = match self.order {
            FrameOrder::RoundRobin => 0,
            FrameOrder::Priority => request.urgency,
        };
        let (object, left) = (request.object, request.response);
        self.turn += 1;
        self.ready.insert((urgency, self.turn), Response { object, left, urgency });
    }

    /// The server writes frames as long as the socket wants some; returns whether it did.
    pub(super) fn fill(&mut self, end: &mut Endpoint) -> bool {
        let mut written = false;
        while end.held_back() < FRAME
            && let Some((turn, mut response)) = self.ready.pop_first()
        {
            let frame = response.left.min(FRAME);
            end.write(frame);
            written = true;
            match self.sent.back_mut() {
                Some((Some(last), bytes)) if *last == response.object => *bytes += frame,
                _ => self.sent.push_back((Some(response.object), frame)),
            }
            response.left -= frame;
            if response.left > 0 {
                let turn = match self.order {
                    FrameOrder::RoundRobin => {
                        self.turn += 1;
                        (response.urgency, self.turn)
                    }
                    FrameOrder::Priority => turn,
                };
                self.ready.insert(turn, response);
            }
        }
        written
    }
}
