//! The one source of chance in a world: a seeded ChaCha8 stream with the few draws a world needs.
//!
//! Everything is integer arithmetic, so that a seed means the same on every machine and build profile; a
//! probability is a count out of ten thousand for the same reason.

use std::fmt;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A probability, in parts of [`Chance::ALWAYS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chance(pub u32);

impl Chance {
    /// Certainty.
    pub const ALWAYS: Self = Self(10_000);
    /// Impossibility.
    pub const NEVER: Self = Self(0);
}

impl fmt::Display for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}%", self.0 / 100, self.0 % 100)
    }
}

/// Half of the time.
pub const HALF: Chance = Chance(5_000);

/// Something that has dice of its own. Everything else shares the world's.
pub trait Stream {
    /// The number of its stream: no two may share one, and none may change, or every seed means another
    /// world.
    fn number(&self) -> u64;
}

/// The stream of draws. Whoever draws in another order lives in another world.
#[derive(Clone, Debug)]
pub struct Dice(ChaCha8Rng);

impl Dice {
    /// The dice of a seed.
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// The dice of one part of a world, so that what another part draws does not change what this one does.
    /// Taking away a fault or a client then leaves all others as they were, which is what shrinking lives on.
    pub fn part(seed: u64, part: impl Stream) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(part.number());
        Self(rng)
    }

    /// Uniform in `lo..=hi`; `lo` when the range is empty.
    pub fn between(&mut self, lo: u64, hi: u64) -> u64 {
        if hi <= lo { lo } else { self.0.random_range(lo..=hi) }
    }

    /// An index into something of this length.
    ///
    /// # Panics
    /// When the length is zero.
    pub fn index(&mut self, len: usize) -> usize {
        assert!(len > 0, "nothing to draw from");
        let last = u64::try_from(len - 1).expect("a length fits u64");
        usize::try_from(self.between(0, last)).expect("an index fits usize")
    }

    /// True with this probability.
    pub fn chance(&mut self, chance: Chance) -> bool {
        match chance {
            Chance::NEVER => false,
            Chance::ALWAYS => true,
            Chance(parts) => self.0.random_range(0..Chance::ALWAYS.0) < parts,
        }
    }

    /// Between a quarter and seven quarters of the mean.
    pub fn around(&mut self, mean: u64) -> u64 {
        self.between(mean / 4, mean / 4 * 7)
    }

    /// Between `lo` and `hi` with every power of two about equally likely: small and large values both come
    /// up.
    pub fn scale(&mut self, lo: u64, hi: u64) -> u64 {
        let lo = lo.max(1);
        let octaves = u64::from((hi / lo).max(1).ilog2());
        let shift = self.between(0, octaves);
        let from = lo << shift;
        self.between(from, (from * 2).min(hi)).min(hi)
    }

    /// A number for somebody else's generator.
    pub fn seed(&mut self) -> u64 {
        self.0.random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same() {
        let (mut left, mut right) = (Dice::new(7), Dice::new(7));
        for _ in 0..100 {
            assert_eq!(left.scale(3, 900), right.scale(3, 900));
        }
    }

    struct Turn(u64);

    impl Stream for Turn {
        fn number(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn streams_draw_for_themselves() {
        let drawn = |turn| Dice::part(7, Turn(turn)).between(0, u64::MAX);
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
        assert_ne!(drawn(1), Dice::new(7).between(0, u64::MAX));
    }

    #[test]
    fn draws_stay_in_their_range() {
        let mut dice = Dice::new(1);
        for _ in 0..1000 {
            assert!((5..=9).contains(&dice.between(5, 9)));
            assert!((10..=1000).contains(&dice.scale(10, 1000)));
            assert!(dice.index(3) < 3);
            assert!(!dice.chance(Chance::NEVER));
            assert!(dice.chance(Chance::ALWAYS));
        }
    }
}
