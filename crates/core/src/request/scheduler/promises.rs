//! What responses are promised, what comes of it, and who is charged.
//!
//! Two books are kept of each response. The room pays for what the link is to carry:
//! what was promised and has not arrived. Class and user pay for what is read: what they
//! were charged for ahead and have not read. Both are paid when a request is released or
//! a grant is given, and what does not come is given back, unless the response was broken
//! off: then it may still be on its way.

use super::{PATIENCE, Response, Scheduler};
use crate::units::{Bytes, Time};

impl Scheduler {
    /// From `since` on it is watched whether what was promised comes.
    pub(super) fn watch(&mut self, number: u32, since: Time) {
        let response = &mut self.responses[number as usize];
        if let Some(gate) = &mut self.gate
            && response.watched_until.is_none()
        {
            let until = since + PATIENCE;
            (response.watched_until, response.before) = (Some(until), response.arrived);
            gate.watched.insert((until, number));
        }
    }

    pub(super) fn unwatch(&mut self, number: u32) {
        if let Some(gate) = &mut self.gate
            && let Some(until) = self.responses[number as usize].watched_until.take()
        {
            gate.watched.remove(&(until, number));
        }
    }

    /// A long response wants to be read, of a user who was busy before, or not.
    pub(super) fn hunger(&mut self, number: u32, was_busy: bool) {
        let Some(gate) = &mut self.gate else { return };
        let response = &mut self.responses[number as usize];
        let place = gate.hungered;
        gate.hungered += 1;
        response.hungry = Some(place);
        let user = response.user;
        let before = gate.reader(user);
        if !was_busy {
            self.lines.catch_up(user);
        }
        self.lines.want(user);
        gate.by_user.insert((user, place, number));
        gate.by_age.insert(place, number);
        self.place_reader(user, self.lines.level(user), before);
    }

    /// A long response no longer wants to be read.
    pub(super) fn sate(&mut self, number: u32) {
        let response = &mut self.responses[number as usize];
        let Some(gate) = &mut self.gate else { return };
        let Some(place) = response.hungry.take() else { return };
        let user = response.user;
        let before = gate.reader(user);
        gate.by_user.remove(&(user, place, number));
        gate.by_age.remove(&place);
        self.lines.unwant(user);
        self.place_reader(user, self.lines.level(user), before);
    }

    /// Moves a user among the readers, who stood there at this `level` with this first
    /// response.
    fn place_reader(&mut self, user: u32, level: u64, before: Option<u64>) {
        let Some(gate) = &mut self.gate else { return };
        let group = self.lines.group_of(user);
        let readers = &mut gate.readers[group as usize];
        if let Some(before) = before {
            readers.remove(&(level, before, user));
        }
        let first = gate.by_user.range((user, 0, 0)..).next().filter(|(of, ..)| *of == user);
        readers.extend(first.map(|(_, first, _)| (self.lines.level(user), *first, user)));
        self.classes.set_hungry(group, readers.len() as u32);
        self.settle_busy(group);
    }

    /// Class and user have received `size`, or will.
    pub(super) fn charge(&mut self, class: u32, user: u32, size: Bytes) {
        self.classes.charge(self.lines.group(class), size);
        let before = self.lines.level(user);
        self.lines.charge(user, size);
        self.rank_reader(user, before);
    }

    /// The level of a user has changed.
    fn rank_reader(&mut self, user: u32, before: u64) {
        if let Some(first) = self.gate.as_ref().and_then(|gate| gate.reader(user)) {
            self.place_reader(user, before, Some(first));
        }
    }

    /// So much of a response has come: for what was not promised there is less room now.
    pub(super) fn bring(&mut self, number: u32, arrived: u64) {
        let response = &mut self.responses[number as usize];
        let fresh = arrived.saturating_sub(response.arrived);
        if fresh == 0 {
            return;
        }
        let unpaid = fresh.saturating_sub(response.paid);
        let left = response.paid.saturating_sub(fresh);
        response.arrived = arrived;
        self.set_paid(number, left);
        self.seen = self.seen.saturating_add(fresh);
        self.spend(Bytes(unpaid));
    }

    /// A response begins: what it may bring before it is long is promised and charged.
    pub(super) fn expect(&mut self, number: u32) {
        if let Some(gate) = &self.gate {
            let expected = gate.sizes.expected();
            self.charge_ahead(number, expected);
            self.promise(number, expected);
        }
    }

    /// The room is promised to what a response is to bring.
    pub(super) fn promise(&mut self, number: u32, size: Bytes) {
        if let Some(gate) = &mut self.gate {
            gate.room.promise(size);
        }
        self.set_paid(number, self.responses[number as usize].paid + size.0);
    }

    /// Class and user are charged for what will be read of a response.
    pub(super) fn charge_ahead(&mut self, number: u32, size: Bytes) {
        let response = &mut self.responses[number as usize];
        response.charged += size.0;
        let (class, user) = (response.class, response.user);
        self.charge(class, user, size);
    }

    /// What was promised and does not come is room again, and class and user get back
    /// what they were charged for it.
    pub(super) fn refund(&mut self, number: u32) {
        self.vacate(number);
        let response = &mut self.responses[number as usize];
        let size = Bytes(std::mem::take(&mut response.charged));
        let (class, user) = (response.class, response.user);
        if size == Bytes::ZERO {
            return;
        }
        self.classes.refund(self.lines.group(class), size);
        let before = self.lines.level(user);
        self.lines.refund(user, size);
        self.rank_reader(user, before);
    }

    /// What was paid for a response and has not come: while there is something, its user
    /// is busy.
    fn set_paid(&mut self, number: u32, paid: u64) {
        let response = &mut self.responses[number as usize];
        let before = std::mem::replace(&mut response.paid, paid);
        let user = response.user;
        match (before > 0, paid > 0) {
            (false, true) => self.lines.want(user),
            (true, false) => self.lines.unwant(user),
            _ => return,
        }
        self.settle_busy(self.lines.group_of(user));
    }

    /// What was promised and does not come is room again. The user is still charged for it,
    /// who had the room for that time: who takes it only to give it back would otherwise
    /// be first for ever.
    pub(super) fn vacate(&mut self, number: u32) {
        let paid = self.responses[number as usize].paid;
        if let Some(gate) = &mut self.gate {
            gate.room.refund(Bytes(paid));
        }
        self.set_paid(number, 0);
    }

    /// A response was broken off. What was promised may be on its way, and so may what a
    /// server sends before anybody can hold it back: its user is charged for that, and for
    /// what has come and nobody reads.
    pub(super) fn forfeit(&mut self, number: u32) {
        let Some(gate) = &mut self.gate else { return };
        let Response { class, user, received, arrived, paid, charged, .. } =
            self.responses[number as usize];
        gate.room.linger(Bytes(paid));
        let sent = arrived.saturating_add(paid).max(gate.config.long_from.0);
        self.charge(class, user, Bytes(sent) - Bytes(received + charged));
        self.set_paid(number, 0);
    }

    /// Bytes on the link that nobody has paid for.
    pub(super) fn spend(&mut self, size: Bytes) {
        if let Some(gate) = &mut self.gate {
            gate.room.spend(size);
        }
    }
}
