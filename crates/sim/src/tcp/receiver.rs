//! The receiving half: reassembly, the acknowledgement policy, the advertised
//! window and the SACK blocks.
//!
//! Offsets count in the peer's numbers: 0 is its SYN, 1 its first payload byte.
//! Only runs of offsets are stored. Out-of-order data takes no space in the window,
//! because the window is what the peer may send above RCV.NXT.

use tidegate_core::{Span, Time};

use super::accurate_ecn::Counter;
use super::config::TcpConfig;
use super::header::{Flags, Header, SackBlock, SequenceSpace};
use super::quick_acks::{Arrival, Pace, QuickAcks};
use super::ranges::{Range, Ranges};
use super::ticks;

/// Largest window that fits into the header of a SYN, where it is never scaled
/// (RFC 7323 section 2.2).
const LARGEST_UNSCALED: u64 = 65_535;

/// How soon an acknowledgement is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owed {
    Nothing,
    /// When the timer of delayed acknowledgements runs out.
    Later,
    /// With the next segment that is sent, and at the end of this call.
    Now,
    /// As a segment of its own, before any data: a duplicate acknowledgement
    /// carries no payload (RFC 5681 section 2), and SACK blocks would not fit
    /// beside a full payload.
    Alone,
}

#[derive(Clone, Debug)]
pub(super) struct Receiver {
    /// RCV.NXT.
    next: u64,
    /// Right edge of the window as advertised; it never moves back.
    edge: u64,
    /// Payload bytes handed to the application.
    delivered: u64,
    buffer: u64,
    /// Whether the buffer grows with what is read, as in Linux.
    grows: bool,
    /// Deadline of the delayed acknowledgement.
    pub(super) acknowledge_at: Time,
    /// Data above a hole, stamped with the order of arrival.
    held: Ranges,
    stamp: u64,
    /// Offset of the peer's FIN, once it has come in, in order or not.
    fin: Option<u64>,
    /// Data that came in twice (RFC 2883), to be reported once.
    duplicate: Option<(u64, u64)>,
    /// Data segments since the last acknowledgement.
    unacknowledged: u32,
    /// RCV.NXT as last acknowledged.
    told: u64,
    /// TS.Recent (RFC 7323 section 4.3), zero for none.
    recent: u32,
    /// Acknowledgements as in Linux, if that is wanted.
    quick: Option<Box<QuickAcks>>,
    owed: Owed,
    /// How much payload the application takes in all.
    readable: u64,
    /// ECE goes out on every acknowledgement until the peer's CWR (RFC 3168
    /// section 6.1.3).
    echo: bool,
    /// Marks on incoming packets, if the peer wants to know how many.
    marks: Option<Counter>,
}

impl Receiver {
    pub(super) fn new(config: &TcpConfig) -> Receiver {
        let buffer = config.receive_window.0.min(u64::from(u32::MAX));
        Receiver {
            next: 0,
            edge: buffer.min(LARGEST_UNSCALED),
            delivered: 0,
            buffer,
            grows: false,
            acknowledge_at: Time::FAR_FUTURE,
            held: Ranges::default(),
            stamp: 0,
            fin: None,
            duplicate: None,
            unacknowledged: 0,
            told: 0,
            recent: 0,
            quick: config
                .delayed_ack
                .filter(|_| config.quick_acks)
                .map(|delay| Box::new(QuickAcks::new(delay.timeout, config))),
            owed: Owed::Nothing,
            readable: u64::MAX,
            echo: false,
            marks: None,
        }
    }

    /// RCV.NXT.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Whether everything up to and including the peer's FIN has come in.
    pub(super) fn finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    pub(super) fn readable(&self) -> u64 {
        self.readable
    }

    /// The buffer holds `size` from now on. What was advertised stays advertised; before
    /// the SYN that is nothing.
    pub(super) fn resize(&mut self, size: u64) {
        self.grows = false;
        self.hold(size);
    }

