//! What the numbers of a case must be, in k6's words: a metric, and `p99 < 50ms` or `max < 1s` of it.
//!
//! A percentile of few samples is an anecdote. So each threshold knows how many samples it needs, pooled over
//! a night's runs of the case, and one that has too few is refused by the number that is missing. It is never
//! silently met.

use serde::{Deserialize, Serialize};

use runs::numbers::count;

use crate::measures::{Metric, Samples};
use crate::statistic::{Statistic, Unit};

/// One threshold of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// What is measured.
    pub metric: Metric,
    /// What of it counts.
    pub statistic: Statistic,
    /// How it is compared.
    pub comparison: Comparison,
    /// The limit, in the metric's unit: ms, operations a second, or a share from 0 to 1.
    pub limit: f64,
    /// As it was written.
    pub text: String,
}

/// How a number is compared with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// It must be smaller.
    Below,
    /// It must not be larger.
    AtMost,
    /// It must be larger.
    Above,
    /// It must not be smaller.
    AtLeast,
    /// It must be this one.
    Is,
}

/// What became of a threshold in a night.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The metric, and what was asked of it: `elections{kill-leader} p50 < 100ms`.
    pub threshold: String,
    /// What came out.
    pub outcome: Outcome,
    /// The number, where there is one, in the metric's unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The samples behind it.
    pub samples: u64,
    /// The same in a sentence.
    pub sentence: String,
}

/// Whether a threshold was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Met.
    Met,
    /// Crossed: a regression.
    Crossed,
    /// Not judged, because there were too few samples.
    TooFew,
}

impl Comparison {
    const WORDS: [(&'static str, Self); 5] = [
        ("<=", Self::AtMost),
        (">=", Self::AtLeast),
        ("==", Self::Is),
        ("<", Self::Below),
        (">", Self::Above),
    ];

    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
            Self::Above => value > limit,
            Self::AtLeast => value >= limit,
            Self::Is => (value - limit).abs() < 1e-9,
        }
    }
}

impl Threshold {
    /// Reads a metric and what is asked of it.
    ///
    /// # Errors
    ///
    /// What is wrong, and what to write instead.
    pub fn parse(metric: &str, expression: &str) -> Result<Self, String> {
        let metric = Metric::parse(metric)?;
        let shape = || {
            format!(
                "{metric}: `{expression}` is no threshold: write a statistic (p50, p99, max, min, mean, \
                 count), one of < <= > >= ==, and a limit, like `p50 < 100ms`"
            )
        };
        let (at, word, comparison) = Comparison::WORDS
            .iter()
            .filter_map(|(word, comparison)| expression.find(word).map(|at| (at, *word, *comparison)))
            .min_by_key(|(at, word, _)| (*at, usize::MAX - word.len()))
            .ok_or_else(shape)?;
        let statistic = expression[..at].trim();
        let limit = expression[at + word.len()..].trim();
        let statistic = match (statistic, metric.is_one_number()) {
            ("" | "rate", true) => Statistic::Mean,
            (text, _) => Statistic::parse(text).ok_or_else(shape)?,
        };
        if statistic == Statistic::Mean && metric.is_latency() {
            return Err(format!("{metric}: a run keeps no mean of its latencies; write p50, p90 or p99"));
        }
        let unit = if statistic == Statistic::Count { Unit::Number } else { metric.unit() };
        let limit = unit.parse(limit).map_err(|why| format!("{metric}: {why}"))?;
        let text = format!("{metric} {}", expression.trim());
        Ok(Self { metric, statistic, comparison, limit, text })
    }

    /// The samples that it needs.
    pub fn needs(&self) -> u64 {
        self.statistic.needs()
    }

    /// Judges a night's samples.
    pub fn judge(&self, samples: &Samples) -> Judgement {
        let have = samples.count();
        let need = self.needs();
        let unit = if self.statistic == Statistic::Count { Unit::Number } else { self.metric.unit() };
        let value = samples.statistic(self.statistic).filter(|_| have >= need);
        let (outcome, sentence) = match value {
            None => (
                Outcome::TooFew,
                format!("{}: {} samples of the {} that it needs", self.text, count(have), count(need)),
            ),
            Some(value) if self.comparison.holds(value, self.limit) => {
                (Outcome::Met, format!("{}: {} of {}", self.text, unit.show(value), count(have)))
            }
            Some(value) => {
                (Outcome::Crossed, format!("{}: it is {} of {}", self.text, unit.show(value), count(have)))
            }
        };
        Judgement { threshold: self.text.clone(), outcome, value, samples: have, sentence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(metric: &str, expression: &str, values: &[f64]) -> Judgement {
        let threshold = Threshold::parse(metric, expression).expect("a threshold");
        threshold.judge(&Samples::of_values(values.to_vec()))
    }

    #[test]
    fn limits_are_read_in_the_unit_of_what_is_measured() {
        for (metric, expression, limit) in [
            ("outage", "max < 1s", 1000.0),
            ("elections{kill-leader}", "p(99)<50ms", 50.0),
            ("operations", "rate >= 900/s", 900.0),
            ("operations", ">= 900", 900.0),
            ("unknown", "rate < 5%", 0.05),
            ("faults.verified", "== 100%", 1.0),
            ("elections", "count > 3", 3.0),
        ] {
            let threshold = Threshold::parse(metric, expression).expect(expression);
            assert!((threshold.limit - limit).abs() < 1e-9, "{threshold:?}");
        }
    }

    #[test]
    fn a_percentile_of_too_few_is_not_judged_and_says_how_many_it_needs() {
        let seven = judged("elections{kill-leader}", "p99 < 50ms", &[1.0; 7]);
        assert_eq!(seven.outcome, Outcome::TooFew);
        assert!(seven.sentence.contains("7 samples of the 100"), "{}", seven.sentence);
        for (rank, need) in [(50.0, 3), (75.0, 4), (90.0, 10), (95.0, 20), (99.0, 100), (99.9, 1000)] {
            assert_eq!(Statistic::Percentile(rank).needs(), need, "p{rank}");
        }
        assert_eq!(judged("outage", "max < 1s", &[]).outcome, Outcome::TooFew);
    }

    #[test]
    fn a_number_beyond_its_limit_crosses_it() {
        assert_eq!(judged("outage", "max < 1s", &[200.0, 999.0]).outcome, Outcome::Met);
        assert_eq!(judged("outage", "max < 1s", &[200.0, 1000.0]).outcome, Outcome::Crossed);
        assert_eq!(judged("outage", "max <= 1s", &[200.0, 1000.0]).outcome, Outcome::Met);
        assert_eq!(judged("faults.verified", "== 100%", &[1.0, 0.9]).outcome, Outcome::Crossed);
        assert_eq!(judged("elections", "count >= 2", &[]).outcome, Outcome::Crossed);
    }

    #[test]
    fn what_is_no_threshold_is_refused_with_what_to_write() {
        for (metric, expression, advice) in [
            ("latency", "p99 < 1s", "there is no metric `latency`"),
            ("outage", "max", "write a statistic"),
            ("outage", "p101 < 1s", "write a statistic"),
            ("outage", "max < 1", "write `1s`"),
            ("commit{stormy}", "p99 < 1s", "calm or faults"),
            ("unknown", "rate < 5", "write `5%`"),
            ("commit{calm}", "mean < 5ms", "write p50"),
        ] {
            let why = Threshold::parse(metric, expression).expect_err(expression);
            assert!(why.contains(advice), "{metric} {expression}: {why}");
        }
    }
}
