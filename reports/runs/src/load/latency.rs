//! What an answer cost, from when the operation was due: calm and under faults; writes, compare-and-sets and
//! reads.
//!
//! Counting from when an operation was due and not from when it was sent is what makes a stall visible:
//! everything that had to wait behind it pays for it. An operation is calm when no fault was near it at any
//! moment between the two; one that was due just before a fault and answered long after it belongs to the
//! fault. Failed and unknown operations have no latency; they are counted elsewhere.
//!
//! Percentiles are of the nearest rank, out of an hdrhistogram with three significant digits; the maximum is
//! kept exactly.

use std::collections::BTreeMap;

use checker::history::{Function, History, Op, Outcome};
use hdrhistogram::Histogram;

use crate::election_kinds::ENOUGH;
use crate::faults::FaultRecord;
use crate::numbers::{NS_PER_MS, NS_PER_S, lossy, nearest_rank, ns_to_ms};
use crate::operations::{due_ns, end_ns, is_update};
use crate::results::{LatencyClass, LatencySummary};
use crate::unsent::overlaps;

/// How long after a fault was seen to be gone an operation still counts as under faults.
pub const SETTLE_NS: u64 = 400 * NS_PER_MS;

/// Points of a percentile curve; the eye sees no more on the width it is drawn in.
const CURVE_POINTS: u32 = 120;

/// Significant decimal digits of the histogram.
const DIGITS: u8 = 3;

/// Bins of the histogram for a factor of ten.
pub const BINS_PER_DECADE: f64 = 10.0;

/// What is faster counts as this slow in the histogram.
const FASTEST_MS: f64 = 0.001;

/// Answers slower than an hour are counted as this slow; their maximum is still exact.
const LONGEST_NS: u64 = 3600 * NS_PER_S;

/// One summary for each class that has answered operations. Those that fell due in a stretch in which the
/// bench could not send all measure the bench, and are left out; stretches are in order and apart.
pub fn summaries(
    history: &History,
    faults: &[FaultRecord],
    stretches: &[(u64, u64)],
) -> BTreeMap<LatencyClass, LatencySummary> {
    let windows = windows(faults, end_ns(history));
    let mut classes: BTreeMap<LatencyClass, Collected> = BTreeMap::new();
    let measures = |op: &&Op| op.outcome == Outcome::Ok && !overlaps(stretches, (due_ns(op), due_ns(op)));
    for op in history.ops().iter().filter(measures) {
        let Some(completed) = op.complete_ns else { continue };
        let faulty = touches(&windows, due_ns(op), completed);
        let class = match (op.f == Function::CAS, is_update(op), faulty) {
            (true, _, false) => LatencyClass::CasCalm,
            (true, _, true) => LatencyClass::CasFault,
            (false, true, false) => LatencyClass::WriteCalm,
            (false, true, true) => LatencyClass::WriteFault,
            (false, false, false) => LatencyClass::ReadCalm,
            (false, false, true) => LatencyClass::ReadFault,
        };
        classes.entry(class).or_default().record(completed.saturating_sub(due_ns(op)));
    }
    classes.into_iter().map(|(class, collected)| (class, collected.summary())).collect()
}

/// A summary of what was counted elsewhere: pairs of a length in ns and how many were that long.
pub fn counted(lengths: impl IntoIterator<Item = (u64, u64)>) -> Option<LatencySummary> {
    let mut collected = Collected::default();
    for (ns, number) in lengths.into_iter().filter(|(_, number)| *number > 0) {
        collected.max_ns = collected.max_ns.max(ns);
        collected.histogram.saturating_record_n(ns, number);
    }
    (!collected.histogram.is_empty()).then(|| collected.summary())
}

/// What updates cost in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Its beginning.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
    /// Updates that were due in it and acknowledged.
    pub count: usize,
    /// Their median.
    pub p50_ms: f64,
    /// The ninetieth percentile, where there are enough of them to have one.
    pub p90_ms: Option<f64>,
    /// The ninety-ninth.
    pub p99_ms: Option<f64>,
    /// The slowest.
    pub max_ms: f64,
}

