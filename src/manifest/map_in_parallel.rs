//! One function over many values, on all processors.

use std::sync::{Mutex, PoisonError};
use std::{panic, thread};

/// The limit on threads: more would wait for memory and not for processors.
const MAX_THREADS: usize = 8;

/// Returns the results of `work` in the order of `items`, until `is_enough`. All items before the
/// last one that was worked on have their result as well.
pub(super) fn map_until<T: Send, R: Send>(
    items: Vec<T>,
    is_enough: impl Fn() -> bool + Sync,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let threads = processors.min(MAX_THREADS).min(items.len());
    if threads <= 1 {
        let wanted = items.into_iter().take_while(|_| !is_enough());
        return wanted.map(work).collect();
    }
    let queue = Mutex::new(items.into_iter().enumerate());
    let next = || {
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        if is_enough() { None } else { queue.next() }
    };
    let share = || {
        let mut done = Vec::new();
        while let Some((index, item)) = next() {
            done.push((index, work(item)));
        }
        done
    };
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(share)).collect();
        let mut done = share();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panicked) => panic::resume_unwind(panicked),
            }
        }
        done
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn results_are_in_the_order_of_their_values() {
        for count in [0, 1, 2, 1000] {
            let items: Vec<usize> = (0..count).collect();
            let doubled: Vec<usize> = items.iter().map(|item| item * 2).collect();
            assert_eq!(map_until(items, || false, |item| item * 2), doubled);
        }
    }

    #[test]
    fn work_ends_when_results_are_enough() {
        let seen = AtomicUsize::new(0);
        let is_enough = || seen.load(Ordering::SeqCst) >= 10;
        let work = |item: usize| {
            seen.fetch_add(1, Ordering::SeqCst);
            item
        };
        let results = map_until((0..1000).collect(), is_enough, work);
        let expected: Vec<usize> = (0..results.len()).collect();
        assert_eq!(results, expected);
        assert!((10..=10 + MAX_THREADS).contains(&results.len()), "{results:?}");
    }
}
