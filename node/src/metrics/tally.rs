//! How many values there were, their sum, the smallest and the largest, in 32 bytes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::add;

/// Four numbers of all values. A distribution would take 18 KiB.
#[derive(Debug)]
pub(crate) struct Tally {
    count: AtomicU64,
    sum: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
}

impl Default for Tally {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self { count: zero(), sum: zero(), min: AtomicU64::new(u64::MAX), max: zero() }
    }
}

impl Tally {
    pub(crate) fn record(&self, value: u64) {
        add(&self.count, 1);
        add(&self.sum, value);
        // Looked at first: both hardly ever change.
        if value < self.min.load(Relaxed) {
            self.min.store(value, Relaxed);
        }
        if value > self.max.load(Relaxed) {
            self.max.store(value, Relaxed);
        }
    }

    pub(crate) fn reset(&self) {
        self.count.store(0, Relaxed);
        self.sum.store(0, Relaxed);
        self.min.store(u64::MAX, Relaxed);
        self.max.store(0, Relaxed);
    }

    /// Count, sum, smallest and largest; zeros where there was none.
    pub(crate) fn get(&self) -> [u64; 4] {
        let count = self.count.load(Relaxed);
        let min = if count == 0 { 0 } else { self.min.load(Relaxed) };
        [count, self.sum.load(Relaxed), min, self.max.load(Relaxed)]
    }
}
