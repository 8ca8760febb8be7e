//! The numbers of a run by name: what thresholds judge, and what is followed over nights.
//!
//! A metric gives samples, and samples of several runs pool: elections and outages as their values, latencies
//! as the curves that each run keeps of its percentiles. What is followed over nights is one number per run
//! and metric, a *series*; a night's number is the median over its runs, because pooling over nights would
//! take a machine's mood for evidence.

use std::collections::BTreeMap;
use std::fmt;

use runs::election_kinds::{self, grouped};
use runs::faults::FaultRecord;
use runs::numbers::{lossy, nearest_rank};
use runs::results::{LatencyClass, LatencySummary, Phase, Results};
use serde::{Deserialize, Serialize};

use crate::fence::Direction;
use crate::statistic::{Statistic, Unit};

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Changes of leader from the fault to the first write, by kind of fault; none means all.
    Elections(Option<String>),
    /// One phase of them.
    Phase(Phase, Option<String>),
    /// Intervals without an acknowledged write.
    Outage,
    /// Writes and compare-and-sets from when they were due, calm or under faults.
    Commit(Weather),
    /// Reads likewise.
    Read(Weather),
    /// Operations answered with success, in a second.
    Operations,
    /// From the start until every member served.
    Start,
    /// The share of faults that were verified.
    Verified,
    /// The share of attempts that were unknown.
    Unknown,
    /// How long a run was judged.
    Judging,
}

/// Whether something was broken meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    /// Nothing was.
    Calm,
    /// Something was, or had been a moment ago.
    Faults,
}

const NAMES: &str = "elections, detection, election, synchronization, first-write (each with {kind of fault} \
                     behind it, or for all kinds), outage, commit{calm}, commit{faults}, read{calm}, \
                     read{faults}, operations, start, judging, faults.verified, unknown";

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::FirstWrite => "first-write",
        Phase::Detection | Phase::Election | Phase::Synchronization => phase.name(),
    }
}

impl Metric {
    /// Reads a metric as it is written: `elections{kill-leader}`, `commit{calm}`, `outage`.
    ///
    /// # Errors
    ///
    /// What is wrong, and which there are.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (name, of) = match text.split_once('{') {
            Some((name, rest)) => {
                let of = rest.strip_suffix('}').ok_or_else(|| format!("`{text}` has no closing brace"))?;
                (name.trim(), Some(of.trim().to_owned()))
            }
            None => (text, None),
        };
        let weather = |of: Option<&str>| match of {
            Some("calm") => Ok(Weather::Calm),
            Some("faults") => Ok(Weather::Faults),
            _ => Err(format!("`{text}`: write calm or faults in braces behind {name}")),
        };
        let plain = |metric: Self| match &of {
            None => Ok(metric),
            Some(of) => Err(format!("`{text}`: {name} is not divided by {of}; leave the braces out")),
        };
        let phase = Phase::ALL.into_iter().find(|phase| phase_name(*phase) == name);
        match (name, phase) {
            (_, Some(phase)) => Ok(Self::Phase(phase, of)),
            ("elections", _) => Ok(Self::Elections(of)),
            ("commit", _) => weather(of.as_deref()).map(Self::Commit),
            ("read", _) => weather(of.as_deref()).map(Self::Read),
            ("outage", _) => plain(Self::Outage),
            ("operations", _) => plain(Self::Operations),
            ("start", _) => plain(Self::Start),
            ("judging", _) => plain(Self::Judging),
            ("faults.verified", _) => plain(Self::Verified),
            ("unknown", _) => plain(Self::Unknown),
            _ => Err(format!("there is no metric `{name}`; there are {NAMES}")),
        }
    }

    /// The unit of its numbers.
    pub fn unit(&self) -> Unit {
        match self {
            Self::Operations => Unit::PerSecond,
            Self::Verified | Self::Unknown => Unit::Share,
            Self::Elections(_)
            | Self::Phase(..)
            | Self::Outage
            | Self::Commit(_)
            | Self::Read(_)
            | Self::Start
            | Self::Judging => Unit::Ms,
        }
    }

    /// Whether a run has one number of it and not many.
    pub fn is_one_number(&self) -> bool {
        matches!(self, Self::Operations | Self::Start | Self::Verified | Self::Unknown | Self::Judging)
    }

    /// Whether it is of single operations, of which a run keeps percentiles alone.
    pub fn is_latency(&self) -> bool {
        matches!(self, Self::Commit(_) | Self::Read(_))
    }

    /// Which way is better.
    pub fn direction(&self) -> Direction {
        match self {
            Self::Operations | Self::Verified => Direction::HigherIsBetter,
            _ => Direction::LowerIsBetter,
        }
    }

    /// Whether it is of changes of leader.
    pub fn is_of_elections(&self) -> bool {
        matches!(self, Self::Elections(_) | Self::Phase(..))
    }

    /// The kind of fault whose elections it is of, where it is of one.
    pub fn kind_of_election(&self) -> Option<&str> {
        match self {
            Self::Elections(kind) | Self::Phase(_, kind) => kind.as_deref(),
            _ => None,
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |name: &str, kind: &Option<String>| match kind {
            Some(kind) => format!("{name}{{{kind}}}"),
            None => name.to_owned(),
        };
        let weather = |name: &str, weather: Weather| match weather {
            Weather::Calm => format!("{name}{{calm}}"),
            Weather::Faults => format!("{name}{{faults}}"),
        };
        f.write_str(&match self {
            Self::Elections(kind) => of("elections", kind),
            Self::Phase(phase, kind) => of(phase_name(*phase), kind),
            Self::Commit(when) => weather("commit", *when),
            Self::Read(when) => weather("read", *when),
            Self::Outage => "outage".to_owned(),
            Self::Operations => "operations".to_owned(),
            Self::Start => "start".to_owned(),
            Self::Judging => "judging".to_owned(),
            Self::Verified => "faults.verified".to_owned(),
            Self::Unknown => "unknown".to_owned(),
        })
    }
}

