//! When operations fall due.
//!
//! The moments are a Poisson process: the rate holds on average, and operations overlap as those of
//! independent clients do, where an even beat at 2 ms each would make them almost sequential.

use std::time::Duration;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Gaps between operations, without an end.
#[derive(Clone, Debug)]
pub struct Arrivals {
    rng: ChaCha8Rng,
    rate: f64,
}

impl Arrivals {
    /// Gaps whose mean is one in `rate` seconds.
    #[must_use]
    pub fn new(rng: ChaCha8Rng, rate: f64) -> Self {
        Self { rng, rate }
    }
}

impl Iterator for Arrivals {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        // In (0, 1], so that the logarithm is finite.
        let uniform: f64 = 1.0 - self.rng.random::<f64>();
        Some(Duration::from_secs_f64(-uniform.ln() / self.rate))
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn gaps_have_the_rate_on_average_and_repeat_from_the_seed() {
        let gaps = || Arrivals::new(ChaCha8Rng::seed_from_u64(1), 1000.0).take(10_000);
        let total: Duration = gaps().sum();
        assert!((9.5..10.5).contains(&total.as_secs_f64()), "{total:?}");
        assert!(gaps().eq(gaps()));
    }
}
