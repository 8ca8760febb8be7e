//! The one source of chance in a world: a seeded ChaCha8 stream with the few draws the simulator needs.
//!
//! Everything is integer arithmetic, so that a seed means the same on every machine and build profile; a
//! probability is a count out of ten thousand for the same reason.

use std::fmt;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A probability, in parts of [`Chance::ALWAYS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chance(pub(crate) u32);

impl Chance {
    /// Certainty.
    pub(crate) const ALWAYS: Self = Self(10_000);
    /// Impossibility.
    pub(crate) const NEVER: Self = Self(0);
}

impl fmt::Display for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}%", self.0 / 100, self.0 % 100)
    }
}

/// Half of the time.
pub(crate) const HALF: Chance = Chance(5_000);

/// What has dice of its own. Everything else shares the world's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A turn of the nemesis.
    Turn(u64),
    /// A client.
    Client(u64),
    /// Who stays dead at first when a world is healed.
    Minority,
    /// The length of epochs.
    Epochs,
    /// Members without a vote.
    Observers,
    /// Which workloads the clients do.
    Traffic,
    /// Scouts, and what goes by itself.
    Scouts,
    /// Whether the ensemble changes.
    Changes,
    /// Sessions of one member, and reads without a leader.
    Lone,
    /// What is rare.
    Rare,
    /// Probers.
    Probers,
    /// Ends that do not happen.
    Rehearsals,
    /// Where a prober pauses within a batch.
    Pauses,
    /// A workload's generator.
    Load(u64),
}

/// Streams above this one belong to workloads; turns and clients never count so far.
const WORKLOADS: u64 = 1 << 62;

/// The stream of draws. Whoever draws in another order lives in another world.
#[derive(Clone, Debug)]
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    /// The dice of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// The dice of one part of a world, so that what another part draws does not change what this one does. Taking
    /// away a fault or a client then leaves all others as they were, which is what shrinking lives on.
    pub(crate) fn part(seed: u64, part: Part) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(match part {
            Part::Turn(turn) => turn << 1 | 1,
            Part::Client(client) => (client + 1) << 1,
            Part::Minority => u64::MAX - 1,
            Part::Epochs => u64::MAX - 3,
            Part::Observers => u64::MAX - 5,
            Part::Scouts => u64::MAX - 7,
            Part::Changes => u64::MAX - 9,
            Part::Lone => u64::MAX - 11,
            Part::Rare => u64::MAX - 1001,
            Part::Probers => u64::MAX - 101,
            Part::Rehearsals => u64::MAX - 1003,
            Part::Pauses => u64::MAX - 1005,
            Part::Traffic => WORKLOADS,
            Part::Load(load) => WORKLOADS + 1 + load,
        });
        Self(rng)
    }

    /// Uniform in `lo..=hi`; `lo` when the range is empty.
    pub(crate) fn between(&mut self, lo: u64, hi: u64) -> u64 {
        if hi <= lo { lo } else { self.0.random_range(lo..=hi) }
    }

    /// An index into something of this length.
    ///
    /// # Panics
    /// When the length is zero.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        assert!(len > 0, "nothing to draw from");
        let last = u64::try_from(len - 1).expect("a length fits u64");
        usize::try_from(self.between(0, last)).expect("an index fits usize")
    }

    /// True with this probability.
    pub(crate) fn chance(&mut self, chance: Chance) -> bool {
        match chance {
            Chance::NEVER => false,
            Chance::ALWAYS => true,
            Chance(parts) => self.0.random_range(0..Chance::ALWAYS.0) < parts,
        }
    }

    /// Between a quarter and seven quarters of the mean.
    pub(crate) fn around(&mut self, mean: u64) -> u64 {
        self.between(mean / 4, mean / 4 * 7)
    }

    /// Between `lo` and `hi` with every power of two about equally likely: small and large values both come up.
    pub(crate) fn scale(&mut self, lo: u64, hi: u64) -> u64 {
        let lo = lo.max(1);
        let octaves = u64::from((hi / lo).max(1).ilog2());
        let shift = self.between(0, octaves);
        let from = lo << shift;
        self.between(from, (from * 2).min(hi)).min(hi)
    }

    /// A number for somebody else's generator.
    pub(crate) fn seed(&mut self) -> u64 {
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

    #[test]
    fn parts_draw_for_themselves() {
        let drawn = |part| Dice::part(7, part).between(0, u64::MAX);
        assert_eq!(drawn(Part::Turn(1)), drawn(Part::Turn(1)));
        assert_ne!(drawn(Part::Turn(1)), drawn(Part::Turn(2)));
        assert_ne!(drawn(Part::Turn(1)), drawn(Part::Client(0)));
        assert_ne!(drawn(Part::Client(0)), Dice::new(7).between(0, u64::MAX));
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
