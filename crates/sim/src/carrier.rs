//! One connection of HTTP, seen from both of its ends: what each end has written, and
//! what that means when it arrives.
//!
//! Payload is counted, not carried. So the words of each direction are kept here in
//! their order, and come out when so much payload has arrived. From the client, a
//! browser or a gateway, these are the flights of the TLS handshake and requests; from
//! the server, or a gateway in its place, flights and frames.
//!
//! A server with several responses decides frame by frame which of them goes on, and as
//! late as it can: it keeps one frame in the socket beyond what TCP may send now. What it
//! has handed over it cannot take back. Frames have 16 384 bytes, the most that a
//! receiver has to accept (RFC 9113 section 4.2) and one record of TLS. Their headers
//! (9 bytes) and those of records (22 bytes) are left out: 0.2%. Where responses follow
//! each other there is nothing to decide, and what is there is written at once.
//!
//! A request has words of its own, of the type `W`: whatever the program at the other end
//! has to know.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tidegate_core::Span;

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

/// A frame of HTTP/2 that ends a stream before its time, RST_STREAM (RFC 9113 section
/// 6.4).
const RESET: u64 = 13;

/// A request, as it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request<W> {
    /// The object that it asks for.
    pub(crate) object: usize,
    /// Size of the request, and of the response.
    pub(crate) size: u64,
    pub(crate) response: u64,
    /// How long the server thinks.
    pub(crate) think: Span,
    pub(crate) urgency: u8,
    /// Its words.
    pub(crate) words: W,
}

/// What arrives at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard<W> {
    Flight,
    Request(Request<W>),
    /// The client wants nothing more of an object.
    Cancelled(usize),
}

/// What arrives at a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// The handshake goes on, by so many bytes, and a request may be sent if it is over.
    Flight(u64),
    /// So many bytes more of an object.
    Object(usize, u64),
    /// Nothing more comes of an object, for this reason.
    Reset(usize, u16),
}

/// What arrives at a tunnel's entrance, and how many bytes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<W> {
    /// A part of what is not yet whole.
    Part(u64),
    /// The last part, and what it is.
    Last(Heard<W>, u64),
}

/// What a server has written and has not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Flight,
    Object(usize),
    Reset(usize, u16),
}

/// A response that a server has to send.
#[derive(Clone, Copy, Debug)]
struct Response {
    object: usize,
    left: u64,
    /// Of the request; 0 where all take turns.
    urgency: u8,
    /// Why nothing more follows behind what is left, if the response ends too early.
    reset: Option<u16>,
}

/// The use of a connection by responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// One response, behind which the server closes.
    Once,
    /// Responses that follow each other.
    InTurn,
    /// Any number of responses at a time, whose frames have this order.
    Multiplexed(FrameOrder),
}

impl Use {
    /// Whether several responses are on their way at a time.
    pub(crate) fn is_shared(self) -> bool {
        matches!(self, Use::Multiplexed(_))
    }
}

/// A connection that carries responses.
#[derive(Debug)]
pub(crate) struct Carrier<W> {
    pub(crate) usage: Use,
    /// Flights of the handshake that each end has to send, and how many of them have arrived.
    flights: usize,
    arrived: usize,
    /// Requests that wait for the end of the handshake.
    held: VecDeque<Request<W>>,
    /// What the client has written and the server has not heard, by the place of its end.
    asked: VecDeque<(u64, Heard<W>)>,
    written: u64,
    /// How much of that the server has heard, a part of a request included.
    heard: u64,
    /// Responses that the server has to send, by their turns.
    ready: BTreeMap<(u8, u64), Response>,
    turn: u64,
    /// What the server has written and has not arrived: what, and how much of it.
    sent: VecDeque<(Sent, u64)>,
    taken: u64,
    /// The objects that it carries or is to carry.
    pub(crate) objects: BTreeSet<usize>,
    /// How many objects it has been given.
    pub(crate) given: u64,
}

