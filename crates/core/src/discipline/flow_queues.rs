//! A FIFO queue for each flow, in one buffer: what round robin is made of.
//!
//! All packets lie in one slab, and each queue is a linked list through it, so
//! memory is that of the packets and not of the most that every queue ever held,
//! and either end of a queue is one step away. The discipline chooses the numbers
//! of queues: the bucket to which a flow hashes, or the slot of its entry in a
//! table. A number must be small, because queues lie in a `Vec`.
//!
//! [`FlowQueues::fattest`] finds the queue with the most bytes, or packets, for
//! disciplines that take a full buffer's victims from it. A heap of queues answers that question. It
//! is built when the question is first asked, kept until nothing is queued, and
//! then given up: a buffer that never fills up pays nothing for it, and one that
//! does looks at every queue once each time it goes from empty to full. While the
//! heap is kept, a packet costs O(log n) in the number of backlogged queues, and
//! otherwise O(1). Nothing allocates except to grow.
//!
//! [`Rotation`] is the order in which queues have their turns.

use super::Backlog;
use crate::packet::Packet;

/// No place in a slab or heap.
const NONE: u32 = u32::MAX;

/// What makes a queue fat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    /// Bytes; among equal ones, the longer stretch of backlog.
    Bytes,
    /// Packets; among equal ones, the latest change.
    Packets,
}

/// FIFO queues by number, each with a `T` that its discipline keeps for it.
#[derive(Debug)]
pub(crate) struct FlowQueues<T> {
    measure: Measure,
    queues: Vec<Queue<T>>,
    /// No slab: its links lie beside it, with the same slots.
    packets: Vec<Packet>,
    links: Vec<Link>,
    free: Vec<u32>,
    backlog: Backlog,
    /// The bytes of the backlog, exact where those saturate.
    bytes: u128,
    /// How many times a queue has been given a stamp.
    stamps: u64,
    /// Every backlogged queue, none fatter than its parent; empty unless kept.
    heap: Vec<u32>,
    heap_is_kept: bool,
}

#[derive(Debug)]
struct Queue<T> {
    state: T,
    list: List,
    packets: u32,
    /// Exact for packets of any size, so that the comparison of queues is exact
    /// too.
    bytes: u128,
    /// When its stretch of backlog began, or where packets are the measure when it last
    /// changed, as a number of all such events.
    stamp: u64,
    /// Its place in the heap.
    place: u32,
}

impl<T: Default> FlowQueues<T> {
    /// Queues without packets, as many as are asked for.
    pub(crate) fn new() -> FlowQueues<T> {
        FlowQueues::measured_in(Measure::Bytes)
    }

    /// The same, but the fattest is that with the most packets.
    pub(crate) fn by_packets() -> FlowQueues<T> {
        FlowQueues::measured_in(Measure::Packets)
    }

    fn measured_in(measure: Measure) -> FlowQueues<T> {
        FlowQueues {
            measure,
            queues: Vec::new(),
            packets: Vec::new(),
            links: Vec::new(),
            free: Vec::new(),
            backlog: Backlog::default(),
            bytes: 0,
            stamps: 0,
            heap: Vec::new(),
            heap_is_kept: false,
        }
    }

    /// What the discipline keeps for a queue: the default until the discipline
    /// changes it, and unaffected by packets that come and go.
    pub(crate) fn state(&mut self, queue: u32) -> &mut T {
        &mut self.queue(queue).state
    }

    /// Visits what is kept for every queue that there has been so far, with the bytes
    /// of that queue.
    pub(crate) fn each_state(&mut self, mut visit: impl FnMut(&mut T, u128)) {
        for queue in &mut self.queues {
            visit(&mut queue.state, queue.bytes);
        }
    }

