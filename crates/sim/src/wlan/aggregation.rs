//! Aggregates: what one sender has in transit to its receivers (A-MPDU with block
//! acknowledgement, IEEE 802.11-2016 sections 10.13 and 10.24).
//!
//! For each receiver, there is a window of 64 frames in sequence. A transmission
//! carries those that have not been acknowledged, oldest first, as far as number,
//! length and time allow. A frame that noise spoils is sent again with the next
//! ones, and given up after too many failures. The receiver hands packets on in
//! order: what comes behind a missing frame waits in its reorder buffer until that
//! frame comes or is given up, and everything in order is handed on as the
//! aggregate ends. After a collision, or when all frames are spoiled, nothing is
//! acknowledged and every frame has failed once more.
//!
//! The model simplifies the following: block acknowledgement is agreed on from the
//! start; the receiver knows at once of frames that are given up, where a real
//! sender says so by a BlockAckReq; no receiver asks for space between frames;
//! there are no A-MSDUs; aggregates are assembled in no time, as they are sent,
//! while real devices have the next one ready.

use std::collections::VecDeque;

use tidegate_core::Bytes;

use super::Frame;
use super::high_throughput::{Length, Mcs};

/// The number of frames that a compressed block acknowledgement covers, and so the
/// number from the oldest frame that is not acknowledged to the newest that is sent
/// (IEEE 802.11-2016 section 9.3.1.9.3).
pub const WINDOW: u32 = 64;

/// What goes into aggregates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregation {
    /// The largest number of frames in one aggregate, up to [`WINDOW`].
    pub frames: u32,
    /// The number of frames that a sender keeps for all its receivers together;
    /// while it has that many, it takes no more from its queue.
    pub staging: u32,
}

/// A packet for a receiver.
#[derive(Clone, Copy, Debug)]
pub struct Pulled {
    /// The receiver's index in the sender's list.
    pub receiver: usize,
    /// The owner's identifier of the packet.
    pub handle: u64,
    /// Its size.
    pub size: Bytes,
}

/// What has become of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The receiver hands it on.
    Delivered,
    /// It has failed too often.
    GivenUp,
}

/// A sender's windows.
#[derive(Debug)]
pub struct Aggregator {
    limits: Aggregation,
    retry_limit: u32,
    windows: Vec<Window>,
    /// Receivers for which there is something, in turn; used only if all have one
    /// queue.
    turns: VecDeque<usize>,
    /// The receiver whose aggregate is on the air.
    current: usize,
}

/// From a sender to one receiver.
#[derive(Debug)]
struct Window {
    mcs: Mcs,
    to: usize,
    error: f64,
    /// The frames from the oldest that the receiver lacks, in sequence.
    frames: VecDeque<Subframe>,
    /// Those that are still to be received.
    waiting: u32,
    /// The indices of the frames in the aggregate.
    on_air: Vec<usize>,
    length: Length,
    /// The first index that has not been looked at for the aggregate.
    place: usize,
    is_full: bool,
}

#[derive(Clone, Copy, Debug)]
struct Subframe {
    handle: u64,
    size: Bytes,
    failures: u32,
    /// `None` while it is still to be received.
    fate: Option<Fate>,
}

impl Aggregator {
    /// A sender without packets. `receivers` gives their numbers in the cell, how
    /// frames are sent to them, and the share of those frames that noise spoils.
    #[must_use]
    pub fn new(
        limits: Aggregation,
        retry_limit: u32,
        receivers: impl Iterator<Item = (usize, Mcs, f64)>,
    ) -> Aggregator {
        let window = |(to, mcs, error)| Window {
            mcs,
            to,
            error,
            frames: VecDeque::new(),
            waiting: 0,
            on_air: Vec::new(),
            length: Length::new(mcs, limits.frames),
            place: 0,
            is_full: false,
        };
        Aggregator {
            limits,
            retry_limit,
            windows: receivers.map(window).collect(),
            turns: VecDeque::new(),
            current: 0,
        }
    }

    /// Whether packets for `receiver` have left the queue and are still to be
    /// received.
    #[must_use]
    pub fn has_left(&self, receiver: usize) -> bool {
        self.windows[receiver].waiting > 0
    }

