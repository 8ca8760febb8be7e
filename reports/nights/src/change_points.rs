//! Since which night a series has its level: change points, as Hunter and its successor Apache Otava find
//! them.
//!
//! The split that divides a stretch best is found by the energy statistic of E-divisive (Matteson & James,
//! *A Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data*, arXiv 1306.4933).
//! Hunter (Fleming et al., ICPE 2023, arXiv 2301.03034) judges it by Student's t test instead of
//! permutations, so the answer is always the same; it looks through windows, first with a weaker threshold,
//! and then merges the weak points away. The steps here are those of Otava's `otava/analysis.py`
//! (`split`, `merge`) and `otava/change_point_divisive/calculator.py`, at commit 1ceb153.
//!
//! Six things differ, on purpose.
//! - Logarithms are compared, because times scatter by factors.
//! - The least change is one of medians, not of means.
//! - The variance is that of a sample (divided by n − 1). Otava hands the population's to a test that
//!   expects the sample's, and so is too sure of short levels.
//! - When a weak point is merged away, every p is computed anew. Otava leaves the one to its left.
//! - A level shorter than three nights joins a neighbour, so a disturbed night is no level.
//! - Nights without a value are left out. Otava fills them with the value before, and so sees less noise.
//!
//! With the first five undone, all nine lists of points in Otava's `tests/tigerbeetle_test.py` come out the
//! same. On synthetic nights the variance and the joining took the false alarms from 0.7 to 0.3 per 100
//! nights and left the finds nearly as they were (`examples/synthetic.rs`).

use runs::numbers::len_f64;

use crate::quantiles::{measured, median};
use crate::student::two_sided_p;

/// Means of logarithms nearer than this are equal: a billionth is no change of anything.
const SAME: f64 = 1e-9;

/// How change points are judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// A point's p is at most this.
    pub max_p: f64,
    /// The medians of two levels differ at least by this factor, either way: 1.05 is 5 %.
    pub least_change: f64,
    /// A level lasts so many measured nights at least, the newest too.
    pub least_nights: usize,
    /// Measured nights that are looked at together; the next window starts half of it later.
    pub window: usize,
}

impl Default for Rule {
    fn default() -> Self {
        Self { max_p: 0.001, least_change: 1.05, least_nights: 3, window: 50 }
    }
}

/// A night on which a series changed its level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index in the series of the first measured night of the new level.
    pub at: usize,
    /// The median of the level before, in the unit of the series.
    pub before: f64,
    /// The median of the new level, up to the next change point.
    pub after: f64,
    /// How likely the two levels differ so much by chance, by Student's t test (0 to 1).
    pub p: f64,
}

/// The change points of a series by the default rule, in order. `values` has one value a night, oldest
/// first; `None` is a night without a value. Values that are not finite and positive count as none.
#[must_use]
pub fn change_points(values: &[Option<f64>]) -> Vec<ChangePoint> {
    change_points_by(values, &Rule::default())
}

/// The change points of a series by another rule. A window of fewer than two nights is one of two.
#[must_use]
pub fn change_points_by(values: &[Option<f64>], rule: &Rule) -> Vec<ChangePoint> {
    let nights = measured(values);
    let logs: Vec<f64> = nights.iter().map(|(_, value)| value.ln()).collect();
    let lasting = joined(weak_points(&logs, rule), logs.len(), rule.least_nights);
    let kept = merged(&logs, lasting, rule);
    let level = |from: usize, to: usize| {
        median(&nights.get(from..to).unwrap_or_default().iter().map(|(_, value)| *value).collect::<Vec<_>>())
    };
    let points = neighbours(&kept, nights.len()).filter_map(|(from, at, to)| {
        let p = difference(logs.get(from..at)?, logs.get(at..to)?);
        Some(ChangePoint { at: nights.get(at)?.0, before: level(from, at)?, after: level(at, to)?, p })
    });
    points.collect()
}

/// Each point with the beginning of the level before it and the end of the level after it.
fn neighbours(points: &[usize], len: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    points.iter().enumerate().map(move |(i, &at)| {
        let from = i.checked_sub(1).and_then(|before| points.get(before)).copied().unwrap_or(0);
        (from, at, points.get(i + 1).copied().unwrap_or(len))
    })
}