    /// Puts a packet at the end of a queue.
    pub(crate) fn push(&mut self, number: u32, packet: Packet) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.packets[slot as usize] = packet;
                slot
            }
            None => {
                self.packets.push(packet);
                self.links.push(Link::default());
                // The backlog counts packets in 32 bits too.
                (self.packets.len() - 1) as u32
            }
        };
        self.backlog.add(packet.size);
        self.bytes += u128::from(packet.size.0);
        self.queue(number);
        let queue = &mut self.queues[number as usize];
        queue.list.push_back(&mut self.links, slot);
        queue.packets += 1;
        queue.bytes += u128::from(packet.size.0);
        let is_new = queue.packets == 1;
        if is_new || self.measure == Measure::Packets {
            queue.stamp = self.stamps;
            self.stamps += 1;
        }
        if is_new && self.heap_is_kept {
            self.enter_heap(number);
        }
        if self.heap_is_kept {
            self.rise(self.queues[number as usize].place);
        }
    }

    /// Takes out the packet at the head of a queue.
    pub(crate) fn pop_first(&mut self, queue: u32) -> Option<Packet> {
        let slot = self.queues.get(queue as usize)?.list.first;
        self.take(queue, slot)
    }

    /// Takes out the packet at the tail of a queue.
    pub(crate) fn pop_last(&mut self, queue: u32) -> Option<Packet> {
        let slot = self.queues.get(queue as usize)?.list.last;
        self.take(queue, slot)
    }

    /// The packet at the head of a queue.
    pub(crate) fn first(&self, queue: u32) -> Option<&Packet> {
        let slot = self.queues.get(queue as usize)?.list.first;
        self.packets.get(slot as usize)
    }

    /// The packets of a queue from the head on, each with its slot.
    pub(crate) fn packets(&self, queue: u32) -> impl Iterator<Item = (u32, &Packet)> {
        let mut slot = self.queues.get(queue as usize).map_or(NONE, |queue| queue.list.first);
        std::iter::from_fn(move || {
            let packet = self.packets.get(slot as usize)?;
            let found = (slot, packet);
            slot = self.links[slot as usize].next;
            Some(found)
        })
    }

    /// Takes a packet out of its queue, from a slot of [`FlowQueues::packets`].
    pub(crate) fn remove(&mut self, queue: u32, slot: u32) -> Option<Packet> {
        self.take(queue, slot)
    }

    /// Whether a queue has no packets.
    pub(crate) fn is_empty(&self, queue: u32) -> bool {
        self.queues.get(queue as usize).is_none_or(|queue| queue.packets == 0)
    }

    /// Packets of a queue.
    pub(crate) fn packets_of(&self, queue: u32) -> u32 {
        self.queues.get(queue as usize).map_or(0, |queue| queue.packets)
    }

    /// Bytes of a queue.
    pub(crate) fn bytes_of(&self, queue: u32) -> u128 {
        self.queues.get(queue as usize).map_or(0, |queue| queue.bytes)
    }

    /// What is kept for a queue that has had packets, with what it has of them now.
    pub(crate) fn state_and_length(&mut self, queue: u32) -> (&mut T, u32, u128) {
        let Queue { state, packets, bytes, .. } = &mut self.queues[queue as usize];
        (state, *packets, *bytes)
    }

    /// The queue with the most bytes; among equal ones, the one that has been
    /// backlogged longest. With packets as the measure: the one with the most packets;
    /// among equal ones, the one that changed last. `None` if nothing is queued.
    pub(crate) fn fattest(&mut self) -> Option<u32> {
        if !self.heap_is_kept {
            self.build_heap();
        }
        self.heap.first().copied()
    }

    /// Bytes of all queues.
    pub(crate) fn bytes(&self) -> u128 {
        self.bytes
    }

    /// What is queued in all.
    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// The queue of this number, made if there is none yet.
    #[inline]
    fn queue(&mut self, number: u32) -> &mut Queue<T> {
        if number as usize >= self.queues.len() {
            self.grow(number);
        }
        &mut self.queues[number as usize]
    }

    /// Apart, since it is rare: what packets go through keeps its registers.
    #[cold]
    fn grow(&mut self, number: u32) {
        self.queues.resize_with(number as usize + 1, || Queue {
            state: T::default(),
            list: List::default(),
            packets: 0,
            bytes: 0,
            stamp: 0,
            place: NONE,
        });
    }

    fn take(&mut self, number: u32, slot: u32) -> Option<Packet> {
        if slot == NONE {
            return None;
        }
        let size = self.packets[slot as usize].size;
        let queue = &mut self.queues[number as usize];
        queue.list.remove(&mut self.links, slot);
        queue.packets -= 1;
        queue.bytes -= u128::from(size.0);
        if self.measure == Measure::Packets {
            queue.stamp = self.stamps;
            self.stamps += 1;
        }
        let place = queue.place;
        let is_empty = queue.packets == 0;
        self.free.push(slot);
        self.backlog.remove(size);
        self.bytes -= u128::from(size.0);
        if self.heap_is_kept {
            if is_empty {
                self.leave_heap(number);
            } else {
                self.sink(place);
            }
            self.heap_is_kept = !self.heap.is_empty();
        }
        Some(self.packets[slot as usize])
    }

    /// From the bottom up, each queue sinks among those that are in order.
    fn build_heap(&mut self) {
        self.heap_is_kept = self.backlog.packets > 0;
        for number in 0..self.queues.len() as u32 {
            if !self.is_empty(number) {
                self.enter_heap(number);
            }
        }
        for place in (0..self.heap.len() as u32 / 2).rev() {
            self.sink(place);
        }
    }

    /// Puts a queue at the bottom of the heap, from where it has to rise.
    fn enter_heap(&mut self, number: u32) {
        self.queues[number as usize].place = self.heap.len() as u32;
        self.heap.push(number);
    }

    fn leave_heap(&mut self, number: u32) {
        let place = std::mem::replace(&mut self.queues[number as usize].place, NONE);
        self.heap.swap_remove(place as usize);
        if let Some(moved) = self.heap.get(place as usize) {
            self.queues[*moved as usize].place = place;
            // It comes from another branch: up or down, one of them does nothing.
            self.rise(place);
            self.sink(place);
        }
    }

    fn rise(&mut self, mut place: u32) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if !self.is_fatter(place, parent) {
                return;
            }
            self.swap(place, parent);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: u32) {
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            let end = self.heap.len() as u32;
            if left >= end {
                return;
            }
            let child = if right < end && self.is_fatter(right, left) { right } else { left };
            if !self.is_fatter(child, place) {
                return;
            }
            self.swap(child, place);
            place = child;
        }
    }

    /// Compares the queues at two places of the heap.
    fn is_fatter(&self, one: u32, other: u32) -> bool {
        let [one, other] =
            [one, other].map(|place| &self.queues[self.heap[place as usize] as usize]);
        match self.measure {
            Measure::Bytes => (one.bytes, other.stamp) > (other.bytes, one.stamp),
            Measure::Packets => (one.packets, one.stamp) > (other.packets, other.stamp),
        }
    }

    fn swap(&mut self, one: u32, other: u32) {
        self.heap.swap(one as usize, other as usize);
        for place in [one, other] {
            self.queues[self.heap[place as usize] as usize].place = place;
        }
    }
}

