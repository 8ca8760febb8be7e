//! Virtual time, and the queue of what will happen.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::ops::Add;

/// A moment of virtual time, in microseconds since the world began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// Nanoseconds, as histories count.
    pub const fn as_ns(self) -> u64 {
        self.0 * 1000
    }

    /// Microseconds between an earlier moment and this one.
    pub const fn since(self, earlier: Self) -> u64 {
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
pub struct Queue<E> {
    heap: BinaryHeap<Due>,
    places: Vec<Option<E>>,
    free: Vec<usize>,
    planned: u64,
}

impl<E> Default for Queue<E> {
    /// Nothing planned.
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), places: Vec::new(), free: Vec::new(), planned: 0 }
    }
}

impl<E> Queue<E> {
    /// Plans an event.
    pub fn plan(&mut self, at: Time, event: E) {
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
    pub fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next event, and when it happens.
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let Reverse((at, _, place)) = self.heap.pop()?;
        self.free.push(place);
        let event = self.places[place].take().expect("an event waits at its place");
        Some((at, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_moment_happen_in_the_order_they_were_planned() {
        let mut queue = Queue::default();
        queue.plan(Time(5), "second");
        queue.plan(Time(5), "third");
        queue.plan(Time(1), "first");
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
        assert_eq!(order, ["first", "second", "third"]);
    }
}
