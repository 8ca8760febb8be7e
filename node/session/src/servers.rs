//! Which server to try next, and how long to wait before.
//!
//! The list is shuffled once, so that many clients of one list spread over its servers. It is then gone
//! through in turn. Every server is tried once without a wait; from then on each round begins with a wait
//! that doubles up to a second, of which a random part is taken. So a server that comes back is not met by
//! all of its clients at once, and one server of many that is down costs nothing.

use std::time::Duration;

use bytestring::ByteString;

/// The first wait is a random part of this.
const FIRST_WAIT: Duration = Duration::from_millis(20);

/// No wait is longer.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Servers, and where we are in their list.
#[derive(Clone, Debug)]
pub struct Servers {
    list: Vec<ByteString>,
    /// Where the last one that was tried stands.
    at: usize,
    /// How many were tried since one served.
    failed: usize,
    chance: u64,
}

impl Servers {
    /// A list of `host:port`, shuffled by a seed.
    ///
    /// # Panics
    /// When the list is empty.
    #[must_use]
    pub fn new(list: Vec<ByteString>, seed: u64) -> Self {
        assert!(!list.is_empty(), "a session needs a server");
        let mut servers = Self { list: Vec::new(), at: 0, failed: 0, chance: seed };
        servers.replace(list);
        servers.at = servers.list.len() - 1;
        servers
    }

    /// Takes another list. The last one that was tried is still that if it is in there; else false is given.
    pub fn replace(&mut self, mut list: Vec<ByteString>) -> bool {
        for last in (1..list.len()).rev() {
            let other = self.below(last + 1);
            list.swap(last, other);
        }
        let current = self.list.get(self.at).cloned();
        let place = list.iter().position(|server| Some(server) == current.as_ref());
        self.at = place.unwrap_or(list.len() - 1);
        self.list = list;
        place.is_some()
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// The one that was tried last.
    #[must_use]
    pub fn current(&self) -> &ByteString {
        &self.list[self.at]
    }

    /// The next one, and how long to wait before it is tried.
    pub fn next_server(&mut self) -> (ByteString, Duration) {
        self.at = (self.at + 1) % self.list.len();
        let rounds = self.failed / self.list.len();
        let starts_round = self.failed.is_multiple_of(self.list.len());
        self.failed += 1;
        let wait = match u32::try_from(rounds) {
            Ok(rounds @ 1..) if starts_round => {
                let longest = FIRST_WAIT.saturating_mul(1 << (rounds - 1).min(16)).min(LONGEST_WAIT);
                longest.mul_f64(self.part())
            }
            _ => Duration::ZERO,
        };
        (self.list[self.at].clone(), wait)
    }

    /// The one that was tried last serves.
    pub fn served(&mut self) {
        self.failed = 0;
    }

    /// A number from splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators").
    fn draw(&mut self) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.chance ^ (self.chance >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        usize::try_from(self.draw() % bound).unwrap_or(0)
    }

    /// Between 0 and 1.
    fn part(&mut self) -> f64 {
        f64::from(u32::try_from(self.draw() >> 32).unwrap_or(0)) / f64::from(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Servers {
        Servers::new(["a", "b", "c"].map(ByteString::from).to_vec(), 5)
    }

    #[test]
    fn every_server_is_tried_once_without_a_wait_and_then_waits_grow_to_a_bound() {
        let mut servers = three();
        let first: Vec<_> = (0..3).map(|_| servers.next_server()).collect();
        let mut names: Vec<_> = first.iter().map(|(name, _)| name.to_string()).collect();
        names.sort();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(first.iter().all(|(_, wait)| wait.is_zero()));
        let mut longest = Duration::ZERO;
        for round in 0..40_u32 {
            let waits: Vec<_> = (0..3).map(|_| servers.next_server().1).collect();
            assert!(waits[0] <= FIRST_WAIT.saturating_mul(1 << round.min(16)).min(LONGEST_WAIT));
            assert!(waits[1..].iter().all(Duration::is_zero), "one wait a round");
            longest = longest.max(waits[0]);
        }
        assert!(longest > LONGEST_WAIT / 2, "{longest:?}");
        servers.served();
        assert!(servers.next_server().1.is_zero());
    }

    #[test]
    fn another_list_keeps_its_place_at_the_server_in_use() {
        let mut servers = three();
        let (current, _) = servers.next_server();
        servers.replace(vec!["x".into(), current.clone(), "y".into()]);
        assert_eq!(servers.current(), &current);
        servers.replace(vec!["x".into()]);
        assert_eq!(servers.next_server().0, "x");
    }

    #[test]
    fn clients_of_one_list_begin_at_different_servers() {
        let list = ["a", "b", "c"].map(ByteString::from).to_vec();
        let firsts: std::collections::BTreeSet<_> =
            (0..50).map(|seed| Servers::new(list.clone(), seed).next_server().0.to_string()).collect();
        assert_eq!(firsts.len(), 3);
    }
}
