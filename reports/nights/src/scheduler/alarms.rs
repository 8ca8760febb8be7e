//! Numbers that stand out tonight, and whether a build is to blame.
//!
//! A fence alone would cry about once a night over fifty cases. So before anybody is told, the case is run
//! again by tonight's build and by one from before the alarm, in turn, with the same seeds, as a person would
//! do it. Where both builds are the same, or the earlier one is no longer kept, nothing can be confirmed, and
//! that is said.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use runs::numbers::count;

use crate::fence::Direction;
use crate::fold;
use crate::index::{Alarm, Comparison, Line};
use crate::measures::{self, Metric, Sample};
use crate::outcome::Ended;
use crate::paired::{Level, MIN_PAIRS, Paired, Verdict};
use crate::pile::Pile;
use crate::plan;
use crate::trends::{self, Series};

use super::{Command, Made, Moment, Phase, Run, Scheduler, Task, flag, patience};

/// Which of two builds makes a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The one that was found last, from before an alarm.
    Earlier,
    /// Tonight's.
    Tonight,
}

impl Side {
    /// The word in the names of runs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Earlier => "earlier",
            Self::Tonight => "tonight",
        }
    }
}

/// A case whose numbers stand out, and its runs by both builds.
#[derive(Debug)]
pub(super) struct Comparing {
    case: String,
    series: Vec<Series>,
    /// The name of the build from before the alarm.
    earlier: String,
    /// Whether its executable is there.
    is_found: bool,
    /// Pairs that were begun.
    pairs: u32,
    /// The seed of the pair under way, the runs of it that were not begun, and what those that were measured.
    seed: u64,
    sides: VecDeque<Side>,
    numbers: BTreeMap<Side, BTreeMap<String, Sample>>,
    /// Pairs of numbers by series: the earlier build's, and tonight's.
    measured: BTreeMap<String, Vec<(f64, f64)>>,
}

impl Scheduler {
    /// The cases of which a number stands out that nobody was told of tonight.
    pub(super) fn alarmed(&self) -> VecDeque<Comparing> {
        if self.settings().pairs == 0 {
            return VecDeque::new();
        }
        let nights = fold::nights(&self.lines);
        let told = self.tonight().alarms;
        let mut by_case: BTreeMap<String, Vec<Series>> = BTreeMap::new();
        for series in trends::series(&nights).into_iter().filter(|series| series.alarm.is_some()) {
            if !told.iter().any(|alarm| alarm.case == series.case && alarm.series == series.name) {
                by_case.entry(series.case.clone()).or_default().push(series);
            }
        }
        let comparing = |(case, series): (String, Vec<Series>)| {
            let before = series[0].alarm.as_ref().and_then(|alarm| series[0].points.get(alarm.before));
            let earlier = before.map(|point| nights[point.night].begun.build.clone()).unwrap_or_default();
            Comparing {
                case,
                series,
                earlier,
                is_found: false,
                pairs: 0,
                seed: 0,
                sides: VecDeque::new(),
                numbers: BTreeMap::new(),
                measured: BTreeMap::new(),
            }
        };
        by_case.into_iter().map(comparing).collect()
    }

    /// Begins the next run of a comparison, as long as the budget lasts.
    pub(super) fn compares(&mut self, now: Moment) -> bool {
        let (rest, most) = (self.rest(now), self.settings().pairs);
        let Phase::Alarms(left) = &mut self.phase else { return false };
        let Some(comparing) = left.front_mut() else { return false };
        let case = self.terms.suite.cases.iter().position(|case| case.id == comparing.case);
        if !comparing.is_found {
            if comparing.earlier == self.terms.build {
                let why = "the harness is the same as before; a system of its own may not be";
                self.compared(why);
            } else {
                self.awaits = true;
                self.out.push_back(Command::Find(comparing.earlier.clone()));
            }
            return true;
        }
        let Some(case) = case else {
            self.compared("the case is no longer in the file");
            return true;
        };
        if let Some(side) = comparing.sides.pop_front() {
            let name = format!("{}-pair-{}-{}", comparing.case, comparing.pairs, side.name());
            let seed = comparing.seed;
            self.out.push_back(Command::Step(name.clone()));
            let mut flags = self.terms.suite.cases[case].words();
            flags.extend(flag("--seed", seed));
            let deadline = patience(self.runs.time_limit(case));
            let process = self.run_of(name, side, flags, deadline);
            self.start(now, process, Task::Pair(side));
            return true;
        }
        comparing.pair_is_over();
        if comparing.pairs == most {
            self.compared("");
        } else if rest < self.runs.guess(case).saturating_mul(2) {
            self.compared("the budget was over before enough pairs were run");
        } else {
            comparing.next_pair(self.terms.begun.seed);
        }
        true
    }

    pub(super) fn found_build(&mut self, outcome: Result<(), String>) {
        let Phase::Alarms(left) = &mut self.phase else { return };
        match (left.front_mut(), outcome) {
            (Some(comparing), Ok(())) => comparing.is_found = true,
            (Some(_), Err(why)) => self.compared(&why),
            (None, _) => {}
        }
    }

