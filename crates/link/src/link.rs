//! A link at work: where packets come from, and a thread for each direction.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use tidegate_core::Bytes;
use tidegate_core::setting::SettingError;

use crate::between::Between;
use crate::bridge::Bridge;
use crate::nfqueue;
use crate::packet_socket::{self, OpenError, PacketSocket};
use crate::router::{self, Router};
use crate::settings::{Change, Direction, Queue};
use crate::status::{QueueStatus, Second, Status};
use crate::worker::{Bell, Carrier, Clock, Failure, Order, Worker};

/// What a link is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it stands.
    pub form: Form,
    /// The queue of what comes from the provider.
    pub down: Queue,
    /// The queue of what goes there.
    pub up: Queue,
    /// The most memory for frames, in each direction.
    pub memory: Bytes,
    /// The seed of random streams and hashes.
    pub seed: u64,
}

/// Where a link stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Between two interfaces, all of whose frames it carries.
    Between {
        /// The interface on the users' side.
        inside: String,
        /// The interface on the provider's side.
        outside: String,
    },
    /// On a router, which goes on to do the routing: the kernel holds what passes one
    /// interface, by [rules](crate::nfqueue::rules) that somebody sets for
    /// [the numbers](Link::numbers).
    Router {
        /// The interface on the provider's side.
        outside: String,
        /// Whether packets pass when the link cannot keep up.
        fail_open: bool,
    },
}

impl Form {
    /// How packets come to the link, in a word.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Form::Between { .. } => "packet",
            Form::Router { .. } => "nfqueue",
        }
    }

    /// The interface on the provider's side.
    #[must_use]
    pub fn outside(&self) -> &str {
        let (Form::Between { outside, .. } | Form::Router { outside, .. }) = self;
        outside
    }

    /// The interface on the users' side, if there is one.
    #[must_use]
    pub fn inside(&self) -> Option<&str> {
        match self {
            Form::Between { inside, .. } => Some(inside),
            Form::Router { .. } => None,
        }
    }
}

/// A link that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// An interface cannot be opened.
    #[error(transparent)]
    Interface(#[from] OpenError),
    /// A queue of the kernel cannot be opened.
    #[error(transparent)]
    Queue(#[from] nfqueue::OpenError),
}

/// A link whose sockets are open, and that carries nothing yet. Rights can be given up in
/// this state.
#[derive(Debug)]
pub struct Link {
    config: Config,
    sockets: Sockets,
}

/// For down and up.
#[derive(Debug)]
enum Sockets {
    Between { inside: Arc<PacketSocket>, outside: Arc<PacketSocket> },
    Router([(u16, nfqueue::Queue); 2]),
}

/// The first number of a queue of the kernel that is tried, and how many are.
const FIRST_NUMBER: u16 = 4_780;
const NUMBERS: u16 = 64;

impl Link {
    /// Opens the interfaces, or the queues of the kernel.
    ///
    /// # Errors
    /// There is no such interface, it is not of Ethernet, the kernel does not hold packets,
    /// or the right is missing.
    pub fn open(config: Config) -> Result<Link, LinkError> {
        let sockets = match &config.form {
            Form::Between { inside, outside } => Sockets::Between {
                inside: Arc::new(PacketSocket::open(inside)?),
                outside: Arc::new(PacketSocket::open(outside)?),
            },
            Form::Router { outside, fail_open } => {
                packet_socket::index(outside)?;
                let open = |queue: &Queue| open_free(router::copied(queue), *fail_open);
                Sockets::Router([open(&config.down)?, open(&config.up)?])
            }
        };
        Ok(Link { config, sockets })
    }

    /// The numbers of the kernel's queues for down and up, on a router.
    #[must_use]
    pub fn numbers(&self) -> Option<[u16; 2]> {
        match &self.sockets {
            Sockets::Between { .. } => None,
            Sockets::Router(queues) => Some([queues[0].0, queues[1].0]),
        }
    }

    /// Starts to carry packets.
    ///
    /// # Errors
    /// The system has no thread or descriptor left.
    pub fn start(self) -> io::Result<Running> {
        let Link { config, sockets } = self;
        let Config { form, down, up, memory, seed } = config;
        let carriers: [Box<dyn Carrier>; 2] = match sockets {
            Sockets::Between { inside, outside } => {
                let bridge = |queue: &Queue| Bridge::new(queue.clone(), memory, seed);
                let to_inside =
                    Between::new(bridge(&down), Arc::clone(&outside), Arc::clone(&inside));
                [Box::new(to_inside), Box::new(Between::new(bridge(&up), inside, outside))]
            }
            Sockets::Router([(_, from_outside), (_, to_outside)]) => {
                let router = |held, queue: &Queue| {
                    let interface = form.outside().to_owned();
                    Box::new(Router::new(held, interface, queue.clone(), memory, seed))
                };
                [router(from_outside, &down), router(to_outside, &up)]
            }
        };
        let clock = Clock::new();
        let failure = Arc::new(Mutex::new(None));
        let begin = |direction, carrier, queue| {
            let (orders, received) = mpsc::channel();
            let bell = Bell::new()?;
            let failure = Arc::clone(&failure);
            let worker = Worker { carrier, clock, orders: received, bell: bell.clone(), failure };
            let name = format!("tidegate-{direction}");
            let thread = thread::Builder::new().name(name).spawn(move || worker.run())?;
            io::Result::Ok(Desk { orders, bell, queue: Mutex::new(queue), thread: Some(thread) })
        };
        let [from_outside, to_outside] = carriers;
        let down = begin(Direction::Down, from_outside, down)?;
        let up = begin(Direction::Up, to_outside, up)?;
        Ok(Running { form, clock, desks: [down, up], failure })
    }
}

/// Opens a queue of the kernel whose number nobody uses.
fn open_free(
    copy_bytes: u32,
    fail_open: bool,
) -> Result<(u16, nfqueue::Queue), nfqueue::OpenError> {
    /// More than any lane holds: what is lost is the lane's to decide.
    const LONGEST: u32 = 100_000;
    let mut number = FIRST_NUMBER;
    loop {
        let settings = nfqueue::Settings { number, copy_bytes, longest: LONGEST, fail_open };
        match nfqueue::Queue::open(&settings) {
            Err(nfqueue::OpenError::Taken { .. }) if number < FIRST_NUMBER + NUMBERS => number += 1,
            opened => return opened.map(|queue| (number, queue)),
        }
    }
}

/// A link that carries frames, until it is dropped.
pub struct Running {
    form: Form,
    clock: Clock,
    /// Down, then up.
    desks: [Desk; 2],
    failure: Arc<Mutex<Option<Failure>>>,
}

/// Where the worker of a direction is told what to do.
struct Desk {
    orders: Sender<Order>,
    bell: Bell,
    /// What it was told last.
    queue: Mutex<Queue>,
    thread: Option<JoinHandle<QueueStatus>>,
}

/// A change that cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ChangeError {
    /// The discipline does not take it, or not while it runs.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The direction no longer works.
    #[error("the link has ended")]
    Ended,
}

