//! Virtual time, the queue of what will happen, and the clocks that members read.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;
use std::ops::Add;
use std::time::Duration;

use node_core::io::Now;

/// A moment of virtual time, in microseconds since the world began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Time(pub(crate) u64);

impl Time {
    /// Nanoseconds, as histories count.
    pub(crate) const fn as_ns(self) -> u64 {
        self.0 * 1000
    }

    /// Microseconds between an earlier moment and this one.
    pub(crate) const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for Time {
    type Output = Self;

    fn add(self, micros: u64) -> Self {
        Self(self.0 + micros)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

struct Due<E> {
    at: Time,
    order: u64,
    event: E,
}

impl<E> PartialEq for Due<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl<E> Eq for Due<E> {}

impl<E> PartialOrd for Due<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Due<E> {
    // Reversed: the heap keeps the greatest on top, and the earliest is wanted there.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// What will happen, by time and then in the order it was planned.
pub(crate) struct Queue<E> {
    heap: BinaryHeap<Due<E>>,
    planned: u64,
}

impl<E> Queue<E> {
    /// Nothing planned.
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), planned: 0 }
    }

    /// Plans an event.
    pub(crate) fn plan(&mut self, at: Time, event: E) {
        self.heap.push(Due { at, order: self.planned, event });
        self.planned += 1;
    }

    /// When the next event happens.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|due| due.at)
    }

    /// The next event, and when it happens.
    pub(crate) fn pop(&mut self) -> Option<(Time, E)> {
        self.heap.pop().map(|due| (due.at, due.event))
    }
}

/// Wall time at the beginning of every world, in milliseconds since the Unix epoch.
const WALL_START_MS: i64 = 1_600_000_000_000;

/// The two clocks of a member: each has its own start, the monotonic one its own pace, and the wall clock jumps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// What the monotonic clock showed when the world began, in microseconds.
    pub(crate) mono_offset: u64,
    /// How much faster the monotonic clock runs, in parts per million.
    pub(crate) fast_ppm: u64,
    /// How far the wall clock is off, in milliseconds.
    pub(crate) wall_offset_ms: i64,
}

impl Clock {
    /// What the clocks show at a moment.
    pub(crate) fn read(&self, at: Time) -> Now {
        let drift = at.0 / 1000 * self.fast_ppm / 1000;
        let elapsed_ms = i64::try_from(at.0 / 1000).expect("a world's age in milliseconds fits i64");
        Now {
            mono: Duration::from_micros(self.mono_offset + at.0 + drift),
            wall_ms: WALL_START_MS + elapsed_ms + self.wall_offset_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_moment_happen_in_the_order_they_were_planned() {
        let mut queue = Queue::new();
        queue.plan(Time(5), "second");
        queue.plan(Time(5), "third");
        queue.plan(Time(1), "first");
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
        assert_eq!(order, ["first", "second", "third"]);
    }

    #[test]
    fn a_clock_runs_by_its_own_offset_and_pace() {
        let clock = Clock { mono_offset: 10, fast_ppm: 100, wall_offset_ms: -7 };
        let now = clock.read(Time(1_000_000));
        assert_eq!(now.mono, Duration::from_micros(1_000_110));
        assert_eq!(now.wall_ms, WALL_START_MS + 1000 - 7);
    }
}
