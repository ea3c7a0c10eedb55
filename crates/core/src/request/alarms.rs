//! Alarms: each member has one, the earliest that was asked for, at which it
//! has to be checked again. A member that is checked too early asks again, so
//! an alarm need not move for every byte.

use std::collections::{BTreeMap, BTreeSet};

use crate::units::Time;

/// The alarms of members that have a number.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    by_time: BTreeSet<(Time, u64)>,
    by_number: BTreeMap<u64, Time>,
}

impl Alarms {
    /// Check the member at this time, unless an earlier check is due.
    pub(super) fn set(&mut self, number: u64, at: Time) {
        let before = self.by_number.get(&number).copied();
        if before.is_none_or(|before| at < before) {
            self.clear(number);
            self.by_number.insert(number, at);
            self.by_time.insert((at, number));
        }
    }

    /// Do not check the member.
    pub(super) fn clear(&mut self, number: u64) {
        if let Some(at) = self.by_number.remove(&number) {
            self.by_time.remove(&(at, number));
        }
    }

    /// The earliest alarm.
    pub(super) fn next(&self) -> Option<Time> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Takes an alarm that is due.
    pub(super) fn take_due(&mut self, now: Time) -> Option<u64> {
        let (_, number) = *self.by_time.first().filter(|(at, _)| *at <= now)?;
        self.clear(number);
        Some(number)
    }
}
