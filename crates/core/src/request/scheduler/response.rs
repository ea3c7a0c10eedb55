//! What is known of an outstanding response.

use super::readers::Place;
use crate::request::lines::Part;
use crate::units::{Bytes, Time};

/// An outstanding response.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) handle: u64,
    pub(super) class: u32,
    pub(super) user: u32,
    /// How many began before it.
    pub(super) age: u64,
    pub(super) received: u64,
    /// How much it had received when something was asked for last that comes in it.
    pub(super) asked_at: u64,
    /// What has come, read or not, and whether that is all.
    pub(super) arrived: u64,
    pub(super) is_whole: bool,
    /// What the server may send beyond what has been read, the most that it may have
    /// sent, and the most that it may when all that was granted is read.
    pub(super) ahead: u64,
    pub(super) edge: u64,
    pub(super) horizon: u64,
    /// What it is likely to bring in a round trip.
    pub(super) pace: u64,
    /// What the room has paid for and has not come.
    pub(super) paid: u64,
    /// What class and user have been charged for and has not been read.
    pub(super) charged: u64,
    /// What may be read when it is long.
    pub(super) may: u64,
    pub(super) has_place: bool,
    /// While something is promised: until when it has to bring a grant more than it had
    /// brought `before`.
    pub(super) watched_until: Option<Time>,
    pub(super) before: u64,
    pub(super) is_long: bool,
    /// Its place among the hungry responses, if it is one.
    pub(super) hungry: Option<Place>,
    /// The room that is set aside for it, and what its server may send, as far as both count
    /// for its user.
    pub(super) aside: (u64, u64),
}

impl Response {
    /// How many powers of two count of what it has received, for a user of this weight.
    pub(super) fn octave(&self, weight: u32) -> u32 {
        let counts = u128::from(self.received - self.asked_at);
        (counts.pow(2) / u128::from(weight)).max(1).ilog2() / 2
    }

    pub(super) fn part(&self) -> Part {
        if self.is_long { Part::Long } else { Part::Asked }
    }

    /// What a grant lets its server send beyond what was promised: nothing while more has
    /// come than its buffer should hold.
    pub(super) fn opens(&self, grant: Bytes) -> Bytes {
        if self.is_whole {
            return Bytes::ZERO;
        }
        let far = self.received.saturating_add(self.may + grant.0 + self.ahead);
        Bytes(far.saturating_sub(self.horizon.max(self.arrived))).min(grant)
    }

    /// Whether it wants to be read on. Half a grant is ahead of it, so that reading does not
    /// stop at the end of each, or half of what comes in a round trip, so that its server
    /// does not stop.
    pub(super) fn wants(&self, grant: Bytes) -> bool {
        self.may <= grant.0.max(self.ahead) / 2
    }
}
