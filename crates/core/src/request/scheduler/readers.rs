//! Which long response is read next, and whether a request goes first.
//!
//! Long responses that want to be read stand in the order of LAS-log: the fewest powers of
//! two received first. Those of two users do so as long as neither user is ahead by more than
//! a lead, and then in the order of what their users have received in all. What counts is a
//! part of what was received, by the root of the user's weight: if weights did not count, all
//! users would be read alike until the lighter ones are ahead by a lead, and if they counted in
//! full, the heavier ones would be. Of one user and power of two, the oldest is first, for
//! those of one size would otherwise end together. Requests stand in the order of what their
//! users' requests have brought. So a user's download waits for others, but not the page that
//! the same user asks for meanwhile; and whoever asks for nothing but small responses waits as
//! soon as they bring more than others get.

use std::collections::{BTreeMap, BTreeSet};

use super::{LEAD, LEAST_LEAD, Response, Scheduler};
use crate::request::Permit;
use crate::request::lines::Name;
use crate::request::room::{ReadGateConfig, Room};
use crate::request::sizes::Sizes;
use crate::units::{Bytes, Rate, Time};

/// The read gate: long responses, and the room that they and requests compete for.
#[derive(Debug)]
pub(super) struct ReadGate {
    pub(super) config: ReadGateConfig,
    pub(super) room: Room,
    pub(super) sizes: Sizes,
    pub(super) rate: Rate,
    /// The responses that want to be read: those of each user by their places, and all in
    /// the order in which they became hungry.
    pub(super) by_user: BTreeSet<(u32, Place, u32)>,
    pub(super) by_age: BTreeMap<u64, u32>,
    /// The users of each group who have one, by level, and by the octave and place of the
    /// first of theirs.
    pub(super) readers: Vec<BTreeSet<(u64, u32)>>,
    pub(super) by_octave: Vec<BTreeSet<(u32, u64, Place, u32)>>,
    /// The users for whose long responses room is set aside, whether those are hungry or
    /// not. And those of each group, by level.
    pub(super) aside: BTreeMap<u32, Aside>,
    pub(super) behind: Vec<BTreeSet<(u64, Name, u32)>>,
    pub(super) hungered: u64,
    /// The responses that have to bring something, by the time until which.
    pub(super) watched: BTreeSet<(Time, u32)>,
}

/// The place of a hungry response among those of its user, and when it became hungry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    octave: u32,
    age: u64,
    since: u64,
}

/// What is set aside for a user whose long responses go on.
#[derive(Debug)]
pub(super) struct Aside {
    /// The level at which the user stands among those behind.
    level: u64,
    /// What the responses are likely to bring in a round trip, and what their servers may send.
    pace: u64,
    ahead: u64,
}

/// What is next when there is room for it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Candidate {
    /// A request of this group, which needs so much with what is set aside for others.
    Request { group: u32, needs: Bytes },
    /// This long response, which needs so much.
    Response { number: u32, needs: Bytes },
}

impl Scheduler {
    /// What is next when there is room for it: of the group that has received the least, a
    /// request, unless its user's requests have brought more, by over a [`LEAD`], than a user
    /// has received whose long response wants to be read.
    pub(super) fn candidate(&self) -> Option<Candidate> {
        let gate = self.gate.as_ref()?;
        let with_requests = self.window.follows_room();
        let group = self.classes.next_busy(with_requests)?;
        let request = self.lines.first_asked(group).filter(|_| with_requests);
        let Some(&(level, _)) = gate.readers[group as usize].first() else {
            return request.map(|request| self.ask(group, request));
        };
        let lead = self.lines.lead(gate.lead());
        if let Some(request) = request.filter(|request| *request <= level.saturating_add(lead)) {
            return Some(self.ask(group, request));
        }
        let (number, needs) = self.first_of(self.first_reader(group)?)?;
        Some(Candidate::Response { number, needs })
    }