/// Samples of one metric, of one run or of several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Single values.
    values: Vec<f64>,
    /// Latencies of whole runs.
    curves: Vec<LatencySummary>,
}

impl Samples {
    /// Of single values; what is not finite is left out.
    pub fn of_values(values: Vec<f64>) -> Self {
        Self { values: values.into_iter().filter(|value| value.is_finite()).collect(), curves: Vec::new() }
    }

    /// Takes in those of another run.
    pub fn add(&mut self, other: Self) {
        self.values.extend(other.values);
        self.curves.extend(other.curves);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        let values = u64::try_from(self.values.len()).unwrap_or(u64::MAX);
        self.curves.iter().fold(values, |all, curve| all.saturating_add(curve.count))
    }

    /// A statistic of them; none where there are none.
    pub fn statistic(&self, statistic: Statistic) -> Option<f64> {
        let largest = self.values.iter().copied().chain(self.curves.iter().map(|curve| curve.max_ms));
        let smallest = (self.values.iter().copied())
            .chain(self.curves.iter().filter_map(|curve| curve.curve.first().map(|(_, ms)| *ms)));
        match statistic {
            Statistic::Count => Some(lossy(self.count())),
            Statistic::Max => largest.reduce(f64::max),
            Statistic::Min => smallest.reduce(f64::min),
            Statistic::Mean if self.values.is_empty() || !self.curves.is_empty() => None,
            Statistic::Mean => Some(self.values.iter().sum::<f64>() / lossy(self.count())),
            Statistic::Percentile(rank) => self.percentile(rank),
        }
    }

    fn percentile(&self, rank: f64) -> Option<f64> {
        if self.curves.is_empty() {
            let mut sorted = self.values.clone();
            sorted.sort_by(f64::total_cmp);
            return nearest_rank(&sorted, rank);
        }
        let curves = self.curves.iter().map(|curve| (curve.count, curve.curve.as_slice()));
        pooled_percentile(&curves.collect::<Vec<_>>(), rank)
    }
}

/// Steps by which a percentile is looked for between the fastest and the slowest.
const HALVINGS: usize = 60;