    /// The buffer grows from here on, if this is Linux.
    pub(super) fn grow(&mut self) {
        if let Some(quick) = &self.quick {
            self.grows = true;
            self.hold(quick.window());
        }
    }

    fn hold(&mut self, size: u64) {
        self.buffer = size;
        if self.next == 0 {
            self.edge = size.min(LARGEST_UNSCALED);
        }
    }

    pub(super) fn read_up_to(&mut self, total: u64) {
        self.readable = total;
        self.deliver();
    }

    /// Payload that has come in without a gap.
    pub(super) fn received(&self) -> u64 {
        // Neither SYN nor FIN is payload.
        self.next.saturating_sub(1 + u64::from(self.finished()))
    }

    /// Payload that has come in, what waits above a hole included: each byte once,
    /// whenever it came first. Looks at each run, so that no segment pays for it.
    pub(super) fn arrived(&self) -> u64 {
        let held: u64 = self.held.runs().iter().map(|run| run.end - run.start).sum();
        // A FIN above a hole takes an offset there, and is not payload.
        let fin = self.fin.is_some_and(|fin| self.held.covering(fin, fin + 1).is_some());
        self.received() + held - u64::from(fin)
    }

    fn deliver(&mut self) {
        // What was read stays read.
        self.delivered = self.received().min(self.readable).max(self.delivered);
    }

    /// What the next segment echoes of the peer's timestamps.
    pub(super) fn recent(&self) -> u32 {
        self.recent
    }

    /// Takes the timestamp of a segment that starts at `start`. It counts when the segment
    /// begins no later than what was last acknowledged ends: a delayed acknowledgement
    /// echoes the first segment that it answers, and one of disordered data the last one
    /// in order (RFC 7323 section 4.3).
    pub(super) fn on_timestamp(&mut self, start: u64, value: u32) {
        let newer = value.wrapping_sub(self.recent).cast_signed() > 0 || self.recent == 0;
        if start <= self.told && newer {
            self.recent = value;
        }
    }

    /// The peer's SYN.
    pub(super) fn on_syn(&mut self, timestamp: u32) {
        self.recent = timestamp;
        self.next = 1;
        self.edge += 1;
    }

    /// The connection has come up.
    pub(super) fn on_established(&mut self, now: Time) {
        if let Some(quick) = &mut self.quick {
            quick.on_established(now);
        }
    }

    /// Whether part of a segment lies in the window (RFC 9293 section 3.10.7.4).
    ///
    /// For a segment without payload the right edge itself is inside: a sender
    /// that has filled the window sends its acknowledgements and its FIN from there.
    #[inline]
    pub(super) fn accepts(&self, start: u64, payload: u64) -> bool {
        if payload == 0 {
            self.next <= start && start <= self.edge.max(self.next)
        } else {
            start < self.edge && start + payload > self.next
        }
    }

    /// Takes the payload and FIN of a segment that starts at `start`.
    #[inline]
    pub(super) fn on_data(
        &mut self,
        config: &TcpConfig,
        now: Time,
        start: u64,
        payload: u64,
        (fin, pushed): (bool, bool),
        pace: impl FnOnce() -> Pace,
    ) {
        // What lies beyond the window is cut off, and with it the FIN. A bare
        // FIN is taken even at a closed window: it needs no buffer.
        let mut end = (start + payload).min(self.edge.max(start));
        if let Some(fin) = self.fin {
            // There is nothing after a FIN.
            end = end.min(fin.max(start));
        } else if fin && end == start + payload && end >= self.highest() {
            self.fin = Some(end);
        }
        if start == self.next && self.held.is_empty() && self.fin.is_none() {
            // The usual case: the next data in order and nothing else.
            self.next = end;
            self.deliver();
            self.unacknowledged += 1;
            if let Some(quick) = &mut self.quick {
                let arrival = Arrival {
                    now,
                    payload,
                    pushed,
                    unacknowledged: end - self.told,
                    window: self.edge.saturating_sub(self.told),
                    read: self.delivered,
                };
                let due = quick.due(&arrival, pace());
                if self.grows {
                    self.buffer = quick.window();
                }
                if due == now {
                    self.owe(Owed::Now);
                } else {
                    self.owe(Owed::Later);
                    // One that is delayed already keeps its slot.
                    let fires = ticks::fires(config.timer_tick, now, due.since(now));
                    self.acknowledge_at = self.acknowledge_at.min(fires);
                }
                return;
            }
            let at_once = config.ack_first_segment && start == 1;
            let delay =
                config.delayed_ack.filter(|delay| self.unacknowledged < delay.segments && !at_once);
            match delay {
                Some(delay) => self.acknowledge_within(config, now, delay.timeout),
                None => self.owe(Owed::Now),
            }
            return;
        }
        let with_fin = self.fin == Some(end) && fin;
        self.on_disordered(start, end + u64::from(with_fin));
    }

