//! Independent parts of a history, several at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::budget::Budget;

/// What `work` says of each item, in the order of the items. Up to `threads` of them are worked on at a time,
/// and share the budget's memory.
pub(crate) fn each<T: Sync, R: Send>(
    items: &[T],
    budget: &Budget,
    threads: usize,
    work: impl Fn(&T, &Budget) -> R + Sync,
) -> Vec<R> {
    let threads = threads.clamp(1, items.len().max(1));
    let share = Budget { memory_bytes: budget.memory_bytes / threads, ..budget.clone() };
    let next = AtomicUsize::new(0);
    let mine = || {
        let mut done: Vec<(usize, R)> = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return done };
            done.push((at, work(item, &share)));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(mine)).collect();
        let mut done = mine();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|&(at, _)| at);
    done.into_iter().map(|(_, result)| result).collect()
}