    /// A run of a pair has ended.
    pub(super) fn measured(
        &mut self,
        side: Side,
        started: Timestamp,
        now: Moment,
        ended: &Ended,
        made: &Made,
    ) {
        let Phase::Alarms(left) = &mut self.phase else { return };
        let Some(comparing) = left.front_mut().filter(|_| !ended.interrupted) else { return };
        if let Some(record) = made.record.as_ref().filter(|_| ended.status == Some(0)) {
            comparing.numbers.insert(side, measures::series(&record.results, &record.faults));
        }
        let (id, seed, pairs) = (comparing.case.clone(), comparing.seed, comparing.pairs);
        let is_violation = Pile::of_status(ended.status) == Pile::Violation;
        let Some((at, case)) = self.case(&id).filter(|_| is_violation && side == Side::Tonight) else {
            return;
        };
        // It is one, whatever the run was made for: a further run of the case.
        let repeat = case.repeat.saturating_add(pairs);
        let command = self.runs.command(at, seed);
        let run = Run { case: &id, repeat, number: 1, seed, started, command };
        let (attempt, outcome) = self.attempt(run, now, ended, made);
        self.write(Line::Attempt(attempt.clone()));
        self.look(at, attempt, outcome.shapes, now);
    }

    /// A comparison is over, or could not be made: why, or nothing.
    fn compared(&mut self, why: &str) {
        let Phase::Alarms(left) = &mut self.phase else { return };
        let Some(comparing) = left.pop_front() else { return };
        for alarm in comparing.alarms(&self.terms.begun.night, why) {
            self.say(alarm.sentence.clone());
            self.write(Line::Alarm(alarm));
        }
    }
}

impl Comparing {
    fn next_pair(&mut self, seed: u64) {
        self.seed = plan::seed(seed, &format!("{} pairs", self.case), self.pairs);
        // A B, B A, A B, ...: whatever drifts hits both alike.
        self.sides = [Side::Earlier, Side::Tonight].into();
        if self.pairs % 2 == 1 {
            self.sides.make_contiguous().reverse();
        }
        self.pairs += 1;
    }

    fn pair_is_over(&mut self) {
        let mut numbers = std::mem::take(&mut self.numbers);
        let (Some(before), Some(after)) = (numbers.remove(&Side::Earlier), numbers.remove(&Side::Tonight))
        else {
            return;
        };
        for (name, sample) in before {
            if let Some(other) = after.get(&name) {
                self.measured.entry(name).or_default().push((sample.value, other.value));
            }
        }
    }

    fn alarms(&self, night: &str, why: &str) -> Vec<Alarm> {
        let mut alarms = Vec::new();
        for series in &self.series {
            let Some(alarm) = &series.alarm else { continue };
            let pairs = self.measured.get(&series.name).map_or(&[][..], Vec::as_slice);
            let comparison =
                Paired::of(pairs).ok().map(|paired| compared(&paired, series.direction, &self.earlier));
            let unit = |value: f64| {
                let metric = measures::of_series(&series.name);
                metric.map_or_else(|| value.to_string(), |metric| metric.unit().show(value))
            };
            let begun = format!(
                "{}: {} is {}, usually {}",
                series.case,
                series.name,
                unit(alarm.tonight),
                unit(alarm.median)
            );
            let sentence = match &comparison {
                Some(comparison) => format!("{begun}; {}", words(comparison)),
                None if why.is_empty() => {
                    let had = count(pairs.len());
                    format!("{begun}; not compared: {had} of {MIN_PAIRS} pairs had the number")
                }
                None => format!("{begun}; not compared: {why}"),
            };
            alarms.push(Alarm {
                night: night.to_owned(),
                case: series.case.clone(),
                series: series.name.clone(),
                value: alarm.tonight,
                before: alarm.median,
                fence: alarm.fence,
                comparison,
                sentence,
            });
        }
        by_phase(&mut alarms);
        alarms
    }
}

fn compared(paired: &Paired, direction: Direction, earlier: &str) -> Comparison {
    let interval = paired.interval(Level::P95);
    Comparison {
        against: earlier.to_owned(),
        pairs: u64::try_from(paired.pairs).unwrap_or(u64::MAX),
        ratio: (interval.low, paired.ratio, interval.high),
        confirmed: paired.verdict(direction, Level::P95) == Verdict::Slower,
    }
}

fn words(comparison: &Comparison) -> String {
    let (low, ratio, high) = comparison.ratio;
    let times = format!(
        "{ratio:.2} times that of {} ({low:.2} to {high:.2}, {} pairs)",
        comparison.against, comparison.pairs
    );
    if comparison.confirmed { format!("confirmed: {times}") } else { format!("not confirmed: {times}") }
}

/// A phase of an election explains the whole election. So where a phase is confirmed, the sum of the phases
/// is not a regression of its own.
fn by_phase(alarms: &mut [Alarm]) {
    let kinds: Vec<(String, String)> = alarms
        .iter()
        .filter(|alarm| alarm.is_confirmed())
        .filter_map(|alarm| match measures::of_series(&alarm.series)? {
            Metric::Phase(_, Some(kind)) => Some((kind, alarm.series.clone())),
            _ => None,
        })
        .collect();
    for alarm in alarms {
        let Some(Metric::Elections(Some(kind))) = measures::of_series(&alarm.series) else { continue };
        let phase = kinds.iter().find(|(of, _)| *of == kind);
        if let (Some((_, phase)), Some(comparison)) = (phase, &mut alarm.comparison) {
            comparison.confirmed = false;
            alarm.sentence.push_str(&format!("; explained by {phase}"));
        }
    }
}