/// The first pass: points at a weaker threshold, in windows that overlap by half, in order.
fn weak_points(logs: &[f64], rule: &Rule) -> Vec<usize> {
    let window = rule.window.max(2);
    let max_p = weaker(rule.max_p);
    let mut points: Vec<usize> = Vec::new();
    let mut start = 0;
    while start < logs.len() {
        let end = logs.len().min(start + window);
        let found: Vec<usize> = divided(&logs[start..end], max_p).iter().map(|at| start + at).collect();
        points.extend(&found);
        start = (start + window / 2).max(found.last().copied().unwrap_or(0));
    }
    points.sort_unstable();
    points.dedup();
    points
}

/// Otava's threshold for weak points.
fn weaker(max_p: f64) -> f64 {
    if max_p < 0.05 {
        max_p * 10.0
    } else if max_p < 0.5 {
        max_p * 2.0
    } else {
        max_p
    }
}

/// The points of one window, in order: the best split of all stretches is taken as long as it is
/// significant.
fn divided(logs: &[f64], max_p: f64) -> Vec<usize> {
    let distances = Distances::of(logs);
    let mut points: Vec<usize> = Vec::new();
    loop {
        let ends = points.iter().copied().chain([logs.len()]);
        let stretches = std::iter::once(0).chain(points.iter().copied()).zip(ends);
        let best = stretches
            .filter_map(|(from, to)| distances.best_split(from, to).map(|(q, at)| (q, from, at, to)))
            .reduce(|best, next| if next.0 > best.0 { next } else { best });
        let Some((_, from, at, to)) = best else { return points };
        if difference(&logs[from..at], &logs[at..to]) > max_p {
            return points;
        }
        points.insert(points.partition_point(|point| *point < at), at);
    }
}

/// The points without levels shorter than `least`: the shortest joins the longer of its neighbours, which
/// its values change the least, until none is left.
fn joined(mut points: Vec<usize>, len: usize, least: usize) -> Vec<usize> {
    while !points.is_empty() {
        let lengths: Vec<usize> = std::iter::once(0)
            .chain(points.iter().copied())
            .zip(points.iter().copied().chain([len]))
            .map(|(from, to)| to - from)
            .collect();
        let shortest = lengths.iter().enumerate().min_by_key(|(_, length)| **length);
        let Some((at, _)) = shortest.filter(|(_, length)| **length < least) else { break };
        let left = at.checked_sub(1).and_then(|before| lengths.get(before));
        // The level `at` lies between the points `at - 1` and `at`.
        points.remove(if left >= lengths.get(at + 1) { at - 1 } else { at });
    }
    points
}

/// The second pass: the weakest point goes until all are strong. That is the one with the largest p; where
/// no p is too large, the one with the smallest change.
fn merged(logs: &[f64], mut points: Vec<usize>, rule: &Rule) -> Vec<usize> {
    loop {
        let judged: Vec<(f64, f64)> = neighbours(&points, logs.len())
            .map(|(from, at, to)| (difference(&logs[from..at], &logs[at..to]), change(logs, from, at, to)))
            .collect();
        let indexed = || judged.iter().enumerate();
        let unlikely =
            indexed().max_by(|(_, a), (_, b)| a.0.total_cmp(&b.0)).filter(|(_, (p, _))| *p > rule.max_p);
        let smallest = indexed().min_by(|(_, a), (_, b)| a.1.total_cmp(&b.1));
        let small = smallest.filter(|(_, (_, change))| *change < rule.least_change.ln());
        let Some((weakest, _)) = unlikely.or(small) else { return points };
        points.remove(weakest);
    }
}

/// By how much the medians of the logarithms differ on both sides of a point.
fn change(logs: &[f64], from: usize, at: usize, to: usize) -> f64 {
    median(&logs[at..to]).zip(median(&logs[from..at])).map_or(0.0, |(after, before)| (after - before).abs())
}

/// The p of Student's t test with a common variance, two-sided (`scipy.stats.ttest_ind`, as Otava calls
/// it). 1 where there are too few values to tell.
fn difference(left: &[f64], right: &[f64]) -> f64 {
    let (n, m) = (len_f64(left.len()), len_f64(right.len()));
    let Some(degrees) = (left.len() + right.len()).checked_sub(2).filter(|degrees| *degrees > 0) else {
        return 1.0;
    };
    if left.is_empty() || right.is_empty() {
        return 1.0;
    }
    let (mean_left, mean_right) = (left.iter().sum::<f64>() / n, right.iter().sum::<f64>() / m);
    let squares = |values: &[f64], mean: f64| values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let variance = (squares(left, mean_left) + squares(right, mean_right)) / len_f64(degrees);
    let apart = (mean_left - mean_right).abs();
    // Equal values may differ in their last digit once they are added up.
    if apart < SAME { 1.0 } else { two_sided_p(apart / (variance * (1.0 / n + 1.0 / m)).sqrt(), degrees) }
}

