//! Two builds compared by pairs of runs that were taken in turn: A B, A B, A B.
//!
//! A machine drifts from one quarter of an hour to the next by more than two builds differ, and both runs
//! of a pair drift together. So only the ratio within a pair counts (Georges, Buytaert & Eeckhout,
//! *Statistically Rigorous Java Performance Evaluation*, OOPSLA 2007; Kalibera & Jones, *Rigorous
//! Benchmarking in Reasonable Time*, ISMM 2013). Logarithms make twice as slow and twice as fast equally
//! far from equal.
//!
//! The interval is Student's around the mean log ratio. A percentile bootstrap of eight pairs is too
//! narrow: with 99 % on its label it accused an unchanged build in 7 of 100 comparisons. A disturbed run
//! makes Student's interval wider and accuses nobody: with 3 % of the runs disturbed, eight pairs at 99 %
//! told 56 instead of 81 of 100 steps of 20 % (`examples/synthetic.rs`).

use runs::numbers::len_f64;

use crate::fence::Direction;
use crate::quantiles::counts;
use crate::student::{quantile, two_sided_p};

/// Fewer pairs than this are not judged. An interval of 99 % reaches 3.5 standard errors with eight pairs and
/// 4.6 with five, and the signs of fewer than eight cannot reach a p of 0.01.
pub const MIN_PAIRS: usize = 8;
/// Up to so many pairs all flips of signs are tried.
pub const MOST_FLIPPED: usize = 16;

/// There are fewer pairs than a comparison needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooFew {
    /// Pairs of two finite and positive values.
    pub have: usize,
    /// [`MIN_PAIRS`].
    pub need: usize,
}

impl std::fmt::Display for TooFew {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} pairs of runs were measured, and {} are needed", self.have, self.need)
    }
}

impl std::error::Error for TooFew {}

/// How sure a verdict has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// 95 %: of 100 comparisons of equal builds five tell a difference. This suffices to confirm an alarm: in
    /// 10,000 nights of a synthetic series about one is accused wrongly then.
    P95,
    /// 99 %: one does.
    P99,
}

/// A ratio lies between these, second build over first; 1 is equal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// What a comparison tells about the second build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is worse: it takes longer, or does less a second.
    Slower,
    /// It is better.
    Faster,
    /// The interval holds equality: no difference was shown, which does not mean that there is none.
    NotShown,
}

/// The second build over the first, from interleaved pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paired {
    /// Pairs that counted.
    pub pairs: usize,
    /// The geometric mean of the ratios, second over first: 1.2 is 20 % more.
    pub ratio: f64,
    /// Where the ratio lies with 95 % confidence.
    pub interval_95: Interval,
    /// Where the ratio lies with 99 % confidence.
    pub interval_99: Interval,
}

impl Paired {
    /// How often two equal builds would differ as much by chance, from 0 to 1: Student's, on both sides.
    pub fn p(&self) -> f64 {
        let degrees = self.pairs.saturating_sub(1);
        let reach = (self.interval_95.high.ln() - self.interval_95.low.ln()) / 2.0;
        let error = reach / quantile(0.05, degrees);
        match self.ratio.ln() {
            // Pairs that do not scatter at all differ for certain, or not at all.
            difference if error <= 0.0 || !error.is_finite() => f64::from(u8::from(difference == 0.0)),
            difference => two_sided_p(difference / error, degrees),
        }
    }

    /// Compares `(first, second)`, one pair for each turn, both in the same unit. Pairs in which a value is
    /// not finite and positive are left out. Ratios beyond what `f64` holds are infinite or zero.
    pub fn of(pairs: &[(f64, f64)]) -> Result<Self, TooFew> {
        let logs = log_ratios(pairs);
        if logs.len() < MIN_PAIRS {
            return Err(TooFew { have: logs.len(), need: MIN_PAIRS });
        }
        let (n, degrees) = (len_f64(logs.len()), logs.len() - 1);
        let mean = logs.iter().sum::<f64>() / n;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let error = (squares / len_f64(degrees) / n).sqrt();
        let interval = |p: f64| {
            let reach = quantile(p, degrees) * error;
            Interval { low: (mean - reach).exp(), high: (mean + reach).exp() }
        };
        let (interval_95, interval_99) = (interval(0.05), interval(0.01));
        Ok(Self { pairs: logs.len(), ratio: mean.exp(), interval_95, interval_99 })
    }

    /// The interval at a level.
    #[must_use]
    pub fn interval(&self, level: Level) -> Interval {
        match level {
            Level::P95 => self.interval_95,
            Level::P99 => self.interval_99,
        }
    }

