//! What responses are promised, what comes of it, and who is charged.
//!
//! Two books are kept of each response. The room pays for what the link is to carry:
//! what was promised and has not arrived. Class and user pay for what is read: what they
//! were charged for ahead and have not read. Both are paid when a request is released or
//! a grant is given, and what does not come is given back, unless the response was broken
//! off: then it may still be on its way.

use super::{PATIENCE, Response, Scheduler};
use crate::request::lines::Part;
use crate::units::{Bytes, Span, Time};

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

    /// Class and user have received `size`, or will.
    pub(super) fn charge(&mut self, class: u32, user: u32, size: Bytes, of: Part) {
        self.classes.charge(self.lines.group(class), size);
        let before = self.lines.level(user);
        self.lines.charge(user, size, of);
        self.rank_reader(user, before);
    }

    /// So much of a response has come: for what was not promised there is less room now. If
    /// all of it seemed to have come, it goes on, and takes its place back.
    pub(super) fn bring(&mut self, number: u32, arrived: u64) {
        let response = &mut self.responses[number as usize];
        let fresh = arrived.saturating_sub(response.arrived);
        if fresh == 0 {
            return;
        }
        let unpaid = fresh.saturating_sub(response.paid);
        let left = response.paid.saturating_sub(fresh);
        response.arrived = arrived;
        if std::mem::take(&mut response.is_whole) && !response.is_long {
            response.has_place = true;
            self.held += 1;
        }
        self.set_paid(number, left);
        self.seen = self.seen.saturating_add(fresh);
        self.spend(Bytes(unpaid));
    }

    /// A response begins: what it is expected to bring before it is long is promised and
    /// charged.
    pub(super) fn expect(&mut self, number: u32) {
        let user = self.responses[number as usize].user;
        if let Some(expected) = self.expected(user) {
            self.charge_ahead(number, expected, Part::Asked);
            self.promise(number, expected);
        }
    }

    /// What a response of a user is expected to bring before it is long: what theirs usually
    /// do, or those of all if nothing is known of them.
    pub(super) fn expected(&self, user: u32) -> Option<Bytes> {
        let gate = self.gate.as_ref()?;
        let usual = self.lines.usual(user).map(|usual| gate.sizes.within(usual));
        Some(usual.unwrap_or(gate.sizes.expected()))
    }

    /// A response of a user has brought nothing: who asks servers that never answer is not
    /// promised as much each time.
    pub(super) fn expect_less(&mut self, user: u32) {
        if self.lines.usual(user).is_none()
            && let Some(expected) = self.expected(user)
        {
            self.lines.see(user, expected);
        }
        self.lines.see(user, Bytes(1));
    }

    /// The room is promised to what a response is to bring.
    pub(super) fn promise(&mut self, number: u32, size: Bytes) {
        if let Some(gate) = &mut self.gate {
            gate.room.promise(size);
        }
        self.set_paid(number, self.responses[number as usize].paid + size.0);
    }

    /// Class and user are charged for what will be read of a response.
    pub(super) fn charge_ahead(&mut self, number: u32, size: Bytes, of: Part) {
        let response = &mut self.responses[number as usize];
        response.charged += size.0;
        let (class, user) = (response.class, response.user);
        self.charge(class, user, size, of);
    }

    /// What the server of a long response may send has changed. The room pays for a grant of
    /// what is more: a receive buffer may hold seconds of the link, of which most responses
    /// use little, and what comes beyond that pays as it comes. What cannot come any more is
    /// room again: the buffer has become smaller, and what is read had come before.
    pub(super) fn extend(&mut self, number: u32) {
        let Some(grant) = self.gate.as_ref().map(|gate| gate.room.grant().0) else { return };
        let response = &mut self.responses[number as usize];
        let before = response.horizon.max(response.arrived);
        let may = if response.is_long { response.may } else { 0 };
        let far = response.received.saturating_add(may + response.ahead);
        response.horizon = far.max(response.edge);
        if !response.is_long || response.is_whole {
            return;
        }
        let more = response.horizon.saturating_sub(before).min(grant);
        let open = response.horizon.saturating_sub(response.arrived);
        if more > 0 {
            self.promise(number, Bytes(more));
            self.watch(number, self.now);
        }
        let surplus = self.responses[number as usize].paid.saturating_sub(open);
        if surplus > 0 {
            self.give_back(number, surplus);
        }
    }

    /// What was promised and does not come is room again, and class and user get back
    /// what they were charged for it.
    pub(super) fn refund(&mut self, number: u32) {
        self.vacate(number);
        let response = &mut self.responses[number as usize];
        let size = Bytes(std::mem::take(&mut response.charged));
        let (class, user, of) = (response.class, response.user, response.part());
        if size == Bytes::ZERO {
            return;
        }
        self.classes.refund(self.lines.group(class), size);
        let before = self.lines.level(user);
        self.lines.refund(user, size, of);
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
        self.give_back(number, self.responses[number as usize].paid);
    }

    /// What was promised has not come for so long that the link could have carried it.
    pub(super) fn reclaim(&mut self, number: u32) {
        let paid = self.responses[number as usize].paid;
        if let Some(gate) = &mut self.gate {
            gate.room.reclaim(Bytes(paid));
        }
        self.set_paid(number, 0);
    }

    fn give_back(&mut self, number: u32, size: u64) {
        if let Some(gate) = &mut self.gate {
            gate.room.refund(Bytes(size));
        }
        self.set_paid(number, self.responses[number as usize].paid - size);
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
        let of = self.responses[number as usize].part();
        self.charge(class, user, Bytes(sent) - Bytes(received + charged), of);
        self.set_paid(number, 0);
    }

    /// For how long what a server has sent waits on its way, as far as that is known; `None`
    /// where nothing is promised.
    pub(in crate::request) fn queueing_delay(&self) -> Option<Span> {
        self.gate.as_ref().map(|gate| gate.room.delay())
    }

    /// Bytes on the link that nobody has paid for.
    pub(super) fn spend(&mut self, size: Bytes) {
        if let Some(gate) = &mut self.gate {
            gate.room.spend(size);
        }
    }
}