/// The percentile of what several curves are of: the length below which that share of all operations lies.
fn pooled_percentile(curves: &[(u64, &[(f64, f64)])], rank: f64) -> Option<f64> {
    let all: f64 = curves.iter().map(|(count, _)| lossy(*count)).sum();
    let points = || curves.iter().flat_map(|(_, curve)| curve.iter().map(|(_, ms)| *ms));
    let (mut low, mut high) = (points().reduce(f64::min)?, points().reduce(f64::max)?);
    if all <= 0.0 {
        return None;
    }
    let share = |ms: f64| curves.iter().map(|(count, curve)| lossy(*count) * below(curve, ms)).sum::<f64>();
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if share(middle) / all * 100.0 < rank {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(high)
}

/// The share of a curve's operations that took at most so long.
fn below(curve: &[(f64, f64)], ms: f64) -> f64 {
    let after = curve.partition_point(|(_, at)| *at <= ms);
    let Some((percent, from)) = after.checked_sub(1).map(|before| curve[before]) else { return 0.0 };
    let Some((next, to)) = curve.get(after) else { return 1.0 };
    let part = if *to > from { (ms - from) / (to - from) } else { 0.0 };
    (percent + (next - percent) * part) / 100.0
}

/// What a run measured of a metric.
pub fn samples(metric: &Metric, results: &Results, faults: &[FaultRecord]) -> Samples {
    let classes = |classes: [Option<LatencyClass>; 2]| Samples {
        values: Vec::new(),
        curves: classes
            .into_iter()
            .flatten()
            .filter_map(|class| results.latency.get(&class).cloned())
            .collect(),
    };
    let one = |value: Option<f64>| Samples::of_values(value.into_iter().collect());
    match metric {
        Metric::Elections(kind) => elections(results, faults, kind.as_deref(), &|election| election.total_ms),
        Metric::Phase(phase, kind) => {
            elections(results, faults, kind.as_deref(), &|election| phase.of(election))
        }
        Metric::Outage => Samples::of_values(outages(results)),
        Metric::Commit(Weather::Calm) => {
            classes([Some(LatencyClass::WriteCalm), Some(LatencyClass::CasCalm)])
        }
        Metric::Commit(Weather::Faults) => {
            classes([Some(LatencyClass::WriteFault), Some(LatencyClass::CasFault)])
        }
        Metric::Read(Weather::Calm) => classes([Some(LatencyClass::ReadCalm), None]),
        Metric::Read(Weather::Faults) => classes([Some(LatencyClass::ReadFault), None]),
        Metric::Operations => one(rate(results)),
        Metric::Start => one(Some(results.timings.start_ms).filter(|ms| *ms > 0.0)),
        Metric::Judging => one(Some(results.timings.check_ms).filter(|ms| *ms > 0.0)),
        Metric::Verified => one((results.faults.planned > 0)
            .then(|| f64::from(results.faults.verified) / f64::from(results.faults.planned))),
        // Of attempts, not of what a run measured: whoever counts attempts fills it in.
        Metric::Unknown => Samples::default(),
    }
}

fn elections(
    results: &Results,
    faults: &[FaultRecord],
    kind: Option<&str>,
    value: &dyn Fn(&runs::results::Election) -> Option<f64>,
) -> Samples {
    let wanted = |name: &str| kind.map_or(name != election_kinds::NO_FAULT, |kind| kind == name);
    let of = grouped(&results.elections, faults).into_iter().filter(|(name, _)| wanted(name));
    Samples::of_values(of.flat_map(|(_, all)| all).filter_map(value).collect())
}

/// A run without an outage had one of no length, else its maximum would be unknown.
fn outages(results: &Results) -> Vec<f64> {
    let all = results.outages.iter();
    let lengths = all.map(|outage| runs::numbers::ns_to_ms(outage.to_ns.saturating_sub(outage.from_ns)));
    let lengths: Vec<f64> = lengths.collect();
    if lengths.is_empty() { vec![0.0] } else { lengths }
}

fn rate(results: &Results) -> Option<f64> {
    let seconds = results.timings.workload_ms / 1e3;
    (seconds > 0.0).then(|| lossy(results.operations.total.ok) / seconds)
}

/// One number of a run, and how many samples are behind it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// In the metric's unit.
    pub value: f64,
    /// How many samples are behind it.
    pub n: u64,
}

