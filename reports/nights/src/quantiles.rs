//! Which values of a series count, and their quantiles, which the fence and the change points share.
//!
//! A night's figure is a time or a rate: finite and above zero. Anything else is a measurement that failed,
//! and it is left out, as a night without a value is.

use runs::numbers::len_f64;

/// The measured nights of a series: index in `values` and value, oldest first. Values that are not finite
/// and positive are left out.
#[must_use]
pub fn measured(values: &[Option<f64>]) -> Vec<(usize, f64)> {
    let nights = values.iter().enumerate();
    nights.filter_map(|(at, value)| value.filter(|value| counts(*value)).map(|value| (at, value))).collect()
}

/// Whether a value counts: finite and above zero.
#[must_use]
pub fn counts(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// The quantile at `share` (0 to 1) of values in ascending order, by linear interpolation between the two
/// nearest: type 7 of Hyndman & Fan (1996), the default of R and NumPy. None of no values.
#[must_use]
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = share.clamp(0.0, 1.0) * len_f64(last);
    // Walking is slower than a cast, and a series has some hundred nights.
    let below = (0..last).take_while(|at| len_f64(at + 1) <= position).count();
    let (low, high) = (*sorted.get(below)?, *sorted.get((below + 1).min(last))?);
    Some(low + (high - low) * (position - len_f64(below)))
}

/// The median of values in any order; the mean of the middle two where their number is even.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(&sorted(values), 0.5)
}

/// The values in ascending order.
#[must_use]
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_interpolated_between_neighbours() {
        let values = [1.0, 2.0, 4.0, 8.0];
        let quartiles = [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| quantile(&values, share));
        assert_eq!(quartiles, [1.0, 1.75, 3.0, 5.0, 8.0].map(Some));
        assert_eq!((quantile(&[], 0.5), quantile(&[7.0], 0.75)), (None, Some(7.0)));
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
    }

    #[test]
    fn what_is_no_measurement_is_left_out_and_the_indexes_stay() {
        let values = [None, Some(f64::NAN), Some(2.0), Some(-1.0), Some(f64::INFINITY), Some(0.0), Some(3.0)];
        assert_eq!(measured(&values), [(2, 2.0), (6, 3.0)]);
    }
}
