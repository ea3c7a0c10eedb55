//! Deficit round robin in which a queue that was idle goes first: the order of
//! service of FQ-CoDel (`RFC 8290 section 4`), which others have adopted.
//!
//! A queue that gets a packet while it has no turns joins the list of new queues
//! with a quantum of credits, and new queues are served before old ones. A queue
//! that has used up its credits gets another quantum and goes to the end of the old
//! list. A new queue that turns out to be empty goes there too, and only then
//! leaves: otherwise a queue could be new again and again, and starve the old ones.
//! In Linux (7.3, `sch_fq_codel`, `sch_fq_pie`) it leaves at once while there are no
//! old ones to starve.
//!
//! The quantum may differ from turn to turn, and may be small compared with a
//! packet. Whole rounds in which all old queues only gather credits are then
//! computed rather than walked through, so a packet costs a round or two at most,
//! and O(1) on average as long as queues do not wait for many rounds.

use super::flow_queues::Rotation;
use super::form::Form;

/// Queues by number in the order of their turns.
#[derive(Debug)]
pub(crate) struct SparseFirst {
    form: Form,
    new: Rotation,
    old: Rotation,
    old_queues: u32,
    turns: Vec<Turn>,
    active: usize,
}

/// What a queue has left of its turn, wide enough for packets of any size.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    credits: i128,
    list: List,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum List {
    #[default]
    None,
    New,
    Old,
}

impl SparseFirst {
    /// No queues yet.
    pub(crate) fn new(form: Form) -> SparseFirst {
        SparseFirst {
            form,
            new: Rotation::default(),
            old: Rotation::default(),
            old_queues: 0,
            turns: Vec::new(),
            active: 0,
        }
    }

    /// Queues that have turns: those with packets, and a few that were just emptied.
    pub(crate) fn active(&self) -> usize {
        self.active
    }

    /// Whether the queue has turns.
    pub(crate) fn is_active(&self, queue: u32) -> bool {
        self.turns.get(queue as usize).is_some_and(|turn| turn.list != List::None)
    }

    /// Whether the queue has been through a quantum since it became active.
    #[cfg(test)]
    pub(crate) fn is_old(&self, queue: u32) -> bool {
        self.turns.get(queue as usize).is_some_and(|turn| turn.list == List::Old)
    }

    /// A packet comes to the queue, which has `quantum` to spend if it was idle.
    pub(crate) fn arrived(&mut self, queue: u32, quantum: impl FnOnce() -> i128) {
        if self.is_active(queue) {
            return;
        }
        if queue as usize >= self.turns.len() {
            self.turns.resize(queue as usize + 1, Turn::default());
        }
        self.turns[queue as usize] = Turn { credits: quantum(), list: List::New };
        self.new.push_back(queue);
        self.active += 1;
    }

    /// The same for a queue that has to wait behind all old ones: plain round robin.
    pub(crate) fn arrived_last(&mut self, queue: u32, quantum: i128) {
        if !self.is_active(queue) {
            self.arrived(queue, || quantum);
            self.age(queue);
        }
    }

    /// The old queue whose turn it is.
    pub(crate) fn first_old(&self) -> Option<u32> {
        self.old.first()
    }

    /// The queue to take a packet from, if any has turns. A queue that has to wait
    /// gets a quantum, which is at least 1.
    pub(crate) fn next(&mut self, mut quantum: impl FnMut(u32) -> i128) -> Option<u32> {
        let mut waiting = 0;
        loop {
            let queue = self.new.first().or(self.old.first())?;
            let turn = &mut self.turns[queue as usize];
            if turn.credits > 0 {
                return Some(queue);
            }
            turn.credits += quantum(queue);
            if turn.list == List::New {
                self.age(queue);
                continue;
            }
            self.old.rotate();
            waiting += 1;
            if waiting == self.old_queues {
                self.skip_rounds(&mut quantum);
                waiting = 0;
            }
        }
    }