    /// The first request of a group, of a user whose requests have brought this much. Room for
    /// a grant is enough, unless somebody is behind who reads something long: then there has to
    /// be room beside what is set aside for them, and for all by which the request brings more
    /// than their servers may send meanwhile. While the link carries it, they would otherwise be
    /// served once, however long that takes.
    fn ask(&self, group: u32, asked: u64) -> Candidate {
        let expected = self.first_expected(group);
        let Some(gate) = &self.gate else { return Candidate::Request { group, needs: expected } };
        let behind = gate.behind[group as usize].first().and_then(|&(level, _, user)| {
            let lead = self.lines.lead(gate.lead());
            (level.saturating_add(lead) < asked).then(|| &gate.aside[&user])
        });
        let grant = expected.min(gate.room.grant());
        let needs = behind.map_or(grant, |behind| {
            (expected - Bytes(behind.ahead)).max(grant) + Bytes(behind.pace)
        });
        Candidate::Request { group, needs }
    }

    /// What the response to the first request of a group is expected to bring.
    pub(super) fn first_expected(&self, group: u32) -> Bytes {
        let user = self.lines.first_user(group);
        user.and_then(|user| self.expected(user)).unwrap_or_default()
    }

    /// The long response that is next among those that want to be read.
    pub(super) fn next_reader(&self) -> Option<u32> {
        let group = self.classes.next_busy(false)?;
        self.first_of(self.first_reader(group)?).map(|(number, _)| number)
    }

    /// Whose long response is next in a group: of those who are no further than a lead from
    /// the least level, whoever has one in the lowest octave.
    fn first_reader(&self, group: u32) -> Option<u32> {
        let gate = self.gate.as_ref()?;
        let &(least, _) = gate.readers[group as usize].first()?;
        let most = least.saturating_add(self.lines.lead(gate.lead()));
        let by_octave = &gate.by_octave[group as usize];
        let mut octave = 0;
        loop {
            let &(next, level, _, user) = by_octave.range((octave, 0, Place::FIRST, 0)..).next()?;
            if level <= most {
                return Some(user);
            }
            octave = next + 1;
        }
    }

    /// The first hungry response of a user, and the room that it needs.
    fn first_of(&self, user: u32) -> Option<(u32, Bytes)> {
        let gate = self.gate.as_ref()?;
        let (.., number) = gate.by_user.range((user, Place::FIRST, 0)..).next()?;
        Some((*number, self.responses[*number as usize].opens(gate.room.grant())))
    }

    /// Room is given to whose turn it is: those who come from now on start no further behind
    /// them than a lead, however little somebody has had who is busy with slow servers.
    pub(super) fn reach_turn(&mut self, candidate: Candidate) {
        let Some(lead) = self.gate.as_ref().map(ReadGate::lead) else { return };
        let (group, level) = match candidate {
            Candidate::Request { group, .. } => (group, self.lines.first_asked(group)),
            Candidate::Response { number, .. } => {
                let Response { class, user, .. } = self.responses[number as usize];
                (self.lines.group(class), Some(self.lines.level(user)))
            }
        };
        let level = level.unwrap_or(0).saturating_sub(self.lines.lead(lead));
        self.lines.reach_at_least(group, level);
        self.classes.reach_turn(group, lead);
    }

    /// A user begins to wait for something.
    pub(super) fn catch_up(&mut self, user: u32) {
        let before = self.lines.level(user);
        self.lines.catch_up(user);
        if self.lines.level(user) != before {
            self.rank_reader(user, before);
        }
    }

    /// A long response wants to be read.
    pub(super) fn hunger(&mut self, number: u32) {
        self.catch_up(self.responses[number as usize].user);
        let Some(gate) = &mut self.gate else { return };
        let response = &mut self.responses[number as usize];
        let octave = response.octave(self.lines.weight_of_user(response.class));
        let place = Place { octave, age: response.age, since: gate.hungered };
        gate.hungered += 1;
        response.hungry = Some(place);
        let user = response.user;
        let before = gate.reader(user);
        self.lines.want(user);
        gate.by_user.insert((user, place, number));
        gate.by_age.insert(place.since, number);
        self.place_reader(user, self.lines.level(user), before);
    }

