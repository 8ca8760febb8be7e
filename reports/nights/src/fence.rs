//! The alarm of tonight: has this series just become worse, beyond what its nights scatter anyway?
//!
//! The fence is Tukey's (*Exploratory Data Analysis*, 1977), drawn around a series' own last 30 nights, as
//! rustc-perf draws it around a benchmark's own history (`docs/comparison-analysis.md`, with 3 instead of
//! 1.5 interquartile ranges). A fence follows each series' own noise, and a single bad night does not move
//! it, which cannot be said of a mean and its standard deviation.
//!
//! One night beyond the fence is a disturbed machine more often than a slower build. So two of the last
//! three measured nights have to lie beyond it, and tonight is one of them.
//!
//! Values are taken as they are, and a rate as the time of one operation. On logarithms the fence found 34
//! instead of 42 of 100 steps of 10 %, for 0.35 instead of 0.40 false alarms per 100 nights. A fence below
//! raw rates is nearly blind where they scatter: at a noise of 20 % it missed every second halving, and the
//! one above their inverses one in a hundred. The price is more false alarms (0.5 instead of 0.2 per 100
//! nights), which a comparison of builds takes back ([`crate::paired`]).

use crate::quantiles::{measured, quantile, sorted};

/// Nights before the last three that the fence is drawn around, at most.
pub const BASE_NIGHTS: usize = 30;
/// With fewer nights than this before the last three there is no fence.
pub const LEAST_NIGHTS: usize = 12;
/// Interquartile ranges from the quartile to the fence.
pub const REACH: f64 = 1.5;
/// Nearer to the median than by this factor nothing is an alarm, so that a series which hardly scatters
/// does not cry over a thousandth.
pub const LEAST_CHANGE: f64 = 1.05;

/// The last nights that are looked at, tonight among them.
const RECENT: usize = 3;
/// How many of them have to lie beyond the fence.
const BEYOND: usize = 2;

/// Which way a series gets better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Times, sizes, shares of failures.
    LowerIsBetter,
    /// Operations a second.
    HigherIsBetter,
}

/// What lies beyond the fence tonight, in the unit of the series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alarm {
    /// The fence: tonight is above it where lower is better, below it where higher is better.
    pub fence: f64,
    /// The median of the nights that the fence was drawn around.
    pub median: f64,
    /// Tonight's value.
    pub tonight: f64,
    /// Tonight's value as a multiple of the median: 1.25 is 25 % more.
    pub ratio: f64,
    /// Index in the series of the night in the middle of those that the fence was drawn around. Its build is
    /// the one to compare tonight's with. A small step is often told only after some nights, so the night
    /// just before the last three may have it already: against that night's build, pairs confirmed 68 of
    /// 100 steps of 20 %, and against this one's 87.
    pub before: usize,
}

/// Whether tonight is an alarm. `values` has one value a night, oldest first, tonight last; `None` is a
/// night without a value. Values that are not finite and positive count as none. No alarm where tonight has
/// no value, or where fewer than [`LEAST_NIGHTS`] nights were measured before the last three.
#[must_use]
pub fn alarm(values: &[Option<f64>], direction: Direction) -> Option<Alarm> {
    let nights = measured(values);
    let (base, recent) = nights.split_at_checked(nights.len().checked_sub(RECENT)?)?;
    let base = base.get(base.len().saturating_sub(BASE_NIGHTS)..)?;
    let (&(tonight_at, tonight), &(before, _)) = (recent.last()?, base.get(base.len() / 2)?);
    if tonight_at + 1 != values.len() || base.len() < LEAST_NIGHTS {
        return None;
    }
    let (fence, median) = fence(&base.iter().map(|(_, value)| cost(*value, direction)).collect::<Vec<_>>())?;
    let beyond = |value: f64| cost(value, direction) > fence;
    if !beyond(tonight) || recent.iter().filter(|(_, value)| beyond(*value)).count() < BEYOND {
        return None;
    }
    let (fence, median) = (cost(fence, direction), cost(median, direction));
    Some(Alarm { fence, median, tonight, ratio: tonight / median, before })
}

/// A value so that less is better: a rate becomes the time of one operation, and back again.
fn cost(value: f64, direction: Direction) -> f64 {
    match direction {
        Direction::LowerIsBetter => value,
        // The inverse of less would be infinite.
        Direction::HigherIsBetter => 1.0 / value.max(f64::MIN_POSITIVE),
    }
}

