//! Which long response is read next, and whether a request goes first.
//!
//! Long responses that want to be read stand in the order of what their users have
//! received in all, those of one user in the order in which they came to want it. Requests
//! stand in that of what their users' requests have brought. So a user's download waits for
//! others, but not the page that the same user asks for meanwhile; and whoever asks for
//! nothing but small responses waits as soon as they bring more than others get.

use std::collections::{BTreeMap, BTreeSet};

use super::{LEAD, LEAST_LEAD, Scheduler};
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
    /// The responses that want to be read: those of each user, and all, in the order
    /// in which they became hungry.
    pub(super) by_user: BTreeSet<(u32, u64, u32)>,
    pub(super) by_age: BTreeMap<u64, u32>,
    /// The users of each group who have one, by level.
    pub(super) readers: Vec<BTreeSet<(u64, u64, u32)>>,
    pub(super) hungered: u64,
    /// The responses that have to bring something, by the time until which.
    pub(super) watched: BTreeSet<(Time, u32)>,
}

/// What is next when there is room for it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Candidate {
    /// A request of this group.
    Request(u32),
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
        let Some(&(level, _, user)) = gate.readers[group as usize].first() else {
            return request.map(|_| Candidate::Request(group));
        };
        let lead = self.lines.lead(gate.lead());
        if request.is_some_and(|request| request <= level.saturating_add(lead)) {
            return Some(Candidate::Request(group));
        }
        let (number, needs) = self.first_of(user)?;
        Some(Candidate::Response { number, needs })
    }

    /// The long response that is next among those that want to be read, and the room that
    /// it needs.
    pub(super) fn next_reader(&self) -> Option<(u32, Bytes)> {
        let group = self.classes.next_busy(false)?;
        let &(.., user) = self.gate.as_ref()?.readers[group as usize].first()?;
        self.first_of(user)
    }

    /// The first hungry response of a user, and the room that it needs.
    fn first_of(&self, user: u32) -> Option<(u32, Bytes)> {
        let gate = self.gate.as_ref()?;
        let (.., number) = gate.by_user.range((user, 0, 0)..).next()?;
        Some((*number, self.responses[*number as usize].opens(gate.config.grant)))
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

    /// The level of a user has changed.
    pub(super) fn rank_reader(&mut self, user: u32, before: u64) {
        if let Some(first) = self.gate.as_ref().and_then(|gate| gate.reader(user)) {
            self.place_reader(user, before, Some(first));
        }
    }
}

impl ReadGate {
    /// The number of the first hungry response of a user.
    fn reader(&self, user: u32) -> Option<u64> {
        let first = self.by_user.range((user, 0, 0)..).next();
        first.filter(|(of, ..)| *of == user).map(|(_, first, _)| *first)
    }

    /// How far ahead a user of weight 1 may be.
    fn lead(&self) -> Bytes {
        self.rate.volume(LEAD).max(self.config.long_from * LEAST_LEAD)
    }

    /// The room that a candidate needs.
    pub(super) fn needs(&self, candidate: Candidate) -> Bytes {
        match candidate {
            Candidate::Request(_) => self.sizes.expected().min(self.config.grant),
            Candidate::Response { needs, .. } => needs,
        }
    }
}
