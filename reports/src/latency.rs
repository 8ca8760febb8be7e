//! What an answer cost, from when the operation was due: calm and under faults, writes and reads.
//!
//! Counting from when an operation was due and not from when it was sent is what makes a stall visible:
//! everything that had to wait behind it pays for it. An operation is calm when no fault was near it at any
//! moment between the two; one that was due just before a fault and answered long after it belongs to the
//! fault. Failed and unknown operations have no latency; they are counted elsewhere.
//!
//! Percentiles are of the nearest rank, out of an hdrhistogram with three significant digits; the maximum is
//! kept exactly.

use std::collections::BTreeMap;

use checker::history::{History, Outcome};
use hdrhistogram::Histogram;

use crate::faults::FaultRecord;
use crate::numbers::{NS_PER_MS, NS_PER_S, lossy, ns_to_ms};
use crate::operations::{due_ns, end_ns, is_update};
use crate::results::{LatencyClass, LatencySummary};

/// How long after a fault was seen to be gone an operation still counts as under faults.
pub const SETTLE_NS: u64 = 400 * NS_PER_MS;

/// Points of a percentile curve; the eye sees no more on the width it is drawn in.
const CURVE_POINTS: u32 = 120;

/// Significant decimal digits of the histogram.
const DIGITS: u8 = 3;

/// Answers slower than an hour are counted as this slow; their maximum is still exact.
const LONGEST_NS: u64 = 3600 * NS_PER_S;

/// One summary for each class that has answered operations.
pub fn summaries(history: &History, faults: &[FaultRecord]) -> BTreeMap<LatencyClass, LatencySummary> {
    let windows = windows(faults, end_ns(history));
    let mut classes: BTreeMap<LatencyClass, Collected> = BTreeMap::new();
    for op in history.ops().iter().filter(|op| op.outcome == Outcome::Ok) {
        let Some(completed) = op.complete_ns else { continue };
        let faulty = touches(&windows, due_ns(op), completed);
        let class = match (is_update(op), faulty) {
            (true, false) => LatencyClass::WriteCalm,
            (true, true) => LatencyClass::WriteFault,
            (false, false) => LatencyClass::ReadCalm,
            (false, true) => LatencyClass::ReadFault,
        };
        classes.entry(class).or_default().record(completed.saturating_sub(due_ns(op)));
    }
    classes.into_iter().map(|(class, collected)| (class, collected.summary())).collect()
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
        }
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
    use checker::history::{EventKind, Function};

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
        let found = summaries(&history(&[ok(Function::Write, 10 * MS, 14 * MS)]), &[]);
        assert_eq!(found[&LatencyClass::WriteCalm].max_ms, 4.0);
        assert_eq!(found[&LatencyClass::WriteCalm].p50_ms, 4.0);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn an_operation_that_spans_a_fault_belongs_to_the_fault() {
        let ops = [
            ok(Function::Cas, 90 * MS, 700 * MS),
            ok(Function::Read, 10 * MS, 11 * MS),
            ok(Function::Read, 599 * MS, 601 * MS),
            ok(Function::Read, 601 * MS, 602 * MS),
        ];
        let found = summaries(&history(&ops), &[fault(100, Some(200))]);
        assert_eq!(found[&LatencyClass::WriteFault].count, 1);
        assert_eq!(found[&LatencyClass::ReadFault].count, 1);
        assert_eq!(found[&LatencyClass::ReadCalm].count, 2);
    }

    #[test]
    fn a_leaked_fault_has_no_end() {
        let ops = [ok(Function::Read, 9000 * MS, 9001 * MS)];
        assert_eq!(summaries(&history(&ops), &[fault(100, None)])[&LatencyClass::ReadFault].count, 1);
    }

    #[test]
    fn failed_and_unknown_operations_have_no_latency() {
        let ops = [
            Sketch(Function::Write, MS, 3 * MS, EventKind::Info),
            Sketch(Function::Write, MS, 2 * MS, EventKind::Fail),
        ];
        assert!(summaries(&history(&ops), &[]).is_empty());
    }

    #[test]
    fn the_curve_rises_from_the_fastest_to_the_slowest() {
        let ops: Vec<Sketch> = (1..=1000).map(|n| ok(Function::Write, 0, n * MS)).collect();
        let summary = &summaries(&history(&ops), &[])[&LatencyClass::WriteCalm];
        assert!(summary.curve.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1));
        assert_eq!(summary.curve[0].0, 0.0);
        assert_eq!(summary.curve.last().expect("points").0, 99.9);
        assert_eq!(summary.curve.last().expect("points").1, 1000.0);
        assert!((summary.p99_ms - 990.0).abs() < 1.0);
    }

    #[test]
    fn equal_percentiles_are_merged_into_one_label() {
        let all = merged(&[("p50", 654.0), ("p90", 739.0), ("p99", 1418.0), ("max", 1418.0)]);
        assert_eq!(
            all,
            [("p50".to_owned(), 654.0), ("p90".to_owned(), 739.0), ("p99 = max".to_owned(), 1418.0)]
        );
    }
}