    /// What is told about the second build, where the figure gets better this way.
    #[must_use]
    pub fn verdict(&self, direction: Direction, level: Level) -> Verdict {
        let Interval { low, high } = self.interval(level);
        match (low > 1.0, high < 1.0, direction) {
            (true, _, Direction::LowerIsBetter) | (_, true, Direction::HigherIsBetter) => Verdict::Slower,
            (_, true, Direction::LowerIsBetter) | (true, _, Direction::HigherIsBetter) => Verdict::Faster,
            (false, false, _) => Verdict::NotShown,
        }
    }
}

/// The exact p that the mean log ratio is so far from zero, either way, were the two builds equal: then
/// each pair's ratio could as well be its inverse, and all flips are counted (Fisher's randomization test,
/// *The Design of Experiments*, 1935). It assumes no distribution and so checks the interval. None of no
/// pairs and of more than [`MOST_FLIPPED`]; of fewer than eight pairs it never falls below 0.01.
#[must_use]
pub fn sign_flip_p(pairs: &[(f64, f64)]) -> Option<f64> {
    let logs = log_ratios(pairs);
    if logs.is_empty() || logs.len() > MOST_FLIPPED {
        return None;
    }
    let flips = 1_u32 << logs.len();
    // The same sum in another order may differ in its last digits.
    let least = logs.iter().sum::<f64>().abs() - 1e-12 * logs.iter().map(|log| log.abs()).sum::<f64>();
    let as_far = (0..flips).filter(|flip| {
        let signed = logs.iter().enumerate().map(|(i, log)| if flip >> i & 1 == 1 { -log } else { *log });
        signed.sum::<f64>().abs() >= least
    });
    Some(len_f64(as_far.count()) / f64::from(flips))
}

