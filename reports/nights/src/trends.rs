//! Series over nights: one number a night for each case and metric, on one machine.
//!
//! A night's number is the median over the valid runs of its case. Runs that were not valid measured
//! something else. Another machine is another series ([`crate::machine`]).

use std::collections::{BTreeMap, BTreeSet};

use crate::change_points::{ChangePoint, change_points};
use crate::fence::{self, Direction};
use crate::fold::Night;
use crate::index::Attempt;
use crate::measures::{self, Sample};
use crate::pile::Pile;
use crate::quantiles::median;

/// A series as the last night sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The case's id.
    pub case: String,
    /// The metric with its statistic: `elections{kill-leader} p50`.
    pub name: String,
    /// The machines that it was measured on.
    pub machine: String,
    /// Which way is better.
    pub direction: Direction,
    /// Its numbers, oldest first; nights without one are left out.
    pub points: Vec<Point>,
    /// Whether the last night stands out; none where it does not, or has no number.
    pub alarm: Option<fence::Alarm>,
    /// Where its level has changed, oldest first.
    pub changes: Vec<Change>,
}

/// A night's number.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The night, by its place among all nights.
    pub night: usize,
    /// The number, and the samples behind it.
    pub sample: Sample,
}

/// A level that has changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The last night of the old level and the first of the new one, by their places among all nights.
    pub between: (usize, usize),
    /// The medians before and after.
    pub levels: (f64, f64),
}

impl Series {
    /// The last night's number, when it has one.
    pub fn tonight(&self, nights: usize) -> Option<Sample> {
        let last = self.points.last()?;
        (last.night + 1 == nights).then_some(last.sample)
    }

    /// By how much the last night's number is from the median of those before: 1 is none, 2 is twice or half.
    /// 1 where there is no number, or none before.
    pub fn moved(&self, nights: usize) -> f64 {
        let (Some(tonight), [before @ .., _]) = (self.tonight(nights), self.points.as_slice()) else {
            return 1.0;
        };
        let before: Vec<f64> = before.iter().map(|point| point.sample.value).collect();
        match median(&before) {
            Some(usual) if usual > 0.0 && tonight.value > 0.0 => {
                (tonight.value / usual).max(usual / tonight.value)
            }
            _ => 1.0,
        }
    }
}

/// What is followed: a case and one of its numbers, on one machine.
type Key = (String, String, String);

/// Every series of the last night, by case and name: of the machines that its runs were made on.
pub fn series(nights: &[Night]) -> Vec<Series> {
    let Some(tonight) = nights.last() else { return Vec::new() };
    let machines: BTreeSet<String> =
        tonight.attempts.iter().map(|attempt| machine(tonight, attempt)).collect();
    let mut all: BTreeMap<Key, Vec<Point>> = BTreeMap::new();
    for (at, night) in nights.iter().enumerate() {
        for (key, sample) in numbers(night, &machines) {
            all.entry(key).or_default().push(Point { night: at, sample });
        }
    }
    all.into_iter().map(|(key, points)| drawn(key, points, nights.len())).collect()
}

/// Where a run was made: the shards of one night are on several machines.
fn machine(night: &Night, attempt: &Attempt) -> String {
    if attempt.machine.is_empty() { night.begun.machine.key() } else { attempt.machine.clone() }
}

/// A night's number of each case and series.
fn numbers(night: &Night, machines: &BTreeSet<String>) -> BTreeMap<Key, Sample> {
    let mut values: BTreeMap<Key, Vec<Sample>> = BTreeMap::new();
    for attempt in night.attempts.iter().filter(|attempt| attempt.pile == Pile::Valid) {
        let machine = machine(night, attempt);
        for (name, sample) in attempt.series.iter().filter(|_| machines.contains(&machine)) {
            let key = (attempt.case.clone(), name.clone(), machine.clone());
            values.entry(key).or_default().push(*sample);
        }
    }
    let one = |samples: Vec<Sample>| {
        let value = median(&samples.iter().map(|sample| sample.value).collect::<Vec<_>>())?;
        Some(Sample { value, n: samples.iter().fold(0, |all, sample| all.saturating_add(sample.n)) })
    };
    values.into_iter().filter_map(|(key, samples)| Some((key, one(samples)?))).collect()
}