    /// Whether packets that are not in the present aggregate have left the queue.
    #[must_use]
    pub fn has_more(&self) -> bool {
        let waiting: u32 = self.windows.iter().map(|window| window.waiting).sum();
        waiting as usize > self.windows[self.current].on_air.len()
    }

    /// The next aggregate from a queue for all receivers: for the receiver whose
    /// turn it is. `pull` gives the queue's packets in its order; those for other
    /// receivers are kept until their turn.
    pub fn next_in_turn(&mut self, mut pull: impl FnMut() -> Option<Pulled>) -> Option<Frame> {
        let mut kept: usize = self.windows.iter().map(|window| window.frames.len()).sum();
        if let Some(first) = self.turns.front() {
            self.windows[*first].begin(self.limits);
        }
        loop {
            let first = self.turns.front().copied();
            let is_full = first.is_some_and(|first| self.windows[first].is_full());
            if is_full || kept >= self.limits.staging as usize {
                break;
            }
            let Some(Pulled { receiver, handle, size }) = pull() else { break };
            kept += 1;
            if self.windows[receiver].waiting == 0 {
                self.turns.push_back(receiver);
                self.windows[receiver].begin(self.limits);
            }
            self.windows[receiver].push(handle, size);
            if self.turns.front() == Some(&receiver) {
                self.windows[receiver].extend();
            }
        }
        self.current = *self.turns.front()?;
        self.windows[self.current].frame()
    }

    /// The next aggregate for `receiver` from a queue of its own.
    pub fn next_for(
        &mut self,
        receiver: usize,
        mut pull: impl FnMut() -> Option<(u64, Bytes)>,
    ) -> Option<Frame> {
        self.current = receiver;
        let window = &mut self.windows[receiver];
        window.begin(self.limits);
        while !window.is_full() {
            let Some((handle, size)) = pull() else { break };
            window.push(handle, size);
            window.extend();
        }
        window.frame()
    }

    /// The aggregate has been sent, and these of its frames have been received.
    /// Tells `report` what becomes of packets, in their order.
    pub fn settle(&mut self, received: u64, mut report: impl FnMut(u64, Fate)) {
        let window = &mut self.windows[self.current];
        for (bit, place) in window.on_air.drain(..).enumerate() {
            let frame = &mut window.frames[place];
            frame.failures += 1;
            if received >> bit & 1 == 1 {
                frame.fate = Some(Fate::Delivered);
            } else if frame.failures == self.retry_limit {
                frame.fate = Some(Fate::GivenUp);
            }
            window.waiting -= u32::from(frame.fate.is_some());
        }
        while let Some(Subframe { handle, fate: Some(fate), .. }) = window.frames.front() {
            report(*handle, *fate);
            window.frames.pop_front();
        }
        // A receiver that has not been heard keeps its turn.
        let is_over = received != 0 || window.waiting == 0;
        let goes_on = window.waiting > 0;
        if is_over && self.turns.pop_front().is_some() && goes_on {
            self.turns.push_back(self.current);
        }
    }
}

impl Window {
    /// Begins a new aggregate with the frames that are there.
    fn begin(&mut self, limits: Aggregation) {
        self.on_air.clear();
        self.length = Length::new(self.mcs, limits.frames);
        self.place = 0;
        self.is_full = false;
        self.extend();
    }

    fn push(&mut self, handle: u64, size: Bytes) {
        self.frames.push_back(Subframe { handle, size, failures: 0, fate: None });
        self.waiting += 1;
    }

    /// Adds to the aggregate what has come since.
    fn extend(&mut self) {
        let end = self.frames.len().min(WINDOW as usize);
        while self.place < end && !self.is_full {
            let frame = &self.frames[self.place];
            if frame.fate.is_none() {
                if self.length.add(frame.size) {
                    self.on_air.push(self.place);
                } else {
                    self.is_full = true;
                }
            }
            self.place += 1;
        }
    }

    /// Whether nothing more should be pulled for the aggregate. Only when the next
    /// packet is there is it known to be too long; it then stays.
    fn is_full(&self) -> bool {
        self.is_full || self.length.is_full() || self.place == WINDOW as usize
    }

    fn frame(&self) -> Option<Frame> {
        let frames = self.length.frames();
        (frames > 0).then(|| {
            let reply = self.mcs.acknowledgement_time(frames);
            Frame::aggregate(frames, self.length.air_time(), reply, self.to, self.error)
        })
    }
}
