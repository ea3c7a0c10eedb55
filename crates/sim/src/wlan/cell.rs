//! Who sends when: the distributed coordination function as a state machine.
//!
//! No slot is an event. Between two transmissions, every sender's random number of
//! slots runs down by itself, so the time of its access is known as soon as that of
//! the medium is; how far it has run down is computed when the medium becomes busy
//! again. And because nobody can interfere, the outcome of an exchange is known as
//! it begins. One event for each access is enough: the owner calls [`Cell::offer`]
//! when a sender gets something to send, and [`Cell::access`] at
//! [`Cell::next_access`]. The work at each call is proportional to the number of
//! senders.
//!
//! Frames are taken from a sender's queue when their first transmission begins, not
//! when the sender begins to contend for it: until then, the discipline of the
//! queue may prefer another one. From then on, the frame stays with the sender
//! until it is acknowledged or given up. An aggregate is assembled anew for each
//! transmission; its contents are the concern of the owner, who is told after each
//! one what has been received.

use tidegate_core::{Bytes, Span, Stream, Time};

use super::phy::{self, DataRate};

/// The constants of the distributed coordination function.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The unit of back-off.
    pub slot: Span,
    /// Between a frame and its acknowledgement.
    pub sifs: Span,
    /// The time for which the medium must have been idle before slots count.
    pub difs: Span,
    /// The same after a frame that could not be read.
    pub eifs: Span,
    /// A slot counts as it begins, so a slot in which somebody else sends has
    /// counted: this is the rule of EDCA, whereas DCF counts slots that were idle
    /// to their end.
    pub counts_begun_slots: bool,
    /// How long a sender waits for an acknowledgement to begin.
    pub acknowledgement_timeout: Span,
    /// Slots are drawn from 0 to this for the first transmission of a frame.
    pub least_window: u32,
    /// The window doubles with each failure up to this.
    pub largest_window: u32,
    /// After this many failures, a frame is given up.
    pub retry_limit: u32,
    /// A receiver whose reply is ready at once need not back off for it. The medium
    /// is idle until the receiver acknowledges, and ns-3 requires no more; but it
    /// has to remain idle for DIFS (section 10.3.4.2), and no real host replies
    /// within SIFS.
    pub immediate_replies: bool,
}

impl Timing {
    /// IEEE 802.11-2016 Table 17-21 and section 10.3; dot11ShortRetryLimit is 7,
    /// which applies because no frame is longer than the threshold for RTS.
    #[must_use]
    pub fn ofdm() -> Timing {
        Timing {
            slot: phy::SLOT,
            sifs: phy::SIFS,
            difs: phy::DIFS,
            eifs: phy::eifs(),
            // IEEE 802.11-2016 section 10.3.2.9.
            acknowledgement_timeout: phy::SIFS + phy::SLOT + phy::RECEPTION_START,
            least_window: 15,
            largest_window: 1_023,
            retry_limit: 7,
            counts_begun_slots: false,
            immediate_replies: false,
        }
    }

    /// EDCA, which senders with QoS follow, for best effort: IEEE 802.11-2016
    /// section 10.22.2 and Table 9-137, where AIFSN is 3, the windows are those of
    /// DCF, and the TXOP limit is 0, which is one frame or aggregate. All senders
    /// have these; with dot11QAPEDCATable, an access point's window would grow to
    /// only 63.
    #[must_use]
    pub fn edca() -> Timing {
        let dcf = Timing::ofdm();
        let aifs = phy::SIFS + phy::SLOT * 3;
        Timing { difs: aifs, eifs: dcf.eifs - dcf.difs + aifs, counts_begun_slots: true, ..dcf }
    }
}

/// A data frame to one other sender, or an aggregate of such frames.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// What it is.
    body: Body,
    /// The receiver.
    pub to: usize,
    /// Time on the air.
    air_time: Span,
    /// Time on the air of its acknowledgement.
    acknowledgement: Span,
    /// The probability that noise spoils a transmission of the frame, or of each
    /// frame of an aggregate by itself.
    error: f64,
}

#[derive(Clone, Copy, Debug)]
enum Body {
    /// One frame; the owner's identifier of what it carries.
    Single(u64),
    /// This many frames, at most 64.
    Aggregate(u32),
}

