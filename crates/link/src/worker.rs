//! A thread that moves the packets of one direction.
//!
//! It waits for whatever comes first: a packet, the time at which the next packet may
//! leave, an order. A late waking costs no rate, since the egress makes up for it, but it
//! delays packets; so the thread asks for the finest timer, and whoever starts it may give
//! it the priority of real time. Frames are taken and sent in batches. While the interface
//! takes no more, packets stay with the discipline, which knows best which to give up.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use tidegate_core::{Span, Time};

use crate::lane::Lane;
use crate::settings::Queue;
use crate::status::{QueueStatus, Second};

/// Nanoseconds since a link was made, which no step of the system's clock changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn new() -> Clock {
        Clock(Instant::now())
    }

    pub(crate) fn now(self) -> Time {
        Time(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// What a worker can be told. Answers are dropped if nobody waits for them.
pub(crate) enum Order {
    Status(Sender<QueueStatus>),
    /// The seconds after this one.
    History(u64, Sender<Vec<Second>>),
    Change(Box<Queue>, Sender<()>),
    Stop,
}

/// Why a worker ended before it was told to.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    /// An interface is gone.
    #[error("the interface '{0}' has vanished")]
    Vanished(String),
    /// The kernel refuses.
    #[error("the interface '{interface}': {reason}")]
    Io {
        /// The interface.
        interface: String,
        /// Why.
        reason: String,
    },
}

/// Wakes a worker.
#[derive(Clone, Debug)]
pub(crate) struct Bell(Arc<OwnedFd>);

impl Bell {
    pub(crate) fn new() -> io::Result<Bell> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Bell(Arc::new(eventfd(0, flags)?)))
    }

    pub(crate) fn ring(&self) {
        // It fails only when it has been rung more often than can be counted.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    fn silence(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

/// How the packets of a direction come and go.
pub(crate) trait Carrier: Send {
    /// Takes in packets that have come; returns whether more may have.
    fn take(&mut self, clock: Clock) -> Result<bool, Failure>;

    /// Sends what may leave; returns when the next packet may.
    fn give(&mut self, clock: Clock) -> Result<Option<Time>, Failure>;

    /// Looks at what no event tells; called once a second.
    fn look(&mut self) -> Result<(), Failure>;

    /// What can be read when packets have come.
    fn source(&self) -> BorrowedFd<'_>;

    /// What can be written when packets that are to leave can.
    fn full(&self) -> Option<BorrowedFd<'_>>;

    fn change(&mut self, now: Time, queue: Queue);

    fn lane(&self) -> &Lane;

    fn status(&self, now: Time) -> QueueStatus;
}

/// One direction, at work.
pub(crate) struct Worker {
    pub(crate) carrier: Box<dyn Carrier>,
    pub(crate) clock: Clock,
    pub(crate) orders: Receiver<Order>,
    pub(crate) bell: Bell,
    pub(crate) failure: Arc<Mutex<Option<Failure>>>,
}

/// The time from which on a wait is no wait: less than the call takes.
const NO_WAIT: Span = Span::micros(1);

impl Worker {
    /// Works until told to stop, or until something fails for good; returns the last state.
    pub(crate) fn run(mut self) -> QueueStatus {
        // Without it the kernel may wake the thread 50 us late, to save power.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        if let Err(failure) = self.work() {
            let mut slot = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            slot.get_or_insert(failure);
        }
        self.carrier.status(self.clock.now())
    }

    fn work(&mut self) -> Result<(), Failure> {
        let mut next_look = Time::ZERO;
        loop {
            let more = self.carrier.take(self.clock)?;
            let due = self.carrier.give(self.clock)?;
            let now = self.clock.now();
            if now >= next_look {
                self.carrier.look()?;
                next_look = now + Span::seconds(1);
            }
            while let Ok(order) = self.orders.try_recv() {
                if !self.obey(order) {
                    return Ok(());
                }
            }
            if !more {
                let until = due.unwrap_or(Time::FAR_FUTURE).min(next_look);
                self.wait(until.since(self.clock.now()));
            }
        }
    }

    /// Sleeps until something is to be done.
    fn wait(&self, time: Span) {
        let source = self.carrier.source();
        let full = self.carrier.full();
        if full.is_none() && time < NO_WAIT {
            return;
        }
        let mut events = [
            PollFd::new(&*self.bell.0, PollFlags::IN),
            PollFd::from_borrowed_fd(source, PollFlags::IN),
            PollFd::from_borrowed_fd(full.unwrap_or(source), PollFlags::OUT),
        ];
        let watched = if full.is_some() { 3 } else { 2 };
        let (seconds, nanos) = (time.0 / 1_000_000_000, time.0 % 1_000_000_000);
        let time = Timespec {
            tv_sec: i64::try_from(seconds).unwrap_or(i64::MAX),
            tv_nsec: nanos.cast_signed(),
        };
        // An interrupted wait is a short one.
        let _ = poll(&mut events[..watched], Some(&time));
        if events[0].revents().contains(PollFlags::IN) {
            self.bell.silence();
        }
    }

    /// Returns whether to go on.
    fn obey(&mut self, order: Order) -> bool {
        let now = self.clock.now();
        match order {
            Order::Status(answer) => drop(answer.send(self.carrier.status(now))),
            Order::History(since, answer) => {
                drop(answer.send(self.carrier.lane().history(since).copied().collect()));
            }
            Order::Change(queue, answer) => {
                self.carrier.change(now, *queue);
                let _ = answer.send(());
            }
            Order::Stop => return false,
        }
        true
    }
}
