//! Viewers of video in segments, and the servers that they ask.
//!
//! Each receiver of a source of video is a viewer with a player ([`crate::video`]), which
//! says what to ask for and when. A viewer has one connection, opened by the first request
//! and kept open, on which segments follow each other as responses of HTTP do. When TCP gives
//! the connection up, the viewer opens another one and asks again.
//!
//! A server answers at once, and has every segment. Name resolution, the manifest, and sound,
//! which comes in segments of its own, are left out.

use tidegate_core::{Bytes, Span, Stream, Time};

use super::App;
use super::response::Response;
use super::senders::Senders;
use super::trouble::Trouble;
use crate::carrier::{Came, Carrier, Heard, Request, Use};
use crate::connections::{AppId, Connection, ConnectionId, Opening, Over, Side};
use crate::scenario::{NodeId, Opener, Scenario, TrafficKind, TrafficSpec, Transfer, VideoProfile};
use crate::simulation::World;
use crate::trace::page_load::Urgency;
use crate::video::{Next, Player};

/// The viewers of a run, and the servers that they ask.
pub(crate) struct Viewers<'a> {
    viewers: Vec<Viewer<'a>>,
    seed: u64,
}

/// A viewer of a source.
struct Viewer<'a> {
    source: usize,
    /// Its number within the source.
    number: u64,
    /// Viewers of the source, for the numbers of segments.
    of: u64,
    spec: &'a TrafficSpec,
    transfer: &'a Transfer,
    profile: &'a VideoProfile,
    senders: Senders,
    node: NodeId,
    player: Player,
    /// Segments that it has asked for.
    asked: u64,
    /// The segment on its way.
    segment: Option<Response>,
    line: Option<Line>,
    /// Whether it has stopped.
    stopped: bool,
}

/// The connection of a viewer.
struct Line {
    connection: ConnectionId,
    carrier: Carrier<()>,
    /// What sets the congestion window, by name.
    congestion: &'static str,
}

/// Why a viewer is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alarm {
    /// Its player may ask for a segment.
    Ask(usize),
    /// It stops.
    Stop(usize),
}

impl Alarm {
    /// As the number with which a program is woken.
    fn number(self) -> u64 {
        match self {
            Alarm::Ask(viewer) => viewer as u64 * 2,
            Alarm::Stop(viewer) => viewer as u64 * 2 + 1,
        }
    }

    fn of(number: u64) -> Alarm {
        let viewer = (number / 2) as usize;
        if number.is_multiple_of(2) { Alarm::Ask(viewer) } else { Alarm::Stop(viewer) }
    }
}

