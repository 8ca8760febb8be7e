//! Noise that is the same in every run: splitmix64 (Steele, Lea & Flood, OOPSLA 2014) and what is drawn
//! from it.

/// A generator; equal seeds give equal numbers on every machine.
#[derive(Debug, Clone)]
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    /// The next 64 bits of splitmix64.
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number between zero and one, neither included.
    pub(crate) fn uniform(&mut self) -> f64 {
        let high = u32::try_from(self.bits() >> 32).unwrap_or(u32::MAX);
        (f64::from(high) + 0.5) / 4_294_967_296.0
    }

    /// A number of the standard normal distribution, by Box and Muller's transform.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// A factor whose logarithm is normal with this standard deviation: 0.06 for a noise of 6 %.
    pub(crate) fn factor(&mut self, sigma: f64) -> f64 {
        (sigma * self.normal()).exp()
    }
}