impl Frame {
    /// A frame with an IP packet of `size`, sent at `rate` to sender `to`, each
    /// transmission of which noise spoils with probability `error`.
    #[must_use]
    pub fn new(handle: u64, size: Bytes, rate: DataRate, to: usize, error: f64) -> Frame {
        let (air_time, acknowledgement) = (rate.data_time(size), rate.acknowledgement_time());
        Frame { body: Body::Single(handle), to, air_time, acknowledgement, error }
    }

    /// An aggregate of `frames` to sender `to`; noise spoils each of them with
    /// probability `error`.
    ///
    /// # Panics
    /// When there are more frames than a block acknowledgement has bits.
    #[must_use]
    pub fn aggregate(
        frames: u32,
        air_time: Span,
        acknowledgement: Span,
        to: usize,
        error: f64,
    ) -> Frame {
        assert!((1..=64).contains(&frames), "{frames} frames in an aggregate");
        Frame { body: Body::Aggregate(frames), to, air_time, acknowledgement, error }
    }
}

/// What has become of a frame. A frame that will be sent again is not reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It will have been received whole at this time.
    Delivered {
        /// Its sender.
        from: usize,
        /// Its receiver.
        to: usize,
        /// What it carries.
        handle: u64,
        /// When its last bit arrives.
        at: Time,
    },
    /// It has failed too often.
    GivenUp {
        /// Its sender.
        from: usize,
        /// What it carries.
        handle: u64,
    },
    /// An aggregate has been sent.
    Aggregate {
        /// Its sender.
        from: usize,
        /// Its receiver.
        to: usize,
        /// The frames that have been received and acknowledged, the first one in
        /// the lowest bit; none after a collision.
        received: u64,
        /// When its last bit arrives.
        at: Time,
    },
}

/// One use of the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// Who sends.
    pub from: usize,
    /// To whom.
    pub to: usize,
    /// How long the medium is busy for it: including the gap and the
    /// acknowledgement, unless it collides.
    pub time: Span,
    /// Whether it collides.
    pub collides: bool,
}

/// What has happened on the medium so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames and aggregates sent, each transmission counted.
    pub sent: u64,
    /// Those that collided.
    pub collided: u64,
    /// Frames that noise spoiled, those of aggregates one by one.
    pub spoiled: u64,
    /// Frames that were given up; the owner counts those of aggregates.
    pub given_up: u64,
}

/// One sender: a station or the access point.
#[derive(Debug)]
struct Sender {
    stream: Stream,
    /// Idle slots left before it may send; `None` if it need not back off.
    slots: Option<u32>,
    /// The time since which, or from which, slots count.
    from: Time,
    /// The time until which the medium is busy for it.
    busy_until: Time,
    /// The contention window.
    window: u32,
    /// Failures of the frame at hand.
    failures: u32,
    /// The frame at hand.
    frame: Option<Frame>,
    /// Whether something waits in its queue.
    waiting: bool,
}

/// All senders around one access point.
#[derive(Debug)]
pub struct Cell {
    timing: Timing,
    senders: Vec<Sender>,
    next: Time,
    /// The sender that received a frame last, and when.
    heard: (usize, Time),
    counts: Counts,
    // Reused for every access.
    on_air: Vec<usize>,
    outcomes: Vec<Outcome>,
    transmissions: Vec<Transmission>,
}

impl Cell {
    /// `senders` that have nothing to send, around a medium that has been idle for
    /// long. `name` and `seed` are those of their random streams.
    #[must_use]
    pub fn new(timing: Timing, senders: usize, name: &str, seed: u64) -> Cell {
        let sender = |index| Sender {
            stream: Stream::new(seed, &format!("{name}, sender {index}")),
            slots: None,
            from: Time::ZERO,
            busy_until: Time::ZERO,
            window: timing.least_window,
            failures: 0,
            frame: None,
            waiting: false,
        };
        Cell {
            timing,
            senders: (0..senders).map(sender).collect(),
            next: Time::FAR_FUTURE,
            heard: (0, Time::ZERO),
            counts: Counts::default(),
            on_air: Vec::new(),
            outcomes: Vec::new(),
            transmissions: Vec::new(),
        }
    }