impl Running {
    fn desk(&self, direction: Direction) -> &Desk {
        &self.desks[direction as usize]
    }

    /// Its state.
    #[must_use]
    pub fn status(&self) -> Status {
        let queues = Direction::BOTH.map(|direction| {
            let status = self.desk(direction).ask(Order::Status).unwrap_or_default();
            QueueStatus { direction: Some(direction), ..status }
        });
        self.with_queues(queues.into())
    }

    fn with_queues(&self, queues: Vec<QueueStatus>) -> Status {
        Status {
            form: self.form.name().into(),
            inside: self.form.inside().map(Into::into),
            outside: self.form.outside().into(),
            uptime_s: self.clock.now().as_seconds(),
            queues,
        }
    }

    /// The whole seconds that ended after this one, at most ten minutes.
    #[must_use]
    pub fn history(&self, since_s: u64) -> Vec<(Direction, Vec<Second>)> {
        let of = |direction| {
            let order = |answer| Order::History(since_s, answer);
            (direction, self.desk(direction).ask(order).unwrap_or_default())
        };
        Direction::BOTH.map(of).into()
    }

    /// Changes a queue while it works: no packet is lost by that, and each keeps its place.
    ///
    /// # Errors
    /// The discipline does not take it, or not while it runs; nothing has changed then.
    pub fn change(&self, direction: Direction, change: &Change) -> Result<(), ChangeError> {
        let desk = self.desk(direction);
        let mut queue = desk.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = queue.with(change)?;
        let order = |answer| Order::Change(Box::new(changed.clone()), answer);
        desk.ask(order).ok_or(ChangeError::Ended)?;
        *queue = changed;
        Ok(())
    }

    /// Why a direction no longer works, if that is so.
    #[must_use]
    pub fn failed(&self) -> Option<Failure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops, and returns the last state. Packets that wait are lost.
    #[must_use]
    pub fn stop(mut self) -> Status {
        let ends = Direction::BOTH.into_iter().zip(&mut self.desks).map(|(direction, desk)| {
            let queue = desk.end().unwrap_or_default();
            QueueStatus { direction: Some(direction), ..queue }
        });
        let queues = ends.collect();
        self.with_queues(queues)
    }
}

impl Desk {
    /// What the worker answers; nothing if it has ended.
    fn ask<T>(&self, order: impl FnOnce(Sender<T>) -> Order) -> Option<T> {
        let (answer, answered): (Sender<T>, Receiver<T>) = mpsc::channel();
        self.orders.send(order(answer)).ok()?;
        self.bell.ring();
        answered.recv().ok()
    }

    fn end(&mut self) -> Option<QueueStatus> {
        let _ = self.orders.send(Order::Stop);
        self.bell.ring();
        self.thread.take()?.join().ok()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.end();
    }
}
