//! Swarm options of what is rare: drawn by dice of their own, so that worlds without any of them are what
//! they were.
//!
//! - *Restless* clients stay away until their session is nearly over, and ask for another time-out when they
//!   come back.
//! - *Long streams*: a tree is on its way for longer than a peer may be silent, every time.
//! - *Half-open* connections: one end learns at once that its connection broke, the other never does.
//! - *Relapses*: a member that starts dies again in the middle of its recovery, or right behind it.
//! - *Stuck* disks: a slow disk, that of the leader mostly, does nothing at all for a while.
//! - *Losses*: whole files disappear while their member is down.

use std::fmt;

use harness_world::dice::{Chance, Dice};

/// Each of them is in a world with this probability.
const RARE: Chance = Chance(1_500);

/// How often a member that starts dies again, where they do.
const RELAPSE: Chance = Chance(3_000);

/// Peer time-outs that a long stream takes at most.
const LONGEST_TIMEOUTS: u64 = 8;

/// What of it a world has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rare {
    pub(crate) restless: bool,
    /// Microseconds that a tree is on its way, at least and at most, where that is long.
    pub(crate) stream_us: Option<(u64, u64)>,
    pub(crate) half_open: bool,
    pub(crate) relapse: Chance,
    pub(crate) losses: bool,
    pub(crate) stuck: bool,
}

impl Rare {
    /// Draws it. A long stream leaves room for itself within the limit for taking a history over.
    pub(crate) fn new(peer_timeout_ms: u64, init_ms: u64, dice: &mut Dice) -> Self {
        let longest_ms = (init_ms / 3).min(LONGEST_TIMEOUTS * peer_timeout_ms);
        let long = dice.chance(RARE) && longest_ms > 2 * peer_timeout_ms;
        Self {
            restless: dice.chance(RARE),
            stream_us: long.then_some((longest_ms * 500, longest_ms * 1000)),
            half_open: dice.chance(RARE),
            relapse: if dice.chance(RARE) { RELAPSE } else { Chance::NEVER },
            losses: dice.chance(RARE),
            stuck: dice.chance(RARE),
        }
    }

    /// What the longest stream adds to what has to wait for one, in microseconds.
    pub(crate) fn longest_us(&self) -> u64 {
        self.stream_us.map_or(0, |(_, longest)| longest)
    }
}

impl fmt::Display for Rare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = [
            (self.restless, "restless clients"),
            (self.stream_us.is_some(), "long streams"),
            (self.half_open, "half-open connections"),
            (self.relapse != Chance::NEVER, "relapses"),
            (self.losses, "lost files"),
            (self.stuck, "stuck disks"),
        ];
        for (_, name) in shown.into_iter().filter(|(is_there, _)| *is_there) {
            write!(f, " {name};")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_in_some_worlds_and_a_stream_ends_in_time() {
        let rare: Vec<Rare> = (0..400).map(|seed| Rare::new(100, 2_400, &mut Dice::new(seed))).collect();
        let count = |has: fn(&Rare) -> bool| rare.iter().filter(|rare| has(rare)).count();
        for count in [
            count(|rare| rare.restless),
            count(|rare| rare.stream_us.is_some()),
            count(|rare| rare.half_open),
            count(|rare| rare.relapse != Chance::NEVER),
            count(|rare| rare.losses),
            count(|rare| rare.stuck),
        ] {
            assert!((20..120).contains(&count), "{count} of 400");
        }
        assert!(rare.iter().all(|rare| rare.longest_us() <= 800_000));
        assert!(Rare::new(400, 900, &mut Dice::new(1)).stream_us.is_none(), "there is no room for one");
    }
}