/// Sums of the distances of all values of a window, so that any rectangle of them is a matter of four
/// look-ups: `sums[i * (len + 1) + j]` adds up those of the first `i` values to the first `j`.
struct Distances {
    sums: Vec<f64>,
    width: usize,
}

impl Distances {
    fn of(values: &[f64]) -> Self {
        let width = values.len() + 1;
        let mut sums = vec![0.0; width * width];
        for (i, value) in values.iter().enumerate() {
            let mut row = 0.0;
            for (j, other) in values.iter().enumerate() {
                row += (value - other).abs();
                sums[(i + 1) * width + j + 1] = sums[i * width + j + 1] + row;
            }
        }
        Self { sums, width }
    }

    /// The distances of the values `rows` to the values `columns`, added up.
    fn between(&self, rows: (usize, usize), columns: (usize, usize)) -> f64 {
        let up_to = |i: usize, j: usize| self.sums[i * self.width + j];
        up_to(rows.1, columns.1) - up_to(rows.0, columns.1) - up_to(rows.1, columns.0)
            + up_to(rows.0, columns.0)
    }

    /// The split of a stretch with the largest Q and that Q; none of fewer than two values. Q(τ, κ)
    /// compares the values from `from` to τ with those from τ to κ, and every κ up to `to` is tried, so
    /// that a later change does not hide an earlier one.
    fn best_split(&self, from: usize, to: usize) -> Option<(f64, usize)> {
        let mut best: Option<(f64, usize)> = None;
        for tau in from + 1..to {
            let n = len_f64(tau - from);
            // Of a single value there are no distances, and the divisor does not matter.
            let left = self.between((from, tau), (from, tau)) / (n - 1.0).max(1.0);
            for kappa in tau + 1..=to {
                let m = len_f64(kappa - tau);
                let right = self.between((tau, kappa), (tau, kappa)) / (m - 1.0).max(1.0);
                let across = self.between((from, tau), (tau, kappa));
                // Otava's formula; each pair within a side was added up twice here.
                let q = (2.0 * across - m * left - n * right) / (m + n);
                if best.is_none_or(|(most, _)| q > most) {
                    best = Some((q, tau));
                }
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;

    fn series(nights: usize, seed: u64, level: impl Fn(usize) -> f64) -> Vec<Option<f64>> {
        let mut noise = Noise(seed);
        (0..nights).map(|night| Some(10.0 * level(night) * noise.factor(0.06))).collect()
    }

    fn places(values: &[Option<f64>]) -> Vec<usize> {
        change_points(values).iter().map(|point| point.at).collect()
    }

    /// The first 95 of the values in Otava's `tests/tigerbeetle_test.py` (Apache-2.0). Its old defaults
    /// find 15 and 71 in the whole, and night 10 is an outlier.
    const TIGER_BEETLE: [u32; 95] = [
        26705, 26475, 26641, 26806, 26835, 26911, 26564, 26812, 26874, 26682, 15672, 26745, 26460, 26977,
        26851, 23412, 23547, 23674, 23519, 23670, 23662, 23462, 23750, 23717, 23524, 23588, 23687, 23793,
        23937, 23715, 23570, 23730, 23690, 23699, 23670, 23860, 23988, 23652, 23681, 23798, 23728, 23604,
        23523, 23412, 23685, 23773, 23771, 23718, 23409, 23739, 23674, 23597, 23682, 23680, 23711, 23660,
        23990, 23938, 23742, 23703, 23536, 24363, 24414, 24483, 24509, 24944, 24235, 24560, 24236, 24667,
        24730, 28346, 28437, 28436, 28057, 28217, 28456, 28427, 28398, 28250, 28331, 28222, 28726, 28578,
        28345, 28274, 28514, 28590, 28449, 28305, 28411, 28788, 28404, 28821, 28580,
    ];

    #[test]
    fn the_points_of_the_tigerbeetle_series_are_those_of_otava() {
        let values: Vec<Option<f64>> = TIGER_BEETLE.iter().map(|value| Some(f64::from(*value))).collect();
        let points = change_points(&values);
        assert_eq!(points.iter().map(|point| point.at).collect::<Vec<_>>(), [15, 71]);
        assert_eq!((points[0].before, points[0].after), (26745.0, 23707.0));
        assert!(points.iter().all(|point| point.p <= 0.001));
    }

    #[test]
    fn a_step_of_half_is_seen_within_three_nights() {
        for seed in 0..20 {
            let values = series(48, seed, |night| if night < 45 { 1.0 } else { 1.5 });
            assert_eq!(places(&values), [45], "seed {seed}");
            assert!(places(&values[..47]).is_empty(), "two nights are no level: seed {seed}");
        }
    }

    #[test]
    fn up_and_down_again_are_two_points_with_the_medians_between() {
        let values = series(120, 3, |night| if (40..80).contains(&night) { 1.3 } else { 1.0 });
        let points = change_points(&values);
        assert_eq!(points.iter().map(|point| point.at).collect::<Vec<_>>(), [40, 80]);
        assert!((points[0].after - 13.0).abs() < 0.5 && (points[1].after - 10.0).abs() < 0.5, "{points:?}");
        assert_eq!(points[0].after.to_bits(), points[1].before.to_bits());
    }

    #[test]
    fn one_or_two_disturbed_nights_are_no_level() {
        for disturbed in [1, 2] {
            for seed in 0..20 {
                let at = 30..30 + disturbed;
                let values = series(60, seed, |night| if at.contains(&night) { 2.0 } else { 1.0 });
                assert!(places(&values).is_empty(), "seed {seed}");
            }
        }
    }

    #[test]
    fn less_than_five_per_cent_is_no_point_however_sure() {
        let exact = |level: f64| (0..60).map(|n| Some(if n < 30 { 10.0 } else { level })).collect::<Vec<_>>();
        assert!(places(&exact(10.4)).is_empty());
        assert_eq!(places(&exact(10.6)), [30]);
        assert_eq!(change_points(&exact(10.6))[0].p.to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn the_index_counts_nights_without_a_value() {
        let mut values = series(60, 1, |night| if night < 30 { 1.0 } else { 1.5 });
        for at in [3, 4, 30, 31, 50] {
            values[at] = [None, Some(f64::NAN), Some(0.0)][at % 3];
        }
        assert_eq!(places(&values), [32]);
    }

    #[test]
    fn nothing_panics_on_what_is_no_measurement() {
        for bad in [None, Some(f64::NAN), Some(f64::INFINITY), Some(0.0), Some(-1.0)] {
            for nights in [0, 1, 2, 3, 60] {
                assert!(places(&vec![bad; nights]).is_empty());
            }
        }
        let mut extremes = vec![Some(f64::MAX); 20];
        extremes.extend([Some(f64::MIN_POSITIVE / 4.0); 20]);
        assert_eq!(places(&extremes), [20]);
        let odd = Rule { max_p: f64::NAN, least_change: 0.0, least_nights: 0, window: 0 };
        assert!(change_points_by(&extremes, &odd).len() < 40);
    }

    #[test]
    fn the_best_split_is_that_of_the_formula_written_out() {
        let values: Vec<f64> =
            series(14, 9, |night| if night < 6 { 1.0 } else { 1.4 }).into_iter().flatten().collect();
        let distances = |left: &[f64], right: &[f64]| -> f64 {
            left.iter().flat_map(|a| right.iter().map(move |b| (a - b).abs())).sum::<f64>()
        };
        let mut best = (f64::NEG_INFINITY, 0);
        for tau in 1..values.len() {
            for kappa in tau + 1..=values.len() {
                let (left, right) = (&values[..tau], &values[tau..kappa]);
                let (n, m) = (len_f64(left.len()), len_f64(right.len()));
                let within = |side: &[f64], k: f64| {
                    if k > 1.0 { distances(side, side) / (k * (k - 1.0)) } else { 0.0 }
                };
                let energy = 2.0 / (n * m) * distances(left, right) - within(left, n) - within(right, m);
                let q = n * m / (n + m) * energy;
                if q > best.0 {
                    best = (q, tau);
                }
            }
        }
        let found = Distances::of(&values).best_split(0, values.len()).unwrap_or_default();
        assert!((found.0 - best.0).abs() < 1e-9 && found.1 == best.1, "{found:?} {best:?}");
    }

    #[test]
    fn the_test_is_students_with_a_common_variance() {
        // From Otava's `tests/analysis_test.py`: equal halves, and a drop of a fifth.
        let first = [1.00, 1.02, 1.05, 0.95, 0.98];
        assert!(difference(&first, &first) > 0.99);
        assert!(difference(&first, &[0.80, 0.82, 0.85, 0.79, 0.77]) < 0.001);
        // t = 2 / sqrt(1 * (1/3 + 1/3)) with 4 degrees of freedom.
        let p = difference(&[1.0, 2.0, 3.0], &[3.0, 4.0, 5.0]);
        assert!((p - two_sided_p(6.0_f64.sqrt(), 4)).abs() < 1e-12, "{p}");
    }
}
