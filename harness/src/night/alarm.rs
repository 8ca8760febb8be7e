//! Numbers that stand out tonight, and whether a build is to blame.
//!
//! A fence alone would cry about once a night over fifty cases. So before anybody is told, the case is run
//! again by tonight's build and by one from before the alarm, in turn, with the same seeds, as a person would
//! do it. Where both builds are the same, or the earlier one is no longer kept, nothing can be confirmed, and
//! that is said.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use nights::fence::Direction;
use nights::fold;
use nights::index::{Alarm, Comparison, Line};
use nights::measures::{self, Metric};
use nights::paired::{Level, MIN_PAIRS, Paired, Verdict};
use nights::plan;
use nights::trends::{self, Series};
use runs::numbers::count;

use super::build;
use super::outcome;
use super::runner::{Made, Runner};
use crate::config::RunOptions;
use crate::exit::{Exit, Failure};

/// Beside its time, what a run may take.
const GRACE: Duration = Duration::from_secs(300);

/// Pairs of numbers by series: the earlier build's, and tonight's.
type Pairs = BTreeMap<String, Vec<(f64, f64)>>;

impl Runner {
    pub(super) async fn alarms(&self) -> Result<(), Failure> {
        let pairs = self.orders.suite.settings.pairs;
        if pairs == 0 || self.interrupt.was_asked() {
            return Ok(());
        }
        let nights = fold::nights(&self.store.borrow().lines);
        let told: Vec<Alarm> = self.tonight().alarms;
        let mut by_case: BTreeMap<String, Vec<Series>> = BTreeMap::new();
        for series in trends::series(&nights).into_iter().filter(|series| series.alarm.is_some()) {
            if !told.iter().any(|alarm| alarm.case == series.case && alarm.series == series.name) {
                by_case.entry(series.case.clone()).or_default().push(series);
            }
        }
        for (case, alarmed) in by_case {
            let before = alarmed[0].alarm.as_ref().and_then(|alarm| alarmed[0].points.get(alarm.before));
            let earlier = before.map(|point| nights[point.night].begun.build.clone()).unwrap_or_default();
            let (measured, why) = match self.earlier(&earlier) {
                Ok(executable) => self.pairs(&case, &executable, pairs).await?,
                Err(why) => (Pairs::new(), why),
            };
            // What was not compared because somebody interrupted is compared when the night goes on.
            if self.interrupt.was_asked() {
                return Ok(());
            }
            for alarm in self.told(&alarmed, &measured, &earlier, &why) {
                self.progress.say(&alarm.sentence);
                self.store.borrow_mut().append(Line::Alarm(alarm))?;
            }
        }
        Ok(())
    }

    /// The executable of an earlier build, or why there is nothing to compare with.
    fn earlier(&self, name: &str) -> Result<PathBuf, String> {
        if name == self.build.name {
            return Err("the harness is the same as before; a system of its own may not be".to_owned());
        }
        build::earlier(self.store.borrow().path(), name)
    }

    /// Runs a case by both builds in turn, as long as the budget lasts.
    async fn pairs(
        &self,
        case: &str,
        earlier: &std::path::Path,
        pairs: u32,
    ) -> Result<(Pairs, String), Failure> {
        let Some(at) = self.orders.suite.cases.iter().position(|other| other.id == case) else {
            return Ok((Pairs::new(), "the case is no longer in the file".to_owned()));
        };
        let (case, options) = (&self.orders.suite.cases[at], &self.orders.options[at]);
        let a_run = self.orders.guess(case);
        let mut measured = Pairs::new();
        for pair in 0..pairs {
            if self.interrupt.was_asked() || self.rest() < a_run * 2 {
                return Ok((measured, "the budget was over before enough pairs were run".to_owned()));
            }
            let seed = plan::seed(self.orders.seed, &format!("{} pairs", case.id), pair);
            // A B, B A, A B, ...: whatever drifts hits both alike.
            let mut sides = [(earlier, "earlier"), (self.build.executable.as_path(), "tonight")];
            if pair % 2 == 1 {
                sides.reverse();
            }
            let mut numbers = BTreeMap::new();
            for (executable, side) in sides {
                let name = format!("{}-pair-{}-{side}", case.id, pair + 1);
                self.progress.step(&name);
                let mut words = case.words();
                words.extend(["--seed".to_owned(), seed.to_string()]);
                let deadline = options.time_limit * 3 + GRACE;
                let (started, ended, folder) = self.child(&name, words, executable, deadline).await?;
                if ended.interrupted {
                    return Ok((measured, String::new()));
                }
                let record = folder.as_deref().and_then(outcome::read);
                let is_violation = ended.status == Some(i32::from(Exit::Invalid.status()));
                if is_violation && executable == self.build.executable {
                    // It is one, whatever the run was made for: a further run of the case.
                    let repeat = case.repeat.saturating_add(pair).saturating_add(1);
                    let made = Made { case: &case.id, repeat, number: 1, seed, started };
                    let command = RunOptions { seed, ..options.clone() }.command_line();
                    let (attempt, outcome) = self.ended(made, &ended, folder.as_deref(), command);
                    self.store.borrow_mut().append(Line::Attempt(attempt.clone()))?;
                    self.violation(case, &attempt, &outcome.shapes).await?;
                }
                if let Some(record) = record.filter(|_| ended.status == Some(0)) {
                    numbers.insert(side, measures::series(&record.results, &record.faults));
                }
            }
            let (Some(before), Some(after)) = (numbers.get("earlier"), numbers.get("tonight")) else {
                continue;
            };
            for (name, sample) in before {
                if let Some(other) = after.get(name) {
                    measured.entry(name.clone()).or_default().push((sample.value, other.value));
                }
            }
        }
        Ok((measured, String::new()))
    }

    fn told(&self, alarmed: &[Series], measured: &Pairs, earlier: &str, why: &str) -> Vec<Alarm> {
        let mut alarms = Vec::new();
        for series in alarmed {
            let Some(alarm) = &series.alarm else { continue };
            let pairs = measured.get(&series.name).map_or(&[][..], Vec::as_slice);
            let comparison =
                Paired::of(pairs).ok().map(|paired| compared(&paired, series.direction, earlier));
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
                    format!(
                        "{begun}; not compared: {} of {MIN_PAIRS} pairs had the number",
                        count(pairs.len())
                    )
                }
                None => format!("{begun}; not compared: {why}"),
            };
            alarms.push(Alarm {
                night: self.night.clone(),
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
