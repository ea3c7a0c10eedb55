//! The rate at which long responses may be read.
//!
//! A response that has become long no longer holds a place in the window. It may
//! be read as the link has room: at the target utilisation of the link's rate,
//! minus everything else that the link carries. Room is an account in bytes. Time
//! pays in, grants and unrequested traffic draw on it, and the unused part of a
//! response's grants returns. It holds no more than [`MEMORY`] of the link either
//! way: unused room is lost, and so is the debt of a burst.
//!
//! While waiting requests or heavier traffic take all the room, long responses
//! live on the *floor*: a share of the link's rate that goes to the longest
//! hungry of them, whatever its class, one grant after the other. With *n*
//! hungry responses each gets a grant at least every *n* x grant / (floor x
//! rate), so that none starves.

use crate::units::{Bytes, NANOS_PER_SECOND, Rate, Span, Time};

use super::window::MILLION;

/// The time for which unused room and debts are remembered: a round trip or two
/// of most paths, in which senders cannot react to either.
const MEMORY: Span = Span::millis(200);
/// One byte in the units of the accounts: bits times nanoseconds times millionths.
const BYTE: i128 = 8 * NANOS_PER_SECOND as i128 * MILLION as i128;

/// Settings of the read gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadGateConfig {
    /// A response that has received this much gives its place back.
    pub long_from: Bytes,
    /// The size of a grant to a long response.
    pub grant: Bytes,
    /// The share of the link's rate that long responses always have, in millionths.
    pub floor_millionths: u64,
}

/// The accounts.
#[derive(Debug)]
pub(super) struct Room {
    rate: Rate,
    target_millionths: u64,
    config: ReadGateConfig,
    at: Time,
    room: i128,
    floor: i128,
}

impl Room {
    pub(super) fn new(rate: Rate, target_millionths: u64, config: ReadGateConfig) -> Room {
        Room { rate, target_millionths, config, at: Time::ZERO, room: 0, floor: 0 }
    }

    /// Time has come to `now`.
    pub(super) fn advance(&mut self, now: Time) {
        // Beyond what fills the accounts, time need not be counted.
        let span = i128::from(now.since(self.at).0.min(self.fill_time()));
        self.at = self.at.max(now);
        let paid = |millionths: u64| span * i128::from(self.rate.0) * i128::from(millionths);
        let (room, floor) = (paid(self.target_millionths), paid(self.config.floor_millionths));
        self.room = (self.room + room).min(self.most_room());
        self.floor = (self.floor + floor).min(self.grant());
    }

    /// The link has carried `size`, or will because of a grant.
    pub(super) fn spend(&mut self, size: Bytes) {
        self.room = (self.room - i128::from(size.0) * BYTE).max(-self.memory());
    }

    /// A grant was not used up.
    pub(super) fn refund(&mut self, size: Bytes) {
        self.room = (self.room + i128::from(size.0) * BYTE).min(self.most_room());
    }

    /// Whether there is room for a grant.
    pub(super) fn has_room(&self) -> bool {
        self.room >= self.grant()
    }

    /// Takes a grant from the floor, if one is due.
    pub(super) fn take_floor(&mut self) -> bool {
        let due = self.floor >= self.grant();
        if due {
            self.floor -= self.grant();
        }
        due
    }

    /// The time of the next grant from the floor, or if `reading` also from the
    /// room; `None` if there is none.
    pub(super) fn next(&self, reading: bool) -> Option<Time> {
        let floor = self.wait(self.floor, self.config.floor_millionths);
        let room = self.wait(self.room, self.target_millionths).filter(|_| reading);
        floor.into_iter().chain(room).min().map(|wait| self.at + wait)
    }

    /// The time until an account holds a grant.
    fn wait(&self, account: i128, millionths: u64) -> Option<Span> {
        self.time_for(self.grant() - account, millionths)
    }

    /// The longest that either account takes from empty to full.
    fn fill_time(&self) -> u64 {
        let room = self.time_for(self.most_room() + self.memory(), self.target_millionths);
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