    /// Something waits in the queue of a sender.
    pub fn offer(&mut self, now: Time, sender: usize) {
        let slot = self.timing.slot;
        let reply = self.timing.immediate_replies && self.heard == (sender, now);
        let sender = &mut self.senders[sender];
        if !sender.contends() {
            if now < sender.busy_until {
                // IEEE 802.11-2016 section 10.3.4.2: a sender that finds the medium
                // busy backs off.
                if sender.slots.is_none() && !reply {
                    sender.back_off();
                }
            } else if sender.expiry(slot) <= now {
                // The sender has backed off after its last frame, and the medium
                // has been idle for long enough: access is immediate.
                sender.slots = None;
                sender.from = now;
            }
        }
        sender.waiting = true;
        self.next = self.next.min(sender.access(slot));
    }

    /// When the next transmission begins, if nothing is offered before.
    #[must_use]
    pub fn next_access(&self) -> Time {
        self.next
    }

    /// What began at the last access.
    #[must_use]
    pub fn transmissions(&self) -> &[Transmission] {
        &self.transmissions
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Lets the senders whose turn it is send, at [`Cell::next_access`]. `take`
    /// gives the next frame from the queue of a sender, and whether there are more
    /// behind it; `None` if the queue has nothing to give after all. Frames of an
    /// aggregate that have not been received count as waiting.
    pub fn access(
        &mut self,
        now: Time,
        mut take: impl FnMut(usize) -> Option<(Frame, bool)>,
    ) -> &[Outcome] {
        self.on_air.clear();
        self.outcomes.clear();
        self.transmissions.clear();
        for (index, sender) in self.senders.iter_mut().enumerate() {
            if sender.access(self.timing.slot) != now {
                continue;
            }
            if sender.frame.is_none() {
                let taken = take(index);
                sender.waiting = taken.is_some_and(|(_, more)| more);
                sender.frame = taken.map(|(frame, _)| frame);
            }
            if sender.frame.is_some() {
                self.on_air.push(index);
            }
        }
        if !self.on_air.is_empty() {
            self.transmit(now);
        }
        let accesses = self.senders.iter().map(|sender| sender.access(self.timing.slot));
        self.next = accesses.min().unwrap_or(Time::FAR_FUTURE);
        &self.outcomes
    }

    /// The frames on the air begin `now`.
    fn transmit(&mut self, now: Time) {
        for sender in &mut self.senders {
            sender.freeze(now, self.timing);
        }
        self.counts.sent += self.on_air.len() as u64;
        if let [only] = *self.on_air {
            self.exchange(now, only);
        } else {
            self.collide(now);
        }
    }

    /// One sender has the medium for itself.
    fn exchange(&mut self, now: Time, from: usize) {
        let timing = self.timing;
        let sender = &mut self.senders[from];
        let frame = sender.frame.expect("who is on the air has a frame");
        let sent = now + frame.air_time;
        // The others respect the time of the acknowledgement even if it does not
        // come, because the frame has announced it (section 10.3.2.4).
        let over = sent + timing.sifs + frame.acknowledgement;
        let received = frame.draw(&mut sender.stream);
        self.counts.spoiled += u64::from(frame.frames() - received.count_ones());
        let time = over.since(now);
        self.transmissions.push(Transmission { from, to: frame.to, time, collides: false });
        for sender in &mut self.senders {
            sender.wait(over, over + timing.difs);
        }
        if received == 0 {
            // Noise affects only the receiver: all others have read the frame.
            self.senders[frame.to].wait(sent, sent + timing.eifs);
            return self.fail(from, sent, sent);
        }
        self.senders[from].finish(timing.least_window);
        self.heard = (frame.to, sent);
        self.outcomes.push(match frame.body {
            Body::Single(handle) => Outcome::Delivered { from, to: frame.to, handle, at: sent },
            Body::Aggregate(frames) => {
                self.senders[from].waiting |= received.count_ones() < frames;
                Outcome::Aggregate { from, to: frame.to, received, at: sent }
            }
        });
    }

    /// Several senders have begun in the same slot: nobody can read anything.
    fn collide(&mut self, now: Time) {
        self.counts.collided += self.on_air.len() as u64;
        let end_of = |cell: &Cell, index: usize| {
            let frame = cell.senders[index].frame.expect("who is on the air has a frame");
            now + frame.air_time
        };
        let ends = self.on_air.iter().map(|index| end_of(self, *index));
        let idle = ends.max().expect("a collision is of several");
        let after_error = idle + self.timing.eifs;
        for sender in &mut self.senders {
            sender.wait(idle, after_error);
        }
        for place in 0..self.on_air.len() {
            let index = self.on_air[place];
            let sent = end_of(self, index);
            let to = self.senders[index].frame.expect("who is on the air has a frame").to;
            let time = sent.since(now);
            self.transmissions.push(Transmission { from: index, to, time, collides: true });
            self.fail(index, sent, idle);
        }
    }

    /// The frame of sender `index`, sent until `sent`, is not acknowledged; the
    /// medium is busy until `idle`.
    fn fail(&mut self, index: usize, sent: Time, idle: Time) {
        let timing = self.timing;
        let sender = &mut self.senders[index];
        // DIFS begins when the acknowledgement is overdue (section 10.22.2.4 says
        // so for the sender of a frame that needs one).
        let overdue = sent + timing.acknowledgement_timeout;
        sender.wait(idle, overdue.max(idle) + timing.difs);
        sender.failures += 1;
        let frame = sender.frame.expect("a frame that failed is at hand");
        if let Body::Aggregate(_) = frame.body {
            let to = frame.to;
            self.outcomes.push(Outcome::Aggregate { from: index, to, received: 0, at: sent });
            sender.frame = None;
            sender.waiting = true;
        }
        if sender.failures == timing.retry_limit {
            if let Body::Single(handle) = frame.body {
                self.counts.given_up += 1;
                self.outcomes.push(Outcome::GivenUp { from: index, handle });
            }
            sender.finish(timing.least_window);
        } else {
            sender.window = (2 * sender.window + 1).min(timing.largest_window);
            sender.back_off();
        }
    }
}

impl Frame {
    /// The number of these frames.
    #[must_use]
    pub fn frames(&self) -> u32 {
        match self.body {
            Body::Single(_) => 1,
            Body::Aggregate(frames) => frames,
        }
    }

