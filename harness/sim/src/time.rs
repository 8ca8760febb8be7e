//! Virtual time, the queue of what will happen, and the clocks that members read.

use std::cmp::Reverse;
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

/// When, in which order, and where the event waits.
type Due = Reverse<(Time, u64, usize)>;

/// What will happen, by time and then in the order it was planned.
///
/// The heap moves what it holds a dozen times for each event, so it holds only the place of the event.
pub(crate) struct Queue<E> {
    heap: BinaryHeap<Due>,
    places: Vec<Option<E>>,
    free: Vec<usize>,
    planned: u64,
}

impl<E> Queue<E> {
    /// Nothing planned.
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), places: Vec::new(), free: Vec::new(), planned: 0 }
    }

    /// Plans an event.
    pub(crate) fn plan(&mut self, at: Time, event: E) {
        let place = match self.free.pop() {
            Some(place) => {
                self.places[place] = Some(event);
                place
            }
            None => {
                self.places.push(Some(event));
                self.places.len() - 1
            }
        };
        self.heap.push(Reverse((at, self.planned, place)));
        self.planned += 1;
    }

    /// When the next event happens.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next event, and when it happens.
    pub(crate) fn pop(&mut self) -> Option<(Time, E)> {
        let Reverse((at, _, place)) = self.heap.pop()?;
        self.free.push(place);
        let event = self.places[place].take().expect("an event waits at its place");
        Some((at, event))
    }
}

/// Wall time at the beginning of every world, in milliseconds since the Unix epoch.
const WALL_START_MS: i64 = 1_600_000_000_000;

/// The two clocks of a member: each has its own start and its own pace. The wall clock jumps both ways, the
/// monotonic one ahead alone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// What the monotonic clock showed when the world began, in microseconds.
    pub(crate) mono_offset: u64,
    /// How much faster the monotonic clock runs, in parts per million. It never changes: the clock must not go back.
    pub(crate) pace_ppm: i64,
    /// How far the wall clock is off, in milliseconds.
    pub(crate) wall_offset_ms: i64,
    /// How much faster the wall clock runs, in parts per million.
    pub(crate) wall_pace_ppm: i64,
}

/// Parts of a million.
const MILLION: i64 = 1_000_000;

impl Clock {
    /// What the clocks show at a moment.
    pub(crate) fn read(&self, at: Time) -> Now {
        let elapsed_us = i64::try_from(at.0).expect("a world's age in microseconds fits i64");
        let paced_us = elapsed_us * (MILLION + self.pace_ppm) / MILLION;
        let elapsed_ms = elapsed_us / 1000;
        let drifted_ms = elapsed_ms * self.wall_pace_ppm / MILLION;
        Now {
            mono: Duration::from_micros(self.mono_offset + paced_us.unsigned_abs()),
            wall_ms: WALL_START_MS + elapsed_ms + drifted_ms + self.wall_offset_ms,
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
        let clock = Clock { mono_offset: 10, pace_ppm: 100, wall_offset_ms: -7, wall_pace_ppm: -3_000 };
        let now = clock.read(Time(1_000_000));
        assert_eq!(now.mono, Duration::from_micros(1_000_110));
        assert_eq!(now.wall_ms, WALL_START_MS + 1000 - 3 - 7);
    }

    #[test]
    fn a_monotonic_clock_that_runs_slow_never_goes_back() {
        let clock = Clock { pace_ppm: -40_000, ..Clock::default() };
        let readings: Vec<_> = (0..5000).map(|us| clock.read(Time(us * 7)).mono).collect();
        assert!(readings.is_sorted());
    }
}