    /// One past the highest offset that has come in.
    fn highest(&self) -> u64 {
        self.held.runs().last().map_or(self.next, |run| run.end)
    }

    fn acknowledge_within(&mut self, config: &TcpConfig, now: Time, timeout: Span) {
        if self.owed < Owed::Later {
            self.owed = Owed::Later;
            self.acknowledge_at = ticks::fires(config.timer_tick, now, timeout);
        }
    }

    /// Takes in a hole, a duplicate or the end of the stream, each of which is
    /// acknowledged at once (RFC 5681 section 4.2). A FIN is part of `start..end`.
    fn on_disordered(&mut self, start: u64, end: u64) {
        if start > self.next {
            if start < end {
                self.stamp += 1;
                if self.held.insert(start, end, self.stamp).1.is_none() {
                    self.on_duplicate(start, end);
                }
            }
            return self.owe(Owed::Alone);
        }
        if start < self.next.min(end) {
            self.on_duplicate(start, self.next.min(end));
        }
        if end <= self.next {
            return self.owe(Owed::Alone);
        }
        // The front of a hole, or the end of the stream.
        self.next = end;
        // It may cover a run and touch the one behind.
        while let Some(run) = self.held.runs().first()
            && run.start <= self.next
        {
            self.next = self.next.max(run.end);
            self.held.remove_below(self.next);
        }
        self.deliver();
        let alone = !self.held.is_empty() || self.duplicate.is_some();
        self.owe(if alone { Owed::Alone } else { Owed::Now });
    }

    /// Data that has come in before, to be reported.
    fn on_duplicate(&mut self, start: u64, end: u64) {
        self.duplicate = Some((start, end));
        if let Some(quick) = &mut self.quick {
            quick.on_duplicate(self.edge.saturating_sub(self.next));
        }
    }

    /// A segment with data of our own leaves.
    #[inline]
    pub(super) fn on_answer(&mut self, now: Time) {
        if let Some(quick) = &mut self.quick {
            quick.on_answer(now);
        }
    }

    fn owe(&mut self, owed: Owed) {
        self.owed = self.owed.max(owed);
    }

    /// Answers a segment outside of the window, and reports it as a duplicate if
    /// it is old data.
    pub(super) fn refuse(&mut self, start: u64, payload: u64) {
        let end = start + payload;
        if payload > 0 && end <= self.next {
            self.on_duplicate(start, end);
        }
        self.owe(Owed::Alone);
    }

    /// Something has come in that must be answered.
    pub(super) fn owe_answer(&mut self) {
        self.owe(Owed::Alone);
    }

    pub(super) fn owes_now(&self) -> bool {
        self.owed >= Owed::Now
    }

    pub(super) fn owes_alone(&self) -> bool {
        self.owed == Owed::Alone
    }

    /// The delayed acknowledgement timer, when it is due.
    pub(super) fn on_timer(&mut self, now: Time, timeout: impl FnOnce() -> Span) {
        if self.acknowledge_at <= now {
            if let Some(quick) = &mut self.quick {
                quick.on_delayed(timeout());
            }
            self.acknowledge_at = Time::FAR_FUTURE;
            self.owe(Owed::Now);
        }
    }

