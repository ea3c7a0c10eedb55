//! A thread that moves the frames of one direction.
//!
//! It waits for whatever comes first: a frame, the time at which the next packet may
//! leave, an order. A late waking costs no rate, since the egress makes up for it, but it
//! delays packets; so the thread asks for the finest timer, and whoever starts it may give
//! it the priority of real time. Frames are taken and sent in batches. While the interface
//! takes no more, packets stay with the discipline, which knows best which to give up.

use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use tidegate_core::{Span, Time};

use crate::bridge::{Bridge, Turn};
use crate::packet_socket::{Arrival, Arrivals, BATCH, PacketSocket};
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

/// One direction, at work.
pub(crate) struct Worker {
    pub(crate) bridge: Bridge,
    pub(crate) from: Arc<PacketSocket>,
    pub(crate) to: Arc<PacketSocket>,
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
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        if let Err(failure) = self.work() {
            let mut slot = self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            slot.get_or_insert(failure);
        }
        self.status()
    }

    fn work(&mut self) -> Result<(), Failure> {
        let mut arrivals = Arrivals::new();
        // Frames that are to be sent, in their order.
        let mut leaving = Vec::with_capacity(BATCH);
        let mut next_look = Time::ZERO;
        loop {
            let count = self.receive(&mut arrivals)?;
            let due = self.send(&mut leaving)?;
            let now = self.clock.now();
            if now >= next_look {
                self.look()?;
                next_look = now + Span::seconds(1);
            }
            while let Ok(order) = self.orders.try_recv() {
                if !self.obey(order) {
                    return Ok(());
                }
            }
            // More may be there.
            if count == BATCH {
                continue;
            }
            let until = due.unwrap_or(Time::FAR_FUTURE).min(next_look);
            self.wait(until.since(self.clock.now()), !leaving.is_empty());
        }
    }

    fn receive(&mut self, arrivals: &mut Arrivals) -> Result<usize, Failure> {
        match self.from.receive(arrivals) {
            Ok(_) => {}
            Err(error) if is_for_now(&error) => return Ok(0),
            Err(error) => {
                self.bridge.failures_mut().unreadable_frames += 1;
                return check(&self.from, &error).map(|()| 1);
            }
        }
        let now = self.clock.now();
        let mut count = 0;
        arrivals.for_each(|arrival| {
            count += 1;
            match arrival {
                Arrival::Frame(offload, frame) => self.bridge.receive(now, offload, frame),
                Arrival::Unreadable => self.bridge.failures_mut().unreadable_frames += 1,
            }
        });
        Ok(count)
    }

    /// Sends what may leave; returns when the next packet may.
    fn send(&mut self, leaving: &mut Vec<u32>) -> Result<Option<Time>, Failure> {
        loop {
            let mut due = None;
            // What the interface did not take comes first.
            while leaving.len() < BATCH {
                match self.bridge.poll(self.clock.now()) {
                    Turn::Send(number) => leaving.push(number),
                    Turn::Wait(time) => {
                        due = Some(time);
                        break;
                    }
                }
            }
            if !leaving.is_empty() && !self.flush(leaving)? {
                return Ok(None);
            }
            if let Some(time) = due {
                return Ok(time);
            }
        }
    }

    /// Sends these frames; returns whether all of them are gone.
    fn flush(&mut self, leaving: &mut Vec<u32>) -> Result<bool, Failure> {
        while !leaving.is_empty() {
            let frames = leaving.iter().map(|number| self.bridge.whole(*number));
            let gone = match self.to.send(frames) {
                Ok(sent) => sent,
                Err(error) if is_for_now(&error) => return Ok(false),
                Err(error) => {
                    // The queue of the interface is full, or it cannot send this frame.
                    self.bridge.failures_mut().unsent_packets += 1;
                    check(&self.to, &error)?;
                    1
                }
            };
            leaving.drain(..gone).for_each(|number| self.bridge.release(number));
        }
        Ok(true)
    }

    /// Sleeps until something is to be done.
    fn wait(&self, time: Span, is_full: bool) {
        let mut events = [
            PollFd::from_borrowed_fd(self.from.as_fd(), PollFlags::IN),
            PollFd::new(&*self.bell.0, PollFlags::IN),
            PollFd::from_borrowed_fd(self.to.as_fd(), PollFlags::OUT),
        ];
        let watched = if is_full { 3 } else { 2 };
        if !is_full && time < NO_WAIT {
            return;
        }
        let (seconds, nanos) = (time.0 / 1_000_000_000, time.0 % 1_000_000_000);
        let time = Timespec {
            tv_sec: i64::try_from(seconds).unwrap_or(i64::MAX),
            tv_nsec: nanos.cast_signed(),
        };
        // An interrupted wait is a short one.
        let _ = poll(&mut events[..watched], Some(&time));
        if events[1].revents().contains(PollFlags::IN) {
            self.bell.silence();
        }
    }

    /// Looks once a second at what no event tells.
    fn look(&mut self) -> Result<(), Failure> {
        // A lane that is idle ends its seconds, too.
        if let Ok(missed) = self.from.missed() {
            self.bridge.failures_mut().missed_frames += missed;
        }
        match [&self.from, &self.to].into_iter().find(|socket| !socket.is_there()) {
            Some(socket) => Err(Failure::Vanished(socket.name())),
            None => Ok(()),
        }
    }

    /// Returns whether to go on.
    fn obey(&mut self, order: Order) -> bool {
        match order {
            Order::Status(answer) => drop(answer.send(self.status())),
            Order::History(since, answer) => {
                drop(answer.send(self.bridge.lane().history(since).copied().collect()));
            }
            Order::Change(queue, answer) => {
                self.bridge.change(self.clock.now(), *queue);
                let _ = answer.send(());
            }
            Order::Stop => return false,
        }
        true
    }

    fn status(&self) -> QueueStatus {
        self.bridge.status(self.clock.now())
    }
}

/// Whether a call would have had to wait.
fn is_for_now(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Whether one can go on after this: an interface that is down may come up again, and a
/// frame that it refuses is one frame.
fn check(socket: &PacketSocket, error: &io::Error) -> Result<(), Failure> {
    if !socket.is_there() {
        return Err(Failure::Vanished(socket.name()));
    }
    match error.raw_os_error() {
        Some(libc::EBADF | libc::ENOTSOCK | libc::EFAULT | libc::ENOMEM) => {
            Err(Failure::Io { interface: socket.name(), reason: error.to_string() })
        }
        _ => Ok(()),
    }
}
