//! The store's queue between a member and its driver, when something is left out, added or moved in it.
//!
//! The member numbers its operations, and so must whoever stands in front of the driver: the driver's numbers
//! are given out in the order in which operations come to it. What the member hears is in its own numbers:
//! everything up to the first of its operations that is not durable yet.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};

/// Two ways of numbering one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    /// The last number that the driver was given.
    given: u64,
    /// The last number of the driver that is durable.
    durable: u64,
    /// What the driver has, by its numbers: the member's number, unless the operation is none of the
    /// member's.
    waiting: VecDeque<(u64, Option<u64>)>,
    /// The member's last number.
    last: u64,
    /// The member's operations that are not durable.
    open: BTreeSet<u64>,
    /// What the member was told.
    told: u64,
}

impl Queue {
    /// The member numbered an operation.
    pub(crate) fn numbered(&mut self, ticket: u64) {
        self.last = ticket;
        self.open.insert(ticket);
    }

    /// An operation goes to the driver: its number there. One that is none of the member's has the number 0.
    pub(crate) fn give(&mut self, ticket: u64) -> u64 {
        self.given += 1;
        self.waiting.push_back((self.given, self.open.contains(&ticket).then_some(ticket)));
        self.given
    }

    /// An operation of the member's counts as durable: it was dropped, or is said to be.
    pub(crate) fn counts_as_durable(&mut self, ticket: u64) {
        self.open.remove(&ticket);
    }

    /// The driver has everything up to this on disk.
    pub(crate) fn durable(&mut self, given: u64) {
        self.durable = self.durable.max(given);
        while let Some(&(number, ticket)) = self.waiting.front()
            && number <= given
        {
            self.waiting.pop_front();
            if let Some(ticket) = ticket {
                self.open.remove(&ticket);
            }
        }
    }

    /// What the member is to be told, if it was not told already.
    pub(crate) fn news(&mut self) -> Option<u64> {
        let upto = self.open.first().map_or(self.last, |open| open - 1);
        (upto > self.told).then(|| {
            self.told = upto;
            upto
        })
    }

    /// The driver's number for what the member waits for: that of the operation, or of the last one where it
    /// was held back and has none yet.
    pub(crate) fn awaited(&self, ticket: u64) -> u64 {
        let upto = |(_, waiting): &&(u64, Option<u64>)| waiting.is_some_and(|waiting| waiting <= ticket);
        self.waiting.iter().filter(upto).map(|(number, _)| *number).max().unwrap_or(self.given)
    }

    /// The member is another one, which begins to number anew. What the driver has is none of its own.
    pub(crate) fn begin_anew(&mut self) {
        for (_, ticket) in &mut self.waiting {
            *ticket = None;
        }
        self.open.clear();
        (self.last, self.told) = (0, 0);
    }

    /// Mixes in what it holds, numbers as seen from the last that is durable.
    pub(crate) fn fingerprint(&self, mut state: &mut dyn Hasher) {
        let Self { given, durable, waiting, last, open, told } = self;
        (given - durable).hash(&mut state);
        for (number, ticket) in waiting {
            (number - durable, ticket.map(|ticket| ticket.wrapping_sub(*told))).hash(&mut state);
        }
        (last - told).hash(&mut state);
        for ticket in open {
            ticket.wrapping_sub(*told).hash(&mut state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_alone_keeps_its_number() {
        let mut queue = Queue::default();
        for ticket in 1..=3 {
            queue.numbered(ticket);
            assert_eq!(queue.give(ticket), ticket);
        }
        queue.durable(2);
        assert_eq!((queue.news(), queue.news()), (Some(2), None));
        assert_eq!(queue.awaited(3), 3);
    }

    #[test]
    fn what_was_dropped_is_durable_when_all_before_it_is() {
        let mut queue = Queue::default();
        queue.numbered(1);
        queue.numbered(2);
        queue.give(1);
        queue.counts_as_durable(2);
        assert_eq!(queue.news(), None);
        queue.durable(1);
        assert_eq!(queue.news(), Some(2));
    }

    #[test]
    fn what_is_held_back_keeps_all_behind_it_waiting() {
        let mut queue = Queue::default();
        queue.numbered(1);
        queue.numbered(2);
        assert_eq!(queue.give(2), 1);
        queue.durable(1);
        assert_eq!(queue.news(), None);
        assert_eq!(queue.give(1), 2);
        queue.durable(2);
        assert_eq!(queue.news(), Some(2));
    }

    #[test]
    fn what_was_added_is_nothing_to_the_member() {
        let mut queue = Queue::default();
        queue.numbered(1);
        queue.give(0);
        assert_eq!(queue.give(1), 2);
        queue.durable(1);
        assert_eq!(queue.news(), None);
        queue.durable(2);
        assert_eq!(queue.news(), Some(1));
    }
}
