//! The room on the link.
//!
//! *Room* is an account in bytes. Time pays in, at the target utilisation of the link's
//! rate; everything that the link carries draws on it. What the scheduler decides is
//! paid for at once: a release as much as a response may receive before it is long, a
//! grant its size. When less than that comes, the rest returns. What is decided thus
//! fills the link from the first round trip on, at any rate and over any path, and
//! nobody has to look for the number of responses that does.
//!
//! What a server has sent comes even if its response was broken off, so a promise
//! for such a response *lingers*: what the link carries that nobody reads is taken for
//! it, and time gives the rest back, at the rate at which the link would carry it.
//! Whoever breaks responses off would otherwise have others released at once, as if the
//! link were empty.
//!
//! Time fills the account no further than [`MEMORY`] of the link, or two responses that are
//! not long: unused room is lost. What is given back beyond that is lost as fast as the link
//! would carry it. So is the debt of a burst that nobody asked for, at once. A
//! promise, however, is kept in the books: responses as large as seconds of the link are
//! released one in those seconds.
//!
//! *What the link leaves idle is read.* A promise to a server that is far away, slow or
//! silent takes room while nothing comes. If the link's own counter says that it carried
//! less than it could, long responses may read as much in spite of that, in their order,
//! whether or not it had come before. Their promises are in the books too: when late bytes
//! come after all, time pays for both.
//!
//! *A queue that stands drains.* Bytes that wait in the provider's queue are not
//! carried yet. While the path's queueing delay is above a limit, time pays in less:
//! nothing, if the delay is [`DRAIN`] above it, or [`DRAIN_IN_LIMITS`] times the limit if that
//! is more. The excess shrinks to a part in *e* in each such time. On a link slower than it is
//! said to be, time pays in what the link carries, at a delay that is above the limit by the
//! missing share of that time.
//!
//! While heavier traffic takes all the room, long responses and requests live on their
//! *floors*: two shares of the link's rate, whatever the class. One goes to the response
//! that has been hungry for the longest time: as much as lets each of them have its turn in
//! [`TURN`], but no more than a grant, and no less than [`LEAST_PIECE`]. None starves, and
//! pauses stay shorter than clients wait. The other goes to the next request.

use crate::units::{Bytes, NANOS_PER_SECOND, Rate, Span, Time};

use super::window::MILLION;

/// The time for which unused room and debts are remembered: a round trip or two
/// of most paths, in which senders cannot react to either.
const MEMORY: Span = Span::millis(200);
/// The time in which an excess of queueing delay shrinks to a part in *e*: several
/// round trips, for what is on its way already cannot be called back.
const DRAIN: Span = Span::seconds(2);
/// On a slow link, where a few first windows of servers are a burst of a second, it is so many
/// times the limit. Such a burst draws on the room as it comes; if time paid in much less as
/// well, the link would be idle when it is over.
const DRAIN_IN_LIMITS: u64 = 64;
/// The time in which each hungry response gets something of the floor. Clients wait for 30 s
/// or more until something comes.
const TURN: Span = Span::seconds(20);
/// What it gets at least: a part of a packet. With more than 200 hungry responses on 2 Mbit/s
/// (with a floor of 2%), or 100 000 on 1 Gbit/s, a turn takes longer than that.
const LEAST_PIECE: Bytes = Bytes(500);
/// A grant is at least what the link carries in this time, which is too short for anybody to
/// notice. With 8 kB, a gateway at 10 Gbit/s would decide 150 000 times a second.
const LEAST_GRANT: Span = Span::micros(50);
/// One byte in the units of the accounts: bits times nanoseconds times millionths.
const BYTE: i128 = 8 * NANOS_PER_SECOND as i128 * MILLION as i128;

/// Settings of the read gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadGateConfig {
    /// The least that a response has received when it is long, and gives its place back.
    pub long_from: Bytes,
    /// The size of a grant to a long response, or less than it: a grant is never less than
    /// what the link carries in 50 us.
    pub grant: Bytes,
    /// The share of the link's rate that long responses always have, and requests, in
    /// millionths.
    pub floor_millionths: u64,
    /// Queueing delay of the path above which the link is given less; at least the time
    /// of the two largest responses that are not long, which one user alone can cause.
    pub delay_limit: Span,
}