    /// Something more is asked for that comes in this response, as in a connection that many
    /// requests share: what counts of it in the order of long responses is what comes from now
    /// on.
    pub fn asked(&mut self, permit: &Permit) {
        self.settle();
        let number = permit.response();
        let Some(response) = self.responses.get_mut(number as usize) else { return };
        response.asked_at = response.received;
        let octave = response.octave(self.lines.weight_of_user(response.class));
        let (user, hungry) = (response.user, &mut response.hungry);
        let (Some(gate), Some(place)) = (&mut self.gate, hungry) else { return };
        let before = gate.reader(user);
        gate.by_user.remove(&(user, *place, number));
        place.octave = octave;
        gate.by_user.insert((user, *place, number));
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
        gate.by_age.remove(&place.since);
        self.lines.unwant(user);
        self.place_reader(user, self.lines.level(user), before);
    }

    /// Moves a user among the readers, who stood there at this `level` with this first
    /// response.
    fn place_reader(&mut self, user: u32, level: u64, before: Option<Place>) {
        let Some(gate) = &mut self.gate else { return };
        let group = self.lines.group_of(user);
        let readers = &mut gate.readers[group as usize];
        let by_octave = &mut gate.by_octave[group as usize];
        if let Some(before) = before {
            readers.remove(&(level, user));
            by_octave.remove(&(before.octave, level, before, user));
        }
        let first = gate.by_user.range((user, Place::FIRST, 0)..).next();
        if let Some((_, first, _)) = first.filter(|(of, ..)| *of == user) {
            let level = self.lines.level(user);
            readers.insert((level, user));
            by_octave.insert((first.octave, level, *first, user));
        }
        self.classes.set_hungry(group, readers.len() as u32);
        self.settle_busy(group);
    }

    /// The level of a user has changed.
    pub(super) fn rank_reader(&mut self, user: u32, before: u64) {
        if let Some(first) = self.gate.as_ref().and_then(|gate| gate.reader(user)) {
            self.place_reader(user, before, Some(first));
        }
        self.rank_aside(user);
    }

    /// What is set aside for a long response is what it is likely to bring in a round trip:
    /// it may want to be read again before a request that is released now has come. A response
    /// that trickles has nothing set aside.
    pub(super) fn set_aside(&mut self, number: u32) {
        let Some(gate) = &mut self.gate else { return };
        let response = &mut self.responses[number as usize];
        let goes_on = response.is_long && !response.is_whole && response.pace > 0;
        let (pace, ahead) = if goes_on { (response.pace, response.ahead) } else { (0, 0) };
        let before = std::mem::replace(&mut response.aside, (pace, ahead));
        if before == response.aside {
            return;
        }
        let user = response.user;
        let level = self.lines.level(user);
        let all = gate.aside.entry(user).or_insert(Aside { level, pace: 0, ahead: 0 });
        all.pace = all.pace + pace - before.0;
        all.ahead = all.ahead + ahead - before.1;
        if all.pace == 0 {
            let place = (all.level, self.lines.name(user), user);
            gate.behind[self.lines.group_of(user) as usize].remove(&place);
            gate.aside.remove(&user);
        }
        self.rank_aside(user);
    }

    /// The level of a user may have changed.
    pub(super) fn rank_aside(&mut self, user: u32) {
        let Some(gate) = &mut self.gate else { return };
        let Some(Aside { level, .. }) = gate.aside.get_mut(&user) else { return };
        let behind = &mut gate.behind[self.lines.group_of(user) as usize];
        let name = self.lines.name(user);
        behind.remove(&(*level, name, user));
        *level = self.lines.level(user);
        behind.insert((*level, name, user));
    }
}

impl Candidate {
    /// The room that it needs.
    pub(super) fn needs(self) -> Bytes {
        match self {
            Candidate::Request { needs, .. } | Candidate::Response { needs, .. } => needs,
        }
    }
}

impl Place {
    /// Before all others.
    const FIRST: Place = Place { octave: 0, age: 0, since: 0 };
}

impl ReadGate {
    /// The place of the first hungry response of a user.
    fn reader(&self, user: u32) -> Option<Place> {
        let first = self.by_user.range((user, Place::FIRST, 0)..).next();
        first.filter(|(of, ..)| *of == user).map(|(_, first, _)| *first)
    }

    /// How far ahead a user of weight 1 may be.
    fn lead(&self) -> Bytes {
        self.rate.volume(LEAD).max(self.config.long_from * LEAST_LEAD)
    }
}
