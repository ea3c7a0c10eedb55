//! Work on many items at the same time.
//!
//! An item is worked on by one thread, which shares nothing with the others, and
//! results stand in the order of the items: any number of threads gives the same.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// A thread that panics takes the scope, and so the program, with it.
pub(crate) const POISON: &str = "no thread panics while it holds this lock";

/// What `work` gives for each of `items`, begun in their order on `threads` threads.
/// Once `stop` is true no other is begun, and what there is comes back.
///
/// ```
/// use std::sync::atomic::AtomicBool;
///
/// let squares = tidegate_sim::parallel::map(&[1, 2, 3], 2, &AtomicBool::new(false), |n| n * n);
/// assert_eq!(squares, [1, 4, 9]);
/// ```
pub fn map<I: Sync, T: Send>(
    items: &[I],
    threads: usize,
    stop: &AtomicBool,
    work: impl Fn(&I) -> T + Sync,
) -> Vec<T> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let worker = || {
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(number) else { return };
            let result = work(item);
            done.lock().expect(POISON).push((number, result));
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, items.len().max(1)) {
            scope.spawn(worker);
        }
    });
    let mut done = done.into_inner().expect(POISON);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_the_items_whatever_the_threads() {
        let items: Vec<u64> = (0..100).collect();
        for threads in [0, 1, 3, 1_000] {
            let doubled = map(&items, threads, &AtomicBool::new(false), |item| item * 2);
            assert!(doubled.iter().zip(&items).all(|(double, item)| *double == item * 2));
            assert_eq!(doubled.len(), items.len());
        }
        assert!(map(&[0; 0], 4, &AtomicBool::new(false), |item| *item).is_empty());
    }

    #[test]
    fn nothing_more_is_begun_after_a_stop() {
        let stop = AtomicBool::new(false);
        let work = |item: &u64| {
            stop.store(*item == 3, Ordering::Relaxed);
            *item
        };
        assert_eq!(map(&[1, 2, 3, 4, 5], 1, &stop, work), [1, 2, 3]);
    }
}