/// The logarithms of second over first of the pairs that count.
fn log_ratios(pairs: &[(f64, f64)]) -> Vec<f64> {
    let counting = pairs.iter().filter(|(first, second)| counts(*first) && counts(*second));
    counting.map(|(first, second)| second.ln() - first.ln()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;

    /// Pairs that drift together by 6 %, each run with 8 % of its own noise.
    fn pairs(count: usize, factor: f64, seed: u64) -> Vec<(f64, f64)> {
        let mut noise = Noise(seed);
        (0..count)
            .map(|_| {
                let drift = 10.0 * noise.factor(0.06);
                (drift * noise.factor(0.08), drift * factor * noise.factor(0.08))
            })
            .collect()
    }

    fn verdicts(factor: f64, level: Level, verdict: Verdict) -> usize {
        let compared = (0..1_000).filter_map(|seed| Paired::of(&pairs(8, factor, seed)).ok());
        compared.filter(|paired| paired.verdict(Direction::LowerIsBetter, level) == verdict).count()
    }

    #[test]
    fn the_probability_says_what_the_intervals_say() {
        let close = |p: f64| (0..8).map(|n| (100.0, 100.0 * p + f64::from(n))).collect::<Vec<_>>();
        for factor in [0.97, 1.0, 1.01, 1.02, 1.5] {
            let paired = Paired::of(&close(factor)).expect("eight pairs");
            let differs = |interval: Interval| interval.low > 1.0 || interval.high < 1.0;
            assert_eq!(paired.p() < 0.05, differs(paired.interval_95), "{factor}: {}", paired.p());
            assert_eq!(paired.p() < 0.01, differs(paired.interval_99), "{factor}: {}", paired.p());
        }
        assert_eq!(Paired::of(&[(5.0, 5.0); 8]).expect("eight pairs").p(), 1.0);
        assert!(Paired::of(&[(5.0, 10.0); 8]).expect("eight pairs").p() < 1e-12);
    }

    #[test]
    fn fewer_than_eight_pairs_are_not_judged() {
        assert_eq!(Paired::of(&[]), Err(TooFew { have: 0, need: 8 }));
        let mut few = pairs(7, 2.0, 1);
        few.extend([(f64::NAN, 1.0), (1.0, f64::INFINITY), (0.0, 1.0), (1.0, -1.0)]);
        let refused = Paired::of(&few);
        assert_eq!(refused, Err(TooFew { have: 7, need: 8 }));
        let sentence = "7 pairs of runs were measured, and 8 are needed";
        assert_eq!(refused.map_err(|few| few.to_string()), Err(sentence.to_owned()));
        few.push((1.0, 2.0));
        assert_eq!(Paired::of(&few).map(|paired| paired.pairs), Ok(8));
    }

    #[test]
    fn the_interval_is_students_around_the_mean_log_ratio() {
        // Log ratios 0.1 and 0.3 four times each: mean 0.2, standard error 0.1 / sqrt(7).
        let ratios = [0.1_f64, 0.3].map(f64::exp);
        let pairs: Vec<(f64, f64)> = ratios.iter().cycle().take(8).map(|ratio| (2.0, 2.0 * ratio)).collect();
        let paired = Paired::of(&pairs).unwrap_or_else(|few| panic!("{few}"));
        let log = |value: f64| value.ln() - 0.2;
        let error = 0.1 / 7.0_f64.sqrt();
        assert!(log(paired.ratio).abs() < 1e-12);
        // 2.3646 and 3.4995 are the quantiles with 7 degrees of freedom in Student's table.
        assert!((log(paired.interval_95.high) - 2.3646 * error).abs() < 1e-5);
        assert!((log(paired.interval_95.low) + 2.3646 * error).abs() < 1e-5);
        assert!((log(paired.interval_99.high) - 3.4995 * error).abs() < 1e-5);
        assert_eq!(paired.interval(Level::P99), paired.interval_99);
    }

    #[test]
    fn a_fifth_more_is_told_and_equal_builds_are_accused_as_often_as_the_level_says() {
        assert!(verdicts(1.2, Level::P95, Verdict::Slower) >= 950);
        assert!(verdicts(1.2, Level::P99, Verdict::Slower) >= 750);
        let wrong = |level| 1_000 - verdicts(1.0, level, Verdict::NotShown);
        assert!((30..=70).contains(&wrong(Level::P95)), "{}", wrong(Level::P95));
        assert!((3..=20).contains(&wrong(Level::P99)), "{}", wrong(Level::P99));
    }

    #[test]
    fn slower_is_more_of_a_time_and_less_of_a_rate() {
        let told = |factor: f64, direction| {
            Paired::of(&pairs(8, factor, 5)).map(|paired| paired.verdict(direction, Level::P99))
        };
        let both =
            |factor| [Direction::LowerIsBetter, Direction::HigherIsBetter].map(|way| told(factor, way));
        assert_eq!(both(1.5), [Ok(Verdict::Slower), Ok(Verdict::Faster)]);
        assert_eq!(both(0.6), [Ok(Verdict::Faster), Ok(Verdict::Slower)]);
        assert_eq!(both(1.0), [Ok(Verdict::NotShown); 2]);
    }

    #[test]
    fn pairs_swapped_give_the_inverse() {
        let pairs = pairs(12, 1.3, 2);
        let swapped: Vec<(f64, f64)> = pairs.iter().map(|(first, second)| (*second, *first)).collect();
        let (there, back) = (Paired::of(&pairs).ok(), Paired::of(&swapped).ok());
        let product =
            there.zip(back).map(|(a, b)| (a.ratio * b.ratio, a.interval_99.low * b.interval_99.high));
        assert!(product.is_some_and(|(ratio, end)| (ratio - 1.0).abs() < 1e-12 && (end - 1.0).abs() < 1e-12));
    }

    #[test]
    fn equal_runs_tell_nothing_and_extremes_do_not_panic() {
        let told =
            |pair| Paired::of(&[pair; 8]).map(|paired| paired.verdict(Direction::LowerIsBetter, Level::P99));
        assert_eq!(told((3.0, 3.0)), Ok(Verdict::NotShown));
        assert_eq!(told((f64::MIN_POSITIVE, f64::MAX)), Ok(Verdict::Slower));
        assert_eq!(told((f64::MAX, f64::MIN_POSITIVE)), Ok(Verdict::Faster));
    }

    #[test]
    fn the_flips_of_three_equal_signs_are_two_of_eight() {
        assert_eq!(sign_flip_p(&[(1.0, 2.0), (1.0, 3.0), (1.0, 1.5)]), Some(0.25));
        assert_eq!(sign_flip_p(&[(1.0, 2.0); 8]), Some(2.0 / 256.0));
        assert_eq!(sign_flip_p(&[(1.0, 2.0), (2.0, 1.0)]), Some(1.0));
        assert_eq!((sign_flip_p(&[]), sign_flip_p(&[(1.0, 2.0); 17])), (None, None));
        assert_eq!(sign_flip_p(&[(f64::NAN, 2.0)]), None);
    }

    #[test]
    fn the_flips_and_the_interval_agree() {
        let mut apart = 0;
        for seed in 0..300 {
            let pairs = pairs(12, 1.08, seed);
            let told = Paired::of(&pairs).is_ok_and(|paired| {
                paired.verdict(Direction::LowerIsBetter, Level::P95) != Verdict::NotShown
            });
            apart += usize::from(sign_flip_p(&pairs).is_some_and(|p| p <= 0.05) != told);
        }
        assert!(apart <= 15, "{apart} of 300");
    }
}