/// Queues in the order of their turns. A queue is in it at most once; the
/// discipline knows which queues are.
#[derive(Debug, Default)]
pub(crate) struct Rotation {
    list: List,
    links: Vec<Link>,
    len: usize,
}

impl Rotation {
    /// The number of queues in it.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The queue whose turn it is.
    pub(crate) fn first(&self) -> Option<u32> {
        (self.list.first != NONE).then_some(self.list.first)
    }

    /// Puts a queue behind all others.
    pub(crate) fn push_back(&mut self, queue: u32) {
        if queue as usize >= self.links.len() {
            self.grow(queue);
        }
        self.list.push_back(&mut self.links, queue);
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self, queue: u32) {
        self.links.resize(queue as usize + 1, Link::default());
    }

    /// Takes a queue out, wherever it stands.
    pub(crate) fn remove(&mut self, queue: u32) {
        self.list.remove(&mut self.links, queue);
        self.len -= 1;
    }

    /// Ends the turn of the first queue: it goes behind all others.
    pub(crate) fn rotate(&mut self) {
        if let Some(first) = self.first() {
            self.remove(first);
            self.push_back(first);
        }
    }
}

/// The ends of a doubly linked list through a slab.
#[derive(Debug)]
struct List {
    first: u32,
    last: u32,
}

/// The neighbours of one member.
#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
}

impl Default for List {
    fn default() -> List {
        List { first: NONE, last: NONE }
    }
}

impl Default for Link {
    fn default() -> Link {
        Link { previous: NONE, next: NONE }
    }
}

impl List {
    fn push_back(&mut self, links: &mut [Link], at: u32) {
        links[at as usize] = Link { previous: self.last, next: NONE };
        match links.get_mut(self.last as usize) {
            Some(last) => last.next = at,
            None => self.first = at,
        }
        self.last = at;
    }