/// What is followed over nights: the metric with the statistic, by name, for every kind of election that the
/// run had. A statistic with too few samples is absent.
pub fn series(results: &Results, faults: &[FaultRecord]) -> BTreeMap<String, Sample> {
    let mut watched: Vec<(Metric, Statistic)> = Vec::new();
    let median = Statistic::Percentile(50.0);
    for (kind, _) in grouped(&results.elections, faults) {
        if kind == election_kinds::NO_FAULT {
            continue;
        }
        watched.push((Metric::Elections(Some(kind.clone())), median));
        watched.extend(Phase::ALL.map(|phase| (Metric::Phase(phase, Some(kind.clone())), median)));
    }
    watched.extend([
        (Metric::Outage, Statistic::Max),
        (Metric::Commit(Weather::Calm), median),
        (Metric::Commit(Weather::Calm), Statistic::Percentile(99.0)),
        (Metric::Commit(Weather::Faults), Statistic::Percentile(99.0)),
        (Metric::Read(Weather::Calm), median),
        (Metric::Operations, Statistic::Mean),
        (Metric::Start, Statistic::Mean),
        (Metric::Judging, Statistic::Mean),
    ]);
    let named = watched.into_iter().filter_map(|(metric, statistic)| {
        let samples = samples(&metric, results, faults);
        let value = samples.statistic(statistic).filter(|value| value.is_finite())?;
        let word = match statistic {
            Statistic::Percentile(rank) => format!(" p{rank}"),
            Statistic::Max => " max".to_owned(),
            Statistic::Min | Statistic::Mean | Statistic::Count => String::new(),
        };
        (samples.count() >= statistic.needs())
            .then(|| (format!("{metric}{word}"), Sample { value, n: samples.count() }))
    });
    named.collect()
}

/// The metric of a series by its name; none of a name that this build does not know.
pub fn of_series(name: &str) -> Option<Metric> {
    Metric::parse(name).ok().or_else(|| Metric::parse(name.rsplit_once(' ')?.0).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use checker::verdict::Verdict;
    use runs::results::{Election, RunInfo};

    #[test]
    fn metrics_are_read_as_they_are_written() {
        for text in [
            "elections{kill-leader}",
            "elections",
            "detection{pause-leader}",
            "first-write",
            "commit{calm}",
            "read{faults}",
            "outage",
            "operations",
            "faults.verified",
            "judging",
        ] {
            assert_eq!(Metric::parse(text).expect(text).to_string(), text);
        }
        assert_eq!(of_series("commit{calm} p99"), Some(Metric::Commit(Weather::Calm)));
        assert_eq!(
            of_series("elections{kill-all, healing} p50"),
            Some(Metric::Elections(Some("kill-all, healing".to_owned())))
        );
    }

    #[test]
    fn latencies_of_several_runs_pool_by_how_many_operations_each_had() {
        let curve = |count: u64, fast: f64, slow: f64| LatencySummary {
            count,
            curve: vec![(0.0, fast), (50.0, fast), (100.0, slow)],
            max_ms: slow,
            ..LatencySummary::default()
        };
        let mut all = Samples { values: Vec::new(), curves: vec![curve(900, 1.0, 1.0)] };
        all.add(Samples { values: Vec::new(), curves: vec![curve(100, 50.0, 100.0)] });
        assert_eq!(all.count(), 1000);
        let at = |rank: f64| all.statistic(Statistic::Percentile(rank)).expect("a percentile");
        assert!((at(50.0) - 1.0).abs() < 1e-6, "{}", at(50.0));
        assert!((at(99.0) - 90.0).abs() < 1.0, "{}", at(99.0));
        assert_eq!(all.statistic(Statistic::Max), Some(100.0));
    }

    #[test]
    fn elections_are_followed_by_kind_and_only_where_there_are_enough() {
        let run = RunInfo::default();
        let mut results = Results::new(Verdict::Valid, &run);
        let faults: Vec<FaultRecord> = [("F1", "kill-leader"), ("F2", "pause-leader")]
            .map(|(id, kind)| FaultRecord {
                id: id.to_owned(),
                kind: kind.to_owned(),
                ..FaultRecord::default()
            })
            .to_vec();
        for (fault, ms) in [("F1", 10.0), ("F1", 30.0), ("F1", 20.0), ("F2", 300.0)] {
            results.elections.push(Election {
                fault: Some(fault.to_owned()),
                total_ms: Some(ms),
                ..Election::default()
            });
        }
        let series = series(&results, &faults);
        assert_eq!(series["elections{kill-leader} p50"], Sample { value: 20.0, n: 3 });
        assert!(!series.contains_key("elections{pause-leader} p50"), "one is no median");
        let all = samples(&Metric::Elections(None), &results, &faults);
        assert_eq!(all.count(), 4);
    }
}
