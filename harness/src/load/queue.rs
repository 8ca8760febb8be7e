//! Operations that are due, first come first served.
//!
//! Clients wait in the order in which they became free, so that work goes round all of them, those beside a
//! fault included. An operation that nobody took within its time-out is over before it began: it is taken
//! only to be written down as never sent.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::clock::{RunNs, nanoseconds};

/// Operations that wait at most; more than this means that nobody takes any, and then they are counted only.
const MAX_WAITING: usize = 100_000;

/// The queue.
#[derive(Debug)]
pub struct Queue {
    due: Mutex<VecDeque<RunNs>>,
    ready: Semaphore,
    patience_ns: u64,
    shed: AtomicU64,
}

/// An operation that fell due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// When.
    pub at: RunNs,
    /// Whether it waited for longer than a client would.
    pub expired: bool,
}

impl Queue {
    /// An empty queue; operations expire after `patience`.
    pub fn new(patience: Duration) -> Self {
        Self {
            due: Mutex::default(),
            ready: Semaphore::new(0),
            patience_ns: nanoseconds(patience),
            shed: AtomicU64::new(0),
        }
    }

    /// An operation falls due.
    pub fn push(&self, at: RunNs) {
        {
            let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
            if due.len() >= MAX_WAITING {
                self.shed.fetch_add(1, Ordering::Relaxed);
                return;
            }
            due.push_back(at);
        }
        self.ready.add_permits(1);
    }

    /// Waits for the next operation. `now` is asked once there is one.
    pub async fn next(&self, now: impl Fn() -> RunNs) -> Option<Due> {
        self.ready.acquire().await.ok()?.forget();
        let at = self.due.lock().unwrap_or_else(PoisonError::into_inner).pop_front()?;
        Some(Due { at, expired: now().saturating_sub(at) > self.patience_ns })
    }

    /// An operation that has expired, if there is one.
    pub fn next_expired(&self, now: RunNs) -> Option<Due> {
        let permit = self.ready.try_acquire().ok()?;
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let at = *due.front()?;
        if now.saturating_sub(at) <= self.patience_ns {
            return None;
        }
        due.pop_front();
        permit.forget();
        Some(Due { at, expired: true })
    }

    /// No more operations: whoever waits is sent away.
    pub fn close(&self) {
        self.ready.close();
    }

    /// Operations that never even waited.
    pub fn shed(&self) -> u64 {
        self.shed.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn operations_are_taken_in_the_order_in_which_they_fell_due() {
        let queue = Queue::new(Duration::from_nanos(100));
        queue.push(5);
        queue.push(200);
        assert_eq!(queue.next(|| 201).await, Some(Due { at: 5, expired: true }));
        assert_eq!(queue.next(|| 201).await, Some(Due { at: 200, expired: false }));
        queue.close();
        assert_eq!(queue.next(|| 201).await, None);
    }

    #[tokio::test]
    async fn only_what_expired_is_taken_to_be_written_off() {
        let queue = Queue::new(Duration::from_nanos(100));
        queue.push(5);
        assert_eq!(queue.next_expired(50), None);
        assert_eq!(queue.next_expired(200).map(|due| due.at), Some(5));
        assert_eq!(queue.next_expired(200), None);
        queue.push(150);
        assert_eq!(queue.next_expired(200), None);
        assert_eq!(queue.next(|| 200).await, Some(Due { at: 150, expired: false }));
    }
}
