//! A distribution in bounded memory.
//!
//! Values fall into buckets whose width grows with the value, 32 of them for each doubling, so that a
//! quantile is off by at most a thirty-second of itself, and a summary takes 18 KiB whatever it is told. Two
//! windows of buckets take turns, so that quantiles are of the last minutes and not of all times; count and
//! sum are of all times, from which whoever scrapes makes rates.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::{Tally, add};

/// Buckets for each doubling.
const PARTS: u32 = 32;
const PART_BITS: u32 = PARTS.trailing_zeros();
/// Larger values count as this one: twelve days in microseconds.
const MAX_BITS: u32 = 40;
const BUCKETS: usize = ((MAX_BITS - PART_BITS + 1) * PARTS) as usize;

/// A distribution of durations or of sizes. One thread tells it, any may look.
#[derive(Debug)]
pub(crate) struct Summary {
    /// What is told counts as so many of what is shown.
    scale: u32,
    tally: Tally,
    windows: [Box<[AtomicU64]>; 2],
    present: AtomicUsize,
}

/// A summary at one moment, in the unit that is shown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Values {
    pub(crate) count: u64,
    pub(crate) sum: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    counts: Vec<u64>,
    scale: u32,
}

impl Summary {
    /// Told in microseconds, shown in milliseconds.
    pub(crate) fn of_times() -> Self {
        Self::new(1000)
    }

    /// Of things that are counted.
    pub(crate) fn of_sizes() -> Self {
        Self::new(1)
    }

    fn new(scale: u32) -> Self {
        let window = || (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        Self { scale, tally: Tally::default(), windows: [window(), window()], present: AtomicUsize::new(0) }
    }

    pub(crate) fn record(&self, value: u64) {
        self.tally.record(value);
        if let Some(bucket) = self.windows[self.present.load(Relaxed) % 2].get(bucket(value)) {
            add(bucket, 1);
        }
    }

    pub(crate) fn record_time(&self, time: std::time::Duration) {
        self.record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// Forgets the older window and begins to fill it.
    pub(crate) fn turn(&self) {
        let next = (self.present.load(Relaxed) + 1) % 2;
        self.windows[next].iter().for_each(|bucket| bucket.store(0, Relaxed));
        self.present.store(next, Relaxed);
    }

    /// Forgets everything.
    pub(crate) fn reset(&self) {
        self.turn();
        self.turn();
        self.tally.reset();
    }

    pub(crate) fn values(&self) -> Values {
        let counts = self.windows[0].iter().zip(&self.windows[1]);
        let [count, sum, min, max] = self.tally.get();
        Values {
            count,
            sum: shown(sum, self.scale),
            min: shown(min, self.scale),
            max: shown(max, self.scale),
            counts: counts.map(|(a, b)| a.load(Relaxed) + b.load(Relaxed)).collect(),
            scale: self.scale,
        }
    }
}

impl Values {
    /// The value that the given part of all values does not exceed; none when there were none of late.
    pub(crate) fn quantile(&self, part: f64) -> Option<f64> {
        let total: u64 = self.counts.iter().sum();
        if total == 0 {
            return None;
        }
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank among recent values, never negative"
        )]
        let rank = ((total as f64 * part).ceil() as u64).clamp(1, total);
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        found.map(|bucket| shown(highest(bucket), self.scale).min(self.max))
    }

    pub(crate) fn average(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "an average for people")]
        let count = self.count as f64;
        if self.count == 0 { 0.0 } else { self.sum / count }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a number for people")]
fn shown(value: u64, scale: u32) -> f64 {
    value as f64 / f64::from(scale)
}

/// Where a value is counted.
fn bucket(value: u64) -> usize {
    let value = value.min((1 << MAX_BITS) - 1);
    let bits = u64::BITS - value.leading_zeros();
    let doublings = bits.saturating_sub(PART_BITS + 1);
    let part = value >> doublings;
    usize::try_from(u64::from(doublings * PARTS) + part).unwrap_or(BUCKETS)
}

/// The largest value that is counted there.
fn highest(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let parts = u64::from(PARTS);
    let doublings = (bucket / parts).saturating_sub(1);
    let part = bucket - doublings * parts;
    ((part + 1) << doublings) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_in_a_bucket_that_ends_at_most_a_part_above_it() {
        let values =
            (0..5000).chain((12..MAX_BITS).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1]));
        for value in values {
            let bucket = bucket(value);
            assert!(bucket < BUCKETS, "{value}");
            let end = highest(bucket);
            assert!(end >= value && end - value <= value / u64::from(PARTS), "{value} in {bucket} to {end}");
            assert!(bucket == 0 || highest(bucket - 1) < value, "{value}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_of_the_last_two_windows_and_totals_of_all_times() {
        let summary = Summary::of_times();
        assert_eq!(summary.values().quantile(0.5), None);
        (1..=1000).for_each(|ms| summary.record(ms * 1000));
        let values = summary.values();
        let near = |part, expected: f64| {
            let quantile = values.quantile(part).expect("values");
            assert!((quantile - expected).abs() <= expected / 32.0, "{part}: {quantile}");
        };
        near(0.5, 500.0);
        near(0.99, 990.0);
        near(1.0, 1000.0);
        assert_eq!((values.min, values.max, values.count), (1.0, 1000.0, 1000));
        assert!((values.average() - 500.5).abs() < 0.01);
        summary.turn();
        summary.record(7000);
        assert!(summary.values().quantile(0.5).is_some_and(|median| median > 400.0));
        summary.turn();
        assert!(summary.values().quantile(0.5).is_some_and(|median| median < 8.0));
        assert_eq!(summary.values().count, 1001);
        summary.reset();
        assert_eq!((summary.values().count, summary.values().quantile(0.5)), (0, None));
    }
}