/// Updates that a stretch of time is to have, on average, for its percentiles to mean something.
const ENOUGH_IN_A_STRETCH: usize = 100;
/// Stretches of a run at most and, where updates are rare, at least.
const STRETCHES: (u64, u64) = (150, 20);

/// What acknowledged updates cost over time, by when they were due; stretches in which none was due are left
/// out.
pub fn over_time(history: &History, end_ns: u64) -> Vec<Stretch> {
    let mut updates: Vec<(u64, u64)> = history
        .ops()
        .iter()
        .filter(|op| op.outcome == Outcome::Ok && is_update(op))
        .filter_map(|op| Some((due_ns(op), op.complete_ns?.saturating_sub(due_ns(op)))))
        .collect();
    if updates.is_empty() || end_ns == 0 {
        return Vec::new();
    }
    updates.sort_unstable();
    let wanted = u64::try_from(updates.len() / ENOUGH_IN_A_STRETCH).unwrap_or(u64::MAX);
    let number = wanted.clamp(STRETCHES.1, STRETCHES.0);
    let length = (end_ns / number).max(1);
    let mut stretches = Vec::new();
    let mut rest = updates.as_slice();
    while let Some((first, _)) = rest.first() {
        let place = first / length;
        let here = rest.partition_point(|(due, _)| due / length == place);
        let mut took: Vec<f64> = rest[..here].iter().map(|(_, ns)| ns_to_ms(*ns)).collect();
        took.sort_by(f64::total_cmp);
        let at = |rank| nearest_rank(&took, rank).unwrap_or(0.0);
        let [_, p90, p99] = ENOUGH.map(|(rank, least)| (took.len() >= least).then(|| at(rank)));
        stretches.push(Stretch {
            from_ns: place * length,
            to_ns: (place + 1).saturating_mul(length).min(end_ns.max(place * length)),
            count: took.len(),
            p50_ms: at(50.0),
            p90_ms: p90,
            p99_ms: p99,
            max_ms: at(100.0),
        });
        rest = &rest[here..];
    }
    stretches
}

/// The intervals that count as under faults, merged and in order.
fn windows(faults: &[FaultRecord], end_ns: u64) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = faults
        .iter()
        .filter_map(|fault| {
            fault.interval(end_ns).map(|(_, gone)| (fault.asked_ns, gone.saturating_add(SETTLE_NS)))
        })
        .collect();
    all.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (from, to) in all {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

fn touches(windows: &[(u64, u64)], from: u64, to: u64) -> bool {
    let first = windows.partition_point(|window| window.1 < from);
    windows.get(first).is_some_and(|window| window.0 <= to)
}

/// Latencies of one class, in ns.
struct Collected {
    histogram: Histogram<u64>,
    max_ns: u64,
}

impl Default for Collected {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)
            .expect("the bounds and the digits are within what the histogram allows");
        Self { histogram, max_ns: 0 }
    }
}

impl Collected {
    fn record(&mut self, ns: u64) {
        self.max_ns = self.max_ns.max(ns);
        self.histogram.saturating_record(ns);
    }

    /// The value at a quantile, never above the greatest that was measured although a bucket is wider.
    fn at(&self, quantile: f64) -> f64 {
        ns_to_ms(self.histogram.value_at_quantile(quantile).min(self.max_ns))
    }

    fn summary(&self) -> LatencySummary {
        LatencySummary {
            count: self.histogram.len(),
            p50_ms: self.at(0.5),
            p90_ms: self.at(0.9),
            p99_ms: self.at(0.99),
            p999_ms: self.at(0.999),
            max_ms: ns_to_ms(self.max_ns),
            curve: self.curve(),
            histogram: self.bins(),
        }
    }

    /// How many were how long, by the bins of the page's histogram.
    fn bins(&self) -> Vec<(f64, u64)> {
        let mut bins: Vec<(f64, u64)> = Vec::new();
        for value in self.histogram.iter_recorded() {
            let ms = ns_to_ms(self.histogram.lowest_equivalent(value.value_iterated_to())).max(FASTEST_MS);
            // Just below the edge counts as below it, whatever rounding makes of it.
            let place = (ms.log10() * BINS_PER_DECADE - 1e-9).floor() + 1.0;
            let upper = 10_f64.powf(place / BINS_PER_DECADE);
            let upper = (upper * 1e6).round() / 1e6;
            match bins.last_mut() {
                Some(last) if same(last.0, upper) => last.1 += value.count_at_value(),
                _ => bins.push((upper, value.count_at_value())),
            }
        }
        bins
    }

