//! A direction between two interfaces.
//!
//! Frames are taken from one packet socket and sent at the other, in batches. While the
//! interface takes no more, packets stay with the discipline, which knows best which to
//! give up.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use tidegate_core::Time;

use crate::bridge::{Bridge, Turn};
use crate::lane::Lane;
use crate::packet_socket::{Arrival, Arrivals, BATCH, PacketSocket};
use crate::settings::Queue;
use crate::status::QueueStatus;
use crate::worker::{Carrier, Clock, Failure};

/// What moves the frames of a direction.
pub(crate) struct Between {
    bridge: Bridge,
    from: Arc<PacketSocket>,
    to: Arc<PacketSocket>,
    arrivals: Arrivals,
    /// Frames that are to be sent, in their order.
    leaving: Vec<u32>,
}

impl Between {
    pub(crate) fn new(bridge: Bridge, from: Arc<PacketSocket>, to: Arc<PacketSocket>) -> Between {
        let (arrivals, leaving) = (Arrivals::new(), Vec::with_capacity(BATCH));
        Between { bridge, from, to, arrivals, leaving }
    }

    /// Sends what is leaving; returns whether all of it is gone.
    fn flush(&mut self) -> Result<bool, Failure> {
        let Between { bridge, to, leaving, .. } = self;
        while !leaving.is_empty() {
            let frames = leaving.iter().map(|number| bridge.whole(*number));
            let gone = match to.send(frames) {
                Ok(sent) => sent,
                Err(error) if is_for_now(&error) => return Ok(false),
                Err(error) => {
                    // The queue of the interface is full, or it cannot send this frame.
                    bridge.failures_mut().unsent_packets += 1;
                    check(to, &error)?;
                    1
                }
            };
            leaving.drain(..gone).for_each(|number| bridge.release(number));
        }
        Ok(true)
    }
}

impl Carrier for Between {
    fn take(&mut self, clock: Clock) -> Result<bool, Failure> {
        let Between { bridge, from, arrivals, .. } = self;
        match from.receive(arrivals) {
            Ok(_) => {}
            Err(error) if is_for_now(&error) => return Ok(false),
            Err(error) => {
                bridge.failures_mut().unreadable_frames += 1;
                return check(from, &error).map(|()| true);
            }
        }
        let now = clock.now();
        let mut count = 0;
        arrivals.for_each(|arrival| {
            count += 1;
            match arrival {
                Arrival::Frame(offload, frame) => bridge.receive(now, offload, frame),
                Arrival::Unreadable => bridge.failures_mut().unreadable_frames += 1,
            }
        });
        Ok(count == BATCH)
    }

    fn give(&mut self, clock: Clock) -> Result<Option<Time>, Failure> {
        loop {
            let mut due = None;
            // What the interface did not take comes first.
            while self.leaving.len() < BATCH {
                match self.bridge.poll(clock.now()) {
                    Turn::Send(number) => self.leaving.push(number),
                    Turn::Wait(time) => {
                        due = Some(time);
                        break;
                    }
                }
            }
            if !self.flush()? {
                return Ok(None);
            }
            if let Some(time) = due {
                return Ok(time);
            }
        }
    }

    fn look(&mut self) -> Result<(), Failure> {
        if let Ok(missed) = self.from.missed() {
            self.bridge.failures_mut().missed_frames += missed;
        }
        match [&self.from, &self.to].into_iter().find(|socket| !socket.is_there()) {
            Some(socket) => Err(Failure::Vanished(socket.name())),
            None => Ok(()),
        }
    }

    fn source(&self) -> BorrowedFd<'_> {
        self.from.as_fd()
    }

    fn full(&self) -> Option<BorrowedFd<'_>> {
        (!self.leaving.is_empty()).then(|| self.to.as_fd())
    }

    fn change(&mut self, now: Time, queue: Queue) {
        self.bridge.change(now, queue);
    }

    fn lane(&self) -> &Lane {
        self.bridge.lane()
    }

    fn status(&self, now: Time) -> QueueStatus {
        self.bridge.status(now)
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
