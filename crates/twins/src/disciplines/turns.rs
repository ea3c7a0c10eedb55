//! Deficit round robin with a list of new queues and one of old (RFC 8290
//! section 4), walked through turn by turn.

use std::collections::BTreeMap;

/// Numbered queues in the order of their turns.
#[derive(Default)]
pub(super) struct Turns {
    /// A new queue that is empty leaves at once where no old ones wait, as in Linux.
    leaves_at_once: bool,
    new: Vec<u32>,
    old: Vec<u32>,
    credits: BTreeMap<u32, i128>,
}

impl Turns {
    pub(super) fn new(leaves_at_once: bool) -> Turns {
        Turns { leaves_at_once, ..Turns::default() }
    }

    pub(super) fn active(&self) -> Vec<u32> {
        [&self.new[..], &self.old[..]].concat()
    }

    pub(super) fn arrived(&mut self, queue: u32, quantum: i128) {
        if !self.active().contains(&queue) {
            self.new.push(queue);
            self.credits.insert(queue, quantum);
        }
    }

    /// The queue to be served; `quantum` sees the old list and the queue that waits.
    pub(super) fn next(&mut self, quantum: impl Fn(&[u32], u32) -> i128) -> Option<u32> {
        loop {
            let queue = *self.active().first()?;
            if self.credits[&queue] > 0 {
                return Some(queue);
            }
            let is_new = !self.new.is_empty();
            self.leave(queue);
            self.old.push(queue);
            *self.credits.get_mut(&queue).expect("it is active") += quantum(&self.old, queue);
            // A packet of 2^64 bytes takes as many rounds: those after which
            // still nobody has credits are made up for.
            if !is_new && self.old.iter().all(|queue| self.credits[queue] <= 0) {
                let rounds = |queue: &u32| -self.credits[queue] / quantum(&self.old, *queue);
                let rounds = self.old.iter().map(rounds).min().expect("one is old");
                for queue in &self.old {
                    *self.credits.get_mut(queue).expect("it is active") +=
                        rounds * quantum(&self.old, *queue);
                }
            }
        }
    }

    pub(super) fn found_empty(&mut self, queue: u32) {
        let was_new = self.new.contains(&queue);
        self.leave(queue);
        if was_new && !(self.leaves_at_once && self.old.is_empty()) {
            self.old.push(queue);
        }
    }

    pub(super) fn spend(&mut self, queue: u32, credits: i128) {
        *self.credits.get_mut(&queue).expect("it is active") -= credits;
    }

    fn leave(&mut self, queue: u32) {
        self.new.retain(|other| *other != queue);
        self.old.retain(|other| *other != queue);
    }
}
