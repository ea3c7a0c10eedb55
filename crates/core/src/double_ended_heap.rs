//! A priority queue with two cheap ends: serve the least, give up the greatest.
//!
//! An interval heap (van Leeuwen and Wood, 1993): a binary heap whose nodes
//! hold two items, the ends of an interval that contains the intervals of both
//! children. The lower ends form a min-heap and the upper ends a max-heap, so
//! either end of the order is at the root. Node `k` lies at `items[2k]` and
//! `items[2k + 1]`; the last node may hold one item, which is then both ends.
//!
//! Peeking is O(1), pushing and popping are O(log n), and taking out items from
//! anywhere looks at all of them. Nothing is allocated except the one `Vec`, which
//! keeps its capacity.

/// A heap that returns its least and its greatest item.
#[derive(Debug)]
pub(crate) struct DoubleEndedHeap<T> {
    items: Vec<T>,
}

impl<T: Ord> DoubleEndedHeap<T> {
    /// An empty heap.
    pub(crate) fn new() -> DoubleEndedHeap<T> {
        DoubleEndedHeap { items: Vec::new() }
    }

    /// Puts an item in.
    pub(crate) fn push(&mut self, item: T) {
        self.items.push(item);
        self.raise(self.items.len() - 1);
    }

    /// Moves the item at `at` to where it belongs among those before it.
    fn raise(&mut self, mut at: usize) {
        if at % 2 == 1 && self.items[at] < self.items[at - 1] {
            self.items.swap(at, at - 1);
            at -= 1;
        }
        // The new item is outside the parent's interval on at most one side.
        while let Some(low) = parent(at) {
            let end = if self.items[at] < self.items[low] {
                low
            } else if self.items[at] > self.items[low + 1] {
                low + 1
            } else {
                break;
            };
            self.items.swap(at, end);
            at = end;
        }
    }

    /// All items, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }

    /// The least item.
    pub(crate) fn least(&self) -> Option<&T> {
        self.items.first()
    }

    /// Takes the least item out.
    pub(crate) fn pop_least(&mut self) -> Option<T> {
        let last = self.items.pop()?;
        let Some(least) = self.items.first_mut() else { return Some(last) };
        let least = std::mem::replace(least, last);
        self.sink_lower_end();
        Some(least)
    }

    /// Takes the greatest item out.
    pub(crate) fn pop_greatest(&mut self) -> Option<T> {
        let last = self.items.pop()?;
        let Some(greatest) = self.items.get_mut(1) else {
            // With one item or two, the last is the greatest.
            return Some(last);
        };
        let greatest = std::mem::replace(greatest, last);
        self.sink_upper_end();
        Some(greatest)
    }

    /// Takes out the items for which `chosen` holds, in ascending order.
    pub(crate) fn take_out(&mut self, chosen: impl Fn(&T) -> bool, mut each: impl FnMut(T)) {
        let mut kept = 0;
        for at in 0..self.items.len() {
            if !chosen(&self.items[at]) {
                self.items.swap(kept, at);
                kept += 1;
            }
        }
        self.items[kept..].sort_unstable();
        self.items.drain(kept..).for_each(&mut each);
        (0..kept).for_each(|at| self.raise(at));
    }

    /// Moves the root's lower end down to where it belongs.
    fn sink_lower_end(&mut self) {
        let items = &mut self.items;
        let mut at = 0;
        loop {
            if at + 1 < items.len() && items[at] > items[at + 1] {
                items.swap(at, at + 1);
            }
            let (left, right) = (2 * at + 2, 2 * at + 4);
            if left >= items.len() {
                return;
            }
            let least =
                if right < items.len() && items[right] < items[left] { right } else { left };
            if items[at] <= items[least] {
                return;
            }
            items.swap(at, least);
            at = least;
        }
    }

    /// Moves the root's upper end down to where it belongs.
    fn sink_upper_end(&mut self) {
        let items = &mut self.items;
        let last = items.len() - 1;
        let mut at = 1;
        // An even position is a last node's only item: it has no children.
        while at % 2 == 1 {
            if items[at] < items[at - 1] {
                items.swap(at, at - 1);
            }
            if 2 * at > last {
                return;
            }
            // The upper ends of the children, or the only item of the last node.
            let (left, right) = ((2 * at + 1).min(last), (2 * at + 3).min(last));
            let greatest = if items[right] > items[left] { right } else { left };
            if items[at] >= items[greatest] {
                return;
            }
            items.swap(at, greatest);
            at = greatest;
        }
    }
}

/// The lower end of the parent of the node in which `at` lies.
fn parent(at: usize) -> Option<usize> {
    let node = at / 2;
    (node > 0).then(|| (node - 1) / 2 * 2)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Operation {
        Push(u8),
        PopLeast,
        PopGreatest,
        TakeOut { divisor: u8 },
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            3 => any::<u8>().prop_map(Operation::Push),
            1 => Just(Operation::PopLeast),
            1 => Just(Operation::PopGreatest),
            1 => (1..5_u8).prop_map(|divisor| Operation::TakeOut { divisor }),
        ]
    }

    proptest! {
        #[test]
        fn both_ends_are_those_of_a_sorted_set(
            operations in prop::collection::vec(operation(), 0..400),
        ) {
            let mut heap = DoubleEndedHeap::new();
            let mut sorted = BTreeSet::new();
            for (position, operation) in operations.into_iter().enumerate() {
                match operation {
                    Operation::Push(rank) => {
                        heap.push((rank, position));
                        sorted.insert((rank, position));
                    }
                    Operation::PopLeast => prop_assert_eq!(heap.pop_least(), sorted.pop_first()),
                    Operation::PopGreatest => {
                        prop_assert_eq!(heap.pop_greatest(), sorted.pop_last());
                    }
                    Operation::TakeOut { divisor } => {
                        let chosen = |item: &(u8, usize)| item.0.is_multiple_of(divisor);
                        let mut taken = Vec::new();
                        heap.take_out(chosen, |item| taken.push(item));
                        let (expected, left) = sorted.into_iter().partition(chosen);
                        sorted = left;
                        prop_assert_eq!(taken, Vec::from_iter::<BTreeSet<_>>(expected));
                    }
                }
            }
            while let Some(least) = sorted.pop_first() {
                prop_assert_eq!(heap.pop_least(), Some(least));
            }
            prop_assert_eq!(heap.pop_greatest(), None);
        }
    }
}