/// The fence above values, at least [`LEAST_CHANGE`] over their median, and the median.
fn fence(base: &[f64]) -> Option<(f64, f64)> {
    let base = sorted(base);
    let (low, median, high) = (quantile(&base, 0.25)?, quantile(&base, 0.5)?, quantile(&base, 0.75)?);
    Some(((high + REACH * (high - low)).max(median * LEAST_CHANGE), median))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;

    fn series(nights: usize, seed: u64, sigma: f64, level: impl Fn(usize) -> f64) -> Vec<Option<f64>> {
        let mut noise = Noise(seed);
        (0..nights).map(|night| Some(10.0 * level(night) * noise.factor(sigma))).collect()
    }

    fn inverse(values: &[Option<f64>]) -> Vec<Option<f64>> {
        values.iter().map(|value| value.map(|value| 1000.0 / value)).collect()
    }

    /// The nights that are an alarm, each with what was known then.
    fn alarms(values: &[Option<f64>], direction: Direction) -> Vec<usize> {
        (0..values.len()).filter(|night| alarm(&values[..=*night], direction).is_some()).collect()
    }

    #[test]
    fn a_step_of_half_is_seen_on_its_second_night() {
        for seed in 0..50 {
            let values = series(47, seed, 0.06, |night| if night < 45 { 1.0 } else { 1.5 });
            assert!(alarm(&values, Direction::LowerIsBetter).is_some(), "seed {seed}");
            assert!(alarm(&inverse(&values), Direction::HigherIsBetter).is_some(), "seed {seed}");
        }
    }

    #[test]
    fn one_disturbed_night_is_no_alarm_and_neither_is_the_usual_night_after_two() {
        let usual = |night: usize| Some([10.0, 10.3, 9.8, 10.6, 9.5][night % 5]);
        let mut values: Vec<Option<f64>> = (0..50).map(usual).collect();
        values[40] = Some(25.0);
        assert!(alarms(&values, Direction::LowerIsBetter).is_empty());
        values[41] = Some(25.0);
        assert_eq!(alarms(&values, Direction::LowerIsBetter), [41]);
        values[41] = usual(41);
        values[42] = Some(25.0);
        assert_eq!(alarms(&values, Direction::LowerIsBetter), [42]);
    }

    #[test]
    fn fewer_than_twelve_nights_before_stay_silent() {
        let nights = |before: usize| {
            let mut values = vec![Some(10.0); before];
            values.extend([Some(99.0); 3]);
            alarm(&values, Direction::LowerIsBetter).is_some()
        };
        assert_eq!([nights(0), nights(11), nights(12), nights(200)], [false, false, true, true]);
    }

    #[test]
    fn a_series_that_never_scatters_cries_over_six_per_cent_and_not_over_a_thousandth() {
        let then = |value: f64, direction| {
            let mut values = vec![Some(100.0); 20];
            values.extend([Some(value); 2]);
            alarm(&values, direction)
        };
        assert_eq!(then(100.1, Direction::LowerIsBetter), None);
        assert_eq!(then(104.9, Direction::LowerIsBetter), None);
        assert_eq!(
            (then(96.0, Direction::HigherIsBetter), then(94.0, Direction::LowerIsBetter)),
            (None, None)
        );
        let told =
            then(106.0, Direction::LowerIsBetter).map(|alarm| (alarm.fence, alarm.median, alarm.ratio));
        assert_eq!(told, Some((105.0, 100.0, 1.06)));
        let rate = then(94.0, Direction::HigherIsBetter);
        assert!(rate.is_some_and(|alarm| (alarm.fence - 100.0 / 1.05).abs() < 1e-9 && alarm.tonight == 94.0));
    }

    #[test]
    fn the_fence_is_drawn_around_the_thirty_nights_before_the_last_three() {
        let mut values = vec![Some(1000.0); 10];
        values.extend((1..=30).map(|value| Some(f64::from(value))));
        values.extend([Some(50.0), Some(20.0), Some(46.0)]);
        // Quartiles 8.25 and 22.75; the fence is at 22.75 + 1.5 * 14.5.
        let told = alarm(&values, Direction::LowerIsBetter);
        let expected = Alarm { fence: 44.5, median: 15.5, tonight: 46.0, ratio: 46.0 / 15.5, before: 25 };
        assert_eq!(told, Some(expected));
    }

    #[test]
    fn a_night_without_a_value_is_neither_an_alarm_nor_one_of_the_three() {
        let mut values = vec![Some(10.0); 20];
        values.extend([Some(20.0), None, Some(f64::NAN), Some(0.0), Some(20.0)]);
        assert!(alarm(&values, Direction::LowerIsBetter).is_some());
        for bad in [None, Some(f64::NAN), Some(f64::INFINITY), Some(0.0), Some(-20.0)] {
            values.push(bad);
            assert_eq!(alarm(&values, Direction::LowerIsBetter), None, "{bad:?}");
            assert_eq!(alarm(&[bad; 40], Direction::HigherIsBetter), None, "{bad:?}");
        }
        assert_eq!(alarm(&[], Direction::LowerIsBetter), None);
    }

    #[test]
    fn values_at_the_ends_of_what_a_number_holds_do_not_panic() {
        for usual in [f64::MAX, f64::MIN_POSITIVE, f64::MIN_POSITIVE / 8.0] {
            for last in [f64::MAX, f64::MIN_POSITIVE, f64::MIN_POSITIVE / 8.0] {
                let mut values = vec![Some(usual); 20];
                values.extend([Some(last); 2]);
                for direction in [Direction::LowerIsBetter, Direction::HigherIsBetter] {
                    assert!(alarm(&values, direction).is_none_or(|alarm| !alarm.ratio.is_nan()));
                }
            }
        }
    }

    #[test]
    fn a_rate_cries_on_the_nights_on_which_the_time_of_one_operation_does() {
        for seed in 0..50 {
            let values = series(75, seed, 0.1, |night| if night < 45 { 1.0 } else { 1.4 });
            let times = alarms(&values, Direction::LowerIsBetter);
            assert_eq!(alarms(&inverse(&values), Direction::HigherIsBetter), times, "seed {seed}");
            assert!(!times.is_empty(), "seed {seed}");
        }
    }

    #[test]
    fn a_rate_that_halves_is_seen_even_where_it_scatters_by_a_fifth() {
        let found = (0..100).filter(|seed| {
            let values = series(75, *seed, 0.2, |night| if night < 45 { 1.0 } else { 2.0 });
            alarms(&inverse(&values), Direction::HigherIsBetter).iter().any(|night| *night >= 45)
        });
        assert!(found.count() >= 95);
    }

    #[test]
    fn quiet_nights_cry_less_than_once_in_a_hundred() {
        let cries: usize = (0..100)
            .map(|seed| alarms(&series(75, seed, 0.06, |_| 1.0), Direction::LowerIsBetter).len())
            .sum();
        assert!(cries < 75, "{cries} of 7,500");
    }
}