impl<W: Copy + PartialEq> Carrier<W> {
    /// A connection that is being opened; the client writes first what it has to send.
    pub(crate) fn open(usage: Use, handshakes: usize, end: &mut Endpoint) -> Carrier<W> {
        let mut carrier = Carrier {
            usage,
            flights: handshakes.min(FLIGHTS.len()),
            arrived: 0,
            held: VecDeque::new(),
            asked: VecDeque::new(),
            written: 0,
            heard: 0,
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

    // The client's end.

    /// The client asks for an object, once the handshake is over.
    pub(crate) fn ask(&mut self, request: Request<W>, end: &mut Endpoint) {
        self.objects.insert(request.object);
        self.given += 1;
        self.held.push_back(request);
        if self.arrived == self.flights {
            self.go_on(end);
        }
    }

    /// The client wants nothing more of an object: what is on its way is skipped, and the
    /// server stops when it hears of that.
    pub(crate) fn cancel(&mut self, object: usize, end: &mut Endpoint) {
        self.objects.remove(&object);
        let held = self.held.len();
        self.held.retain(|request| request.object != object);
        if self.held.len() == held {
            self.say(Heard::Cancelled(object), RESET, end);
        }
    }

    /// Whether the request for an object is still on its way to the server.
    pub(crate) fn is_unheard(&self, object: usize) -> bool {
        let asked = self.asked.iter().map(|(_, heard)| heard);
        let asked =
            asked.filter(|heard| matches!(heard, Heard::Request(it) if it.object == object));
        asked.count() + self.held.iter().filter(|it| it.object == object).count() > 0
    }

    /// The client writes what it may: the next flight of the handshake, or all requests.
    fn go_on(&mut self, end: &mut Endpoint) {
        if self.arrived < self.flights {
            return self.say(Heard::Flight, FLIGHTS[self.arrived].0, end);
        }
        while let Some(request) = self.held.pop_front() {
            self.say(Heard::Request(request), request.size, end);
        }
    }

    fn say(&mut self, what: Heard<W>, bytes: u64, end: &mut Endpoint) {
        self.written += bytes;
        self.asked.push_back((self.written, what));
        end.write(bytes);
    }

    /// What comes next of the payload that has arrived at the client; call it until it
    /// returns `None`.
    pub(crate) fn come(&mut self, delivered: u64, end: &mut Endpoint) -> Option<Came> {
        let fresh = delivered - self.taken;
        let (sent, left) = self.sent.front_mut()?;
        let sent = *sent;
        if let Sent::Object(object) = sent {
            if fresh == 0 {
                return None;
            }
            let bytes = fresh.min(*left);
            *left -= bytes;
            self.taken += bytes;
            if *left == 0 {
                self.sent.pop_front();
            }
            return Some(Came::Object(object, bytes));
        }
        if fresh < *left {
            return None;
        }
        let bytes = *left;
        self.taken += bytes;
        self.sent.pop_front();
        if let Sent::Reset(object, reason) = sent {
            return Some(Came::Reset(object, reason));
        }
        self.arrived += 1;
        self.go_on(end);
        Some(Came::Flight(bytes))
    }

    // A tunnel, whose entrance is in the place of the server, and whose exit in that of
    // the client.

    /// What comes next of the payload that has arrived at the entrance; call it until it
    /// returns `None`.
    pub(crate) fn enter(&mut self, delivered: u64) -> Option<Piece<W>> {
        let (place, what) = *self.asked.front()?;
        let bytes = place.min(delivered) - self.heard;
        self.heard += bytes;
        if self.heard == place {
            self.asked.pop_front();
            Some(Piece::Last(what, bytes))
        } else {
            (bytes > 0).then_some(Piece::Part(bytes))
        }
    }

    /// A piece leaves by the exit.
    pub(crate) fn leave(&mut self, piece: Piece<W>, end: &mut Endpoint) {
        match piece {
            Piece::Part(bytes) => {
                self.written += bytes;
                end.write(bytes);
            }
            Piece::Last(what, bytes) => self.say(what, bytes, end),
        }
    }

    /// What has come back to the exit goes back through the entrance.
    pub(crate) fn go_back(&mut self, came: Came, end: &mut Endpoint) {
        let (sent, bytes) = match came {
            Came::Flight(bytes) => (Sent::Flight, bytes),
            Came::Object(object, bytes) => (Sent::Object(object), bytes),
            Came::Reset(object, reason) => {
                return self.write_reset(object, reason, end);
            }
        };
        self.sent.push_back((sent, bytes));
        end.write(bytes);
    }

    // The server's end.

    /// What comes next of the payload that has arrived at the server, which answers
    /// flights by itself; call it until it returns `None`.
    pub(crate) fn hear(&mut self, delivered: u64, end: &mut Endpoint) -> Option<Heard<W>> {
        self.asked.front().filter(|(place, _)| *place <= delivered)?;
        let (place, heard) = self.asked.pop_front()?;
        self.heard = place;
        if heard == Heard::Flight {
            let bytes = FLIGHTS[self.arrived].1;
            self.sent.push_back((Sent::Flight, bytes));
            end.write(bytes);
        }
        if let Heard::Cancelled(object) = heard {
            self.ready.retain(|_, response| response.object != object);
        }
        Some(heard)
    }

    /// The server has a response.
    pub(crate) fn respond(&mut self, request: Request<W>) {
        self.offer(request, request.response);
    }

    /// The server has so much more of a response, whose earlier parts it may have sent.
    pub(crate) fn offer(&mut self, request: Request<W>, bytes: u64) {
        if let Some(response) = self.ready.values_mut().find(|it| it.object == request.object) {
            response.left += bytes;
        } else if bytes > 0 {
            let urgency = match self.usage {
                Use::Multiplexed(FrameOrder::Priority) => request.urgency,
                Use::Once | Use::InTurn | Use::Multiplexed(FrameOrder::RoundRobin) => 0,
            };
            self.turn += 1;
            let response = Response { object: request.object, left: bytes, urgency, reset: None };
            self.ready.insert((urgency, self.turn), response);
        }
    }

    /// The server ends the response of an object for this reason, behind what it has sent
    /// of it.
    pub(crate) fn reset(&mut self, object: usize, reason: u16, end: &mut Endpoint) {
        match self.ready.values_mut().find(|response| response.object == object) {
            Some(response) => response.reset = Some(reason),
            None => self.write_reset(object, reason, end),
        }
    }

    /// What the server has of its responses and has not written.
    pub(crate) fn unwritten(&self) -> u64 {
        self.ready.values().map(|response| response.left).sum()
    }

    fn write_reset(&mut self, object: usize, reason: u16, end: &mut Endpoint) {
        // Where responses have no frames, it stands for a segment that resets: it takes
        // a place behind the others, and arrives when and where a packet would.
        let bytes = if self.usage.is_shared() { RESET } else { 1 };
        self.sent.push_back((Sent::Reset(object, reason), bytes));
        end.write(bytes);
    }

    /// The server writes frames as long as the socket wants some; returns whether it did.
    pub(crate) fn fill(&mut self, end: &mut Endpoint) -> bool {
        let (frames, order) = match self.usage {
            Use::Once | Use::InTurn => (u64::MAX, FrameOrder::RoundRobin),
            Use::Multiplexed(order) => (FRAME, order),
        };
        let mut written = false;
        while end.held_back() < frames
            && let Some((turn, mut response)) = self.ready.pop_first()
        {
            let frame = response.left.min(frames);
            end.write(frame);
            written = true;
            match self.sent.back_mut() {
                Some((Sent::Object(last), bytes)) if *last == response.object => *bytes += frame,
                _ => self.sent.push_back((Sent::Object(response.object), frame)),
            }
            response.left -= frame;
            if response.left > 0 {
                let turn = match order {
                    FrameOrder::RoundRobin => {
                        self.turn += 1;
                        (response.urgency, self.turn)
                    }
                    FrameOrder::Priority => turn,
                };
                self.ready.insert(turn, response);
            } else if let Some(reason) = response.reset {
                self.write_reset(response.object, reason, end);
            }
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::tcp::TcpConfig;

    fn ends() -> [Endpoint; 2] {
        let tcp = Arc::new(TcpConfig::today());
        [Endpoint::connect(tcp.clone(), 1), Endpoint::listen(tcp, 2)]
    }

    fn request(object: usize, size: u64, response: u64) -> Request<()> {
        Request { object, size, response, think: Span::ZERO, urgency: 3, words: () }
    }

    #[test]
    fn a_tunnel_passes_parts_on_and_its_ends_see_what_was_said() {
        let [mut client, mut entrance] = ends();
        let [mut exit, mut server] = ends();
        let mut near = Carrier::open(Use::InTurn, 1, &mut client);
        let mut far = Carrier::open(Use::InTurn, 0, &mut exit);
        near.ask(request(7, 1_000, 500), &mut client);
        // The handshake goes through whole, and its answer back.
        assert_eq!(near.enter(100), Some(Piece::Part(100)));
        assert_eq!(near.enter(517), Some(Piece::Last(Heard::Flight, 417)));
        far.leave(Piece::Part(100), &mut exit);
        far.leave(Piece::Last(Heard::Flight, 417), &mut exit);
        assert_eq!(far.hear(516, &mut server), None);
        assert_eq!(far.hear(517, &mut server), Some(Heard::Flight));
        assert_eq!(far.come(2_999, &mut exit), None);
        let flight = Came::Flight(3_000);
        assert_eq!(far.come(3_000, &mut exit), Some(flight));
        near.go_back(flight, &mut entrance);
        assert_eq!(near.come(3_000, &mut client), Some(flight));
        // The request follows, in parts.
        assert_eq!(near.enter(517), None);
        assert_eq!(near.enter(917), Some(Piece::Part(400)));
        let last = near.enter(1_517).expect("it is there");
        let Piece::Last(Heard::Request(heard), 600) = last else { panic!("{last:?}") };
        assert!(near.enter(1_517).is_none() && !near.is_unheard(7));
        far.leave(Piece::Part(400), &mut exit);
        assert_eq!(far.hear(917, &mut server), None);
        far.leave(last, &mut exit);
        assert_eq!(far.hear(1_517, &mut server), Some(Heard::Request(heard)));
        // And its response, which breaks off after a part.
        far.offer(heard, 200);
        far.fill(&mut server);
        far.reset(7, 502, &mut server);
        for (delivered, came) in [(3_150, Came::Object(7, 150)), (3_201, Came::Object(7, 50))] {
            assert_eq!(far.come(delivered, &mut exit), Some(came));
            near.go_back(came, &mut entrance);
        }
        let reset = Came::Reset(7, 502);
        assert_eq!(far.come(3_201, &mut exit), Some(reset));
        near.go_back(reset, &mut entrance);
        let all: Vec<_> = std::iter::from_fn(|| near.come(3_201, &mut client)).collect();
        assert_eq!(all, [Came::Object(7, 150), Came::Object(7, 50), reset]);
    }

    #[test]
    fn where_responses_share_a_connection_one_ends_early_and_the_others_go_on() {
        let [mut client, mut server] = ends();
        let usage = Use::Multiplexed(FrameOrder::RoundRobin);
        let mut carrier = Carrier::open(usage, 0, &mut client);
        for object in [1, 2, 3] {
            carrier.ask(request(object, 100, 30_000), &mut client);
        }
        assert!(carrier.is_unheard(3));
        while let Some(Heard::Request(heard)) = carrier.hear(300, &mut server) {
            carrier.respond(heard);
        }
        // One frame, and no more, waits in the socket of a connection that is not open.
        assert!(carrier.fill(&mut server) && !carrier.fill(&mut server));
        assert_eq!(carrier.come(16_384, &mut client), Some(Came::Object(1, 16_384)));
        // The client gives up what has not been sent, and a response fails behind its end.
        carrier.cancel(2, &mut client);
        assert_eq!(carrier.hear(313, &mut server), Some(Heard::Cancelled(2)));
        carrier.reset(1, 502, &mut server);
        let left: u64 = carrier.ready.values().map(|response| response.left).sum();
        assert_eq!(left, 30_000 - 16_384 + 30_000);
        assert!(carrier.ready.values().all(|response| response.object != 2));
        // What is neither on its way nor begun ends at once, in a frame.
        carrier.reset(9, 503, &mut server);
        assert_eq!(carrier.come(16_384 + 12, &mut client), None);
        assert_eq!(carrier.come(16_384 + 13, &mut client), Some(Came::Reset(9, 503)));
    }
}
