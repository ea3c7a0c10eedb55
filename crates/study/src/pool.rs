//! Work on many items at the same time.
//!
//! One thread works on an item and shares nothing with the others, and results
//! have the order of the items: any number of threads gives the same results.

use std::iter::zip;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::ThreadPoolBuilder;

/// The results of `work` for `items`, begun in their order on `threads`
/// threads. Once `stop` is true, no further item begins, and the result covers
/// those that have begun.
///
/// # Panics
/// If `work` panics, or if the system cannot start a thread.
///
/// ```
/// use std::sync::atomic::AtomicBool;
///
/// let squares = tidegate_study::pool::map(&[1, 2, 3], 2, &AtomicBool::new(false), |n| n * n);
/// assert_eq!(squares, [1, 4, 9]);
/// ```
pub fn map<I: Sync, T: Send>(
    items: &[I],
    threads: usize,
    stop: &AtomicBool,
    work: impl Fn(&I) -> T + Sync,
) -> Vec<T> {
    let threads = threads.clamp(1, items.len().max(1));
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    let mut results: Vec<Option<T>> = items.iter().map(|_| None).collect();
    // First in, first out: rayon otherwise begins with what was spawned last.
    pool.expect("the system starts threads").in_place_scope_fifo(|scope| {
        for (item, result) in zip(items, &mut results) {
            let work = &work;
            scope.spawn_fifo(move |_| {
                if !stop.load(Ordering::Relaxed) {
                    *result = Some(work(item));
                }
            });
        }
    });
    results.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

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
    fn one_thread_begins_the_items_in_their_order() {
        let items: Vec<u64> = (0..1_000).collect();
        let begun = Mutex::new(Vec::new());
        map(&items, 1, &AtomicBool::new(false), |item| begun.lock().unwrap().push(*item));
        assert_eq!(begun.into_inner().unwrap(), items);
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