    /// Congestion marks on incoming data, and the peer's answer to the echo.
    pub(super) fn on_marks(&mut self, congestion_experienced: bool, reduced: bool) {
        self.echo = congestion_experienced || self.echo && !reduced;
    }

    /// From now on marks are counted.
    pub(super) fn count_marks(&mut self) {
        self.marks = Some(Counter::default());
    }

    /// A packet has come in whose mark counts, if it has one.
    #[inline]
    pub(super) fn on_packet(&mut self, marked: bool, data: bool) {
        if let Some(marks) = &mut self.marks
            && marks.on_packet(marked, data, self.unacknowledged > 0)
        {
            self.owe(Owed::Now);
        }
    }

    /// The flags by which the segment that leaves now tells of marks.
    pub(super) fn echo(&mut self) -> Flags {
        match &mut self.marks {
            Some(marks) => marks.tell(),
            None => Flags::ECE.when(self.echo),
        }
    }

    /// Where the right edge may go. To avoid silly windows it moves only when a
    /// segment or half the buffer can be added (RFC 9293 section 3.8.6.2.2).
    fn next_edge(&self, mss: u64) -> u64 {
        let finished = u64::from(self.finished());
        let unread = (self.next - finished).saturating_sub(1 + self.delivered);
        let possible = self.next + self.buffer.saturating_sub(unread);
        let step = mss.min(self.buffer / 2);
        if possible >= self.edge + step { possible } else { self.edge }
    }

    /// Whether the application has made so much room that the peer should hear
    /// of it without having sent anything: two segments, the threshold of 4.4BSD.
    pub(super) fn owes_window_update(&self, mss: u64) -> bool {
        let gain = self.next_edge(mss) - self.edge;
        gain > 0 && gain >= (2 * mss).min(self.buffer / 2)
    }

    /// The window for the header of a SYN.
    pub(super) fn unscaled_window(&self) -> u32 {
        self.buffer.min(LARGEST_UNSCALED) as u32
    }

    /// Writes the acknowledgement number and the window into a header that is sent
    /// now. After that no acknowledgement is owed.
    #[inline]
    pub(super) fn acknowledge(&mut self, header: &mut Header, space: SequenceSpace, mss: u32) {
        self.edge = self.next_edge(u64::from(mss));
        header.acknowledgement = space.wire(self.next);
        // After a FIN the edge may lie below RCV.NXT by one.
        header.window = self.edge.saturating_sub(self.next) as u32;
        if let Some(quick) = &mut self.quick {
            quick.on_acknowledged(self.owed != Owed::Nothing);
        }
        self.told = self.next;
        self.owed = Owed::Nothing;
        self.unacknowledged = 0;
        self.acknowledge_at = Time::FAR_FUTURE;
    }

    /// Appends the SACK blocks: the duplicate first (RFC 2883 section 4), then
    /// the runs, the most recently touched first (RFC 2018 section 4).
    pub(super) fn report(&mut self, header: &mut Header, space: SequenceSpace) {
        let block = |start, end| SackBlock { start: space.wire(start), end: space.wire(end) };
        let mut within = None;
        if let Some((start, end)) = self.duplicate.take() {
            header.sack.push(block(start, end));
            // A duplicate above the hole is followed by the run it lies in.
            within = self.held.covering(start, end);
            if let Some(run) = within {
                header.sack.push(block(run.start, run.end));
            }
        }
        // Selection by decreasing stamp: runs are few, blocks at most four.
        let mut below = u64::MAX;
        let skipped = within.map(|run| run.start);
        while header.sack.as_slice().len() < header.sack_room() {
            let newest = self
                .held
                .runs()
                .iter()
                .filter(|run| run.stamp < below && Some(run.start) != skipped)
                .max_by_key(|run| run.stamp);
            let Some(&Range { start, end, stamp }) = newest else { break };
            header.sack.push(block(start, end));
            below = stamp;
        }
    }

    /// Forgets what would be reported: the peer does not understand SACK.
    pub(super) fn drop_report(&mut self) {
        self.duplicate = None;
    }
}
