//! Connect requests through a bucket of tokens, with a probability before the bucket is empty.
//!
//! A crowd of clients that lost their leader all come at once, and each costs a transaction. The bucket
//! bounds how many are let in at a time; the probability (BLUE, Feng et al. 1999, as ZooKeeper has it) turns
//! some away early when the bucket was found empty, so that those who come first do not take everything. Who
//! is turned away comes again.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use crate::config::Throttling;

/// The bucket.
#[derive(Debug)]
pub(super) struct Throttle {
    config: Throttling,
    tokens: u32,
    filled: Instant,
    drop: f64,
    changed: Instant,
    dice: RandomState,
    thrown: u64,
}

impl Throttle {
    pub(super) fn new(config: Throttling, now: Instant) -> Self {
        let tokens = config.tokens;
        Self { config, tokens, filled: now, drop: 0.0, changed: now, dice: RandomState::new(), thrown: 0 }
    }

    /// Lets a connect request in, or not.
    pub(super) fn admits(&mut self, renews: bool, now: Instant) -> bool {
        self.fill(now);
        if let Some(freeze) = self.config.freeze
            && self.drops(freeze, now)
        {
            return false;
        }
        let need = if renews { self.config.renewed_session } else { self.config.new_session };
        match self.tokens.checked_sub(need) {
            Some(left) => {
                self.tokens = left;
                true
            }
            None => false,
        }
    }

    /// The probability that a client is turned away although there are tokens.
    pub(super) fn drop_probability(&self) -> f64 {
        self.drop
    }

    /// Tokens that are spent.
    pub(super) fn deficit(&self) -> u32 {
        self.config.tokens - self.tokens
    }

    fn fill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.filled);
        if passed <= self.config.fill_time {
            return;
        }
        let refill = passed.as_millis() * u128::from(self.config.fill_count)
            / self.config.fill_time.as_millis().max(1);
        let refill = u32::try_from(refill).unwrap_or(u32::MAX);
        self.tokens = self.tokens.saturating_add(refill).min(self.config.tokens);
        self.filled = now;
    }

    fn drops(&mut self, freeze: Duration, now: Instant) -> bool {
        if now.saturating_duration_since(self.changed) > freeze {
            let spent = f64::from(self.deficit());
            if self.tokens == 0 {
                self.drop = (self.drop + self.config.increase).min(1.0);
            } else if spent <= (f64::from(self.config.tokens) * self.config.decrease_ratio).round() {
                self.drop = (self.drop - self.config.decrease).max(0.0);
            }
            self.changed = now;
        }
        self.throw() < self.drop
    }

    /// A number from 0 to 1 that nobody outside can foresee.
    fn throw(&mut self) -> f64 {
        self.thrown = self.thrown.wrapping_add(1);
        let bits = self.dice.hash_one(self.thrown);
        f64::from(u32::try_from(bits >> 32).unwrap_or(0)) / (f64::from(u32::MAX) + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Throttling {
        Throttling {
            tokens: 10,
            fill_time: Duration::from_millis(100),
            fill_count: 5,
            freeze: None,
            increase: 0.5,
            decrease: 0.25,
            decrease_ratio: 0.5,
            new_session: 3,
            renewed_session: 2,
        }
    }

    #[test]
    fn sessions_cost_tokens_that_come_back_with_time_and_never_more_than_there_were() {
        let start = Instant::now();
        let mut throttle = Throttle::new(config(), start);
        let admitted = (0..9).filter(|_| throttle.admits(false, start)).count();
        assert_eq!((admitted, throttle.deficit()), (3, 9));
        assert!(!throttle.admits(true, start));
        assert!(throttle.admits(true, start + Duration::from_millis(101)), "five came back");
        assert!(throttle.admits(true, start + Duration::from_hours(24)));
        assert_eq!(throttle.deficit(), 2, "the bucket is as large as it was");
    }

    #[test]
    fn the_probability_grows_while_the_bucket_is_empty_and_shrinks_when_it_is_not() {
        let start = Instant::now();
        let mut throttle = Throttle::new(
            Throttling {
                freeze: Some(Duration::from_millis(10)),
                new_session: 10,
                fill_count: 1,
                ..config()
            },
            start,
        );
        assert!(throttle.admits(false, start));
        assert!(!throttle.admits(false, start + Duration::from_millis(11)));
        assert!(throttle.drop_probability() > 0.49);
        assert!(!throttle.admits(false, start + Duration::from_millis(22)));
        assert!(throttle.drop_probability() > 0.99, "nobody is let in");
        assert!(!throttle.admits(false, start + Duration::from_millis(33)));
        let mut later = start + Duration::from_secs(60);
        while throttle.drop_probability() > 0.0 {
            throttle.admits(true, later);
            later += Duration::from_secs(60);
        }
        assert!(throttle.admits(true, later));
    }
}
