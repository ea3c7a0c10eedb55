//! A link at work: two interfaces, and a thread for each direction.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use tidegate_core::Bytes;
use tidegate_core::Rate;
use tidegate_core::buffer::Limit;
use tidegate_core::framing::Framing;
use tidegate_core::setting::SettingError;

use crate::bridge::Bridge;
use crate::packet_socket::{OpenError, PacketSocket};
use crate::settings::{Direction, Queue};
use crate::status::{QueueStatus, Second, Status};
use crate::worker::{Bell, Clock, Failure, Order, Worker};

/// What a link is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// The interface on the users' side.
    pub inside: String,
    /// The interface on the provider's side.
    pub outside: String,
    /// The queue of what comes from the provider.
    pub down: Queue,
    /// The queue of what goes there.
    pub up: Queue,
    /// The most memory for frames, in each direction.
    pub memory: Bytes,
    /// The seed of random streams and hashes.
    pub seed: u64,
}

/// A link whose interfaces are open, and that carries nothing yet. Rights can be given up
/// in this state.
#[derive(Debug)]
pub struct Link {
    config: Config,
    inside: Arc<PacketSocket>,
    outside: Arc<PacketSocket>,
}

impl Link {
    /// Opens the interfaces.
    ///
    /// # Errors
    /// There is no such interface, it is not of Ethernet, or the right to open it is missing.
    pub fn open(config: Config) -> Result<Link, OpenError> {
        let inside = Arc::new(PacketSocket::open(&config.inside)?);
        let outside = Arc::new(PacketSocket::open(&config.outside)?);
        Ok(Link { config, inside, outside })
    }

    /// Starts to carry frames.
    ///
    /// # Errors
    /// The system has no thread or descriptor left.
    pub fn start(self) -> io::Result<Running> {
        let Link { config, inside, outside } = self;
        let clock = Clock::new();
        let failure = Arc::new(Mutex::new(None));
        let begin = |direction, queue: &Queue, from: &Arc<_>, to: &Arc<_>| {
            let (orders, received) = mpsc::channel();
            let bell = Bell::new()?;
            let worker = Worker {
                bridge: Bridge::new(queue.clone(), config.memory, config.seed),
                from: Arc::clone(from),
                to: Arc::clone(to),
                clock,
                orders: received,
                bell: bell.clone(),
                failure: Arc::clone(&failure),
            };
            let name = format!("tidegate-{direction}");
            let thread = thread::Builder::new().name(name).spawn(move || worker.run())?;
            let queue = Mutex::new(queue.clone());
            io::Result::Ok(Desk { orders, bell, queue, thread: Some(thread) })
        };
        let down = begin(Direction::Down, &config.down, &outside, &inside)?;
        let up = begin(Direction::Up, &config.up, &inside, &outside)?;
        let (inside, outside) = (config.inside, config.outside);
        Ok(Running { inside, outside, clock, desks: [down, up], failure })
    }
}

/// A link that carries frames, until it is dropped.
pub struct Running {
    inside: String,
    outside: String,
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

/// What is to be different from now on; the rest stays.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// The rate to which packets are held back.
    pub rate: Option<Rate>,
    /// How much the queue may hold.
    pub limit: Option<Limit>,
    /// What a packet takes of the link behind.
    pub framing: Option<Framing>,
    /// Parameters of the discipline with their values, as in files.
    pub parameters: Vec<(String, String)>,
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
        Status {
            form: "packet".into(),
            inside: self.inside.clone(),
            outside: self.outside.clone(),
            uptime_s: self.clock.now().as_seconds(),
            queues: queues.into(),
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
        let changed = queue.changed(change)?;
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
        let mut status = Status {
            form: "packet".into(),
            inside: self.inside.clone(),
            outside: self.outside.clone(),
            uptime_s: self.clock.now().as_seconds(),
            queues: Vec::new(),
        };
        for (direction, desk) in Direction::BOTH.into_iter().zip(&mut self.desks) {
            let queue = desk.end().unwrap_or_default();
            status.queues.push(QueueStatus { direction: Some(direction), ..queue });
        }
        status
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

impl Queue {
    fn changed(&self, change: &Change) -> Result<Queue, ChangeError> {
        let pairs = change.parameters.iter();
        let given: Vec<_> = pairs.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Ok(Queue {
            limit: change.limit.unwrap_or(self.limit),
            rate: change.rate.unwrap_or(self.rate),
            framing: change.framing.unwrap_or(self.framing),
            ..self.with(&given)?
        })
    }
}