    fn remove(&mut self, links: &mut [Link], at: u32) {
        let Link { previous, next } = links[at as usize];
        match links.get_mut(previous as usize) {
            Some(previous) => previous.next = next,
            None => self.first = next,
        }
        match links.get_mut(next as usize) {
            Some(next) => next.previous = previous,
            None => self.last = previous,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::packet::FlowKey;
    use crate::units::Bytes;

    #[derive(Clone, Copy, Debug)]
    enum Operation {
        Push { queue: u32, size: u64 },
        PopFirst { queue: u32 },
        PopLast { queue: u32 },
        LoseFromFattest,
        Drain,
    }

    fn operation() -> impl Strategy<Value = Operation> {
        let size = prop_oneof![0..4_u64, Just(u64::MAX)];
        prop_oneof![
            60 => (0..8_u32, size).prop_map(|(queue, size)| Operation::Push { queue, size }),
            20 => (0..9_u32).prop_map(|queue| Operation::PopFirst { queue }),
            10 => (0..9_u32).prop_map(|queue| Operation::PopLast { queue }),
            20 => Just(Operation::LoseFromFattest),
            1 => Just(Operation::Drain),
        ]
    }

    /// One list for each queue, and the number of the stretch that it is in.
    #[derive(Default)]
    struct Lists {
        lists: [(VecDeque<(u64, u64)>, usize); 9],
        stretches: usize,
    }

    impl Lists {
        fn push(&mut self, queue: u32, packet: (u64, u64)) {
            let (list, stretch) = &mut self.lists[queue as usize];
            if list.is_empty() {
                *stretch = self.stretches;
                self.stretches += 1;
            }
            list.push_back(packet);
        }

        fn fattest(&self) -> Option<u32> {
            let backlogged = (0..9).filter(|queue| !self.lists[*queue].0.is_empty());
            let rank = |queue: &usize| {
                let (list, stretch) = &self.lists[*queue];
                let bytes: u128 = list.iter().map(|(_, size)| u128::from(*size)).sum();
                (bytes, std::cmp::Reverse(*stretch))
            };
            backlogged.max_by_key(rank).map(|queue| queue as u32)
        }
    }

    proptest! {
        #[test]
        fn queues_are_those_of_simple_lists(
            operations in prop::collection::vec(operation(), 0..300),
        ) {
            let key = FlowKey::v4([192, 0, 2, 1], 1, [198, 51, 100, 1], 2, FlowKey::UDP);
            let mut queues = FlowQueues::<()>::new();
            let mut lists = Lists::default();
            let seen = |packet: Option<Packet>| packet.map(|packet| (packet.handle, packet.size.0));
            for (handle, operation) in (0_u64..).zip(operations) {
                match operation {
                    Operation::Push { queue, size } => {
                        queues.push(queue, Packet::new(handle, key, Bytes(size)));
                        lists.push(queue, (handle, size));
                    }
                    Operation::PopFirst { queue } => {
                        prop_assert_eq!(
                            seen(queues.pop_first(queue)),
                            lists.lists[queue as usize].0.pop_front()
                        );
                    }
                    Operation::PopLast { queue } => {
                        prop_assert_eq!(
                            seen(queues.pop_last(queue)),
                            lists.lists[queue as usize].0.pop_back()
                        );
                    }
                    Operation::LoseFromFattest => {
                        let fattest = queues.fattest();
                        prop_assert_eq!(fattest, lists.fattest());
                        if let Some(queue) = fattest {
                            prop_assert_eq!(
                                seen(queues.pop_last(queue)),
                                lists.lists[queue as usize].0.pop_back()
                            );
                        }
                    }
                    Operation::Drain => {
                        for queue in 0..8 {
                            while queues.pop_first(queue).is_some() {}
                        }
                        lists.lists.iter_mut().for_each(|(list, _)| list.clear());
                    }
                }
                for (queue, (list, _)) in (0_u32..).zip(&lists.lists) {
                    prop_assert_eq!(queues.is_empty(queue), list.is_empty());
                    prop_assert_eq!(queues.packets_of(queue) as usize, list.len());
                    let bytes: u128 = list.iter().map(|(_, size)| u128::from(*size)).sum();
                    prop_assert_eq!(queues.bytes_of(queue), bytes);
                    prop_assert_eq!(seen(queues.first(queue).copied()), list.front().copied());
                }
                let packets: usize = lists.lists.iter().map(|(list, _)| list.len()).sum();
                prop_assert_eq!(queues.backlog().packets as usize, packets);
            }
        }
    }

    #[test]
    fn turns_go_round_and_a_queue_leaves_from_anywhere() {
        let mut rotation = Rotation::default();
        assert_eq!(rotation.first(), None);
        for queue in [3, 1, 2] {
            rotation.push_back(queue);
        }
        let turns = |rotation: &mut Rotation, count: usize| {
            let mut turn = || {
                let first = rotation.first();
                rotation.rotate();
                first
            };
            (0..count).filter_map(|_| turn()).collect::<Vec<_>>()
        };
        assert_eq!(turns(&mut rotation, 4), [3, 1, 2, 3]);
        // 1, 2, 3: out of the middle, then the head, then the only one.
        rotation.remove(2);
        assert_eq!(turns(&mut rotation, 3), [1, 3, 1]);
        rotation.remove(3);
        assert_eq!(turns(&mut rotation, 2), [1, 1]);
        assert_eq!(rotation.len(), 1);
        rotation.remove(1);
        assert_eq!((rotation.first(), rotation.len()), (None, 0));
        rotation.push_back(0);
        assert_eq!(turns(&mut rotation, 1), [0]);
    }
}
