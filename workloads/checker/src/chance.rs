//! Repeatable chance, for whoever makes histories: tests, examples, benchmarks. Nothing that judges uses it.

use crate::hash::{GOLDEN, finalize};

/// Numbers that follow from a seed and look random: `SplitMix64` (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct Chance(pub u64);

impl Chance {
    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends, and is no iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        finalize(self.0)
    }

    /// A number below `bound`; 0 if there is none.
    pub fn below<T: TryFrom<u64> + TryInto<u64> + Default>(&mut self, bound: T) -> T {
        let bound = bound.try_into().unwrap_or(0).max(1);
        T::try_from(self.next() % bound).unwrap_or_default()
    }

    /// True so many times in a hundred.
    pub fn percent(&mut self, percent: impl TryInto<u64>) -> bool {
        self.below(100_u64) < percent.try_into().unwrap_or(0)
    }

    /// True so many times in a thousand.
    pub fn per_mille(&mut self, per_mille: u64) -> bool {
        self.below(1000_u64) < per_mille
    }

    /// Between 0 and 1, never 1.
    pub fn part(&mut self) -> f64 {
        let bits = u32::try_from(self.next() >> 32).unwrap_or(0);
        f64::from(bits) / (f64::from(u32::MAX) + 1.0)
    }

    /// Exponential with mean 1.
    pub fn wait(&mut self) -> f64 {
        -(1.0 - self.part()).ln()
    }
}