impl<'a> Viewers<'a> {
    pub(crate) fn new(scenario: &'a Scenario, seed: u64) -> Viewers<'a> {
        let mut viewers = Vec::new();
        for (source, spec) in scenario.traffic.iter().enumerate() {
            let TrafficKind::Video { transfer, profile } = &spec.kind else { continue };
            viewers.extend((0..).zip(&transfer.to).map(|(number, node)| Viewer {
                source,
                number,
                of: transfer.to.len() as u64,
                spec,
                transfer,
                profile,
                senders: Senders::new(&transfer.tcp, seed, source),
                node: *node,
                player: Player::new(profile.movie.clone(), profile.buffer, profile.rule),
                asked: 0,
                segment: None,
                line: None,
                stopped: false,
            }));
        }
        Viewers { viewers, seed }
    }

    /// Lets a player go on that has no segment on its way.
    fn go_on(&mut self, world: &mut World<'_>, viewer: usize) {
        let now = world.now();
        let state = &mut self.viewers[viewer];
        if state.stopped {
            return;
        }
        match state.player.next(now) {
            Next::Wait(time) => {
                world.wake(AppId::Viewers, now + time, Alarm::Ask(viewer).number());
            }
            Next::Ask(size) => self.ask(world, viewer, size),
        }
    }

    fn ask(&mut self, world: &mut World<'_>, viewer: usize, size: Bytes) {
        let line = self.viewers[viewer].line.as_ref();
        if line.is_none_or(|line| world.connections.live(line.connection).is_none()) {
            self.open(world, viewer);
        }
        let now = world.now();
        let state = &mut self.viewers[viewer];
        let line = state.line.as_mut().expect("it is open by now");
        let connection = world.connections.live(line.connection).expect("it was looked for");
        let Opener::Receiver { request } = state.transfer.opened_by else {
            unreachable!("viewers open connections")
        };
        // Numbers of a source are unique whatever the others of its viewers ask for.
        let number = state.asked * state.of + state.number;
        let mut segment = Response::new(state.source, number, size, now);
        segment.before = Trouble::of(connection);
        let request = Request {
            object: state.asked as usize,
            size: request.0,
            response: size.0,
            think: Span::ZERO,
            urgency: Urgency::default().0,
            words: (),
        };
        line.carrier.ask(request, connection.endpoint(Side::Opener));
        state.asked += 1;
        state.segment = Some(segment);
    }

    fn open(&mut self, world: &mut World<'_>, viewer: usize) {
        let state = &mut self.viewers[viewer];
        let tcp = state.senders.of(state.number);
        let servers = &state.transfer.from;
        let name = format!("{} viewer {}'s server", state.spec.name, state.number);
        let server = servers[Stream::new(self.seed, &name).index(servers.len())];
        let marking = &state.spec.marking;
        let connection = world.open(&Opening {
            nodes: [state.node, server],
            tcp: [tcp.clone(), tcp.clone()],
            apps: [AppId::Viewers; 2],
            class: state.spec.class,
            dscp: [marking.receiver, marking.sender],
            tag: viewer as u64,
        });
        let end = world.end(connection, Side::Opener).expect("it was opened just now");
        let carrier = Carrier::open(Use::InTurn, state.profile.handshakes, end);
        let congestion = tcp.congestion.name;
        state.line = Some(Line { connection, carrier, congestion });
    }

    /// Payload has arrived at a viewer; returns whether it has written.
    fn come(&mut self, world: &mut World<'_>, id: ConnectionId, viewer: usize) -> bool {
        let mut written = false;
        while let Some(line) = self.viewers[viewer].line.as_mut()
            && let Some(end) = world.end(id, Side::Opener)
        {
            let delivered = end.delivered();
            match line.carrier.come(delivered, end) {
                Some(Came::Flight(_)) => written = true,
                Some(Came::Object(_, bytes)) => written |= self.take(world, viewer, bytes),
                Some(Came::Reset(..)) => unreachable!("the servers of viewers do not fail"),
                None => break,
            }
        }
        written
    }

    /// So many bytes more of a segment have arrived; returns whether it asked for another.
    fn take(&mut self, world: &mut World<'_>, viewer: usize, bytes: u64) -> bool {
        let now = world.now();
        let state = &mut self.viewers[viewer];
        let Some(segment) = &mut state.segment else { return false };
        segment.take(now, bytes);
        if !segment.is_complete() {
            return false;
        }
        let (first, rest) = segment.took();
        self.end_segment(world, viewer, None);
        let state = &mut self.viewers[viewer];
        if !state.stopped {
            state.player.came(now, first, rest);
            self.go_on(world, viewer);
        }
        self.viewers[viewer].segment.is_some()
    }

    /// Reports a segment that has arrived, or never will, with its connection if that has
    /// ended.
    fn end_segment(
        &mut self,
        world: &mut World<'_>,
        viewer: usize,
        connection: Option<&mut Connection>,
    ) {
        let now = world.now();
        let state = &mut self.viewers[viewer];
        let Some(segment) = state.segment.take() else { return };
        let mut line = state.line.as_mut();
        if let Some(line) = &mut line {
            line.carrier.objects.clear();
        }
        let connection = match (connection, &line) {
            (Some(connection), _) => Some(connection),
            (None, Some(line)) => world.connections.live(line.connection),
            (None, None) => None,
        };
        let trouble = connection.map(Trouble::of);
        let row = segment.record(now, trouble, line.map(|line| line.congestion));
        world.report(&row, now);
    }

    /// A viewer turns its player off.
    fn stop(&mut self, world: &mut World<'_>, viewer: usize) {
        let now = world.now();
        let state = &mut self.viewers[viewer];
        if state.stopped {
            return;
        }
        state.stopped = true;
        if world.is_measured(now) {
            world.summary.traffic[state.source].viewings.push(state.player.viewing(now));
        }
        if let Some(line) = &state.line
            && let Some(end) = world.end(line.connection, Side::Opener)
        {
            end.close();
            world.act(line.connection, Side::Opener);
        }
    }

    /// What viewers saw so far is not measured.
    pub(crate) fn forget_warm_up(&mut self, now: Time) {
        self.viewers.iter_mut().for_each(|viewer| viewer.player.forget(now));
    }

    /// Reports the segments that the end cuts off, and what viewers saw.
    pub(crate) fn finish(&mut self, world: &mut World<'_>) {
        for viewer in 0..self.viewers.len() {
            self.end_segment(world, viewer, None);
            let now = world.now();
            let state = &mut self.viewers[viewer];
            if !state.stopped {
                state.stopped = true;
                world.summary.traffic[state.source].viewings.push(state.player.viewing(now));
            }
        }
    }

    /// Payload or an acknowledgement has arrived at a server; returns whether it has written
    /// or closed.
    fn hear(&mut self, world: &mut World<'_>, id: ConnectionId, viewer: usize) -> bool {
        let Some(end) = world.connections.live(id).map(|it| it.endpoint(Side::Acceptor)) else {
            return false;
        };
        let Some(line) = &mut self.viewers[viewer].line else { return false };
        let delivered = end.delivered();
        let mut acts = false;
        while let Some(heard) = line.carrier.hear(delivered, end) {
            match heard {
                Heard::Request(request) => line.carrier.respond(request),
                Heard::Flight => acts = true,
                Heard::Cancelled(_) => unreachable!("viewers wait for what they ask for"),
            }
        }
        acts |= line.carrier.fill(end);
        if end.peer_finished() {
            end.close();
            acts = true;
        }
        acts
    }
}

impl App for Viewers<'_> {
    fn start(&mut self, world: &mut World<'_>) {
        for (viewer, state) in self.viewers.iter().enumerate() {
            let name = format!("{} viewer {}", state.spec.name, state.number);
            let within = state.profile.movie.segment().as_seconds();
            let later = Span::from_seconds(Stream::new(self.seed, &name).uniform() * within);
            let at = state.spec.start + later;
            if at < state.spec.stop {
                world.wake(AppId::Viewers, at, Alarm::Ask(viewer).number());
                world.wake(AppId::Viewers, state.spec.stop, Alarm::Stop(viewer).number());
            }
        }
    }