/// The accounts.
#[derive(Debug)]
pub(super) struct Room {
    rate: Rate,
    target_millionths: u64,
    config: ReadGateConfig,
    /// The size of a grant on this link.
    grant: Bytes,
    /// The largest response that is not long.
    largest: Bytes,
    at: Time,
    room: i128,
    read_floor: i128,
    request_floor: i128,
    /// The path's queueing delay when it was reported last, and the time of that.
    delay: Span,
    reported: Time,
    /// What was promised to responses that were broken off, and may still come.
    lingering: i128,
    /// What the link has left idle lately.
    idle: i128,
}

impl Room {
    pub(super) fn new(rate: Rate, target_millionths: u64, config: ReadGateConfig) -> Room {
        Room {
            rate,
            target_millionths,
            grant: grant_on(rate, config),
            largest: config.long_from,
            config,
            at: Time::ZERO,
            room: 0,
            read_floor: 0,
            request_floor: 0,
            delay: Span::ZERO,
            reported: Time::ZERO,
            lingering: 0,
            idle: 0,
        }
    }

    /// The link has another rate from now on.
    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
        self.grant = grant_on(rate, self.config);
    }

    /// Time has come to `now`.
    pub(super) fn advance(&mut self, now: Time) {
        let all = now.since(self.at);
        self.at = self.at.max(now);
        let gone = self.time_for(self.lingering, MILLION).is_none_or(|span| span <= all);
        let back = if gone { self.lingering } else { self.carries(all) };
        self.lingering -= back;
        // No account holds what a link carries in years.
        let paid = |millionths| self.pays(all, millionths);
        let (room, floor) = (paid(self.pays_millionths()), paid(self.config.floor_millionths));
        let most = self.most_room();
        self.room = if self.room > most {
            most.max(self.room - self.carries(all))
        } else {
            self.room.saturating_add(room).saturating_add(back).min(most)
        };
        self.read_floor = self.read_floor.saturating_add(floor).min(self.whole_grant());
        self.request_floor = self.request_floor.saturating_add(floor).min(self.whole_grant());
    }

    /// The link has carried `size` that nobody has paid for.
    pub(super) fn spend(&mut self, size: Bytes) {
        self.take(i128::from(size.0) * BYTE);
    }

    fn take(&mut self, amount: i128) {
        let least = self.room.min(-self.memory());
        self.room = (self.room - amount).max(least);
    }

    /// The link will carry `size` because of a decision.
    pub(super) fn promise(&mut self, size: Bytes) {
        self.room -= i128::from(size.0) * BYTE;
    }

    /// A response was broken off of which `size` was promised and has not come.
    pub(super) fn linger(&mut self, size: Bytes) {
        self.lingering += i128::from(size.0) * BYTE;
    }

    /// The link has carried `size` that nobody has read: of responses that were broken
    /// off, and else unpaid.
    pub(super) fn carry(&mut self, size: Bytes) {
        let size = i128::from(size.0) * BYTE;
        let paid = size.min(self.lingering);
        self.lingering -= paid;
        self.take(size - paid);
    }

    /// In a `span` the link has carried `size`, though somebody wanted to be read.
    pub(super) fn leave_idle(&mut self, span: Span, size: Bytes) {
        let could = i128::from(span.0) * i128::from(self.rate.0);
        let could = could * i128::from(self.target_millionths);
        let most = self.memory().max(2 * self.whole_grant());
        self.idle = (self.idle + could - i128::from(size.0) * BYTE).clamp(0, most);
    }

    /// Nobody could have used what the link left idle.
    pub(super) fn forget_idle(&mut self) {
        self.idle = 0;
    }

    /// Whether the link has left a grant idle.
    pub(super) fn has_idle(&self) -> bool {
        self.idle >= self.whole_grant()
    }

    /// Takes a grant from what the link has left idle, if that is so much.
    pub(super) fn take_idle(&mut self) -> bool {
        let has = self.has_idle();
        if has {
            self.idle -= self.whole_grant();
        }
        has
    }

    /// Responses up to this size are not long.
    pub(super) fn set_largest(&mut self, size: Bytes) {
        self.largest = size;
    }

    /// The path's queueing delay, if there is a sample. Without one, the queue is taken
    /// to have drained since the last.
    pub(super) fn report_delay(&mut self, delay: Option<Span>) {
        let since = std::mem::replace(&mut self.reported, self.at);
        self.delay = delay.unwrap_or(self.delay - self.at.since(since));
    }

    /// The path's queueing delay, as far as it is known.
    pub(super) fn delay(&self) -> Span {
        self.delay
    }

    /// The share of the link's rate that time pays in.
    fn pays_millionths(&self) -> u64 {
        if self.delay == Span::ZERO {
            return self.target_millionths;
        }
        let two = self.rate.transmission(self.largest * 2);
        let limit = two.max(self.config.delay_limit);
        let drain = DRAIN.0.max(limit.0.saturating_mul(DRAIN_IN_LIMITS));
        let excess = (self.delay - limit).0;
        self.target_millionths.saturating_sub(excess / (drain / MILLION))
    }

    /// A promise was not used up. That is room again, even if it is more than the account
    /// holds: many that end together would otherwise lose what others could have had.
    pub(super) fn refund(&mut self, size: Bytes) {
        self.room += i128::from(size.0) * BYTE;
    }

    /// A promise was not used for so long that the time in which the link could have
    /// carried it is over.
    pub(super) fn reclaim(&mut self, size: Bytes) {
        let room = self.room + i128::from(size.0) * BYTE;
        self.room = room.min(self.most_room()).max(self.room);
    }

    /// Whether there is room for this much, or as much as there ever is.
    pub(super) fn has(&self, size: Bytes) -> bool {
        self.room >= self.wanted(size)
    }

    /// Takes what is next from the floor of long responses, if it is due and so many are
    /// hungry.
    pub(super) fn take_read_floor(&mut self, hungry: usize) -> Option<Bytes> {
        let piece = self.piece(hungry);
        let left = self.read_floor - i128::from(piece.0) * BYTE;
        (left >= 0).then(|| {
            self.read_floor = left;
            piece
        })
    }

    /// Takes what a request is expected to bring from the floor of requests, if one is due.
    pub(super) fn take_request_floor(&mut self, size: Bytes) -> bool {
        let due = self.request_floor >= self.whole_grant();
        if due {
            self.request_floor -= i128::from(size.0) * BYTE;
        }
        due
    }

    /// The time of the next of the floor of long responses; `None` if never.
    pub(super) fn next_read_floor(&self, hungry: usize) -> Option<Time> {
        self.next_floor(i128::from(self.piece(hungry).0) * BYTE - self.read_floor)
    }

    /// The time of the next request from the floor; `None` if never.
    pub(super) fn next_request_floor(&self) -> Option<Time> {
        self.next_floor(self.whole_grant() - self.request_floor)
    }

    fn next_floor(&self, missing: i128) -> Option<Time> {
        Some(self.at + self.time_for(missing, self.config.floor_millionths)?)
    }

    /// The earliest time at which there may be room for this much; `None` if not before
    /// the next report.
    pub(super) fn next(&self, size: Bytes) -> Option<Time> {
        let missing = self.wanted(size) - self.room;
        let returns = if self.lingering > 0 { MILLION } else { 0 };
        Some(self.at + self.time_for(missing, self.pays_millionths() + returns)?)
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

    /// The size of a grant.
    pub(super) fn grant(&self) -> Bytes {
        self.grant
    }

    /// A grant in the units of the accounts.
    fn whole_grant(&self) -> i128 {
        i128::from(self.grant.0) * BYTE
    }

    /// What each of so many hungry responses gets of their floor at a time.
    fn piece(&self, hungry: usize) -> Bytes {
        let floor = u128::from(self.rate.volume(TURN).0) * u128::from(self.config.floor_millionths);
        let each = floor / u128::from(MILLION) / hungry.max(1) as u128;
        Bytes(u64::try_from(each).unwrap_or(u64::MAX)).max(LEAST_PIECE).min(self.grant)
    }

    /// Room for one grant must fit, and for two responses that are not long: what is
    /// given back of one then is room for the next.
    fn most_room(&self) -> i128 {
        let two = i128::from(self.largest.0) * 2 * BYTE;
        self.memory().max(self.whole_grant()).max(two)
    }

    /// What the link carries in [`MEMORY`].
    fn memory(&self) -> i128 {
        self.carries(MEMORY)
    }

    fn carries(&self, span: Span) -> i128 {
        self.pays(span, MILLION)
    }

    /// So much of what the link carries, or as much as an account can hold.
    fn pays(&self, span: Span, millionths: u64) -> i128 {
        let bits = i128::from(self.rate.0).saturating_mul(i128::from(span.0));
        bits.saturating_mul(i128::from(millionths))
    }
}

/// The size of a grant on a link of this rate.
fn grant_on(rate: Rate, config: ReadGateConfig) -> Bytes {
    config.grant.max(rate.volume(LEAST_GRANT))
}