    /// The queue, which [`SparseFirst::next`] has given, turned out to be empty.
    pub(crate) fn found_empty(&mut self, queue: u32) {
        if self.turns[queue as usize].list == List::Old {
            self.old.remove(queue);
            self.old_queues -= 1;
        } else if self.form == Form::Linux && self.old_queues == 0 {
            self.new.remove(queue);
        } else {
            return self.age(queue);
        }
        self.turns[queue as usize].list = List::None;
        self.active -= 1;
    }

    /// The queue has sent this many bytes, or whatever credits are counted in.
    pub(crate) fn spend(&mut self, queue: u32, credits: i128) {
        self.turns[queue as usize].credits -= credits;
    }

    /// Moves a queue from the new list to the end of the old.
    fn age(&mut self, queue: u32) {
        self.new.remove(queue);
        self.old.push_back(queue);
        self.old_queues += 1;
        self.turns[queue as usize].list = List::Old;
    }

    /// All queues are old, and a round has just ended in which none had
    /// credits: gives them the quanta of all further rounds of that kind.
    fn skip_rounds(&mut self, quantum: &mut impl FnMut(u32) -> i128) {
        let mut rounds = i128::MAX;
        for _ in 0..self.old_queues {
            let Some(queue) = self.old.first() else { return };
            let lacking = 1 - self.turns[queue as usize].credits;
            let quantum = quantum(queue);
            // Rounded up; a queue that has credits needs none.
            rounds = rounds.min((lacking + quantum - 1) / quantum).max(0);
            self.old.rotate();
        }
        for _ in 0..self.old_queues {
            let Some(queue) = self.old.first() else { return };
            self.turns[queue as usize].credits += rounds * quantum(queue);
            self.old.rotate();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// Queues of packet sizes, served as the RFC's text says, turn by turn.
    #[derive(Default)]
    struct Plain {
        is_linux: bool,
        new: VecDeque<u32>,
        old: VecDeque<u32>,
        credits: [i128; 5],
        packets: [VecDeque<i128>; 5],
    }

    impl Plain {
        fn push(&mut self, queue: u32, size: i128, quanta: [i128; 5]) {
            if !self.new.contains(&queue) && !self.old.contains(&queue) {
                self.new.push_back(queue);
                self.credits[queue as usize] = quanta[queue as usize];
            }
            self.packets[queue as usize].push_back(size);
        }

        fn pop(&mut self, quanta: [i128; 5]) -> Option<(u32, i128)> {
            loop {
                let is_new = !self.new.is_empty();
                let list = if is_new { &mut self.new } else { &mut self.old };
                let queue = list.pop_front()?;
                let at = queue as usize;
                if self.credits[at] <= 0 {
                    self.credits[at] += quanta[at];
                    self.old.push_back(queue);
                    continue;
                }
                let Some(size) = self.packets[at].pop_front() else {
                    if is_new && !(self.is_linux && self.old.is_empty()) {
                        self.old.push_back(queue);
                    }
                    continue;
                };
                list.push_front(queue);
                self.credits[at] -= size;
                return Some((queue, size));
            }
        }
    }

    proptest! {
        #[test]
        fn turns_are_those_of_lists_walked_through_one_by_one(
            operations in prop::collection::vec(prop::option::of((0..5_u32, 0..5_000_i128)), 0..200),
            quanta in prop::array::uniform5(1..2_000_i128),
            is_linux in any::<bool>(),
        ) {
            let form = if is_linux { Form::Linux } else { Form::Published };
            let mut plain = Plain { is_linux, ..Plain::default() };
            let mut real = SparseFirst::new(form);
            let mut packets: [VecDeque<i128>; 5] = Default::default();
            for operation in operations {
                let Some((queue, size)) = operation else {
                    let sent = loop {
                        let Some(queue) = real.next(|queue| quanta[queue as usize]) else {
                            break None;
                        };
                        let Some(size) = packets[queue as usize].pop_front() else {
                            real.found_empty(queue);
                            continue;
                        };
                        real.spend(queue, size);
                        break Some((queue, size));
                    };
                    prop_assert_eq!(sent, plain.pop(quanta));
                    prop_assert_eq!(real.active(), plain.new.len() + plain.old.len());
                    continue;
                };
                plain.push(queue, size, quanta);
                real.arrived(queue, || quanta[queue as usize]);
                packets[queue as usize].push_back(size);
            }
        }
    }

    #[test]
    fn a_queue_that_was_idle_goes_first_but_only_for_a_quantum() {
        let mut turns = SparseFirst::new(Form::Published);
        let serve = |turns: &mut SparseFirst, size| {
            let queue = turns.next(|_| 1_500).unwrap();
            turns.spend(queue, size);
            queue
        };
        turns.arrived(0, || 1_500);
        assert_eq!(serve(&mut turns, 1_500), 0);
        turns.arrived(1, || 1_500);
        // Queue 0 has spent its quantum and is old now.
        assert_eq!([1_000, 1_000, 1_500].map(|size| serve(&mut turns, size)), [1, 1, 0]);
        // Both are old, and 1 has overdrawn by 500.
        assert_eq!([1_000, 1_500].map(|size| serve(&mut turns, size)), [1, 0]);
    }

    #[test]
    fn an_empty_queue_waits_for_a_round_before_it_can_be_new_again() {
        let mut turns = SparseFirst::new(Form::Published);
        turns.arrived(0, || 1_500);
        turns.spend(0, 1_500);
        turns.arrived(1, || 1_500);
        assert_eq!(turns.next(|_| 1_500), Some(1));
        turns.found_empty(1);
        assert!(turns.is_old(1));
        // A packet comes: it is not new, but behind 0.
        turns.arrived(1, || unreachable!("it is active"));
        assert_eq!(turns.next(|_| 1_500), Some(0));
        turns.spend(0, 1_500);
        assert_eq!(turns.next(|_| 1_500), Some(1));
        turns.found_empty(1);
        assert!(!turns.is_active(1) && turns.active() == 1);
    }

    /// A queue that comes back while others are new waits for them in either form; in
    /// Linux it has a fresh quantum, for there were no old queues when it went.
    #[test]
    fn in_linux_an_empty_queue_leaves_at_once_unless_old_ones_wait() {
        for (form, is_active) in [(Form::Linux, false), (Form::Published, true)] {
            let mut turns = SparseFirst::new(form);
            turns.arrived(0, || 1_500);
            turns.arrived(1, || 1_500);
            turns.spend(0, 1_500);
            turns.spend(1, 1_500);
            assert_eq!(turns.next(|_| 1_500), Some(0));
            // Both have become old, so 2 does too when it is found empty.
            turns.arrived(2, || 1_500);
            assert_eq!(turns.next(|_| 1_500), Some(2));
            turns.found_empty(2);
            assert!(turns.is_old(2));
            for queue in [0, 1, 2] {
                assert_eq!(turns.next(|_| 1_500), Some(queue));
                turns.found_empty(queue);
            }
            turns.arrived(0, || 1_500);
            turns.arrived(1, || 1_500);
            assert_eq!(turns.next(|_| 1_500), Some(0));
            turns.found_empty(0);
            assert_eq!(turns.is_active(0), is_active);
        }
    }

    #[test]
    fn a_debt_of_any_size_is_paid_at_once() {
        let mut turns = SparseFirst::new(Form::Published);
        for queue in [0, 1] {
            turns.arrived(queue, || 1);
            turns.spend(queue, i128::from(u64::MAX));
        }
        assert_eq!(turns.next(|_| 1), Some(0));
        assert_eq!(turns.next(|_| 1), Some(0));
        turns.spend(0, 1);
        assert_eq!(turns.next(|_| 1), Some(1));
    }
}
