//! One run: a scenario, a discipline, a seed.
//!
//! The loop takes the next event, lets the link, connection or program that it
//! names act, and carries out what that gives: segments to send, timers to set.
//! Everything that a program sees and does goes through the `World`.

mod calls;
mod datagrams;
mod lookups;
mod quic;
mod radio;
mod world;

use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_core::Time;

use self::world::Ended;
pub(crate) use self::world::{Event, World};
use crate::apps::{App, Browsers, Calls, Gateway, Resolvers, Traffic, Viewers};
use crate::connections::{AppId, ConnectionId, Side};
use crate::datagrams::DatagramFlows;
use crate::metrics::{Recorder, RunSummary};
use crate::quic::QuicId;
use crate::scenario::{DisciplineChoice, Scenario};
use crate::unloaded::Unloaded;

/// The number of events between two checks of the stop flag.
const EVENTS_BETWEEN_STOPS: u64 = 1 << 14;

/// Runs `scenario` with `discipline` in the tested places. Rows go to
/// `recorder`; when `stop` becomes true the run ends early, with what it has.
pub fn run(
    scenario: &Scenario,
    discipline: &DisciplineChoice,
    seed: u64,
    recorder: &mut dyn Recorder,
    stop: &AtomicBool,
) -> RunSummary {
    let unloaded = Some(Unloaded::new(scenario));
    Simulation::new(scenario, discipline, seed, unloaded, recorder, None).run(stop).0
}

/// The same with the programs of a gateway's users, which come back with their books.
pub(crate) fn run_gateway<'a>(
    scenario: &'a Scenario,
    discipline: &DisciplineChoice,
    seed: u64,
    recorder: &'a mut dyn Recorder,
    stop: &AtomicBool,
    gateway: Gateway<'a>,
) -> (RunSummary, Gateway<'a>) {
    let simulation = Simulation::new(scenario, discipline, seed, None, recorder, Some(gateway));
    let (summary, gateway) = simulation.run(stop);
    (summary, gateway.expect("it has been put in"))
}

/// Runs a scenario with one flow, under FIFO, for the flow's row only.
pub(crate) fn run_alone(scenario: &Scenario, recorder: &mut dyn Recorder) {
    let fifo = DisciplineChoice::with_defaults(&tidegate_core::discipline::fifo::ENTRY);
    Simulation::new(scenario, &fifo, 0, None, recorder, None).run(&AtomicBool::new(false));
}

struct Simulation<'a> {
    world: World<'a>,
    programs: Programs<'a>,
}

/// The programs of a run.
pub(crate) struct Programs<'a> {
    traffic: Traffic,
    browsers: Browsers<'a>,
    viewers: Viewers<'a>,
    calls: Calls,
    resolvers: Resolvers<'a>,
    gateway: Option<Gateway<'a>>,
}

impl Programs<'_> {
    /// Tells a program of a segment: see [`App::on_segment`]. Almost all are of traffic,
    /// which is asked without a detour.
    fn on_segment(
        &mut self,
        app: AppId,
        world: &mut World<'_>,
        connection: ConnectionId,
        side: Side,
    ) -> bool {
        match app {
            AppId::Traffic => self.traffic.on_segment(world, connection, side),
            _ => self.app(app).on_segment(world, connection, side),
        }
    }

    /// The same of a QUIC connection, after a packet or a timer.
    fn on_quic(&mut self, app: AppId, world: &mut World<'_>, connection: QuicId, side: Side) {
        match app {
            AppId::Browsers => self.browsers.on_quic(world, connection, side),
            _ => self.traffic.on_quic(world, connection, side),
        }
    }

    /// The program with this name.
    pub(crate) fn app(&mut self, app: AppId) -> &mut dyn App {
        match (app, &mut self.gateway) {
            (AppId::Traffic, _) => &mut self.traffic,
            (AppId::Browsers, _) => &mut self.browsers,
            (AppId::Viewers, _) => &mut self.viewers,
            (AppId::Calls, _) => &mut self.calls,
            (AppId::Resolvers, _) => &mut self.resolvers,
            (_, Some(gateway)) => gateway.app(app),
            (_, None) => unreachable!("{app:?} runs with a gateway's users only"),
        }
    }
}