    fn on_wake(&mut self, world: &mut World<'_>, number: u64) {
        match Alarm::of(number) {
            Alarm::Stop(viewer) => self.stop(world, viewer),
            Alarm::Ask(viewer) => {
                self.go_on(world, viewer);
                if let Some(line) = &self.viewers[viewer].line {
                    world.act(line.connection, Side::Opener);
                }
            }
        }
    }

    fn on_segment(&mut self, world: &mut World<'_>, id: ConnectionId, side: Side) -> bool {
        let Some(connection) = world.connections.live(id) else { return false };
        let viewer = connection.tag as usize;
        match side {
            Side::Acceptor => self.hear(world, id, viewer),
            Side::Opener => self.come(world, id, viewer),
        }
    }

    fn on_over(
        &mut self,
        world: &mut World<'_>,
        connection: &mut Connection,
        side: Side,
        _over: Over,
    ) {
        // Both ends are here: one of them does what is to be done.
        if side == Side::Acceptor {
            return;
        }
        let viewer = connection.tag as usize;
        let line = self.viewers[viewer].line.as_ref();
        if line.is_some_and(|line| world.connections.live(line.connection).is_some()) {
            // It has another one by now.
            return;
        }
        let was_waiting = self.viewers[viewer].segment.is_some();
        self.end_segment(world, viewer, Some(connection));
        self.viewers[viewer].line = None;
        // TCP has given it up, and the picture goes on only with a new one.
        if was_waiting {
            let now = world.now();
            world.wake(AppId::Viewers, now, Alarm::Ask(viewer).number());
        }
    }
}
