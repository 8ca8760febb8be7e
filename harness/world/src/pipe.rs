//! One direction of a connection: items arrive in the order they were sent, each after a delay of its own.
//!
//! What TCP promises and nothing more: order while it stands, nothing torn out of the middle, all that is in
//! flight lost when it breaks.

use std::collections::VecDeque;

use crate::time::Time;

/// Items in flight at once. A sender that runs so far ahead is treated as a broken connection by the driver.
const MAX_IN_FLIGHT: usize = 100_000;

/// Items on their way.
#[derive(Clone, Debug)]
pub struct Pipe<T> {
    flight: VecDeque<(Time, T)>,
    newest_arrival: Time,
}

impl<T> Default for Pipe<T> {
    fn default() -> Self {
        Self { flight: VecDeque::new(), newest_arrival: Time::default() }
    }
}

impl<T> Pipe<T> {
    /// Sends an item that would arrive at `at` if nothing before it were slower. Returns when it arrives.
    pub fn send(&mut self, at: Time, item: T) -> Time {
        assert!(self.flight.len() < MAX_IN_FLIGHT, "a connection holds too many items");
        self.newest_arrival = self.newest_arrival.max(at);
        self.flight.push_back((self.newest_arrival, item));
        self.newest_arrival
    }

    /// Nothing that is sent from here on arrives before this moment.
    pub fn not_before(&mut self, at: Time) {
        self.newest_arrival = self.newest_arrival.max(at);
    }

    /// The next item that has arrived.
    pub fn receive(&mut self, now: Time) -> Option<T> {
        if self.flight.front().is_some_and(|(at, _)| *at <= now) {
            self.flight.pop_front().map(|(_, item)| item)
        } else {
            None
        }
    }

    /// What is in flight, in order.
    pub fn items(&self) -> impl Iterator<Item = &T> {
        self.flight.iter().map(|(_, item)| item)
    }

    /// The next item, however long it would have taken: somebody else says when things arrive.
    pub fn take_next(&mut self) -> Option<T> {
        self.flight.pop_front().map(|(_, item)| item)
    }

    /// Moves on what was held back: nothing in flight arrives before `at`. Returns when each item arrives.
    pub fn release(&mut self, at: Time) -> Vec<Time> {
        self.not_before(at);
        for (arrival, _) in &mut self.flight {
            *arrival = (*arrival).max(at);
        }
        self.flight.iter().map(|(arrival, _)| *arrival).collect()
    }

    /// True when nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.flight.is_empty()
    }

    /// Items in flight.
    pub fn len(&self) -> usize {
        self.flight.len()
    }

    /// Loses what is in flight.
    pub fn lose(&mut self) {
        self.flight.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_item_does_not_overtake_a_slow_one() {
        let mut pipe = Pipe::default();
        assert_eq!(pipe.send(Time(10), 'a'), Time(10));
        assert_eq!(pipe.send(Time(4), 'b'), Time(10));
        assert_eq!(pipe.receive(Time(9)), None);
        assert_eq!(pipe.receive(Time(10)), Some('a'));
        assert_eq!(pipe.receive(Time(10)), Some('b'));
    }

    #[test]
    fn what_was_held_arrives_after_its_release_in_order() {
        let mut pipe = Pipe::default();
        pipe.send(Time(1), 'a');
        pipe.send(Time(50), 'b');
        assert_eq!(pipe.release(Time(20)), [Time(20), Time(50)]);
        assert_eq!(pipe.receive(Time(20)), Some('a'));
        assert_eq!(pipe.receive(Time(20)), None);
    }
}