fn drawn((case, name, machine): Key, points: Vec<Point>, nights: usize) -> Series {
    let direction = measures::of_series(&name).map_or(Direction::LowerIsBetter, |metric| metric.direction());
    let values: Vec<Option<f64>> = points.iter().map(|point| Some(point.sample.value)).collect();
    let is_tonight = points.last().is_some_and(|point| point.night + 1 == nights);
    let alarm = is_tonight.then(|| fence::alarm(&values, direction)).flatten();
    let change = |found: ChangePoint| {
        let (before, after) = (points.get(found.at.checked_sub(1)?)?, points.get(found.at)?);
        Some(Change { between: (before.night, after.night), levels: (found.before, found.after) })
    };
    let changes = change_points(&values).into_iter().filter_map(change).collect();
    Series { case, name, machine, direction, points, alarm, changes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Begun;
    use crate::invented;
    use crate::machine::Machine;

    fn night(name: usize, cores: u32, values: &[f64]) -> Night {
        let machine = Machine { cores, ..Machine::default() };
        let begun = Begun { machine, ..invented::begun(&format!("{name:03}")) };
        let attempt = |value: &f64| Attempt {
            series: [("outage max".to_owned(), Sample { value: *value, n: 1 })].into(),
            ..invented::attempt("a", Pile::Valid)
        };
        Night { attempts: values.iter().map(attempt).collect(), ..Night::new(begun) }
    }

    /// A little noise around a level.
    fn around(level: f64, at: usize) -> f64 {
        level * [1.0, 1.02, 0.98, 1.01, 0.99][at % 5]
    }

    #[test]
    fn a_nights_number_is_the_median_of_its_runs() {
        let all = series(&[night(0, 2, &[100.0, 900.0, 110.0])]);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].points[0].sample, Sample { value: 110.0, n: 3 });
        assert_eq!(all[0].moved(1), 1.0);
    }

    #[test]
    fn a_step_is_an_alarm_and_its_nights_are_named() {
        let level = |at: usize| if at < 30 { 100.0 } else { 150.0 };
        let nights: Vec<Night> = (0..35).map(|at| night(at, 2, &[around(level(at), at)])).collect();
        let two = &series(&nights[..32])[0];
        assert!(two.alarm.is_some(), "two nights above");
        let all = &series(&nights)[0];
        assert_eq!(all.changes.iter().map(|change| change.between).collect::<Vec<_>>(), [(29, 30)]);
        assert!(all.moved(35) > 1.4);
    }

    #[test]
    fn shards_of_one_night_are_followed_on_their_own_machines() {
        let mut nights: Vec<Night> = (0..20).map(|at| night(at, 2, &[around(100.0, at)])).collect();
        for (at, night) in nights.iter_mut().enumerate() {
            let mut other = night.attempts[0].clone();
            "b".clone_into(&mut other.case);
            "another machine".clone_into(&mut other.machine);
            other.series.insert("outage max".to_owned(), Sample { value: around(900.0, at), n: 1 });
            night.attempts.push(other);
        }
        let all = series(&nights);
        let machines: Vec<&str> = all.iter().map(|series| series.machine.as_str()).collect();
        assert_eq!(machines.len(), 2);
        assert_eq!(machines[1], "another machine");
        assert!(all.iter().all(|series| series.points.len() == 20));
    }

    #[test]
    fn a_new_machine_begins_a_new_series_and_alarms_nobody() {
        let mut nights: Vec<Night> = (0..30).map(|at| night(at, 2, &[around(100.0, at)])).collect();
        nights.extend((30..40).map(|at| night(at, 8, &[around(300.0, at)])));
        let all = series(&nights);
        assert_eq!(all[0].points.len(), 10);
        assert!(all[0].alarm.is_none() && all[0].changes.is_empty());
    }
}