    /// Points at equal steps of "how many nines", up to the one operation that is the slowest.
    fn curve(&self) -> Vec<(f64, f64)> {
        let nines = lossy(self.histogram.len()).log10();
        let mut points: Vec<(f64, f64)> = Vec::new();
        for step in 0..=CURVE_POINTS {
            let left_above = 10_f64.powf(-nines * f64::from(step) / f64::from(CURVE_POINTS));
            let quantile = 1.0 - left_above;
            // Its last point is the slowest operation: nothing but itself is left at or above it.
            let value = if step == CURVE_POINTS { ns_to_ms(self.max_ns) } else { self.at(quantile) };
            // Rounded, so that a file of results is not full of digits that mean nothing.
            let point = ((quantile * 1e7).round() / 1e5, (value * 1e4).round() / 1e4);
            // Points on a level stretch are drawn by their ends alone.
            let level = points.len() >= 2 && points[points.len() - 2..].iter().all(|p| same(p.1, point.1));
            if level {
                points.pop();
            }
            points.push(point);
        }
        points
    }
}

fn same(a: f64, b: f64) -> bool {
    (a - b).abs() < f64::EPSILON
}

/// Percentiles with names, equal ones merged: `p99 = max`. Where two ranks fall on one measured value, two
/// labels with one number would look like two findings.
pub fn merged(named: &[(&str, f64)]) -> Vec<(String, f64)> {
    let mut out: Vec<(String, f64)> = Vec::new();
    for (name, value) in named {
        match out.last_mut() {
            Some(last) if same(last.1, *value) => {
                last.0.push_str(" = ");
                last.0.push_str(name);
            }
            _ => out.push(((*name).to_owned(), *value)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::test_data::{Sketch, history, ok};
    use checker::history::EventKind;

    const MS: u64 = NS_PER_MS;

    fn fault(asked: u64, gone: Option<u64>) -> FaultRecord {
        FaultRecord {
            asked_ns: asked * MS,
            injected_ns: Some(asked * MS),
            verified_healed_ns: gone.map(|at| at * MS),
            ..FaultRecord::default()
        }
    }

    #[test]
    fn latency_counts_from_when_an_operation_was_due() {
        let found = summaries(&history(&[ok(Function::WRITE, 10 * MS, 14 * MS)]), &[], &[]);
        assert_eq!(found[&LatencyClass::WriteCalm].max_ms, 4.0);
        assert_eq!(found[&LatencyClass::WriteCalm].p50_ms, 4.0);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn an_operation_that_spans_a_fault_belongs_to_the_fault() {
        let ops = [
            ok(Function::CAS, 90 * MS, 700 * MS),
            ok(Function::READ, 10 * MS, 11 * MS),
            ok(Function::READ, 599 * MS, 601 * MS),
            ok(Function::READ, 601 * MS, 602 * MS),
        ];
        let found = summaries(&history(&ops), &[fault(100, Some(200))], &[]);
        assert_eq!(found[&LatencyClass::CasFault].count, 1);
        assert_eq!(found[&LatencyClass::ReadFault].count, 1);
        assert_eq!(found[&LatencyClass::ReadCalm].count, 2);
    }

    #[test]
    fn a_leaked_fault_has_no_end() {
        let ops = [ok(Function::READ, 9000 * MS, 9001 * MS)];
        assert_eq!(summaries(&history(&ops), &[fault(100, None)], &[])[&LatencyClass::ReadFault].count, 1);
    }

    #[test]
    fn failed_and_unknown_operations_have_no_latency() {
        let ops = [
            Sketch(Function::WRITE, MS, 3 * MS, EventKind::Info),
            Sketch(Function::WRITE, MS, 2 * MS, EventKind::Fail),
        ];
        assert!(summaries(&history(&ops), &[], &[]).is_empty());
    }

    #[test]
    fn the_curve_rises_from_the_fastest_to_the_slowest() {
        let ops: Vec<Sketch> = (1..=1000).map(|n| ok(Function::WRITE, 0, n * MS)).collect();
        let summary = &summaries(&history(&ops), &[], &[])[&LatencyClass::WriteCalm];
        assert!(summary.curve.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1));
        assert_eq!(summary.curve[0].0, 0.0);
        assert_eq!(summary.curve.last().expect("points").0, 99.9);
        assert_eq!(summary.curve.last().expect("points").1, 1000.0);
        assert!((summary.p99_ms - 990.0).abs() < 1.0);
    }

    #[test]
    fn each_percentile_is_of_its_own_rank() {
        let ops: Vec<Sketch> = (1..=1000).map(|n| ok(Function::WRITE, 0, n * MS)).collect();
        let found = &summaries(&history(&ops), &[], &[])[&LatencyClass::WriteCalm];
        let told = [found.p50_ms, found.p90_ms, found.p99_ms, found.p999_ms].map(f64::round);
        for (told, rank) in told.into_iter().zip([500.0, 900.0, 990.0, 999.0]) {
            assert!((told - rank).abs() <= 1.0, "{told} for {rank}");
        }
        assert_eq!((found.count, found.max_ms), (1000, 1000.0));
    }

    #[test]
    fn the_histogram_has_every_answer_once_in_bins_of_a_tenth_of_a_decade() {
        let ops: Vec<Sketch> = (1..=1000).map(|n| ok(Function::WRITE, 0, n * MS)).collect();
        let bins = &summaries(&history(&ops), &[], &[])[&LatencyClass::WriteCalm].histogram;
        assert_eq!(bins.iter().map(|bin| bin.1).sum::<u64>(), 1000);
        assert!(bins.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!((bins[0], bins.last().map(|bin| bin.0)), ((1.0, 1), Some(1000.0)));
        assert!(bins.len() <= 31, "{}", bins.len());
    }

    #[test]
    fn what_leaders_counted_is_summed_up_like_what_clients_saw() {
        let summary = counted([(MS, 98), (5 * MS, 2), (9 * MS, 0)]).expect("a hundred");
        assert_eq!((summary.count, summary.max_ms), (100, 5.0));
        assert!((summary.p50_ms - 1.0).abs() < 0.01 && (summary.p99_ms - 5.0).abs() < 0.01);
        assert_eq!(counted([]), None);
    }

    #[test]
    fn over_time_each_stretch_has_its_own_percentiles_and_none_that_it_is_too_small_for() {
        // Twenty stretches of 100 ms: twelve writes in the first, slower by and by, and one in the last.
        let mut ops: Vec<Sketch> = (1..=12).map(|n| ok(Function::WRITE, n * MS, 2 * n * MS)).collect();
        ops.push(ok(Function::WRITE, 1950 * MS, 1999 * MS));
        ops.push(ok(Function::READ, 1000 * MS, 1001 * MS));
        let found = over_time(&history(&ops), 2000 * MS);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].from_ns, found[0].to_ns, found[0].count), (0, 100 * MS, 12));
        assert_eq!((found[0].p50_ms, found[0].p90_ms, found[0].p99_ms), (6.0, Some(11.0), None));
        assert_eq!((found[1].p90_ms, found[1].max_ms), (None, 49.0));
    }

    #[test]
    fn equal_percentiles_are_merged_into_one_label() {
        let all = merged(&[("p50", 654.0), ("p90", 739.0), ("p99", 1418.0), ("max", 1418.0)]);
        assert_eq!(
            all,
            [("p50".to_owned(), 654.0), ("p90".to_owned(), 739.0), ("p99 = max".to_owned(), 1418.0)]
        );
    }

    #[test]
    fn what_fell_due_while_the_bench_could_not_send_all_measures_nothing() {
        let ops = [ok(Function::WRITE, 10 * MS, 14 * MS), ok(Function::WRITE, 30 * MS, 900 * MS)];
        let found = summaries(&history(&ops), &[], &[(20 * MS, 40 * MS)]);
        assert_eq!(found[&LatencyClass::WriteCalm].count, 1);
    }
}
