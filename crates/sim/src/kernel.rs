//! The event queue.
//!
//! Events are small values, ordered by (time, insertion): two events at one moment
//! happen in the order in which they were scheduled, so a run is the same on every
//! machine. The queue is a heap with four children per node, which touches fewer
//! cache lines on the way down than one with two. It stays small because its users
//! keep it so: a link has one entry for all its packets in flight, and a connection
//! end has one for all its timers.
//!
//! Most events schedule one more. The root therefore stays vacant while an event is
//! handled: the next one scheduled enters there, and goes down only as far as it must.
//! Otherwise each event would bring the last leaf to the root and down again.

use tidegate_core::Time;

/// Events of type `E`, earliest first.
#[derive(Debug)]
pub struct Kernel<E> {
    heap: Vec<Entry<E>>,
    /// Whether the root's event has been handed out, and nothing has taken its place.
    vacant: bool,
    now: Time,
    scheduled: u64,
    handled: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    at: Time,
    order: u64,
    event: E,
}

impl<E> Entry<E> {
    /// Both parts as one number, which compares without a branch.
    fn key(&self) -> u128 {
        u128::from(self.at.0) << 64 | u128::from(self.order)
    }
}

/// Children per node.
const ARITY: usize = 4;

impl<E: Copy> Default for Kernel<E> {
    fn default() -> Kernel<E> {
        Kernel::new()
    }
}

impl<E: Copy> Kernel<E> {
    /// Nothing scheduled, at time zero.
    #[must_use]
    pub fn new() -> Kernel<E> {
        Kernel { heap: Vec::new(), vacant: false, now: Time::ZERO, scheduled: 0, handled: 0 }
    }

    /// The time of the last event handled.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The number of events handled so far.
    #[must_use]
    pub fn handled(&self) -> u64 {
        self.handled
    }

    /// Events still to come.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.heap.len() - usize::from(self.vacant)
    }

    /// Schedules `event` for `at`; a time in the past means now.
    pub fn schedule(&mut self, at: Time, event: E) {
        let entry = Entry { at: at.max(self.now), order: self.scheduled, event };
        self.scheduled += 1;
        if self.vacant {
            self.vacant = false;
            self.sift_down(entry);
        } else {
            self.heap.push(entry);
            self.sift_up(self.heap.len() - 1, entry);
        }
    }

    /// Returns the next event no later than `until`, and moves the clock to it.
    pub fn next(&mut self, until: Time) -> Option<E> {
        if self.vacant {
            self.fill_root();
        }
        let first = *self.heap.first()?;
        if first.at > until {
            return None;
        }
        self.vacant = true;
        self.now = first.at;
        self.handled += 1;
        Some(first.event)
    }

    /// Gives the vacant root to the last leaf, which goes down from there.
    fn fill_root(&mut self) {
        self.vacant = false;
        let last = self.heap.pop().expect("the heap has a root");
        if !self.heap.is_empty() {
            self.sift_down(last);
        }
    }

    /// Puts `entry` where it belongs between `hole` and the root.
    fn sift_up(&mut self, mut hole: usize, entry: Entry<E>) {
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if self.heap[parent].key() <= entry.key() {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = entry;
    }

    /// Puts `entry` where it belongs when the root is vacant.
    fn sift_down(&mut self, entry: Entry<E>) {
        let (mut hole, key) = (0, entry.key());
        loop {
            let first = hole * ARITY + 1;
            let (least, least_key) = match self.heap.get(first..first + ARITY) {
                // This is almost always the case: two rounds of a tournament.
                Some([a, b, c, d]) => {
                    let (left, left_key) =
                        if b.key() < a.key() { (1, b.key()) } else { (0, a.key()) };
                    let (right, right_key) =
                        if d.key() < c.key() { (3, d.key()) } else { (2, c.key()) };
                    if right_key < left_key {
                        (first + right, right_key)
                    } else {
                        (first + left, left_key)
                    }
                }
                _ => match (first..self.heap.len()).min_by_key(|child| self.heap[*child].key()) {
                    Some(least) => (least, self.heap[least].key()),
                    None => break,
                },
            };
            if least_key >= key {
                break;
            }
            self.heap[hole] = self.heap[least];
            hole = least;
        }
        self.heap[hole] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_in_the_order_of_time_and_insertion(
            steps in prop::collection::vec(prop::option::weighted(0.6, 0_u64..50), 1..400),
        ) {
            let mut kernel = Kernel::new();
            let mut twin: Vec<(Time, usize)> = Vec::new();
            for (index, step) in steps.into_iter().enumerate() {
                match step {
                    Some(ahead) => {
                        let at = Time(kernel.now().0 + ahead);
                        kernel.schedule(at, index);
                        twin.push((at, index));
                    }
                    None => {
                        let next = twin.iter().min().copied();
                        twin.retain(|event| Some(*event) != next);
                        prop_assert_eq!(kernel.next(Time::FAR_FUTURE), next.map(|event| event.1));
                    }
                }
            }
        }
    }

    #[test]
    fn the_past_means_now_and_later_events_wait() {
        let mut kernel = Kernel::new();
        kernel.schedule(Time(10), 'a');
        assert_eq!(kernel.next(Time(9)), None);
        assert_eq!(kernel.next(Time(10)), Some('a'));
        kernel.schedule(Time(3), 'b');
        assert_eq!(kernel.next(Time(10)), Some('b'));
        assert_eq!(kernel.now(), Time(10));
    }
}