impl<'a> Simulation<'a> {
    fn new(
        scenario: &'a Scenario,
        discipline: &DisciplineChoice,
        seed: u64,
        unloaded: Option<Unloaded<'a>>,
        recorder: &'a mut dyn Recorder,
        gateway: Option<Gateway<'a>>,
    ) -> Simulation<'a> {
        let traffic = Traffic::new(scenario, seed);
        let browsers = Browsers::new(scenario, seed);
        let viewers = Viewers::new(scenario, seed);
        let calls = Calls::new(scenario, seed);
        let resolvers = Resolvers::new(scenario, seed);
        let datagrams = std::iter::zip(traffic.sources(), &scenario.traffic)
            .map(|(source, spec)| DatagramFlows::new(&**source, spec.deadline.is_some()))
            .collect();
        let world = World::new(scenario, discipline, seed, unloaded, datagrams, recorder);
        Simulation {
            world,
            programs: Programs { traffic, browsers, viewers, calls, resolvers, gateway },
        }
    }

    fn run(mut self, stop: &AtomicBool) -> (RunSummary, Option<Gateway<'a>>) {
        self.start();
        let end = Time(self.world.scenario.duration.0);
        while let Some(event) = self.world.kernel.next(end) {
            self.handle(event);
            let look = self.world.kernel.handled().is_multiple_of(EVENTS_BETWEEN_STOPS);
            if look && stop.load(Ordering::Relaxed) {
                let now = self.world.now();
                return self.finish(now);
            }
        }
        self.finish(end)
    }

    fn start(&mut self) {
        let Simulation { world, programs } = self;
        world.kernel.schedule(Time(world.scenario.warm_up.0), Event::WarmedUp);
        world.kernel.schedule(Time(world.scenario.sample_every.0), Event::Sample);
        programs.traffic.start(world);
        programs.browsers.start(world);
        programs.viewers.start(world);
        programs.calls.start(world);
        programs.resolvers.start(world);
        if let Some(gateway) = &mut programs.gateway {
            gateway.start(world);
        }
    }

    fn handle(&mut self, event: Event) {
        let Simulation { world, programs } = self;
        match event {
            Event::Arrival(link) => {
                if let Some(segment) = world.arrive(usize::from(link)) {
                    world.deliver(segment, programs);
                }
            }
            Event::Ready(link) => world.serve(usize::from(link), true),
            Event::Access(cell) => world.access(usize::from(cell)),
            Event::Timer(connection, side) => world.on_timer(connection, side),
            Event::QuicTimer(connection, side) => world.on_quic_timer(connection, side, programs),
            Event::Wake(app, number) => programs.app(app).on_wake(world, number),
            Event::Sample => {
                let now = world.now();
                world.kernel.schedule(now + world.scenario.sample_every, Event::Sample);
                world.sample_links();
                programs.traffic.sample(world);
                if let Some(gateway) = &mut programs.gateway {
                    gateway.sample(world);
                }
                world.recorder.reached(now);
            }
            Event::WarmedUp => {
                programs.traffic.forget_warm_up(world);
                programs.viewers.forget_warm_up(world.now());
                programs.gateway.iter_mut().for_each(Gateway::forget_warm_up);
                world.forget_warm_up();
            }
        }
        if self.world.has_over() {
            self.tell_of_the_over();
        }
    }

    /// Tells the programs about connections that have ended; their reaction may end others.
    fn tell_of_the_over(&mut self) {
        while let Some(ended) = self.world.take_over() {
            let (mut connection, over) = match ended {
                Ended::Tcp(connection, over) => (connection, over),
                Ended::Quic(connection) => {
                    let Programs { traffic, browsers, .. } = &mut self.programs;
                    match connection.app {
                        AppId::Browsers => browsers.on_quic_over(&mut self.world, *connection),
                        _ => traffic.on_quic_over(&mut self.world, *connection),
                    }
                    continue;
                }
            };
            for side in [Side::Opener, Side::Acceptor] {
                let app = self.programs.app(connection.app(side));
                app.on_over(&mut self.world, &mut connection, side, over);
            }
        }
    }

    /// Closes the books at `end`.
    fn finish(mut self, end: Time) -> (RunSummary, Option<Gateway<'a>>) {
        let Simulation { world, programs } = &mut self;
        programs.traffic.finish(world);
        programs.browsers.finish(world);
        programs.viewers.finish(world);
        programs.resolvers.finish(world);
        if let Some(gateway) = &mut programs.gateway {
            gateway.finish(world, end);
        }
        world.finish(end);
        (self.world.summary, self.programs.gateway)
    }
}
