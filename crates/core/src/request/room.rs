//! The room on the link.
//!
//! *Room* is an account in bytes. Time pays in, at the target utilisation of the link's
//! rate; everything that the link carries draws on it. What the scheduler decides is
//! paid for at once: a release as much as a response may receive before it is long, a
//! grant its size. When less than that comes, the rest returns. What is decided thus
//! fills the link from the first round trip on, at any rate and over any path, and
//! nobody has to look for the number of responses that does.
//!
//! The account holds no more than [`MEMORY`] of the link: unused room is lost. So is
//! the debt of a burst that nobody asked for. A promise, however, is kept in the
//! books: responses as large as seconds of the link are released one in those
//! seconds.
//!
//! *A queue that stands drains.* Bytes that wait in the provider's queue are not
//! carried yet. While the path's queueing delay is above a limit, time pays in less:
//! nothing, if the delay is [`DRAIN`] above it. The excess shrinks to a part in *e* in
//! each such time. On a link slower than it is said to be, time pays in what the link
//! carries, at a delay that is above the limit by the missing share of that time.
//!
//! While heavier traffic takes all the room, requests and long responses
//! live on the *floor*: a share of the link's rate that goes to the longest
//! hungry of them and to the next request, whatever their class, in turn. With *n*
//! hungry responses each gets a grant at least every *n* x grant / (floor x
//! rate), or half as often while requests wait, so that none starves.

use crate::units::{Bytes, NANOS_PER_SECOND, Rate, Span, Time};

use super::window::MILLION;

/// The time for which unused room and debts are remembered: a round trip or two
/// of most paths, in which senders cannot react to either.
const MEMORY: Span = Span::millis(200);
/// The time in which an excess of queueing delay shrinks to a part in *e*: several
/// round trips, for what is on its way already cannot be called back.
const DRAIN: Span = Span::seconds(1);
/// One byte in the units of the accounts: bits times nanoseconds times millionths.
const BYTE: i128 = 8 * NANOS_PER_SECOND as i128 * MILLION as i128;

/// Settings of the read gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadGateConfig {
    /// The least that a response has received when it is long, and gives its place back.
    pub long_from: Bytes,
    /// The size of a grant to a long response.
    pub grant: Bytes,
    /// The share of the link's rate that long responses always have, in millionths.
    pub floor_millionths: u64,
    /// Queueing delay of the path above which the link is given less; at least the time
    /// of two responses that are not long, which one user alone can cause.
    pub delay_limit: Span,
}

/// The accounts.
#[derive(Debug)]
pub(super) struct Room {
    rate: Rate,
    target_millionths: u64,
    config: ReadGateConfig,
    delay_limit: Span,
    at: Time,
    room: i128,
    floor: i128,
    /// The path's queueing delay when it was reported last, and the time of that.
    delay: Span,
    reported: Time,
}

impl Room {
    pub(super) fn new(rate: Rate, target_millionths: u64, config: ReadGateConfig) -> Room {
        Room {
            rate,
            target_millionths,
            delay_limit: config.delay_limit.max(rate.transmission(config.long_from * 2)),
            config,
            at: Time::ZERO,
            room: 0,
            floor: 0,
            delay: Span::ZERO,
            reported: Time::ZERO,
        }
    }

    /// Time has come to `now`.
    pub(super) fn advance(&mut self, now: Time) {
        // Beyond what fills the accounts, time need not be counted.
        let span = i128::from(now.since(self.at).0.min(self.fill_time()));
        self.at = self.at.max(now);
        let paid = |millionths: u64| span * i128::from(self.rate.0) * i128::from(millionths);
        let (room, floor) = (paid(self.pays_millionths()), paid(self.config.floor_millionths));
        self.room = (self.room + room).min(self.most_room());
        self.floor = (self.floor + floor).min(self.grant());
    }

    /// The link has carried `size` that nobody has paid for.
    pub(super) fn spend(&mut self, size: Bytes) {
        let least = self.room.min(-self.memory());
        self.room = (self.room - i128::from(size.0) * BYTE).max(least);
    }

    /// The link will carry `size` because of a decision.
    pub(super) fn promise(&mut self, size: Bytes) {
        self.room -= i128::from(size.0) * BYTE;
    }

    /// The path's queueing delay, if there is a sample. Without one, the queue is taken
    /// to have drained since the last.
    pub(super) fn report_delay(&mut self, delay: Option<Span>) {
        let since = std::mem::replace(&mut self.reported, self.at);
        self.delay = delay.unwrap_or(self.delay - self.at.since(since));
    }

    /// The share of the link's rate that time pays in.
    fn pays_millionths(&self) -> u64 {
        let excess = (self.delay - self.delay_limit).0;
        self.target_millionths.saturating_sub(excess / (DRAIN.0 / MILLION))
    }

    /// A promise was not used up.
    pub(super) fn refund(&mut self, size: Bytes) {
        self.room = (self.room + i128::from(size.0) * BYTE).min(self.most_room());
    }

    /// Whether there is room for this much, or as much as there ever is.
    pub(super) fn has(&self, size: Bytes) -> bool {
        self.room >= self.wanted(size)
    }

    /// Takes a grant from the floor, if one is due.
    pub(super) fn take_floor(&mut self) -> bool {
        let due = self.floor >= self.grant();
        if due {
            self.floor -= self.grant();
        }
        due
    }

    /// The time of the next grant from the floor; `None` if never.
    pub(super) fn next_floor(&self) -> Option<Time> {
        let missing = self.grant() - self.floor;
        Some(self.at + self.time_for(missing, self.config.floor_millionths)?)
    }

    /// The time at which there is room for this much; `None` if not before the next
    /// report.
    pub(super) fn next(&self, size: Bytes) -> Option<Time> {
        let missing = self.wanted(size) - self.room;
        Some(self.at + self.time_for(missing, self.pays_millionths())?)
    }

    /// The longest that either account takes from empty to full.
    fn fill_time(&self) -> u64 {
        let room = self.time_for(self.most_room() - self.room, self.pays_millionths());
        let floor = self.time_for(self.grant(), self.config.floor_millionths);
        room.into_iter().chain(floor).max().map_or(0, |span| span.0)
    }

    /// The time that paying in this much takes; `None` for ever.
    fn time_for(&self, amount: i128, millionths: u64) -> Option<Span> {
        let speed = i128::from(self.rate.0) * i128::from(millionths);
        if amount <= 0 {
            return Some(Span::ZERO);
        }
        (speed > 0).then(|| Span(u64::try_from((amount + speed - 1) / speed).unwrap_or(u64::MAX)))
    }

    fn wanted(&self, size: Bytes) -> i128 {
        (i128::from(size.0) * BYTE).min(self.most_room())
    }

    fn grant(&self) -> i128 {
        i128::from(self.config.grant.0) * BYTE
    }

    /// Room for one grant must fit, however slow the link.
    fn most_room(&self) -> i128 {
        self.memory().max(self.grant())
    }

    /// What the link carries in [`MEMORY`].
    fn memory(&self) -> i128 {
        i128::from(self.rate.0) * i128::from(MEMORY.0) * i128::from(MILLION)
    }
}