    /// The frames that noise spares this time, as bits.
    fn draw(&self, stream: &mut Stream) -> u64 {
        let all = u64::MAX >> (64 - self.frames());
        if self.error == 0.0 {
            return all;
        }
        let bit = |place| u64::from(stream.uniform() >= self.error) << place;
        (0..self.frames()).map(bit).fold(0, |bits, bit| bits | bit)
    }
}

impl Sender {
    fn contends(&self) -> bool {
        self.waiting || self.frame.is_some()
    }

    /// The time at which its slots will have run down, or did.
    fn expiry(&self, slot: Span) -> Time {
        self.from + slot * u64::from(self.slots.unwrap_or(0))
    }

    /// When it will send.
    fn access(&self, slot: Span) -> Time {
        if self.contends() { self.expiry(slot) } else { Time::FAR_FUTURE }
    }

    fn back_off(&mut self) {
        self.slots = Some(self.stream.index(self.window as usize + 1) as u32);
    }

    /// The medium becomes busy `now`.
    fn freeze(&mut self, now: Time, timing: Timing) {
        let slot = timing.slot;
        if self.expiry(slot) <= now {
            // It is sending itself, or had nothing to send when its slots ran out.
            self.slots = None;
        } else if let Some(slots) = self.slots {
            // A slot counts if it was idle to its end (section 10.3.4.3), or, with
            // EDCA, as it begins (section 10.22.2.4).
            let begun = u64::from(timing.counts_begun_slots && now >= self.from);
            let idle = now.since(self.from).0 / slot.0;
            self.slots = Some(slots - (idle + begun) as u32);
        } else if self.contends() {
            // It has waited for DIFS to end, in vain.
            self.back_off();
        }
    }

    /// The medium is busy until `idle`, and slots count again from `from`.
    fn wait(&mut self, idle: Time, from: Time) {
        self.busy_until = idle;
        self.from = from;
    }

    /// The frame at hand is done. A sender backs off even when nothing waits, lest
    /// it send two frames with no chance for others (section 10.3.4.3).
    fn finish(&mut self, least_window: u32) {
        self.frame = None;
        self.failures = 0;
        self.window = least_window;
        self.back_off();
    }
}
